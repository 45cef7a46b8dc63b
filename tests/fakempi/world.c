/* Start, end, communicators, and everything else that a program of one process asks for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake.h"

extern char library_version[];

static int unweighted, weights_empty;
int *const MPI_UNWEIGHTED = &unweighted;
int *const MPI_WEIGHTS_EMPTY = &weights_empty;

static bool initialized, finalized;
static int thread_level;

/* The communicators that MPI_Comm_dup has made; a handle is its number. */
enum { FIRST = (int)0x84000000 };
static struct {
    bool is_alive;
    char name[MPI_MAX_OBJECT_NAME];
} communicators[MANY];
static char world_name[MPI_MAX_OBJECT_NAME] = "MPI_COMM_WORLD";
static char self_name[MPI_MAX_OBJECT_NAME] = "MPI_COMM_SELF";

static char *name_of_comm(MPI_Comm comm)
{
    if (comm == MPI_COMM_WORLD)
        return world_name;
    if (comm == MPI_COMM_SELF)
        return self_name;
    unsigned number = (unsigned)comm - (unsigned)FIRST;
    return number < MANY && communicators[number].is_alive ? communicators[number].name : NULL;
}

bool is_alive(MPI_Comm comm)
{
    return name_of_comm(comm) != NULL;
}

void reached(const char *function, MPI_Comm comm)
{
    if (!initialized || finalized)
        die("%s: called %s", function, finalized ? "after MPI_Finalize" : "before MPI_Init");
    if (comm != MPI_COMM_NULL && !is_alive(comm))
        die("%s: %#x is no communicator", function, comm);
    actions_at(function, comm);
}

static void start(const char *function, int required)
{
    script_read();
    if (initialized)
        die("%s: called twice", function);
    initialized = true;
    thread_level = required;
    reached(function, MPI_COMM_WORLD);
}

int PMPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    start("MPI_Init", MPI_THREAD_SINGLE);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Init);

int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)argc, (void)argv;
    start("MPI_Init_thread", required);
    *provided = required;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Init_thread);

int PMPI_Finalize(void)
{
    reached("MPI_Finalize", MPI_COMM_WORLD);
    if (mpit_is_initialized())
        note("kept MPI_T");
    finalized = true;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Finalize);

int PMPI_Initialized(int *flag)
{
    *flag = initialized;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Initialized);

int PMPI_Finalized(int *flag)
{
    *flag = finalized;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Finalized);

int PMPI_Query_thread(int *provided)
{
    *provided = thread_level;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Query_thread);

int PMPI_Abort(MPI_Comm comm, int code)
{
    (void)comm;
    _Exit(code);
}
BOTH_NAMES(MPI_Abort);

int PMPI_Pcontrol(const int level, ...)
{
    (void)level;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Pcontrol);

int PMPI_Get_version(int *version, int *subversion)
{
    *version = 4;
    *subversion = 0;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Get_version);

int PMPI_Get_library_version(char *version, int *length)
{
    script_read();
    strcpy(version, library_version);
    *length = strlen(version);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Get_library_version);

int PMPI_Get_processor_name(char *name, int *length)
{
    strcpy(name, "fake");
    *length = strlen(name);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Get_processor_name);

int PMPI_Error_string(int code, char *text, int *length)
{
    *length = snprintf(text, MPI_MAX_ERROR_STRING, "error %d", code);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Error_string);

double PMPI_Wtime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}
BOTH_NAMES(MPI_Wtime);

int PMPI_Comm_rank(MPI_Comm comm, int *rank)
{
    *rank = 0;
    return is_alive(comm) ? MPI_SUCCESS : MPI_ERR_COMM;
}
BOTH_NAMES(MPI_Comm_rank);

int PMPI_Comm_size(MPI_Comm comm, int *size)
{
    *size = 1;
    return is_alive(comm) ? MPI_SUCCESS : MPI_ERR_COMM;
}
BOTH_NAMES(MPI_Comm_size);

int PMPI_Comm_test_inter(MPI_Comm comm, int *flag)
{
    *flag = 0;
    return is_alive(comm) ? MPI_SUCCESS : MPI_ERR_COMM;
}
BOTH_NAMES(MPI_Comm_test_inter);

int PMPI_Comm_get_parent(MPI_Comm *parent)
{
    *parent = MPI_COMM_NULL;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Comm_get_parent);

int PMPI_Comm_get_name(MPI_Comm comm, char *name, int *length)
{
    const char *known = name_of_comm(comm);
    if (!known)
        return MPI_ERR_COMM;
    strcpy(name, known);
    *length = strlen(name);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Comm_get_name);

int PMPI_Comm_set_name(MPI_Comm comm, const char *name)
{
    reached("MPI_Comm_set_name", comm);
    snprintf(name_of_comm(comm), MPI_MAX_OBJECT_NAME, "%s", name);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Comm_set_name);

int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    reached("MPI_Comm_dup", comm);
    for (int number = 0; number < MANY; number++) {
        if (communicators[number].is_alive)
            continue;
        communicators[number].is_alive = true;
        communicators[number].name[0] = '\0';
        *made = FIRST + number;
        return MPI_SUCCESS;
    }
    die("MPI_Comm_dup: more than %d communicators", MANY);
}
BOTH_NAMES(MPI_Comm_dup);

/* A group belongs to a communicator, and its handle says to which. */
enum { GROUP_OF = 0x0c000000 };
static bool strangers;

void strangers_declared(struct words *words)
{
    (void)words;
    strangers = true;
}

int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    *group = comm ^ GROUP_OF;
    return is_alive(comm) ? MPI_SUCCESS : MPI_ERR_COMM;
}
BOTH_NAMES(MPI_Comm_group);

int PMPI_Group_size(MPI_Group group, int *size)
{
    (void)group;
    *size = 1;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Group_size);

int PMPI_Group_translate_ranks(MPI_Group from, int number, const int ranks[], MPI_Group to,
                               int translated[])
{
    for (int i = 0; i < number; i++)
        translated[i] = strangers && from != to ? MPI_UNDEFINED : ranks[i];
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Group_translate_ranks);

int PMPI_Group_free(MPI_Group *group)
{
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Group_free);

int PMPI_Comm_free(MPI_Comm *comm)
{
    reached("MPI_Comm_free", *comm);
    unsigned number = (unsigned)*comm - (unsigned)FIRST;
    if (number >= MANY)
        die("MPI_Comm_free: %#x may not be freed", *comm);
    communicators[number].is_alive = false;
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Comm_free);

int PMPI_Type_size(MPI_Datatype datatype, int *size)
{
    *size = size_of(datatype);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Type_size);

int PMPI_Type_size_x(MPI_Datatype datatype, MPI_Count *size)
{
    *size = size_of(datatype);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Type_size_x);

int PMPI_Barrier(MPI_Comm comm)
{
    reached("MPI_Barrier", comm);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Barrier);
