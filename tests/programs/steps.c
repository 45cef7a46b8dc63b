/* The steps of a code that computes for as long as many calls take: 4,000 steps of 500 us, after each of which two ranks exchange
 * eight messages of 8 kB. The program takes the time of each call itself and writes to truth.<rank> for MPI_Irecv, MPI_Send and
 * MPI_Wait: "<function> <calls> <seconds>".
 * Expect: gyan's times are those, within their standard errors and what both clocks cost. */
#include <mpi.h>

#include "check.h"

enum { STEPS = 4000, MESSAGES = 8, SIZE = 8192 };

static char from[SIZE], to[SIZE];

static double now(void) { return seconds_by(CLOCK_MONOTONIC); }

int main(int argc, char **argv)
{
    const char *names[3] = {"MPI_Irecv", "MPI_Send", "MPI_Wait"};
    double sums[3] = {0};
    MPI_Request request;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < STEPS; step++) {
        double until = now() + 500e-6;
        while (now() < until) {
        }
        for (int message = 0; message < MESSAGES; message++) {
            double times[4] = {now()};
            MPI_Irecv(to, SIZE, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, &request);
            times[1] = now();
            MPI_Send(from, SIZE, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD);
            times[2] = now();
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            times[3] = now();
            for (int call = 0; call < 3; call++)
                sums[call] += times[call + 1] - times[call];
        }
    }
    FILE *truth = truth_of(rank);
    for (int call = 0; call < 3; call++)
        fprintf(truth, "%s %d %.9f\n", names[call], STEPS * MESSAGES, sums[call]);
    fclose(truth);
    MPI_Finalize();
    return 0;
}
