/* How long 8 bytes take to another rank and back.
 *   usage: bench_pingpong [ROUND TRIPS]   prints nanoseconds a round trip, the best of ten parts */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, part, i, trips = argc > 1 ? atoi(argv[1]) : 500000;
    double value = 0, best = 1e9;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (part = 0; part < 10; part++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begun = MPI_Wtime(), elapsed;
        for (i = 0; i < trips / 10; i++) {
            if (rank == 0) {
                MPI_Send(&value, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
                MPI_Recv(&value, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
            }
        }
        elapsed = (MPI_Wtime() - begun) * 1e9 / (trips / 10);
        if (elapsed < best)
            best = elapsed;
    }
    if (rank == 0)
        printf("%.4f\n", best);
    MPI_Finalize();
    return 0;
}
