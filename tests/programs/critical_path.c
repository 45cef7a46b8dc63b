/* Ranks in a ring sleep, as if they computed, then exchange a message with both neighbours. One rank sleeps for longer, or each one in
 * its turn, so that all have as much to do.
 *   usage: critical_path [STEPS [SLOW_RANK or -1 [SLOW_US [OTHERS_US]]]]
 * Expect: by the clock that the ranks of a host share, a line for each step of each rank: rank, step, and when it began to sleep, sent,
 * began to wait and ended to wait, in seconds. The critical path follows from these. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + 1e-9 * at.tv_nsec;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 20, slow = argc > 2 ? atoi(argv[2]) : 2;
    int slow_us = argc > 3 ? atoi(argv[3]) : 50000, others_us = argc > 4 ? atoi(argv[4]) : 1000;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    double(*times)[4] = malloc(steps * sizeof *times);
    for (int step = 0; step < steps; step++) {
        MPI_Request request[4];
        MPI_Status status[4];
        int from[2], is_slow = rank == (slow < 0 ? step % size : slow);
        times[step][0] = now();
        usleep(is_slow ? slow_us : others_us);
        MPI_Irecv(&from[0], 1, MPI_INT, left, 0, MPI_COMM_WORLD, &request[0]);
        MPI_Irecv(&from[1], 1, MPI_INT, right, 1, MPI_COMM_WORLD, &request[1]);
        times[step][1] = now();
        MPI_Isend(&step, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &request[2]);
        MPI_Isend(&step, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &request[3]);
        times[step][2] = now();
        MPI_Waitall(4, request, status);
        times[step][3] = now();
    }
    /* One rank prints them: launchers may cut lines of several ranks in two. */
    double(*all)[4] = malloc(size * steps * sizeof *all);
    MPI_Gather(times, 4 * steps, MPI_DOUBLE, all, 4 * steps, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int line = 0; rank == 0 && line < size * steps; line++)
        printf("%d %d %.9f %.9f %.9f %.9f\n", line / steps, line % steps, all[line][0], all[line][1], all[line][2], all[line][3]);
    free(all);
    free(times);
    MPI_Finalize();
    return 0;
}
