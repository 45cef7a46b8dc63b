/* Work that is longer by a known share, and nothing else: each step is so many additions that depend on each other, then a
 * reduction. The messages are the same whatever the work.
 *   usage: work [PERCENT]              (default 100; 130 is 30 % more of the same work)
 * Expect: 50 MPI_Allreduce on each rank, and PERCENT / 100 of the time outside MPI. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    long percent = argc > 1 ? atol(argv[1]) : 100;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    volatile double sum = 0;
    double all = 0, begun = MPI_Wtime();
    for (int step = 0; step < 50; step++) {
        for (long i = 0; i < 20000 * percent; i++)
            sum += 1e-9;
        double own = sum;
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("worked for %.4f s\n", MPI_Wtime() - begun);
    MPI_Finalize();
    return 0;
}
