"""From a Python function and the types of its arguments to StableHLO text."""

from typing import Any, Callable, List, Optional, Sequence, Tuple

from ._dtypes import array_of, dtype_of
from ._errors import TraceError
from ._text import module_text
from ._trace import Axes, Tensor, argument, as_tensor, tracing_block, type_text
from ._tree import Tree, tree_flatten, tree_unflatten


class Type:
    """The shape and the element type of an argument or a result."""

    __slots__ = ("shape", "dtype")

    def __init__(self, shape: Sequence[int], dtype: Any):
        self.shape, self.dtype = tuple(shape), dtype_of(dtype)

    def __repr__(self) -> str:
        return type_text(self.shape, self.dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.shape == other.shape and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype.name))


def type_of(value: Any) -> Type:
    """The type of an array, a number, or anything with ``shape`` and ``dtype``."""
    if isinstance(value, Type):
        return value
    try:
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return Type(value.shape, value.dtype)
        array = array_of(value)
        return Type(array.shape, array.dtype)
    except (TypeError, ValueError) as error:
        raise TraceError(f"an argument is a tree of arrays and numbers, got {type(value).__name__}: {error}") from error


class Lowered:
    """A traced function: its text, and the types of its arguments and results, leaf by leaf."""

    def __init__(self, text: str, arguments: List[Type], results: List[Type], tree: Tree):
        self.text, self.arguments, self.results, self.tree = text, arguments, results, tree

    def as_text(self) -> str:
        """StableHLO text of a module whose function is ``main``."""
        return self.text


def function_name(function: Callable) -> str:
    """A name for a module: that of the Python function, with letters and digits only."""
    name = getattr(function, "__name__", "function")
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)


def lower(function: Callable, types: Sequence[Type], tree: Tree, axes: Optional[Axes] = None,
          enter: Callable[[int, Tensor], Tensor] = lambda _i, tensor: tensor,
          leave: Callable[[int, Tensor], Tensor] = lambda _i, tensor: tensor) -> Lowered:
    """Traces ``function(*arguments)``; ``tree`` is the structure of the tuple of arguments.

    ``enter`` and ``leave`` are applied to each argument and result inside the function.
    """
    with tracing_block(axes, top=True) as block:
        tensors = [argument(kind.shape, kind.dtype) for kind in types]
        entered = [enter(i, tensor) for i, tensor in enumerate(tensors)]
        result = function(*tree_unflatten(tree, entered))
        leaves, result_tree = tree_flatten(result)
        block.results = [leave(i, as_tensor(leaf)) for i, leaf in enumerate(leaves)]
        results = [Type(tensor.shape, tensor.dtype) for tensor in block.results]
    return Lowered(module_text(block, function_name(function)), list(types), results, result_tree)


def flatten_arguments(args: Tuple[Any, ...]) -> Tuple[List[Any], Tree]:
    """Leaves of the arguments of a call, and the structure of their tuple."""
    return tree_flatten(tuple(args))
