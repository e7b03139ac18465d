"""A switch dies under a training that sums its gradients over 64 emulated chips, 4x4x4, with 16 real tasks.

Emulated switches answer over TCP, and their cross-connects decide which chips have light. Each round has a cluster and
a job of its own. Printed are the time from the order that kills a switch until rank 0 tells of the first step that was
made with tables around the dead links, the steps that were made twice, restarts, and whether the last line (step, loss,
hash of the weights) differs from that of one process that trains alone. Limit: the same job's steps before the switch
dies; they wait so that a step begins every STEP_MS at the earliest.
"""
import os
import re
import subprocess
import time

from cluster import BUILD, PHALANX, BenchError, LocalCluster, Scratch, jobset, stop, wait_for
from report import figure, median

SWITCHES_OUT = ("x5", "y9", "z3")  # one a round
RANKS, STEPS, STEP_MS, STEPS_BEFORE = 16, 60, 100, 20
PATIENCE_S = 120
PODS = "/api/v1/namespaces/default/pods"
RANK_0 = PODS + "?labelSelector=batch.kubernetes.io/job-completion-index=0"
TRAIN = [os.path.join(BUILD, "train"), "--batch", str(RANKS), "--steps", str(STEPS)]
CLUSTER = """\
apiVersion: phalanx.dev/v1
kind: Cluster
metadata: {name: pod}
spec:
  settings: {lease: 60s, heartbeat: 1s}
  machineNames: m-{n}
  addresses: 127.0.9.1
  pods:
  - name: pod-1
    cubes: 1
    fabric: {timeout: 5s, protocol: scpi, switches: [%s], chips: "emulated:%s/{cube}-{machine}"}
"""


class Pod:
    """The 48 switches of a pod and the chips of its one cube, until the end of `with`."""

    def __init__(self, scratch, name):
        self.chips, listed = scratch.join(f"{name}-chips"), scratch.join(f"{name}-switches.yaml")
        self.process = subprocess.Popen(
            [PHALANX, "switch-sim", "--port", "0", "--write", listed, "--protocol", "scpi", "--orders", "--cubes", "1",
             "--chips", self.chips], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=scratch.path)
        if not self.process.stdout.readline():
            raise BenchError("switch-sim ended")
        with open(listed) as file:
            addresses = re.findall(r'"[^"]*:\d+"', file.read())
        self.cluster_file = scratch.join(f"{name}.yaml")
        with open(self.cluster_file, "w") as file:
            file.write(CLUSTER % (", ".join(addresses), self.chips))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop(self.process, 10)
        self.process.stdin.close()
        self.process.stdout.close()

    def kill_switch(self, name):
        self.process.stdin.write(f"- {{switch: {name}, do: die}}\n")
        self.process.stdin.flush()


class Job:
    """A training, read through what its rank 0 prints."""

    def __init__(self, server, hash_file):
        document = jobset("torus", [*TRAIN, "--fabric", "--step-ms", str(STEP_MS), "--log-every", "1",
                                    "--checkpoint-every", "0", "--hash-file", hash_file], RANKS)
        document["metadata"]["annotations"] = {"phalanx.dev/slice": "4x4x4"}
        server.create(document)
        self.server = server
        pods = wait_for("rank 0 has no Pod", lambda: server.get(RANK_0)["items"], PATIENCE_S)
        self.log_path = f"{PODS}/{pods[0]['metadata']['name']}/log"

    def log(self):
        try:
            return self.server.call("GET", self.log_path).decode()
        except BenchError:
            return ""  # no container has started

    def steps(self):
        return [int(step) for step in re.findall(r"^step (\d+)/\d+ loss", self.log(), re.M)]

    def await_steps(self, count):
        wait_for(f"step {count}", lambda: count in self.steps(), PATIENCE_S)

    def await_tables(self):
        """Waits until rank 0 tells of a step that was made with other tables, around one dead link."""
        said = re.compile(r"^fabric session \d+ at step \d+: 64 chips, 191 links, 1 dark, [1-9]\d* reroutes$", re.M)
        wait_for("no step around the dead switch", lambda: said.search(self.log()), PATIENCE_S, 0.005)

    def finish(self):
        """Returns how many steps were lost, and made again."""
        wait_for("the training does not end", lambda: self.server.completed("torus"), PATIENCE_S)
        made = self.steps()
        if set(made) != set(range(1, STEPS + 1)):
            raise BenchError(f"steps of {STEPS}: {made}")
        return len(made) - STEPS


def read(path):
    with open(path) as file:
        return file.read()


def outlive(scratch, switch):
    """(ms until the next step, ms of a step before, steps lost, restarts, the last line)."""
    hash_file = os.path.join(scratch.join("out"), switch)
    with Pod(scratch, switch) as pod, LocalCluster(scratch, pod.cluster_file, name=f"cluster-{switch}") as cluster:
        cluster.wait_ready(RANKS)
        job = Job(cluster.server, hash_file)
        job.await_steps(STEPS_BEFORE // 2)
        begin_s = time.monotonic()
        job.await_steps(STEPS_BEFORE)
        step_ms = (time.monotonic() - begin_s) * 1000 / (STEPS_BEFORE - STEPS_BEFORE // 2)
        broken_s = time.monotonic()
        pod.kill_switch(switch)
        job.await_tables()
        next_ms = (time.monotonic() - broken_s) * 1000
        lost = job.finish()
        return next_ms, step_ms, lost, len(cluster.server.restarts("torus")), read(hash_file)


def run(report):
    if not os.path.exists(TRAIN[0]):
        raise BenchError(f"{TRAIN[0]} is not built")
    with Scratch() as scratch:
        os.mkdir(scratch.join("out"))
        os.chmod(scratch.join("out"), 0o777)
        alone = os.path.join(scratch.join("out"), "alone")
        subprocess.run([*TRAIN, "--checkpoint-every", "0", "--hash-file", alone], check=True, capture_output=True)
        rounds = [outlive(scratch, switch) for switch in SWITCHES_OUT]
        right = read(alone)
    nexts, befores, lost, restarts, lines = zip(*rounds)
    name = "a switch dies"
    report.row(figure("torus", f"{name}: the next step is made", median(nexts), "ms", median(befores)))
    report.row(figure("torus", f"{name}: the slowest of {len(rounds)}", max(nexts), "ms"))
    report.row(figure("torus", f"{name}: steps lost", sum(lost), "steps"))
    report.row(figure("torus", f"{name}: restarts", sum(restarts), "restarts"))
    wrong = sum(line != right for line in lines)
    report.row(figure("torus", f"{name}: results unlike an undisturbed run's", wrong, "jobs"))
