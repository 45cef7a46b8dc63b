/* Calls every receive of the standard that this MPI has, each a known number of times that depends
 * on the rank, and writes what it did to the file truth.<rank>, a line each: "<function> <n>".
 * Expect: the `calls` of each profile equal these lines exactly. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

static FILE *truth;

static void did(const char *function, int n)
{
    fprintf(truth, "%s %d\n", function, n);
}

int main(int argc, char **argv)
{
    int rank, size, i, x = 0, y = 0;
    MPI_Request request[2];
    MPI_Message message;
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    truth = truth_of(rank);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;

    for (i = 0; i < 3 + rank; i++) /* MPI_PROC_NULL: nothing to match */
        MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Isend(&rank, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &request[0]);
    MPI_Recv(&x, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &status);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    did("MPI_Recv", 4 + rank);

    for (i = 0; i < 5; i++) {
        MPI_Irecv(&x, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &request[0]);
        MPI_Isend(&rank, 1, MPI_INT, right, 2, MPI_COMM_WORLD, &request[1]);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    }
    did("MPI_Irecv", 5);

    for (i = 0; i < 2; i++) {
        MPI_Isend(&rank, 1, MPI_INT, right, 3, MPI_COMM_WORLD, &request[0]);
        MPI_Mprobe(left, 3, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(&x, 1, MPI_INT, &message, &status);
        MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    }
    did("MPI_Mrecv", 2);

    MPI_Isend(&rank, 1, MPI_INT, right, 4, MPI_COMM_WORLD, &request[0]);
    MPI_Mprobe(left, 4, MPI_COMM_WORLD, &message, &status);
    MPI_Imrecv(&x, 1, MPI_INT, &message, &request[1]);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    did("MPI_Imrecv", 1);

    for (i = 0; i < 7; i++)
        MPI_Sendrecv(&rank, 1, MPI_INT, right, 5, &x, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &status);
    did("MPI_Sendrecv", 7);

    for (i = 0; i < 3; i++) {
        y = rank;
        MPI_Sendrecv_replace(&y, 1, MPI_INT, right, 6, left, 6, MPI_COMM_WORLD, &status);
    }
    did("MPI_Sendrecv_replace", 3);

    MPI_Recv_init(&x, 1, MPI_INT, left, 7, MPI_COMM_WORLD, &request[0]);
    for (i = 0; i < 4; i++) {
        MPI_Start(&request[0]);
        MPI_Send(&rank, 1, MPI_INT, right, 7, MPI_COMM_WORLD);
        MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request[0]);
    did("MPI_Recv_init", 1);

#if MPI_VERSION >= 4
    MPI_Isendrecv(&rank, 1, MPI_INT, right, 8, &x, 1, MPI_INT, left, 8, MPI_COMM_WORLD, &request[0]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    did("MPI_Isendrecv", 1);

    y = rank;
    MPI_Isendrecv_replace(&y, 1, MPI_INT, right, 9, left, 9, MPI_COMM_WORLD, &request[0]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    did("MPI_Isendrecv_replace", 1);

    MPI_Recv_c(&x, (MPI_Count)1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    MPI_Recv_c(&x, (MPI_Count)1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    did("MPI_Recv_c", 2);

    MPI_Irecv_c(&x, (MPI_Count)1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request[0]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    did("MPI_Irecv_c", 1);

    MPI_Isend(&rank, 1, MPI_INT, right, 10, MPI_COMM_WORLD, &request[0]);
    MPI_Mprobe(left, 10, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv_c(&x, (MPI_Count)1, MPI_INT, &message, &status);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    did("MPI_Mrecv_c", 1);

    MPI_Isend(&rank, 1, MPI_INT, right, 11, MPI_COMM_WORLD, &request[0]);
    MPI_Mprobe(left, 11, MPI_COMM_WORLD, &message, &status);
    MPI_Imrecv_c(&x, (MPI_Count)1, MPI_INT, &message, &request[1]);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    did("MPI_Imrecv_c", 1);

    MPI_Sendrecv_c(&rank, (MPI_Count)1, MPI_INT, right, 12, &x, (MPI_Count)1, MPI_INT, left, 12,
                   MPI_COMM_WORLD, &status);
    did("MPI_Sendrecv_c", 1);

    MPI_Sendrecv_replace_c(&y, (MPI_Count)1, MPI_INT, right, 13, left, 13, MPI_COMM_WORLD, &status);
    did("MPI_Sendrecv_replace_c", 1);

    MPI_Isendrecv_c(&rank, (MPI_Count)1, MPI_INT, right, 14, &x, (MPI_Count)1, MPI_INT, left, 14,
                    MPI_COMM_WORLD, &request[0]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    did("MPI_Isendrecv_c", 1);

    MPI_Isendrecv_replace_c(&y, (MPI_Count)1, MPI_INT, right, 15, left, 15, MPI_COMM_WORLD,
                            &request[0]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    did("MPI_Isendrecv_replace_c", 1);

    MPI_Recv_init_c(&x, (MPI_Count)1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request[0]);
    MPI_Request_free(&request[0]);
    did("MPI_Recv_init_c", 1);

    /* MPICH's device ch3 has the symbol and dies in it: no partitioned communication there. */
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    if (!strstr(version, "ch3")) {
        MPI_Precv_init(&x, 1, (MPI_Count)1, MPI_INT, left, 16, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request[0]);
        MPI_Psend_init(&rank, 1, (MPI_Count)1, MPI_INT, right, 16, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request[1]);
        MPI_Startall(2, request);
        MPI_Pready(0, request[1]);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        MPI_Request_free(&request[0]);
        MPI_Request_free(&request[1]);
        did("MPI_Precv_init", 1);
    }
#endif

    did("MPI_Init", 1);
    did("MPI_Finalize", 1);
    fclose(truth);
    printf("rank %d has %d from the left\n", rank, x);
    MPI_Finalize();
    return 0;
}
