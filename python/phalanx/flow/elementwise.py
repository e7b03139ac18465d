"""Operations on elements: arithmetic, functions, comparisons, selection, conversion."""

from typing import Any, Callable, Tuple

import numpy

from ._dtypes import DType, bool_, dtype_of, float32, promote
from ._grad import vjp
from ._text import ints
from ._trace import Shape, Tensor, TraceError, as_tensor, check_float, emit_one, full


def astype(x: Any, dtype: Any) -> Tensor:
    """The elements converted to another type; floats to integers round towards zero."""
    x, dtype = as_tensor(x), dtype_of(dtype)
    if x.dtype is dtype:
        return x
    return emit_one("convert", [x], x.shape, dtype)


@vjp("convert")
def _convert_vjp(node, ct):
    return [astype(ct, node.inputs[0].dtype)]


def broadcast_in_dim(x: Tensor, shape: Shape, dims: Tuple[int, ...]) -> Tensor:
    """The tensor of that shape in which dimension i of ``x`` is dimension dims[i]; sizes of 1 are repeated."""
    if x.shape == tuple(shape):
        return x
    return emit_one("broadcast_in_dim", [x], tuple(shape), x.dtype, {"broadcast_dimensions": ints(dims)},
                    {"dims": dims})


def broadcast_to(x: Any, shape: Shape) -> Tensor:
    """NumPy's broadcasting to a shape."""
    x, shape = as_tensor(x), tuple(int(size) for size in shape)
    first = len(shape) - x.ndim
    fits = first >= 0 and all(a in (1, b) for a, b in zip(x.shape, shape[max(first, 0):]))
    if not fits:
        raise TraceError(f"shape {x.shape} does not broadcast to {shape}")
    return broadcast_in_dim(x, shape, tuple(range(first, len(shape))))


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape to which all broadcast."""
    try:
        return tuple(numpy.broadcast_shapes(*shapes))
    except ValueError:
        raise TraceError("shapes do not broadcast: " + ", ".join(str(shape) for shape in shapes)) from None


def together(what: str, *values: Any) -> Tuple[Tensor, ...]:
    """Operands as tensors of one shape and type."""
    like = next((value for value in values if isinstance(value, Tensor)), None)
    if like is None:
        like = next((as_tensor(value) for value in values if hasattr(value, "dtype")), None)
    tensors = [as_tensor(value, like) for value in values]
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        try:
            dtype = promote(dtype, tensor.dtype)
        except TypeError:
            raise TraceError(f"{what} of {dtype} and {tensor.dtype} is not supported") from None
    shape = broadcast_shapes(*(tensor.shape for tensor in tensors))
    return tuple(broadcast_to(astype(tensor, dtype), shape) for tensor in tensors)


def _scaled(ct: Tensor, slope: Any) -> Any:
    """ct * slope; None for a slope that is None."""
    if slope is None or (isinstance(slope, int) and slope == 1):
        return None if slope is None else ct
    return ct * slope


# ---- one operand ----

def _unary(op: str, name: str, derivative: Callable[[Tensor, Tensor], Any], floats: bool = True) -> Callable:
    def apply(x: Any) -> Tensor:
        x = as_tensor(x)
        if floats and x.dtype.is_integer:
            x = astype(x, float32)
        if x.dtype is bool_ or (floats and not x.dtype.is_float):
            raise TraceError(f"{name} of {x.dtype} is not supported")
        return emit_one(op, [x], x.shape, x.dtype)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{name} of each element."

    @vjp(op)
    def rule(node, ct):
        return [_scaled(ct, derivative(node.inputs[0], node.outputs[0]))]

    return apply


exp = _unary("exponential", "exp", lambda x, y: y)
expm1 = _unary("exponential_minus_one", "expm1", lambda x, y: y + 1)
log = _unary("log", "log", lambda x, y: 1 / x)
log1p = _unary("log_plus_one", "log1p", lambda x, y: 1 / (x + 1))
tanh = _unary("tanh", "tanh", lambda x, y: 1 - y * y)
sigmoid = _unary("logistic", "sigmoid", lambda x, y: y * (1 - y))
sqrt = _unary("sqrt", "sqrt", lambda x, y: 0.5 / y)
rsqrt = _unary("rsqrt", "rsqrt", lambda x, y: -0.5 * y / x)
cbrt = _unary("cbrt", "cbrt", lambda x, y: 1 / (3 * y * y))
sin = _unary("sine", "sin", lambda x, y: cos(x))
cos = _unary("cosine", "cos", lambda x, y: -sin(x))
tan = _unary("tan", "tan", lambda x, y: 1 + y * y)
floor = _unary("floor", "floor", lambda x, y: None)
ceil = _unary("ceil", "ceil", lambda x, y: None)
rint = _unary("round_nearest_even", "rint", lambda x, y: None)
sign = _unary("sign", "sign", lambda x, y: None, floats=False)
negative = _unary("negate", "negative", lambda x, y: -1, floats=False)
absolute = _unary("abs", "absolute", lambda x, y: sign(x), floats=False)


def square(x: Any) -> Tensor:
    """x * x"""
    x = as_tensor(x)
    return multiply(x, x)


def isfinite(x: Any) -> Tensor:
    """Whether each element is neither infinite nor NaN."""
    x = check_float(as_tensor(x), "isfinite")
    return emit_one("is_finite", [x], x.shape, bool_)


def logical_not(x: Any) -> Tensor:
    """Not of booleans; the complement of integers."""
    x = as_tensor(x)
    if not (x.dtype is bool_ or x.dtype.is_integer):
        raise TraceError(f"logical_not takes booleans or integers, got {x.dtype}")
    return emit_one("not", [x], x.shape, x.dtype)


def stop_gradient(x: Any) -> Tensor:
    """The same value, through which no gradient flows."""
    x = as_tensor(x)
    return emit_one("optimization_barrier", [x], x.shape, x.dtype)


@vjp("optimization_barrier")
def _stop_vjp(_node, _ct):
    return [None]


# ---- two operands ----

def _binary(op: str, name: str, derivatives: Callable[[Tensor, Tensor, Tensor], Tuple[Any, Any]],
            kinds: Tuple[str, ...] = ("int", "uint", "float")) -> Callable:
    def apply(a: Any, b: Any) -> Tensor:
        a, b = together(name, a, b)
        if a.dtype.kind not in kinds:
            raise TraceError(f"{name} of {a.dtype} is not supported")
        return emit_one(op, [a, b], a.shape, a.dtype)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{name} of elements."

    @vjp(op)
    def rule(node, ct):
        return [_scaled(ct, slope) for slope in derivatives(node.inputs[0], node.inputs[1], node.outputs[0])]

    return apply


def _share(a: Tensor, b: Tensor) -> Tensor:
    """1 where a wins over b in a maximum, a half where they are equal."""
    return where(a > b, full(a.shape, 1, a.dtype), where(a == b, full(a.shape, 0.5, a.dtype), 0))


def _power_slopes(a: Tensor, b: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
    safe = where(a > 0, a, 1)
    return where(b == 0, 0, b * power(a, where(b == 0, 1, b - 1))), where(a > 0, log(safe) * y, 0)


_ANY = ("int", "uint", "float")
add = _binary("add", "add", lambda a, b, y: (1, 1), _ANY + ("complex",))
subtract = _binary("subtract", "subtract", lambda a, b, y: (1, -1), _ANY + ("complex",))
multiply = _binary("multiply", "multiply", lambda a, b, y: (b, a), _ANY + ("complex",))
_divide = _binary("divide", "divide", lambda a, b, y: (1 / b, -y / b), _ANY + ("complex",))
power = _binary("power", "power", _power_slopes)
maximum = _binary("maximum", "maximum", lambda a, b, y: (_share(a, b), _share(b, a)), _ANY + ("bool",))
minimum = _binary("minimum", "minimum", lambda a, b, y: (_share(b, a), _share(a, b)), _ANY + ("bool",))
arctan2 = _binary("atan2", "arctan2", lambda a, b, y: (b / (a * a + b * b), -a / (a * a + b * b)), ("float",))
_remainder = _binary("remainder", "remainder", lambda a, b, y: (1, -_quotient(a, b)))
_BITS = ("bool", "int", "uint")
logical_and = _binary("and", "logical_and", lambda a, b, y: (None, None), _BITS)
logical_or = _binary("or", "logical_or", lambda a, b, y: (None, None), _BITS)
logical_xor = _binary("xor", "logical_xor", lambda a, b, y: (None, None), _BITS)
shift_left = _binary("shift_left", "shift_left", lambda a, b, y: (None, None), ("int", "uint"))
shift_right = _binary("shift_right_logical", "shift_right", lambda a, b, y: (None, None), ("int", "uint"))


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    """a / b rounded towards zero."""
    return sign(a / b) * floor(absolute(a / b))


def divide(a: Any, b: Any) -> Tensor:
    """True division: integers are converted to float32 first."""
    a, b = together("divide", a, b)
    if a.dtype.is_integer:
        a, b = astype(a, float32), astype(b, float32)
    return _divide(a, b)


def mod(a: Any, b: Any) -> Tensor:
    """The remainder with the sign of the divisor, as NumPy's."""
    a, b = together("mod", a, b)
    rest = _remainder(a, b)
    if a.dtype.kind == "uint":
        return rest
    zero = full(a.shape, 0, a.dtype)
    return where(logical_and(rest != zero, (rest < zero) != (b < zero)), rest + b, rest)


def floor_divide(a: Any, b: Any) -> Tensor:
    """The quotient rounded down."""
    a, b = together("floor_divide", a, b)
    if a.dtype.is_float:
        return floor(_divide(a, b))
    return _divide(a - mod(a, b), b)


# ---- comparison and selection ----

def _compare(direction: str, name: str) -> Callable:
    def apply(a: Any, b: Any) -> Tensor:
        a, b = together(name, a, b)
        return emit_one("compare", [a, b], a.shape, bool_,
                        {"comparison_direction": f"#stablehlo<comparison_direction {direction}>"})

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"Whether elements are {name.replace('_', ' ')} to or than one another."
    return apply


equal, not_equal = _compare("EQ", "equal"), _compare("NE", "not_equal")
less, less_equal = _compare("LT", "less"), _compare("LE", "less_equal")
greater, greater_equal = _compare("GT", "greater"), _compare("GE", "greater_equal")


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """Elements of ``a`` where the condition holds, others of ``b``; both are computed."""
    condition = as_tensor(condition)
    if condition.dtype is not bool_:
        raise TraceError(f"where takes a condition of booleans, got {condition.dtype}: compare it with something")
    a, b = together("where", a, b)
    shape = broadcast_shapes(condition.shape, a.shape)
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    return emit_one("select", [broadcast_to(condition, shape), a, b], shape, a.dtype)


@vjp("select")
def _select_vjp(node, ct):
    zero = full(ct.shape, 0, ct.dtype)
    return [None, where(node.inputs[0], ct, zero), where(node.inputs[0], zero, ct)]


def clip(x: Any, low: Any, high: Any) -> Tensor:
    """Elements moved into [low, high]."""
    return minimum(maximum(x, low), high)


def zeros(shape: Any, dtype: DType = float32) -> Tensor:
    """A tensor of zeros."""
    return full(_shape(shape), 0, dtype_of(dtype))


def ones(shape: Any, dtype: DType = float32) -> Tensor:
    """A tensor of ones."""
    return full(_shape(shape), 1, dtype_of(dtype))


def zeros_like(x: Tensor) -> Tensor:
    """Zeros of the shape and type of ``x``."""
    return full(x.shape, 0, x.dtype)


def _shape(shape: Any) -> Shape:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (int(shape),)
