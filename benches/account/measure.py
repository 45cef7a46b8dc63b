"""What gyan says it costs beside what it does, by the way that calls take, as Markdown: scripts/bench account."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bed import ROOT, run  # noqa: E402

# Program, loop, threads, and for how many of the calls asked for.
LOOPS = [
    ("account", "rank", 1, 20),
    ("account", "rank", 4, 4),
    ("account", "receive", 1, 20),
    ("account", "receive", 4, 4),
    ("account", "persistent", 1, 2),
    ("account", "persistent", 4, 0.5),
    ("account", "parent", 1, 4),
    ("account", "cycle", 1, 0.2),
    ("account", "bcast", 1, 10),
    ("account", "allreduce", 1, 2),
    ("account", "message", 1, 2),
    ("account", "message", 4, 0.25),
    ("account", "poll", 1, 10),
    ("account_f", "rank", 1, 20),
    ("account_f", "wtime", 1, 4),
    ("account_f", "bcast", 1, 10),
]


def profile(directory):
    """What the rank's profile says of the cost while the program ran, in seconds, and its calls."""
    profile = json.loads((directory / "rank-000000.json").read_text())
    overhead = profile["overhead"]
    seconds = overhead["sampling_s"] + overhead["wrappers_s"] + overhead["events_s"]
    return seconds, sum(call["count"] for call in profile["calls"])


def measured(mpi, library, directory, program, calls, rounds):
    """Alternating runs: seconds of the loop without gyan and with it, what gyan says, and calls."""
    bare, under, said, number = [], [], [], 0
    for round in range(rounds):
        output = directory / f"{round}-{program[1]}-{program[2]}-{program[0]}"
        command = ["env", f"GYAN_OUTPUT={output}", f"./{program[0]}", program[1], str(calls), str(program[2])]
        bare.append(float(run(mpi, command, directory)))
        under.append(float(run(mpi, ["env", f"LD_PRELOAD={library}", *command], directory)))
        seconds, number = profile(output)
        said.append(seconds)
    return bare, under, said, number


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, type=Path, help="libgyan.so")
    parser.add_argument("--mpis", nargs="+", default=["openmpi4", "mpich4"])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    library = given.library.resolve()
    load = os.getloadavg()[0]
    print("| MPI | program | loop | threads | without gyan | gyan costs, a call | gyan says | says / costs |")
    print("| :-- | :-- | :-- | --: | --: | --: | --: | --: |")
    for mpi in given.mpis:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            programs = ROOT / "tests/programs"
            run(mpi, ["mpicc", "-O1", "-w", "-pthread", "-o", "account", str(programs / "account.c")], directory)
            run(mpi, ["mpifort", "-O1", "-w", "-o", "account_f", str(programs / "account.f90")], directory)
            for *program, factor in LOOPS:
                calls = int(given.calls * factor)
                try:
                    found = measured(mpi, library, directory, program, calls, given.rounds)
                except (subprocess.SubprocessError, OSError, ValueError) as error:
                    print(f"| {mpi} | {' | '.join(map(str, program))} | | | | {type(error).__name__} |", flush=True)
                    continue
                bare, under, said, number = found
                costs = [(one - other) / number * 1e9 for one, other in zip(under, bare)]
                says = [seconds / number * 1e9 for seconds in said]
                ratios = [say / cost if cost > 0 else float("inf") for say, cost in zip(says, costs)]
                cost, spread = statistics.median(costs), f"{min(costs):.1f} to {max(costs):.1f}"
                ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
                without = f"{statistics.median(bare) / number * 1e9:.1f} ns"
                told = f"{statistics.median(says):.1f} ns"
                print(
                    f"| {mpi} | {' | '.join(map(str, program))} | {without} | {cost:.1f} ns ({spread}) "
                    f"| {told} | {ratio} |",
                    flush=True,
                )
    print(f"\n(load {load:.1f} when it began, {os.getloadavg()[0]:.1f} at the end)")


main()
