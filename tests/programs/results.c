/* Rank 0 collects what the others find: in each round it sends the others a number to work with. They work on their items,
 * the last one first, and send the result of each with the number of the item as tag. Rank 0 receives them `in-order` of
 * their numbers, or `as-they-come`.
 *   usage: results [in-order|as-they-come [ITEMS [ROUNDS]]]          (default in-order 12000 6)
 * Expect: prints the same either way; with `in-order` the queue of unexpected messages on rank 0 is up to ITEMS - 1
 * messages of each other rank long. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double work_on(int item, int round)
{
    double sum = 0;
    for (int i = 1; i <= 10000; i++)
        sum += sqrt(item + round + i);
    return sum;
}

static void receive_in_order(double *results, int items, int from)
{
    for (int item = 0; item < items; item++)
        MPI_Recv(&results[item], 1, MPI_DOUBLE, from, item, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_as_they_come(double *results, int items, int from)
{
    for (int i = 0; i < items; i++) {
        MPI_Status status;
        double result;
        MPI_Recv(&result, 1, MPI_DOUBLE, from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        results[status.MPI_TAG] = result;
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, as_they_come = argc > 1 && !strcmp(argv[1], "as-they-come");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int items = argc > 2 ? atoi(argv[2]) : 12000, rounds = argc > 3 ? atoi(argv[3]) : 6;
    double *results = calloc(items, sizeof *results), sum = 0;
    for (int round = 0; round < rounds; round++) {
        int number = round;
        if (rank > 0) {
            MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int item = items - 1; item >= 0; item--) {
                double result = work_on(item, number);
                MPI_Send(&result, 1, MPI_DOUBLE, 0, item, MPI_COMM_WORLD);
            }
            continue;
        }
        for (int to = 1; to < size; to++)
            MPI_Send(&number, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
        for (int from = 1; from < size; from++) {
            if (as_they_come)
                receive_as_they_come(results, items, from);
            else
                receive_in_order(results, items, from);
            for (int item = 0; item < items; item++)
                sum += results[item];
        }
    }
    if (rank == 0)
        printf("%d results: sum %.6f\n", rounds * (size - 1) * items, sum);
    free(results);
    MPI_Finalize();
    return 0;
}
