"""A cluster on this machine for the demo and the end-to-end tests: `phalanx up` in a folder of its own."""
import datetime
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("PHX_BUILD") or os.path.join(ROOT, os.environ.get("BUILD", "build"))
PHALANX = os.path.join(BUILD, "phalanx")
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
NODES = "/api/v1/nodes"
PATIENCE_S = 60  # for what comes within a second on an idle computer; a wait ends when it comes


class GaveUp(Exception):
    """What was waited for did not come."""


def on_give_up():
    """Called before a wait is given up; a script may put something here that says how things stand."""


def wait_for(what, condition, seconds=PATIENCE_S):
    """The first true value of condition(), asked for every 20 ms; GaveUp after `seconds`, behind a last look."""
    deadline = time.monotonic() + seconds
    while True:
        late = time.monotonic() >= deadline
        value = condition()
        if value:
            return value
        if late:
            on_give_up()
            raise GaveUp(f"gave up after {seconds} s: {what}")
        time.sleep(0.02)


def free_ports(count):
    """Ports below those that the kernel gives to connections: one of these could take a port before it is used."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        end = int(file.read().split()[0])
    ports = []
    for port in random.sample(range(end // 2, end), end - end // 2):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise GaveUp(f"{count} ports are not free")


def root_tasks(*paths):
    """The option that root needs where tasks of other users cannot reach these paths: a folder above one is closed to
    them, and no mount namespace leads around it, as in a chroot and most containers. Else nothing."""
    def is_closed(path):
        folder = os.path.dirname(os.path.realpath(path))
        while os.path.dirname(folder) != folder:
            if os.path.isdir(folder) and not os.stat(folder).st_mode & 0o001:
                return True
            folder = os.path.dirname(folder)
        return False

    if os.geteuid() != 0 or not any(is_closed(path) for path in paths):
        return ()
    alone = subprocess.run(["unshare", "--mount", "--propagation", "slave", "true"], stderr=subprocess.DEVNULL)
    return () if alone.returncode == 0 else ("--allow-root-tasks",)


class Watch:
    """Every change of one object, in order: a state that passes too fast to be polled is seen all the same.

    It begins with the changes behind the moment it was made:

        with cluster.watch(NODES, "m-1") as node:
            ...                                       # what makes it change
            node.until("m-1 is not ready", lambda n: not cluster.node_ready(n))
    """

    def __init__(self, cluster, collection, name):
        version = wait_for(f"{collection} can be listed",
                           lambda: cluster.get(collection).get("metadata", {}).get("resourceVersion"))
        request = urllib.request.Request(f"{cluster.url}{collection}?watch=1&resourceVersion={version}"
                                         f"&fieldSelector=metadata.name%3D{name}", headers=cluster.headers)
        self.answer = urllib.request.urlopen(request, timeout=PATIENCE_S)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.answer.close()

    def until(self, what, holds, seconds=PATIENCE_S):
        """The object as it is after the next change that makes holds(object) true; GaveUp after `seconds`."""
        deadline = time.monotonic() + seconds
        try:
            for line in self.answer:
                change = json.loads(line)
                if change["type"] != "ERROR" and holds(change["object"]):
                    return change["object"]
                if time.monotonic() > deadline:
                    break
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise GaveUp(f"the watch broke ({error}): {what}") from error
        raise GaveUp(f"gave up, or the watch ended: {what}")


# Root's tasks run as root too and write where the program that started the cluster does; else as users of their own.
ROOT_TASKS = False


class Cluster:
    """Any program may read it without credentials, unless `access` is another option of `phalanx up`, or empty."""

    headers = {}  # of every request
    running = []  # all clusters of this script that were not stopped

    def __init__(self, folder, cluster_file, *options, access=("--insecure",), user=None):
        """`user`: the one that root has it run as, whose folder it is."""
        self.folder = os.path.realpath(folder)
        os.makedirs(self.folder, exist_ok=True)
        env = dict(os.environ, PATH=BUILD + ":" + os.environ["PATH"])
        become = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        if ROOT_TASKS and os.geteuid() == 0 and user is None and "--task-user" not in options:
            options = (*options, "--allow-root-tasks")
        self.process = subprocess.Popen([*become, PHALANX, "up", "--cluster", cluster_file, "--data", self.folder,
                                         "--api", "127.0.0.1:0", "--agents", "127.0.0.1:0", *access, *options],
                                        env=env)
        try:
            self.url = wait_for("the cluster is up", self.announced)
            if not access:
                self.use_token()
        except Exception:
            self.process.terminate()
            self.process.wait()
            raise
        os.environ["PHALANX_SERVER"] = self.url
        Cluster.running.append(self)

    def announced(self):
        """The API's URL once it is known."""
        if self.process.poll() is not None:
            raise GaveUp(f"phalanx up ended with status {self.process.returncode}")
        try:
            with open(os.path.join(self.folder, "ready")) as file:
                text = file.read()
        except FileNotFoundError:
            return None
        return text.strip() if text.endswith("\n") else None

    def use_token(self):
        """From here on requests go over plain HTTP on loopback, with the token of this run."""
        with open(os.path.join(self.folder, "access/local.kubeconfig")) as file:
            fields = dict(re.findall(r"(server|token): (\S+)", file.read()))
        self.url, self.headers = fields["server"], {"Authorization": f"Bearer {fields['token']}"}

    def request(self, method, path, body=None, kind="application/json"):
        """(status, decoded JSON); status 0 when nobody answers."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind, **self.headers}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                text = error.read()
                return error.code, json.loads(text) if text[:1] == b"{" else {"message": text.decode()}
        except (OSError, http.client.HTTPException, ValueError):  # no connection, or one that broke in the answer
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
        nodes = self.get(NODES).get("items", [])
        return nodes and all(self.node_ready(n) for n in nodes)

    @staticmethod
    def node_ready(node):
        conditions = node.get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def machine_ready(self, name):
        return self.node_ready(self.get(f"{NODES}/{name}"))

    def watch(self, collection, name):
        return Watch(self, collection, name)

    def machine_of(self, index, jobset=None):
        """Where the pod of this index is, or will be once it has a place."""
        def place():
            for pod in self.pods(jobset):
                labels = pod["metadata"]["labels"]
                if labels.get("batch.kubernetes.io/job-completion-index") == str(index) and \
                        not pod["metadata"].get("deletionTimestamp"):
                    return pod["spec"].get("nodeName")
            return None

        return wait_for(f"index {index} of {jobset or 'the job'} has a machine", place)

    def inject(self, action, *machines):
        """Hits the machines' processes, once there are some; the moment just before, in seconds since 1970."""
        def hit():
            done = subprocess.run([PHALANX, "inject", action, *machines, "--data", self.folder, "--silent", "--yes",
                                   "-o", "json"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if done.returncode not in (0, 3):
                raise GaveUp(f"inject {action} {machines}: status {done.returncode}: {done.stderr}")
            if done.returncode != 0:
                return None
            moment = datetime.datetime.strptime(json.loads(done.stdout)["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
            return moment.replace(tzinfo=datetime.timezone.utc).timestamp()

        return wait_for(f"{machines} have a process for {action}", hit)

    def kill_agent(self, machine):
        """Kills the machine's agent. Returns a function that returns when another one serves the machine.

        That a machine is ready says nothing: it is so until its agent is missed. And it is missed for no longer
        than a process needs to start. So all changes of the machine are looked at from before the kill on.
        """
        node = self.watch(NODES, machine)
        self.inject("kill-agent", machine)

        def back():
            with node:
                node.until(f"the agent of {machine} is missed", lambda n: not self.node_ready(n))
                node.until(f"another agent serves {machine}", self.node_ready)

        return back

    def lose_machine(self, index, world, jobset):
        """Kills everything on the machine of this index; its peers stand still until it is missed.

        Else they could notice the loss, end and be reported before it, which is another story.
        """
        machine = self.machine_of(index, jobset)
        others = {self.machine_of(i, jobset) for i in range(world) if i != index} - {machine}
        for other in others:
            self.inject("stop", other)
        with self.watch(NODES, machine) as node:
            self.inject("kill", machine)
            node.until(f"{machine} is missed", lambda n: not self.node_ready(n))
        for other in others:
            self.inject("continue", other)

    def kill_controller(self):
        """Kills the controller and waits until another one answers."""
        pid = wait_for("a controller runs", self.controller_pid)
        os.kill(pid, signal.SIGKILL)
        self.other_controller(pid)

    def other_controller(self, pid):
        """Waits until a controller answers that is not the process `pid`."""
        wait_for("another controller answers", lambda: self.controller_pid() not in (None, pid)
                 and self.request("GET", "/version")[0] == 200)

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
        if self in Cluster.running:
            Cluster.running.remove(self)
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            print("the cluster did not stop", file=sys.stderr)
            Cluster.running.append(self)
            on_give_up()
            Cluster.running.remove(self)
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
