#!/usr/bin/env python3
"""The licences of everything that a binary contains: licenses.py REGISTRY SBOM... > FILE

REGISTRY is where cargo keeps the sources of crates, an SBOM a file of cargo-cyclonedx. A text that several crates
have is written once.
"""

import json
import pathlib
import sys

NAMES = ("license", "licence", "copying", "copyright", "notice", "unlicense")


def main():
    registry, *files = map(pathlib.Path, sys.argv[1:])
    crates = {}
    for file in files:
        for component in json.loads(file.read_text())["components"]:
            licenses = component.get("licenses") or [{}]
            crates[component["name"], component["version"]] = licenses[0].get("expression", "no licence stated")
    texts = {}
    print("gyan contains these crates:\n")
    for (name, version), expression in sorted(crates.items()):
        sources = [path for path in registry.glob(f"*/{name}-{version}") if path.is_dir()]
        if not sources:
            if name.startswith("gyan"):
                continue
            sys.exit(f"licenses.py: no sources of {name} {version} in {registry}")
        print(f"    {name} {version}: {expression}")
        for path in sorted(sources[0].rglob("*")):
            if path.is_file() and path.name.lower().startswith(NAMES) and path.suffix not in (".rs", ".py"):
                text = path.read_text(errors="replace").strip()
                holder = f"{name} {version}: {path.relative_to(sources[0])}"
                texts.setdefault(text, []).append(holder)
    print("\nand with them std of Rust, under MIT OR Apache-2.0, and GCC's unwinder (libgcc_eh), under GPL-3.0 with the")
    print("GCC Runtime Library Exception 3.1, which lets programs under any licence contain it.")
    for text, holders in texts.items():
        print("\n" + "=" * 78)
        print("\n".join(holders))
        print("=" * 78 + "\n")
        print(text)


main()
