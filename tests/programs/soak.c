/* A program that runs for long: what comes and goes in it is to leave nothing behind.
 *   usage: soak SECONDS [ROUNDS]
 * In each of ROUNDS (100) rounds, which are spread evenly over SECONDS: 1,000,000 calls, 10,000 requests that are made and
 * freed, 1,000 communicators, of which each second is a duplicate, and 100 threads that call MPI and end.
 * Expect: a line for each round with its number, its calls, requests, communicators and threads so far, and the kilobytes of
 * memory and the number of open files of rank 0. */
#define _GNU_SOURCE
#include <dirent.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long calls;

static long resident(void)
{
    char line[256];
    long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "VmRSS:", 6))
            kilobytes = atol(line + 6);
    fclose(status);
    return kilobytes;
}

static long open_files(void)
{
    long files = 0;
    DIR *all = opendir("/proc/self/fd");
    while (readdir(all))
        files++;
    closedir(all);
    return files;
}

static void exchange(MPI_Comm comm)
{
    int rank, size, x = 1, y;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Sendrecv(&x, 1, MPI_INT, (rank + 1) % size, 0, &y, 1, MPI_INT, (rank + size - 1) % size, 0, comm,
                 MPI_STATUS_IGNORE);
    MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, comm);
    calls += 4;
}

static void *in_thread(void *unused)
{
    int found;
    (void)unused;
    for (int i = 0; i < 100; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    return NULL;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 600;
    int provided, rank, rounds = argc > 2 ? atoi(argv[2]) : 100;
    long requests = 0, communicators = 0, threads = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double begun = MPI_Wtime();
    for (int round = 1; round <= rounds; round++) {
        for (int i = 0; i < 1000; i++, communicators++) {
            MPI_Comm comm;
            if (i % 2)
                MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            else
                MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
            exchange(comm);
            MPI_Comm_free(&comm);
            calls += 2;
        }
        for (int i = 0; i < 10000; i++, requests++) {
            MPI_Request request;
            int x = 0;
            MPI_Send_init(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
            calls += 2;
        }
        for (int i = 0; i < 100; i++, threads++) {
            pthread_t thread;
            pthread_create(&thread, NULL, in_thread, NULL);
            pthread_join(thread, NULL);
            calls += 100;
        }
        for (int found; calls < 1000000L * round; calls++)
            MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
        while (MPI_Wtime() - begun < seconds * round / rounds) {
            struct timespec moment = {0, 10000000};
            nanosleep(&moment, NULL);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            printf("%d %ld %ld %ld %ld %ld %ld\n", round, calls, requests, communicators, threads, resident(),
                   open_files());
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
