"""A controller and agents that are processes of our own: each with its own options, environment and name spaces.

    reason = own_world()                            # a network and a table of mounts that nobody else sees
    with Apart(folder, cluster_file) as cluster:
        with Network() as other:                    # another network, to be joined to ours
            cluster.start_agent("m-2", "--no-probes", within=other)
"""
import ctypes
import fcntl
import os
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import threading

from e2e import BUILD, NODES, PHALANX, Failed, wait_for
from localcluster import Cluster

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 0x0001, 0x1000
MERGE_PATCH = "application/merge-patch+json"


def ip(*words, within=None):
    subprocess.run([*(within.enter if within else []), "ip", *words], check=True)


def own_world():
    """Leaves the computer's network and mounts; why it cannot be done, or None."""
    missing = [tool for tool in ("ip", "nsenter", "unshare") if not shutil.which(tool)]
    if missing:
        return f"no {', '.join(missing)}"
    if LIBC.unshare(CLONE_NEWNS | CLONE_NEWNET) < 0:
        return f"no name spaces of our own: {os.strerror(ctypes.get_errno())}"
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    ip("link", "set", "lo", "up")
    return None


class Network:
    """Another network name space; it goes with the process that holds it."""

    def __enter__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self.path = f"/proc/{self.holder.pid}/ns/net"
        self.enter = ["nsenter", f"--net={self.path}"]
        ours = os.readlink("/proc/self/ns/net")
        wait_for("there is another network", lambda: os.readlink(self.path) != ours)
        ip("link", "set", "lo", "up", within=self)
        return self

    def __exit__(self, *exception):
        self.holder.kill()
        self.holder.wait()

    def cable(self, name, subnet):
        """A cable: `name` is our end, with the address SUBNET.1; the other end has SUBNET.2."""
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        for device, host, where in ((name, 1, None), ("eth0", 2, self)):
            ip("address", "add", f"{subnet}.{host}/24", "dev", device, within=where)
            ip("link", "set", device, "up", within=where)


class Lossy:
    """A line to another network that loses a share of all packets, both ways, while `loss` is not 0."""

    def __init__(self, network, name, subnet, seed=1):
        self.loss, self.random = 0.0, random.Random(seed)
        self.lost = self.passed = 0
        self.stop_fd, self.wake_fd = os.pipe()
        self.ends = [self.open_end(None, name, f"{subnet}.1", f"{subnet}.2"),
                     self.open_end(network, name, f"{subnet}.2", f"{subnet}.1")]
        self.thread = threading.Thread(target=self.relay)
        self.thread.start()

    @staticmethod
    def open_end(network, name, address, peer):
        opened = []

        def work():  # a thread may be in another network than its process
            if network:
                with open(network.path) as path:
                    if LIBC.setns(path.fileno(), CLONE_NEWNET) < 0:
                        return
            fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
            fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
            opened.append(fd)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if not opened:
            raise Failed("no line can be made")
        ip("address", "add", address, "peer", peer, "dev", name, within=network)
        ip("link", "set", name, "up", within=network)
        return opened[0]

    def relay(self):
        while True:
            ready = select.select([*self.ends, self.stop_fd], [], [])[0]
            if self.stop_fd in ready:
                return
            for fd in ready:
                packet = os.read(fd, 65536)
                if self.random.random() < self.loss:
                    self.lost += 1
                    continue
                self.passed += 1
                os.write(self.ends[fd == self.ends[0]], packet)

    def close(self):
        os.close(self.wake_fd)
        self.thread.join()
        for fd in [*self.ends, self.stop_fd]:
            os.close(fd)


SENDER = """
import socket, sys, time
line = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    line.sendall(b"x" * 8192)
    time.sleep(0.03)  # less than any line can carry: it loses nothing by itself
"""


class Traffic:
    """Connections that send from another network to us for as long as they are there."""

    def __init__(self, network, address, count):
        self.listener = socket.create_server((address, 0))
        port = self.listener.getsockname()[1]
        self.senders = [subprocess.Popen([*network.enter, "python3", "-c", SENDER, address, str(port)],
                                         stderr=subprocess.DEVNULL) for _ in range(count)]
        self.thread = threading.Thread(target=self.drain)
        self.thread.start()

    def drain(self):
        lines = [self.listener.accept()[0] for _ in self.senders]
        while lines:
            for line in select.select(lines, [], [])[0]:
                try:
                    if line.recv(1 << 20):
                        continue
                except OSError:
                    pass
                lines.remove(line)
                line.close()

    def close(self):
        for sender in self.senders:
            sender.kill()
            sender.wait()
        self.thread.join()
        self.listener.close()


class Apart(Cluster):
    def __init__(self, folder, cluster_file):
        self.folder, self.agents = os.path.realpath(folder), {}
        os.makedirs(self.folder)
        reader, writer = os.pipe()
        self.process = subprocess.Popen(
            [PHALANX, "controller", "--cluster", cluster_file, "--data", os.path.join(self.folder, "controller"),
             "--api", "127.0.0.1:0", "--agents", "0.0.0.0:0", "--insecure-agents", "--ready-fd", str(writer)],
            pass_fds=[writer])
        os.close(writer)
        with open(reader) as ready:
            api, self.agent_port = ready.readline().split()
        self.url = f"http://127.0.0.1:{api}"

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for agent in self.agents.values():
            agent.send_signal(signal.SIGCONT)
            agent.terminate()
        for agent in self.agents.values():
            agent.wait()
        self.stop()
        left = self.left_running()
        for pid in left:
            os.kill(int(pid), signal.SIGKILL)
        if left and exception[0] is None:
            raise Failed(f"still running: {left}")

    def state_of(self, machine):
        return os.path.join(self.folder, "machines", machine)

    def start_agent(self, machine, *options, within=None, controller="127.0.0.1", env=None):
        state = self.state_of(machine)
        os.makedirs(state, exist_ok=True)
        self.agents[machine] = subprocess.Popen(
            [*(within.enter if within else []), PHALANX, "agent", "--machine", machine, "--state", state,
             "--allow-root-tasks",
             "--chips", "4", "--controller", f"{controller}:{self.agent_port}", "--stop-tasks", "--quiet", *options],
            env=dict(os.environ, PATH=BUILD + ":" + os.environ["PATH"], **(env or {})))

    def cordon(self, machines, on):
        for machine in machines:
            self.request("PATCH", f"{NODES}/{machine}", {"spec": {"unschedulable": on}}, MERGE_PATCH)

    def conditions_of(self, machine):
        """What the machine's agent has noted of conditions that last."""
        try:
            with open(os.path.join(self.state_of(machine), "health")) as file:
                return file.read()
        except FileNotFoundError:
            return ""
