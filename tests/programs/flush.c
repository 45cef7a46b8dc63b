/* One rank that asks for its profile while it runs: MPI_Recv three times, MPI_Pcontrol(2), and a copy
 * of the resulting profile as flushed.json; MPI_Recv four times more. With an argument it
 * dies of SIGKILL instead of ending.
 * Expect: 3 calls of MPI_Recv in flushed.json, which says that the program is running, and in what a
 * kill leaves; 7 in the profile at the end. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void receive(int n)
{
    int x;
    for (int i = 0; i < n; i++)
        MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    char name[4096];
    const char *directory = getenv("GYAN_OUTPUT");
    FILE *from;

    MPI_Init(&argc, &argv);
    receive(3);
    MPI_Pcontrol(2);
    snprintf(name, sizeof name, "%s/rank-000000.json", directory ? directory : ".");
    from = fopen(name, "r");
    if (from) {
        FILE *to = fopen("flushed.json", "w");
        for (int c = getc(from); c != EOF; c = getc(from))
            putc(c, to);
        fclose(to);
        fclose(from);
    }
    if (argc > 1)
        raise(SIGKILL);
    receive(4);
    MPI_Finalize();
    return 0;
}
