#!/usr/bin/env python3
"""Fills a spool with records of made-up jobs, which differ in their ids, times, days, users and programs.

    benches/archive/spool.py SPOOL [--records N] [--days N] [--like RECORD]

Each is the record of a real job of which all times are longer or shorter by one factor."""

import argparse
import datetime
import json
import pathlib
import random
import zlib

LIKE = pathlib.Path(__file__).parents[2] / "tests/fixtures/gyan.record-1/4711.0.gyan-record"
FIRST = datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc)


def scaled(value, by):
    """`value` with each number that is no integer multiplied, to five digits as libgyan.so writes them."""
    if isinstance(value, float):
        return float(f"{value * by:.5g}")
    if isinstance(value, list):
        return [scaled(one, by) for one in value]
    if isinstance(value, dict):
        return {name: scaled(one, by) for name, one in value.items()}
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spool", type=pathlib.Path)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--like", type=pathlib.Path, default=LIKE)
    given = parser.parse_args()
    given.spool.mkdir(parents=True)
    dice = random.Random(1)
    schema, packed = given.like.read_bytes().split(b"\n", 1)
    like = json.loads(zlib.decompress(packed))
    for number in range(given.records):
        record = scaled(like, dice.uniform(0.5, 2.0))
        record["job"] = str(100_000 + number)
        record["user"] = 1000 + dice.randrange(200)
        record["program"] = f"app{dice.randrange(60):02}"
        started = FIRST + datetime.timedelta(seconds=number * given.days * 86_400 / given.records)
        record["summary"]["job"]["started"] = started.strftime("%Y-%m-%dT%H:%M:%SZ")
        content = schema + b"\n" + zlib.compress(json.dumps(record, separators=(",", ":")).encode())
        (given.spool / f"{record['user']}-{record['job']}.0-{number:016x}.gyan-record").write_bytes(content)


if __name__ == "__main__":
    main()
