"""Operations among the devices of a mesh, along one or more of its named axes.

Gradients are those of the sum over all devices of the differentiated values.
"""

from typing import Any, List, Sequence, Tuple, Union

import numpy

from ._dtypes import int32, uint32
from ._grad import vjp
from ._text import groups_text
from ._trace import Tensor, TraceError, argument, as_tensor, current_axes, emit_one, tracing_block
from ._tree import tree_map
from .elementwise import add, astype, divide, equal, maximum, minimum
from .movement import axis_of, expand_dims, take

AxisNames = Union[str, Tuple[str, ...]]
_CHANNEL = "#stablehlo.channel_handle<handle = 1, type = 1>"


def _groups(axis_name: AxisNames, what: str) -> List[List[int]]:
    """The devices that differ in these axes alone, group by group, in row-major order of the axes."""
    axes = current_axes(what)
    names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
    for name in names:
        if name not in axes.names:
            known = ", ".join(str(known) for known in axes.names) or "none"
            raise TraceError(f"{what}: the mesh has no axis {name!r}; its axes: {known}")
    numbers = numpy.arange(int(numpy.prod(axes.sizes))).reshape(axes.sizes)
    chosen = [axes.names.index(name) for name in names]
    others = [i for i in range(len(axes.names)) if i not in chosen]
    count = int(numpy.prod([axes.sizes[i] for i in chosen], dtype=int))
    return numpy.transpose(numbers, others + chosen).reshape(-1, count).tolist()


def axis_size(axis_name: AxisNames) -> int:
    """The number of devices along axes, a Python number."""
    return len(_groups(axis_name, "axis_size")[0])


def axis_index(axis_name: AxisNames) -> Tensor:
    """This device's number along axes, from 0."""
    groups = _groups(axis_name, "axis_index")
    place = numpy.zeros(sum(len(group) for group in groups), dtype=numpy.int32)
    for group in groups:
        place[group] = numpy.arange(len(group))
    own = astype(emit_one("partition_id", [], (), uint32), int32)
    return take(place, own)


def _grouped(groups: List[List[int]]) -> dict:
    return {"replica_groups": groups_text(groups), "channel_handle": _CHANNEL}


def _all_reduce(x: Tensor, combine: Any, groups: List[List[int]], kind: str) -> Tensor:
    with tracing_block() as region:
        a, b = argument((), x.dtype), argument((), x.dtype)
        region.results = [combine(a, b)]
    return emit_one("all_reduce", [x], x.shape, x.dtype, {**_grouped(groups), "use_global_device_ids": ""},
                    {"groups": groups, "kind": kind}, [region])


def psum(x: Any, axis_name: AxisNames) -> Any:
    """The sum over the devices of axes, of every leaf of a tree. A Python number gives one."""
    groups = _groups(axis_name, "psum")

    def one(leaf: Any) -> Any:
        if isinstance(leaf, (int, float)) and not isinstance(leaf, (bool, numpy.generic)):
            return leaf * len(groups[0])
        return _all_reduce(as_tensor(leaf), add, groups, "sum")

    return tree_map(one, x)


def pmean(x: Any, axis_name: AxisNames) -> Any:
    """The mean over the devices of axes, of every leaf of a tree."""
    return tree_map(lambda leaf: divide(psum(as_tensor(leaf), axis_name), float(axis_size(axis_name))), x)


def pmax(x: Any, axis_name: AxisNames) -> Any:
    """The largest over the devices of axes, element by element."""
    groups = _groups(axis_name, "pmax")
    return tree_map(lambda leaf: _all_reduce(as_tensor(leaf), maximum, groups, "extreme"), x)


def pmin(x: Any, axis_name: AxisNames) -> Any:
    """The smallest over the devices of axes, element by element."""
    groups = _groups(axis_name, "pmin")
    return tree_map(lambda leaf: _all_reduce(as_tensor(leaf), minimum, groups, "extreme"), x)


@vjp("all_reduce")
def _all_reduce_vjp(node, ct):
    groups, x = node.params["groups"], node.inputs[0]
    total = _all_reduce(ct, add, groups, "sum")
    if node.params["kind"] == "sum":
        return [total]
    chosen = astype(equal(x, node.outputs[0]), x.dtype)
    return [chosen * divide(total, _all_reduce(chosen, add, groups, "sum"))]


def all_gather(x: Any, axis_name: AxisNames, axis: int = 0, tiled: bool = False) -> Tensor:
    """The values of all devices of axes: along a new dimension, or (tiled) joined along an old one."""
    x, groups = as_tensor(x), _groups(axis_name, "all_gather")
    if not tiled:
        axis = axis_of(axis, x.ndim + 1)
        x = expand_dims(x, axis)
    return _all_gather(x, groups, axis_of(axis, x.ndim))


def _all_gather(x: Tensor, groups: List[List[int]], axis: int) -> Tensor:
    shape = x.shape[:axis] + (x.shape[axis] * len(groups[0]),) + x.shape[axis + 1:]
    return emit_one("all_gather", [x], shape, x.dtype,
                    {"all_gather_dim": f"{axis} : i64", **_grouped(groups), "use_global_device_ids": ""},
                    {"groups": groups, "axis": axis})


@vjp("all_gather")
def _all_gather_vjp(node, ct):
    return [_reduce_scatter(ct, node.params["groups"], node.params["axis"])]


def psum_scatter(x: Any, axis_name: AxisNames, axis: int = 0) -> Tensor:
    """This device's part, along a dimension, of the sum over the devices of axes."""
    x, groups = as_tensor(x), _groups(axis_name, "psum_scatter")
    axis = axis_of(axis, x.ndim)
    if x.shape[axis] % len(groups[0]):
        raise TraceError(f"psum_scatter: dimension {axis} of {x.shape} does not divide by {len(groups[0])} devices")
    return _reduce_scatter(x, groups, axis)


def _reduce_scatter(x: Tensor, groups: List[List[int]], axis: int) -> Tensor:
    shape = x.shape[:axis] + (x.shape[axis] // len(groups[0]),) + x.shape[axis + 1:]
    with tracing_block() as region:
        a, b = argument((), x.dtype), argument((), x.dtype)
        region.results = [add(a, b)]
    return emit_one("reduce_scatter", [x], shape, x.dtype,
                    {"scatter_dimension": f"{axis} : i64", **_grouped(groups), "use_global_device_ids": ""},
                    {"groups": groups, "axis": axis}, [region])


@vjp("reduce_scatter")
def _reduce_scatter_vjp(node, ct):
    return [_all_gather(ct, node.params["groups"], node.params["axis"])]


def ppermute(x: Any, axis_name: AxisNames, perm: Sequence[Tuple[int, int]]) -> Tensor:
    """Sends the value along (source, target) pairs of one axis; a device that none sends to gets zeros."""
    groups = _groups(axis_name, "ppermute")
    size = len(groups[0])
    sources, targets = [pair[0] for pair in perm], [pair[1] for pair in perm]
    if len(set(sources)) != len(sources) or len(set(targets)) != len(targets) or \
            any(not 0 <= place < size for place in sources + targets):
        raise TraceError(f"ppermute takes pairs below {size} that name a source and a target once, got {list(perm)}")
    return _permute(as_tensor(x), [(group[a], group[b]) for group in groups for a, b in perm])


def _permute(x: Tensor, pairs: List[Tuple[int, int]]) -> Tensor:
    if not pairs:
        raise TraceError("ppermute takes at least one pair")
    return emit_one("collective_permute", [x], x.shape, x.dtype,
                    {"source_target_pairs": groups_text(pairs), "channel_handle": _CHANNEL}, {"pairs": pairs})


@vjp("collective_permute")
def _permute_vjp(node, ct):
    return [_permute(ct, [(b, a) for a, b in node.params["pairs"]])]


def all_to_all(x: Any, axis_name: AxisNames, split_axis: int, concat_axis: int) -> Tensor:
    """Cuts dimension ``split_axis`` into a part for each device, and joins received ones along ``concat_axis``."""
    x, groups = as_tensor(x), _groups(axis_name, "all_to_all")
    split_axis, concat_axis = axis_of(split_axis, x.ndim), axis_of(concat_axis, x.ndim)
    if x.shape[split_axis] % len(groups[0]):
        raise TraceError(f"all_to_all: dimension {split_axis} of {x.shape} does not divide by {len(groups[0])} devices")
    return _all_to_all(x, groups, split_axis, concat_axis)


def _all_to_all(x: Tensor, groups: List[List[int]], split: int, join: int) -> Tensor:
    shape = list(x.shape)
    shape[split] //= len(groups[0])
    shape[join] *= len(groups[0])
    return emit_one("all_to_all", [x], tuple(shape), x.dtype, {
        "split_dimension": f"{split} : i64", "concat_dimension": f"{join} : i64",
        "split_count": f"{len(groups[0])} : i64", **_grouped(groups)
    }, {"groups": groups, "split": split, "join": join})


@vjp("all_to_all")
def _all_to_all_vjp(node, ct):
    return [_all_to_all(ct, node.params["groups"], node.params["join"], node.params["split"])]


def pshift(x: Any, axis_name: AxisNames, distance: int = 1) -> Tensor:
    """``ppermute`` around a ring: each device sends to the one ``distance`` ahead."""
    size = axis_size(axis_name)
    return ppermute(x, axis_name, [(i, (i + distance) % size) for i in range(size)])
