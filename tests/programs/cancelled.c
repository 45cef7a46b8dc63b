/* A thread that waits in a receive is cancelled: "deferred" or "asynchronous", by the argument. One rank.
 * Expect: as without gyan: "5 before", then "cancelled" when the MPI lets it be, else "not cancelled",
 * and the exit code that the launcher makes of an end without MPI_Finalize. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static atomic_int ready;

static void pause_ms(long ms)
{
    struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

static void *receive(void *type)
{
    int x, before;
    pthread_setcanceltype(*(int *)type, &before);
    for (int i = 0; i < 5; i++) {
        MPI_Request request;
        MPI_Isend(&i, 1, MPI_INT, 0, i, MPI_COMM_SELF, &request);
        MPI_Recv(&x, 1, MPI_INT, 0, i, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    ready = 1;
    MPI_Recv(&x, 1, MPI_INT, 0, 99, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, ended;
    int type = strcmp(argv[1], "deferred") ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED;
    pthread_t thread;
    void *result;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    pthread_create(&thread, NULL, receive, &type);
    while (!ready)
        pause_ms(1);
    /* There is no way to tell when it is inside. */
    pause_ms(50);
    puts("5 before");
    pthread_cancel(thread);
    for (int i = 0; (ended = !pthread_tryjoin_np(thread, &result)) == 0 && i < 200; i++)
        pause_ms(5);
    puts(ended ? "cancelled" : "not cancelled");
    fflush(stdout);
    /* The thread may still hold a lock of the MPI, so no more calls are made. */
    exit(0);
}
