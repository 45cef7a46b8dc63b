/* The script: one declaration per line, words separated by blanks; a # starts a comment.
 *
 *   library WORD...                   what MPI_Get_library_version says; otherwise "fakempi"
 *
 *   strangers                         the process in a communicator of MPI_Comm_dup is not one of
 *                                     MPI_COMM_WORLD, as after MPI_Comm_accept
 *
 *   enum NAME [ITEM VALUE...]         an enumeration
 *   cvar NAME DATATYPE [bind OBJECT] [count N] [value N...] [text WORD] [scope SCOPE] [enum NAME]
 *   pvar NAME CLASS DATATYPE [bind OBJECT] [count N] [value N...] [continuous] [readonly] [atomic]
 *        [counted] [shows unexpected|posted] [enum NAME] [writes N] [hidden] [copies N]
 *        a variable; `counted`: the log says how often it was read; `shows`: it is the length of that queue; `writes`: a reading has this many elements,
 *        whatever its handle says; `hidden`, for the last ones: it does not exist before `show`; `copies`: this
 *        many of them, NAME_0 and so on
 *   category NAME [cvars NAME...] [pvars NAME...] [categories INDEX...]
 *        after the members of a kind, `claims N` makes it say that it has this many
 *
 *   fault FUNCTION [of NAME] [call N] segv|bus|ill|fpe|abort|overflow|hang
 *   fault FUNCTION [of NAME] [call N] error ERROR
 *        what happens when a function of MPI_T is called, for something of this name or for anything: at each
 *        call, or at the Nth; `overflow` is a stack overflow
 *
 *   source NAME [unordered] [ticks N] [max N] [step N] [no-timestamp]
 *        a source of events, with this many ticks a second (by default 1000000000) until it starts
 *        again after `max`; `step`: its clock is not a clock, but advances this far at each reading;
 *        `no-timestamp`: it cannot be asked for the time
 *   event NAME SOURCE [bind OBJECT] [elements DATATYPE@DISPLACEMENT...] [highest LEVEL]
 *        [refuses handle] [is enqueued|dequeued] [without-data]
 *        `highest`: callbacks of a higher level are refused; `is`: raised by the queue of unexpected
 *        messages with source and tag; `without-data`: its instances have none, and reading it kills,
 *        as in MPICH
 *   callbacks at-least|at-most        which callback of a registration gets an instance: the one of the
 *        lowest level that is at least that of the instance (MPICH; the default), or the one of
 *        the highest that is at most that (Open MPI)
 *
 *   at FUNCTION [call N] raise EVENT [times N] [elements N...] [level LEVEL] [time N] [in thread|signal]
 *   at FUNCTION [call N] drop EVENT N
 *   at FUNCTION [call N] set PVAR N...
 *   at FUNCTION [call N] show
 *        what happens when the program calls a function: at each call, or at the Nth
 *
 * CLASS, OBJECT and LEVEL are the standard's names without MPI_T_PVAR_CLASS_, MPI_T_BIND_ and
 * MPI_T_CB_REQUIRE_; a DATATYPE and an ERROR have their whole names. In the NAME of a variable, an
 * enumeration or a category \xHH stands for a byte. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

char library_version[MPI_MAX_LIBRARY_VERSION_STRING] = "fakempi";

static void library_declared(struct words *words)
{
    library_version[0] = '\0';
    for (const char *word; (word = word_next(words));) {
        if (strlen(library_version) + strlen(word) + 2 > sizeof library_version)
            wrong(words, "is more than there is room for", word);
        if (library_version[0])
            strcat(library_version, " ");
        strcat(library_version, word);
    }
}

static const struct {
    const char *word;
    void (*declared)(struct words *words);
} declarations[] = {
    {"library", library_declared}, {"pvar", pvar_declared},           {"source", source_declared},
    {"event", event_declared},     {"callbacks", callbacks_declared}, {"at", action_declared},
    {"strangers", strangers_declared}, {"cvar", cvar_declared},       {"enum", enumeration_declared},
    {"category", category_declared}, {"fault", fault_declared},
};

void die(const char *format, ...)
{
    va_list arguments;
    fputs("fakempi: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _exit(70);
}

void note(const char *format, ...)
{
    const char *path = getenv("FAKEMPI_LOG");
    char line[512];
    va_list arguments;
    if (!path)
        return;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0 || write(file, line, length) != length)
        die("%s: the log cannot be written", path);
    close(file);
}

void wrong(const struct words *words, const char *what, const char *word)
{
    die("%s:%d: %s: %s; see script.c", words->file, words->line, word ? word : "end of line", what);
}

const char *word_next(struct words *words)
{
    return words->next < words->number ? words->word[words->next++] : NULL;
}

const char *word_wanted(struct words *words, const char *what)
{
    const char *word = word_next(words);
    if (!word)
        wrong(words, what, NULL);
    return word;
}

bool word_is(struct words *words, const char *word)
{
    if (words->next >= words->number || strcmp(words->word[words->next], word))
        return false;
    words->next++;
    return true;
}

char *unescaped(const char *word)
{
    char *name = malloc(strlen(word) + 1), *to = name;
    for (; *word; to++) {
        unsigned byte;
        if (sscanf(word, "\\x%2x", &byte) == 1) {
            *to = byte;
            word += 4;
        } else {
            *to = *word++;
        }
    }
    *to = '\0';
    return name;
}

static bool number_of(const char *word, long long *value)
{
    char *end;
    *value = strtoll(word, &end, 0);
    return end != word && !*end;
}

bool word_is_number(struct words *words)
{
    long long value;
    return words->next < words->number && number_of(words->word[words->next], &value);
}

long long word_integer(struct words *words, const char *what)
{
    const char *word = word_wanted(words, what);
    long long value;
    if (!number_of(word, &value))
        wrong(words, what, word);
    return value;
}

static void line_read(struct words *words, char *line)
{
    words->number = words->next = 0;
    char *comment = strchr(line, '#');
    if (comment)
        *comment = '\0';
    for (char *rest = NULL, *word = strtok_r(line, " \t\n", &rest); word;
         word = strtok_r(NULL, " \t\n", &rest)) {
        if (words->number == MANY)
            wrong(words, "is a word too many", word);
        words->word[words->number++] = word;
    }
    const char *word = word_next(words);
    if (!word)
        return;
    for (size_t i = 0; i < sizeof declarations / sizeof *declarations; i++) {
        if (strcmp(word, declarations[i].word))
            continue;
        declarations[i].declared(words);
        if (words->next < words->number)
            wrong(words, "is not understood here", words->word[words->next]);
        return;
    }
    wrong(words, "is not a declaration", word);
}

void script_read(void)
{
    static bool is_read;
    struct words words = {.file = getenv("FAKEMPI")};
    char *line = NULL;
    size_t room = 0;
    if (is_read || !words.file)
        return;
    is_read = true;
    FILE *file = fopen(words.file, "r");
    if (!file)
        die("%s: cannot be read; FAKEMPI names the script", words.file);
    while (getline(&line, &room, file) >= 0) {
        words.line++;
        line_read(&words, line);
    }
    free(line);
    fclose(file);
}
