/* MPI_Barrier and MPI_Allreduce on MPI_COMM_NULL, with an error handler that prints each error. One rank.
 * Expect: the same lines with gyan as without it: the handler is called for what the program called, and for nothing else. */
#include <mpi.h>
#include <stdio.h>

static int calls;

static void handler(MPI_Comm *comm, int *error, ...)
{
    int class;
    (void)comm;
    MPI_Error_class(*error, &class);
    printf("handler %d: class %d\n", ++calls, class);
}

int main(int argc, char **argv)
{
    MPI_Errhandler errhandler;
    int x = 0, y, barrier, allreduce;

    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler);
    MPI_Errhandler_free(&errhandler);
    barrier = MPI_Barrier(MPI_COMM_NULL);
    allreduce = MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL);
    printf("failed: %d %d, the handler was called %d times\n", barrier != 0, allreduce != 0, calls);
    MPI_Finalize();
    return 0;
}
