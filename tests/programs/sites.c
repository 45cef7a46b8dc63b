/* Calls MPI from known lines, known numbers of times, on 2 ranks: directly, through a function that the
   compiler puts into its callers, through a library of the program's (-DLIBRARY makes that), and from code that is in
   no file. A line with a site says so, with the number of calls on all ranks. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void library_sum(double *values, int count);
void library_twice(double *values, int count);
void library_barrier(void);

#ifdef LIBRARY
static int calls;

__attribute__((noinline)) void library_sum(double *values, int count) {
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* library: sum */
    calls++; /* or it would be a jump, which leaves no frame */
}

void library_twice(double *values, int count) {
    library_sum(values, count); /* library: twice */
    library_sum(values, count);
    calls++;
}

void library_barrier(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    calls++;
}
#else
static int rank, other;

static inline __attribute__((always_inline)) void swap(char *out, char *in, int bytes) {
    MPI_Sendrecv(out, bytes, MPI_BYTE, other, 1, in, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* inlined: swap */
}

__attribute__((noinline)) static void near(char *out, char *in) {
    for (int i = 0; i < 30; i++) {
        swap(out, in, 100); /* into: near */
        out[0]++;
    }
}

__attribute__((noinline)) static void far(char *out, char *in) {
    for (int i = 0; i < 20; i++) {
        swap(out, in, 1000); /* into: far */
        out[0]++;
    }
}

__attribute__((noinline)) static void messages(char *buffer) {
    for (int i = 0; i < 4; i++) {
        if (rank == 0)
            MPI_Send(buffer, 10, MPI_BYTE, 1, 2, MPI_COMM_WORLD); /* site: send 4 */
        else
            MPI_Recv(buffer, 10, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* site: receive 4 */
    }
    for (int i = 0; i < 10; i++) {
        if (rank == 0) {
            usleep(100000);
            MPI_Send(buffer, 7, MPI_BYTE, 1, 3, MPI_COMM_WORLD); /* site: late 10 */
        } else {
            MPI_Recv(buffer, 7, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* site: wait 10 */
        }
    }
}

#if defined __x86_64__
/* As Python's perf trampolines do: code in memory that calls a function, and a file that names it. */
static void made(void) {
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    void *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char name[64];
    memcpy(place, code, sizeof code);
    mprotect(place, 4096, PROT_READ | PROT_EXEC);
    snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(name, "w");
    fprintf(map, "%lx %zx py::compute:/somewhere/model.py\n", (unsigned long)place, sizeof code);
    fclose(map);
    for (int i = 0; i < 6; i++)
        ((void (*)(void (*)(void)))place)(library_barrier);
}
#endif

int main(int argc, char **argv) {
    static char out[1000], in[1000];
    double values[3] = {1, 2, 3};
    char name[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank); /* site: rank 2 */
    other = 1 - rank;
    near(out, in);
    far(out, in);
    messages(in);
    for (int i = 0; i < 12; i++)
        library_sum(values, 3); /* through: once 24 */
    for (int i = 0; i < 5; i++)
        library_twice(values, 2); /* through: twice 20 */
    if (argc > 1)
        made();
    MPI_Finalize();
    snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
    unlink(name);
    return 0;
}
#endif
