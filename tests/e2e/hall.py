"""A hall of made-up machines: a folder with a root for each, below which the probes of its agent look.

    hall = Hall(folder, numbered(6), "probes: {kmsg: {period: 200ms}}\\n")
    ... phalanx up *hall.options ...
    hall.wait_seen(cluster.folder, wait_for)        # what is written from here on is news
    hall.xid("m-2")
"""
import os
import time

FAULTS = "/apis/phalanx.dev/v1/faults"
FAULT_TABLES = "/apis/phalanx.dev/v1/faulttables"
XID_79 = "NVRM: Xid (PCI:{gpu}): 79, pid=1, GPU has fallen off the bus."


def numbered(count):
    """The machines of a cluster file with machineNames: m-{n}."""
    return [f"m-{i}" for i in range(1, count + 1)]


def fault_table(**spec):
    return {"apiVersion": "phalanx.dev/v1", "kind": "FaultTable", "metadata": {"name": "default"}, "spec": spec}


# Machines that are repaired at once need no breaker.
NO_BREAKER = {"perHour": 100, "total": 100}


class Hall:
    def __init__(self, folder, names, settings):
        self.folder, self.names, self.lines, self.downs = folder, names, 0, {}
        for name in self.names:
            self.write(name, "dev/kmsg", "")
            self.write(name, "proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n")
            self.port(name, up=True)
        self.write("", "settings.yaml", settings)
        self.settings = os.path.join(folder, "settings.yaml")
        self.options = ["--probe-root", folder, "--probe-settings", self.settings]

    def root(self, machine):
        return os.path.join(self.folder, machine)

    def write(self, machine, path, text):
        """The whole file at once: nobody reads half of it."""
        path = os.path.join(self.folder, machine, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w") as file:
            file.write(text)
        os.rename(path + ".new", path)

    def log(self, machine, *texts):
        """Lines of the kernel itself, at the end of the machine's log."""
        first, now_us = self.lines, time.monotonic_ns() // 1000
        self.lines += len(texts)
        lines = "".join(f"3,{first + i},{now_us},-;{text}\n" for i, text in enumerate(texts))
        with open(os.path.join(self.folder, machine, "dev/kmsg"), "a") as file:
            file.write(lines)

    def xid(self, machine, gpu="0000:9b:00"):
        self.log(machine, XID_79.format(gpu=gpu))

    def port(self, machine, up):
        below = "sys/class/infiniband/mlx5_0/ports/1/"
        self.downs[machine] = self.downs.get(machine, 0) + (not up)
        self.write(machine, below + "counters/link_downed", f"{self.downs[machine]}\n")
        self.write(machine, below + "phys_state", "5: LinkUp\n" if up else "3: Disabled\n")
        self.write(machine, below + "rate", "400 Gb/sec (4X NDR)\n")
        self.write(machine, below + "link_layer", "InfiniBand\n")
        self.write(machine, below + "state", "4: ACTIVE\n" if up else "1: DOWN\n")

    def memory_errors(self, machine, controller, uncorrected):
        self.write(machine, f"sys/devices/system/edac/mc/mc{controller}/ue_count", f"{uncorrected}\n")

    def wait_seen(self, data, wait_for):
        """The probes have had their first look, in a cluster whose files are below `data`."""
        for name in self.names:
            state = os.path.join(data, "machines", name, "health")
            wait_for(f"{name} was looked at", lambda path=state: os.path.exists(path), 60)


def open_faults(server, machine, code=None):
    """Those of the machine; `server` answers get(path)."""
    query = f"{FAULTS}?fieldSelector=spec.machine%3D{machine},status.state%3DOpen"
    items = server.get(query).get("items", [])
    return [fault for fault in items if code is None or fault["spec"]["code"] == code]


def isolation(server, machine):
    return server.get(f"/api/v1/nodes/{machine}")["status"]["phalanx"]["isolation"]


def is_out(server, machine):
    """It is kept from new work, and is being repaired as soon as it is idle."""
    return isolation(server, machine) not in ("Healthy", "Suspect", "Returned")
