/* Error handlers that leave calls of MPI by longjmp, and calls after that. Arguments:
 *   LEVEL   the thread level to ask for: 0 MPI_THREAD_SINGLE, 3 MPI_THREAD_MULTIPLE, where a second
 *           thread does the same at the same time
 *   NESTED  this many calls of MPI are made by the program's reduction before
 * Expect: on each rank and thread 20 times MPI_Send (all left) and MPI_Comm_size, 2 MPI_Barrier by one
 * thread; "rank R left 20 calls" on stdout for each thread; with NESTED 0 all are counted. */
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 20 };

static int rank, nested;
static __thread jmp_buf before;

static void leave(MPI_Comm *comm, int *code, ...)
{
    int class;
    (void)comm;
    MPI_Error_class(*code, &class);
    longjmp(before, 1);
}

static void reduce(void *in, void *inout, int *len, MPI_Datatype *datatype)
{
    int size;
    (void)in, (void)inout, (void)len;
    for (int i = 0; i < nested; i++)
        MPI_Type_size(*datatype, &size);
}

static void *work(void *nothing)
{
    volatile int left = 0;
    int size;
    for (volatile int i = 0; i < ROUNDS; i++) {
        if (setjmp(before) == 0)
            MPI_Send(&rank, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD);
        else
            left++;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    }
    printf("rank %d left %d calls\n", rank, left);
    return nothing;
}

int main(int argc, char **argv)
{
    int provided, level = atoi(argv[1]), x = 0, y = 0;
    nested = atoi(argv[2]);
    MPI_Init_thread(&argc, &argv, level ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Errhandler leaving;
    MPI_Comm_create_errhandler(leave, &leaving);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, leaving);
    MPI_Op op;
    MPI_Op_create(reduce, 1, &op);
    MPI_Reduce_local(&x, &y, 1, MPI_INT, op);
    MPI_Op_free(&op);
    MPI_Barrier(MPI_COMM_WORLD);
    if (level) {
        pthread_t other;
        pthread_create(&other, NULL, work, NULL);
        work(NULL);
        pthread_join(other, NULL);
    } else {
        work(NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
