// Receives in C++, through the interface for C, and errors as exceptions that fly through the MPI
// library, and through whatever lies between it and the program.
// Expect: MPI_Recv 5 + rank, MPI_Irecv 3, MPI_Sendrecv 2, MPI_Recv_init 1, and the
// MPI_Sendrecv_replace that throws, in each profile; the same
// output as without gyan.
#include <mpi.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void throw_error(MPI_Comm *, int *code, ...)
{
    int error_class = 0;
    MPI_Error_class(*code, &error_class);
    throw std::runtime_error(error_class == MPI_ERR_RANK ? "no such rank" : "another error");
}

struct Environment {
    Environment(int &argc, char **&argv) { MPI_Init(&argc, &argv); }
    ~Environment() { MPI_Finalize(); }
};

template <typename T> std::vector<T> received(int source, int tag, std::size_t count)
{
    std::vector<T> buffer(count);
    MPI_Recv(buffer.data(), static_cast<int>(buffer.size() * sizeof(T)), MPI_BYTE, source, tag,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return buffer;
}

} // namespace

int main(int argc, char **argv)
{
    Environment environment(argc, argv);
    int rank, size, x = 0, y = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    std::array<MPI_Request, 2> requests;

    MPI_Errhandler thrower;
    MPI_Comm_create_errhandler(throw_error, &thrower);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, thrower);
    std::string caught = "nothing";
    try {
        // It does not return.
        MPI_Sendrecv_replace(&x, 1, MPI_INT, 12345, 0, 12345, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } catch (const std::runtime_error &error) {
        caught = error.what();
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&thrower);

    for (int i = 0; i < 4 + rank; i++)
        received<double>(MPI_PROC_NULL, 0, 3);
    MPI_Isend("from the left", 14, MPI_CHAR, right, 1, MPI_COMM_WORLD, &requests[0]);
    const std::vector<char> text = received<char>(left, 1, 14);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) {
        MPI_Irecv(&x, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&rank, 1, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < 2; i++)
        MPI_Sendrecv(&rank, 1, MPI_INT, right, 3, &y, 1, MPI_INT, left, 3, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    MPI_Recv_init(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Request_free(&requests[0]);
    int total = rank;
    MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    std::printf("rank %d caught %s, received %s, %d, %d, sum %d\n", rank, caught.c_str(),
                text.data(), x, y, total);
    std::fflush(stdout);
    return 0;
}
