/* Phases by gyan.h and by MPI_Pcontrol, in C and C++. Each rank writes what it did to the file
 * truth.<rank>, a line each: "call <function> <n> <phase>" and "entries <n> <phase>"; the phase is the
 * rest of the line, empty outside all phases. Lines for the same function and phase add up.
 * Expect: the `phases` of each profile equal these lines; except for `off` they add up to its `calls`;
 * without gyan the same output. */
#include <gyan.h>
#include <mpi.h>
#include <stdio.h>

#include "check.h"

static FILE *truth;
static int rank, size;

static void did(const char *function, int n, const char *phase)
{
    fprintf(truth, "call %s %d %s\n", function, n, phase);
}

static void entered(int n, const char *phase)
{
    fprintf(truth, "entries %d %s\n", n, phase);
}

static void receive(int n, const char *phase)
{
    int x;
    for (int i = 0; i < n; i++)
        MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    did("MPI_Recv", n, phase);
}

static int exchange(int n, const char *phase)
{
    int x = 0;
    for (int i = 0; i < n; i++)
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &x, 1, MPI_INT,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    did("MPI_Sendrecv", n, phase);
    return x;
}

int main(int argc, char **argv)
{
    int sum = 0, x;

    gyan_phase_begin("before MPI"); /* Nothing: there is no run yet. */
    gyan_phase_end();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    truth = truth_of(rank);
    did("MPI_Init", 1, "");
    did("MPI_Comm_rank", 1, "");
    did("MPI_Comm_size", 1, "");

    receive(2 + rank, "");
    for (int step = 0; step < 3; step++) {
        gyan_phase_begin("step");
        receive(3, "step");
        for (int i = 0; i < 2; i++) {
            gyan_phase_begin("exchange");
            sum += exchange(1 + step, "step/exchange");
            gyan_phase_begin("wait a moment");
            receive(rank, "step/exchange/wait a moment");
            gyan_phase_end();
            receive(1, "step/exchange");
            gyan_phase_end();
        }
        MPI_Allreduce(&step, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        did("MPI_Allreduce", 1, "step");
        gyan_phase_end();
        receive(1, "");
    }
    entered(3, "step");
    entered(6, "step/exchange");
    entered(6, "step/exchange/wait a moment");

    /* The same name elsewhere is another phase. */
    gyan_phase_begin("exchange");
    sum += exchange(5, "exchange");
    gyan_phase_end();
    entered(1, "exchange");

    /* One end too many. */
    gyan_phase_end();
    receive(1, "");

    /* Levels follow each other, and 1 goes back. */
    MPI_Pcontrol(1);
    receive(1, "");
    MPI_Pcontrol(3);
    receive(5, "level 3");
    MPI_Pcontrol(4);
    receive(6, "level 4");
    MPI_Pcontrol(3);
    receive(7, "level 3");
    gyan_phase_begin("inner");
    receive(8, "level 3/inner");
    gyan_phase_end();
    receive(9, "level 3");
    MPI_Pcontrol(2); /* Writes the profile, and changes nothing else. */
    receive(10, "level 3");
    MPI_Pcontrol(1);
    receive(1, "");
    entered(2, "level 3");
    entered(1, "level 4");
    entered(1, "level 3/inner");

    /* Off, outside and inside of a phase. */
    MPI_Pcontrol(0);
    receive(11, "off");
    MPI_Pcontrol(1);
    receive(1, "");
    gyan_phase_begin("switched");
    receive(2, "switched");
    MPI_Pcontrol(0);
    receive(13, "off");
    MPI_Pcontrol(1);
    receive(3, "switched");
    gyan_phase_end();
    receive(1, "");
    entered(2, "off");
    entered(1, "switched");

    MPI_Barrier(MPI_COMM_WORLD);
    did("MPI_Barrier", 1, "");
    did("MPI_Finalize", 1, "");
    fclose(truth);
    printf("rank %d has %d\n", rank, sum);
    MPI_Finalize();
    gyan_phase_begin("after MPI");
    gyan_phase_end();
    return 0;
}
