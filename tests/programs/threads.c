/* MPI_THREAD_MULTIPLE: 8 threads of each rank receive at once, 20,000 + 1000 * thread times from
 * MPI_PROC_NULL, with the main thread receiving 5 times before and after.
 * Expect: 8 * 20000 + 28 * 1000 + 10 = 188010 calls of MPI_Recv on each rank. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

static void receive(int n)
{
    int x;
    for (int i = 0; i < n; i++)
        MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void *thread(void *number)
{
    receive(20000 + 1000 * (int)(long)number);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[8];

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE) {
        printf("no MPI_THREAD_MULTIPLE here\n");
        MPI_Finalize();
        return 77;
    }
    receive(5);
    for (long i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, thread, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    receive(5);
    MPI_Finalize();
    return 0;
}
