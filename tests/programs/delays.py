"""As delays.c, by mpi4py: the last rank comes late to each tenth of 30 calls of two functions on MPI_COMM_WORLD and a
duplicate of it."""
import time
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
late = world.rank == world.size - 1
twin = world.Dup()
twin.Set_name("twin")
with open(f"truth.{world.rank}", "w") as truth:
    for comm, name in (world, "MPI_COMM_WORLD"), (twin, "twin"):
        one, sum = array("i", [1]), array("i", [0])
        reduce = lambda: comm.Allreduce([one, MPI.INT], [sum, MPI.INT])
        for function, call in ("MPI_Barrier", comm.Barrier), ("MPI_Allreduce", reduce):
            times = []
            for i in range(30):
                if late and i % 10 == 5:
                    time.sleep(0.02)
                begun = time.monotonic_ns()
                call()
                times.append((begun, time.monotonic_ns()))
            for begun, ended in times:
                print(function, name, begun, ended, file=truth)
