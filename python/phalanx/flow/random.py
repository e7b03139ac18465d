"""Random numbers: Threefry-2x32 with an explicit state, so that a program gives the same ones each time.

    state = flow.random.state(seed)              # a tensor of two uint64: key and counter
    state, x = flow.random.normal(state, (4, 8))
"""

import math
from typing import Any, Tuple

import numpy

from ._dtypes import dtype_of, float32, uint32, uint64
from ._trace import Tensor, TraceError, as_tensor, constant, emit
from .elementwise import add, astype, cos, log, multiply, sqrt
from .elementwise import shift_right
from .movement import reshape, slice_in_dims

_ALGORITHM = {"rng_algorithm": "#stablehlo<rng_algorithm THREE_FRY>"}


def state(seed: Any) -> Tensor:
    """The state of a seed: a Python number, or a tensor of one integer."""
    if isinstance(seed, int):
        return constant(numpy.array([seed % 2**64, 0], dtype=numpy.uint64))
    from .movement import concatenate
    words = reshape(astype(as_tensor(seed), uint64), (1,))
    return concatenate([words, constant(numpy.zeros(1, numpy.uint64))])


def fold_in(words: Any, number: Any) -> Tensor:
    """Another state, of a state and a number: for devices, layers, steps."""
    words = _state(words)
    mixed = bits(state(add(slice_in_dims(words, [0], [1], [1]), multiply(astype(as_tensor(number), uint64),
                 constant(numpy.uint64(0x9E3779B97F4A7C15))))), (2,), uint64)[1]
    return mixed * constant(numpy.array([1, 0], dtype=numpy.uint64))


def _state(words: Any) -> Tensor:
    words = as_tensor(words)
    if words.shape != (2,) or words.dtype is not uint64:
        raise TraceError(f"a random state is a tensor of two uint64, got {words!r}")
    return words


def bits(words: Any, shape: Tuple[int, ...], dtype: Any = uint32) -> Tuple[Tensor, Tensor]:
    """The next state, and random bits as unsigned integers."""
    dtype = dtype_of(dtype)
    if dtype.kind != "uint":
        raise TraceError(f"random bits are unsigned integers, not {dtype}")
    after, drawn = emit("rng_bit_generator", [_state(words)], [((2,), uint64), (tuple(shape), dtype)], _ALGORITHM)
    return after, drawn


def uniform(words: Any, shape: Tuple[int, ...], low: Any = 0.0, high: Any = 1.0) -> Tuple[Tensor, Tensor]:
    """The next state, and float32 in [low, high)."""
    after, drawn = bits(words, shape)
    unit = multiply(astype(shift_right(drawn, 8), float32), 2.0**-24)
    return after, add(multiply(unit, high - low), low)


def normal(words: Any, shape: Tuple[int, ...]) -> Tuple[Tensor, Tensor]:
    """The next state, and float32 of the normal distribution (Box and Muller)."""
    after, drawn = bits(words, (2,) + tuple(shape))
    unit = multiply(add(astype(shift_right(drawn, 8), float32), 0.5), 2.0**-24)
    return after, multiply(sqrt(multiply(log(unit[0]), -2.0)), cos(multiply(unit[1], 2 * math.pi)))


def bernoulli(words: Any, shape: Tuple[int, ...], p: float = 0.5) -> Tuple[Tensor, Tensor]:
    """The next state, and booleans that are true with probability ``p``."""
    after, drawn = uniform(words, shape)
    return after, drawn < p
