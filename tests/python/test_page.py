"""The reference in docs/python.md is made of the docstrings. BLESS=1 writes it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MARK = "<!-- the reference: BLESS=1 scripts/test python writes it -->\n"

griffe: Any = pytest.importorskip("griffe", reason="griffe is in one environment only")


def prose(text: str) -> str:
    """Markdown of a docstring, whose code is in double backticks."""
    return re.sub(r"``(.+?)``", r"`\1`", text.strip())


def entry(text: str) -> str:
    """The same on one line."""
    return " ".join(prose(text).split())


def parts(docstring: Any) -> Iterator[str]:
    """The sections of a docstring."""
    for section in docstring.parse("google", warnings=False):
        if section.kind.value == "text":
            yield prose(section.value)
        elif section.kind.value == "raises":
            yield "\n".join(f"- raises `{of.annotation}`: {entry(of.description)}" for of in section.value)
        else:
            yield "\n".join(f"- `{of.name}`: {entry(of.description)}" for of in section.value)


def signature(function: Any, name: str) -> str:
    """What a caller writes, with types."""
    written, keyword_only = [], False
    for parameter in function.parameters:
        if parameter.name in ("self", "cls"):
            continue
        kind = parameter.kind.value
        if kind == "keyword-only" and not keyword_only:
            written.append("*")
            keyword_only = True
        star = "**" if kind == "variadic keyword" else ""
        default = f" = {parameter.default}" if parameter.default is not None and not star else ""
        written.append(f"{star}{parameter.name}: {parameter.annotation}{default}")
    return f"{name}({', '.join(written)}) -> {function.returns}"


def described(name: str, item: Any, before: str) -> Iterator[str]:
    """A function or class, and what the class has."""
    if item.is_function:
        yield f"### `{before}{name}`\n\n```python\n{signature(item, before + name)}\n```"
        yield from parts(item.docstring)
        return
    bases = ", ".join(str(base) for base in item.bases)
    yield f"### `{before}{name}{f' ({bases})' if bases else ''}`"
    yield from parts(item.docstring)
    members = [member for member in item.members.values() if member.is_public and member.docstring]
    members = [member for member in members if member.is_function or "property" in member.labels]
    rows = []
    for member in members:
        call = f"`{signature(member, member.name)}`" if member.is_function else f"`{member.name}`"
        rows.append(f"| {call.replace('|', '&#124;')} | {prose(member.docstring.value.splitlines()[0]).replace('|', '&#124;')} |")
    if rows:
        yield "\n".join(["| | |", "| :-- | :-- |", *rows])


def reference() -> str:
    """The reference of the package."""
    package = griffe.load("gyan", search_paths=[ROOT / "packaging/wheel"], resolve_aliases=True)
    names = [str(name).strip("'\"") for name in package.exports or []]
    items = {name: package[name].final_target if package[name].is_alias else package[name] for name in names}
    names.sort(key=lambda name: (not items[name].is_function, name))
    return "\n\n".join(block for name in names for block in described(name, items[name], "gyan.")) + "\n"


def test_the_reference_in_the_manual_is_that_of_the_docstrings() -> None:
    path = ROOT / "docs/python.md"
    written = path.read_text()
    head, _ = written.split(MARK)
    expected = f"{head}{MARK}\n{reference()}"
    if os.environ.get("BLESS"):
        path.write_text(expected)
    assert path.read_text() == expected, "docs/python.md is stale; run BLESS=1 scripts/test python"
