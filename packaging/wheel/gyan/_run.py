"""A run as its tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _command, _notebook, _tables
from ._command import Option, Path, ask
from ._tables import Table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Tables:
    """What the command has of one run or of several, as tables.

    Each table is an attribute: a frame of pandas, Polars or PyArrow. The command makes it when it is first asked for, and it is kept.
    What a page or a summary lacks, which have no single ranks, is an `Error` that says what they have.

    With pandas, ``frame.attrs["columns"]`` has the unit of each column and how well its numbers are known. With PyArrow, the metadata of
    each field has that. Polars keeps no metadata: `tables` has it.
    """

    def __init__(self, source: Sequence[Path], frames: str | None) -> None:
        self._wanted = frames
        self._source = source
        self._tables, self._places = _tables.described(source)
        self._frames: dict[str, Any] = {}

    @property
    def library(self) -> str:
        """What frames are made with: ``pandas``, ``polars`` or ``pyarrow``."""
        return _tables.installed(self._wanted)

    @property
    def tables(self) -> dict[str, Table]:
        """What tables there are, and what their columns are: type, unit and fidelity."""
        return dict(self._tables)

    def frame(self, table: str) -> Any:
        """A table by its name, as a frame."""
        if table not in self._frames:
            self._frames[table] = _tables.frame(self._source, self._table(table), self.library)
        return self._frames[table]

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a table as dicts, one at a time. Nothing needs to be installed for it."""
        return _tables.rows(self._source, self._table(table))

    def to_pandas(self, table: str) -> pandas.DataFrame:
        """A table as a frame of pandas, whose ``attrs`` have unit and fidelity of each column."""
        _tables.installed("pandas")
        return _tables.to_pandas(self._source, self._table(table))

    def to_polars(self, table: str) -> polars.DataFrame:
        """A table as a frame of Polars."""
        _tables.installed("polars")
        return _tables.to_polars(self._source, self._table(table))

    def to_arrow(self, table: str) -> pyarrow.Table:
        """A table as one of Arrow, whose fields have unit and fidelity as their metadata."""
        _tables.installed("pyarrow")
        return _tables.to_arrow(self._source, self._table(table))

    def _table(self, name: str) -> Table:
        # The command says best what it does not have.
        return self._tables.get(name) or Table(name, "", ())

    @property
    def ranks(self) -> Any:
        """A row for each rank: how it ended, how long it took, what it used, what gyan cost."""
        return self.frame("ranks")

    @property
    def calls(self) -> Any:
        """A row for each rank and function: calls, bytes, seconds."""
        return self.frame("calls")

    @property
    def times(self) -> Any:
        """A row for each rank, function and bar of the histogram of how long calls took."""
        return self.frame("times")

    @property
    def sizes(self) -> Any:
        """A row for each rank, function and bar of the histogram of how many bytes calls moved."""
        return self.frame("sizes")

    @property
    def peers(self) -> Any:
        """A row for each rank and peer: messages and bytes to it."""
        return self.frame("peers")

    @property
    def sites(self) -> Any:
        """A row for each rank, function and place in the program."""
        return self.frame("sites")

    @property
    def openmp(self) -> Any:
        """A row for each rank and parallel region of OpenMP."""
        return self.frame("openmp")

    @property
    def waiting(self) -> Any:
        """A row for each rank and call of a collective that was timed on all ranks."""
        return self.frame("waiting")

    @property
    def message_times(self) -> Any:
        """A row for each rank and message that it timed."""
        return self.frame("message_times")

    @property
    def variables(self) -> Any:
        """A row for each rank and performance variable of the MPI library."""
        return self.frame("variables")

    @property
    def series(self) -> Any:
        """A row for each rank, sampled variable and interval."""
        return self.frame("series")

    @property
    def phases(self) -> Any:
        """A row for each rank and phase of the program."""
        return self.frame("phases")

    @property
    def phase_calls(self) -> Any:
        """A row for each rank, phase and function."""
        return self.frame("phase_calls")

    @property
    def summary(self) -> Any:
        """A row for each number over the ranks: minimum, average and maximum, and which rank was extreme."""
        return self.frame("summary")

    @property
    def findings(self) -> Any:
        """A row for each finding: what costs time, why, and what to do about it."""
        return self.frame("summary_findings")

    @property
    def efficiencies(self) -> Any:
        """A row for the run and for each phase: load balance, communication and parallel efficiency."""
        return self.frame("summary_efficiencies")

    @property
    def machine(self) -> Any:
        """A row for each fact about the hosts and what the ranks used of them."""
        return self.frame("summary_machine")


class Run(Tables):
    """What a run left. `load` makes one.

    Attributes:
        path: Where the run is.
    """

    def __init__(self, path: Path, frames: str | None = None) -> None:
        self.path = os.fspath(path)
        super().__init__([self.path], frames)

    def __repr__(self) -> str:
        return f"gyan.load({self.path!r})"

    def _repr_html_(self) -> str:
        return self.show().html

    def show(self, part: str | None = None) -> _notebook.Shown:
        """A picture for notebooks: the first screen, as a notebook also shows the run itself; or a part of the page.

        ``run.peers.matrix()`` is the same as ``run.show("peers")``, and ``run.timeline.show()`` as ``run.show("timeline")``, which does
        not read the table.

        Args:
            part: The name of a part as links of the page have it: ``run.show("waiting")``.

        Raises:
            Error: The page has no such part; the message has the names of those that it has.
        """
        return _notebook.show(self.path, part)

    def frame(self, table: str) -> Any:
        """A table by its name, as a frame. Those of ``peers`` and ``timeline`` have a picture, unless they are tables of Arrow."""
        frame = super().frame(table)
        return _notebook.with_picture(frame, table, self.path) if table in _notebook.PICTURES else frame

    def report(self, **options: Option) -> str:
        """The report of the run as text, with options of ``gyan report``: ``run.report(findings=True)``."""
        return ask(["report", *_command.options(options), self.path]).decode()

    @property
    def timeline(self) -> Any:
        """A row for each call that ``gyan run --timeline`` recorded, on one clock."""
        return self.frame("timeline")


def load(path: Path, *, frames: str | None = None) -> Run:
    """A run: a directory, a pack, a summary, a page; one that goes on or was killed is as far as its profiles are.

    Args:
        path: Where it is.
        frames: ``pandas``, ``polars`` or ``pyarrow``. Without it, the first of these that is installed.

    Raises:
        Error: There is no run, or it cannot be read.
    """
    return Run(path, frames)
