"""Clusters for benches: started in a folder of their own, asked over HTTP, and gone without a trace afterwards."""
import datetime
import http.client
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))
PHALANX = os.path.join(BUILD, "phalanx")
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
CHIP = "google.com/tpu"


class BenchError(Exception):
    pass


def task(name):
    """The path of a program of bench/tasks."""
    return os.path.join(BUILD, f"bench-task-{name}")


def wait_for(what, condition, seconds, pause=0.01):
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise BenchError(f"gave up after {seconds} s: {what}")
        time.sleep(pause)


def jobset(name, command, tasks=1, chips=4, env=None, spec=None):
    """A JobSet of one replicated job; `chips` a task."""
    container = {"name": "main", "image": "none", "command": command}
    if chips:
        container["resources"] = {"limits": {CHIP: chips}}
    if env:
        container["env"] = [{"name": key, "value": str(value)} for key, value in env.items()]
    job = {"parallelism": tasks, "completions": tasks, "completionMode": "Indexed", "backoffLimit": 0,
           "template": {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                                 "containers": [container]}}}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name},
            "spec": dict(spec or {}, replicatedJobs=[{"name": "w", "template": {"spec": job}}])}


def parse_time(text):
    """Seconds since 1970."""
    moment = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
    return moment.replace(tzinfo=datetime.timezone.utc).timestamp()


class Scratch:
    """A folder on a real disk; whatever still runs in it or names it is killed when it goes."""

    def __init__(self):
        base = os.environ.get("TMPDIR", "/var/tmp")
        self.path = os.path.realpath(tempfile.mkdtemp(prefix="phx-", dir=base))
        os.chmod(self.path, 0o711)  # tasks of other users pass through it

    def join(self, name):
        return os.path.join(self.path, name)

    def processes(self, below=""):
        """Processes that work below this folder or were told of it on their command line."""
        path, found = os.path.join(self.path, below).rstrip("/"), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if int(pid) == os.getpid():
                continue
            try:
                cwd = os.readlink(f"/proc/{pid}/cwd")
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode("utf-8", "replace").split("\0")
            except OSError:
                continue
            if (cwd + "/").startswith(path + "/") or any((word + "/").startswith(path + "/") for word in words):
                found.append(int(pid))
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(5):
            left = self.processes()
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            if not left:
                break
            time.sleep(0.05)
        shutil.rmtree(self.path, ignore_errors=True)


class Fifo:
    """Records of fixed size that tasks write."""

    def __init__(self, scratch, name, form):
        self.path, self.form = scratch.join(name), struct.Struct(form)
        os.mkfifo(self.path, 0o666)
        os.chmod(self.path, 0o666)
        self.fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def collect(self, count, seconds, wanted=lambda record: True):
        """The first `count` wanted records."""
        records, deadline = [], time.monotonic() + seconds
        while len(records) < count:
            ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise BenchError(f"{len(records)} of {count} tasks reported within {seconds} s")
            data = os.read(self.fd, self.form.size * 256)
            records += [record for record in self.form.iter_unpack(data) if wanted(record)]
        return records

    def close(self):
        os.close(self.fd)


class Gate:
    """Tasks wait at it until it is opened (bench/tasks/first.c)."""

    def __init__(self, scratch, name):
        self.path = scratch.join(name)
        os.mkfifo(self.path, 0o666)
        os.chmod(self.path, 0o666)

    def open(self):
        """Returns what closes it again."""
        return os.open(self.path, os.O_RDWR | os.O_CLOEXEC)


class Server:
    """The API over one kept connection."""

    def __init__(self, url):
        self.host, self.port = url.removeprefix("http://").split(":")
        self.connection = None

    def connect(self):
        self.connection = http.client.HTTPConnection(self.host, int(self.port), timeout=60)
        self.connection.connect()

    def call(self, method, path, body=None):
        if self.connection is None:
            self.connect()
        try:
            self.connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = self.connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection = None
            raise
        if answer.status >= 300:
            raise BenchError(f"{method} {path}: {answer.status} {data[:500].decode('utf-8', 'replace')}")
        return data

    def get(self, path):
        return json.loads(self.call("GET", path))

    def create(self, document):
        return self.call("POST", JOBSETS, json.dumps(document))

    def status(self, name):
        return self.get(f"{JOBSETS}/{name}").get("status", {})

    def restarts(self, name):
        return self.status(name).get("phalanx", {}).get("restarts", [])

    def fault_time(self, name, attempt):
        """When the controller took note of the loss that began `attempt`, once it says so."""
        for record in self.restarts(name):
            if record.get("attempt") == attempt and "faultTime" in record:
                return parse_time(record["faultTime"])
        return None

    def completed(self, name):
        state = self.status(name).get("terminalState")
        if state == "Failed":
            raise BenchError(f"job set {name} failed")
        return state == "Completed"

    def delete(self, name):
        self.call("DELETE", f"{JOBSETS}/{name}")

    def gone(self, name):
        return all(item["metadata"]["name"] != name for item in self.get(JOBSETS)["items"])

    def ready_machines(self):
        return sum(1 for node in self.get("/api/v1/nodes")["items"] for condition in node["status"]["conditions"]
                   if condition["type"] == "Ready" and condition["status"] == "True")

    def version(self):
        """The log's newest record."""
        return int(self.get("/api/v1/namespaces")["metadata"]["resourceVersion"])


class Machines:
    """A cluster's machines. Who has them sets `scratch`, `name`, a folder below it with the machines' state, and
    `server`."""

    def wait_ready(self, machines):
        wait_for(f"{machines} machines are not ready", lambda: self.server.ready_machines() == machines, 30, 0.1)

    def kill_machine(self, machine):
        """SIGKILL to everything on it. Returns when: monotonic ns, and seconds since 1970."""
        pids = self.scratch.processes(f"{self.name}/machines/{machine}")
        if not pids:
            raise BenchError(f"nothing runs on machine {machine}")
        start = time.monotonic_ns(), time.time()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return start

    def machines_of(self):
        """Rank -> machine."""
        places = {}
        for pod in self.server.get("/api/v1/namespaces/default/pods")["items"]:
            if pod["status"].get("phase") in ("Running", "Pending") and "deletionTimestamp" not in pod["metadata"]:
                rank = pod["metadata"]["labels"].get("batch.kubernetes.io/job-completion-index")
                if rank is not None:  # a spare has none
                    places[int(rank)] = pod["spec"].get("nodeName")
        return places


class LocalCluster(Machines):
    """`phalanx up`: a controller and a real agent process for each machine."""

    def __init__(self, scratch, cluster_file, *options, name="cluster"):
        self.name, self.folder = name, scratch.join(name)
        self.scratch = scratch
        self.log = open(scratch.join(f"{name}.log"), "w")
        self.process = subprocess.Popen(
            [PHALANX, "up", "--insecure", "--cluster", cluster_file, "--data", self.folder, "--api", "127.0.0.1:0",
             "--agents", "127.0.0.1:0", *options], stdout=self.log, stderr=self.log, start_new_session=True)
        ready = os.path.join(self.folder, "ready")
        wait_for("the cluster is not up", lambda: os.path.exists(ready) and os.path.getsize(ready), 30)
        with open(ready) as file:
            self.url = file.read().strip()
        self.server = Server(self.url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop(self.process, 20)
        self.log.close()


def stop(process, seconds):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
