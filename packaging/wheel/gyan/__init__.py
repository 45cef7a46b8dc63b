"""gyan: see inside the MPI library that a program runs on.

``gyan.load`` reads what a run left, as frames of pandas, Polars or PyArrow. All work is done by the command ``gyan``, which is in
this package.
"""

from ._command import Error, IncompleteWarning, command, library
from ._run import Run, load

__all__ = ["Error", "IncompleteWarning", "Run", "command", "library", "load"]
