"""join() and the Job that it returns."""

import ctypes
import os
import weakref
from contextlib import contextmanager
from ctypes import byref, c_size_t, c_uint64, c_void_p
from typing import Any, List, Mapping, NamedTuple, Optional, Tuple, Union

from . import _library
from ._errors import SpaceError, NotFoundError
from .checkpoint import IN_MEMORY, IN_STORAGE, Regions

_PHASES = {"compute": 1, "load": 2, "communicate": 3, "save": 4}  # enum phx_phase

# What phx_rejoin sets.
_PLACE = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "PHX_RANK",
          "PHX_WORLD_SIZE", "PHX_FULL_WORLD_SIZE", "PHX_ATTEMPT", "PHX_RENDEZVOUS")  # fmt: skip

Buffer = Union[bytes, bytearray, memoryview]


class Peer(NamedTuple):
    """A rank's host name, as it sees itself, and its numeric address."""

    name: str
    address: str


class Checkpoint(NamedTuple):
    """This rank's part of a committed checkpoint: the state after ``step`` steps."""

    step: int
    data: bytes


class Drain(NamedTuple):
    """The task will be stopped in ``remaining`` seconds (negative: the deadline is over)."""

    remaining: float
    reason: int  # 1 maintenance, 2 preemption, 3 fault


class Slice(NamedTuple):
    """The job's slice of an optically switched pod, as this rank sees it."""

    tables: int  # number of the routing tables in use
    without: List[str]  # optical switches that they avoid, such as "x5"
    extent: Tuple[int, int, int]  # chips along X, Y, Z
    twisted: bool
    chips: List[Tuple[int, int, int]]  # coordinates of this rank's chips


def _slice_of(struct: "_library.SliceStruct") -> Slice:
    without = _library.switch_names(struct.without)
    chips = [tuple(struct.chips[i].at) for i in range(struct.chip_count)]
    return Slice(struct.tables, without, tuple(struct.extent), bool(struct.twisted), chips)


def _milliseconds(timeout: Optional[float]) -> int:
    """Seconds as libphalanx counts them; None waits for ever."""
    if timeout is None:
        return -1
    return max(0, round(timeout * 1000))


def _pointer(data: Buffer):
    """The address of a buffer's bytes, its length and what keeps it alive."""
    if isinstance(data, bytes):
        return ctypes.cast(data, c_void_p), len(data), data
    view = memoryview(data).cast("B")
    if view.readonly:
        return _pointer(bytes(view))
    keep = (ctypes.c_char * len(view)).from_buffer(view)
    return ctypes.cast(keep, c_void_p), len(view), keep


def refresh_environment() -> None:
    """The library says a new place in the environment of the process, of which os.environ is an old copy."""
    for name in _PLACE:
        value = _library.environment(name)
        if value is not None and os.environ.get(name) != value:
            os.environ[name] = value


class Job:
    """A rank of a gang; made by :func:`join`. As a context manager it leaves cleanly at the end of the block,
    and closes without a goodbye when the block raises, so that the peers learn of it at once."""

    def __init__(self, context: c_void_p):
        self._library = _library.load()
        self._context = context
        self._regions: Optional[Regions] = None  # keeps alive what the library reads and writes
        self._fabrics: "weakref.WeakSet" = weakref.WeakSet()  # they use the context until they are closed

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if kind is None:
            self.leave()
        else:
            self.close()

    def __del__(self):
        self.close()

    def _call(self, name: str, *arguments) -> None:
        if self._context is None:
            raise ValueError("the job was left or closed")
        _library.call(getattr(self._library, name), self._context, *arguments)

    # ---- membership ----

    def _give_up(self) -> Optional[c_void_p]:
        for fabric in list(self._fabrics):
            fabric.abandon()
        context, self._context = self._context, None
        return context

    def leave(self) -> None:
        """Ends cleanly: the last reports are sent, agent and peers are told. The job can't be used any
        more, and fabrics that are still open are abandoned."""
        context = self._give_up()
        if context is not None:
            _library.call(self._library.phx_leave, context)

    def close(self) -> None:
        """Ends without a goodbye: the peers see this rank as lost. Does nothing the second time, or after
        leave()."""
        context = self._give_up()
        if context is not None:
            self._library.phx_close(context)

    def _get(self, name: str) -> int:
        if self._context is None:
            raise ValueError("the job was left or closed")
        return getattr(self._library, name)(self._context)

    @property
    def rank(self) -> int:
        """This rank, 0 to world_size - 1."""
        return self._get("phx_rank")

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self._get("phx_world_size")

    @property
    def attempt(self) -> int:
        """Number of restarts before this run of the gang."""
        return self._get("phx_attempt")

    @property
    def full_world_size(self) -> int:
        """Number of ranks when none is missing; more than world_size while replicas are away."""
        return self._get("phx_full_world_size")

    def rejoin(self, timeout: Optional[float] = None) -> None:
        """Goes on under the next attempt within this process, after PeerLostError or RejoinError; for a job
        of ``join(rejoins=True)``. Rank, world size and attempt may be other ones then, and os.environ says
        the new place."""
        self._call("phx_rejoin", _milliseconds(timeout))
        refresh_environment()

    def retry(self, reason: str = "") -> None:
        """What this rank has is no good, and no process is lost: ends the attempt for all ranks, which go back to
        the newest step that is held of all. Then ``job.rejoin()``. A step of ``train_loop`` raises
        :class:`phalanx.RetryError` instead."""
        self._call("phx_retry", reason.encode(errors="replace"))

    def peer(self, rank: int) -> Peer:
        """Name and address of a rank."""
        if rank < 0:
            raise ValueError("a rank is not negative")
        peer = _library.PeerStruct()
        self._call("phx_peer", rank, byref(peer))
        return Peer(peer.name.decode(errors="replace"), peer.address.decode())

    def check(self) -> None:
        """Raises PeerLostError, RejoinError or FencedError when this attempt is over; cheap."""
        self._call("phx_check")

    def failure_fd(self) -> int:
        """A descriptor that becomes readable when check() begins to raise; for select and the like."""
        return self._get("phx_failure_fd")

    # ---- together ----

    def barrier(self, timeout: Optional[float] = None) -> None:
        """Returns when every rank has called it. ``timeout`` in seconds; None waits for ever."""
        self._call("phx_barrier", _milliseconds(timeout))

    def put(self, key: str, value: Buffer) -> None:
        """Publishes a value (at most 1 MiB) for the whole gang, for this attempt."""
        pointer, length, _keep = _pointer(value)
        self._call("phx_kv_put", key.encode(), pointer, length)

    def get(self, key: str, timeout: Optional[float] = None) -> bytes:
        """The value of a key; waits for it. With timeout 0 an absent key raises NotFoundError."""
        capacity = 4096
        while True:
            buffer, length = ctypes.create_string_buffer(capacity), c_size_t()
            try:
                self._call(
                    "phx_kv_get", key.encode(), buffer, capacity, byref(length), _milliseconds(timeout)
                )
                return buffer.raw[: length.value]
            except SpaceError:
                capacity = length.value

    # ---- progress ----

    def set_total_steps(self, total: int) -> None:
        """How many steps the job wants to make, for progress bars."""
        if self._context is not None:
            self._library.phx_set_total_steps(self._context, total)

    def step(self, step: int, **metrics: float) -> None:
        """Says that ``step`` steps are done, with numbers such as ``loss=1.5``. Never blocks."""
        array = (_library.Metric * len(metrics))()
        for at, (name, value) in zip(array, metrics.items()):
            at.name, at.value = name.encode(), float(value)
        self._call("phx_step", step, array, len(metrics))

    @contextmanager
    def phase(self, name: str):
        """What the rank does within the block: ``compute``, ``load``, ``communicate`` or ``save``. Only its
        own work, which is neither of the last two, tells a slow machine from those that wait for it."""
        phase = _PHASES[name]
        if self._context is not None:
            self._library.phx_phase_begin(self._context, phase)
        try:
            yield
        finally:
            if self._context is not None:
                self._library.phx_phase_end(self._context)

    # ---- checkpoints ----

    def checkpoint_save(self, step: int, data: Buffer) -> None:
        """Writes this rank's state after ``step`` steps. It counts once every rank has saved the step."""
        pointer, length, _keep = _pointer(data)
        self._call("phx_checkpoint_save", step, pointer, length)

    def checkpoint_hold(self, step: int, data: Buffer) -> None:
        """Copies the state after ``step`` steps into memory that outlives this process."""
        pointer, length, _keep = _pointer(data)
        self._call("phx_checkpoint_hold", step, pointer, length)

    def checkpoint_held(self, step: int, timeout: Optional[float] = None) -> None:
        """Waits until every rank holds ``step``, or a newer one."""
        self._call("phx_checkpoint_held", step, _milliseconds(timeout))

    def checkpoint_wait(self, step: int, timeout: Optional[float] = None) -> None:
        """Waits until ``step``, or a newer one, is committed."""
        self._call("phx_checkpoint_wait", step, _milliseconds(timeout))

    def checkpoint_restore(self) -> Optional[Checkpoint]:
        """This rank's state of the newest checkpoint committed before this attempt, or None."""
        length, step = c_size_t(), c_uint64()
        try:
            self._call("phx_checkpoint_find", byref(length), byref(step))
        except NotFoundError:
            return None
        buffer = ctypes.create_string_buffer(max(1, length.value))
        self._call("phx_checkpoint_restore", buffer, length.value, byref(length), byref(step))
        return Checkpoint(step.value, buffer.raw[: length.value])

    # ---- checkpoints of named regions ----

    def checkpoint_register(
        self, regions: Mapping[str, Any], shards: Optional[Mapping[str, Tuple[int, int, int]]] = None
    ) -> None:
        """From here on checkpoint_take and _load are of these: numpy arrays, torch tensors, writable buffers.
        ``shards`` names those of which this rank has one part only: (axis, index, count). They are kept alive
        until others are registered; take and load use their memory in place."""
        described = Regions(regions, shards)
        self._call("phx_checkpoint_register", described.structs(), len(described.list))
        self._regions = described

    def _registered(self) -> Regions:
        if self._regions is None:
            raise ValueError("no regions are registered (checkpoint_register)")
        return self._regions

    def checkpoint_take(self, step: int, memory: bool = True, storage: bool = False) -> None:
        """Keeps the registered regions as they are after ``step`` steps: in memory that outlives the process,
        in storage, or in both, where the program waits for the copy into memory alone."""
        self._registered().fetch()
        self._call("phx_checkpoint_take", step, IN_MEMORY * bool(memory) | IN_STORAGE * bool(storage))

    def checkpoint_load(self) -> Optional[int]:
        """Fills the registered regions from the newest checkpoint that all ranks can restore. Its step; None
        when there is none: start from the beginning."""
        regions, step = self._registered(), c_uint64()
        regions.check()
        try:
            self._call("phx_checkpoint_load", byref(step))
        except NotFoundError:
            return None
        regions.deliver()
        return step.value

    def checkpoint_import(self, path: str) -> int:
        """Fills those of the registered regions that a safetensors file has, this rank's part of each: weights to
        begin from. How many those are; the others stay as they are."""
        regions, count = self._registered(), c_size_t()
        regions.check()
        regions.fetch()
        self._call("phx_checkpoint_import", os.fsencode(path), byref(count))
        regions.deliver()
        return count.value

    # ---- notice ----

    def notice(self) -> Optional[Drain]:
        """None, or that this task will be stopped soon: time to save."""
        drain = _library.DrainStruct()
        if self._context is None or self._library.phx_notice(self._context, byref(drain)) == 0:
            return None
        return Drain(drain.remaining_ms / 1000, drain.reason)

    def slice_tables(self) -> Tuple[int, str]:
        """Number and name of the routing tables of this job's slice, the name such as "4x4x8 without x5"; (0, ""):
        it has none. A larger number replaces earlier tables; equal names are equal tables on every rank."""
        name = ctypes.create_string_buffer(256)
        number = self._library.phx_slice_tables(self._context, name, len(name)) if self._context else 0
        return number, name.value.decode()

    def slice(self) -> Optional[Slice]:
        """The slice of this job; None: it has none, or the agent has not told yet."""
        seen = _library.SliceStruct()
        if self._context is None or self._library.phx_slice_get(self._context, byref(seen)) == 0:
            return None
        return _slice_of(seen)

    def slice_wait(self, seen: int, timeout: Optional[float] = None) -> Slice:
        """Waits until the slice has routing tables with a number above ``seen``, as after the loss of an optical
        switch. TimeoutExpired: there are none within ``timeout`` seconds."""
        struct = _library.SliceStruct()
        self._call("phx_slice_wait", seen, _milliseconds(timeout), byref(struct))
        return _slice_of(struct)


def join(
    checkpoint_dir: Optional[str] = None,
    address: Optional[str] = None,
    join_timeout: Optional[float] = None,
    leave_timeout: Optional[float] = None,
    rejoins: bool = False,
) -> Job:
    """Connects to the agent and to the other ranks; returns when the whole gang is present. The timeouts are
    in seconds; None means the library's defaults (120 and 10). ``rejoins``: the program outlives the loss of
    other ranks, by :func:`phalanx.train_loop` or ``job.rejoin()``. A process without a rank (a spare) waits
    here until it is given one; os.environ says it then."""
    library = _library.load()
    options = _library.Options(
        ctypes.sizeof(_library.Options),
        checkpoint_dir.encode() if checkpoint_dir is not None else None,
        address.encode() if address is not None else None,
        _milliseconds(join_timeout) if join_timeout is not None else 0,
        _milliseconds(leave_timeout) if leave_timeout is not None else 0,
        int(rejoins),
    )
    context = c_void_p()
    _library.call(library.phx_join, byref(options), byref(context))
    refresh_environment()
    return Job(context)
