/* COUNT iterations (the first argument), each of MS milliseconds at least (the second one). In each, ranks in a ring send a message
 * whose tag is the iteration and meet in MPI_Allreduce, within the phase that MPI_Pcontrol(7) begins. Outside of it the last rank sends
 * to all, and they meet again.
 *
 * SLOW iterations (the third one), at places that look random and are the same on all ranks, take 50, 100, 150, ... ms longer. With
 * "threads" as the fourth argument another thread sends messages to its own rank meanwhile; with "killed", rank 1 is killed in the
 * middle of the last iteration.
 *
 * Each rank writes into truth.RANK, by CLOCK_MONOTONIC in ns: "init BEGIN END" around MPI_Init; then for each iteration "took
 * NUMBER REDUCED PASS", how long it was from the MPI_Allreduce before to that in it, and how long it was in the phase. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"

static volatile int over;

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void pause_ms(long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

static void *send_to_itself(void *comm)
{
    while (!over) {
        int in, out = 1;
        MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, *(MPI_Comm *)comm, MPI_STATUS_IGNORE);
        pause_ms(1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int rank, size, provided, count = atoi(argv[1]), slow = argc > 3 ? atoi(argv[3]) : 0;
    const char *how = argc > 4 ? argv[4] : "";
    int threads = strcmp(how, "threads") == 0;
    long ms = atol(argv[2]), *extra = calloc(count, sizeof *extra);
    unsigned lot = 12345;
    pthread_t thread;
    MPI_Comm own;
    long long begun = now_ns();

    /* Not among the first ones, which may begin before there are iterations. */
    for (int j = 0; j < slow;) {
        lot = lot * 1103515245 + 12345;
        int i = 5 + (lot >> 16) % (count - 7);
        if (extra[i] == 0)
            extra[i] = 50 + 50 * j++;
    }
    if (threads)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    else
        MPI_Init(&argc, &argv);
    long long ended = now_ns();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    FILE *truth = truth_of(rank);
    fprintf(truth, "init %lld %lld\n", begun, ended);
    if (threads) {
        MPI_Comm_dup(MPI_COMM_SELF, &own);
        pthread_create(&thread, NULL, send_to_itself, &own);
    }
    long long before = now_ns();
    for (int i = 0; i < count; i++) {
        int in, out = i;
        double one = 1, sum;
        long long phase = now_ns();
        MPI_Pcontrol(7);
        MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, i, &in, 1, MPI_INT, (rank + size - 1) % size, i,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pause_ms(ms + extra[i]);
        if (strcmp(how, "killed") == 0 && rank == 1 && i == count - 1) {
            fflush(truth);
            raise(SIGKILL);
        }
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        long long now = now_ns();
        MPI_Pcontrol(1);
        fprintf(truth, "took %d %lld %lld\n", i, now - before, now_ns() - phase);
        before = now;
        MPI_Bcast(&out, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    fclose(truth);
    if (threads) {
        over = 1;
        pthread_join(thread, NULL);
        MPI_Comm_free(&own);
    }
    MPI_Finalize();
    return 0;
}
