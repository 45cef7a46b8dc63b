/* Performance variables: those of the script. Every handle reads the variable itself, as in MPICH. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static struct pvar {
    char *name;
    int class, bind, count;
    /* Elements that a reading has. */
    int written;
    MPI_T_enum enumeration;
    MPI_Datatype datatype;
    bool continuous, readonly, atomic;
    /* Whether the log says how often it was read, and that. */
    bool is_counted;
    int readings;
    /* The queue whose length it is. */
    int (*shows)(void);
    long long values[MANY];
} *pvars;
static int number_of_pvars;
/* The first of those that are hidden, which are the last; -1 for none. */
static int first_hidden = -1;

/* How many there are, according to the library. */
static int exported(void)
{
    return first_hidden >= 0 ? first_hidden : number_of_pvars;
}

void pvars_shown(void)
{
    first_hidden = -1;
}

static const char *name_of_pvar(int index)
{
    return index >= 0 && index < number_of_pvars ? pvars[index].name : "?";
}

struct MPIR_T_pvar_handle_s {
    bool is_alive, is_running;
    struct session *session;
    int pvar;
    /* The address of the object's handle: like MPICH, which reads it later. */
    const MPI_Comm *object;
};
struct session {
    bool is_alive;
    int handles;
};

static struct MPIR_T_pvar_handle_s all_handles;
struct MPIR_T_pvar_handle_s *const MPI_T_PVAR_ALL_HANDLES = &all_handles;

void pvar_declared(struct words *words)
{
    pvars = realloc(pvars, (number_of_pvars + 1) * sizeof *pvars);
    struct pvar *pvar = &pvars[number_of_pvars];
    *pvar = (struct pvar){.bind = MPI_T_BIND_NO_OBJECT, .count = 1};
    long long copies = 1;
    bool hidden = false;
    char *name = unescaped(word_wanted(words, "has no name"));
    pvar->name = name;
    pvar->enumeration = MPI_T_ENUM_NULL;
    pvar->class = value_of(words, classes, "is not a class");
    pvar->datatype = value_of(words, datatypes, "is not a datatype");
    for (;;) {
        if (word_is(words, "bind")) {
            pvar->bind = value_of(words, bindings, "is not a kind of object");
        } else if (word_is(words, "count")) {
            pvar->count = word_integer(words, "is not a number of elements");
            if (pvar->count < 0 || pvar->count > MANY)
                wrong(words, "is not a number of elements that there is room for", NULL);
        } else if (word_is(words, "value")) {
            for (int i = 0; i < MANY && word_is_number(words); i++)
                pvar->values[i] = word_integer(words, "is not a value");
        } else if (word_is(words, "continuous")) {
            pvar->continuous = true;
        } else if (word_is(words, "readonly")) {
            pvar->readonly = true;
        } else if (word_is(words, "atomic")) {
            pvar->atomic = true;
        } else if (word_is(words, "counted")) {
            pvar->is_counted = true;
        } else if (word_is(words, "enum")) {
            pvar->enumeration = enumeration_wanted(words);
        } else if (word_is(words, "writes")) {
            pvar->written = word_integer(words, "is not a number of elements");
        } else if (word_is(words, "hidden")) {
            hidden = true;
        } else if (word_is(words, "copies")) {
            copies = word_integer(words, "is not a number of variables");
        } else if (word_is(words, "shows")) {
            pvar->shows = word_is(words, "unexpected") ? unexpected_messages
                          : word_is(words, "posted")   ? posted_receives
                                                       : NULL;
            if (!pvar->shows)
                wrong(words, "is neither unexpected nor posted", word_next(words));
        } else {
            break;
        }
    }
    if (hidden && first_hidden < 0)
        first_hidden = number_of_pvars;
    if (!hidden && first_hidden >= 0)
        wrong(words, "comes after one that is hidden", name);
    if (copies > 1) {
        pvars = realloc(pvars, (number_of_pvars + copies) * sizeof *pvars);
        for (long long copy = copies - 1; copy >= 0; copy--) {
            pvars[number_of_pvars + copy] = pvars[number_of_pvars];
            if (asprintf(&pvars[number_of_pvars + copy].name, "%s_%lld", name, copy) < 0)
                die("no memory");
        }
    }
    number_of_pvars += copies;
}

int pvar_index(const char *name)
{
    for (int i = 0; i < number_of_pvars; i++)
        if (!strcmp(pvars[i].name, name))
            return i;
    return -1;
}

void pvar_set(int index, const long long *values, int number)
{
    for (int i = 0; i < number; i++)
        pvars[index].values[i] = values[i];
}

int PMPI_T_pvar_get_num(int *number)
{
    if (!mpit_is_initialized())
        return MPI_T_ERR_NOT_INITIALIZED;
    *number = exported();
    return fault_at("MPI_T_pvar_get_num", "");
}
BOTH_NAMES(MPI_T_pvar_get_num);

int PMPI_T_pvar_get_info(int index, char *name, int *name_length, int *verbosity, int *class,
                         MPI_Datatype *datatype, MPI_T_enum *enumeration, char *description,
                         int *description_length, int *bind, int *readonly, int *continuous, int *atomic)
{
    int fault = fault_at("MPI_T_pvar_get_info", name_of_pvar(index));
    if (fault)
        return fault;
    if (index < 0 || index >= exported()) {
        note("misuse: performance variable %d of %d", index, exported());
        return MPI_T_ERR_INVALID_INDEX;
    }
    const struct pvar *pvar = &pvars[index];
    give_text(pvar->name, name, name_length);
    give_text("a variable of the script", description, description_length);
    give(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    give(class, pvar->class);
    give(datatype, pvar->datatype);
    if (enumeration)
        *enumeration = pvar->enumeration;
    give(bind, pvar->bind);
    give(readonly, pvar->readonly);
    give(continuous, pvar->continuous);
    give(atomic, pvar->atomic);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_pvar_get_info);

int PMPI_T_pvar_get_index(const char *name, int class, int *index)
{
    *index = pvar_index(name);
    return *index >= 0 && pvars[*index].class == class ? MPI_SUCCESS : MPI_T_ERR_INVALID_NAME;
}
BOTH_NAMES(MPI_T_pvar_get_index);

int PMPI_T_pvar_session_create(MPI_T_pvar_session *session)
{
    int fault = fault_at("MPI_T_pvar_session_create", "");
    if (fault)
        return fault;
    struct session *made = calloc(1, sizeof *made);
    made->is_alive = true;
    *session = (MPI_T_pvar_session)made;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_pvar_session_create);

int PMPI_T_pvar_session_free(MPI_T_pvar_session *freed)
{
    int fault = fault_at("MPI_T_pvar_session_free", "");
    if (fault)
        return fault;
    struct session *session = (struct session *)*freed;
    if (!session || !session->is_alive || session->handles) {
        note("misuse: a session is freed with %d handles", session ? session->handles : -1);
        return MPI_T_ERR_INVALID_SESSION;
    }
    for (int i = 0; i < number_of_pvars; i++)
        if (pvars[i].is_counted)
            note("read %s %d", pvars[i].name, pvars[i].readings);
    /* Never freed, so that a use after free is detected. */
    session->is_alive = false;
    *freed = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_pvar_session_free);

int PMPI_T_pvar_handle_alloc(MPI_T_pvar_session in, int index, void *object,
                             MPI_T_pvar_handle *handle, int *count)
{
    int fault = fault_at("MPI_T_pvar_handle_alloc", name_of_pvar(index));
    if (fault)
        return fault;
    struct session *session = (struct session *)in;
    if (!session || !session->is_alive || index < 0 || index >= exported()) {
        note("misuse: a handle on performance variable %d", index);
        return MPI_T_ERR_INVALID_INDEX;
    }
    const struct pvar *pvar = &pvars[index];
    if (pvar->bind != MPI_T_BIND_NO_OBJECT && !object) {
        note("misuse: a handle on %s without an object", pvar->name);
        return MPI_T_ERR_INVALID_HANDLE;
    }
    if (pvar->bind == MPI_T_BIND_MPI_COMM && !is_alive(*(const MPI_Comm *)object)) {
        note("misuse: a handle on %s for no communicator", pvar->name);
        return MPI_T_ERR_INVALID_HANDLE;
    }
    struct MPIR_T_pvar_handle_s *made = calloc(1, sizeof *made);
    *made = (struct MPIR_T_pvar_handle_s){.is_alive = true,
                                          .is_running = pvar->continuous,
                                          .session = session,
                                          .pvar = index,
                                          .object = object};
    session->handles++;
    *handle = made;
    give(count, pvar->count);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_pvar_handle_alloc);

static bool is_of(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const char *what)
{
    bool is_right = handle && handle != MPI_T_PVAR_ALL_HANDLES && handle->is_alive &&
                    handle->session == (struct session *)session;
    if (!is_right)
        note("misuse: a handle of a performance variable that is not alive: %s", what);
    return is_right;
}

int PMPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle)
{
    if (!is_of(session, *handle, "free"))
        return MPI_T_ERR_INVALID_HANDLE;
    int fault = fault_at("MPI_T_pvar_handle_free", name_of_pvar((*handle)->pvar));
    if (fault)
        return fault;
    (*handle)->is_alive = false;
    (*handle)->session->handles--;
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_pvar_handle_free);

static int run(MPI_T_pvar_session session, MPI_T_pvar_handle handle, bool running, const char *what)
{
    if (!is_of(session, handle, what))
        return MPI_T_ERR_INVALID_HANDLE;
    int fault = fault_at(what, name_of_pvar(handle->pvar));
    if (fault)
        return fault;
    if (pvars[handle->pvar].continuous)
        return MPI_T_ERR_PVAR_NO_STARTSTOP;
    handle->is_running = running;
    return MPI_SUCCESS;
}

int PMPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return run(session, handle, true, "MPI_T_pvar_start");
}
BOTH_NAMES(MPI_T_pvar_start);

int PMPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return run(session, handle, false, "MPI_T_pvar_stop");
}
BOTH_NAMES(MPI_T_pvar_stop);

int PMPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buffer)
{
    if (!is_of(session, handle, "read"))
        return MPI_T_ERR_INVALID_HANDLE;
    struct pvar *pvar = &pvars[handle->pvar];
    pvar->readings++;
    int fault = fault_at("MPI_T_pvar_read", pvar->name);
    if (fault)
        return fault;
    if (pvar->bind == MPI_T_BIND_MPI_COMM && !is_alive(*handle->object)) {
        note("misuse: %s of a communicator that is gone is read", pvar->name);
        return MPI_T_ERR_INVALID_HANDLE;
    }
    int written = pvar->written ? pvar->written : pvar->count;
    for (int i = 0; i < written; i++) {
        long long value = pvar->shows ? (i ? 0 : pvar->shows()) : pvar->values[i % MANY];
        write_value(pvar->datatype, value, (char *)buffer + i * size_of(pvar->datatype));
    }
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_pvar_read);

static int refused(const char *what)
{
    note("misuse: a performance variable: %s", what);
    return MPI_T_ERR_PVAR_NO_WRITE;
}

int PMPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buffer)
{
    (void)session, (void)handle, (void)buffer;
    return refused("write");
}
BOTH_NAMES(MPI_T_pvar_write);

int PMPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    (void)session, (void)handle;
    return refused("reset");
}
BOTH_NAMES(MPI_T_pvar_reset);

int PMPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buffer)
{
    (void)session, (void)handle, (void)buffer;
    return refused("readreset");
}
BOTH_NAMES(MPI_T_pvar_readreset);
