/* An MPI library that nobody knows: neither the constants of Open MPI nor those of MPICH, and nothing
 * of MPI 5. Expect: gyan says so, is off, and the program goes on. Compiled with -DPROGRAM, the program
 * that uses it. */
int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);

#ifdef PROGRAM
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    return MPI_Finalize();
}
#else
int PMPI_Init(int *argc, char ***argv) { return 0; }
int PMPI_Finalize(void) { return 0; }
int MPI_Init(int *argc, char ***argv) { return PMPI_Init(argc, argv); }
int MPI_Finalize(void) { return PMPI_Finalize(); }
#endif
