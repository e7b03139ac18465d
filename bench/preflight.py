"""What tests of machines cost a gang of 16: nothing asked for, all machines valid, each tested, and in pairs.

apply -> first instruction on all 16 tasks. Limit of "all are valid": the same gang without a preflight, in turns with
it, so that both see the same computer. The tests are as short as they can be asked for (the loopback's alone), all 16
machines on this one computer.
"""
import os
import time

from cluster import Fifo, Gate, LocalCluster, Scratch, jobset, task, wait_for
from report import figure, median

TASKS, ROUNDS, PATIENCE_S = 16, 15, 100
CLUSTER = """\
apiVersion: phalanx.dev/v1
kind: Cluster
metadata: {name: preflight}
spec:
  settings: {lease: 20s, heartbeat: 1s}
  qualification: {tests: [loopback], seconds: 1, timeout: 2m, pairTimeout: 1m}
  machineNames: "m-{n:02}"
  addresses: 127.0.2.1
  pods: [{racks: [{machines: 16, chips: 4}]}]
"""


class Starts:
    def __init__(self, scratch, cluster):
        self.server = cluster.server
        self.stamps, self.gate = Fifo(scratch, "stamps", "=q"), Gate(scratch, "gate")
        self.number = 0

    def start(self, mode):
        """Milliseconds until the last first instruction."""
        self.number += 1
        name = f"gang-{self.number}"
        document = jobset(name, [task("first"), self.stamps.path, self.gate.path], TASKS)
        document["metadata"]["annotations"] = {"phalanx.dev/preflight": mode}
        self.server.version()  # the connection stands
        start_ns = time.monotonic_ns()
        self.server.create(document)
        last_ns = max(self.stamps.collect(TASKS, PATIENCE_S))[0]
        gate = self.gate.open()
        wait_for(f"{name} does not complete", lambda: self.server.completed(name), PATIENCE_S)
        self.server.delete(name)
        wait_for(f"{name} does not go away", lambda: self.server.gone(name), PATIENCE_S)
        os.close(gate)
        return (last_ns - start_ns) / 1e6


def run(report):
    with Scratch() as scratch:
        path = scratch.join("cluster.yaml")
        with open(path, "w") as file:
            file.write(CLUSTER)
        with LocalCluster(scratch, path) as cluster:
            cluster.wait_ready(TASKS)
            starts = Starts(scratch, cluster)
            starts.start("false")  # caches are warm
            report.row(figure("preflight", "16 machines, each is tested", starts.start("true"), "ms"))
            report.row(figure("preflight", "16 machines, tested in pairs, two rounds", starts.start("pairs"), "ms"))
            plain, valid = [], []
            for _ in range(ROUNDS):
                plain.append(starts.start("false"))
                valid.append(starts.start("pairs"))
            report.row(figure("preflight", "16 machines, all are valid", median(valid), "ms", median(plain)))
