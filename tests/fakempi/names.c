/* Names and values of constants, and values of the datatypes of MPI_T. */
#include <stdint.h>
#include <string.h>

#include "fake.h"

const struct name classes[] = {
    {"STATE", MPI_T_PVAR_CLASS_STATE},
    {"LEVEL", MPI_T_PVAR_CLASS_LEVEL},
    {"SIZE", MPI_T_PVAR_CLASS_SIZE},
    {"PERCENTAGE", MPI_T_PVAR_CLASS_PERCENTAGE},
    {"HIGHWATERMARK", MPI_T_PVAR_CLASS_HIGHWATERMARK},
    {"LOWWATERMARK", MPI_T_PVAR_CLASS_LOWWATERMARK},
    {"COUNTER", MPI_T_PVAR_CLASS_COUNTER},
    {"AGGREGATE", MPI_T_PVAR_CLASS_AGGREGATE},
    {"TIMER", MPI_T_PVAR_CLASS_TIMER},
    {"GENERIC", MPI_T_PVAR_CLASS_GENERIC},
    {"UNHEARD_OF", 4711},
    {0},
};
const struct name datatypes[] = {
    {"MPI_INT", MPI_INT},           {"MPI_UNSIGNED", MPI_UNSIGNED},
    {"MPI_LONG", MPI_LONG},         {"MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG},
    {"MPI_INT32_T", MPI_INT32_T},   {"MPI_UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG},
    {"MPI_UINT32_T", MPI_UINT32_T}, {"MPI_INT64_T", MPI_INT64_T},
    {"MPI_UINT64_T", MPI_UINT64_T}, {"MPI_COUNT", MPI_COUNT},
    {"MPI_CHAR", MPI_CHAR},         {"MPI_DOUBLE", MPI_DOUBLE},
    /* What MPI_T does not allow. */
    {"MPI_LONG_DOUBLE", MPI_LONG_DOUBLE},
    {0},
};
const struct name bindings[] = {
    {"NO_OBJECT", MPI_T_BIND_NO_OBJECT}, {"MPI_COMM", MPI_T_BIND_MPI_COMM},
    {"MPI_WIN", MPI_T_BIND_MPI_WIN},     {"MPI_FILE", MPI_T_BIND_MPI_FILE},
    {"MPI_REQUEST", MPI_T_BIND_MPI_REQUEST}, {"UNHEARD_OF", 4711},
    {0},
};
const struct name levels[] = {
    {"NONE", MPI_T_CB_REQUIRE_NONE},
    {"MPI_RESTRICTED", MPI_T_CB_REQUIRE_MPI_RESTRICTED},
    {"THREAD_SAFE", MPI_T_CB_REQUIRE_THREAD_SAFE},
    {"ASYNC_SIGNAL_SAFE", MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE},
    {0},
};

int value_of(struct words *words, const struct name *names, const char *what)
{
    const char *word = word_wanted(words, what);
    for (; names->name; names++)
        if (!strcmp(names->name, word))
            return names->value;
    wrong(words, what, word);
}

const char *name_of(const struct name *names, int value)
{
    for (; names->name; names++)
        if (names->value == value)
            return names->name;
    return "?";
}

int size_of(MPI_Datatype datatype)
{
    /* A predefined handle of MPICH says it. */
    return (datatype >> 8) & 0xff;
}

void write_value(MPI_Datatype datatype, long long value, void *to)
{
    double real = value;
    if (datatype == MPI_DOUBLE)
        memcpy(to, &real, sizeof real);
    else
        /* The bytes of an integer of this machine that count come first. */
        memcpy(to, &value, size_of(datatype));
}

void give(int *to, int value)
{
    if (to)
        *to = value;
}

void give_text(const char *text, char *to, int *length)
{
    int whole = strlen(text) + 1;
    if (!length)
        return;
    if (to && *length > 0) {
        int part = whole < *length ? whole : *length;
        memcpy(to, text, part - 1);
        to[part - 1] = '\0';
    }
    *length = whole;
}
