"""Tracing: a Python function over tensors becomes a graph of operations.

A block is a list of nodes in the order of their creation; a loop's body is a block inside another one and may use its
tensors. Numbers of nodes grow over all blocks of a thread, so they are a topological order.
"""

import itertools
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy

from ._dtypes import DType, array_of, bool_, dtype_of, float32, float64, int32
from ._errors import TraceError, call_site

Shape = Tuple[int, ...]


class Block:
    """Nodes of one region, its arguments and what it returns; ``captures`` are tensors of blocks around it."""

    def __init__(self, parent: Optional["Block"]):
        self.parent = parent
        self.nodes: List["Node"] = []
        self.arguments: List["Tensor"] = []
        self.results: List["Tensor"] = []
        self.captures: Dict[int, "Tensor"] = {}


class Node:
    """An operation: its name in StableHLO, its operands, attributes as text, and what gradients need to know."""

    def __init__(self, op: str, inputs: Sequence["Tensor"], attributes: Dict[str, str], params: Dict[str, Any],
                 regions: Sequence[Block], block: Block):
        self.op, self.inputs, self.attributes, self.params = op, list(inputs), attributes, params
        self.regions, self.block = list(regions), block
        self.index = next(_state.numbers)
        self.site = call_site()
        self.outputs: List["Tensor"] = []
        inner = {id(t): t for region in regions for t in region.captures.values()}
        self.captures = list(inner.values())


class _State(threading.local):
    """The block being traced by this thread, and the mesh axes of the traced function."""

    def __init__(self) -> None:
        self.block: Optional[Block] = None
        self.axes: Optional["Axes"] = None
        self.numbers = itertools.count()


class Axes:
    """The named axes of the mesh that a function runs on, row-major."""

    def __init__(self, names: Sequence[str], sizes: Sequence[int]):
        self.names, self.sizes = tuple(names), tuple(sizes)


_state = _State()


def tracing() -> bool:
    """Whether this thread is inside a traced function."""
    return _state.block is not None


def current_axes(what: str) -> Axes:
    """The axes of the function being traced; TraceError where it has none."""
    if _state.axes is None:
        raise TraceError(f"{what} needs the axes of a mesh: call it in a function of flow.pmap or flow.shard_map")
    return _state.axes


class tracing_block:
    """Context manager: operations of this thread go to a new block."""

    def __init__(self, axes: Optional[Axes] = None, top: bool = False):
        self.outer, self.outer_axes = _state.block, _state.axes
        self.block = Block(None if top else _state.block)
        self.axes = axes if top else _state.axes

    def __enter__(self) -> Block:
        _state.block, _state.axes = self.block, self.axes
        return self.block

    def __exit__(self, *_raised: Any) -> None:
        _state.block, _state.axes = self.outer, self.outer_axes


class Tensor:
    """A value of a traced function: ``shape`` and ``dtype`` are known, the elements are not.

    It has the operators and the methods of a NumPy array; each makes a new tensor.
    """

    __array_ufunc__ = None  # NumPy arrays leave `array + tensor` to the tensor
    __hash__ = object.__hash__

    def __init__(self, node: Node, shape: Shape, dtype: DType):
        self.node, self.shape, self.dtype = node, tuple(shape), dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(numpy.prod(self.shape, dtype=numpy.int64))

    def __repr__(self) -> str:
        return f"Tensor({type_text(self.shape, self.dtype)})"

    def __bool__(self) -> bool:
        raise TraceError("the truth of a traced tensor is not known while the function is traced: "
                         "use flow.where, or flow.while_loop")

    def _refuse_number(self) -> Any:
        raise TraceError("the elements of a traced tensor are not known while the function is traced")

    def __float__(self) -> float:
        return self._refuse_number()

    def __int__(self) -> int:
        return self._refuse_number()

    def __index__(self) -> int:
        return self._refuse_number()

    def __array__(self, *_args: Any) -> Any:
        return self._refuse_number()

    def __len__(self) -> int:
        if not self.shape:
            raise TraceError("a scalar has no length")
        return self.shape[0]

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])


def type_text(shape: Shape, dtype: DType) -> str:
    """``tensor<4x8xf32>``"""
    return "tensor<" + "".join(f"{size}x" for size in shape) + dtype.text + ">"


def _capture(tensor: Tensor) -> None:
    """Checks that the current block sees a tensor, and notes it in the blocks between."""
    block = _state.block
    passed = []
    while block is not None and block is not tensor.node.block:
        passed.append(block)
        block = block.parent
    if block is None:
        raise TraceError("this tensor belongs to a function whose tracing has ended: return it from that function")
    for inner in passed:
        inner.captures[id(tensor)] = tensor


def emit(op: str, inputs: Sequence[Tensor], types: Sequence[Tuple[Shape, DType]],
         attributes: Optional[Dict[str, str]] = None, params: Optional[Dict[str, Any]] = None,
         regions: Sequence[Block] = ()) -> List[Tensor]:
    """Adds an operation to the current block; returns its results."""
    if _state.block is None:
        raise TraceError("tensor operations run in traced functions: use flow.jit, flow.pmap or flow.shard_map")
    for tensor in inputs:
        _capture(tensor)
    for region in regions:
        for tensor in region.captures.values():
            _capture(tensor)
    node = Node(op, inputs, attributes or {}, params or {}, regions, _state.block)
    node.outputs = [Tensor(node, shape, dtype) for shape, dtype in types]
    _state.block.nodes.append(node)
    return node.outputs


def emit_one(op: str, inputs: Sequence[Tensor], shape: Shape, dtype: DType,
             attributes: Optional[Dict[str, str]] = None, params: Optional[Dict[str, Any]] = None,
             regions: Sequence[Block] = ()) -> Tensor:
    """The same for an operation of one result."""
    return emit(op, inputs, [(shape, dtype)], attributes, params, regions)[0]


def argument(shape: Shape, dtype: DType) -> Tensor:
    """A new argument of the current block."""
    assert _state.block is not None
    node = Node("argument", [], {}, {}, [], _state.block)
    tensor = Tensor(node, shape, dtype)
    node.outputs = [tensor]
    _state.block.arguments.append(tensor)
    return tensor


def alias(tensor: Tensor) -> Tensor:
    """The same value as another tensor, from which gradients count."""
    return emit_one("alias", [tensor], tensor.shape, tensor.dtype)


def constant(value: Any, dtype: Optional[DType] = None) -> Tensor:
    """A tensor with the elements of a NumPy array or number."""
    try:
        array = array_of(value, dtype)
        kind = dtype or dtype_of(array)
    except (TypeError, ValueError) as error:
        raise TraceError(f"{type(value).__name__} is no tensor: {error}") from error
    return emit_one("constant", [], array.shape, kind, params={"array": array})


def full(shape: Shape, value: Any, dtype: DType) -> Tensor:
    """A tensor whose elements are all `value`."""
    array = numpy.broadcast_to(array_of(value, dtype), shape)
    return emit_one("constant", [], tuple(shape), dtype, params={"array": array, "splat": True})


def as_tensor(value: Any, like: Optional[Tensor] = None) -> Tensor:
    """A tensor of a tensor, array or number. A Python number takes the type of ``like`` where that holds it."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (bool, int, float)) and not isinstance(value, numpy.generic) and like is not None:
        dtype = like.dtype
        if isinstance(value, float) and not dtype.is_float:
            dtype = float32
        elif not isinstance(value, bool) and dtype is bool_:
            dtype = int32
        return constant(value, dtype)
    if isinstance(value, (list, tuple)) and any(isinstance(item, Tensor) for item in value):
        raise TraceError("a list of tensors is no tensor: use flow.stack or flow.concatenate")
    if isinstance(value, (str, bytes, dict)) or value is None or callable(value):
        raise TraceError(f"expected a tensor, an array or a number, got {type(value).__name__}")
    return constant(value)


def check_float(tensor: Tensor, what: str) -> Tensor:
    """TraceError unless the elements are floats."""
    if not tensor.dtype.is_float:
        raise TraceError(f"{what} takes floats, got {tensor.dtype}: use .astype")
    return tensor


__all__ = ["Axes", "Block", "Node", "Shape", "Tensor", "alias", "argument", "as_tensor", "check_float", "constant",
           "current_axes", "emit", "emit_one", "float64", "full", "tracing", "tracing_block", "type_text"]
