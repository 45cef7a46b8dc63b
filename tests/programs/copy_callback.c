/* An attribute of MPI_COMM_WORLD with a copy callback, which MPI calls when the communicator is duplicated.
 * Expect: "copied" once for each rank, for its own MPI_Comm_dup. */
#include <mpi.h>
#include <stdio.h>

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)extra, (void)in, (void)out;
    puts("copied");
    *flag = 0;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int keyval;
    MPI_Comm comm;

    MPI_Init(&argc, &argv);
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
