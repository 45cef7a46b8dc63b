"""Receives through mpi4py, in each of its ways; prints what was received.

Expect in each profile, under a name with or without _c, as mpi4py finds the function: MPI_Recv
4 + rank, MPI_Irecv 3, MPI_Mrecv 6, MPI_Imrecv 1, MPI_Sendrecv 2, MPI_Sendrecv_replace 1,
MPI_Recv_init 1; the same output as without gyan. mpi4py receives a pickled object with MPI_Mprobe
and MPI_Mrecv; with the argument no-mprobe it does with MPI_Probe and MPI_Recv: 6 more of these.
"""

import sys
from array import array

import mpi4py

mpi4py.rc.recv_mprobe = "no-mprobe" not in sys.argv
from mpi4py import MPI  # noqa: E402

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size
heard = []

# Pickled: MPI_Mrecv 4, and 2 more in sendrecv, which is MPI_Isend and the same receive.
for tag in range(4):
    request = world.isend({"rank": rank, "tag": tag}, right, tag)
    heard.append(world.recv(source=left, tag=tag)["rank"])
    request.wait()
for _ in range(2):
    heard.append(world.sendrecv([rank], right, 0, None, left, 0)[0])

# Buffers: MPI_Recv 4 + rank.
x, mine = array("i", [-1]), array("i", [rank])
for _ in range(3 + rank):
    world.Recv(x, MPI.PROC_NULL)
request = world.Isend(mine, right)
world.Recv(x, left)
request.Wait()
heard.append(x[0])

# MPI_Irecv 3.
for _ in range(3):
    requests = [world.Irecv(x, left), world.Isend(mine, right)]
    MPI.Request.Waitall(requests)
    heard.append(x[0])

# MPI_Sendrecv 2, MPI_Sendrecv_replace 1.
for _ in range(2):
    world.Sendrecv(mine, right, 0, x, left, 0)
    heard.append(x[0])
x[0] = rank
world.Sendrecv_replace(x, right, 0, left, 0)
heard.append(x[0])

# MPI_Imrecv 1.
request = world.Isend(mine, right)
message = world.Mprobe(left)
message.Irecv(x).Wait()
request.Wait()
heard.append(x[0])

# MPI_Recv_init 1, started twice.
persistent = world.Recv_init(x, left)
for _ in range(2):
    persistent.Start()
    world.Send(mine, right)
    persistent.Wait()
    heard.append(x[0])
persistent.Free()

total = array("i", [rank])
world.Allreduce(MPI.IN_PLACE, total)
print(f"rank {rank} heard {heard} total {total[0]}", flush=True)
