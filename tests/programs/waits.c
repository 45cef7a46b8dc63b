/* Rank 1 sends 7 messages to rank 0 before a barrier; rank 0 receives them after it. Then each writes its
 * process id into the file waits.RANK, and waits for a file called "go": at most two minutes. Then another
 * barrier.
 * Expect: 7 MPI_Send on rank 1, 7 MPI_Recv on rank 0, none of which had to wait. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { MESSAGES = 7, SECONDS = 120 };

int main(int argc, char **argv)
{
    int rank, x = 0;
    char name[32];
    FILE *file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; rank == 1 && i < MESSAGES; i++)
        MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < MESSAGES; i++)
        MPI_Recv(&x, 1, MPI_INT, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    snprintf(name, sizeof name, "waits.%d", rank);
    file = fopen(name, "w");
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    for (int i = 0; access("go", F_OK) != 0 && i < SECONDS * 100; i++)
        usleep(10000);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
