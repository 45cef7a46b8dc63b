/* Ranks synchronise windows, and some of them wait for others, 30 times each: on the ranks of MPI_COMM_WORLD, or with an argument in
 * reverse order. 6 times of these a rank comes late by 20 ms, without using a processor:
 *
 * MPI_Win_fence   all ranks, of which 1 is late; with a second window, and fences that assert that no epoch ends
 * MPI_Win_post    0 is the origin, 1 and, if there is one, 2 are targets; 1 posts late
 * MPI_Win_wait    0 is the target, the others are origins; 1 completes late
 *
 * Rank 0 prints how long ranks waited by definition, from CLOCK_REALTIME, which all of them share: for MPI_Win_fence the seconds of
 * all ranks together, by which their calls took longer than the shortest, for the others the rank, the one that it waited for, and
 * the seconds. An origin waits in MPI_Win_complete for a target that posts after MPI_Win_start has ended.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

#define ROUNDS 30
enum { FENCE, POST, WAIT, KINDS };
/* When one or two calls began and ended, those in which a rank waits or for which another one does. */
static double times[KINDS][ROUNDS][4];

static double now(void) { return seconds_by(CLOCK_REALTIME); }

static double waited(const double *own, double other) {
    return other > own[0] && other <= own[1] ? other - own[0] : 0;
}

/* The epoch of an origin, with its accesses. */
static void access_epoch(MPI_Group targets, const int *ranks, int n, MPI_Win win, double *own) {
    int value = 1;
    own[0] = now();
    MPI_Win_start(targets, 0, win);
    own[1] = now();
    for (int i = 0; i < n; i++)
        MPI_Put(&value, 1, MPI_INT, ranks[i], 0, 1, MPI_INT, win);
    own[2] = now();
    MPI_Win_complete(win);
    own[3] = now();
}

int main(int argc, char **argv) {
    int rank, size, place, *memory, *other_memory, others[2] = {1, 2}, first = 0;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Win win, second;
    MPI_Group all, zero, pair;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1)
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Comm_rank(comm, &place);
    int last = size > 2 ? 2 : 1;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &win);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &other_memory, &second);
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, 1, &first, &zero);
    MPI_Group_incl(all, last, others, &pair);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2)
            MPI_Win_fence(MPI_MODE_NOPRECEDE, second);
        MPI_Barrier(comm);
        if (i % 5 == 3 && place == 1)
            usleep(20000);
        if (i % 2)
            MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, second);
        times[FENCE][i][0] = now();
        MPI_Win_fence(0, i % 2 ? second : win);
        times[FENCE][i][1] = now();
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, second);
    for (int i = 0; i < ROUNDS; i++) {
        double *own = times[POST][i];
        MPI_Barrier(comm);
        if (i % 5 == 3 && place == 1)
            usleep(20000);
        if (place == 0) {
            access_epoch(pair, others, last, win, own);
        } else if (place <= last) {
            own[0] = now();
            MPI_Win_post(zero, 0, win);
            MPI_Win_wait(win);
        }
    }
    for (int i = 0; i < ROUNDS; i++) {
        double *own = times[WAIT][i];
        MPI_Barrier(comm);
        if (place == 0) {
            MPI_Win_post(pair, 0, second);
            own[0] = now();
            MPI_Win_wait(second);
            own[1] = now();
        } else if (place <= last) {
            if (i % 5 == 3 && place == 1)
                usleep(20000);
            access_epoch(zero, &first, 1, second, own);
        }
    }
    /* In the order of the communicator. */
    double(*of_ranks)[KINDS][ROUNDS][4] = malloc(size * sizeof times);
    MPI_Allgather(times, sizeof times, MPI_BYTE, of_ranks, sizeof times, MPI_BYTE, comm);
    double fence = 0, seconds[KINDS][3] = {{0}};
    for (int i = 0; i < ROUNDS; i++) {
        double sum = 0, least = 1e9;
        for (int r = 0; r < size; r++) {
            double took = of_ranks[r][FENCE][i][1] - of_ranks[r][FENCE][i][0];
            sum += took;
            least = took < least ? took : least;
        }
        fence += sum - size * least;
        for (int kind = POST; kind <= WAIT; kind++) {
            const double *own = of_ranks[0][kind][i];
            double of[3] = {0};
            for (int r = 1; r <= last; r++) {
                const double *other = of_ranks[r][kind][i];
                of[r] = kind == POST ? waited(own, other[0]) + waited(own + 2, other[0]) : waited(own, other[2]);
            }
            int longest = of[1] >= of[2] ? 1 : 2;
            seconds[kind][longest] += of[longest];
        }
    }
    if (rank == 0) {
        printf("fence %.6f\n", fence);
        for (int kind = POST; kind <= WAIT; kind++)
            for (int r = 1; r <= last; r++)
                printf("%s %d %d %.6f\n", kind == POST ? "post" : "complete", argc > 1 ? size - 1 : 0,
                       argc > 1 ? size - 1 - r : r, seconds[kind][r]);
    }
    MPI_Group_free(&pair);
    MPI_Group_free(&zero);
    MPI_Group_free(&all);
    MPI_Win_free(&second);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
