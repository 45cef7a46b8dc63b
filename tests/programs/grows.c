/* Communication whose growth with the number of ranks is known. In each of 20 steps a rank exchanges a message with each
 * partner of a hypercube (its rank with one bit changed, if there is such a rank), all ranks agree by MPI_Allreduce, and
 * each but rank 0 sends a report to rank 0, which keeps a row of doubles for each of them.
 *   usage: grows [DOUBLES A RANK]      (default 20000)
 * Expect, with p ranks, a power of two: 20 log2(p) calls of MPI_Irecv and MPI_Isend on each rank, 20 of MPI_Allreduce,
 * 20 (p - 1) of MPI_Recv on rank 0 and none on the others, log2(p) peers or one more; and on rank 0 memory that grows as p. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 20, CELLS = 100, PARTNERS = 32 };

int main(int argc, char **argv)
{
    static double in[PARTNERS][CELLS], out[CELLS];
    MPI_Request requests[2 * PARTNERS];
    int rank, size, kept = argc > 1 ? atoi(argv[1]) : 20000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *rows = NULL;
    if (rank == 0) {
        rows = malloc((size_t)kept * size * sizeof *rows);
        memset(rows, 1, (size_t)kept * size * sizeof *rows);
    }
    for (int step = 0; step < STEPS; step++) {
        int n = 0;
        for (int bit = 1, at = 0; bit < size; bit *= 2, at++)
            if ((rank ^ bit) < size)
                MPI_Irecv(in[at], CELLS, MPI_DOUBLE, rank ^ bit, 0, MPI_COMM_WORLD, &requests[n++]);
        for (int bit = 1; bit < size; bit *= 2)
            if ((rank ^ bit) < size)
                MPI_Isend(out, CELLS, MPI_DOUBLE, rank ^ bit, 0, MPI_COMM_WORLD, &requests[n++]);
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        double mine = step, all;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank != 0)
            MPI_Send(out, CELLS, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
        else
            for (int from = 1; from < size; from++)
                MPI_Recv(rows + (size_t)kept * from, CELLS, MPI_DOUBLE, from, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    }
    free(rows);
    MPI_Finalize();
    return 0;
}
