"""Operators and methods of tensors; importing this module adds them."""

from typing import Any

from . import elementwise, movement, reduction
from ._trace import Tensor


def _swapped(function: Any) -> Any:
    return lambda self, other: function(other, self)


_OPERATORS = {
    "add": elementwise.add, "sub": elementwise.subtract, "mul": elementwise.multiply,
    "truediv": elementwise.divide, "floordiv": elementwise.floor_divide, "mod": elementwise.mod,
    "pow": elementwise.power, "matmul": reduction.matmul, "and": elementwise.logical_and,
    "or": elementwise.logical_or, "xor": elementwise.logical_xor, "lshift": elementwise.shift_left,
    "rshift": elementwise.shift_right,
}
for _name, _function in _OPERATORS.items():
    setattr(Tensor, f"__{_name}__", lambda self, other, function=_function: function(self, other))
    setattr(Tensor, f"__r{_name}__", _swapped(_function))
_COMPARISONS = {
    "eq": elementwise.equal, "ne": elementwise.not_equal, "lt": elementwise.less, "le": elementwise.less_equal,
    "gt": elementwise.greater, "ge": elementwise.greater_equal,
}
for _name, _function in _COMPARISONS.items():
    setattr(Tensor, f"__{_name}__", lambda self, other, function=_function: function(self, other))
_METHODS = {
    "__neg__": elementwise.negative, "__abs__": elementwise.absolute, "__invert__": elementwise.logical_not,
    "__getitem__": movement.index, "astype": elementwise.astype, "reshape": movement.reshape,
    "transpose": movement.transpose, "squeeze": movement.squeeze, "swapaxes": movement.swapaxes,
    "sum": reduction.sum, "mean": reduction.mean, "max": reduction.max, "min": reduction.min,
    "prod": reduction.prod, "all": reduction.all, "any": reduction.any, "var": reduction.var, "std": reduction.std,
    "dot": reduction.dot, "take": movement.take, "argmax": reduction.argmax, "argmin": reduction.argmin,
    "cumsum": reduction.cumsum, "clip": elementwise.clip,
}
for _name, _function in _METHODS.items():
    setattr(Tensor, _name, _function)
Tensor.T = property(movement.transpose)
