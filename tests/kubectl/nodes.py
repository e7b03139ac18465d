"""What kubectl does to machines: cordon, uncordon, label, taint, drain. One client at a time: they are shared."""
import json
import os

from e2e import BUILD, ROOT, check, jobset
from surface import Following, has

PYTHON = "/usr/bin/python3"
# Makes steps without saving until it is told that it will be stopped; then saves each step until it is stopped.
TRAINER = """
import signal, sys, time
import phalanx
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
with phalanx.join() as job:
    saved = job.checkpoint_restore()
    if saved is not None:
        print("resumed from step", saved.step, flush=True)
    step = saved.step if saved is not None else 0
    print("runs", flush=True)
    while True:
        step += 1
        job.step(step)
        ends = bool(stopped)
        if job.notice() is not None:
            job.checkpoint_save(step, b"state")
            job.checkpoint_wait(step, 60)
            print("told: saved step", step, flush=True)
        if ends:
            break
        time.sleep(0.1)
"""


def pods_of(k, name):
    return ("get", "pods", "-l", "jobset.sigs.k8s.io/jobset-name=" + name)


def labels_and_taints(k, cluster):
    has(k.run("cordon", "m-2"), r"node/m-2 cordoned")
    has(k.run("cordon", "m-2"), r"already cordoned")
    has(k.run("get", "node", "m-2"), r"m-2\s+Ready,SchedulingDisabled")
    has(k.run("describe", "node", "m-2"), r"Unschedulable:\s+true", r"node\.kubernetes\.io/unschedulable:NoSchedule")
    has(k.run("get", "nodes", "--field-selector=spec.unschedulable=true", "-o", "name"), r"^node/m-2\n$")
    has(k.run("uncordon", "m-2"), r"node/m-2 uncordoned")
    has(k.run("cordon", "m-99", status=1), r"not found")
    has(k.run("label", "node", "m-2", "zone=z1"), r"labeled")
    check(k.run("get", "nodes", "-l", "zone=z1", "-o", "name") == "node/m-2\n", "the label selects")
    has(k.run("get", "nodes", "-L", "zone"), r"m-2\s+Ready\s+.*z1")
    k.run("label", "node", "m-2", "zone-")
    k.run("annotate", "node", "m-2", "note=x", status=None)
    has(k.run("taint", "node", "m-2", "broken=yes:NoSchedule"), r"tainted")
    has(k.run("get", "node", "m-2", "-o", "jsonpath={.spec.taints[*].key}={.spec.taints[*].value}"), r"^broken=yes$")
    has(k.run("taint", "node", "m-2", "broken=no:NoSchedule", status=1), r"--overwrite is false|already has")
    has(k.run("taint", "node", "m-2", "broken-"), r"untainted")
    check(k.run("get", "node", "m-2", "-o", "jsonpath={.spec.taints}") == "", "the taint is gone")


def drain_with_notice(k, cluster):
    """The task is told, saves, and goes on elsewhere from there."""
    path = os.path.join(cluster.folder, f"trainer-{k.tag}.py")
    with open(path, "w") as file:
        file.write(TRAINER)
    env = [("PYTHONPATH", os.path.join(ROOT, "python")), ("PHX_LIB", os.path.join(BUILD, "libphalanx.so")),
           ("PYTHONDONTWRITEBYTECODE", "1")]
    document = jobset("told", [PYTHON, path], tasks=1, chips=1, max_restarts=3, env=env, grace_s=50)
    k.run("apply", "-f", "-", text=json.dumps(document))
    k.run("wait", "--for=jsonpath={.status.replicatedJobsStatus[0].ready}=1", "jobset/told", "--timeout=60s")
    pod, node = k.run(*pods_of(k, "told"), "-o", "jsonpath={.items[0].metadata.name} {.items[0].spec.nodeName}").split()
    log = Following(k, "logs", "-f", pod)
    log.until("runs")
    k.until(r"^\d+$", "get", "jobset", "told", "-o", "jsonpath={.status.phalanx.step}")  # it is known to have joined
    has(k.run("drain", node, "--timeout=60s", errors=True), f"evicting pod {k.namespace}/told", r"drained")
    step = log.end().rsplit("told: saved step ", 1)
    check(len(step) == 2, f"the task was not told: {log.said()}")
    k.run("wait", "--for=jsonpath={.status.restarts}=1", "jobset/told", "--timeout=60s")
    k.run("wait", "--for=jsonpath={.status.replicatedJobsStatus[0].ready}=1", "jobset/told", "--timeout=60s")
    new_pod, new_node = k.run(*pods_of(k, "told"), "-o",
                              "jsonpath={.items[0].metadata.name} {.items[0].spec.nodeName}").split()
    check(new_node != node, f"{node} was drained, the pod is there")
    log = Following(k, "logs", "-f", new_pod)
    log.until("resumed from step " + step[1].strip())
    log.stop()
    k.run("uncordon", node)
    k.run("delete", "jobset", "told", "--wait=false")


def drain_others(k, cluster):
    """Pods that nobody owns need --force; those that have ended do not hold up a drain."""
    k.run("run", "lonely", "--image=none", "--restart=Never", "--command", "--", "sleep", "600")
    k.run("wait", "--for=condition=Ready", "pod/lonely", "--timeout=60s")
    node = k.run("get", "pod", "lonely", "-o", "jsonpath={.spec.nodeName}")
    has(k.run("drain", node, "--timeout=60s", status=1), r"declare no controller \(use --force to override\)")
    has(k.run("drain", node, "--force", "--grace-period=1", "--timeout=60s"), r"drained")
    k.run("get", "pod", "lonely", status=1)
    k.run("uncordon", node)
    k.run("create", "job", "ended", "--image=none", "--", "true")
    k.run("wait", "--for=condition=Complete", "job/ended", "--timeout=60s")
    node = k.run("get", "pods", "-l", "job-name=ended", "-o", "jsonpath={.items[0].spec.nodeName}")
    has(k.run("drain", node, "--timeout=60s"), r"drained")
    k.run("uncordon", node)
    k.run("delete", "job", "ended")


def tidy(k, cluster):
    """Whatever became of the others: the next client finds the machines as they were."""
    cordoned = k.run("get", "nodes", "--field-selector=spec.unschedulable=true", "-o", "name").split()
    for node in cordoned:
        k.run("uncordon", node)
    check(not cordoned, f"left cordoned: {cordoned}")


ALONE = [labels_and_taints, drain_with_notice, drain_others, tidy]
