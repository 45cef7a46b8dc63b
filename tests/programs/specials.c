/* What a wrapper in between could spoil in C: strings that the library fills in, errors that are
 * returned, statuses that are ignored, and addresses that mean something else than a buffer. Two
 * ranks.
 * Expect: the same output as without gyan; MPI_Recv 4, MPI_Irecv 2 in each profile. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank;

static void show(const char *what, const char *text, int length, int code)
{
    printf("%d %s [%s] %d %d\n", rank, what, text, length, code);
}

static int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static void strings(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING > MPI_MAX_ERROR_STRING ? MPI_MAX_LIBRARY_VERSION_STRING
                                                                  : MPI_MAX_ERROR_STRING];
    int length, code, flag;
    MPI_Comm comm;
    MPI_Datatype pair;
    MPI_Info info;
    code = MPI_Get_processor_name(text, &length);
    show("processor", text, length, code);
    code = MPI_Get_library_version(text, &length);
    show("version", text, length, code);
    code = MPI_Comm_get_name(MPI_COMM_WORLD, text, &length);
    show("world", text, length, code);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, "  a name with blanks around   ");
    code = MPI_Comm_get_name(comm, text, &length);
    show("named", text, length, code);
    MPI_Comm_free(&comm);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_set_name(pair, "pair");
    code = MPI_Type_get_name(pair, text, &length);
    show("type", text, length, code);
    MPI_Type_free(&pair);
    code = MPI_Error_string(MPI_ERR_TRUNCATE, text, &length);
    show("error", text, length, code);
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "a value");
    memset(text, 0, 8);
    code = MPI_Info_get(info, "key", 7, text, &flag);
    show("value", text, flag, code);
    code = MPI_Info_get_valuelen(info, "key", &length, &flag);
    show("value length", "", length, flag);
    code = MPI_Info_get_nthkey(info, 0, text);
    show("key", text, 0, code);
    MPI_Info_free(&info);
}

static void errors(void)
{
    int x = rank, code;
    code = MPI_Send(&x, 1, MPI_INT, 12345, 0, MPI_COMM_WORLD);
    printf("%d bad rank %d\n", rank, class_of(code) == MPI_ERR_RANK);
    code = MPI_Recv(&x, -1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%d bad count %d\n", rank, class_of(code) == MPI_ERR_COUNT);
}

static void addresses(void)
{
    int x = -1, y = -1, total = rank + 1, gathered[2] = {0, 0}, one = 1, other = 1 - rank, code;
    MPI_Aint address;
    MPI_Datatype absolute;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Get_address(&x, &address);
    MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &absolute);
    MPI_Type_commit(&absolute);
    MPI_Isend(&rank, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &requests[0]);
    code = MPI_Recv(MPI_BOTTOM, 1, absolute, other, 1, MPI_COMM_WORLD, &status);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    printf("%d at an address %d %d %d\n", rank, x, status.MPI_SOURCE, code);
    x = -1;
    MPI_Irecv(MPI_BOTTOM, 1, absolute, other, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&rank, 1, MPI_INT, other, 2, MPI_COMM_WORLD, &requests[1]);
    code = MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    printf("%d and again %d %d\n", rank, x, code);
    MPI_Type_free(&absolute);
    MPI_Irecv(&y, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    code = MPI_Wait(&requests[0], &status);
    printf("%d from none %d %d\n", rank, status.MPI_SOURCE == MPI_PROC_NULL, code);
    MPI_Recv(&y, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(MPI_BOTTOM, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    gathered[rank] = rank + 7;
    code = MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered, 1, MPI_INT, MPI_COMM_WORLD);
    printf("%d in place %d %d %d %d\n", rank, total, gathered[0], gathered[1], code);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    strings();
    errors();
    addresses();
    printf("%d ended %d\n", rank, MPI_Finalize());
    return 0;
}
