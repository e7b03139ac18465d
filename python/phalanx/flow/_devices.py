"""A connection to a flow runtime; its islands, meshes of virtual devices, and shardings over them."""

import collections
import ctypes
import os
import threading
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from .._errors import InvalidError
from . import _library
from ._compile import Type

_SITES_MAX = 65536  # launches whose call sites are kept


class Island(NamedTuple):
    """Devices that share a fast network."""

    id: int
    name: str
    hosts: int
    devices: int
    free_devices: int


class Flow:
    """A connection to the head of a runtime. Any thread may use it; ``with`` closes it at the end."""

    def __init__(self, address: str, name: Optional[str] = None, weight: int = 1, priority: int = 0,
                 reruns: int = 0):
        self._lib = _library.load()
        self._pointer = ctypes.c_void_p()
        self._functions: Dict[str, int] = {}
        self._lock = threading.Lock()
        self._launched = 0
        self._sites: Dict[int, Tuple[str, Dict[int, str]]] = {}
        self._order: Deque[int] = collections.deque()
        self._single: Optional[Mesh] = None
        options = _library.OptionsStruct(name.encode() if name else None, weight, priority, 0, reruns)
        error = _library.Error()
        code = self._lib.phx_flow_connect(address.encode(), options, ctypes.byref(self._pointer), error)
        _library.check(code, error)
        self.address = address

    @property
    def pointer(self) -> ctypes.c_void_p:
        """The phx_flow of the connection. InvalidError once it is closed."""
        if not self._pointer:
            raise InvalidError("the connection is closed", -1)
        return self._pointer

    @property
    def closed(self) -> bool:
        return not self._pointer

    def close(self) -> None:
        """Ends the connection; its values are freed on the devices."""
        global _default
        pointer, self._pointer = self._pointer, ctypes.c_void_p()
        if pointer:
            self._lib.phx_flow_close(pointer)
        if _default is self:
            _default = None

    def __enter__(self) -> "Flow":
        return self

    def __exit__(self, *_raised: Any) -> None:
        self.close()

    def islands(self) -> List[Island]:
        """What the head manages."""
        count, error = ctypes.c_uint32(), _library.Error()
        room = 64
        while True:
            found = (_library.IslandStruct * room)()
            code = self._lib.phx_flow_islands(self.pointer, found, room, ctypes.byref(count), error)
            _library.check(code, error)
            if count.value <= room:
                break
            room = count.value
        return [Island(i.id, i.name.decode(), i.hosts, i.devices, i.free_devices) for i in found[: count.value]]

    def mesh(self, shape: Union[int, Sequence[int]], axis_names: Optional[Sequence[str]] = None,
             island: Optional[str] = None) -> "Mesh":
        """New virtual devices in one island, in a shape of 1 to 3 dimensions."""
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        if not 1 <= len(sizes) <= _library.MESH_RANK_MAX or any(size < 1 for size in sizes):
            raise InvalidError(f"a mesh has 1 to 3 dimensions of at least 1 device, got {shape}", -1)
        options = _library.MeshOptions(len(sizes), sizes, island.encode() if island else None)
        made, error = _library.MeshStruct(), _library.Error()
        code = self._lib.phx_flow_mesh_new(self.pointer, options, ctypes.byref(made), error)
        _library.check(code, error)
        return Mesh(self, made, axis_names)

    def single(self) -> "Mesh":
        """The mesh of one device on which flow.jit's functions run by default."""
        with self._lock:
            if self._single is None:
                self._single = self.mesh(1)
            return self._single

    def function(self, text: str, name: str = "main") -> int:
        """The number of a function of a module, which is registered once."""
        with self._lock:
            key = name + "\n" + text
            if key not in self._functions:
                data, number, error = text.encode(), ctypes.c_uint64(), _library.Error()
                code = self._lib.phx_flow_function(self.pointer, data, len(data), name.encode(), ctypes.byref(number),
                                                   error)
                _library.check(code, error)
                self._functions[key] = number.value
            return self._functions[key]

    def launch(self, program: ctypes.c_void_p, handles: Sequence[int], results: int, site: str,
               nodes: Dict[int, str]) -> List[int]:
        """Launches a program; returns handles of its results. ``nodes`` has the call sites of its calls."""
        given, made = (ctypes.c_uint64 * len(handles))(*handles), (ctypes.c_uint64 * results)()
        error = _library.Error()
        with self._lock:  # launches are numbered in the order of the calls
            code = self._lib.phx_flow_launch(self.pointer, program, given, len(handles), made, results, error)
            _library.check(code, error)
            self._launched += 1
            self._sites[self._launched] = (site, nodes)
            self._order.append(self._launched)
            if len(self._order) > _SITES_MAX:
                del self._sites[self._order.popleft()]
        return list(made)

    def site_of(self, launch: int, node: int, default: str) -> str:
        """Where the call that is this node of a launch was written."""
        with self._lock:
            site, nodes = self._sites.get(launch, (default, {}))
        return nodes.get(node, site)


_default: Optional[Flow] = None


def connect(address: Optional[str] = None, name: Optional[str] = None, weight: int = 1, priority: int = 0,
            reruns: int = 0) -> Flow:
    """Connects to a runtime and makes it the default of this process.

    ``address`` is what ``phalanx flow up`` prints, by default the variable PHX_FLOW. ``weight`` is the client's share
    of devices that several clients use, and a higher ``priority`` goes first. ``reruns`` is how many launches may go
    again to make one value that is lost with a device or a head; with 0 the value fails.
    """
    global _default
    address = address or os.environ.get("PHX_FLOW")
    if not address:
        raise InvalidError("no address of a flow runtime: give it to flow.connect, or set PHX_FLOW", -1)
    _default = Flow(address, name, weight, priority, reruns)
    return _default


def default_flow() -> Flow:
    """The connection made last, or a new one to the address in PHX_FLOW."""
    return _default if _default is not None and not _default.closed else connect()


def islands() -> List[Island]:
    """The islands of the default connection."""
    return default_flow().islands()


class VirtualDevice(NamedTuple):
    """One device of a mesh."""

    mesh: "Mesh"
    index: int

    def __repr__(self) -> str:
        return f"VirtualDevice({self.index} of mesh {self.mesh.id} in {self.mesh.island})"


class Mesh:
    """Virtual devices of one island, in a shape with named axes. They are given back when the last object that uses
    the mesh is gone, or by ``free``."""

    def __init__(self, flow: Flow, made: Any, axis_names: Optional[Sequence[str]] = None,
                 parent: Optional["Mesh"] = None):
        self.flow, self.id, self.island = flow, made.id, made.island.decode()
        self.shape: Tuple[int, ...] = tuple(made.dims[: made.rank])
        self._parent = parent  # whose devices these are
        names = tuple(axis_names) if axis_names is not None else ("x", "y", "z")[: made.rank]
        if len(names) != made.rank or len(set(names)) != made.rank:
            self.free()
            raise InvalidError(f"{made.rank} dimensions need as many different axis names, got {names}", -1)
        self.axis_names = names

    @property
    def size(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def devices(self) -> List[VirtualDevice]:
        """The devices, row-major."""
        return [VirtualDevice(self, i) for i in range(self.size)]

    def slice(self, start: Sequence[int], shape: Sequence[int]) -> "Mesh":
        """A part of the mesh, on the same devices."""
        if len(start) != len(self.shape) or len(shape) != len(self.shape):
            raise InvalidError(f"a part of a mesh of shape {self.shape} has as many starts and sizes", -1)
        made, error = _library.MeshStruct(), _library.Error()
        starts, sizes = (ctypes.c_uint32 * 3)(*start), (ctypes.c_uint32 * 3)(*shape)
        code = self.flow._lib.phx_flow_mesh_slice(self.flow.pointer, self.id, starts, sizes, ctypes.byref(made), error)
        _library.check(code, error)
        return Mesh(self.flow, made, self.axis_names, self)

    def free(self) -> None:
        """Gives the devices back. Values on them are gone."""
        number, self.id = self.id, 0
        if number and not self.flow.closed:
            self.flow._lib.phx_flow_mesh_free(self.flow.pointer, number)

    def __del__(self) -> None:
        if getattr(self, "id", 0):
            self.free()

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}: {size}" for name, size in zip(self.axis_names, self.shape))
        return f"Mesh({self.id}, {axes}, in {self.island})"


class P:
    """How a value lies on a mesh: for each dimension the axis that divides it, a tuple of axes, or None."""

    def __init__(self, *axes: Union[None, str, Tuple[str, ...]]):
        self.axes = axes

    def __repr__(self) -> str:
        return f"P({', '.join(repr(axis) for axis in self.axes)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, P) and self.axes == other.axes

    def __hash__(self) -> int:
        return hash(self.axes)


class Sharding:
    """A mesh, and for each dimension of a value a bit mask of the mesh axes that divide it."""

    def __init__(self, mesh: Mesh, spec: Optional[P] = None, masks: Optional[Sequence[int]] = None):
        self.mesh = mesh
        self.masks: Tuple[int, ...] = tuple(masks if masks is not None else self._masks(spec or P()))

    def _masks(self, spec: P) -> List[int]:
        masks = []
        for axis in spec.axes:
            names = () if axis is None else axis if isinstance(axis, tuple) else (axis,)
            unknown = [name for name in names if name not in self.mesh.axis_names]
            if unknown:
                raise InvalidError(f"the mesh has no axis {unknown[0]!r}; its axes: {self.mesh.axis_names}", -1)
            numbers = [self.mesh.axis_names.index(name) for name in names]
            if numbers != sorted(numbers):
                raise InvalidError(f"axes that divide one dimension are named in the mesh's order, got {names}", -1)
            masks.append(sum(1 << number for number in numbers))
        return masks

    @property
    def key(self) -> Tuple[Any, ...]:
        """Equal for shardings under which a value lies alike."""
        masks = self.masks
        while masks and masks[-1] == 0:
            masks = masks[:-1]
        return (id(self.mesh.flow), self.mesh.id, masks)

    def parts(self, dimension: int) -> int:
        """Into how many parts a dimension is cut."""
        mask, count = self.masks[dimension] if dimension < len(self.masks) else 0, 1
        for i, size in enumerate(self.mesh.shape):
            count *= size if mask & 1 << i else 1
        return count

    def shard(self, kind: Type, what: str) -> Type:
        """The type of one device's part. InvalidError when a dimension does not divide."""
        if any(self.masks[len(kind.shape):]):
            raise InvalidError(f"{what} has shape {kind.shape}, its sharding divides more dimensions", -1)
        for d, size in enumerate(kind.shape):
            if size % self.parts(d):
                raise InvalidError(f"{what}: dimension {d} of {kind.shape} does not divide by {self.parts(d)} "
                                   "devices", -1)
        return Type([size // self.parts(d) for d, size in enumerate(kind.shape)], kind.dtype)

    def whole(self, kind: Type) -> Type:
        """The type of the value of whose parts this is the type."""
        return Type([size * self.parts(d) for d, size in enumerate(kind.shape)], kind.dtype)

    def struct(self) -> Any:
        """struct phx_flow_sharding"""
        made = _library.ShardingStruct(self.mesh.id)
        made.axes[: len(self.masks)] = self.masks
        return made

    def __repr__(self) -> str:
        words = []
        for mask in self.masks:
            names = tuple(name for i, name in enumerate(self.mesh.axis_names) if mask & 1 << i)
            words.append(repr(names[0] if len(names) == 1 else names or None))
        return f"Sharding(mesh {self.mesh.id}, P({', '.join(words)}))"


def type_struct(kind: Type) -> Any:
    """struct phx_flow_type"""
    if len(kind.shape) > _library.RANK_MAX:
        raise InvalidError(f"a value has at most {_library.RANK_MAX} dimensions, got {kind.shape}", -1)
    made = _library.TypeStruct(kind.dtype.number, len(kind.shape))
    made.dims[: len(kind.shape)] = kind.shape
    return made


class Slice:
    """What ``VirtualDeviceSet.add_slice`` gives: ``tpus``, its devices, and ``mesh``."""

    def __init__(self, mesh: Mesh):
        self.mesh = mesh

    @property
    def tpus(self) -> List[VirtualDevice]:
        return self.mesh.devices

    devices = tpus


class VirtualDeviceSet:
    """Slices of virtual devices, as the Pathways paper's user code asks for them."""

    def __init__(self, flow: Optional[Flow] = None):
        self.flow = flow or default_flow()
        self.slices: List[Slice] = []

    def add_slice(self, tpu_devices: Optional[int] = None, shape: Optional[Sequence[int]] = None,
                  island: Optional[str] = None) -> Slice:
        """New devices inside one island: a number of them, or a shape."""
        if (tpu_devices is None) == (shape is None):
            raise InvalidError("add_slice takes tpu_devices or shape", -1)
        made = Slice(self.flow.mesh(tpu_devices if tpu_devices is not None else tuple(shape or ()), island=island))
        self.slices.append(made)
        return made


def make_virtual_device_set() -> VirtualDeviceSet:
    """An empty set of virtual devices of the default connection."""
    return VirtualDeviceSet()


def mesh_of(devices: Sequence[VirtualDevice]) -> Mesh:
    """The mesh of a list of devices: all of a mesh, or neighbours in one of a single dimension."""
    if not devices or not all(isinstance(device, VirtualDevice) for device in devices):
        raise InvalidError("devices are a list of virtual devices: see flow.make_virtual_device_set", -1)
    mesh, numbers = devices[0].mesh, [device.index for device in devices]
    if any(device.mesh is not mesh for device in devices):
        raise InvalidError("the devices of a function belong to one mesh", -1)
    if numbers == list(range(mesh.size)):
        return mesh
    if len(numbers) == 1:
        start, rest = [], numbers[0]
        for size in reversed(mesh.shape):
            start.insert(0, rest % size)
            rest //= size
        return mesh.slice(start, [1] * len(start))
    if len(mesh.shape) == 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return mesh.slice([numbers[0]], [len(numbers)])
    raise InvalidError("the devices of a function are a whole mesh, or neighbours in one of one dimension", -1)
