"""What the reduction inside MPI takes: alternating runs of one program on more and more ranks, which end
without gyan, with one file a rank, and with the reduction. Prints a Markdown table."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

MODES = {
    "without gyan": {"GYAN": "off"},
    "files": {"GYAN_REDUCE": "off"},
    "reduced": {"GYAN_REDUCE": "mpi"},
}


def run(options, ranks, mode, where):
    """The longest MPI_Finalize of a rank, in milliseconds, and the summary if there is one."""
    output = os.path.join(where, "profile")
    shutil.rmtree(output, ignore_errors=True)
    environment = dict(os.environ, LD_PRELOAD=options.library, GYAN_OUTPUT=output, GYAN_NOTICES="warnings")
    environment.update(MODES[mode], GYAN_ENABLE="all")
    environment.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    line = options.launch.split() + ["-n", str(ranks), options.program]
    ran = subprocess.run(line, env=environment, stdout=subprocess.PIPE, timeout=300, text=True, cwd=where)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(line)} ended with code {ran.returncode}")
    # Launchers may end two lines after one another.
    longest = max(float(word) for word in ran.stdout.split())
    try:
        with open(os.path.join(output, "summary.json"), encoding="utf-8") as file:
            return longest, json.load(file)
    except FileNotFoundError:
        return longest, None


def shown(values):
    """Median and quartiles."""
    if len(values) < 4:
        return f"{statistics.median(values):.1f}"
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="libgyan.so")
    parser.add_argument("--program", required=True, help="tests/programs/bench_finalize.c, compiled")
    parser.add_argument("--launch", required=True, help="the launcher with its options but for -n")
    parser.add_argument("--ranks", default="2,4,8,16,32,64")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print("| ranks | " + " | ".join(f"{mode}, ms" for mode in MODES) + " | reduced over without gyan, ms |")
    print("|---:|" + "---:|" * (len(MODES) + 1))
    rows = 0
    with tempfile.TemporaryDirectory() as where:
        for ranks in map(int, options.ranks.split(",")):
            times = {mode: [] for mode in MODES}
            for _ in range(options.rounds):
                for mode in MODES:
                    longest, summary = run(options, ranks, mode, where)
                    times[mode].append(longest)
                    if mode == "reduced":
                        if not summary or summary["ranks"]["reduced"] != ranks:
                            sys.exit(f"{ranks} ranks were not reduced")
                        rows = len(summary["pvars"]) + len(summary.get("samples", []))
            added = [with_it - without for with_it, without in zip(times["reduced"], times["without gyan"])]
            cells = [shown(times[mode]) for mode in MODES] + [shown(added)]
            print(f"| {ranks} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{rows} rows of variables; medians of {options.rounds} rounds, in brackets the quartiles")


if __name__ == "__main__":
    main()
