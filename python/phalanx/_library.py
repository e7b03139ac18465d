"""Loads libphalanx and declares its functions: the mirror of ``phalanx/phalanx.h``."""

import ctypes
import os
import pathlib
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import List, Optional

from ._errors import raise_for


class Error(ctypes.Structure):
    """struct phx_error"""

    _fields_ = [("code", c_int), ("rank", c_int), ("message", c_char * 248)]


class Options(ctypes.Structure):
    """struct phx_options"""

    _fields_ = [
        ("size", c_size_t),
        ("checkpoint_dir", c_char_p),
        ("address", c_char_p),
        ("join_timeout_ms", c_int64),
        ("leave_timeout_ms", c_int64),
        ("rejoins", c_int),
    ]


class PeerStruct(ctypes.Structure):
    """struct phx_peer"""

    _fields_ = [("name", c_char_p), ("address", c_char_p)]


class Metric(ctypes.Structure):
    """struct phx_metric"""

    _fields_ = [("name", c_char_p), ("value", c_double)]


class DrainStruct(ctypes.Structure):
    """struct phx_drain"""

    _fields_ = [("remaining_ms", c_int64), ("reason", c_uint32)]


class ChipStruct(ctypes.Structure):
    """A chip of struct phx_slice"""

    _fields_ = [("number", c_uint32), ("at", c_uint32 * 3)]


class SliceStruct(ctypes.Structure):
    """struct phx_slice"""

    _fields_ = [
        ("tables", c_uint64),
        ("without", c_uint64),
        ("extent", c_uint32 * 3),
        ("twisted", c_int),
        ("chip_count", c_uint32),
        ("chips", ChipStruct * 4),
    ]


def switch_names(bits: int) -> List[str]:
    """The optical switches of a set of the library, such as "x5"."""
    return [f"{'xyz'[bit // 16]}{bit % 16}" for bit in range(48) if bits >> bit & 1]


class RegionStruct(ctypes.Structure):
    """struct phx_region"""

    _fields_ = [
        ("name", c_char_p),
        ("data", c_void_p),
        ("dtype", c_int),
        ("dims", c_uint32),
        ("shape", c_uint64 * 8),
        ("shard_axis", c_uint32),
        ("shard_index", c_uint32),
        ("shard_count", c_uint32),
    ]


_E = POINTER(Error)
CALL = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, _E)  # arrange, reset, fetch, deliver
CALL_AT = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_uint64, _E)  # begin, step
END = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
ABORT = ctypes.CFUNCTYPE(None, c_void_p)


class LoopStruct(ctypes.Structure):
    """struct phx_loop"""

    _fields_ = [
        ("size", c_size_t),
        ("steps", c_uint64),
        ("hold_every", c_uint64),
        ("save_every", c_uint64),
        ("job", c_void_p),
        ("arrange", CALL),
        ("reset", CALL),
        ("begin", CALL_AT),
        ("step", CALL_AT),
        ("end", END),
        ("abort", ABORT),
        ("metrics", POINTER(Metric)),
        ("metric_count", c_size_t),
        ("whole_steps", c_int),
        ("fetch", CALL),
        ("deliver", CALL),
    ]


_PROTOTYPES = {
    "phx_join": (c_int, [POINTER(Options), POINTER(c_void_p), _E]),
    "phx_leave": (c_int, [c_void_p, _E]),
    "phx_close": (None, [c_void_p]),
    "phx_rank": (c_uint32, [c_void_p]),
    "phx_world_size": (c_uint32, [c_void_p]),
    "phx_attempt": (c_uint32, [c_void_p]),
    "phx_full_world_size": (c_uint32, [c_void_p]),
    "phx_rejoin": (c_int, [c_void_p, c_int64, _E]),
    "phx_retry": (c_int, [c_void_p, c_char_p, _E]),
    "phx_run_steps": (c_int, [c_void_p, POINTER(LoopStruct), _E]),
    "phx_peer": (c_int, [c_void_p, c_uint32, POINTER(PeerStruct), _E]),
    "phx_check": (c_int, [c_void_p, _E]),
    "phx_failure_fd": (c_int, [c_void_p]),
    "phx_barrier": (c_int, [c_void_p, c_int64, _E]),
    "phx_kv_put": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t, _E]),
    "phx_kv_get": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t, POINTER(c_size_t), c_int64, _E]),
    "phx_set_total_steps": (None, [c_void_p, c_uint64]),
    "phx_step": (c_int, [c_void_p, c_uint64, POINTER(Metric), c_size_t, _E]),
    "phx_phase_begin": (None, [c_void_p, c_int]),
    "phx_phase_end": (None, [c_void_p]),
    "phx_checkpoint_save": (c_int, [c_void_p, c_uint64, c_void_p, c_size_t, _E]),
    "phx_checkpoint_hold": (c_int, [c_void_p, c_uint64, c_void_p, c_size_t, _E]),
    "phx_checkpoint_held": (c_int, [c_void_p, c_uint64, c_int64, _E]),
    "phx_checkpoint_wait": (c_int, [c_void_p, c_uint64, c_int64, _E]),
    "phx_checkpoint_find": (c_int, [c_void_p, POINTER(c_size_t), POINTER(c_uint64), _E]),
    "phx_checkpoint_restore": (
        c_int,
        [c_void_p, c_void_p, c_size_t, POINTER(c_size_t), POINTER(c_uint64), _E],
    ),
    "phx_checkpoint_register": (c_int, [c_void_p, POINTER(RegionStruct), c_size_t, _E]),
    "phx_checkpoint_take": (c_int, [c_void_p, c_uint64, c_uint32, _E]),
    "phx_checkpoint_load": (c_int, [c_void_p, POINTER(c_uint64), _E]),
    "phx_checkpoint_import": (c_int, [c_void_p, c_char_p, POINTER(c_size_t), _E]),
    "phx_notice": (c_int, [c_void_p, POINTER(DrainStruct)]),
    "phx_slice_tables": (c_uint64, [c_void_p, c_char_p, c_size_t]),
    "phx_slice_get": (c_int, [c_void_p, POINTER(SliceStruct)]),
    "phx_slice_wait": (c_int, [c_void_p, c_uint64, c_int64, POINTER(SliceStruct), _E]),
}

_loaded = None


def _path(name: str, variable: str) -> str:
    """Returns $variable, else the library installed with this package, else the one that the dynamic loader finds.

    An installed package is PREFIX/lib/pythonX.Y/dist-packages/phalanx, its library in PREFIX/lib or, on
    Debian below /usr, in a directory there that is named after the architecture.
    """
    if os.environ.get(variable):
        return os.environ[variable]
    folders = pathlib.Path(__file__).resolve().parents
    if len(folders) > 3 and folders[3].name == "lib":
        for pattern in (name, "*-linux-gnu/" + name):
            for found in sorted(folders[3].glob(pattern)):
                return str(found)
    return name


def open_library(name: str, variable: str, prototypes: dict) -> ctypes.CDLL:
    """Loads a library of this package, whose file `variable` of the environment may name, with its functions' types."""
    try:
        library = ctypes.CDLL(_path(name, variable))
    except OSError as error:
        raise ImportError(f"{name.split('.')[0]} can't be loaded ({error}); {variable} may name its file") from error
    for function_name, (result, arguments) in prototypes.items():
        function = getattr(library, function_name)
        function.restype = result
        function.argtypes = arguments
    return library


def load() -> ctypes.CDLL:
    """The library, loaded once."""
    global _loaded
    if _loaded is None:
        _loaded = open_library("libphalanx.so.0", "PHX_LIB", _PROTOTYPES)
    return _loaded


def call(function, *arguments) -> None:
    """Calls a function whose last parameter is a struct phx_error, and raises the exception of its code."""
    error = Error()
    code = function(*arguments, ctypes.byref(error))
    if code != 0:
        raise_for(code, error.rank, error.message.decode(errors="replace"))


def environment(name: str) -> Optional[str]:
    """A variable as C has it now; os.environ doesn't hear of setenv()."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype, getenv.argtypes = c_char_p, [c_char_p]
    value = getenv(name.encode())
    return None if value is None else os.fsdecode(value)
