/* To be preloaded after libgyan.so, which looks functions of MPI up by the next dlsym: counts the groups that it asks for,
 * and the ranks that it has translated, in the program's own variables, if it has them. The program's own questions are not
 * looked up and not counted. To be linked with -Wl,-soname,GLIBC_2.34 -Wl,--default-symver, so that this dlsym has the
 * version by which libgyan.so asks for it.
 * Expect: what tests/programs/groups.c says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>

extern long asked_groups __attribute__((weak)), asked_ranks __attribute__((weak));

static int (*translate)(MPI_Group, int, const int *, MPI_Group, int *);
static int (*group)(MPI_Comm, MPI_Group *);

static int counted_translate(MPI_Group from, int number, const int *ranks, MPI_Group to, int *there)
{
    if (&asked_ranks)
        asked_ranks += number;
    return translate(from, number, ranks, to, there);
}

static int counted_group(MPI_Comm comm, MPI_Group *of)
{
    if (&asked_groups)
        asked_groups++;
    return group(comm, of);
}

void *dlsym(void *handle, const char *name)
{
    static void *(*real)(void *, const char *);
    if (!real)
        real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!real)
#ifdef __aarch64__
        real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
#else
        real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
#endif
    if (!strcmp(name, "PMPI_Group_translate_ranks") && handle != RTLD_NEXT) {
        translate = real(handle, name);
        return translate ? counted_translate : NULL;
    }
    if (!strcmp(name, "PMPI_Comm_group") && handle != RTLD_NEXT) {
        group = real(handle, name);
        return group ? counted_group : NULL;
    }
    /* A jump and no call (-O2): RTLD_NEXT is meant for the caller. */
    return real(handle, name);
}
