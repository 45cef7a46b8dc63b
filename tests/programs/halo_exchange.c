/* A small simulation, built like many real ones: heat spreads over a square of N x N cells, the
 * rows are divided among the ranks, and in each step neighbours exchange their border rows with
 * nonblocking receives and sends. Every 50 steps all ranks agree on how much still changes.
 *   usage: halo_exchange [N [STEPS]]          (default 1200 2000: some seconds)
 * Expect: prints the same lines for any number of ranks; 2 MPI_Irecv a step on each rank. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int n = argc > 1 ? atoi(argv[1]) : 1200, steps = argc > 2 ? atoi(argv[2]) : 2000;
    int first = (int)((long)n * rank / size), last = (int)((long)n * (rank + 1) / size);
    int rows = last - first;
    size_t width = (size_t)n;
    double *old = calloc((rows + 2) * width, sizeof *old), *new = calloc((rows + 2) * width, sizeof *new);
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;

    if (rank == 0) /* one hot edge */
        for (int x = 0; x < n; x++)
            old[width + x] = new[width + x] = 100;
    double begun = MPI_Wtime();
    for (int step = 1; step <= steps; step++) {
        MPI_Request request[4];
        MPI_Irecv(old, n, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, &request[0]);
        MPI_Irecv(old + (rows + 1) * width, n, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &request[1]);
        MPI_Isend(old + width, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &request[2]);
        MPI_Isend(old + rows * width, n, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, &request[3]);
        MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
        double change = 0;
        for (int y = 1; y <= rows; y++) {
            if (first + y - 1 == 0 || first + y - 1 == n - 1)
                continue; /* the edges stay */
            for (int x = 1; x < n - 1; x++) {
                size_t i = y * width + x;
                new[i] = 0.25 * (old[i - 1] + old[i + 1] + old[i - width] + old[i + width]);
                change = fmax(change, fabs(new[i] - old[i]));
            }
        }
        double *swap = old;
        old = new;
        new = swap;
        if (step % 50 == 0) {
            double most;
            MPI_Allreduce(&change, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (rank == 0 && step % 500 == 0)
                printf("step %5d: largest change %.6f\n", step, most);
        }
    }
    if (rank == 0 && getenv("HALO_TIME"))
        fprintf(stderr, "%.6f\n", MPI_Wtime() - begun);
    free(old);
    free(new);
    MPI_Finalize();
    return 0;
}
