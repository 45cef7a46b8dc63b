/* A program with one problem: `problems RULE-ID` has what that rule of `gyan report --findings` finds, `problems RULE-ID
 * healthy` is its twin that has not. Two ranks, or an even number. Who works sleeps, so that a busy machine changes
 * nothing; `spin` is for what needs busy ranks.
 * Expect: the finding, with the function, the rank and the numbers in tests/real_mpi/findings/cases.rs, which knows the
 * constants below. Rank 0 prints how long that took by its own clock. */
#include <linux/filter.h>
#include <mpi.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    STEPS = 40,
    FLOOD = 2000,
    FLOODS = 50,
    SENT = 1000,
    LIST = 900,
    ROUNDS = 100,
    SMALL = 8 * 400000,
    POLLS = 5000000,
    ASKED = 20000000,
    OBJECTS = 150,
    WRITES = 200000,
    MADE = 10000,
    SENT_BY_THREAD = 30000,
    SUMS = 1000000,
    PUTS = 8000000,
    LARGE = 1 << 20
};

static int rank, size, peer, healthy;
static char buffer[4 * LARGE], other[4 * LARGE];
#define WORLD MPI_COMM_WORLD
#define IGNORE MPI_STATUS_IGNORE

static void nap(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

static void spin(double s)
{
    for (double end = MPI_Wtime() + s; MPI_Wtime() < end;)
        ;
}

static void exchange(int bytes)
{
    MPI_Sendrecv(buffer, bytes, MPI_BYTE, peer, 0, other, bytes, MPI_BYTE, peer, 0, WORLD, IGNORE);
}

/* Each works, then asks its neighbours: who waits uses the processor that another rank needs. */
static void oversubscribed(void)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int i = 0; i < STEPS; i++) {
        spin(0.01);
        MPI_Sendrecv(buffer, 8, MPI_BYTE, right, 0, other, 8, MPI_BYTE, left, 0, WORLD, IGNORE);
        MPI_Bcast(buffer, 8, MPI_BYTE, 0, WORLD);
    }
}

/* What runs beside it is the test's; the twin hardly runs itself. */
static void other_load(void)
{
    if (healthy)
        nap(3000);
    else
        spin(1);
}

static void *spin_on(void *nothing)
{
    spin(2);
    return nothing;
}

/* One thread works; in the twin one for each processor of the host. */
static void idle_processors(void)
{
    pthread_t threads[256];
    long number = healthy ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
    if (number > 256)
        number = 256;
    for (long i = 1; i < number; i++)
        pthread_create(&threads[i], NULL, spin_on, NULL);
    spin_on(NULL);
    for (long i = 1; i < number; i++)
        pthread_join(threads[i], NULL);
}

static void copied_twice(void)
{
    int bytes = healthy ? 16 << 10 : LARGE;
    for (int i = 0; i < 2000; i++)
        exchange(bytes);
    nap(200);
}

static void slow_start(void)
{
    exchange(8);
    nap(200);
}

static void imbalance(void)
{
    double value = 1, sum;
    for (int i = 0; i < STEPS; i++) {
        nap(healthy || rank == 1 ? 30 : 0);
        MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, WORLD);
    }
}

/* Ranks take turns in working: each waits for the other, and neither has more to do. */
static void communication(void)
{
    int ones[64], places[64], sent[64] = {0}, received[64];
    for (int i = 0; i < 64; i++) {
        ones[i] = 1;
        places[i] = i;
    }
    for (int i = 0; i < STEPS; i++) {
        nap(healthy ? 15 : i % 2 == rank % 2 ? 30 : 0);
        if (!healthy)
            MPI_Alltoallv(sent, ones, places, MPI_INT, received, ones, places, MPI_INT, WORLD);
    }
    MPI_Barrier(WORLD);
}

/* Rank 1 is late in four of five steps, rank 0 in the others: hardly any imbalance. */
static void waiting(void)
{
    double value = 1, sum;
    for (int i = 0; i < 20; i++) {
        nap(healthy || (i % 5 ? rank == 1 : rank == 0) ? 90 : 50);
        if (!healthy || i % 10 == 9)
            MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, WORLD);
    }
}

/* As waiting, in a broadcast whose root is the late rank. */
static void late_root(void)
{
    for (int i = 0; i < 20; i++) {
        int late = i % 5 != 0;
        nap(healthy || rank == late ? 90 : 50);
        if (!healthy || i % 10 == 9)
            MPI_Bcast(buffer, 1, MPI_DOUBLE, late, WORLD);
    }
}

/* As waiting, in a reduction whose root is the early rank. */
static void early_root(void)
{
    double value = 1, sum;
    for (int i = 0; i < 20; i++) {
        int late = i % 5 != 0;
        nap(healthy || rank == late ? 90 : 50);
        if (!healthy || i % 10 == 9)
            MPI_Reduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, 1 - late, WORLD);
        /* Nobody is ahead. */
        if (!healthy)
            MPI_Barrier(WORLD);
    }
}

static void algorithm(void)
{
    int elements = 4 * LARGE / sizeof(double);
    for (int i = 0; i < 100; i++)
        if (!healthy || i % 50 == 0)
            MPI_Allreduce(buffer, other, healthy ? 1 : elements, MPI_DOUBLE, MPI_SUM, WORLD);
    nap(healthy ? 600 : 100);
}

static void barrier(void)
{
    for (int i = 0; i < STEPS; i++) {
        nap(i % 2 == rank % 2 ? 30 : 0);
        if (!healthy)
            MPI_Barrier(WORLD);
    }
}

/* A sender above the eager limit waits until the receiver has worked; the ranks take turns. */
static void eager_limit(void)
{
    int bytes = healthy ? 1000 : 100000;
    for (int i = 0; i < STEPS; i++) {
        if (i % 2 == rank % 2) {
            MPI_Send(buffer, bytes, MPI_BYTE, peer, 0, WORLD);
        } else {
            nap(30);
            MPI_Recv(other, bytes, MPI_BYTE, peer, 0, WORLD, IGNORE);
        }
    }
}

/* Messages in the opposite order of the receives; the twin has posted its receives, in order. */
static void flooded(void)
{
    MPI_Request requests[FLOOD];
    int values[FLOOD], ready = 0;
    for (int round = 0; round < FLOODS; round++) {
        for (int i = 0; i < FLOOD && healthy && rank == 0; i++)
            MPI_Irecv(&values[i], 1, MPI_INT, 1, i, WORLD, &requests[i]);
        if (healthy)
            MPI_Sendrecv_replace(&ready, 1, MPI_INT, peer, FLOOD, peer, FLOOD, WORLD, IGNORE);
        for (int i = 0; i < FLOOD && rank == 1; i++)
            MPI_Send(&i, 1, MPI_INT, 0, healthy ? i : FLOOD - 1 - i, WORLD);
        MPI_Sendrecv_replace(&ready, 1, MPI_INT, peer, FLOOD, peer, FLOOD, WORLD, IGNORE);
        for (int i = 0; i < FLOOD && !healthy && rank == 0; i++)
            MPI_Recv(&values[i], 1, MPI_INT, 1, i, WORLD, IGNORE);
        if (healthy && rank == 0)
            MPI_Waitall(FLOOD, requests, MPI_STATUSES_IGNORE);
        MPI_Sendrecv_replace(&ready, 1, MPI_INT, peer, FLOOD, peer, FLOOD, WORLD, IGNORE);
    }
}

/* The message with tag 1 comes late, the one with tag 2 is there before. The twin works at the same time as its peer. */
static void late_senders(void)
{
    for (int i = 0; i < STEPS; i++) {
        if (healthy) {
            nap(20);
        } else if (i % 2 == rank % 2) {
            nap(40);
            MPI_Send(buffer, 8, MPI_BYTE, peer, 1, WORLD);
        } else {
            MPI_Recv(other, 8, MPI_BYTE, peer, 1, WORLD, IGNORE);
        }
    }
    exchange(8);
}

/* The message with tag 2 is there, but the one with tag 1 is received first. The twin works with the first one until the other
 * one is there. */
static void wrong_order(void)
{
    /* Rank 0 waits longer. */
    int own = rank % 2 ? 40 : 20, of_peer = 60 - own;
    for (int i = 0; i < STEPS; i++) {
        if (i % 2 == rank % 2) {
            MPI_Send(buffer, 8, MPI_BYTE, peer, 2, WORLD);
            nap(own);
            MPI_Send(buffer, 8, MPI_BYTE, peer, 1, WORLD);
        } else if (healthy) {
            MPI_Recv(other, 8, MPI_BYTE, peer, 2, WORLD, IGNORE);
            nap(of_peer);
            MPI_Recv(other, 8, MPI_BYTE, peer, 1, WORLD, IGNORE);
        } else {
            MPI_Recv(other, 8, MPI_BYTE, peer, 1, WORLD, IGNORE);
            MPI_Recv(other, 8, MPI_BYTE, peer, 2, WORLD, IGNORE);
            nap(of_peer);
        }
    }
}

/* Messages are there (MPI_Iprobe lets the library take them in) before their receives, which the twin posts before it
 * lets its peer send. */
static void late_receivers(void)
{
    for (int i = 0; i < STEPS; i++) {
        MPI_Request request;
        int flag;
        if (i % 2 == rank % 2) {
            if (healthy)
                MPI_Recv(other, 0, MPI_BYTE, peer, 1, WORLD, IGNORE);
            MPI_Ssend(buffer, 8, MPI_BYTE, peer, 0, WORLD);
            continue;
        }
        if (healthy) {
            MPI_Irecv(other, 8, MPI_BYTE, peer, 0, WORLD, &request);
            MPI_Send(buffer, 0, MPI_BYTE, peer, 1, WORLD);
        }
        nap(10);
        MPI_Iprobe(peer, 2, WORLD, &flag, IGNORE);
        nap(20);
        if (healthy)
            MPI_Wait(&request, IGNORE);
        else
            MPI_Recv(other, 8, MPI_BYTE, peer, 0, WORLD, IGNORE);
    }
}

/* Messages wait in the opposite order of the receives; too few for a flood. Each rank to itself: none waits for the other. */
static void long_searches(void)
{
    MPI_Request requests[LIST];
    int value = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LIST; i++)
            MPI_Isend(&i, 1, MPI_INT, rank, healthy ? i : LIST - 1 - i, WORLD, &requests[i]);
        for (int i = 0; i < LIST; i++)
            MPI_Recv(&value, 1, MPI_INT, rank, i, WORLD, IGNORE);
        MPI_Waitall(LIST, requests, MPI_STATUSES_IGNORE);
    }
}

/* To itself, too. */
static void small_messages(void)
{
    int bytes = healthy ? 8000 : 8;
    for (int i = 0; i < SMALL / bytes; i++)
        MPI_Sendrecv(buffer, bytes, MPI_BYTE, rank, 0, other, bytes, MPI_BYTE, rank, 0, WORLD, IGNORE);
}

/* The first message waits until its receiver is in MPI, where connections are made; then its sender works as long. */
static void first_contact(void)
{
    if (rank == 1)
        nap(500);
    for (int i = 0; i < 400; i++) {
        if (rank == 0)
            MPI_Send(buffer, 1000, MPI_BYTE, 1, 0, WORLD);
        else
            MPI_Recv(other, 1000, MPI_BYTE, 0, 0, WORLD, IGNORE);
        if (rank == 0 && i == 0)
            nap(500);
    }
    exchange(8);
}

/* All send to rank 0, which receives late; the twin sends around. */
static void memory(void)
{
    int to = healthy ? (rank + 1) % size : 0, from = (rank + size - 1) % size, bytes = 4000, none = 0;
    MPI_Barrier(WORLD);
    for (int i = 0; i < SENT; i++)
        if (healthy || rank)
            MPI_Send(buffer, bytes, MPI_BYTE, to, 0, WORLD);
    MPI_Send(&none, 1, MPI_INT, (rank + 1) % size, 1, WORLD);
    MPI_Recv(&none, 1, MPI_INT, from, 1, WORLD, IGNORE);
    MPI_Barrier(WORLD);
    for (int i = 0; i < SENT * (healthy ? 1 : rank ? 0 : size - 1); i++)
        MPI_Recv(other, bytes, MPI_BYTE, MPI_ANY_SOURCE, 0, WORLD, IGNORE);
}

static void polling(void)
{
    int flag;
    nap(100);
    for (int i = 0; i < POLLS && !healthy; i++)
        MPI_Iprobe(peer, 7, WORLD, &flag, IGNORE);
    exchange(8);
}

/* The work comes first: after so many calls that were only counted, nothing tells it from a call that took as long. */
static void asks_for_rank(void)
{
    nap(500);
    for (int i = 0; i < ASKED && !healthy; i++)
        MPI_Comm_rank(WORLD, &rank);
}

static void over_budget(void)
{
    for (int i = 0; i < ASKED / 20; i++)
        MPI_Comm_rank(WORLD, &rank);
}

static void leak(void)
{
    MPI_Comm comms[OBJECTS];
    for (int i = 0; i < OBJECTS; i++)
        MPI_Comm_dup(WORLD, &comms[i]);
    for (int i = 0; i < OBJECTS && healthy; i++)
        MPI_Comm_free(&comms[i]);
}

static void independent_io(void)
{
#ifdef MPI_MODE_CREATE
    MPI_File file;
    int bytes = healthy ? LARGE : 64;
    MPI_File_open(WORLD, "written", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    if (healthy)
        MPI_File_write_at_all(file, (MPI_Offset)rank * bytes, buffer, bytes, MPI_BYTE, IGNORE);
    for (int i = 0; i < WRITES && !healthy; i++)
        MPI_File_write_at(file, ((MPI_Offset)i * size + rank) * bytes, buffer, bytes, MPI_BYTE, IGNORE);
    MPI_File_close(&file);
#endif
}

static void made_again(void)
{
    MPI_Comm comm;
    nap(300);
    for (int i = 0; i < (healthy ? 1 : MADE); i++) {
        MPI_Comm_dup(WORLD, &comm);
        MPI_Comm_free(&comm);
    }
}

/* The twin sends as many values, a hundred at a time. */
static void tiny_collectives(void)
{
    int values = healthy ? 100 : 1;
    nap(300);
    for (int i = 0; i < SUMS / values; i++)
        MPI_Bcast(buffer, values, MPI_DOUBLE, 0, WORLD);
}

/* As many bytes in the twin, 8,000 at a time. */
static void tiny_accesses(void)
{
    int bytes = healthy ? 8000 : 8;
    char *memory;
    MPI_Win window;
    MPI_Win_allocate(LARGE, 1, MPI_INFO_NULL, WORLD, &memory, &window);
    MPI_Win_lock_all(0, window);
    nap(300);
    for (int i = 1; i <= PUTS / bytes * 8; i++) {
        MPI_Put(buffer, bytes, MPI_BYTE, peer, 0, bytes, MPI_BYTE, window);
        if (i % 1000 == 0)
            MPI_Win_flush(peer, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

/* The work is done with the lock in hand, in the twin before it is taken. */
static void long_locks(void)
{
    char *memory;
    MPI_Win window;
    MPI_Win_allocate(LARGE, 1, MPI_INFO_NULL, WORLD, &memory, &window);
    for (int i = 0; i < STEPS; i++) {
        if (healthy)
            nap(20);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Put(buffer, 8, MPI_BYTE, 0, 0, 8, MPI_BYTE, window);
        if (!healthy)
            nap(20);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

/* The root comes late once, and the others work as long afterwards; in the twin all work at once. */
static void outlier(void)
{
    for (int i = 0; i < 100; i++) {
        if (i == 50 && (healthy || rank == 0))
            nap(700);
        MPI_Bcast(buffer, 8, MPI_BYTE, 0, WORLD);
        if (i == 50 && !healthy && rank != 0)
            nap(700);
    }
    exchange(8);
}

/* As eager_limit, with messages that are too large to be sent at once. */
static void no_overlap(void)
{
    int bytes = healthy ? 1000 : LARGE;
    for (int i = 0; i < STEPS; i++) {
        MPI_Request request;
        if (i % 2 == rank % 2) {
            MPI_Isend(buffer, bytes, MPI_BYTE, peer, 0, WORLD, &request);
            MPI_Wait(&request, IGNORE);
        } else {
            nap(30);
            MPI_Recv(other, bytes, MPI_BYTE, peer, 0, WORLD, IGNORE);
        }
    }
}

/* Messages to itself; in the twin one thread after the other. */
static void *send_to_self(void *tag)
{
    /* Short calls cost gyan more than it may spend, and it could not say how long they take. */
    char sent[1 << 18] = {0}, received[1 << 18];
    for (int i = 0; i < SENT_BY_THREAD; i++) {
        MPI_Request requests[2];
        MPI_Irecv(received, sizeof received, MPI_BYTE, rank, (int)(long)tag, WORLD, &requests[0]);
        MPI_Isend(sent, sizeof sent, MPI_BYTE, rank, (int)(long)tag, WORLD, &requests[1]);
        for (int done = 0; !done;)
            MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    }
    return NULL;
}

static void thread_contention(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, send_to_self, (void *)i);
        if (healthy)
            pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 2 && !healthy; i++)
        pthread_join(threads[i], NULL);
}

/* A few vectors are summed up: for settings of algorithms. */
static void allreduce(void)
{
    for (int i = 0; i < 100; i++)
        MPI_Allreduce(buffer, other, 1000, MPI_DOUBLE, MPI_SUM, WORLD);
}

static void nothing_in_mpi(void)
{
    for (int i = 0; i < STEPS; i++) {
        nap(i % 2 == rank % 2 ? 30 : 0);
        if (!healthy)
            nap(i % 2 == rank % 2 ? 0 : 30);
        else
            MPI_Barrier(WORLD);
    }
}

static void too_short(void)
{
    nap(healthy ? 1000 : 0);
}

static void incomplete(void)
{
    exchange(8);
    nap(300);
    if (!healthy && rank == 1)
        raise(SIGKILL);
    exchange(8);
}

/* Sockets drop so many of 1000 packets that reach them: classic BPF, which needs no rights. */
static void lose(unsigned thousandths)
{
    struct sock_filter code[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, (unsigned)(SKF_AD_OFF + SKF_AD_RANDOM)},
        {BPF_ALU | BPF_MOD | BPF_K, 0, 0, 1000},
        {BPF_JMP | BPF_JGE | BPF_K, 1, 0, thousandths},
        {BPF_RET | BPF_K, 0, 0, 0},
        {BPF_RET | BPF_K, 0, 0, 0xffffffff},
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    for (int fd = 0; fd < 1024; fd++) {
        int protocol = 0;
        socklen_t length = sizeof protocol;
        if (!getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) && protocol == IPPROTO_TCP)
            setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
    }
}

/* Messages go through TCP, which loses one of 50 packets. */
static void network_retries(void)
{
    exchange(LARGE);
    if (!healthy)
        lose(20);
    for (int i = 0; i < 200; i++)
        exchange(LARGE);
    lose(0);
}

static void no_variables(void)
{
    for (int i = 0; i < 200; i++)
        exchange(8);
}

static const struct {
    const char *rule;
    void (*run)(void);
} RULES[] = {
    {"oversubscribed", oversubscribed},
    {"bound-together", oversubscribed},
    {"other-load", other_load},
    {"idle-processors", idle_processors},
    {"copied-twice", copied_twice},
    {"slow-start", slow_start},
    {"imbalance", imbalance},
    {"communication", communication},
    {"waiting", waiting},
    {"late-root", late_root},
    {"early-root", early_root},
    {"algorithm", algorithm},
    {"barrier", barrier},
    {"eager-limit", eager_limit},
    {"flooded", flooded},
    {"wrong-order", wrong_order},
    {"late-senders", late_senders},
    {"late-receivers", late_receivers},
    {"unexpected-messages", late_receivers},
    {"long-searches", long_searches},
    {"small-messages", small_messages},
    {"first-contact", first_contact},
    {"memory", memory},
    {"polling", polling},
    {"asks-for-rank", asks_for_rank},
    {"leak", leak},
    {"network-retries", network_retries},
    {"independent-io", independent_io},
    {"made-again", made_again},
    {"tiny-collectives", tiny_collectives},
    {"tiny-accesses", tiny_accesses},
    {"long-locks", long_locks},
    {"outlier", outlier},
    {"no-overlap", no_overlap},
    {"thread-contention", thread_contention},
    {"without-dynamic-rules", allreduce},
    {"setting-ignored", allreduce},
    {"inert-setting", allreduce},
    {"nothing-in-mpi", nothing_in_mpi},
    {"too-short", too_short},
    {"incomplete", incomplete},
    {"over-budget", over_budget},
    {"no-variables", no_variables},
};

int main(int argc, char **argv)
{
    int level;
    healthy = argc > 2 && !strcmp(argv[2], "healthy");
    if (argc > 1 && !strcmp(argv[1], "thread-contention"))
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    peer = rank ^ 1;
    memset(buffer, 0, sizeof buffer);
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        if (argc > 1 && !strcmp(argv[1], RULES[i].rule)) {
            double begun = MPI_Wtime();
            RULES[i].run();
            if (rank == 0)
                printf("by its own clock: %.6f s\n", MPI_Wtime() - begun);
            MPI_Finalize();
            return 0;
        }
    fprintf(stderr, "problems: %s: no such rule\n", argc > 1 ? argv[1] : "none");
    MPI_Abort(WORLD, 2);
}
