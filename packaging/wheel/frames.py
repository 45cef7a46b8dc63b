# What scripts/test release runs with the wheel: gyan.run starts app.py, and its counts are those of the program.
import sys

import gyan

program, output, *installed = sys.argv[1:]
run = gyan.run(["mpiexec", "-n", "2", "python", program], output=output)
# mpi4py calls the large-count functions if the MPI has them.
counts = {}
for row in run.rows("calls"):
    name = row["function"].removesuffix("_c")
    counts[name] = counts.get(name, 0) + row["count"]
assert (counts["MPI_Allreduce"], counts["MPI_Sendrecv"]) == (2, 20), counts
try:
    total = run.calls["count"].sum()
except ImportError as error:
    assert not installed and "pip install" in str(error), error
else:
    assert installed and run.library == "pandas"
    assert total == sum(row["count"] for row in run.rows("calls"))
    assert run.calls.attrs["columns"]["count"]["fidelity"] == "exact"
assert isinstance(run.report(), str)
