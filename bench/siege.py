"""Strangers and users without a right attack the controller, each in turn, while a gang of four runs.

  handshakes   12,000 connections with one ClientHello each to the API's port, again and again, without credentials
  agents       the same to the agents' port
  reviews      24 access reviews of 1.4 MB of YAML at once, from a user without a role
  patches      JSON patches of 480 KB (10,000 operations on a ConfigMap of 40,000 keys, dryRun) one behind the other

Meanwhile another user makes and deletes small ConfigMaps: p99 of each durable write. Its limit is the flush of the
disk, which is timed in the same seconds. The gang must not restart, and the controller's memory must not grow.
"""
import http.client
import json
import multiprocessing
import os
import re
import socket
import ssl
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "deploy"))
from cluster import JOBSETS, PHALANX, BenchError, Scratch, jobset, wait_for  # noqa: E402
from localcluster import Cluster  # noqa: E402
from report import figure, quantile  # noqa: E402

SECONDS = float(os.environ.get("SIEGE_SECONDS", "60"))
CONNECTIONS, REVIEWS, KEYS, OPERATIONS, RANKS = 12000, 24, 40000, 10000, 4
PATIENCE_S, MAPS = 60, "/api/v1/namespaces/default/configmaps"
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


def handshakes(port, seconds):
    hello = client_hello()

    def flood(deadline):
        held = []
        try:
            while len(held) < CONNECTIONS and time.monotonic() < deadline:
                held.append(socket.create_connection(("127.0.0.1", port), timeout=1))
                held[-1].sendall(hello)
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


def reviews(address, token, seconds):
    body = "spec:\n  list: [" + "a," * 700000 + "a]\n"
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    until(seconds, lambda _: send(address, "POST", path, body, "application/yaml", token))


def patches(address, token, seconds):
    body = json.dumps([{"op": "test", "path": f"/data/k{KEYS - 1:05}", "value": "v"}] * OPERATIONS)
    until(seconds, lambda _: send(address, "PATCH", f"{MAPS}/large?dryRun=All", body, "application/json-patch+json",
                                  token))


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
        self.controller = self.find_controller()

    def find_controller(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode("utf-8", "replace").split("\0")
            except OSError:
                continue
            if len(words) > 1 and words[1] == "controller" and any(self.cluster.folder in word for word in words):
                return int(pid)
        raise BenchError("the controller is not found")

    def agents_port(self):
        text = subprocess.run(["ss", "-Hltnp"], stdout=subprocess.PIPE, text=True, check=False).stdout
        lines = [line for line in text.splitlines() if f"pid={self.controller}," in line]
        ports = {int(line.split()[3].rsplit(":", 1)[1]) for line in lines}
        return next(iter(ports - {self.address[1], self.tls_port}), None)

    def stranger(self):
        """A token of a ServiceAccount that no role names."""
        self.ask("POST", "/api/v1/namespaces/default/serviceaccounts",
                 {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "stranger"}})
        path = "/api/v1/namespaces/default/serviceaccounts/stranger/token"
        return self.ask("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]

    def ask(self, method, path, body=None):
        status, answer = send(self.address, method, path, json.dumps(body) if body else None, "application/json",
                              self.admin)
        if status >= 300:
            raise BenchError(f"{method} {path}: {status} {answer[:300]}")
        return json.loads(answer)

    def memory(self):
        with open(f"/proc/{self.controller}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024

    def run(self, report, name, attackers):
        """The attackers are (function, arguments before the seconds)."""
        before = self.memory()
        processes = [multiprocessing.Process(target=attack, args=(*args, SECONDS), daemon=True)
                     for attack, args in attackers]
        for process in processes:
            process.start()
        writes, flushes = write_small(self.address, self.admin, time.monotonic() + SECONDS, self.folder)
        grown = self.memory() - before
        for process in processes:
            process.terminate()
            process.join()
        status = self.ask("GET", f"{JOBSETS}/gang")["status"]
        restarts = len(status.get("phalanx", {}).get("restarts", []))
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
        siege.ask("POST", JOBSETS, jobset("gang", ["sleep", "3600"], RANKS))
        wait_for("the gang does not run", lambda: sum(pod["status"].get("phase") == "Running"
                                                      for pod in cluster.pods()) == RANKS, PATIENCE_S)
        siege.ask("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"},
                                 "data": {f"k{i:05}": "v" for i in range(KEYS)}})
        token = siege.stranger()
        siege.run(report, "nobody", [])
        siege.run(report, "handshakes", [(handshakes, (siege.tls_port,))])
        agents = siege.agents_port()
        if agents:
            siege.run(report, "agents", [(handshakes, (agents,))])
        siege.run(report, "reviews", [(reviews, (siege.address, token))] * REVIEWS)
        siege.run(report, "patches", [(patches, (siege.address, siege.admin))])
    finally:
        cluster.stop()


def run(report):
    if not os.path.exists(PHALANX):
        raise BenchError(f"{PHALANX} is not built")
    with Scratch() as scratch:
        besiege(report, scratch)
