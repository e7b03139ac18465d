"""What kubectl shows of a pod's cubes and switches, and of the slice and fabric session of a JobSet."""
import json

from e2e import check
from surface import Following, has

SWITCHES = [f"pod-1-{axis}{index}" for axis in "xyz" for index in range(16)]
MACHINES = [f"m-{number}" for number in range(1, 17)]


def conditions(item):
    return {each["type"]: (each["status"], each["reason"]) for each in item["status"]["conditions"]}


def got(k, *words):
    return json.loads(k.run("get", *words, "-o", "json"))


def tables(k, cluster):
    has(k.run("get", "switches"), r"^NAME\s+STATUS\s+HEALTH\s+CIRCUITS\s+BAD-PORTS\s+AGE\n",
        r"(?m)^pod-1-x5\s+Ready\s+Up\s+1\s+0\s+\w+$")
    has(k.run("get", "ocs", "pod-1-z15", "-o", "wide"), r"AGE\s+ADDRESS\s+REASON\n",
        r"pod-1-z15\s+Ready\s+Up\s+1\s+0\s+\w+\s+127\.0\.0\.1:\d+")
    names = k.run("get", "switches", "-o", "name").split()
    check(names == [f"switch.phalanx.dev/{name}" for name in SWITCHES], names)
    has(k.run("get", "cubes"), r"^NAME\s+STATUS\s+MACHINES\s+CHIPS\s+SLICE\s+AGE\n"
                               r"pod-1\.cube-1\s+Ready\s+16/16\s+64/64\s+default/torus\s+\w+\n$")
    has(k.run("get", "cubes", "-o", "wide"), r"AGE\s+POD\s+BAD-LINKS\n", r"default/torus\s+\w+\s+pod-1\s*\n")
    has(k.run("get", "slices"), r"^NAME\s+SHAPE\s+STATUS\s+SWITCHES\s+WITHOUT\s+CUBES\s+AGE\n"
                                r"torus\s+4x4x4\s+Connected\s+48/48\s+1\s+\w+\n$")
    has(k.run("get", "slices", "-A", "-o", "wide"), r"^NAMESPACE\s+NAME\s+SHAPE", r"AGE\s+POD\s+NAMES\n",
        r"default\s+torus\s+4x4x4\s+Connected\s+48/48\s+1\s+\w+\s+pod-1\s+pod-1\.cube-1\n")
    has(k.run("get", "fs"), r"^NAME\s+TABLES\s+CHANGES\s+READY\s+AGE\ntorus\s+4x4x4\s+\d+\s+True\s+\w+\n$")
    has(k.run("get", "fabricsessions", "-A", "-o", "wide"), r"default\s+torus\s+4x4x4\s+\d+\s+True")
    has(k.run("get", "cubes,slices,fabricsessions"), r"cube\.phalanx\.dev/pod-1\.cube-1", r"slice\.phalanx\.dev/torus",
        r"fabricsession\.phalanx\.dev/torus")


def objects(k, cluster):
    switches = got(k, "switches")
    check(switches["kind"] == "List" and [item["metadata"]["name"] for item in switches["items"]] == SWITCHES, switches)
    switch = got(k, "switch", "pod-1-y3")
    check(switch["kind"] == "Switch" and switch["apiVersion"] == "phalanx.dev/v1", switch)
    spec, status = switch["spec"], switch["status"]
    check((spec["pod"], spec["axis"], spec["index"], spec["protocol"]) == ("pod-1", "y", 3, "scpi"), spec)
    check(status["circuits"] == [{"plus": "pod-1.cube-1", "minus": "pod-1.cube-1", "plusPort": 1, "minusPort": 65}],
          status)
    check(status["health"] == "Up" and status["alarms"] == status["badCubes"] == [], status)
    check(conditions(switch) == {"Ready": ("True", "Up"), "Drained": ("False", "InService")}, status)
    cube = got(k, "cube", "pod-1.cube-1")
    check(cube["spec"] == {"pod": "pod-1", "index": 0, "machines": MACHINES}, cube["spec"])
    check(cube["status"]["slices"] == ["default/torus"] and conditions(cube)["Ready"] == ("True", "Ready"), cube)
    slice_ = got(k, "slice", "torus")
    check(slice_["spec"] == {"shape": "4x4x4", "onSwitchLoss": "Reroute"}, slice_["spec"])
    status = slice_["status"]
    check((status["phase"], status["pod"], status["cubes"], status["switches"], status["without"]) ==
          ("Connected", "pod-1", ["pod-1.cube-1"], 48, []), status)
    check(conditions(slice_) == {"Ready": ("True", "Connected")}, status)
    owner = slice_["metadata"]["ownerReferences"][0]
    uid = k.run("get", "jobset", "torus", "-o", "jsonpath={.metadata.uid}")
    check((owner["kind"], owner["name"], owner["uid"]) == ("JobSet", "torus", uid), owner)
    session = got(k, "fabricsession", "torus")
    check(session["kind"] == "FabricSession" and session["spec"] == {"slice": "torus"}, session)
    check(session["status"]["tables"] == "4x4x4" and session["status"]["without"] == [], session["status"])
    check(conditions(session)["Ready"][0] == "True" and session["status"]["toldAt"], session["status"])
    owner = session["metadata"]["ownerReferences"][0]
    check((owner["kind"], owner["uid"]) == ("Slice", slice_["metadata"]["uid"]), owner)


def about(k, cluster):
    """What kubectl tells beside the objects: describe, explain, what it may do, and that views are not written."""
    has(k.run("describe", "switch", "pod-1-x0"), r"Kind:\s+Switch", r"Plus Port:\s+1", r"Health:\s+Up")
    has(k.run("describe", "cube", "pod-1.cube-1"), r"Kind:\s+Cube", r"Ready Machines:\s+16")
    has(k.run("describe", "slice", "torus"), r"Kind:\s+Slice", r"Shape:\s+4x4x4", r"Phase:\s+Connected")
    has(k.run("describe", "fabricsession", "torus"), r"Kind:\s+FabricSession", r"Tables:\s+4x4x4")
    has(k.run("explain", "fabricsession.status"), r"tables\s+<string>", r"changes\s+<integer>")
    has(k.run("explain", "switch.status.circuits"), r"plusPort\s+<integer>")
    has(k.run("api-resources", "--api-group=phalanx.dev"), r"switches\s+ocs\s+phalanx\.dev/v1\s+false\s+Switch",
        r"cubes\s+phalanx\.dev/v1\s+false\s+Cube", r"slices\s+phalanx\.dev/v1\s+true\s+Slice",
        r"fabricsessions\s+fs\s+phalanx\.dev/v1\s+true\s+FabricSession")
    for kind in ("slice", "fabricsession"):
        has(k.run("delete", f"{kind}/torus", status=1), r"MethodNotAllowed|not allow")
    has(k.run("get", "fabricsession", "none", status=1), r'fabricsessions\.phalanx\.dev "none" not found')
    has(k.run("get", "switch", "pod-1-x16", status=1), r'switches\.phalanx\.dev "pod-1-x16" not found')


def drain(k, cluster):
    """A switch is drained by a patch, and the ranks' session goes around it and back."""
    before = got(k, "fabricsession", "torus")["status"]["changes"]
    following = Following(k, "get", "fabricsessions", "-w", "--no-headers")
    following.until(r"torus\s+4x4x4\s")
    k.run("patch", "switch", "pod-1-y3", "--type=merge", "-p", '{"spec":{"unschedulable":true}}')
    k.run("wait", "--for=condition=Drained", "switch/pod-1-y3", "--timeout=60s")
    following.until(rf"torus\s+4x4x4 without y3\s+{before + 1}\s+True")
    has(k.run("get", "switches", "--field-selector=spec.unschedulable=true", "--no-headers"),
        r"^pod-1-y3\s+Drained\s+Up\s+\d\s+0\s+\w+\n$")
    has(k.run("get", "slices"), r"torus\s+4x4x4\s+Connected\s+\d+/48\s+pod-1-y3\s+1\s")
    check(got(k, "fabricsession", "torus")["status"]["without"] == ["pod-1-y3"], "the session is not without y3")
    k.run("patch", "switch", "pod-1-y3", "--type=merge", "-p", '{"spec":{"unschedulable":null}}')
    k.run("wait", "--for=condition=Ready", "switch/pod-1-y3", "--timeout=60s")
    following.until(rf"torus\s+4x4x4\s+{before + 2}\s+True")
    following.stop()
    k.run("wait", "--for=jsonpath={.status.switches}=48", "slice/torus", "--timeout=60s")


CASES = [tables, objects, about, drain]  # drain changes what the others look at: clients take turns
