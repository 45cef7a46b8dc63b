/* A persistent collective operation with large counts, for the MPI library of tests/fakempi, which has none
 * of these and reads the arrays of counts when the operation is started. Asks for MPI_Alltoallv_init_c by a weak
 * reference before MPI_Init, when a preloaded profiler cannot know what the MPI lacks; without it, calls
 * MPI_Alltoallv_init. Memory that was freed since then is reused. 1 rank.
 * Expect: the same output with gyan as without, "0 0 2 3 0". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 64, BYTES = 64 };

extern int asked(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *, const MPI_Count *,
                 const MPI_Aint *, MPI_Datatype, MPI_Comm, MPI_Info, MPI_Request *) __asm__("MPI_Alltoallv_init_c")
    __attribute__((weak));

int main(int argc, char **argv)
{
    int out[5] = {1, 2, 3, 4, 5}, in[5] = {0}, count = 2, from = 1, to = 2;
    MPI_Count large_count = 2;
    MPI_Aint large_from = 1, large_to = 2;
    MPI_Request request;
    int (*volatile alltoallv_init)(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *,
                                   const MPI_Count *, const MPI_Aint *, MPI_Datatype, MPI_Comm, MPI_Info,
                                   MPI_Request *) = asked;
    MPI_Init(&argc, &argv);
    if (alltoallv_init)
        alltoallv_init(out, &large_count, &large_from, MPI_INT, in, &large_count, &large_to, MPI_INT,
                       MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Alltoallv_init(out, &count, &from, MPI_INT, in, &count, &to, MPI_INT, MPI_COMM_WORLD,
                           MPI_INFO_NULL, &request);
    for (int size = 1; size <= BYTES; size++)
        for (int block = 0; block < BLOCKS; block++)
            memset(malloc(size), 0, size);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    printf("%d %d %d %d %d\n", in[0], in[1], in[2], in[3], in[4]);
    MPI_Finalize();
    return 0;
}
