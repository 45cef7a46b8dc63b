/* A loop of nothing but short calls: short_loop [NAME [CALLS]], by default 300,000 times MPI_Bcast of 8 bytes on all
 * ranks, far too many to time each. Each rank writes to truth.<rank>: "<function> <calls> <seconds of the loop>".
 * Expect: an exact count, and a time within its error of no more than the loop took. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define WORLD MPI_COMM_WORLD

static int rank, size, flag;
static double in[64], out[64];
static int counts[64], places[64];
static MPI_Request request, requests[3];

static void bcast(void) { MPI_Bcast(in, 1, MPI_DOUBLE, 0, WORLD); }
static void reduce(void) { MPI_Reduce(in, out, 1, MPI_DOUBLE, MPI_SUM, 0, WORLD); }
static void allreduce(void) { MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_SUM, WORLD); }
static void barrier(void) { MPI_Barrier(WORLD); }
static void gather(void) { MPI_Gather(in, 1, MPI_DOUBLE, out, 1, MPI_DOUBLE, 0, WORLD); }
static void allgather(void) { MPI_Allgather(in, 1, MPI_DOUBLE, out, 1, MPI_DOUBLE, WORLD); }
static void alltoall(void) { MPI_Alltoall(in, 1, MPI_DOUBLE, out, 1, MPI_DOUBLE, WORLD); }
static void alltoallv(void)
{
    MPI_Alltoallv(in, counts, places, MPI_DOUBLE, out, counts, places, MPI_DOUBLE, WORLD);
}
static void scan(void) { MPI_Scan(in, out, 1, MPI_DOUBLE, MPI_SUM, WORLD); }
static void sendrecv(void)
{
    MPI_Sendrecv(in, 1, MPI_DOUBLE, rank ^ 1, 1, out, 1, MPI_DOUBLE, rank ^ 1, 1, WORLD, MPI_STATUS_IGNORE);
}
static void iprobe(void) { MPI_Iprobe(MPI_ANY_SOURCE, 2, WORLD, &flag, MPI_STATUS_IGNORE); }
static void test(void) { MPI_Test(&request, &flag, MPI_STATUS_IGNORE); }
static void testany(void)
{
    int index;
    MPI_Testany(3, requests, &index, &flag, MPI_STATUS_IGNORE);
}
static void comm_rank(void) { MPI_Comm_rank(WORLD, &rank); }

static const struct {
    const char *name, *function;
    void (*call)(void);
} LOOPS[] = {
    {"bcast", "MPI_Bcast", bcast},
    {"reduce", "MPI_Reduce", reduce},
    {"allreduce", "MPI_Allreduce", allreduce},
    {"barrier", "MPI_Barrier", barrier},
    {"gather", "MPI_Gather", gather},
    {"allgather", "MPI_Allgather", allgather},
    {"alltoall", "MPI_Alltoall", alltoall},
    {"alltoallv", "MPI_Alltoallv", alltoallv},
    {"scan", "MPI_Scan", scan},
    {"sendrecv", "MPI_Sendrecv", sendrecv},
    {"iprobe", "MPI_Iprobe", iprobe},
    {"test", "MPI_Test", test},
    {"testany", "MPI_Testany", testany},
    {"comm_rank", "MPI_Comm_rank", comm_rank},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "bcast";
    int calls = argc > 2 ? atoi(argv[2]) : 300000;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    for (int other = 0; other < size && other < 64; other++) {
        counts[other] = 1;
        places[other] = other;
    }
    MPI_Irecv(out, 1, MPI_DOUBLE, rank, 3, WORLD, &request);
    for (int at = 0; at < 3; at++)
        MPI_Irecv(out + 1 + at, 1, MPI_DOUBLE, rank, 4 + at, WORLD, requests + at);
    for (unsigned at = 0; at < sizeof LOOPS / sizeof *LOOPS; at++) {
        if (strcmp(LOOPS[at].name, name))
            continue;
        double begin = MPI_Wtime();
        for (int call = 0; call < calls; call++)
            LOOPS[at].call();
        double took = MPI_Wtime() - begin;
        FILE *truth = truth_of(rank);
        fprintf(truth, "%s %d %.9f\n", LOOPS[at].function, calls, took);
        fclose(truth);
    }
    for (int at = 0; at < 4; at++)
        MPI_Send(in, 1, MPI_DOUBLE, rank, 3 + at, WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Finalize();
    return 0;
}
