"""What happens to a machine -> fault object, machine's quarantine -> the job is told -> it runs elsewhere.

Real agents whose probes look below a made-up root of each machine every 100 ms; what happens there is written by this
process. The fault's time is the controller's stamp of its last occurrence; its machine is quarantined in the same
step (which is checked). The job is told when the first of its tasks gets SIGTERM, by the task's own clock. It runs
again at the time of its restart's record: every task of the new attempt runs. Limit: the period itself; a fault that
comes at any moment waits half of it on average. Behind the probes: a fault that another system reports, and a machine
whose every process is killed, so that its connections break.
"""
import json
import random
import time

from cluster import BenchError, Fifo, jobset, parse_time, task, wait_for
from report import figure, median, quantile
from watched import probe_settings, watched_cluster

from hall import FAULTS, NO_BREAKER, fault_table, isolation, open_faults

# Fewer than the sixteen restarts in a minute that make a JobSet wait.
MACHINES, RANKS, REPETITIONS, PERIOD_MS = 6, 4, 14, 100
PATIENCE_S = 20
# A port that goes down is fatal at once.
TABLE = fault_table(breaker=NO_BREAKER,
                    codes=[{"code": "ib/port-down", "level": "Separate", "severity": "high"}])


def repair(cluster, hall, machine):
    """True once nothing is wrong with it any more."""
    hall.port(machine, up=True)
    for controller in range(REPETITIONS):
        hall.memory_errors(machine, controller, 0)
    for fault in open_faults(cluster.server, machine):
        cluster.server.call("DELETE", f"{FAULTS}/{fault['metadata']['name']}")
    return isolation(cluster.server, machine) == "Healthy"


def report_fault(cluster, machine, number):
    fault = {"apiVersion": "phalanx.dev/v1", "kind": "Fault", "metadata": {"generateName": "bench-"},
             "spec": {"machine": machine, "code": "public/1", "place": f"pump/{number}", "severity": "critical"}}
    cluster.server.call("POST", FAULTS, json.dumps(fault))


class Case:
    """One gang, to which the same happens again and again."""

    def __init__(self, cluster, name, stops):
        self.cluster, self.server, self.name, self.stops = cluster, cluster.server, name, stops
        self.faults, self.notices, self.jobs = [], [], []
        self.moments = random.Random(1)  # of the probe's period

    def restart_after(self, began):
        news = [r for r in self.server.restarts(self.name)
                if "startedTime" in r and parse_time(r["startedTime"]) > began]
        return news[-1] if news else None

    def repeat(self, break_it, survivors):
        """`break_it` hits the machine of one of the ranks; `survivors` of the gang are told to stop."""
        machine = self.cluster.machines_of()[len(self.jobs) % RANKS]
        time.sleep(self.moments.uniform(0, PERIOD_MS / 1000))
        began = time.time()
        noticed = break_it(machine, len(self.jobs))
        record = wait_for("the gang does not come back", lambda: self.restart_after(began), PATIENCE_S)
        stamps = self.stops.collect(survivors, PATIENCE_S)
        if noticed is None:  # a fault is the cause, and its machine is out of service in the same step
            fault = wait_for("no fault", lambda: open_faults(self.server, machine), PATIENCE_S)[0]
            if fault["status"]["action"] != "Evicted":
                raise BenchError(f"the fault's action is {fault['status']['action']}")
            seen = parse_time(fault["status"]["lastSeen"])
        else:
            began = noticed
            seen = wait_for("no word of the loss", lambda: self.server.fault_time(self.name, record["attempt"]), 5)
        self.faults.append((seen - began) * 1000)
        self.notices.append((min(stamp for stamp, in stamps) / 1e9 - began) * 1000)
        self.jobs.append((parse_time(record["startedTime"]) - began) * 1000)
        return machine

    def figures(self, report, what, seen, limit_ms):
        report.row(figure("detect", f"{what} -> {seen}", median(self.faults), "ms", limit_ms))
        report.row(figure("detect", f"{what} -> {seen}, p99", quantile(self.faults, 0.99), "ms", limit_ms))
        report.row(figure("detect", f"{what} -> job is told", median(self.notices), "ms", limit_ms))
        report.row(figure("detect", f"{what} -> job is told, p99", quantile(self.notices, 0.99), "ms", limit_ms))
        report.row(figure("detect", f"{what} -> gang of {RANKS} runs elsewhere", median(self.jobs), "ms", limit_ms))


def measure(report, cluster, hall, stops, number, what, break_it, broken=False):
    name, server = f"gang-{number}", cluster.server
    server.create(jobset(name, [task("notice"), stops.path], RANKS, spec={"failurePolicy": {"maxRestarts": 100}}))
    wait_for("the gang does not run", lambda: server.status(name).get("phalanx", {}).get("state") == "Running", 30)
    case = Case(cluster, name, stops)
    for _ in range(REPETITIONS):
        machine = case.repeat(break_it, RANKS - broken)
        wait_for("the machine is not repaired", lambda bad=machine: repair(cluster, hall, bad), PATIENCE_S, 0.1)
        if broken:
            cluster.wait_ready(MACHINES)
    if broken:
        case.figures(report, what, "loss noticed", None)
    else:
        case.figures(report, what, "fault, quarantined", PERIOD_MS if number < 3 else None)
    server.delete(name)
    stops.collect(RANKS, PATIENCE_S)
    wait_for("the gang does not go", lambda: server.gone(name), 30)


def run(report):
    probes = probe_settings(("kmsg", "edac", "infiniband"), PERIOD_MS)
    with watched_cluster(MACHINES, "127.0.5.1", probes, TABLE, "--revive", "100ms") as (cluster, hall):
        for machine in hall.names:  # equal events at one place within seconds are one: so another place each time
            for controller in range(REPETITIONS):
                hall.memory_errors(machine, controller, 0)
        time.sleep(3 * PERIOD_MS / 1000)  # counters count from their first look
        stops = Fifo(cluster.scratch, "stops", "=q")
        cases = (
            ("xid 79 in the kernel log", lambda m, n: hall.xid(m, f"0000:{n:02x}:00")),
            ("uncorrected memory error", lambda m, n: hall.memory_errors(m, n, 1)),
            ("InfiniBand port down", lambda m, n: hall.port(m, up=False)),
            ("reported by another system", lambda m, n: report_fault(cluster, m, n)))
        for number, (what, break_it) in enumerate(cases):
            measure(report, cluster, hall, stops, number, what, break_it)
        measure(report, cluster, hall, stops, len(cases), "broken connection",
                lambda m, n: cluster.kill_machine(m)[1], broken=True)
        stops.close()
