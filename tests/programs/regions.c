/* Regions that a program has for another tool: compiled with NVTX, ITT or PETSC defined, or, as regions.cpp, KOKKOS or CALIPER.
 *
 * Three times: a region "solve" with two regions "exchange" in it. Each rank writes to the file truth.<rank>, a line each:
 * "call MPI_Recv <n> <phase>", "entries <n> <phase>", and how long it was in the phase by its own clock, in microseconds:
 * "least <n> <phase>" without and "most <n> <phase>" with the calls that begin and end regions. Lines for the same phase add up.
 * Meanwhile a second thread begins and ends regions "elsewhere", if the library can be called by several threads.
 * With an argument, 100,000 more of them follow, which are as short as can be and not in the file.
 * Expect: two phases, "solve" and "solve/exchange", with these numbers. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <wchar.h>

#include "check.h"

#if defined NVTX
#include <nvtx3/nvToolsExt.h>
#elif defined ITT
#include <ittnotify.h>
#elif defined PETSC
#include <petscsys.h>
#elif defined KOKKOS
#include <Kokkos_Core.hpp>
#elif defined CALIPER
#include "caliper.hpp"
#else
#error "NVTX, ITT, PETSC, KOKKOS or CALIPER"
#endif

enum { SOLVE, EXCHANGE, ELSEWHERE, REGIONS };
static const char *const names[REGIONS] = {"solve", "exchange", "elsewhere"};

#if defined NVTX
static const wchar_t *const wide[REGIONS] = {L"solve", L"exchange", L"elsewhere"};
static nvtxDomainHandle_t domain;
static nvtxStringHandle_t registered[REGIONS], registered_wide[REGIONS];

static void library_begins(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    domain = nvtxDomainCreateA("gyan");
    for (int i = 0; i < REGIONS; i++) {
        registered[i] = nvtxDomainRegisterStringA(domain, names[i]);
        registered_wide[i] = nvtxDomainRegisterStringW(domain, wide[i]);
    }
}

static void library_ends(void) {}

/* In each of the ways that NVTX has, in turn. */
static void begin(int region, int way)
{
    nvtxEventAttributes_t attributes = {0};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    switch (way % 6) {
    case 0:
        nvtxRangePushA(names[region]);
        return;
    case 1:
        nvtxRangePushW(wide[region]);
        return;
    case 2:
        attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
        attributes.message.ascii = names[region];
        nvtxRangePushEx(&attributes);
        return;
    case 3:
        attributes.messageType = NVTX_MESSAGE_TYPE_UNICODE;
        attributes.message.unicode = wide[region];
        nvtxRangePushEx(&attributes);
        return;
    case 4:
        attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
        attributes.message.registered = registered[region];
        break;
    default:
        attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
        attributes.message.registered = registered_wide[region];
    }
    nvtxDomainRangePushEx(domain, &attributes);
}

static void end(int way)
{
    if (way % 6 < 4)
        nvtxRangePop();
    else
        nvtxDomainRangePop(domain);
}
#elif defined ITT
static __itt_domain *domain;
static __itt_string_handle *handles[REGIONS];

static void library_begins(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    domain = __itt_domain_create("gyan");
    for (int i = 0; i < REGIONS; i++)
        handles[i] = __itt_string_handle_create(names[i]);
}

static void library_ends(void) {}

static void begin(int region, int way)
{
    (void)way;
    __itt_task_begin(domain, __itt_null, __itt_null, handles[region]);
}

static void end(int way)
{
    (void)way;
    __itt_task_end(domain);
}
#elif defined PETSC
static PetscLogStage stages[REGIONS];

static void library_begins(int *argc, char ***argv)
{
    PetscInitialize(argc, argv, NULL, NULL);
    for (int i = 0; i < REGIONS; i++)
        PetscLogStageRegister(names[i], &stages[i]);
}

static void library_ends(void)
{
    PetscFinalize();
}

static void begin(int region, int way)
{
    (void)way;
    PetscLogStagePush(stages[region]);
}

static void end(int way)
{
    (void)way;
    PetscLogStagePop();
}
#elif defined CALIPER
/* The regions of this thread that have not ended: each an object of C++, or none, and a name. */
static thread_local struct {
    void *object;
    const char *name;
} open_regions[REGIONS];
static thread_local int depth;

static void library_begins(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
}

static void library_ends(void) {}

/* In each of the ways that Caliper has, in turn. */
static void begin(int region, int way)
{
    const char *name = names[region];
    void *object = NULL;
    switch (way % 5) {
    case 0:
        cali_begin_region(name);
        break;
    case 1:
        cali_begin_phase(name);
        break;
    case 2:
        cali_begin_comm_region(name);
        break;
    case 3:
        object = new cali::Function(name);
        break;
    default:
        object = new cali::ScopeAnnotation(name);
    }
    open_regions[depth].object = object;
    open_regions[depth++].name = name;
}

static void end(int way)
{
    const char *name = open_regions[--depth].name;
    void *object = open_regions[depth].object;
    switch (way % 5) {
    case 0:
        cali_end_region(name);
        break;
    case 1:
        cali_end_phase(name);
        break;
    case 2:
        cali_end_comm_region(name);
        break;
    case 3:
        delete static_cast<cali::Function *>(object);
        break;
    default:
        delete static_cast<cali::ScopeAnnotation *>(object);
    }
}
#else
static void library_begins(int *argc, char ***argv)
{
    Kokkos::initialize(*argc, *argv);
}

static void library_ends(void)
{
    Kokkos::finalize();
}

static void begin(int region, int way)
{
    (void)way;
    Kokkos::Profiling::pushRegion(names[region]);
}

static void end(int way)
{
    (void)way;
    Kokkos::Profiling::popRegion();
}
#endif

static double now(void) { return 1e6 * seconds_by(CLOCK_MONOTONIC); }

static void work(FILE *truth, int calls, const char *phase)
{
    struct timespec nap = {0, 10000000};
    int x;
    for (int i = 0; i < calls; i++)
        MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    fprintf(truth, "call MPI_Recv %d %s\n", calls, phase);
    nanosleep(&nap, NULL);
}

static void *elsewhere(void *arg)
{
    for (int i = 0; i < 12; i++) {
        begin(ELSEWHERE, i);
        end(i);
    }
    return arg;
}

static void lasted(FILE *truth, double least, double most, const char *phase)
{
    fprintf(truth, "entries 1 %s\nleast %.0f %s\nmost %.0f %s\n", phase, least, phase, most + 1, phase);
}

/* A region "exchange": adds how long it was to `least` and `most`. */
static void exchange(FILE *truth, int way, double *least, double *most)
{
    double before = now(), begun, ending, after;
    begin(EXCHANGE, way);
    begun = now();
    work(truth, 2, "solve/exchange");
    ending = now();
    end(way);
    after = now();
    *least += ending - begun;
    *most += after - before;
    lasted(truth, ending - begun, after - before, "solve/exchange");
}

int main(int argc, char **argv)
{
    FILE *truth;
    int rank, way = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    library_begins(&argc, &argv);
    truth = truth_of(rank);
    work(truth, 1, "");
    for (int step = 0; step < 3; step++) {
        double least = 0, most = 0, before = now(), begun, ending, after;
        int own = way++;
        begin(SOLVE, own);
        begun = now();
        work(truth, 3, "solve");
        for (int i = 0; i < 2; i++)
            exchange(truth, way++, &least, &most);
#ifndef PETSC
        pthread_t thread;
        pthread_create(&thread, NULL, elsewhere, NULL);
        pthread_join(thread, NULL);
#endif
        ending = now();
        end(own);
        after = now();
        lasted(truth, ending - begun - most, after - before - least, "solve");
    }
    for (int i = 0; argc > 1 && i < 100000; i++) {
        begin(SOLVE, 0);
        end(0);
    }
    fclose(truth);
    library_ends();
    MPI_Finalize();
    return 0;
}
