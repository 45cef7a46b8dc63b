/* All metrics of the profiler of PERUSE 2.0, 9.2, and the time in the posted queue: three ranks or
 * more. A time is taken when both of its ends were seen since the request was activated; a length
 * after each insertion, over all communicators. Where the specification's profiler takes the place of
 * MPI_Comm_dup and its kin, this program calls its profiler itself: it leaves those names to gyan.
 * Writes to truth.RANK "<traffic> <metric> <n> <max> <mean>", times in seconds. */
#include "peruse_own.h"

enum {
    ACTIVATE,
    MATCH_UNEX,
    INSERT_POSTED,
    REMOVE_POSTED,
    XFER_BEGIN,
    XFER_END,
    COMPLETE,
    NOTIFY,
    INSERT_UNEX,
    REMOVE_UNEX,
    EVENTS
};
static const char *const names[EVENTS] = {
    "PERUSE_COMM_REQ_ACTIVATE",
    "PERUSE_COMM_REQ_MATCH_UNEX",
    "PERUSE_COMM_REQ_INSERT_IN_POSTED_Q",
    "PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q",
    "PERUSE_COMM_REQ_XFER_BEGIN",
    "PERUSE_COMM_REQ_XFER_END",
    "PERUSE_COMM_REQ_COMPLETE",
    "PERUSE_COMM_REQ_NOTIFY",
    "PERUSE_COMM_MSG_INSERT_IN_UNEX_Q",
    "PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q",
};

enum {
    T_REQ_ACTIVATE_TO_MATCH,
    T_REQ_ACTIVATE_TO_XFER_BEGIN,
    T_XFER_BEGIN_TO_END,
    T_COMPLETE_TO_NOTIFY,
    T_ACTIVATE_TO_NOTIFY,
    T_IN_POSTED_Q,
    T_IN_UNEX_Q,
    N_POSTED_Q_LEN,
    N_UNEX_Q_LEN,
    METRICS
};
static const char *const metric_names[METRICS] = {
    "T_REQ_ACTIVATE_TO_MATCH", "T_REQ_ACTIVATE_TO_XFER_BEGIN", "T_XFER_BEGIN_TO_END",
    "T_COMPLETE_TO_NOTIFY",    "T_ACTIVATE_TO_NOTIFY",         "T_IN_POSTED_Q",
    "T_IN_UNEX_Q",             "N_POSTED_Q_LEN",               "N_UNEX_Q_LEN",
};
static measure metrics[TRAFFICS][METRICS];

/* The first and the second event of each time of a request. */
static const struct {
    int metric, from, to;
} intervals[] = {
    {T_REQ_ACTIVATE_TO_MATCH, ACTIVATE, MATCH_UNEX},
    {T_REQ_ACTIVATE_TO_XFER_BEGIN, ACTIVATE, XFER_BEGIN},
    {T_XFER_BEGIN_TO_END, XFER_BEGIN, XFER_END},
    {T_COMPLETE_TO_NOTIFY, COMPLETE, NOTIFY},
    {T_ACTIVATE_TO_NOTIFY, ACTIVATE, NOTIFY},
    {T_IN_POSTED_Q, INSERT_POSTED, REMOVE_POSTED},
};
enum { INTERVALS = sizeof intervals / sizeof *intervals };

/* When what happened to a request since it was activated; negative is not yet: MPI_Wtime of Open MPI
 * begins at 0. */
typedef struct {
    MPI_Aint id;
    double at[EVENTS];
} request;
static request requests[MOST_REQUESTS];
static int known;

static struct {
    MPI_Comm comm;
    int peer, tag;
    double since;
} waiting[MOST_REQUESTS];
static int waits;

static void forget(request *request)
{
    for (int i = 0; i < EVENTS; i++)
        request->at[i] = -1;
}

static request *request_of(MPI_Aint id)
{
    int i = 0;
    while (i < known && requests[i].id != id)
        i++;
    if (i == known) {
        must(known < MOST_REQUESTS, "too many requests");
        forget(&requests[known]);
        requests[known++].id = id;
    }
    return &requests[i];
}

static void unexpected(int event, const peruse_comm_spec_t *spec, measure *metric, double now)
{
    int i = 0;
    if (event == INSERT_UNEX) {
        waiting[waits].comm = spec->comm;
        waiting[waits].peer = spec->peer;
        waiting[waits].tag = spec->tag;
        waiting[waits++].since = now;
        longer(&metric[N_UNEX_Q_LEN]);
        return;
    }
    shorter(&metric[N_UNEX_Q_LEN]);
    while (i < waits && (waiting[i].comm != spec->comm || waiting[i].peer != spec->peer ||
                         waiting[i].tag != spec->tag))
        i++;
    if (i < waits) {
        took(&metric[T_IN_UNEX_Q], now - waiting[i].since);
        memmove(&waiting[i], &waiting[i + 1], (--waits - i) * sizeof *waiting);
    }
}

static int callback(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    int event = which(handle);
    measure *metric = metrics[traffic(spec)];
    double now = MPI_Wtime();

    if (event == INSERT_UNEX || event == REMOVE_UNEX) {
        unexpected(event, spec, metric, now);
        return MPI_SUCCESS;
    }
    request *request = request_of(id);
    if (event == ACTIVATE)
        forget(request);
    if (event == INSERT_POSTED)
        longer(&metric[N_POSTED_Q_LEN]);
    if (event == REMOVE_POSTED)
        shorter(&metric[N_POSTED_Q_LEN]);
    for (int i = 0; i < INTERVALS; i++)
        if (event == intervals[i].to && request->at[intervals[i].from] >= 0)
            took(&metric[intervals[i].metric], now - request->at[intervals[i].from]);
    request->at[event] = now;
    return MPI_SUCCESS;
}

/* 0 bytes; up to 256, which Open MPI sends without a request; eager ones; a rendezvous; a pipeline. */
static const int sizes[] = {0, 1, 63, 64, 65, 500, 1000, 2000, 30000, 300000};
enum { SIZES = sizeof sizes / sizeof *sizes, LARGE = 300000, MOST = 64 };
static int out[LARGE], in[MOST][LARGE];

/* Each rank sends to each other one, and all has arrived before anything is received: blocking, with
 * MPI_ANY_SOURCE, with MPI_ANY_TAG, and the last first. */
static void late_receivers(MPI_Comm comm)
{
    MPI_Request requests[MOST];
    int me, n = 0, sum;

    MPI_Comm_rank(comm, &me);
    for (int to = 0; to < ranks; to++)
        for (int i = 0; i < SIZES; i++)
            if (to != me)
                MPI_Isend(out, sizes[i], MPI_INT, to, i, comm, &requests[n++]);
    for (int from = 0; from < ranks; from++)
        if (from != me)
            arrived(from, SIZES - 1, comm);
    together();
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    together();
    for (int i = SIZES - 1; i >= 0; i--)
        for (int from = 0; from < ranks - 1; from++)
            MPI_Recv(in[0], LARGE, MPI_INT, i % 2 ? MPI_ANY_SOURCE : (me + 1 + from) % ranks,
                     i ? i : MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    together();
}

/* All receives are posted before anything is sent, and noticed by MPI_Waitany. */
static void late_senders(MPI_Comm comm)
{
    MPI_Request requests[MOST];
    int me, n = 0, index;

    MPI_Comm_rank(comm, &me);
    for (int from = 0; from < ranks; from++)
        for (int i = 0; i < SIZES; i++)
            if (from != me) {
                MPI_Irecv(in[n], LARGE, MPI_INT, i % 2 ? from : MPI_ANY_SOURCE, i % 3 ? i : i + 100,
                          comm, &requests[n]);
                n++;
            }
    together();
    for (int to = 0; to < ranks; to++)
        for (int i = 0; i < SIZES; i++)
            if (to != me)
                MPI_Send(out, sizes[i], MPI_INT, to, i % 3 ? i : i + 100, comm);
    for (int i = 0; i < n; i++)
        MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
    together();
}

/* A synchronous send ends when it is received. The message is there before, so that a receive by
 * MPI_Sendrecv finds it. */
static void synchronous(MPI_Comm comm)
{
    MPI_Request request;
    int me, x = 0;

    MPI_Comm_rank(comm, &me);
    MPI_Issend(out, 1, MPI_INT, (me + 1) % ranks, 50, comm, &request);
    arrived((me + ranks - 1) % ranks, 50, comm);
    together();
    MPI_Sendrecv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, in[0], 1, MPI_INT,
                 (me + ranks - 1) % ranks, 50, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    together();
}

static void to_myself(MPI_Comm comm)
{
    int me;
    MPI_Request requests[SIZES];
    MPI_Comm_rank(comm, &me);
    for (int i = 0; i < SIZES; i++)
        MPI_Isend(out, sizes[i], MPI_INT, me, 7, comm, &requests[i]);
    for (int i = 0; i < SIZES; i++)
        MPI_Recv(in[0], LARGE, MPI_INT, me, 7, comm, MPI_STATUS_IGNORE);
    MPI_Waitall(SIZES, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < SIZES; i++)
        MPI_Sendrecv(out, sizes[i], MPI_INT, me, 8, in[0], LARGE, MPI_INT, me, 8, comm,
                     MPI_STATUS_IGNORE);
}

/* It leaves the posted queue without a message. */
static void cancelled(MPI_Comm comm)
{
    MPI_Request request;
    MPI_Irecv(in[0], 1, MPI_INT, MPI_ANY_SOURCE, 99, comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Messages of the library itself. */
static void collectives(MPI_Comm comm)
{
    MPI_Allgather(out, 200, MPI_INT, in[0], 200, MPI_INT, comm);
    MPI_Bcast(out, 20000, MPI_INT, 0, comm);
    MPI_Reduce(out, in[0], 2000, MPI_INT, MPI_SUM, 0, comm);
    together();
}

static void write_all(void)
{
    for (int i = 0; i < TRAFFICS; i++)
        for (int j = 0; j < METRICS; j++)
            write_measure(traffic_names[i], metric_names[j], &metrics[i][j]);
}

int main(int argc, char **argv)
{
    MPI_Comm copy, reverse;

    start(&argc, &argv, names, EVENTS, callback);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    watch(copy);
    together();
    late_receivers(copy);
    collectives(copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reverse);
    watch(reverse);
    together();
    late_senders(MPI_COMM_WORLD);
    late_senders(reverse);
    synchronous(reverse);
    to_myself(MPI_COMM_WORLD);
    to_myself(reverse);
    cancelled(copy);
    /* What is freed may lie where something new will be. */
    unwatch(copy);
    MPI_Comm_free(&copy);
    MPI_Comm_dup(reverse, &copy);
    watch(copy);
    together();
    late_receivers(copy);
    together();
    unwatch(copy);
    unwatch(reverse);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&reverse);
    end(write_all);
    return 0;
}
