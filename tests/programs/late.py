"""Rank 0 receives 50 messages of rank 1, which is late by 20 ms with ten of them. Rank 0 prints the seconds for which it waited, from
the clock that both share."""

import struct
import time

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
data = bytearray(8)
waited_s = 0.0
for number in range(50):
    comm.Barrier()
    if rank == 0:
        begun = time.time()
        comm.Recv([data, MPI.BYTE], source=1, tag=5)  # waits
        waited_s += max(0.0, struct.unpack("d", data)[0] - begun)
    elif rank == 1:
        if number % 5 == 3:
            time.sleep(0.02)
        struct.pack_into("d", data, 0, time.time())
        comm.Send([data, MPI.BYTE], dest=0, tag=5)  # late
if rank == 0:
    print(f"{waited_s:.6f}")
