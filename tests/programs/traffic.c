/* Sends to known peers in every mode and over every kind of communicator, and accesses their memory; keeps its
 * own account by rank in MPI_COMM_WORLD. 4 ranks. With the argument `killed` it ends by a signal instead of
 * MPI_Finalize; with `threads` four threads send at once.
 * Expect: in truth.<rank>, lines `message|access <rank> <number> <bytes>`, which the profile equals; and
 * `size <function> <calls> <bytes>` for what is started, in one size each. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static struct {
    long number, bytes;
} message[16], access_to[16];
static int rank, size;

static void sent(int to, long bytes)
{
    __sync_fetch_and_add(&message[to].number, 1);
    __sync_fetch_and_add(&message[to].bytes, bytes);
}

static void accessed(int to, long bytes)
{
    access_to[to].number++;
    access_to[to].bytes += bytes;
}

/* To the next rank of a communicator of `n`, which is `to` in the world; from the one before. */
static void ring(MPI_Comm comm, int next, int before, int to, int length)
{
    char out[4096] = {0}, in[4096], buffer[8192];
    MPI_Request r[3];
    MPI_Irecv(in, length, MPI_CHAR, before, 1, comm, &r[0]);
    MPI_Send(out, length, MPI_CHAR, next, 1, comm);
    sent(to, length);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Irecv(in, length, MPI_CHAR, before, 2, comm, &r[0]);
    MPI_Irecv(in + 2048, length, MPI_CHAR, before, 3, comm, &r[1]);
    MPI_Isend(out, length, MPI_CHAR, next, 2, comm, &r[2]);
    sent(to, length);
    MPI_Ssend(out, length / 2, MPI_CHAR, next, 3, comm);
    sent(to, length / 2);
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(out, length, MPI_CHAR, next, 4, in, length, MPI_CHAR, before, 4, comm, MPI_STATUS_IGNORE);
    sent(to, length);
    MPI_Sendrecv_replace(out, length / 4, MPI_CHAR, next, 5, before, 5, comm, MPI_STATUS_IGNORE);
    sent(to, length / 4);
    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Irecv(in, length, MPI_CHAR, before, 6, comm, &r[0]);
    MPI_Bsend(out, length / 8, MPI_CHAR, next, 6, comm);
    sent(to, length / 8);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    void *detached;
    int length_of;
    MPI_Buffer_detach(&detached, &length_of);
    /* To nobody, and nothing to somebody. */
    MPI_Send(out, length, MPI_CHAR, MPI_PROC_NULL, 7, comm);
    MPI_Irecv(in, 0, MPI_CHAR, before, 8, comm, &r[0]);
    MPI_Send(NULL, 0, MPI_CHAR, next, 8, comm);
    sent(to, 0);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
}

/* Started again and again, alone and with others; freed, and others made. */
static void persistent(MPI_Comm comm, int next, int before, int to)
{
    double out[8] = {0}, in[8];
    MPI_Request r[4];
    for (int round = 0; round < 3; round++) {
        MPI_Send_init(out, 8, MPI_DOUBLE, next, 1, comm, &r[0]);
        MPI_Recv_init(in, 8, MPI_DOUBLE, before, 1, comm, &r[1]);
        for (int i = 0; i < 5; i++) {
            MPI_Start(&r[1]);
            MPI_Start(&r[0]);
            sent(to, 64);
            MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        }
        MPI_Ssend_init(out, 2, MPI_DOUBLE, next, 2, comm, &r[2]);
        MPI_Recv_init(in, 8, MPI_DOUBLE, before, 2, comm, &r[3]);
        for (int i = 0; i < 2; i++) {
            MPI_Startall(4, r);
            sent(to, 64);
            sent(to, 16);
            MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
        }
        for (int i = 0; i < 4; i++)
            MPI_Request_free(&r[i]);
    }
}

#if MPI_VERSION >= 4 && !defined(NO_PARTITIONED)
static int starts_in_parts(MPI_Comm comm, int next, int before, int to)
{
    int out[12] = {0}, in[12], two[2] = {1, 3};
    MPI_Request r[2];
    MPI_Psend_init(out, 4, 3, MPI_INT, next, 3, comm, MPI_INFO_NULL, &r[0]);
    MPI_Precv_init(in, 4, 3, MPI_INT, before, 3, comm, MPI_INFO_NULL, &r[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Startall(2, r);
        MPI_Pready(0, r[0]);
        MPI_Pready_list(2, two, r[0]);
        MPI_Pready_range(2, 2, r[0]);
        sent(to, 48);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    return 1;
}
#else
static int starts_in_parts(MPI_Comm comm, int next, int before, int to)
{
    return 0;
}
#endif

static void windows(MPI_Comm comm, int next, int to)
{
    double memory[16] = {0}, data[16] = {0}, result[16];
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof memory[0], MPI_INFO_NULL, comm, &win);
    MPI_Win_fence(0, win);
    MPI_Put(data, 4, MPI_DOUBLE, next, 0, 4, MPI_DOUBLE, win);
    accessed(to, 32);
    MPI_Put(data, 4, MPI_DOUBLE, MPI_PROC_NULL, 0, 4, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    MPI_Get(result, 2, MPI_DOUBLE, next, 8, 2, MPI_DOUBLE, win);
    accessed(to, 16);
    MPI_Win_fence(0, win);
    MPI_Accumulate(data, 1, MPI_DOUBLE, next, 12, 1, MPI_DOUBLE, MPI_SUM, win);
    accessed(to, 8);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static struct {
    MPI_Comm comm;
    int by;
} of_thread[4];

static void *thread(void *number)
{
    int mine = *(int *)number, by = of_thread[mine].by;
    int to = (rank + by) % size, from = (rank + size - by) % size;
    char out[64] = {0}, in[64];
    for (int i = 0; i < 2000; i++) {
        MPI_Sendrecv(out, 8 << mine, MPI_CHAR, to, 0, in, 64, MPI_CHAR, from, 0, of_thread[mine].comm,
                     MPI_STATUS_IGNORE);
        sent(to, 8 << mine);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t all[4];
    int number[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &of_thread[i].comm);
        of_thread[i].by = i % 3 + 1;
    }
    for (int i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, thread, &number[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
    for (int i = 0; i < 4; i++)
        MPI_Comm_free(&of_thread[i].comm);
}

static void write_truth(const char *sizes)
{
    FILE *truth = truth_of(rank);
    for (int to = 0; to < size; to++) {
        if (message[to].number)
            fprintf(truth, "message %d %ld %ld\n", to, message[to].number, message[to].bytes);
        if (access_to[to].number)
            fprintf(truth, "access %d %ld %ld\n", to, access_to[to].number, access_to[to].bytes);
    }
    fputs(sizes, truth);
    fclose(truth);
}

#define STARTED "size MPI_Start 0 15 0\nsize MPI_Start 7 15 960\nsize MPI_Startall 7 6 480\n"

int main(int argc, char **argv)
{
    MPI_Comm dup, half, turned, grid, inter, big;
    int threaded = argc > 1 && !strcmp(argv[1], "threads"), level;
    MPI_Init_thread(&argc, &argv, threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (threaded) {
        threads();
        write_truth("size MPI_Sendrecv 4 2000 16000\nsize MPI_Sendrecv 5 2000 32000\n"
                    "size MPI_Sendrecv 6 2000 64000\nsize MPI_Sendrecv 7 2000 128000\n");
        MPI_Finalize();
        return 0;
    }
    int next = (rank + 1) % size, before = (rank + size - 1) % size, other = (rank + 2) % size;
    ring(MPI_COMM_WORLD, next, before, next, 1024);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    ring(dup, next, before, next, 512);
    windows(dup, next, next);
    MPI_Comm_free(&dup);
    /* Even and odd ranks, the handle of the duplicate perhaps; each is 0 and 1 there. */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    int in_half = rank / 2;
    ring(half, 1 - in_half, 1 - in_half, other, 256);
    persistent(half, 1 - in_half, 1 - in_half, other);
    /* One half after the other: Open MPI 4.1 names a file after the number of the communicator, which is the same
     * in both. */
    for (int turn = 0; turn < 2; turn++) {
        if (turn == rank % 2)
            windows(half, 1 - in_half, other);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    /* Many, one after the other. */
    for (int i = 0; i < 300; i++) {
        int by = i % 3 + 1, peer = (rank + by) % size, from = (rank + size - by) % size;
        MPI_Comm_split(MPI_COMM_WORLD, 0, (rank * by) % 5, &turned);
        MPI_Group world, group;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Comm_group(turned, &group);
        int to_in, from_in;
        MPI_Group_translate_ranks(world, 1, &peer, group, &to_in);
        MPI_Group_translate_ranks(world, 1, &from, group, &from_in);
        MPI_Sendrecv(&i, 1, MPI_INT, to_in, 0, &by, 1, MPI_INT, from_in, 0, turned, MPI_STATUS_IGNORE);
        sent(peer, sizeof i);
        MPI_Group_free(&world);
        MPI_Group_free(&group);
        MPI_Comm_free(&turned);
    }
    int dims[1] = {size}, periods[1] = {1};
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
    ring(grid, next, before, next, 128);
    MPI_Comm_free(&grid);
    /* Peers of an intercommunicator are the other half. */
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 9, &inter);
    ring(inter, in_half, in_half, 2 * in_half + 1 - rank % 2, 64);
    MPI_Intercomm_merge(inter, rank % 2, &big);
    MPI_Comm_free(&inter);
    int to_big = (rank + 1) % size, in_big = rank / 2 + rank % 2 * 2;
    int from_big = (in_big + size - 1) % size;
    to_big = (in_big + 1) % size;
    ring(big, to_big, from_big, to_big % 2 * 2 + to_big / 2, 32);
    MPI_Comm_free(&big);
    MPI_Comm_free(&half);
    int in_parts = starts_in_parts(MPI_COMM_WORLD, next, before, next);
    /* Of the starts one half is of receives. */
    write_truth(in_parts ? STARTED "size MPI_Startall 0 2 0\nsize MPI_Pready 4 2 24\nsize MPI_Pready_list 5 2 48\n"
                                   "size MPI_Pready_range 4 2 24\n"
                         : STARTED);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1)
        raise(SIGKILL);
    MPI_Finalize();
    return 0;
}
