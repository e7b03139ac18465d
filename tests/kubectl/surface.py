"""What kubectl does against the API server, for each client version that is installed."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
from e2e import PATIENCE_S, Failed, GaveUp, check, wait_for  # noqa: E402

ENDS_S = 2 * PATIENCE_S  # longer than kubectl itself waits

MANIFEST = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {name}
  labels: {{team: a}}
spec:
  replicatedJobs:
  - name: workers
    replicas: 2
    template:
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          spec:
            terminationGracePeriodSeconds: 2
            containers:
            - name: main
              image: example/image:1
              command: [sh, -c, "echo hello from rank $RANK; exec sleep {seconds}"]
              resources: {{limits: {{google.com/tpu: 1}}}}
"""


def version_of(path):
    """{major, minor, gitVersion ...} of a client."""
    said = subprocess.run([path, "version", "--client", "-o", "json"], capture_output=True, text=True, check=True)
    return json.loads(said.stdout)["clientVersion"]


def binaries():
    """[(version, path)] of the kubectl found in PATH and of its siblings kubectl.1.NN of other versions."""
    found = shutil.which("kubectl")
    if not found:
        return []
    real = os.path.realpath(found)
    siblings = glob.glob(os.path.join(os.path.dirname(real), "kubectl.1.*"))
    versions = [(path.rsplit("kubectl.", 1)[1], path) for path in siblings]
    versions.sort(key=lambda v: [int(n) for n in v[0].split(".")])
    usual = version_of(found)
    return [("default", found)] + [v for v in versions if version_of(v[1]) != usual]


class Kubectl:
    def __init__(self, version, path, url, namespace="default"):
        self.version, self.path, self.url, self.namespace = version, path, url, namespace
        self.minor = int(version_of(path)["minor"].rstrip("+"))
        self.tag = version.replace(".", "-")  # for names that all clients share
        self.home = tempfile.mkdtemp(prefix="phalanx-kubectl-")
        self.config = os.path.join(self.home, "config")
        self.env = dict(os.environ, KUBECONFIG=self.config, HOME=self.home)
        with open(self.config, "w") as file:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "p",
                       "clusters": [{"name": "p", "cluster": {"server": url}}],
                       "users": [{"name": "u", "user": {}}],
                       "contexts": [{"name": "p", "context": {"cluster": "p", "user": "u", "namespace": namespace}}]},
                      file)

    def start(self, *words, **options):
        return subprocess.Popen([self.path, *words], env=self.env, text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def run(self, *words, text=None, status=0, errors=False):
        """Standard output, of failures or with `errors` also the other; the exit status must be `status`."""
        process = self.start(*words)
        try:
            out, err = process.communicate(text, timeout=ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failed(f"kubectl {' '.join(words)}: no end within {ENDS_S} s")
        if status is not None and process.returncode != status:
            raise Failed(f"kubectl {' '.join(words)}: status {process.returncode}, wanted {status}: {out}{err}")
        return out + (err if status != 0 or errors else "")

    def until(self, pattern, *words, **options):
        """The output once it matches, of a question that is asked again and again: Failed when it never does."""
        shown = ""

        def matches():
            nonlocal shown
            shown = self.run(*words, **options)
            return re.search(pattern, shown)
        try:
            wait_for(pattern, matches)
        except GaveUp as reason:
            raise Failed(f"kubectl {' '.join(words)}: {reason}: {shown[:600]}") from reason
        return shown

    def cluster_version(self):
        """Grows with every change of anything. Over plain HTTP."""
        with urllib.request.urlopen(f"{self.url}/api/v1/namespaces/default/pods?limit=1", timeout=ENDS_S) as answer:
            return json.load(answer)["metadata"]["resourceVersion"]

    def done(self):
        shutil.rmtree(self.home, ignore_errors=True)


class Following:
    """A kubectl that goes on (-w, -f, wait), and what it has said so far."""

    def __init__(self, k, *words):
        self.words = " ".join(words)
        self.file = tempfile.NamedTemporaryFile(mode="w", dir=k.home, delete=False)
        self.process = subprocess.Popen([k.path, *words], env=k.env, stdin=subprocess.DEVNULL, stdout=self.file,
                                        stderr=subprocess.STDOUT)

    def said(self):
        with open(self.file.name) as file:
            return file.read()

    def until(self, pattern, seconds=PATIENCE_S):
        """Returns when the output matches; Failed after `seconds`."""
        try:
            wait_for(pattern, lambda: re.search(pattern, self.said()), seconds)
        except GaveUp:
            self.stop()
            raise Failed(f"kubectl {self.words}: no {pattern!r} within {seconds} s in: {self.said()[:1500]}")

    def end(self, status=0, seconds=ENDS_S):
        """What it said, when it has ended by itself with this status."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.stop()
            raise Failed(f"kubectl {self.words}: no end within {seconds} s: {self.said()[:1500]}")
        check(self.process.returncode == status,
              f"kubectl {self.words}: status {self.process.returncode}, wanted {status}: {self.said()[:1500]}")
        return self.said()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.file.close()


def has(text, *patterns):
    for pattern in patterns:
        check(re.search(pattern, text), f"{pattern!r} is not in: {text[:600]}")


def lacks(text, *patterns):
    for pattern in patterns:
        check(not re.search(pattern, text), f"{pattern!r} is in: {text[:600]}")


def discovery(k, cluster):
    has(k.run("version"), r"v1\.31")
    has(k.run("api-resources"), r"jobsets\s+jobset\.x-k8s\.io/v1alpha2\s+true\s+JobSet", r"nodes\s+no\s+v1\s+false")
    has(k.run("get", "nodes"), r"NAME\s+STATUS\s+ROLES\s+AGE\s+VERSION", r"m-1\s+Ready")
    has(k.run("get", "nodes", "-o", "wide"), r"INTERNAL-IP", r"127\.0\.1\.1")
    has(k.run("get", "namespaces"), r"default\s+Active")


def lifecycle(k, cluster):
    name = "k" + k.version.replace(".", "-")
    manifest = MANIFEST.format(name=name, seconds=600)
    watch = Following(k, "get", "jobsets", "-w", "--no-headers")
    has(k.run("apply", "-f", "-", text=manifest), r"created")
    has(k.run("apply", "-f", "-", text=manifest), r"configured|unchanged")
    before = k.run("get", "jobset", name, "-o", "jsonpath={.metadata.resourceVersion} {.metadata.generation}")
    has(before, r" 1$")
    k.run("create", "-f", "-", text=manifest, status=1)
    k.run("wait", "--for=jsonpath={.status.replicatedJobsStatus[0].ready}=2", f"jobset/{name}", "--timeout=60s")
    has(k.run("get", "jobsets"), r"NAME\s+TERMINALSTATE\s+RESTARTS\s+COMPLETED\s+SUSPENDED\s+AGE", name + r"\s+0")
    selector = f"jobset.sigs.k8s.io/jobset-name={name}"
    pods = k.run("get", "pods", "-l", selector, "-o", "name").split()
    check(len(pods) == 4, f"4 pods wanted, found {pods}")
    has(k.run("get", "pods", "-A", "-o", "wide"), r"NAMESPACE\s+NAME\s+READY\s+STATUS", r"1/1\s+Running")
    has(k.run("get", "jobs"), name + r"-workers-1\s+Running\s+0/2" if k.version not in ("1.27",) else name)
    has(k.run("get", "all"), f"pod/{name}-workers-0-0", f"jobset.*/{name}")
    has(k.run("get", "jobset", name, "-o", "yaml"), r"completionMode: Indexed", r"phalanx:")
    has(k.run("describe", "jobset", name), f"Name:\\s+{name}", r"Replicated Jobs")
    has(k.run("describe", pods[0]), r"Node:\s+m-", r"Scheduled")
    has(k.run("describe", "node", "m-1"), r"Name:\s+m-1", r"google\.com/tpu")
    has(k.run("get", "events"), r"LAST SEEN\s+TYPE\s+REASON", r"Scheduled")
    has(k.run("events"), r"Scheduled")
    k.until(r"hello from rank 0", "logs", f"job/{name}-workers-0")  # a task that runs may not have said it yet
    k.until(r"hello from rank 3", "logs", pods[3], "--tail=1")
    follow = Following(k, "logs", "-f", pods[1])
    follow.until(r"hello from rank 1")
    k.run("label", "jobset", name, "colour=blue")
    has(k.run("get", "jobset", name, "--show-labels"), r"colour=blue")
    has(k.run("get", "jobsets", "-l", "colour in (blue,red),team=a"), name)
    k.run("annotate", "jobset", name, "note=x")
    k.run("patch", "jobset", name, "--type=merge", "-p", '{"metadata":{"labels":{"colour":null}}}')
    k.run("patch", "jobset", name, "--type=json", "-p",
          '[{"op":"add","path":"/metadata/labels/shape","value":"round"}]')
    has(k.run("get", "jobset", name, "--show-labels"), r"shape=round")
    k.run("patch", "jobset", name, "-p", "{}", status=1)  # strategic: not for custom resources
    has(k.run("delete", "jobset", name, "--timeout=60s"), r"deleted")
    has(k.run("get", "jobset", name, status=1), r"not found")
    follow.end()
    watch.until(name)
    watch.stop()


def completion(k, cluster):
    name = "d" + k.version.replace(".", "-")
    k.run("apply", "-f", "-", text=MANIFEST.format(name=name, seconds=1))
    k.run("wait", "--for=condition=Completed", f"jobset/{name}", "--timeout=60s")
    has(k.run("get", "jobset", name), r"Completed\s+0\s+True")
    has(k.run("get", "pods", "-l", f"jobset.sigs.k8s.io/jobset-name={name}"), r"Completed")
    k.run("delete", "jobset", name, "--wait=false")
    k.run("wait", "--for=delete", f"jobset/{name}", "--timeout=60s")


def refusals(k, cluster):
    bad = MANIFEST.format(name="bad", seconds=1).replace("replicas: 2", "replicas: -2")
    has(k.run("apply", "-f", "-", text=bad, status=1), r"spec\.replicatedJobs\[0\]\.replicas", r"nvalid")
    unknown = MANIFEST.format(name="bad", seconds=1).replace("spec:\n  rep", "spec:\n  bogus: 1\n  rep", 1)
    has(k.run("apply", "-f", "-", text=unknown, status=1), r"unknown field")
    has(k.run("apply", "--dry-run=server", "-f", "-", text=MANIFEST.format(name="dry", seconds=1)), r"dry run")
    k.run("get", "jobset", "dry", status=1)


def nodes(k, cluster):
    has(k.run("cordon", "m-2"), r"cordoned")
    has(k.run("get", "nodes"), r"m-2\s+Ready,SchedulingDisabled")
    has(k.run("uncordon", "m-2"), r"uncordoned")
    k.run("label", "node", "m-2", "zone=z1", "--overwrite")
    has(k.run("get", "nodes", "-l", "zone=z1", "-o", "name"), r"^node/m-2\s*$")
    k.run("label", "node", "m-2", "zone-")
    k.run("taint", "node", "m-2", "broken=yes:NoSchedule")
    has(k.run("get", "node", "m-2", "-o", "jsonpath={.spec.taints}"), r"broken")
    k.run("taint", "node", "m-2", "broken-")


def drain(k, cluster):
    """A drained machine's gang goes on elsewhere. kubectl 1.32 and newer deletes pods with protobuf bodies."""
    name = "r" + k.version.replace(".", "-")
    manifest = MANIFEST.format(name=name, seconds=600).replace("spec:\n  rep", "spec:\n  failurePolicy: "
                                                               "{maxRestarts: 5}\n  rep", 1)
    ready = "--for=jsonpath={.status.replicatedJobsStatus[0].ready}=2"
    k.run("apply", "-f", "-", text=manifest)
    k.run("wait", ready, f"jobset/{name}", "--timeout=60s")
    selector = f"jobset.sigs.k8s.io/jobset-name={name}"
    node = k.run("get", "pods", "-l", selector, "-o", "jsonpath={.items[0].spec.nodeName}")
    has(k.run("drain", node, "--force", "--grace-period=1", "--timeout=60s"), r"drained")
    k.run("wait", "--for=jsonpath={.status.restarts}=1", f"jobset/{name}", "--timeout=60s")
    k.run("wait", ready, f"jobset/{name}", "--timeout=60s")
    nodes_used = k.run("get", "pods", "-l", selector, "-o", "jsonpath={.items[*].spec.nodeName}").split()
    check(nodes_used and node not in nodes_used, f"{node} was drained, pods are on {nodes_used}")
    k.run("uncordon", node)
    has(k.run("create", "namespace", "team-" + name), r"created")
    k.run("delete", "jobset", name, "--timeout=60s")


CASES = [discovery, lifecycle, completion, refusals]
ALONE = [nodes, drain]  # change machines, so they run when nothing else does
