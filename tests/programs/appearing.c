/* Makes MPICH register performance variables while the program runs: some come with the first
 * MPI_Dims_create, some with the first window. Writes how many there were after MPI_Init and how many
 * there are at the end to truth.<rank>.
 * Expect: the profile has the later number as exported, and the new variables without a start. */
#include <mpi.h>
#include <stdio.h>

#include "check.h"

int main(int argc, char **argv)
{
    int provided, rank, before, after, dims[2] = {0, 0}, value = 0;
    MPI_Win window;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_T_pvar_get_num(&before);
    MPI_Dims_create(12, 2, dims);
    MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_T_pvar_get_num(&after);
    FILE *truth = truth_of(rank);
    fprintf(truth, "%d %d\n", before, after);
    fclose(truth);
    MPI_Finalize();
    return 0;
}
