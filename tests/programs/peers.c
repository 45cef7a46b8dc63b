/* Sends other numbers of messages of other sizes to each peer, and puts into and gets from the
 * memory of the next rank; writes what it did to truth.<rank>:
 *   sent <peer> <messages> <bytes>     put <peer> <bytes>     got <peer> <bytes>
 * and joins in 5 MPI_Allreduce.
 * Expect: Open MPI's monitoring tells the same. */
#include <mpi.h>
#include <stdio.h>

#include "check.h"

int main(int argc, char **argv)
{
    int rank, size, peer, i, value = 1, sum;
    double data[64] = {0}, memory[64] = {0};
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    FILE *truth = truth_of(rank);
    for (peer = 0; peer < size; peer++) {
        if (peer == rank)
            continue;
        int messages = 10 * rank + peer + 1, doubles = 3 * peer + rank + 1;
        int expected = 10 * peer + rank + 1, incoming = 3 * rank + peer + 1;
        for (i = 0; i < messages || i < expected; i++) {
            MPI_Request request = MPI_REQUEST_NULL;
            if (i < expected)
                MPI_Irecv(memory, incoming, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &request);
            if (i < messages)
                MPI_Send(data, doubles, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        fprintf(truth, "sent %d %d %d\n", peer, messages, messages * doubles * 8);
    }
    for (i = 0; i < 5; i++)
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_create(memory, sizeof memory, sizeof memory[0], MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    peer = (rank + 1) % size;
    MPI_Put(data, 4, MPI_DOUBLE, peer, 0, 4, MPI_DOUBLE, win);
    MPI_Get(data + 10, 6, MPI_DOUBLE, peer, 10, 6, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    fprintf(truth, "put %d 32\ngot %d 48\n", peer, peer);
    fclose(truth);
    MPI_Finalize();
    return 0;
}
