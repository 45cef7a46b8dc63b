/* What the script makes happen at calls of MPI functions. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "fake.h"

enum what { RAISE, DROP, SET, SHOW };
/* Where an event is raised. */
enum where { HERE, IN_THREAD, IN_SIGNAL };

static struct action {
    char function[64];
    /* At which call; 0 for each. */
    long long call, calls;
    enum what what;
    struct raising raising;
    long long times;
    enum where where;
    int pvar;
} actions[MANY];
static int number_of_actions;

static void raise_declared(struct words *words, struct action *action)
{
    const char *name = word_wanted(words, "is not an event");
    struct raising *raising = &action->raising;
    action->what = RAISE;
    action->times = 1;
    raising->event = event_index(name);
    raising->time = -1;
    if (raising->event < 0)
        wrong(words, "is not an event that was declared before", name);
    for (;;) {
        if (word_is(words, "times")) {
            action->times = word_integer(words, "is not a number of times");
        } else if (word_is(words, "elements")) {
            while (word_is_number(words) && raising->number < MANY)
                raising->elements[raising->number++] = word_integer(words, "is not an element");
        } else if (word_is(words, "level")) {
            raising->level = value_of(words, levels, "is not a level");
        } else if (word_is(words, "time")) {
            raising->time = word_integer(words, "is not a time");
        } else if (word_is(words, "in")) {
            action->where = word_is(words, "thread")   ? IN_THREAD
                            : word_is(words, "signal") ? IN_SIGNAL
                                                       : HERE;
            if (action->where == HERE)
                wrong(words, "is neither thread nor signal", word_next(words));
        } else {
            return;
        }
    }
}

void action_declared(struct words *words)
{
    if (number_of_actions == MANY)
        wrong(words, "is one action too many", "at");
    struct action *action = &actions[number_of_actions++];
    const char *function = word_wanted(words, "is not a function");
    if (strlen(function) >= sizeof action->function)
        wrong(words, "is not a function", function);
    strcpy(action->function, function);
    if (word_is(words, "call"))
        action->call = word_integer(words, "is not a number of a call");
    if (word_is(words, "raise")) {
        raise_declared(words, action);
    } else if (word_is(words, "drop")) {
        const char *name = word_wanted(words, "is not an event");
        action->what = DROP;
        action->raising.event = event_index(name);
        if (action->raising.event < 0)
            wrong(words, "is not an event that was declared before", name);
        action->times = word_integer(words, "is not a number of instances");
    } else if (word_is(words, "set")) {
        const char *name = word_wanted(words, "is not a variable");
        action->what = SET;
        action->pvar = pvar_index(name);
        if (action->pvar < 0)
            wrong(words, "is not a variable that was declared before", name);
        while (word_is_number(words) && action->raising.number < MANY)
            action->raising.elements[action->raising.number++] = word_integer(words, "is not a value");
    } else if (word_is(words, "show")) {
        action->what = SHOW;
    } else {
        wrong(words, "is none of raise, drop, set, show", word_next(words));
    }
}

static const struct raising *raised_by_signal;

static void *raise_in_thread(void *raising)
{
    event_raise(raising);
    return NULL;
}

static void raise_in_signal(int signal)
{
    (void)signal;
    event_raise(raised_by_signal);
}

static void raise_once(const struct raising *raising, enum where where)
{
    pthread_t thread;
    struct sigaction before, handler = {.sa_handler = raise_in_signal};
    switch (where) {
    case HERE:
        event_raise(raising);
        break;
    case IN_THREAD:
        if (pthread_create(&thread, NULL, raise_in_thread, (void *)raising))
            die("no thread could be started");
        pthread_join(thread, NULL);
        break;
    case IN_SIGNAL:
        raised_by_signal = raising;
        sigaction(SIGUSR2, &handler, &before);
        raise(SIGUSR2);
        sigaction(SIGUSR2, &before, NULL);
        break;
    }
}

void actions_at(const char *function, MPI_Comm comm)
{
    for (int i = 0; i < number_of_actions; i++) {
        struct action *action = &actions[i];
        if (strcmp(action->function, function))
            continue;
        action->calls++;
        if (action->call && action->call != action->calls)
            continue;
        switch (action->what) {
        case RAISE: {
            struct raising raising = action->raising;
            raising.comm = comm;
            for (long long time = 0; time < action->times; time++)
                raise_once(&raising, action->where);
            break;
        }
        case DROP:
            event_drop(action->raising.event, action->times);
            break;
        case SET:
            pvar_set(action->pvar, action->raising.elements, action->raising.number);
            break;
        case SHOW:
            pvars_shown();
            break;
        }
    }
}
