/* Calls each receive of mpif.h by the name that one kind of Fortran compiler gives it: `spellings
 * KIND` with KIND "_", "__", "UPPER" or "f" (Open MPI's ompi_*_f), init and finalize included. Only
 * names that this MPI's own library for Fortran exports; prints how many there are.
 * Expect: the functions that are printed, each with the calls that are printed, in the profile. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *kind;
static void *fortran;

/* The definition that a program compiled with these names would be bound to, or NULL. */
static void (*named(const char *function))()
{
    char name[80], *c;
    if (!strcmp(kind, "f"))
        snprintf(name, sizeof name, "o%s_f", function);
    else
        snprintf(name, sizeof name, "%s%s", function, strcmp(kind, "UPPER") ? kind : "");
    for (c = name; !strcmp(kind, "UPPER") && *c; c++)
        *c = (char)toupper(*c);
    if (!dlsym(fortran, name))
        return NULL;
    void (*found)() = (void (*)())dlsym(RTLD_DEFAULT, name);
    if (!found)
        fprintf(stderr, "%s is not in the global scope\n", name), exit(1);
    return found;
}

static void (*needed(const char *function))()
{
    void (*found)() = named(function);
    if (!found)
        printf("absent\n"), exit(0);
    return found;
}

/* Everything is an address, and ierr comes last. */
#define CALL(function, times, ...)                                  \
    do {                                                            \
        void (*entry)() = named(function);                          \
        for (int i = 0; entry && i < (times); i++) {                \
            ierr = -1;                                              \
            entry(__VA_ARGS__, &ierr);                              \
            if (ierr != MPI_SUCCESS)                                \
                printf("%s: ierr %d\n", function, ierr), exit(1);   \
        }                                                           \
        if (entry)                                                  \
            printf("%s %d\n", function, times);                     \
    } while (0)

int main(int argc, char **argv)
{
    kind = argc > 1 ? argv[1] : "_";
    const char *libraries[] = {"libmpi_mpifh.so.40", "libmpichfort.so.12", "libmpifort.so.12"};
    for (int i = 0; i < 3 && !fortran; i++)
        fortran = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    if (!fortran)
        return 2;

    int ierr = -1, one = 1, zero = 0, none = MPI_PROC_NULL, x = 0, y = 0;
    MPI_Fint request = 0, message = 0, status[16];
    needed("mpi_init")(&ierr);
    if (ierr != MPI_SUCCESS)
        return 3;
    printf("mpi_init 1\n");
    MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD), type = MPI_Type_c2f(MPI_INT);

    CALL("mpi_recv", 3, &x, &one, &type, &none, &zero, &world, status);
    CALL("mpi_irecv", 2, &x, &one, &type, &none, &zero, &world, &request);
    CALL("mpi_sendrecv", 4, &y, &one, &type, &none, &zero, &x, &one, &type, &none, &zero, &world,
         status);
    CALL("mpi_sendrecv_replace", 5, &x, &one, &type, &none, &zero, &none, &zero, &world, status);
    CALL("mpi_recv_init", 1, &x, &one, &type, &none, &zero, &world, &request);
    message = MPI_Message_c2f(MPI_MESSAGE_NO_PROC);
    CALL("mpi_mrecv", 1, &x, &one, &type, &message, status);
    message = MPI_Message_c2f(MPI_MESSAGE_NO_PROC);
    CALL("mpi_imrecv", 1, &x, &one, &type, &message, &request);
    CALL("mpi_isendrecv", 2, &y, &one, &type, &none, &zero, &x, &one, &type, &none, &zero, &world,
         &request);
    CALL("mpi_isendrecv_replace", 3, &x, &one, &type, &none, &zero, &none, &zero, &world, &request);

    printf("mpi_finalize 1\n");
    needed("mpi_finalize")(&ierr);
    return ierr == MPI_SUCCESS ? 0 : 4;
}
