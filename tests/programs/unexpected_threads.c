/* Receives in four threads at once while messages wait, each on a communicator of its own: two ranks,
 * MPI_THREAD_MULTIPLE. Rank 1 sends 10 * (t + 1) messages for thread t; each of the threads waits until
 * all have arrived, for each of them, and then receives its own.
 * Expect: on rank 0 100 calls of MPI_Recv at one line, which is written to truth.0. Of the queue of its
 * own communicator thread t finds 10 * (t + 1), ..., 1; of a queue of the process 100 at most, and not
 * less than what waits for itself. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, STEP = 10, TAG = 17 };

static MPI_Comm comms[THREADS];
static pthread_barrier_t barrier;

static int messages_of(int thread)
{
    return STEP * (thread + 1);
}

static __attribute__((noinline)) void receive_all(int k, MPI_Comm comm, FILE *truth)
{
    int x;
    if (truth)
        fprintf(truth, "receive_all MPI_Recv %d\n", __LINE__ + 2);
    for (int i = k; i > 0; i--)
        MPI_Recv(&x, 1, MPI_INT, 1, TAG + i, comm, MPI_STATUS_IGNORE);
}

static void *thread(void *number)
{
    int t = (int)(long)number;
    FILE *truth = t ? NULL : fopen("truth.0", "w");
    MPI_Probe(1, TAG + messages_of(t), comms[t], MPI_STATUS_IGNORE);
    pthread_barrier_wait(&barrier);
    receive_all(messages_of(t), comms[t], truth);
    if (truth)
        fclose(truth);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rank;
    pthread_t threads[THREADS];

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) {
        printf("no MPI_THREAD_MULTIPLE here\n");
        MPI_Finalize();
        return 77;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        for (int t = 0; t < THREADS; t++)
            for (int i = 1; i <= messages_of(t); i++)
                MPI_Send(&i, 1, MPI_INT, 0, TAG + i, comms[t]);
    if (rank == 0) {
        pthread_barrier_init(&barrier, NULL, THREADS);
        for (long t = 0; t < THREADS; t++)
            pthread_create(&threads[t], NULL, thread, (void *)t);
        for (int t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
    }
    /* Only now may rank 1 send what is not for a thread. */
    if (rank == 0)
        for (int t = 0; t < THREADS; t++)
            MPI_Send(&t, 1, MPI_INT, 1, 0, comms[t]);
    else if (rank == 1)
        for (int t = 0; t < THREADS; t++)
            MPI_Recv(&provided, 1, MPI_INT, 0, 0, comms[t], MPI_STATUS_IGNORE);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_free(&comms[t]);
    MPI_Finalize();
    return 0;
}
