"""Runs of a program under MPICH, whose calls are known."""

import os
import subprocess
import time
from pathlib import Path

import gyan
import pytest

RANKS, STEPS = 3, 100


def test_counts_are_those_of_the_program(real: gyan.Run) -> None:
    receives = {row["rank"]: row["count"] for row in real.rows("calls") if row["function"] == "MPI_Irecv"}
    assert receives == dict.fromkeys(range(RANKS), 2 * STEPS)
    assert [row["end"] for row in real.rows("ranks")] == ["finalize"] * RANKS


def test_the_timeline_has_a_row_for_each_call(real: gyan.Run) -> None:
    counts: dict[tuple[int, str], int] = {}
    for row in real.rows("timeline"):
        key = row["rank"], row["function"]
        counts[key] = counts.get(key, 0) + 1
        assert 0 <= row["begun_ns"] <= row["ended_ns"]
        assert row["thread"] == 0
    calls = {(row["rank"], row["function"]): row["count"] for row in real.rows("calls")}
    for key, count in calls.items():
        if key[1] in ("MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce"):
            assert counts[key] == count, key


def test_sends_arrive_where_the_program_sends_them(real: gyan.Run) -> None:
    sends = [row for row in real.rows("timeline") if row["function"] == "MPI_Isend" and row["peer"] is not None]
    assert {row["communicator"] for row in sends} == {"MPI_COMM_WORLD"}
    assert all(abs(row["peer"] - row["rank"]) in (1, RANKS - 1) for row in sends)
    sent = sum(row["bytes"] for row in sends)
    assert sent == sum(row["bytes"] for row in real.rows("calls") if row["function"] == "MPI_Isend")


def test_runs_differ_in_their_first_column(halo: Path, tmp_path: Path) -> None:
    made = gyan.run(["mpirun.mpich", "-n", "2", halo, "40", "20"], output=tmp_path / "runs", repeat=3, label="size=40")
    assert isinstance(made, gyan.Runs)
    assert len(made) == 3
    rows = list(made.rows("calls"))
    assert [row["run"] for row in rows] == sorted(row["run"] for row in rows)
    for run in made:
        own = [{"run": run.path, **row} for row in run.rows("calls")]
        assert own == [row for row in rows if row["run"] == run.path]
    assert len(list(made.rows("summary_efficiencies"))) == 3
    assert list(gyan.runs(made.paths).rows("ranks")) == list(gyan.runs(tmp_path / "runs").rows("ranks"))


def test_a_program_that_fails_is_an_error_and_leaves_its_profile(tmp_path: Path, halo: Path) -> None:
    output = tmp_path / "failed"
    with pytest.raises(gyan.Error, match="ended with code 3"):
        gyan.run(["sh", "-c", f"mpirun.mpich -n 2 {halo} 40 10 >/dev/null; exit 3"], output=output)
    assert len(list(gyan.load(output).rows("ranks"))) == 2
    run = gyan.run(["sh", "-c", f"mpirun.mpich -n 2 {halo} 40 10 >/dev/null; exit 3"], output=tmp_path / "other", check=False)
    assert len(list(run.rows("ranks"))) == 2


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gyan.Error, match=r"^gyan: .*"):
        gyan.run(["/none/mpirun"])
    assert os.listdir(tmp_path) == []


def test_comparisons(halo: Path, real: gyan.Run, tmp_path: Path) -> None:
    more = gyan.run(["mpirun.mpich", "-n", "3", halo, "60", "200"], output=tmp_path / "more")
    difference = gyan.diff(real, more, all=True)
    assert difference.document["schema"].startswith("gyan.diff/")
    assert difference.answer in str(difference)
    verdict = gyan.check(more, against=real)
    assert not verdict.passed
    assert not verdict
    assert any(row["rule"] for row in verdict.rows)
    assert gyan.check(real, against=real)
    less = gyan.run(["mpirun.mpich", "-n", "2", halo, "60", "100"], output=tmp_path / "less")
    single = gyan.run(["mpirun.mpich", "-n", "1", halo, "60", "100"], output=tmp_path / "single")
    scaling = gyan.scale([single, less, real])
    assert [size["size"] for size in scaling.document["sizes"]] == [1, 2, 3]
    with pytest.raises(gyan.Error, match=r"^gyan: "):
        gyan.diff(real, tmp_path / "none")


def test_a_live_run_is_as_far_as_it_is(halo: Path, tmp_path: Path) -> None:
    output = tmp_path / "live"
    process = subprocess.Popen(
        [gyan.command(), "run", "--no-report", "-o", output, "--", "mpirun.mpich", "-n", "2", halo, "400", "1000000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(600):
            try:
                rows = list(gyan.load(output).rows("ranks"))
            except gyan.Error:
                rows = []
            if len(rows) == 2:
                break
            time.sleep(0.1)
        assert [row["end"] for row in rows] == ["running", "running"]
    finally:
        os.killpg(process.pid, 9)
        process.wait()
    killed = list(gyan.load(output).rows("ranks"))
    assert len(killed) == 2
