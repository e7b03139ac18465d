"""Trees of values: tuples, lists, dicts and None, with values as leaves."""

from typing import Any, Callable, List, Sequence, Tuple


class Tree:
    """The structure of a tree. Two trees of one structure compare equal; dicts are ordered by key."""

    def __init__(self, kind: Any, keys: Tuple[Any, ...], children: Tuple["Tree", ...]):
        self.kind, self.keys, self.children = kind, keys, children
        self.leaves: int = 1 if kind is None else sum(child.leaves for child in children)
        self._key = (kind, keys, tuple(child._key for child in children))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(tree_unflatten(self, ["*"] * self.leaves)).replace("'*'", "*")


_LEAF = Tree(None, (), ())
_NOTHING = type(None)


def _parts(value: Any):
    if isinstance(value, dict):
        try:
            keys = tuple(sorted(value))
        except TypeError as error:
            raise TypeError("the keys of a dict in a tree must be comparable with one another") from error
        return dict, keys, [value[key] for key in keys]
    if isinstance(value, (tuple, list)):
        return type(value), (), list(value)
    if value is None:
        return _NOTHING, (), []
    return None


def tree_flatten(value: Any) -> Tuple[List[Any], Tree]:
    """The leaves of a tree in order, and its structure."""
    parts = _parts(value)
    if parts is None:
        return [value], _LEAF
    kind, keys, children = parts
    leaves: List[Any] = []
    trees = []
    for child in children:
        below, tree = tree_flatten(child)
        leaves += below
        trees.append(tree)
    return leaves, Tree(kind, keys, tuple(trees))


def tree_unflatten(tree: Tree, leaves: Sequence[Any]) -> Any:
    """The tree of that structure with these leaves."""
    return _build(tree, iter(leaves))


def _build(tree: Tree, leaves: Any) -> Any:
    if tree.kind is None:
        return next(leaves)
    if tree.kind is _NOTHING:
        return None
    children = [_build(child, leaves) for child in tree.children]
    if tree.kind is dict:
        return dict(zip(tree.keys, children))
    return tree.kind(*children) if hasattr(tree.kind, "_fields") else tree.kind(children)


def tree_map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Applies a function to the leaves of trees of one structure."""
    leaves, structure = tree_flatten(tree)
    rows = [leaves]
    for other in others:
        more, shape = tree_flatten(other)
        if shape != structure:
            raise ValueError(f"trees differ in structure: {structure} and {shape}")
        rows.append(more)
    return tree_unflatten(structure, [function(*row) for row in zip(*rows)])
