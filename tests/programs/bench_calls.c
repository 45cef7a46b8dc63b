/* How long calls take.
 *   usage: bench_calls receive|iprobe|barrier|pingpong|rate|comm|win [SECONDS [multiple|peruse]]
 *     receive   a receive from MPI_PROC_NULL: the cost of the call itself
 *     iprobe    an MPI_Iprobe that finds nothing
 *     barrier   a barrier; of one rank it is next to nothing
 *     pingpong  8 bytes to rank 1 and back
 *     rate      messages of 8 bytes to rank 1, which has 64 receives outstanding
 *     comm      MPI_Comm_dup, and MPI_Comm_free of what it made
 *     win       MPI_Win_allocate of 8 bytes, and MPI_Win_free
 *   multiple: with MPI_THREAD_MULTIPLE
 *   peruse: with callbacks for the events of PERUSE that do nothing
 * Expect: two numbers, the mean of the whole run and that of the best of its parts, which are ten, or
 * more where those do not take SECONDS: nanoseconds a call (a round trip, a pair of calls); of rate,
 * millions of messages a second. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTSTANDING 64

static int rank;

static void receive(long n)
{
    int x;
    for (long i = 0; i < n; i++)
        MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void iprobe(long n)
{
    int found;
    for (long i = 0; i < n; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

static void barrier(long n)
{
    for (long i = 0; i < n; i++)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void pingpong(long n)
{
    double x = 0;
    for (long i = 0; i < n; i++)
        if (rank == 0) {
            MPI_Send(&x, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&x, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&x, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&x, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
        }
}

/* n is a multiple of OUTSTANDING. */
static void rate(long n)
{
    static double x[OUTSTANDING];
    MPI_Request request[OUTSTANDING];
    for (long i = 0; i < n; i += OUTSTANDING) {
        if (rank == 0) /* no message comes unexpected */
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int j = 0; j < OUTSTANDING; j++)
            if (rank == 0)
                MPI_Isend(&x[j], 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, &request[j]);
            else
                MPI_Irecv(&x[j], 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &request[j]);
        if (rank == 1)
            MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        MPI_Waitall(OUTSTANDING, request, MPI_STATUSES_IGNORE);
    }
}

static void comm(long n)
{
    for (long i = 0; i < n; i++) {
        MPI_Comm copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Comm_free(&copy);
    }
}

static void win(long n)
{
    for (long i = 0; i < n; i++) {
        MPI_Win window;
        void *memory;
        MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
        MPI_Win_free(&window);
    }
}

/* The types of peruse.h (PERUSE 2.0, appendix A), which not every MPI has. */
typedef int empty_callback(void *, MPI_Aint, void *, void *);

static int empty(void *handle, MPI_Aint id, void *spec, void *param)
{
    (void)handle, (void)id, (void)spec, (void)param;
    return MPI_SUCCESS;
}

/* Those of which gyan makes its metrics. */
static void listen(void)
{
    static const char *const events[] = {
        "REQ_ACTIVATE", "REQ_MATCH_UNEX", "REQ_INSERT_IN_POSTED_Q", "REQ_REMOVE_FROM_POSTED_Q",
        "REQ_XFER_BEGIN", "REQ_XFER_END", "REQ_COMPLETE", "REQ_NOTIFY", "MSG_INSERT_IN_UNEX_Q",
        "MSG_REMOVE_FROM_UNEX_Q", "SEARCH_POSTED_Q_BEGIN", "SEARCH_POSTED_Q_END",
        "SEARCH_UNEX_Q_BEGIN", "SEARCH_UNEX_Q_END"};
    /* Looked up, so that the program does not refer to them. */
    int (*init)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PERUSE_Init");
    int (*query)(const char *, int *) =
        (int (*)(const char *, int *))dlsym(RTLD_DEFAULT, "PERUSE_Query_event");
    int (*add)(int, MPI_Comm, empty_callback *, void *, void **) =
        (int (*)(int, MPI_Comm, empty_callback *, void *, void **))dlsym(
            RTLD_DEFAULT, "PERUSE_Event_comm_register");
    int (*activate)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "PERUSE_Event_activate");
    if (!init || !query || !add || !activate || init()) {
        fprintf(stderr, "bench_calls: no PERUSE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        char name[64];
        int event;
        void *handle;
        snprintf(name, sizeof name, "PERUSE_COMM_%s", events[i]);
        if (query(name, &event) || add(event, MPI_COMM_WORLD, empty, NULL, &handle) ||
            activate(handle)) {
            fprintf(stderr, "bench_calls: %s failed\n", name);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
}

/* Seconds of n calls on rank 0, on every rank. */
static double timed(void (*calls)(long), long n)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double elapsed = -MPI_Wtime();
    calls(n);
    elapsed += MPI_Wtime();
    MPI_Bcast(&elapsed, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return elapsed;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*calls)(long);
    } all[] = {{"receive", receive}, {"iprobe", iprobe}, {"barrier", barrier},
               {"pingpong", pingpong}, {"rate", rate}, {"comm", comm}, {"win", win}};
    void (*calls)(long) = NULL;
    const char *more = argc > 3 ? argv[3] : "";
    int level = strcmp(more, "multiple") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, provided;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (argc > 1 && strcmp(argv[1], all[i].name) == 0)
            calls = all[i].calls;
    MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!calls || provided < level) {
        fprintf(stderr, "bench_calls: no such measurement, or no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (strcmp(more, "peruse") == 0)
        listen();
    /* As many as take a fiftieth of a second tell how many take a tenth of what is asked for. */
    double seconds = argc > 2 ? atof(argv[2]) : 1, elapsed, all_parts = 0, best = 1e9;
    long n = OUTSTANDING;
    while ((elapsed = timed(calls, n)) < 0.02)
        n *= 2;
    n = (long)(seconds / 10 / elapsed * n) / OUTSTANDING * OUTSTANDING + OUTSTANDING;
    int parts = 0;
    while (parts < 10 || all_parts < seconds) {
        elapsed = timed(calls, n);
        all_parts += elapsed;
        parts++;
        if (elapsed < best)
            best = elapsed;
    }
    double mean_ns = all_parts * 1e9 / parts / n, best_ns = best * 1e9 / n;
    if (rank == 0 && calls == rate)
        printf("%.5f %.5f\n", 1e3 / mean_ns, 1e3 / best_ns);
    else if (rank == 0)
        printf("%.4f %.4f\n", mean_ns, best_ns);
    MPI_Finalize();
    return 0;
}
