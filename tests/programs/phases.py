"""Phases by `gyan.phase`: as a block, as a decorator, inside each other, left by an exception, and on two threads. Each rank writes
down in truth.RANK how often it called MPI_Barrier in each phase, and how often that began."""

import threading

import gyan
from mpi4py import MPI

comm = MPI.COMM_WORLD
barriers: dict[str, int] = {}
entries: dict[str, int] = {}


def begun(phase: str) -> None:
    entries[phase] = entries.get(phase, 0) + 1


def barrier(phase: str) -> None:
    comm.Barrier()
    barriers[phase] = barriers.get(phase, 0) + 1


@gyan.phase("down")
def down(outer: str, levels: int) -> int:
    """Calls itself."""
    begun(outer + "down")
    barrier(outer + "down")
    return 1 + down(outer + "down/", levels - 1) if levels > 1 else 1


class Left(Exception):
    pass


def exchange(fails: bool) -> None:
    with gyan.phase("exchange"):
        begun("step/exchange")
        barrier("step/exchange")
        if fails:
            raise Left
        barrier("step/exchange")


barrier("")
for number in range(5):
    with gyan.phase("step"):
        begun("step")
        barrier("step")
        try:
            exchange(fails=number == 3)
        except Left:
            pass
        barrier("step")
assert down("", 3) == 3 and down.__name__ == "down" and down.__doc__ == "Calls itself."

solving = gyan.phase("gelöst: ½")
for _ in range(2):
    with solving:
        begun("gelöst: ½")
        barrier("gelöst: ½")


def elsewhere(name: str) -> None:
    with gyan.phase(name), gyan.phase("inner"):
        pass


with gyan.phase("main"):
    begun("main")
    # What other threads begin while this one is in a phase is passed over.
    thread = threading.Thread(target=elsewhere, args=["never"])
    thread.start()
    thread.join()
    barrier("main")
thread = threading.Thread(target=elsewhere, args=["thread"])
thread.start()
thread.join()
begun("thread")
begun("thread/inner")
barrier("")

try:
    gyan.phase("wrong")(lambda: (yield))
    raise SystemExit("a generator was taken")
except TypeError as error:
    print(error)

with open(f"truth.{comm.rank}", "w", encoding="utf-8") as truth:
    for phase, number in barriers.items():
        truth.write(f"call MPI_Barrier {number} {phase}\n")
    for phase, number in entries.items():
        truth.write(f"entries {number} {phase}\n")
