/* What threads lose, one problem at a time: problems_openmp RULE [healthy]. Each thread sleeps instead of working, so what is
   there to find does not depend on how many processors there are. Built with an OpenMP runtime that has OMPT (clang -fopenmp).

   serial-code       4 threads; each step is serial for 20 ms and parallel for 20 ms. Healthy: parallel for 25 ms.
   openmp-imbalance  4 threads that work 40, 10, 10 and 10 ms in a region. Healthy: 17.5 ms each.
   short-regions     2 threads, and 20,000 regions in which each is busy for 5 us. Healthy: 200 regions of 500 us. Here the
                     threads do not sleep, as that takes longer.
   threads-wait-for-mpi  4 threads that work 5 ms in a region, then one sums up 16 MB over all ranks. Healthy: the others work
                     meanwhile.

   What is expected are the [[case]]s, as in problems.c. OMP_WAIT_POLICY=passive: threads sleep between regions, so they take no
   processor from the ranks, and take long to start. Rank 0 prints how long that took by its own clock, of short-regions also what EPCC's benchmarks call the overhead of a region. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, STEPS = 40, SHORT = 20000 };

static void work(double milliseconds) {
    struct timespec time = {0, (long)(milliseconds * 1e6)};
    nanosleep(&time, NULL);
}

/* [[case]]
 * rule = "serial-code"
 * start = { mpi = "mpich4" }
 * # 40 steps of at least 20 ms; they take longer on a busy machine.
 * evidence."threads of a rank" = 4
 * evidence."time outside of parallel regions and of MPI" = [1.6, inf]
 * healthy = { witness = "OpenMP efficiency" }
 */
static void serial_code(int healthy) {
    for (int step = 0; step < STEPS; step++) {
        if (!healthy)
            work(20);
#pragma omp parallel num_threads(THREADS)
        work(healthy ? 25 : 20);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* [[case]]
 * rule = "openmp-imbalance"
 * start = { mpi = "mpich4" }
 * # Of 4 x 40 ms, 90 ms.
 * evidence."of its threads' time" = [0.45, 0.6]
 * evidence."entries on all ranks" = 80
 * healthy = { witness = "load balance of threads" }
 */
static void openmp_imbalance(int healthy) {
    for (int step = 0; step < STEPS; step++) {
#pragma omp parallel num_threads(THREADS)
        work(healthy ? 17.5 : omp_get_thread_num() == 0 ? 40 : 10);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void spin(double seconds) {
    for (double end = omp_get_wtime() + seconds; omp_get_wtime() < end;)
        ;
}

/* [[case]]
 * rule = "short-regions"
 * start = { mpi = "mpich4", ranks = 1, environment = ["OMP_WAIT_POLICY=passive"] }
 * evidence."entries on all ranks" = 20_000
 * evidence."time of an entry" = [5e-6, 100e-6]
 * healthy = { witness = "OpenMP efficiency" }
 */
static void short_regions(int healthy) {
    int entries = healthy ? SHORT / 100 : SHORT;
    double each = healthy ? 500e-6 : 5e-6, begun = omp_get_wtime();
    for (int i = 0; i < entries; i++)
        spin(each);
    double alone = omp_get_wtime() - begun;
    begun = omp_get_wtime();
    for (int i = 0; i < entries; i++)
#pragma omp parallel num_threads(2)
        spin(each);
    printf("overhead of a region: %.3f us\n", 1e6 * (omp_get_wtime() - begun - alone) / entries);
}

/* [[case]]
 * rule = "threads-wait-for-mpi"
 * start = { mpi = "mpich4", environment = ["OMP_WAIT_POLICY=passive"] }
 * functions = ["MPI_Allreduce"]
 * evidence."threads of a rank" = 4
 * healthy = { witness = "MPI efficiency of threads" }
 */
static void threads_wait_for_mpi(int healthy) {
    enum { DOUBLES = 2000000 };
    static double own[DOUBLES], sum[DOUBLES];
    for (int step = 0; step < STEPS; step++) {
#pragma omp parallel num_threads(THREADS)
        if (!healthy || omp_get_thread_num() > 0)
            work(healthy ? 20.0 / 3 : 5);
        else
            MPI_Allreduce(own, sum, DOUBLES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (!healthy)
            MPI_Allreduce(own, sum, DOUBLES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(int healthy);
    } problems[] = {
        {"serial-code", serial_code},
        {"openmp-imbalance", openmp_imbalance},
        {"short-regions", short_regions},
        {"threads-wait-for-mpi", threads_wait_for_mpi},
    };
    int level, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double begun = MPI_Wtime();
    for (size_t at = 0; at < sizeof problems / sizeof *problems; at++)
        if (argc > 1 && !strcmp(argv[1], problems[at].name))
            problems[at].run(argc > 2 && !strcmp(argv[2], "healthy"));
    if (rank == 0)
        printf("by its own clock: %.6f s\n", MPI_Wtime() - begun);
    MPI_Finalize();
    return 0;
}
