#!/usr/bin/python3
"""How many lines of Rust the project has: tests/house/lines.py [COMMIT], without it of the files as they are.

Product is what a release contains. Unit tests are files called tests.rs, simulated.rs and the like that a `#[cfg(test)]`
declares, and everything from a `#[cfg(test)]` module to its closing brace.
"""
import collections
import re
import subprocess
import sys

PRODUCT = {"results-schema/src": "format", "wrappers/src": "library", "wrappers/build.rs": "library", "src": "command"}
OTHER = {"tests": "tests", "benches": "bench", "fuzz": "fuzz", "results-schema": "tests", "wrappers": "tests"}


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def place(path):
    """The part that a file belongs to, and whether it is product."""
    for folders, product in ((PRODUCT, True), (OTHER, False)):
        for folder, part in folders.items():
            if path == folder or path.startswith(folder + "/"):
                return part, product
    return "other", False


def test_modules(path, text):
    """The files and folders that `#[cfg(test)]` declares as modules of the file `path`."""
    folder = path.rsplit("/", 1)[0]
    stem = path.rsplit("/", 1)[1].removesuffix(".rs")
    if stem not in ("mod", "lib", "main"):
        folder += "/" + stem
    for given, name in re.findall(r'#\[cfg\(test\)\]\n(?:#\[path = "([^"]+)"\]\n)?\s*(?:pub\([a-z]+\) )?mod (\w+);', text):
        yield f"{path.rsplit('/', 1)[0]}/{given}" if given else f"{folder}/{name}"


def inline_tests(text):
    """How many lines of a file are in modules and items under `#[cfg(test)]`."""
    count, lines, at = 0, text.split("\n"), 0
    while at < len(lines):
        if lines[at].strip() != "#[cfg(test)]":
            at += 1
            continue
        indent = re.match(r" *", lines[at]).group()
        begin = at
        at += 1
        # An item ends with its closing brace, or on the line of a semicolon.
        while at < len(lines) and not re.match(indent + r"(\}|[^ ].*[;}]$)", lines[at]):
            at += 1
        at += 1
        count += at - begin
    return count


def main():
    commit = sys.argv[1] if len(sys.argv) > 1 else None
    listed = git("ls-tree", "-r", "--name-only", commit) if commit else git("ls-files")
    paths = [path for path in listed.split("\n") if path.endswith(".rs")]

    def read(path):
        if commit:
            return git("show", f"{commit}:{path}")
        with open(path, encoding="utf-8") as file:
            return file.read()

    texts = {}
    for path in paths:
        try:
            texts[path] = read(path)
        except FileNotFoundError:
            pass
    tests = set()
    for path, text in texts.items():
        tests.update(test_modules(path, text))
    counts = collections.Counter()
    for path, text in texts.items():
        part, product = place(path)
        lines = text.count("\n")
        if not product:
            counts[part, "tests"] += lines
        elif any(path in (f"{test}.rs", test) or path.startswith(test + "/") for test in tests):
            counts[part, "unit tests"] += lines
        else:
            inside = inline_tests(text)
            counts[part, "product"] += lines - inside
            counts[part, "unit tests"] += inside
    kinds = ["product", "unit tests", "tests"]
    print(f"{'':10}" + "".join(f"{kind:>12}" for kind in kinds))
    for part in ["format", "library", "command", "tests", "bench", "fuzz", "other"]:
        row = [counts[part, kind] for kind in kinds]
        if any(row):
            print(f"{part:10}" + "".join(f"{number:12,}" for number in row))
    print(f"{'all':10}" + "".join(f"{sum(counts[key] for key in counts if key[1] == kind):12,}" for kind in kinds))


main()
