#%Module1.0
# gyan for every MPI program of a shell, for Environment Modules, to be loaded by default:
# module use PREFIX/share/gyan/site/modulefiles
# A site that keeps its module files elsewhere sets the prefix here, and in any case where its settings are.
set prefix [file normalize [file join $ModulesCurrentModulefile .. .. .. .. .. ..]]
set site /etc/gyan/site.toml
set library $prefix/lib/libgyan.so

proc ModulesHelp { } {
    puts stderr {Each MPI program leaves one small record for the site. Programs without MPI are not affected.
GYAN=off ./app           without, for one program
module unload gyan-site  without, for this shell}
}
module-whatis "Records for the site what MPI programs do in MPI"

# A file that is missing would make the loader complain at every command.
if {[file readable $library] && [file readable $site]} {
    prepend-path LD_PRELOAD $library
    setenv GYAN_SITE $site
}
