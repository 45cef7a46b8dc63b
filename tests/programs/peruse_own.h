/* What the programs that know PERUSE share. Each has callbacks of its own and a workload in which
 * timing does not decide what is unexpected. Its argument:
 *   own    the callbacks are registered, and what they counted is written to truth.RANK
 *   plain  the same workload, and PERUSE is not touched
 * PERUSE is looked up by dlsym, so that no object refers to it; with -DLINKED the program does. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <mpi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_include) && __has_include("peruse.h")
#include "peruse.h"
#else
/* What PERUSE 2.0, appendix A, declares, for an MPI that has no peruse.h. */
typedef void *peruse_event_h;
typedef struct {
    MPI_Comm comm;
    void *buf;
    int count;
    MPI_Datatype datatype;
    int peer, tag, operation;
} peruse_comm_spec_t;
typedef int peruse_comm_callback_f(peruse_event_h, MPI_Aint, peruse_comm_spec_t *, void *);
enum { PERUSE_SUCCESS };
#endif

#ifdef LINKED
#define FUNCTION(name, parameters) static int (*name##_) parameters = name;
#else
#define FUNCTION(name, parameters) static int (*name##_) parameters;
#endif
#define FUNCTIONS \
    FUNCTION(PERUSE_Init, (void)) \
    FUNCTION(PERUSE_Query_event, (const char *, int *)) \
    FUNCTION(PERUSE_Event_comm_register, \
             (int, MPI_Comm, peruse_comm_callback_f *, void *, peruse_event_h *)) \
    FUNCTION(PERUSE_Event_activate, (peruse_event_h)) \
    FUNCTION(PERUSE_Event_deactivate, (peruse_event_h)) \
    FUNCTION(PERUSE_Event_release, (peruse_event_h *)) \
    FUNCTION(PERUSE_Event_get, (peruse_event_h, int *))
FUNCTIONS

/* A tag of no message. */
enum { NEVER = 999 };

enum { MOST_EVENTS = 16, MOST_COMMUNICATORS = 8, MOST_RANKS = 16, MOST_REQUESTS = 1024 };

/* Numbers, times or lengths; of lengths with the one that is now. */
typedef struct {
    long n, now;
    double sum, max;
} measure;

/* A communicator that is watched, and which ranks of MPI_COMM_WORLD its ranks are: a callback must
 * not ask MPI. */
typedef struct {
    MPI_Comm comm;
    int in_world[MOST_RANKS];
    peruse_event_h handles[MOST_EVENTS];
} community;

/* A tag says whose message it is: collectives have negative ones, which are no MPI_ANY_TAG. */
enum { PROGRAM, COLLECTIVES, TRAFFICS };
static const char *const traffic_names[] = {"program", "collectives"};

static int own, rank, ranks;
static FILE *truth;
static const char *const *event_names;
static int event_ids[MOST_EVENTS], event_count;
static peruse_comm_callback_f *callback_of_all;
static community communities[MOST_COMMUNICATORS];

static int traffic(const peruse_comm_spec_t *spec)
{
    return spec->tag >= 0 || spec->tag == MPI_ANY_TAG ? PROGRAM : COLLECTIVES;
}

static void took(measure *measure, double value)
{
    measure->n++;
    measure->sum += value;
    if (value > measure->max)
        measure->max = value;
}

static void longer(measure *length)
{
    took(length, ++length->now);
}

static void shorter(measure *length)
{
    length->now--;
}

/* The place of the event in the list of the program. */
static int which(peruse_event_h handle)
{
    int id, event = 0;
    PERUSE_Event_get_(handle, &id);
    while (event < event_count && event_ids[event] != id)
        event++;
    return event;
}

static void must(int is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "%s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Registers all events of the program on a communicator. No rank may send on it before all have. */
static void watch(MPI_Comm comm)
{
    if (own) {
        community *new = communities;
        while (new->comm != MPI_COMM_NULL)
            new++;
        MPI_Group group, world;
        int size, those[MOST_RANKS];
        MPI_Comm_group(comm, &group);
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Group_size(group, &size);
        for (int i = 0; i < size; i++)
            those[i] = i;
        MPI_Group_translate_ranks(group, size, those, world, new->in_world);
        MPI_Group_free(&group);
        MPI_Group_free(&world);
        new->comm = comm;
        for (int i = 0; i < event_count; i++) {
            must(PERUSE_Event_comm_register_(event_ids[i], comm, callback_of_all, new,
                                             &new->handles[i]) == PERUSE_SUCCESS,
                 "an event cannot be registered");
            PERUSE_Event_activate_(new->handles[i]);
        }
    }
}

static void unwatch(MPI_Comm comm)
{
    for (community *old = communities; own && old < communities + MOST_COMMUNICATORS; old++)
        if (old->comm == comm) {
            for (int i = 0; i < event_count; i++) {
                PERUSE_Event_deactivate_(old->handles[i]);
                PERUSE_Event_release_(&old->handles[i]);
            }
            old->comm = MPI_COMM_NULL;
        }
}

/* Returns when all that the ranks of the communicator sent on it before has arrived: each rank gets
 * one message more from each other one, and messages of one peer do not overtake. */
static void all_arrived(MPI_Comm comm)
{
    int size, x = 0, all[MOST_RANKS], ones[MOST_RANKS], places[MOST_RANKS];
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++) {
        ones[i] = 1;
        places[i] = i;
    }
    for (int root = 0; root < size; root++)
        MPI_Gatherv(&x, 1, MPI_INT, all, ones, places, MPI_INT, root, comm);
}

/* A barrier without messages, which could wait among those that are counted: by a file that all ranks
 * of the node map. */
static atomic_int *comers;

static void meet(void)
{
    int file = open("meeting", O_RDWR | O_CREAT, 0600);
    must(file >= 0 && ftruncate(file, sizeof *comers) == 0, "no file to meet in");
    comers = mmap(NULL, sizeof *comers, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    must(comers != MAP_FAILED, "the file cannot be mapped");
}

/* Returns when all ranks are here. What is under way needs MPI to be called meanwhile. */
static void all_here(void (*meanwhile)(void))
{
    static int round;
    int all = ++round * ranks;
    atomic_fetch_add(comers, 1);
    while (atomic_load(comers) < all) {
        if (meanwhile)
            meanwhile();
        sched_yield();
    }
}

static void progress(void)
{
    int there;
    MPI_Iprobe(MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}

static void together(void)
{
    all_here(progress);
}

/* Returns when a message with this tag, and so all that the rank sent before it on the communicator,
 * has arrived. */
static void arrived(int from, int tag, MPI_Comm comm)
{
    int there = 0;
    while (!there)
        MPI_Iprobe(from, tag, comm, &there, MPI_STATUS_IGNORE);
}

static void write_measure(const char *whose, const char *name, const measure *measure)
{
    fprintf(truth, "%s %s %ld %.9f %.9f\n", whose, name, measure->n, measure->max,
            measure->n ? measure->sum / measure->n : 0.0);
}

/* Starts MPI, and watches MPI_COMM_WORLD. Nothing is sent before all do. */
static void start(int *argc, char ***argv, const char *const *names, int count,
                  peruse_comm_callback_f *callback)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    own = *argc > 1 && !strcmp((*argv)[1], "own");
    for (int i = 0; i < MOST_COMMUNICATORS; i++)
        communities[i].comm = MPI_COMM_NULL;
    event_names = names;
    event_count = count;
    callback_of_all = callback;
    if (own) {
        char file[32];
#ifndef LINKED
#undef FUNCTION
#define FUNCTION(name, parameters) *(void **)&name##_ = dlsym(RTLD_DEFAULT, #name);
        FUNCTIONS
#endif
        must(PERUSE_Init_ && PERUSE_Init_() == PERUSE_SUCCESS, "this MPI has no PERUSE");
        for (int i = 0; i < count; i++)
            must(PERUSE_Query_event_(names[i], &event_ids[i]) == PERUSE_SUCCESS, names[i]);
        snprintf(file, sizeof file, "truth.%d", rank);
        truth = fopen(file, "w");
    }
    watch(MPI_COMM_WORLD);
    meet();
    all_here(NULL);
}

/* Writes down what was counted up to now: after this there is nothing to count. */
static void end(void (*write_down)(void))
{
    MPI_Barrier(MPI_COMM_WORLD);
    all_here(NULL);
    if (rank == 0)
        unlink("meeting");
    unwatch(MPI_COMM_WORLD);
    if (own) {
        write_down();
        fclose(truth);
    }
    MPI_Finalize();
}
