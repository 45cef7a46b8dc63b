/* Calls functions of every chapter of the standard, and keeps its own account of them: how often,
 * and how many bytes this rank contributes to each. 4 ranks.
 * Expect: in truth.<rank>, lines `<function> <calls> <bytes>` and, for each bar of sizes that is not empty, ` <bar>
 * <calls> <bytes>`, which the profile equals, for all functions; `-` where bytes are not counted. With -DNO_FILES without MPI-IO. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static struct {
    const char *name;
    long calls, bytes, bar_calls[48], bar_bytes[48];
} account[400];
static int known;

static void note(const char *name, long bytes)
{
    int i = 0;
    while (i < known && strcmp(account[i].name, name))
        i++;
    if (i == known)
        account[known++].name = name;
    account[i].calls++;
    if (bytes < 0)
        account[i].bytes = -1;
    else {
        int bar = 0;
        while (bytes >> bar)
            bar++;
        account[i].bytes += bytes;
        account[i].bar_calls[bar]++;
        account[i].bar_bytes[bar] += bytes;
    }
}

/* A call whose bytes are not counted, and one that contributes this many bytes. */
#define CALL(function, ...) (note(#function, -1), function(__VA_ARGS__))
#define MOVE(bytes, function, ...) (note(#function, bytes), function(__VA_ARGS__))

#define N 4
static int rank, size;

static void point_to_point(void)
{
    double out[N] = {1}, in[N];
    char buffer[1000];
    int right = (rank + 1) % size, left = (rank + size - 1) % size, flag, size_of, position = 0, x, y;
    int indices[2];
    MPI_Request r[2];
    MPI_Status status, statuses[2];
    MPI_Message message;
    CALL(MPI_Irecv, in, N, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &r[0]);
    MOVE(N * 8, MPI_Send, out, N, MPI_DOUBLE, right, 1, MPI_COMM_WORLD);
    CALL(MPI_Wait, &r[0], &status);
    CALL(MPI_Get_count, &status, MPI_DOUBLE, &x);
    MOVE(0, MPI_Send, out, N, MPI_DOUBLE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MOVE(0, MPI_Send, NULL, 0, MPI_DOUBLE, right, 9, MPI_COMM_WORLD);
    CALL(MPI_Recv, NULL, 0, MPI_DOUBLE, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CALL(MPI_Irecv, in, N, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &r[0]);
    MOVE(2 * 8, MPI_Isend, out, 2, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &r[1]);
    CALL(MPI_Waitall, 2, r, statuses);
    CALL(MPI_Irecv, in, N, MPI_INT, left, 3, MPI_COMM_WORLD, &r[0]);
    MOVE(3 * 4, MPI_Issend, out, 3, MPI_INT, right, 3, MPI_COMM_WORLD, &r[1]);
    CALL(MPI_Waitany, 2, r, &x, &status);
    CALL(MPI_Waitsome, 2, r, &x, indices, statuses);
    CALL(MPI_Buffer_attach, buffer, sizeof buffer);
    MOVE(7, MPI_Bsend, out, 7, MPI_CHAR, right, 4, MPI_COMM_WORLD);
    CALL(MPI_Probe, left, 4, MPI_COMM_WORLD, &status);
    CALL(MPI_Recv, in, 7, MPI_CHAR, left, 4, MPI_COMM_WORLD, &status);
    char *detached;
    CALL(MPI_Buffer_detach, &detached, &size_of);
    MOVE(8, MPI_Sendrecv, out, 2, MPI_FLOAT, right, 5, in, 2, MPI_FLOAT, left, 5, MPI_COMM_WORLD,
         &status);
    MOVE(16, MPI_Sendrecv_replace, out, 2, MPI_DOUBLE, right, 6, left, 6, MPI_COMM_WORLD, &status);
    CALL(MPI_Send_init, out, N, MPI_DOUBLE, right, 7, MPI_COMM_WORLD, &r[0]);
    CALL(MPI_Recv_init, in, N, MPI_DOUBLE, left, 7, MPI_COMM_WORLD, &r[1]);
    MOVE(N * 8, MPI_Startall, 2, r);
    CALL(MPI_Waitall, 2, r, MPI_STATUSES_IGNORE);
    CALL(MPI_Request_free, &r[0]);
    CALL(MPI_Request_free, &r[1]);
    MOVE(4, MPI_Isend, out, 1, MPI_INT, right, 8, MPI_COMM_WORLD, &r[0]);
    CALL(MPI_Mprobe, left, 8, MPI_COMM_WORLD, &message, &status);
    CALL(MPI_Mrecv, in, 1, MPI_INT, &message, &status);
    CALL(MPI_Wait, &r[0], MPI_STATUS_IGNORE);
    CALL(MPI_Iprobe, left, 99, MPI_COMM_WORLD, &flag, &status);
    CALL(MPI_Pack, out, 2, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
    position = 0;
    CALL(MPI_Unpack, buffer, sizeof buffer, &position, &y, 1, MPI_INT, MPI_COMM_WORLD);
}

static void collective(void)
{
    int in[4 * N], out[4 * N] = {0}, counts[4], displs[4], i;
    MPI_Datatype types[4];
    int bytes[4];
    MPI_Request r;
    for (i = 0; i < size; i++) {
        counts[i] = i + 1;
        displs[i] = i * N;
        bytes[i] = i * N * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    int sum = size * (size + 1) / 2;
    CALL(MPI_Barrier, MPI_COMM_WORLD);
    MOVE(N * 4, MPI_Bcast, out, N, MPI_INT, 1, MPI_COMM_WORLD);
    MOVE(N * 4, MPI_Reduce, out, in, N, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MOVE(N * 4, MPI_Allreduce, out, in, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MOVE(N * 4, MPI_Allreduce, MPI_IN_PLACE, in, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MOVE(N * 4, MPI_Scan, out, in, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MOVE(2 * 4, MPI_Gather, out, 2, MPI_INT, in, 2, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 2)
        MOVE(3 * 4, MPI_Gather, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, in, 3, MPI_INT, 2,
             MPI_COMM_WORLD);
    else
        MOVE(3 * 4, MPI_Gather, out, 3, MPI_INT, NULL, -1, MPI_DATATYPE_NULL, 2, MPI_COMM_WORLD);
    if (rank == 1)
        MOVE((rank + 1) * 4, MPI_Gatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, displs,
             MPI_INT, 1, MPI_COMM_WORLD);
    else
        MOVE((rank + 1) * 4, MPI_Gatherv, out, rank + 1, MPI_INT, NULL, NULL, NULL,
             MPI_DATATYPE_NULL, 1, MPI_COMM_WORLD);
    MOVE(2 * 4, MPI_Scatter, out, 2, MPI_INT, in, 2, MPI_INT, 0, MPI_COMM_WORLD);
    MOVE((rank + 1) * 4, MPI_Scatterv, out, counts, displs, MPI_INT, in, rank + 1, MPI_INT, 0,
         MPI_COMM_WORLD);
    MOVE(2 * 4, MPI_Allgather, out, 2, MPI_INT, in, 2, MPI_INT, MPI_COMM_WORLD);
    MOVE(2 * 4, MPI_Allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 2, MPI_INT, MPI_COMM_WORLD);
    MOVE((rank + 1) * 4, MPI_Allgatherv, out, rank + 1, MPI_INT, in, counts, displs, MPI_INT,
         MPI_COMM_WORLD);
    MOVE((rank + 1) * 4, MPI_Allgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, displs,
         MPI_INT, MPI_COMM_WORLD);
    MOVE(3L * size * 4, MPI_Alltoall, out, 3, MPI_INT, in, 3, MPI_INT, MPI_COMM_WORLD);
    for (i = 0; i < size; i++)
        counts[i] = 2;
    MOVE(2L * size * 4, MPI_Alltoallv, out, counts, displs, MPI_INT, in, counts, displs, MPI_INT,
         MPI_COMM_WORLD);
    MOVE(2L * size * 4, MPI_Alltoallw, out, counts, bytes, types, in, counts, bytes, types,
         MPI_COMM_WORLD);
    MOVE(2L * size * 4, MPI_Reduce_scatter, out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MOVE(3L * size * 4, MPI_Reduce_scatter_block, out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MOVE(N * 4, MPI_Ibcast, out, N, MPI_INT, 0, MPI_COMM_WORLD, &r);
    CALL(MPI_Wait, &r, MPI_STATUS_IGNORE);
    MOVE(N * 4, MPI_Iallreduce, out, in, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
    CALL(MPI_Wait, &r, MPI_STATUS_IGNORE);
    CALL(MPI_Ibarrier, MPI_COMM_WORLD, &r);
    CALL(MPI_Wait, &r, MPI_STATUS_IGNORE);
    (void)sum;
}

static void communicators(void)
{
    MPI_Comm dup, half, cart, row, dist, inter, merged, idup, nothing;
    MPI_Group all, some;
    MPI_Request r;
    int dims[2] = {2, 2}, periods[2] = {1, 1}, out[4] = {0}, in[4], flag, x;
    int sources[1] = {(rank + 3) % 4}, destinations[1] = {(rank + 1) % 4}, first[2] = {0, 1};
    int all_in_row[1] = {4}, open_ends[1] = {0}, below = rank > 0, above = rank < 3;
    /* Two to the one below, one to the one above: so much comes from above and from below. */
    int two_and_one[2] = {2, 1}, of_neighbours[2] = {1, 2}, places[2] = {0, 2};
    MPI_Aint offsets[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    char name[MPI_MAX_OBJECT_NAME];
    CALL(MPI_Comm_dup, MPI_COMM_WORLD, &dup);
    CALL(MPI_Comm_set_name, dup, "a copy");
    CALL(MPI_Comm_get_name, dup, name, &x);
    CALL(MPI_Comm_idup, MPI_COMM_WORLD, &idup, &r);
    CALL(MPI_Wait, &r, MPI_STATUS_IGNORE);
    CALL(MPI_Comm_split, MPI_COMM_WORLD, rank / 2, rank, &half);
    CALL(MPI_Comm_split, MPI_COMM_WORLD, MPI_UNDEFINED, 0, &nothing);
    CALL(MPI_Cart_create, MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
    CALL(MPI_Cart_coords, cart, rank, 2, in);
    MOVE(4L * 4, MPI_Neighbor_allgather, out, 1, MPI_INT, in, 1, MPI_INT, cart);
    MOVE(4L * 4, MPI_Neighbor_alltoall, out, 1, MPI_INT, in, 1, MPI_INT, cart);
    /* At the ends of a row there is one neighbour. */
    CALL(MPI_Cart_create, MPI_COMM_WORLD, 1, all_in_row, open_ends, 0, &row);
    MOVE((below + above) * 4L, MPI_Neighbor_allgather, out, 1, MPI_INT, in, 1, MPI_INT, row);
    MOVE((below * 2 + above) * 4L, MPI_Neighbor_alltoallv, out, two_and_one, places, MPI_INT, in, of_neighbours, places,
         MPI_INT, row);
    MOVE((below * 2 + above) * 4L, MPI_Neighbor_alltoallw, out, two_and_one, offsets, types, in, of_neighbours, offsets, types,
         row);
    CALL(MPI_Comm_free, &row);
    CALL(MPI_Dist_graph_create_adjacent, MPI_COMM_WORLD, 1, sources, MPI_UNWEIGHTED, 1, destinations,
         MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &dist);
    MOVE(3L * 4, MPI_Neighbor_alltoall, out, 3, MPI_INT, in, 3, MPI_INT, dist);
    CALL(MPI_Intercomm_create, half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 11, &inter);
    /* Over an intercommunicator: rank 0 sends to the other group. */
    MOVE(rank == 1 ? 0 : 8, MPI_Bcast, out, 2, MPI_INT,
         rank == 0 ? MPI_ROOT : rank == 1 ? MPI_PROC_NULL : 0, inter);
    CALL(MPI_Intercomm_merge, inter, rank >= 2, &merged);
    CALL(MPI_Comm_test_inter, inter, &flag);
    CALL(MPI_Comm_group, MPI_COMM_WORLD, &all);
    CALL(MPI_Group_incl, all, 2, first, &some);
    CALL(MPI_Group_size, some, &x);
    CALL(MPI_Group_free, &some);
    CALL(MPI_Group_free, &all);
    CALL(MPI_Comm_compare, dup, MPI_COMM_WORLD, &x);
    CALL(MPI_Comm_free, &merged);
    CALL(MPI_Comm_disconnect, &inter);
    CALL(MPI_Comm_free, &dist);
    CALL(MPI_Comm_free, &cart);
    CALL(MPI_Comm_free, &half);
    CALL(MPI_Comm_free, &idup);
    CALL(MPI_Comm_free, &dup);
}

static void one_sided(void)
{
    int memory[16] = {0}, out[4] = {0}, in[4], x = 1, y, right = (rank + 1) % size;
    MPI_Win win;
    MPI_Request r;
    CALL(MPI_Win_create, memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    CALL(MPI_Win_fence, 0, win);
    MOVE(16, MPI_Put, out, 4, MPI_INT, right, 0, 4, MPI_INT, win);
    CALL(MPI_Win_fence, 0, win);
    MOVE(8, MPI_Get, in, 2, MPI_INT, right, 0, 2, MPI_INT, win);
    CALL(MPI_Win_fence, 0, win);
    MOVE(4, MPI_Accumulate, &x, 1, MPI_INT, right, 8, 1, MPI_INT, MPI_SUM, win);
    MOVE(0, MPI_Accumulate, &x, 1, MPI_INT, MPI_PROC_NULL, 8, 1, MPI_INT, MPI_SUM, win);
    CALL(MPI_Win_fence, 0, win);
    CALL(MPI_Win_lock, MPI_LOCK_SHARED, right, 0, win);
    MOVE(4, MPI_Fetch_and_op, &x, &y, MPI_INT, right, 9, MPI_SUM, win);
    CALL(MPI_Win_flush, right, win);
    MOVE(8, MPI_Get_accumulate, NULL, 0, MPI_INT, in, 2, MPI_INT, right, 4, 2, MPI_INT, MPI_NO_OP,
         win);
    MOVE(8, MPI_Rput, out, 2, MPI_INT, right, 12, 2, MPI_INT, win, &r);
    CALL(MPI_Wait, &r, MPI_STATUS_IGNORE);
    CALL(MPI_Win_unlock, right, win);
    CALL(MPI_Win_free, &win);
}

#ifdef NO_FILES
static void files(void) {}
#else
static void files(void)
{
    int out[4] = {rank}, in[4];
    char name[64] = "calls.data";
    MPI_File file;
    MPI_Status status;
    MPI_Offset bytes;
    CALL(MPI_File_open, MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MOVE(16, MPI_File_write_at_all, file, rank * 16, out, 4, MPI_INT, &status);
    CALL(MPI_File_sync, file);
    MOVE(8, MPI_File_read_at, file, rank * 16, in, 2, MPI_INT, &status);
    CALL(MPI_File_get_size, file, &bytes);
    CALL(MPI_File_close, &file);
    CALL(MPI_Barrier, MPI_COMM_WORLD);
    if (rank == 0)
        CALL(MPI_File_delete, name, MPI_INFO_NULL);
}
#endif

static void the_rest(void)
{
    int x, flag, lengths[2] = {1, 2}, displs[2] = {0, 4}, keyval;
    char text[MPI_MAX_ERROR_STRING], value[16];
    MPI_Datatype vector, indexed;
    MPI_Aint lower, extent;
    MPI_Info info;
    void *memory, *attribute;
    double now;
    CALL(MPI_Type_vector, 2, 1, 2, MPI_INT, &vector);
    CALL(MPI_Type_commit, &vector);
    CALL(MPI_Type_size, vector, &x);
    CALL(MPI_Type_get_extent, vector, &lower, &extent);
    /* 2 elements of 2 ints. */
    int out[8] = {0}, in[8];
    MOVE(16, MPI_Sendrecv, out, 2, vector, rank, 20, in, 4, MPI_INT, rank, 20, MPI_COMM_WORLD,
         MPI_STATUS_IGNORE);
    CALL(MPI_Type_free, &vector);
    CALL(MPI_Type_indexed, 2, lengths, displs, MPI_INT, &indexed);
    CALL(MPI_Type_free, &indexed);
    CALL(MPI_Info_create, &info);
    CALL(MPI_Info_set, info, "key", "value");
    CALL(MPI_Info_get_nkeys, info, &x);
    CALL(MPI_Info_free, &info);
    (void)value;
    CALL(MPI_Error_string, MPI_SUCCESS, text, &x);
    CALL(MPI_Error_class, MPI_SUCCESS, &x);
    CALL(MPI_Get_processor_name, text, &x);
    CALL(MPI_Alloc_mem, 64, MPI_INFO_NULL, &memory);
    CALL(MPI_Free_mem, memory);
    CALL(MPI_Comm_create_keyval, MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    CALL(MPI_Comm_set_attr, MPI_COMM_WORLD, keyval, &x);
    CALL(MPI_Comm_get_attr, MPI_COMM_WORLD, keyval, &attribute, &flag);
    CALL(MPI_Comm_delete_attr, MPI_COMM_WORLD, keyval);
    CALL(MPI_Comm_free_keyval, &keyval);
    CALL(MPI_Query_thread, &x);
    CALL(MPI_Is_thread_main, &flag);
    CALL(MPI_Get_address, &x, &lower);
    note("MPI_Wtime", -1);
    now = MPI_Wtime();
    note("MPI_Wtick", -1);
    now += MPI_Wtick();
    CALL(MPI_Pcontrol, 1);
    if (now < 0)
        exit(2);
}

int main(int argc, char **argv)
{
    int flag, i;
    CALL(MPI_Initialized, &flag);
    CALL(MPI_Init, &argc, &argv);
    CALL(MPI_Initialized, &flag);
    CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
    CALL(MPI_Comm_size, MPI_COMM_WORLD, &size);
    if (size != 4)
        return 3;
    point_to_point();
    collective();
    communicators();
    one_sided();
    files();
    the_rest();
    CALL(MPI_Finalize);
    FILE *truth = truth_of(rank);
    for (i = 0; i < known; i++) {
        fprintf(truth, "%s %ld ", account[i].name, account[i].calls);
        fprintf(truth, account[i].bytes < 0 ? "-" : "%ld", account[i].bytes);
        for (int bar = 0; bar < 48; bar++)
            if (account[i].bar_calls[bar])
                fprintf(truth, " %d %ld %ld", bar, account[i].bar_calls[bar], account[i].bar_bytes[bar]);
        fputc('\n', truth);
    }
    return fclose(truth);
}
