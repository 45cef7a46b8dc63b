/* Rank 0 works for MILLISECONDS (the first argument) before each of ROUNDS (the second one) messages to every other rank, which
 * waits for it in MPI_Recv; every second message is received with MPI_Irecv and MPI_Wait. In each round all meet in MPI_Barrier, to
 * which rank 1 comes late by as much.
 *
 * Each rank writes into truth.RANK, by CLOCK_MONOTONIC in ns: "sends ROUND RANK NS" before a message is sent to that rank, "receives
 * ROUND 0 NS" before it waits for one, and "meets ROUND 0 NS" before the barrier. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

static FILE *truth;

static long long now(void) { return nanoseconds_by(CLOCK_MONOTONIC); }

static void tell(const char *what, int round, int rank)
{
    fprintf(truth, "%s %d %d %lld\n", what, round, rank, now());
}

int main(int argc, char **argv)
{
    int rank, size, x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3)
        return 1;
    struct timespec work = { 0, atoi(argv[1]) * 1000000L };
    int rounds = atoi(argv[2]);
    truth = truth_of(rank);
    for (int round = 0; round < rounds; round++) {
        if (rank == 0) {
            for (int other = 1; other < size; other++) {
                nanosleep(&work, NULL);
                tell("sends", round, other);
                MPI_Send(&x, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
            }
        } else if (round % 2) {
            MPI_Request request;
            MPI_Irecv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
            tell("receives", round, 0);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            tell("receives", round, 0);
            MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (rank == 1)
            nanosleep(&work, NULL);
        tell("meets", round, 0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    fclose(truth);
    MPI_Finalize();
    return 0;
}
