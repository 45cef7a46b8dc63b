/* COUNT times (the argument) rank 0 sends a message to rank 1 after a pause of up to 0.3 ms, and each fourth time both meet in
 * MPI_Allreduce, to which rank 1 comes after such a pause. The time after, rank 0 broadcasts after a pause, and the time after that it is
 * the root of a reduction to which rank 1 comes after a pause.
 *
 * Rank 0 prints how long the ranks wait by definition, in s, from CLOCK_REALTIME, which both share: "MPI_Recv S" until the message is
 * sent, and "MPI_Allreduce S", "MPI_Bcast S" and "MPI_Reduce S" until the other one comes, each no longer than the call. A last line, "longer S", is by how much one
 * rank's MPI_Allreduce takes longer than the other's: also what it returns later, as it lost its processor. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

static double now(void) { return seconds_by(CLOCK_REALTIME); }

static void pause_a_little(void)
{
    struct timespec pause = {0, rand() % 300000};
    nanosleep(&pause, NULL);
}

static double waited(const double *call, double other)
{
    double until = other < call[1] ? other : call[1];
    return until > call[0] ? until - call[0] : 0;
}

int main(int argc, char **argv)
{
    int rank, count = atoi(argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    srand(rank + 1);
    /* Begin and end of the message's call and of the collective's. */
    double(*times)[4] = calloc(count, sizeof *times), (*others)[4] = calloc(count, sizeof *others);
    for (int i = 0; i < count; i++) {
        int one = 1, sum;
        if (rank == 0)
            pause_a_little();
        times[i][0] = now();
        if (rank == 0)
            MPI_Send(&one, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
        else
            MPI_Recv(&one, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        times[i][1] = now();
        if (i % 4 < 3 && rank == (i % 4 != 1))
            pause_a_little();
        times[i][2] = now();
        if (i % 4 == 0)
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (i % 4 == 1)
            MPI_Bcast(&one, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (i % 4 == 2)
            MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        times[i][3] = now();
    }
    MPI_Sendrecv(times, 4 * count, MPI_DOUBLE, 1 - rank, 5, others, 4 * count, MPI_DOUBLE, 1 - rank, 5, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (rank == 0) {
        double receive = 0, allreduce = 0, broadcast = 0, reduce = 0, longer = 0;
        for (int i = 0; i < count; i++) {
            receive += waited(others[i], times[i][0]);
            if (i % 4 == 1)
                broadcast += waited(others[i] + 2, times[i][2]);
            if (i % 4 == 2)
                reduce += waited(times[i] + 2, others[i][2]);
            if (i % 4 != 0)
                continue;
            allreduce += waited(times[i] + 2, others[i][2]) + waited(others[i] + 2, times[i][2]);
            longer += fabs(times[i][3] - times[i][2] - (others[i][3] - others[i][2]));
        }
        printf("MPI_Recv %.6f\nMPI_Allreduce %.6f\nMPI_Bcast %.6f\nMPI_Reduce %.6f\nlonger %.6f\n", receive, allreduce, broadcast,
               reduce, longer);
    }
    MPI_Finalize();
    return 0;
}
