/* Other threads than the one that calls MPI ask what any thread may ask at any time (MPI 4.1, 11.2.2 and 11.6), while
 * that one communicates and MPI calls its operation, which calls MPI.
 * Expect: as many calls of each function as it prints, and none of MPI_Type_size. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 2

static volatile int stop;
static long asked[THREADS];

static void *ask(void *counted)
{
    long *calls = counted;
    for (int flag; !stop; ++*calls) {
        MPI_Initialized(&flag);
        MPI_Finalized(&flag);
    }
    return NULL;
}

static void add(void *in, void *inout, int *len, MPI_Datatype *type)
{
    int size;
    (void)len;
    MPI_Type_size(*type, &size);
    *(int *)inout += *(int *)in;
}

int main(int argc, char **argv)
{
    const long calls = 300000;
    long asked_in_all = 0;
    pthread_t threads[THREADS];
    int provided, x = 1, y = 0;
    MPI_Op op;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, ask, &asked[i]);
    MPI_Op_create(add, 1, &op);
    for (long i = 0; i < calls; i++) {
        MPI_Reduce_local(&x, &y, 1, MPI_INT, op);
        MPI_Sendrecv(&x, 1, MPI_INT, 0, 0, &y, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        MPI_Wtime();
    }
    stop = 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        asked_in_all += asked[i];
    }
    MPI_Op_free(&op);
    printf("MPI_Initialized %ld\nMPI_Finalized %ld\n", asked_in_all, asked_in_all);
    printf("MPI_Reduce_local %ld\nMPI_Sendrecv %ld\nMPI_Wtime %ld\n", calls, calls, calls);
    MPI_Finalize();
    return 0;
}
