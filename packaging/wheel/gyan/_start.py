"""Programs that are started under gyan."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import overload

from . import _command
from ._command import Error, Option, Path, ask
from ._run import Run
from ._several import Runs, Tuning


@overload
def run(
    program: Sequence[Path],
    *,
    output: Path | None = None,
    check: bool = True,
    frames: str | None = None,
    repeat: None = None,
    **options: Option,
) -> Run: ...


@overload
def run(
    program: Sequence[Path],
    *,
    output: Path | None = None,
    check: bool = True,
    frames: str | None = None,
    repeat: int,
    **options: Option,
) -> Runs: ...


def run(
    program: Sequence[Path],
    *,
    output: Path | None = None,
    check: bool = True,
    frames: str | None = None,
    repeat: int | None = None,
    **options: Option,
) -> Run | Runs:
    """Starts a program, waits for it, and loads what it left.

    What the program prints goes where this program's output goes.

    Args:
        program: The launcher and the program, with their arguments: ``["mpirun", "-n", "4", "./app"]``.
        output: Where the profiles go; without it, a new directory ``gyan-...`` in the current one.
        check: Whether it is an `Error` when the program ends with another code than 0.
        frames: As of `load`.
        repeat: How often it runs. With a number, the result is that of `runs`.
        options: Options of ``gyan run``: ``timeline=True``, ``label=["size=1000"]``.

    Raises:
        Error: It did not start, it failed, or it left no profile.
    """
    place = os.fspath(output) if output is not None else tempfile.mkdtemp(prefix="gyan-", dir=os.getcwd())
    named = _command.options({"repeat": repeat, **options})
    code, said = _started(["run", "--no-report", f"--output={place}", *named, "--", *program])
    if code != 0 and (check or not os.path.isdir(place) or not os.listdir(place)):
        if output is None and not os.listdir(place):
            os.rmdir(place)
        raise Error(said or f"gyan: {os.fspath(program[0])}: ended with code {code}; gyan.load({place!r}) has what it did until then")
    return Run(place, frames) if repeat is None else Runs(place, frames)


def _started(arguments: Sequence[Path]) -> tuple[int, str]:
    """Runs the command; its exit code, and its last line about itself."""
    said = ""
    with subprocess.Popen([_command.command(), *arguments], stderr=subprocess.PIPE) as process:
        # It is a pipe, as asked for.
        assert process.stderr is not None
        for line in process.stderr:
            text = line.decode(errors="replace")
            sys.stderr.write(text)
            if text.startswith("gyan: "):
                said = text.strip()
    return process.returncode, said


def tune(program: Sequence[Path], *, output: Path | None = None, **options: Option) -> Tuning:
    """Finds the settings that make a program faster. It runs many times.

    Args:
        program: The launcher and the program, with their arguments.
        output: Where everything goes; without it, a new directory ``gyan-tune-...`` in the current one.
        options: Options of ``gyan tune``: ``set=["btl_vader_eager_limit=1024..65536*2"]``, ``budget="5m"``.

    Raises:
        Error: It did not start, or it failed.
    """
    place = os.fspath(output) if output is not None else tempfile.mkdtemp(prefix="gyan-tune-", dir=os.getcwd())
    printed = ask(["tune", "--format", "json", f"--output={place}", *_command.options(options), "--", *program])
    return Tuning(["report", place], printed, None)
