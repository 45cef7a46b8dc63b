/* Work that is a sleep, so that it takes as long with more ranks than cores, in one of these patterns:
 *   equal    each rank works for as long, in steps that end with an MPI_Allreduce
 *   uneven   the last rank works three times as long, then MPI_Finalize
 *   chain    ranks work one after the other: each sends to the next when it is done
 *   relay    ranks work one after the other: each broadcasts when it is done
 *   phases   two phases (MPI_Pcontrol 3 and 4): uneven in the first, the other way round in the second
 * Arguments: the pattern, and how many seconds a rank works in all (0.6).
 * Each rank writes to truth.<rank>, by its own clock and in seconds: how long it was outside MPI in all and in each phase,
 * and how long it took from before MPI_Init to before MPI_Finalize: "<all> <phase 3> <phase 4> <run>". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"

static double in_mpi, in_phase[2];

static double now(void) { return seconds_by(CLOCK_MONOTONIC); }

static void work(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* A call of MPI, timed. */
#define TIMED(call)                                                                                                                \
    do {                                                                                                                           \
        double before = now();                                                                                                     \
        call;                                                                                                                      \
        in_mpi += now() - before;                                                                                                  \
    } while (0)

int main(int argc, char **argv)
{
    enum { STEPS = 5 };
    const char *pattern = argc > 1 ? argv[1] : "equal";
    double seconds = argc > 2 ? atof(argv[2]) : 0.6, begun = now();
    int rank, size, x = 1, y;

    TIMED(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(pattern, "equal") == 0)
        for (int step = 0; step < STEPS; step++) {
            work(seconds / STEPS);
            TIMED(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        }
    if (strcmp(pattern, "uneven") == 0)
        work(rank == size - 1 ? 3 * seconds : seconds);
    if (strcmp(pattern, "chain") == 0)
        for (int step = 0; step < STEPS; step++) {
            if (rank > 0)
                TIMED(MPI_Recv(&y, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            work(seconds / STEPS);
            if (rank < size - 1)
                TIMED(MPI_Send(&x, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD));
            TIMED(MPI_Barrier(MPI_COMM_WORLD));
        }
    if (strcmp(pattern, "relay") == 0)
        for (int step = 0; step < STEPS; step++)
            for (int turn = 0; turn < size; turn++) {
                if (turn == rank)
                    work(seconds / STEPS);
                TIMED(MPI_Bcast(&x, 1, MPI_INT, turn, MPI_COMM_WORLD));
            }
    if (strcmp(pattern, "phases") == 0)
        for (int step = 0; step < STEPS; step++) {
            int is_odd = rank % 2;
            double begun_phase = now();
            MPI_Pcontrol(3);
            work(seconds / STEPS * (is_odd ? 0.2 : 0.8));
            MPI_Pcontrol(1);
            in_phase[0] += now() - begun_phase;
            begun_phase = now();
            MPI_Pcontrol(4);
            work(seconds / STEPS * (is_odd ? 0.8 : 0.2));
            in_phase[1] += now() - begun_phase;
            TIMED(MPI_Barrier(MPI_COMM_WORLD));
            MPI_Pcontrol(1);
        }
    FILE *truth = truth_of(rank);
    double run = now() - begun;
    fprintf(truth, "%.9f %.9f %.9f %.9f\n", run - in_mpi, in_phase[0], in_phase[1], run);
    fclose(truth);
    MPI_Finalize();
    return 0;
}
