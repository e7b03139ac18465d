"""A cluster on this machine for the demo and the end-to-end tests: `phalanx up` in a folder of its own."""
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("PHX_BUILD") or os.path.join(ROOT, os.environ.get("BUILD", "build"))
PHALANX = os.path.join(BUILD, "phalanx")
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"


class GaveUp(Exception):
    """What was waited for did not come."""


def wait_for(what, condition, seconds):
    """The first true value of condition(), asked for every 20 ms; GaveUp after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise GaveUp(f"gave up after {seconds} s: {what}")


class Cluster:
    def __init__(self, folder, cluster_file, *options):
        self.folder = os.path.realpath(folder)
        os.makedirs(self.folder, exist_ok=True)
        env = dict(os.environ, PATH=BUILD + ":" + os.environ["PATH"])
        self.process = subprocess.Popen([PHALANX, "up", "--cluster", cluster_file, "--data", self.folder, "--api",
                                         "127.0.0.1:0", "--agents", "127.0.0.1:0", *options], env=env)
        ready = os.path.join(self.folder, "ready")
        wait_for("the cluster is up", lambda: os.path.exists(ready) and os.path.getsize(ready), 30)
        with open(ready) as file:
            self.url = file.read().strip()
        os.environ["PHALANX_SERVER"] = self.url

    def request(self, method, path, body=None):
        """(status, decoded JSON); status 0 when nobody answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, json.loads(text) if text[:1] == b"{" else {"message": text.decode()}
        except (urllib.error.URLError, ConnectionError, OSError):
            return 0, {}

    def get(self, path):
        return self.request("GET", path)[1]

    def jobset(self, name):
        return self.get(f"{JOBSETS}/{name}")

    def state(self, name):
        return self.jobset(name).get("status", {}).get("terminalState", "")

    def progress(self, name):
        return self.jobset(name).get("status", {}).get("phalanx", {})

    def pods(self, jobset=None):
        items = self.get("/api/v1/namespaces/default/pods").get("items", [])
        label = "jobset.sigs.k8s.io/jobset-name"
        return [p for p in items if jobset is None or p["metadata"]["labels"].get(label) == jobset]

    def machines_ready(self):
        nodes = self.get("/api/v1/nodes").get("items", [])
        return nodes and all(self.node_ready(n) for n in nodes)

    @staticmethod
    def node_ready(node):
        return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])

    def machine_ready(self, name):
        return self.node_ready(self.get(f"/api/v1/nodes/{name}"))

    def machine_of(self, index, jobset=None):
        for pod in self.pods(jobset):
            if pod["metadata"]["labels"].get("batch.kubernetes.io/job-completion-index") == str(index):
                return pod["spec"].get("nodeName")
        return None

    def inject(self, action, machine):
        subprocess.run([PHALANX, "inject", action, machine, "--data", self.folder], check=True,
                       stdout=subprocess.DEVNULL)

    def controller_pid(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if len(words) > 3 and words[1] == b"controller" and self.folder.encode() in words:
                return int(pid)
        return None

    def stop(self):
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            print("the cluster did not stop", file=sys.stderr)
            self.process.kill()

    def left_running(self):
        """Processes that work below the cluster's folder."""
        left = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/cwd").startswith(self.folder + "/"):
                    left.append(pid)
            except OSError:
                pass
        return left
