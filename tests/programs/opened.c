/* A program without MPI that opens the MPI library for itself alone (RTLD_LOCAL) and looks its functions up by
 * dlsym, as Julia does. Arguments: the library, the number of calls of each thread, the number of threads.
 * Expect: a line for each question about a name, the same with gyan as without; then "NAME COUNT" for each function
 * that was called, counted here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 };

static void *library;
static int calls;
static int (*init_thread)(int *, char ***, int, int *), (*finalize)(void), (*rank)(MPI_Comm, int *);
static int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
static int (*iprobe)(int, int, MPI_Comm, int *, MPI_Status *);
static MPI_Comm world;

static void *look_up(const char *name)
{
    void *found = dlsym(library, name);
    char *error = dlerror();
    if (!found || error) {
        printf("%s: %s\n", name, error ? error : "null");
        exit(3);
    }
    return found;
}

/* What the three ways to ask say of a name, and whether dlerror agrees. */
static void ask(const char *name)
{
    void *handles[] = {library, RTLD_DEFAULT, RTLD_NEXT, dlopen(NULL, RTLD_NOW), dlopen("libm.so.6", RTLD_NOW)};
    printf("%s:", name);
    for (int i = 0; i < 5; i++) {
        dlerror();
        void *found = dlsym(handles[i], name);
        char *error = dlerror();
        printf(" %d%s", found != NULL, !found == !!error ? "" : "?");
        if (error && !strstr(error, name))
            printf(" (%s)", error);
    }
    puts("");
}

static void *work(void *unused)
{
    int flag, number;
    int (*again)(MPI_Comm, int *) = (int (*)(MPI_Comm, int *))look_up("MPI_Comm_rank");
    for (int i = 0; i < calls; i++) {
        iprobe(MPI_PROC_NULL, 0, world, &flag, MPI_STATUS_IGNORE);
        again(world, &number);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[MOST];
    int number, provided;
    if (argc < 4 || !(library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))) {
        puts(argc < 4 ? "arguments" : dlerror());
        return 2;
    }
    calls = atoi(argv[2]);
    number = atoi(argv[3]);
    for (const char **name = (const char *[]){"MPI_Comm_rank", "PMPI_Comm_rank", "MPI_Session_init", "MPI_Bcast_c",
             "MPI_No_such", "mpi_bcast_", "MPI", "getpid", "cos", NULL}; *name; name++)
        ask(*name);
    /* The next one after the C library's is none. */
    printf("dlsym: %d\n", dlsym(RTLD_DEFAULT, "dlsym") != NULL);
    fflush(stdout);
    init_thread = look_up("MPI_Init_thread");
    finalize = look_up("MPI_Finalize");
    rank = look_up("MPI_Comm_rank");
    allreduce = look_up("MPI_Allreduce");
    iprobe = look_up("MPI_Iprobe");
#ifdef OPEN_MPI
    /* Names of variables stand for the handles there. */
    world = (MPI_Comm)look_up("ompi_mpi_comm_world");
    MPI_Datatype type = (MPI_Datatype)look_up("ompi_mpi_int");
    MPI_Op sum = (MPI_Op)look_up("ompi_mpi_op_sum");
#else
    world = MPI_COMM_WORLD;
    MPI_Datatype type = MPI_INT;
    MPI_Op sum = MPI_SUM;
#endif
    if (init_thread(&argc, &argv, number > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return 4;
    for (int i = 1; i < number; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    work(NULL);
    for (int i = 1; i < number; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < calls; i++) {
        int one = 1, all = 0;
        allreduce(&one, &all, 1, type, sum, world);
    }
    finalize();
    printf("MPI_Iprobe %d\nMPI_Comm_rank %d\nMPI_Allreduce %d\nMPI_Finalize 1\nMPI_Init_thread 1\n", calls * number,
        calls * number, calls);
    return 0;
}
