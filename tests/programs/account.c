/* Loops of calls by each way through gyan, for a comparison of what gyan says it costs with what it does.
 *   usage: account rank|receive|persistent|parent|cycle|bcast|allreduce|message|poll CALLS THREADS
 *     rank        MPI_Comm_rank
 *     receive     MPI_Recv from MPI_PROC_NULL
 *     persistent  MPI_Send_init and MPI_Request_free
 *     parent      MPI_Comm_get_parent
 *     cycle       MPI_Comm_dup, a message and an MPI_Allreduce on it, MPI_Comm_free
 *     bcast       MPI_Bcast of one number, on MPI_COMM_SELF
 *     allreduce   MPI_Allreduce of one number, on MPI_COMM_SELF
 *     message     an MPI_Irecv, an MPI_Send of 8 bytes to the rank itself, and an MPI_Wait
 *     poll        MPI_Testany of three receives on MPI_COMM_WORLD, whose messages come after the last of them; in one thread
 * CALLS rounds in each of THREADS threads; one calls with MPI_THREAD_SINGLE, several with MPI_THREAD_MULTIPLE.
 * Expect: the seconds of processor time that all rounds took. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static MPI_Comm comms[64];
static long calls;
static const char *loop;

static double processor_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void *rounds(void *of_thread)
{
    MPI_Comm comm = *(MPI_Comm *)of_thread, other;
    MPI_Request request;
    double x = 0, y;
    int rank;
    if (!strcmp(loop, "rank"))
        for (long i = 0; i < calls; i++)
            MPI_Comm_rank(comm, &rank);
    else if (!strcmp(loop, "receive"))
        for (long i = 0; i < calls; i++)
            MPI_Recv(&x, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE);
    else if (!strcmp(loop, "persistent"))
        for (long i = 0; i < calls; i++) {
            MPI_Send_init(&x, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, comm, &request);
            MPI_Request_free(&request);
        }
    else if (!strcmp(loop, "parent"))
        for (long i = 0; i < calls; i++)
            MPI_Comm_get_parent(&other);
    else if (!strcmp(loop, "cycle"))
        for (long i = 0; i < calls; i++) {
            MPI_Comm_dup(comm, &other);
            MPI_Sendrecv(&x, 1, MPI_DOUBLE, 0, 0, &y, 1, MPI_DOUBLE, 0, 0, other, MPI_STATUS_IGNORE);
            MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, other);
            MPI_Comm_free(&other);
        }
    else if (!strcmp(loop, "bcast"))
        for (long i = 0; i < calls; i++)
            MPI_Bcast(&x, 1, MPI_DOUBLE, 0, comm);
    else if (!strcmp(loop, "allreduce"))
        for (long i = 0; i < calls; i++)
            MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, comm);
    else if (!strcmp(loop, "message"))
        for (long i = 0; i < calls; i++) {
            MPI_Irecv(&y, 1, MPI_DOUBLE, 0, 0, comm, &request);
            MPI_Send(&x, 1, MPI_DOUBLE, 0, 0, comm);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    else if (!strcmp(loop, "poll")) {
        MPI_Request requests[3];
        double numbers[3];
        int flag;
        for (int i = 0; i < 3; i++)
            MPI_Irecv(&numbers[i], 1, MPI_DOUBLE, 0, i, MPI_COMM_WORLD, &requests[i]);
        for (long i = 0; i < calls; i++)
            MPI_Testany(3, requests, &rank, &flag, MPI_STATUS_IGNORE);
        for (int i = 0; i < 3; i++)
            MPI_Send(&x, 1, MPI_DOUBLE, 0, i, MPI_COMM_WORLD);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    } else
        MPI_Abort(MPI_COMM_WORLD, 2);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int provided, count = argc > 3 ? atoi(argv[3]) : 1;
    MPI_Init_thread(&argc, &argv, count > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    loop = argv[1];
    calls = atol(argv[2]);
    for (int i = 0; i < count; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
    double begun = processor_time();
    for (int i = 1; i < count; i++)
        pthread_create(&threads[i], NULL, rounds, &comms[i]);
    rounds(&comms[0]);
    for (int i = 1; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("%.6f\n", processor_time() - begun);
    MPI_Finalize();
    return 0;
}
