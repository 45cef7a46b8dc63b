/* Posted receives and unexpected messages of each peer, as in PERUSE 2.0, 9.1.4: three ranks or more,
 * callbacks where either queue grows and shrinks. Peers are ranks of MPI_COMM_WORLD in every
 * communicator; a receive from MPI_ANY_SOURCE is posted under "any". Lengths are those after each
 * insertion, over all communicators.
 * No collective is under way while they wait.
 * Writes to truth.RANK "<traffic> peer <peer> posted <n> <max> <mean> unexpected <n> <max> <mean>".
 * Expect: of the program's own messages, from rank p to rank r of n,
 *   unexpected  p * 3 + r + 1, and 2 more to itself; the longest p * 3 + r + 1 (2 at least)
 *   posted      p + 2 * r + 1, and 1 more to itself; the longest p + 2 * r + 1
 *   any         4, and the longest 4. */
#include "peruse_own.h"

enum { INSERT_POSTED, REMOVE_POSTED, INSERT_UNEX, REMOVE_UNEX, EVENTS };
static const char *const names[EVENTS] = {
    "PERUSE_COMM_REQ_INSERT_IN_POSTED_Q",
    "PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q",
    "PERUSE_COMM_MSG_INSERT_IN_UNEX_Q",
    "PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q",
};

enum { SIZE = 3000, MANY = 128 };

/* The last is for MPI_ANY_SOURCE. */
static struct {
    measure posted, unexpected;
} peers[TRAFFICS][MOST_RANKS + 1];

static int callback(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    const community *in = param;
    int peer = spec->peer == MPI_ANY_SOURCE ? MOST_RANKS : in->in_world[spec->peer];
    measure *posted = &peers[traffic(spec)][peer].posted;
    measure *unexpected = &peers[traffic(spec)][peer].unexpected;

    switch (which(handle)) {
    case INSERT_POSTED:
        longer(posted);
        break;
    case REMOVE_POSTED:
        shorter(posted);
        break;
    case INSERT_UNEX:
        longer(unexpected);
        break;
    case REMOVE_UNEX:
        shorter(unexpected);
        break;
    }
    return MPI_SUCCESS;
}

static int unexpected_of(int from, int to)
{
    return from * 3 + to + 1;
}

static int posted_of(int from, int to)
{
    return from + 2 * to + 1;
}

static int length_of(int i)
{
    return i % 3 ? i : SIZE;
}

/* All are sent before any is received: by turns on two communicators of opposite order. */
static void unexpected_ones(MPI_Comm comm, MPI_Comm reverse)
{
    static int out[SIZE], in[SIZE];
    MPI_Request requests[MANY];
    int n = 0;

    for (int to = 0; to < ranks; to++)
        for (int i = 0; i < unexpected_of(rank, to); i++)
            MPI_Isend(out, length_of(i), MPI_INT, i % 2 ? to : ranks - 1 - to, i,
                      i % 2 ? comm : reverse, &requests[n++]);
    for (int from = 0; from < ranks; from++)
        for (int i = unexpected_of(from, rank) - 1; i >= 0 && i >= unexpected_of(from, rank) - 2; i--)
            arrived(i % 2 ? from : ranks - 1 - from, i, i % 2 ? comm : reverse);
    for (int from = 0; from < ranks; from++)
        for (int i = unexpected_of(from, rank) - 1; i >= 0; i--)
            MPI_Recv(in, SIZE, MPI_INT, i % 2 ? from : ranks - 1 - from, i, i % 2 ? comm : reverse,
                     MPI_STATUS_IGNORE);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    together();
}

/* All are posted before any is sent. */
static void expected_ones(MPI_Comm comm, MPI_Comm reverse)
{
    static int out[SIZE], in[MANY][SIZE];
    MPI_Request requests[MANY];
    int n = 0, m = 0;

    for (int from = 0; from < ranks; from++)
        for (int i = 0; i < posted_of(from, rank); i++, n++)
            MPI_Irecv(in[n], SIZE, MPI_INT, i % 2 ? ranks - 1 - from : from, i, i % 2 ? reverse : comm,
                      &requests[n]);
    together();
    for (int to = 0; to < ranks; to++)
        for (int i = 0; i < posted_of(rank, to); i++)
            MPI_Isend(out, length_of(i), MPI_INT, i % 2 ? ranks - 1 - to : to, i,
                      i % 2 ? reverse : comm, &requests[n + m++]);
    MPI_Waitall(n + m, requests, MPI_STATUSES_IGNORE);
    together();
}

/* From anybody, with any tag; the next rank sends. */
static void anybodys(MPI_Comm comm)
{
    int x[4];
    MPI_Request requests[4];
    for (int i = 0; i < 4; i++)
        MPI_Irecv(&x[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[i]);
    together();
    for (int i = 0; i < 4; i++)
        MPI_Send(&i, 1, MPI_INT, (rank + 1) % ranks, i, comm);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    together();
}

static void to_myself(void)
{
    static int out[SIZE], in[SIZE];
    MPI_Request requests[2];
    MPI_Sendrecv(out, 1, MPI_INT, rank, 0, in, 1, MPI_INT, rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Isend(out, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, SIZE, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Recv(in, SIZE, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(in, SIZE, MPI_INT, rank, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static double mean(const measure *measure)
{
    return measure->n ? measure->sum / measure->n : 0.0;
}

static void write_all(void)
{
    for (int i = 0; i < TRAFFICS; i++)
        for (int peer = 0; peer <= MOST_RANKS; peer++) {
            const measure *posted = &peers[i][peer].posted;
            const measure *unexpected = &peers[i][peer].unexpected;
            char name[16] = "any";
            if (peer < MOST_RANKS)
                snprintf(name, sizeof name, "%d", peer);
            if (posted->n || unexpected->n)
                fprintf(truth, "%s peer %s posted %ld %.0f %.9f unexpected %ld %.0f %.9f\n",
                        traffic_names[i], name, posted->n, posted->max, mean(posted), unexpected->n,
                        unexpected->max, mean(unexpected));
        }
}

int main(int argc, char **argv)
{
    MPI_Comm copy, reverse;

    start(&argc, &argv, names, EVENTS, callback);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    watch(copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reverse);
    watch(reverse);
    together();
    unexpected_ones(copy, reverse);
    expected_ones(MPI_COMM_WORLD, reverse);
    anybodys(copy);
    to_myself();
    together();
    unwatch(copy);
    unwatch(reverse);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&reverse);
    end(write_all);
    return 0;
}
