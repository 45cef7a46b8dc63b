"""A long run in which calls, requests, communicators and threads come and go: does anything of gyan grow? scripts/bench soak."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bed import AS_ROOT, ROOT, run  # noqa: E402

# The first rounds fill tables and caches.
SETTLED = 0.2
# Kilobytes by which memory may differ between two moments in which nothing grows.
NOISE = 256


def keepers():
    """The processes of keepers."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text().strip() == "gyan-keeper":
                found.add(process)
        except OSError:
            pass
    return found


def of_keeper(process):
    """Kilobytes of memory, and open files."""
    status = (process / "status").read_text().splitlines()
    resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    return resident, len(list((process / "fd").iterdir()))


def of_files(directory):
    """Files in a directory, and their kilobytes."""
    files = [file for file in directory.rglob("*") if file.is_file()]
    return len(files), sum(file.stat().st_size for file in files) // 1024


def soak(mpi, directory, seconds, rounds, library):
    """A line of numbers for each round: those of the program, and what there is of gyan; all with names."""
    preloaded = [f"LD_PRELOAD={library}", f"GYAN_OUTPUT={directory}/profiles"] if library else []
    command = ["mpirun", "-n", "2", "env", *preloaded, "./soak", str(seconds), str(rounds)]
    bed = [ROOT / "scripts/testbed", "run", mpi, "--"]
    before, keeper, lines = keepers(), None, []
    names = "round calls requests communicators threads rank_kb rank_files".split()
    with subprocess.Popen(
        [*bed, *command], cwd=directory, env=dict(os.environ, **AS_ROOT), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:
        for line in process.stdout:
            numbers = dict(zip(names, map(int, line.split())))
            if library:
                keeper = keeper or next(iter(keepers() - before), None)
                if keeper:
                    numbers["keeper_kb"], numbers["keeper_files"] = of_keeper(keeper)
                numbers["files"], numbers["files_kb"] = of_files(directory / "profiles")
            lines.append(numbers)
    if process.returncode or len(lines) != rounds:
        raise SystemExit(f"soak: the program ended with {process.returncode} after {len(lines)} rounds")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=600)
    parser.add_argument("--mpi", default="openmpi4")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--library", required=True, type=Path, help="libgyan.so")
    given = parser.parse_args()
    grown = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        source = str(ROOT / "tests/programs/soak.c")
        run(given.mpi, ["mpicc", "-O1", "-w", "-pthread", "-o", "soak", source], directory)
        # What the library itself keeps; without pauses.
        bare = soak(given.mpi, directory, 0, given.rounds, None)
        under = soak(given.mpi, directory, given.seconds, given.rounds, given.library.resolve())
    at = int(SETTLED * given.rounds)
    print(f"{given.mpi}, {given.seconds:.0f} s; from round {at + 1} to round {given.rounds}:")
    for name in "calls requests communicators threads".split():
        print(f"  {name}: {under[at][name]} to {under[-1][name]}")
    for name in "rank_kb rank_files keeper_kb keeper_files files files_kb".split():
        first, last = under[at].get(name), under[-1].get(name)
        if first is None:
            continue
        without = bare[-1][name] - bare[at][name] if name in bare[0] else 0
        more = last - first - without
        print(f"  {name}: {first} to {last}" + (f" (without gyan {without:+})" if name in bare[0] else ""))
        if more > (NOISE if name.endswith("_kb") else 0):
            grown.append(name)
    print("grew: " + ", ".join(grown) if grown else "nothing grew")
    sys.exit(bool(grown))


main()
