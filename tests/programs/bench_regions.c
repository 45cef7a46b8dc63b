/* What an empty parallel region costs, and one of which each thread works for some time: loops of them, as in the EPCC
 * microbenchmarks.
 *   arguments: rounds, and microseconds of work of each thread; prints nanoseconds for each region */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static void work(double us)
{
    for (double from = omp_get_wtime(); us > 0 && omp_get_wtime() - from < 1e-6 * us;)
        ;
}

int main(int argc, char **argv)
{
    int level, rounds = argc > 1 ? atoi(argv[1]) : 100000;
    double us = argc > 2 ? atof(argv[2]) : 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    for (int i = 0; i < 1000; i++) {
#pragma omp parallel
        work(0);
    }
    double from = omp_get_wtime();
    for (int i = 0; i < rounds; i++) {
#pragma omp parallel
        work(us);
    }
    printf("%.1f\n", 1e9 * (omp_get_wtime() - from) / rounds);
    return MPI_Finalize();
}
