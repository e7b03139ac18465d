"""Loads libphalanx_flow and declares its functions: the mirror of ``phalanx/flow.h``."""

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p

from .._errors import raise_for
from .._library import Error, open_library

RANK_MAX, MESH_RANK_MAX = 16, 3


class TypeStruct(ctypes.Structure):
    """struct phx_flow_type"""

    _fields_ = [("element", c_int), ("rank", c_int32), ("dims", c_int64 * RANK_MAX)]


class ShardingStruct(ctypes.Structure):
    """struct phx_flow_sharding"""

    _fields_ = [("mesh", c_uint32), ("axes", c_uint8 * RANK_MAX)]


class OptionsStruct(ctypes.Structure):
    """struct phx_flow_options"""

    _fields_ = [("name", c_char_p), ("weight", c_uint32), ("priority", c_int32), ("head_grace_ms", c_uint32),
                ("rerun_launches", c_uint32), ("rerun_bytes", c_uint64)]


class IslandStruct(ctypes.Structure):
    """struct phx_flow_island"""

    _fields_ = [
        ("id", c_uint32),
        ("hosts", c_uint32),
        ("devices", c_uint32),
        ("free_devices", c_uint32),
        ("name", c_char * 64),
    ]


class MeshOptions(ctypes.Structure):
    """struct phx_flow_mesh_options"""

    _fields_ = [("rank", c_int32), ("dims", c_uint32 * MESH_RANK_MAX), ("island", c_char_p)]


class MeshStruct(ctypes.Structure):
    """struct phx_flow_mesh"""

    _fields_ = [("id", c_uint32), ("rank", c_int32), ("dims", c_uint32 * MESH_RANK_MAX), ("island", c_char * 64)]


class FailureStruct(ctypes.Structure):
    """struct phx_flow_failure"""

    _fields_ = [
        ("reason", c_int),
        ("island", c_uint32),
        ("device", c_uint32),
        ("incarnation", c_uint32),
        ("launch", c_uint64),
        ("node", c_uint32),
        ("message", c_char * 248),
    ]


_E, _T, _S = POINTER(Error), POINTER(TypeStruct), POINTER(ShardingStruct)
_FLOW, _PROGRAM, _F = c_void_p, c_void_p, POINTER(FailureStruct)
_PROTOTYPES = {
    "phx_flow_connect": (c_int, [c_char_p, POINTER(OptionsStruct), POINTER(_FLOW), _E]),
    "phx_flow_close": (None, [_FLOW]),
    "phx_flow_islands": (c_int, [_FLOW, POINTER(IslandStruct), c_uint32, POINTER(c_uint32), _E]),
    "phx_flow_mesh_new": (c_int, [_FLOW, POINTER(MeshOptions), POINTER(MeshStruct), _E]),
    "phx_flow_mesh_slice": (
        c_int,
        [_FLOW, c_uint32, POINTER(c_uint32), POINTER(c_uint32), POINTER(MeshStruct), _E],
    ),
    "phx_flow_mesh_free": (None, [_FLOW, c_uint32]),
    "phx_flow_function": (c_int, [_FLOW, c_char_p, c_size_t, c_char_p, POINTER(c_uint64), _E]),
    "phx_flow_program_new": (_PROGRAM, [_FLOW]),
    "phx_flow_program_arg": (c_uint32, [_PROGRAM, _T, _S]),
    "phx_flow_program_call": (
        c_int,
        [_PROGRAM, c_uint64, c_uint32, POINTER(c_uint32), c_uint32, _S, POINTER(c_uint32), c_uint32, _E],
    ),
    "phx_flow_program_reshard": (c_uint32, [_PROGRAM, c_uint32, _S]),
    "phx_flow_program_result": (None, [_PROGRAM, c_uint32]),
    "phx_flow_program_finish": (c_int, [_PROGRAM, _E]),
    "phx_flow_program_free": (None, [_PROGRAM]),
    "phx_flow_put": (c_uint64, [_FLOW, _T, _S, c_void_p, c_size_t, _E]),
    "phx_flow_launch": (
        c_int,
        [_FLOW, _PROGRAM, POINTER(c_uint64), c_uint32, POINTER(c_uint64), c_uint32, _E],
    ),
    "phx_flow_get": (c_int, [_FLOW, c_uint64, c_void_p, c_size_t, c_int64, _F, _E]),
    "phx_flow_wait": (c_int, [_FLOW, c_uint64, c_int64, _F, _E]),
    "phx_flow_fetch": (c_int, [_FLOW, c_uint64, _E]),
    "phx_flow_checkpoint": (c_int, [_FLOW, c_uint64, c_int64, _F, _E]),
    "phx_flow_release": (None, [_FLOW, c_uint64]),
}

_loaded = None


def load() -> ctypes.CDLL:
    """The library, loaded once."""
    global _loaded
    if _loaded is None:
        _loaded = open_library("libphalanx_flow.so.0", "PHX_FLOW_LIB", _PROTOTYPES)
    return _loaded


def check(code: int, error: Error) -> None:
    """Raises the exception of a negative code."""
    if code < 0:
        raise_for(code, error.rank, error.message.decode(errors="replace"))
