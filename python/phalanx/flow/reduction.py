"""Reductions and products of tensors."""

import builtins
from typing import Any, Callable, Sequence, Tuple

import numpy

from ._dtypes import DType, bool_, float32, int32
from ._grad import vjp
from ._text import ints
from ._trace import Tensor, TraceError, argument, as_tensor, emit_one, full, tracing_block
from .elementwise import (add, astype, broadcast_in_dim, broadcast_to, divide, equal, exp, log, logical_and,
                          logical_or, maximum, minimum, multiply, promote, sqrt, square, stop_gradient, where)
from .movement import axis_of, expand_dims, iota, reshape, squeeze, transpose


def _axes(axis: Any, rank: int) -> Tuple[int, ...]:
    if axis is None:
        return tuple(range(rank))
    dims = tuple(sorted(axis_of(a, rank) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))))
    if len(set(dims)) != len(dims):
        raise TraceError(f"axis {axis} names a dimension twice")
    return dims


def _reduce(x: Tensor, combine: Callable, start: Any, axis: Any, keepdims: bool, kind: str) -> Tensor:
    dims = _axes(axis, x.ndim)
    shape = tuple(size for d, size in enumerate(x.shape) if d not in dims)
    if dims:
        with tracing_block() as region:
            a, b = argument((), x.dtype), argument((), x.dtype)
            region.results = [combine(a, b)]
        result = emit_one("reduce", [x, full((), start, x.dtype)], shape, x.dtype, {"dimensions": ints(dims)},
                          {"dims": dims, "kind": kind}, [region])
    else:
        result = x
    return reshape(result, tuple(1 if d in dims else size for d, size in enumerate(x.shape))) if keepdims else result


def lowest(dtype: DType) -> Any:
    """The element that every other one wins over in a maximum."""
    if dtype is bool_:
        return False
    return -numpy.inf if dtype.is_float else numpy.iinfo(dtype.numpy).min


def highest(dtype: DType) -> Any:
    """The element that every other one wins over in a minimum."""
    if dtype is bool_:
        return True
    return numpy.inf if dtype.is_float else numpy.iinfo(dtype.numpy).max


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over dimensions; booleans are counted."""
    x = as_tensor(x)
    x = astype(x, int32) if x.dtype is bool_ else x
    return _reduce(x, add, 0, axis, keepdims, "sum")


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element over dimensions."""
    x = as_tensor(x)
    return _reduce(x, maximum, lowest(x.dtype), axis, keepdims, "extreme")


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element over dimensions."""
    x = as_tensor(x)
    return _reduce(x, minimum, highest(x.dtype), axis, keepdims, "extreme")


def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The product over dimensions."""
    return _reduce(as_tensor(x), multiply, 1, axis, keepdims, "product")


def _booleans(x: Any, name: str) -> Tensor:
    x = as_tensor(x)
    if x.dtype is not bool_:
        raise TraceError(f"{name} takes booleans, got {x.dtype}")
    return x


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true over dimensions."""
    return _reduce(_booleans(x, "all"), logical_and, True, axis, keepdims, "logical")


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether an element is true over dimensions."""
    return _reduce(_booleans(x, "any"), logical_or, False, axis, keepdims, "logical")


@vjp("reduce")
def _reduce_vjp(node, ct):
    x, dims, kind = node.inputs[0], node.params["dims"], node.params["kind"]
    kept = tuple(d for d in range(x.ndim) if d not in dims)

    def spread(tensor: Tensor) -> Tensor:
        return broadcast_in_dim(tensor, x.shape, kept)

    if kind == "sum":
        return [spread(ct), None]
    if kind == "extreme":  # elements that are equal share the cotangent
        chosen = astype(equal(x, spread(node.outputs[0])), x.dtype)
        return [chosen * spread(divide(ct, sum(chosen, dims))), None]
    if kind == "product":
        return [spread(ct) * _product_of_others(x, dims), None]
    raise TraceError(f"a {kind} reduction has no gradient", node.site)


def _product_of_others(x: Tensor, dims: Tuple[int, ...]) -> Tensor:
    """For each element, the product of the others of its group; right where elements are 0."""
    kept = tuple(d for d in range(x.ndim) if d not in dims)
    order = kept + dims
    count = int(numpy.prod([x.shape[d] for d in dims], dtype=numpy.int64))
    rows = reshape(transpose(x, order), (-1, count)) if count and x.size else None
    if rows is None:
        return full(x.shape, 0, x.dtype)
    shape = (rows.shape[0], count, count)
    own = iota(shape, 1) == iota(shape, 2)
    others = prod(where(own, full(shape, 1, x.dtype), broadcast_in_dim(rows, shape, (0, 2))), axis=2)
    back = reshape(others, tuple(x.shape[d] for d in order))
    return transpose(back, tuple(order.index(d) for d in range(x.ndim)))


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over dimensions."""
    x = as_tensor(x)
    x = x if x.dtype.is_float else astype(x, float32)
    count = int(numpy.prod([x.shape[d] for d in _axes(axis, x.ndim)], dtype=numpy.int64))
    return divide(sum(x, axis, keepdims), float(count))


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The variance over dimensions: the mean of squared differences from the mean."""
    x = as_tensor(x)
    return mean(square(x - mean(x, axis, True)), axis, keepdims)


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The square root of the variance."""
    return sqrt(var(x, axis, keepdims))


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))), without overflow."""
    x = as_tensor(x)
    top = stop_gradient(max(x, axis, True))
    result = log(sum(exp(x - top), axis, True)) + top
    return result if keepdims else squeeze(result, _axes(axis, x.ndim))


def softmax(x: Any, axis: int = -1) -> Tensor:
    """exp(x) divided by its sum over a dimension."""
    x = as_tensor(x)
    powers = exp(x - stop_gradient(max(x, axis, True)))
    return divide(powers, sum(powers, axis, True))


def log_softmax(x: Any, axis: int = -1) -> Tensor:
    """The logarithm of softmax, without loss of digits."""
    x = as_tensor(x)
    return x - logsumexp(x, axis, True)


def argmax(x: Any, axis: int = -1) -> Tensor:
    """The first index of the largest element."""
    x = as_tensor(x)
    axis = axis_of(axis, x.ndim)
    steps = iota(x.shape, axis)
    return min(where(equal(x, max(x, axis, True)), steps, x.shape[axis]), axis)


def argmin(x: Any, axis: int = -1) -> Tensor:
    """The first index of the smallest element."""
    x = as_tensor(x)
    axis = axis_of(axis, x.ndim)
    return min(where(equal(x, min(x, axis, True)), iota(x.shape, axis), x.shape[axis]), axis)


def cumsum(x: Any, axis: int = 0) -> Tensor:
    """Running sums along a dimension."""
    x = as_tensor(x)
    axis = axis_of(axis, x.ndim)
    size = x.shape[axis]
    lower = astype(iota((size, size), 0) >= iota((size, size), 1), x.dtype)
    moved = transpose(x, tuple(d for d in range(x.ndim) if d != axis) + (axis,))
    summed = dot_general(moved, lower, ((x.ndim - 1,), (1,)), ((), ()))
    order = list(range(x.ndim - 1))
    order.insert(axis, x.ndim - 1)
    return transpose(summed, tuple(order))


def mask_outside(x: Tensor, indices: Tensor, size: int, axis: int) -> Tensor:
    """0 where an index of ``take`` was outside of 0 to size - 1."""
    inside = logical_and(indices >= 0, indices < size)
    shaped = broadcast_in_dim(inside, x.shape, tuple(range(axis, axis + indices.ndim)))
    return where(shaped, x, full(x.shape, 0, x.dtype))


# ---- products ----

Dims = Tuple[Sequence[int], Sequence[int]]


def dot_general(a: Any, b: Any, contract: Dims, batch: Dims) -> Tensor:
    """Products summed over pairs of dimensions, for each index of pairs of batch dimensions.

    The result has the batch dimensions, then the other ones of ``a``, then those of ``b``.
    """
    a, b = as_tensor(a), as_tensor(b)
    dtype = promote(a.dtype, b.dtype)
    a, b = astype(a, dtype), astype(b, dtype)
    for x, y, name in ((contract[0], contract[1], "contracted"), (batch[0], batch[1], "batch")):
        if len(x) != len(y) or builtins.any(a.shape[i] != b.shape[j] for i, j in zip(x, y)):
            raise TraceError(f"{name} dimensions {tuple(x)} of {a.shape} and {tuple(y)} of {b.shape} differ in size")
    free_a = [d for d in range(a.ndim) if d not in contract[0] and d not in batch[0]]
    free_b = [d for d in range(b.ndim) if d not in contract[1] and d not in batch[1]]
    shape = tuple([a.shape[d] for d in batch[0]] + [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b])
    numbers = (f"#stablehlo.dot<lhs_batching_dimensions = {list(batch[0])}, rhs_batching_dimensions = "
               f"{list(batch[1])}, lhs_contracting_dimensions = {list(contract[0])}, "
               f"rhs_contracting_dimensions = {list(contract[1])}>")
    return emit_one("dot_general", [a, b], shape, dtype, {"dot_dimension_numbers": numbers},
                    {"contract": contract, "batch": batch, "free": (free_a, free_b)})


@vjp("dot_general")
def _dot_vjp(node, ct):
    a, b = node.inputs
    return [_dot_side(node, ct, a, b, 0), _dot_side(node, ct, b, a, 1)]


def _dot_side(node: Any, ct: Tensor, x: Tensor, other: Tensor, side: int) -> Tensor:
    contract, batch, free = (node.params[key] for key in ("contract", "batch", "free"))
    batches = list(range(len(batch[0])))
    first = len(batches) + (0 if side else len(free[0]))
    others = list(range(first, first + len(free[1 - side])))
    found = dot_general(ct, other, (others, free[1 - side]), (batches, batch[1 - side]))
    # found: batch dimensions, those of x that are free, then the contracted ones in the order of `other`
    pairs = sorted(zip(contract[1 - side], contract[side]))
    dims = list(batch[side]) + list(free[side]) + [own for _theirs, own in pairs]
    return transpose(found, tuple(dims.index(d) for d in range(x.ndim)))


def matmul(a: Any, b: Any) -> Tensor:
    """NumPy's matmul: the last two dimensions are matrices, those before broadcast."""
    a, b = as_tensor(a), as_tensor(b)
    if not a.ndim or not b.ndim:
        raise TraceError("matmul takes tensors of at least one dimension: use * for scalars")
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise TraceError(f"matmul of {a.shape} and {b.shape}: {a.shape[-1]} columns and {inner} rows differ")
    if b.ndim <= 2:
        return dot_general(a, b, ((a.ndim - 1,), (builtins.max(b.ndim - 2, 0),)), ((), ()))
    if a.ndim == 1:
        return squeeze(matmul(expand_dims(a, 0), b), -2)
    lead = numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = broadcast_to(a, lead + a.shape[-2:]), broadcast_to(b, lead + b.shape[-2:])
    rows = tuple(range(len(lead)))
    return dot_general(a, b, ((len(lead) + 1,), (len(lead),)), (rows, rows))


def dot(a: Any, b: Any) -> Tensor:
    """NumPy's dot: the last dimension of ``a`` with the last but one of ``b``."""
    a, b = as_tensor(a), as_tensor(b)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    return dot_general(a, b, ((a.ndim - 1,), (builtins.max(b.ndim - 2, 0),)), ((), ()))


def einsum(subscripts: str, a: Any, b: Any) -> Tensor:
    """Einstein summation of two tensors; each letter is at most once in an operand: ``"bqd,bkd->bqk"``."""
    a, b = as_tensor(a), as_tensor(b)
    takes, _arrow, gives = subscripts.replace(" ", "").partition("->")
    left, _comma, right = takes.partition(",")
    if len(left) != a.ndim or len(right) != b.ndim or len(set(left)) != len(left) or len(set(right)) != len(right) or \
            set(gives) - set(takes):
        raise TraceError(f"einsum {subscripts!r} does not fit shapes {a.shape} and {b.shape}")
    alone = [letter for letter in left if letter not in right + gives]
    a, left = sum(a, tuple(left.index(c) for c in alone)) if alone else a, "".join(c for c in left if c not in alone)
    alone = [letter for letter in right if letter not in left + gives]
    b, right = sum(b, tuple(right.index(c) for c in alone)) if alone else b, "".join(c for c in right if c not in alone)
    both = [c for c in left if c in right]
    batch, summed = [c for c in both if c in gives], [c for c in both if c not in gives]
    result = dot_general(a, b, ([left.index(c) for c in summed], [right.index(c) for c in summed]),
                         ([left.index(c) for c in batch], [right.index(c) for c in batch]))
    order = batch + [c for c in left if c not in both] + [c for c in right if c not in both]
    return transpose(result, tuple(order.index(c) for c in gives))
