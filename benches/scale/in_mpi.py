"""How long the reduction inside MPI takes: alternating runs of one program on more and more ranks, which end
without gyan, with one file per rank, and with the reduction. Prints a Markdown table."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

REDUCED = "reduced"


def modes_of(options):
    """The settings of a run, by name."""
    reduced = {"GYAN_REDUCE": "mpi", "LD_PRELOAD": options.library}
    modes = {
        "without gyan": {"GYAN": "off", "LD_PRELOAD": options.library},
        "files": {"GYAN_REDUCE": "off", "LD_PRELOAD": options.library},
        REDUCED: reduced,
    }
    for other in options.other:
        name, library = other.split("=", 1)
        modes[f"{REDUCED}, {name}"] = dict(reduced, LD_PRELOAD=library)
    return modes


def run(options, ranks, settings, where):
    """The longest MPI_Finalize of a rank, in milliseconds, and the summary if there is one."""
    output = os.path.join(where, "profile")
    shutil.rmtree(output, ignore_errors=True)
    settings = dict(settings, GYAN_OUTPUT=output, GYAN_NOTICES="warnings", GYAN_ENABLE="all")
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    # Not every launcher passes its environment to other hosts.
    line = options.launch.split() + ["-n", str(ranks), "env"]
    line += [f"{name}={value}" for name, value in settings.items()] + [options.program]
    ran = subprocess.run(line, env=environment, stdout=subprocess.PIPE, timeout=300, text=True, cwd=where)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(line)} ended with code {ran.returncode}")
    # Launchers may write two line ends in a row.
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
    parser.add_argument("--other", action="append", default=[], metavar="NAME=LIBRARY",
                        help="another libgyan.so that reduces, for comparison")
    parser.add_argument("--program", required=True, help="tests/programs/bench_finalize.c, compiled")
    parser.add_argument("--launch", required=True, help="the launcher with its options but for -n")
    parser.add_argument("--where", help="a directory that all ranks share")
    parser.add_argument("--ranks", default="2,4,8,16,32,64")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    modes = modes_of(options)
    columns = [*modes, "reduced over without gyan"]
    columns += [f"{mode}: once all were there" for mode in modes if REDUCED in mode]
    print("| ranks | " + " | ".join(f"{column}, ms" for column in columns) + " |")
    print("|---:|" + "---:|" * len(columns))
    rows = 0
    with tempfile.TemporaryDirectory(dir=options.where) as where:
        for ranks in map(int, options.ranks.split(",")):
            times, trees = {mode: [] for mode in modes}, {mode: [] for mode in modes if REDUCED in mode}
            for _ in range(options.rounds):
                for mode, settings in modes.items():
                    longest, summary = run(options, ranks, settings, where)
                    times[mode].append(longest)
                    if mode.startswith(REDUCED):
                        if not summary or summary["ranks"]["reduced"] != ranks:
                            sys.exit(f"{ranks} ranks were not reduced")
                        tree = summary["reduced_in_mpi"]
                        trees[mode].append(1e3 * (tree["time_s"] - tree["wait_s"]))
                        rows = len(summary["pvars"]) + len(summary.get("samples", []))
            added = [with_it - without for with_it, without in zip(times[REDUCED], times["without gyan"])]
            cells = [shown(times[mode]) for mode in modes] + [shown(added)]
            cells += [shown(tree) for tree in trees.values()]
            print(f"| {ranks} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{rows} rows of variables; medians of {options.rounds} rounds, in brackets the quartiles")


if __name__ == "__main__":
    main()
