"""Element types: their names in NumPy, in StableHLO and in ``phalanx/flow.h``."""

from typing import Any, Optional

try:
    import numpy
except ImportError as error:
    raise ImportError("phalanx.flow needs NumPy (Debian: python3-numpy)") from error

try:
    from ml_dtypes import bfloat16 as _ml_bfloat16
except ImportError:
    _ml_bfloat16 = None


class DType:
    """An element type. ``numpy`` is the type of its arrays; bfloat16 without ml_dtypes travels as uint16."""

    def __init__(self, name: str, text: str, number: int, array: Any, kind: str):
        self.name, self.text, self.number, self.kind = name, text, number, kind
        self.numpy = numpy.dtype(array)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    def __repr__(self) -> str:
        return self.name


_ALL = [
    DType("bool", "i1", 0, "bool", "bool"),
    DType("int8", "i8", 1, "int8", "int"),
    DType("int16", "i16", 2, "int16", "int"),
    DType("int32", "i32", 3, "int32", "int"),
    DType("int64", "i64", 4, "int64", "int"),
    DType("uint8", "ui8", 5, "uint8", "uint"),
    DType("uint16", "ui16", 6, "uint16", "uint"),
    DType("uint32", "ui32", 7, "uint32", "uint"),
    DType("uint64", "ui64", 8, "uint64", "uint"),
    DType("bfloat16", "bf16", 9, _ml_bfloat16 or "uint16", "float"),
    DType("float16", "f16", 10, "float16", "float"),
    DType("float32", "f32", 11, "float32", "float"),
    DType("float64", "f64", 12, "float64", "float"),
    DType("complex64", "complex<f32>", 13, "complex64", "complex"),
    DType("complex128", "complex<f64>", 14, "complex128", "complex"),
]
_BY_NAME = {dtype.name: dtype for dtype in _ALL}
_BY_TEXT = {dtype.text: dtype for dtype in _ALL}
(bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, float16, float32, float64, complex64,
 complex128) = _ALL


def dtype_of(value: Any) -> DType:
    """The type that a name, a NumPy type, a Python type or an array names. TypeError for others."""
    if isinstance(value, DType):
        return value
    if value is float:
        return float32
    if value is int:
        return int32
    if isinstance(getattr(value, "dtype", None), DType):
        return value.dtype
    name = value if isinstance(value, str) else numpy.dtype(getattr(value, "dtype", value)).name
    if name not in _BY_NAME:
        raise TypeError(f"elements of type {name} are not supported; supported: {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def dtype_of_text(text: str) -> DType:
    """The type of that name in StableHLO; KeyError when this client has none."""
    return _BY_TEXT[text]


def promote(a: DType, b: DType) -> DType:
    """The type of ``a + b``: a float wins over integers, and of two floats the wider one."""
    if a is b:
        return a
    if a.is_float and b.is_float:
        narrow = (bfloat16, float16)
        return float32 if a in narrow and b in narrow else max(a, b, key=lambda dtype: dtype.number)
    if a.is_float != b.is_float and "complex" not in (a.kind, b.kind):
        return a if a.is_float else b
    return dtype_of(numpy.promote_types(numpy.float32 if a is bfloat16 else a.numpy,
                                        numpy.float32 if b is bfloat16 else b.numpy))


def to_bfloat16(array: Any) -> Any:
    """The nearest bfloat16 of each element (ties to even), as elements of ``bfloat16.numpy``."""
    if _ml_bfloat16 is not None:
        return numpy.asarray(array).astype(_ml_bfloat16)
    numbers = numpy.atleast_1d(numpy.asarray(array, dtype=numpy.float32))
    bits = numbers.view(numpy.uint32).astype(numpy.uint64)
    half = numpy.uint64(0x7FFF) + ((bits >> numpy.uint64(16)) & numpy.uint64(1))
    rounded = numpy.where(numpy.isnan(numbers), bits | numpy.uint64(0x400000), bits + half) >> numpy.uint64(16)
    return rounded.astype(numpy.uint16).reshape(numpy.shape(array))


def from_bfloat16(array: Any) -> Any:
    """float32 of bfloat16 elements, or of their uint16 bits."""
    bits = numpy.atleast_1d(numpy.asarray(array)).view(numpy.uint16).astype(numpy.uint32) << 16
    return bits.view(numpy.float32).reshape(numpy.shape(array))


def array_of(value: Any, dtype: Optional[DType] = None) -> Any:
    """A C-contiguous NumPy array with the elements of ``value`` as ``dtype`` has them in memory.

    Python numbers are float32 or int32; arrays keep their own type. For bfloat16, an array of uint16 holds bits
    and any other one holds numbers.
    """
    if isinstance(value, (numpy.generic, numpy.ndarray)):
        array = numpy.asarray(value)
    elif isinstance(value, bool):
        array = numpy.asarray(value, dtype=bool)
    elif isinstance(value, int):
        exact = dtype.numpy if dtype and dtype.is_integer else numpy.int64 if dtype else numpy.int32
        array = numpy.asarray(value, dtype=exact)
    elif isinstance(value, float):
        array = numpy.asarray(value, dtype=(numpy.float64 if dtype else numpy.float32))
    else:
        array = numpy.asarray(value)
    if dtype is bfloat16 and (isinstance(value, (int, float)) or array.dtype != bfloat16.numpy):
        array = to_bfloat16(array)
    elif dtype is not None and array.dtype != dtype.numpy:
        array = array.astype(dtype.numpy)
    return numpy.ascontiguousarray(array).reshape(array.shape)
