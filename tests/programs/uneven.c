/* Ranks that do not reach their end together: rank RANK, or ranks RANK-RANK, do something else first.
 *   uneven RANK sleep MILLISECONDS   reaches MPI_Finalize this much later than the others
 *   uneven RANK exit CODE            leaves by exit(CODE), without MPI_Finalize
 *   uneven RANK abort CODE           calls MPI_Abort(CODE) half a second later
 * Before that each rank but 0 sends a message to rank 0, and all take part in a nonblocking reduction: the first
 * collective operation of the program is right.
 * Expect: "sum N" on rank 0, N being 0 + 1 + ... of all ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, x, sum = -1, first, last;
    MPI_Request request;

    if (argc < 4)
        return 2;
    if (sscanf(argv[1], "%d-%d", &first, &last) < 2)
        last = first = atoi(argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank > 0)
        MPI_Send(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    for (int i = 1; rank == 0 && i < size; i++)
        MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0)
        printf("sum %d\n", sum);
    fflush(stdout);
    if (first <= rank && rank <= last) {
        int number = atoi(argv[3]);
        if (strcmp(argv[2], "sleep") == 0)
            usleep(1000 * number);
        if (strcmp(argv[2], "exit") == 0)
            exit(number);
        if (strcmp(argv[2], "abort") == 0) {
            usleep(500000);
            MPI_Abort(MPI_COMM_WORLD, number);
        }
    }
    MPI_Finalize();
    return 0;
}
