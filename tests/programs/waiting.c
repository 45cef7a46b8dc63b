/* Rank 0 waits for each of 20 messages, which rank 1 sends after computing for 50 ms. Rank 0 takes the
 * time of its receives itself and writes it to truth.0: "MPI_Recv <seconds> <seconds of the longest>".
 * Expect: the time of MPI_Recv on rank 0 is that, less what lies between the two clocks. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(int argc, char **argv)
{
    int rank, x = 0;
    double sum = 0, longest = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 20; i++) {
        double begin = now();
        if (rank == 0) {
            MPI_Recv(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            double took = now() - begin;
            sum += took;
            if (took > longest)
                longest = took;
        } else if (rank == 1) {
            while (now() < begin + 0.05)
                ;
            MPI_Send(&i, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        }
    }
    if (rank == 0) {
        FILE *truth = fopen("truth.0", "w");
        fprintf(truth, "MPI_Recv %.9f %.9f\n", sum, longest);
        fclose(truth);
    }
    MPI_Finalize();
    return 0;
}
