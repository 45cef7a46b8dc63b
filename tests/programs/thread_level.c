/* MPI_Init_thread at the level that the first argument gives
 * (0 to 3). Prints the level that MPI gives and that MPI_Query_thread confirms.
 * Expect: the same line with gyan as without; the profile holds that level. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                    MPI_THREAD_MULTIPLE};
    const char *names[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
                           "MPI_THREAD_MULTIPLE"};
    int provided = -1, level = -1, wanted = argc > 1 ? atoi(argv[1]) : 0, i;
    MPI_Init_thread(&argc, &argv, levels[wanted], &provided);
    MPI_Query_thread(&level);
    for (i = 0; i < 4; i++)
        if (levels[i] == level)
            printf("level %s %s\n", names[i], provided == level ? "as provided" : "DIFFERENT");
    MPI_Finalize();
    return 0;
}
