/* A queue that is full at first and then empty: rank 1 sends 5 messages, rank 0 probes for a tag that
 * nobody sends for 300 ms, receives them, and probes for 900 ms more.
 * Expect, of the length of the unexpected queue on rank 0: 5 early in the run, 0 late. */
#include <mpi.h>

enum { MESSAGES = 5, NEVER = 100 };

static void look(double seconds)
{
    double end = MPI_Wtime() + seconds;
    int there;
    while (MPI_Wtime() < end)
        MPI_Iprobe(MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, x;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1)
        for (int i = 0; i < MESSAGES; i++)
            MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        look(0.3);
        for (int i = 0; i < MESSAGES; i++)
            MPI_Recv(&x, 1, MPI_INT, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        look(0.9);
        MPI_Send(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        /* It sends nothing more: that would be in the queue. */
        MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
