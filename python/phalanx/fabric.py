"""The chip network of a job's slice (libphalanx_fabric, phalanx/fabric.h): sums over all ranks, from chip to chip.

    import phalanx, phalanx.fabric

    with phalanx.join() as job, phalanx.fabric.open(job) as fabric:
        while step < total:
            gradients = compute(weights)        # a NumPy array, say
            fabric.sum(gradients)               # the sums over all ranks are in its place

All ranks make the same calls in the same order. A link or an optical switch that is lost meanwhile costs a little
time and changes no bit. When a rank is lost the calls raise PeerLostError: abandon the fabric, call job.rejoin(),
and open another one.

The library is the file that the variable PHX_FABRIC_LIB names, otherwise the one that was installed with this
package, otherwise what the dynamic loader finds as ``libphalanx_fabric.so.0``.
"""

import ctypes
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import List, NamedTuple, Optional

from . import _library
from ._job import Job

_DTYPES = {"f": 9, "d": 12, "q": 11, "l": 11}  # enum phx_dtype, by the format of a buffer
_E = POINTER(_library.Error)


class _Options(ctypes.Structure):
    """struct phx_fabric_options"""

    _fields_ = [("size", c_size_t), ("chips", c_char_p), ("keeps_routes", c_int), ("answer_ms", c_int64),
                ("route_cache", c_char_p)]  # fmt: skip


class _About(ctypes.Structure):
    """struct phx_fabric_about"""

    _fields_ = [("session", c_uint32), ("chips", c_uint32), ("links", c_uint32), ("dark", c_uint32),
                ("reroutes", c_uint32), ("tables", c_uint64), ("cached", c_int32),
                ("cache_note", c_char * 256), ("wrong", c_uint64)]  # fmt: skip


_PROTOTYPES = {
    "phx_fabric_open": (c_int, [c_void_p, POINTER(_Options), POINTER(c_void_p), _E]),
    "phx_fabric_sum": (c_int, [c_void_p, c_void_p, c_size_t, c_int, _E]),
    "phx_fabric_get": (None, [c_void_p, POINTER(_About)]),
    "phx_fabric_close": (c_int, [c_void_p, _E]),
    "phx_fabric_abandon": (None, [c_void_p]),
}
_loaded = None


def _load() -> ctypes.CDLL:
    global _loaded
    if _loaded is None:
        _library.load()  # which it uses
        _loaded = _library.open_library("libphalanx_fabric.so.0", "PHX_FABRIC_LIB", _PROTOTYPES)
    return _loaded


class About(NamedTuple):
    """The network as it is now."""

    session: int
    chips: int  # of the slice
    links: int  # with data
    dark: int  # links that the tables avoid
    reroutes: int  # since the fabric was opened
    tables: int  # number of the routing tables that the controller has named
    cached: bool  # they came from this rank's folder for solved ones
    cache_note: str  # why that folder did not serve; empty: it did, had none yet, or there is none
    wrong: List[str]  # switches with wrong wires, such as "x5", also those that the tables avoid


class Fabric:
    """Made by :func:`open`. As a context manager it closes at the end of the block, and is abandoned when the block
    raises. One thread at a time uses it."""

    def __init__(self, fabric: c_void_p, job: Job):
        self._library = _load()
        self._fabric: Optional[c_void_p] = fabric
        job._fabrics.add(self)  # a job that ends abandons it

    def __enter__(self) -> "Fabric":
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def __del__(self):
        self.abandon()

    def _own(self) -> c_void_p:
        if self._fabric is None:
            raise ValueError("the fabric was closed or abandoned")
        return self._fabric

    def sum(self, values) -> None:
        """Replaces the values of a writable, contiguous buffer by the sums over all ranks, with the same bits on all of
        them: float32, float64 or int64, such as a NumPy array."""
        view = memoryview(values)
        if view.format not in _DTYPES or not view.c_contiguous or view.readonly:
            raise TypeError("expected a writable, contiguous buffer of float32, float64 or int64, "
                            f"got format {view.format!r}")  # fmt: skip
        flat = view.cast("B")
        if len(flat) == 0:
            return
        data = (ctypes.c_char * len(flat)).from_buffer(flat)
        _library.call(self._library.phx_fabric_sum, self._own(), ctypes.cast(data, c_void_p),
                      len(flat) // view.itemsize, _DTYPES[view.format])  # fmt: skip

    def about(self) -> About:
        about = _About()
        self._library.phx_fabric_get(self._own(), byref(about))
        said = {name: getattr(about, name) for name, _ in _About._fields_}
        note = about.cache_note.decode(errors="replace")
        return About(**{**said, "cached": bool(about.cached), "cache_note": note,
                        "wrong": _library.switch_names(about.wrong)})  # fmt: skip

    def close(self) -> None:
        """Waits until no rank needs this one's chips any more. The fabric can't be used any more."""
        fabric, self._fabric = self._fabric, None
        if fabric is not None:
            _library.call(self._library.phx_fabric_close, fabric)

    def abandon(self) -> None:
        """Ends without waiting: other ranks cannot go on without this one's chips."""
        fabric, self._fabric = self._fabric, None
        if fabric is not None:
            self._library.phx_fabric_abandon(fabric)


def open(
    job: Job,
    chips: Optional[str] = None,
    keeps_routes: bool = False,
    answer_timeout: Optional[float] = None,
    route_cache: Optional[str] = None,
) -> Fabric:
    """Brings the network of the job's slice up, on all ranks together. ``chips``: where this machine's are, if not
    where PHX_CHIP_NETWORK says; ``keeps_routes``: a link without light raises an error instead; ``answer_timeout``:
    seconds in which the controller has to know of it (None: no limit), after which TimeoutExpired says who has not
    answered; ``route_cache``: a folder for solved routing tables, if not the one that PHX_ROUTE_CACHE names."""
    if job._context is None:
        raise ValueError("the job was left or closed")
    library = _load()
    options = _Options(
        ctypes.sizeof(_Options),
        chips.encode() if chips else None,
        keeps_routes,
        0 if answer_timeout is None else max(1, int(answer_timeout * 1000)),
        route_cache.encode() if route_cache is not None else None,
    )
    fabric = c_void_p()
    _library.call(library.phx_fabric_open, job._context, byref(options), byref(fabric))
    return Fabric(fabric, job)
