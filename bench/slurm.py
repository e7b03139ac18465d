"""Slurm as a peer: a controller, a munge of its own and one slurmd for each machine, all on this computer's loopback.

Used where Debian's slurm-wlm and munge are installed and we are root; nothing is installed here. The configuration is
tuned for speed: no accounting, no cgroups, scheduling at once.
"""
import contextlib
import os
import shutil
import socket
import subprocess

from cluster import ROOT, BenchError, stop, wait_for

PROGRAMS = ("slurmctld", "slurmd", "munged", "mungekey", "sbatch", "srun", "squeue", "sinfo", "scancel")

CONFIGURATION = """
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={port}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SlurmdTimeout=10
MessageTimeout=5
TCPTimeout=1
KillWait=2
RequeueExit=1-255
CompleteWait=0
EpilogMsgTime=1
SlurmctldDebug=error
SlurmdDebug=error
NodeName=n[1-{count}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=8 RealMemory=1000
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=NO
"""


class Slurm:
    def __init__(self, scratch, count):
        self.count = count
        self.folder = scratch.join("slurm")
        self.processes = []
        self.daemons = {}  # node -> its slurmd
        self.environment = dict(os.environ, SLURM_CONF=os.path.join(self.folder, "slurm.conf"))

    @staticmethod
    def installed():
        path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
        return os.geteuid() == 0 and all(shutil.which(program, path=path) for program in PROGRAMS)

    @classmethod
    @contextlib.contextmanager
    def start_if_installed(cls, scratch, count, report):
        """Gives a running Slurm, or None when it is not here."""
        if not cls.installed():
            report.note("no peer: slurm-wlm and munge are not installed, or this is not root")
            yield None
            return
        peer = cls(scratch, count)
        try:
            peer.start()
        except (BenchError, OSError, subprocess.SubprocessError) as error:
            report.note(f"no peer: Slurm does not start: {error}")
            peer.end()
            yield None
            return
        try:
            yield peer
        finally:
            peer.end()

    def spawn(self, *command, node=None):
        environment = dict(self.environment, PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        with open(os.path.join(self.folder, "daemons.log"), "ab") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=self.folder,
                                       start_new_session=True)
        self.processes.append(process)
        if node:
            self.daemons[node] = process.pid

    def start(self):
        host, first = socket.gethostname().split(".")[0], 20001
        os.makedirs(os.path.join(self.folder, "state"), mode=0o700)
        os.chmod(self.folder, 0o755)
        for number in range(self.count):
            os.makedirs(os.path.join(self.folder, f"spool-n{number + 1}"))
        with open(os.path.join(self.folder, "slurm.conf"), "w") as file:
            file.write(CONFIGURATION.format(host=host, port=first - 1, folder=self.folder, count=self.count,
                                            first=first, last=first + self.count - 1))
        key = os.path.join(self.folder, "munge.key")
        subprocess.run(["/usr/sbin/mungekey", "--create", "--keyfile", key], check=True, capture_output=True)
        munge_socket = os.path.join(self.folder, "munge.socket")
        files = {name: os.path.join(self.folder, f"munged.{name}") for name in ("pid", "log", "seed")}
        self.spawn("munged", "--foreground", "--force", "--key-file", key, "--socket", munge_socket,
                   *(word for name, path in files.items() for word in (f"--{name}-file", path)))
        wait_for("munged is not up", lambda: os.path.exists(munge_socket), 10)
        self.spawn("slurmctld", "-D", "-c", "-f", self.environment["SLURM_CONF"])
        for number in range(self.count):
            node = f"n{number + 1}"
            self.spawn("slurmd", "-D", "-f", self.environment["SLURM_CONF"], "-N", node, node=node)
        wait_for("its nodes are not idle", self.all_idle, 40, 0.5)

    def all_idle(self):
        shown = subprocess.run(["sinfo", "-h", "-o", "%D %t"], env=self.environment, capture_output=True, text=True)
        return f"{self.count} idle" in [line.strip() for line in shown.stdout.splitlines()]

    def command(self, *command):
        return subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, cwd=self.folder)

    def start_gang(self, way, count, command):
        """One task on each of `count` nodes, by `srun`, or by `sbatch` of a script that calls srun."""
        if way == "srun":
            return self.command("srun", "-N", str(count), "-n", str(count), *command)
        return self.command("sbatch", "-N", str(count), "-n", str(count), "-o", "/dev/null", "--wrap",
                            "srun " + " ".join(command))

    def start_requeued(self, count, stamps):
        """A gang whose tasks write STAMPS, started again whenever one of them ends."""
        script = os.path.join(ROOT, "bench", "tasks", "tick.py")
        return self.command("sbatch", "--requeue", "-N", str(count), "-n", str(count), "-o", "/dev/null",
                            f"--export=ALL,STAMPS={stamps}", "--wrap", f"srun -K1 /usr/bin/python3 {script}")

    def machine_of(self, task):
        """The processes of the task's machine: its slurmd, the step's daemon and the task."""
        with open(f"/proc/{task}/environ") as file:
            node = dict(word.split("=", 1) for word in file.read().split("\0") if "=" in word)["SLURMD_NODENAME"]
        with open(f"/proc/{task}/stat") as file:
            step_daemon = int(file.read().rsplit(")", 1)[1].split()[1])
        return [self.daemons[node], step_daemon, task]

    def finish(self, process):
        process.wait(60)
        wait_for("its queue does not empty", lambda: self.queue_empty() and self.all_idle(), 60, 0.1)

    def queue_empty(self):
        shown = subprocess.run(["squeue", "-h", "-o", "%i"], env=self.environment, capture_output=True, text=True)
        return shown.returncode == 0 and not shown.stdout.strip()

    def end(self):
        for process in reversed(self.processes):
            stop(process, 5)
        self.processes = []
