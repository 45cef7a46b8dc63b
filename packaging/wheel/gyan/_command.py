"""Where the command is, and how it is asked."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Union

Path = Union[str, "os.PathLike[str]"]
"""Where something is."""
Option = Union[None, bool, str, int, float, Sequence[str]]
"""The value of an option of the command."""

DONE = 0
INCOMPLETE = 1
"""What the command ends with when it did what was asked, of data that lacks something."""


class Error(Exception):
    """What the command says when it cannot do what was asked: what is wrong, and what to do, in one line."""


class IncompleteWarning(UserWarning):
    """What the command says about data that it did read: ranks are missing, a file is damaged."""


def _schemes() -> Iterator[tuple[str, str]]:
    """Where pip puts the data of a package: in this environment, or in the user's, or with --target."""
    yield sysconfig.get_path("scripts"), sysconfig.get_path("data")
    user = "posix_user"
    yield sysconfig.get_path("scripts", scheme=user), sysconfig.get_path("data", scheme=user)
    target = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield os.path.join(target, "bin"), target
    # An environment inside another, as build tools create them.
    yield os.path.join(sys.prefix, "bin"), sys.prefix


def _find(what: str, places: Iterator[str]) -> str:
    tried = []
    for place in places:
        if os.path.isfile(place):
            return place
        tried.append(place)
    raise FileNotFoundError(f"gyan: no {what} in {', '.join(tried)}; install gyan-mpi again")


def command() -> str:
    """The path of the command ``gyan``: that of the wheel, unless the environment variable ``GYAN_COMMAND`` names another one.

    Raises:
        FileNotFoundError: It is not there.
    """
    named = os.environ.get("GYAN_COMMAND")
    return named or _find("command", (os.path.join(scripts, "gyan") for scripts, _ in _schemes()))


def library() -> str:
    """The path of ``libgyan.so``, for ``LD_PRELOAD``.

    Raises:
        FileNotFoundError: It is not there.
    """
    return _find("libgyan.so", (os.path.join(data, "lib", "libgyan.so") for _, data in _schemes()))


def _environment() -> dict[str, str]:
    """That of the command: Jupyter asks for colours of whatever it starts."""
    return {**os.environ, "NO_COLOR": "1"}


def ask(arguments: Sequence[Path], codes: Sequence[int] = (DONE, INCOMPLETE)) -> bytes:
    """What the command prints.

    Raises:
        Error: It ends with a code that is not in ``codes``.
    """
    done = subprocess.run([command(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False, env=_environment())
    _judge(done.returncode, done.stderr, codes)
    return done.stdout


def lines(arguments: Sequence[Path]) -> Iterator[bytes]:
    """Each line that the command prints, as it comes.

    Raises:
        Error: It cannot do what it was asked, which is known after the last line.
    """
    with tempfile.TemporaryFile() as said:
        asked = [command(), *arguments]
        with subprocess.Popen(asked, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, env=_environment()) as process:
            # It is a pipe, as asked for.
            assert process.stdout is not None
            yield from process.stdout
        said.seek(0)
        _judge(process.returncode, said.read(), (DONE, INCOMPLETE))


def _judge(code: int, stderr: bytes, codes: Sequence[int]) -> None:
    """Hands on what the command says besides its result."""
    said = stderr.decode(errors="replace").strip()
    if code not in codes:
        raise Error(said or f"gyan: it ended with code {code}; run it in a shell")
    for line in said.splitlines():
        warnings.warn(line, IncompleteWarning, stacklevel=3)


def options(named: Mapping[str, Option]) -> list[str]:
    """Options of the command: ``timeline_window="1s@5s"`` is ``--timeline-window=1s@5s``, True is the option without a value, and
    a list is one for each element."""
    made = []
    for name, value in named.items():
        option = "--" + name.replace("_", "-")
        for one in [value] if isinstance(value, (str, int, float)) else value or []:
            if one is not False:
                made.append(option if one is True else f"{option}={one}")
    return made
