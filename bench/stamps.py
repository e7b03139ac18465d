"""What tasks of peers write: the file that bench/tasks/ddp.py and tick.py append to."""
import os
import signal
import struct
import time

from cluster import wait_for

RECORD = struct.Struct("=qIIQ")


class Stamps:
    def __init__(self, path):
        self.path = path
        open(path, "wb").close()
        os.chmod(path, 0o666)

    def records(self):
        with open(self.path, "rb") as file:
            data = file.read()
        return list(RECORD.iter_unpack(data[:len(data) // RECORD.size * RECORD.size]))

    def processes(self):
        return {record[3] for record in self.records()}

    def ranks(self, world):
        """Rank -> process, of the newest attempt, once all of it have made a step and live."""
        newest = {rank: pid for _, _, rank, pid in self.records()[-16 * world:]}
        alive = all(os.path.exists(f"/proc/{pid}") for pid in newest.values())
        return newest if len(newest) >= world and alive else None

    def wait_ranks(self, world, seconds):
        return wait_for(f"{world} ranks make no step", lambda: self.ranks(world), seconds, 0.1)

    def recovery_s(self, victims, world, seconds):
        """Kills these processes; seconds until `world` new processes have made a step."""
        before, start_ns = self.processes(), time.monotonic_ns()
        for pid in victims:
            os.kill(pid, signal.SIGKILL)

        def first_steps():
            first = {}
            for time_ns, _, _, pid in self.records():
                if time_ns > start_ns and pid not in before:
                    first.setdefault(pid, time_ns)
            return sorted(first.values()) if len(first) >= world else None

        times = wait_for(f"{world} new processes make no step", first_steps, seconds, 0.02)
        return (times[world - 1] - start_ns) / 1e9
