/* How long MPI_Finalize takes when all ranks come to it together. Some messages first, so that there is
 * something to tell of.
 *   prints, on each rank: milliseconds in MPI_Finalize; with any argument those in MPI_Init first */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 20 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

int main(int argc, char **argv)
{
    int rank, size, x = 0;
    double start = now(), init;

    MPI_Init(&argc, &argv);
    init = now() - start;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, 0, &x, 1, MPI_INT, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&rank, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    start = now();
    MPI_Finalize();
    start = now() - start;
    if (argc > 1)
        printf("%.4f ", init);
    printf("%.4f\n", start);
    return 0;
}
