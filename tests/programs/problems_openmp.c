/* What threads lose, one problem at a time: problems_openmp RULE [healthy]. Each thread sleeps instead of working, so what is
   there to find does not depend on how many processors there are. Built with an OpenMP runtime that has OMPT (clang -fopenmp).

   serial-code       4 threads; each step is serial for 20 ms and parallel for 20 ms. Healthy: parallel for 25 ms.
   openmp-imbalance  4 threads that work 40, 10, 10 and 10 ms in a region. Healthy: 17.5 ms each. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, STEPS = 40 };

static void work(double milliseconds) {
    struct timespec time = {0, (long)(milliseconds * 1e6)};
    nanosleep(&time, NULL);
}

static void serial_code(int healthy) {
    for (int step = 0; step < STEPS; step++) {
        if (!healthy)
            work(20);
#pragma omp parallel num_threads(THREADS)
        work(healthy ? 25 : 20);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void openmp_imbalance(int healthy) {
    for (int step = 0; step < STEPS; step++) {
#pragma omp parallel num_threads(THREADS)
        work(healthy ? 17.5 : omp_get_thread_num() == 0 ? 40 : 10);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(int healthy);
    } problems[] = {
        {"serial-code", serial_code},
        {"openmp-imbalance", openmp_imbalance},
    };
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    for (size_t at = 0; at < sizeof problems / sizeof *problems; at++)
        if (argc > 1 && !strcmp(argv[1], problems[at].name))
            problems[at].run(argc > 2 && !strcmp(argv[2], "healthy"));
    MPI_Finalize();
    return 0;
}
