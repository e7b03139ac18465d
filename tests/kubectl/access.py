"""Users, roles and refusals as kubectl shows them, for each client version that is installed: over HTTPS with a
client certificate and with a token."""
import json
import os
import subprocess

from e2e import PHALANX, check, wait_for
from surface import Kubectl, has

JOBSET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: {name}}}
spec:
  replicatedJobs:
  - name: w
    template:
      spec:
        parallelism: 1
        completions: 1
        template:
          spec:
            containers:
            - {{name: main, image: none, command: [sh, -c, "echo hello; exec sleep 600"]}}
"""
BINDING = """
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: {name}, namespace: default}}
subjects: [{{kind: User, name: {user}, apiGroup: rbac.authorization.k8s.io}}]
roleRef: {{kind: ClusterRole, name: {role}, apiGroup: rbac.authorization.k8s.io}}
"""


def certs(*words, status=0):
    done = subprocess.run([PHALANX, "certs", *words], capture_output=True, text=True)
    check(done.returncode == status, f"phalanx certs {' '.join(words)}: {done.returncode} {done.stderr}")
    return done.stdout.strip()


class User(Kubectl):
    """kubectl of one user, with the credentials of a folder."""

    def __init__(self, version, path, url, folder, *credentials):
        super().__init__(version, path, url)
        certs("kubeconfig", folder, "--server", url, "--out", self.config, *credentials)


class Bench:
    """The users that the cases share: admin and alice by certificate, bob by token, and a stranger's admin."""

    def __init__(self, version, path, cluster):
        self.cluster, self.folder = cluster, os.path.join(cluster.data, "access")
        self.version, self.path = version, path
        self.tag = version.replace(".", "-")
        self.alice_name, self.bob_name = "alice-" + self.tag, "bob-" + self.tag
        certs("client", self.folder, "--user", self.alice_name, "--group", "team-a")
        token = certs("token", self.folder, "--user", self.bob_name, "--group", "team-b")
        evil = os.path.join(cluster.data, "evil")
        certs("init", evil)
        url = cluster.url
        self.admin = User(version, path, url, self.folder)
        self.alice = User(version, path, url, self.folder, "--user", self.alice_name)
        self.bob = User(version, path, url, self.folder, "--token", token)
        self.wrong = User(version, path, url, self.folder, "--token", "not-the-token")
        self.evil = User(version, path, url, evil)
        with open(os.path.join(self.folder, "ca.crt"), encoding="utf-8") as file:
            self.authority = file.read()
        wait_for("the new token is known",
                   lambda: self.bob.run("auth", "can-i", "get", "pods", status=None).strip() in ("no", "yes"))

    def done(self):
        for user in (self.admin, self.alice, self.bob, self.wrong, self.evil):
            user.done()


def identity(b):
    has(b.admin.run("auth", "whoami"), r"admin", r"system:masters")
    has(b.alice.run("auth", "whoami"), b.alice_name, r"team-a", r"system:authenticated")
    has(b.bob.run("auth", "whoami"), b.bob_name, r"team-b")
    has(b.wrong.run("get", "nodes", status=1), r"You must be logged in|Unauthorized")
    # Another authority's certificate: the client refuses the server; told not to look, the server refuses it.
    has(b.evil.run("get", "nodes", status=1), r"certificate")
    with open(b.evil.config, encoding="utf-8") as file:
        text = [line for line in file.read().splitlines() if "certificate-authority-data" not in line]
    with open(b.evil.config, "w", encoding="utf-8") as file:
        file.write("\n".join(text) + "\n")
    has(b.evil.run("get", "nodes", "--insecure-skip-tls-verify", status=1), r"You must be logged in|Unauthorized")


def refusals(b):
    for user, name in ((b.alice, b.alice_name), (b.bob, b.bob_name)):
        has(user.run("get", "jobsets", status=1),
            f'jobsets.jobset.x-k8s.io is forbidden: User "{name}" cannot list resource "jobsets" in API group '
            r'"jobset.x-k8s.io" in the namespace "default"')
        has(user.run("get", "jobset", "x", status=1), f'"x" is forbidden: User "{name}" cannot get resource "jobsets"')
        has(user.run("get", "nodes", status=1), r"at the cluster scope")
        has(user.run("get", "pods", "-A", status=1), r'cannot list resource "pods" .*at the cluster scope')
        has(user.run("apply", "-f", "-", text=JOBSET.format(name="nope"), status=1), r"forbidden")
        has(user.run("get", "--raw", "/metrics", status=1), r"[Ff]orbidden")
        check(user.run("auth", "can-i", "create", "jobsets", status=None).strip() == "no", "can-i says yes")
    check(b.admin.run("auth", "can-i", "create", "jobsets").strip() == "yes", "the admin may not")


def roles(b):
    """view reads, without secrets and exec; edit writes; admin gives what it has and no more."""
    name, js = "rb-" + b.tag, "js-" + b.tag
    b.admin.run("apply", "-f", "-", text=BINDING.format(name=name, user=b.bob_name, role="view"))
    b.admin.run("apply", "-f", "-", text=JOBSET.format(name=js))
    b.admin.run("create", "secret", "generic", "s-" + b.tag, "--from-literal=a=b")
    b.admin.run("wait", "--for=jsonpath={.status.replicatedJobsStatus[0].ready}=1", f"jobset/{js}", "--timeout=60s")
    has(b.bob.run("get", "jobset", js), js)
    b.bob.until(r"hello", "logs", f"job/{js}-w-0")  # a task that runs may not have said it yet
    check(b.bob.run("auth", "can-i", "get", "pods").strip() == "yes", "view does not read pods")
    has(b.bob.run("auth", "can-i", "--list"), r"jobsets\.jobset\.x-k8s\.io\s.*\[get list watch\]")
    has(b.bob.run("get", "secrets", status=1), r'cannot list resource "secrets"')
    pod = b.bob.run("get", "pods", "-l", f"jobset.sigs.k8s.io/jobset-name={js}", "-o", "name").strip()
    has(b.bob.run("exec", pod, "--", "true", status=1), r"pods/exec|[Ff]orbidden")
    has(b.bob.run("delete", "jobset", js, status=1), r"cannot delete resource")
    has(b.bob.run("label", "jobset", js, "a=b", status=1), r"cannot patch resource")
    has(b.bob.run("get", "pods", "-n", "kube-system", status=1), r'in the namespace "kube-system"')
    b.admin.run("delete", "rolebinding", name)
    has(b.bob.run("get", "jobset", js, status=1), r"forbidden")
    b.admin.run("apply", "-f", "-", text=BINDING.format(name=name, user=b.alice_name, role="edit"))
    b.alice.run("label", "jobset", js, "a=b")
    has(b.alice.run("get", "secret", "s-" + b.tag), r"Opaque")
    has(b.alice.run("apply", "-f", "-", text=BINDING.format(name="x", user="x", role="view"), status=1), r"forbidden")
    b.admin.run("delete", "rolebinding", name)
    b.admin.run("apply", "-f", "-", text=BINDING.format(name=name, user=b.alice_name, role="admin"))
    b.alice.run("apply", "-f", "-", text=BINDING.format(name="give-" + b.tag, user=b.bob_name, role="edit"))
    has(b.alice.run("apply", "-f", "-", text=BINDING.format(name="x", user="x", role="cluster-admin"), status=1),
        r"attempting to grant RBAC permissions not currently held")
    has(b.bob.run("delete", "jobset", js, "--timeout=60s"), r"deleted")
    b.admin.run("delete", "rolebinding", name, "give-" + b.tag)
    b.admin.run("delete", "secret", "s-" + b.tag)


def impersonation(b):
    has(b.admin.run("get", "pods", "--as", "zoe", status=1), r'User "zoe" cannot list')
    has(b.admin.run("auth", "whoami", "--as", "zoe", "--as-group", "g1"), r"zoe", r"g1")
    has(b.admin.run("get", "nodes", "--as", "zoe", "--as-group", "system:masters"), r"m-1")
    has(b.bob.run("get", "pods", "--as", "admin", status=1), r'cannot impersonate resource "users"')


def accounts(b):
    """A ServiceAccount's token is its user until the account goes."""
    name = "robot-" + b.tag
    b.admin.run("create", "serviceaccount", name)
    token = b.admin.run("create", "token", name, "--duration", "15m").strip()
    has(b.admin.run("create", "token", name, "--duration", "1m", status=1), r"may not specify a duration less than 10")
    robot = User(b.version, b.path, b.cluster.url, b.folder, "--token", token)
    try:
        has(robot.run("auth", "whoami"), f"system:serviceaccount:default:{name}", r"system:serviceaccounts:default")
        has(robot.run("get", "pods", status=1), r"cannot list resource")
        b.admin.run("create", "rolebinding", name, "--clusterrole=view", f"--serviceaccount=default:{name}")
        robot.run("get", "pods")
        b.admin.run("delete", "serviceaccount", name)
        has(robot.run("get", "pods", status=1), r"You must be logged in|Unauthorized")
    finally:
        robot.done()
    b.admin.run("delete", "rolebinding", name)
    has(b.admin.run("create", "token", name, status=1), f'serviceaccounts "{name}" not found')


def audit(b):
    """Every refusal and every write has its line, and no secret's content does."""
    path = os.path.join(b.cluster.data, "audit.log")
    b.admin.run("create", "secret", "generic", "quiet-" + b.tag, "--from-literal=password=hunter2-" + b.tag)

    def lines():
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]  # the last one may be half written

    def created(event):
        ref = event.get("objectRef", {})
        return event["verb"] == "create" and ref.get("resource") == "secrets" and event["responseStatus"]["code"] == 201
    wait_for("the secret's line", lambda: any(created(event) for event in lines()))
    found = lines()
    check(any(e["responseStatus"]["code"] == 403 and e["user"]["username"] == b.bob_name for e in found),
          "no line of a refusal")
    check(any(e.get("impersonatedUser", {}).get("username") == "zoe" and e["user"]["username"] == "admin"
              for e in found), "no line of an impersonation")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    check("hunter2" not in text, "a secret's content is in the audit log")
    b.admin.run("delete", "secret", "quiet-" + b.tag)


CASES = [identity, refusals, roles, impersonation, accounts, audit]


def run_version(version, path, cluster):
    bench = Bench(version, path, cluster)
    try:
        for case in CASES:
            case(bench)
    finally:
        bench.done()
    return f"{len(CASES)} groups"
