/* Ranks that end with receives that nothing was sent to, which is wrong and goes well.
 *   left_behind any    three receives of any rank and any tag
 *   left_behind some   one of any tag from each other rank
 * Expect: "untouched" from each rank after MPI_Finalize. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 16, BYTES = 64 };

int main(int argc, char **argv)
{
    static char buffers[MOST][BYTES], zeros[MOST][BYTES];
    MPI_Request request;
    int rank, size, any = argc > 1 && !strcmp(argv[1], "any");

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < (any ? 3 : size); i++)
        if (any || i != rank)
            MPI_Irecv(buffers[i], BYTES, MPI_CHAR, any ? MPI_ANY_SOURCE : i, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    MPI_Finalize();
    puts(memcmp(buffers, zeros, sizeof buffers) ? "touched" : "untouched");
    return 0;
}
