/* Another tool, to preload before or after gyan, or to link into the program: counts
 * receives and MPI_Send, and writes at MPI_Finalize to the file <TOOL or "tool">.<rank>, a line each:
 * "<function> <n>".
 * It calls the PMPI_ names, as most tools do; with -DFORWARD_PMPI it looks them up, as Darshan does;
 * with -DFORWARD_NEXT it calls the next definition of the name that it was called by, so that a tool
 * after it sees the call too. With -DFORTRAN it also has mpi_recv_ of Fortran. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#if defined FORWARD_NEXT
#define NEXT(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))
#elif defined FORWARD_PMPI
#define NEXT(function) ((__typeof__(&function))dlsym(RTLD_NEXT, "P" #function))
#else
#define NEXT(function) P##function
#endif

#define FUNCTIONS(row)                                                                            \
    row(MPI_Send, (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c),             \
        (b, n, t, to, tag, c))                                                                    \
    row(MPI_Recv, (void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *s),  \
        (b, n, t, from, tag, c, s))                                                               \
    row(MPI_Irecv, (void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c,                 \
        MPI_Request *r), (b, n, t, from, tag, c, r))                                              \
    row(MPI_Mrecv, (void *b, int n, MPI_Datatype t, MPI_Message *m, MPI_Status *s),                \
        (b, n, t, m, s))                                                                          \
    row(MPI_Imrecv, (void *b, int n, MPI_Datatype t, MPI_Message *m, MPI_Request *r),              \
        (b, n, t, m, r))                                                                          \
    row(MPI_Sendrecv, (const void *b, int n, MPI_Datatype t, int to, int tag, void *bb, int nn,    \
        MPI_Datatype tt, int from, int ttag, MPI_Comm c, MPI_Status *s),                          \
        (b, n, t, to, tag, bb, nn, tt, from, ttag, c, s))                                         \
    row(MPI_Sendrecv_replace, (void *b, int n, MPI_Datatype t, int to, int tag, int from,          \
        int ttag, MPI_Comm c, MPI_Status *s), (b, n, t, to, tag, from, ttag, c, s))               \
    row(MPI_Recv_init, (void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c,             \
        MPI_Request *r), (b, n, t, from, tag, c, r))

/* An MPI without these is given none: a program that looks for them must go on finding none. */
#if MPI_VERSION >= 4
#define LARGE(row)                                                                                \
    row(MPI_Recv_c, (void *b, MPI_Count n, MPI_Datatype t, int from, int tag, MPI_Comm c,          \
        MPI_Status *s), (b, n, t, from, tag, c, s))                                               \
    row(MPI_Irecv_c, (void *b, MPI_Count n, MPI_Datatype t, int from, int tag, MPI_Comm c,         \
        MPI_Request *r), (b, n, t, from, tag, c, r))                                              \
    row(MPI_Mrecv_c, (void *b, MPI_Count n, MPI_Datatype t, MPI_Message *m, MPI_Status *s),        \
        (b, n, t, m, s))                                                                          \
    row(MPI_Imrecv_c, (void *b, MPI_Count n, MPI_Datatype t, MPI_Message *m, MPI_Request *r),      \
        (b, n, t, m, r))                                                                          \
    row(MPI_Sendrecv_c, (const void *b, MPI_Count n, MPI_Datatype t, int to, int tag, void *bb,    \
        MPI_Count nn, MPI_Datatype tt, int from, int ttag, MPI_Comm c, MPI_Status *s),            \
        (b, n, t, to, tag, bb, nn, tt, from, ttag, c, s))                                         \
    row(MPI_Sendrecv_replace_c, (void *b, MPI_Count n, MPI_Datatype t, int to, int tag, int from,  \
        int ttag, MPI_Comm c, MPI_Status *s), (b, n, t, to, tag, from, ttag, c, s))               \
    row(MPI_Recv_init_c, (void *b, MPI_Count n, MPI_Datatype t, int from, int tag, MPI_Comm c,     \
        MPI_Request *r), (b, n, t, from, tag, c, r))
#else
#define LARGE(row)
#endif

#define DEFINE(function, parameters, arguments)                                                   \
    static long calls_of_##function;                                                              \
    int function parameters                                                                       \
    {                                                                                             \
        calls_of_##function++;                                                                    \
        return NEXT(function) arguments;                                                          \
    }
FUNCTIONS(DEFINE)
LARGE(DEFINE)

#ifdef FORTRAN
void pmpi_recv_(void *, void *, void *, void *, void *, void *, void *, void *);
void mpi_recv_(void *b, void *n, void *t, void *from, void *tag, void *c, void *s, void *error)
{
    calls_of_MPI_Recv++;
    pmpi_recv_(b, n, t, from, tag, c, s, error);
}
#endif

#define PRINT(function, parameters, arguments)                                                    \
    if (calls_of_##function)                                                                      \
        fprintf(file, #function " %ld\n", calls_of_##function);

int MPI_Finalize(void)
{
    int rank;
    char name[64];
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "%s.%d", getenv("TOOL") ? getenv("TOOL") : "tool", rank);
    FILE *file = fopen(name, "w");
    FUNCTIONS(PRINT)
    LARGE(PRINT)
    fclose(file);
    return NEXT(MPI_Finalize)();
}
