/* An iterative solver, as far as its communication goes: in each step every rank multiplies its part of a matrix, all
 * exchange what they found, and agree on what is left. The last reduction of a step is nonblocking, and is polled with
 * MPI_Test until it completes: how often differs from run to run.
 *   usage: solver [STEPS [N]]          (default 200 400)
 * Expect: in a step 1 MPI_Allgather, 2 MPI_Allreduce, 1 MPI_Iallreduce on each rank, and any number of MPI_Test. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 200, n = argc > 2 ? atoi(argv[2]) : 400;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rows = n / size;
    double *x = calloc(n, sizeof *x), *part = calloc(n, sizeof *part), sums[3] = {0}, norm = 0;
    for (int i = 0; i < n; i++)
        x[i] = 1;
    for (int step = 0; step < steps; step++) {
        double own[3] = {0};
        for (int row = 0; row < rows; row++) {
            double sum = 0;
            for (int i = 0; i < n; i++)
                sum += x[i] / (1 + abs(rank * rows + row - i));
            part[row] = sum;
            own[0] += sum * sum;
            own[1] += fabs(sum);
            own[2] += sum;
        }
        MPI_Allreduce(&own[0], &sums[0], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(&own[1], &sums[1], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Request request;
        int done = 0;
        MPI_Iallreduce(&own[2], &sums[2], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        norm = sqrt(sums[0]);
        for (int row = 0; row < rows; row++)
            part[row] /= norm;
        while (!done)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        MPI_Allgather(part, rows, MPI_DOUBLE, x, rows, MPI_DOUBLE, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%d steps, norm %.6f\n", steps, norm);
    MPI_Finalize();
    return 0;
}
