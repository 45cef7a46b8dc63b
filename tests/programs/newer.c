/* Calls a function of MPI 4 in any MPI: where the library lacks it, the dynamic loader ends the
 * program at the call (code 127). Build with lazy binding and undefined symbols allowed.
 * Expect: the same code and the same last line on stderr with gyan as without. */
#include <mpi.h>
#include <stdio.h>

int MPI_Recv_c(void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

int main(int argc, char **argv)
{
    int x = 0;
    MPI_Init(&argc, &argv);
    printf("before\n");
    fflush(stdout);
    MPI_Recv_c(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("after\n");
    MPI_Finalize();
    return 0;
}
