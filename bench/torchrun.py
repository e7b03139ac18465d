"""torchrun as a peer: elastic agents (c10d rendezvous, default settings) with DDP workers over gloo on loopback.

Used where Debian's python3-torch is installed. Under Python 3.11 its launcher fails with the default of --redirects and
--tee (a flag of value 0 is not found in its enumeration), so both are given.
"""
import os
import signal
import socket
import subprocess

from cluster import ROOT, BenchError
from stamps import Stamps

PYTHON = "/usr/bin/python3"
WORKERS = 4
PATIENCE_S = 150


def installed():
    return os.path.exists(PYTHON) and not subprocess.run([PYTHON, "-c", "import torch.distributed"],
                                                         stderr=subprocess.DEVNULL).returncode


class Torchrun:
    """`agents` of them, each with WORKERS / agents workers."""

    def __init__(self, scratch, name, agents):
        self.folder, self.agents = scratch.join(name), []
        os.makedirs(self.folder)
        self.stamps = Stamps(os.path.join(self.folder, "stamps"))
        self.log = open(os.path.join(self.folder, "log"), "w")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.endpoint = f"127.0.0.1:{probe.getsockname()[1]}"
        for number in range(agents):
            self.agents.append(self.start_agent(agents, number))

    def start_agent(self, agents, number):
        command = [PYTHON, "-m", "torch.distributed.run", "--nnodes", f"{max(1, agents - 1)}:{agents}",
                   "--nproc_per_node", str(WORKERS // agents), "--max_restarts", "1000",
                   "--redirects", "1", "--tee", "2",
                   "--log_dir", os.path.join(self.folder, f"logs-{number}"), "--rdzv_id", "bench",
                   "--rdzv_backend", "c10d", "--rdzv_endpoint", self.endpoint,
                   "--rdzv_conf", f"is_host={'true' if number == 0 else 'false'}",
                   os.path.join(ROOT, "bench", "tasks", "ddp.py")]
        environment = dict(os.environ, STAMPS=self.stamps.path, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo",
                           PYTHONWARNINGS="ignore")
        return subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log, cwd=self.folder,
                                start_new_session=True)

    def end(self):
        for agent in self.agents:
            try:
                os.killpg(agent.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            agent.wait()
        for pid in self.stamps.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.log.close()


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def process_lost(scratch, times):
    """Seconds from the loss of one of four workers of one agent to the next step of all, `times` times."""
    peer = Torchrun(scratch, "torchrun-process", 1)
    try:
        found = []
        for _ in range(times):
            victim = peer.stamps.wait_ranks(WORKERS, PATIENCE_S)[1]
            found.append(peer.stamps.recovery_s([victim], WORKERS, PATIENCE_S))
        return found
    finally:
        peer.end()


def machine_lost(scratch):
    """Seconds from the loss of one of four agents with its worker to the next step of the three others."""
    peer = Torchrun(scratch, "torchrun-machine", WORKERS)
    try:
        workers = peer.stamps.wait_ranks(WORKERS, PATIENCE_S).values()
        agent = peer.agents[-1].pid
        victims = [pid for pid in children(agent) if pid in workers]
        if not victims:
            raise BenchError("the agent has no worker")
        return peer.stamps.recovery_s([agent, *victims], WORKERS - 1, PATIENCE_S)
    finally:
        peer.end()
