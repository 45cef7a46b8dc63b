/* Ranks call collectives in which some of them wait for some others, 200 times each: on MPI_COMM_WORLD, or with an argument on a
 * communicator with the ranks in reverse order. 20 times of these one rank comes late by 50 ms, without using a processor:
 *
 * MPI_Bcast, MPI_Scatter   the root, which is rank 1
 * MPI_Reduce, MPI_Gather   rank 0; the root is rank 1
 * MPI_Scan                 the first one of the communicator
 *
 * Rank 0 prints how long ranks waited by definition, from CLOCK_REALTIME, which all of them share: the function and
 * the seconds of all ranks together.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 200
enum { BCAST, SCATTER, REDUCE, GATHER, SCAN, KINDS };
static const char *const names[] = {"MPI_Bcast", "MPI_Scatter", "MPI_Reduce", "MPI_Gather", "MPI_Scan"};
/* When the calls began and ended. */
static double times[KINDS][ROUNDS][2];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

/* How long a rank that is in a call from `of[0]` to `of[1]` waits for one that begins it at `other`. */
static double waited(const double *of, double other) {
    double until = other < of[1] ? other : of[1];
    return until > of[0] ? until - of[0] : 0;
}

int main(int argc, char **argv) {
    int rank, size, place;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1)
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Comm_rank(comm, &place);
    int root = argc > 1 ? size - 1 - 1 : 1;
    int own = 1, *all = calloc(size, sizeof *all);
    for (int kind = 0; kind < KINDS; kind++) {
        int late = kind <= SCATTER ? rank == 1 : kind == SCAN ? place == 0 : rank == 0;
        for (int i = 0; i < ROUNDS; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (late && i % 10 == 7)
                usleep(50000);
            times[kind][i][0] = now();
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
            times[kind][i][1] = now();
        }
    }
    /* In the order of the communicator. */
    double(*of_ranks)[KINDS][ROUNDS][2] = malloc(size * sizeof times);
    MPI_Allgather(times, sizeof times, MPI_BYTE, of_ranks, sizeof times, MPI_BYTE, comm);
    for (int kind = 0; kind < KINDS && rank == 0; kind++) {
        double seconds = 0;
        for (int i = 0; i < ROUNDS; i++) {
            double before = 0, others = 0;
            for (int r = 0; r < size; r++) {
                const double *of = of_ranks[r][kind][i];
                if (kind <= SCATTER)
                    seconds += waited(of, of_ranks[root][kind][i][0]);
                if (kind == SCAN && r > 0)
                    seconds += waited(of, before);
                before = of[0] > before ? of[0] : before;
                if (r != root && of[0] > others)
                    others = of[0];
            }
            if (kind == REDUCE || kind == GATHER)
                seconds += waited(of_ranks[root][kind][i], others);
        }
        printf("%s %.6f\n", names[kind], seconds);
    }
    MPI_Finalize();
    return 0;
}
