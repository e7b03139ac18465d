"""Values on devices, programs that are launched as one, and the functions that programs call."""

import ctypes
import functools
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy

from .._errors import InvalidError
from . import _library
from ._compile import Lowered, Type, flatten_arguments, lower, type_of
from ._devices import Flow, Mesh, P, Sharding, VirtualDevice, default_flow, mesh_of, type_struct
from ._dtypes import array_of
from ._errors import TraceError, call_site, failure_of
from ._trace import Axes, Tensor
from ._tree import Tree, tree_flatten, tree_map, tree_unflatten
from .movement import reshape

_PEER = -5  # PHX_ERROR_PEER


class Array:
    """A value on devices: the future result of a launch, or what ``put`` has brought there.

    NumPy functions take it (``numpy.asarray``), and ``numpy()`` waits for it; both raise a ComputationError when it was
    not computed.
    """

    def __init__(self, handle: int, kind: Type, sharding: Sharding, site: str):
        self._handle, self.sharding, self._site = handle, sharding, site
        self._flow = sharding.mesh.flow
        self.shape, self.dtype = kind.shape, kind.dtype
        self._array: Any = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def handle(self) -> int:
        """The handle of phalanx/flow.h."""
        return self._handle

    def _checked(self, code: int, failure: Any, error: Any) -> None:
        if code == _PEER and failure.reason:
            raise failure_of(failure, self._flow.site_of(failure.launch, failure.node, self._site))
        _library.check(code, error)

    def numpy(self, timeout: Optional[float] = None) -> Any:
        """The elements, as a NumPy array that is not to be changed. TimeoutExpired after that many seconds."""
        if self._array is None:
            array = numpy.empty(self.shape, dtype=self.dtype.numpy)
            failure, error = _library.FailureStruct(), _library.Error()
            code = self._flow._lib.phx_flow_get(self._flow.pointer, self._handle, array.ctypes.data, array.nbytes,
                                                _milliseconds(timeout), failure, error)
            self._checked(code, failure, error)
            array.flags.writeable = False
            self._array = array
        return self._array

    def checkpoint(self, timeout: Optional[float] = None) -> "Array":
        """Keeps the elements here: with ``connect(reruns=...)``, what is lost later is made again from them."""
        failure, error = _library.FailureStruct(), _library.Error()
        code = self._flow._lib.phx_flow_checkpoint(self._flow.pointer, self._handle, _milliseconds(timeout), failure,
                                                   error)
        self._checked(code, failure, error)
        return self

    def wait(self, timeout: Optional[float] = None) -> "Array":
        """Waits until the value is there, on its devices. TimeoutExpired after that many seconds."""
        failure, error = _library.FailureStruct(), _library.Error()
        code = self._flow._lib.phx_flow_wait(self._flow.pointer, self._handle, _milliseconds(timeout), failure, error)
        self._checked(code, failure, error)
        return self

    def fetch(self) -> "Array":
        """Asks for the value to be brought here as soon as it is there, and does not wait."""
        error = _library.Error()
        _library.check(self._flow._lib.phx_flow_fetch(self._flow.pointer, self._handle, error), error)
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = self.numpy()
        return array.copy() if dtype is None else array.astype(dtype)

    def item(self) -> Any:
        """The only element, as a Python number."""
        return self.numpy().item()

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __len__(self) -> int:
        return len(self.numpy())

    def __getitem__(self, key: Any) -> Any:
        return self.numpy()[key]

    def __repr__(self) -> str:
        return repr(self.numpy())

    def __del__(self) -> None:
        flow = getattr(self, "_flow", None)
        if flow is not None and not flow.closed:
            flow._lib.phx_flow_release(flow.pointer, self._handle)


def _milliseconds(timeout: Optional[float]) -> int:
    return -1 if timeout is None else max(0, int(timeout * 1000))


def put(value: Any, sharding: Any, dtype: Any = None) -> Any:
    """Brings a tree of arrays to devices. ``sharding`` is a Sharding, or a Mesh for a copy on every device."""
    layout = Sharding(sharding) if isinstance(sharding, Mesh) else sharding
    if not isinstance(layout, Sharding):
        raise InvalidError(f"put takes a Sharding or a Mesh, got {type(sharding).__name__}", -1)
    site = call_site()
    return tree_map(lambda leaf: _put(leaf, layout, dtype, site), value)


def _put(value: Any, sharding: Sharding, dtype: Any, site: str) -> Array:
    kind = Type(value.shape, value.dtype) if isinstance(value, Array) else type_of(value)
    kind = Type(kind.shape, dtype if dtype is not None else kind.dtype)
    array = array_of(value.numpy() if isinstance(value, Array) else value, kind.dtype)
    sharding.shard(kind, "the value")
    flow, error = sharding.mesh.flow, _library.Error()
    handle = flow._lib.phx_flow_put(flow.pointer, type_struct(kind), sharding.struct(), array.ctypes.data, array.nbytes,
                                    error)
    if handle == 0:
        _library.check(error.code or -1, error)
    return Array(handle, kind, sharding, site)


def get(value: Any, timeout: Optional[float] = None) -> Any:
    """A tree of NumPy arrays of a tree of values; the values are fetched together."""
    leaves, tree = tree_flatten(value)
    for leaf in leaves:
        if isinstance(leaf, Array) and leaf._array is None:
            leaf.fetch()
    return tree_unflatten(tree, [leaf.numpy(timeout) if isinstance(leaf, Array) else leaf for leaf in leaves])


# ---- programs ----


class Value:
    """A value inside a program: an argument of the program or a result of a call. Its elements are not known."""

    def __init__(self, builder: "_Builder", kind: Type, sharding: Optional[Sharding], number: Optional[int],
                 source: Any = None):
        self.builder, self.kind, self.sharding, self.number = builder, kind, sharding, number
        self.source = source  # of an argument: its place among the leaves, or a constant in a list

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.kind.shape

    @property
    def dtype(self) -> Any:
        return self.kind.dtype

    def __repr__(self) -> str:
        return f"Value({self.kind!r})"

    def __array__(self, *_args: Any) -> Any:
        raise TraceError("the elements of a program's value are not known while the program is built")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a value of a program has no {name}: compute in a function of flow.jit or flow.pmap")


class _State(threading.local):
    def __init__(self) -> None:
        self.builder: Optional["_Builder"] = None


_state = _State()


class _Builder:
    """A program being built: phx_flow_program, and where each node was written."""

    def __init__(self) -> None:
        self.flow: Optional[Flow] = None
        self.pointer: Any = None
        self.nodes = 0
        self.sites: Dict[int, str] = {}
        self.arguments: List[Value] = []
        self.meshes: List[Mesh] = []  # kept while the program is

    def use(self, mesh: Mesh) -> None:
        """Notes a mesh that the program needs."""
        if self.flow is None:
            self.flow = mesh.flow
            self.pointer = ctypes.c_void_p(self.flow._lib.phx_flow_program_new(self.flow.pointer))
        if mesh.flow is not self.flow:
            raise InvalidError("a program runs on meshes of one connection", -1)
        if mesh not in self.meshes:
            self.meshes.append(mesh)

    def node(self) -> None:
        self.sites[self.nodes] = call_site()
        self.nodes += 1

    def place(self, value: Value, sharding: Sharding) -> int:
        """The number of a value that lies so, after a reshard where it lies differently."""
        self.use(sharding.mesh)
        if value.builder is not self:
            raise TraceError("this value belongs to another program")
        assert self.flow is not None
        if value.number is None:
            value.sharding = value.sharding or sharding
            self.use(value.sharding.mesh)
            value.number = self.flow._lib.phx_flow_program_arg(self.pointer, type_struct(value.kind),
                                                               value.sharding.struct())
            self.arguments.append(value)
            self.node()
        assert value.sharding is not None
        if value.sharding.key == sharding.key:
            return value.number
        number = self.flow._lib.phx_flow_program_reshard(self.pointer, value.number, sharding.struct())
        self.node()
        return number

    def call(self, plan: "Plan", values: Sequence[Value]) -> List[Value]:
        """Adds a call; returns its results."""
        self.use(plan.mesh)
        assert self.flow is not None
        function = self.flow.function(plan.text, plan.name)
        for i, (value, kind) in enumerate(zip(values, plan.arguments)):
            if value.dtype is kind.dtype:
                continue
            if value.number is not None or value.sharding is not None:
                raise TraceError(f"argument {i} has elements of {value.dtype}, the function takes {kind.dtype}")
            value.kind = Type(value.kind.shape, kind.dtype)  # NumPy's elements are converted when they are put
        numbers = [self.place(value, layout) for value, layout in zip(values, plan.takes)]
        given, count = (ctypes.c_uint32 * len(numbers))(*numbers), len(plan.gives)
        layouts = (_library.ShardingStruct * max(count, 1))(*[layout.struct() for layout in plan.gives])
        made, error = (ctypes.c_uint32 * max(count, 1))(), _library.Error()
        code = self.flow._lib.phx_flow_program_call(self.pointer, function, plan.mesh.id, given, len(numbers), layouts,
                                                    made, count, error)
        _library.check(code, error)
        self.node()
        return [Value(self, kind, layout, made[i]) for i, (kind, layout) in enumerate(zip(plan.results, plan.gives))]

    def value_of(self, leaf: Any) -> Value:
        """A leaf of a call's arguments as a value of this program."""
        if isinstance(leaf, Value):
            return leaf
        if isinstance(leaf, Tensor):
            raise TraceError("a tensor of a traced function can't be used in a program")
        sharding = leaf.sharding if isinstance(leaf, Array) else None
        return Value(self, type_of(leaf), sharding, None, [leaf])


class _Built:
    """A finished program for arguments of certain types and shardings."""

    def __init__(self, builder: _Builder, result: Any):
        self.builder = builder
        self.leaves, self.tree = tree_flatten(result)
        self.results: List[Value] = []
        for leaf in self.leaves:
            if isinstance(leaf, Value) and leaf.source is None:
                builder.flow._lib.phx_flow_program_result(builder.pointer, leaf.number)
                builder.node()
                self.results.append(leaf)
        if builder.flow is not None:
            error = _library.Error()
            if not self.results:
                raise InvalidError("a program returns at least one result of its calls", -1)
            _library.check(builder.flow._lib.phx_flow_program_finish(builder.pointer, error), error)

    def __del__(self) -> None:
        flow = self.builder.flow
        if flow is not None and not flow.closed:
            flow._lib.phx_flow_program_free(self.builder.pointer)

    def launch(self, leaves: Sequence[Any], site: str) -> Any:
        """Launches the program with these leaves as arguments."""
        arguments, handles = [], []
        for value in self.builder.arguments:
            leaf = value.source[0] if isinstance(value.source, list) else leaves[value.source]
            assert value.sharding is not None
            array = leaf if isinstance(leaf, Array) else _put(leaf, value.sharding, value.kind.dtype, site)
            arguments.append(array)
            handles.append(array.handle)
        made: List[int] = []
        if self.builder.flow is not None:
            made = self.builder.flow.launch(self.builder.pointer, handles, len(self.results), site, self.builder.sites)
        arrays = iter([Array(handle, value.kind, value.sharding, site) for handle, value in zip(made, self.results)])
        given = []
        for leaf in self.leaves:
            if isinstance(leaf, Value) and leaf.source is None:
                given.append(next(arrays))
            elif isinstance(leaf, Value):  # an argument that is returned as it came
                given.append(leaf.source[0] if isinstance(leaf.source, list) else leaves[leaf.source])
            else:
                given.append(leaf)
        return tree_unflatten(self.tree, given)


def _leaf_key(leaf: Any) -> Tuple[Any, ...]:
    kind = type_of(leaf)
    return (kind.shape, kind.dtype.name, leaf.sharding.key if isinstance(leaf, Array) else None)


class Program:
    """A Python function whose calls of compiled functions are launched as one program; see ``flow.program``."""

    def __init__(self, function: Callable):
        self.function = function
        self._built: Dict[Any, _Built] = {}
        functools.update_wrapper(self, function, updated=())

    def _build(self, leaves: Sequence[Any], tree: Tree) -> _Built:
        builder = _Builder()
        values = [
            Value(builder, type_of(leaf), leaf.sharding if isinstance(leaf, Array) else None, None, i)
            for i, leaf in enumerate(leaves)
        ]
        outer, _state.builder = _state.builder, builder
        try:
            return _Built(builder, self.function(*tree_unflatten(tree, values)))
        finally:
            _state.builder = outer

    def __call__(self, *args: Any) -> Any:
        if _state.builder is not None:
            return self.function(*args)
        leaves, tree = flatten_arguments(args)
        key = (tree, tuple(_leaf_key(leaf) for leaf in leaves))
        built = self._built.get(key)
        if built is None or (built.builder.flow is not None and built.builder.flow.closed):
            built = self._built[key] = self._build(leaves, tree)
        return built.launch(leaves, call_site())


def program(function: Callable) -> Program:
    """Decorator: the calls of compiled functions in a Python function become one program, which is traced once for
    arguments of each type and launched as a whole. It returns at once with futures."""
    return Program(function)


def reshard(value: Any, sharding: Any) -> Any:
    """The same values (a tree) on another mesh or in another sharding; in a program or by itself."""
    layout = Sharding(sharding) if isinstance(sharding, Mesh) else sharding
    if _state.builder is None:
        return Program(lambda tree: reshard(tree, layout))(value)
    builder = _state.builder

    def one(leaf: Any) -> Value:
        own = builder.value_of(leaf)
        return Value(builder, own.kind, layout, builder.place(own, layout))

    return tree_map(one, value)


# ---- functions ----


class Plan:
    """A traced function for arguments of certain types: text, and how arguments and results lie."""

    def __init__(self, mesh: Mesh, lowered: Lowered, takes: List[Sharding], gives: List[Sharding],
                 results: List[Type]):
        self.mesh, self.text, self.name, self.tree = mesh, lowered.text, "main", lowered.tree
        self.takes, self.gives, self.results = takes, gives, results
        self.arguments = lowered.arguments  # of one device


class Compiled:
    """A function that is traced for arguments of each type and runs on devices; ``lower`` gives its text."""

    def __init__(self, function: Callable):
        self.function = function
        self._plans: Dict[Any, Plan] = {}
        self._alone = Program(self._add)
        functools.update_wrapper(self, function, updated=())

    def _plan(self, types: List[Type], tree: Tree) -> Plan:
        raise NotImplementedError

    def _mesh(self) -> Mesh:
        raise NotImplementedError

    def _planned(self, types: List[Type], tree: Tree) -> Plan:
        key = (tree, tuple(types), self._mesh())
        if key not in self._plans:
            self._plans[key] = self._plan(types, tree)
        return self._plans[key]

    def _add(self, *args: Any) -> Any:
        builder = _state.builder
        assert builder is not None
        leaves, tree = flatten_arguments(args)
        values = [builder.value_of(leaf) for leaf in leaves]
        plan = self._planned([value.kind for value in values], tree)
        return tree_unflatten(plan.tree, builder.call(plan, values))

    def __call__(self, *args: Any) -> Any:
        leaves, _tree = flatten_arguments(args)
        if any(isinstance(leaf, Tensor) for leaf in leaves):
            return self._inline(*args)
        return self._alone(*args) if _state.builder is None else self._add(*args)

    def _inline(self, *_args: Any) -> Any:
        raise TraceError("a function of flow.pmap or flow.shard_map can't be called in a traced function")


class Jit(Compiled):
    """See ``flow.jit``."""

    def __init__(self, function: Callable, device: Optional[VirtualDevice] = None):
        super().__init__(function)
        self._device = None if device is None else mesh_of([device])

    def _mesh(self) -> Mesh:
        return self._device or default_flow().single()

    def lower(self, *args: Any) -> Lowered:
        """The traced function for arguments of these types; ``flow.Type(shape, dtype)`` stands for an array."""
        leaves, tree = flatten_arguments(args)
        return lower(self.function, [type_of(leaf) for leaf in leaves], tree)

    def _plan(self, types: List[Type], tree: Tree) -> Plan:
        lowered, mesh = lower(self.function, types, tree), self._mesh()
        everywhere = Sharding(mesh)
        return Plan(mesh, lowered, [everywhere] * len(types), [everywhere] * len(lowered.results), lowered.results)

    def _inline(self, *args: Any) -> Any:
        return self.function(*args)


def jit(function: Optional[Callable] = None, *, device: Optional[VirtualDevice] = None) -> Any:
    """A function that is compiled for one device: ``device``, or one that the connection keeps for it."""
    return (lambda inner: Jit(inner, device)) if function is None else Jit(function, device)


class ShardMap(Compiled):
    """See ``flow.shard_map``."""

    def __init__(self, function: Callable, mesh: Mesh, in_specs: Any, out_specs: Any):
        super().__init__(function)
        self.mesh, self.in_specs, self.out_specs = mesh, in_specs, out_specs
        self.axes = Axes(mesh.axis_names, mesh.shape)

    def _mesh(self) -> Mesh:
        return self.mesh

    def _local(self, types: List[Type], tree: Tree) -> Tuple[List[Sharding], List[Type]]:
        specs = spread_specs(self.in_specs, tree, "in_specs")
        takes = [Sharding(self.mesh, spec) for spec in specs]
        return takes, [take.shard(kind, f"argument {i}") for i, (take, kind) in enumerate(zip(takes, types))]

    def lower(self, *args: Any) -> Lowered:
        """The traced function of one device for arguments of these types."""
        leaves, tree = flatten_arguments(args)
        _takes, local = self._local([type_of(leaf) for leaf in leaves], tree)
        return lower(self.function, local, tree, self.axes)

    def _plan(self, types: List[Type], tree: Tree) -> Plan:
        takes, local = self._local(types, tree)
        lowered = lower(self.function, local, tree, self.axes)
        gives = [Sharding(self.mesh, spec) for spec in spread_specs(self.out_specs, lowered.tree, "out_specs")]
        for give, kind in zip(gives, lowered.results):
            if any(give.masks[len(kind.shape):]):
                raise InvalidError(f"a result has shape {kind.shape}, its spec divides more dimensions", -1)
        return Plan(self.mesh, lowered, takes, gives, [give.whole(kind) for give, kind in zip(gives, lowered.results)])


def spread_specs(specs: Any, tree: Tree, what: str) -> List[P]:
    """A spec for each leaf: ``specs`` is a tree like the values', or has one spec in place of a whole subtree."""
    if isinstance(specs, P) or specs is None:
        return [specs or P()] * tree.leaves
    kind = tree.kind
    parts = list(specs) if isinstance(specs, (tuple, list)) else \
        [specs[key] for key in tree.keys if key in specs] if isinstance(specs, dict) else None
    if parts is None or kind is None or len(parts) != len(tree.children):
        raise InvalidError(f"{what} {specs!r} does not fit the values {tree!r}", -1)
    return [spec for part, child in zip(parts, tree.children) for spec in spread_specs(part, child, what)]


def shard_map(function: Optional[Callable] = None, *, mesh: Mesh, in_specs: Any, out_specs: Any) -> Any:
    """A function that runs on every device of a mesh, on its parts of the arguments.

    ``in_specs`` has a ``P`` for each argument (a tree of them for a tree; one stands for a whole tree), ``out_specs``
    for each result. Collectives name the mesh's axes.
    """
    if function is None:
        return lambda inner: ShardMap(inner, mesh, in_specs, out_specs)
    return ShardMap(function, mesh, in_specs, out_specs)


class Pmap(Compiled):
    """See ``flow.pmap``."""

    def __init__(self, function: Callable, mesh: Mesh, axis_name: str, in_axes: Any):
        super().__init__(function)
        self.mesh, self.in_axes = mesh, in_axes
        self.axes = Axes((axis_name,), (mesh.size,))
        self._split = Sharding(mesh, masks=((1 << len(mesh.shape)) - 1,))

    def _mesh(self) -> Mesh:
        return self.mesh

    def _takes(self, types: List[Type], tree: Tree) -> List[Sharding]:
        axes = self.in_axes if isinstance(self.in_axes, (tuple, list)) else (self.in_axes,) * len(tree.children)
        if len(axes) != len(tree.children) or any(axis not in (0, None) for axis in axes):
            raise InvalidError(f"in_axes has 0 or None for each of {len(tree.children)} arguments, got {axes}", -1)
        takes = []
        for axis, child in zip(axes, tree.children):
            takes += [Sharding(self.mesh) if axis is None else self._split] * child.leaves
        for i, (take, kind) in enumerate(zip(takes, types)):
            if take is self._split and kind.shape[:1] != (self.mesh.size,):
                raise InvalidError(f"pmap over {self.mesh.size} devices: leaf {i} of the arguments has shape "
                                   f"{kind.shape}, expected {self.mesh.size} in the first dimension", -1)
        return takes

    def _lower(self, types: List[Type], tree: Tree, takes: List[Sharding]) -> Lowered:
        local = [take.shard(kind, "an argument") for take, kind in zip(takes, types)]

        def enter(i: int, tensor: Tensor) -> Tensor:
            return reshape(tensor, tensor.shape[1:]) if takes[i] is self._split else tensor

        return lower(self.function, local, tree, self.axes, enter, lambda _i, x: reshape(x, (1,) + x.shape))

    def lower(self, *args: Any) -> Lowered:
        """The traced function of one device for arguments of these types."""
        leaves, tree = flatten_arguments(args)
        types = [type_of(leaf) for leaf in leaves]
        return self._lower(types, tree, self._takes(types, tree))

    def _plan(self, types: List[Type], tree: Tree) -> Plan:
        takes = self._takes(types, tree)
        lowered = self._lower(types, tree, takes)
        gives = [self._split] * len(lowered.results)
        return Plan(self.mesh, lowered, takes, gives, [self._split.whole(kind) for kind in lowered.results])


def pmap(function: Optional[Callable] = None, axis_name: str = "i", *,
         devices: Optional[Sequence[VirtualDevice]] = None, mesh: Optional[Mesh] = None, in_axes: Any = 0) -> Any:
    """A function that runs on every device, on one element of the first dimension of its arguments.

    ``devices`` (of one mesh) or ``mesh`` says where. ``in_axes`` has None for arguments of which every device gets the
    whole. Collectives name ``axis_name``.
    """
    if (devices is None) == (mesh is None):
        raise InvalidError("pmap takes devices or mesh", -1)
    place = mesh if mesh is not None else mesh_of(devices or [])
    if function is None:
        return lambda inner: Pmap(inner, place, axis_name, in_axes)
    return Pmap(function, place, axis_name, in_axes)
