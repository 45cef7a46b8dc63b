/* A loop of nothing but short calls: 300,000 times MPI_Bcast of 8 bytes on all ranks, far too many to time each. Each
 * rank writes to truth.<rank>: "MPI_Bcast <calls> <seconds of the loop>".
 * Expect: an exact count, and a time within its error of no more than the loop took. */
#include <mpi.h>
#include <stdio.h>

enum { CALLS = 300000 };

int main(int argc, char **argv)
{
    int rank;
    double number = 1;
    char name[32];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double begin = MPI_Wtime();
    for (int i = 0; i < CALLS; i++)
        MPI_Bcast(&number, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    double took = MPI_Wtime() - begin;
    snprintf(name, sizeof name, "truth.%d", rank);
    FILE *truth = fopen(name, "w");
    fprintf(truth, "MPI_Bcast %d %.9f\n", CALLS, took);
    fclose(truth);
    MPI_Finalize();
    return 0;
}
