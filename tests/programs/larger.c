/* Looks large-count functions up by dlsym, and calls what it finds, the ordinary ones where there is
 * none. 2 ranks.
 * Expect: the same output with gyan as without, also on an MPI that has none of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void *find(const char *name) { return dlsym(RTLD_DEFAULT, name); }

static int rank, size;

static void show(const char *what, const int *numbers, int count)
{
    char line[200];
    int i, at = snprintf(line, sizeof line, "%d %s", rank, what);
    for (i = 0; i < count; i++)
        at += snprintf(line + at, sizeof line - at, " %d", numbers[i]);
    puts(line);
}

static void collective(void)
{
    int out[8], in[8], i, counts[2], displs[2];
    MPI_Count large[2];
    MPI_Aint places[2];
    int (*alltoallv)(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *,
                     const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm) =
        find("MPI_Alltoallv_c");
    int (*ialltoallv)(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *,
                      const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm, MPI_Request *) =
        find("MPI_Ialltoallv_c");
    int (*gatherv)(const void *, MPI_Count, MPI_Datatype, void *, const MPI_Count *,
                   const MPI_Aint *, MPI_Datatype, int, MPI_Comm) = find("MPI_Gatherv_c");
    int (*reduce_scatter)(const void *, void *, const MPI_Count *, MPI_Datatype, MPI_Op, MPI_Comm) =
        find("MPI_Reduce_scatter_c");
    int (*allreduce)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm) =
        find("MPI_Allreduce_c");
    for (i = 0; i < 8; i++)
        out[i] = 100 * rank + i;
    for (i = 0; i < 2; i++) {
        large[i] = counts[i] = 2;
        places[i] = displs[i] = 3 * i;
    }
    memset(in, 0, sizeof in);
    if (alltoallv)
        alltoallv(out, large, places, MPI_INT, in, large, places, MPI_INT, MPI_COMM_WORLD);
    else
        MPI_Alltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, MPI_COMM_WORLD);
    show("alltoallv", in, 6);
    memset(in, 0, sizeof in);
    MPI_Request request;
    if (ialltoallv)
        ialltoallv(out, large, places, MPI_INT, in, large, places, MPI_INT, MPI_COMM_WORLD,
                   &request);
    else
        MPI_Ialltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, MPI_COMM_WORLD,
                       &request);
    /* The program may reuse the arrays only when it is complete, not before. */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    show("ialltoallv", in, 6);
    memset(in, 0, sizeof in);
    /* Only the root needs the arrays. */
    if (gatherv)
        gatherv(out, 2, MPI_INT, in, rank == 1 ? large : NULL, rank == 1 ? places : NULL, MPI_INT, 1,
                MPI_COMM_WORLD);
    else
        MPI_Gatherv(out, 2, MPI_INT, in, counts, displs, MPI_INT, 1, MPI_COMM_WORLD);
    show("gatherv", in, 6);
    memset(in, 0, sizeof in);
    if (reduce_scatter)
        reduce_scatter(out, in, large, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else
        MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    show("reduce_scatter", in, 2);
    if (allreduce)
        allreduce(MPI_IN_PLACE, out, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else
        MPI_Allreduce(MPI_IN_PLACE, out, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    show("allreduce", out, 3);
}

static void datatypes(void)
{
    MPI_Datatype indexed, vector;
    int lengths[3] = {1, 2, 3}, places[3] = {0, 2, 5}, small, position = 0;
    MPI_Count large[3] = {1, 2, 3}, displs[3] = {0, 2, 5}, size_of = -1, at = 0, packed = -1;
    char buffer[100];
    int (*type_indexed)(MPI_Count, const MPI_Count *, const MPI_Count *, MPI_Datatype,
                        MPI_Datatype *) = find("MPI_Type_indexed_c");
    int (*type_vector)(MPI_Count, MPI_Count, MPI_Count, MPI_Datatype, MPI_Datatype *) =
        find("MPI_Type_vector_c");
    int (*type_size)(MPI_Datatype, MPI_Count *) = find("MPI_Type_size_c");
    int (*pack_size)(MPI_Count, MPI_Datatype, MPI_Comm, MPI_Count *) = find("MPI_Pack_size_c");
    int (*pack)(const void *, MPI_Count, MPI_Datatype, void *, MPI_Count, MPI_Count *, MPI_Comm) =
        find("MPI_Pack_c");
    if (type_indexed)
        type_indexed(3, large, displs, MPI_INT, &indexed);
    else
        MPI_Type_indexed(3, lengths, places, MPI_INT, &indexed);
    if (type_vector)
        type_vector(3, 2, 4, MPI_INT, &vector);
    else
        MPI_Type_vector(3, 2, 4, MPI_INT, &vector);
    if (type_size)
        type_size(indexed, &size_of);
    else {
        MPI_Type_size(indexed, &small);
        size_of = small;
    }
    printf("%d size %lld\n", rank, (long long)size_of);
    MPI_Type_size(vector, &small);
    printf("%d vector %d\n", rank, small);
    if (pack_size)
        pack_size(3, MPI_INT, MPI_COMM_WORLD, &packed);
    else {
        MPI_Pack_size(3, MPI_INT, MPI_COMM_WORLD, &small);
        packed = small;
    }
    if (pack) {
        pack(lengths, 1, MPI_INT, buffer, sizeof buffer, &at, MPI_COMM_WORLD);
        pack(lengths, 2, MPI_INT, buffer, sizeof buffer, &at, MPI_COMM_WORLD);
    } else {
        MPI_Pack(lengths, 1, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
        MPI_Pack(lengths, 2, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
        at = position;
    }
    printf("%d packed %lld of %d\n", rank, (long long)at, packed >= at);
    MPI_Type_free(&indexed);
    MPI_Type_free(&vector);
}

static void neighbors(void)
{
    MPI_Comm ring;
    int dims[1] = {2}, periods[1] = {1}, out[4], in[4] = {0}, counts[2] = {1, 2}, displs[2] = {0, 1};
    int received[2] = {2, 1}, at[2] = {0, 2}, i;
    MPI_Count large[2] = {1, 2}, coming[2] = {2, 1};
    MPI_Aint places[2] = {0, 1}, from[2] = {0, 2};
    int (*alltoallv)(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *,
                     const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm) =
        find("MPI_Neighbor_alltoallv_c");
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
    for (i = 0; i < 4; i++)
        out[i] = 10 * rank + i;
    if (alltoallv)
        alltoallv(out, large, places, MPI_INT, in, coming, from, MPI_INT, ring);
    else
        MPI_Neighbor_alltoallv(out, counts, displs, MPI_INT, in, received, at, MPI_INT, ring);
    show("neighbor_alltoallv", in, 3);
    MPI_Comm_free(&ring);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    collective();
    datatypes();
    neighbors();
    MPI_Finalize();
    return 0;
}
