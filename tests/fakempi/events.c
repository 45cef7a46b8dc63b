/* Sources and events of the script, registrations and callbacks (MPI 4.1, 15.3.8). */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake.h"

enum { SOURCES = 16, EVENTS = 64, ELEMENTS = 16, DATA = 256, LEVELS = 4 };

static struct source {
    char name[64];
    bool unordered, no_timestamp;
    long long ticks, max, step, shown;
} sources[SOURCES];
static int number_of_sources;

static struct event {
    char name[128];
    int source, bind, highest;
    bool refuses_handle, without_data, is_of_queue;
    enum queue_event of_queue;
    int number_of_elements;
    MPI_Datatype datatypes[ELEMENTS];
    MPI_Aint displacements[ELEMENTS];
} events[EVENTS];
static int number_of_events;

struct MPIR_T_event_instance_s {
    const struct event *event;
    MPI_Count time;
    const char *data;
};

struct MPIR_T_event_registration_s {
    struct MPIR_T_event_registration_s *next;
    bool is_alive;
    int event;
    /* The address of the object's handle: like MPICH, which reads it later. */
    const MPI_Comm *object;
    struct {
        MPI_T_event_cb_function *function;
        void *user_data;
    } callbacks[LEVELS];
    MPI_T_event_dropped_cb_function *dropped_handler;
    long long dropped;
};
/* Never freed, so that a use after free is detected. */
static struct MPIR_T_event_registration_s *registrations;

static bool callbacks_at_most;

static bool is_level(int level)
{
    return level >= 0 && level < LEVELS;
}

void source_declared(struct words *words)
{
    if (number_of_sources == SOURCES)
        wrong(words, "is one source too many", "source");
    struct source *source = &sources[number_of_sources];
    const char *name = word_wanted(words, "has no name");
    *source = (struct source){.ticks = 1000000000, .max = __LONG_LONG_MAX__};
    if (strlen(name) >= sizeof source->name)
        wrong(words, "is too long a name", name);
    strcpy(source->name, name);
    for (;;) {
        if (word_is(words, "unordered"))
            source->unordered = true;
        else if (word_is(words, "no-timestamp"))
            source->no_timestamp = true;
        else if (word_is(words, "ticks"))
            source->ticks = word_integer(words, "is not a number of ticks");
        else if (word_is(words, "max"))
            source->max = word_integer(words, "is not a number of ticks");
        else if (word_is(words, "step"))
            source->step = word_integer(words, "is not a number of ticks");
        else
            break;
    }
    number_of_sources++;
}

static void elements_declared(struct words *words, struct event *event)
{
    while (words->next < words->number && strchr(words->word[words->next], '@')) {
        char *word = words->word[words->next++], *at = strchr(word, '@');
        char *both[] = {word, at + 1};
        struct words parts = {.number = 2, .file = words->file, .line = words->line};
        memcpy(parts.word, both, sizeof both);
        *at = '\0';
        int i = event->number_of_elements++;
        if (i == ELEMENTS)
            wrong(words, "is an element too many", word);
        event->datatypes[i] = value_of(&parts, datatypes, "is not a datatype");
        event->displacements[i] = word_integer(&parts, "is not a displacement");
        if (event->displacements[i] < 0 || event->displacements[i] > DATA - 8)
            wrong(words, "is a displacement that there is no room for", both[1]);
    }
}

void event_declared(struct words *words)
{
    if (number_of_events == EVENTS)
        wrong(words, "is one event too many", "event");
    struct event *event = &events[number_of_events];
    const char *name = word_wanted(words, "has no name");
    *event = (struct event){.bind = MPI_T_BIND_NO_OBJECT, .highest = LEVELS - 1};
    if (strlen(name) >= sizeof event->name)
        wrong(words, "is too long a name", name);
    strcpy(event->name, name);
    const char *source = word_wanted(words, "has no source");
    while (event->source < number_of_sources && strcmp(sources[event->source].name, source))
        event->source++;
    if (event->source == number_of_sources)
        wrong(words, "is not a source that was declared before", source);
    for (;;) {
        if (word_is(words, "bind")) {
            event->bind = value_of(words, bindings, "is not a kind of object");
        } else if (word_is(words, "elements")) {
            elements_declared(words, event);
        } else if (word_is(words, "highest")) {
            event->highest = value_of(words, levels, "is not a level");
        } else if (word_is(words, "refuses")) {
            if (!word_is(words, "handle"))
                wrong(words, "is not handle", word_next(words));
            event->refuses_handle = true;
        } else if (word_is(words, "without-data")) {
            event->without_data = true;
        } else if (word_is(words, "is")) {
            event->is_of_queue = true;
            if (word_is(words, "enqueued"))
                event->of_queue = ENQUEUED;
            else if (word_is(words, "dequeued"))
                event->of_queue = DEQUEUED;
            else
                wrong(words, "is neither enqueued nor dequeued", word_next(words));
        } else {
            break;
        }
    }
    number_of_events++;
}

void callbacks_declared(struct words *words)
{
    callbacks_at_most = word_is(words, "at-most");
    if (!callbacks_at_most && !word_is(words, "at-least"))
        wrong(words, "is neither at-least nor at-most", word_next(words));
}

int event_index(const char *name)
{
    for (int i = 0; i < number_of_events; i++)
        if (!strcmp(events[i].name, name))
            return i;
    return -1;
}

static long long time_of(struct source *source)
{
    struct timespec now;
    if (source->step)
        return source->shown += source->step;
    clock_gettime(CLOCK_MONOTONIC, &now);
    __int128 ticks = (__int128)now.tv_sec * source->ticks;
    ticks += (__int128)now.tv_nsec * source->ticks / 1000000000;
    return source->max == __LONG_LONG_MAX__ ? ticks : ticks % (source->max + 1);
}

/* The level whose callback gets an instance; -1 for none. */
static int chosen(const struct MPIR_T_event_registration_s *registration, int level)
{
    int step = callbacks_at_most ? -1 : 1;
    for (; is_level(level); level += step)
        if (registration->callbacks[level].function)
            return level;
    return -1;
}

static void deliver(struct MPIR_T_event_registration_s *registration, int level,
                    struct MPIR_T_event_instance_s *instance)
{
    int at = chosen(registration, level);
    if (at < 0) {
        registration->dropped++;
        return;
    }
    void *user_data = registration->callbacks[at].user_data;
    if (registration->dropped && registration->dropped_handler) {
        long long dropped = registration->dropped;
        registration->dropped = 0;
        registration->dropped_handler(dropped, registration, instance->event->source, level, user_data);
    }
    registration->callbacks[at].function(instance, registration, level, user_data);
}

void event_raise(const struct raising *raising)
{
    const struct event *event = &events[raising->event];
    char data[DATA] = {0};
    for (int i = 0; i < event->number_of_elements && i < raising->number; i++)
        write_value(event->datatypes[i], raising->elements[i], data + event->displacements[i]);
    struct MPIR_T_event_instance_s instance = {
        .event = event,
        .time = raising->time >= 0 ? raising->time : time_of(&sources[event->source]),
        /* What MPICH returns: the address of a member of a null pointer. */
        .data = event->without_data ? (const char *)64 : data,
    };
    for (struct MPIR_T_event_registration_s *each = registrations; each; each = each->next) {
        if (!each->is_alive || each->event != raising->event)
            continue;
        if (event->bind == MPI_T_BIND_MPI_COMM && *each->object != raising->comm)
            continue;
        deliver(each, raising->level, &instance);
    }
}

void event_drop(int event, long long number)
{
    for (struct MPIR_T_event_registration_s *each = registrations; each; each = each->next)
        if (each->is_alive && each->event == event)
            each->dropped += number;
}

void queue_event(enum queue_event what, int source, int tag, MPI_Comm comm)
{
    for (int i = 0; i < number_of_events; i++) {
        if (!events[i].is_of_queue || events[i].of_queue != what)
            continue;
        struct raising raising = {.event = i,
                                  .elements = {source, tag},
                                  .number = 2,
                                  .level = MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                                  .time = -1,
                                  .comm = comm};
        event_raise(&raising);
    }
}

int PMPI_T_source_get_num(int *number)
{
    int fault = fault_at("MPI_T_source_get_num", "");
    if (fault)
        return fault;
    *number = number_of_sources;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_source_get_num);

static bool is_source(int index)
{
    bool is_right = index >= 0 && index < number_of_sources;
    if (!is_right)
        note("misuse: source %d of %d", index, number_of_sources);
    return is_right;
}

int PMPI_T_source_get_info(int index, char *name, int *name_length, char *description,
                           int *description_length, MPI_T_source_order *ordering, MPI_Count *ticks,
                           MPI_Count *max_ticks, MPI_Info *info)
{
    int fault = fault_at("MPI_T_source_get_info", "");
    if (fault)
        return fault;
    /* Like MPICH, although the standard lets a caller leave out what it does not want. */
    if (!name || !name_length || !description || !description_length || !ordering || !ticks || !max_ticks)
        return MPI_T_ERR_INVALID;
    if (!is_source(index))
        return MPI_T_ERR_INVALID_INDEX;
    const struct source *source = &sources[index];
    give_text(source->name, name, name_length);
    give_text("a source of the script", description, description_length);
    *ordering = source->unordered ? MPI_T_SOURCE_UNORDERED : MPI_T_SOURCE_ORDERED;
    *ticks = source->ticks;
    *max_ticks = source->max;
    if (info)
        *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_source_get_info);

int PMPI_T_source_get_timestamp(int index, MPI_Count *timestamp)
{
    int fault = fault_at("MPI_T_source_get_timestamp", "");
    if (fault)
        return fault;
    if (!is_source(index))
        return MPI_T_ERR_INVALID_INDEX;
    if (sources[index].no_timestamp)
        return MPI_T_ERR_NOT_SUPPORTED;
    *timestamp = time_of(&sources[index]);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_source_get_timestamp);

int PMPI_T_event_get_num(int *number)
{
    int fault = fault_at("MPI_T_event_get_num", "");
    if (fault)
        return fault;
    *number = number_of_events;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_event_get_num);

static bool is_event(int index)
{
    bool is_right = index >= 0 && index < number_of_events;
    if (!is_right)
        note("misuse: event %d of %d", index, number_of_events);
    return is_right;
}

int PMPI_T_event_get_info(int index, char *name, int *name_length, int *verbosity,
                          MPI_Datatype types[], MPI_Aint displacements[], int *number,
                          MPI_T_enum *enumeration, MPI_Info *info, char *description,
                          int *description_length, int *bind)
{
    int fault = fault_at("MPI_T_event_get_info", "");
    if (fault)
        return fault;
    /* Like MPICH, although the standard lets a caller leave out what it does not want. */
    if (!name_length || !verbosity || !enumeration || !description_length || !bind)
        return MPI_T_ERR_INVALID;
    if (!is_event(index))
        return MPI_T_ERR_INVALID_INDEX;
    const struct event *event = &events[index];
    give_text(event->name, name, name_length);
    give_text("an event of the script", description, description_length);
    *verbosity = MPI_T_VERBOSITY_USER_BASIC;
    *bind = event->bind;
    if (number) {
        for (int i = 0; i < *number && i < event->number_of_elements; i++) {
            if (types)
                types[i] = event->datatypes[i];
            if (displacements)
                displacements[i] = event->displacements[i];
        }
        *number = event->number_of_elements;
    }
    *enumeration = MPI_T_ENUM_NULL;
    if (info)
        *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_event_get_info);

int PMPI_T_event_get_index(const char *name, int *index)
{
    *index = event_index(name);
    return *index >= 0 ? MPI_SUCCESS : MPI_T_ERR_INVALID_NAME;
}
BOTH_NAMES(MPI_T_event_get_index);

int PMPI_T_event_handle_alloc(int index, void *object, MPI_Info info,
                              MPI_T_event_registration *registration)
{
    int fault = fault_at("MPI_T_event_handle_alloc", "");
    if (fault)
        return fault;
    if (!is_event(index))
        return MPI_T_ERR_INVALID_INDEX;
    const struct event *event = &events[index];
    if (info != MPI_INFO_NULL)
        note("misuse: an info that is none for %s", event->name);
    if (event->refuses_handle)
        return MPI_T_ERR_OUT_OF_HANDLES;
    if (event->bind == MPI_T_BIND_MPI_COMM && (!object || !is_alive(*(const MPI_Comm *)object))) {
        note("misuse: a registration of %s for no communicator", event->name);
        return MPI_T_ERR_INVALID_HANDLE;
    }
    struct MPIR_T_event_registration_s *made = calloc(1, sizeof *made);
    *made = (struct MPIR_T_event_registration_s){
        .next = registrations, .is_alive = true, .event = index, .object = object};
    registrations = *registration = made;
    if (event->bind == MPI_T_BIND_MPI_COMM)
        note("registration %s %#x", event->name, *made->object);
    else
        note("registration %s", event->name);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_event_handle_alloc);

static bool is_registration(MPI_T_event_registration registration, const char *what)
{
    bool is_right = registration && registration->is_alive;
    if (!is_right)
        note("misuse: a registration that is not alive: %s", what);
    return is_right;
}

int PMPI_T_event_handle_free(MPI_T_event_registration registration, void *user_data,
                             MPI_T_event_free_cb_function *function)
{
    int fault = fault_at("MPI_T_event_handle_free", "");
    if (fault)
        return fault;
    if (!is_registration(registration, "free"))
        return MPI_T_ERR_INVALID_HANDLE;
    if (registration->object && !is_alive(*registration->object))
        note("misuse: a registration outlives its communicator");
    registration->is_alive = false;
    note("freed %s", events[registration->event].name);
    if (function)
        function(registration, MPI_T_CB_REQUIRE_NONE, user_data);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_event_handle_free);

int PMPI_T_event_register_callback(MPI_T_event_registration registration, MPI_T_cb_safety level,
                                   MPI_Info info, void *user_data, MPI_T_event_cb_function *function)
{
    int fault = fault_at("MPI_T_event_register_callback", "");
    if (fault)
        return fault;
    if (!is_registration(registration, "callback"))
        return MPI_T_ERR_INVALID_HANDLE;
    const struct event *event = &events[registration->event];
    /* MPICH would write beyond its table. */
    if (!is_level(level) || info != MPI_INFO_NULL) {
        note("misuse: a callback of level %d for %s", level, event->name);
        return MPI_T_ERR_INVALID;
    }
    if ((int)level > event->highest)
        return MPI_T_ERR_NOT_SUPPORTED;
    registration->callbacks[level].function = function;
    registration->callbacks[level].user_data = user_data;
    note("callback %s %s", event->name, name_of(levels, level));
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_event_register_callback);

int PMPI_T_event_set_dropped_handler(MPI_T_event_registration registration,
                                     MPI_T_event_dropped_cb_function *function)
{
    if (!is_registration(registration, "dropped handler"))
        return MPI_T_ERR_INVALID_HANDLE;
    registration->dropped_handler = function;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_event_set_dropped_handler);

int PMPI_T_event_read(MPI_T_event_instance instance, int index, void *buffer)
{
    const struct event *event = instance->event;
    if (index < 0 || index >= event->number_of_elements) {
        note("misuse: element %d of %d of %s", index, event->number_of_elements, event->name);
        return MPI_T_ERR_INVALID_INDEX;
    }
    memcpy(buffer, instance->data + event->displacements[index], size_of(event->datatypes[index]));
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_event_read);

int PMPI_T_event_copy(MPI_T_event_instance instance, void *buffer)
{
    const struct event *event = instance->event;
    for (int i = 0; i < event->number_of_elements; i++) {
        MPI_Aint at = event->displacements[i];
        memcpy((char *)buffer + at, instance->data + at, size_of(event->datatypes[i]));
    }
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_event_copy);

int PMPI_T_event_get_timestamp(MPI_T_event_instance instance, MPI_Count *timestamp)
{
    *timestamp = instance->time;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_event_get_timestamp);

int PMPI_T_event_get_source(MPI_T_event_instance instance, int *index)
{
    *index = instance->event->source;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_event_get_source);

int PMPI_T_category_get_num_events(int index, int *number)
{
    note("misuse: events of category %d of none", index);
    *number = 0;
    return MPI_T_ERR_INVALID_INDEX;
}
BOTH_NAMES(MPI_T_category_get_num_events);
