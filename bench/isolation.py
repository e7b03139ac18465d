"""What isolation of tasks costs: gangs and no-op jobs with it and without it, in one run.

With: users of their own, a mount namespace, a filter of system calls, as `phalanx up` has it by default for root.
Without: --allow-root-tasks, --isolation off, --seccomp off; this is the limit of each figure. Both clusters run beside
each other and take turns, so that they see the same computer.
"""
import os

from cluster import ROOT, BenchError, LocalCluster, Scratch
from gang import Gang
from jobs import Submitter
from report import figure, median

WITHOUT = ("--allow-root-tasks", "--isolation", "off", "--seccomp", "off")
WITH = ("--task-user", "200000-2147483647", "--isolation", "require")
TASKS, GANG_ROUNDS, JOB_ROUNDS, JOB_ROUND_S, WINDOW = 64, 15, 7, 2.0, 16


class Folder:
    """A folder of its own for the pipes of a cluster's gangs."""

    def __init__(self, scratch, name):
        self.path = scratch.join(f"pipes-{name}")
        os.mkdir(self.path)

    def join(self, name):
        return os.path.join(self.path, name)


def open_to_tasks(scratch):
    """Tasks of other users pass through the folder, and write to the pipes in it."""
    os.chmod(scratch.path, 0o755)
    for name in os.listdir(scratch.path):
        path = scratch.join(name)
        if not os.path.isdir(path):
            os.chmod(path, 0o666)


def measure_gangs(gangs, report):
    times = [[] for _ in gangs]
    for number in range(GANG_ROUNDS + 1):
        for gang, values in zip(gangs, times):
            value = gang.post(TASKS)
            if number:  # caches are warm
                values.append(value)
    name = f"{TASKS} tasks, apply -> first instruction"
    report.row(figure("isolation", name, median(times[0]), "ms", median(times[1])))


def measure_jobs(clusters, report):
    submitters = [Submitter(cluster.server) for cluster in clusters]
    for window in (1, WINDOW):
        spent = [[] for _ in clusters]
        for number in range(JOB_ROUNDS + 1):
            for submitter, values in zip(submitters, spent):
                rate, _ = submitter.run(window, JOB_ROUND_S if number else 0.5)
                if number:
                    values.append(1000 / rate)
        name = "one at a time" if window == 1 else f"{window} in flight"
        report.row(figure("isolation", f"no-op jobs, {name}, each", median(spent[0]), "ms", median(spent[1])))


def run(report):
    if os.geteuid() != 0:
        raise BenchError("only root's agents run tasks as other users")
    with Scratch() as scratch:
        os.chmod(scratch.path, 0o755)
        file = os.path.join(ROOT, "clusters/rack64.yaml")
        with LocalCluster(scratch, file, *WITH, name="with") as kept:
            with LocalCluster(scratch, file, *WITHOUT, name="without") as free:
                gangs = []
                for cluster in (kept, free):
                    cluster.wait_ready(64)
                    folder = Folder(scratch, cluster.name)
                    gangs.append(Gang(folder, cluster, None))
                    open_to_tasks(folder)
                measure_gangs(gangs, report)
                measure_jobs((kept, free), report)
