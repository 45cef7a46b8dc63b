/* A typical program: each rank sends to the two before it and the two after it in a ring, with whatever that needs of
 * MPI, and agrees with all others now and then. 5 ranks.
 * Expect: 12 functions, among them those of the start and the end, and 4 peers on each rank. */
#include <mpi.h>

enum { STEPS = 400, CELLS = 500 };

int main(int argc, char **argv)
{
    static double in[4][CELLS], out[4][CELLS];
    static const int distance[4] = {1, 2, -1, -2};
    int rank, size, steps = STEPS;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 5)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Bcast(&steps, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int step = 0; step < steps; step++) {
        MPI_Request request[4];
        for (int i = 0; i < 2; i++) {
            int from = (rank - distance[i] + size) % size, to = (rank + distance[i]) % size;
            MPI_Irecv(in[i], CELLS, MPI_DOUBLE, from, i, MPI_COMM_WORLD, &request[i]);
            MPI_Isend(out[i], CELLS >> step % 5, MPI_DOUBLE, to, i, MPI_COMM_WORLD, &request[2 + i]);
        }
        MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
        for (int i = 2; i < 4; i++) {
            int from = (rank - distance[i] + size) % size, to = (rank + distance[i] + size) % size;
            MPI_Sendrecv(out[i], 1 + step % 7, MPI_DOUBLE, to, i, in[i], CELLS, MPI_DOUBLE, from, i, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
        double change = rank, most;
        if (step % 5 == 0)
            MPI_Allreduce(&change, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (step % 20 == 0)
            MPI_Reduce(&change, &most, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
