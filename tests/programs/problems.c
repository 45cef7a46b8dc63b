/* A program with one problem: `problems RULE-ID` has what that rule of `gyan report --findings` finds, `problems RULE-ID
 * healthy` is its twin that has not. Two ranks, or an even number. Who works sleeps, so that a busy machine changes
 * nothing; `spin` is for what needs busy ranks.
 * Expect: the finding, with the function, the rank and the numbers of its [[case]], which knows the constants below. A case
 * is TOML; tests/real_mpi/findings/cases.rs says what its fields mean. Rank 0 prints how long that took by its own clock.
 * GYAN_BUDGET=none: every call is timed; on a busy machine, the time of very short calls is a lower bound otherwise.
 * GYAN_EVENTS=peruse: messages are seen one by one; with GYAN_WAITING=off, the ranks do not compare them. */
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

/* [[case]]
 * rule = "oversubscribed"
 * start = { mpi = "openmpi4", ranks_per_processor = 2, has_slots = true }
 * evidence."times that ranks lost or yielded their processor" = [1, inf]
 * started = { start = { mpi = "openmpi4", ranks_per_processor = 1, has_slots = true }, witness = "wait for a processor, all ranks" }
 * advised = { may_stay = true, witness = "wait for a processor, all ranks" }
 */
/* [[case]]
 * rule = "bound-together"
 * start = { mpi = "mpich4", is_bound = true }
 * evidence."ranks on the fullest core" = 2
 * evidence."ranks on a host" = 2
 * started = { start = { mpi = "mpich4" }, witness = "wait for a processor, all ranks" }
 */
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

/* [[case]]
 * rule = "other-load"
 * start = { mpi = "mpich4", is_beside_others = true }
 * healthy = {}
 */
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

/* [[case]]
 * rule = "idle-processors"
 * start = { mpi = "mpich4", ranks = 1 }
 * evidence."processors that a rank used, on average" = [0.3, 1.1]
 * healthy = { witness = "processors that a rank used" }
 */
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

/* [[case]]
 * rule = "copied-twice"
 * start = { mpi = "openmpi4", set = ["btl_vader_single_copy_mechanism=none"] }
 * # 2,000 messages of 1 MiB from each of two ranks.
 * evidence."bytes in messages of 64 KiB and more" = 4_194_304_000
 * healthy = {}
 * advised = { witness = "time in `MPI_Sendrecv`" }
 */
static void copied_twice(void)
{
    int bytes = healthy ? 16 << 10 : LARGE;
    for (int i = 0; i < 2000; i++)
        exchange(bytes);
    nap(200);
}

/* [[case]]
 * rule = "slow-start"
 * start = { mpi = "openmpi5" }
 * functions = ["MPI_Init"]
 * evidence."time in MPI_Init" = [2, inf]
 * started = { start = { mpi = "mpich4" }, witness = "time in `MPI_Init`" }
 * # On a busy machine it still takes half a second.
 * advised = { may_stay = true, witness = "time in `MPI_Init`" }
 */
static void slow_start(void)
{
    exchange(8);
    nap(200);
}

/* [[case]]
 * rule = "imbalance"
 * start = { mpi = "mpich4" }
 * functions = ["MPI_Allreduce"]
 * ranks = [1]
 * evidence."load balance" = [0.4, 0.75]
 * healthy = { witness = "load balance" }
 */
static void imbalance(void)
{
    double value = 1, sum;
    for (int i = 0; i < STEPS; i++) {
        nap(healthy || rank == 1 ? 30 : 0);
        MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, WORLD);
    }
}

/* [[case]]
 * rule = "communication"
 * start = { mpi = "mpich4" }
 * functions = ["MPI_Alltoallv"]
 * evidence."communication efficiency" = [0.2, 0.6]
 * healthy = { witness = "communication efficiency" }
 */
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

/* [[case]]
 * rule = "waiting"
 * start = { mpi = "mpich4" }
 * functions = ["MPI_Allreduce"]
 * ranks = [1]
 * evidence."calls that were compared" = 40
 * healthy = { witness = "waiting in `MPI_Allreduce`" }
 */
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

/* [[case]]
 * rule = "late-root"
 * start = { mpi = "mpich4" }
 * functions = ["MPI_Bcast"]
 * ranks = [1]
 * evidence."calls that were compared" = 40
 * healthy = { witness = "waiting in `MPI_Bcast`" }
 */
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

/* [[case]]
 * rule = "early-root"
 * start = { mpi = "openmpi5" }
 * functions = ["MPI_Reduce"]
 * ranks = [1]
 * evidence."calls that were compared" = 40
 * healthy = { witness = "waiting in `MPI_Reduce`" }
 */
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

/* [[case]]
 * rule = "algorithm"
 * start = { mpi = "openmpi-spc", ranks = 4, environment = ["GYAN_EVENTS=peruse", "OMPI_MCA_pml=ob1"] }
 * functions = ["MPI_Allreduce"]
 * healthy = {}
 * # Each of four ranks sends 4 messages by Rabenseifner's algorithm, which this library chooses, and 2 by
 * # recursive doubling; 100 times.
 * advised = { meaning = { N = "3" }, may_stay = true, witness = "messages of collectives", counted = [1600, 800] }
 */
static void algorithm(void)
{
    int elements = 4 * LARGE / sizeof(double);
    for (int i = 0; i < 100; i++)
        if (!healthy || i % 50 == 0)
            MPI_Allreduce(buffer, other, healthy ? 1 : elements, MPI_DOUBLE, MPI_SUM, WORLD);
    nap(healthy ? 600 : 100);
}

/* [[case]]
 * rule = "barrier"
 * start = { mpi = "mpich4" }
 * functions = ["MPI_Barrier"]
 * evidence."calls on all ranks" = 80
 * healthy = { witness = "calls of `MPI_Barrier`", counted = [80, 0] }
 */
static void barrier(void)
{
    for (int i = 0; i < STEPS; i++) {
        nap(i % 2 == rank % 2 ? 30 : 0);
        if (!healthy)
            MPI_Barrier(WORLD);
    }
}

/* [[case]]
 * rule = "eager-limit"
 * start = { mpi = "openmpi4", set = ["btl=tcp,self"] }
 * evidence."messages from the eager limit to eight times that" = 40
 * evidence."messages" = 40
 * evidence."btl_tcp_eager_limit" = 65_536
 * healthy = { witness = "time in `MPI_Send`" }
 * advised = { witness = "time in `MPI_Send`" }
 */
/* [[case]]
 * rule = "eager-limit"
 * start = { mpi = "mpich-pvars" }
 * evidence."messages from the eager limit to eight times that" = 40
 * evidence."MPIR_CVAR_NEMESIS_SHM_EAGER_MAX_SZ" = 65_536
 * advised = { witness = "time in `MPI_Send`" }
 */
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

/* [[case]]
 * rule = "flooded"
 * start = { mpi = "openmpi-spc", environment = ["GYAN_EVENTS=peruse", "OMPI_MCA_pml=ob1"] }
 * ranks = [0]
 * # The last one may be among them.
 * evidence."longest queue of unexpected messages" = [2000, 2001]
 * healthy = { witness = "longest queue of unexpected messages", counted = [[2000, 2001], [0, 2]] }
 */
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

/* [[case]]
 * rule = "late-senders"
 * start = { mpi = "mpich4" }
 * functions = ["MPI_Recv"]
 * ranks = [0, 1]
 * # 40 ms in each of 40 steps.
 * evidence."waiting for late senders" = [1.5, 2.4]
 * healthy = { witness = "waiting for late senders" }
 */
/* [[case]]
 * rule = "late-senders"
 * start = { mpi = "openmpi-spc", environment = ["GYAN_EVENTS=peruse", "OMPI_MCA_pml=ob1", "GYAN_WAITING=off"] }
 * functions = ["MPI_Recv"]
 * # Two more in the last exchange.
 * evidence."receives that waited" = [38, 42]
 * healthy = { witness = "receives that waited", counted = [[38, 42], [0, 2]] }
 */
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

/* [[case]]
 * rule = "wrong-order"
 * start = { mpi = "openmpi5" }
 * functions = ["MPI_Recv"]
 * ranks = [0]
 * # 40 ms of one rank and 20 ms of the other, in each of 39 steps.
 * evidence."waiting while the next message was there" = [1.1, 1.8]
 * healthy = { witness = "waiting while the next message was there" }
 */
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

/* [[case]]
 * rule = "late-receivers"
 * start = { mpi = "mpich4" }
 * functions = ["MPI_Ssend"]
 * ranks = [0, 1]
 * # 30 ms in each of 40 steps.
 * evidence."waiting for late receivers" = [1.1, 1.8]
 * healthy = { witness = "waiting for late receivers" }
 */
/* [[case]]
 * rule = "unexpected-messages"
 * start = { mpi = "openmpi-spc", environment = ["GYAN_EVENTS=peruse", "OMPI_MCA_pml=ob1", "GYAN_WAITING=off"] }
 * evidence."messages that came first" = [36, 40]
 * healthy = { witness = "messages that came before their receive", counted = [[36, 40], 0] }
 */
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

/* [[case]]
 * rule = "long-searches"
 * start = { mpi = "mpich-pvars" }
 * # The sum of 1 to 900 in each of 100 rounds on each of two ranks.
 * evidence."match attempts" = 81_090_000
 * healthy = { witness = "match attempts", counted = [81_090_000, 180_000] }
 */
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

/* [[case]]
 * rule = "small-messages"
 * start = { mpi = "mpich4" }
 * evidence."messages" = 800_000
 * evidence."bytes" = 6_400_000
 * healthy = { witness = "calls of `MPI_Sendrecv`", counted = [800_000, 800] }
 */
/* To itself, too. */
static void small_messages(void)
{
    int bytes = healthy ? 8000 : 8;
    for (int i = 0; i < SMALL / bytes; i++)
        MPI_Sendrecv(buffer, bytes, MPI_BYTE, rank, 0, other, bytes, MPI_BYTE, rank, 0, WORLD, IGNORE);
}

/* [[case]]
 * rule = "first-contact"
 * start = { mpi = "openmpi4", set = ["btl=tcp,self"] }
 * functions = ["MPI_Send"]
 * advised = { witness = "longest `MPI_Send`" }
 */
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

/* [[case]]
 * rule = "memory"
 * start = { mpi = "mpich-pvars", ranks = 4, environment = ["GYAN_BUDGET=none"] }
 * ranks = [0]
 * # 1,000 messages of 4,000 bytes from each of three ranks.
 * evidence."unexpected_recvq_buffer_size on rank 0" = [11_900_000, 12_100_000]
 * healthy = { witness = "`unexpected_recvq_buffer_size`, largest sample", counted = [[11_900_000, 12_100_000], [0, 4_100_000]] }
 */
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

/* [[case]]
 * rule = "polling"
 * start = { mpi = "mpich4", environment = ["GYAN_BUDGET=none"] }
 * functions = ["MPI_Iprobe"]
 * evidence."calls that ask" = 10_000_000
 * evidence."requests and messages" = 2
 * healthy = { witness = "calls of `MPI_Iprobe`", counted = [10_000_000, 0] }
 */
static void polling(void)
{
    int flag;
    nap(100);
    for (int i = 0; i < POLLS && !healthy; i++)
        MPI_Iprobe(peer, 7, WORLD, &flag, IGNORE);
    exchange(8);
}

/* [[case]]
 * rule = "asks-for-rank"
 * start = { mpi = "mpich4", environment = ["GYAN_BUDGET=none"] }
 * functions = ["MPI_Comm_rank"]
 * # Each rank asks for its rank and the size once more.
 * evidence."calls" = 40_000_004
 * healthy = { witness = "calls of `MPI_Comm_rank`", counted = [40_000_002, 2] }
 */
/* The work comes first: after so many calls that were only counted, nothing tells it from a call that took as long. */
static void asks_for_rank(void)
{
    nap(500);
    for (int i = 0; i < ASKED && !healthy; i++)
        MPI_Comm_rank(WORLD, &rank);
}

/* [[case]]
 * rule = "over-budget"
 * start = { mpi = "mpich4", environment = ["GYAN_BUDGET=0.01%"] }
 * ranks = [0, 1]
 * started = { start = { mpi = "mpich4", environment = ["GYAN_BUDGET=none"] } }
 */
static void over_budget(void)
{
    for (int i = 0; i < ASKED / 20; i++)
        MPI_Comm_rank(WORLD, &rank);
}

/* [[case]]
 * rule = "leak"
 * start = { mpi = "mpich4" }
 * functions = ["MPI_Comm_dup"]
 * ranks = [0]
 * evidence."communicators made on all ranks" = 300
 * evidence."communicators freed" = 0
 * healthy = { witness = "calls of `MPI_Comm_free`", counted = [0, 300] }
 */
static void leak(void)
{
    MPI_Comm comms[OBJECTS];
    for (int i = 0; i < OBJECTS; i++)
        MPI_Comm_dup(WORLD, &comms[i]);
    for (int i = 0; i < OBJECTS && healthy; i++)
        MPI_Comm_free(&comms[i]);
}

/* [[case]]
 * rule = "independent-io"
 * start = { mpi = "openmpi4" }
 * functions = ["MPI_File_write_at"]
 * evidence."independent reads and writes" = 400_000
 * evidence."collective ones" = 0
 * evidence."bytes of the independent ones" = 25_600_000
 * healthy = { witness = "calls of `MPI_File_write_at`", counted = [400_000, 0] }
 */
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

/* [[case]]
 * rule = "made-again"
 * start = { mpi = "openmpi4", environment = ["GYAN_BUDGET=none"] }
 * functions = ["MPI_Comm_dup"]
 * evidence."calls of MPI_Comm_dup" = 20_000
 * healthy = { witness = "calls of `MPI_Comm_dup`", counted = [20_000, 2] }
 */
static void made_again(void)
{
    MPI_Comm comm;
    nap(300);
    for (int i = 0; i < (healthy ? 1 : MADE); i++) {
        MPI_Comm_dup(WORLD, &comm);
        MPI_Comm_free(&comm);
    }
}

/* [[case]]
 * rule = "tiny-collectives"
 * start = { mpi = "mpich4", environment = ["GYAN_BUDGET=none"] }
 * functions = ["MPI_Bcast"]
 * evidence."collectives" = 2_000_000
 * evidence."bytes" = 16_000_000
 * healthy = { witness = "calls of `MPI_Bcast`", counted = [2_000_000, 20_000] }
 */
/* The twin sends as many values, a hundred at a time. */
static void tiny_collectives(void)
{
    int values = healthy ? 100 : 1;
    nap(300);
    for (int i = 0; i < SUMS / values; i++)
        MPI_Bcast(buffer, values, MPI_DOUBLE, 0, WORLD);
}

/* [[case]]
 * rule = "tiny-accesses"
 * start = { mpi = "openmpi4", environment = ["GYAN_BUDGET=none"] }
 * functions = ["MPI_Put"]
 * evidence."accesses" = 16_000_000
 * evidence."bytes" = 128_000_000
 * healthy = { witness = "calls of `MPI_Put`", counted = [16_000_000, 16_000] }
 */
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

/* [[case]]
 * rule = "long-locks"
 * start = { mpi = "openmpi4" }
 * functions = ["MPI_Win_lock"]
 * evidence."calls of MPI_Win_lock" = 80
 * healthy = { witness = "time in `MPI_Win_lock`" }
 */
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

/* [[case]]
 * rule = "outlier"
 * start = { mpi = "openmpi4" }
 * functions = ["MPI_Bcast"]
 * ranks = [1]
 * evidence."longest call" = [0.6, 1.5]
 * evidence."calls of MPI_Bcast" = 200
 * healthy = { witness = "longest `MPI_Bcast`" }
 */
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

/* [[case]]
 * rule = "no-overlap"
 * start = { mpi = "openmpi4" }
 * functions = ["MPI_Wait"]
 * evidence."bytes in nonblocking sends of 64 KiB and more" = 41_943_040
 * healthy = { witness = "time in `MPI_Wait`" }
 */
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

/* [[case]]
 * rule = "thread-contention"
 * start = { mpi = "mpich4", ranks = 1, environment = ["GYAN_BUDGET=none"] }
 * functions = ["MPI_Irecv", "MPI_Isend", "MPI_Testall"]
 * # More calls that ask where a message was not there yet.
 * evidence."threads in MPI, on average while one is" = [1.05, 2]
 * evidence."such calls" = [180_000, inf]
 * healthy = { witness = "threads in MPI" }
 */
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

/* [[case]]
 * rule = "without-dynamic-rules"
 * start = { mpi = "openmpi-spc", set = ["coll_tuned_allreduce_algorithm=3"], environment = ["GYAN_EVENTS=peruse", "OMPI_MCA_pml=ob1"] }
 * advised = { witness = "messages of collectives", counted = [400, 200] }
 */
/* [[case]]
 * rule = "setting-ignored"
 * start = { mpi = "intelmpi", set = ["MPIR_CVAR_IMPI_WAIT_MODE=1"] }
 * evidence."MPIR_CVAR_IMPI_WAIT_MODE" = -1
 * started = { start = { mpi = "intelmpi" } }
 */
/* [[case]]
 * rule = "inert-setting"
 * start = { mpi = "mpich4", set = ["MPIR_CVAR_POLLS_BEFORE_YIELD=7"] }
 * evidence."MPIR_CVAR_POLLS_BEFORE_YIELD" = 7
 * started = { start = { mpi = "mpich-pvars", set = ["MPIR_CVAR_POLLS_BEFORE_YIELD=7"] } }
 */
/* A few vectors are summed up: for settings of algorithms. */
static void allreduce(void)
{
    for (int i = 0; i < 100; i++)
        MPI_Allreduce(buffer, other, 1000, MPI_DOUBLE, MPI_SUM, WORLD);
}

/* [[case]]
 * rule = "nothing-in-mpi"
 * start = { mpi = "mpich4" }
 * # Its twin waits in barriers.
 * healthy = { witness = "share of MPI" }
 */
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

/* [[case]]
 * rule = "too-short"
 * start = { mpi = "mpich4" }
 * evidence."time after MPI_Init, average rank" = [0, 0.5]
 * healthy = {}
 */
static void too_short(void)
{
    nap(healthy ? 1000 : 0);
}

/* [[case]]
 * rule = "incomplete"
 * start = { mpi = "mpich4" }
 * ranks = [0, 1]
 * evidence."ranks that did not end by MPI_Finalize" = 2
 * healthy = {}
 */
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

/* [[case]]
 * rule = "network-retries"
 * start = { mpi = "openmpi4", set = ["btl=tcp,self"] }
 * evidence."packets sent again" = [50, inf]
 * evidence."packets sent" = [2000, inf]
 * healthy = { witness = "time in `MPI_Sendrecv`" }
 */
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

/* [[case]]
 * rule = "no-variables"
 * start = { mpi = "mpich4" }
 * evidence."variables of the library" = 0
 * started = { start = { mpi = "mpich-pvars" } }
 */
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
