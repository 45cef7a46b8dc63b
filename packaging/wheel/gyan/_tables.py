"""A table of the command as a frame of the library that is installed."""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._command import Path, ask, lines

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

LIBRARIES = ("pandas", "polars", "pyarrow")
"""What can hold a frame; the first one that is installed does, unless another one is asked for."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: Its name.
        type: ``text``, ``integer``, ``double``, or ``number``: integers or doubles, depending on the row. A column of numbers
            is two in a frame: doubles, and under ``<name>_integer`` the integers, which a double would round above 2^53.
        null: Whether it is empty in some rows.
        unit: ``s``, ``ns``, ``bytes``, ``share``, or None for text and for a number of things.
        fidelity: How well its numbers are known: ``exact``, ``sampled``, ``estimated``, or None where that depends on the row or does
            not apply.
        about: What it is.
    """

    name: str
    type: str
    null: bool
    unit: str | None
    fidelity: str | None
    about: str

    def metadata(self) -> dict[str, str]:
        """What a frame says of the column: ``about``, and ``unit`` and ``fidelity`` where it has them."""
        known = {"unit": self.unit, "fidelity": self.fidelity, "about": self.about}
        return {key: value for key, value in known.items() if value}


@dataclass(frozen=True)
class Table:
    """What a table of a run is.

    Attributes:
        name: Its name.
        row: What there is a row for.
        columns: Its columns, in their order.
    """

    name: str
    row: str
    columns: tuple[Column, ...]


def described(source: Sequence[Path]) -> tuple[dict[str, Table], list[str]]:
    """The tables that the command has of a source, and where its runs are."""
    found = json.loads(ask(["export", "--schema", *source]))
    tables = {}
    for table in found["tables"]:
        columns = tuple(Column(**column) for column in table["columns"])
        tables[table["name"]] = Table(table["name"], table["row"], columns)
    return tables, found["runs"]


def installed(wanted: str | None = None) -> str:
    """The library that frames are made with.

    Raises:
        ImportError: It is not installed.
        ValueError: It is not one of `LIBRARIES`.
    """
    if wanted is not None and wanted not in LIBRARIES:
        raise ValueError(f"frames={wanted!r}: gyan makes frames of {', '.join(LIBRARIES)}")
    for library in LIBRARIES if wanted is None else [wanted]:
        if importlib.util.find_spec(library) is not None:
            return library
    missing = wanted or "pandas, polars or pyarrow"
    raise ImportError(f"gyan: {missing} is not installed; pip install {wanted or 'pandas pyarrow'}, or take rows() for plain dicts")


def frame(source: Sequence[Path], table: Table, library: str) -> Any:
    """The table as a frame of a library."""
    if library == "pandas":
        return to_pandas(source, table)
    return to_polars(source, table) if library == "polars" else to_arrow(source, table)


def export(source: Sequence[Path], table: Table, how: str) -> bytes:
    """The table as the command writes it."""
    return ask(_asked(source, table, how))


def _asked(source: Sequence[Path], table: Table, how: str) -> list[Path]:
    return ["export", "--format", how, "--table", table.name, *source]


def rows(source: Sequence[Path], table: Table) -> Iterator[dict[str, Any]]:
    """Each row as a dict, as it comes."""
    return map(json.loads, lines(_asked(source, table, "jsonl")))


def to_polars(source: Sequence[Path], table: Table) -> polars.DataFrame:
    """The table as a frame of Polars, which keeps no metadata."""
    import polars

    return polars.read_parquet(io.BytesIO(export(source, table, "parquet")))


def to_arrow(source: Sequence[Path], table: Table) -> pyarrow.Table:
    """The table as one of Arrow, each of whose fields has the metadata of its column."""
    import pyarrow
    import pyarrow.parquet

    read = pyarrow.parquet.read_table(pyarrow.BufferReader(export(source, table, "parquet")))
    known: Mapping[str, dict[bytes | str, bytes | str]] = {name: dict(metadata.items()) for name, metadata in _metadata(table).items()}
    fields = [field.with_metadata(known[field.name]) for field in read.schema]
    schema = pyarrow.schema(fields).with_metadata(dict((read.schema.metadata or {}).items()))
    return pyarrow.Table.from_arrays(read.columns, schema=schema)


def to_pandas(source: Sequence[Path], table: Table) -> pandas.DataFrame:
    """The table as a frame of pandas.

    With pyarrow its columns are those of Arrow, so that integers stay exact where some are null, and the frame takes no more
    memory than the numbers do. Without pyarrow they are pandas' own nullable types. ``frame.attrs`` has the metadata.
    """
    import pandas

    if importlib.util.find_spec("pyarrow") is not None:
        made = to_arrow(source, table).to_pandas(types_mapper=pandas.ArrowDtype, split_blocks=True, self_destruct=True)
    else:
        made = _of_csv(export(source, table, "csv"), table)
    made.attrs = {"table": table.name, "row": table.row, "columns": _metadata(table)}
    return made


def _metadata(table: Table) -> dict[str, dict[str, str]]:
    """What a frame says of each of its columns."""
    known = {}
    for column in table.columns:
        known[column.name] = column.metadata()
        if column.type == "number":
            known[f"{column.name}_integer"] = column.metadata()
    return known


def _of_csv(text: bytes, table: Table) -> pandas.DataFrame:
    import pandas

    types = {"text": "string", "integer": "Int64", "double": "Float64", "number": "string"}
    dtypes = {column.name: types[column.type] for column in table.columns}
    read = pandas.read_csv(io.BytesIO(text), dtype=dtypes, keep_default_na=False, na_values=[""])
    made: dict[str, pandas.Series[Any]] = {}
    for column in table.columns:
        values = read[column.name]
        if column.type == "number":
            made[column.name] = values.astype("Float64")
            made[f"{column.name}_integer"] = values.where(values.str.fullmatch(r"-?\d{1,18}")).astype("Int64")
        else:
            made[column.name] = values
    return pandas.DataFrame(made)


def of_csv(text: bytes, library: str) -> Any:
    """A frame of a table whose types are not known beforehand."""
    if library == "pandas":
        import pandas

        return pandas.read_csv(io.BytesIO(text))
    if library == "polars":
        import polars

        return polars.read_csv(io.BytesIO(text), infer_schema_length=None)
    import pyarrow.csv

    return pyarrow.csv.read_csv(io.BytesIO(text))
