/* MPI_THREAD_MULTIPLE: eight threads send, receive, and make and free communicators, all at once, while
 * the main thread goes through phases, in an order of its own makes and frees a communicator, and asks for
 * the profile. The argument: rounds of each.
 * Expect of each rank with R rounds: MPI_Comm_dup 9 R + 8, MPI_Comm_free 9 R + 8, MPI_Isend, MPI_Recv and
 * MPI_Wait 32 R, MPI_Pcontrol R, R entries of the phase "round", and all calls in one phase or another.
 * Rank 0 says when it is done: a launcher may mix what two ranks write, within a line. */
#include <gyan.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 8, MESSAGES = 4 };

static int rounds;

static void *work(void *own)
{
    MPI_Comm *parent = own, comm;
    MPI_Request request;
    for (int i = 0; i < rounds; i++) {
        MPI_Comm_dup(*parent, &comm);
        for (int k = 0; k < MESSAGES; k++) {
            int x = -1;
            MPI_Isend(&k, 1, MPI_INT, 0, k, comm, &request);
            MPI_Recv(&x, 1, MPI_INT, 0, k, comm, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (x != k)
                printf("received %d instead of %d\n", x, k);
        }
        MPI_Comm_free(&comm);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rank;
    pthread_t threads[THREADS];
    MPI_Comm parents[THREADS], comm;

    rounds = atoi(argv[1]);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        return 77;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &parents[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &parents[i]);
    for (int i = 0; i < rounds; i++) {
        gyan_phase_begin("round");
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        MPI_Comm_free(&comm);
        gyan_phase_end();
        MPI_Pcontrol(2);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&parents[i]);
    MPI_Finalize();
    if (rank == 0)
        puts("done");
    return 0;
}
