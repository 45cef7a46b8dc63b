/* Queues of a known length on rank 0. Arguments: k, m and names of performance variables.
 * Rank 1 sends k messages with k tags before rank 0 receives any: after the barrier they have arrived,
 * and for 300 ms rank 0 does nothing but probe for a tag that nobody sends. It receives them last first.
 * Then rank 0 posts m receives, probes as long again, and only then asks rank 1 to send.
 * Rank 0 reads the variables by MPI_T itself, while each queue is full, and writes to truth.0, a line
 * each: "unexpected <variable> <largest element>", "posted <variable> <largest element>".
 * Expect: the largest sample of the length of the unexpected queue is k, of the posted queue m. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEVER = 30000, GO = 30001, MANY = 1024 };

static FILE *truth;
static int variables;
static char **variable;

static unsigned long long largest(const void *values, int count, MPI_Datatype datatype)
{
    unsigned long long most = 0;
    for (int i = 0; i < count; i++) {
        unsigned long long value =
            datatype == MPI_UNSIGNED ? ((const unsigned *)values)[i] :
            datatype == MPI_UNSIGNED_LONG_LONG ? ((const unsigned long long *)values)[i] :
            ((const unsigned long *)values)[i];
        if (value > most)
            most = value;
    }
    return most;
}

static void read_variable(const char *what, const char *wanted)
{
    int n;
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
        MPI_Comm world = MPI_COMM_WORLD;
        if (MPI_T_pvar_get_info(i, name, &length, &verbosity, &kind, &datatype, &enumeration,
                                description, &description_length, &bind, &readonly, &continuous,
                                &atomic) ||
            strcmp(name, wanted))
            continue;
        MPI_T_pvar_session_create(&session);
        MPI_T_pvar_handle_alloc(session, i, bind == MPI_T_BIND_MPI_COMM ? &world : NULL, &handle,
                                &count);
        if (!continuous)
            MPI_T_pvar_start(session, handle);
        MPI_T_pvar_read(session, handle, values);
        fprintf(truth, "%s %s %llu\n", what, name, largest(values, count, datatype));
        MPI_T_pvar_handle_free(session, &handle);
        MPI_T_pvar_session_free(&session);
        return;
    }
}

/* Calls MPI for a while, with nothing happening to the queues. */
static void look(const char *what)
{
    double end = MPI_Wtime() + 0.3;
    int there;
    while (MPI_Wtime() < end)
        MPI_Iprobe(1, NEVER, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    for (int i = 0; i < variables; i++)
        read_variable(what, variable[i]);
}

int main(int argc, char **argv)
{
    int rank, provided, x = 0, k = atoi(argv[1]), m = atoi(argv[2]);
    int values[MANY];
    MPI_Request requests[MANY];

    variables = argc - 3;
    variable = argv + 3;
    if (variables)
        MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    if (rank == 1)
        for (int i = 0; i < k; i++)
            MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        truth = fopen("truth.0", "w");
        look("unexpected");
        for (int i = k - 1; i >= 0; i--)
            MPI_Recv(&x, 1, MPI_INT, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < m; i++)
            MPI_Irecv(&values[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
        look("posted");
        MPI_Send(&x, 1, MPI_INT, 1, GO, MPI_COMM_WORLD);
        MPI_Waitall(m, requests, MPI_STATUSES_IGNORE);
        fclose(truth);
    } else if (rank == 1) {
        /* No second barrier: its message would be one more that is unexpected. */
        MPI_Recv(&x, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < m; i++)
            MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
