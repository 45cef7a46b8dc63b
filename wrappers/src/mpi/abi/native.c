/* Constants that mpi-sys cannot provide under their standard names: it names an enumerator after the tag of its enum, which is up to the library, and handles neither casts nor most datatypes. The order is that of the fields of Abi. */
#include <stddef.h>

#include <mpi.h>

void *const gyan_in_place = MPI_IN_PLACE;
void *const gyan_status_ignore = MPI_STATUS_IGNORE;
const size_t gyan_status_source_and_tag[2] = {
    offsetof(MPI_Status, MPI_SOURCE), offsetof(MPI_Status, MPI_TAG),
};

/* Whether a handle of Fortran is the handle itself: then these are macros that cast. */
#if defined(MPI_Comm_f2c) && defined(MPI_Type_f2c) && defined(MPI_Win_f2c)
const int gyan_fortran_handles_are_handles =
    sizeof(MPI_Comm) == sizeof(MPI_Fint) && MPI_Comm_f2c(0x1234) == (MPI_Comm)0x1234 &&
    MPI_Type_f2c(0x1234) == (MPI_Datatype)0x1234 && MPI_Win_f2c(0x1234) == (MPI_Win)0x1234;
#else
const int gyan_fortran_handles_are_handles = 0;
#endif

const int gyan_verbosities[9] = {
    MPI_T_VERBOSITY_USER_BASIC,   MPI_T_VERBOSITY_USER_DETAIL,   MPI_T_VERBOSITY_USER_ALL,
    MPI_T_VERBOSITY_TUNER_BASIC,  MPI_T_VERBOSITY_TUNER_DETAIL,  MPI_T_VERBOSITY_TUNER_ALL,
    MPI_T_VERBOSITY_MPIDEV_BASIC, MPI_T_VERBOSITY_MPIDEV_DETAIL, MPI_T_VERBOSITY_MPIDEV_ALL,
};

/* Without MPI_T_BIND_MPI_SESSION, which came with MPI 4 but is missing from some MPI 4 libraries. */
const int gyan_binds[11] = {
    MPI_T_BIND_NO_OBJECT, MPI_T_BIND_MPI_COMM,    MPI_T_BIND_MPI_DATATYPE,
    MPI_T_BIND_MPI_ERRHANDLER, MPI_T_BIND_MPI_FILE, MPI_T_BIND_MPI_GROUP,
    MPI_T_BIND_MPI_OP,    MPI_T_BIND_MPI_REQUEST, MPI_T_BIND_MPI_WIN,
    MPI_T_BIND_MPI_MESSAGE, MPI_T_BIND_MPI_INFO,
};

const int gyan_classes[10] = {
    MPI_T_PVAR_CLASS_STATE,         MPI_T_PVAR_CLASS_LEVEL,        MPI_T_PVAR_CLASS_SIZE,
    MPI_T_PVAR_CLASS_PERCENTAGE,    MPI_T_PVAR_CLASS_HIGHWATERMARK,
    MPI_T_PVAR_CLASS_LOWWATERMARK,  MPI_T_PVAR_CLASS_COUNTER,      MPI_T_PVAR_CLASS_AGGREGATE,
    MPI_T_PVAR_CLASS_TIMER,         MPI_T_PVAR_CLASS_GENERIC,
};

const int gyan_scopes[7] = {
    MPI_T_SCOPE_CONSTANT, MPI_T_SCOPE_READONLY, MPI_T_SCOPE_LOCAL,  MPI_T_SCOPE_GROUP,
    MPI_T_SCOPE_GROUP_EQ, MPI_T_SCOPE_ALL,      MPI_T_SCOPE_ALL_EQ,
};

/* The datatypes that mpi-sys lacks. */
const MPI_Datatype gyan_datatypes[8] = {
    MPI_INT,       MPI_UNSIGNED,           MPI_LONG,  MPI_UNSIGNED_LONG,
    MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG, MPI_COUNT, MPI_CHAR,
};
