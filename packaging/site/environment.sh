# shellcheck shell=sh disable=SC2034  # read with "."
# What the scripts here share. It sets preload to the LD_PRELOAD of a task, or to nothing if the task is to be left alone.
# A site writes its two paths here.
library=/opt/gyan/lib/libgyan.so
site=/etc/gyan/site.toml

preload="$library${LD_PRELOAD:+:$LD_PRELOAD}"
case ${GYAN:-on} in
[Oo][Ff][Ff] | [Nn][Oo] | [Ff][Aa][Ll][Ss][Ee] | 0) preload='' ;;
esac
# A libgyan.so that is there already belongs to a user's gyan run, or to the module gyan-site.
case :${LD_PRELOAD:-}: in
*[/:\ ]libgyan.so[:\ ]*) preload='' ;;
esac
{ [ -r "$library" ] && [ -r "$site" ]; } || preload=''
