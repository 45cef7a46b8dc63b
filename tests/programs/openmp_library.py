"""Uses a library with OpenMP before it loads MPI, and after that.

Argument: the library. Expect: its region, entered seven times; what came before MPI does not count.
"""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
library.add_up.restype = ctypes.c_double
library.add_up(1000)

from mpi4py import MPI  # noqa: E402

for _ in range(7):
    assert library.add_up(1000) == 999 * 500
print(MPI.COMM_WORLD.Get_size())
