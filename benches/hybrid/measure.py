"""What gyan adds to a parallel region of OpenMP: alternating runs of one program on one rank without gyan, with gyan that asks
the runtime nothing, and with gyan, by the program's own clock. Prints a Markdown table."""

import argparse
import os
import statistics
import subprocess
import tempfile

Settings = dict[str, str]


def run(program: str, rounds: int, work: float, threads: int, settings: Settings) -> float:
    """Nanoseconds for each region in one run of the program."""
    with tempfile.TemporaryDirectory() as where:
        always = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "active", "GYAN_OUTPUT": f"{where}/run"}
        # A process on its own is a job of one rank.
        line = [program, str(rounds), str(work)]
        ran = subprocess.run(
            line, env=os.environ | always | settings, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=300, text=True, check=True,
        )
    return float(ran.stdout)


def shown(values: list[float]) -> str:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="libgyan.so")
    parser.add_argument("--program", required=True, help="bench_regions, compiled for a runtime with OMPT")
    parser.add_argument("--work", nargs="+", type=float, default=[0, 5, 50], help="microseconds of each thread in a region")
    parser.add_argument("--regions", type=int, default=100_000, help="regions of a run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    preload = {"LD_PRELOAD": options.library}
    kinds: dict[str, Settings] = {"without": {}, "silent": preload | {"GYAN_OPENMP": "off"}, "gyan": preload}
    print("| work of each thread, us | region without gyan, ns | GYAN_OPENMP=off, ns more | gyan, ns more |")
    print("| --: | --: | --: | --: |")
    for work in options.work:
        regions = max(1000, int(options.regions / (1 + work)))
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(options.rounds):
            for kind, settings in kinds.items():
                times[kind].append(run(options.program, regions, work, options.threads, settings))
        more = ([one - other for one, other in zip(times[kind], times["without"], strict=True)] for kind in ("silent", "gyan"))
        print(f"| {work:g} | {shown(times['without'])} | {' | '.join(map(shown, more))} |", flush=True)
    print(f"\nMedians of {options.rounds} rounds, in brackets the quartiles; {options.threads} threads, {os.cpu_count()} processors.")


if __name__ == "__main__":
    main()
