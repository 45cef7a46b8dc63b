/* Phases that no sane program has: more than gyan keeps apart, names of 4 KiB, empty, null and with
 * odd bytes, a hundred inside each other, ends without begins. In each of them one receive, but for
 * one: "outer", which has the one without a name inside it.
 * Expect: 3 + 8 + 300 + 100 = 411 calls of MPI_Recv, all in one phase or another, one in "outer", and
 * the output as without gyan. */
#include <gyan.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int received;

static void receive(void)
{
    int x;
    MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    received++;
}

static void phase(const char *name)
{
    gyan_phase_begin(name);
    receive();
    gyan_phase_end();
}

int main(int argc, char **argv)
{
    static char name[4097];

    MPI_Init(&argc, &argv);
    for (int i = 0; i < 3; i++) {
        gyan_phase_end();
        receive();
    }
    memset(name, 'x', 4096);
    phase(name);
    phase("");
    gyan_phase_begin("outer");
    phase(NULL);
    receive();
    gyan_phase_end();
    phase("a/b\\c \"quoted\" <i>&amp;</i> ,;\t%s%n");
    phase("two\nlines\x1b[31m\x01");
    phase("\xff\xfe\xc3");
    phase("d\xc3\xa9tour \xe2\x88\x91");
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "number %d", i);
        phase(name);
    }
    for (int i = 0; i < 100; i++) {
        gyan_phase_begin("deeper");
        receive();
    }
    /* Some are left open. */
    for (int i = 0; i < 90; i++)
        gyan_phase_end();
    printf("received %d\n", received);
    MPI_Finalize();
    return 0;
}
