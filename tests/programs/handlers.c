/* What is done at the signals by which crashes show, at several moments of a program on one rank. Expect: the same lines with gyan as without it. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <dlfcn.h>
#include <string.h>

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

static void show(const char *when)
{
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    printf("%s:", when);
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction action;
        Dl_info where = {0};
        sigaction(signals[i], NULL, &action);
        const char *object = "default";
        if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN &&
            dladdr((void *)(uintptr_t)action.sa_handler, &where) && where.dli_fname)
            object = strrchr(where.dli_fname, '/') ? strrchr(where.dli_fname, '/') + 1 : where.dli_fname;
        printf(" %d %s %#x %d", signals[i], object,
               /* Without SA_RESTORER, which the C library adds whenever an action is set. */
               action.sa_flags & ~0x04000000, sigismember(&blocked, signals[i]));
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    show("before MPI_Init");
    MPI_Init(&argc, &argv);
    show("after MPI_Init");
    for (int i = 0; i < 100; i++) {
        int sent = i, received;
        MPI_Sendrecv(&sent, 1, MPI_INT, 0, 0, &received, 1, MPI_INT, 0, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    show("after messages");
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_free(&twin);
    show("after a communicator");
    MPI_Finalize();
    show("after MPI_Finalize");
    return 0;
}
