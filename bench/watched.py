"""A cluster on this computer whose agents look after made-up machines (tests/e2e/hall.py)."""
import contextlib
import json
import os
import sys

from cluster import ROOT, LocalCluster, Scratch, wait_for

sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from hall import FAULT_TABLES, Hall, numbered  # noqa: E402

CHIPS = 4
CLUSTER = """
apiVersion: phalanx.dev/v1
kind: Cluster
metadata: {{name: watched}}
spec:
  settings: {{lease: 20s, heartbeat: 1s}}
  machineNames: m-{{n}}
  addresses: {address}
  pods:
  - racks:
    - machines: {machines}
      chips: {chips}
"""


def probe_settings(probes, period_ms):
    return "probes:\n" + "".join(f"  {probe}: {{period: {period_ms}ms}}\n" for probe in probes)


@contextlib.contextmanager
def watched_cluster(machines, address, settings, table, *options):
    """(cluster, hall) from the first look of every probe on; what it left behind is gone afterwards."""
    with Scratch() as scratch:
        hall = Hall(scratch.join("roots"), numbered(machines), settings)
        path = scratch.join("cluster.yaml")
        with open(path, "w") as file:
            file.write(CLUSTER.format(address=address, machines=machines, chips=CHIPS))
        with LocalCluster(scratch, path, *hall.options, *options) as cluster:
            cluster.wait_ready(machines)
            cluster.server.call("POST", FAULT_TABLES, json.dumps(table))
            hall.wait_seen(cluster.folder, wait_for)
            yield cluster, hall
