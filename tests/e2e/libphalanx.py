"""Python programs on libphalanx of this build, as tasks of end-to-end tests."""
import os
import subprocess

from e2e import BUILD, ROOT

PYTHON = "/usr/bin/python3"


def environment():
    """For Python tasks on python/phalanx of this build."""
    library = os.path.join(BUILD, "libphalanx.so")
    env = [("PYTHONPATH", os.path.join(ROOT, "python")), ("PHX_LIB", library),
           ("PYTHONDONTWRITEBYTECODE", "1")]
    with open(library, "rb") as file:
        if b"libasan" in file.read():  # it has to be loaded before everything else
            path = subprocess.check_output(["gcc", "-print-file-name=libasan.so"], text=True)
            env += [("LD_PRELOAD", path.strip()), ("ASAN_OPTIONS", "detect_leaks=0")]
    return env


def script(cluster, name, text):
    path = os.path.join(cluster.folder, name + ".py")
    with open(path, "w") as file:
        file.write(text)
    return [PYTHON, path, cluster.folder]


# Each rank has its own part of the state and says of each attempt whether that is right. The arguments: the attempt to
# end at, and what phalanx.train_loop is told.
PARTS = """
import sys
import phalanx
LENGTH, LAST = 60, int(sys.argv[2])
EVERY = {name: int(value) for name, value in (word.split("=") for word in sys.argv[3:])}
def write(step):
    part[:] = bytes((len(part) * job.rank + i + step) % 256 for i in range(len(part)))
def arrange():
    global part
    part = bytearray(LENGTH // job.world_size)
    job.checkpoint_register({"part": part}, shards={"part": (0, job.rank, job.world_size)})
def begin(step):
    there = bytes(part)
    write(step)
    print("world", job.world_size, "from step", step, "right" if there == part else f"wrong: {there}", flush=True)
    if job.attempt >= LAST:
        job.barrier()  # others may still read what this rank holds
        sys.exit(0)
def make(step):
    job.barrier()
    write(step + 1)
with phalanx.join(rejoins=True) as job:
    phalanx.train_loop(job, steps=10**9, step=make, arrange=arrange, begin=begin, reset=lambda: write(0), **EVERY)
"""
