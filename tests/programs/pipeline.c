/* Blocks of numbers go through the ranks as through a pipeline: each rank receives a block from the one before it, works
 * on it, and sends it to the next. Every other block takes four times as long, so when one rank has a short one the next
 * rank has a long one.
 *   usage: pipeline [BLOCKS [BYTES]]          (default 1000 100000)
 * Expect: prints the same for any setting of MPI. A rank that has sent a block needs to wait only where MPI_Send waits for
 * the receiver. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void work_on(double *block, int length, int passes)
{
    for (int pass = 0; pass < passes; pass++)
        for (int i = 1; i < length; i++)
            block[i] = 0.5 * (block[i] + block[i - 1]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, blocks = argc > 1 ? atoi(argv[1]) : 1000, length = (argc > 2 ? atoi(argv[2]) : 100000) / 8;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *block = calloc(length, sizeof *block), sum = 0;
    for (int number = 0; number < blocks; number++) {
        if (rank == 0)
            for (int i = 0; i < length; i++)
                block[i] = number + i;
        else
            MPI_Recv(block, length, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        work_on(block, length, number % 2 ? 100 : 25);
        if (rank < size - 1)
            MPI_Send(block, length, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD);
        else
            sum += block[length - 1];
    }
    if (rank == size - 1)
        printf("%d blocks: sum %.6f\n", blocks, sum);
    free(block);
    MPI_Finalize();
    return 0;
}
