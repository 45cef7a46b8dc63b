/* How long MPI_Init and MPI_Finalize take, and how much memory is resident after each. With any
 * argument the program itself initialises MPI_T before and finalises it at the end.
 *   prints: milliseconds in both, kibibytes after MPI_Init, kibibytes after MPI_Finalize */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

static double now(void) { return 1e3 * seconds_by(CLOCK_MONOTONIC); }

static long resident(void)
{
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "VmRSS:", 6) == 0)
            sscanf(line + 6, "%ld", &kib);
    if (status)
        fclose(status);
    return kib;
}

int main(int argc, char **argv)
{
    double start = now(), elapsed;
    long after_init;
    int provided;
    if (argc > 1)
        MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    MPI_Init(&argc, &argv);
    elapsed = now() - start;
    after_init = resident();
    start = now();
    if (argc > 1)
        MPI_T_finalize();
    MPI_Finalize();
    elapsed += now() - start;
    printf("%.4f %ld %ld\n", elapsed, after_init, resident());
    return 0;
}
