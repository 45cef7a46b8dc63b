/* With -DLIBRARY: an MPI library that no table knows. Handles are numbers of its own, and there is
 * none of the symbols by which an interface is recognised. Otherwise: a program for it, which has
 * the prototypes by itself.
 * Expect: "rank 0 of the unknown MPI received 42", and code 5, with gyan and without. */
#ifdef LIBRARY

int PMPI_Init(int *argc, char ***argv) { return 0; }
int PMPI_Finalize(void) { return 0; }
int PMPI_Comm_rank(long comm, int *rank)
{
    *rank = 0;
    return comm == 7 ? 0 : 1;
}
int PMPI_Recv(void *buf, int count, long datatype, int source, int tag, long comm, void *status)
{
    *(int *)buf = 42;
    return 0;
}

#define PLAIN(name) __attribute__((weak, alias("P" #name)))
PLAIN(MPI_Init) int MPI_Init(int *argc, char ***argv);
PLAIN(MPI_Finalize) int MPI_Finalize(void);
PLAIN(MPI_Comm_rank) int MPI_Comm_rank(long comm, int *rank);
PLAIN(MPI_Recv) int MPI_Recv(void *, int, long, int, int, long, void *);

#else
#include <stdio.h>

int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
int MPI_Comm_rank(long comm, int *rank);
int MPI_Recv(void *, int, long, int, int, long, void *);

int main(int argc, char **argv)
{
    int rank = -1, x = 0;
    if (MPI_Init(&argc, &argv) || MPI_Comm_rank(7, &rank) || MPI_Recv(&x, 1, 3, 0, 0, 7, 0))
        return 1;
    printf("rank %d of the unknown MPI received %d\n", rank, x);
    return MPI_Finalize() ? 1 : 5;
}

#endif
