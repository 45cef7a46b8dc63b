-- gyan for every MPI program of a shell, for Lmod, to be loaded by default: module use PREFIX/share/gyan/site/modulefiles
-- A site that keeps its module files elsewhere sets the prefix here, and in any case where its settings are.
local prefix = myFileName():match("^(.*)/share/gyan/site/modulefiles/")
local site = "/etc/gyan/site.toml"
local library = pathJoin(prefix, "lib/libgyan.so")

whatis("Name: gyan-site")
whatis("Description: Records for the site what MPI programs do in MPI")
help([[
Each MPI program leaves one small record for the site. Programs without MPI are not affected.
GYAN=off ./app           without, for one program
module unload gyan-site  without, for this shell
]])

-- A file that is missing would make the loader complain at every command.
if isFile(library) and isFile(site) then
    prepend_path("LD_PRELOAD", library)
    setenv("GYAN_SITE", site)
end
