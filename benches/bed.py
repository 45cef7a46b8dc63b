"""Programs in the environment of an MPI of the test bed, for the benchmarks in Python."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AS_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def run(mpi, command, directory, **variables):
    """The command in the environment of an MPI; returns what it prints."""
    bed = [ROOT / "scripts/testbed", "run", mpi, "--"]
    environment = dict(os.environ, **AS_ROOT, **variables)
    outcome = subprocess.run(
        [*bed, *command], cwd=directory, env=environment, check=True, timeout=120, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )
    return outcome.stdout
