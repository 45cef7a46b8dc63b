/* One rank, the last one, comes late to some synchronising collectives: it sleeps a known time before them. On
 * MPI_COMM_WORLD, a duplicate of it, halves of it by even and odd ranks, three duplicates that are freed one after the
 * other, and an intercommunicator. Each rank writes a line to truth.<rank> for each call that is compared:
 *   "<function> <communicator> <begun> <ended>"   in ns of the clock that all processes of a host share
 * Arguments: how many calls of each kind (30), how many seconds the last rank sleeps before each tenth of them (0.02),
 * and "kill" for a last rank that ends by SIGKILL in the end.
 * Expect: what the others waited for the last rank by these times; without gyan the same. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static FILE *truth;
static int rank, size, last;
static double delay_s;

static void be_late(void)
{
    struct timespec time = {(time_t)delay_s, (long)((delay_s - (time_t)delay_s) * 1e9)};
    while (nanosleep(&time, &time) != 0)
        ;
}

static long long now(void) { return nanoseconds_by(CLOCK_MONOTONIC); }

static void call(int which, MPI_Comm comm, int *in, int *out)
{
    switch (which) {
    case 0:
        MPI_Barrier(comm);
        break;
    case 1:
        MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, comm);
        break;
    case 2:
        MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, comm);
        break;
    case 3:
        MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, comm);
        break;
    default:
        MPI_Reduce_scatter_block(in, out, 1, MPI_INT, MPI_SUM, comm);
        break;
    }
}

static const char *const names[] = {"MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall",
                                    "MPI_Reduce_scatter_block"};

/* Calls, of which each tenth finds the last rank late. */
static void calls(int which, MPI_Comm comm, const char *name, int n, int is_late)
{
    int in[64] = {0}, out[64];
    long long *times = malloc(2 * n * sizeof *times);
    for (int i = 0; i < n; i++) {
        if (is_late && rank == last && i % 10 == 5)
            be_late();
        times[2 * i] = now();
        call(which, comm, in, out);
        times[2 * i + 1] = now();
    }
    for (int i = 0; i < n; i++)
        fprintf(truth, "%s %s %lld %lld\n", names[which], name, times[2 * i], times[2 * i + 1]);
    free(times);
}

int main(int argc, char **argv)
{
    MPI_Comm twin, half, inter;

    MPI_Init(&argc, &argv);
    int n = argc > 1 ? atoi(argv[1]) : 30;
    delay_s = argc > 2 ? atof(argv[2]) : 0.02;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    last = size - 1;
    truth = truth_of(rank);

    for (int which = 0; which < 5; which++)
        calls(which, MPI_COMM_WORLD, "MPI_COMM_WORLD", n, 1);

    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_set_name(twin, "twin");
    calls(1, twin, "twin", n, 1);

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_name(half, rank % 2 == last % 2 ? "late-half" : "other-half");
    calls(0, half, rank % 2 == last % 2 ? "late-half" : "other-half", n, rank % 2 == last % 2);

    /* Made and freed: a library gives the handle to the next one. None of them is used on one rank only. */
    for (int i = 0; i < 3; i++) {
        MPI_Comm again;
        MPI_Comm_dup(MPI_COMM_WORLD, &again);
        MPI_Comm_set_name(again, i == 0 ? "first" : i == 1 ? "second" : "third");
        calls(0, again, i == 0 ? "first" : i == 1 ? "second" : "third", n, i == 1);
        MPI_Comm_free(&again);
    }

    /* Not compared: two groups, and one rank only. */
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &inter);
    for (int i = 0; i < n; i++) {
        MPI_Barrier(inter);
        MPI_Barrier(MPI_COMM_SELF);
    }
    fclose(truth);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    MPI_Comm_free(&twin);
    if (argc > 3 && strcmp(argv[3], "kill") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == last)
            raise(SIGKILL);
        sleep(60); /* Until the launcher ends it. */
    }
    MPI_Finalize();
    return 0;
}
