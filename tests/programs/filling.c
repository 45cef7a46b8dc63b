/* Fills a disk while it runs: asks for its profile, writes the file in its argument until there is no
 * room, and asks again, twice.
 * Expect: the profile of the first time stays, and the same output as without gyan. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    static const char bytes[4096];
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(2);
    FILE *filler = fopen(argv[1], "w");
    setvbuf(filler, NULL, _IONBF, 0);
    while (fwrite(bytes, sizeof bytes, 1, filler) == 1)
        ;
    fclose(filler);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(2);
    MPI_Pcontrol(2);
    MPI_Finalize();
    puts("full");
    return 0;
}
