#!/usr/bin/env python3
"""A year of a made-up site as the tables of an archive, and what is true of it; and whether a report found that.

    benches/archive/year.py generate ARCHIVE TRUTH [--jobs N] [--seed N]
    benches/archive/year.py check TRUTH REPORT              the JSON of gyan archive report

The site has 2,000 hosts, 200 users and 60 programs. Each program has its own shares of MPI and of waiting, its finding, its sizes
and its scatter; inputs differ by user; programs and users come and go; there are fewer jobs at weekends. Three hosts become
slow. In March there is a new version of MPI, with which four programs are slower. One program becomes slower without a change."""

import argparse
import datetime
import json
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FIRST = datetime.date(2025, 1, 1)
DAYS, HOSTS, USERS, PROGRAMS = 365, 2000, 200, 60
CORES = 64
SIZES = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
# How many jobs have each size, of all programs together.
SHARES = np.array([0.4, 0.15, 0.15, 0.12, 0.08, 0.05, 0.03, 0.013, 0.005, 0.002])
# A record names no more hosts: those of which the share in MPI is farthest from the mean.
HOSTS_OF_RECORD = 64
MPI_CHANGE = datetime.date(2025, 3, 17)
MPI_FROM, MPI_TO = "4.1.5", "5.0.3"
SLOW_HOSTS = {317: (datetime.date(2025, 11, 4), 0.03), 1204: (datetime.date(2025, 6, 10), 0.05), 58: (datetime.date(2025, 2, 20), 0.012)}
# Programs by their place in the order of use.
WORSE_WITH_MPI = {3: 0.08, 7: 0.12, 11: 0.15, 16: 0.1}
WORSE_ALONE = {9: (datetime.date(2025, 8, 14), 0.1)}
FINDINGS = {
    "late-senders": "Post the sends earlier, or do other work while waiting.",
    "uneven-work": "Give each rank the same amount of work.",
    "small-messages": "Put small messages together.",
    "polling": "Wait with MPI_Wait instead of calling MPI_Test in a loop.",
    "slow-collectives": "Use a nonblocking collective and do other work meanwhile.",
}
FUNCTIONS = ["MPI_Allreduce", "MPI_Waitall", "MPI_Isend", "MPI_Irecv", "MPI_Bcast", "MPI_Barrier"]


def name_of_host(host):
    return f"n{host:04}"


class Site:
    """What does not change from job to job."""

    def __init__(self, seed):
        dice = self.dice = np.random.default_rng(seed)
        self.names = [f"app{program:02}" for program in range(PROGRAMS)]
        self.weight = np.arange(2, PROGRAMS + 2) ** -0.8
        self.in_mpi = dice.uniform(0.05, 0.5, PROGRAMS)
        self.waiting = self.in_mpi * dice.uniform(0.2, 0.8, PROGRAMS)
        self.lost = self.waiting * dice.uniform(0.3, 0.9, PROGRAMS)
        self.finding = dice.integers(0, len(FINDINGS), PROGRAMS)
        self.median_s = np.exp(dice.normal(np.log(1800), 0.8, PROGRAMS))
        self.scatter = dice.uniform(0.15, 0.5, PROGRAMS)
        self.uneven = dice.uniform(0.005, 0.03, PROGRAMS)
        # In some programs the first host has more to do.
        self.first_more = np.where(dice.random(PROGRAMS) < 0.3, dice.uniform(0.01, 0.1, PROGRAMS), 0.0)
        # Larger programs have larger jobs.
        self.size_weights = SHARES ** dice.uniform(0.7, 1.4, PROGRAMS)[:, None]
        self.size_weights /= self.size_weights.sum(1, keepdims=True)
        # The last ten programs come or go.
        self.active = np.tile([0, DAYS], (PROGRAMS, 1))
        for program in range(PROGRAMS - 10, PROGRAMS):
            self.active[program, program % 2] = dice.integers(60, 300)
        self.user_weight = dice.pareto(1.2, (PROGRAMS, USERS)) * (dice.random((PROGRAMS, USERS)) < 0.1) + 1e-9
        self.user_factor = np.exp(dice.normal(0, 0.5, (PROGRAMS, USERS)))
        self.user_days = np.stack([dice.integers(-300, 300, USERS), dice.integers(0, 600, USERS)])
        self.slow = np.zeros((DAYS, HOSTS))
        for host, (since, slow) in SLOW_HOSTS.items():
            self.slow[(since - FIRST).days :, host] = slow

    def of_day(self, number, count):
        """The jobs of a day: columns of numbers."""
        dice, day = self.dice, FIRST + datetime.timedelta(number)
        here = (self.active[:, 0] <= number) & (number < self.active[:, 1])
        weight = self.weight * here
        program = dice.choice(PROGRAMS, count, p=weight / weight.sum())
        present = (self.user_days[0] <= number) & (number < self.user_days.sum(0)) | (np.arange(USERS) < 40)
        user = np.zeros(count, int)
        size = np.zeros(count, int)
        for one in np.unique(program):
            of = program == one
            users = self.user_weight[one] * present
            user[of] = dice.choice(USERS, of.sum(), p=users / users.sum())
            size[of] = dice.choice(SIZES, of.sum(), p=self.size_weights[one])
        longer = np.ones(count)
        for one, by in WORSE_WITH_MPI.items():
            longer[program == one] += by * (day >= MPI_CHANGE)
        for one, (since, by) in WORSE_ALONE.items():
            longer[program == one] += by * (day >= since)
        scatter = np.exp(dice.normal(0, 1, count) * self.scatter[program])
        elapsed = self.median_s[program] * self.user_factor[program, user] * size**0.1 * scatter * longer
        return program, user, size, np.clip(elapsed, 5, 172_800)

    def hosts_of(self, number, program, size):
        """For each size the jobs of it, their hosts, and the own time of these as a multiple of the typical one."""
        for one in np.unique(size):
            jobs = np.flatnonzero(size == one)
            first = self.dice.integers(0, HOSTS - one + 1, len(jobs))
            hosts = first[:, None] + np.arange(one)
            own = 1 + self.dice.normal(0, 1, hosts.shape) * self.uneven[program[jobs], None]
            own[:, 0] += self.first_more[program[jobs]]
            own *= 1 + self.slow[number, hosts]
            yield jobs, hosts, own


def jobs_of_days(total):
    """How many of a year's jobs end on each day."""
    rhythm = np.array([1.0 if (FIRST + datetime.timedelta(day)).weekday() < 5 else 0.55 for day in range(DAYS)])
    return np.diff(np.floor(np.cumsum(rhythm) / rhythm.sum() * total).astype(int), prepend=0)


def no_sums():
    return {name: np.zeros(PROGRAMS) for name in ("jobs", "core_h", "own_core_h", "mpi_core_h", "waiting_core_h", "lost_core_h")}


def generate(archive, truth_file, total, seed, days):
    site = Site(seed)
    sums = no_sums()
    for number, count in enumerate(jobs_of_days(total)[:days]):
        day = FIRST + datetime.timedelta(number)
        tables = tables_of(site, number, int(count), day, sums)
        for name, table in tables.items():
            place = archive / name / f"day={day}"
            place.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, place / "part-0.parquet", compression="zstd")
    write_truth(truth_file, site, sums, list(FINDINGS), 1e-6)


def write_truth(truth_file, site, sums, findings, precision):
    """`precision`: how exact the numbers of a job are."""
    programs = {
        site.names[program]: {
            **{name: float(of[program]) for name, of in sums.items()},
            "finding": findings[site.finding[program]],
        }
        for program in range(PROGRAMS)
    }
    worse = [{"program": site.names[one], "day": str(MPI_CHANGE), "by": by, "cause": "mpi"} for one, by in WORSE_WITH_MPI.items()]
    worse += [{"program": site.names[one], "day": str(day), "by": by, "cause": None} for one, (day, by) in WORSE_ALONE.items()]
    hosts = [{"host": name_of_host(host), "since": str(since), "by": by} for host, (since, by) in SLOW_HOSTS.items()]
    totals = {name: float(of.sum()) for name, of in sums.items()}
    truth = {"precision": precision, "totals": totals, "programs": programs, "worse": worse, "slow_hosts": hosts}
    truth_file.write_text(json.dumps(truth, indent=1) + "\n")


def tables_of(site, number, count, day, sums):
    """The tables of a day; adds to `sums` by program."""
    program, user, size, elapsed = site.of_day(number, count)
    dice = site.dice
    # A job is as slow as its slowest host.
    listed_job, listed_host, listed_relative, listed_share = [], [], [], []
    own_share = 1 - np.clip(site.in_mpi[program] * np.exp(dice.normal(0, 0.1, count)), 0.01, 0.9)
    for jobs, hosts, own in site.hosts_of(number, program, size):
        elapsed[jobs] *= 1 + site.slow[number, hosts].max(1) * own_share[jobs]
        if hosts.shape[1] > HOSTS_OF_RECORD:
            typical = own.mean(1, keepdims=True)
            keep = np.sort(np.argsort(-abs(own - typical), axis=1)[:, :HOSTS_OF_RECORD], axis=1)
            hosts, own = np.take_along_axis(hosts, keep, 1), np.take_along_axis(own, keep, 1)
        else:
            typical = np.median(own, axis=1, keepdims=True)
        relative = own / typical if hosts.shape[1] > 2 else np.full(own.shape, np.nan)
        listed_job.append(np.repeat(jobs, hosts.shape[1]))
        listed_host.append(hosts.ravel())
        listed_relative.append(relative.ravel())
        listed_share.append(np.clip(own * own_share[jobs, None], 0, 1).ravel())
    core_h = size * CORES * elapsed / 3600
    mpi_core_h = core_h * (1 - own_share)
    waiting = mpi_core_h * site.waiting[program] / site.in_mpi[program]
    lost = waiting * site.lost[program] / site.waiting[program]
    columns = {"core_h": core_h, "own_core_h": core_h - mpi_core_h, "mpi_core_h": mpi_core_h, "waiting_core_h": waiting, "lost_core_h": lost}
    for name, column in {"jobs": np.ones(count), **columns}.items():
        np.add.at(sums[name], program, column)
    # A job is filed under the day on which it ended.
    ended = np.datetime64(day, "ms") + dice.integers(0, 86_400_000, count)
    ids = np.array([f"{number:08x}{at:024x}" for at in range(count)])
    findings = np.array(list(FINDINGS))[site.finding[program]]
    advice = np.array(list(FINDINGS.values()))[site.finding[program]]
    order = np.argsort(np.concatenate(listed_job), kind="stable")
    jobs_of_hosts = np.concatenate(listed_job)[order]
    each = np.repeat(np.arange(count), len(FUNCTIONS))
    part = dice.dirichlet(np.ones(len(FUNCTIONS)), count).ravel()
    rank_s = elapsed * size * CORES
    jobs = {
        "id": ids,
        "cluster": np.full(count, "made-up"),
        "job": np.array([str(number * 100_000 + at) for at in range(count)]),
        "step": pa.array([None] * count, pa.string()),
        "uid": user + 1000,
        "program": np.array(site.names)[program],
        "mpi": np.full(count, "Open MPI"),
        "mpi_version": np.full(count, MPI_TO if day >= MPI_CHANGE else MPI_FROM),
        "system": pa.array([None] * count, pa.string()),
        "started": pa.array(ended - (elapsed * 1000).astype("timedelta64[ms]"), pa.timestamp("ms", tz="UTC")),
        "elapsed_s": elapsed,
        "ranks": size * CORES,
        "hosts": size,
        "processors": size * CORES,
        **columns,
        "ended": np.full(count, "finalize"),
        "finding": findings,
        "parallel_efficiency": own_share,
        "load_balance": np.sqrt(own_share),
        "communication_efficiency": np.sqrt(own_share),
        "bytes_sent": (rank_s * 1e5).astype(int),
        "gyan_share": np.full(count, 0.0005),
        "gyan_version": np.full(count, "0.1.0"),
        "schema": np.full(count, "gyan.record/1"),
    }
    functions = {
        "id": ids[each],
        "function": np.tile(FUNCTIONS, count),
        "calls": (part * rank_s[each] * 10).astype(int),
        "time_s": part * ((1 - own_share) * rank_s)[each],
        "waiting_s": part * (waiting * 3600)[each],
        "bytes": (part * rank_s[each] * 1e5).astype(int),
    }
    of_findings = {
        "id": ids,
        "finding": findings,
        "rank_in_list": np.ones(count, int),
        "at_stake_s": lost * 3600,
        "at_stake_share": lost / core_h,
        "core_h": lost,
        "title": np.char.add("about ", findings),
        "advice": advice,
    }
    hosts = {
        "id": ids[jobs_of_hosts],
        "host": np.array([name_of_host(host) for host in range(HOSTS)])[np.concatenate(listed_host)[order]],
        "ranks": np.full(len(order), CORES),
        "own_share": np.concatenate(listed_share)[order],
        "own_relative": pa.array(np.concatenate(listed_relative)[order], from_pandas=True),
    }
    tables = {"jobs": jobs, "functions": functions, "findings": of_findings, "hosts": hosts}
    return {name: pa.table(of) for name, of in tables.items()}


def check(truth_file, report_file):
    """Prints what is wrong, one line each; how many that are."""
    truth, report = json.loads(truth_file.read_text()), json.loads(report_file.read_text())
    wrong = []
    for name, value in truth["totals"].items():
        if abs(report["totals"][name] - value) > truth["precision"] * value:
            wrong.append(f"{name}: {report['totals'][name]} instead of {value}")
    by_lost = sorted(truth["programs"].items(), key=lambda of: -of[1]["lost_core_h"])
    for (program, of), said in zip(by_lost, report["programs"]):
        same = said["program"] == program and said["jobs"] == of["jobs"] and said["finding"] == of["finding"]
        if not same or abs(said["lost_core_h"] - of["lost_core_h"]) > truth["precision"] * of["lost_core_h"]:
            wrong.append(f"program {said['program']} instead of {program}, or not its numbers")
    planted = {of["program"]: of for of in truth["worse"]}
    for of in report["worse"]:
        true = planted.pop(of["program"], None)
        if true is None:
            wrong.append(f"{of['program']} did not get slower")
            continue
        cause = of["cause"]["kind"] if "cause" in of else None
        late = abs((datetime.date.fromisoformat(of["since"]) - datetime.date.fromisoformat(true["day"])).days)
        far = abs(of["ratio"] - 1 - true["by"]) / of["error"]
        print(f"{of['program']}: {of['ratio'] - 1:.3f} +- {of['error']:.3f} instead of {true['by']}, {late} days off, by {cause}")
        if cause != true["cause"] or far > 3.5 or late > 7:
            wrong.append(f"{of['program']}: {of}")
    wrong += [f"{program} is missing" for program in planted]
    planted = {of["host"]: of for of in truth["slow_hosts"]}
    for of in report["hosts"]:
        true = planted.pop(of["host"], None)
        if true is None:
            wrong.append(f"{of['host']} is not slow")
            continue
        late = abs((datetime.date.fromisoformat(of["since"]) - datetime.date.fromisoformat(true["since"])).days)
        far = abs(of["ratio"] - 1 - true["by"]) / of["error"]
        print(f"{of['host']}: {of['ratio'] - 1:.4f} +- {of['error']:.4f} instead of {true['by']}, {late} days off")
        if far > 3.5 or late > 14:
            wrong.append(f"{of['host']}: {of}")
    wrong += [f"{host} is missing" for host in planted]
    print("\n".join(wrong) or "all found, nothing else")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of = commands.add_parser("generate")
    of.add_argument("archive", type=pathlib.Path)
    of.add_argument("truth", type=pathlib.Path)
    of.add_argument("--jobs", type=int, default=1_000_000)
    of.add_argument("--seed", type=int, default=1)
    of.add_argument("--days", type=int, default=DAYS, help="the first days of the year, with their part of the jobs")
    of = commands.add_parser("check")
    of.add_argument("truth", type=pathlib.Path)
    of.add_argument("report", type=pathlib.Path)
    options = parser.parse_args()
    if options.command == "generate":
        generate(options.archive, options.truth, options.jobs, options.seed, options.days)
    else:
        raise SystemExit(min(check(options.truth, options.report), 1))


if __name__ == "__main__":
    main()
