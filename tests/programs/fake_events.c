/* A program for the MPI library of tests/fakempi, on one rank. Arguments: barriers, k and, optionally, d.
 * It calls MPI_Barrier so often on MPI_COMM_WORLD. Then it sends itself k messages with tags 100, 101, ...
 * that no receive waits for, and receives them last first; and as many again whose receives are posted.
 * With d it makes a communicator "twin", calls MPI_Barrier twice on it, sends itself d unexpected messages
 * there and receives them, and frees it.
 * It writes the sum of what it received to stdout. Expect: it is the same with gyan. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MANY = 1024, FIRST = 100 };

static int received;

static void unexpected(MPI_Comm comm, int k)
{
    for (int i = 0; i < k; i++)
        MPI_Send(&i, 1, MPI_INT, 0, FIRST + i, comm);
    for (int i = k - 1; i >= 0; i--) {
        int value = -1;
        MPI_Recv(&value, 1, MPI_INT, i % 2 ? 0 : MPI_ANY_SOURCE, FIRST + i, comm, MPI_STATUS_IGNORE);
        received += value + 1;
    }
}

static void expected(MPI_Comm comm, int k)
{
    int values[MANY];
    MPI_Request requests[MANY];
    for (int i = 0; i < k; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, 0, MPI_ANY_TAG, comm, &requests[i]);
    for (int i = 0; i < k; i++)
        MPI_Send(&i, 1, MPI_INT, 0, i, comm);
    MPI_Waitall(k, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < k; i++)
        received += values[i] + 1;
}

int main(int argc, char **argv)
{
    int barriers = atoi(argv[1]), k = atoi(argv[2]), d = argc > 3 ? atoi(argv[3]) : -1;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < barriers; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    unexpected(MPI_COMM_WORLD, k);
    expected(MPI_COMM_WORLD, k);
    if (d >= 0) {
        MPI_Comm twin;
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        MPI_Comm_set_name(twin, "twin");
        MPI_Barrier(twin);
        MPI_Barrier(twin);
        unexpected(twin, d);
        MPI_Comm_free(&twin);
    }
    printf("received %d\n", received);
    MPI_Finalize();
    return 0;
}
