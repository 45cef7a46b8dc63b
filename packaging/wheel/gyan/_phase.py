"""Phases of a program. Only what a program needs while it runs: this imports neither frames nor the command."""

from __future__ import annotations

import ctypes
import functools
import inspect
import threading
from types import TracebackType
from typing import Any, Callable, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class _Library:
    """The functions of ``libgyan.so``, and which thread is in a phase.

    Phases belong to the process, and the library ends the one that began last. So while one thread is in a phase, those of other
    threads are passed over: they would end that one.
    """

    def __init__(self, process: ctypes.CDLL) -> None:
        self._begin = process.gyan_phase_begin
        self._begin.argtypes = [ctypes.c_char_p]
        self._begin.restype = None
        self._end = process.gyan_phase_end
        self._end.argtypes = []
        self._end.restype = None
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._depth = 0

    def begin(self, name: bytes) -> None:
        with self._lock:
            if self._depth > 0 and self._thread != threading.get_ident():
                return
            self._thread = threading.get_ident()
            self._depth += 1
        self._begin(name)

    def end(self) -> None:
        with self._lock:
            if self._depth == 0 or self._thread != threading.get_ident():
                return
            self._depth -= 1
        self._end()


def _find() -> _Library | None:
    """The library if it is in this process: preloaded, so it was there before Python."""
    try:
        return _Library(ctypes.CDLL(None))
    except AttributeError:
        return None


_library = _find()


class phase:
    """A phase of the program, whose calls, times and variables a profile keeps apart: ``with gyan.phase("solve"):``, or
    ``@gyan.phase("solve")`` above a function, each call of which is a pass through the phase.

    A phase that begins inside another one has the outer name in front: ``step/exchange``. It ends with its block, however that is
    left. While one thread is in a phase, phases of other threads are not counted. In a process without gyan nothing happens, and a
    function stays as it is.

    Raises:
        TypeError: The function is a generator or a coroutine, which goes on when others are in phases of their own. Put
            ``with`` around what it does between two stops.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name.encode()

    def __enter__(self) -> None:
        if _library is not None:
            _library.begin(self._name)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if _library is not None:
            _library.end()

    def __call__(self, function: Function) -> Function:
        stops = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
        if any(is_so(function) for is_so in stops):
            raise TypeError(f"gyan.phase: {function.__qualname__} is a generator or a coroutine; put `with` inside of it")
        if _library is None:
            return function

        @functools.wraps(function)
        def in_phase(*arguments: Any, **named: Any) -> Any:
            with self:
                return function(*arguments, **named)

        return in_phase  # type: ignore[return-value]
