"""apply -> first instruction on all tasks of a gang, on 64 machines of this computer.

Limit: as many processes of the same program, forked and executed by one parent. Peer: Slurm with a slurmd for each
machine, where slurm-wlm and munge are installed. All ways take turns, so that they see the same computer.
"""
import json
import os
import subprocess
import time

from cluster import ROOT, PHALANX, Fifo, Gate, LocalCluster, Scratch, jobset, task, wait_for
from report import figure, median
import slurm

SIZES = ((1, 15), (16, 15), (64, 15))
PEER_ROUNDS = 3
PATIENCE_S = 30


class Gang:
    """The gang's ways to start; each returns milliseconds until the last first instruction."""

    def __init__(self, scratch, cluster, peer):
        self.cluster, self.peer = cluster, peer
        self.stamps, self.gate = Fifo(scratch, "stamps", "=q"), Gate(scratch, "gate")
        self.command = [task("first"), self.stamps.path, self.gate.path]
        self.file = scratch.join("gang.json")
        self.number = 0

    def finish(self, start_ns, count, done):
        """Collects the stamps, lets the tasks go, and waits until `done`."""
        last_ns = max(self.stamps.collect(count, PATIENCE_S))[0]
        gate = self.gate.open()
        done()
        os.close(gate)
        return (last_ns - start_ns) / 1e6

    def plain(self, count):
        burst = subprocess.Popen([task("burst"), str(count), "1", *self.command], stdout=subprocess.PIPE)
        start_ns = int(burst.stdout.readline())
        return self.finish(start_ns, count, burst.communicate)

    def completed(self, name):
        server = self.cluster.server
        wait_for(f"{name} does not complete", lambda: server.completed(name), PATIENCE_S)
        server.delete(name)
        wait_for(f"{name} does not go away", lambda: server.gone(name), PATIENCE_S)

    def document(self, count):
        self.number += 1
        name = f"gang-{self.number}"
        return name, json.dumps(jobset(name, self.command, count))

    def post(self, count):
        name, document = self.document(count)
        server = self.cluster.server
        server.version()  # the connection stands
        start_ns = time.monotonic_ns()
        server.create(json.loads(document))
        return self.finish(start_ns, count, lambda: self.completed(name))

    def by_command(self, count):
        name, document = self.document(count)
        with open(self.file, "w") as file:
            file.write(document)
        start_ns = time.monotonic_ns()
        apply = subprocess.Popen([PHALANX, "apply", "-f", self.file, "--server", self.cluster.url],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        value = self.finish(start_ns, count, lambda: self.completed(name))
        apply.wait()
        return value

    def by_peer(self, count, way):
        start_ns = time.monotonic_ns()
        process = self.peer.start_gang(way, count, self.command)
        value = self.finish(start_ns, count, lambda: self.peer.finish(process))
        return value


def measure(gang, count, rounds, report):
    limit, posted, commanded = [], [], []
    peers = {"sbatch": [], "srun": []} if gang.peer else {}
    gang.plain(count), gang.post(count)  # caches are warm
    for number in range(rounds):
        limit.append(gang.plain(count))
        posted.append(gang.post(count))
        commanded.append(gang.by_command(count))
        for way, values in peers.items() if number < PEER_ROUNDS else ():
            values.append(gang.by_peer(count, way))
    name = f"{count} task{'s' if count > 1 else ''}"
    floor = median(limit)
    report.row(figure("gang", name, median(posted), "ms", floor))
    report.row(figure("gang", f"{name}, slowest of {rounds}", max(posted), "ms", max(limit)))
    best = median(commanded)
    if not peers:
        report.row(figure("gang", f"{name}, by the command phalanx apply", best, "ms", floor))
    for way, values in peers.items():
        report.row(figure("gang", f"{name}, by the command phalanx apply ({way})", best, "ms", floor,
                          f"slurm {way}", median(values)))


def run(report):
    with Scratch() as scratch:
        with slurm.Slurm.start_if_installed(scratch, 64, report) as peer:
            with LocalCluster(scratch, os.path.join(ROOT, "clusters/rack64.yaml")) as cluster:
                cluster.wait_ready(64)
                gang = Gang(scratch, cluster, peer)
                for count, rounds in SIZES:
                    measure(gang, count, rounds, report)
