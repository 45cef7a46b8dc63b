/* How long a receive from MPI_PROC_NULL takes: the cost of the call itself.
 *   usage: bench_receive [CALLS]        prints nanoseconds a call, the best of ten parts */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int x, part, i, calls = argc > 1 ? atoi(argv[1]) : 20000000;
    double best = 1e9;
    MPI_Init(&argc, &argv);
    for (part = 0; part < 10; part++) {
        double begun = MPI_Wtime(), elapsed;
        for (i = 0; i < calls / 10; i++)
            MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        elapsed = (MPI_Wtime() - begun) * 1e9 / (calls / 10);
        if (elapsed < best)
            best = elapsed;
    }
    printf("%.4f\n", best);
    MPI_Finalize();
    return 0;
}
