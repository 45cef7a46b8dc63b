#!/usr/bin/env python3
"""How fast are rank profiles reduced, and with how much memory? `gyan reduce` of a directory and of a pack,
beside jq and beside Python (json and numpy) that add up the same, in alternating rounds.

    scripts/bench scale [--rounds N] [--ranks N,N,...] [--alone-above N] [--like RUN]
    benches/scale/measure.py generate DIR RANKS [SEED]       rank profiles, made from a fixture or from those in RUN
    benches/scale/measure.py measure DIR... --gyan GYAN [--rounds N] [--without jq,python]
    benches/scale/measure.py reference DIR                   what is measured as "python"

Only the numbers of variables and calls are added up by the others: minimum, maximum, mean, sum and deviation.
They know no versions, no missing ranks and no damaged files, so the comparison is in their favour. The table
is Markdown."""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

FIXTURE = pathlib.Path(__file__).parents[2] / "tests/fixtures/gyan.rank-1-running"

JQ = """reduce (inputs | (.pvars[] | {k: "\\(.name) \\(.object)", v: (.delta // .end)[]}),
        (.calls[] | {k: .name, v: .count}, {k: "\\(.name) s", v: (.time_s // 0)})) as $n ({};
    .[$n.k] |= if . == null then {n: 1, min: $n.v, max: $n.v, sum: $n.v, squares: ($n.v * $n.v)}
        else {n: (.n + 1), min: ([.min, $n.v] | min), max: ([.max, $n.v] | max),
              sum: (.sum + $n.v), squares: (.squares + $n.v * $n.v)} end)"""


# What differs from rank to rank in a real run, and the numbers in it that say which one something is.
MEASURED = ("pvars", "calls", "in_mpi", "phases", "peers", "resources", "sites", "overhead")
NAMES = ("threads", "rank", "call", "frames", "object", "address", "stacks_taken")


def measured_again(value, dice):
    """Another rank's: each number is half to one and a half times as large."""
    if isinstance(value, dict):
        kept = NAMES + ("count",) if "datatype" in value else NAMES
        return {key: inside if key in kept else measured_again(inside, dice) for key, inside in value.items()}
    if isinstance(value, list):
        return [measured_again(inside, dice) for inside in value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return type(value)(value * (0.5 + dice.random()))


def generate_like(run, directory, ranks, seed):
    """Profiles like those of a real run, without that of its first rank, which alone tells what is the same on all."""
    dice = random.Random(seed)
    directory.mkdir(parents=True)
    files = sorted(run.glob("rank-*.json"))
    templates = [json.loads(file.read_text()) for file in files[1:] or files]
    for rank in range(ranks):
        template = templates[rank % len(templates)]
        profile = {key: measured_again(value, dice) if key in MEASURED else value for key, value in template.items()}
        profile.update(rank=rank, size=ranks, host=f"node{rank // 64:05}", pid=dice.randrange(1000, 1 << 22))
        text = json.dumps(profile, separators=(",", ":"), ensure_ascii=False)
        (directory / f"rank-{rank:06}.json").write_text(text + "\n")


def generate(directory, ranks, seed, like=None):
    if like:
        return generate_like(like, directory, ranks, seed)
    dice = random.Random(seed)
    directory.mkdir(parents=True)
    templates = [json.loads((FIXTURE / f"rank-00000{rank}.json").read_text()) for rank in range(4)]
    for rank in range(ranks):
        profile = templates[rank % 4]
        profile["rank"], profile["size"] = rank, ranks
        profile["host"] = f"node{rank // 64:05}"
        for call in profile["calls"]:
            call["count"] = dice.randrange(1, 1 << 40)
            if "time_s" in call:
                call["time_s"] = dice.random() * 3
        for pvar in profile["pvars"]:
            for key in ("end", "delta"):
                if isinstance(pvar.get(key), list):
                    whole = all(isinstance(value, int) for value in pvar[key])
                    pvar[key] = [dice.randrange(1 << 30) if whole else dice.random() for _ in pvar[key]]
        text = json.dumps(profile, separators=(",", ":"))
        (directory / f"rank-{rank:06}.json").write_text(text + "\n")


def reference(directory):
    import numpy

    numbers = {}
    for file in sorted(directory.glob("rank-*.json")):
        with open(file, "rb") as text:
            profile = json.load(text)
        for pvar in profile["pvars"]:
            values = pvar.get("delta") or pvar["end"]
            for element, value in enumerate(values):
                numbers.setdefault((pvar["name"], pvar["object"], element), []).append(value)
        for call in profile["calls"]:
            numbers.setdefault((call["name"], "count"), []).append(call["count"])
            numbers.setdefault((call["name"], "time_s"), []).append(call.get("time_s") or 0)
    for key, values in sorted(numbers.items(), key=str):
        values = numpy.array(values)
        print(key, values.min(), values.argmin(), values.max(), values.argmax(), values.mean(), values.sum(), values.std())


def timed(command):
    """Seconds and peak memory in MiB of a command and what it starts; at least as much memory as this process has,
    since it is briefly a copy of it."""
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]} ended with {status}")
    return time.monotonic() - begun, usage.ru_maxrss / 1024


def measure(directory, gyan, rounds, without):
    """The rows of the table for one directory."""
    files = list(directory.glob("rank-*.json"))
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    pack = directory.with_name(directory.name + ".gyan.zst")
    subprocess.run([gyan, "pack", "--force", "-o", pack, directory], check=True, stdout=subprocess.DEVNULL)
    me, place = [sys.executable, __file__], str(directory)
    cat = 'find "$1" -name "rank-*.json" -print0 | xargs -0 cat | jq -n "$2"'
    commands = {
        "`gyan reduce`, 1 core": ["env", "RAYON_NUM_THREADS=1", gyan, "reduce", place],
        f"`gyan reduce`, {os.cpu_count()} cores": [gyan, "reduce", place],
        f"`gyan reduce`, pack, {os.cpu_count()} cores": [gyan, "reduce", str(pack)],
        "jq": ["sh", "-c", cat, "jq", place, JQ],
        "python": me + ["reference", place],
    }
    commands = {name: command for name, command in commands.items() if name not in without}
    results = {name: [] for name in commands}
    for turn in range(rounds):
        names = list(commands)
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            results[name].append(timed(commands[name]))
    print(f"{len(files)} profiles: {megabytes:.1f} MB of JSON, {pack.stat().st_size / 1e6:.2f} MB as a pack, "
          f"{rounds} rounds, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    pack.unlink()
    for name, runs in results.items():
        seconds = [run[0] for run in runs]
        median = statistics.median(seconds)
        yield (f"| {len(files)} | {name} | {median:.3f} ({min(seconds):.3f} to {max(seconds):.3f}) "
               f"| {megabytes / median:.0f} | {len(files) / median:.0f} | {max(run[1] for run in runs):.0f} |")


def table(directories, options):
    without = options.without.split(",")
    print("| profiles | | median s (least to most) | MB/s | profiles/s | peak MiB |")
    print("| --: | :-- | --: | --: | --: | --: |", flush=True)
    for directory, ranks in directories:
        alone = ["jq", "python"] if ranks > options.alone_above else []
        rounds = options.rounds if ranks <= options.alone_above else max(2, options.rounds // 3)
        for row in measure(directory, options.gyan, rounds, without + alone):
            print(row, flush=True)


def generated(options):
    """A directory of each size, for as long as it is used."""
    for ranks in map(int, options.ranks.split(",")):
        with tempfile.TemporaryDirectory(prefix="gyan-scale-") as place:
            directory = pathlib.Path(place) / "profiles"
            generate(directory, ranks, options.seed, options.like)
            yield directory, ranks


def main():
    parser = argparse.ArgumentParser()
    what = parser.add_subparsers(dest="what", required=True)
    one = what.add_parser("generate")
    one.add_argument("directory", type=pathlib.Path)
    one.add_argument("ranks", type=int)
    one.add_argument("seed", type=int, nargs="?", default=1)
    what.add_parser("reference").add_argument("directory", type=pathlib.Path)
    some, bench = what.add_parser("measure"), what.add_parser("bench")
    some.add_argument("directories", type=pathlib.Path, nargs="+")
    bench.add_argument("--ranks", default="100,10000,100000")
    bench.add_argument("--seed", type=int, default=1)
    for generating in (one, bench):
        generating.add_argument("--like", type=pathlib.Path, metavar="RUN", help="the run directory of a program")
    for measuring in (some, bench):
        measuring.add_argument("--gyan", default="gyan")
        measuring.add_argument("--rounds", type=int, default=9)
        measuring.add_argument("--without", default="")
        measuring.add_argument("--alone-above", type=int, default=10000, metavar="RANKS",
                               help="with more ranks only gyan is measured, in a third of the rounds")
    options = parser.parse_args()
    if options.what == "generate":
        generate(options.directory, options.ranks, options.seed, options.like)
    elif options.what == "reference":
        reference(options.directory)
    elif options.what == "measure":
        table(((place, len(list(place.glob("rank-*.json")))) for place in options.directories), options)
    else:
        table(generated(options), options)


if __name__ == "__main__":
    main()
