/* A small MPI library for tests: one process, rank 0 of 1, with the binary interface of MPICH.
 *
 * A script, the file that FAKEMPI names, says what it exports through MPI_T, and what happens when; script.c
 * describes it. Messages to itself are real: with a queue of unexpected messages and one of posted receives.
 *
 * It looks at how it is used: what a tool must not do (a handle that is freed twice, an index that there
 * is not) is written as a line "misuse: ..." to the file that FAKEMPI_LOG names, beside a line for each
 * handle and callback of an event. */
#ifndef FAKE_H
#define FAKE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* A function under both of its names, as MPI libraries have them. */
#define BOTH_NAMES(name) \
    extern __typeof__(P##name) name __attribute__((weak, alias("P" #name)))

enum { MANY = 64 };

/* script.c */

/* The words of a line of the script. The functions that take them out report with `wrong` what they do not understand. */
struct words {
    int number, next;
    char *word[MANY];
    const char *file;
    int line;
};

/* Reads the script, the first time; any function of the library may be the first. */
void script_read(void);
/* The next word; none at the end. */
const char *word_next(struct words *words);
/* The next word, which must exist: `what` describes it. */
const char *word_wanted(struct words *words, const char *what);
/* The next word when it is `word`, which is then taken. */
bool word_is(struct words *words, const char *word);
long long word_integer(struct words *words, const char *what);
/* Whether the next word is a number. */
bool word_is_number(struct words *words);
/* Ends the program: the line is not understood. */
void wrong(const struct words *words, const char *what, const char *word) __attribute__((noreturn));
/* Ends the program. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* A line of the log. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A name in newly allocated memory, in which \xHH stands for a byte. */
char *unescaped(const char *word);

/* names.c: the standard's names of constants, without the prefix that all of a kind have. */

struct name {
    const char *name;
    int value;
};
extern const struct name classes[], datatypes[], bindings[], levels[];
int value_of(struct words *words, const struct name *names, const char *what);
const char *name_of(const struct name *names, int value);
/* Bytes of a predefined datatype. */
int size_of(MPI_Datatype datatype);
/* Writes a value of a datatype that a variable or element can have. */
void write_value(MPI_Datatype datatype, long long value, void *to);
/* Returns a text to a caller as MPI_T does (MPI 4.1, 15.3.3). */
void give_text(const char *text, char *to, int *length);
/* Returns a number to a caller, who may not want it. */
void give(int *to, int value);

/* world.c */

bool is_alive(MPI_Comm comm);
/* `strangers`. */
void strangers_declared(struct words *words);
/* A function of MPI is called, on a communicator or on none (MPI_COMM_NULL): what the script says for it
 * happens. */
void reached(const char *function, MPI_Comm comm);

/* actions.c */

void action_declared(struct words *words);
void actions_at(const char *function, MPI_Comm comm);

/* faults.c */

void fault_declared(struct words *words);
/* A function of MPI_T is called, for what has this name: what the script says for it happens. The error that
 * it is to give, or MPI_SUCCESS. */
int fault_at(const char *function, const char *name);

/* cvars.c */

void cvar_declared(struct words *words);
void enumeration_declared(struct words *words);
MPI_T_enum enumeration_wanted(struct words *words);
/* Index of a variable; -1 when there is none of that name. */
int cvar_index(const char *name);

/* messages.c */

int unexpected_messages(void);
int posted_receives(void);

/* pvars.c */

void pvar_declared(struct words *words);
/* Index of a variable; -1 when there is none of that name. */
int pvar_index(const char *name);
void pvar_set(int index, const long long *values, int number);
/* Hidden variables exist from now on. */
void pvars_shown(void);

/* events.c */

void source_declared(struct words *words);
void event_declared(struct words *words);
/* `callbacks at-least` or `callbacks at-most`. */
void callbacks_declared(struct words *words);
int event_index(const char *name);

struct raising {
    int event;
    long long elements[MANY];
    int number;
    int level;
    /* Of the instance, on the source's clock; -1 for now. */
    long long time;
    /* Of the call: what is bound to another communicator hears nothing. */
    MPI_Comm comm;
};
void event_raise(const struct raising *raising);
/* This many instances get lost before the next one. */
void event_drop(int event, long long number);

enum queue_event { ENQUEUED, DEQUEUED };
/* A message entered the queue of unexpected messages, or left it. */
void queue_event(enum queue_event what, int source, int tag, MPI_Comm comm);

/* mpit.c */

bool mpit_is_initialized(void);
void category_declared(struct words *words);

#endif
