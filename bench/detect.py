"""What a probe sees -> the fault object -> the job on other machines, for a few classes of faults.

Real agents whose probes look below a fake root of each machine, every 100 ms; what happens there is written by this
process. The fault's time is the controller's stamp of its last occurrence (its machine is quarantined in the same
step), the job's is that of its restart record: every task of the new attempt runs. Limit: the period itself; a fault
that comes at any moment waits half of it on average.
"""
import json
import os
import time

from cluster import LocalCluster, Scratch, jobset, wait_for
from recover import parse_time
from report import figure, median, quantile

# Fewer than the sixteen restarts in a minute that make a JobSet wait.
MACHINES, RANKS, REPETITIONS, PERIOD_MS = 6, 4, 14, 100
FAULTS = "/apis/phalanx.dev/v1/faults"

CLUSTER = f"""
apiVersion: phalanx.dev/v1
kind: Cluster
metadata: {{name: detect}}
spec:
  settings: {{lease: 20s, heartbeat: 1s}}
  machineNames: m-{{n}}
  addresses: 127.0.5.1
  pods:
  - racks:
    - machines: {MACHINES}
      chips: 4
"""
SETTINGS = "probes:\n" + "".join(
    f"  {probe}: {{period: {PERIOD_MS}ms{more}}}\n"
    for probe, more in (("kmsg", ", userspace: true"), ("edac", ""), ("infiniband", "")))
# No breaker, as machines are repaired at once; a port that goes down is fatal at once.
TABLE = {"apiVersion": "phalanx.dev/v1", "kind": "FaultTable", "metadata": {"name": "default"},
         "spec": {"breaker": {"perHour": 100, "total": 100},
                  "codes": [{"code": "ib/port-down", "level": "Separate", "severity": "high"}]}}


class Roots:
    """What each machine looks like."""

    def __init__(self, scratch):
        self.path = scratch.join("roots")
        for i in range(1, MACHINES + 1):
            self.write(f"m-{i}", "dev/kmsg", "")
            self.repair(f"m-{i}")

    def write(self, machine, path, text, mode="w"):
        path = os.path.join(self.path, machine, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        target = path if mode == "a" else path + ".new"  # never half of it
        with open(target, mode) as file:
            file.write(text)
        if target != path:
            os.rename(target, path)

    def repair(self, machine):
        port = "sys/class/infiniband/mlx5_0/ports/1/"
        self.write(machine, port + "state", "4: ACTIVE\n")
        self.write(machine, port + "phys_state", "5: LinkUp\n")
        for i in range(REPETITIONS):
            self.write(machine, f"sys/devices/system/edac/mc/mc{i}/ue_count", "0\n")

    def xid(self, machine, number):
        self.write(machine, "dev/kmsg", f"3,{number},{number},-;NVRM: Xid (PCI:0000:{number % 256:02x}:00): 79, "
                   "GPU has fallen off the bus.\n", "a")

    def memory(self, machine, number):
        # Another controller each time: equal events of one place within seconds are one.
        self.write(machine, f"sys/devices/system/edac/mc/mc{number}/ue_count", "1\n")

    def port(self, machine, number):
        del number
        self.write(machine, "sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n")


def open_faults(server, machine):
    query = f"{FAULTS}?fieldSelector=spec.machine%3D{machine},status.state%3DOpen"
    return server.get(query)["items"]


def repaired(server, roots, machine):
    roots.repair(machine)
    for fault in open_faults(server, machine):
        server.call("DELETE", f"{FAULTS}/{fault['metadata']['name']}")
    return server.get(f"/api/v1/nodes/{machine}")["status"]["phalanx"]["isolation"] == "Healthy"


def repeat(cluster, roots, name, break_it, number):
    """Milliseconds to the fault object, and until every task runs again."""
    server = cluster.server
    machine = cluster.machines_of()[number % RANKS]
    began = time.time()
    break_it(machine, number)
    fault = wait_for("no fault", lambda: open_faults(server, machine), 20)[0]

    def restarted():
        restarts = server.status(name)["phalanx"].get("restarts", [])
        news = [r for r in restarts if "startedTime" in r and parse_time(r["startedTime"]) > began]
        return news[-1] if news else None

    record = wait_for("the gang does not come back", restarted, 20)
    wait_for("the machine is not repaired", lambda: repaired(server, roots, machine), 20, PERIOD_MS / 1000)
    return ((parse_time(fault["status"]["lastSeen"]) - began) * 1000,
            (parse_time(record["startedTime"]) - began) * 1000)


def measure(report, cluster, roots, name, case, break_it):
    server = cluster.server
    server.create(jobset(name, ["tail", "-f", "/dev/null"], RANKS, spec={"failurePolicy": {"maxRestarts": 100}}))
    wait_for("the gang does not run", lambda: server.status(name).get("phalanx", {}).get("state") == "Running", 30)
    times = [repeat(cluster, roots, name, break_it, number) for number in range(REPETITIONS)]
    faults, jobs = [t[0] for t in times], [t[1] for t in times]
    report.row(figure("detect", f"{case} -> fault, machine quarantined", median(faults), "ms", PERIOD_MS))
    report.row(figure("detect", f"{case} -> fault, p99", quantile(faults, 0.99), "ms", PERIOD_MS))
    report.row(figure("detect", f"{case} -> gang of {RANKS} runs elsewhere", median(jobs), "ms", PERIOD_MS))
    server.delete(name)
    wait_for("the gang does not go", lambda: server.gone(name), 30)


def run(report):
    with Scratch() as scratch:
        roots = Roots(scratch)
        paths = {}
        for name, text in (("cluster.yaml", CLUSTER), ("settings.yaml", SETTINGS)):
            paths[name] = scratch.join(name)
            with open(paths[name], "w") as file:
                file.write(text)
        with LocalCluster(scratch, paths["cluster.yaml"], "--probe-root", roots.path, "--probe-settings",
                          paths["settings.yaml"]) as cluster:
            server = cluster.server
            cluster.wait_ready(MACHINES)
            server.call("POST", "/apis/phalanx.dev/v1/faulttables", json.dumps(TABLE))
            for i in range(1, MACHINES + 1):
                seen = os.path.join(cluster.folder, f"machines/m-{i}/health")
                wait_for(f"m-{i} was not looked at", lambda: os.path.exists(seen), 30)
            for number, (case, break_it) in enumerate((("xid 79 in the kernel log", roots.xid),
                                                       ("uncorrected memory error", roots.memory),
                                                       ("InfiniBand port down", roots.port))):
                measure(report, cluster, roots, f"gang-{number}", case, break_it)
