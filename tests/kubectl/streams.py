"""exec, attach, cp and logs of kubectl 1.30 and later (earlier ones speak SPDY, which is refused in words)."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time

from surface import Kubectl, has, lacks
from e2e import Failed, PATIENCE_S, check, wait_for  # noqa: E402

MANIFEST = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: {name}}}
spec:
  replicatedJobs:
  - name: workers
    replicas: 1
    template:
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          spec:
            terminationGracePeriodSeconds: 1
            containers:
            - name: main
              image: example/image:1
              env: [{{name: COLOUR, value: blue}}]
              command:
              - sh
              - -c
              - |
                echo first
                until test -e $PHX_TASK_DIR/go; do sleep 0.05; done
                echo second
                while :; do sleep 0.2; echo more; done
"""


def websockets(version):
    return version != "default" and int(version.split(".")[1]) >= 30


def processes(text):
    """Processes whose command line is exactly this."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").strip().decode(errors="replace")
        except OSError:
            continue
        if line == text:
            found.append(int(pid))
    return found


def start(k):
    name = "s" + k.version.replace(".", "-")
    k.run("apply", "-f", "-", text=MANIFEST.format(name=name))
    k.run("wait", "--for=jsonpath={.status.replicatedJobsStatus[0].ready}=1", f"jobset/{name}", "--timeout=60s")
    pods = k.run("get", "pods", "-l", f"jobset.sigs.k8s.io/jobset-name={name}", "-o", "name").split()
    check(len(pods) == 2, f"2 pods wanted, found {pods}")
    return name, pods


def old_client(k, cluster):
    """Its SPDY is refused with a sentence that says what to do."""
    name, pods = start(k)
    has(k.run("exec", pods[0], "--", "true", status=1), r"kubectl 1\.30 or later")
    k.run("delete", "jobset", name, "--timeout=60s")


# kubectl 1.30 to 1.33 may read before it has made its streams, and throws away the messages that it reads then
# (kubernetes/kubernetes#131189). It sends input only afterwards, so these commands print nothing before their input.

def shell(k, pod, script, *flags):
    """The output of a script that the pod's shell reads from its input."""
    return k.run("exec", "-i", *flags, pod, "--", "sh", text=script)


def after_input(k, pod, script, *arguments):
    """The output of a script on the command line that waits for a line of input."""
    return k.run("exec", "-i", pod, "--", "sh", "-c", "read line\n" + script, *arguments, text="go\n")


def commands(k, pods):
    out = k.start("exec", "-i", pods[0], "--", "sh")
    text, errors = out.communicate("echo out; echo $COLOUR; echo err >&2; exit 7", timeout=PATIENCE_S)
    check(out.returncode == 7, f"exit code {out.returncode}, wanted 7: {errors}")
    check(text == "out\nblue\n", f"output {text!r}")
    # kubectl 1.30 may read before it has made its streams, and says so of the empty message that opens each.
    errors = re.sub(r"^E.* Unknown stream id \d, discarding message\n", "", errors, flags=re.MULTILINE)
    has(errors, r"^err\n")
    check(k.run("exec", "-i", pods[0], "--", "cat", text="a\nb\n") == "a\nb\n", "standard input did not come back")
    check(k.run("exec", pods[0], "--", "cat") == "", "no standard input is an empty one")
    has(k.run("exec", pods[0], "--", "no-such-command", status=127), r"No such file")
    has(k.run("exec", pods[0], "-c", "other", "--", "true", status=1), r"container other")
    has(k.run("exec", "no-such-pod", "--", "true", status=1), r"not found")
    has(k.run("exec", pods[0], "--", "sh", "-c", "kill -9 $$", status=137), r"exit code 137")


def gone_clients(k, name, pods):
    """A command goes with its client, and with its pod."""
    marker = f"sleep 4{int(k.version.split('.')[1]):03d}.{os.getpid()}"  # nobody else's command
    client = k.start("exec", pods[0], "--", *marker.split())
    wait_for("the command runs", lambda: processes(marker))
    client.kill()
    client.communicate()
    wait_for("the command of a client that is gone is killed", lambda: not processes(marker))
    client = k.start("exec", pods[1], "--", *marker.split())
    wait_for("the command runs", lambda: processes(marker))
    k.run("delete", "jobset", name, "--timeout=60s")
    client.communicate(timeout=PATIENCE_S)
    check(client.returncode != 0, "a command that was killed with its pod is a failure")
    wait_for("no command lives on without its pod", lambda: not processes(marker))


def slow_reader(k, pods):
    """Output that nobody reads stops the command and nothing else; then all of it comes."""
    client = k.start("exec", "-i", pods[0], "--", "sh")
    client.stdin.write("head -c 30000000 /dev/zero; echo end")
    client.stdin.close()
    client.stdin = None
    has(shell(k, pods[0], "echo still here"), "still here")
    total = 0
    for chunk in iter(lambda: client.stdout.read(1 << 20), ""):
        total += len(chunk)
    client.communicate(timeout=PATIENCE_S)
    check(total == 30000004, f"{total} bytes of 30000004 came")


def task_of(k, pod):
    """A process of the pod's own command: what it sees as /tmp is the container's, not the machine's."""
    mark = "PHX_TASK_DIR=" + shell(k, pod, "echo $PHX_TASK_DIR").strip()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
                if mark in file.read().split("\0"):
                    return pid
        except OSError:
            continue
    raise Failed(f"no process has {mark}")


def copies(k, pods):
    """Into the /tmp that the task itself sees, which no other has, and back."""
    with tempfile.TemporaryDirectory() as folder:
        here, back = (os.path.join(folder, name) for name in ("here", "back"))
        there = "/tmp/copied-" + os.path.basename(folder)
        data = os.urandom(3 << 20)
        with open(here, "wb") as file:
            file.write(data)
        pod = pods[0].split("/")[1]
        k.run("cp", here, f"{pod}:{there}")
        with open(f"/proc/{task_of(k, pods[0])}/root{there}", "rb") as file:
            check(file.read() == data, "what was copied to the pod is something else")
        has(k.run("exec", pods[1], "--", "ls", there, status=2), r"No such file")
        k.run("cp", f"{pod}:{there}", back)
        with open(back, "rb") as file:
            check(file.read() == data, "what was copied from the pod is something else")


def terminal(k, pods):
    """A terminal of the client's size, whose new size reaches the command."""
    main, other = pty.openpty()
    fcntl.ioctl(main, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    env = dict(os.environ, KUBECONFIG=k.config, HOME=k.home)
    client = subprocess.Popen([k.path, "exec", "-it", pods[0], "--", "sh", "-c",
                               "test -t 0 && echo $TERM; until stty size | grep '33 77'; do sleep 0.05; done; "
                               "trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.1; done"],
                              env=env, stdin=other, stdout=other, stderr=other, start_new_session=True,
                              preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(other)
    text, resized = "", False
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if "ready" in text and "33 77" in text and not resized:
            resized = True
            fcntl.ioctl(main, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 99, 0, 0))
        if resized:  # told again and again: a client that has just begun may not listen to the signal yet
            os.kill(client.pid, signal.SIGWINCH)
        if not select.select([main], [], [], 0.2)[0]:
            continue
        try:
            text += os.read(main, 4096).decode(errors="replace")
        except OSError:  # nobody has the other end any more
            break
    os.close(main)
    check(client.wait(timeout=PATIENCE_S) == 4, f"exit code {client.returncode}: {text!r}")
    has(text, r"xterm", r"33 77", r"44 99")


def attach(k, pods):
    client = k.start("attach", pods[0])
    lines = [client.stdout.readline() for _ in range(2)]
    client.kill()
    client.communicate()
    check(lines == ["more\n", "more\n"], f"attach shows {lines}")


def logs(k, name, pods):
    for pod in pods:
        k.until("first", "logs", pod)
        k.run("exec", pod, "--", "sh", "-c", "touch $PHX_TASK_DIR/go")
    for pod in pods:
        k.until("more", "logs", pod)
    pod = pods[0]
    timed = [line.split(" ", 1) for line in k.run("logs", pod, "--timestamps").splitlines()]
    for stamp, text in timed:
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", stamp), f"time {stamp!r}")
    check([text for stamp, text in timed[:2]] == ["first", "second"], f"lines {timed[:2]}")
    check(timed[0][0] < timed[1][0], "the second line did not come later than the first")
    since = k.run("logs", pod, f"--since-time={timed[1][0]}").splitlines()
    check(since[0] == "second", f"since the second line's time: {since[:2]}")
    check(k.run("logs", pod, "--tail=1", "--since=1h") == "more\n", "--tail=1")
    check(k.run("logs", pod, "--limit-bytes=8") == "first\nse", "--limit-bytes=8")
    has(k.run("logs", pod, "-p", status=1), r'previous terminated container "main" in pod .* not found')
    has(k.run("logs", pod, "-c", "other", status=1), r"container other is not valid for pod")
    has(k.run("logs", f"job/{name}-workers-0", "--tail=1"), r"more")
    selected = k.run("logs", "-l", f"jobset.sigs.k8s.io/jobset-name={name}", "--all-containers", "--prefix", "--tail=1")
    for pod in pods:
        has(selected, rf"\[{pod}/main\] more")
    if k.version in ("1.32", "1.33"):
        has(k.run("logs", f"job/{name}-workers-0", "--all-pods", "--tail=1"), *[pod.split("/")[1] for pod in pods])


POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  initContainers:
  - {{name: init, image: example/image:1, command: [sh, -c, "echo from init"]}}
  - {{name: side, image: example/image:1, restartPolicy: Always, command: [sh, -c, "echo from side; exec sleep 1000"]}}
  containers:
  - {{name: one, image: example/image:1, command: [sh, -c, "echo from one; exec sleep 1000"]}}
  - name: two
    image: example/image:1
    restartPolicy: OnFailure
    command: [sh, -c, "test -e {mark} && echo second && exec sleep 1000; echo from two; touch {mark}; exit 3"]
"""


def several_containers(k):
    """Each container's log and commands, the run before a restart in place, and what is no container."""
    with tempfile.TemporaryDirectory() as folder:
        name = "c" + k.version.replace(".", "-")
        os.chmod(folder, 0o777)
        k.run("apply", "-f", "-", text=POD.format(name=name, mark=os.path.join(folder, "mark")))
        k.until(r"^1$", "get", "pod", name, "-o", "jsonpath={.status.containerStatuses[1].restartCount}")
        k.run("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
        for container in ("init", "side", "one"):  # what runs may not have said it yet
            k.until(rf"\Afrom {container}\n\Z", "logs", name, "-c", container)
        k.until(r"\Asecond\n\Z", "logs", name, "-c", "two")
        check(k.run("logs", name, "-c", "two", "--previous") == "from two\n", "the log of the run before")
        has(k.run("logs", name, "--all-containers", "--prefix"), rf"\[pod/{name}/init\] from init",
            rf"\[pod/{name}/side\] from side", rf"\[pod/{name}/one\] from one", rf"\[pod/{name}/two\] second")
        has(k.run("logs", name, "-c", "nope", status=1), rf"container nope is not valid for pod {name}")
        has(k.run("get", "--raw", f"/api/v1/namespaces/default/pods/{name}/log", status=1),
            rf"a container name must be specified for pod {name}, choose one of: \[init side one two\]")
        if websockets(k.version):
            for container in ("side", "one", "two"):
                check(shell(k, name, "echo in", "-c", container) == "in\n", f"exec in {container}")
            has(k.run("exec", name, "-c", "init", "--", "true", status=1), r'container "init" .* is not running')
        k.run("delete", "pod", name, "--timeout=60s")


def long_script(k, pods):
    """16 KiB of URL."""
    script = "# " + "x" * 15000 + "\necho the end"
    check(after_input(k, pods[0], script) == "the end\n", "a script of 15 KB")
    words = [str(number) for number in range(900)]
    check(after_input(k, pods[0], 'echo "$@"', "sh", *words).split() == words, "900 words")
    has(k.run("exec", pods[0], "--", "echo", *(words * 2), status=1), r"longer than 16384 bytes or 1024 parameters")
    lacks(k.run("exec", pods[0], "--", "echo", *(words * 9), status=1), r"reset|broken pipe|EOF")
    has(k.run("exec", pods[0], "--", "sh", "-c", "x" * 17000, status=1), r"longer than 16384 bytes")


def own_client(k, pods, phalanx, env):
    """phalanx exec and phalanx logs."""
    def own(*words, text=None, status=0):
        done = subprocess.run([phalanx, *words], env=env, input=text, capture_output=True, text=True,
                              timeout=PATIENCE_S)
        check(done.returncode == status, f"phalanx {words}: {done.returncode} {done.stderr}")
        return done.stdout + (done.stderr if status else "")

    pod = pods[0].split("/")[1]
    check(own("exec", pod, "--", "sh", "-c", "echo $COLOUR") == "blue\n", "phalanx exec")
    check(own("exec", "-i", "-c", "main", pod, "--", "cat", text="a\nb\n") == "a\nb\n", "phalanx exec -i")
    own("exec", pod, "--", "sh", "-c", "exit 7", status=7)
    check(len(own("exec", pod, "--", "head", "-c", "20000000", "/dev/zero")) == 20000000, "20 MB of phalanx exec")
    has(own("exec", "-c", "nope", pod, "--", "true", status=1), r"container nope is not valid for pod")
    timed = own("logs", "-c", "main", "--timestamps", "--tail", "2", pod).splitlines()
    check(len(timed) == 2 and all(re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z more$", line) for line in timed),
          f"phalanx logs --timestamps: {timed}")


def run_version(version, path, cluster, own=None):
    k = cluster.kubectl(version, path) if hasattr(cluster, "kubectl") else Kubectl(version, path, cluster.url)
    try:
        if not websockets(version):
            old_client(k, cluster)
            several_containers(k)
            return "SPDY is refused"
        name, pods = start(k)
        commands(k, pods)
        for case in (slow_reader, copies, terminal, long_script):
            case(k, pods)
        logs(k, name, pods)
        attach(k, pods)
        several_containers(k)
        if own:
            own_client(k, pods, *own)
        gone_clients(k, name, pods)
    finally:
        k.done()
    return "exec, cp, attach, logs"
