"""Runs that the tests look at. scripts/test python says with what they are run."""

import os
import shutil
import subprocess
from pathlib import Path

import gyan
import pytest

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests/fixtures"


@pytest.fixture(scope="session")
def kept() -> gyan.Run:
    """A run whose profiles are kept: four ranks, phases and a series."""
    return gyan.load(FIXTURES / "gyan.rank-1-running")


def built(name: str, directory: Path) -> Path:
    """A program of the tests for MPICH."""
    compiler = shutil.which("mpicc.mpich")
    if compiler is None:
        if os.environ.get("CI"):
            pytest.fail("no mpicc.mpich; scripts/packages mpich libmpich-dev")
        pytest.skip("no mpicc.mpich; scripts/packages mpich libmpich-dev")
    program = directory / name
    source = ROOT / f"tests/programs/{name}.c"
    include = f"-I{ROOT / 'wrappers/include'}"
    subprocess.run([compiler, "-w", include, "-o", program, source, "-lm"], check=True)
    return program


@pytest.fixture(scope="session")
def halo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that exchanges borders: 2 MPI_Irecv and 2 MPI_Isend a step, on each rank."""
    return built("halo_exchange", tmp_path_factory.mktemp("halo"))


@pytest.fixture(scope="session")
def real(halo: Path, tmp_path_factory: pytest.TempPathFactory) -> gyan.Run:
    """A run of it on three ranks, with a timeline."""
    output = tmp_path_factory.mktemp("real") / "profile"
    return gyan.run(["mpirun.mpich", "-n", "3", halo, "60", "100"], output=output, timeline=True)
