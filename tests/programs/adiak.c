/* A program with the part of Adiak by which tools ask for names and values (adiak.h and adiak_tool.h, 0.4), and some of them. No package
 * registry has Adiak itself. The linker must export what is defined here, as a shared library does.
 * Expect: a label of each number and text of category general, but not of what Adiak finds out by itself. */
#include <mpi.h>
#include <stddef.h>
#include <string.h>

typedef enum { T_UNSET, T_LONG, T_ULONG, T_INT, T_UINT, T_DOUBLE, T_DATE, T_TIMEVAL, T_VERSION, T_STRING, T_CATSTRING, T_PATH, T_RANGE,
               T_SET, T_LIST, T_TUPLE, T_LONGLONG, T_ULONGLONG } adiak_type_t;
enum { GENERAL = 2, PERFORMANCE = 3 };

typedef struct adiak_datatype_t {
    adiak_type_t dtype;
    int numerical, num_elements, num_subtypes;
    struct adiak_datatype_t **subtype;
    int is_reference, num_ref_elements;
} adiak_datatype_t;

typedef union adiak_value_t {
    long v_long;
    int v_int;
    double v_double;
    void *v_ptr;
    union adiak_value_t *v_subval;
    long long v_longlong;
} adiak_value_t;

typedef void (*adiak_nameval_cb_t)(const char *, int, const char *, adiak_value_t *, adiak_datatype_t *, void *);

static char long_text[1001];

static struct {
    const char *name;
    int category;
    adiak_datatype_t type;
    adiak_value_t value;
} records[] = {
    {"cells", GENERAL, {T_LONG}, {.v_long = -5000000000}},
    {"blocks", GENERAL, {T_ULONG}, {.v_long = -1}},
    {"order", GENERAL, {T_INT}, {.v_int = -3}},
    {"levels", GENERAL, {T_UINT}, {.v_int = -1}},
    {"cfl", GENERAL, {T_DOUBLE}, {.v_double = 0.25}},
    {"compiler", GENERAL, {T_VERSION}, {.v_ptr = "gcc@12.2"}},
    {"problem", GENERAL, {T_STRING}, {.v_ptr = "Sedov; 3D"}},
    {"solver", GENERAL, {T_CATSTRING}, {.v_ptr = "cg"}},
    {"steps", GENERAL, {T_LONGLONG}, {.v_longlong = 1LL << 40}},
    {"size", GENERAL, {T_INT}, {.v_int = 7}},
    {"text", GENERAL, {T_STRING}, {.v_ptr = long_text}},
    {"input", GENERAL, {T_PATH}, {.v_ptr = "/home/user/deck"}},
    {"launchdate", GENERAL, {T_DATE}, {.v_long = 1700000000}},
    {"list", GENERAL, {T_LIST, 0, 0, 0, NULL, 0, 0}, {.v_ptr = NULL}},
    {"nothing", GENERAL, {T_STRING}, {.v_ptr = NULL}},
    {"user", GENERAL, {T_STRING}, {.v_ptr = "A. User"}},
    {"fom", PERFORMANCE, {T_DOUBLE}, {.v_double = 12.5}},
};

void adiak_list_namevals(int version, int category, adiak_nameval_cb_t found, void *opaque)
{
    (void)version;
    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        if (category == 1 || records[i].category == category)
            found(records[i].name, records[i].category, NULL, &records[i].value, &records[i].type, opaque);
}

int main(int argc, char **argv)
{
    memset(long_text, 'x', sizeof long_text - 1);
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
