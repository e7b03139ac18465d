"""10,000 lines a second in the kernel logs of six machines, and what the cluster notices of it.

The same is measured twice, without the storm and in it, and printed side by side (limit: without): how long each turn
of the controller's loop is busy, a no-op job from POST to its end, records in the log, memory of the controller and of
the agents, and an XID 79 in the middle of it -> fault and quarantine -> the job is told. Of the storm's lines a third
are equal XIDs that a program causes, a third tell of killed processes with a new name each, a third mean nothing; none
of them isolates a machine. So every line is read, and what is told of them must not grow with their number.
"""
import multiprocessing
import re
import time

from cluster import BenchError, Fifo, jobset, task, wait_for
from detect import Case, PERIOD_MS, RANKS, TABLE, repair
from report import figure, median, quantile
from watched import probe_settings, watched_cluster

# Both times fewer than the sixteen restarts in a minute that make a JobSet wait.
MACHINES, LINES_PER_S, WINDOW_S, REPETITIONS = 6, 12000, 8, 7
TICK_S = 0.01


def rain(hall, written):
    """Lines for ever; `written` counts them."""
    count, began = 0, time.monotonic()
    while True:
        due = int((time.monotonic() - began) * LINES_PER_S / MACHINES)
        for name in hall.names:
            hall.log(name, *(line(number) for number in range(count, due)))
        written.value += (due - count) * MACHINES
        count = due
        time.sleep(TICK_S)


def line(number):
    if number % 3 == 0:
        return f"NVRM: Xid (PCI:0000:{number % 8:02x}:00): 45, pid=1, name=python3, Ch 00000010"
    if number % 3 == 1:
        return f"Out of memory: Killed process {number} (rank-{number}) total-vm:1kB, anon-rss:1kB, file-rss:0kB"
    return f"usb 1-1: new high-speed USB device number {number % 128} using xhci_hcd"


def turns(server):
    """Upper limit in seconds -> how many turns of the controller's loop were busy for no longer."""
    text = server.call("GET", "/metrics").decode()
    found = re.findall(r'^phalanx_loop_turn_seconds_bucket\{le="([^"]+)"\} (\d+)', text, re.M)
    return {float(limit): int(count) for limit, count in found}


def p99_ms(before, after):
    """The upper limit of the bucket that holds the 99th of a hundred turns between the two."""
    counts = sorted((limit, after[limit] - before[limit]) for limit in after)
    return next(limit for limit, count in counts if count >= 0.99 * counts[-1][1]) * 1000


class Memory:
    """Of the controller and of the largest agent, in MiB."""

    def __init__(self, cluster):
        self.controller, self.agents = [], []
        for pid in cluster.scratch.processes():
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if len(words) > 1 and words[1] in (b"controller", b"agent"):
                (self.agents if words[1] == b"agent" else self.controller).append(pid)
        if len(self.controller) != 1 or len(self.agents) != MACHINES:
            raise BenchError("the processes of the cluster are not found")
        for pid in self.controller + self.agents:  # the most is counted from now on
            with open(f"/proc/{pid}/clear_refs", "w") as file:
                file.write("5")

    def most(self, pids):
        kilobytes = []
        for pid in pids:
            with open(f"/proc/{pid}/status") as file:
                kilobytes.append(int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)))
        return max(kilobytes) / 1024


def run_nothing(server, name):
    """A job of one `true`: milliseconds from POST to its end."""
    began = time.monotonic()
    server.create(jobset(name, ["true"], chips=0))
    wait_for(f"{name} does not end", lambda: server.completed(name), 20, 0.002)
    took = (time.monotonic() - began) * 1000
    server.delete(name)
    return took


def window(cluster, hall, stops, phase):
    """What is to be compared: name -> (value, unit)."""
    server, memory, jobs = cluster.server, Memory(cluster), []
    before, records, began = turns(server), server.version(), time.monotonic()
    while time.monotonic() < began + WINDOW_S:
        jobs.append(run_nothing(server, f"nothing-{phase}-{len(jobs)}"))
    took, after = time.monotonic() - began, turns(server)
    case = Case(cluster, "gang", stops)
    for _ in range(REPETITIONS):
        machine = case.repeat(lambda m, n: hall.xid(m, f"0000:{0x20 + n:02x}:00"), RANKS)
        wait_for("the machine is not repaired", lambda bad=machine: repair(cluster, hall, bad), 20, 0.1)
    return {
        "turn of the loop, p99 at most": (p99_ms(before, after), "ms"),
        "no-op job": (median(jobs), "ms"),
        "no-op job, p99": (quantile(jobs, 0.99), "ms"),
        "records in the log beside the jobs'": ((server.version() - records) / took, "1/s"),
        "xid 79 -> fault, quarantined": (median(case.faults), "ms"),
        "xid 79 -> fault, quarantined, p99": (quantile(case.faults, 0.99), "ms"),
        "xid 79 -> job is told, p99": (quantile(case.notices, 0.99), "ms"),
        "controller, most memory": (memory.most(memory.controller), "MiB"),
        "agent, most memory": (memory.most(memory.agents), "MiB"),
    }


def run(report):
    settings = probe_settings(("kmsg",), PERIOD_MS)
    with watched_cluster(MACHINES, "127.0.7.1", settings, TABLE) as (cluster, hall):
        stops = Fifo(cluster.scratch, "stops", "=q")
        server = cluster.server
        server.create(jobset("gang", [task("notice"), stops.path], RANKS, spec={"failurePolicy": {"maxRestarts": 100}}))
        wait_for("the gang does not run",
                 lambda: server.status("gang").get("phalanx", {}).get("state") == "Running", 30)
        calm = window(cluster, hall, stops, "calm")
        written, began = multiprocessing.Value("q", 0, lock=False), time.monotonic()
        storm = multiprocessing.Process(target=rain, args=(hall, written), daemon=True)
        storm.start()
        try:
            wet = window(cluster, hall, stops, "storm")
            rate = written.value / (time.monotonic() - began)
        finally:
            storm.terminate()
            storm.join()
        report.row(figure("storm", f"lines written to {MACHINES} kernel logs", rate, "1/s", more_is_better=True))
        for name, (value, unit) in wet.items():
            report.row(figure("storm", name, value, unit, calm[name][0]))
        stops.close()
