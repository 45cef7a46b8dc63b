/* Reads every performance variable itself, after MPI_Init and before MPI_Finalize, with collectives
 * in between, and writes for each element "<name> <class> <element> <start> <end>" to truth.<rank>.
 * Knows nothing of gyan; variables bound to a communicator are bound to MPI_COMM_WORLD, others
 * that bind to an object are left out, and so are those that are dangerous to touch.
 * Expect: the profile's start, end and delta equal these lines. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MAX 512

static char name[MAX][256];
static int class[MAX], count[MAX], taken[MAX];
static MPI_Datatype type[MAX];
static MPI_T_pvar_handle handle[MAX];
static char *start[MAX], *end[MAX];
static MPI_Comm world;
static FILE *truth;

static const char *class_name(int class)
{
    switch (class) {
    case MPI_T_PVAR_CLASS_STATE: return "STATE";
    case MPI_T_PVAR_CLASS_LEVEL: return "LEVEL";
    case MPI_T_PVAR_CLASS_SIZE: return "SIZE";
    case MPI_T_PVAR_CLASS_PERCENTAGE: return "PERCENTAGE";
    case MPI_T_PVAR_CLASS_HIGHWATERMARK: return "HIGHWATERMARK";
    case MPI_T_PVAR_CLASS_LOWWATERMARK: return "LOWWATERMARK";
    case MPI_T_PVAR_CLASS_COUNTER: return "COUNTER";
    case MPI_T_PVAR_CLASS_AGGREGATE: return "AGGREGATE";
    case MPI_T_PVAR_CLASS_TIMER: return "TIMER";
    default: return "GENERIC";
    }
}

static void print(MPI_Datatype type, const char *value, int element)
{
    if (type == MPI_DOUBLE)
        fprintf(truth, " %.17g", ((const double *)value)[element]);
    else if (type == MPI_INT)
        fprintf(truth, " %d", ((const int *)value)[element]);
    else if (type == MPI_UNSIGNED)
        fprintf(truth, " %u", ((const unsigned *)value)[element]);
    else
        fprintf(truth, " %llu", ((const unsigned long long *)value)[element]);
}

int main(int argc, char **argv)
{
    int provided, rank, size, i, e, num, value = 1, sum;
    MPI_T_pvar_session session;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    truth = truth_of(rank);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_num(&num);
    for (i = 0; i < num && i < MAX; i++) {
        int length = sizeof name[i], verbosity, bind, readonly, continuous, atomic;
        MPI_T_enum enumtype;
        if (MPI_T_pvar_get_info(i, name[i], &length, &verbosity, &class[i], &type[i], &enumtype,
                                NULL, NULL, &bind, &readonly, &continuous, &atomic))
            continue;
        if (bind != MPI_T_BIND_NO_OBJECT && bind != MPI_T_BIND_MPI_COMM)
            continue;
        if (type[i] == MPI_CHAR || strstr(name[i], "flush"))
            continue;
        count[i] = 1;
        if (MPI_T_pvar_handle_alloc(session, i, bind == MPI_T_BIND_MPI_COMM ? &world : NULL,
                                    &handle[i], &count[i]))
            continue;
        if (!continuous)
            MPI_T_pvar_start(session, handle[i]);
        start[i] = calloc(count[i] + 1, 8);
        end[i] = calloc(count[i] + 1, 8);
        MPI_T_pvar_read(session, handle[i], start[i]);
        taken[i] = 1;
    }

    for (i = 0; i < 25 + 5 * rank; i++)
        MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, world, MPI_STATUS_IGNORE);
    for (i = 0; i < 10; i++)
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, world);
    for (i = 0; i < 3; i++)
        MPI_Bcast(&value, 1, MPI_INT, 0, world);
    MPI_Barrier(world);

    for (i = 0; i < num && i < MAX; i++)
        if (taken[i])
            MPI_T_pvar_read(session, handle[i], end[i]);
    for (i = 0; i < num && i < MAX; i++) {
        if (!taken[i])
            continue;
        for (e = 0; e < count[i]; e++) {
            fprintf(truth, "%s %s %d", name[i], class_name(class[i]), e);
            print(type[i], start[i], e);
            print(type[i], end[i], e);
            fprintf(truth, "\n");
        }
        MPI_T_pvar_handle_free(session, &handle[i]);
    }
    fclose(truth);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
