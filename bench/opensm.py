"""OpenSM as a peer of the fabric's routes: the subnet manager of InfiniBand, on the switches that ibsim simulates.

Used where Debian's opensm and ibsim-utils are installed; nothing is installed here. A switch and a host stand for each
chip. Its engine for tori, torus-2QoS, is asked, with 8 virtual lanes. Times are those of OpenSM's own log: the tables
alone, without the messages that load them into switches, and, for a link that is cut, until the fabric is up again.
"""
import contextlib
import datetime
import glob
import os
import re
import shutil
import subprocess

from cluster import BenchError, Scratch, wait_for

SEARCH = os.environ.get("PATH", "") + ":/usr/sbin"
PRELOAD = "/usr/lib/*/umad2sim/libumad2sim.so"
STAMP = "%b %d %H:%M:%S %f"
SECONDS_MAX = 1800
SHAPES = os.environ.get("OPENSM_SHAPES", "8x8x8").split(",")  # a fabric of 16x16x16 is up after minutes
CUT = 'Unlink "S-0-0-0"[1]\n'
NAME, BENCH = "OpenSM torus-2QoS", "fabric"


def missing():
    """What has to be installed first; None: nothing."""
    found = shutil.which("ibsim") and shutil.which("opensm", path=SEARCH) and glob.glob(PRELOAD)
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


def read(path):
    with open(path, "rb") as file:
        return file.read()


class OpenSM:
    """The fabric and its manager, until the end of `with`."""

    def __init__(self, scratch, extents):
        self.folder = scratch.join("opensm-" + "x".join(map(str, extents)))
        self.extents, self.log = extents, self.path("opensm.log")
        self.read, self.said = 0, []
        self.processes = []  # ibsim, then OpenSM

    def path(self, name):
        return os.path.join(self.folder, name)

    def __enter__(self):
        os.makedirs(self.path("cache"))
        write_fabric(self.path("net"), self.extents)
        write_settings(self.path("torus.conf"), self.extents)
        with open(self.path("opensm.conf"), "w") as file:
            print("force_log_flush TRUE", file=file)
        chips = len(chips_of(self.extents))
        sizes = ["-N", str(2 * chips + 2), "-S", str(chips + 2), "-P", str(16 * chips)]
        env = dict(os.environ, IBSIM_SOCKNAME=f"phalanx-{os.getpid()}", PATH=SEARCH)
        with open(self.path("ibsim.out"), "wb") as out:
            self.processes.append(subprocess.Popen(["ibsim", "-s", *sizes, "net"], env=env, cwd=self.folder, text=True,
                                                   stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT))
        self.await_that("ibsim has the fabric", lambda: b"sim>" in read(self.path("ibsim.out")))
        env.update(LD_PRELOAD=glob.glob(PRELOAD)[0], OSM_TMP_DIR=self.folder, OSM_CACHE_DIR=self.path("cache"))
        self.processes.append(subprocess.Popen(
            ["opensm", "-F", "opensm.conf", "-e", "-f", self.log, "-R", "torus-2QoS", "--torus_config", "torus.conf",
             "--qos", "-D", "0x07", "-n", "32"], env=env, cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
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

    def await_that(self, what, condition):
        def alive_and_so():
            if any(process.poll() is not None for process in self.processes):
                raise BenchError("ibsim or OpenSM ended")
            return condition()
        wait_for(what, alive_and_so, SECONDS_MAX, 0.02)

    def await_up(self, count):
        self.await_that("OpenSM has the fabric up", lambda: len(self.moments(b"SUBNET UP")) >= count)

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
        self.processes[0].stdin.write(CUT)
        self.processes[0].stdin.flush()
        self.await_up(2)
        return self.moments(b"SUBNET UP")[1] - begun


def peers():
    """{case of bench_fabric: ms of OpenSM} on the same fabrics."""
    figures = {}
    with Scratch() as scratch:
        for shape in SHAPES:
            with OpenSM(scratch, tuple(map(int, shape.split("x")))) as manager:
                figures[f"tables of {shape}"] = 1000 * manager.tables_s()
                figures[f"a link of {shape} is cut: new tables and proof"] = 1000 * manager.cut_s()
    return figures


@contextlib.contextmanager
def prepared():
    """OpenSM's figures; bench_fabric needs no variables."""
    yield peers(), {}
