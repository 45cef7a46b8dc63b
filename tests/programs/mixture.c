/* One function whose calls take very different times: of 20,000 calls of MPI_Reduce_local nine of ten
 * add one number, the others 400,000. The program takes the time of each itself and writes to
 * truth.0: "MPI_Reduce_local <calls> <seconds>".
 * Expect: gyan's estimate is no more than that, within its standard errors. */
#include <mpi.h>
#include <stdio.h>

#include "check.h"

enum { CALLS = 20000, MANY = 400000 };

static double from[MANY], to[MANY];

static double now(void) { return seconds_by(CLOCK_MONOTONIC); }

int main(int argc, char **argv)
{
    double sum = 0;

    MPI_Init(&argc, &argv);
    for (int i = 0; i < CALLS; i++) {
        double begin = now();
        MPI_Reduce_local(from, to, i % 10 ? 1 : MANY, MPI_DOUBLE, MPI_SUM);
        sum += now() - begin;
    }
    FILE *truth = fopen("truth.0", "w");
    fprintf(truth, "MPI_Reduce_local %d %.9f\n", CALLS, sum);
    fclose(truth);
    MPI_Finalize();
    return 0;
}
