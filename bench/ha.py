"""Several controllers on a real etcd of three members: how long writes stand still when one goes, whether a request
fails or a write is lost, and how fast the log takes records.

Clients write one object after the other. One that may send again takes the next address after a failure; one that may
not counts failures. Limit of the rows with a kill: a client's puts to etcd when the member that leads is killed, in
turns with them, so that both see the same computer. Everything is on this one computer and its disk. The members'
timers are tight: a heartbeat of 20 ms and an election after 200 ms.

HA_KILLS (20) is the number of kills at random; HA_SEED (1) chooses what is killed. HA_PARTS names the parts that run:
log, failovers, kills, gang; without it all do. PHX_ETCD is the path of another etcd than Debian's.
"""
import base64
import collections
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "deploy"))
import ladder  # noqa: E402
from cluster import (BUILD, PHALANX, ROOT, BenchError, Machines, Scratch, Server, parse_time,  # noqa: E402
                     wait_for)
from localcluster import free_ports  # noqa: E402
from report import figure, median  # noqa: E402

ETCD = os.environ.get("PHX_ETCD") or "/usr/bin/etcd"
COUNT, ROUNDS, PATIENCE_S, TRY_S = 3, 5, 60, 0.1
LEASE_S = 5  # a killed process is noticed by its connections; a busy computer must not cost a leader its lease
PARTS = os.environ.get("HA_PARTS", "log,failovers,kills,gang").split(",")
KILLS, SEED = int(os.environ.get("HA_KILLS", "20")), int(os.environ.get("HA_SEED", "1"))
SPACE_OBJECTS = 2000  # a namespace takes 10,000 of a kind, from all clients together
PAGE, PAUSE_S = 5000, 0.002
SNAPSHOT_EVERY = 2000  # often enough that states are read from snapshots too
MAPS = "/api/v1/namespaces/default/configmaps"


class Client:
    """Posts to the address that answered last, over one connection; to the next one after a failure."""

    def __init__(self, ports):
        self.ports, self.at, self.connection = ports, 0, None

    def once(self, path, body):
        """The answer's status and document; None: there was none."""
        try:
            if not self.connection:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.ports[self.at], timeout=TRY_S)
            self.connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = self.connection.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        except (OSError, ValueError, http.client.HTTPException):
            self.connection.close()
            self.connection, self.at = None, (self.at + 1) % len(self.ports)
            return None

    def until_taken(self, path, body, good):
        """Milliseconds until an answer was good."""
        start = time.monotonic()
        while True:
            answer = self.once(path, body)
            if answer and answer[0] in good:
                return (time.monotonic() - start) * 1e3
            if time.monotonic() - start > PATIENCE_S:
                raise BenchError(f"no answer to {path}: {answer}")


class Strict(threading.Thread):
    """Writes at one address, and at the next one after a failure, and sends nothing again: what is not answered well
    has failed. Every object holds the number of its write."""

    def __init__(self, ports, pause_s=0):
        super().__init__(daemon=True)
        self.ports, self.names, self.failed, self.times = ports, [], 0, []  # begin and end of each, since 1970
        self.over, self.space, self.pause_s, self.writes, self.taken = threading.Event(), None, pause_s, 0, []

    @staticmethod
    def post(connection, path, kind, metadata, **more):
        body = {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def write(self, connection):
        space = f"strict-{len(self.names) // SPACE_OBJECTS}"
        if space != self.space:  # another client may have made it
            if self.post(connection, "/api/v1/namespaces", "Namespace", {"name": space})[0] not in (201, 409):
                return False
            self.space = space
        self.writes += 1
        status, text = self.post(connection, f"/api/v1/namespaces/{space}/configmaps", "ConfigMap",
                                 {"generateName": "strict-"}, data={"write": str(self.writes)})
        if status == 201:
            self.names.append(f'{space}/{json.loads(text)["metadata"]["name"]}')
            self.taken.append(self.writes)
        return status == 201

    def run(self):
        connection, at = None, 0
        while not self.over.is_set():
            start = time.time()
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.ports[at], timeout=PATIENCE_S)
                good = self.write(connection)
            except (OSError, http.client.HTTPException):
                good = False
            if not good:
                connection.close()
                connection, at, self.failed = None, (at + 1) % len(self.ports), self.failed + 1
                self.over.wait(0.01)  # a port that refuses would be asked thousands of times
            self.times.append((start, time.time()))
            if self.pause_s:
                self.over.wait(self.pause_s)

    def during_ms(self, moment):
        """How long the write took that was under way then, or was the next one."""
        start, end = next(times for times in self.times if times[1] >= moment)
        return (end - start) * 1e3

    def goes_on(self):
        seen = len(self.names)
        wait_for("a client stands still", lambda: len(self.names) > seen, PATIENCE_S)

    def stop(self):
        self.over.set()
        self.join()


class Cluster:
    """The members, and the controllers; all of it ends with the block."""

    def __init__(self, scratch, file=os.path.join(ROOT, "clusters/mini.yaml")):
        self.scratch, self.file, self.processes, self.number = scratch, file, {}, 0
        ports = free_ports(4 * COUNT)
        self.client_ports, self.peer_ports = ports[:COUNT], ports[COUNT:2 * COUNT]
        self.api, self.agents = ports[2 * COUNT:3 * COUNT], ports[3 * COUNT:]
        self.etcd = ",".join(f"http://127.0.0.1:{port}" for port in self.client_ports)

    def __enter__(self):
        for i in range(COUNT):
            self.member(i)
        Client(self.client_ports).until_taken("/v3/kv/put", put("first"), (200,))
        for i in range(COUNT):
            self.controller(i)
        self.write(Client(self.api))
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()

    def start(self, name, words):
        with open(self.scratch.join(name + ".log"), "a") as log:
            self.processes[name] = subprocess.Popen(words, stdout=log, stderr=log)

    def member(self, i):
        here, peer = (f"http://127.0.0.1:{ports[i]}" for ports in (self.client_ports, self.peer_ports))
        together = ",".join(f"m{k}=http://127.0.0.1:{port}" for k, port in enumerate(self.peer_ports))
        self.start(f"m{i}", [
            ETCD, "--name", f"m{i}", "--data-dir", self.scratch.join(f"m{i}"), "--listen-client-urls", here,
            "--advertise-client-urls", here, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", together, "--heartbeat-interval", "20", "--election-timeout", "200"])

    def controller(self, i):
        self.start(f"c{i}", [
            PHALANX, "controller", "--data", self.scratch.join(f"c{i}"), "--cluster", self.file,
            "--etcd", self.etcd, "--etcd-lease", str(LEASE_S), "--snapshot-every", str(SNAPSHOT_EVERY),
            "--api", f"127.0.0.1:{self.api[i]}", "--agents", f"127.0.0.1:{self.agents[i]}"])

    def kill(self, names):
        for name in names:
            self.processes[name].send_signal(signal.SIGKILL)

    def begin_again(self, names):
        for name in names:
            self.processes[name].wait()
            (self.member if name[0] == "m" else self.controller)(int(name[1:]))
        self.leading_member()

    def revive(self, names):
        self.begin_again(names)
        self.shown()

    def write(self, client):
        """Milliseconds until the next object is written; one that is there already was written by an earlier try."""
        self.number += 1
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"map-{self.number}"}}
        return client.until_taken(MAPS, body, (201, 409))

    def announced(self):
        """What `phalanx upgrade check` says of the controllers."""
        done = subprocess.run([PHALANX, "upgrade", "check", "-o", "json", "--etcd", self.etcd, "--server",
                               f"http://127.0.0.1:{self.api[0]}"], capture_output=True, text=True)
        return json.loads(done.stdout)["controllers"] if done.stdout else []

    def shown(self):
        """The same, once all are there and one leads."""
        def all_there():
            found = self.announced()
            # The announcement of one that was killed ends with its lease.
            there = {one["address"] for one in found}
            return found if len(there) == COUNT == len(found) and any(one["leads"] for one in found) else None
        return wait_for("not all controllers are there", all_there, PATIENCE_S, 0.05)

    def leader(self):
        """The index of the controller that leads."""
        address = next(one["address"] for one in self.shown() if one["leads"])
        return self.api.index(int(address.rsplit(":", 1)[1]))

    def leader_at_once(self):
        """The same, once every controller answers: announcements of dead ones may stand."""
        def all_answer():
            try:
                return all(self.get(i, "/livez")[0] == 200 for i in range(COUNT))
            except (OSError, http.client.HTTPException):
                return False
        wait_for("not all controllers answer", all_answer, PATIENCE_S, 0.02)
        found = wait_for("no controller leads", lambda: [one for one in self.announced() if one["leads"]], PATIENCE_S,
                         0.02)
        return self.api.index(int(found[0]["address"].rsplit(":", 1)[1]))

    def leading_member(self):
        """The index of the member that leads, once every one knows which that is."""
        def known():
            said = [Client([port]).once("/v3/maintenance/status", {}) for port in self.client_ports]
            if not all(said):
                return None
            leaders = {answer[1].get("leader") for answer in said}
            ids = [answer[1]["header"]["member_id"] for answer in said]
            return (ids.index(leaders.pop()),) if len(leaders) == 1 and leaders <= set(ids) else None
        return wait_for("the members know no leader", known, PATIENCE_S)[0]

    def taken_over(self):
        """When the controller that leads has begun, in seconds since 1970."""
        shown = subprocess.run([PHALANX, "log", "show", "--etcd", self.etcd, "-o", "json"], capture_output=True,
                               text=True, check=True).stdout
        return parse_time([line for line in map(json.loads, shown.splitlines())
                           if line["event"].startswith("boot ")][-1]["time"])

    def get(self, i, path):
        """Status and body of an answer of controller `i`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.api[i], timeout=PATIENCE_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def written(self, i):
        """The numbers of the writes whose objects controller `i` has; of one that holds none, 0."""
        numbers, more = [], ""
        while True:
            status, text = self.get(i, f"/api/v1/configmaps?limit={PAGE}{more}")
            if status != 200:
                raise BenchError(f"controller {i}: {status} {text[:200]}")
            found = json.loads(text)
            numbers += [int(item.get("data", {}).get("write", 0)) for item in found["items"]]
            if not found["metadata"].get("continue"):
                return numbers
            more = "&continue=" + urllib.parse.quote(found["metadata"]["continue"])

    def end(self, i):
        """Ends a controller. The record that it ended at, and the digest of its state then."""
        self.processes[f"c{i}"].terminate()
        status = self.processes[f"c{i}"].wait()
        with open(self.scratch.join(f"c{i}.log")) as log:
            ends = re.findall(r"^ended at record (\d+), digest ([0-9a-f]{16})$", log.read(), re.MULTILINE)
        if status != 0 or not ends:
            raise BenchError(f"controller {i} ended with {status}, and did not say where")
        return ends[-1]

    def replayed(self, record):
        """The digest of the state that the log gives, of two ways to the record."""
        done = subprocess.run([PHALANX, "log", "replay", "--etcd", self.etcd, "--until", record], capture_output=True,
                              text=True)
        found = re.findall(rf"record {record}, digest ([0-9a-f]{{16}})$", done.stdout, re.MULTILINE)
        if done.returncode != 0 or len(found) != 2 or "the same state" not in done.stdout:
            raise BenchError(f"phalanx log replay: {done.stdout}{done.stderr}")
        return found[0]


class Trainers(Cluster, Machines):
    """Controllers with machines: those of a job that trains."""

    def __init__(self, scratch):
        self.name = "trainers"
        super().__init__(scratch, ladder.cluster_file(scratch, self.name, ladder.MACHINES))
        self.server = Server(f"http://127.0.0.1:{self.api[0]}")

    def __enter__(self):
        super().__enter__()
        for k in range(ladder.MACHINES):
            self.agent(f"m-{k + 1}")
        return self

    def agent(self, machine):
        self.start(machine, [
            PHALANX, "agent", "--machine", machine, "--chips", "4", "--state",
            self.scratch.join(f"{self.name}/machines/{machine}"), "--no-probes", "--allow-root-tasks", "--controller",
            ",".join(f"127.0.0.1:{port}" for port in self.agents)])

    def ask_standbys(self, leader):
        """For what is asked while the leader is dead."""
        self.server = Server(f"http://127.0.0.1:{self.api[(leader + 1) % COUNT]}")


def put(text):
    return {"key": base64.b64encode(b"/bench/" + text.encode()).decode(), "value": ""}


def kill_member(cluster):
    """Milliseconds of the first put after the member that leads was killed, with a client of another one."""
    leader = cluster.leading_member()
    client = Client([port for i, port in enumerate(cluster.client_ports) if i != leader])
    client.until_taken("/v3/kv/put", put("before"), (200,))
    cluster.kill([f"m{leader}"])
    taken_ms = client.until_taken("/v3/kv/put", put("after"), (200,))
    cluster.revive([f"m{leader}"])
    return taken_ms


def kill_leader(cluster, with_member):
    """The same for the controller that leads, also with the member that leads: its clients ask another one."""
    leader = cluster.leader()
    names = [f"c{leader}"] + ([f"m{cluster.leading_member()}"] if with_member else [])
    client = Client([port for i, port in enumerate(cluster.api) if i != leader])
    cluster.write(client)
    cluster.kill(names)
    taken_ms = cluster.write(client)
    cluster.revive(names)
    return taken_ms


def hand_over(cluster):
    """(milliseconds of the longest write across the take-over, requests that failed) of clients at each address."""
    leader = cluster.leader()
    clients = [Strict([port]) for port in cluster.api]
    for client in clients:
        client.start()
        client.goes_on()
    subprocess.run([PHALANX, "controller", "--step-down", "--etcd", cluster.etcd], check=True,
                   stdout=subprocess.DEVNULL)
    wait_for("the leadership did not move", lambda: cluster.leader() != leader, PATIENCE_S)
    for client in clients:
        client.goes_on()
        client.stop()
    moment = cluster.taken_over()
    return max(client.during_ms(moment) for client in clients), sum(client.failed for client in clients)


def failovers(report, cluster):
    own, both, alone, moved = [], [], [], []
    for _ in range(ROUNDS):
        own.append(kill_member(cluster))
        both.append(kill_leader(cluster, True))
        alone.append(kill_leader(cluster, False))
        moved.append(hand_over(cluster))
    report.row(figure("ha", "leader and etcd member killed: first write", median(both), "ms", median(own)))
    report.row(figure("ha", "leader killed: first write", median(alone), "ms"))
    report.row(figure("ha", "hand-over: first write", median([ms for ms, _ in moved]), "ms"))
    report.row(figure("ha", "hand-over: the slowest first write", max(ms for ms, _ in moved), "ms"))
    report.row(figure("ha", "hand-over: requests failed", sum(failed for _, failed in moved), "requests"))


def lose_machine_and_leader(job, rank):
    """Milliseconds until the first write, and until the next step of every rank; the leading member of etcd dies
    too."""
    cluster, leader = job.cluster, job.cluster.leader()
    names = [f"c{leader}", f"m{cluster.leading_member()}"]
    client = Client([port for i, port in enumerate(cluster.api) if i != leader])
    cluster.write(client)
    cluster.ask_standbys(leader)
    machine, lose, taken = job.machine_of(rank), job.lose_machine(rank), []

    def lose_both():
        cluster.kill(names)
        lose()
        taken.append(cluster.write(client))

    recovery_ms = job.recovery_ms(lose_both)
    cluster.processes[machine].wait()
    cluster.agent(machine)
    cluster.revive(names)
    return taken[0], recovery_ms


def gang(report):
    """A machine of a running gang dies together with the controller that leads and etcd's leading member."""
    found = []
    with Scratch() as scratch, ladder.Job(Trainers(scratch), ladder.MACHINES, 1) as job:
        for number in range(ROUNDS):
            job.settle()
            found.append(lose_machine_and_leader(job, number % ladder.RANKS))
    name = f"leader, etcd member and machine killed, {ladder.RANKS} ranks"
    report.row(figure("ha", f"{name}: first write", median([taken for taken, _ in found]), "ms"))
    report.row(figure("ha", f"{name}: every rank's next step", median([step for _, step in found]), "ms"))
    report.row(figure("ha", f"{name}: step beyond first write", median([step - taken for taken, step in found]), "ms"))


def throughput(report, cluster, scratch):
    member = cluster.client_ports[cluster.leading_member()]
    done = subprocess.run([os.path.join(BUILD, "bench_ha_log"), f"http://127.0.0.1:{member}", scratch.path],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise BenchError(f"bench_ha_log: {done.stderr}")
    ours, own, sqlite = map(float, done.stdout.split())
    report.row(figure("ha", "records on etcd, groups of 100", ours, "records/s", own, "SQLite", sqlite,
                      more_is_better=True))


def kill_at_random(cluster, chance, writer):
    what, leader = chance.choice(("leader", "standby", "member")), cluster.leader_at_once()
    name = {"leader": f"c{leader}", "standby": f"c{(leader + chance.randint(1, COUNT - 1)) % COUNT}",
            "member": f"m{chance.randrange(COUNT)}"}[what]
    writer.goes_on()
    cluster.kill([name])
    cluster.begin_again([name])
    writer.goes_on()
    return what


def many_kills(report, cluster):
    """Kills leader, standbys and members, one at a time, under writes; then looks at what is there."""
    chance, writer, kills = random.Random(SEED), Strict(cluster.api, PAUSE_S), collections.Counter()
    before = collections.Counter(cluster.written(0))
    writer.start()
    for number in range(1, KILLS + 1):
        kills[kill_at_random(cluster, chance, writer)] += 1
        if number % 50 == 0:
            print(f"# {number} of {KILLS} kills ({dict(kills)}): {len(writer.taken)} writes acknowledged, "
                  f"{writer.failed} failed", file=sys.stderr, flush=True)
    cluster.leader_at_once()
    writer.stop()
    lost = made = 0
    for i in range(COUNT):  # all of them have the same objects
        found = collections.Counter(cluster.written(i)) - before
        lost = max(lost, sum(1 for number in writer.taken if not found[number]))
        made = max(made, sum(count - 1 if 0 < number <= writer.writes else count for number, count in found.items()))
    ends = [cluster.end(i) for i in range(COUNT)]
    differ = sum(cluster.replayed(record) != digest for record, digest in ends)
    report.row(figure("ha", "kills at random: acknowledged writes lost", lost, "writes"))
    report.row(figure("ha", "kills at random: objects twice, or of no write", made, "objects"))
    report.row(figure("ha", "kills at random: controllers whose digest differs from the log's", differ, "controllers"))
    report.row(figure("ha", f"writes acknowledged amid {KILLS} kills", len(writer.taken), "writes"))


def run(report):
    if not os.path.exists(ETCD):
        raise BenchError(f"there is no {ETCD}; Debian's package etcd-server has one")
    with Scratch() as scratch, Cluster(scratch) as cluster:
        if "log" in PARTS:
            throughput(report, cluster, scratch)
        if "failovers" in PARTS:
            failovers(report, cluster)
        if "kills" in PARTS:
            many_kills(report, cluster)
    if "gang" in PARTS:
        gang(report)
