/* How long messages wait in the unexpected queue, as in PERUSE 2.0, 9.1.2: two ranks, callbacks at the
 * insertion into the queue and at the removal. Messages of the same communicator, peer and tag leave
 * it in the order in which they came; the events of Open MPI have no other identity.
 * Writes to truth.RANK "<traffic> T_IN_UNEX_Q <n> <max> <mean>", in seconds.
 * Expect: of the program's own messages 66 on rank 0 and 3 on rank 1, one of them for 20 ms or more. */
#include "peruse_own.h"

enum { INSERT, REMOVE, EVENTS };
static const char *const names[EVENTS] = {
    "PERUSE_COMM_MSG_INSERT_IN_UNEX_Q",
    "PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q",
};

enum { MANY = 100, SIZE = 160, LARGE = 100000 };

static struct {
    MPI_Comm comm;
    int peer, tag;
    double since;
} waiting[MOST_REQUESTS];
static int waits;
static measure in_unex_q[TRAFFICS];

static int callback(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    int i = 0;
    if (which(handle) == INSERT) {
        waiting[waits].comm = spec->comm;
        waiting[waits].peer = spec->peer;
        waiting[waits].tag = spec->tag;
        waiting[waits++].since = MPI_Wtime();
        return MPI_SUCCESS;
    }
    while (i < waits && (waiting[i].comm != spec->comm || waiting[i].peer != spec->peer ||
                         waiting[i].tag != spec->tag))
        i++;
    if (i < waits) {
        took(&in_unex_q[traffic(spec)], MPI_Wtime() - waiting[i].since);
        memmove(&waiting[i], &waiting[i + 1], (--waits - i) * sizeof *waiting);
    }
    return MPI_SUCCESS;
}

/* 51 of 100 messages are there when the receives are posted, 49 are sent afterwards. */
static void halves(void)
{
    static int messages[MANY][SIZE];
    MPI_Request requests[MANY];
    int early = MANY / 2 + 1;

    if (rank == 1)
        for (int i = 0; i < early; i++)
            MPI_Send(messages[i], SIZE, MPI_INT, 0, 0, MPI_COMM_WORLD);
    all_arrived(MPI_COMM_WORLD);
    if (rank == 0) {
        double end = MPI_Wtime() + 0.02;
        while (MPI_Wtime() < end)
            ;
        for (int i = 0; i < MANY; i++)
            MPI_Irecv(messages[i], SIZE, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        for (int i = early; i < MANY; i++)
            MPI_Send(messages[i], SIZE, MPI_INT, 0, 0, MPI_COMM_WORLD);
    else
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* From nothing to a rendezvous, received by whoever and whatever comes. */
static void sizes(MPI_Comm comm)
{
    static const int of[] = {0, 1, 64, 65, 1000, 6000, LARGE};
    enum { N = sizeof of / sizeof *of };
    static int out[N][LARGE], in[LARGE];
    MPI_Request requests[N];

    for (int i = 0; i < N && rank == 1; i++)
        MPI_Isend(out[i], of[i], MPI_INT, 0, 10 + i, comm, &requests[i]);
    all_arrived(comm);
    if (rank == 0)
        for (int i = 0; i < N; i++)
            MPI_Recv(in, LARGE, MPI_INT, i % 2 ? MPI_ANY_SOURCE : 1, i < N / 2 ? MPI_ANY_TAG : 10 + i,
                     comm, MPI_STATUS_IGNORE);
    else
        MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The last comes out first, with collectives in between. Ranks are the other way round here. */
static void backwards(MPI_Comm comm)
{
    int x = rank, sum;
    if (rank == 1)
        for (int i = 0; i < 5; i++)
            MPI_Send(&x, 1, MPI_INT, 1, i, comm);
    all_arrived(comm);
    for (int i = 4; i >= 0; i--) {
        if (rank == 0)
            MPI_Recv(&x, 1, MPI_INT, 0, i, comm, MPI_STATUS_IGNORE);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    }
}

static void to_myself(void)
{
    static int out[LARGE], in[LARGE];
    static const int of[] = {1, 1000, LARGE};
    MPI_Request requests[3];
    for (int i = 0; i < 3; i++)
        MPI_Isend(out, of[i], MPI_INT, rank, 20, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 3; i++)
        MPI_Recv(in, LARGE, MPI_INT, rank, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

static void write_all(void)
{
    for (int i = 0; i < TRAFFICS; i++)
        write_measure(traffic_names[i], "T_IN_UNEX_Q", &in_unex_q[i]);
}

int main(int argc, char **argv)
{
    MPI_Comm copy, reverse;

    start(&argc, &argv, names, EVENTS, callback);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    watch(copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reverse);
    watch(reverse);
    MPI_Barrier(MPI_COMM_WORLD);
    halves();
    sizes(copy);
    backwards(reverse);
    to_myself();
    MPI_Barrier(MPI_COMM_WORLD);
    unwatch(copy);
    unwatch(reverse);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&reverse);
    end(write_all);
    return 0;
}
