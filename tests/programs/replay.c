/* Calls of MPI_Reduce_local that take randomly drawn times: 200 ns, and one in a thousand of them
 * ten thousand times as long. The operation is the program's own and spins.
 *   usage: replay SECONDS
 * Expect: truth.0 holds "MPI_Reduce_local <calls> <seconds>", the time that the program measured
 * around all of its calls without that of reading the clock. What a preloaded tool takes of a call is
 * in it. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const double SHORT = 200e-9, LONG = 2e-3;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static void spin(void *drawn, void *unused, int *count, MPI_Datatype *type)
{
    double end = now() + *(double *)drawn;
    (void)unused, (void)count, (void)type;
    while (now() < end)
        ;
}

/* Seconds between two readings with nothing in between. */
static double reading(void)
{
    enum { READINGS = 1000000 };
    double sum = 0;
    for (int i = 0; i < READINGS; i++) {
        double begin = now();
        sum += now() - begin;
    }
    return sum / READINGS;
}

int main(int argc, char **argv)
{
    uint64_t random = 88172645463325252; /* xorshift */
    double sum = 0, unused = 0, begun, end;
    long calls = 0;
    MPI_Op op;

    MPI_Init(&argc, &argv);
    MPI_Op_create(spin, 1, &op);
    double clock = reading(), seconds = argc > 1 ? atof(argv[1]) : 1;
    for (end = begun = now(); end - begun < seconds; calls++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        double drawn = random % 1000 ? SHORT : LONG, begin = now();
        MPI_Reduce_local(&drawn, &unused, 1, MPI_DOUBLE, op);
        end = now();
        sum += end - begin - clock;
    }
    FILE *truth = fopen("truth.0", "w");
    fprintf(truth, "MPI_Reduce_local %ld %.9f\n", calls, sum);
    fclose(truth);
    MPI_Op_free(&op);
    MPI_Finalize();
    return 0;
}
