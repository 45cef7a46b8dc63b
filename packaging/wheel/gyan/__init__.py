"""gyan: see inside the MPI library that a program runs on.

`load` reads what a run left, as frames of pandas, Polars or PyArrow; `run` starts a program and loads what it leaves. All work is done by
the command ``gyan``, which is in this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._phase import phase

if TYPE_CHECKING:
    from ._command import Error, IncompleteWarning, command, library
    from ._notebook import Shown
    from ._run import Run, Tables, load
    from ._several import Answer, Difference, Runs, Scaling, Tuning, Verdict, check, diff, runs, scale
    from ._start import run, tune
    from ._tables import Column, Table

__all__ = [
    "Answer",
    "Column",
    "Difference",
    "Error",
    "IncompleteWarning",
    "Run",
    "Runs",
    "Scaling",
    "Shown",
    "Table",
    "Tables",
    "Tuning",
    "Verdict",
    "check",
    "command",
    "diff",
    "library",
    "load",
    "phase",
    "run",
    "runs",
    "scale",
    "tune",
]

_MODULES = ("_command", "_tables", "_run", "_several", "_start", "_notebook")


def __getattr__(name: str) -> Any:
    """Imports what reads runs when it is first asked for: programs on many ranks that only name phases do not wait for it."""
    if name in __all__:
        for module in _MODULES:
            found = vars(import_module("." + module, __name__)).get(name)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
