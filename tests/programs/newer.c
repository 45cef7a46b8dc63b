/* Calls a function of MPI 4 that has no twin in MPI 3: where the library lacks it, the dynamic loader
 * ends the program at the call (code 127). Link it, with lazy binding, with a library that has it.
 * Expect: the same code and the same last line on stderr with gyan as without. */
#include <mpi.h>
#include <stdio.h>

int MPI_Isendrecv_replace(void *, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request *);

int main(int argc, char **argv)
{
    int x = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    printf("before\n");
    fflush(stdout);
    MPI_Isendrecv_replace(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
    printf("after\n");
    MPI_Finalize();
    return 0;
}
