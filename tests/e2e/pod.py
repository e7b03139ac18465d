"""An optically switched pod for tests: emulated switches, and chips if asked for, and JobSets that ask for slices."""
import json
import os
import re
import signal
import subprocess

import yaml
from e2e import PHALANX, ROOT, check, jobset

CLUSTER = """\
apiVersion: phalanx.dev/v1
kind: Cluster
metadata: {name: pod}
spec:
  settings: {lease: 60s, heartbeat: 1s}
  machineNames: m-{n}
  addresses: 127.0.9.1
  pods:
  - name: pod-1
    cubes: %d
    fabric: {timeout: 5s, protocol: %s, switches: [%s]%s}
"""


def cluster_file(folder, addresses, cubes=1, protocol="scpi", chips=None, login=None):
    """Writes the file of a cluster of one pod; `chips`: the folder of its emulated chips; `login`: user and file."""
    path = os.path.join(folder, "cluster.yaml")
    listed = ", ".join(f'"{address}"' for address in addresses)
    more = f', chips: "emulated:{chips}/{{cube}}-{{machine}}"' if chips else ""
    more += f', user: {login[0]}, secretFile: "{login[1]}"' if login else ""
    with open(path, "w", encoding="utf-8") as file:
        file.write(CLUSTER % (cubes, protocol, listed, more))
    return path


def shipped(path):
    """A YAML file of the repository, as the object that it holds."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return yaml.safe_load(file)


def open_faults(cluster):
    """Switch and code of each open fault."""
    faults = cluster.get("/apis/phalanx.dev/v1/faults")["items"]
    return [(fault["spec"].get("switch"), fault["spec"]["code"]) for fault in faults
            if fault["status"]["state"] == "Open"]


class Chips:
    """The emulators of all machines of a pod, a process for each."""

    def __init__(self, folder, cubes):
        self.process = subprocess.Popen([PHALANX, "chip-sim", "--network", folder, "--cubes", str(cubes)],
                                        stdout=subprocess.PIPE, text=True)
        self.processes = {}
        while len(self.processes) < 16 * cubes:
            self.read_start()

    def read_start(self):
        """Waits until a machine's emulator serves; returns the machine."""
        line = self.process.stdout.readline()
        found = re.fullmatch(r"machine (\d+-\d+): process (\d+)\n", line)
        check(found, f"chip-sim says {line!r}")
        self.processes[found[1]] = int(found[2])
        return found[1]

    def kill(self, machine):
        """Kills the emulator of a machine, and waits until it is back."""
        os.kill(self.processes[machine], signal.SIGKILL)
        check(self.read_start() == machine, "the emulator of another machine began")

    def end(self):
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()


class Switches:
    """The 48 switches of a pod until the end of `with`; with `chips`, the chips of so many cubes too: `apart`, by a
    process for each machine, which are started here unless the cluster emulates its chips. `login`: options that
    make TL1 sessions log in."""

    def __init__(self, folder, script="[]\n", name="switches", chips=0, apart=False, started=True,
                 protocol="scpi", login=()):
        path, listed = os.path.join(folder, name + "-script.yaml"), os.path.join(folder, name + ".yaml")
        self.folder, self.cubes, self.protocol = folder, chips, protocol
        self.chips = os.path.join(folder, "chips") if chips else None
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        words = [PHALANX, "switch-sim", "--port", "0", "--write", listed, "--protocol", protocol, "--script", path,
                 "--orders", *login,
                 *(["--cubes", str(chips), "--light" if apart else "--chips", self.chips] if chips else [])]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check(self.process.stdout.readline(), "switch-sim ended")
        with open(listed, encoding="utf-8") as file:
            self.addresses = re.findall(r'"([^"]*:\d+)"', file.read())
        check(len(self.addresses) == 48, self.addresses)
        self.emulators = Chips(self.chips, chips) if apart and started else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.emulators:
            self.emulators.end()
        self.process.terminate()
        self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()

    def order(self, text):
        """Breaks something now: a line of a script."""
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def cluster_file(self, cubes=1, login=None):
        return cluster_file(self.folder, self.addresses, self.cubes or cubes, self.protocol, self.chips, login)

    def shipped_cluster_file(self):
        """clusters/pod2.yaml with these switches and chips in place of its own, and a lease for loaded computers."""
        document = shipped("clusters/pod2.yaml")
        document["spec"]["settings"] = {"lease": "60s", "heartbeat": "1s"}
        fabric = document["spec"]["pods"][0]["fabric"]
        check(fabric["switches"] == "127.0.0.1:5100" and fabric["protocol"] == self.protocol, fabric)
        fabric.update(switches=self.addresses, chips=f"emulated:{self.chips}/{{cube}}-{{machine}}")
        path = os.path.join(self.folder, "cluster.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        return path


def sliced(name, shape, command, tasks, **more):
    """A JobSet that asks for a slice."""
    document = jobset(name, command, tasks=tasks, **more)
    document["metadata"]["annotations"] = {"phalanx.dev/slice": shape}
    document["spec"]["replicatedJobs"][0]["template"]["spec"]["completionMode"] = "Indexed"
    return document


def phalanx(cluster, *words):
    done = subprocess.run([PHALANX, *words, "--server", cluster.url], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"phalanx {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout
