/* 4 ranks exchange some messages, and then hang as the argument says, until the file `go` is there or they are killed:
 *
 * cycle       ranks 0 and 1 each receive from the other, who sends nothing; ranks 2 and 3 are in a barrier
 * barrier     rank 1 receives from rank 3, which is in a barrier with the others
 * tag         rank 1 receives tag 77 from rank 3, which has sent tag 78 and receives from rank 1; the others are in a barrier
 * collectives rank 2 is in MPI_Allreduce, the others are in MPI_Barrier
 * root        each rank calls MPI_Bcast with itself as root but rank 3, which has 0
 * amounts     rank 2 has half of what the others have in MPI_Bcast: Open MPI waits for the rest
 * gathered    rank 2 has a little of what the others have in MPI_Allgather: MPICH waits for the rest, or ends
 * any         rank 0 receives from any rank, and each of the others from rank 0
 * waitall     rank 0 waits for messages of ranks 1 and 2, which rank 1 has sent and rank 2 has not: it receives from rank 0
 * straggler   rank 3 computes while the others wait in a barrier
 * split       rank 0 is in a barrier of ranks 0 and 1, and rank 1 receives from rank 0; ranks 2 and 3 are in one of all
 * finalize    rank 3 is in MPI_Finalize while the others are in a barrier
 * sender      rank 0 receives from any rank, of which rank 3 computes and could send; the others receive from rank 0
 * threads     two threads of each of ranks 0 and 1 receive from the other rank; ranks 2 and 3 are in a barrier
 * requests    the same with MPI_Irecv and MPI_Wait
 * deaf        as cycle, and they do not end by SIGTERM
 * healthy     they go on exchanging messages
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int rank, size, x;

static void ring(int tag) {
    MPI_Request request;
    int from = (rank + size - 1) % size, got;
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, tag, MPI_COMM_WORLD, &request);
    MPI_Recv(&got, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void receive(int source, int tag) {
    MPI_Recv(&x, 1, MPI_INT, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* receive */
}

static void barrier(void) {
    MPI_Barrier(MPI_COMM_WORLD); /* barrier */
}

static void *receive_in_thread(void *tag) {
    receive(1 - rank, *(int *)tag);
    return NULL;
}

static void *wait_in_thread(void *tag) {
    MPI_Request request;
    MPI_Irecv(&x, 1, MPI_INT, 1 - rank, *(int *)tag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE); /* wait */
    return NULL;
}

static void compute(void) {
    while (access("go", F_OK) != 0)
        usleep(1000);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    alarm(600);
    if (!strcmp(what, "threads") || !strcmp(what, "requests")) {
        int provided;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    } else {
        MPI_Init(&argc, &argv);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 50; i++)
        ring(i);
    if (!strcmp(what, "deaf"))
        signal(SIGTERM, SIG_IGN);
    if (!strcmp(what, "cycle") || !strcmp(what, "deaf")) {
        if (rank < 2)
            receive(1 - rank, 5);
        barrier();
    } else if (!strcmp(what, "threads") || !strcmp(what, "requests")) {
        void *(*in_thread)(void *) = what[0] == 't' ? receive_in_thread : wait_in_thread;
        pthread_t other;
        int tags[] = {5, 6};
        if (rank < 2) {
            pthread_create(&other, NULL, in_thread, &tags[0]);
            in_thread(&tags[1]);
            pthread_join(other, NULL);
        }
        barrier();
    } else if (!strcmp(what, "barrier")) {
        if (rank == 1)
            receive(3, 77);
        barrier();
    } else if (!strcmp(what, "tag")) {
        if (rank == 3)
            MPI_Send(&x, 1, MPI_INT, 1, 78, MPI_COMM_WORLD);
        if (rank == 1)
            receive(3, 77);
        if (rank == 3)
            receive(1, 1);
        barrier();
    } else if (!strcmp(what, "collectives")) {
        int sum;
        if (rank == 2)
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* allreduce */
        barrier();
    } else if (!strcmp(what, "root")) {
        static char much[1 << 20];
        MPI_Bcast(much, sizeof much, MPI_CHAR, rank == 3 ? 0 : rank, MPI_COMM_WORLD); /* bcast */
    } else if (!strcmp(what, "amounts")) {
        static int much[1 << 18];
        MPI_Bcast(much, rank == 2 ? 1 << 17 : 1 << 18, MPI_INT, 0, MPI_COMM_WORLD); /* amounts */
        barrier();
    } else if (!strcmp(what, "gathered")) {
        static int own[1 << 18], all[1 << 20];
        int count = rank == 2 ? 4 : 1 << 18;
        MPI_Allgather(own, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD); /* gathered */
        barrier();
    } else if (!strcmp(what, "any")) {
        receive(rank == 0 ? MPI_ANY_SOURCE : 0, 3);
    } else if (!strcmp(what, "waitall")) {
        MPI_Request requests[2];
        int got[2];
        if (rank == 0) {
            for (int i = 0; i < 2; i++)
                MPI_Irecv(&got[i], 1, MPI_INT, 1 + i, 9, MPI_COMM_WORLD, &requests[i]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* waitall */
        } else if (rank == 1) {
            MPI_Send(&rank, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
        }
        if (rank == 2)
            receive(0, 4);
        barrier();
    } else if (!strcmp(what, "straggler")) {
        if (rank == 3)
            compute();
        barrier();
    } else if (!strcmp(what, "split")) {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
        for (int i = 0; i < 3; i++)
            MPI_Barrier(half);
        if (rank == 0)
            MPI_Barrier(half); /* half */
        if (rank == 1)
            receive(0, 6);
        barrier();
    } else if (!strcmp(what, "finalize")) {
        if (rank < 3)
            barrier();
    } else if (!strcmp(what, "sender")) {
        if (rank == 3)
            compute();
        else
            receive(rank == 0 ? MPI_ANY_SOURCE : 0, 3);
        if (rank == 3)
            MPI_Send(&x, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        for (int to = 1; rank == 0 && to < 3; to++)
            MPI_Send(&x, 1, MPI_INT, to, 3, MPI_COMM_WORLD);
    } else {
        for (int go = 0, i = 0; !go; i++) {
            int seen = access("go", F_OK) == 0;
            ring(i);
            usleep(1000);
            MPI_Allreduce(&seen, &go, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
