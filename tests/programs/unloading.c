/* A program without MPI that loads a part with it, lets it work, and unloads both. Arguments: the part
 * (this file with PART defined, as a library), how often, and whether the part calls MPI_Finalize (1) or
 * not (0).
 * Expect: "worked: CODE" for each time and "goes on" at the end, with exit code 0, as without gyan. */
#ifdef PART
#include <mpi.h>
#include <stddef.h>

int work(int finalize)
{
    int initialized = 0, x = 0;
    MPI_Initialized(&initialized);
    if (initialized)
        return 1;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return 2;
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return finalize ? MPI_Finalize() : 0;
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    for (int i = 0; i < atoi(argv[2]); i++) {
        void *part = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        int (*work)(int) = part ? (int (*)(int))dlsym(part, "work") : NULL;
        if (!work) {
            puts(dlerror());
            return 3;
        }
        printf("worked: %d\n", work(atoi(argv[3])));
        fflush(stdout);
        dlclose(part);
    }
    puts("goes on");
    return 0;
}
#endif
