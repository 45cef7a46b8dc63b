/* Threads that use a known amount of processor time: `processors THREADS SECONDS [PROCESSOR]`, all bound to PROCESSOR
 * if it is given. Compiled with -fopenmp the threads are OpenMP's, otherwise they are made by pthread_create.
 * Expect: of each rank a line `used U processors by its own clocks`, its processor clock by the time that has passed, both
 * from before MPI_Init on. gyan says the same, and that THREADS threads were busy. They live until the program ends. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 256 };

static double until;
static int processor = -1;

static double clock_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void work(void)
{
    if (processor >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(processor, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    while (clock_s(CLOCK_MONOTONIC) < until)
        ;
}

#ifndef _OPENMP
static pthread_barrier_t all_done;

static void *start(void *unused)
{
    (void)unused;
    work();
    pthread_barrier_wait(&all_done);
    for (;;)
        pause();
    return NULL;
}
#endif

int main(int argc, char **argv)
{
    int rank, threads = argc > 1 ? atoi(argv[1]) : 2;
    double seconds = argc > 2 ? atof(argv[2]) : 1, begun, before;
    if (argc > 3)
        processor = atoi(argv[3]);
    if (threads < 1 || threads > MOST)
        return 2;
    begun = clock_s(CLOCK_MONOTONIC);
    before = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    until = clock_s(CLOCK_MONOTONIC) + seconds;
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1) num_threads(threads)
    for (int thread = 0; thread < threads; thread++)
        work();
#else
    pthread_barrier_init(&all_done, NULL, (unsigned)threads);
    for (long thread = 1; thread < threads; thread++) {
        pthread_t made;
        pthread_create(&made, NULL, start, NULL);
    }
    work();
    pthread_barrier_wait(&all_done);
#endif
    printf("used %.4f processors by its own clocks\n",
           (clock_s(CLOCK_PROCESS_CPUTIME_ID) - before) / (clock_s(CLOCK_MONOTONIC) - begun));
    MPI_Finalize();
    return 0;
}
