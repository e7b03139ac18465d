"""Rules of JobSet, Job, Pod and Kueue as manifests: kubectl applies each file and watches until it ends as it must.

A rule is a YAML file in tests/kubectl/rules/. It is applied as it stands in a namespace of its own; then the steps in
its comments are done in order:

    #$ get jobset x -o jsonpath={.status.restarts}     kubectl with these words, in the rule's namespace
    #> ^2$                                             a regular expression that its output must match, before long: a
                                                       question is asked again when something has changed
    #! 1                                               its exit status, when it is not 0
    #@ $FOLDER/done                                    makes this file, for tasks that wait for it. A command that
                                                       `exec` runs may be killed with the task that it ends

`#$ apply -f -` and `#$ create -f -` take the file itself as their input. A file whose first step is one of these is not
applied before. $NS stands for the namespace, $PORT1 to $PORT9 for TCP ports that nobody listens on,
$FOLDER for a folder that is empty at first and shared by all tasks.

A rule must hold on a slow computer too. What it asks for has to stay true once it is; a task that has to be seen in a
state stays in it until a step ends it, and does not sleep for a time.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
from e2e import PATIENCE_S, Failed, GaveUp, wait_for  # noqa: E402
from localcluster import free_ports  # noqa: E402
from surface import ENDS_S  # noqa: E402

FOLDER = os.path.join(HERE, "rules")
NEWS_S = 0.5
WORKERS = 4


class Step:
    def __init__(self, line, words, file=None):
        self.line, self.words, self.file = line, words, file
        self.patterns, self.refused, self.status = [], [], 0


class Rule:
    def __init__(self, path):
        self.path, self.name = path, os.path.relpath(path, FOLDER)[:-len(".yaml")]
        self.steps, self.alone, self.ports, self.folder = [], False, {}, None
        with open(path) as file:
            self.text = file.read()
        for number, line in enumerate(self.text.splitlines(), 1):
            if line.startswith("#$ "):
                self.steps.append(Step(number, shlex.split(line[3:])))
            elif line.startswith("#@ "):
                self.steps.append(Step(number, [], line[3:]))
            elif line.startswith("#> "):
                self.steps[-1].patterns.append(line[3:])
            elif line.startswith("#< "):
                self.steps[-1].refused.append(line[3:])
            elif line == "#: alone":
                self.alone = True
            elif line.startswith("#! "):
                self.steps[-1].status = int(line[3:])
        if not self.steps:
            raise Failed(f"{path}: a rule without a step")

    def expand(self, text, namespace):
        """The text with what stands for the namespace and for ports; the same ports each time."""
        return re.sub(r"\$PORT[1-9]", self.port, text).replace("$NS", namespace).replace("$FOLDER", self.folder)

    def port(self, found):
        if found[0] not in self.ports:
            self.ports[found[0]] = str(free_ports(1)[0])
        return self.ports[found[0]]

    @property
    def applies_itself(self):
        return self.steps[0].words[0] in ("apply", "create") and "-" in self.steps[0].words


def attempt(k, rule, namespace, step):
    """Why the step does not hold now; None: it does."""
    words = [rule.expand(w, namespace) for w in step.words]
    if words[0] == "wait" and step.status == 0:
        words = [w for w in words if not w.startswith("--timeout=")] + [f"--timeout={PATIENCE_S}s"]
    process = k.start("-n", namespace, *words)
    try:
        out, err = process.communicate(rule.expand(rule.text, namespace) if "-" in words else None, timeout=ENDS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"no end within {ENDS_S} s"
    if process.returncode != step.status:
        return f"status {process.returncode}, wanted {step.status}: {out}{err}"
    shown = out + err
    for pattern in step.patterns:
        if not re.search(rule.expand(pattern, namespace), shown, re.M):
            return f"no {pattern!r} in: {shown[:1500]}"
    for pattern in step.refused:
        if re.search(rule.expand(pattern, namespace), shown, re.M):
            return f"{pattern!r} is in: {shown[:1500]}"
    return None


def is_question(step):
    return step.words[0] in ("get", "describe", "logs", "events", "top", "auth", "exec", "api-resources", "explain")


def wait_for_news(k, version):
    """Until anything in the cluster has another version than this; a log has none, so not for long."""
    try:
        wait_for("a change", lambda: k.cluster_version() != version, NEWS_S)
    except GaveUp:
        pass


def run_step(k, rule, namespace, step):
    """Raises Failed with the place of a step that does not hold."""
    end = time.monotonic() + PATIENCE_S
    while True:
        late, version = time.monotonic() > end, k.cluster_version()
        why = attempt(k, rule, namespace, step)
        if why is None:
            return
        early = step.words[0] == "wait" and "no matching resources found" in why
        if late or not (is_question(step) or early):
            raise Failed(f"{rule.path}:{step.line}: {' '.join(step.words)}: {why}")
        wait_for_news(k, version)


def run_rule(k, rule, namespace):
    rule.folder = tempfile.mkdtemp(dir=k.home)
    k.run("create", "namespace", namespace)
    if not rule.applies_itself:
        k.run("-n", namespace, "apply", "-f", "-", text=rule.expand(rule.text, namespace))
    for step in rule.steps:
        if step.file:
            with open(rule.expand(step.file, namespace), "w"):
                pass
        else:
            run_step(k, rule, namespace, step)
    k.run("delete", "namespace", namespace, "--wait=false")


def rules(pattern=""):
    found = []
    for folder, _, names in sorted(os.walk(FOLDER)):
        found += [os.path.join(folder, name) for name in sorted(names) if name.endswith(".yaml")]
    return [Rule(path) for path in found if re.search(pattern, path)]


def run_rules(k, chosen, report, workers=WORKERS):
    """Runs the rules, some at a time; report(rule, why) for each, `why` None when it holds. Returns the failures."""
    def one(item):
        number, rule = item
        try:
            run_rule(k, rule, re.sub("[^a-z0-9]", "-", f"r{number}-{rule.name}"))
            return rule, None
        except Failed as reason:
            return rule, str(reason)

    failures = 0
    with ThreadPoolExecutor(max_workers=workers) as pool:
        for rule, why in pool.map(one, enumerate(chosen, 1)):
            failures += why is not None
            report(rule, why)
    return failures
