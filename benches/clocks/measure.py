"""Times of loops of short calls beside the clock of the program, as Markdown: scripts/bench clocks."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bed import ROOT, run  # noqa: E402

LOOPS = (
    "bcast reduce allreduce barrier gather allgather alltoall alltoallv scan sendrecv iprobe test testany comm_rank"
).split()
def rows(mpi, loop, library, directory, calls):
    """One row for each rank: function, own clock without gyan and with it, the call in the profile."""
    clocks = []
    # The launcher starts the program by env, so that only the program is preloaded.
    for preloaded in [[], [f"LD_PRELOAD={library}"]]:
        program = ["env", *preloaded, "./short_loop", loop, str(calls)]
        run(mpi, ["mpirun", "-n", "2", *program], directory, GYAN_OUTPUT=f"{directory}/{loop}")
        clocks.append([(directory / f"truth.{rank}").read_text().split() for rank in range(2)])
    for rank, (bare, (function, _, clock)) in enumerate(zip(*clocks)):
        profile = json.loads((directory / loop / f"rank-{rank:06}.json").read_text())
        call = next(call for call in profile["calls"] if call["name"] == function)
        yield function, rank, float(bare[2]), float(clock), call


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, type=Path, help="libgyan.so")
    parser.add_argument("--mpis", nargs="+", default=["openmpi4", "mpich4", "openmpi5", "mpich5"])
    parser.add_argument("--calls", type=int, default=600_000)
    given = parser.parse_args()
    library = given.library.resolve()
    load = os.getloadavg()[0]
    print("| MPI | function | rank | clock without gyan | with gyan | gyan says | off from the first | calls timed |")
    print("| :-- | :-- | --: | --: | --: | --: | --: | --: |")
    for mpi in given.mpis:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            source = ROOT / "tests/programs/short_loop.c"
            run(mpi, ["mpicc", "-O1", "-o", "short_loop", str(source)], directory)
            for loop in LOOPS:
                try:
                    measured = list(rows(mpi, loop, library, directory, given.calls))
                except (subprocess.SubprocessError, OSError) as error:
                    print(f"| {mpi} | {loop} | | | | {type(error).__name__} | | |", flush=True)
                    continue
                for function, rank, bare, clock, call in measured:
                    time, error = call["time_s"], call.get("time_error_s")
                    known = f"at least {time:.3f} s" if error is None else f"{time:.3f} s ± {error / time:.1%}"
                    off = f"{time / bare - 1:+.1%}"
                    timed = f"{call['timed'] / call['count']:.2%}"
                    clocks = f"{bare:.3f} s | {clock:.3f} s"
                    print(f"| {mpi} | `{function}` | {rank} | {clocks} | {known} | {off} | {timed} |", flush=True)
    print(f"\n(load {load:.1f} when it began, {os.getloadavg()[0]:.1f} at the end)")


main()
