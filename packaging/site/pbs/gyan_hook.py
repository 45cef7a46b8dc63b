"""gyan for every job of PBS Professional or OpenPBS, as a hook at execjob_launch.

    qmgr -c "create hook gyan event=execjob_launch"
    qmgr -c "import hook gyan application/x-python default gyan_hook.py"

PBS calls it on each host before it starts the job's shell, and before each program that a launcher starts there
(`pbs_tmrsh`, `pbs_attach`, the TM interface). Interactive jobs (`qsub -I`) are left alone. Nothing here rejects a job.
"""

import os
from collections.abc import Mapping

import pbs

# A site writes its two paths here.
LIBRARY = "/opt/gyan/lib/libgyan.so"
SITE = "/etc/gyan/site.toml"

OFF = ("off", "0", "no", "false")


def changed(environment: Mapping[str, str]) -> dict[str, str]:
    """What to set in the environment of a program; nothing if it is to be left alone."""
    before = environment.get("LD_PRELOAD", "")
    has_gyan = any(os.path.basename(word) == "libgyan.so" for word in before.replace(":", " ").split())
    is_off = environment.get("GYAN", "on").lower() in OFF
    is_here = os.access(LIBRARY, os.R_OK) and os.access(SITE, os.R_OK)
    if has_gyan or is_off or not is_here:
        return {}
    return {"LD_PRELOAD": f"{LIBRARY}:{before}" if before else LIBRARY, "GYAN_SITE": environment.get("GYAN_SITE") or SITE}


def launch() -> None:
    """Handle the event."""
    event = pbs.event()
    try:
        if not event.job.interactive:
            for name, value in changed(event.env).items():
                event.env[name] = value
    except Exception as error:  # A job starts, whatever happens here.
        pbs.logmsg(pbs.LOG_DEBUG, f"gyan: not loaded: {error}")
    event.accept()


launch()
