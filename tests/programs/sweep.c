/* Work in phases: rank 0 makes the data and hands it to all (`setup`), then in each step all work on it (`step`), and rank 0
 * receives many small messages of the others (`step/collect`), after it has worked: they wait in a queue.
 *   usage: sweep [STEPS]          (default 500)
 * Expect: in each step 20 messages of each rank but 0. */
#include <gyan.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 20, LENGTH = 1 << 16 };

static double data[LENGTH];

static double work_on(int step, int passes)
{
    for (int pass = 0; pass < passes; pass++)
        for (int i = 1; i < LENGTH; i++)
            data[i] = 0.5 * (data[i] + data[i - 1]) + step;
    return data[LENGTH - 1];
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 500;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double found = 0, largest = 0;

    gyan_phase_begin("setup");
    if (rank == 0)
        work_on(0, 2000);
    MPI_Bcast(data, LENGTH, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    gyan_phase_end();

    for (int step = 0; step < steps; step++) {
        gyan_phase_begin("step");
        /* Rank 0 has more to do from step to step, and more messages are there when it is done. */
        found = work_on(step, rank == 0 ? 20 + step / 25 : 20);
        gyan_phase_begin("collect");
        for (int i = 0; i < MESSAGES * (rank == 0 ? size - 1 : 1); i++)
            if (rank == 0)
                MPI_Recv(&found, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else
                MPI_Send(&found, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
        gyan_phase_end();
        MPI_Allreduce(&found, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        gyan_phase_end();
    }
    if (rank == 0)
        printf("%d steps: largest %.6f\n", steps, largest);
    MPI_Finalize();
    return 0;
}
