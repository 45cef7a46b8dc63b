/* Rank 1 crashes as the argument says, at the line with that comment. Expect: `gyan now` names function, line and callers, and the
   program ends as without gyan. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int zero, depth;
static void (*volatile nothing)(void);
static void handle(int signal) { _exit(40 + signal); }

__attribute__((noinline)) static int deeper(int n) {
    volatile char room[2000];
    room[n % 2000] = (char)n;
    return deeper(n + 1) + room[depth];
}

__attribute__((noinline)) static int wrong(const char *how) {
    volatile int *nowhere = (int *)(long)zero;
    if (!strcmp(how, "segv"))
        *nowhere = 1; /* segv */
    if (!strcmp(how, "abort"))
        abort(); /* abort */
    if (!strcmp(how, "fpe"))
        depth = 7 / zero; /* fpe */
    if (!strcmp(how, "call"))
        nothing(); /* call */
    if (!strcmp(how, "in-libc"))
        memset((void *)nowhere, 0, 1000 + depth); /* in-libc */
    /* Where a limit ends it: there is one. */
    for (int i = 0; !strcmp(how, "memory") && i < 256; i++)
        memset(malloc(1 << 24), 1, 1 << 24);
    if (!strcmp(how, "overflow"))
        depth = deeper(0); /* overflow */
    return depth;
}

static void *in_thread(void *how) {
    depth = wrong(how); /* in_thread */
    return NULL;
}

int main(int argc, char **argv) {
    const char *how = argv[argc - 1];
    int rank;
    if (!strcmp(how, "handler"))
        signal(SIGSEGV, handle);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        sleep(1);
        if (!strcmp(how, "thread")) {
            pthread_t thread;
            pthread_create(&thread, NULL, in_thread, "segv");
            pthread_join(thread, NULL);
        }
        depth = wrong(strcmp(how, "handler") ? how : "segv"); /* main */
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
