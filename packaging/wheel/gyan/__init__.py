"""gyan: see inside the MPI library that a program runs on.

This package holds no code of the profiler: it says where its command and its library are.
"""

import os
import sys
import sysconfig

from ._phase import phase as phase


def _schemes():
    """Where pip puts the data of a package: in this environment, or in the user's, or with --target."""
    yield sysconfig.get_path("scripts"), sysconfig.get_path("data")
    user = "posix_user"
    yield sysconfig.get_path("scripts", scheme=user), sysconfig.get_path("data", scheme=user)
    target = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield os.path.join(target, "bin"), target
    # An environment inside another, as build tools create them.
    yield os.path.join(sys.prefix, "bin"), sys.prefix


def _find(what, *places):
    for place in places:
        if os.path.isfile(place):
            return place
    raise FileNotFoundError("gyan: no {} in {}; install gyan-mpi again".format(what, ", ".join(places)))


def command():
    """The path of the command ``gyan``."""
    return _find("command", *(os.path.join(scripts, "gyan") for scripts, _ in _schemes()))


def library():
    """The path of ``libgyan.so``, for ``LD_PRELOAD``."""
    return _find("libgyan.so", *(os.path.join(data, "lib", "libgyan.so") for _, data in _schemes()))
