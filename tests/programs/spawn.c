/* Spawns itself: twice two children with the argument "child" from two parents. Each child receives
 * one integer.
 * Expect: three runs of two ranks each, none mixed with another; the profile of a child counts one
 * MPI_Recv, that of a parent none. */
#include <mpi.h>
#include <stddef.h>

int main(int argc, char **argv)
{
    int rank, i, x = 0;
    MPI_Comm parent, children[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        char *arguments[] = {"child", NULL};
        for (i = 0; i < 2; i++)
            MPI_Comm_spawn(argv[0], arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children[i],
                           MPI_ERRCODES_IGNORE);
        /* MPICH 5 fails to connect to children that have ended, so they wait for this. */
        for (i = 0; i < 2; i++) {
            MPI_Bcast(&x, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, children[i]);
            MPI_Comm_disconnect(&children[i]);
        }
    } else {
        if (rank == 0)
            MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&x, 1, MPI_INT, rank == 0 ? MPI_PROC_NULL : 0, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Bcast(&x, 1, MPI_INT, 0, parent);
        MPI_Comm_disconnect(&parent);
    }
    MPI_Finalize();
    return 0;
}
