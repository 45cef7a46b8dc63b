"""A run as its tables, against the profiles as plain JSON."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gyan
import pytest
from conftest import FIXTURES

LIBRARIES = ["pandas", "polars", "pyarrow"]


def profiles(directory: Path) -> list[dict[str, Any]]:
    """What the ranks wrote, without gyan."""
    return [json.loads(path.read_text()) for path in sorted(directory.glob("rank-*.json"))]


def dicts(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame of any library, null as None."""
    if hasattr(frame, "to_pylist"):
        return list(frame.to_pylist())
    if hasattr(frame, "to_dicts"):
        return list(frame.to_dicts())
    names = list(frame.columns)
    columns = [[None if missing else value for value, missing in zip(frame[name], frame[name].isna())] for name in names]
    return [dict(zip(names, row)) for row in zip(*columns)]


def test_calls_are_those_of_the_profiles_without_any_library(kept: gyan.Run) -> None:
    expected = [
        (profile["rank"], call["name"], call["count"], call.get("bytes"), call.get("time_s"))
        for profile in profiles(Path(kept.path))
        for call in profile["calls"]
    ]
    rows = list(kept.rows("calls"))
    assert [(row["rank"], row["function"], row["count"], row["bytes"], row["time_s"]) for row in rows] == expected


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_have_the_rows_of_the_table(kept: gyan.Run, library: str) -> None:
    pytest.importorskip(library)
    run = gyan.load(kept.path, frames=library)
    assert run.library == library
    for name in kept.tables:
        if name == "timeline":
            continue
        found = dicts(run.frame(name))
        rows = list(kept.rows(name))
        assert len(found) == len(rows), name
        numbers = {column.name for column in kept.tables[name].columns if column.type == "number"}
        for frame, row in zip(found, rows):
            for column, value in row.items():
                # A column of both has doubles, and the integers beside it.
                exact = frame[f"{column}_integer"] if column in numbers and isinstance(value, int) else None
                assert (frame[column] if exact is None else exact) == value, (name, column)


def test_a_table_is_made_once(kept: gyan.Run) -> None:
    pytest.importorskip("pandas")
    assert kept.calls is kept.calls
    assert kept.findings["id"].tolist() == ["late-senders"]


def test_pandas_says_unit_and_fidelity(kept: gyan.Run) -> None:
    pytest.importorskip("pandas")
    attributes = kept.to_pandas("calls").attrs
    assert attributes["table"] == "calls"
    assert attributes["columns"]["time_s"]["unit"] == "s"
    assert attributes["columns"]["time_s"]["fidelity"] == "estimated"
    assert attributes["columns"]["bytes"]["unit"] == "bytes"
    assert attributes["columns"]["count"]["fidelity"] == "exact"
    assert "unit" not in attributes["columns"]["count"]


def test_arrow_says_unit_and_fidelity_in_its_fields(kept: gyan.Run) -> None:
    pytest.importorskip("pyarrow")
    schema = kept.to_arrow("variables").schema
    for name in ("delta", "delta_integer"):
        assert (schema.field(name).metadata or {})[b"fidelity"] == b"exact"
    assert schema.metadata is not None
    assert schema.metadata[b"gyan.table"] == b"variables"


def test_what_is_known_of_columns_is_in_parquet(kept: gyan.Run) -> None:
    pytest.importorskip("pyarrow")
    for name, table in kept.tables.items():
        if name == "timeline":
            continue
        metadata = kept.to_arrow(name).schema.metadata or {}
        units = {column.name: column.unit for column in table.columns if column.unit}
        fidelity = {column.name: column.fidelity for column in table.columns if column.fidelity}
        assert json.loads(metadata[b"gyan.units"]) == units
        assert json.loads(metadata[b"gyan.fidelity"]) == fidelity


def test_pandas_without_pyarrow_has_the_same_table(kept: gyan.Run) -> None:
    pandas = pytest.importorskip("pandas")
    if importlib.util.find_spec("pyarrow"):
        pytest.skip("pyarrow is installed: tested in the environment without it")
    frame = kept.to_pandas("variables")
    assert str(frame["rank"].dtype) == "Int64"
    assert str(frame["delta"].dtype) == "Float64"
    rows = list(kept.rows("variables"))
    for column in ("rank", "variable", "object", "element", "samples", "delta", "sampled_mean"):
        found = [None if pandas.isna(value) else value for value in frame[column]]
        assert found == [row[column] for row in rows], column


def test_without_a_library_an_error_says_what_to_install(kept: gyan.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in LIBRARIES:
        monkeypatch.setitem(sys.modules, library, None)
    run = gyan.load(kept.path)
    with pytest.raises(ImportError, match="pip install pandas pyarrow, or take rows"):
        _ = run.calls
    with pytest.raises(ImportError, match="pip install polars"):
        run.to_polars("calls")
    with pytest.raises(ValueError, match="pandas, polars, pyarrow"):
        _ = gyan.load(kept.path, frames="excel").calls


def test_errors_are_the_line_of_the_command(kept: gyan.Run, tmp_path: Path) -> None:
    with pytest.raises(gyan.Error, match=r"^gyan: .*/none: no such file or directory; ") as caught:
        gyan.load(tmp_path / "none")
    assert "\n" not in str(caught.value)
    with pytest.raises(gyan.Error, match=r"^gyan: --table cells: is not a table; choose one of ranks, calls"):
        kept.rows("cells").__next__()
    with pytest.raises(gyan.Error, match=r"^gyan: .*: holds no timelines .*; record one: "):
        list(kept.rows("timeline"))


def test_a_missing_command_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GYAN_COMMAND", "/none/gyan")
    with pytest.raises(FileNotFoundError, match="/none/gyan"):
        gyan.load(FIXTURES)


def test_a_damaged_profile_is_a_warning(kept: gyan.Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(kept.path, copy)
    (copy / "rank-000002.json").write_text("{")
    with pytest.warns(gyan.IncompleteWarning, match=r"rank-000002\.json"):
        rows = list(gyan.load(copy).rows("ranks"))
    assert [row["rank"] for row in rows] == [0, 1, 3]


def test_packs_have_the_same_tables_and_pages_and_summaries_those_of_the_run(kept: gyan.Run, tmp_path: Path) -> None:
    pack, page, summary = tmp_path / "run.gyan.zst", tmp_path / "run.html", tmp_path / "summary.json"
    command = gyan.command()
    subprocess.run([command, "pack", kept.path, "-o", pack], check=True)
    subprocess.run([command, "report", "--format", "html", "-o", page, kept.path], check=True)
    summary.write_bytes(subprocess.run([command, "report", "--format", "json", kept.path], check=True, capture_output=True).stdout)
    assert list(gyan.load(pack).rows("calls")) == list(kept.rows("calls"))
    for place in (page, summary):
        run = gyan.load(place)
        assert "calls" not in run.tables
        with pytest.warns(gyan.IncompleteWarning, match="no rows of single ranks"):
            assert list(run.rows("summary_findings")) == list(kept.rows("summary_findings"))
        with pytest.raises(gyan.Error, match="is not in a summary"):
            next(run.rows("calls"))


def test_the_schema_is_that_of_the_rows(kept: gyan.Run) -> None:
    kinds: dict[str, Any] = {"text": str, "integer": int, "double": (int, float), "number": (int, float)}
    for name, table in kept.tables.items():
        if name == "timeline":
            continue
        assert table.row
        for row in kept.rows(name):
            assert list(row) == [column.name for column in table.columns]
            for column in table.columns:
                value = row[column.name]
                assert column.null if value is None else isinstance(value, kinds[column.type]), (name, column)


def test_the_report_is_that_of_the_command(kept: gyan.Run) -> None:
    printed = subprocess.run([gyan.command(), "report", "--findings", kept.path], capture_output=True, check=True)
    assert kept.report(findings=True) == printed.stdout.decode()
