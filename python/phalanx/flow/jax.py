"""Functions of JAX on flow's virtual devices, where JAX is installed.

    import phalanx.flow.jax as fjax

    a = fjax.pmap(lambda x: x * 2.0, devices=get_devices(2))
    step = fjax.jit(train_step)

    @fjax.program
    def f(v): ...

JAX lowers a function to StableHLO text, ``jax.jit(f).lower(*shapes).as_text()``, and flow runs the text. The functions
are called in programs as those of ``phalanx.flow`` are, and ``program`` is the one of ``phalanx.flow``: a program may
call functions of both. Elements have the types that JAX gives them: float32 for float64 unless ``jax_enable_x64`` is
set. A function of ``pmap`` runs on each device by itself: collectives over the axis are for ``phalanx.flow.pmap``.
"""

import re
from typing import Any, Callable, List, Optional, Sequence, Tuple

import jax

from ._compile import Lowered, Type, flatten_arguments, type_of
from ._devices import Mesh, Sharding, VirtualDevice, default_flow, mesh_of
from ._dtypes import dtype_of_text
from ._errors import TraceError
from ._program import Compiled, Plan, program
from ._tree import Tree, tree_flatten, tree_map, tree_unflatten

__all__ = ["JaxFunction", "jit", "lower", "pmap", "program", "signature_of"]

_TENSOR = re.compile(r"tensor<((?:\d+x)*)([A-Za-z][A-Za-z0-9]*(?:<[a-z0-9]+>)?)>")
_MAIN = re.compile(r"func\.func public @main\((.*?)\)\s*->\s*(.*?)\s*\{\s*$", re.MULTILINE)


def signature_of(text: str) -> Tuple[List[Type], List[Type]]:
    """The types of arguments and results of a module's ``main``."""
    found = _MAIN.search(text)
    if not found:
        raise TraceError("JAX's text has no public function main with results")
    sides = []
    for part in found.groups():
        types = []
        for sizes, element in _TENSOR.findall(part):
            try:
                types.append(Type([int(size) for size in sizes.split("x")[:-1]], dtype_of_text(element)))
            except KeyError:
                raise TraceError(f"elements of type {element} have no array in NumPy") from None
        sides.append(types)
    return sides[0], sides[1]


def lower(function: Callable, types: Sequence[Type], tree: Tree) -> Lowered:
    """JAX's text of ``function(*arguments)``; ``tree`` is the structure of the tuple of arguments."""
    shapes = tree_unflatten(tree, [jax.ShapeDtypeStruct(kind.shape, kind.dtype.numpy) for kind in types])
    text = jax.jit(function, keep_unused=True).lower(*shapes).as_text()
    _leaves, result_tree = tree_flatten(jax.eval_shape(function, *shapes))
    arguments, results = signature_of(text)
    if len(arguments) != len(types) or len(results) != result_tree.leaves:
        raise TraceError(f"JAX's function takes {len(arguments)} arrays and gives {len(results)}, expected "
                         f"{len(types)} and {result_tree.leaves}: arguments and results are trees of tuples, "
                         "lists and dicts")
    return Lowered(text, arguments, results, result_tree)


class JaxFunction(Compiled):
    """See ``jit`` and ``pmap`` of this module."""

    def __init__(self, function: Callable, mesh: Optional[Mesh], split: bool):
        super().__init__(function)
        self._given, self._split = mesh, split

    def _mesh(self) -> Mesh:
        return self._given or default_flow().single()

    def _lower(self, types: Sequence[Type], tree: Tree, layout: Sharding) -> Lowered:
        if not self._split:
            return lower(self.function, types, tree)
        count = layout.parts(0)
        for i, kind in enumerate(types):
            if kind.shape[:1] != (count,):
                raise TraceError(f"pmap over {count} devices: leaf {i} of the arguments has shape {kind.shape}, "
                                 f"expected {count} in the first dimension")

        def one(*args: Any) -> Any:
            return tree_map(lambda x: x[None], self.function(*tree_map(lambda x: x[0], args)))

        return lower(one, [layout.shard(kind, "an argument") for kind in types], tree)

    def _layout(self) -> Sharding:
        mesh = self._mesh()
        return Sharding(mesh, masks=((1 << len(mesh.shape)) - 1,) if self._split else ())

    def lower(self, *args: Any) -> Lowered:
        """JAX's text for arguments of these types."""
        leaves, tree = flatten_arguments(args)
        return self._lower([type_of(leaf) for leaf in leaves], tree, self._layout())

    def _plan(self, types: List[Type], tree: Tree) -> Plan:
        layout = self._layout()
        lowered = self._lower(types, tree, layout)
        return Plan(layout.mesh, lowered, [layout] * len(types), [layout] * len(lowered.results),
                    [layout.whole(kind) for kind in lowered.results])


def jit(function: Callable, device: Optional[VirtualDevice] = None) -> JaxFunction:
    """A function of JAX on one device: ``device``, or one that the connection keeps for it."""
    return JaxFunction(function, mesh_of([device]) if device is not None else None, False)


def pmap(function: Callable, devices: Sequence[VirtualDevice]) -> JaxFunction:
    """A function of JAX on every device, each on one element of the first dimension of its arguments."""
    return JaxFunction(function, mesh_of(devices), True)
