/* COUNT iterations (the first argument), each of MS milliseconds at least (the second one). In each, ranks in a ring send a message
 * whose tag is the iteration and meet in MPI_Allreduce, within the phase that MPI_Pcontrol(7) begins. Outside of it the last rank sends
 * to all, and they meet again.
 *
 * Each rank writes into truth.RANK, by CLOCK_MONOTONIC in ns: "init BEGIN END" around MPI_Init. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char **argv)
{
    int rank, size, count = atoi(argv[1]);
    long ms = atol(argv[2]);
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    char name[32];
    long long begun = now_ns();

    MPI_Init(&argc, &argv);
    long long ended = now_ns();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof name, "truth.%d", rank);
    FILE *truth = fopen(name, "w");
    fprintf(truth, "init %lld %lld\n", begun, ended);
    fclose(truth);
    for (int i = 0; i < count; i++) {
        int in, out = i;
        double one = 1, sum;
        MPI_Pcontrol(7);
        MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % size, i, &in, 1, MPI_INT, (rank + size - 1) % size, i,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        nanosleep(&pause, NULL);
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Pcontrol(1);
        MPI_Bcast(&out, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
