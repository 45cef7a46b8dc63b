/* MPI_THREAD_MULTIPLE: 8 threads of each rank receive from MPI_PROC_NULL, 20,000 + 1000 * thread times,
 * while the main thread begins and ends 50 phases "round" with a phase "inner" in each, receives twice
 * in each inner one, and at times asks for the profile and goes through a level between two rounds.
 * Expect: 8 * 20000 + 28 * 1000 + 100 = 188100 calls of MPI_Recv on each rank, 50 entries of "round" and
 * of "round/inner", and all the calls in one phase or another. */
#include <gyan.h>
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
    for (long i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, thread, (void *)i);
    for (int round = 0; round < 50; round++) {
        gyan_phase_begin("round");
        gyan_phase_begin("inner");
        receive(2);
        gyan_phase_end();
        gyan_phase_end();
        if (round % 10 == 5)
            MPI_Pcontrol(2);
        if (round % 10 == 6) {
            MPI_Pcontrol(3);
            MPI_Pcontrol(1);
        }
    }
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    MPI_Finalize();
    return 0;
}
