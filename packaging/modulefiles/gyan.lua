-- gyan, for Lmod: module use PREFIX/share/modulefiles; module load gyan
-- A site that keeps its module files elsewhere sets the prefix here.
local prefix = myFileName():match("^(.*)/share/modulefiles/")

whatis("Name: gyan")
whatis("Version: " .. myModuleVersion())
whatis("Description: See inside the MPI library that a program runs on")
help([[
gyan run -- mpirun ./app                     run a program under gyan and print its report
LD_PRELOAD=$GYAN_PRELOAD srun ./app          the same without the command; then gyan report DIR
cc app.c $(pkg-config --cflags --libs gyan)  link a program with it
man gyan                                     the manual
]])

conflict("gyan")
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
prepend_path("PKG_CONFIG_PATH", pathJoin(prefix, "lib/pkgconfig"))
-- Never LD_PRELOAD: that would load gyan into every command of the shell.
setenv("GYAN_PRELOAD", pathJoin(prefix, "lib/libgyan.so"))
