/* Start and end of MPI_T; categories. */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

/* How often it was initialised and not ended. */
static int users;

static struct category {
    char *name;
    int number[3], claimed[3];
    int members[3][MANY];
} categories[MANY];
static int number_of_categories;

bool mpit_is_initialized(void)
{
    return users > 0;
}

void category_declared(struct words *words)
{
    enum { CVARS, PVARS, CATEGORIES, NOTHING } kind = NOTHING;
    if (number_of_categories == MANY)
        wrong(words, "is one category too many", "category");
    struct category *category = &categories[number_of_categories++];
    category->name = unescaped(word_wanted(words, "has no name"));
    while (words->next < words->number) {
        if (word_is(words, "cvars")) {
            kind = CVARS;
        } else if (word_is(words, "pvars")) {
            kind = PVARS;
        } else if (word_is(words, "categories")) {
            kind = CATEGORIES;
        } else if (kind != NOTHING && word_is(words, "claims")) {
            category->claimed[kind] = word_integer(words, "is not a number");
        } else {
            const char *word = word_next(words);
            int index = kind == CVARS   ? cvar_index(word)
                        : kind == PVARS ? pvar_index(word)
                                        : atoi(word);
            if (kind == NOTHING || index < 0)
                wrong(words, "is nothing that was declared before", word);
            category->members[kind][category->number[kind]++] = index;
        }
    }
}

int PMPI_T_init_thread(int required, int *provided)
{
    script_read();
    users++;
    *provided = required;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_init_thread);

int PMPI_T_finalize(void)
{
    int fault = fault_at("MPI_T_finalize", "");
    if (fault)
        return fault;
    if (!users)
        return MPI_T_ERR_NOT_INITIALIZED;
    users--;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_finalize);

int PMPI_T_category_get_num(int *number)
{
    *number = number_of_categories;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_category_get_num);

static struct category *category_at(int index)
{
    if (index >= 0 && index < number_of_categories)
        return &categories[index];
    note("misuse: category %d of %d", index, number_of_categories);
    return NULL;
}

int PMPI_T_category_get_info(int index, char *name, int *name_length, char *description,
                             int *description_length, int *cvars, int *pvars, int *subcategories)
{
    const struct category *category = category_at(index);
    int fault = fault_at("MPI_T_category_get_info", category ? category->name : "?");
    if (fault || !category)
        return fault ? fault : MPI_T_ERR_INVALID_INDEX;
    give_text(category->name, name, name_length);
    give_text("a category of the script", description, description_length);
    int *to[] = {cvars, pvars, subcategories};
    for (int kind = 0; kind < 3; kind++)
        give(to[kind], category->claimed[kind] ? category->claimed[kind] : category->number[kind]);
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_category_get_info);

static int members(int index, int kind, int length, int indices[])
{
    const struct category *category = category_at(index);
    if (!category)
        return MPI_T_ERR_INVALID_INDEX;
    for (int i = 0; i < length && i < category->number[kind]; i++)
        indices[i] = category->members[kind][i];
    return MPI_SUCCESS;
}

int PMPI_T_category_get_cvars(int index, int length, int indices[])
{
    return members(index, 0, length, indices);
}
BOTH_NAMES(MPI_T_category_get_cvars);

int PMPI_T_category_get_pvars(int index, int length, int indices[])
{
    return members(index, 1, length, indices);
}
BOTH_NAMES(MPI_T_category_get_pvars);

int PMPI_T_category_get_categories(int index, int length, int indices[])
{
    return members(index, 2, length, indices);
}
BOTH_NAMES(MPI_T_category_get_categories);
