"""What recovery costs a job that outlives its peers (docs/recovery.md): four ranks with 100 MB of state each."""
import http.client
import os
import shutil
import signal
import subprocess
import time

import torchrun
from cluster import BenchError, Fifo, LocalCluster, Scratch, jobset, task, wait_for
from report import figure, median, quantile
from slurm import Slurm
from stamps import Stamps

RANKS, MEGABYTES, TIMES = 4, 100, 20
MACHINES = RANKS + 2
PATIENCE_S = 60
HOLD_NS = 1_500_000_000  # ranks hold their state every second

CLUSTER = """
apiVersion: phalanx.dev/v1
kind: Cluster
metadata: {name: ladder}
spec:
  machineNames: m-{n}
  addresses: 127.0.3.1
  pods:
  - racks:
    - machines: %d
      chips: 4
"""


def cluster_file(scratch, name, machines):
    path = scratch.join(f"{name}.yaml")
    with open(path, "w") as file:
        file.write(CLUSTER % machines)
    return path


def memory_of(pid):
    """The folder in memory that the task's machine keeps for its job set."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        for word in file.read().split(b"\0"):
            if word.startswith(b"PHX_MEMORY_DIR="):
                return word.split(b"=", 1)[1].decode()
    raise BenchError(f"process {pid} has no PHX_MEMORY_DIR")


def answered(ask):
    """{} while there is no controller."""
    try:
        return ask()
    except (OSError, http.client.HTTPException):
        return {}


class Job:
    """Four ranks that make steps, on a cluster of their own, which ends with them."""

    def __init__(self, cluster, machines, spares):
        self.cluster, self.scratch = cluster, cluster.scratch
        self.machines, self.spares, self.attempt = machines, spares, 0
        self.stamps = Fifo(self.scratch, f"{cluster.name}.stamps", "=qII")

    def __enter__(self):
        self.cluster.__enter__()
        self.cluster.wait_ready(self.machines)
        policy = {"failurePolicy": {"maxRestarts": 1000}}
        document = jobset("job", [task("loop"), self.stamps.path, str(MEGABYTES)], RANKS, spec=policy)
        budgets = ",".join(f"{rung}=100/1s" for rung in ("restart-process", "replace-machine"))
        annotations = document["metadata"].setdefault("annotations", {})
        annotations["phalanx.dev/recovery-budgets"] = budgets
        if self.spares:
            annotations["phalanx.dev/spares"] = str(self.spares)
        self.cluster.server.create(document)
        self.stamps.collect(RANKS, PATIENCE_S)
        return self

    def __exit__(self, *what):
        self.cluster.__exit__(*what)
        self.stamps.close()

    def whole(self):
        status = self.cluster.server.status("job").get("phalanx", {})
        return (self.cluster.server.ready_machines() == self.machines
                and status.get("spares", {}).get("ready", 0) == self.spares)

    def settle(self):
        """All machines and spares are there, and every rank has held its state since."""
        wait_for("the job is not whole again", lambda: answered(self.whole), PATIENCE_S, 0.05)
        end_ns = time.monotonic_ns() + HOLD_NS
        while self.stamps.collect(1, PATIENCE_S)[-1][0] < end_ns:
            pass

    def machine_of(self, rank):
        return wait_for(f"rank {rank} has no machine", lambda: answered(self.cluster.machines_of).get(rank), PATIENCE_S)

    def process_of(self, rank):
        for pid in self.scratch.processes(f"{self.cluster.name}/machines/{self.machine_of(rank)}"):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read().startswith(task("loop").encode()):
                    return pid
        raise BenchError(f"rank {rank} has no process")

    def lose_process(self, rank):
        pid = self.process_of(rank)
        return lambda: os.kill(pid, signal.SIGKILL)

    def lose_machine(self, rank, controller=False):
        """With its memory."""
        machine, memory = self.machine_of(rank), memory_of(self.process_of(rank))
        more = [pid for pid in self.scratch.processes() if controller and is_controller(pid)]
        if controller and not more:
            raise BenchError("there is no controller")

        def lose():
            for pid in more:
                os.kill(pid, signal.SIGKILL)
            self.cluster.kill_machine(machine)
            shutil.rmtree(memory, ignore_errors=True)

        return lose

    def recovery_ms(self, fail):
        """From `fail` to the next step of every rank."""
        start_ns, first = time.monotonic_ns(), {}
        fail()
        while len(first) < RANKS:
            for time_ns, attempt, rank in self.stamps.collect(1, PATIENCE_S):
                if attempt > self.attempt and time_ns > start_ns:
                    first.setdefault(rank, (time_ns, attempt))
        self.attempt = max(attempt for _, attempt in first.values())
        return (max(time_ns for time_ns, _ in first.values()) - start_ns) / 1e6

    def recoveries(self, times, lose):
        found = []
        for number in range(times):
            self.settle()
            found.append(self.recovery_ms(lose(number % RANKS)))
        return found


def local(scratch, name):
    return LocalCluster(scratch, cluster_file(scratch, name, MACHINES), "--revive", "300ms", name=name)


def is_controller(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().split(b"\0")[1:2] == [b"controller"]


def alone_ms(job):
    """A process that starts and copies the state out of somebody's memory: what no recovery can do without. At the
    pace of the recoveries and beside the same job: what a page costs depends on what became of those freed last."""
    path, found = f"/dev/shm/phalanx-bench-{os.getpid()}", []
    try:
        with open(path, "wb") as file:
            file.write(os.urandom(1 << 20) * MEGABYTES)
        for _ in range(TIMES):
            job.settle()
            start_ns = time.monotonic_ns()
            subprocess.run([task("loop"), "--alone", path], check=True)
            found.append((time.monotonic_ns() - start_ns) / 1e6)
    finally:
        os.unlink(path)
    return median(found)


def peers(report):
    """What torchrun and Slurm take, where they are: (process lost, machine lost) in milliseconds."""
    found = {}
    with Scratch() as scratch:
        if torchrun.installed():
            process, machine = median(torchrun.process_lost(scratch, 5)), torchrun.machine_lost(scratch)
            found["torchrun"] = 1000 * process, 1000 * machine
        else:
            report.note("no peer: python3-torch is not installed")
    with Scratch() as scratch:
        os.chmod(scratch.path, 0o755)
        with Slurm.start_if_installed(scratch, RANKS + 2, report) as slurm:
            if slurm:
                stamps = Stamps(scratch.join("stamps"))
                slurm.start_requeued(RANKS, stamps.path)
                process = median([stamps.recovery_s([stamps.wait_ranks(RANKS, PATIENCE_S)[1]], RANKS, 200)
                                  for _ in range(3)])
                victims = slurm.machine_of(stamps.wait_ranks(RANKS, PATIENCE_S)[1])
                found["Slurm"] = 1000 * process, 1000 * stamps.recovery_s(victims, RANKS, 300)
    return found


def say(report, case, values, limit, found, machine):
    state = f"{RANKS} ranks, {MEGABYTES} MB each"
    report.row(figure("recover", f"{case}, {state}", median(values), "ms", limit))
    report.row(figure("recover", f"{case}, {state}, p90", quantile(values, 0.9), "ms", limit))
    for name, peer in found.items():
        report.row(figure("recover", f"{case}, beside {name}", median(values), "ms", None, name, peer[machine]))


def run(report):
    found = peers(report)
    with Scratch() as scratch, Job(local(scratch, "cold"), MACHINES, 0) as job:
        limit = alone_ms(job)
        say(report, "process killed", job.recoveries(TIMES, job.lose_process), limit, found, 0)
        say(report, "machine lost, cold", job.recoveries(TIMES, job.lose_machine), limit, found, 1)
    with Scratch() as scratch, Job(local(scratch, "warm"), MACHINES, 1) as job:
        say(report, "machine lost, warm spare", job.recoveries(TIMES, job.lose_machine), limit, found, 1)
        both = job.recoveries(TIMES, lambda rank: job.lose_machine(rank, controller=True))
        say(report, "machine and controller lost", both, limit, found, 1)
