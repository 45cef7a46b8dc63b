/* Faults of MPI_T that the script asks for: crashes, errors, a call that does not return. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"

enum what { SEGV, BUS, ILL, FPE, ABORT, OVERFLOW, HANG, ERROR };

static const struct name kinds[] = {
    {"segv", SEGV},   {"bus", BUS},           {"ill", ILL},   {"fpe", FPE},
    {"abort", ABORT}, {"overflow", OVERFLOW}, {"hang", HANG}, {"error", ERROR},
    {0},
};
static const struct name errors[] = {
    {"MPI_T_ERR_MEMORY", MPI_T_ERR_MEMORY},
    {"MPI_T_ERR_INVALID", MPI_T_ERR_INVALID},
    {"MPI_T_ERR_INVALID_INDEX", MPI_T_ERR_INVALID_INDEX},
    {"MPI_T_ERR_INVALID_HANDLE", MPI_T_ERR_INVALID_HANDLE},
    {"MPI_T_ERR_OUT_OF_HANDLES", MPI_T_ERR_OUT_OF_HANDLES},
    {"MPI_T_ERR_OUT_OF_SESSIONS", MPI_T_ERR_OUT_OF_SESSIONS},
    {"MPI_T_ERR_PVAR_NO_STARTSTOP", MPI_T_ERR_PVAR_NO_STARTSTOP},
    {0},
};

static struct fault {
    char function[64];
    /* Of what; empty for everything. */
    char name[64];
    /* At which call; 0 for each. */
    long long call, calls;
    enum what what;
    int error;
} faults[MANY];
static int number_of_faults;

/* A crash leaves locks held: nothing of MPI_T may be called after it. */
static bool crashed;

void fault_declared(struct words *words)
{
    if (number_of_faults == MANY)
        wrong(words, "is one fault too many", "fault");
    struct fault *fault = &faults[number_of_faults++];
    const char *function = word_wanted(words, "is not a function");
    const char *name = word_is(words, "of") ? word_wanted(words, "is not a name") : "";
    if (strlen(function) >= sizeof fault->function || strlen(name) >= sizeof fault->name)
        wrong(words, "is too long", function);
    strcpy(fault->function, function);
    strcpy(fault->name, name);
    if (word_is(words, "call"))
        fault->call = word_integer(words, "is not a number of a call");
    fault->what = value_of(words, kinds, "is not a fault");
    if (fault->what == ERROR)
        fault->error = value_of(words, errors, "is not an error");
}

static volatile int zero;

static int fill_the_stack(int depth)
{
    volatile char frame[4096];
    frame[depth % sizeof frame] = depth;
    if (zero)
        return 0;
    return fill_the_stack(depth + 1) + frame[0];
}

static void happen(enum what what)
{
    crashed = true;
    switch (what) {
    case SEGV:
        *(volatile int *)(long)zero = 1;
        break;
    case BUS: {
        /* A page of a file that has none. */
        int file = memfd_create("empty", 0);
        volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
        zero = page[0];
        break;
    }
    case ILL:
        __builtin_trap();
    case FPE:
        zero = 1000 / zero;
        break;
    case ABORT:
        abort();
    case OVERFLOW:
        zero = fill_the_stack(0);
        break;
    case HANG:
        for (;;)
            pause();
    case ERROR:
        break;
    }
    die("a fault did not happen");
}

int fault_at(const char *function, const char *name)
{
    if (crashed)
        note("misuse: %s is called after a crash", function);
    for (int i = 0; i < number_of_faults; i++) {
        struct fault *fault = &faults[i];
        if (strcmp(fault->function, function) || (fault->name[0] && strcmp(fault->name, name)))
            continue;
        fault->calls++;
        if (fault->call && fault->call != fault->calls)
            continue;
        if (fault->what == ERROR)
            return fault->error;
        note("fault %s %s", function, name);
        happen(fault->what);
    }
    return MPI_SUCCESS;
}
