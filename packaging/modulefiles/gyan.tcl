#%Module1.0
# gyan, for Environment Modules: module use PREFIX/share/modulefiles; module load gyan
# A site that keeps its module files elsewhere sets the prefix here.
set prefix [file normalize [file join $ModulesCurrentModulefile .. .. .. ..]]

proc ModulesHelp { } {
    puts stderr {gyan run -- mpirun ./app                     run a program under gyan and print its report
LD_PRELOAD=$GYAN_PRELOAD srun ./app          the same without the command; then gyan report DIR
cc app.c $(pkg-config --cflags --libs gyan)  link a program with it
man gyan                                     the manual}
}
module-whatis "See inside the MPI library that a program runs on"

conflict gyan
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man
prepend-path PKG_CONFIG_PATH $prefix/lib/pkgconfig
# Never LD_PRELOAD: that would load gyan into every command of the shell.
setenv GYAN_PRELOAD $prefix/lib/libgyan.so
