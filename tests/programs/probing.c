/* Looks for MPI_Recv_c at run time, as mpi4py does, and calls it when it is there, MPI_Recv when not.
 * Under a preloaded profiler it finds the profiler's, whether or not the MPI has one.
 * Expect: receives 3 times and ends with code 0, with gyan as without. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, x = -1, y, i;
    MPI_Request request;
    MPI_Status status;
    int (*large)(void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    large = (int (*)(void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Status *))dlsym(
        RTLD_DEFAULT, "MPI_Recv_c");
    for (i = 0; i < 3; i++) {
        y = 10 * rank + i;
        MPI_Isend(&y, 1, MPI_INT, rank, i, MPI_COMM_WORLD, &request);
        if (large)
            large(&x, 1, MPI_INT, rank, i, MPI_COMM_WORLD, &status);
        else
            MPI_Recv(&x, 1, MPI_INT, rank, i, MPI_COMM_WORLD, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf("received %d with tag %d\n", x, status.MPI_TAG);
    }
    MPI_Finalize();
    return 0;
}
