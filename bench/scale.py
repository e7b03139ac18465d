"""A controller with thousands of machines: its CPU and memory at rest, a gang of 4,000, and everybody coming back.

One real controller; the machines are simulated in one process (`phalanx agent --simulate`: real connections and real
agents, tasks played). Heartbeats come once a second. The controller's figures are of its own process, from /proc.
"""
import os
import resource
import signal
import subprocess
import time

from cluster import PHALANX, Scratch, Server, jobset, stop, wait_for, BenchError
from report import figure

SIZES = (1000, 4000, 16000)
WATCH_S = 15
GANG = 4000
RACK = 64
PATIENCE_S = 40
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")

CLUSTER = """
apiVersion: phalanx.dev/v1
kind: Cluster
metadata: {name: scale}
spec:
  settings: {lease: 10s, heartbeat: 1s, numberFrom: 0}
  machineNames: m-{n}
  addresses: 10.0.0.1
  pods:
"""


def cluster_text(machines):
    text = CLUSTER
    full, rest = divmod(machines, RACK)
    racks = [f"{{count: {full}, machines: {RACK}, chips: 4}}"] if full else []
    racks += [f"{{machines: {rest}, chips: 4}}"] if rest else []
    return text + f"  - racks: [{', '.join(racks)}]\n"


class Usage:
    """CPU seconds and resident bytes of one process."""

    def __init__(self, pid):
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        self.cpu_s = (int(fields[11]) + int(fields[12])) / TICKS
        self.memory = int(fields[21]) * PAGE
        self.at = time.monotonic()

    def percent_since(self, earlier):
        return 100 * (self.cpu_s - earlier.cpu_s) / (self.at - earlier.at)


class World:
    """The controller and its machines."""

    def __init__(self, scratch, machines):
        self.scratch, self.machines = scratch, machines
        self.log = open(scratch.join(f"scale-{machines}.log"), "w")
        self.file = scratch.join("cluster.yaml")
        with open(self.file, "w") as file:
            file.write(cluster_text(machines))
        self.data = scratch.join(f"data-{machines}")
        self.api, self.agents = "127.0.0.1:0", "127.0.0.1:0"
        self.host = None
        self.start_controller()

    def start_controller(self):
        reader, writer = os.pipe()
        self.controller = subprocess.Popen(
            [PHALANX, "controller", "--cluster", self.file, "--data", self.data, "--api", self.api, "--agents",
             self.agents, "--ready-fd", str(writer)],
            pass_fds=[writer], stdout=self.log, stderr=self.log, start_new_session=True)
        os.close(writer)
        with os.fdopen(reader) as ready:
            ports = ready.readline().split()
        if len(ports) != 2:
            raise BenchError(f"the controller does not start; see {self.log.name}")
        self.api, self.agents = (f"127.0.0.1:{port}" for port in ports)
        self.server = Server(f"http://{self.api}")

    def start_machines(self):
        self.host = subprocess.Popen(
            [PHALANX, "agent", "--simulate", "--machines", str(self.machines), "--name-pattern", "m-{n}", "--chips",
             "4", "--controller", self.agents, "--quiet"], stdout=self.log, stderr=self.log, start_new_session=True)

    def connections(self):
        return len(os.listdir(f"/proc/{self.controller.pid}/fd"))

    def usage(self):
        return Usage(self.controller.pid)

    def wait_all(self, since):
        """Every machine has a connection, and its hello is in the log: one record each since record `since`."""
        wait_for(f"{self.machines} machines do not connect",
                 lambda: self.connections() >= self.machines and self.server.version() >= since + self.machines,
                 PATIENCE_S, 0.02)

    def close(self):
        if self.host:
            self.host.kill()
            self.host.wait()
        stop(self.controller, 10)
        self.log.close()


def measure_start(world, report, label):
    before, start, used = world.server.version(), time.monotonic(), world.usage()
    world.start_machines()
    world.wait_all(before)
    report.row(figure("scale", f"{label}: all connected", time.monotonic() - start, "s"))
    report.row(figure("scale", f"{label}: controller CPU for connecting all", world.usage().cpu_s - used.cpu_s, "s"))


def measure_rest(world, report, label):
    time.sleep(2)
    before = world.usage()
    time.sleep(WATCH_S)
    after = world.usage()
    report.row(figure("scale", f"{label}: controller CPU at 1 Hz heartbeats", after.percent_since(before), "% of core"))
    report.row(figure("scale", f"{label}: controller memory", after.memory / 1e6, "MB"))


def measure_gang(world, report, label, tasks):
    """A gang whose tasks are played: all of them have said that they run."""
    document = jobset("gang", ["none"], tasks)
    server = world.server

    def running():
        status = server.status("gang")
        if status.get("terminalState"):
            raise BenchError(f"the gang has ended: {status['conditions'][-1]['message']}")
        return status.get("replicatedJobsStatus", [{}])[0].get("ready") == 1

    server.version()
    used, start = world.usage(), time.monotonic()
    server.create(document)
    posted = time.monotonic() - start
    wait_for("the gang does not run", running, PATIENCE_S, 0.01)
    spent, cpu_s = time.monotonic() - start, world.usage().cpu_s - used.cpu_s
    report.row(figure("scale", f"{label}: gang of {tasks}, apply to its answer", posted * 1000, "ms"))
    report.row(figure("scale", f"{label}: gang of {tasks}, apply to all running", spent * 1000, "ms"))
    report.row(figure("scale", f"{label}: controller CPU for that gang", cpu_s * 1000, "ms"))
    server.delete("gang")


def measure_restart(world, report, label):
    """kill -9 of the controller; the machines find the new one by themselves."""
    time.sleep(1)
    before = world.server.version()
    start = time.monotonic()
    world.controller.send_signal(signal.SIGKILL)
    world.controller.wait()
    world.start_controller()
    listening = time.monotonic() - start
    world.wait_all(before)
    report.row(figure("scale", f"{label}: controller killed, listens again", listening, "s"))
    report.row(figure("scale", f"{label}: all back after kill -9 of the controller", time.monotonic() - start, "s"))
    report.row(figure("scale", f"{label}: controller CPU for starting again", world.usage().cpu_s, "s"))


def run(report):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for machines in SIZES:
        label = f"{machines} machines"
        if machines + 100 > limit:
            report.note(f"{label}: left out, a process may only open {limit} files here")
            continue
        with Scratch() as scratch:
            world = World(scratch, machines)
            try:
                measure_start(world, report, label)
                measure_rest(world, report, label)
                measure_gang(world, report, label, min(GANG, machines))
                measure_restart(world, report, label)
            finally:
                world.close()
