/* A program that opens and closes plugins in turn, each of which calls MPI. Arguments: the plugins (this file with
 * PART defined, as libraries); the last one is the number of rounds.
 * Expect: "PLUGIN CALLS" for each, counted here, and "same place" if all of them were loaded at one address. */
#include <mpi.h>

#ifdef PART
int work(int calls)
{
    int done = 0;
    for (; done < calls; done++)
        MPI_Barrier(MPI_COMM_SELF);
    return done;
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 8 };

int main(int argc, char **argv)
{
    int done[MOST] = {0}, same = 1;
    void *first = NULL;

    MPI_Init(&argc, &argv);
    for (int round = 0; round < atoi(argv[argc - 1]); round++)
        for (int i = 1; i < argc - 1 && i < MOST; i++) {
            void *plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
            int (*work)(int) = plugin ? (int (*)(int))dlsym(plugin, "work") : NULL;
            if (!work) {
                puts(dlerror());
                return 3;
            }
            first = first ? first : (void *)work;
            same = same && first == (void *)work;
            done[i] += work(i);
            dlclose(plugin);
        }
    for (int i = 1; i < argc - 1 && i < MOST; i++)
        printf("%s %d\n", argv[i], done[i]);
    if (same)
        puts("same place");
    MPI_Finalize();
    return 0;
}
#endif
