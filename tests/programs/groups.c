/* Sends messages over every kind of communicator that has other ranks than MPI_COMM_WORLD, or the same, and accesses
 * windows; asks MPI_Group_translate_ranks who that is in the world. 5 ranks. What is made is freed, and made again.
 * Expect: in truth.<rank>, lines `message|access <rank> <number> <bytes>`, which the profile equals; and, if
 * tests/programs/translations.c is preloaded, `asked <step> <groups> <ranks>`: what gyan asked the library at each
 * step. */
#include <mpi.h>
#include <stdio.h>

#include "check.h"

long asked_groups, asked_ranks;

static long messages[8], accesses[8];
static int rank, size;
static FILE *truth;

static void asked(const char *step)
{
    fprintf(truth, "asked %s %ld %ld\n", step, asked_groups, asked_ranks);
    asked_groups = asked_ranks = 0;
}

static int in_world(MPI_Group group, int peer)
{
    MPI_Group world;
    int there;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(group, 1, &peer, world, &there);
    MPI_Group_free(&world);
    MPI_Group_free(&group);
    return there;
}

/* Sends a message to the rank that comes `by` after this one. */
static void send_by(const char *step, MPI_Comm comm, int by)
{
    int inter, own, peers, value = by, incoming;
    MPI_Group group;
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_test_inter(comm, &inter);
    if (inter) {
        /* One side is one rank, to which all of the other side send; it sends to the first of them. */
        MPI_Comm_remote_size(comm, &peers);
        MPI_Comm_remote_group(comm, &group);
        int to = peers == 1 ? 0 : own % peers, to_world = in_world(group, to);
        MPI_Request request;
        MPI_Isend(&value, 1, MPI_INT, to, 0, comm, &request);
        messages[to_world]++;
        for (int i = 0; i < (peers == 1 ? own == 0 : peers); i++)
            MPI_Recv(&incoming, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Comm_size(comm, &peers);
        MPI_Comm_group(comm, &group);
        int to = (own + by) % peers, from = (own + peers - by % peers) % peers;
        MPI_Sendrecv(&value, 1, MPI_INT, to, 0, &incoming, 1, MPI_INT, from, 0, comm, MPI_STATUS_IGNORE);
        messages[in_world(group, to)]++;
    }
    asked(step);
}

static void put_by(const char *step, MPI_Comm comm, int by)
{
    int own, peers, memory = 0, value = 1;
    MPI_Win win;
    MPI_Group group;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &peers);
    MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, comm, &win);
    MPI_Win_fence(0, win);
    asked("making");
    MPI_Put(&value, 1, MPI_INT, (own + by) % peers, 0, 1, MPI_INT, win);
    asked(step);
    MPI_Win_fence(0, win);
    MPI_Comm_group(comm, &group);
    accesses[in_world(group, (own + by) % peers)]++;
    MPI_Win_free(&win);
}

static MPI_Comm idup(MPI_Comm comm)
{
    MPI_Comm later;
    MPI_Request request;
    MPI_Comm_idup(comm, &later, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return later;
}

static void all(int round)
{
    MPI_Comm dup, twice, later, split, like, grid, small, line, other, half, inter, inter_dup, graph, some;
    MPI_Group world, group;
    int dims[2] = {size, 1}, periods[2] = {1, 1}, remain[2] = {1, 0};

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    send_by("dup", dup, 1);
    MPI_Comm_dup_with_info(dup, MPI_INFO_NULL, &twice);
    MPI_Comm_free(&dup);
    send_by("twice", twice, 2);
    later = idup(twice);
    send_by("idup", later, 3);
    put_by("window", later, 1);
    MPI_Comm_free(&later);

    MPI_Cart_create(twice, 2, dims, periods, 0, &grid);
    send_by("grid", grid, 1);
    MPI_Cart_sub(grid, remain, &line);
    send_by("line", line, 2);
    MPI_Comm_free(&line);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &other);
    send_by("reordered", other, 1);
    MPI_Comm_free(&other);
    dims[0] = size - 1;
    MPI_Cart_create(grid, 2, dims, periods, 0, &small);
    send_by("small", small, 2);
    if (small != MPI_COMM_NULL)
        MPI_Comm_free(&small);
    MPI_Comm_free(&grid);

    /* In the reverse order, from another rank in each round. */
    MPI_Comm_split(twice, 0, (2 * size - rank + round) % size, &split);
    asked("making");
    send_by("first", split, 1);
    send_by("again", split, 1);
    send_by("second", split, 2);
    MPI_Comm_dup(split, &like);
    send_by("like", like, 2);
    send_by("another", like, 3);
    send_by("known", split, 3);
    MPI_Barrier(like);
    asked("members");
    MPI_Comm_free(&split);
    split = idup(like);
    MPI_Barrier(split);
    send_by("after", split, 4);
    put_by("access", split, 2);
    MPI_Cart_create(split, 1, dims, periods, 0, &small);
    send_by("within", small, 3);
    if (small != MPI_COMM_NULL)
        MPI_Comm_free(&small);
    int from = (rank + size - 1) % size, to = (rank + 1) % size, weight = 1;
    MPI_Dist_graph_create_adjacent(like, 1, &from, &weight, 1, &to, &weight, MPI_INFO_NULL, 0, &graph);
    send_by("graph", graph, 4);
    MPI_Comm_free(&graph);
    MPI_Comm_free(&like);
    MPI_Comm_free(&split);

    int members[3] = {4, 1, 2};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 3, members, &group);
    if (rank == 1 || rank == 2 || rank == 4) {
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 7, &some);
        send_by("created", some, 1);
        MPI_Comm_free(&some);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);

    MPI_Comm_split(twice, rank == 3, -rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 3 ? 4 : 3, 9, &inter);
    MPI_Comm_free(&half);
    asked("making");
    send_by("between", inter, 0);
    MPI_Comm_dup(inter, &inter_dup);
    send_by("between-dup", inter_dup, 0);
    MPI_Comm_free(&inter);
    MPI_Intercomm_merge(inter_dup, rank == 3, &other);
    send_by("merged", other, 1);
    MPI_Comm_free(&other);
    MPI_Comm_free(&inter_dup);
    MPI_Comm_free(&twice);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    truth = truth_of(rank);
    asked("making");
    for (int round = 0; round < 3; round++)
        all(round);
    for (int to = 0; to < size; to++) {
        if (messages[to])
            fprintf(truth, "message %d %ld %ld\n", to, messages[to], messages[to] * 4);
        if (accesses[to])
            fprintf(truth, "access %d %ld %ld\n", to, accesses[to], accesses[to] * 4);
    }
    fclose(truth);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
