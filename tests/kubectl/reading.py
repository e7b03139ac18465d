"""What kubectl reads: get in all its forms, describe, events, explain, discovery, raw paths."""
import json
import re

from e2e import check, wait_for
from surface import MANIFEST, Following, has, lacks

READY = "--for=jsonpath={.status.replicatedJobsStatus[0].ready}=2"
SELECTOR = "jobset.sigs.k8s.io/jobset-name=reading"


def start(k):
    k.run("apply", "-f", "-", text=MANIFEST.format(name="reading", seconds=600))
    k.run("wait", READY, "jobset/reading", "--timeout=60s")


def names(text):
    return [line.split()[0] for line in text.splitlines() if line.strip()]


def get_forms(k, cluster):
    start(k)
    has(k.run("get", "pods", "-o", "wide"), r"NAME\s+READY\s+STATUS\s+RESTARTS\s+AGE\s+IP\s+NODE\s+NOMINATED NODE",
        r"reading-workers-0-0-\w{5}\s+1/1\s+Running\s+0\s+\w+\s+127\.0\.1\.\d+\s+m-\d+")
    has(k.run("get", "pods", "-o", "yaml"), r"^apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod", r"kind: List")
    pods = json.loads(k.run("get", "pods", "-o", "json"))["items"]
    check(len(pods) == 4 and all(p["status"]["phase"] == "Running" for p in pods), f"4 running pods: {len(pods)}")
    has(k.run("get", "pods", "-o", "jsonpath={range .items[*]}{.metadata.name}={.status.phase}{\"\\n\"}{end}"),
        r"^(reading-workers-\d-\d-\w{5}=Running\n){4}$")
    has(k.run("get", "pods", "-o", "custom-columns=WHO:.metadata.name,WHERE:.spec.nodeName"),
        r"^WHO\s+WHERE\nreading-workers-\S+\s+m-\d+\n")
    has(k.run("get", "pods", "-o", "go-template={{range .items}}{{.kind}} {{end}}"), r"^(Pod ){4}$")
    sorted_names = names(k.run("get", "pods", "--sort-by=.metadata.name", "--no-headers"))
    check(len(sorted_names) == 4 and sorted_names == sorted(sorted_names), f"sorted: {sorted_names}")
    for name, rank in (("first", 9), ("second", 10), ("third", 1)):
        k.run("create", "configmap", name, f"--from-literal=rank={rank}")
    by_rank = k.run("get", "configmaps", "--sort-by={.data.rank}", "-o", "name").split()
    check(by_rank == ["configmap/third", "configmap/first", "configmap/second"], f"sorted by rank: {by_rank}")
    has(k.run("get", "pods", "-L", "batch.kubernetes.io/job-completion-index", "--no-headers"), r"\s[01]\n")
    has(k.run("get", "pods", "--show-labels"), r"LABELS", r"replicatedjob-name=workers")
    check(len(names(k.run("get", "pods", "--chunk-size=1", "--no-headers"))) == 4, "chunks lose pods")


def get_selected(k, cluster):
    check(len(names(k.run("get", "pods", "-l", SELECTOR + ",jobset.sigs.k8s.io/job-index=1", "-o", "name"))) == 2,
          "two pods have job index 1")
    has(k.run("get", "pods", "-l", "batch.kubernetes.io/job-completion-index notin (0)", "-o", "name"),
        r"^(pod/reading-workers-\d-1-\w+\n){2}$")
    check(k.run("get", "pods", "-l", "!job-name", "-o", "name") == "", "all pods have job-name")
    node = k.run("get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}")
    has(k.run("get", "pods", f"--field-selector=spec.nodeName={node},status.phase=Running", "-o", "name"),
        r"pod/reading")
    check(k.run("get", "pods", "--field-selector=status.phase!=Running", "-o", "name") == "", "all pods run")
    has(k.run("get", "pods", "--field-selector=foo=bar", status=1), r"field label not supported: foo")
    has(k.run("get", "pods", "-l", "a in (", status=1), r"unable to parse|couldn't parse|invalid|BadRequest")
    has(k.run("get", "pods", "-A"), r"^NAMESPACE\s+NAME\s+READY", k.namespace + r"\s+reading-workers-0-0")
    has(k.run("get", "jobset", "reading", "none", status=1), r"^reading|\nreading",
        r'jobsets\.jobset\.x-k8s\.io "none" not found')
    check(k.run("get", "jobset", "none", "--ignore-not-found") == "", "--ignore-not-found is silent")
    has(k.run("get", "jobset/reading", "node/m-1"), r"jobset\.jobset\.x-k8s\.io/reading", r"node/m-1\s+Ready")
    has(k.run("get", "jobsets,jobs"), r"jobset\.jobset\.x-k8s\.io/reading", r"job\.batch/reading-workers-1")
    has(k.run("get", "all"), r"pod/reading-workers-0-0", r"service/reading\s+ClusterIP\s+None",
        r"job\.batch/reading-workers-0", r"jobset\.jobset\.x-k8s\.io/reading")
    has(k.run("get", "nonsense", status=1), r"the server doesn't have a resource type \"nonsense\"")
    has(k.run("get", "po,no"), r"pod/reading", r"node/m-1")
    has(k.run("get", "ns", k.namespace, "-o", "name"), f"^namespace/{k.namespace}$")


def watches(k, cluster):
    all_maps = Following(k, "get", "configmaps", "-w", "--no-headers")
    events = Following(k, "get", "configmaps", "-w", "--output-watch-events", "--watch-only", "-v=6")
    events.until("watch=true")  # of what was made before it would say nothing
    one = Following(k, "get", "configmap", "seen", "-w", "--no-headers", "-o", "jsonpath={.data.a};")
    one.end(status=1)  # there is none yet
    k.run("create", "configmap", "seen", "--from-literal=a=1")
    all_maps.until(r"seen\s+1")
    one = Following(k, "get", "configmap", "seen", "-w", "-o", "jsonpath={.data.a};")
    one.until("1;")
    k.run("patch", "configmap", "seen", "-p", '{"data":{"a":"2","b":"3"}}')
    all_maps.until(r"seen\s+2")
    one.until("1;2;")
    selected = Following(k, "get", "configmaps", "-w", "-l", "colour=red", "--no-headers")
    k.run("label", "configmap", "seen", "colour=red")
    selected.until(r"seen\s+2")
    k.run("delete", "configmap", "seen")
    events.until(r"ADDED\s+seen[\s\S]*MODIFIED\s+seen[\s\S]*DELETED\s+seen")
    for following in (all_maps, events, one, selected):
        following.stop()


def describe(k, cluster):
    has(k.run("describe", "jobset", "reading"), r"Name:\s+reading", r"Kind:\s+JobSet", r"Completion Mode:\s+Indexed",
        r"Replicated Jobs Status:", r"State:\s+Running")
    has(k.run("describe", "job", "reading-workers-0"), r"Parallelism:\s+2", r"Controlled By:\s+JobSet/reading",
        r"Pods Statuses:\s+2 Active \(2 Ready\)")
    has(k.run("describe", "pods", "-l", SELECTOR), r"Controlled By:\s+Job/reading-workers-1", r"google\.com/tpu:\s+1",
        r"State:\s+Running", r"Scheduled\s+\w+\s+\S+\s+Successfully assigned")
    node = k.run("get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}")
    has(k.run("describe", "node", node), r"Ready\s+True", r"Non-terminated Pods:", k.namespace + r"\s+reading-workers",
        r"google\.com/tpu\s+\d+\s+\d+")
    has(k.run("describe", "namespace", k.namespace), r"Status:\s+Active")
    has(k.run("describe", "service", "reading"), r"Type:\s+ClusterIP", r"IP:\s+None")
    has(k.run("describe", "jobset", "none", status=1), r"not found")
    k.run("create", "configmap", "told", "--from-literal=a=first line")
    has(k.run("describe", "configmap", "told"), r"a:\n----\nfirst line")
    k.run("create", "secret", "generic", "hidden", "--from-literal=word=sesame")
    text = k.run("describe", "secret", "hidden")
    has(text, r"Type:\s+Opaque", r"word:\s+6 bytes")
    lacks(text, r"sesame", r"c2VzYW1l")
    k.run("create", "quota", "most", "--hard=pods=50")
    has(k.run("describe", "quota", "most"), r"pods\s+\d+\s+50")


def events(k, cluster):
    has(k.run("get", "events", "--sort-by=.lastTimestamp"), r"LAST SEEN\s+TYPE\s+REASON\s+OBJECT\s+MESSAGE",
        r"Normal\s+Scheduled\s+pod/reading-workers-0-0")
    pod = k.run("get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
    text = k.run("events", "--for", "pod/" + pod)
    has(text, r"Scheduled\s+Pod/" + pod, r"Started\s+Pod/" + pod)
    check(all(pod in line for line in text.splitlines()[1:]), f"events of others: {text}")
    has(k.run("events", "--types=Normal"), r"Scheduled")
    has(k.run("get", "events", "--field-selector=reason=Started,involvedObject.kind=Pod"), r"Started\s+pod/")
    following = Following(k, "events", "-w")
    following.until("Scheduled")
    k.run("delete", "pod", pod, "--wait=false")
    following.until(r"Killing\s+Pod/" + pod)
    following.stop()


def top(k, cluster):
    """What machines and Pods use; known some heartbeats after they begin."""
    def shows(pattern, *words):
        def look():
            return re.search(pattern, k.run("top", *words, status=None))
        wait_for(f"top {' '.join(words)} shows {pattern}", look)

    k.run("run", "busy", "--image=none", "--restart=Never", "--command", "--", "sleep", "600")
    k.run("wait", "--for=condition=Ready", "pod/busy", "--timeout=60s")
    shows(r"NAME\s+CPU\(cores\)\s+CPU\S*\s+MEMORY\(bytes\)\s+MEMORY\S*\s+m-1\s+\d+m\s+", "node")
    shows(r"(?m)^busy\s+\d+m\s+\d+Mi", "pod")
    shows(r"(?m)^busy\s+\S+\s+\d+m\s+\d+Mi", "pod", "busy", "--containers")
    has(k.run("top", "pod", "none", status=1), r"not found|NotFound")
    k.run("delete", "pod", "busy", "--now")


def explain(k, cluster):
    has(k.run("explain", "jobset"), r"KIND:\s+JobSet", r"VERSION:\s+\S*v1alpha2", r"spec\s+<JobSetSpec>")
    has(k.run("explain", "jobset.spec.replicatedJobs.dependsOn"), r"name\s+<string>", r"status\s+<string>")
    has(k.run("explain", "jobset", "--recursive"), r"failurePolicy\s+<", r"maxRestarts\s+<integer>",
        r"terminationGracePeriodSeconds\s+<integer>")
    has(k.run("explain", "pods.spec.containers.env"), r"valueFrom\s+<EnvVarSource>")
    has(k.run("explain", "job.spec.completionMode"), r"Indexed")
    has(k.run("explain", "clusterqueue.spec.preemption"), r"reclaimWithinCohort")
    has(k.run("explain", "configmap.data"), r"map\[string\]string")
    has(k.run("explain", "jobset.spec.bogus", status=1), r'field "bogus" does not exist')
    has(k.run("explain", "nonsense", status=1), r"resource type \"nonsense\"|find resource")


def discovery(k, cluster):
    has(k.run("version", "-o", "json"), r'"serverVersion"', r'"minor": "31"')
    has(k.run("api-versions"), r"^authentication\.k8s\.io/v1\n", r"\nbatch/v1\n", r"jobset\.x-k8s\.io/v1alpha2",
        r"kueue\.x-k8s\.io/v1beta1\nkueue\.x-k8s\.io/v1beta2", r"\nv1\n")
    has(k.run("api-resources", "-o", "wide"), r"configmaps\s+cm\s+v1\s+true\s+ConfigMap\s+\S*create",
        r"workloads\s+kwl,wl\s+kueue\.x-k8s\.io/v1beta2\s+true\s+Workload")
    text = k.run("api-resources", "--namespaced=false", "-o", "name")
    has(text, r"(?m)^nodes$", r"clusterqueues\.kueue\.x-k8s\.io")
    lacks(text, r"(?m)^pods$")
    has(k.run("api-resources", "--api-group=jobset.x-k8s.io", "--verbs=patch,watch", "-o", "name"),
        r"^jobsets\.jobset\.x-k8s\.io$")
    has(k.run("cluster-info"), r"control plane.*is running at.*http://127\.0\.0\.1")
    check(k.run("get", "--raw", "/healthz") == "ok", "/healthz says ok")
    check(k.run("get", "--raw", "/readyz") == "ok", "/readyz says ok")
    raw = json.loads(k.run("get", "--raw", f"/api/v1/namespaces/{k.namespace}/events?limit=500"))
    check(raw["kind"] == "EventList" and raw["items"], f"not events: {str(raw)[:300]}")
    has(k.run("get", "--raw", "/api/v1/namespaces/default/pods/none", status=1), r'pods "none" not found')
    has(k.run("auth", "can-i", "delete", "jobsets"), r"^yes")
    has(k.run("auth", "can-i", "--list"), r"\*\.\*\s+\[\]\s+\[\]\s+\[\*\]")
    has(k.run("auth", "whoami"), r"Username\s+phalanx:local")
    k.run("delete", "jobset", "reading", "--timeout=60s")


CASES = [get_forms, get_selected, watches, describe, events, top, explain, discovery]
