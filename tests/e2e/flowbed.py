"""A flow runtime for end-to-end tests of its Python side, which run on the system's python3 with python3-numpy."""
import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from e2e import BUILD, PHALANX, ROOT, Failed  # noqa: E402

SYSTEM = "/usr/bin/python3"
PR_SET_PDEATHSIG = 1
LIBRARY = os.path.join(BUILD, "libphalanx_flow.so")


def environment():
    """Variables for Python programs on python/phalanx/flow of this build."""
    env = {"PYTHONPATH": os.path.join(ROOT, "python"), "PHX_FLOW_LIB": LIBRARY, "PYTHONDONTWRITEBYTECODE": "1"}
    with open(LIBRARY, "rb") as file:
        if b"libasan" in file.read():  # it has to be loaded before everything else
            path = subprocess.check_output(["gcc", "-print-file-name=libasan.so"], text=True)
            env.update(LD_PRELOAD=path.strip(), ASAN_OPTIONS="detect_leaks=0")
    return env


def enter():
    """Goes on in the system's Python with the variables of this build; skips the script where NumPy is missing."""
    if os.environ.get("PHX_FLOW_LIB") != LIBRARY:
        os.execve(SYSTEM, [SYSTEM] + sys.argv, {**os.environ, **environment()})
    if not importlib.util.find_spec("numpy"):
        print("skip: python3-numpy is not installed")
        sys.exit(77)


class Runtime:
    """`phalanx flow up` in a folder of its own; `address` for clients, `workers` with the process of each worker."""

    def __init__(self, hosts=2, devices=4, islands=1, options=()):
        self.folder = tempfile.mkdtemp(prefix="phalanx-flow-")
        plain = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "PYTHONPATH")}
        self.process = subprocess.Popen(
            [PHALANX, "flow", "up", "--hosts", str(hosts), "--devices", str(devices), "--islands", str(islands),
             "--dir", self.folder, *options], stdout=subprocess.PIPE, text=True, env=plain,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
        self.workers, self.address = [], None
        while self.address is None:
            line = self.process.stdout.readline()
            if not line:
                raise Failed(f"phalanx flow up ended with {self.process.wait()}")
            words = line.split()
            if words[0] == "worker" and words[2] == "process":
                self.workers.append(int(words[3]))
            elif words[0] == "ready":
                self.address = words[1]

    def head(self):
        """The process of the head."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return [int(pid) for pid in file.read().split() if int(pid) not in self.workers][0]

    def kill(self, number):
        """Kills a worker, and returns once `phalanx flow up` has said that it has ended."""
        os.kill(self.workers[number], signal.SIGKILL)
        for line in self.process.stdout:
            if line.startswith(f"worker {number} has ended"):
                return
        raise Failed("phalanx flow up ended with its worker")

    def __enter__(self):
        return self

    def __exit__(self, *_raised):
        self.process.terminate()
        self.process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)
