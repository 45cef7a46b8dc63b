"""What a site that has all jobs recorded adds to MPI_Init and MPI_Finalize: alternating runs of one program without gyan
and with the site's settings, by the program's own clock. Prints a Markdown table."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--oversubscribe"],
    "mpich": ["mpirun.mpich"],
}


Milliseconds = tuple[float, float, float]
"""In MPI_Init and in MPI_Finalize, of the rank with the most in both; those of a processor in both, of a median rank."""


def run(launcher: list[str], ranks: int, program: list[str], settings: dict[str, str]) -> Milliseconds:
    """One run of the program."""
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "^ofi"}
    line = [*launcher, "-n", str(ranks), "env", *(f"{name}={value}" for name, value in settings.items())]
    line += program
    ran = subprocess.run(line, env=os.environ | root, stdout=subprocess.PIPE, timeout=300, text=True, check=True)
    words = [float(word) for word in ran.stdout.split()]
    if len(words) != 3 * ranks:
        sys.exit(f"{' '.join(line)} printed:\n{ran.stdout}")
    init, finalize = max(zip(words[::3], words[1::3], strict=True), key=sum)
    return init, finalize, statistics.median(words[2::3])


def shown(values: list[float]) -> str:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"


def measure(mpi: str, ranks: int, options: argparse.Namespace, where: pathlib.Path) -> str:
    """A row of the table."""
    spool = where / "spool"
    spool.mkdir(exist_ok=True)
    file = where / "site.toml"
    file.write_text(f'spool = "{spool}"\ncluster = "bench"\nat_least = "{options.at_least}"\n')
    site = {"LD_PRELOAD": options.library, "GYAN_SITE": str(file)}
    program = [f"{options.programs}/bench_finalize.{mpi}", "init", str(options.work)]
    times: dict[str, list[Milliseconds]] = {"without": [], "site": []}
    for _ in range(options.rounds):
        times["without"].append(run(LAUNCHERS[mpi], ranks, program, {}))
        times["site"].append(run(LAUNCHERS[mpi], ranks, program, site))
    pairs = list(zip(times["site"], times["without"], strict=True))
    init, finalize, processor = ([one[part] - other[part] for one, other in pairs] for part in range(3))
    both = [one + other for one, other in zip(init, finalize, strict=True)]
    columns = [[one[0] + one[1] for one in times["without"]], init, finalize, both, processor]
    return " | ".join([mpi, str(ranks), *map(shown, columns)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="libgyan.so")
    parser.add_argument("--programs", required=True, help="where bench_finalize.openmpi and bench_finalize.mpich are")
    parser.add_argument("--mpis", nargs="+", default=list(LAUNCHERS), choices=list(LAUNCHERS))
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 8, 16, 64])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--at-least", default="60s", help="as in site.toml; 0s has each run leave a record")
    parser.add_argument("--work", type=float, default=100, help="milliseconds that ranks work between MPI_Init and MPI_Finalize")
    options = parser.parse_args()
    print(
        "| MPI | ranks | both without gyan, ms | MPI_Init, ms more | MPI_Finalize, ms more | both, ms more "
        "| processor time of a rank, ms more |"
    )
    print("| :-- | --: | --: | --: | --: | --: | --: |")
    with tempfile.TemporaryDirectory() as where:
        for mpi in options.mpis:
            for ranks in options.ranks:
                print(f"| {measure(mpi, ranks, options, pathlib.Path(where))} |", flush=True)
    load = " ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"\nMedians of {options.rounds} rounds, in brackets the quartiles; {os.cpu_count()} processors, load at the end {load}.")


if __name__ == "__main__":
    main()
