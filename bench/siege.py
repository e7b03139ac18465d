"""Strangers and users without a right attack the controller, each in turn, while a gang of four runs.

  handshakes   12,000 connections with one ClientHello each to the API's port, again and again, without credentials
  agents       the same to the agents' port
  reviews      24 access reviews of 1.4 MB of YAML at once, from a user without a role
  patches      JSON patches of about 480 KB (10,000 operations on a ConfigMap of 40,000 keys, dryRun) one behind the
               other, of `test`, `replace` and `move` in turn, from a user with the role edit

Meanwhile another user with that role makes and deletes small ConfigMaps: p99 of each durable write. Its limit is the
flush of the disk, which is timed in the same seconds. The gang must not restart: its Pods are the same ones after each
attack, and run. The controller's memory must not grow: its peak during the attack counts. An attack of which nothing
was sent is an error, and so is one for which this process may not have enough descriptors.
"""
import http.client
import itertools
import json
import multiprocessing
import os
import re
import resource
import socket
import ssl
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "deploy"))
from cluster import JOBSETS, PHALANX, BenchError, Scratch, jobset, wait_for  # noqa: E402
from localcluster import Cluster  # noqa: E402
from report import figure, quantile  # noqa: E402

SECONDS = float(os.environ.get("SIEGE_SECONDS", "60"))
CONNECTIONS, REVIEWS, KEYS, OPERATIONS, RANKS = 12000, 24, 40000, 10000, 4
DESCRIPTORS = CONNECTIONS + 256
PATIENCE_S, MAPS = 60, "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
CLUSTER = """\
apiVersion: phalanx.dev/v1
kind: Cluster
metadata: {name: siege}
spec:
  settings: {lease: 3s, heartbeat: 1s}
  machineNames: "m-{n:02}"
  addresses: 127.0.2.1
  pods: [{racks: [{machines: 4, chips: 4}]}]
"""


def client_hello():
    """The first flight of a TLS client, as bytes that anybody may send again."""
    context, out = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.MemoryBIO()
    context.check_hostname = False
    try:
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def until(seconds, attack):
    """Attacks again and again; what the server refuses is no reason to stop."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            attack(deadline)
        except (OSError, http.client.HTTPException):
            pass


def count(sent):
    """One more was sent by one of the processes of an attack."""
    with sent.get_lock():
        sent.value += 1


def handshakes(port, sent, seconds):
    hello = client_hello()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # of this process, not of the controller

    def flood(deadline):
        held = []
        try:
            while len(held) < CONNECTIONS and time.monotonic() < deadline:
                held.append(socket.create_connection(("127.0.0.1", port), timeout=1))
                held[-1].sendall(hello)
                count(sent)
        finally:
            for one in held:
                one.close()

    until(seconds, flood)


def send(address, method, path, body, kind, token):
    host, port = address
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body, {"Content-Type": kind, "Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def request(sent, *words):
    send(*words)
    count(sent)


def reviews(address, token, sent, seconds):
    body = "spec:\n  list: [" + "a," * 700000 + "a]\n"
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    until(seconds, lambda _: request(sent, address, "POST", path, body, "application/yaml", token))


def patch_bodies():
    """A JSON patch of each kind. Each `move` is of another key, as there is none where it was."""
    last = f"/data/k{KEYS - 1:05}"
    kinds = ([{"op": "test", "path": last, "value": "v"}] * OPERATIONS,
             [{"op": "replace", "path": last, "value": "w"}] * OPERATIONS,
             [{"op": "move", "from": f"/data/k{i:05}", "path": f"/data/m{i}"} for i in range(OPERATIONS)])
    return [json.dumps(operations, separators=(",", ":")) for operations in kinds]


def patches(address, token, sent, seconds):
    bodies = itertools.cycle(patch_bodies())
    until(seconds, lambda _: request(sent, address, "PATCH", f"{MAPS}/large?dryRun=All", next(bodies),
                                     "application/json-patch+json", token))


def write_small(address, token, deadline, folder):
    """(milliseconds of each small write, of each flush of as many bytes to the same disk)."""
    writes, flushes, number = [], [], 0
    with open(os.path.join(folder, "flush"), "wb") as file:
        while time.monotonic() < deadline:
            body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"small-{number % 100}"}})
            for method, path, text in (("POST", MAPS, body), ("DELETE", f"{MAPS}/small-{number % 100}", None)):
                began = time.monotonic()
                status, answer = send(address, method, path, text, "application/json", token)
                writes.append((time.monotonic() - began) * 1000)
                if status not in (200, 201):
                    raise BenchError(f"{method} {path}: {status} {answer[:300]}")
            began = time.monotonic()
            file.write(b"x" * 512)
            file.flush()
            os.fdatasync(file.fileno())
            flushes.append((time.monotonic() - began) * 1000)
            number += 1
            time.sleep(0.02)
    return writes, flushes


class Siege:
    def __init__(self, folder, cluster):
        self.folder, self.cluster = folder, cluster
        host, port = cluster.url.rsplit("/", 1)[-1].split(":")
        self.address, self.admin = (host, int(port)), cluster.headers["Authorization"].removeprefix("Bearer ")
        self.tls_port = int(cluster.announced().rsplit(":", 1)[1])
        self.controller = self.find("controller")[0]
        self.writer = self.tenant("writer")
        self.gang = set()

    def find(self, command):
        """(process, words of its command line) of one that this cluster runs."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode("utf-8", "replace").split("\0")
            except OSError:
                continue
            if len(words) > 1 and words[1] == command and any(self.cluster.folder in word for word in words):
                return int(pid), words
        raise BenchError(f"no process of the cluster runs phalanx {command}")

    def agents_port(self):
        """Where its agents connect."""
        words = self.find("agent")[1]
        return int(words[words.index("--controller") + 1].rsplit(":", 1)[1])

    def running(self):
        """(name, uid) of the gang's Pods that run."""
        return {(pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in self.cluster.pods("gang")
                if pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")}

    def start_gang(self):
        self.ask("POST", JOBSETS, jobset("gang", ["sleep", "3600"], RANKS))
        wait_for("the gang does not run", lambda: len(self.running()) == RANKS, PATIENCE_S)
        self.gang = self.running()

    def stranger(self, name="stranger"):
        """A token of a ServiceAccount that no role names."""
        self.ask("POST", ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
        return self.ask("POST", f"{ACCOUNTS}/{name}/token", {"spec": {"expirationSeconds": 3600}})["status"]["token"]

    def tenant(self, name):
        """A token of a ServiceAccount that may edit what is in the namespace."""
        token = self.stranger(name)
        self.ask("POST", BINDINGS, {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]})
        return token

    def ask(self, method, path, body=None):
        status, answer = send(self.address, method, path, json.dumps(body) if body else None, "application/json",
                              self.admin)
        if status >= 300:
            raise BenchError(f"{method} {path}: {status} {answer[:300]}")
        return json.loads(answer)

    def memory(self, field="VmRSS"):
        with open(f"/proc/{self.controller}/status") as file:
            return int(re.search(field + r":\s+(\d+)", file.read()).group(1)) / 1024

    def forget_peak(self):
        """From here on VmHWM is the peak of what follows (proc(5), clear_refs)."""
        with open(f"/proc/{self.controller}/clear_refs", "w") as file:
            file.write("5")

    def run(self, report, name, attackers):
        """The attackers are (function, arguments before the count and the seconds)."""
        self.forget_peak()
        before, sent = self.memory(), multiprocessing.Value("Q", 0)
        processes = [multiprocessing.Process(target=attack, args=(*args, sent, SECONDS), daemon=True)
                     for attack, args in attackers]
        for process in processes:
            process.start()
        writes, flushes = write_small(self.address, self.writer, time.monotonic() + SECONDS, self.folder)
        grown = self.memory("VmHWM") - before
        for process in processes:
            process.terminate()
            process.join()
        status = self.ask("GET", f"{JOBSETS}/gang")["status"]
        restarts = len(status.get("phalanx", {}).get("restarts", []))
        if attackers and sent.value == 0:
            raise BenchError(f"{name}: nothing was sent")
        if self.running() != self.gang:
            raise BenchError(f"{name}: the gang's Pods {sorted(self.gang)} ran before, now {sorted(self.running())}")
        if attackers:
            report.row(figure("siege", f"{name}: sent by {len(attackers)}", sent.value, ""))
        report.row(figure("siege", f"{name}: restarts", restarts, ""))
        report.row(figure("siege", f"{name}: small write, p99 of {len(writes)}", quantile(writes, 0.99), "ms",
                          limit=quantile(flushes, 0.99)))
        report.row(figure("siege", f"{name}: memory growth", grown, "MiB"))


def besiege(report, scratch):
    path = scratch.join("cluster.yaml")
    with open(path, "w") as file:
        file.write(CLUSTER)
    cluster = Cluster(scratch.join("cluster"), path, "--quiet", access=())
    try:
        wait_for("the machines are not ready", cluster.machines_ready, PATIENCE_S)
        siege = Siege(scratch.path, cluster)
        siege.start_gang()
        siege.ask("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"},
                                 "data": {f"k{i:05}": "v" for i in range(KEYS)}})
        token = siege.stranger()
        siege.run(report, "nobody", [])
        siege.run(report, "handshakes", [(handshakes, (siege.tls_port,))])
        siege.run(report, "agents", [(handshakes, (siege.agents_port(),))])
        siege.run(report, "reviews", [(reviews, (siege.address, token))] * REVIEWS)
        siege.run(report, "patches", [(patches, (siege.address, siege.tenant("attacker")))])
    finally:
        cluster.stop()


def run(report):
    if not os.path.exists(PHALANX):
        raise BenchError(f"{PHALANX} is not built")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        raise BenchError(f"siege: a process may open {hard} descriptors (ulimit -Hn), {DESCRIPTORS} are needed")
    with Scratch() as scratch:
        besiege(report, scratch)
