/* What gyan doctor --site compiles and runs: the least of which there is something to record. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int one = 1, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all == 0;
}
