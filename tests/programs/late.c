/* Starts MPI in a way that no preloaded library sees: MPI_Init taken from the library's own handle, by the C
 * library's own dlsym.
 * The first MPI_Recv is an ordinary call. Then the variables of Open MPI's psm2 component, where
 * there is one, are exported again, and a handle on one of them is deadly.
 * Expect: ends with code 0; gyan starts at the first receive and leaves mtl_psm2_* out. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int x = 0;
    Dl_info info;
    /* Not a function that profilers wrap. */
    dladdr((void *)MPI_T_init_thread, &info);
    void *library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    void *(*find)(void *, const char *) =
        (void *(*)(void *, const char *))dlsym(dlopen("libc.so.6", RTLD_NOW), "dlsym");
    int (*init)(int *, char ***) = (int (*)(int *, char ***))find(library, "MPI_Init");
    if (!init || init(&argc, &argv))
        return 1;
    for (int i = 0; i < 6; i++)
        MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("received\n");
    MPI_Finalize();
    return 0;
}
