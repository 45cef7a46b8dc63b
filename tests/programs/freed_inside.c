/* A communicator of the program is freed from inside MPI: the delete function of an attribute of another one frees it
 * (MPI 4.1, 7.7.2). Memory that was its own is used again afterwards, and messages go on. Two ranks.
 * Expect: "freed" on stdout of rank 0; 2,000 and 20,000 calls of MPI_Sendrecv on each rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm inner;

static int free_inner(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    return MPI_Comm_free(&inner);
}

static void exchange(MPI_Comm comm, int peer, int times)
{
    int x = 1, y;
    for (int i = 0; i < times; i++)
        MPI_Sendrecv(&x, 1, MPI_INT, peer, 0, &y, 1, MPI_INT, peer, 0, comm, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    enum { PIECES = 64 };
    MPI_Comm outer;
    int rank, keyval;
    void *pieces[PIECES];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &outer);
    MPI_Comm_dup(MPI_COMM_WORLD, &inner);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_inner, &keyval, NULL);
    MPI_Comm_set_attr(outer, keyval, &inner);
    exchange(inner, 1 - rank, 2000);
    MPI_Comm_free(&outer);
    for (int i = 0; i < PIECES; i++) {
        size_t size = 64 + 32 * (size_t)i;
        pieces[i] = malloc(size);
        memset(pieces[i], 0x5a, size);
    }
    exchange(MPI_COMM_WORLD, 1 - rank, 20000);
    for (int i = 0; i < PIECES; i++)
        free(pieces[i]);
    MPI_Comm_free_keyval(&keyval);
    if (rank == 0)
        printf("freed\n");
    MPI_Finalize();
    return 0;
}
