"""What kubectl writes: apply on both sides, create in all its forms, replace, edit, patch, label, diff, delete."""
import json
import os

from e2e import check
from surface import MANIFEST, Following, has, lacks

MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}}}
data: {{a: "{value}"}}
"""
# Each as users write it; what the server adds must not make an unchanged file a change.
UNCHANGED = {
    "jobset/same": MANIFEST.format(name="same", seconds=600),
    "configmap/same": MAP.format(name="same", value="1"),
    "job/same-job": """
apiVersion: batch/v1
kind: Job
metadata: {name: same-job}
spec:
  parallelism: 1
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: none, command: [sleep, "600"], ports: [{containerPort: 80}]}
""",
    "pod/same-pod": """
apiVersion: v1
kind: Pod
metadata: {name: same-pod, labels: {a: b}}
spec:
  containers:
  - {name: main, image: none, command: [sleep, "600"], env: [{name: A, value: b}]}
""",
    "service/same-service": """
apiVersion: v1
kind: Service
metadata: {name: same-service}
spec: {selector: {a: b}, ports: [{port: 80}]}
""",
    "localqueue/same": """
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: same}
spec: {clusterQueue: none}
""",
    "clusterqueue/same-$TAG": """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: same-$TAG}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: ["google.com/tpu"]
    flavors: [{name: f, resources: [{name: google.com/tpu, nominalQuota: 8}]}]
""",
    "namespace/same-$TAG": """
apiVersion: v1
kind: Namespace
metadata: {name: same-$TAG, labels: {team: a}}
""",
    "role/same": """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: same}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
""",
}


def versions_of(k, kind_name):
    return k.run("get", kind_name, "-o", "jsonpath={.metadata.resourceVersion} {.metadata.generation}")


def quiet_version(k, kind_name):
    """Version and generation once the status has come to rest."""
    if kind_name.startswith("jobset"):
        k.run("wait", "--for=jsonpath={.status.replicatedJobsStatus[0].ready}=2", kind_name, "--timeout=60s")
    elif kind_name.startswith("job/"):
        k.run("wait", "--for=jsonpath={.status.ready}=1", kind_name, "--timeout=60s")
    elif kind_name.startswith("pod"):
        k.run("wait", "--for=condition=Ready", kind_name, "--timeout=60s")
    return versions_of(k, kind_name)


def unchanged(k, cluster):
    for target, text in UNCHANGED.items():
        target, text = target.replace("$TAG", k.tag), text.replace("$TAG", k.tag)
        has(k.run("apply", "-f", "-", text=text), r"created")
        before = quiet_version(k, target)
        has(k.run("apply", "-f", "-", text=text), r"configured|unchanged")
        after = versions_of(k, target)
        check(before == after, f"{target}: applied again: {before} became {after}")
        check(k.run("diff", "-f", "-", text=text) == "", f"{target}: diff of an unchanged file")
        k.run("delete", target, "--wait=false")
    for target, text in UNCHANGED.items():
        target, text = target.replace("$TAG", k.tag), text.replace("$TAG", k.tag)
        k.run("wait", "--for=delete", target, "--timeout=60s")
        has(k.run("apply", "--server-side", "-f", "-", text=text), r"serverside-applied")
        before = quiet_version(k, target)
        has(k.run("apply", "--server-side", "-f", "-", text=text), r"serverside-applied")
        after = versions_of(k, target)
        check(before == after, f"{target}: applied again on the server: {before} became {after}")
        k.run("delete", target, "--wait=false")


def apply_client_side(k, cluster):
    has(k.run("apply", "-f", "-", text=MAP.format(name="c", value=1)), r"configmap/c created")
    has(k.run("apply", "-f", "-", text=MAP.format(name="c", value=2)), r"configmap/c configured")
    check(k.run("get", "cm", "c", "-o", "jsonpath={.data.a}") == "2", "the second value holds")
    has(k.run("apply", "-f", "-", text=MAP.format(name="c", value=2)), r"configmap/c unchanged")
    has(k.run("apply", "view-last-applied", "configmap/c"), r"data:\n  a: \"2\"")
    k.run("apply", "-f", "-", text=MAP.format(name="c", value=2).replace("{a:", "{b:"))
    check(k.run("get", "cm", "c", "-o", "jsonpath={.data}") == '{"b":"2"}', "what left the file left the object")
    both = "apiVersion: v1\nkind: List\nitems:\n" + "".join(
        f"- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{x: z}}}}\n" for name in ("l1", "l2"))
    has(k.run("apply", "-f", "-", text=both), r"configmap/l1 created\nconfigmap/l2 created")
    listed = k.run("get", "cm", "l1", "l2", "-o", "yaml")
    has(listed, r"kind: List")
    has(k.run("apply", "-f", "-", text=listed), r"configmap/l1 (unchanged|configured)\nconfigmap/l2")
    documents = MAP.format(name="m1", value=1) + "---" + MAP.format(name="m2", value=1)
    has(k.run("apply", "-f", "-", text=documents), r"m1 created\nconfigmap/m2 created")
    has(k.run("delete", "-f", "-", text=documents), r'"m1" deleted[\s\S]*"m2" deleted')
    bad = MANIFEST.format(name="bad", seconds=1)
    has(k.run("apply", "-f", "-", text=bad.replace("replicas: 2", "replicas: -2"), status=1),
        r'The JobSet "bad" is invalid', r"spec\.replicatedJobs\[0\]\.replicas")
    has(k.run("apply", "-f", "-", text=bad.replace("spec:\n  rep", "spec:\n  bogus: 1\n  rep", 1), status=1),
        r'strict decoding error: unknown field "spec.bogus"')
    has(k.run("apply", "-f", "-", text=bad.replace("v1alpha2", "v9"), status=1), r'no matches for kind "JobSet"')
    has(k.run("apply", "-f", "-", "--dry-run=server", text=bad), r"created \(server dry run\)")
    k.run("get", "jobset", "bad", status=1)


def apply_server_side(k, cluster):
    def apply(manager, value, *words, status=0):
        return k.run("apply", "--server-side", "--field-manager", manager, *words, "-f", "-",
                     text=MAP.format(name="s", value=value), status=status)

    has(apply("one", 1), r"configmap/s serverside-applied")
    has(apply("two", 2, status=1), r'conflict with "one": \.data\.a', r"--force-conflicts")
    check(k.run("get", "cm", "s", "-o", "jsonpath={.data.a}") == "1", "a conflict changes nothing")
    has(k.run("diff", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-",
              text=MAP.format(name="s", value=2), status=1), r'-  a: "1"\n\+  a: "2"')
    has(apply("two", 2, "--dry-run=server", "--force-conflicts"), r"server dry run")
    check(k.run("get", "cm", "s", "-o", "jsonpath={.data.a}") == "1", "a dry run changes nothing")
    has(apply("two", 2, "--force-conflicts"), r"serverside-applied")
    check(k.run("get", "cm", "s", "-o", "jsonpath={.data.a}") == "2", "the forced value holds")
    text = k.run("get", "cm", "s", "-o", "yaml", "--show-managed-fields")
    has(text, r"manager: two\n    operation: Apply", r"f:data:\n\s+f:a: \{\}")
    lacks(k.run("get", "cm", "s", "-o", "yaml"), r"managedFields")
    k.run("patch", "cm", "s", "--type=merge", "-p", '{"data":{"a":"3"}}')
    has(apply("two", 2, status=1), r'conflict with "kubectl-patch"')
    name = "side"
    manifest = MANIFEST.format(name=name, seconds=600)
    has(k.run("apply", "--server-side", "-f", "-", text=manifest), r"serverside-applied")
    has(k.run("apply", "--server-side", "-f", "-", text=manifest.replace("replicas: 2", "replicas: 3"), status=1),
        r"spec\.replicatedJobs", r"immutable")
    k.run("delete", "jobset", name, "--timeout=60s")


GENERATORS = [  # what create makes by itself; 1.32 and later send these as protobuf
    ("configmap", "g", ["--from-literal=x=y"], "{.data.x}", "y"),
    ("secret generic", "g", ["--from-literal=p=q"], "{.data.p} {.type}", "cQ== Opaque"),
    ("secret docker-registry", "g2", ["--docker-server=a", "--docker-username=b", "--docker-password=c"], "{.type}",
     "kubernetes.io/dockerconfigjson"),
    ("serviceaccount", "g", [], "{.kind}", "ServiceAccount"),
    ("service clusterip", "g", ["--tcp=80:8080"], "{.spec.ports[0].port} {.spec.ports[0].targetPort}", "80 8080"),
    ("quota", "g", ["--hard=pods=70,cpu=64"], "{.spec.hard.pods}", "70"),
    ("role", "g", ["--verb=get,list", "--resource=pods"], "{.rules[0].verbs[1]} {.rules[0].resources[0]}", "list pods"),
    ("rolebinding", "g", ["--role=g", "--user=bob"], "{.roleRef.name} {.subjects[0].name}", "g bob"),
    ("job", "g", ["--image=none", "--", "sh", "-c", "exit 0"], "{.spec.template.spec.containers[0].command[1]}", "-c"),
    ("namespace", "g-$TAG", [], "{.metadata.name}", "g-$TAG"),
    ("priorityclass", "g-$TAG", ["--value=70", "--description=x"], "{.value} {.description}", "70 x"),
    ("clusterrole", "g-$TAG", ["--verb=get", "--resource=nodes"], "{.rules[0].resources[0]}", "nodes"),
    ("clusterrolebinding", "g-$TAG", ["--clusterrole=g-$TAG", "--group=g"], "{.subjects[0].kind}", "Group"),
]


def create_forms(k, cluster):
    for kind, name, words, path, wanted in GENERATORS:
        name, wanted = name.replace("$TAG", k.tag), wanted.replace("$TAG", k.tag)
        words = [word.replace("$TAG", k.tag) for word in words]
        target = f"{kind.split()[0]}/{name}"
        has(k.run("create", *kind.split(), name, "--dry-run=server", *words), r"created \(server dry run\)")
        k.run("get", target, status=1)
        has(k.run("create", *kind.split(), name, *words), r"created")
        got = k.run("get", target, "-o", f"jsonpath={path}")
        check(got == wanted, f"create {kind}: {got!r}, wanted {wanted!r}")
        has(k.run("create", *kind.split(), name, *words, status=1), r"already exists|AlreadyExists")
    k.run("wait", "--for=condition=Complete", "job/g", "--timeout=60s")
    has(k.run("create", "deployment", "g", "--image=x", status=1), r"could not find the requested resource")
    has(k.run("run", "lonely", "--image=none", "--restart=Never", "--command", "--", "sleep", "600"),
        r"pod/lonely created")
    k.run("wait", "--for=condition=Ready", "pod/lonely", "--timeout=60s")
    has(k.run("delete", "pod", "lonely", "--now"), r'pod "lonely" deleted')
    for kind, name, _, _, _ in GENERATORS:
        has(k.run("delete", kind.split()[0], name.replace("$TAG", k.tag)), r"deleted")


def editor(k, expression):
    path = os.path.join(k.home, "editor")
    with open(path, "w") as file:
        file.write(f"#!/bin/sh\nsed -i '{expression}' \"$1\"\n")
    os.chmod(path, 0o700)
    k.env["KUBE_EDITOR"] = path


def change(k, cluster):
    """replace, patch, label, annotate, set on a JobSet that runs."""
    manifest = MANIFEST.format(name="changed", seconds=600)
    k.run("create", "-f", "-", text=manifest)
    k.run("wait", "--for=jsonpath={.status.replicatedJobsStatus[0].ready}=2", "jobset/changed", "--timeout=60s")
    uid = k.run("get", "jobset", "changed", "-o", "jsonpath={.metadata.uid}")
    json_text = k.run("get", "jobset", "changed", "-o", "json")
    has(k.run("replace", "-f", "-", text=json_text.replace('"team": "a"', '"team": "b"')), r"replaced")
    check(k.run("get", "jobset", "changed", "-o", "jsonpath={.metadata.labels.team}") == "b", "replace holds")
    has(k.run("replace", "-f", "-", text=json_text, status=1), r"Conflict|object has been modified")
    has(k.run("label", "jobset", "changed", "team=c", status=1), r"--overwrite is false")
    has(k.run("label", "jobset", "changed", "team=c", "--overwrite"), r"labeled")
    has(k.run("label", "jobset", "changed", "team-"), r"unlabeled|labeled")
    has(k.run("label", "jobset", "changed", "bad key=x", status=1), r"invalid|name part must consist")
    has(k.run("annotate", "jobset", "--all", "note=one"), r"annotate")
    check(k.run("get", "jobset", "changed", "-o", "jsonpath={.metadata.annotations.note}") == "one", "annotate holds")
    has(k.run("annotate", "jobset", "changed", "note-"), r"annotate")
    k.run("patch", "jobset", "changed", "--type=merge", "-p", '{"metadata":{"labels":{"colour":"red"}}}')
    k.run("patch", "jobset", "changed", "--type=json", "-p",
          '[{"op":"test","path":"/metadata/labels/colour","value":"red"},'
          '{"op":"replace","path":"/metadata/labels/colour","value":"blue"}]')
    check(k.run("get", "jobset", "changed", "-o", "jsonpath={.metadata.labels.colour}") == "blue", "patches hold")
    k.run("patch", "jobset", "changed", "--type=json", "-p",
          '[{"op":"remove","path":"/metadata/labels/none"}]', status=1)
    has(k.run("patch", "jobset", "changed", "-p", '{"metadata":{}}', status=1), r"UnsupportedMediaType|not supported")
    has(k.run("patch", "jobset", "changed", "--type=merge", "-p", '{"spec":{"network":{"subdomain":"x"}}}', status=1),
        r"immutable")
    has(k.run("patch", "jobset", "changed", "--subresource=status", "--type=merge", "-p", '{"status":{"restarts":7}}'),
        r"patched")
    check(k.run("get", "jobset", "changed", "-o", "jsonpath={.status.restarts}") == "0", "the status is our own")
    has(k.run("get", "jobset", "changed", "--subresource=status"), r"changed\s+0")
    has(k.run("scale", "jobset", "changed", "--replicas=3", status=1), r"could not find the requested resource")
    has(k.run("scale", "job", "changed-workers-0", "--replicas=3", status=1), r"could not find the requested resource")
    check(k.run("get", "jobset", "changed", "-o", "jsonpath={.metadata.uid}") == uid, "still the same object")
    has(k.run("replace", "--force", "-f", "-", text=manifest), r"deleted", r"replaced")
    check(k.run("get", "jobset", "changed", "-o", "jsonpath={.metadata.uid}") != uid, "replace --force makes it anew")
    k.run("delete", "jobset", "changed", "--timeout=60s")


def edits(k, cluster):
    k.run("create", "-f", "-", text=MAP.format(name="e", value="old"))
    editor(k, "s/a: old/a: new/")
    has(k.run("edit", "configmap", "e"), r"configmap/e edited")
    check(k.run("get", "cm", "e", "-o", "jsonpath={.data.a}") == "new", "the edit holds")
    has(k.run("edit", "configmap", "e", errors=True), r"Edit cancelled, no changes made")
    editor(k, "s/^kind: .*/kind: Nonsense/")
    k.run("edit", "configmap", "e", status=1)


def builtin_patches(k, cluster):
    """Strategic merge, and set, where a kind is built in."""
    pod = UNCHANGED["pod/same-pod"].replace("same-pod", "patched")
    k.run("create", "-f", "-", text=pod)
    k.run("patch", "pod", "patched", "-p", '{"metadata":{"labels":{"x":"y"}}}')
    has(k.run("get", "pod", "patched", "--show-labels"), r"a=b,x=y")
    has(k.run("patch", "pod", "patched", "-p", '{"spec":{"restartPolicy":"Never"}}', status=1),
        r"pod updates may not change fields")
    has(k.run("set", "image", "pod/patched", "main=other"), r"image updated")
    check(k.run("get", "pod", "patched", "-o", "jsonpath={.spec.containers[*].image}") == "other", "the image holds")
    has(k.run("set", "env", "pod/patched", "A=c", status=1),
        r"pod updates may not change fields")
    k.run("create", "job", "patched", "--image=none", "--", "sleep", "600")
    has(k.run("set", "image", "job/patched", "patched=other", status=1), r"field is immutable")
    k.run("patch", "job", "patched", "-p", '{"spec":{"suspend":true}}')
    k.run("wait", "--for=condition=Suspended", "job/patched", "--timeout=60s")
    has(k.run("delete", "pod/patched", "job/patched"), r"deleted[\s\S]*deleted")


def diffs(k, cluster):
    text = MAP.format(name="d", value=1)
    has(k.run("diff", "-f", "-", text=text, status=1), r"\+kind: ConfigMap")
    k.run("apply", "-f", "-", text=text)
    check(k.run("diff", "-f", "-", text=text) == "", "no difference")
    has(k.run("diff", "-f", "-", text=text.replace('"1"', '"2"'), status=1), r'-  a: "1"\n\+  a: "2"')
    bad = MANIFEST.format(name="bad", seconds=1).replace("replicas: 2", "replicas: -2")
    has(k.run("diff", "-f", "-", text=bad, status=None), r"spec\.replicatedJobs\[0\]\.replicas")


def deletions(k, cluster):
    manifest = MANIFEST.format(name="gone", seconds=600)
    for cascade in ("background", "foreground"):
        k.run("create", "-f", "-", text=manifest)
        k.run("wait", "--for=jsonpath={.status.replicatedJobsStatus[0].active}=2", "jobset/gone", "--timeout=60s")
        has(k.run("delete", "jobset", "gone", f"--cascade={cascade}", "--timeout=60s"), r"deleted")
        k.run("wait", "--for=delete", "pods", "-l", "jobset.sigs.k8s.io/jobset-name=gone", "--timeout=60s")
        check(k.run("get", "jobs,pods", "-l", "jobset.sigs.k8s.io/jobset-name=gone", "-o", "name") == "",
              f"--cascade={cascade} leaves Jobs or Pods")
    k.run("create", "-f", "-", text=manifest)
    k.run("wait", "--for=jsonpath={.status.replicatedJobsStatus[0].active}=2", "jobset/gone", "--timeout=60s")
    has(k.run("delete", "jobset", "gone", "--dry-run=server"), r"deleted \(server dry run\)")
    k.run("get", "jobset", "gone")
    has(k.run("delete", "jobset", "gone", "--force", "--grace-period=0", "--timeout=60s"), r"force deleted")
    k.run("get", "jobset", "gone", status=1)
    for name in ("o1", "o2", "o3"):
        k.run("create", "configmap", name, "--from-literal=a=b")
    k.run("label", "configmap", "o1", "o2", "heap=x")
    has(k.run("delete", "configmap", "-l", "heap=x"), r'"o1" deleted\S*\nconfigmap "o2" deleted|"o1" deleted')
    has(k.run("get", "configmap", "-o", "name"), r"(?m)^configmap/o3$")
    k.run("delete", "configmap", "--all")
    check(k.run("get", "configmap", "-o", "name") == "", "--all leaves some")
    has(k.run("delete", "configmap", "o1", status=1), r'configmaps "o1" not found')
    k.run("delete", "configmap", "o1", "--ignore-not-found")


def finalizers(k, cluster):
    k.run("create", "-f", "-", text=MAP.format(name="held", value=1).replace(
        "{name: held}", "{name: held, finalizers: [example.com/hold]}"))
    has(k.run("delete", "configmap", "held", "--wait=false"), r"deleted")
    has(k.run("get", "configmap", "held", "-o", "yaml"), r"deletionTimestamp", r"example\.com/hold")
    waiting = Following(k, "wait", "--for=delete", "configmap/held", "--timeout=60s")
    k.run("patch", "configmap", "held", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
    waiting.end()
    k.run("get", "configmap", "held", status=1)


def finished_pods(k, cluster):
    """A Pod that has ended goes when it is deleted; its Job remembers what came of it."""
    k.run("create", "job", "over", "--image=none", "--", "true")
    k.run("wait", "--for=condition=Complete", "job/over", "--timeout=60s")
    has(k.run("get", "pods", "-l", "job-name=over"), r"Completed")
    has(k.run("delete", "pods", "-l", "job-name=over", "--timeout=60s"), r"deleted")
    check(k.run("get", "pods", "-l", "job-name=over", "-o", "name") == "", "the pod is still there")
    has(k.run("get", "job", "over", "-o", "jsonpath={.status.succeeded}"), r"^1$")
    k.run("delete", "job", "over")


GATED = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: gated}
spec:
  replicatedJobs:
  - name: w
    template:
      spec:
        parallelism: 6
        completions: 6
        template:
          spec:
            schedulingGates: [{name: x/one}, {name: x/two}]
            containers: [{name: c, image: i, command: [sleep, "600"]}]
"""


def replaced(k, pod, gates, status=0):
    body = json.loads(k.run("get", "pod", pod, "-o", "json"))
    body["spec"].pop("schedulingGates", None)
    if gates:
        body["spec"]["schedulingGates"] = [{"name": name} for name in gates]
    return k.run("replace", "-f", "-", text=json.dumps(body), status=status)


def applied(k, pod):
    """The file with the gates, then the file without."""
    body = json.loads(k.run("get", "pod", pod, "-o", "json"))
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod},
            "spec": {name: body["spec"][name] for name in ("schedulingGates", "containers")}}
    k.run("apply", "-f", "-", text=json.dumps(body))
    del body["spec"]["schedulingGates"]
    k.run("apply", "-f", "-", text=json.dumps(body))


def gates(k, cluster):
    """What a template's gates hold starts when the last of them is removed from the last Pod, however that is done."""
    k.run("create", "-f", "-", text=GATED)
    chosen = ("get", "pods", "-l", "jobset.sigs.k8s.io/jobset-name=gated")
    pods = k.until(r"(\S+ ){5}\S+", *chosen, "-o", "jsonpath={.items[*].metadata.name}").split()
    why = (*chosen, "-o", "jsonpath={.items[*].status.conditions[?(@.type==\"PodScheduled\")].reason}")
    check(k.run(*why) == " ".join(6 * ["SchedulingGated"]), "a Pod is not held")
    path = ("patch", "pod", pods[0], "--type=json", "-p")
    has(k.run(*path, '[{"op":"add","path":"/spec/schedulingGates/-","value":{"name":"new"}}]', status=1),
        r"spec\.schedulingGates: Forbidden: only deletion is allowed, but found new scheduling gate 'new'")
    has(replaced(k, pods[0], ["new"], status=1), r"only deletion is allowed")
    has(k.run(*path, '[{"op":"replace","path":"/spec/containers/0/image","value":"j"}]', status=1), "belongs to JobSet")
    k.run(*path, '[{"op":"remove","path":"/spec/schedulingGates"}]', "--dry-run=server")
    k.run(*path, '[{"op":"remove","path":"/spec/schedulingGates/0"}]')
    has(k.run("get", "pod", pods[0], "-o", "jsonpath={.spec.schedulingGates[*].name}"), r"^x/two$")
    k.run(*path, '[{"op":"remove","path":"/spec/schedulingGates"}]')
    has(k.run(*path, '[{"op":"add","path":"/spec/schedulingGates","value":[{"name":"x/one"}]}]', status=1),
        r"only deletion is allowed")
    k.run("patch", "pod", pods[1], "--type=merge", "-p", '{"spec":{"schedulingGates":null}}')
    k.run("patch", "pod", pods[2], "--type=strategic", "-p",
          '{"spec":{"schedulingGates":[{"$patch":"delete","name":"x/one"},{"$patch":"delete","name":"x/two"}]}}')
    replaced(k, pods[3], ["x/two"])
    replaced(k, pods[3], [])
    applied(k, pods[4])
    check(k.run(*why) == " ".join(5 * ["Unschedulable"] + ["SchedulingGated"]), k.run(*why))
    has(k.run("get", "jobset", "gated", "-o", "jsonpath={.status.phalanx.why}"),
        r"scheduling gates: x/one x/two \(of 1 of 6 Pods\)")
    replaced(k, pods[5], [])
    k.run("wait", "--for=condition=Ready", *chosen[1:], "--timeout=60s")
    check(k.run(*chosen, "-o", "jsonpath={.items[*].spec.schedulingGates}") == "", "gates are left")
    k.run("delete", "jobset", "gated", "--wait=false")


def gates_of_a_pod(k, cluster):
    manifest = """
apiVersion: v1
kind: Pod
metadata: {name: held-NAME}
spec:
  schedulingGates: [{name: x/one}, {name: x/two}]
  terminationGracePeriodSeconds: 2
  tolerations: [{key: a, operator: Exists}]
  containers: [{name: c, image: i, command: [sleep, "600"], resources: {limits: {cpu: 1}}}]
"""
    k.run("create", "-f", "-", text=manifest.replace("NAME", "a"))
    has(replaced(k, "held-a", ["x/one", "new"], status=1), r"only deletion is allowed.*'new'")
    replaced(k, "held-a", ["x/one"])
    replaced(k, "held-a", [])
    k.run("create", "-f", "-", text=manifest.replace("NAME", "b"))
    k.run("replace", "-f", "-", text=manifest.replace("NAME", "b").replace("  schedulingGates", "  # "))
    k.run("wait", "--for=condition=Ready", "pod/held-a", "pod/held-b", "--timeout=60s")
    k.run("delete", "pod", "held-a", "held-b", "--wait=false")


CASES = [unchanged, apply_client_side, apply_server_side, create_forms, change, edits, builtin_patches, diffs,
         deletions, finalizers, finished_pods, gates, gates_of_a_pod]
