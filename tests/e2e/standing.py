"""How the processes of a cluster stand: printed when a script gives up a wait, so that the reason can be found in its
output. A process that waits for a disk, for a lock or for a peer shows it in its state and its stack."""
import glob
import os
import shutil
import subprocess

STACKS_MAX = 12  # of gdb: each stops its process for a moment
LINES_MAX = 25   # of a task's output


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError as error:
        return f"({error.strerror})"


def below(folder):
    """Processes that work below the folder, or were told of it."""
    found = []
    for pid in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        try:
            at = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        if at.startswith(folder + "/") or folder in read(f"/proc/{pid}/cmdline"):
            found.append(int(pid))
    return [pid for pid in found if pid != os.getpid()]


def state_of(task):
    """A line of a thread: its name, its state, the kernel function and the system call that it is in."""
    stat = read(f"{task}/stat").rpartition(")")[2].split()
    call = read(f"{task}/syscall").split(" ")[0]
    return f"{read(task + '/comm')} {stat[0] if stat else '?'} {read(task + '/wchan')} call {call}"


def stack_of(pid):
    if not shutil.which("gdb"):
        return []
    try:
        done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 14"],
                              capture_output=True, text=True, timeout=30, errors="replace")
    except subprocess.TimeoutExpired:
        return ["gdb did not come back"]
    return [line[:160] for line in done.stdout.splitlines() if line.startswith(("Thread", "#"))]


def describe_processes(folder):
    stacks = 0
    for pid in below(folder):
        print(f"#   process {pid}: {read(f'/proc/{pid}/cmdline')[:200]}")
        states = [state_of(task) for task in sorted(glob.glob(f"/proc/{pid}/task/*"))]
        print("\n".join(f"#     {state}" for state in states))
        idle = len(states) == 1 and "epoll_wait" in states[0]  # an event loop without events
        if not idle and read(f"/proc/{pid}/comm").startswith(("phalanx", "train")) and stacks < STACKS_MAX:
            stacks += 1
            for line in stack_of(pid):
                print(f"#     {line}")


def describe_jobs(cluster):
    """JobSets that have not ended, and their Pods: a test may have run dozens before."""
    stand = set()
    for item in cluster.get("/apis/jobset.x-k8s.io/v1alpha2/jobsets").get("items", []):
        if not item.get("status", {}).get("terminalState"):
            stand.add(item["metadata"]["name"])
            print(f"#   jobset {item['metadata']['name']}: {item.get('status', {}).get('phalanx')}")
    for pod in cluster.get("/api/v1/pods").get("items", []):
        if pod["metadata"].get("labels", {}).get("jobset.sigs.k8s.io/jobset-name") in stand | {None}:
            print(f"#   pod {pod['metadata']['name']} on {pod['spec'].get('nodeName')}: {pod['status'].get('phase')}")


def describe(clusters):
    """Prints what every cluster's processes wait for, the objects, and the ends of its tasks' newest outputs."""
    print(f"# load {read('/proc/loadavg')}; pressure of disks: {read('/proc/pressure/io')}")
    for cluster in clusters:
        print(f"# cluster in {cluster.folder}")
        describe_processes(cluster.folder)
        logs = glob.glob(f"{cluster.folder}/**/log", recursive=True)
        for path in sorted(logs, key=os.path.getmtime)[-8:]:
            print(f"#   {path}")
            for line in read(path).splitlines()[-LINES_MAX:]:
                print(f"#     {line[:160]}")
        describe_jobs(cluster)
    print("# end", flush=True)
