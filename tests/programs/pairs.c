/* Ranks exchange messages in which some wait for others, 50 times each: on MPI_COMM_WORLD, or with the argument reverse on a
 * communicator with the ranks in reverse order, made from a duplicate. 10 times of these a rank comes late by 20 ms, without using a
 * processor, and in the second kind another one by 10 ms:
 *
 * MPI_Recv          0 from 1, which is late
 * MPI_Waitall       0 from 1 and 2, which are both late
 * MPI_Ssend         0 to 1, which is late
 * MPI_Sendrecv      0 and 1, which is late
 * MPI_Wait          0 from 1, which is late
 *
 * or with the argument further, each time 0 from 1, which is late:
 *
 * MPI_Probe         before MPI_Recv
 * MPI_Recv          from any rank with any tag, without a status
 * MPI_Mprobe        from any rank, before MPI_Mrecv
 * MPI_Wait          of a persistent operation
 * MPI_Improbe       until there is a message, before MPI_Imrecv: a rank that polls does not wait
 * MPI_Testany       of two requests, one of them null, until there is a message: the same
 * MPI_Wait          after MPI_Test for 5 ms
 *
 * or with the argument both, where MPI has these functions, 0 and 1, which is late:
 *
 * MPI_Wait          after MPI_Isendrecv, and after MPI_Isendrecv_replace
 *
 * Rank 0 prints how long ranks waited by definition, from CLOCK_REALTIME, which all of them share: the rank, the one that it waited
 * for, whether that was to send or to receive, the seconds, and what they are at most, as a rank may lose its processor between reading
 * its clock and its call. A rank waits for each message of a call at once, and the longest wait counts: for none if it is not clear which.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#define ROUNDS 50
enum { RECV, WAITALL, SSEND, SENDRECV, WAIT, PROBE, ANY, MPROBE, PERSISTENT, IMPROBE, TESTANY, TEST, ISENDRECV, REPLACE, KINDS };
enum { SENDER, RECEIVER };
/* Their senders and receivers. */
static const int messages[KINDS][2][2] = {{{1, 0}, {-1, -1}},
                                          {{1, 0}, {2, 0}},
                                          {{0, 1}, {-1, -1}},
                                          {{1, 0}, {0, 1}},
                                          {{1, 0}, {-1, -1}},
                                          {{1, 0}, {-1, -1}},
                                          {{1, 0}, {-1, -1}},
                                          {{1, 0}, {-1, -1}},
                                          {{1, 0}, {-1, -1}},
                                          {{1, 0}, {-1, -1}},
                                          {{1, 0}, {-1, -1}},
                                          {{1, 0}, {-1, -1}},
                                          {{1, 0}, {0, 1}},
                                          {{1, 0}, {0, 1}}};
/* When a rank began a message, and when the call began and ended that completed it. */
struct times {
    double begun, waits, ended;
};
static struct times times[KINDS][ROUNDS][2];

static double now(void) { return seconds_by(CLOCK_REALTIME); }

static double waited(struct times own, struct times other) {
    double until = other.begun <= own.ended ? other.begun : own.waits;
    return until > own.waits ? until - own.waits : 0;
}

/* The same if the other one began only when its call ended. */
static double waited_at_most(struct times own, struct times other) {
    other.begun = other.ended < own.ended ? other.ended : own.ended;
    return waited(own, other);
}

/* MPI 4, of which Open MPI 5 has these functions. */
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
static void exchange(int kind, int other, int *buffer, int *from, MPI_Comm comm, MPI_Request *request) {
    if (kind == ISENDRECV)
        MPI_Isendrecv(buffer, 1, MPI_INT, other, kind, from, 1, MPI_INT, other, kind, comm, request);
    else
        MPI_Isendrecv_replace(buffer, 1, MPI_INT, other, kind, other, kind, comm, request);
}
#else
static void exchange(int kind, int other, int *buffer, int *from, MPI_Comm comm, MPI_Request *request) {
    MPI_Abort(comm, 1);
}
#endif

int main(int argc, char **argv) {
    int rank, size, place, buffer = 0, others[2] = {0, 0};
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Message message;
    MPI_Request persistent = MPI_REQUEST_NULL;
    int is_reverse = argc > 1 && !strcmp(argv[1], "reverse"), is_further = argc > 1 && !strcmp(argv[1], "further");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (is_reverse) {
        MPI_Comm twin;
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        MPI_Comm_split(twin, 0, -rank, &comm);
        MPI_Comm_free(&twin);
    }
    MPI_Comm_rank(comm, &place);
    if (place == 0)
        MPI_Recv_init(&buffer, 1, MPI_INT, 1, PERSISTENT, comm, &persistent);
    else if (place == 1)
        MPI_Send_init(&buffer, 1, MPI_INT, 0, PERSISTENT, comm, &persistent);
    int is_both = argc > 1 && !strcmp(argv[1], "both");
    int first = is_both ? ISENDRECV : is_further ? PROBE : 0, end = is_both ? KINDS : is_further ? ISENDRECV : PROBE;
    for (int kind = first; kind < end; kind++)
        for (int i = 0; i < ROUNDS; i++) {
            struct times *own = times[kind][i];
            MPI_Request requests[2];
            MPI_Barrier(comm);
            if (i % 5 == 3 && place > 0)
                usleep(place == 1 ? 20000 : 10000);
            own[0].begun = own[0].waits = own[1].begun = own[1].waits = now();
            if (place == 0) {
                switch (kind) {
                case RECV:
                    MPI_Recv(&buffer, 1, MPI_INT, 1, kind, comm, MPI_STATUS_IGNORE);
                    break;
                case WAITALL:
                    MPI_Irecv(&others[0], 1, MPI_INT, 1, kind, comm, &requests[0]);
                    own[1].begun = now();
                    MPI_Irecv(&others[1], 1, MPI_INT, 2, kind, comm, &requests[1]);
                    own[0].waits = own[1].waits = now();
                    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
                    break;
                case SSEND:
                    MPI_Ssend(&buffer, 1, MPI_INT, 1, kind, comm);
                    break;
                case SENDRECV:
                    MPI_Sendrecv(&buffer, 1, MPI_INT, 1, kind, others, 1, MPI_INT, 1, kind, comm, MPI_STATUS_IGNORE);
                    break;
                case WAIT:
                    MPI_Irecv(&buffer, 1, MPI_INT, 1, kind, comm, requests);
                    own[0].waits = now();
                    MPI_Wait(requests, MPI_STATUS_IGNORE);
                    break;
                case PROBE:
                    MPI_Probe(1, kind, comm, MPI_STATUS_IGNORE);
                    MPI_Recv(&buffer, 1, MPI_INT, 1, kind, comm, MPI_STATUS_IGNORE);
                    break;
                case ANY:
                    MPI_Recv(&buffer, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
                    break;
                case MPROBE:
                    MPI_Mprobe(MPI_ANY_SOURCE, kind, comm, &message, MPI_STATUS_IGNORE);
                    MPI_Mrecv(&buffer, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
                    break;
                case PERSISTENT:
                    MPI_Start(&persistent);
                    own[0].waits = now();
                    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
                    break;
                case IMPROBE:
                    for (int has_come = 0; !has_come;)
                        MPI_Improbe(1, kind, comm, &has_come, &message, MPI_STATUS_IGNORE);
                    own[0].begun = own[0].waits = now();
                    MPI_Imrecv(&buffer, 1, MPI_INT, &message, requests);
                    MPI_Wait(requests, MPI_STATUS_IGNORE);
                    break;
                case TESTANY:
                    requests[0] = MPI_REQUEST_NULL;
                    MPI_Irecv(&buffer, 1, MPI_INT, 1, kind, comm, &requests[1]);
                    for (int has_come = 0, which; !has_come;)
                        MPI_Testany(2, requests, &which, &has_come, MPI_STATUS_IGNORE);
                    own[0].waits = now();
                    break;
                case TEST:
                    MPI_Irecv(&buffer, 1, MPI_INT, 1, kind, comm, requests);
                    for (int has_come = 0; !has_come && now() - own[0].begun < 0.005;)
                        MPI_Test(requests, &has_come, MPI_STATUS_IGNORE);
                    own[0].waits = now();
                    MPI_Wait(requests, MPI_STATUS_IGNORE);
                    break;
                case ISENDRECV:
                case REPLACE:
                    exchange(kind, 1, &buffer, others, comm, requests);
                    own[0].waits = own[1].waits = now();
                    MPI_Wait(requests, MPI_STATUS_IGNORE);
                    break;
                }
            } else if (place == 1) {
                switch (kind) {
                case SSEND:
                    MPI_Recv(&buffer, 1, MPI_INT, 0, kind, comm, MPI_STATUS_IGNORE);
                    break;
                case SENDRECV:
                    MPI_Sendrecv(&buffer, 1, MPI_INT, 0, kind, others, 1, MPI_INT, 0, kind, comm, MPI_STATUS_IGNORE);
                    break;
                case WAIT:
                    MPI_Isend(&buffer, 1, MPI_INT, 0, kind, comm, requests);
                    own[0].waits = now();
                    MPI_Wait(requests, MPI_STATUS_IGNORE);
                    break;
                case PERSISTENT:
                    MPI_Startall(1, &persistent);
                    own[0].waits = now();
                    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
                    break;
                case ISENDRECV:
                case REPLACE:
                    exchange(kind, 0, &buffer, others, comm, requests);
                    own[0].waits = own[1].waits = now();
                    MPI_Wait(requests, MPI_STATUS_IGNORE);
                    break;
                default:
                    MPI_Send(&buffer, 1, MPI_INT, 0, kind, comm);
                }
            } else if (place == 2 && kind == WAITALL) {
                MPI_Send(&buffer, 1, MPI_INT, 0, kind, comm);
            }
            own[0].ended = own[1].ended = now();
        }
    if (place < 2)
        MPI_Request_free(&persistent);
    /* In the order of the communicator. */
    struct times(*of_ranks)[KINDS][ROUNDS][2] = malloc(size * sizeof times);
    MPI_Allgather(times, sizeof times, MPI_BYTE, of_ranks, sizeof times, MPI_BYTE, comm);
    double(*seconds)[size][2] = calloc(size, sizeof *seconds), (*at_most)[size][2] = calloc(size, sizeof *at_most);
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < ROUNDS; i++)
            for (int r = 0; r < size; r++) {
                double most = 0, *longest = NULL;
                int is_clear = 1, longest_other = -1;
                /* A late sender before a receiver that is as late. */
                for (int side = RECEIVER; side >= SENDER; side--)
                    for (int m = 0; m < 2; m++) {
                        int other = messages[kind][m][!side];
                        if (messages[kind][m][side] != r)
                            continue;
                        double wait = waited(of_ranks[r][kind][i][m], of_ranks[other][kind][i][m]);
                        if (wait > (side == SENDER ? 1.01 * most : most)) {
                            most = wait;
                            longest = &seconds[r][other][side];
                            longest_other = other;
                        }
                    }
                /* Each that may have been the longest: of two with one rank, which begin at once, it is clear. */
                for (int side = SENDER; side <= RECEIVER; side++)
                    for (int m = 0; m < 2; m++) {
                        int other = messages[kind][m][!side];
                        if (messages[kind][m][side] != r)
                            continue;
                        double wait = waited_at_most(of_ranks[r][kind][i][m], of_ranks[other][kind][i][m]);
                        int is_longest = longest == &seconds[r][other][side];
                        if (is_longest || (other != longest_other && wait >= most))
                            at_most[r][other][side] += wait;
                        is_clear &= other == longest_other || wait < most;
                    }
                if (longest && is_clear)
                    *longest += most;
            }
    for (int r = 0; r < size && rank == 0; r++)
        for (int other = 0; other < size; other++)
            for (int side = SENDER; side <= RECEIVER; side++)
                if (at_most[r][other][side] > 0)
                    printf("%d %d %s %.6f %.6f\n", is_reverse ? size - 1 - r : r, is_reverse ? size - 1 - other : other,
                           side == RECEIVER ? "send" : "receive", seconds[r][other][side], at_most[r][other][side]);
    MPI_Finalize();
    return 0;
}
