#!/usr/bin/env python3
"""The notebooks of this folder, as scripts/docs notebooks.

notebooks check              executes them, without a display, and says where what they print is not what is kept; fails then, and on
                             errors. Pictures are compared by their text
notebooks write              executes them and keeps what they print
notebooks html DIR           as pages in DIR
notebooks runs               makes the runs anew that they read, in docs/notebooks/runs, with Debian's LAMMPS and Open MPI; takes a minute

The command and the library are those of RELEASE_BUILD, or of the debug build. What the notebooks need is installed once, in
target/notebooks. Ends with code 3 where that is not possible.
"""

from __future__ import annotations

import difflib
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "docs/notebooks"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
COMMAND = Path(os.environ.get("RELEASE_BUILD", TARGET / "debug")) / "gyan"
PACKAGES = ["nbclient==0.11.0", "ipykernel==7.4.0", "nbconvert==7.17.2", "pandas==3.1.1", "pyarrow==26.0.1"]
CANNOT = 3


def go_into_environment() -> None:
    """Continues in a virtual environment with the packages, which is made when it is not there."""
    place = TARGET / "notebooks"
    made_of = place / "packages"
    if sys.prefix == str(place):
        return
    if not made_of.exists() or made_of.read_text() != "\n".join(PACKAGES):
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([ROOT / "scripts/packages", "python3", "python3-venv"], check=True, stdout=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        install = [place / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        if subprocess.run(install, check=False).returncode != 0:
            print("scripts/docs: the packages cannot be installed from PyPI", file=sys.stderr)
            sys.exit(CANNOT)
        made_of.write_text("\n".join(PACKAGES))
    python = place / "bin/python"
    os.execv(python, [str(python), __file__, *sys.argv[1:]])


def executed(path: Path) -> Any:
    """The notebook with what its cells print today."""
    import nbclient
    import nbformat

    environment = {
        "GYAN_COMMAND": str(COMMAND),
        "PYTHONPATH": str(ROOT / "packaging/wheel"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(NOTEBOOKS)}}
    # It warns that others on this machine could read what it prints.
    quiet = ["--IPKernelApp.log_level=40"]
    client = nbclient.NotebookClient(notebook, timeout=300, resources=place, record_timing=False, extra_arguments=quiet)
    client.execute(env={**os.environ, **environment})
    # Which Python it was does not matter.
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def printed(notebook: Any) -> list[str]:
    """What the cells print, as lines: without pictures, but with the text of elements, and without places in libraries, whose names
    need these libraries."""
    lines = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            text = output.get("text", "") + data.get("text/plain", "")
            element = re.sub(r"<style.*?</style>|<svg.*?</svg>", "", data.get("text/html", ""), flags=re.DOTALL)
            lines += text.splitlines() + html.unescape(re.sub(r"<[^>]*>", "\n", element)).split("\n")
    place = re.compile(r"[\w:]+ in liblammps\.so\.0|liblammps\.so\.0\+0x[0-9a-f]+")
    return [place.sub("PLACE", line.rstrip()) for line in lines if line.strip()]


def check() -> int:
    """How many notebooks print something else."""
    import nbformat

    stale = 0
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        kept, now = printed(nbformat.read(path, as_version=4)), printed(executed(path))
        difference = list(difflib.unified_diff(kept, now, "kept", "now", lineterm="", n=1))
        if difference:
            stale += 1
            print(f"{path.name} is stale: read it, then scripts/docs notebooks write", *difference[:40], sep="\n")
    return stale


def write() -> int:
    """Keeps what they print."""
    import nbformat

    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        nbformat.write(executed(path), path)
    return 0


def pages(place: str) -> int:
    """Each notebook as a page."""
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--log-level", "WARN", "--output-dir", place]
    return subprocess.run([*command, *sorted(NOTEBOOKS.glob("*.ipynb"))], check=False).returncode


def runs() -> int:
    """The runs that the notebooks read."""
    subprocess.run([ROOT / "scripts/packages", "lammps", "openmpi-bin"], check=True)
    as_root = dict.fromkeys(["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"], "1")
    # One thread a rank; Debian's Open MPI looks for networks that are not there. To name the lines of the program, the readers would
    # need the program.
    environment = {**os.environ, **as_root, "OMP_NUM_THREADS": "1", "OMPI_MCA_btl": "^ofi", "GYAN_SITES": "off"}
    place = Path(tempfile.mkdtemp(prefix="gyan-notebooks-"))
    shutil.copy(NOTEBOOKS / "gas.lmp", place)

    def run(name: str, options: list[str], variables: dict[str, object]) -> None:
        words = [word for variable, value in variables.items() for word in ("-var", variable, str(value))]
        program = ["mpirun.openmpi", "-n", "2", "lmp", "-log", "none", "-screen", "none", "-in", "gas.lmp", *words]
        # In a group of the scheduler that goes before others, on a host of this name.
        quietly = ["setsid", "-w", "sh", "-c", '{ echo -20 >/proc/self/autogroup; } 2>/dev/null; exec "$@"', "sh"]
        on_host = ["unshare", "--uts", "--map-root-user", "sh", "-c", 'hostname n1; exec "$@"', "sh"]
        started = [*quietly, *on_host, COMMAND, "run", "--no-report", "-o", name, *options, "--", *program]
        subprocess.run(started, cwd=place, env=environment, check=True, stdout=subprocess.DEVNULL)
        if "--timeline=16k" not in options:
            subprocess.run([COMMAND, "pack", "-o", f"{name}.gyan.zst", name], cwd=place, check=True, stdout=subprocess.DEVNULL)
            shutil.rmtree(place / name)

    run("gas", ["--timeline=16k"], {"steps": 100})
    for number in range(1, 6):
        for balance in ("none", "shift"):
            run(f"balance/{balance}/run-{number}", [], {"steps": 100, "balance": balance})
    for layers in (4, 8, 12, 16, 24, 32):
        for number in (1, 2):
            run(f"layers/{layers}-{number}", [f"--label=layers={layers}"], {"n": layers, "steps": 100, "balance": "shift"})
    shutil.rmtree(NOTEBOOKS / "runs", ignore_errors=True)
    (place / "gas.lmp").unlink()
    shutil.move(place, NOTEBOOKS / "runs")
    (NOTEBOOKS / "runs").chmod(0o755)
    return 0


def main() -> int:
    """Does what the first word says."""
    words = sys.argv[1:]
    if words == ["runs"]:
        return runs()
    if words not in (["check"], ["write"]) and words[:1] != ["html"]:
        print(__doc__, file=sys.stderr)
        return 2
    go_into_environment()
    if words[0] == "html":
        return pages(*words[1:])
    return write() if words[0] == "write" else min(check(), 1)


if __name__ == "__main__":
    sys.exit(main())
