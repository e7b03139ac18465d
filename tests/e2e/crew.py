"""Agents and their jobs under the controllers of a Hall (replicas.py), for the scripts about those."""
import contextlib
import glob
import os
import re
import tempfile

from e2e import BUILD, JOBSETS, NODES, PHALANX, check, wait_for
from replicas import CONTROLLERS, who_leads

CLUSTER = """\
apiVersion: phalanx.dev/v1
kind: Cluster
metadata: {name: crew}
spec:
  settings: {lease: %s, heartbeat: 1s}
  machineNames: m-{n}
  addresses: 127.0.1.1
  pods:
  - racks: [{machines: %d, chips: 4}]
"""
ALL = range(CONTROLLERS)


@contextlib.contextmanager
def cluster_of(machines, lease="60s"):
    """The path of a cluster file with the machines m-1, m-2, ..., none of them a spare."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(CLUSTER % (lease, machines))
        file.flush()
        yield file.name


def agent(hall, index, program=PHALANX):
    return hall.start(f"agent{index}", [
        program, "agent", "--machine", f"m-{index}", "--chips", "4", "--state", f"{hall.dir}/m-{index}", "--no-probes",
        "--memory-dir", "none", "--allow-root-tasks", "--isolation", "off", "--controller",
        ",".join(f"127.0.0.1:{port}" for port in hall.agents)])


def agents(hall, count):
    """Starts them once a controller leads; returns when their machines are ready."""
    wait_for("one leads", lambda: who_leads(hall) is not None)
    started = [agent(hall, index + 1) for index in range(count)]
    wait_for("the machines are ready", lambda: len(ready(hall)) == count)
    return started


def asked(hall, path, body=None, at=ALL):
    """The document of the first answer, of whatever address of `at` gives one."""
    for i in at:
        answer = hall.call(i, path, body)
        if answer and answer[1]:
            return answer[1]
    return None


def ready(hall, at=ALL):
    """The names of the machines that are."""
    nodes = asked(hall, NODES, at=at)
    return {node["metadata"]["name"] for node in nodes["items"] for c in node["status"].get("conditions", [])
            if c["type"] == "Ready" and c["status"] == "True"} if nodes else set()


def status(hall, name, at=ALL):
    found = asked(hall, f"{JOBSETS}/{name}", at=at)
    return found.get("status", {}) if found else {}


def progress(hall, name, at=ALL):
    return status(hall, name, at).get("phalanx", {})


def step(hall, name, at=ALL):
    return progress(hall, name, at).get("step", 0)


def submit(hall, document):
    """Creates the JobSet; returns when it makes steps."""
    name = document["metadata"]["name"]
    check(asked(hall, JOBSETS, document), f"{name} was not taken")
    wait_for(f"{name} makes steps", lambda: step(hall, name) > 0)


def goes_on(hall, name, what, at=ALL):
    before = step(hall, name, at)
    wait_for(f"steps of {name} after {what}", lambda: step(hall, name, at) > before)


def processes(hall):
    """(pid, program, environment) of what tasks have started."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if not os.readlink(f"/proc/{pid}/cwd").startswith(hall.dir + "/"):
                continue
            with open(f"/proc/{pid}/environ", "rb") as file:
                words = dict(word.split(b"=", 1) for word in file.read().split(b"\0") if b"=" in word)
            if b"PHX_RANK" in words:
                yield int(pid), os.readlink(f"/proc/{pid}/exe"), words
        except OSError:  # it has ended meanwhile
            continue


def ranks(hall, program):
    """The processes of that program of the build, by rank."""
    wanted = os.path.realpath(os.path.join(BUILD, program))
    return {int(words[b"PHX_RANK"]): pid for pid, path, words in processes(hall) if path == wanted}


def ends_untouched(hall, name, at=ALL):
    """Waits for the end of the job, which no attempt but the first has seen."""
    wait_for(f"{name} has ended", lambda: status(hall, name, at).get("terminalState"))
    check_untouched(hall, name, at)
    found = status(hall, name, at)
    check(found["terminalState"] == "Completed", f"{name}: {found}")


def check_untouched(hall, name, at=ALL):
    found = status(hall, name, at)
    check(found["restarts"] == 0 and found["phalanx"]["restartCount"] == 0 and found["phalanx"]["attempt"] == 0,
          f"{name} restarted: {found}")


def steps_said(hall):
    """The numbers of the steps in the output of `train --log-every 1`."""
    found = []
    for path in glob.glob(f"{hall.dir}/m-*/**/log", recursive=True):
        with open(path, encoding="utf-8", errors="replace") as file:
            found += [int(number) for number in re.findall(r"^step (\d+)/", file.read(), re.MULTILINE)]
    return found
