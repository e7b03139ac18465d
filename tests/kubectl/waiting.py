"""kubectl wait in all its forms, and clients that outlive what happens to their watches."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import Request, urlopen

from e2e import Gate, check
from surface import MANIFEST, Following, Kubectl, has

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n"


def waits(k, cluster):
    gate = Gate(cluster, "gate-" + k.tag)
    k.run("create", "-f", "-", text=MANIFEST.format(name="w", seconds=0).replace("exec sleep 0", gate.wait))
    ready = Following(k, "wait", "--for=condition=Ready", "pods", "-l", "jobset.sigs.k8s.io/jobset-name=w",
                      "--timeout=60s")
    done = Following(k, "wait", "--for=condition=Completed", "jobset/w", "--timeout=60s")
    jobs = Following(k, "wait", "--for=condition=Complete", "job/w-workers-0", "job/w-workers-1", "--timeout=60s")
    state = Following(k, "wait", "--for=jsonpath={.status.terminalState}=Completed", "jobset/w", "--timeout=60s")
    check(len(ready.end().strip().splitlines()) == 4, f"four pods are ready: {ready.said()}")
    gate.open()
    has(done.end(), r"jobset\.jobset\.x-k8s\.io/w condition met")
    has(jobs.end(), r"w-workers-0 condition met[\s\S]*w-workers-1 condition met")
    state.end()
    k.run("wait", "--for=condition=Suspended=False", "jobset/w", "--timeout=1s", status=1)
    has(k.run("wait", "--for=condition=Completed", "jobset/none", "--timeout=1s", status=1), r"not found")
    gone = Following(k, "wait", "--for=delete", "jobset/w", "--timeout=60s")
    k.run("delete", "jobset", "w", "--wait=false")
    gone.end()
    if k.minor >= 31:
        made = Following(k, "wait", "--for=create", "configmap/later", "--timeout=60s")
        k.run("create", "-f", "-", text=MAP.format(name="later"))
        has(made.end(), r"configmap/later condition met")


class Busy(BaseHTTPRequestHandler):
    """Before the server: answers the first request of each kind with a 429, as a busy server does; then passes on."""

    protocol_version = "HTTP/1.1"
    url, refused, lock = "", None, threading.Lock()

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.lock:
            first = self.path.startswith("/api/v1/namespaces") and self.command not in self.refused
            if first:
                self.refused.add(self.command)
        if first:
            text = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429,
                               "reason": "TooManyRequests", "message": "too many"}).encode()
            return self.answer(429, {"Content-Type": "application/json", "Retry-After": "1"}, text)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        try:
            with urlopen(Request(self.url + self.path, body or None, headers, method=self.command)) as answer:
                return self.answer(answer.status, answer.headers, answer.read())
        except OSError as error:  # HTTPError is one
            return self.answer(getattr(error, "code", 502), getattr(error, "headers", {}),
                               error.read() if hasattr(error, "read") else b"")

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("transfer-encoding", "content-length", "connection", "content-encoding", "date"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = handle_any

    def log_message(self, *words):
        pass


def too_many_requests(k, cluster):
    """A 429 with Retry-After is tried again by the client itself."""
    handler = type("Handler", (Busy,), {"url": cluster.url, "refused": set()})
    front = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=front.serve_forever, daemon=True).start()
    client = Kubectl(k.version, k.path, f"http://127.0.0.1:{front.server_port}", k.namespace)
    try:
        client.run("create", "-f", "-", text=MAP.format(name="busy"))
        has(client.run("get", "configmap", "busy"), r"busy\s+1")
        client.run("patch", "configmap", "busy", "-p", '{"data":{"c":"d"}}')
        client.run("delete", "configmap", "busy", "--wait=false")
        check(handler.refused == {"GET", "POST", "PATCH", "DELETE"}, f"refused were {handler.refused}")
    finally:
        client.done()
        front.shutdown()
        front.server_close()


def controller_dies(k, cluster):
    """Watches begin again: their versions are from before the new controller's memory (410), so clients list again."""
    k.run("create", "-f", "-", text=MAP.format(name="witness"))
    waiting = Following(k, "wait", "--for=jsonpath={.data.a}=c", "configmap/witness", "--timeout=60s",
                        "-v=6")
    gone = Following(k, "wait", "--for=delete", "configmap/witness", "--timeout=60s", "-v=6")
    waiting.until("watch=true")
    gone.until("watch=true")
    k.run("label", "configmap", "witness", "x=y")
    cluster.kill_controller()
    k.run("patch", "configmap", "witness", "-p", '{"data":{"a":"c"}}')
    has(waiting.end(), r"condition met")
    k.run("delete", "configmap", "witness")
    gone.end()
    has(k.run("get", "--raw", f"/api/v1/namespaces/{k.namespace}/configmaps?watch=1&resourceVersion=1",
              status=1), r"too old resource version|Expired|Gone|gone")


CASES = [waits, too_many_requests]
ALONE = [controller_dies]
