/* Lists every control and performance variable by itself, written from the standard (MPI 4.1, 15.3,
 * and the examples of the MPI 3.0 draft), knowing nothing of gyan:
 *   list init      MPI_T_init_thread, then MPI_Init, then the listing
 *   list late      MPI_Init, then MPI_T_init_thread, then the listing, as the original VARLIST
 *   list before    the listing without MPI_Init
 * A line each, to stdout: "cvar <index> <name> <verbosity> <type> <bind> <scope>",
 * "pvar <index> <name> <class> <verbosity> <type> <bind> <readonly> <continuous> <atomic>"; a variable
 * of which the library tells nothing has the line "cvar <index> -". First "cvars <n>", "pvars <n>".
 * Expect: gyan varlist --json says the same. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static const char *verbosity_name(int verbosity)
{
    switch (verbosity) {
    case MPI_T_VERBOSITY_USER_BASIC: return "USER_BASIC";
    case MPI_T_VERBOSITY_USER_DETAIL: return "USER_DETAIL";
    case MPI_T_VERBOSITY_USER_ALL: return "USER_ALL";
    case MPI_T_VERBOSITY_TUNER_BASIC: return "TUNER_BASIC";
    case MPI_T_VERBOSITY_TUNER_DETAIL: return "TUNER_DETAIL";
    case MPI_T_VERBOSITY_TUNER_ALL: return "TUNER_ALL";
    case MPI_T_VERBOSITY_MPIDEV_BASIC: return "MPIDEV_BASIC";
    case MPI_T_VERBOSITY_MPIDEV_DETAIL: return "MPIDEV_DETAIL";
    case MPI_T_VERBOSITY_MPIDEV_ALL: return "MPIDEV_ALL";
    default: return "?";
    }
}

static const char *bind_name(int bind)
{
    switch (bind) {
    case MPI_T_BIND_NO_OBJECT: return "-";
    case MPI_T_BIND_MPI_COMM: return "MPI_COMM";
    case MPI_T_BIND_MPI_DATATYPE: return "MPI_DATATYPE";
    case MPI_T_BIND_MPI_ERRHANDLER: return "MPI_ERRHANDLER";
    case MPI_T_BIND_MPI_FILE: return "MPI_FILE";
    case MPI_T_BIND_MPI_GROUP: return "MPI_GROUP";
    case MPI_T_BIND_MPI_OP: return "MPI_OP";
    case MPI_T_BIND_MPI_REQUEST: return "MPI_REQUEST";
    case MPI_T_BIND_MPI_WIN: return "MPI_WIN";
    case MPI_T_BIND_MPI_MESSAGE: return "MPI_MESSAGE";
    case MPI_T_BIND_MPI_INFO: return "MPI_INFO";
    default: return "?";
    }
}

static const char *scope_name(int scope)
{
    switch (scope) {
    case MPI_T_SCOPE_CONSTANT: return "CONSTANT";
    case MPI_T_SCOPE_READONLY: return "READONLY";
    case MPI_T_SCOPE_LOCAL: return "LOCAL";
    case MPI_T_SCOPE_GROUP: return "GROUP";
    case MPI_T_SCOPE_GROUP_EQ: return "GROUP_EQ";
    case MPI_T_SCOPE_ALL: return "ALL";
    case MPI_T_SCOPE_ALL_EQ: return "ALL_EQ";
    default: return "?";
    }
}

static const char *class_name(int class)
{
    switch (class) {
    case MPI_T_PVAR_CLASS_STATE: return "STATE";
    case MPI_T_PVAR_CLASS_LEVEL: return "LEVEL";
    case MPI_T_PVAR_CLASS_SIZE: return "SIZE";
    case MPI_T_PVAR_CLASS_PERCENTAGE: return "PERCENTAGE";
    case MPI_T_PVAR_CLASS_HIGHWATERMARK: return "HIGHWATERMARK";
    case MPI_T_PVAR_CLASS_LOWWATERMARK: return "LOWWATERMARK";
    case MPI_T_PVAR_CLASS_COUNTER: return "COUNTER";
    case MPI_T_PVAR_CLASS_AGGREGATE: return "AGGREGATE";
    case MPI_T_PVAR_CLASS_TIMER: return "TIMER";
    case MPI_T_PVAR_CLASS_GENERIC: return "GENERIC";
    default: return "?";
    }
}

static const char *type_name(MPI_Datatype type)
{
    if (type == MPI_INT) return "MPI_INT";
    if (type == MPI_UNSIGNED) return "MPI_UNSIGNED";
    if (type == MPI_LONG) return "MPI_LONG";
    if (type == MPI_UNSIGNED_LONG) return "MPI_UNSIGNED_LONG";
    if (type == MPI_LONG_LONG) return "MPI_LONG_LONG";
    if (type == MPI_UNSIGNED_LONG_LONG) return "MPI_UNSIGNED_LONG_LONG";
    if (type == MPI_COUNT) return "MPI_COUNT";
    if (type == MPI_CHAR) return "MPI_CHAR";
    if (type == MPI_DOUBLE) return "MPI_DOUBLE";
    if (type == MPI_C_BOOL) return "MPI_C_BOOL";
    if (type == MPI_INT32_T) return "MPI_INT32_T";
    if (type == MPI_UINT32_T) return "MPI_UINT32_T";
    if (type == MPI_INT64_T) return "MPI_INT64_T";
    if (type == MPI_UINT64_T) return "MPI_UINT64_T";
    return "?";
}

int main(int argc, char **argv)
{
    const char *when = argc > 1 ? argv[1] : "init";
    int provided, num, i;
    char name[1024], description[16384];

    if (strcmp(when, "late") == 0)
        MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (strcmp(when, "init") == 0)
        MPI_Init(&argc, &argv);

    MPI_T_cvar_get_num(&num);
    printf("cvars %d\n", num);
    for (i = 0; i < num; i++) {
        int name_len = sizeof name, desc_len = sizeof description, verbosity, bind, scope;
        MPI_Datatype type;
        MPI_T_enum enumtype;
        if (MPI_T_cvar_get_info(i, name, &name_len, &verbosity, &type, &enumtype, description,
                                &desc_len, &bind, &scope))
            printf("cvar %d -\n", i);
        else
            printf("cvar %d %s %s %s %s %s\n", i, name, verbosity_name(verbosity), type_name(type),
                   bind_name(bind), scope_name(scope));
    }

    MPI_T_pvar_get_num(&num);
    printf("pvars %d\n", num);
    for (i = 0; i < num; i++) {
        int name_len = sizeof name, desc_len = sizeof description, verbosity, class, bind, readonly,
            continuous, atomic;
        MPI_Datatype type;
        MPI_T_enum enumtype;
        if (MPI_T_pvar_get_info(i, name, &name_len, &verbosity, &class, &type, &enumtype,
                                description, &desc_len, &bind, &readonly, &continuous, &atomic))
            printf("pvar %d -\n", i);
        else
            printf("pvar %d %s %s %s %s %s %d %d %d\n", i, name, class_name(class),
                   verbosity_name(verbosity), type_name(type), bind_name(bind), readonly != 0,
                   continuous != 0, atomic != 0);
    }

    if (strcmp(when, "before") == 0)
        return 0;
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
