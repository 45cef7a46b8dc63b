#!/usr/bin/env python3
"""Fills a spool with the records of a year of a made-up site, and says what is true of it. Run it as root: a record belongs to
its user.

    benches/archive/spool.py SPOOL TRUTH [--jobs N] [--days N] [--processes N]

The site is that of year.py. A job spends a part of its time in MPI, of which its program loses a part in one way (`WAYS`), and all
numbers of a record follow from that; nothing of gyan is used to make it. Its JSON is written once for each way and size, with places for the numbers that differ from job to job."""

import argparse
import datetime
import json
import multiprocessing
import os
import pathlib
import re
import resource
import time
import zlib

import numpy as np
import year

RANKS_OF_HOST = year.CORES
# How programs lose time, as gyan calls it, in the order of year.FINDINGS.
WAYS = ["waiting", "made-again", "small-messages", "polling", "independent-io"]
# Of the run of each program.
LOST = (0.08, 0.3)
# At most, and not lost.
REST_IN_MPI = 0.1
# More of its run no host spends outside MPI.
OWN_AT_MOST = 0.995
# Of the time in a collective whose ranks come at different times.
WAITING_OF_TIME = 0.9
# A step of a program that sends small messages, and of one that does not, in seconds; between collectives and the like.
STEP_OF_SMALL_S, STEP_S, SLOW_STEP_S = 4e-5, 0.02, 0.1
# A record has five digits.
PRECISION = 1e-4


class SpoolSite(year.Site):
    """The site, with losses that are findings of their own."""

    def __init__(self, seed):
        super().__init__(seed)
        self.rest = REST_IN_MPI * self.in_mpi / self.in_mpi.max()
        self.lost = self.dice.uniform(*LOST, year.PROGRAMS)
        self.in_mpi = self.lost + self.rest
        # Half of what is not lost is waiting for others, too.
        self.waiting = 0.5 * self.rest + np.where(self.finding == WAYS.index("waiting"), self.lost, 0)


class Place:
    """A number of a job, in the template of its record: a multiple of a column."""

    def __init__(self, column, factor=1.0, whole=False):
        self.column, self.factor, self.whole = column, factor, whole

    def times(self, factor):
        return Place(self.column, self.factor * factor, self.whole)


def over_ranks(mean, ranks, spread=0.0, at=(None, None)):
    """A number over ranks, around this mean; `at`: the least and the largest, where they are columns of their own."""
    least, most = (end or mean.times(1 + by) for end, by in zip(at, (-spread, spread)))
    shown = Place(mean.column, mean.factor)
    first, last = (0, 0) if spread == 0 else (ranks - 1, 0)
    deviation = shown.times(spread / 2) if spread else 0.0
    return {
        "ranks": ranks,
        "min": least,
        "min_rank": first,
        "avg": shown,
        "max": most,
        "max_rank": last,
        "sum": mean.times(ranks),
        "stddev": deviation,
    }


def always(number, ranks):
    """A number that is the same on each rank of each job."""
    return {
        "ranks": ranks,
        "min": number,
        "min_rank": 0,
        "avg": float(number),
        "max": number,
        "max_rank": 0,
        "sum": number * ranks,
        "stddev": 0.0,
    }


def functions_of(way):
    """What a program calls: name, column of the number of calls of a rank, its multiple, bytes of a call, and the share of what is
    lost and of the rest of the time in MPI."""
    messages = (1.0, 0.0) if way == "small-messages" else (0.0, 0.75)
    size = 64 if way == "small-messages" else 12_288
    reduction = 0.95 - messages[1]
    rows = [
        ("MPI_Isend", "steps", 6, size, 0.3 * messages[0], 0.3 * messages[1]),
        ("MPI_Irecv", "steps", 6, None, 0.1 * messages[0], 0.1 * messages[1]),
        ("MPI_Waitall", "steps", 1, None, 0.6 * messages[0], 0.6 * messages[1]),
        ("MPI_Allreduce", "slow_steps", 1, 4096, float(way == "waiting") / WAITING_OF_TIME, reduction),
        ("MPI_Bcast", "one", 10, 4096, 0.0, 0.03),
        ("MPI_Barrier", "one", 5, None, 0.0, 0.02),
    ]
    if way == "made-again":
        rows += [("MPI_Comm_dup", "slow_steps", 1, None, 0.9, 0.0), ("MPI_Comm_free", "slow_steps", 1, None, 0.1, 0.0)]
    if way == "polling":
        rows += [("MPI_Test", "steps", 2500, None, 1.0, 0.0)]
    if way == "independent-io":
        rows += [("MPI_File_write_at", "slow_steps", 1, 65_536, 1.0, 0.0), ("MPI_File_open", "one", 1, None, 0.0, 0.0)]
    return rows


def columns_of(way, rows, elapsed, own, lost, rest):
    """The numbers of jobs that a record is made of, by name: one for each job. `own`: the time outside MPI of each host, as a share
    of the run."""
    step_s = STEP_OF_SMALL_S if way == "small-messages" else STEP_S
    ends = {"": own.mean(1), " least": own.min(1), " most": own.max(1)}
    waited = 0.5 * rest + (lost if way == "waiting" else 0)
    columns = {
        "one": np.ones(len(elapsed)),
        "steps": np.ceil(elapsed / step_s),
        "slow_steps": np.ceil(elapsed / SLOW_STEP_S),
        "elapsed": elapsed,
        "waited in MPI_Allreduce": elapsed * (lost if way == "waiting" else 0),
        **{f"useful{end}": elapsed * share for end, share in ends.items()},
        **{f"ideal{end}": elapsed * np.minimum(share + waited, 1) for end, share in ends.items()},
    }
    for end, of_own in {"": "", " least": " most", " most": " least"}.items():
        columns[f"share{end}"] = 1 - ends[of_own]
        columns[f"in_mpi{end}"] = elapsed * (1 - ends[of_own])
    for name, calls, multiple, _, of_lost, of_rest in rows:
        columns[f"{name} s"] = (of_lost * lost + of_rest * rest) * elapsed
        columns[f"{name} each"] = columns[f"{name} s"] / (multiple * columns[calls])
    return columns


def calls_of(rows, ranks, typical):
    """The functions of a record. `typical`: seconds of a call."""
    calls = [{"name": name, "count": always(1, ranks), "timed": 0} for name in ("MPI_Init", "MPI_Finalize")]
    for name, column, multiple, size, *_ in rows:
        number, seconds = Place(column, multiple, True), Place(f"{name} s")
        middle = int(np.ceil(np.log2(max(typical[name], 1e-9) * 1e9)))
        bars = [number.times(ranks * part) for part in (0.25, 0.5, 0.25)]
        call = {
            "name": name,
            "count": over_ranks(number, ranks),
            "timed": number.times(ranks),
            "time_s": over_ranks(seconds, ranks, 0.1),
            "time_error_s": seconds.times(0.002 * ranks),
            "time_max_s": over_ranks(Place(f"{name} each", 1.5), ranks, 0.1),
            "time_histogram": [0] * middle + bars,
        }
        if size:
            call["bytes"] = over_ranks(number.times(size), ranks)
            call["size_histogram"] = [0] * size.bit_length() + [number.times(ranks)]
            call["size_histogram_bytes"] = [0] * size.bit_length() + [number.times(ranks * size)]
        calls.append(call)
    return calls


def rest_of_record(way, rows, ranks, typical):
    """The fields of a summary that have no names of hosts."""
    elapsed = Place("elapsed")
    sent = next(row for row in rows if row[0] == "MPI_Isend")
    messages = Place(sent[1], sent[2] * ranks, True)
    parts = [(1, 0.4), (8, 0.4), (64, 0.2)]
    distances = [{"distance": far, "number": messages.times(part), "bytes": messages.times(part * sent[3])} for far, part in parts]
    reductions, reduced = Place("slow_steps", ranks, True), Place("MPI_Allreduce s", ranks)
    waited = Place("waited in MPI_Allreduce", ranks)
    return {
        "ranks": {"expected": ranks, "reduced": ranks, "missing": [], "ended_badly": [], "left_out": []},
        "reduced_in_mpi": {"time_s": 0.012, "wait_s": 0.008, "profiles": []},
        "elapsed_s": over_ranks(elapsed, ranks),
        "run_s": over_ranks(elapsed, ranks),
        "useful_s": over_ranks(Place("useful"), ranks, 0.01, (Place("useful least"), Place("useful most"))),
        "ideal_s": over_ranks(Place("ideal"), ranks, 0.01, (Place("ideal least"), Place("ideal most"))),
        "in_mpi": {
            "time_s": over_ranks(Place("in_mpi"), ranks, 0.01, (Place("in_mpi least"), Place("in_mpi most"))),
            "time_error_s": Place("in_mpi", 0.001 * ranks),
            "share": over_ranks(Place("share"), ranks, 0.01, (Place("share least"), Place("share most"))),
        },
        "peers": [
            {
                "kind": "messages",
                "number": messages,
                "bytes": messages.times(sent[3]),
                "ranks": [],
                "heaviest": [],
                "by_distance": distances,
            }
        ],
        "pvars": [],
        "calls": calls_of(rows, ranks, typical),
        "resources": {
            "processors": always(1, ranks),
            "user_s": over_ranks(elapsed.times(0.98), ranks, 0.01),
            "system_s": over_ranks(elapsed.times(0.01), ranks, 0.1),
            "processor_wait_s": over_ranks(elapsed.times(0.0005), ranks, 0.1),
            "processors_used": always(0.99, ranks),
            "voluntary_switches": over_ranks(Place("slow_steps", 1.0, True), ranks),
            "involuntary_switches": over_ranks(Place("slow_steps", 2.0, True), ranks),
            "minor_faults": always(52_314, ranks),
            "major_faults": always(3, ranks),
            "peak_memory_bytes": always(734_003_200, ranks),
        },
        "waiting": [
            {
                "function": "MPI_Allreduce",
                "calls": reductions,
                "calls_not_compared": 0,
                "time_s": reduced,
                "waiting_s": waited,
                "waiting_error_s": waited.times(0.001),
                "last": [{"rank": rank, "calls_share": 0.1, "waiting_share": 0.1} for rank in range(min(ranks, 4))],
                "communicators": [],
            }
        ],
        # No sender and no receiver was late.
        "message_waiting": {
            "messages": messages,
            "paired": messages,
            "compared": messages.times(0.01),
            "late_senders_s": 0.0,
            "late_senders_error_s": 0.0,
            "late_receivers_s": 0.0,
            "late_receivers_error_s": 0.0,
            "wrong_order_s": 0.0,
            "pairs": [],
            "addresses": [],
            "load_map": [],
        },
        "coverage": {"exported": 0, "sampled": 0, "skipped": [], "advice": []},
        "clock": {"source": "tsc", "read_s": 1.1e-8, "slow": False},
        "overhead": {
            "mpit_init_s": always(0.0, ranks),
            "init_s": always(0.0021, ranks),
            "sampling_s": over_ranks(elapsed.times(0.0001), ranks, 0.1),
            "wrappers_s": over_ranks(elapsed.times(0.0004), ranks, 0.1),
            "finalize_s": always(0.0009, ranks),
            "share": always(0.0005, ranks),
            "running_share": always(0.0005, ranks),
            "budget": 0.005,
            "over_budget": [],
        },
        "warnings": [],
    }


class RecordTemplate:
    """The records of programs in jobs of one size: JSON with a place for each number that differs."""

    def __init__(self, way, size, columns):
        self.rows = functions_of(way)
        typical = {name: float(np.median(columns[f"{name} each"])) for name, *_ in self.rows}
        text = json.dumps(rest_of_record(way, self.rows, size * RANKS_OF_HOST, typical), separators=(",", ":"), default=self.mark)
        self.names = list(columns)
        marks = re.findall(r'"@([^@]*)@([^@]*)@(.)"', text)
        self.columns = [self.names.index(name) for name, _, _ in marks]
        self.factors = np.array([float(factor) for _, factor, _ in marks])
        # After the brace of what goes before.
        self.text = re.sub(r'"@[^@]*@[^@]*@(.)"', lambda mark: "%d" if mark[1] == "d" else "%.4e", text)[1:]

    @staticmethod
    def mark(place):
        return f"@{place.column}@{place.factor!r}@{'d' if place.whole else 'e'}"

    def filled(self, columns):
        """The text of each job."""
        numbers = np.stack([columns[name] for name in self.names], axis=1)[:, self.columns] * self.factors
        return [self.text % tuple(row) for row in numbers.tolist()]


# The names of all hosts, as JSON, all of the same length.
NAMES = ",".join(f'"{year.name_of_host(host)}"' for host in range(year.HOSTS))
NAME_BYTES = len(f'"{year.name_of_host(0)}",')
HOST = '{"host":"n%04d","ranks":"%d-%d","in_mpi":{"ranks":%d,"min":%.4e,"avg":%.4e,"max":%.4e,"stddev":%.4e}}'
HEAD = (
    '{"schema":"gyan.record/1","cluster":"made-up","job":"%d","step":"0","user":%d,"program":"%s","left_out":[%s],'
    '"summary":{"schema":"gyan.summary/1","tool":{"name":"gyan","version":"0.1.0"},'
    '"job":{"id":"%d.0","command":[],"labels":[],"started":"%sZ","elapsed_s":%.4e,"known_until_s":null},'
    '"mpi":{"abi":"openmpi","standard":"3.1","library":"Open MPI v%s","library_path":"","thread_level":"MPI_THREAD_SINGLE"},'
    '"hosts":[%s],%s"machines":[{"hosts":[%s],"machine":{"system":"Linux 6.1.0-18-amd64","processor":"AMD EPYC 7543 32-Core Processor",'
    '"processors":"0-63","cores":64,"threads_per_core":1,"packages":2,"numa_nodes":8,"memory_bytes":540000000000,'
    '"networks":[{"device":"mlx5_0","kind":"InfiniBand","rate":"100 Gb/sec (4X EDR)","state":"ACTIVE"}]}}],'
    '"placements":[{"hosts":[%s],"ranks":64,"processors":64,"cores":64,"processor_limit":null,"is_oversubscribed":false}],'
)


def by_host(first, own):
    """The row of each host of a job, of the farthest from the mean where there are many."""
    if len(own) == 1:
        return ""
    at = np.arange(len(own))
    if len(own) > year.HOSTS_OF_RECORD:
        at = np.sort(np.argsort(-abs(own - own.mean()))[: year.HOSTS_OF_RECORD])
    in_mpi = 1 - own[at]
    rank, full = at * RANKS_OF_HOST, np.full(len(at), RANKS_OF_HOST)
    columns = [first + at, rank, rank + RANKS_OF_HOST - 1, full, 0.99 * in_mpi, in_mpi, 1.01 * in_mpi, 0.005 * in_mpi]
    numbers = np.stack(columns, axis=1).ravel().tolist()
    return f'"by_host":[{",".join([HOST] * len(at)) % tuple(numbers)}],'


def write_day(spool, seed, number, count):
    """Writes the records of a day; returns the sums by program."""
    site = SpoolSite(seed)
    site.dice = dice = np.random.default_rng([seed, number])
    sums = year.no_sums()
    program, user, size, elapsed = site.of_day(number, count)
    day = year.FIRST + datetime.timedelta(number)
    # A job is filed under the day on which it ended, and its time is rounded.
    ended = np.datetime64(day, "ms") + dice.integers(60_000, 86_340_000, count)
    lost = np.clip(site.lost[program] * np.exp(dice.normal(0, 0.1, count)), 0.05, 0.6)
    own_share = 1 - lost - site.rest[program]
    mpi = year.MPI_TO if day >= year.MPI_CHANGE else year.MPI_FROM
    for jobs, hosts, own in site.hosts_of(number, program, size):
        elapsed[jobs] *= 1 + site.slow[number, hosts].max(1) * own_share[jobs]
        own = np.minimum(own / own.mean(1, keepdims=True) * own_share[jobs, None], OWN_AT_MOST)
        ways = site.finding[program[jobs]]
        for way in np.unique(ways):
            of = np.flatnonzero(ways == way)
            of_day = (program, user, elapsed, ended, lost)
            write_jobs(spool, site, sums, mpi, number, WAYS[way], jobs[of], hosts[of, 0], own[of], of_day)
    return sums


TEMPLATES = {}


def write_jobs(spool, site, sums, mpi, day, way, jobs, first, own, of_day):
    """Writes the records of jobs of a day and size that lose time in the same way."""
    program, user, elapsed, ended, lost = (of[jobs] for of in of_day)
    size = own.shape[1]
    in_mpi = 1 - own.mean(1)
    # No more can be lost than is spent.
    lost = np.minimum(lost, in_mpi)
    rest = in_mpi - lost
    columns = columns_of(way, functions_of(way), elapsed, own, lost, rest)
    template = TEMPLATES.get((way, size)) or TEMPLATES.setdefault((way, size), RecordTemplate(way, size, columns))
    # The first objects of each kind are not made again.
    lost = lost * (1 - 1 / columns["slow_steps"]) if way == "made-again" else lost
    waiting = 0.5 * rest + (lost if way == "waiting" else 0)
    core_h = size * year.CORES * elapsed / 3600
    shares = {"core_h": 1, "own_core_h": 1 - in_mpi, "mpi_core_h": in_mpi, "waiting_core_h": waiting, "lost_core_h": lost}
    for name, numbers in {"jobs": np.ones(len(jobs)), **{name: core_h * share for name, share in shares.items()}}.items():
        np.add.at(sums[name], program, numbers)
    started = np.datetime_as_string(ended - (elapsed * 1000).astype("timedelta64[ms]")).tolist()
    left_out = '"private"' if size <= year.HOSTS_OF_RECORD else '"private","hosts"'
    texts = template.filled(columns)
    for at, job in enumerate((day * 100_000 + jobs).tolist()):
        uid, begin = 1000 + int(user[at]), int(first[at]) * NAME_BYTES
        names = NAMES[begin : begin + size * NAME_BYTES - 1]
        who = (job, uid, site.names[program[at]], left_out, job, started[at], elapsed[at], mpi)
        head = HEAD % (*who, names, by_host(int(first[at]), own[at]), names, names)
        content = b"gyan.record/1\n" + zlib.compress((head + texts[at] + "}").encode(), 1)
        assert len(content) <= 10_000, (job, size, len(content))
        file = os.open(f"{spool}/{uid}-{job}-0-{job:016x}.gyan-record", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
        os.write(file, content)
        os.fchown(file, uid, uid)
        os.close(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spool", type=pathlib.Path)
    parser.add_argument("truth", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=year.DAYS, help="the first days of the year, with their part of the jobs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    given = parser.parse_args()
    given.spool.mkdir(parents=True)
    counts = year.jobs_of_days(given.jobs)[: given.days].tolist()
    begun = time.monotonic()
    with multiprocessing.Pool(given.processes) as pool:
        sums = pool.starmap(write_day, [(given.spool, given.seed, day, count) for day, count in enumerate(counts)])
        pool.close()
        pool.join()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = used.ru_utime + used.ru_stime
    print(f"{sum(counts)} records in {time.monotonic() - begun:.1f} s, {sum(counts) / used_s:.0f} a second of a processor")
    total = year.no_sums()
    for of_day in sums:
        for name in total:
            total[name] += of_day[name]
    year.write_truth(given.truth, SpoolSite(given.seed), total, WAYS, PRECISION)


if __name__ == "__main__":
    main()
