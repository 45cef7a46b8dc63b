/* How long MPI_Finalize takes when all ranks come to it together. Some messages first, so that there is
 * something to tell of.
 *   prints, on each rank: milliseconds in MPI_Finalize; with the argument "init" those in MPI_Init first, and those of a
 *   processor in both last; a second argument: milliseconds that each rank works in between */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 20 };

static double by(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static double now(void)
{
    return by(CLOCK_MONOTONIC);
}

int main(int argc, char **argv)
{
    int rank, size, x = 0;
    double start = now(), init, used = by(CLOCK_PROCESS_CPUTIME_ID);

    MPI_Init(&argc, &argv);
    init = now() - start;
    used = by(CLOCK_PROCESS_CPUTIME_ID) - used;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, 0, &x, 1, MPI_INT, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&rank, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (argc > 2)
        for (double end = now() + atof(argv[2]); now() < end;)
            ;
    MPI_Barrier(MPI_COMM_WORLD);
    used -= by(CLOCK_PROCESS_CPUTIME_ID);
    start = now();
    MPI_Finalize();
    start = now() - start;
    used += by(CLOCK_PROCESS_CPUTIME_ID);
    if (argc > 1)
        printf("%.4f %.4f %.4f\n", init, start, used);
    else
        printf("%.4f\n", start);
    return 0;
}
