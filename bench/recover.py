"""Recoveries. First, kill -9 of a machine under a gang of 16: until every rank is past its first barrier again.

The ranks use libphalanx and keep no state (bench/tasks/rejoin.c), so this is the cluster's own part: detection,
decision, stopping the old attempt, starting the new one, rendezvous. Limit: 16 such ranks, forked and executed by one
parent, past their barrier. The machine comes back after each repetition.

Then what a job pays that outlives its peers (ladder.py).
"""
import os
import signal
import subprocess

import ladder
from cluster import Fifo, LocalCluster, Scratch, jobset, task, wait_for, BenchError
from report import figure, median, quantile

RANKS, SPARES, REPETITIONS = 16, 2, 14
PATIENCE_S = 20
PORT = 30000


def start_plain(stamps, number):
    """Milliseconds until 16 ranks that nobody manages are past their barrier."""
    env = {"PATH": "/usr/bin:/bin", "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
           "MASTER_PORT": str(PORT + 2 * number)}
    burst = subprocess.Popen([task("burst"), str(RANKS), "1", task("rejoin"), stamps.path], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=env, start_new_session=True)
    try:
        start_ns = int(burst.stdout.readline())
        last_ns = max(record[0] for record in stamps.collect(RANKS, PATIENCE_S))
    finally:
        os.killpg(burst.pid, signal.SIGKILL)
        burst.communicate()
    return (last_ns - start_ns) / 1e6


class Repetition:
    def __init__(self, cluster, stamps):
        self.cluster, self.stamps, self.attempt = cluster, stamps, 0

    def run(self, rank):
        """(milliseconds to detection, milliseconds until every rank is past its barrier)."""
        server = self.cluster.server
        machine = self.cluster.machines_of()[rank]
        start_ns, start = self.cluster.kill_machine(machine)
        records = self.stamps.collect(RANKS, PATIENCE_S, lambda record: record[1] > self.attempt)
        attempts = {record[1] for record in records}
        if len(attempts) > 1 or len({record[2] for record in records}) != RANKS:
            raise BenchError(f"ranks of attempts {sorted(attempts)} are past their barriers")
        self.attempt = attempts.pop()
        last_ns = max(record[0] for record in records)
        detected = wait_for("no word of the fault", lambda: server.fault_time("gang", self.attempt), 5)
        self.cluster.wait_ready(RANKS + SPARES)
        return (detected - start) * 1000, (last_ns - start_ns) / 1e6


def gang(report):
    with Scratch() as scratch:
        path = ladder.cluster_file(scratch, "cluster", RANKS + SPARES)
        with LocalCluster(scratch, path, "--revive", "500ms") as cluster:
            server = cluster.server
            cluster.wait_ready(RANKS + SPARES)
            stamps, plain = Fifo(scratch, "stamps", "=qII"), Fifo(scratch, "plain", "=qII")
            policy = {"failurePolicy": {"maxRestarts": 1000}}
            server.create(jobset("gang", [task("rejoin"), stamps.path], RANKS, spec=policy))
            stamps.collect(RANKS, PATIENCE_S)
            repetition = Repetition(cluster, stamps)
            limits, detections, recoveries = [], [], []
            for number in range(REPETITIONS):
                limits.append(start_plain(plain, number))
                detection, recovery = repetition.run(number % RANKS)
                detections.append(detection)
                recoveries.append(recovery)
            server.delete("gang")
    report.row(figure("recover", "kill to detection", median(detections), "ms"))
    name = "every rank past its barrier"
    report.row(figure("recover", f"{name}, {RANKS} machines", median(recoveries), "ms", median(limits)))
    report.row(figure("recover", f"{name}, p90", quantile(recoveries, 0.9), "ms", quantile(limits, 0.9)))


def run(report):
    gang(report)
    ladder.run(report)
