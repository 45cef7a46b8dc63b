/* A program that ends in its argument's way: two ranks. Rank 0 receives a few messages from rank 1
 * before; rank 1 ends as rank 0 does, unless said otherwise.
 *   finalize         MPI_Finalize, return 0
 *   abort CODE       rank 1 calls MPI_Abort(CODE) while rank 0 waits
 *   handler CODE     the same in an error handler, of an error in MPI
 *   reaper           a child that leaves at once; the process takes in orphans and waits for all its children
 *   exit CODE        exit without MPI_Finalize
 *   return CODE      return from main without MPI_Finalize
 *   _exit CODE       _exit
 *   signal NUMBER    the default action of a signal, on rank 1 while rank 0 waits
 *   all NUMBER       the same on both
 *   hang             rank 1 goes on for good while rank 0 waits
 *   handled NUMBER   the same with a handler that writes "handled" to stdout and leaves by _exit(7)
 *   atexit           MPI_Finalize in a handler of atexit that is registered before MPI_Init
 *   atexit-late      the same, registered after MPI_Init
 *   twice            MPI_Finalize again
 *   fatal            an error in MPI, with the default error handler, on rank 1
 *   fork             a child that leaves by exit(0), and is waited for; then MPI_Finalize
 *   fork-exec        the same with /bin/true
 * Expect: what the way says; "rank R ready" on stdout of each rank in every case. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES = 5 };

static int rank;

static void handled(int number)
{
    static const char text[] = "handled\n";
    (void)number;
    if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
        _exit(8);
    _exit(7);
}

static int code_of_handler;

static void abort_in_handler(MPI_Comm *comm, int *error, ...)
{
    (void)error;
    MPI_Abort(*comm, code_of_handler);
}

static void wait_for_all_children(void)
{
    int children = 0;
    if (fork() == 0)
        _exit(0);
    while (wait(NULL) > 0)
        children++;
    printf("rank %d: %d children\n", rank, children);
}

static void finalize(void)
{
    MPI_Finalize();
}

/* What never comes. */
static void wait_for_good(void)
{
    int x;
    MPI_Recv(&x, 1, MPI_INT, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void child(int exec)
{
    pid_t pid = fork();
    int status;
    if (pid == 0 && exec)
        execl("/bin/true", "true", (char *)NULL);
    if (pid == 0)
        exit(0);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        printf("rank %d: the child failed\n", rank);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "finalize";
    int number = argc > 2 ? atoi(argv[2]) : 0, x = 0;

    if (strcmp(way, "atexit") == 0)
        atexit(finalize);
    if (strcmp(way, "reaper") == 0)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    MPI_Init(&argc, &argv);
    if (strcmp(way, "atexit-late") == 0)
        atexit(finalize);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < MESSAGES; i++)
        if (rank == 1)
            MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        else if (rank == 0)
            MPI_Recv(&x, 1, MPI_INT, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("rank %d ready\n", rank);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);

    int alone = !strcmp(way, "abort") || !strcmp(way, "signal") || !strcmp(way, "handled") ||
                !strcmp(way, "hang") || !strcmp(way, "fatal") || !strcmp(way, "handler");
    if (alone && rank == 0)
        wait_for_good();
    if (strcmp(way, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, number);
    if (strcmp(way, "handler") == 0) {
        MPI_Errhandler handler;
        code_of_handler = number;
        MPI_Comm_create_errhandler(abort_in_handler, &handler);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        MPI_Send(&x, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD);
    }
    if (strcmp(way, "reaper") == 0)
        wait_for_all_children();
    if (strcmp(way, "exit") == 0)
        exit(number);
    if (strcmp(way, "return") == 0)
        return number;
    if (strcmp(way, "_exit") == 0)
        _exit(number);
    if (strcmp(way, "handled") == 0)
        signal(number, handled);
    while (strcmp(way, "hang") == 0)
        pause();
    if (!strcmp(way, "signal") || !strcmp(way, "all") || !strcmp(way, "handled"))
        kill(getpid(), number);
    if (strcmp(way, "fatal") == 0)
        MPI_Send(&x, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD);
    if (strcmp(way, "fork") == 0 || strcmp(way, "fork-exec") == 0)
        child(strcmp(way, "fork-exec") == 0);
    if (strncmp(way, "atexit", 6) != 0)
        MPI_Finalize();
    if (strcmp(way, "twice") == 0)
        MPI_Finalize();
    return 0;
}
