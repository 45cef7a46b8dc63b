/* A thread will be cancelled at its next cancellation point, and has gyan write the profile: so far, by
 * MPI_Pcontrol, or, with the argument "exit", at the end. One rank.
 * Expect, as without gyan: "returned 1, cancelled" and exit code 0; exit code 3. Neither MPI_Pcontrol nor
 * exit is a cancellation point. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int returned;

static void *end(void *ends)
{
    pthread_cancel(pthread_self());
    if (ends)
        exit(3);
    MPI_Pcontrol(2);
    returned = 1;
    pthread_testcancel();
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t thread;
    void *result;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    pthread_create(&thread, NULL, end, argc > 1 ? &thread : NULL);
    pthread_join(thread, &result);
    printf("returned %d, %s\n", returned, result == PTHREAD_CANCELED ? "cancelled" : "goes on");
    fflush(stdout);
    return MPI_Finalize();
}
