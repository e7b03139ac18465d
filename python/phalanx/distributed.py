"""Process groups of torch.distributed that live as long as one attempt: for phalanx.train_loop.

    group = phalanx.distributed.GlooGroup(job)
    phalanx.train_loop(job, begin=lambda step: group.begin(), end=group.end, abort=group.abort, ...)
"""

import os
import socket
from datetime import timedelta
from typing import List, Optional, Set, Tuple

import torch.distributed as dist

from ._errors import NotFoundError
from ._job import Job


class KeyStore(dist.Store):
    """The keys of a job's attempt (Job.put, Job.get) as the store in which ranks of torch.distributed find each
    other. It needs no port and is empty at the beginning of each attempt. Calls that wait in it end when a rank is
    lost."""

    def __init__(self, job: Job, timeout: float = 300):
        super().__init__()
        self._job, self._timeout, self._added = job, timeout, {}

    def set(self, key: str, value) -> None:
        self._job.put("torch/" + key, value.encode() if isinstance(value, str) else bytes(value))

    def get(self, key: str) -> bytes:
        return self._job.get("torch/" + key, timeout=self._timeout)

    def add(self, key: str, amount: int) -> int:
        """Each rank publishes the sum of its own additions; returns the total of the published sums."""
        if amount:
            self._added[key] = self._added.get(key, 0) + amount
            self._job.put(f"torch-sum/{key}/{self._job.rank}", b"%d" % self._added[key])
        return sum(self._of(key, rank) for rank in range(self._job.world_size))

    def _of(self, key: str, rank: int) -> int:
        try:
            return int(self._job.get(f"torch-sum/{key}/{rank}", timeout=0))
        except NotFoundError:
            return 0

    def check(self, keys: List[str]) -> bool:
        try:
            for key in keys:
                self._job.get("torch/" + key, timeout=0)
        except NotFoundError:
            return False
        return True

    def wait(self, keys: List[str], timeout: Optional[timedelta] = None) -> None:
        for key in keys:
            self._job.get(
                "torch/" + key, timeout=self._timeout if timeout is None else timeout.total_seconds()
            )


def _socket_of(fd: int) -> Optional[socket.socket]:
    """A socket for a copy of the descriptor; None if it is no socket, or was closed meanwhile."""
    try:
        copy = os.dup(fd)
    except OSError:
        return None
    try:
        return socket.socket(fileno=copy)
    except OSError:  # the constructor leaves the copy open
        os.close(copy)
        return None


def _connections() -> Set[Tuple[int, int]]:
    """The process's sockets of TCP: descriptor and inode, as a descriptor's number is used again."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        one = _socket_of(int(name))
        if one is None:
            continue
        with one:
            if one.family in (socket.AF_INET, socket.AF_INET6):
                found.add((int(name), os.fstat(one.fileno()).st_ino))
    return found


class GlooGroup:
    """The default group of one attempt, over gloo."""

    def __init__(self, job: Job, timeout: float = 300):
        self._job, self._timeout = job, timeout
        self._sockets: Set[Tuple[int, int]] = set()

    def begin(self) -> None:
        """Makes the group of this attempt's ranks."""
        before = _connections()
        dist.init_process_group(
            "gloo",
            store=KeyStore(self._job, self._timeout),
            rank=self._job.rank,
            world_size=self._job.world_size,
            timeout=timedelta(seconds=self._timeout),
        )
        self._sockets = _connections() - before

    def abort(self) -> None:
        """From another thread: collectives of this rank fail, as gloo finds its connections closed."""
        for fd, inode in self._sockets:
            one = _socket_of(fd)
            if one is None:
                continue
            try:
                with one:
                    if os.fstat(one.fileno()).st_ino == inode:
                        one.shutdown(socket.SHUT_RDWR)
            except OSError:  # the other side, or gloo, has closed it
                continue

    def end(self) -> None:
        """The group is no more; its connections close with the last object that uses it."""
        self.abort()
        self._sockets = set()
        if dist.is_initialized():
            dist.destroy_process_group()
