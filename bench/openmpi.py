"""OpenMPI as a peer of flow's micro-benchmark: ranks that loop over MPI_Allreduce (peers/flow_mpi.c), by mpirun.

Used where Debian's libopenmpi-dev and openmpi-bin are installed; nothing is installed here. bench_flow starts mpirun
for each of its turns, so that both sides measure under the same load.

As a program, `openmpi.py PROGRAM SEGMENTS RANKS LAUNCHES NODES CALLS` becomes the mpirun of such a turn: PROGRAM is
peers/flow_mpi.c, compiled, SEGMENTS a folder for the shared memory of its ranks.
"""
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

NAME, BENCH = "OpenMPI", "flow"
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers", "flow_mpi.c")
SHARED_MEMORY = "/dev/shm"


def missing():
    """What has to be installed first; None: nothing."""
    found = shutil.which("mpicc") and shutil.which("mpirun")
    return None if found else "mpicc and mpirun (apt install libopenmpi-dev openmpi-bin)"


def settings(ranks, segments):
    """What a user would set who wants the shortest all-reduce of one number on this computer; docs/bench.md says why.

    A rank that waits looks at its shared memory all the time. With a core for each rank nothing is faster; with more
    ranks than cores the others need that core, so it is yielded between two looks. With many more, each round of
    messages waits for a turn of every rank: one root that all send to is faster than the tree of few messages.
    """
    cores = len(os.sched_getaffinity(0))
    chosen = {"pml": "ob1", "btl": "vader,self", "btl_vader_backing_directory": segments,
              "btl_vader_single_copy_mechanism": "none", "oob_tcp_if_include": "lo",
              "mpi_yield_when_idle": str(int(ranks > cores))}
    if ranks > 2 * cores:
        chosen.update(coll_tuned_use_dynamic_rules="1", coll_tuned_allreduce_algorithm="1")
    return chosen


def mpirun(program, segments, ranks, *arguments):
    """The command; mpirun keeps its own files beside the program."""
    command = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none"]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    for name, value in {**settings(ranks, segments), "orte_tmpdir_base": os.path.dirname(program)}.items():
        command += ["--mca", name, value]
    return [*command, program, *arguments]


def build(folder):
    """Compiles the peer into the folder; returns its path."""
    program = os.path.join(folder, "flow_mpi")
    subprocess.run(["mpicc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", SOURCE, "-o", program], check=True)
    return program


@contextlib.contextmanager
def prepared():
    """No figures yet, and the variables with which bench_flow prints its rates beside OpenMPI's."""
    from cluster import Scratch
    with Scratch() as scratch, tempfile.TemporaryDirectory(prefix="phx-openmpi-", dir=SHARED_MEMORY) as segments:
        command = [sys.executable, os.path.abspath(__file__), build(scratch.path), segments]
        yield {}, {"BENCH_FLOW_OPENMPI": shlex.join(command)}


def main(program, segments, ranks, *arguments):
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    command = mpirun(program, segments, int(ranks), *arguments)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
