/* Asks with weak references, as mpi4py does, whether functions exist, and calls those that do.
 * Expect: the same output as without gyan, whichever functions the MPI lacks. */
#include <mpi.h>
#include <stdio.h>

int MPI_Isendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int,
                  MPI_Comm, MPI_Request *);
#pragma weak MPI_Isendrecv
#pragma weak MPI_Isendrecv_c
#pragma weak MPI_Isendrecv_replace
#pragma weak MPI_Recv_c
#pragma weak MPI_Precv_init
#pragma weak MPI_Recv
#pragma weak MPI_Info_get_string
#pragma weak MPI_Status_get_source
#pragma weak MPI_Session_init
#pragma weak MPI_Buffer_flush
#pragma weak MPI_Type_get_value_index

/* Those of other libraries, which gyan has, too. */
extern int PetscLogStageRegister(), PetscLogStagePush(), PetscLogStagePop(),
    kokkosp_push_profile_region(), InitializeInjectionNvtx2(), __itt_api_init(), ompt_start_tool(),
    cali_begin_region(), cali_end_region();
#pragma weak PetscLogStageRegister
#pragma weak PetscLogStagePush
#pragma weak PetscLogStagePop
#pragma weak kokkosp_push_profile_region
#pragma weak InitializeInjectionNvtx2
#pragma weak __itt_api_init
#pragma weak ompt_start_tool
#pragma weak cali_begin_region
#pragma weak cali_end_region

#define NAMES(row)                                                                                \
    row(MPI_Isendrecv_c) row(MPI_Isendrecv_replace) row(MPI_Recv_c) row(MPI_Precv_init)            \
    row(MPI_Info_get_string) row(MPI_Status_get_source) row(MPI_Session_init)                      \
    row(MPI_Buffer_flush) row(MPI_Type_get_value_index)                                        \
    row(PetscLogStageRegister) row(PetscLogStagePush) row(PetscLogStagePop)                        \
    row(kokkosp_push_profile_region) row(InitializeInjectionNvtx2) row(__itt_api_init)             \
    row(ompt_start_tool) row(cali_begin_region) row(cali_end_region)

#if MPI_VERSION < 4
extern int MPI_Isendrecv_c(), MPI_Isendrecv_replace(), MPI_Recv_c(), MPI_Precv_init(),
    MPI_Info_get_string(), MPI_Session_init();
#endif
#if MPI_VERSION < 4 || MPI_VERSION == 4 && MPI_SUBVERSION < 1
extern int MPI_Status_get_source(), MPI_Buffer_flush(), MPI_Type_get_value_index();
#endif

int main(int argc, char **argv)
{
    int x = 0, y = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv);
#define PRINT(function) printf(#function " %d\n", &function != NULL);
    NAMES(PRINT)
    printf("MPI_Recv %d\n", &MPI_Recv != NULL);
    if (&MPI_Isendrecv != NULL) {
        MPI_Isendrecv(&x, 1, MPI_INT, 0, 0, &y, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf("received\n");
    }
    MPI_Finalize();
    return 0;
}
