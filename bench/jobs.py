"""No-op jobs a second: a JobSet of one task that runs `true`, from submission to the word Completed.

Limit: the same program forked, executed and waited for, one after the other, each preceded by the one durable write
that a promise needs (with many jobs in flight one write serves several, so the limit can be passed). Peer: Slurm where
it is installed: `srun true` one at a time, `sbatch` of `true` otherwise.
"""
import json
import os
import re
import selectors
import socket
import subprocess
import time

from cluster import JOBSETS, ROOT, BenchError, LocalCluster, Scratch, jobset, task, wait_for
from report import figure, median
import slurm

WINDOWS = (1, 16)
ROUNDS, ROUND_S = 3, 3.0
LIMIT_JOBS = 200
PEER_JOBS = 48
TRUE = "/bin/true"


class Chunks:
    """Lines of a chunked HTTP answer."""

    def __init__(self):
        self.raw, self.text, self.in_body = b"", b"", False

    def lines(self, data):
        self.raw += data
        if not self.in_body:
            head, found, rest = self.raw.partition(b"\r\n\r\n")
            if not found:
                return []
            self.raw, self.in_body = rest, True
        while True:
            size, found, rest = self.raw.partition(b"\r\n")
            length = int(size, 16) if found else 0
            if not found or len(rest) < length + 2:
                break
            self.text += rest[:length]
            self.raw = rest[length + 2:]
        *lines, self.text = self.text.split(b"\n")
        return lines


class Submitter:
    """Keeps `window` jobs in flight: one connection that watches, and one for each job in flight that submits."""

    def __init__(self, server):
        self.address = (server.host, int(server.port))
        self.number = 0

    def connect(self):
        connection = socket.create_connection(self.address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def submit(self, connection):
        self.number += 1
        name = f"job-{self.number}"
        body = json.dumps(jobset(name, [TRUE], chips=1, spec={"ttlSecondsAfterFinished": 1})).encode()
        head = (f"POST {JOBSETS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n")
        connection.sendall(head.encode() + body)
        return name.encode()

    def run(self, window, seconds):
        """Jobs a second, and milliseconds of each."""
        selector = selectors.DefaultSelector()
        watch = self.connect()
        watch.sendall(f"GET {JOBSETS}?watch=true&resourceVersion=0 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        selector.register(watch, selectors.EVENT_READ, None)
        connections = [self.connect() for _ in range(window)]
        flying, times, stream = {}, [], Chunks()
        start = time.monotonic()
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, connection)
            flying[self.submit(connection)] = (connection, time.monotonic())
        while flying:
            for key, _ in selector.select(20) or self.stuck(flying):
                data = key.fileobj.recv(1 << 18)
                if not data:
                    raise BenchError("the API closed a connection")
                if key.data is not None:
                    if data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 201"):
                        raise BenchError(data[:300].decode("utf-8", "replace"))
                    continue
                self.take(stream.lines(data), flying, times, start + seconds)
        spent = time.monotonic() - start
        for connection in (watch, *connections):
            connection.close()
        return len(times) / spent, times

    def stuck(self, flying):
        raise BenchError(f"{len(flying)} jobs do not complete, {next(iter(flying)).decode()} for one")

    def take(self, lines, flying, times, until):
        for line in lines:
            if b'"terminalState":"Completed"' not in line:
                continue
            name = re.search(rb'"name":"(job-\d+)"', line).group(1)
            if name not in flying:
                continue
            connection, since = flying.pop(name)
            now = time.monotonic()
            times.append((now - since) * 1000)
            if now < until:
                flying[self.submit(connection)] = (connection, time.monotonic())


def limit_rate(scratch):
    """One durable write and one process, again and again."""
    path = scratch.join("limit")
    record = os.urandom(1024)
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    os.pwrite(fd, bytes(1 << 20), 0)
    os.fdatasync(fd)
    start = time.monotonic()
    for number in range(LIMIT_JOBS):
        os.pwrite(fd, record, number * len(record) % (1 << 20))
        os.fdatasync(fd)
    written = time.monotonic() - start
    os.close(fd)
    done = subprocess.run([task("burst"), "1", str(LIMIT_JOBS), TRUE], capture_output=True, text=True, check=True)
    ran = sum(int(line) for line in done.stdout.splitlines()[1::2]) / 1e9
    return LIMIT_JOBS / (written + ran)


def peer_rate(peer, window):
    """Jobs of Slurm a second: srun one at a time, or `window` sbatch at a time until the queue is empty."""
    start, running = time.monotonic(), []
    count = PEER_JOBS if window > 1 else PEER_JOBS // 2
    for _ in range(count):
        running.append(peer.command("srun", "-n", "1", TRUE) if window == 1 else
                       peer.command("sbatch", "-n", "1", "-o", "/dev/null", "--wrap", TRUE))
        if len(running) == window:
            running.pop(0).wait(60)
    for process in running:
        process.wait(60)
    wait_for("Slurm's queue does not empty", peer.queue_empty, 60, 0.02)
    return count / (time.monotonic() - start)


def measure(scratch, submitter, peer, window, report):
    rates, limits, times = [], [], []
    for _ in range(ROUNDS):
        limits.append(limit_rate(scratch))
        rate, spent = submitter.run(window, ROUND_S)
        rates.append(rate)
        times += spent
    name = "one at a time" if window == 1 else f"{window} in flight"
    way = "slurm srun" if window == 1 else "slurm sbatch"
    report.row(figure("jobs", f"no-op jobs, {name}", median(rates), "jobs/s", median(limits), way,
                      peer and peer_rate(peer, window), more_is_better=True))
    report.row(figure("jobs", f"submission to Completed, {name}", median(times), "ms"))


def run(report):
    with Scratch() as scratch:
        with slurm.Slurm.start_if_installed(scratch, 6, report) as peer:
            with LocalCluster(scratch, os.path.join(ROOT, "clusters/mini.yaml")) as cluster:
                cluster.wait_ready(6)
                submitter = Submitter(cluster.server)
                submitter.run(1, 0.5)
                for window in WINDOWS:
                    measure(scratch, submitter, peer, window, report)
