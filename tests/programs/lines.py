"""Calls in functions of Python, whose lines the program tells itself: `FUNCTION of MPI, line, function`.

Expect in the report of call sites exactly these lines, at calls in a function, in a method, in a generator, in a
statement of several lines, and in the module.
"""

import sys
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
x, y = array("d", [1.0]), array("d", [0.0])
told = set()


def here(call):
    frame = sys._getframe(1)
    told.add(f"{call} {frame.f_lineno} {frame.f_code.co_qualname}")


def step():
    here("MPI_Allreduce"), world.Allreduce(x, y)


class Solver:
    def reduce(self):
        # A function whose table of lines has long steps.







        here("MPI_Reduce"), world.Reduce(x, y)


def barriers():
    for _ in range(20):
        yield (here("MPI_Barrier"), world.Barrier())


for _ in range(20):
    step()
    Solver().reduce()
list(barriers())
here("MPI_Bcast"), world.Bcast(x)
if world.rank == 0:
    print("\n".join(sorted(told)))
