/* Ranks call collectives in which they wait for others, 100 times each: on MPI_COMM_WORLD, or with `reverse` on a communicator
 * with the ranks in reverse order. 10 times of these one rank comes late by 50 ms, without using a processor:
 *
 * MPI_Bcast, MPI_Scatter     the root, which is rank 1
 * MPI_Reduce, MPI_Gather     rank 0; the root is rank 1
 * MPI_Scan                   the first one of the communicator
 * MPI_Allreduce, MPI_Barrier rank 0, with `nonblocking` only
 *
 * With `nonblocking` these are the forms that only start it, followed by MPI_Wait in turn with MPI_Waitall, in which the others wait.
 * With MPI_Bcast and MPI_Allreduce, ranks that are not late work for 10 ms in between.
 *
 * Rank 0 prints how long ranks waited by definition, from CLOCK_REALTIME, which all of them share: the function and
 * the seconds of all ranks together.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#define ROUNDS 100
enum { BCAST, SCATTER, REDUCE, GATHER, SCAN, ALLREDUCE, BARRIER, KINDS };
static const char *const names[2][KINDS] = {
    {"MPI_Bcast", "MPI_Scatter", "MPI_Reduce", "MPI_Gather", "MPI_Scan", "MPI_Allreduce", "MPI_Barrier"},
    {"MPI_Ibcast", "MPI_Iscatter", "MPI_Ireduce", "MPI_Igather", "MPI_Iscan", "MPI_Iallreduce", "MPI_Ibarrier"},
};
/* When the calls began, when ranks began to wait in them or in those that complete them, and when these ended. */
static double times[KINDS][ROUNDS][3];

static double now(void) { return seconds_by(CLOCK_REALTIME); }

/* How long a rank that waits from `of[1]` to `of[2]` waits for one that begins at `other`. */
static double waited(const double *of, double other) {
    double until = other < of[2] ? other : of[2];
    return until > of[1] ? until - of[1] : 0;
}

static int own = 1, *all;

static void call(int kind, int root, MPI_Comm comm) {
    switch (kind) {
    case BCAST:
        MPI_Bcast(&own, 1, MPI_INT, root, comm);
        break;
    case SCATTER:
        MPI_Scatter(all, 1, MPI_INT, &own, 1, MPI_INT, root, comm);
        break;
    case REDUCE:
        MPI_Reduce(&own, all, 1, MPI_INT, MPI_SUM, root, comm);
        break;
    case GATHER:
        MPI_Gather(&own, 1, MPI_INT, all, 1, MPI_INT, root, comm);
        break;
    case SCAN:
        MPI_Scan(&own, all, 1, MPI_INT, MPI_SUM, comm);
        break;
    }
}

static void start(int kind, int root, MPI_Comm comm, MPI_Request *request) {
    switch (kind) {
    case BCAST:
        MPI_Ibcast(&own, 1, MPI_INT, root, comm, request);
        break;
    case SCATTER:
        MPI_Iscatter(all, 1, MPI_INT, &own, 1, MPI_INT, root, comm, request);
        break;
    case REDUCE:
        MPI_Ireduce(&own, all, 1, MPI_INT, MPI_SUM, root, comm, request);
        break;
    case GATHER:
        MPI_Igather(&own, 1, MPI_INT, all, 1, MPI_INT, root, comm, request);
        break;
    case SCAN:
        MPI_Iscan(&own, all, 1, MPI_INT, MPI_SUM, comm, request);
        break;
    case ALLREDUCE:
        MPI_Iallreduce(&own, all, 1, MPI_INT, MPI_SUM, comm, request);
        break;
    case BARRIER:
        MPI_Ibarrier(comm, request);
        break;
    }
}

int main(int argc, char **argv) {
    int rank, size, place, reverse = 0, nonblocking = 0;
    MPI_Comm comm = MPI_COMM_WORLD;
    for (int i = 1; i < argc; i++) {
        reverse |= !strcmp(argv[i], "reverse");
        nonblocking |= !strcmp(argv[i], "nonblocking");
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (reverse)
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Comm_rank(comm, &place);
    int root = reverse ? size - 1 - 1 : 1;
    int kinds = nonblocking ? KINDS : ALLREDUCE;
    all = calloc(size, sizeof *all);
    for (int kind = 0; kind < kinds; kind++) {
        int late = kind <= SCATTER ? rank == 1 : kind == SCAN ? place == 0 : rank == 0;
        for (int i = 0; i < ROUNDS; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (late && i % 10 == 7)
                usleep(50000);
            double *of = times[kind][i];
            of[0] = of[1] = now();
            if (nonblocking) {
                MPI_Request request;
                MPI_Status status;
                start(kind, root, comm, &request);
                if (!late && i % 10 == 7 && (kind == BCAST || kind == ALLREDUCE))
                    usleep(10000);
                of[1] = now();
                if (i % 20 == 7)
                    MPI_Wait(&request, MPI_STATUS_IGNORE);
                else
                    MPI_Waitall(1, &request, &status);
            } else {
                call(kind, root, comm);
            }
            of[2] = now();
        }
    }
    /* In the order of the communicator. */
    double(*of_ranks)[KINDS][ROUNDS][3] = malloc(size * sizeof times);
    MPI_Allgather(times, sizeof times, MPI_BYTE, of_ranks, sizeof times, MPI_BYTE, comm);
    for (int kind = 0; kind < kinds && rank == 0; kind++) {
        double seconds = 0;
        for (int i = 0; i < ROUNDS; i++) {
            double before = 0, others = 0, last = 0;
            for (int r = 0; r < size; r++) {
                double begun = of_ranks[r][kind][i][0];
                last = begun > last ? begun : last;
            }
            for (int r = 0; r < size; r++) {
                const double *of = of_ranks[r][kind][i];
                if (kind <= SCATTER)
                    seconds += waited(of, of_ranks[root][kind][i][0]);
                if (kind == SCAN && r > 0)
                    seconds += waited(of, before);
                if (kind >= ALLREDUCE)
                    seconds += waited(of, last);
                before = of[0] > before ? of[0] : before;
                if (r != root && of[0] > others)
                    others = of[0];
            }
            if (kind == REDUCE || kind == GATHER)
                seconds += waited(of_ranks[root][kind][i], others);
        }
        printf("%s %.6f\n", names[nonblocking][kind], seconds);
    }
    MPI_Finalize();
    return 0;
}
