/* How long MPI searches its queues, as in PERUSE 2.0, 9.1.3: two ranks, callbacks at the beginning and
 * the end of each search. A message that comes in is looked for in the posted queue, a receive that
 * starts in the unexpected queue; so does a probe, which has no end when it finds its message.
 * Writes to truth.RANK "<traffic> <metric> <n> <max> <mean>", in seconds.
 * Expect: of the program's own messages, on rank 0 T_SEARCH_POSTED_Q 139 and T_SEARCH_UNEX_Q 142, on
 * rank 1 2 and 2. */
#include "peruse_own.h"

enum { POSTED_BEGIN, POSTED_END, UNEX_BEGIN, UNEX_END, EVENTS };
static const char *const names[EVENTS] = {
    "PERUSE_COMM_SEARCH_POSTED_Q_BEGIN",
    "PERUSE_COMM_SEARCH_POSTED_Q_END",
    "PERUSE_COMM_SEARCH_UNEX_Q_BEGIN",
    "PERUSE_COMM_SEARCH_UNEX_Q_END",
};

enum { MANY = 100, SIZE = 160, LAST = 98 };

/* One search at a time: this program has one thread. */
static double posted_since, unex_since;
static measure posted[TRAFFICS], unex[TRAFFICS];

static int callback(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    switch (which(handle)) {
    case POSTED_BEGIN:
        posted_since = MPI_Wtime();
        break;
    case POSTED_END:
        took(&posted[traffic(spec)], MPI_Wtime() - posted_since);
        break;
    case UNEX_BEGIN:
        unex_since = MPI_Wtime();
        break;
    case UNEX_END:
        took(&unex[traffic(spec)], MPI_Wtime() - unex_since);
        break;
    }
    return MPI_SUCCESS;
}

/* 26 of 100 messages are there when the receives are posted. */
static void quarters(MPI_Comm comm)
{
    static int messages[MANY][SIZE];
    MPI_Request requests[MANY];
    int early = MANY / 4 + 1;

    if (rank == 1)
        for (int i = 0; i < early; i++)
            MPI_Send(messages[i], SIZE, MPI_INT, 0, 0, comm);
    all_arrived(comm);
    for (int i = 0; i < MANY && rank == 0; i++)
        MPI_Irecv(messages[i], SIZE, MPI_INT, 1, 0, comm, &requests[i]);
    MPI_Barrier(comm);
    if (rank == 1)
        for (int i = early; i < MANY; i++)
            MPI_Send(messages[i], SIZE, MPI_INT, 0, 0, comm);
    else
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A persistent request searches each time that it is started. */
static void persistent(MPI_Comm comm)
{
    int x[4];
    MPI_Request requests[4];
    for (int i = 0; i < 4 && rank == 0; i++)
        MPI_Recv_init(&x[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[i]);
    for (int round = 0; round < 9; round++) {
        if (rank == 0)
            MPI_Startall(4, requests);
        MPI_Barrier(comm);
        if (rank == 1)
            for (int i = 0; i < 4; i++)
                MPI_Send(&i, 1, MPI_INT, 0, i, comm);
        else
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(comm);
    }
    for (int i = 0; i < 4 && rank == 0; i++)
        MPI_Request_free(&requests[i]);
}

/* Three probes that find nothing, two that do. */
static void probes(MPI_Comm comm)
{
    int x = 0, there;
    if (rank == 1) {
        MPI_Send(&x, 1, MPI_INT, 0, 1, comm);
        MPI_Send(&x, 1, MPI_INT, 0, 2, comm);
    }
    all_arrived(comm);
    if (rank == 0) {
        for (int i = 0; i < 3; i++)
            MPI_Iprobe(1, NEVER, comm, &there, MPI_STATUS_IGNORE);
        MPI_Probe(1, 2, comm, MPI_STATUS_IGNORE);
        MPI_Iprobe(1, 1, comm, &there, MPI_STATUS_IGNORE);
        must(there, "the message is not there");
        MPI_Recv(&x, 1, MPI_INT, 1, 2, comm, MPI_STATUS_IGNORE);
        MPI_Recv(&x, 1, MPI_INT, 1, 1, comm, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void write_all(void)
{
    for (int i = 0; i < TRAFFICS; i++) {
        write_measure(traffic_names[i], "T_SEARCH_POSTED_Q", &posted[i]);
        write_measure(traffic_names[i], "T_SEARCH_UNEX_Q", &unex[i]);
    }
}

int main(int argc, char **argv)
{
    int x = 0, y;
    MPI_Comm copy;

    start(&argc, &argv, names, EVENTS, callback);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    watch(copy);
    MPI_Barrier(MPI_COMM_WORLD);
    quarters(MPI_COMM_WORLD);
    persistent(copy);
    probes(copy);
    /* The receive is posted before the message to itself is sent. */
    MPI_Sendrecv(&x, 1, MPI_INT, rank, 3, &y, 1, MPI_INT, rank, 3, copy, MPI_STATUS_IGNORE);
    if (rank == 0)
        MPI_Send(&x, 1, MPI_INT, 1, LAST, copy);
    else
        MPI_Recv(&x, 1, MPI_INT, 0, LAST, copy, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    unwatch(copy);
    MPI_Comm_free(&copy);
    end(write_all);
    return 0;
}
