/* Heat spreads over a plate in the shape of a triangle: row y has y + 1 cells. The rows are divided among the ranks. With
 * `rows` each rank gets as many rows as the others, with `cells` about as many cells. After each step all ranks agree on
 * how much still changes. Built with OpenMP, the threads of a rank share its rows as OMP_SCHEDULE says.
 *   usage: plate [rows|cells [N [STEPS]]]          (default rows 2000 1000)
 * Expect: prints the same for any number of ranks, and for `rows` and `cells`; of 2 ranks rank 1 has three quarters of the
 * cells with `rows`, half of them with `cells`. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first row of a rank. */
static int first_row(int rank, int size, int n, int by_cells)
{
    double part = (double)rank / size;
    return (int)(n * (by_cells ? sqrt(part) : part));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, by_cells = argc > 1 && !strcmp(argv[1], "cells");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int n = argc > 2 ? atoi(argv[2]) : 2000, steps = argc > 3 ? atoi(argv[3]) : 1000;
    int first = first_row(rank, size, n, by_cells), rows = first_row(rank + 1, size, n, by_cells) - first;
    size_t width = (size_t)n;
    double *old = calloc((rows + 2) * width, sizeof *old), *new = calloc((rows + 2) * width, sizeof *new), most = 0;
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    int last = first + rows - (rank == size - 1); /* the long edge stays hot */
    if (rank == size - 1)
        for (int x = 0; x < n; x++)
            old[rows * width + x] = new[rows * width + x] = 100;
    for (int step = 0; step < steps; step++) {
        MPI_Sendrecv(old + width, n, MPI_DOUBLE, up, 0, old + (rows + 1) * width, n, MPI_DOUBLE, down, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(old + rows * width, n, MPI_DOUBLE, down, 1, old, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        double change = 0, *swap = old;
#pragma omp parallel for schedule(runtime) reduction(max : change)
        for (int y = first; y < last; y++)
            for (int x = 1; x < y; x++) {
                size_t i = (y - first + 1) * width + x;
                new[i] = 0.25 * (old[i - 1] + old[i + 1] + old[i - width] + old[i + width]);
                change = fmax(change, fabs(new[i] - old[i]));
            }
        old = new;
        new = swap;
        MPI_Allreduce(&change, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%d steps: largest change %.6f\n", steps, most);
    free(old);
    free(new);
    MPI_Finalize();
    return 0;
}
