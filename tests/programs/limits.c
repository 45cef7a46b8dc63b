/* Reaches a limit between MPI_Init and MPI_Finalize: `memory` KIB more address space than it has
 * (the MPI library may still have 4 MiB of the heap: how much is free there otherwise is chance),
 * `files` none left to open, `size` no file grows beyond this many bytes, `directory` its current
 * directory is gone. Says what happened to each.
 * Expect: the same lines and the same code with gyan as without. */
#include <malloc.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void limit(int which, rlim_t to)
{
    struct rlimit limit;
    getrlimit(which, &limit);
    limit.rlim_cur = to;
    if (setrlimit(which, &limit) != 0) {
        perror("setrlimit");
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
}

static rlim_t size_now(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &pages) != 1)
        MPI_Abort(MPI_COMM_WORLD, 9);
    fclose(file);
    return (rlim_t)pages * sysconf(_SC_PAGESIZE);
}

/* Free memory of the heap that is not given back to the system. */
static void reserve(size_t size)
{
    mallopt(M_MMAP_THRESHOLD, size * 2);
    mallopt(M_TRIM_THRESHOLD, size * 2);
    void *block = malloc(size);
    if (!block)
        MPI_Abort(MPI_COMM_WORLD, 9);
    free(block);
}

int main(int argc, char **argv)
{
    int rank;
    const char *what = argv[1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(what, "memory") == 0) {
        reserve(4 << 20);
        limit(RLIMIT_AS, size_now() + atol(argv[2]) * 1024);
    } else if (strcmp(what, "files") == 0)
        limit(RLIMIT_NOFILE, 0);
    else if (strcmp(what, "size") == 0)
        limit(RLIMIT_FSIZE, atol(argv[2]));
    else {
        char place[64];
        snprintf(place, sizeof place, "gone-%d", rank);
        if (mkdir(place, 0700) != 0 || chdir(place) != 0)
            MPI_Abort(MPI_COMM_WORLD, 9);
        snprintf(place, sizeof place, "../gone-%d", rank);
        rmdir(place);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    sigset_t waiting;
    sigpending(&waiting);
    printf("alive, %d waits\n", sigismember(&waiting, SIGXFSZ));
    return 0;
}
