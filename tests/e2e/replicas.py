"""Controllers that share a log on a real etcd, for the scripts about them."""
import base64
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request

from e2e import MINI, PHALANX, Skip, check, wait_for
from localcluster import free_ports

ETCD = os.environ.get("PHX_ETCD") or "/usr/bin/etcd"
CONTROLLERS = 3
MAPS = "/api/v1/namespaces/default/configmaps"
NAMES_MAX = 1500  # of a client: a namespace takes 10,000 objects of a kind, from all clients together


def need_etcd():
    if not os.path.exists(ETCD):
        raise Skip(f"there is no {ETCD}; Debian's package etcd-server has one")


class Hall:
    """Members of etcd and three controllers, unless they are to begin later; all of it ends with the block. `secure`:
    etcd speaks TLS and has users, of which one may use what is under /phalanx/. `tls`: the controllers speak TLS, with
    the users `admin` and, of the group `team`, `alice` and `mallory`; alice may edit the namespace default. `lease_s`:
    of the controllers; most cases are not about leases, and see a death before one ends. `quota`: of etcd, in bytes."""

    def __init__(self, members=1, cluster=MINI, begins=True, secure=False, tls=False, lease_s=600, quota=None):
        self.members, self.cluster, self.begins, self.secure = members, cluster, begins, secure
        self.tls, self.contexts, self.lease_s = tls, {}, lease_s
        self.quota = ["--quota-backend-bytes", str(quota)] if quota else []

    def __enter__(self):
        need_etcd()
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.dir = tempfile.mkdtemp(prefix="phalanx-ha-", dir=base)
        self.processes = []
        self.controllers = [None] * CONTROLLERS
        ports = free_ports(2 * self.members + 2 * CONTROLLERS)
        self.api, self.agents = ports[:CONTROLLERS], ports[CONTROLLERS:2 * CONTROLLERS]
        scheme = "https" if self.secure else "http"
        clients = [f"{scheme}://127.0.0.1:{port}" for port in ports[2 * CONTROLLERS::2]]
        peers = [f"http://127.0.0.1:{port}" for port in ports[2 * CONTROLLERS + 1::2]]
        self.etcd, self.options, tls = ",".join(clients), ["--etcd", ",".join(clients)], []
        if self.secure:
            self.phalanx("certs", "init", f"{self.dir}/certs", "--host", "127.0.0.1")
            tls = ["--cert-file", f"{self.dir}/certs/server.crt", "--key-file", f"{self.dir}/certs/server.key"]
        together = ",".join(f"m{i}={peer}" for i, peer in enumerate(peers))
        for i, (client, peer) in enumerate(zip(clients, peers)):
            self.start(f"etcd{i}", [ETCD, "--name", f"m{i}", "--data-dir", f"{self.dir}/m{i}",
                                    "--listen-client-urls", client, "--advertise-client-urls", client,
                                    "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                                    "--initial-cluster", together, *tls, *self.quota])
        if self.secure:
            self.make_users()
        if self.tls:
            self.make_certificates()
        for i in range(CONTROLLERS if self.begins else 0):
            self.controller(i)
        return self

    def make_certificates(self):
        access = f"{self.dir}/access"
        self.phalanx("certs", "init", access, "--host", "127.0.0.1")
        for user in ("alice", "mallory"):
            self.phalanx("certs", "client", access, "--user", user, "--group", "team")
        with open(f"{access}/roles.yaml", "w") as file:
            file.write("bindings:\n- {role: edit, namespaces: [default], users: [alice]}\n")
        self.options += ["--tls-cert", f"{access}/server.crt", "--tls-key", f"{access}/server.key",
                         "--client-ca", f"{access}/ca.crt", "--tokens", f"{access}/tokens.csv",
                         "--roles", f"{access}/roles.yaml", "--service-account-key", f"{access}/accounts.key"]

    def connection(self, i, user="admin"):
        """A connection to address `i`, with TLS by the user's certificate (None: without one)."""
        if not self.tls:
            return http.client.HTTPConnection("127.0.0.1", self.api[i], timeout=60)
        if user not in self.contexts:
            context = ssl.create_default_context(cafile=f"{self.dir}/access/ca.crt")
            if user:
                context.load_cert_chain(f"{self.dir}/access/{user}.crt", f"{self.dir}/access/{user}.key")
            self.contexts[user] = context
        return http.client.HTTPSConnection("127.0.0.1", self.api[i], timeout=60, context=self.contexts[user])

    def ask_etcd(self, path, **body):
        """A call of etcd's gateway, as its operator would make it."""
        context = ssl.create_default_context(cafile=f"{self.dir}/certs/ca.crt") if self.secure else None
        request = urllib.request.Request(self.etcd.split(",", maxsplit=1)[0] + path, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return json.load(answer)

    def etcd_answers(self, path, **body):
        """The answer; None: there is none yet."""
        try:
            return self.ask_etcd(path, **body)
        except OSError:
            return None

    def make_users(self):
        root = {"name": "root", "password": "of the operator"}
        wait_for("etcd answers", lambda: self.etcd_answers("/v3/auth/user/add", **root))
        beyond = base64.b64encode(b"/phalanx0").decode()
        prefix = {"permType": "READWRITE", "key": base64.b64encode(b"/phalanx/").decode(), "range_end": beyond}
        self.ask_etcd("/v3/auth/user/add", name="phalanx", password="a secret")
        for role, user in (("root", "root"), ("controllers", "phalanx")):
            self.ask_etcd("/v3/auth/role/add", name=role)
            self.ask_etcd("/v3/auth/user/grant", user=user, role=role)
        self.ask_etcd("/v3/auth/role/grant", name="controllers", perm=prefix)
        self.ask_etcd("/v3/auth/enable")
        self.options += ["--etcd-ca", f"{self.dir}/certs/ca.crt", "--etcd-user-file", self.user_file("a secret")]

    def user_file(self, password):
        path = f"{self.dir}/user-{password.replace(' ', '-')}"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(f"phalanx:{password}\n")
        return path

    def __exit__(self, *exception):
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()
        wait_for("tasks and their shims are gone", self.none_left)
        if exception[0]:
            for name in sorted(os.listdir(self.dir)):
                if name.startswith("c") and name.endswith(".log"):
                    with open(f"{self.dir}/{name}") as file:
                        print(f"--- {name}\n{file.read()}")
        shutil.rmtree(self.dir)

    def none_left(self):
        """Kills what works below the folder, or was told of it: tasks outlive their agent. True: nothing does."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    told = self.dir.encode() in file.read()
                if told or os.readlink(f"/proc/{pid}/cwd").startswith(self.dir + "/"):
                    found.append(int(pid))
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:  # it has ended meanwhile
                continue
        return not found

    def start(self, name, words):
        with open(f"{self.dir}/{name}.log", "a") as log:
            log.write("started\n")
            log.flush()
            process = subprocess.Popen(words, stdout=log, stderr=log)
        process.name = name
        self.processes.append(process)
        return process

    def controller(self, i, program=PHALANX):
        audit = ["--audit-log", f"{self.dir}/audit{i}"] if self.tls else []
        self.controllers[i] = self.start(f"c{i}", [
            program, "controller", "--data", f"{self.dir}/c{i}", "--cluster", self.cluster, *self.options, *audit,
            "--etcd-lease", str(self.lease_s), "--snapshot-every", "100",
            "--api", f"127.0.0.1:{self.api[i]}", "--agents", f"127.0.0.1:{self.agents[i]}"])

    def has_said(self, i, text):
        with open(f"{self.dir}/c{i}.log") as file:
            return text in file.read()

    def call(self, i, path, body=None):
        """The code and document of an answer of address `i`; None: no answer came."""
        try:
            connection = self.connection(i)
            connection.request("POST" if body else "GET", path, json.dumps(body) if body else None,
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
            return answer.status, json.loads(text) if answer.status < 400 else None
        except (OSError, http.client.HTTPException):
            return None

    def write(self, name):
        """Writes at one address after the other until one answers; that it is there already is an answer too."""
        def written():
            for i in range(CONTROLLERS):
                answer = self.call(i, MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
                if answer and answer[0] in (201, 409):
                    return True
            return False
        wait_for(f"{name} is written", written)

    def names(self, i):
        answer = self.call(i, MAPS)
        return {item["metadata"]["name"] for item in answer[1]["items"]} if answer and answer[0] == 200 else set()

    def phalanx(self, *words):
        done = subprocess.run([PHALANX, *words], capture_output=True, text=True)
        check(done.returncode == 0, f"{words}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout


class PlainClient(threading.Thread):
    """Writes one object after the other on one connection, and after NAMES_MAX of them changes them in turn. It sends
    each request once, and takes another address only for a new connection: when it was told to close the one before, or
    none was taken."""

    def __init__(self, hall, first):
        super().__init__()
        self.hall, self.places = hall, [(first + k) % CONTROLLERS for k in range(CONTROLLERS)]
        self.names, self.failed, self.slowest_s, self.over, self.connection = [], [], 0, threading.Event(), None
        self.connections = self.answers = 0

    def connect(self):
        for i in self.places:
            connection = self.hall.connection(i)
            try:
                connection.connect()
                self.connections += 1
                return connection
            except ConnectionRefusedError:
                continue
        raise OSError("no address takes a connection")

    def send(self):
        """Sends the next request; returns the status of its success."""
        if len(self.names) < NAMES_MAX:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "plain-"}}
            self.connection.request("POST", MAPS, json.dumps(body), {"Content-Type": "application/json"})
            return 201
        name, body = self.names[self.answers % NAMES_MAX], {"data": {"answers": str(self.answers)}}
        self.connection.request("PATCH", f"{MAPS}/{name}", json.dumps(body),
                                {"Content-Type": "application/merge-patch+json"})
        return 200

    def write_one(self):
        began = time.monotonic()
        try:
            if not self.connection or not self.connection.sock:  # closed behind the answer before
                self.connection = self.connect()
            wanted = self.send()
            answer = self.connection.getresponse()
            text = answer.read()
            self.answers += 1
            if answer.status != wanted:
                self.failed.append(f"{answer.status} {text[:200]}")
            elif wanted == 201:
                self.names.append(json.loads(text)["metadata"]["name"])
        except (OSError, http.client.HTTPException) as error:
            self.failed.append(repr(error))
            self.connection = None
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)

    def run(self):
        while not self.over.is_set():
            self.write_one()

    def goes_on(self, count=5):
        """Waits until so many further writes were answered."""
        wanted = self.answers + count
        wait_for("a client's next answers", lambda: self.answers >= wanted)

    def stop(self):
        self.over.set()
        self.join()
        if self.connection:
            self.connection.close()


def leads(hall, i):
    with open(f"{hall.dir}/c{i}.log") as file:
        words = [line for line in file if "leads" in line or "hands over" in line or line == "started\n"]
    return bool(words) and words[-1].startswith("this controller leads, from")


def who_leads(hall):
    found = [i for i in range(CONTROLLERS) if hall.controllers[i].poll() is None and leads(hall, i)]
    return found[0] if len(found) == 1 else None


class Watcher(threading.Thread):
    """Watches on one address after the other, from where the watch before ended or broke. `seen`: names of objects;
    `repeated`: those that were added in an event though the watch began behind them. Each object is made once."""

    def __init__(self, hall):
        super().__init__(daemon=True)  # it asks for ever where a case fails
        self.hall, self.ends, self.failed, self.over = hall, 0, [], threading.Event()
        self.seen, self.repeated, self.version = set(), [], None

    def watch(self, i):
        connection = self.hall.connection(i)
        connection.request("GET", f"{MAPS}?watch=1&timeoutSeconds=30&resourceVersion={self.version}")
        answer = connection.getresponse()
        if answer.status == 410:  # a leader keeps changes from its own time on
            self.version = None
            return
        for line in answer:
            event = json.loads(line)
            self.version, name = (event["object"]["metadata"][key] for key in ("resourceVersion", "name"))
            self.repeated += [name] if name in self.seen and event["type"] == "ADDED" else []
            self.seen.add(name)
            if self.over.is_set():
                break
        else:
            self.ends += 1
        connection.close()

    def list(self, i):
        connection = self.hall.connection(i)
        connection.request("GET", MAPS)
        found = json.load(connection.getresponse())
        connection.close()
        self.seen |= {item["metadata"]["name"] for item in found["items"]}
        self.version = found["metadata"]["resourceVersion"]

    def run(self):
        at = 0
        while not self.over.is_set():
            try:
                (self.watch if self.version else self.list)(at % CONTROLLERS)
            except ConnectionRefusedError:
                at += 1  # it is being exchanged
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.failed.append(repr(error))

    def stop(self, written):
        """Ends it when it has seen all that was written."""
        written = set(written)
        wait_for("the watch has seen all that was written", lambda: written <= self.seen)
        self.over.set()
        self.hall.write("last")  # ends the watch
        self.join()
        check(self.seen - {"last"} == written, f"the watch has seen {self.seen - written} too")
        check(not self.repeated, f"the watch has repeated {self.repeated}")


def hand_over_under_load(hall):
    """Hands over, and exchanges controllers, under writes and a watch that send nothing twice; what was measured."""
    wait_for("one leads", lambda: who_leads(hall) is not None)
    for i in range(CONTROLLERS):
        wait_for(f"address {i} answers", lambda at=i: hall.call(at, "/api/v1/nodes"))
    clients = [PlainClient(hall, i) for i in range(CONTROLLERS)]  # of the leader and of both standbys
    watcher = Watcher(hall)
    for thread in [*clients, watcher]:
        thread.start()
    try:
        for turn in range(6):
            for client in clients:
                client.goes_on()
            old = who_leads(hall)
            check(old is not None, "nobody leads")
            if turn % 2 == 0:
                hall.phalanx("controller", "--step-down", "--etcd", hall.etcd)
                wait_for("another one leads", lambda was=old: who_leads(hall) not in (None, was))
                continue
            for i in (old, (old + 1) % CONTROLLERS):  # the leader, then one of the others, which may lead now
                hall.controllers[i].terminate()
                check(hall.controllers[i].wait() == 0, f"it ended with {hall.controllers[i].returncode}")
                hall.controller(i)
                wait_for(f"address {i} answers", lambda at=i: hall.call(at, "/api/v1/nodes"))
            wait_for("one leads", lambda: who_leads(hall) is not None)
        for client in clients:
            client.goes_on()
    finally:
        for client in clients:
            client.stop()
    written = [name for client in clients for name in client.names]
    failed = [why for client in clients for why in client.failed]
    check(not failed, f"requests failed: {failed}")
    check(len(written) == len(set(written)), "one object was answered twice")
    check(hall.names(0) == set(written), f"{len(hall.names(0))} objects of {len(written)} acknowledged writes")
    watcher.stop(written)
    check(not watcher.failed and watcher.ends > 0, f"{watcher.ends} watches ended whole, else: {watcher.failed}")
    check("the same state" in hall.phalanx("log", "replay", "--etcd", hall.etcd), "replays differ")
    return f"{len(written)} writes, the slowest {max(client.slowest_s for client in clients) * 1e3:.0f} ms"
