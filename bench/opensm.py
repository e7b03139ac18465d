"""OpenSM as a peer of the fabric's routes: the subnet manager of InfiniBand, on the switches that ibsim simulates.

Used where Debian's opensm and ibsim-utils are installed; nothing is installed here. A switch and a host stand for each
chip. Its engine for tori, torus-2QoS, is asked, with 8 virtual lanes. Times are those of OpenSM's own log: the tables
alone, without the messages that load them into switches, and, for a link that is cut, until the fabric is up again.
"""
import datetime
import glob
import os
import re
import shutil
import subprocess
import time

from cluster import BenchError, Scratch, wait_for

PRELOAD = "/usr/lib/*/umad2sim/libumad2sim.so"
STAMP = "%b %d %H:%M:%S %f"
SECONDS_MAX = 300
CUT = 'Unlink "S-0-0-0"[1]\n'
NAME = "OpenSM torus-2QoS"


def missing():
    """What has to be installed first; None: nothing."""
    where = os.environ.get("PATH", "") + ":/usr/sbin"
    found = shutil.which("ibsim") and shutil.which("opensm", path=where) and glob.glob(PRELOAD)
    return None if found else "opensm and ibsim-utils (apt install opensm ibsim-utils)"


def chips_of(extents):
    x_end, y_end, z_end = extents
    return [(x, y, z) for z in range(z_end) for y in range(y_end) for x in range(x_end)]


def write_fabric(path, extents):
    """In the form of ibnetdiscover: switches S-x-y-z, whose ports 1 to 6 are +x, -x, +y ...; hosts H-x-y-z at 7."""
    with open(path, "w") as file:
        for number, chip in enumerate(chips_of(extents)):
            name = "-".join(map(str, chip))
            print(f'switchguid=0x{0x100000 + number:x}\nSwitch 7 "S-{name}"', file=file)
            for port in range(6):
                to = list(chip)
                to[port // 2] = (to[port // 2] + (1, -1)[port % 2]) % extents[port // 2]
                print(f'[{port + 1}] "S-{to[0]}-{to[1]}-{to[2]}"[{(port ^ 1) + 1}]', file=file)
            print(f'[7] "H-{name}"[1]\n', file=file)
            print(f'caguid=0x{0x200000 + number:x}\nHca 1 "H-{name}"\n[1] "S-{name}"[7]\n', file=file)


def write_settings(path, extents):
    """torus-2QoS.conf(5): which links lead where. Extents of 4 would need more of them."""
    steps = (1, extents[0], extents[0] * extents[1])
    with open(path, "w") as file:
        print("torus", *extents, file=file)
        for axis, step in zip("xyz", steps):
            print(f"{axis}p_link 0x{0x100000:x} 0x{0x100000 + step:x}", file=file)


class OpenSM:
    """The fabric and its manager, until the end of `with`."""

    def __init__(self, scratch, extents):
        self.folder = scratch.join("opensm-" + "x".join(map(str, extents)))
        self.extents, self.log = extents, os.path.join(self.folder, "opensm.log")
        self.read, self.said = 0, []

    def __enter__(self):
        os.makedirs(os.path.join(self.folder, "cache"))
        write_fabric(os.path.join(self.folder, "net"), self.extents)
        write_settings(os.path.join(self.folder, "torus.conf"), self.extents)
        chips = len(chips_of(self.extents))
        sizes = ["-N", str(2 * chips + 2), "-S", str(chips + 2), "-P", str(16 * chips)]
        env = dict(os.environ, IBSIM_SOCKNAME=f"phalanx-{os.getpid()}", PATH=os.environ.get("PATH", "") + ":/usr/sbin")
        quiet = {"cwd": self.folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.simulator = subprocess.Popen(["ibsim", "-s", *sizes, "net"], stdin=subprocess.PIPE, text=True, env=env,
                                          **quiet)
        time.sleep(0.5 + chips / 2000)  # it says nothing once it listens
        env.update(LD_PRELOAD=glob.glob(PRELOAD)[0], OSM_TMP_DIR=self.folder,
                   OSM_CACHE_DIR=os.path.join(self.folder, "cache"))
        self.manager = subprocess.Popen(
            ["opensm", "-e", "-f", self.log, "-R", "torus-2QoS", "--torus_config", "torus.conf", "--qos", "-D", "0x07",
             "-n", "32"], env=env, stdin=subprocess.DEVNULL, **quiet)
        return self

    def __exit__(self, *_):
        for process in (self.manager, self.simulator):
            process.kill()
            process.wait()

    def moments(self, text):
        """When the log says something, in seconds since 1900. Of a log of many megabytes each part is read once."""
        try:
            with open(self.log, "rb") as file:
                file.seek(self.read)
                lines = file.read().splitlines(keepends=True)
        except OSError:
            lines = []
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()
        self.read += sum(map(len, lines))
        self.said += [line for line in lines if b"SUBNET UP" in line or b"torus-2QoS" in line]
        found = [re.match(rb"\w+ \d+ [\d:]+ \d+", line) for line in self.said if text in line]
        return [datetime.datetime.strptime(stamp[0].decode(), STAMP).timestamp() for stamp in found if stamp]

    def await_up(self, count):
        if self.simulator.poll() is not None or self.manager.poll() is not None:
            raise BenchError("ibsim or OpenSM could not start")
        wait_for("OpenSM has the fabric up", lambda: len(self.moments(b"SUBNET UP")) >= count, SECONDS_MAX, 0.2)

    def tables_s(self):
        self.await_up(1)
        begun = self.moments(b"building routing with 'torus-2QoS'")
        ended = self.moments(b"torus-2QoS tables configured")
        if not ended:
            raise BenchError("OpenSM's torus-2QoS refuses the fabric")
        return ended[0] - begun[0]

    def cut_s(self):
        """From a link's cut to a fabric that is up."""
        begun = datetime.datetime.now().replace(year=1900).timestamp()
        self.simulator.stdin.write(CUT)
        self.simulator.stdin.flush()
        self.await_up(2)
        return self.moments(b"SUBNET UP")[1] - begun


def peers(extents=((8, 8, 8),)):
    """{case of bench_fabric: ms of OpenSM} on the same fabrics. One of 4,096 chips is up after minutes."""
    figures = {}
    with Scratch() as scratch:
        for one in extents:
            shape = "x".join(map(str, one))
            with OpenSM(scratch, one) as manager:
                figures[f"tables of {shape}"] = 1000 * manager.tables_s()
                figures[f"a link of {shape} is cut: new tables and proof"] = 1000 * manager.cut_s()
    return figures
