/* Ranks lock a window of rank 0 with an exclusive lock (MPI 4.1, 12.5.3) 40 times, and wait for each other. In each epoch a rank draws a
 * number from a counter in that window, so the numbers say who had the lock before whom. 8 times rank 1 sleeps 20 ms in its epoch
 * after it has flushed, and the others ask for the lock meanwhile. Rank 0 is in MPI_Barrier, so that it makes progress.
 *
 * With the argument "unlock" nobody flushes, and rank 1 sleeps after MPI_Win_lock: a library that acquires the lock later keeps nobody
 * waiting then. With the argument "apart" each rank locks the window of another one, and nobody waits.
 *
 * Rank 0 prints how long ranks waited for each other, from CLOCK_MONOTONIC and the numbers: in MPI_Win_lock, in the flush or in
 * MPI_Win_unlock until those with a lower number had returned from MPI_Win_unlock, or had called it, if they returned after that
 * call. Then, how long the calls took in which that cannot be seen without the numbers: of epochs without a flush of which the
 * first returned last from MPI_Win_unlock.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#define ROUNDS 40

struct epoch {
    int rank, number;
    /* When MPI_Win_lock, the accesses with the flush, and MPI_Win_unlock began and ended. */
    double lock[2], flush[2], unlock[2];
};

static struct epoch epochs[ROUNDS];

static double now(void) { return seconds_by(CLOCK_MONOTONIC); }

static int by_number(const void *one, const void *other) {
    return ((const struct epoch *)one)->number - ((const struct epoch *)other)->number;
}

/* `all`: those before `own`, in the order of their numbers; `seconds`: by the rank for which it waits. */
static void waits_in(const struct epoch *all, const struct epoch *own, const double *call, double *seconds) {
    double from = call[0];
    for (const struct epoch *other = all; other < own; other++) {
        if (other->rank == own->rank || other->unlock[1] <= from || other->unlock[0] > call[1])
            continue;
        double until = other->unlock[1] <= call[1] ? other->unlock[1] : other->unlock[0];
        from = other->lock[0] > from ? other->lock[0] : from;
        if (until > from) {
            seconds[other->rank] += until - from;
            from = until;
        }
    }
}

int main(int argc, char **argv) {
    int rank, size, *memory, one = 1;
    MPI_Win win;
    MPI_Comm lockers;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int apart = argc > 1 && !strcmp(argv[1], "apart"), flushes = !(argc > 1 && !strcmp(argv[1], "unlock"));
    int target = apart ? (rank + 1) % size : 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &lockers);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    *memory = 0;
    MPI_Win_unlock(rank, win);
    for (int i = 0; i < ROUNDS; i++) {
        struct epoch *own = &epochs[i];
        int is_late = i % 5 == 3;
        own->rank = rank;
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank > 0) {
            if (is_late && flushes && rank > 1)
                MPI_Barrier(lockers);
            if (is_late && !flushes && rank > 1)
                usleep(5000);
            own->lock[0] = now();
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
            own->lock[1] = now();
            MPI_Fetch_and_op(&one, &own->number, MPI_INT, target, 0, MPI_SUM, win);
            own->flush[0] = now();
            if (flushes)
                MPI_Win_flush(target, win);
            own->flush[1] = now();
            /* It has the lock, so the others ask for it later. */
            if (is_late && flushes && rank == 1)
                MPI_Barrier(lockers);
            if (is_late && rank == 1)
                usleep(20000);
            own->unlock[0] = now();
            MPI_Win_unlock(target, win);
            own->unlock[1] = now();
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    struct epoch *of_all = malloc(size * sizeof epochs);
    MPI_Gather(epochs, sizeof epochs, MPI_BYTE, of_all, sizeof epochs, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0 && !apart) {
        /* Without those of this rank. */
        struct epoch *first = of_all + ROUNDS, *end = of_all + size * ROUNDS;
        double *seconds = calloc(size * size, sizeof(double)), *unseen = calloc(size * size, sizeof(double));
        qsort(first, end - first, sizeof *first, by_number);
        for (struct epoch *own = first; own < end; own++) {
            if (own->number != own - first)
                MPI_Abort(MPI_COMM_WORLD, 1);
            double *of_rank = seconds + size * own->rank;
            waits_in(first, own, own->lock, of_rank);
            waits_in(first, own, flushes ? own->flush : own->unlock, of_rank);
            for (struct epoch *other = first; other < own && !flushes; other++)
                if (other->unlock[1] >= own->unlock[1]) {
                    double took = own->unlock[1] - own->lock[0] + other->unlock[1] - other->lock[0];
                    unseen[size * own->rank + other->rank] += took;
                    unseen[size * other->rank + own->rank] += took;
                }
        }
        for (int waiter = 1; waiter < size; waiter++)
            for (int other = 1; other < size; other++)
                if (other != waiter) {
                    int pair = size * waiter + other;
                    printf("lock %d %d %.6f %.6f\n", waiter, other, seconds[pair], unseen[pair]);
                }
        free(unseen);
        free(seconds);
    }
    free(of_all);
    MPI_Win_free(&win);
    MPI_Comm_free(&lockers);
    MPI_Finalize();
    return 0;
}
