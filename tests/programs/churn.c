/* As many communicators and windows as the argument says, each freed before the next is created. 2 ranks; written
 * for Open MPI, whose point-to-point component has a variable for each communicator.
 * Expect: exact numbers of calls; of the communicators, "step 0" on, those that the budget allows, and those
 * that are in the profile and those that are left out add up. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int i, x = 0, steps;
    char name[32];
    MPI_Comm comm;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    steps = atoi(argv[1]);
    for (i = 0; i < steps; i++) {
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        snprintf(name, sizeof name, "step %d", i);
        MPI_Comm_set_name(comm, name);
        MPI_Comm_free(&comm);
        MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_free(&win);
    }
    MPI_Finalize();
    return 0;
}
