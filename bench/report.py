"""What a bench says: one figure a line, as JSON or as rows of a table with the target beside."""
import json
import re
import statistics

# (bench, case pattern, key, relation, bound): what figures are held against; docs/bench.md has it in words.
TARGETS = [
    ("cli", r"^phalanx version$", "value", "<=", 3),
    ("gang", r"^64 tasks$", "ratio_limit", "<=", 3),
    ("gang", r"^64 tasks, by the command.*sbatch", "ratio_peer", ">=", 10),
    ("ha", r"^leader and etcd member killed", "ratio_limit", "<=", 1.5),
    ("ha", r"^hand-over: first write$", "value", "<=", 50),
    ("ha", r"^hand-over: requests failed$", "value", "<=", 0),
    ("ha", r"^leader, etcd member and machine killed, .* step beyond first write$", "value", "<=", 500),
    ("ha", r"^records on etcd", "ratio_limit", ">=", 0.8),
    ("ha", r"^kills at random", "value", "<=", 0),
    ("recover", r"^every rank past its barrier, 16 machines", "value", "<", 500),
    ("recover", r"^kill to detection", "value", "<", 50),
    ("recover", r"^process killed, .* each$", "value", "<=", 150),
    ("recover", r"^machine lost, warm spare, .* each$", "value", "<=", 300),
    ("recover", r"^machine lost, cold, .* each$", "value", "<=", 1000),
    ("recover", r"^process killed, beside torchrun$", "ratio_peer", ">=", 20),
    ("recover", r"^machine and controller lost, .* each$", "value", "<=", 3000),
    ("preflight", r"all are valid$", "ratio_limit", "<=", 1.2),
    ("scale", r"^16000 machines: controller CPU at", "value", "<=", 50),
    ("scale", r"^16000 machines: controller memory", "value", "<=", 600),
    ("scale", r"^16000 machines: all back after", "value", "<=", 10),
    ("api", r"memory growth$", "value", "<=", 20),
    ("api", r"^GET of one node$", "ratio_limit", ">=", 1),
    ("api", r"nodes as JSON: bytes$", "value", ">=", 400),
    ("api", r"idle watches: memory each$", "value", "<=", 1),
    ("diagnose", r"^judge 16384 ranks", "value", "<=", 2),
    ("hang", r"^judge 16384 ranks", "value", "<=", 2),
    ("rejoin", r"^decide and tell", "value", "<=", 10),
    ("detect", r"^(xid|unc|Inf).* -> (fault, quarantined|job is told), p99$", "value", "<=", 150),
    ("detect", r"^(reported|broken).* -> (fault, quarantined|loss noticed|job is told)", "value", "<", 50),
    ("isolation", r"", "ratio_limit", "<=", 1.15),
    ("islands", r"^two islands / one", "value", ">=", 97),
    ("siege", r"restarts$", "value", "<=", 0),
    ("siege", r"small write", "value", "<=", 50),
    ("siege", r"memory growth$", "value", "<=", 64),
    ("storm", r"turn of the loop", "value", "<=", 10),
    ("storm", r"^xid 79 .*p99$", "value", "<=", 150),
    ("storm", r"controller, most memory", "value", "<=", 128),
    ("storm", r"agent, most memory", "value", "<=", 32),
    ("probes", r"processor at the default periods$", "value", "<", 1),
    ("probes", r"memory growth$", "value", "<", 20),
    ("crashloop", r"^ladder: fewer", "value", ">=", 90),
    ("sim", r"^a year of RSC-1", "value", "<=", 60),
    ("sim", r"^RSC-1: memory", "value", "<=", 2048),
    ("sim", r"^16384 machines: a month", "value", "<=", 60),
    ("sim", r"beside 1,000$", "value", "<=", 1.2),
    ("sim", r"^ETTR: farthest", "value", "<=", 0.005),
    ("flow", r"^(Chained 128|Fused), \d+ hosts x \d+$", "ratio_peer", ">=", 0.95),
    ("flow", r"^OpByOp, (4|8|16) hosts x \d+$", "ratio_peer", ">=", 0.9),
    ("flow", r"^.*, (8|16) hosts x 1, beside mpirun$", "ratio_peer", ">=", 1),
    ("flow", r"^processor time of a launch, client", "value", "<=", 2),
    ("flow", r"^round trip of a value, 1 hosts x 1$", "value", "<=", 20),
    ("flow_lost", r"unlike an undisturbed run's$", "value", "<=", 0),
    ("flow_orders", r"^launches that came", "value", ">=", 1000000),
    ("flow_parity", r"^(smallest computation at|no) parity", "value", "<=", 50),
    ("flow_pipeline", r"", "ratio_peer", ">=", 3),
    ("flow_tenants", r"^device in use, (4|8|16) clients", "value", ">=", 95),
    ("flow_tenants", r"^shares .* furthest off$", "value", "<=", 5),
    ("lemons", r"^precision, default", "value", ">=", 0.85),
    ("lemons", r"^recall, default", "value", ">=", 0.9),
    ("lemons", r"away from", "value", "<=", 1.5),
    ("checkpoint", r"the loop stands still$", "ratio_limit", "<=", 1.2),
    ("checkpoint", r"^save 100 MB", "ratio_limit", "<=", 1.25),
    ("checkpoint", r"^restore 100 MB from memory$", "ratio_limit", "<=", 1.25),
    ("peer", r"^copy 2 x 100 MB", "ratio_limit", "<=", 1.43),
    ("tiers", r"^slow-down, intervals chosen$", "value", "<=", 2),
    ("pace", r"^slower by .* windows until it is found", "value", "<=", 3),
    ("pace", r"false alarms", "value", "<=", 0),
    ("admit", r"", "value", "<=", 100),
    ("fabric", r"^load of (\d+x){2}\d+$", "ratio_limit", "<=", 1),
    ("fabric", r"^load of 4x4x8-twisted$", "value", "<=", 75),
    ("fabric", r"^load of 4x8x8-twisted$", "value", "<=", 186),
    ("fabric", r"^load of 8x8x16-twisted$", "value", "<=", 1195),
    ("fabric", r"^load of 8x16x16-twisted$", "value", "<=", 2985),
    ("fabric", r"^load of [\dx]+-twisted without", "ratio_limit", "<=", 1.02),
    ("fabric", r"^plain, .* worst / optimum", "value", "<=", 1),
    ("fabric", r"^plain, .* worst / fault-free", "value", "<=", 1.071),
    ("fabric", r"^tables of 16x16x16$", "value", "<=", 400),
    ("fabric", r"^tables of 16x16x16 without", "value", "<=", 4000),
    ("fabric", r"^a link of 8x8x8 is cut: new tables", "value", "<=", 100),
    ("fabric", r"^a link of 16x16x16 is cut: new tables", "value", "<=", 4000),
    ("fabric", r"^plan of", "value", "<=", 1),
    ("fabric", r"^beyond one switching time", "value", "<=", 50),
    ("fabric", r"^twisted, .* worst / fault-free", "value", "<=", 1.02),
    ("fabric", r"^session of 4,096 emulated chips: discovery", "value", "<=", 5000),
    ("fabric", r"^session of 4,096 emulated chips: first and last", "value", "<=", 0),
    ("fabric", r"^availability: simulated", "value", "<=", 3),
    ("cycle", r"^all-to-all of 8x8x8$", "ratio_limit", "<=", 1.111),
    ("cycle", r"^no deadlock, 4x4x4 without x5$", "value", ">=", 10),
    ("torus", r"(steps lost|restarts|unlike an undisturbed run's)$", "value", "<=", 0),
    ("wire", r"^(put and )?get of 64 bytes, shared memory", "value", "<=", 20),
    ("wire", r"^(put and )?get of 64 bytes, shared memory", "best", "<=", 10),  # no thread sleeps
    ("wire", r"^(put and )?get of 64 bytes, TCP", "value", "<=", 60),
    ("place", r"^gang 1024 of 16384, \d+ % full", "value", "<=", 5),
]
TEXTS = ("bench", "case", "unit", "peer")
KEYS = ("bench", "case", "value", "unit", "limit", "ratio_limit", "peer", "peer_value", "ratio_peer", "best",
        "peer_best", "best_ratio", "p99", "runnable")
NEEDED = ("bench", "case", "value", "unit")
TOGETHER = (("limit", "ratio_limit"), ("peer", "peer_value", "ratio_peer"))


class RowError(ValueError):
    """A row that has not the form of docs/bench.md."""


def rounded(value):
    return float(f"{value:.4g}")


def figure(bench, case, value, unit, limit=None, peer=None, peer_value=None, more_is_better=False):
    """One line. ratio_limit is value / limit; ratio_peer says how many times better than the peer we are."""
    row = {"bench": bench, "case": case, "value": rounded(value), "unit": unit}
    if limit:
        row.update(limit=rounded(limit), ratio_limit=rounded(value / limit))
    if peer and peer_value and value:
        better = value / peer_value if more_is_better else peer_value / value
        row.update(peer=peer, peer_value=rounded(peer_value), ratio_peer=rounded(better))
    return row


def median(values):
    return statistics.median(values)


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def check_row(row):
    """Raises RowError unless the row has the form of docs/bench.md."""
    if not isinstance(row, dict):
        raise RowError(f"expected an object, got {json.dumps(row)}")
    for key, value in row.items():
        kinds, kind = (str, "a text") if key in TEXTS else ((int, float), "a number")
        if key not in KEYS:
            raise RowError(f"unknown member {key}")
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise RowError(f"{key} is {json.dumps(value)}, expected {kind}")
    missing = [key for key in NEEDED if key not in row]
    for keys in TOGETHER:
        if any(key in row for key in keys):
            missing += [key for key in keys if key not in row]
    if missing:
        raise RowError(f"{', '.join(missing)} missing in {json.dumps(row)}")


def targets_of(row):
    """[(text, met)] of the targets of this figure; empty when there is none, or when the peer isn't here."""
    found = []
    for bench, pattern, key, relation, bound in TARGETS:
        if row["bench"] == bench and re.search(pattern, row["case"]) and key in row:
            value = row[key]
            met = {"<": value < bound, "<=": value <= bound, ">=": value >= bound}[relation]
            what = {"value": row["unit"], "best": f"{row['unit']} at best", "ratio_limit": "x limit",
                    "ratio_peer": "x peer"}[key]
            found.append((f"{relation} {bound} {what}", met))
    return found


class Report:
    """Prints figures as they come. `missed` counts targets that were not reached."""

    def __init__(self, as_json):
        self.as_json = as_json
        self.missed = 0
        self.bench = None

    def note(self, text):
        if not self.as_json:
            print(f"  {text}", flush=True)

    def row(self, row):
        check_row(row)
        targets = targets_of(row)
        self.missed += sum(not met for _, met in targets)
        if self.as_json:
            print(json.dumps({key: row[key] for key in KEYS if key in row}), flush=True)
            return
        if row["bench"] != self.bench:
            self.bench = row["bench"]
            print(f"\n{self.bench:58}{'value':>10} {'unit':10}{'limit':>10}{'x limit':>9}  {'peer':38}target")
        limit = f"{row['limit']:>10.5g}{row['ratio_limit']:>9.2f}" if "limit" in row else " " * 19
        peer = ""
        if "peer" in row:
            peer = f"{row['peer']} {row['peer_value']:.4g}: {row['ratio_peer']:.3g}x"
        verdict = "; ".join(f"{text}: {'met' if met else 'MISSED'}" for text, met in targets)
        line = f"  {row['case']:56}{row['value']:>10.5g} {row['unit']:10}{limit}  {peer:38}{verdict}"
        print(line.rstrip(), flush=True)
        if "best" in row and "peer_best" in row:
            peer = f"{row['peer']} {row['peer_best']:.4g}: {row['best'] / row['peer_best']:.3g}x"
            print(f"    {'at best':54}{row['best']:>10.5g} {row['unit']:10}{'':19}  {peer}", flush=True)
