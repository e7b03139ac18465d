"""What a command of a script costs: `phalanx version`, `get` and `apply` against a controller on this computer.

Limit: a static program that does nothing, forked, executed and waited for; of processor time, /bin/true. Peers:
kubectl with the same cluster, and the same command by `phalanx-full`, which loads libcurl and GnuTLS as every command
did before it was two programs. All ways take turns, so that they see the same computer.
"""
import json
import os
import resource
import shutil
import subprocess
import time

from cluster import PHALANX, ROOT, LocalCluster, Scratch, jobset, task
from report import figure, median

ROUNDS = 40


def processor_s():
    """Processor time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def milliseconds(command, env):
    """(by the clock, by the processor, which does not hang on what else the computer does)"""
    start, spent_s = time.monotonic_ns(), processor_s()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return (time.monotonic_ns() - start) / 1e6, (processor_s() - spent_s) * 1e3


def in_turns(ways, env):
    """({name: median by the clock}, {name: by the processor}); a first round that warms caches does not count."""
    times = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, command in ways.items():
            spent = milliseconds(command, env)
            if number:
                times[name].append(spent)
    return tuple({name: median(spent[kind] for spent in all_spent) for name, all_spent in times.items()}
                 for kind in (0, 1))


def run(report):
    with Scratch() as scratch:
        with LocalCluster(scratch, os.path.join(ROOT, "clusters/mini.yaml")) as cluster:
            cluster.wait_ready(6)
            env = dict(os.environ, PHALANX_SERVER=cluster.url)
            manifest = scratch.join("manifest.json")
            with open(manifest, "w") as file:
                json.dump(jobset("applied", ["/bin/true"], chips=1, spec={"suspend": True}), file)
            kubectl = shutil.which("kubectl")
            cases = (("version", ["version"], None), ("get nodes", ["get", "nodes"], ["get", "nodes"]),
                     ("apply, unchanged", ["apply", "-f", manifest], ["apply", "--server-side", "-f", manifest]))
            for case, words, theirs in cases:
                ways = {"limit": [task("burst"), "1", "1", "/bin/true"], "fast": [PHALANX, *words],
                        "true": ["/bin/true"], "full": [PHALANX + "-full", *words]}
                if kubectl and theirs:
                    ways["kubectl"] = [kubectl, "--kubeconfig", os.path.join(cluster.folder, "kubeconfig"), *theirs]
                spent, processor = in_turns(ways, env)
                report.row(figure("cli", f"phalanx {case}", spent["fast"], "ms", spent["limit"], "phalanx-full",
                                  spent["full"]))
                report.row(figure("cli", f"phalanx {case}, processor", processor["fast"], "ms", processor["true"],
                                  "phalanx-full", processor["full"]))
                if "kubectl" in spent:
                    report.row(figure("cli", f"phalanx {case}, beside kubectl", spent["fast"], "ms", spent["limit"],
                                      "kubectl", spent["kubectl"]))
