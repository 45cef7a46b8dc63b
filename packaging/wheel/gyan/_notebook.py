"""What a notebook shows: elements of HTML that the command makes, the same as those of its page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._command import Path, ask


class Shown:
    """A picture of runs. In a notebook it is shown where it is the last value of a cell, or by ``display``.

    It needs no script and no network, and is light or dark as the notebook is.

    Attributes:
        html: The element, with its style.
    """

    def __init__(self, title: str, html: str) -> None:
        self._title = title
        self.html = html

    def __repr__(self) -> str:
        return f"<{self._title}: a picture for notebooks>"

    def _repr_html_(self) -> str:
        return self.html


def first_screen(source: Sequence[Path]) -> dict[str, str]:
    """What a notebook and a console show of a run."""
    text = ask(["report", *source])[1].decode()
    return {"text/html": element(["report", *source]), "text/plain": text.rstrip("\n")}


def part(source: Sequence[Path], name: str) -> Shown:
    """A part of the page of a run.

    Raises:
        Error: The page has no such part; the message has the names of those that it has.
    """
    return Shown(f"{name} of {', '.join(str(path) for path in source)}", element(["report", *source], name))


def element(arguments: Sequence[Path], part: str = "") -> str:
    """What a subcommand shows on its page, or a part of that, as an element for other pages."""
    fragment = f"--fragment={part}" if part else "--fragment"
    return ask([arguments[0], "--format", "html", fragment, *arguments[1:]])[1].decode()


def with_picture(frame: Any, method: str, source: Sequence[Path], name: str) -> Any:
    """A frame that has a method which shows its part of the page; not frames that are made of it, which have other rows.

    A table of Arrow takes no methods.
    """
    try:
        setattr(frame, method, lambda: part(source, name))
    except AttributeError:
        pass
    return frame
