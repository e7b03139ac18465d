"""What the end-to-end scripts share: cases that print ok / not ok / skip, a cluster in a folder, small JobSets.

Nothing here may depend on how fast the computer is. Wait for events with wait_for, or with cluster.watch for what is
true for a moment only; know that what is waited for was not true before. Tasks that have to run until something was
seen wait at a Gate, they do not sleep for a time that seemed long enough.
"""
import fcntl
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "deploy"))
import localcluster  # noqa: E402
import standing  # noqa: E402
from localcluster import (BUILD, JOBSETS, NODES, PATIENCE_S, PHALANX, Cluster, GaveUp, root_tasks,  # noqa: E402,F401
                          wait_for)

localcluster.on_give_up = lambda: standing.describe(Cluster.running)
localcluster.ROOT_TASKS = True  # tasks of most cases write into the cluster's folder

# Its lease is the default, 3 s: a computer that stands still for as long loses machines. For cases about leases.
MINI = os.path.join(ROOT, "clusters/mini.yaml")
# The same machines with a lease that no loaded computer exceeds.
PATIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "patient.cluster.yaml")
# Options of train whose steps leave the processors to others: with small batches it waits more than it computes.
LIGHT = ("--batch", "12", "--step-ms", "15")


def pace(name):
    """LIGHT; but the run named "quiet", of which only the weights matter, does not wait."""
    return LIGHT[:2] if name == "quiet" else LIGHT


class Failed(Exception):
    pass


def check(condition, text):
    if not condition:
        raise Failed(text)


class Skip(Exception):
    pass


def run_cases(cases):
    """Runs functions in order; each prints one line. Exit status for the script."""
    failed = 0
    for case in cases:
        name = case.__name__
        try:
            figures = case()
            print(f"ok {name}" + (f" ({figures})" if figures else ""), flush=True)
        except Skip as reason:
            print(f"skip {name}: {reason}", flush=True)
        except (Failed, GaveUp) as reason:
            failed += 1
            print(f"not ok {name}: {reason}", flush=True)
        except Exception:  # a script's own mistake fails its case, not the others
            failed += 1
            print(f"not ok {name}: {traceback.format_exc()}", flush=True)
    return 1 if failed else 0


class Bed:
    """One cluster for several cases; stops it and removes its folder at the end."""

    def __init__(self, cluster_file=PATIENT, *options):
        self.folder = tempfile.mkdtemp(prefix="phalanx-e2e-")
        self.cluster_file, self.options = cluster_file, options

    def __enter__(self):
        self.cluster = Cluster(self.folder, self.cluster_file, "--quiet", *self.options)
        wait_for("every machine is ready", self.cluster.machines_ready)
        return self.cluster

    def __exit__(self, *exception):
        self.cluster.stop()
        left = self.cluster.left_running()
        shutil.rmtree(self.folder, ignore_errors=True)
        if left and exception[0] is None:
            raise Failed(f"still running: {left}")


class Gate:
    """What tasks wait at until the test opens it: the command `gate.wait` ends then, and not before."""

    def __init__(self, cluster, name="gate"):
        self.path = os.path.join(cluster.folder, name)
        self.file = open(self.path, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)
        self.wait = f"flock --shared {self.path} true"

    def open(self):
        self.file.close()


def held_at(step, rank, command):
    """The command of a program on libphalanx, but that `rank` of the first attempt never ends saving this step.

    What it would write to is a pipe that nobody reads. So the job has reached the step, the commit before is the newest
    one, and nothing moves until the rank is killed, however slow the computer is.
    """
    folder = f'"$PHX_CHECKPOINT_DIR/step-{step}"'
    hold = f"mkdir -p {folder}; mkfifo {folder}/attempt-0-rank-{rank}.shard.tmp"
    return ["sh", "-c", f'test "$RANK" != {rank} || {{ {hold}; }}; exec "$@"', "sh"] + command


def jobset(name, command, tasks=1, chips=4, max_restarts=0, backoff_limit=0, grace_s=5, env=(), **container):
    """A JobSet of one Job with `tasks` indexes; `container` adds fields to its container."""
    limits = {"google.com/tpu": chips} if chips else {}
    limits.update(container.pop("limits", {}))
    spec = {
        "replicatedJobs": [{
            "name": "w", "replicas": 1,
            "template": {"spec": {
                "parallelism": tasks, "completions": tasks, "backoffLimit": backoff_limit,
                "template": {"spec": {
                    "restartPolicy": "Never", "terminationGracePeriodSeconds": grace_s,
                    "containers": [dict({"name": "main", "image": "none", "command": command,
                                         "env": [{"name": k, "value": v} for k, v in env],
                                         "resources": {"limits": limits}}, **container)],
                }},
            }},
        }],
    }
    if max_restarts:
        spec["failurePolicy"] = {"maxRestarts": max_restarts}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def create(cluster, document):
    status, answer = cluster.request("POST", JOBSETS, document)
    check(status == 201, f"create answered {status}: {answer.get('message')}")
    return answer


def small_cluster(machines):
    """The patient cluster with so many machines and no spare: a file that is the caller's to remove."""
    with open(PATIENT, encoding="utf-8") as file:
        text = file.read()
    check("machines: 6" in text and "spares: 1" in text, "the patient cluster is another one")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False) as file:
        file.write(text.replace("machines: 6", f"machines: {machines}").replace("spares: 1", "spares: 0"))
    return file.name


def said_by(what):
    """Its log."""
    return subprocess.run([PHALANX, "logs", what], capture_output=True, text=True, check=False).stdout


def kill_rank(cluster, name, wanted):
    """The process of one rank, by its environment and where it works; none if the job has ended."""

    def hit():
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(path, "rb") as file:
                    words = file.read().split(b"\0")
                below = os.readlink(os.path.dirname(path) + "/cwd").startswith(cluster.folder + "/")
                if below and b"PHX_JOBSET=default/" + name.encode() in words and b"PHX_RANK=%d" % wanted in words:
                    os.kill(int(path.split("/")[2]), signal.SIGKILL)
                    return True
            except OSError:  # it has ended meanwhile
                continue
        return bool(cluster.state(name))

    wait_for(f"rank {wanted} of {name} has a process", hit)


def wait_finished(cluster, name, seconds=PATIENCE_S):
    return wait_for(f"{name} has finished", lambda: cluster.state(name), seconds)


def wait_running(cluster, name, tasks, seconds=PATIENCE_S):
    def running():
        pods = [p for p in cluster.pods(name) if p["status"]["phase"] == "Running"
                and not p["metadata"].get("deletionTimestamp")]
        return pods if len(pods) == tasks else None

    return wait_for(f"{tasks} pods of {name} run", running, seconds)
