"""Several runs: their tables in one, and what the command concludes from them."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Union

from . import _command, _notebook, _tables
from ._command import INCOMPLETE, Option, Path, ask
from ._run import Run, Tables

Paths = Union[Path, Run, Sequence[Union[Path, Run]]]
"""A run, several, or a directory of runs."""


class Runs(Tables):
    """The tables of several runs, each in one: its first column, ``run``, says where the run of a row is. `runs` makes one.

    A sequence of the runs themselves, too: ``len(runs)``, ``runs[0]``, ``for run in runs``.

    Attributes:
        paths: Where each run is.
    """

    def __init__(self, paths: Paths, frames: str | None = None) -> None:
        super().__init__(["--runs", *_paths(paths)], frames)
        self.paths = self._places

    def __repr__(self) -> str:
        return f"<gyan.runs of {len(self.paths)} runs>"

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, at: int) -> Run:
        return Run(self.paths[at], self._wanted)

    def __iter__(self) -> Iterator[Run]:
        return (Run(path, self._wanted) for path in self.paths)


def runs(paths: Paths, *, frames: str | None = None) -> Runs:
    """Several runs.

    Args:
        paths: Runs, or directories of runs, as ``gyan run --repeat`` leaves them.
        frames: As of `load`.

    Raises:
        Error: There is no run.
    """
    return Runs(paths, frames)


class Answer:
    """What the command concludes. ``print`` shows it as the command does, a notebook as its page.

    Attributes:
        document: All that it says, by its schema (``gyan.diff/1`` and so on).
    """

    def __init__(self, arguments: Sequence[Path], document: bytes, frames: str | None) -> None:
        self._arguments = arguments
        self._wanted = frames
        self.document: dict[str, Any] = json.loads(document)

    def __str__(self) -> str:
        return ask(self._arguments, codes=(0, 1)).decode()

    def __repr__(self) -> str:
        return f"<gyan.{type(self).__name__}: print shows it>"

    def _repr_html_(self) -> str:
        return _notebook.element(self._arguments)

    def _frame(self) -> Any:
        subcommand, *others = self._arguments
        library = _tables.installed(self._wanted)
        return _tables.of_csv(ask([subcommand, "--format", "csv", *others]), library)


class Difference(Answer):
    """How runs differ. `diff` makes one."""

    @property
    def answer(self) -> str:
        """In a sentence, whether they do."""
        return str(self.document["answer"])

    @cached_property
    def frame(self) -> Any:
        """A row for each number that differs."""
        return self._frame()


class Scaling(Answer):
    """How a program grows. `scale` makes one."""

    @cached_property
    def frame(self) -> Any:
        """A row for each number, size and law."""
        return self._frame()


class Verdict(Answer):
    """Whether runs are as good as a baseline. `check` makes one, and it is true if they are."""

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return bool(self.document["passed"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Each number and finding that was judged, by rule."""
        return list(self.document["rows"])

    def __bool__(self) -> bool:
        return self.passed

    def _repr_html_(self) -> str:
        # It has no page.
        return f'<pre style="font-family: monospace">{html.escape(str(self))}</pre>'


class Tuning(Answer):
    """Which settings make a program faster. `tune` makes one."""

    @property
    def trials(self) -> list[dict[str, Any]]:
        """Each setting that was tried."""
        return list(self.document["trials"])

    @property
    def winner(self) -> dict[str, Any] | None:
        """The one of `trials` that is worth keeping; None when nothing beats the default."""
        at = self.document["winner"]
        return None if at is None else self.trials[at]


def _paths(paths: Paths) -> list[Path]:
    if isinstance(paths, Run):
        return [paths.path]
    if isinstance(paths, (str, os.PathLike)):
        return [paths]
    return [path.path if isinstance(path, Run) else path for path in paths]


def _ask(arguments: Sequence[Path]) -> bytes:
    subcommand, *others = arguments
    return ask([subcommand, "--format", "json", *others], codes=(0, INCOMPLETE))


def diff(a: Paths, b: Paths, *, frames: str | None = None, **options: Option) -> Difference:
    """How runs differ: what changed from ``a`` to ``b``, and what of that is noise.

    Args:
        a: The runs before.
        b: The runs after. Four on each side tell a change of the run time from noise.
        frames: As of `load`.
        options: Options of ``gyan diff``: ``all=True``.

    Raises:
        Error: They cannot be read or compared.
    """
    arguments = ["diff", *_command.options(options), *_paths(a), "--", *_paths(b)]
    return Difference(arguments, _ask(arguments), frames)


def scale(paths: Paths, *, frames: str | None = None, **options: Option) -> Scaling:
    """How a program grows with the number of ranks or with another size.

    Args:
        paths: Runs of at least three sizes.
        frames: As of `load`.
        options: Options of ``gyan scale``: ``by="size"``, ``weak=True``, ``target=4096``.

    Raises:
        Error: They cannot be read or compared.
    """
    arguments = ["scale", *_command.options(options), *_paths(paths)]
    return Scaling(arguments, _ask(arguments), frames)


def check(paths: Paths, against: Paths, **options: Option) -> Verdict:
    """Whether runs are as good as a baseline.

    Args:
        paths: The new run, or several of the same thing.
        against: The run to compare with, or several.
        options: Options of ``gyan check``: ``rules="rules.toml"``.

    Raises:
        Error: They cannot be read or judged.
    """
    arguments = ["check", *_command.options(options), *_paths(paths), "--against", *_paths(against)]
    return Verdict(arguments, _ask(arguments), None)
