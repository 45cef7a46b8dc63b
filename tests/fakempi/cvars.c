/* Control variables and enumerations: those of the script. */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

/* An enumeration, in a struct of its own so that its handle is its address. */
struct MPIR_T_enum_s {
    struct MPIR_T_enum_s *next;
    char *name;
    int number;
    char *items[MANY];
    int values[MANY];
};
static struct MPIR_T_enum_s *enumerations;

static struct cvar {
    char *name, *text;
    int bind, count, scope;
    MPI_Datatype datatype;
    MPI_T_enum enumeration;
    long long values[MANY];
} *cvars;
static int number_of_cvars;

struct MPIR_T_cvar_handle_s {
    bool is_alive;
    int cvar;
};

static const struct name scopes[] = {
    {"CONSTANT", MPI_T_SCOPE_CONSTANT}, {"READONLY", MPI_T_SCOPE_READONLY},
    {"LOCAL", MPI_T_SCOPE_LOCAL},       {"GROUP", MPI_T_SCOPE_GROUP},
    {"ALL", MPI_T_SCOPE_ALL},           {0},
};

void enumeration_declared(struct words *words)
{
    struct MPIR_T_enum_s *made = calloc(1, sizeof *made);
    made->name = unescaped(word_wanted(words, "has no name"));
    while (words->next + 1 < words->number) {
        made->items[made->number] = unescaped(word_next(words));
        made->values[made->number++] = word_integer(words, "is not a value");
    }
    made->next = enumerations;
    enumerations = made;
}

MPI_T_enum enumeration_wanted(struct words *words)
{
    const char *name = word_wanted(words, "is not an enumeration");
    for (MPI_T_enum each = enumerations; each; each = each->next)
        if (!strcmp(each->name, name))
            return each;
    wrong(words, "is not an enumeration that was declared before", name);
}

void cvar_declared(struct words *words)
{
    cvars = realloc(cvars, (number_of_cvars + 1) * sizeof *cvars);
    struct cvar *cvar = &cvars[number_of_cvars];
    *cvar = (struct cvar){.bind = MPI_T_BIND_NO_OBJECT, .count = 1, .scope = MPI_T_SCOPE_ALL};
    cvar->enumeration = MPI_T_ENUM_NULL;
    cvar->name = unescaped(word_wanted(words, "has no name"));
    cvar->datatype = value_of(words, datatypes, "is not a datatype");
    for (;;) {
        if (word_is(words, "bind")) {
            cvar->bind = value_of(words, bindings, "is not a kind of object");
        } else if (word_is(words, "count")) {
            cvar->count = word_integer(words, "is not a number of elements");
            if (cvar->count < 0 || cvar->count > MANY)
                wrong(words, "is not a number of elements that there is room for", NULL);
        } else if (word_is(words, "value")) {
            for (int i = 0; i < MANY && word_is_number(words); i++)
                cvar->values[i] = word_integer(words, "is not a value");
        } else if (word_is(words, "text")) {
            cvar->text = unescaped(word_wanted(words, "is not a text"));
        } else if (word_is(words, "scope")) {
            cvar->scope = value_of(words, scopes, "is not a scope");
        } else if (word_is(words, "enum")) {
            cvar->enumeration = enumeration_wanted(words);
        } else {
            break;
        }
    }
    number_of_cvars++;
}

int cvar_index(const char *name)
{
    for (int i = 0; i < number_of_cvars; i++)
        if (!strcmp(cvars[i].name, name))
            return i;
    return -1;
}

static const char *name_of_cvar(int index)
{
    return index >= 0 && index < number_of_cvars ? cvars[index].name : "?";
}

int PMPI_T_cvar_get_num(int *number)
{
    int fault = fault_at("MPI_T_cvar_get_num", "");
    *number = number_of_cvars;
    return fault;
}
BOTH_NAMES(MPI_T_cvar_get_num);

int PMPI_T_cvar_get_info(int index, char *name, int *name_length, int *verbosity,
                         MPI_Datatype *datatype, MPI_T_enum *enumeration, char *description,
                         int *description_length, int *bind, int *scope)
{
    int fault = fault_at("MPI_T_cvar_get_info", name_of_cvar(index));
    if (fault)
        return fault;
    if (index < 0 || index >= number_of_cvars) {
        note("misuse: control variable %d of %d", index, number_of_cvars);
        return MPI_T_ERR_INVALID_INDEX;
    }
    const struct cvar *cvar = &cvars[index];
    give_text(cvar->name, name, name_length);
    give_text("a control variable of the script", description, description_length);
    give(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    give(datatype, cvar->datatype);
    if (enumeration)
        *enumeration = cvar->enumeration;
    give(bind, cvar->bind);
    give(scope, cvar->scope);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_cvar_get_info);

int PMPI_T_cvar_handle_alloc(int index, void *object, MPI_T_cvar_handle *handle, int *count)
{
    int fault = fault_at("MPI_T_cvar_handle_alloc", name_of_cvar(index));
    if (fault)
        return fault;
    if (index < 0 || index >= number_of_cvars) {
        note("misuse: a handle on control variable %d of %d", index, number_of_cvars);
        return MPI_T_ERR_INVALID_INDEX;
    }
    if (cvars[index].bind == MPI_T_BIND_MPI_COMM && !is_alive(*(const MPI_Comm *)object))
        note("misuse: a handle on %s for no communicator", cvars[index].name);
    struct MPIR_T_cvar_handle_s *made = calloc(1, sizeof *made);
    *made = (struct MPIR_T_cvar_handle_s){.is_alive = true, .cvar = index};
    *handle = made;
    *count = cvars[index].count;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_cvar_handle_alloc);

static struct cvar *cvar_of(MPI_T_cvar_handle handle, const char *what)
{
    if (handle && handle->is_alive)
        return &cvars[handle->cvar];
    note("misuse: a handle of a control variable that is not alive: %s", what);
    return NULL;
}

int PMPI_T_cvar_handle_free(MPI_T_cvar_handle *handle)
{
    struct cvar *cvar = cvar_of(*handle, "free");
    int fault = fault_at("MPI_T_cvar_handle_free", cvar ? cvar->name : "?");
    if (fault || !cvar)
        return fault ? fault : MPI_T_ERR_INVALID_HANDLE;
    (*handle)->is_alive = false;
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_cvar_handle_free);

int PMPI_T_cvar_read(MPI_T_cvar_handle handle, void *buffer)
{
    struct cvar *cvar = cvar_of(handle, "read");
    int fault = fault_at("MPI_T_cvar_read", cvar ? cvar->name : "?");
    if (fault || !cvar)
        return fault ? fault : MPI_T_ERR_INVALID_HANDLE;
    if (cvar->text) {
        strcpy(buffer, cvar->text);
        return MPI_SUCCESS;
    }
    for (int i = 0; i < cvar->count; i++)
        write_value(cvar->datatype, cvar->values[i], (char *)buffer + i * size_of(cvar->datatype));
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_cvar_read);

int PMPI_T_cvar_write(MPI_T_cvar_handle handle, const void *buffer)
{
    struct cvar *cvar = cvar_of(handle, "write");
    int fault = fault_at("MPI_T_cvar_write", cvar ? cvar->name : "?");
    if (fault || !cvar)
        return fault ? fault : MPI_T_ERR_INVALID_HANDLE;
    if (cvar->datatype != MPI_INT || cvar->count != 1)
        return MPI_T_ERR_CVAR_SET_NEVER;
    cvar->values[0] = *(const int *)buffer;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_cvar_write);

int PMPI_T_enum_get_info(MPI_T_enum enumeration, int *number, char *name, int *name_length)
{
    int fault = fault_at("MPI_T_enum_get_info", enumeration->name);
    if (fault)
        return fault;
    give(number, enumeration->number);
    give_text(enumeration->name, name, name_length);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_enum_get_info);

int PMPI_T_enum_get_item(MPI_T_enum enumeration, int index, int *value, char *name, int *name_length)
{
    int fault = fault_at("MPI_T_enum_get_item", enumeration->name);
    if (fault)
        return fault;
    if (index < 0 || index >= enumeration->number) {
        note("misuse: item %d of an enumeration of %d", index, enumeration->number);
        return MPI_T_ERR_INVALID_ITEM;
    }
    give(value, enumeration->values[index]);
    give_text(enumeration->items[index], name, name_length);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_enum_get_item);
