/* Ends with the code in its first argument, after writing to stdout and to stderr.
 * Expect: the same two lines and the same code with gyan as without. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    printf("out\n");
    fprintf(stderr, "err\n");
    MPI_Finalize();
    return argc > 1 ? atoi(argv[1]) : 0;
}
