#!/usr/bin/env python3
"""How long does `gyan timeline` take for many ranks, and with how much memory?

    scripts/bench export [--ranks N] [--events N] [--directory DIR] [--format pftrace|json|otf2]

Ranks in a ring receive from one neighbour and send to the other one in each round, wait for both, and meet in MPI_Allreduce. Every
message has an arrow in the trace. Prints a line: ranks, events, bytes read and written, seconds, and MiB of memory at most."""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import tempfile
import time

import numpy

FUNCTIONS = ["MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce"]
NO_TAG, NO_PEER = 1 << 31, 0xFF_FFFF
COMPLETES = 0xFFD
# Ticks of 1 ns.
ROUND, CALL = 10_000, 500
# The events of a round: kind, begins after, takes, request, tag, peer (0: the rank before, 1: the next one), bytes.
EVENTS = [
    (1, 0, CALL, 1, 7, 0, 0),
    (2, 600, CALL, 2, 7, 1, 8192),
    (3, 1_200, 4_000, 0, NO_TAG, None, 0),
    (COMPLETES, 5_200, 0, 1, NO_TAG, None, 0),
    (COMPLETES, 5_200, 0, 2, NO_TAG, None, 0),
    (4, 6_000, 3_000, 0, NO_TAG, None, 8),
]


def events(rank, ranks, number):
    """The events of a rank as results-schema/src/timeline.rs packs them."""
    rounds = -(-number // len(EVENTS))
    start = numpy.arange(rounds, dtype=numpy.uint64) * numpy.uint64(ROUND) + numpy.uint64(1_000_000)
    words = numpy.zeros((rounds, len(EVENTS), 4), dtype="<u8")
    for at, (kind, after, took, request, tag, peer, moved) in enumerate(EVENTS):
        peers = {None: NO_PEER, 0: (rank - 1) % ranks, 1: (rank + 1) % ranks}
        communicator = 0 if kind == COMPLETES else 1
        words[:, at, 0] = start + numpy.uint64(after) | numpy.uint64(communicator << 48)
        words[:, at, 1] = took << 5 | request << 32
        words[:, at, 2] = tag | peers[peer] << 32
        words[:, at, 3] = kind | moved << 28
    return words.reshape(-1, 4)[:number]


def header(rank, ranks, number):
    clock = {"host": "clock", "origin_ticks": 0, "origin_ns": 0, "ns_per_tick": 1.0, "begun_ticks": 0}
    clock["now_ticks"] = 1_000_000 + number * ROUND
    world = {"name": "MPI_COMM_WORLD", "number": "0000000000000001", "size": ranks, "rank": rank}
    return {
        "schema": "gyan.timeline/1",
        "job": "made up",
        "rank": rank,
        "size": ranks,
        "host": f"node{rank // 64 + 1}",
        "pid": 1,
        "ended": "finalize",
        "clock": clock,
        "recorded": number,
        "functions": FUNCTIONS,
        "communicators": [world],
        "sites": [],
        "load_map": [],
        "phases": [],
        "messages": [],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gyan", required=True)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--format", choices=["pftrace", "json", "otf2"], default="pftrace")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        run = pathlib.Path(folder) / "run"
        run.mkdir()
        read = 0
        for rank in range(options.ranks):
            text = json.dumps(header(rank, options.ranks, options.events)).encode()
            content = len(text).to_bytes(8, "little") + text + events(rank, options.ranks, options.events).tobytes()
            (run / f"timeline-{rank:06}.bin").write_bytes(content)
            read += len(content)
        trace = pathlib.Path(folder) / f"trace.{options.format}"
        begun = time.monotonic()
        subprocess.run([options.gyan, "timeline", run, "-o", trace, "--limit", "none"], check=True)
        seconds = time.monotonic() - begun
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        # An archive is several files.
        written = sum(os.path.getsize(path) for path in pathlib.Path(folder).rglob("trace*") if path.is_file())
        written += sum(os.path.getsize(path) for path in pathlib.Path(folder).glob("trace/*"))
        print(
            f"{options.ranks} ranks, {options.events} events each: {read / 1e9:.2f} GB read, "
            f"{written / 1e9:.2f} GB written, {seconds:.1f} s, {memory:.0f} MiB"
        )


if __name__ == "__main__":
    main()
