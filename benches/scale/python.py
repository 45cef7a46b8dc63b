#!/usr/bin/env python3
"""How long does `import gyan` take to make a frame of many ranks and of many runs, and with how much memory?

    scripts/bench python [--ranks N] [--runs N] [--frames pandas|polars|pyarrow] [--rounds N] [--directory DIR]

The profiles are those of benches/scale/measure.py. Each frame is made by a process of its own, which imports the library, asks the
command and counts the rows: its seconds, and the most memory that it and the command had. The table is Markdown."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import measure

ROOT = pathlib.Path(__file__).parents[2]
RANKS_OF_A_RUN = 4
ONE = """
import json, resource, sys, time
begun = time.monotonic()
import gyan
what, place, table, frames = sys.argv[1:]
made = (gyan.load if what == "load" else gyan.runs)(place, frames=frames).frame(table)
took = time.monotonic() - begun
own, others = (resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps([len(made), took, own, others]))
"""


def generated(place, make):
    """A directory that is made once."""
    if not place.exists():
        temporary = place.with_name(place.name + ".part")
        make(temporary)
        temporary.rename(place)
    return place


def many_ranks(ranks):
    return lambda place: measure.generate(place, ranks, seed=1)


def many_runs(runs):
    def make(place):
        for run in range(runs):
            directory = place / f"run-{run:05}"
            measure.generate(directory, RANKS_OF_A_RUN, seed=run)
            for file in directory.iterdir():
                profile = json.loads(file.read_text())
                profile["job"]["id"] = f"job {run}"
                file.write_text(json.dumps(profile, separators=(",", ":")) + "\n")

    return make


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gyan", required=True, help="the command")
    parser.add_argument("--ranks", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--frames", default="pandas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=pathlib.Path, help="where the profiles are kept for another time")
    options = parser.parse_args()
    environment = dict(os.environ, GYAN_COMMAND=options.gyan, PYTHONPATH=str(ROOT / "packaging/wheel"))
    with tempfile.TemporaryDirectory() as temporary:
        place = options.directory or pathlib.Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        ranks = generated(place / f"ranks-{options.ranks}", many_ranks(options.ranks))
        runs = generated(place / f"runs-{options.runs}", many_runs(options.runs))
        print("| frame | rows | seconds | MiB of Python | MiB of the command |\n| :-- | --: | --: | --: | --: |")
        for name, what, place, table in [
            (f"calls of {options.ranks} ranks", "load", ranks, "calls"),
            (f"all of {options.ranks} ranks", "load", ranks, "ranks"),
            (f"calls of {options.runs} runs", "runs", runs, "calls"),
            (f"findings of {options.runs} runs", "runs", runs, "summary_findings"),
        ]:
            command = [sys.executable, "-c", ONE, what, str(place), table, options.frames]
            rounds = []
            for _ in range(options.rounds):
                outcome = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
                rounds.append(json.loads(outcome.stdout))
            rows, seconds, own, others = (statistics.median(column) for column in zip(*rounds))
            print(f"| {name} | {rows} | {seconds:.2f} | {own:.0f} | {others:.0f} |", flush=True)


if __name__ == "__main__":
    main()
