"""What a notebook shows: elements of HTML that the command makes, the same as those of its page."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from ._command import Path, ask

PICTURES = {"peers": "matrix", "timeline": "show"}
"""Tables that have a picture on the page, and the method of their frames that shows it."""


class Shown:
    """A picture for notebooks, which show it where it is the last value of a cell, or by ``display``.

    It needs no script and no network, and is light or dark as the notebook is.

    Attributes:
        html: The element, with its style.
    """

    def __init__(self, name: str, html: str) -> None:
        self._name = name
        self.html = html

    def __repr__(self) -> str:
        return f"<{self._name}: a picture for notebooks>"

    def _repr_html_(self) -> str:
        return self.html


def element(arguments: Sequence[Path], part: str | None = None) -> str:
    """What a subcommand shows on its page, or a part of that, as an element for other pages."""
    subcommand, *others = arguments
    fragment = "--fragment" if part is None else f"--fragment={part}"
    return ask([subcommand, "--format=html", fragment, *others]).decode()


def with_picture(frame: Any, table: str, place: Path) -> Any:
    """The frame with the method that shows its part of the page. Frames that are made of it lack the method: they have other rows."""
    # A table of Arrow takes no attributes.
    with contextlib.suppress(AttributeError):
        setattr(frame, PICTURES[table], lambda: show(place, table))
    return frame


def show(place: Path, part: str | None) -> Shown:
    """The first screen of a run, or a part of its page."""
    return Shown(f"{part or 'first screen'} of {place!s}", element(["report", place], part))
