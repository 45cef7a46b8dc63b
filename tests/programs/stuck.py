"""Ranks 0 and 1 receive from each other, who sends nothing; the others wait in a barrier."""

from mpi4py import MPI

world = MPI.COMM_WORLD


def exchange(other):
    return world.recv(source=other, tag=5)  # receive


if world.rank < 2:
    exchange(1 - world.rank)
world.Barrier()
