"""Loops whose number of turns is bounded, or computed."""

from typing import Any, Callable, List, Optional, Sequence

from ._dtypes import int32
from ._errors import TraceError
from ._grad import backward, vjp
from ._trace import Block, Tensor, alias, argument, as_tensor, constant, emit, full, tracing_block
from ._tree import Tree, tree_flatten, tree_unflatten
from .elementwise import add, astype, less

UNROLL_MAX = 4096  # turns of a loop whose gradient is taken


def _flat_state(value: Any) -> Any:
    leaves, tree = tree_flatten(value)
    return [as_tensor(leaf) for leaf in leaves], tree


def _body_results(result: Any, tree: Tree, state: Sequence[Tensor], what: str) -> List[Tensor]:
    leaves, shape = tree_flatten(result)
    if shape != tree:
        raise TraceError(f"{what}'s body gives {shape}, its state is {tree}")
    tensors = []
    for i, (leaf, before) in enumerate(zip(leaves, state)):
        after = as_tensor(leaf, before)
        if after.shape != before.shape or after.dtype is not before.dtype:
            raise TraceError(f"value {i} of {what}'s state is {before!r} and becomes {after!r}")
        tensors.append(after)
    return tensors


def _while(inits: List[Tensor], condition: Callable[[List[Tensor]], Tensor],
           body: Callable[[List[Tensor]], List[Tensor]], params: Any) -> List[Tensor]:
    regions: List[Block] = []
    for function, boolean in ((condition, True), (body, False)):
        with tracing_block() as region:
            arguments = [argument(t.shape, t.dtype) for t in inits]
            result = function(arguments)
            region.results = [result] if boolean else result
        regions.append(region)
    return emit("while", inits, [(t.shape, t.dtype) for t in inits], params=params, regions=regions)


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """Repeats ``state = body(state)`` while ``condition(state)`` holds; a state is a tree. It has no gradient."""
    inits, tree = _flat_state(init)

    def holds(state: List[Tensor]) -> Tensor:
        result = as_tensor(condition(tree_unflatten(tree, state)))
        if result.shape != () or result.dtype.name != "bool":
            raise TraceError(f"while_loop's condition gives {result!r}, expected one boolean")
        return result

    def turn(state: List[Tensor]) -> List[Tensor]:
        return _body_results(body(tree_unflatten(tree, state)), tree, state, "while_loop")

    return tree_unflatten(tree, _while(inits, holds, turn, {"loop": None}))


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """Repeats ``state = body(i, state)`` for i from lower to upper - 1.

    A loop with constant bounds has a gradient: its turns are then unrolled, at most ``UNROLL_MAX``.
    """
    inits, tree = _flat_state(init)
    bounds = (lower, upper) if isinstance(lower, int) and isinstance(upper, int) else None
    if bounds and upper <= lower:
        return tree_unflatten(tree, inits)
    first, last = astype(as_tensor(lower), int32), astype(as_tensor(upper), int32)

    def holds(state: List[Tensor]) -> Tensor:
        return less(state[0], constant(upper, int32) if bounds else last)

    def turn(state: List[Tensor]) -> List[Tensor]:
        result = body(state[0], tree_unflatten(tree, state[1:]))
        return [add(state[0], 1)] + _body_results(result, tree, state[1:], "fori_loop")

    outputs = _while([first] + inits, holds, turn, {"loop": (bounds, body, tree)})
    return tree_unflatten(tree, outputs[1:])


@vjp("while")
def _while_vjp(node, *cts: Optional[Tensor]):
    loop = node.params["loop"]
    if loop is None:
        raise TraceError("while_loop has no gradient: use flow.fori_loop with constant bounds", node.site)
    bounds, body, tree = loop
    if bounds is None:
        raise TraceError("fori_loop with computed bounds has no gradient: make them constant", node.site)
    if bounds[1] - bounds[0] > UNROLL_MAX:
        raise TraceError(f"the gradient of a loop of {bounds[1] - bounds[0]} turns is refused: at most {UNROLL_MAX} "
                         "are unrolled", node.site)
    inits = [alias(tensor) for tensor in node.inputs[1:]]
    first = inits[0].node.index if inits else 0
    state = inits
    for i in range(*bounds):
        result = body(constant(i, int32), tree_unflatten(tree, state))
        state = _body_results(result, tree, state, "fori_loop")
    given = [full(t.shape, 0, t.dtype) if ct is None else ct for t, ct in zip(state, cts[1:])]
    found = backward(list(zip(state, given)), inits + node.captures, first)
    return [None] + found
