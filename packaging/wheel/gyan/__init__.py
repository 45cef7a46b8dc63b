"""gyan: see inside the MPI library that a program runs on.

`load` reads what a run left, as frames of pandas, Polars or PyArrow; `run` starts a program and loads what it leaves. All work is done by
the command ``gyan``, which is in this package.
"""

from ._command import Error, IncompleteWarning, command, library
from ._notebook import Shown
from ._phase import phase
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
