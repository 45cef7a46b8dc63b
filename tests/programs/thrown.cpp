// An error handler that throws exceptions of C++ through the MPI library and whatever lies between it
// and the program, again and again, and calls after that.
// Expect: 20 times MPI_Send, each thrown out of, and MPI_Comm_size, in each profile; "rank R caught 20"
// on stdout of each rank.
#include <mpi.h>

#include <cstdio>
#include <stdexcept>

static void throw_error(MPI_Comm *, int *, ...)
{
    throw std::runtime_error("no such rank");
}

int main(int argc, char **argv)
{
    int rank, size, caught = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Errhandler thrower;
    MPI_Comm_create_errhandler(throw_error, &thrower);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, thrower);
    for (int i = 0; i < 20; i++) {
        try {
            MPI_Send(&rank, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD);
        } catch (const std::runtime_error &) {
            caught++;
        }
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    }
    std::printf("rank %d caught %d\n", rank, caught);
    std::fflush(stdout);
    MPI_Finalize();
    return 0;
}
