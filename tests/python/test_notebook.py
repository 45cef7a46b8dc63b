"""What notebooks show, and phases in a process without gyan."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gyan
import pytest
from test_run import LIBRARIES, profiles


def installed(library: str) -> bool:
    """Whether there is one of that name."""
    return importlib.util.find_spec(library) is not None


def element(html: str) -> str:
    """An element that brings its own style; what it shows."""
    assert html.startswith('<div class="gyan"><style>')
    assert html.endswith("</div>\n")
    assert "<script" not in html
    return html.split("</style>", 1)[1]


def test_a_run_is_its_first_screen(kept: gyan.Run) -> None:
    shown = element(kept._repr_html_())
    title = kept.report().splitlines()[0]
    assert re.sub(r"<[^>]*>", "", shown).replace("\N{NO-BREAK SPACE}", " ").startswith(title)
    assert kept.show().html.split("</style>")[1] == shown
    assert "first screen" in repr(kept.show())


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_matrix_has_what_the_ranks_sent(real: gyan.Run, library: str) -> None:
    if not installed(library):
        pytest.skip(f"{library} is not installed")
    frame = gyan.load(real.path, frames=library).peers
    if library == "pyarrow":
        assert not hasattr(frame, "matrix")
        return
    shown = element(frame.matrix().html)
    sent = [(profile["rank"], to["rank"], to["number"]) for profile in profiles(Path(real.path)) for to in profile["peers"]["messages"]]
    assert len(sent) >= 4
    for rank, to, number in sent:
        assert f"<title>{rank} to {to}: {number}</title>" in shown
    assert not hasattr(frame.head(1), "matrix")


def test_the_timeline_is_that_of_the_page(real: gyan.Run) -> None:
    shown = element(real.show("timeline").html)
    assert 'class="timeline"' in shown
    if installed("pandas"):
        assert element(real.timeline.show().html) == shown


def test_a_part_that_is_not_there_is_refused(kept: gyan.Run) -> None:
    with pytest.raises(gyan.Error, match=r"--fragment=nonsense: .* name one of run, "):
        kept.show("nonsense")


def test_comparisons_are_their_pages(kept: gyan.Run) -> None:
    difference = gyan.diff(kept, kept)
    assert "what changed from A to B" in element(difference._repr_html_())
    verdict = gyan.check(kept, against=kept)
    assert "passed" in verdict._repr_html_()
    assert "0x" not in repr(difference) + repr(verdict)


class Left(Exception):
    """What a block is left by."""


def test_a_phase_without_gyan_is_nothing() -> None:
    def solve() -> int:
        return 3

    def steps() -> Iterator[int]:
        yield 1

    assert gyan.phase("solve")(solve) is solve
    with pytest.raises(Left), gyan.phase("outer"), gyan.phase("inner"):
        raise Left
    with pytest.raises(TypeError, match="steps is a generator"):
        gyan.phase("steps")(steps)


def test_a_program_that_names_phases_imports_little_and_starts_nothing() -> None:
    program = "import sys, gyan\nwith gyan.phase('solve'): pass\nprint(*sys.modules)"
    environment = {**os.environ, "GYAN_COMMAND": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
    loaded = done.stdout.split()
    assert not {"pandas", "polars", "pyarrow", "numpy", "IPython"}.intersection(loaded)
