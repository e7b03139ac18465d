"""Reverse-mode gradients: each operation has a rule that turns cotangents of its results into those of its operands."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ._errors import TraceError
from ._trace import Node, Tensor, alias, as_tensor, full, tracing
from ._tree import tree_flatten, tree_unflatten

_rules: Dict[str, Callable] = {}
_WITHOUT = ("argument", "constant", "compare", "is_finite", "not", "iota", "partition_id", "rng_bit_generator",
            "bitcast_convert")


def vjp(op: str) -> Callable:
    """Decorator of an operation's rule: (node, cotangents of its results) gives one cotangent or None for each operand,
    and then for each tensor that the operation's regions use."""

    def register(rule: Callable) -> Callable:
        _rules[op] = rule
        return rule

    return register


def backward(outputs: Sequence[Tuple[Tensor, Optional[Tensor]]], wanted: Sequence[Tensor], first: int
             ) -> List[Optional[Tensor]]:
    """Cotangents of the wanted tensors from those of outputs. Nodes numbered below ``first`` are constants."""
    roots = {id(tensor) for tensor in wanted}
    nodes = _between(outputs, roots, first)
    moving = set(roots)
    for node in nodes:
        if any(id(tensor) in moving for tensor in node.inputs + node.captures):
            moving.update(id(output) for output in node.outputs if output.dtype.is_float)
    sums: Dict[int, Tensor] = {}

    def give(tensor: Tensor, ct: Optional[Tensor]) -> None:
        if ct is not None and id(tensor) in moving and tensor.dtype.is_float:
            sums[id(tensor)] = sums[id(tensor)] + ct if id(tensor) in sums else ct

    for tensor, ct in outputs:
        give(tensor, ct)
    for node in reversed(nodes):
        if node.op in _WITHOUT or not any(id(output) in sums for output in node.outputs):
            continue
        if not any(id(tensor) in moving for tensor in node.inputs + node.captures):
            continue
        if any(id(output) in roots for output in node.outputs):
            continue
        if node.op not in _rules:
            raise TraceError(f"{node.op} has no gradient", node.site)
        cts = [sums.get(id(output)) for output in node.outputs]
        for tensor, ct in zip(node.inputs + node.captures, _rules[node.op](node, *cts)):
            give(tensor, ct)
    return [sums.get(id(tensor)) for tensor in wanted]


def _between(outputs: Sequence[Tuple[Tensor, Any]], roots: Any, first: int) -> List[Node]:
    """The nodes that lead to the outputs, by number."""
    found: Dict[int, Node] = {}
    stack = [tensor.node for tensor, _ct in outputs]
    while stack:
        node = stack.pop()
        if node.index in found or node.index < first:
            continue
        found[node.index] = node
        if not any(id(output) in roots for output in node.outputs):
            stack += [tensor.node for tensor in node.inputs + node.captures]
    return [found[index] for index in sorted(found)]


@vjp("alias")
def _alias_vjp(_node, ct):
    return [ct]


def value_and_grad(function: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """A function that gives ``(value, gradients)`` of a function whose value is a scalar.

    ``argnums`` says by which arguments: a number, or a tuple of numbers for a tuple of gradients. A gradient is a tree
    like its argument. With ``has_aux`` the function gives ``(value, other)``, and the result is
    ``((value, other), gradients)``. On a mesh, the gradient is that of the sum of the values of all devices.
    """
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)

    def differentiated(*args: Any) -> Any:
        if not tracing():
            raise TraceError("gradients are traced: use flow.jit(flow.grad(f)), or call it in a function of flow.pmap")
        args_list = list(args)
        wanted, trees = [], []
        for number in numbers:
            if not -len(args) <= number < len(args):
                raise TraceError(f"argnums names argument {number}, the call has {len(args)}")
            leaves, tree = tree_flatten(args_list[number])
            tensors = [as_tensor(leaf) for leaf in leaves]
            for tensor in tensors:
                if not tensor.dtype.is_float:
                    raise TraceError(f"gradients are by floats, argument {number} has {tensor.dtype}")
            tensors = [alias(tensor) for tensor in tensors]
            args_list[number] = tree_unflatten(tree, tensors)
            wanted += tensors
            trees.append(tree)
        result = function(*args_list)
        value, other = _split(result, has_aux)
        start = wanted[0].node.index if wanted else 0
        found = backward([(value, full((), 1, value.dtype))], wanted, start)
        cts = iter([full(t.shape, 0, t.dtype) if ct is None else ct for t, ct in zip(wanted, found)])
        gradients = tuple(tree_unflatten(tree, [next(cts) for _ in range(tree.leaves)]) for tree in trees)
        return ((value, other) if has_aux else value), (gradients if isinstance(argnums, tuple) else gradients[0])

    return differentiated


def _split(result: Any, has_aux: bool) -> Tuple[Tensor, Any]:
    if has_aux and not (isinstance(result, tuple) and len(result) == 2):
        raise TraceError("with has_aux the function gives (value, other)")
    value, other = result if has_aux else (result, None)
    if isinstance(value, (tuple, list, dict)) or value is None:
        raise TraceError(f"the gradient is that of a scalar, the function gives a {type(value).__name__}")
    value = as_tensor(value)
    if value.shape != () or not value.dtype.is_float:
        raise TraceError(f"the gradient is that of a scalar of floats, the function gives {value!r}")
    return value, other


def grad(function: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """The same as ``value_and_grad`` without the value: gradients, or ``(gradients, other)`` with ``has_aux``."""
    both = value_and_grad(function, argnums, has_aux)

    def differentiated(*args: Any) -> Any:
        value, gradients = both(*args)
        return (gradients, value[1]) if has_aux else gradients

    return differentiated
