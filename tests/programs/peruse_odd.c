/* What makes the lengths of queues drift when events are believed one by one, seen in Open MPI 4.1: a
 * message that a matched probe takes leaves the unexpected queue without an event; a blocking probe
 * leaves the posted queue with an event, and entered it without; a receive that is freed is noticed
 * before it leaves the posted queue; a persistent one is activated once. Two ranks. Argument: plain.
 * Expect: of the program's own messages on rank 0, the longest unexpected queue 6; of posted receives
 * 21 insertions, the longest queue 7, and 21 removals. */
#include "peruse_own.h"

/* The sender gives the other rank time to be inside of its probe; what is expected is so anyway. */
static void take_a_while(void)
{
    double end = MPI_Wtime() + 0.05;
    while (MPI_Wtime() < end)
        ;
}

static void send(int n, MPI_Comm comm)
{
    for (int i = 0; i < n && rank == 1; i++)
        MPI_Send(&i, 1, MPI_INT, 0, i, comm);
}

static void matched_probes(MPI_Comm comm)
{
    MPI_Message message;
    int x, there;
    send(4, comm);
    all_arrived(comm);
    for (int i = 0; i < 4 && rank == 0; i++) {
        if (i % 2)
            MPI_Mprobe(1, i, comm, &message, MPI_STATUS_IGNORE);
        else
            MPI_Improbe(MPI_ANY_SOURCE, i, comm, &there, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&x, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
}

static void blocking_probes(MPI_Comm comm)
{
    MPI_Message message;
    int x;
    for (int i = 0; i < 2; i++) {
        MPI_Barrier(comm);
        if (rank == 1) {
            take_a_while();
            send(1, comm);
        } else if (i) {
            MPI_Mprobe(1, 0, comm, &message, MPI_STATUS_IGNORE);
            MPI_Mrecv(&x, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        } else {
            MPI_Probe(1, 0, comm, MPI_STATUS_IGNORE);
            MPI_Recv(&x, 1, MPI_INT, 1, 0, comm, MPI_STATUS_IGNORE);
        }
    }
}

static void freed(MPI_Comm comm)
{
    static int x[2];
    MPI_Request request;
    for (int i = 0; i < 2 && rank == 0; i++) {
        MPI_Irecv(&x[i], 1, MPI_INT, 1, i, comm, &request);
        MPI_Request_free(&request);
    }
    MPI_Barrier(comm);
    send(2, comm);
    all_arrived(comm);
}

static void persistent(MPI_Comm comm)
{
    int x[3];
    MPI_Request requests[3];
    for (int i = 0; i < 3 && rank == 0; i++)
        MPI_Recv_init(&x[i], 1, MPI_INT, 1, i, comm, &requests[i]);
    for (int round = 0; round < 4; round++) {
        if (rank == 0)
            MPI_Startall(3, requests);
        MPI_Barrier(comm);
        send(3, comm);
        if (rank == 0)
            MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(comm);
    }
    for (int i = 0; i < 3 && rank == 0; i++)
        MPI_Request_free(&requests[i]);
}

static void usual(MPI_Comm comm)
{
    int x[7];
    MPI_Request requests[7];
    send(6, comm);
    all_arrived(comm);
    for (int i = 0; i < 6 && rank == 0; i++)
        MPI_Recv(&x[i], 1, MPI_INT, 1, i, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < 7 && rank == 0; i++)
        MPI_Irecv(&x[i], 1, MPI_INT, 1, i, comm, &requests[i]);
    MPI_Barrier(comm);
    send(7, comm);
    if (rank == 0)
        MPI_Waitall(7, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    start(&argc, &argv, NULL, 0, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    matched_probes(MPI_COMM_WORLD);
    blocking_probes(MPI_COMM_WORLD);
    freed(MPI_COMM_WORLD);
    persistent(MPI_COMM_WORLD);
    usual(MPI_COMM_WORLD);
    end(NULL);
    return 0;
}
