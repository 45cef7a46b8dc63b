/* How many instructions gyan executes in a call: the processor stops after each one (the trap flag, bit 8
 * of its flags), and those in libgyan.so are counted. x86-64, one rank.
 *   usage: instructions [multiple]
 *   multiple: with MPI_THREAD_MULTIPLE
 * Expect: a line for each function, its name and the number that most of its calls took; a call that gyan
 * times takes more. */
#define _GNU_SOURCE
#include <link.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define CALLS 64
#define BEFORE 8192

static unsigned long begin, end;
static volatile long instructions;
static int stepping;

static int find(struct dl_phdr_info *object, size_t size, void *argument)
{
    (void)size, (void)argument;
    if (!strstr(object->dlpi_name, "libgyan"))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X) {
            begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
            end = begin + object->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

/* The next instruction to execute. */
static void step(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    unsigned long at = (unsigned long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    instructions += at >= begin && at < end;
}

/* Beyond the red zone, where the compiler keeps variables. */
#define SET_FLAGS(operation)                                                                       \
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\t" operation                              \
                     ", (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::: "memory", "cc")
#define COUNTED(call)                                                                              \
    do {                                                                                           \
        instructions = 0;                                                                          \
        if (stepping)                                                                              \
            SET_FLAGS("orq $0x100");                                                               \
        call;                                                                                      \
        SET_FLAGS("andq $~0x100");                                                                 \
    } while (0)

static int x, y, flag;
static MPI_Request request = MPI_REQUEST_NULL, other;
#define WORLD MPI_COMM_WORLD
#define NONE MPI_STATUS_IGNORE

/* The first message from a rank is timed: each poll looks at its request until it has come, with the last one. */
static void poll(void)
{
    static MPI_Request timed;
    static int polls;
    if (polls++ == 0)
        MPI_Irecv(&x, 1, MPI_INT, 0, 1, WORLD, &timed);
    COUNTED(MPI_Test(&timed, &flag, NONE));
    if (polls == BEFORE + CALLS) {
        MPI_Send(&y, 1, MPI_INT, 0, 1, WORLD);
        MPI_Wait(&timed, NONE);
    }
}

static void receive(void) { COUNTED(MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, WORLD, NONE)); }
static void test(void) { COUNTED(MPI_Test(&request, &flag, NONE)); }
static void testall(void) { COUNTED(MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE)); }
static void testany(void) { COUNTED(MPI_Testany(1, &request, &x, &flag, NONE)); }
static void iprobe(void) { COUNTED(MPI_Iprobe(MPI_ANY_SOURCE, 0, WORLD, &flag, NONE)); }
static void wait(void) { COUNTED(MPI_Wait(&request, NONE)); }
static void waitall(void) { COUNTED(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE)); }
static void barrier(void) { COUNTED(MPI_Barrier(WORLD)); }
static void rank(void) { COUNTED(MPI_Comm_rank(WORLD, &x)); }
static void broadcast(void) { COUNTED(MPI_Bcast(&x, 1, MPI_INT, 0, WORLD)); }
static void allreduce(void) { COUNTED(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, WORLD)); }

static void alltoall(void)
{
    COUNTED(MPI_Alltoall(&x, 1, MPI_INT, &y, 1, MPI_INT, WORLD));
}

static void send(void)
{
    MPI_Irecv(&x, 1, MPI_INT, 0, 0, WORLD, &other);
    COUNTED(MPI_Send(&y, 1, MPI_INT, 0, 0, WORLD));
    MPI_Wait(&other, NONE);
}

static void isend(void)
{
    MPI_Request sent;
    MPI_Irecv(&x, 1, MPI_INT, 0, 0, WORLD, &other);
    COUNTED(MPI_Isend(&y, 1, MPI_INT, 0, 0, WORLD, &sent));
    MPI_Wait(&other, NONE);
    MPI_Wait(&sent, NONE);
}

static void irecv(void)
{
    COUNTED(MPI_Irecv(&x, 1, MPI_INT, 0, 0, WORLD, &other));
    MPI_Send(&y, 1, MPI_INT, 0, 0, WORLD);
    MPI_Wait(&other, NONE);
}

static void sendrecv(void)
{
    COUNTED(MPI_Sendrecv(&y, 1, MPI_INT, 0, 0, &x, 1, MPI_INT, 0, 0, WORLD, NONE));
}

static int ascending(const void *one, const void *other)
{
    long a = *(const long *)one, b = *(const long *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } all[] = {{"MPI_Test of a timed message", poll},
               {"MPI_Recv", receive},      {"MPI_Irecv", irecv},   {"MPI_Test", test},
               {"MPI_Testall", testall},   {"MPI_Testany", testany}, {"MPI_Iprobe", iprobe},
               {"MPI_Wait", wait},         {"MPI_Waitall", waitall}, {"MPI_Barrier", barrier},
               {"MPI_Comm_rank", rank},    {"MPI_Send", send},       {"MPI_Isend", isend},
               {"MPI_Sendrecv", sendrecv}, {"MPI_Bcast", broadcast}, {"MPI_Allreduce", allreduce},
               {"MPI_Alltoall", alltoall}};
    int level = argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, provided;
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    MPI_Init_thread(&argc, &argv, level, &provided);
    if (provided < level)
        MPI_Abort(WORLD, 2);
    dl_iterate_phdr(find, NULL);
    sigaction(SIGTRAP, &action, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        long counts[CALLS], most = 0;
        int often = 0;
        /* The first are timed, and many of the first thousand messages. */
        stepping = 0;
        for (int j = 0; j < BEFORE; j++)
            all[i].call();
        stepping = 1;
        for (int j = 0; j < CALLS; j++) {
            all[i].call();
            counts[j] = instructions;
        }
        qsort(counts, CALLS, sizeof *counts, ascending);
        for (int j = 0, same = 0; j < CALLS; j++) {
            same = j > 0 && counts[j] == counts[j - 1] ? same + 1 : 1;
            if (same > often) {
                often = same;
                most = counts[j];
            }
        }
        /* With fewer than half, it is not clear what they are. */
        printf("%s %ld\n", all[i].name, 2 * often > CALLS ? most : -1);
    }
    MPI_Finalize();
    return 0;
}
