/* Ranks in a ring exchange messages in ROUNDS (the first argument) rounds, in another order than they post their receives. Each
 * message holds its own number, unique in the job. Each rank writes into truth.RANK, a line for each call in its order, the number of
 * the message that a call sends ("sends NUMBER"), and those of the messages that have come when a call that completes receives
 * returns ("ends NUMBER..."; Wait, Waitall, Recv, Sendrecv).
 *
 * With the argument "persistent" they also start persistent operations in each round, which they have prepared before.
 *
 * With the argument "threads" two threads of each rank send and receive at the same time, each with a tag of its own, under
 * MPI_THREAD_MULTIPLE, and write nothing.
 *
 * With the argument "killed" rank 1 kills itself with SIGKILL after the rounds. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static int rank, size, rounds, sent;
static FILE *truth;

static int next_number(void)
{
    int number = rank * 1000000 + sent++;
    fprintf(truth, "sends %d\n", number);
    return number;
}

static void *thread(void *argument)
{
    int tag = 10 + (int)(long)argument, in;
    MPI_Request request;

    for (int i = 0; i < rounds; i++) {
        MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, tag, MPI_COMM_WORLD, &request);
        MPI_Send(&i, 1, MPI_INT, (rank + 1) % size, tag, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (in != i)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return NULL;
}

static int persistent, persistent_in, persistent_out;
static MPI_Request prepared[2];

static void prepare(MPI_Comm other)
{
    MPI_Recv_init(&persistent_in, 1, MPI_INT, (rank + size - 1) % size, 6, other, &prepared[0]);
    MPI_Send_init(&persistent_out, 1, MPI_INT, (rank + 1) % size, 6, other, &prepared[1]);
}

static void start(void)
{
    persistent_out = next_number();
    MPI_Startall(2, prepared);
    MPI_Waitall(2, prepared, MPI_STATUSES_IGNORE);
    fprintf(truth, "ends %d\n", persistent_in);
}

static void exchange(MPI_Comm other)
{
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    int in[4], out[4];
    MPI_Request requests[8];
    MPI_Status status;

    /* Two of a tag, sent after and before those of another one. */
    for (int i = 0; i < 4; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, previous, 1 + i % 2, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 4; i++) {
        out[i] = next_number();
        MPI_Isend(&out[i], 1, MPI_INT, next, 1 + (i + 1) / 2 % 2, MPI_COMM_WORLD, &requests[4 + i]);
    }
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    fprintf(truth, "ends %d %d %d %d\n", in[0], in[1], in[2], in[3]);

    out[0] = next_number();
    MPI_Sendrecv(&out[0], 1, MPI_INT, next, 3, &in[0], 1, MPI_INT, previous, 3, other, MPI_STATUS_IGNORE);
    fprintf(truth, "ends %d\n", in[0]);

    MPI_Irecv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, 4, other, &requests[0]);
    out[0] = next_number();
    MPI_Send(&out[0], 1, MPI_INT, next, 4, other);
    MPI_Wait(&requests[0], &status);
    fprintf(truth, "ends %d\n", in[0]);

    for (int i = 1; i < size; i++) {
        if (rank == 0) {
            MPI_Recv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            fprintf(truth, "ends %d\n", in[0]);
        } else if (rank == i) {
            out[0] = next_number();
            MPI_Send(&out[0], 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
        }
    }
    if (persistent)
        start();
    MPI_Barrier(other);
}

int main(int argc, char **argv)
{
    int provided;
    int threaded = argc > 2 && strcmp(argv[2], "threads") == 0;
    int killed = argc > 2 && strcmp(argv[2], "killed") == 0;
    persistent = argc > 2 && strcmp(argv[2], "persistent") == 0;
    pthread_t threads[2];
    MPI_Comm other;

    MPI_Init_thread(&argc, &argv, threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    rounds = atoi(argv[1]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (threaded) {
        if (provided != MPI_THREAD_MULTIPLE)
            MPI_Abort(MPI_COMM_WORLD, 1);
        for (long i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, thread, (void *)i);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        MPI_Finalize();
        return 0;
    }
    truth = truth_of(rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    if (persistent)
        prepare(other);
    for (int i = 0; i < rounds; i++)
        exchange(other);
    if (persistent) {
        MPI_Request_free(&prepared[0]);
        MPI_Request_free(&prepared[1]);
    }
    fclose(truth);
    if (killed) {
        if (rank == 1)
            kill(getpid(), SIGKILL);
        pause();
    }
    MPI_Comm_free(&other);
    MPI_Finalize();
    return 0;
}
