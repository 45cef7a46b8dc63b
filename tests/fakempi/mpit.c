/* Start and end of MPI_T; control variables, categories and enumerations, of which there are none. */
#include "fake.h"

/* How often it was initialised and not ended. */
static int users;

bool mpit_is_initialized(void)
{
    return users > 0;
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
    if (!users)
        return MPI_T_ERR_NOT_INITIALIZED;
    users--;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_finalize);

int PMPI_T_cvar_get_num(int *number)
{
    *number = 0;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_cvar_get_num);

int PMPI_T_cvar_get_info(int index, char *name, int *name_length, int *verbosity,
                         MPI_Datatype *datatype, MPI_T_enum *enumeration, char *description,
                         int *description_length, int *bind, int *scope)
{
    (void)name, (void)name_length, (void)verbosity, (void)datatype, (void)enumeration;
    (void)description, (void)description_length, (void)bind, (void)scope;
    note("misuse: control variable %d of none", index);
    return MPI_T_ERR_INVALID_INDEX;
}
BOTH_NAMES(MPI_T_cvar_get_info);

int PMPI_T_cvar_handle_alloc(int index, void *object, MPI_T_cvar_handle *handle, int *count)
{
    (void)object, (void)handle, (void)count;
    note("misuse: a handle on control variable %d of none", index);
    return MPI_T_ERR_INVALID_INDEX;
}
BOTH_NAMES(MPI_T_cvar_handle_alloc);

int PMPI_T_cvar_handle_free(MPI_T_cvar_handle *handle)
{
    (void)handle;
    note("misuse: a handle of a control variable that there is not is freed");
    return MPI_T_ERR_INVALID_HANDLE;
}
BOTH_NAMES(MPI_T_cvar_handle_free);

int PMPI_T_cvar_read(MPI_T_cvar_handle handle, void *buffer)
{
    (void)handle, (void)buffer;
    note("misuse: a control variable that there is not is read");
    return MPI_T_ERR_INVALID_HANDLE;
}
BOTH_NAMES(MPI_T_cvar_read);

int PMPI_T_cvar_write(MPI_T_cvar_handle handle, const void *buffer)
{
    (void)handle, (void)buffer;
    note("misuse: a control variable that there is not is written");
    return MPI_T_ERR_INVALID_HANDLE;
}
BOTH_NAMES(MPI_T_cvar_write);

int PMPI_T_enum_get_info(MPI_T_enum enumeration, int *number, char *name, int *name_length)
{
    (void)enumeration, (void)number, (void)name, (void)name_length;
    note("misuse: an enumeration that there is not");
    return MPI_T_ERR_INVALID_HANDLE;
}
BOTH_NAMES(MPI_T_enum_get_info);

int PMPI_T_enum_get_item(MPI_T_enum enumeration, int index, int *value, char *name, int *name_length)
{
    (void)enumeration, (void)index, (void)value, (void)name, (void)name_length;
    note("misuse: an item of an enumeration that there is not");
    return MPI_T_ERR_INVALID_HANDLE;
}
BOTH_NAMES(MPI_T_enum_get_item);

int PMPI_T_category_get_num(int *number)
{
    *number = 0;
    return MPI_SUCCESS;
}
BOTH_NAMES(MPI_T_category_get_num);

int PMPI_T_category_get_info(int index, char *name, int *name_length, char *description,
                             int *description_length, int *cvars, int *pvars, int *categories)
{
    (void)name, (void)name_length, (void)description, (void)description_length;
    (void)cvars, (void)pvars, (void)categories;
    note("misuse: category %d of none", index);
    return MPI_T_ERR_INVALID_INDEX;
}
BOTH_NAMES(MPI_T_category_get_info);

static int members(int index)
{
    note("misuse: members of category %d of none", index);
    return MPI_T_ERR_INVALID_INDEX;
}

int PMPI_T_category_get_cvars(int index, int length, int indices[])
{
    (void)length, (void)indices;
    return members(index);
}
BOTH_NAMES(MPI_T_category_get_cvars);

int PMPI_T_category_get_pvars(int index, int length, int indices[])
{
    (void)length, (void)indices;
    return members(index);
}
BOTH_NAMES(MPI_T_category_get_pvars);

int PMPI_T_category_get_categories(int index, int length, int indices[])
{
    (void)length, (void)indices;
    return members(index);
}
BOTH_NAMES(MPI_T_category_get_categories);
