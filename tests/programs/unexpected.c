/* Receives that are called while messages wait: two ranks. For each call site rank 1 sends k messages
 * and a last one on a communicator, and then waits for rank 0, which receives none before the last has
 * arrived: messages of one rank do not overtake each other. So rank 0 knows how many wait at each
 * receive: k + 1 at the first one of a site, 2 at its last one.
 * Rank 0 writes to truth.0, for each call of a receive:
 *   <site> <MPI function> <line> <tag> <communicator> <waiting> <read>
 * <read> is what the program itself reads of the performance variable in its argument, without one -.
 * The calls are in functions of their own, called by work() and that by main(); with -DINLINED the one
 * in receive_all() is part of work().
 * Expect: <waiting> on each line; <read> the same. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 17, LAST = 18, GO = 19, MANY = 64 };

#ifdef INLINED
#define RECEIVE_ALL static inline __attribute__((always_inline)) void receive_all
#else
#define RECEIVE_ALL static __attribute__((noinline)) void receive_all
#endif
#define APART static __attribute__((noinline)) void

static int rank, values[MANY];
static FILE *truth;
static const char *variable;

/* The sum over the elements, of the communicator if the variable is bound to one. */
static long length_of(MPI_Comm comm)
{
    int n, sum = 0;
    MPI_T_pvar_get_num(&n);
    for (int i = 0; i < n; i++) {
        char name[256], description[16];
        int length = sizeof name, description_length = sizeof description;
        int verbosity, kind, bind, readonly, continuous, atomic, count = 1;
        MPI_Datatype datatype;
        MPI_T_enum enumeration;
        static unsigned long long values[MANY];
        MPI_T_pvar_session session;
        MPI_T_pvar_handle handle;
        if (MPI_T_pvar_get_info(i, name, &length, &verbosity, &kind, &datatype, &enumeration,
                                description, &description_length, &bind, &readonly, &continuous,
                                &atomic) ||
            strcmp(name, variable))
            continue;
        MPI_T_pvar_session_create(&session);
        MPI_T_pvar_handle_alloc(session, i, bind == MPI_T_BIND_MPI_COMM ? &comm : NULL, &handle,
                                &count);
        if (!continuous)
            MPI_T_pvar_start(session, handle);
        MPI_T_pvar_read(session, handle, values);
        for (int j = 0; j < count; j++)
            sum += datatype == MPI_UNSIGNED ? ((unsigned *)values)[j] : values[j];
        MPI_T_pvar_handle_free(session, &handle);
        MPI_T_pvar_session_free(&session);
        return sum;
    }
    return -1;
}

/* Before a receive that is called on this line. */
static void note(const char *site, const char *function, int line, int tag, MPI_Comm comm,
                 int waiting)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Comm_get_name(comm, name, &length);
    fprintf(truth, "%s %s %d %d %s %d ", site, function, line, tag, name, waiting);
    if (variable)
        fprintf(truth, "%ld\n", length_of(comm));
    else
        fprintf(truth, "-\n");
}
#define NOTE(function, tag, waiting) note(__func__, function, __LINE__ + 1, tag, comm, waiting)

RECEIVE_ALL(int k, MPI_Comm comm)
{
    for (int i = 0; i < k; i++) {
        NOTE("MPI_Recv", TAG, k - i + 1);
        MPI_Recv(&values[i], 1, MPI_INT, 1, TAG, comm, MPI_STATUS_IGNORE);
    }
}

APART receive_any(int k, MPI_Comm comm)
{
    MPI_Status status;
    for (int i = 0; i < k; i++) {
        NOTE("MPI_Recv", TAG, k - i + 1);
        MPI_Recv(&values[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
    }
}

APART receive_anonymous(int k, MPI_Comm comm)
{
    for (int i = 0; i < k; i++) {
        NOTE("MPI_Recv", TAG, k - i + 1);
        MPI_Recv(&values[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
    }
}

APART receive_later(int k, MPI_Comm comm)
{
    MPI_Request requests[MANY];
    for (int i = 0; i < k; i++) {
        NOTE("MPI_Irecv", TAG, k - i + 1);
        MPI_Irecv(&values[i], 1, MPI_INT, 1, TAG, comm, &requests[i]);
    }
    MPI_Waitall(k, requests, MPI_STATUSES_IGNORE);
}

APART exchange(int k, MPI_Comm comm)
{
    for (int i = 0; i < k; i++) {
        NOTE("MPI_Sendrecv", TAG, k - i + 1);
        MPI_Sendrecv(&i, 1, MPI_INT, MPI_PROC_NULL, 0, &values[i], 1, MPI_INT, 1, TAG, comm, MPI_STATUS_IGNORE);
    }
}

APART replace(int k, MPI_Comm comm)
{
    for (int i = 0; i < k; i++) {
        NOTE("MPI_Sendrecv_replace", TAG, k - i + 1);
        MPI_Sendrecv_replace(&values[i], 1, MPI_INT, MPI_PROC_NULL, 0, 1, TAG, comm, MPI_STATUS_IGNORE);
    }
}

#if MPI_VERSION >= 4
APART exchange_later(int k, MPI_Comm comm)
{
    MPI_Request requests[MANY];
    for (int i = 0; i < k; i++) {
        NOTE("MPI_Isendrecv", TAG, k - i + 1);
        MPI_Isendrecv(&rank, 1, MPI_INT, MPI_PROC_NULL, 0, &values[i], 1, MPI_INT, 1, TAG, comm, &requests[i]);
    }
    MPI_Waitall(k, requests, MPI_STATUSES_IGNORE);
}
#endif

/* The probe takes the message out of the queue, before it is received. */
APART receive_matched(int k, MPI_Comm comm)
{
    MPI_Message message;
    for (int i = 0; i < k; i++) {
        MPI_Mprobe(1, TAG, comm, &message, MPI_STATUS_IGNORE);
        NOTE("MPI_Mrecv", TAG, k - i);
        MPI_Mrecv(&values[i], 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
}

APART receive_matched_later(int k, MPI_Comm comm)
{
    MPI_Message message;
    MPI_Request requests[MANY];
    int there;
    for (int i = 0; i < k; i++) {
        MPI_Improbe(1, TAG, comm, &there, &message, MPI_STATUS_IGNORE);
        NOTE("MPI_Imrecv", TAG, k - i);
        MPI_Imrecv(&values[i], 1, MPI_INT, &message, &requests[i]);
    }
    MPI_Waitall(k, requests, MPI_STATUSES_IGNORE);
}

APART start_each(int k, MPI_Comm comm)
{
    MPI_Request requests[MANY];
    for (int i = 0; i < k; i++)
        MPI_Recv_init(&values[i], 1, MPI_INT, 1, TAG, comm, &requests[i]);
    for (int i = 0; i < k; i++) {
        NOTE("MPI_Start", TAG, k - i + 1);
        MPI_Start(&requests[i]);
    }
    MPI_Waitall(k, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < k; i++)
        MPI_Request_free(&requests[i]);
}

/* Each that is started is a receive. A send is among them, which is none. */
APART start_all(int k, MPI_Comm comm)
{
    MPI_Request requests[MANY];
    for (int i = 0; i < k; i++)
        MPI_Recv_init(&values[i], 1, MPI_INT, 1, TAG, comm, &requests[i]);
    MPI_Send_init(&rank, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &requests[k]);
    for (int i = 0; i < k; i++)
        note(__func__, "MPI_Startall", __LINE__ + 1, TAG, comm, k + 1);
    MPI_Startall(k + 1, requests);
    MPI_Waitall(k + 1, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i <= k; i++)
        MPI_Request_free(&requests[i]);
}

APART receive_last(MPI_Comm comm)
{
    NOTE("MPI_Recv", LAST, 1);
    MPI_Recv(&values[0], 1, MPI_INT, 1, LAST, comm, MPI_STATUS_IGNORE);
}

static void sends(int k, MPI_Comm comm)
{
    for (int i = 0; i < k; i++)
        MPI_Send(&i, 1, MPI_INT, 0, TAG, comm);
    MPI_Send(&k, 1, MPI_INT, 0, LAST, comm);
    MPI_Recv(&k, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void begin(MPI_Comm comm)
{
    MPI_Probe(1, LAST, comm, MPI_STATUS_IGNORE);
}

static void end(MPI_Comm comm)
{
    receive_last(comm);
    MPI_Send(&rank, 1, MPI_INT, 1, GO, MPI_COMM_WORLD);
}

static __attribute__((noinline)) void work(void (*receive)(int, MPI_Comm), int k, MPI_Comm comm)
{
    if (rank == 1) {
        sends(k, comm);
        return;
    }
    begin(comm);
    if (receive)
        receive(k, comm);
    else
        receive_all(k, comm);
    end(comm);
}

/* The same call site, reached on another way. */
static __attribute__((noinline)) void detour(int k, MPI_Comm comm)
{
    work(NULL, k, comm);
    values[0]++;
}

int main(int argc, char **argv)
{
    MPI_Comm workers;
    int provided;

    variable = argc > 1 ? argv[1] : NULL;
    if (variable)
        MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        truth = fopen("truth.0", "w");
    MPI_Comm_dup(MPI_COMM_WORLD, &workers);
    MPI_Comm_set_name(workers, "workers");
    /* Nothing of these two collectives is left. */
    MPI_Barrier(MPI_COMM_WORLD);
    work(NULL, 12, MPI_COMM_WORLD);
    detour(9, MPI_COMM_WORLD);
    work(receive_any, 5, workers);
    work(receive_anonymous, 4, workers);
    work(receive_later, 7, workers);
    work(exchange, 3, MPI_COMM_WORLD);
    work(replace, 2, MPI_COMM_WORLD);
    work(receive_matched, 4, MPI_COMM_WORLD);
    work(receive_matched_later, 5, workers);
    work(start_each, 4, workers);
    work(start_all, 6, MPI_COMM_WORLD);
#if MPI_VERSION >= 4
    work(exchange_later, 3, workers);
#endif
    if (rank == 0)
        fclose(truth);
    MPI_Comm_free(&workers);
    MPI_Finalize();
    return 0;
}
