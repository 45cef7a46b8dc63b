"""The queries of docs/archive-queries.md by DuckDB and by PySpark, and the report of gyan, on the same made-up months.

scripts/test python runs it in an environment that has both engines."""

from __future__ import annotations

import datetime
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

WHY = "scripts/test python has an environment with DuckDB, PySpark and NumPy"
duckdb = pytest.importorskip("duckdb", reason=WHY)
spark_sql = pytest.importorskip("pyspark.sql", reason=WHY)
pytest.importorskip("numpy", reason=WHY)

TABLES = ["jobs", "functions", "findings", "hosts"]
QUERIES = re.findall(r"^## (.*?)\n.*?^```sql\n(.*?)^```", (ROOT / "docs/archive-queries.md").read_text(), re.S | re.M)
YEAR = ROOT / "benches/archive/year.py"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """About 4,000 jobs from January to March; what is true of them is beside it."""
    place = tmp_path_factory.mktemp("site")
    command: list[str | Path] = [
        sys.executable,
        YEAR,
        "generate",
        place / "archive",
        place / "truth.json",
        "--jobs",
        "16000",
        "--days",
        "90",
    ]
    subprocess.run(command, check=True)
    return place / "archive"


@pytest.fixture(scope="module")
def duck(archive: Path) -> Any:
    connection = duckdb.connect()
    for table in TABLES:
        source = f"read_parquet('{archive}/{table}/*/*.parquet', hive_partitioning = true)"
        connection.execute(f"create view {table} as select * from {source}")
    return connection


@pytest.fixture(scope="module")
def spark(archive: Path) -> Any:
    builder = spark_sql.SparkSession.builder.master("local[2]")
    for name, value in {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    for table in TABLES:
        session.read.parquet(str(archive / table)).createOrReplaceTempView(table)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def report(archive: Path) -> Any:
    command: list[str | Path] = [os.environ["GYAN_COMMAND"], "archive", "report", "--since", "2025-01-01", "--format", "json", archive]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def same(one: Any, other: Any) -> bool:
    """Sums may be in another order, and engines have types of their own for the same number."""
    if isinstance(one, (str, datetime.date)) or one is None or other is None:
        return bool(one == other)
    return math.isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-9)


def test_there_are_twelve_queries() -> None:
    assert len(QUERIES) == 12


@pytest.mark.parametrize("query", [query for _, query in QUERIES], ids=[title for title, _ in QUERIES])
def test_engines_answer_alike(query: str, duck: Any, spark: Any) -> None:
    answer = duck.execute(query).fetchall()
    other = [tuple(row) for row in spark.sql(query).collect()]
    assert answer, "the query finds nothing"
    assert len(answer) == len(other)
    for row, row_of_spark in zip(answer, other):
        assert all(map(same, row, row_of_spark)), (row, row_of_spark)


def test_the_report_has_the_sums_of_both_engines(report: Any, duck: Any, spark: Any) -> None:
    queries = dict(QUERIES)
    for engine in ("DuckDB", "PySpark"):

        def answers(title: str, engine: str = engine) -> list[Any]:
            query = queries[title]
            return list(duck.execute(query).fetchall() if engine == "DuckDB" else spark.sql(query).collect())

        (totals,) = answers("Where did the core hours go?")
        names = ["jobs", "core_h", "own_core_h", "mpi_core_h", "waiting_core_h", "lost_core_h"]
        assert all(same(report["totals"][name], value) for name, value in zip(names, totals))
        programs = answers("Which programs have the most to gain?")
        said = [(of["program"], of["jobs"], of["lost_core_h"]) for of in report["programs"]]
        for (program, jobs, _, _, lost), (name, number, hours) in zip(programs, said):
            assert (program, jobs) == (name, number)
            assert same(lost, hours)


def test_the_report_has_the_sums_of_the_truth(archive: Path, report: Any) -> None:
    truth = json.loads((archive.parent / "truth.json").read_text())
    assert all(same(report["totals"][name], value) for name, value in truth["totals"].items())
    planted = {host["host"] for host in truth["slow_hosts"]}
    assert {host["host"] for host in report["hosts"]} <= planted
    assert {of["program"] for of in report["worse"]} <= {of["program"] for of in truth["worse"]}
