/* Communicators and windows that are created and freed, by every function that creates one; one of them with
 * messages that nobody receives until the end. 4 ranks; made for Open MPI, whose point-to-point
 * component has a variable for each communicator.
 * Expect: variables for MPI_COMM_WORLD, "solver", and by kind, size and order of creation for those
 * without a name; "solver" ends with 3 unexpected messages from rank 1 on rank 0; none for an
 * intercommunicator. With an argument: this many more communicators, all alive at once. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, i, x = 0, dims[1] = {4}, periods[1] = {0}, members[4] = {0, 1, 2, 3};
    MPI_Comm solver, idup, half, group_comm, cart, graph, inter, merged, nothing, *more;
    MPI_Group group;
    MPI_Request request;
    MPI_Win win;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &solver);
    MPI_Comm_set_name(solver, "solver");
    MPI_Comm_idup(MPI_COMM_WORLD, &idup, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
    MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &nothing);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &group_comm);
    MPI_Group_free(&group);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, members, MPI_UNWEIGHTED, 4, members,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 5, &inter);
    MPI_Intercomm_merge(inter, rank >= 2, &merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&graph);
    MPI_Comm_free(&cart);
    MPI_Comm_free(&group_comm);
    MPI_Comm_free(&half);
    MPI_Comm_free(&idup);
    MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    if (argc > 1) {
        int count = atoi(argv[1]);
        more = malloc(count * sizeof *more);
        for (i = 0; i < count; i++)
            MPI_Comm_dup(MPI_COMM_SELF, &more[i]);
        for (i = 0; i < count; i++)
            MPI_Comm_free(&more[i]);
    }
    if (rank == 1)
        for (i = 0; i < 3; i++)
            MPI_Send(&i, 1, MPI_INT, 0, i, solver);
    /* Messages of one sender do not overtake each other: then all three are there. */
    if (rank == 0)
        MPI_Probe(1, 2, solver, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
