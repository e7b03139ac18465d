"""Operations that move elements: shapes, slices, joins, gathers."""

import itertools
from typing import Any, List, Optional, Sequence, Tuple

from ._dtypes import dtype_of, int32
from ._grad import vjp
from ._text import ints
from ._trace import Tensor, TraceError, argument, as_tensor, emit_one, full, tracing_block
from .elementwise import add, astype, broadcast_in_dim, broadcast_to, maximum, minimum, promote, where


def axis_of(axis: Any, rank: int) -> int:
    """A dimension number from 0; negative ones count from the end."""
    if not isinstance(axis, int) or isinstance(axis, bool) or not -rank <= axis < rank:
        raise TraceError(f"axis {axis} is outside of a tensor of rank {rank}")
    return axis % rank


def reshape(x: Any, *shape: Any) -> Tensor:
    """The same elements in another shape; one size may be -1."""
    x = as_tensor(x)
    sizes = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else list(shape)
    if sizes.count(-1) == 1:
        known = 1
        for size in sizes:
            known *= size if size != -1 else 1
        sizes[sizes.index(-1)] = x.size // known if known else 0
    count = 1
    for size in sizes:
        count *= size
    if count != x.size or any(size < 0 for size in sizes):
        raise TraceError(f"shape {x.shape} can't be reshaped to {tuple(sizes)}")
    if tuple(sizes) == x.shape:
        return x
    return emit_one("reshape", [x], tuple(sizes), x.dtype)


@vjp("reshape")
def _reshape_vjp(node, ct):
    return [reshape(ct, node.inputs[0].shape)]


@vjp("broadcast_in_dim")
def _broadcast_vjp(node, ct):
    from .reduction import sum as total
    x, dims = node.inputs[0], node.params["dims"]
    others = tuple(d for d in range(ct.ndim) if d not in dims)
    spread = tuple(d for i, d in enumerate(dims) if x.shape[i] == 1 and ct.shape[d] != 1)
    summed = total(ct, axis=others + spread) if others or spread else ct
    return [reshape(summed, x.shape)]


def expand_dims(x: Any, axis: int) -> Tensor:
    """A dimension of size 1 more."""
    x = as_tensor(x)
    axis = axis_of(axis, x.ndim + 1)
    return reshape(x, x.shape[:axis] + (1,) + x.shape[axis:])


def squeeze(x: Any, axis: Any = None) -> Tensor:
    """Without dimensions of size 1: all of them, or those of ``axis``."""
    x = as_tensor(x)
    chosen = [d for d, size in enumerate(x.shape) if size == 1] if axis is None else \
        [axis_of(a, x.ndim) for a in (axis if isinstance(axis, tuple) else (axis,))]
    for d in chosen:
        if x.shape[d] != 1:
            raise TraceError(f"dimension {d} of {x.shape} has size {x.shape[d]}, not 1")
    return reshape(x, tuple(size for d, size in enumerate(x.shape) if d not in chosen))


def transpose(x: Any, *axes: Any) -> Tensor:
    """Dimensions in another order; reversed where none is given."""
    x = as_tensor(x)
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        axes = tuple(axes[0] or ())
    order = tuple(axis_of(axis, x.ndim) for axis in axes) if axes else tuple(reversed(range(x.ndim)))
    if sorted(order) != list(range(x.ndim)):
        raise TraceError(f"axes {axes} are no order of the {x.ndim} dimensions")
    if order == tuple(range(x.ndim)):
        return x
    return emit_one("transpose", [x], tuple(x.shape[d] for d in order), x.dtype, {"permutation": ints(order)},
                    {"order": order})


@vjp("transpose")
def _transpose_vjp(node, ct):
    order = node.params["order"]
    return [transpose(ct, tuple(order.index(d) for d in range(len(order))))]


def swapaxes(x: Any, a: int, b: int) -> Tensor:
    """Two dimensions exchanged."""
    x = as_tensor(x)
    order = list(range(x.ndim))
    a, b = axis_of(a, x.ndim), axis_of(b, x.ndim)
    order[a], order[b] = order[b], order[a]
    return transpose(x, tuple(order))


def flip(x: Any, axis: Any = None) -> Tensor:
    """Elements in reverse order along dimensions."""
    x = as_tensor(x)
    dims = tuple(range(x.ndim)) if axis is None else \
        tuple(axis_of(a, x.ndim) for a in (axis if isinstance(axis, tuple) else (axis,)))
    return emit_one("reverse", [x], x.shape, x.dtype, {"dimensions": ints(dims)}, {"dims": dims})


@vjp("reverse")
def _reverse_vjp(node, ct):
    return [flip(ct, node.params["dims"])]


# ---- slices ----

def slice_in_dims(x: Tensor, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]) -> Tensor:
    """Elements starts[d], starts[d] + strides[d], … below limits[d] of each dimension."""
    shape = tuple(max(0, -(-(b - a) // s)) for a, b, s in zip(starts, limits, strides))
    if shape == x.shape and all(s == 1 for s in strides):
        return x
    return emit_one("slice", [x], shape, x.dtype, {
        "start_indices": ints(starts), "limit_indices": ints(limits), "strides": ints(strides)
    }, {"starts": tuple(starts), "strides": tuple(strides)})


@vjp("slice")
def _slice_vjp(node, ct):
    x, starts, strides = node.inputs[0], node.params["starts"], node.params["strides"]
    if 0 in ct.shape:
        return [None]
    ends = [a + (n - 1) * s + 1 for a, n, s in zip(starts, ct.shape, strides)]
    return [pad(ct, [(a, size - end, s - 1) for a, end, s, size in zip(starts, ends, strides, x.shape)])]


def pad(x: Any, widths: Any, value: Any = 0) -> Tensor:
    """``widths`` has (before, after) or (before, after, between) for each dimension."""
    x = as_tensor(x)
    rows = [tuple(row) + (0,) * (3 - len(row)) for row in widths]
    if len(rows) != x.ndim or any(between < 0 for _a, _b, between in rows):
        raise TraceError(f"pad takes (before, after) for each of the {x.ndim} dimensions, got {widths}")
    shape = tuple(a + b + max(size - 1, 0) * c + size for (a, b, c), size in zip(rows, x.shape))
    if any(size < 0 for size in shape):
        raise TraceError(f"pad cuts more of {x.shape} than it has")
    return emit_one("pad", [x, astype(as_tensor(value, x), x.dtype)], shape, x.dtype, {
        "edge_padding_low": ints(row[0] for row in rows), "edge_padding_high": ints(row[1] for row in rows),
        "interior_padding": ints(row[2] for row in rows)
    }, {"rows": rows})


@vjp("pad")
def _pad_vjp(node, ct):
    from .reduction import sum as total
    x, rows = node.inputs[0], node.params["rows"]
    grown = pad(ct, [(max(-a, 0), max(-b, 0)) for a, b, _c in rows])
    starts = [max(a, 0) for a, _b, _c in rows]
    limits = [a + (size - 1) * (c + 1) + 1 if size else a for a, size, (_a, _b, c) in zip(starts, x.shape, rows)]
    inside = slice_in_dims(grown, starts, limits, [c + 1 for _a, _b, c in rows])
    return [inside, total(ct) - total(inside)]


def concatenate(values: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors joined along a dimension."""
    if isinstance(values, Tensor) or not values:
        raise TraceError("concatenate takes a list of at least one tensor")
    tensors = [as_tensor(value) for value in values]
    axis = axis_of(axis, tensors[0].ndim)
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = promote(dtype, tensor.dtype)
    rests = [tensor.shape[:axis] + tensor.shape[axis + 1:] for tensor in tensors]
    if any(rest != rests[0] for rest in rests) or any(t.ndim != tensors[0].ndim for t in tensors):
        raise TraceError(f"shapes {', '.join(str(t.shape) for t in tensors)} can't be joined along axis {axis}")
    shape = list(tensors[0].shape)
    shape[axis] = sum(tensor.shape[axis] for tensor in tensors)
    return emit_one("concatenate", [astype(tensor, dtype) for tensor in tensors], tuple(shape), dtype,
                    {"dimension": f"{axis} : i64"}, {"axis": axis})


@vjp("concatenate")
def _concatenate_vjp(node, ct):
    axis, at, parts = node.params["axis"], 0, []
    for x in node.inputs:
        starts, limits = [0] * ct.ndim, list(ct.shape)
        starts[axis], limits[axis] = at, at + x.shape[axis]
        at = limits[axis]
        parts.append(slice_in_dims(ct, starts, limits, [1] * ct.ndim))
    return parts


def stack(values: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new dimension."""
    return concatenate([expand_dims(value, axis) for value in values], axis)


def arange(count: int, dtype: Any = int32) -> Tensor:
    """0, 1, … count - 1"""
    return iota((int(count),), 0, dtype)


def iota(shape: Tuple[int, ...], axis: int, dtype: Any = int32) -> Tensor:
    """A tensor whose elements are their own index in one dimension."""
    return emit_one("iota", [], tuple(shape), dtype_of(dtype), {"iota_dimension": f"{axis} : i64"})


def one_hot(x: Any, count: int, dtype: Any = "float32") -> Tensor:
    """1 at the index that each element names in a new last dimension of ``count``, else 0."""
    x = as_tensor(x)
    steps = iota(x.shape + (count,), x.ndim, x.dtype)
    return astype(broadcast_in_dim(x, x.shape + (count,), tuple(range(x.ndim))) == steps, dtype)


def tril(shape: Tuple[int, int]) -> Tensor:
    """Booleans: whether the column is at most the row."""
    return iota(shape, 1) <= iota(shape, 0)


def dynamic_slice(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Tensor:
    """A part whose place is computed. Starts are clamped so that it lies inside."""
    x = as_tensor(x)
    indices = [astype(as_tensor(start), int32) for start in starts]
    if len(indices) != x.ndim or len(sizes) != x.ndim or any(n > size for n, size in zip(sizes, x.shape)):
        raise TraceError(f"dynamic_slice of {x.shape} takes {x.ndim} starts and sizes inside of it, got {sizes}")
    return emit_one("dynamic_slice", [x] + indices, tuple(sizes), x.dtype, {"slice_sizes": ints(sizes)})


@vjp("dynamic_slice")
def _dynamic_slice_vjp(node, ct):
    x, *starts = node.inputs
    return [dynamic_update_slice(full(x.shape, 0, x.dtype), ct, starts)] + [None] * len(starts)


def dynamic_update_slice(x: Any, part: Any, starts: Sequence[Any]) -> Tensor:
    """``x`` with a part replaced; starts are clamped so that it lies inside."""
    x = as_tensor(x)
    part = astype(as_tensor(part, x), x.dtype)
    indices = [astype(as_tensor(start), int32) for start in starts]
    if len(indices) != x.ndim or part.ndim != x.ndim or any(n > size for n, size in zip(part.shape, x.shape)):
        raise TraceError(f"a part of shape {part.shape} and {len(indices)} starts do not fit {x.shape}")
    return emit_one("dynamic_update_slice", [x, part] + indices, x.shape, x.dtype)


@vjp("dynamic_update_slice")
def _dynamic_update_slice_vjp(node, ct):
    _x, part, *starts = node.inputs
    rest = dynamic_update_slice(ct, full(part.shape, 0, ct.dtype), starts)
    return [rest, dynamic_slice(ct, starts, part.shape)] + [None] * len(starts)


# ---- gather and scatter along one dimension ----

def take(x: Any, indices: Any, axis: int = 0) -> Tensor:
    """``x`` at computed indices of one dimension. Indices are clamped; negative ones count from the end."""
    x, indices = as_tensor(x), as_tensor(indices)
    axis = axis_of(axis, x.ndim)
    if not indices.dtype.is_integer:
        raise TraceError(f"take's indices are integers, got {indices.dtype}")
    if x.shape[axis] == 0:
        raise TraceError(f"take of {x.shape} along axis {axis}: there is nothing to take")
    indices = astype(indices, int32)
    indices = where(indices < 0, indices + x.shape[axis], indices)
    indices = maximum(minimum(indices, x.shape[axis] - 1), 0)
    shape = x.shape[:axis] + indices.shape + x.shape[axis + 1:]
    count = indices.ndim
    offsets = list(range(axis)) + list(range(axis + count, axis + count + x.ndim - axis - 1))
    sizes = x.shape[:axis] + (1,) + x.shape[axis + 1:]
    numbers = (f"#stablehlo.gather<offset_dims = {offsets}, collapsed_slice_dims = [{axis}], "
               f"start_index_map = [{axis}], index_vector_dim = {count}>")
    return emit_one("gather", [x, indices], shape, x.dtype,
                    {"dimension_numbers": numbers, "slice_sizes": ints(sizes), "indices_are_sorted": "false"},
                    {"axis": axis})


@vjp("gather")
def _gather_vjp(node, ct):
    x, indices = node.inputs
    return [scatter_add(full(x.shape, 0, x.dtype), indices, ct, node.params["axis"]), None]


def scatter_add(x: Any, indices: Any, updates: Any, axis: int = 0) -> Tensor:
    """``x`` with updates added at computed indices of one dimension; indices outside are left out."""
    x, indices = as_tensor(x), as_tensor(indices)
    updates = astype(as_tensor(updates, x), x.dtype)
    axis = axis_of(axis, x.ndim)
    if not indices.dtype.is_integer:
        raise TraceError(f"scatter_add's indices are integers, got {indices.dtype}")
    shape = x.shape[:axis] + indices.shape + x.shape[axis + 1:]
    if updates.shape != shape:
        raise TraceError(f"scatter_add takes updates of shape {shape}, got {updates.shape}")
    window = list(range(axis)) + list(range(axis + indices.ndim, updates.ndim))
    numbers = (f"#stablehlo.scatter<update_window_dims = {window}, inserted_window_dims = [{axis}], "
               f"scatter_dims_to_operand_dims = [{axis}], index_vector_dim = {indices.ndim}>")
    with tracing_block() as region:
        a, b = argument((), x.dtype), argument((), x.dtype)
        region.results = [add(a, b)]
    return emit_one("scatter", [x, astype(indices, int32), updates], x.shape, x.dtype,
                    {"scatter_dimension_numbers": numbers, "indices_are_sorted": "false", "unique_indices": "false"},
                    {"axis": axis}, [region])


@vjp("scatter")
def _scatter_vjp(node, ct):
    from .reduction import mask_outside
    _x, indices, updates = node.inputs
    axis = node.params["axis"]
    inside = mask_outside(take(ct, indices, axis), indices, ct.shape[axis], axis)
    assert inside.shape == updates.shape
    return [ct, None, inside]


# ---- indexing with brackets ----

def index(x: Tensor, key: Any) -> Tensor:
    """``x[key]``: numbers, slices, None, ``...`` and at most one tensor or array of integers."""
    keys: List[Any] = list(key) if isinstance(key, tuple) else [key]
    used = sum(1 for k in keys if k is not None and k is not Ellipsis)
    if sum(1 for k in keys if k is Ellipsis) > 1 or used > x.ndim:
        raise TraceError(f"too many indices for shape {x.shape}")
    at = next((i for i, k in enumerate(keys) if k is Ellipsis), None)
    fill = [slice(None)] * (x.ndim - used)
    keys = keys + fill if at is None else keys[:at] + fill + keys[at + 1:]
    starts, limits, strides, flips, gathers, shape = [], [], [], [], [], []
    dims = itertools.count()
    result: Optional[Tensor] = None
    for k in keys:
        if k is None:
            shape.append((1, None))
            continue
        d = next(dims)
        a, b, s, kept, turned, taken = _index_one(x, k, d)
        starts.append(a), limits.append(b), strides.append(s)
        if turned:
            flips.append(d)
        if taken is not None:
            gathers.append((d, taken))
        if kept:
            shape.append((max(0, -(-(b - a) // s)), d))
    if len(gathers) > 1:
        raise TraceError("an index has at most one tensor")
    result = slice_in_dims(x, starts, limits, strides)
    if flips:
        result = flip(result, tuple(flips))
    if not gathers:
        return reshape(result, tuple(size for size, _d in shape))
    d, taken = gathers[0]
    sizes: List[int] = []
    for size, dim in shape:
        sizes += list(taken.shape) if dim == d else [size]
    return reshape(take(result, taken, d), tuple(sizes))


def _index_one(x: Tensor, k: Any, d: int) -> Tuple[int, int, int, bool, bool, Optional[Tensor]]:
    """Start, limit, stride, whether the dimension stays, whether it is reversed, and what it is gathered by."""
    size = x.shape[d]
    if isinstance(k, slice):
        for bound in (k.start, k.stop, k.step):
            if isinstance(bound, Tensor):
                raise TraceError("a slice has constant bounds: use flow.dynamic_slice")
        a, b, s = k.indices(size)
        count = len(range(a, b, s))
        if s > 0:
            return a, max(a, b), s, True, False, None
        last = a + (count - 1) * s
        return (last, a + 1, -s, True, True, None) if count else (0, 0, 1, True, False, None)
    if isinstance(k, int) and not isinstance(k, bool):
        if not -size <= k < size:
            raise TraceError(f"index {k} is outside of dimension {d} of size {size}")
        return k % size, k % size + 1, 1, False, False, None
    taken = as_tensor(k)
    if not taken.dtype.is_integer:
        raise TraceError(f"an index is an integer, a slice or a tensor of integers, got {taken.dtype}")
    return 0, size, 1, True, False, taken


__all__ = ["arange", "broadcast_to", "concatenate", "dynamic_slice", "dynamic_update_slice", "expand_dims", "flip",
           "index", "iota", "one_hot", "pad", "reshape", "scatter_add", "squeeze", "stack", "swapaxes", "take",
           "transpose", "tril"]
