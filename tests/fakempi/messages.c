/* Point-to-point messages of the process to itself: every send is eager, so that a message without a
 * receive waits in the queue of unexpected messages. */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

struct message {
    struct message *next;
    MPI_Comm comm;
    int tag;
    size_t bytes;
    char data[];
};

enum { FIRST_REQUEST = (int)0x98000000, REQUESTS = 4096 };
struct request {
    bool is_used, is_posted, is_done;
    /* Of MPI_Alltoallv_init: what is copied at each start, as the arrays say at that time. */
    bool is_persistent;
    const void *sent;
    const int *counts, *displs, *displs_to;
    MPI_Comm comm;
    int source, tag;
    void *buffer;
    size_t room;
    /* The order in which it was posted. */
    unsigned long order;
    MPI_Status status;
};

static struct message *unexpected;
static struct request requests[REQUESTS];
static unsigned long order;

int unexpected_messages(void)
{
    int number = 0;
    for (const struct message *message = unexpected; message; message = message->next)
        number++;
    return number;
}

int posted_receives(void)
{
    int number = 0;
    for (int i = 0; i < REQUESTS; i++)
        number += requests[i].is_used && requests[i].is_posted;
    return number;
}

static bool matches(MPI_Comm comm, int source, int tag, MPI_Comm with_comm, int with_tag)
{
    return comm == with_comm && (source == 0 || source == MPI_ANY_SOURCE) &&
           (tag == with_tag || tag == MPI_ANY_TAG);
}

static void set_status(MPI_Status *status, int tag, size_t bytes)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = 0;
    status->MPI_TAG = tag;
    status->count_lo = bytes;
    status->count_hi_and_cancelled = 0;
}

static void arrive(struct request *request, const void *data, int tag, size_t bytes)
{
    if (bytes > request->room)
        die("a message of %zu bytes is longer than the %zu that its receive has room for", bytes,
            request->room);
    memcpy(request->buffer, data, bytes);
    set_status(&request->status, tag, bytes);
    request->is_posted = false;
    request->is_done = true;
}

static MPI_Request handle_of(const struct request *request)
{
    return FIRST_REQUEST + (int)(request - requests);
}

static struct request *request_of(const char *function, MPI_Request handle)
{
    unsigned number = (unsigned)handle - (unsigned)FIRST_REQUEST;
    if (number >= REQUESTS || !requests[number].is_used)
        die("%s: %#x is no request", function, handle);
    return &requests[number];
}

static struct request *new_request(void)
{
    for (int i = 0; i < REQUESTS; i++) {
        if (requests[i].is_used)
            continue;
        requests[i] = (struct request){.is_used = true};
        return &requests[i];
    }
    die("more than %d requests", REQUESTS);
}

static void send(const void *buffer, int count, MPI_Datatype datatype, int to, int tag, MPI_Comm comm)
{
    size_t bytes = (size_t)count * size_of(datatype);
    struct request *first = NULL;
    if (to == MPI_PROC_NULL)
        return;
    if (to)
        die("a message to rank %d; there is rank 0 alone", to);
    for (int i = 0; i < REQUESTS; i++) {
        struct request *request = &requests[i];
        if (request->is_used && request->is_posted &&
            matches(request->comm, request->source, request->tag, comm, tag) &&
            (!first || request->order < first->order))
            first = request;
    }
    if (first) {
        arrive(first, buffer, tag, bytes);
        return;
    }
    struct message *message = malloc(sizeof *message + bytes), **last = &unexpected;
    *message = (struct message){.comm = comm, .tag = tag, .bytes = bytes};
    memcpy(message->data, buffer, bytes);
    while (*last)
        last = &(*last)->next;
    *last = message;
    queue_event(ENQUEUED, 0, tag, comm);
}

static struct message **find(int source, int tag, MPI_Comm comm)
{
    for (struct message **message = &unexpected; *message; message = &(*message)->next)
        if (matches(comm, source, tag, (*message)->comm, (*message)->tag))
            return message;
    return NULL;
}

static struct request *receive(void *buffer, int count, MPI_Datatype datatype, int source, int tag,
                               MPI_Comm comm)
{
    struct request *request = new_request();
    *request = (struct request){.is_used = true,
                                .is_posted = true,
                                .comm = comm,
                                .source = source,
                                .tag = tag,
                                .buffer = buffer,
                                .room = (size_t)count * size_of(datatype),
                                .order = order++};
    if (source == MPI_PROC_NULL) {
        request->is_posted = false;
        request->is_done = true;
        return request;
    }
    struct message **found = find(source, tag, comm);
    if (found) {
        struct message *message = *found;
        *found = message->next;
        queue_event(DEQUEUED, 0, message->tag, comm);
        arrive(request, message->data, message->tag, message->bytes);
        free(message);
    }
    return request;
}

static void complete(const char *function, struct request *request, MPI_Status *status)
{
    if (!request->is_done)
        die("%s: waits for a message that nobody can send", function);
    if (status != MPI_STATUS_IGNORE)
        *status = request->status;
    request->is_used = request->is_persistent;
}

int PMPI_Send(const void *buffer, int count, MPI_Datatype datatype, int to, int tag, MPI_Comm comm)
{
    reached("MPI_Send", comm);
    send(buffer, count, datatype, to, tag, comm);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Send);

int PMPI_Isend(const void *buffer, int count, MPI_Datatype datatype, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    reached("MPI_Isend", comm);
    send(buffer, count, datatype, to, tag, comm);
    struct request *done = new_request();
    done->is_done = true;
    *request = handle_of(done);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Isend);

int PMPI_Recv(void *buffer, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Status *status)
{
    reached("MPI_Recv", comm);
    complete("MPI_Recv", receive(buffer, count, datatype, source, tag, comm), status);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Recv);

int PMPI_Irecv(void *buffer, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    reached("MPI_Irecv", comm);
    *request = handle_of(receive(buffer, count, datatype, source, tag, comm));
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Irecv);

int PMPI_Sendrecv(const void *sent, int sent_count, MPI_Datatype sent_type, int to, int sent_tag,
                  void *received, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                  MPI_Status *status)
{
    reached("MPI_Sendrecv", comm);
    struct request *request = receive(received, count, datatype, source, tag, comm);
    send(sent, sent_count, sent_type, to, sent_tag, comm);
    complete("MPI_Sendrecv", request, status);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Sendrecv);

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
    reached("MPI_Wait", MPI_COMM_NULL);
    if (*request != MPI_REQUEST_NULL)
        complete("MPI_Wait", request_of("MPI_Wait", *request), status);
    if (*request != MPI_REQUEST_NULL && !requests[*request - FIRST_REQUEST].is_persistent)
        *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Wait);

int PMPI_Alltoallv_init(const void *sent, const int counts[], const int displs[], MPI_Datatype sent_type,
                        void *received, const int received_counts[], const int received_displs[],
                        MPI_Datatype datatype, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    reached("MPI_Alltoallv_init", comm);
    (void)sent_type, (void)received_counts, (void)info;
    struct request *persistent = new_request();
    *persistent = (struct request){.is_used = true,
                                   .is_persistent = true,
                                   .sent = sent,
                                   .counts = counts,
                                   .displs = displs,
                                   .displs_to = received_displs,
                                   .buffer = received,
                                   .room = size_of(datatype)};
    *request = handle_of(persistent);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Alltoallv_init);

int PMPI_Start(MPI_Request *request)
{
    reached("MPI_Start", MPI_COMM_NULL);
    struct request *started = request_of("MPI_Start", *request);
    size_t element = started->room;
    memcpy((char *)started->buffer + *started->displs_to * element,
           (const char *)started->sent + *started->displs * element, *started->counts * element);
    started->is_done = true;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Start);

int PMPI_Request_free(MPI_Request *request)
{
    reached("MPI_Request_free", MPI_COMM_NULL);
    request_of("MPI_Request_free", *request)->is_used = false;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Request_free);

int PMPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    reached("MPI_Waitall", MPI_COMM_NULL);
    for (int i = 0; i < count; i++) {
        MPI_Status *status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
        if (requests[i] != MPI_REQUEST_NULL)
            complete("MPI_Waitall", request_of("MPI_Waitall", requests[i]), status);
        requests[i] = MPI_REQUEST_NULL;
    }
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Waitall);

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    reached("MPI_Test", MPI_COMM_NULL);
    *flag = *request == MPI_REQUEST_NULL || request_of("MPI_Test", *request)->is_done;
    if (*flag && *request != MPI_REQUEST_NULL) {
        complete("MPI_Test", request_of("MPI_Test", *request), status);
        *request = MPI_REQUEST_NULL;
    }
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Test);

int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    reached("MPI_Iprobe", comm);
    struct message **found = find(source, tag, comm);
    *flag = found != NULL;
    if (found)
        set_status(status, (*found)->tag, (*found)->bytes);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Iprobe);

int PMPI_Get_count(const MPI_Status *status, MPI_Datatype datatype, int *count)
{
    *count = status->count_lo / size_of(datatype);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_Get_count);
