/* MPI by sessions only (MPI 4.0, 11.3): `sessions once` uses one, `sessions twice` two that overlap,
 * `sessions again` one after the other has ended, so that MPI is initialised again, `sessions often` 20 such,
 * `sessions both` one around the world model. In each use 5 receives from MPI_PROC_NULL and one message around the
 * ring.
 * Expect: `received <n>` from each rank; n receives in one profile of each rank. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int received;

static void communicate(MPI_Comm comm)
{
    int rank, size, i, x = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (i = 0; i < 5; i++)
        MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE);
    MPI_Request request;
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 1, comm, &request);
    MPI_Recv(&x, 1, MPI_INT, (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    received += 6;
}

static MPI_Comm begin(MPI_Session *session, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session);
    MPI_Group_from_session_pset(*session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    return comm;
}

static void end(MPI_Session *session, MPI_Comm *comm)
{
    MPI_Comm_free(comm);
    MPI_Session_finalize(session);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "once";
    MPI_Session one, other;
    MPI_Comm of_one = begin(&one, "one"), of_other;
    communicate(of_one);
    if (!strcmp(how, "twice")) {
        of_other = begin(&other, "other");
        communicate(of_other);
        end(&other, &of_other);
    }
    if (!strcmp(how, "both")) {
        MPI_Init(&argc, &argv);
        communicate(MPI_COMM_WORLD);
        MPI_Finalize();
        communicate(of_one);
    }
    end(&one, &of_one);
    for (int more = !strcmp(how, "often") ? 20 : !strcmp(how, "again"); more > 0; more--) {
        of_one = begin(&one, "again");
        communicate(of_one);
        end(&one, &of_one);
    }
    printf("received %d\n", received);
    return 0;
}
