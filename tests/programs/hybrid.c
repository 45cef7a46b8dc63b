/* MPI and OpenMP, in C and in C++: what each thread does it knows by its own clock. Each rank writes it to the file truth.<rank>:
 * "run <elapsed> <threads> <serial> <serial in MPI>", and for each place "region <line> <entries> <time> <work> <most work> <in MPI>",
 * in seconds. Work is a sleep, which takes as long on a busy machine as its clock says. With an argument, the ranks do so many
 * rounds of short regions too: "short <line> <entries> <time>".
 * Expect: the `openmp` of each profile is as written, within 3% of what the threads had. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 64, REGIONS = 8 };

static struct region {
    int line, entries;
    double time, work, most_work, in_mpi;
} regions[REGIONS];
static int number_of_regions;
static double begun, in_regions, serial_in_mpi;
/* Of the region that the threads are in; on cache lines of their own. */
static struct { double work, in_mpi, unused[6]; } own[THREADS];

static void works(int ms)
{
    double from = omp_get_wtime();
    usleep(1000 * ms);
    own[omp_get_thread_num()].work += omp_get_wtime() - from;
}

static double barrier(void)
{
    double from = omp_get_wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    return omp_get_wtime() - from;
}

static void enter(void)
{
    for (int thread = 0; thread < THREADS; thread++)
        own[thread].work = own[thread].in_mpi = 0;
    begun = omp_get_wtime();
}

static void leave(int line)
{
    double time = omp_get_wtime() - begun, most_work = 0;
    struct region *region = regions;
    while (region->line != 0 && region->line != line)
        region++;
    if (region->line == 0)
        number_of_regions++;
    region->line = line;
    region->entries++;
    region->time += time;
    in_regions += time;
    for (int thread = 0; thread < THREADS; thread++) {
        region->work += own[thread].work;
        region->in_mpi += own[thread].in_mpi;
        if (own[thread].work > most_work)
            most_work = own[thread].work;
    }
    region->most_work += most_work;
}

static void uneven(void)
{
    enter();
#pragma omp parallel
    works(20 + 40 * omp_get_thread_num());
    leave(__LINE__ - 2);
}

static void with_barriers(void)
{
    enter();
#pragma omp parallel
    {
        works(10 + 20 * omp_get_thread_num());
#pragma omp barrier
        works(30 - 20 * omp_get_thread_num());
#pragma omp for
        for (int i = 0; i < 2; i++)
            works(10 + 10 * i);
    }
    leave(__LINE__ - 9);
}

/* The tasks of one thread are done by all of them, at the barrier. */
static void with_tasks(void)
{
    enter();
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 8; i++) {
#pragma omp task
        works(10);
    }
    leave(__LINE__ - 6);
}

/* Inner regions are work of the thread that begins them: each of its own takes as long. */
static void nested(void)
{
    enter();
#pragma omp parallel
    {
        double from = omp_get_wtime();
        int thread = omp_get_thread_num();
#pragma omp parallel num_threads(2)
        usleep(20000);
        own[thread].work += omp_get_wtime() - from;
    }
    leave(__LINE__ - 8);
}

static void with_mpi(int rank)
{
    enter();
#pragma omp parallel
    {
        works(10 + 30 * rank);
#pragma omp master
        own[0].in_mpi += barrier();
    }
    leave(__LINE__ - 6);
}

static void short_regions(FILE *truth, int rounds)
{
    /* The runtime starts its threads before it tells of the first region. */
#pragma omp parallel
    usleep(50);
    double from = omp_get_wtime(), sum = 0;
    for (int i = 0; i < rounds; i++) {
#pragma omp parallel reduction(+ : sum)
        {
            usleep(50);
            sum += i;
        }
    }
    double time = omp_get_wtime() - from;
    in_regions += time;
    fprintf(truth, "short %d %d %.6f\n", __LINE__ - 8, rounds, sum < 0 ? 0 : time);
}

int main(int argc, char **argv)
{
    double from = omp_get_wtime();
    int rank, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    serial_in_mpi = omp_get_wtime() - from;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    omp_set_max_active_levels(2);
    FILE *truth = truth_of(rank);
    if (argc > 1)
        short_regions(truth, atoi(argv[1]));
    for (int round = 0; round < 2; round++) {
        usleep(30000);
        uneven();
        with_barriers();
        usleep(rank == 0 ? 60000 : 10000);
        serial_in_mpi += barrier();
        with_tasks();
        with_mpi(rank);
        nested();
    }
    double elapsed = omp_get_wtime() - from;
    MPI_Finalize();
    fprintf(truth, "run %.6f %d %.6f %.6f\n", elapsed, omp_get_max_threads(), elapsed - in_regions - serial_in_mpi, serial_in_mpi);
    for (const struct region *region = regions; region < regions + number_of_regions; region++)
        fprintf(truth, "region %d %d %.6f %.6f %.6f %.6f\n", region->line, region->entries, region->time, region->work,
                region->most_work, region->in_mpi);
    return fclose(truth) != 0;
}
