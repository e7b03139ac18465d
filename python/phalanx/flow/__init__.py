"""Programs over many devices from one process: the Python face of flow (docs/flow-python.md).

    import numpy
    import phalanx.flow as pw

    pw.connect("unix:/run/flow/head.sock")           # what `phalanx flow up` prints

    def get_devices(n):
        return pw.make_virtual_device_set().add_slice(tpu_devices=n).tpus

    a = pw.pmap(lambda x: x * 2.0, devices=get_devices(2))
    b = pw.pmap(lambda x: x + 1.0, devices=get_devices(2))
    c = pw.pmap(lambda x: x / 2.0, devices=get_devices(2))

    @pw.program
    def f(v):
        x = a(v)
        y = b(x)
        z = a(c(x))
        return (y, z)

    print(f(numpy.array([1.0, 2.0])))                # (array([3., 5.]), array([2., 4.]))

A function of ``jit``, ``pmap`` or ``shard_map`` is traced with tensors that know their shape and type alone, becomes
StableHLO text, and runs on virtual devices. A call returns at once; the value, or why there is none, comes when it is
read. ``grad`` differentiates what is traced. ``phalanx.flow.jax`` does the same for functions of JAX.

The library is the file that the variable PHX_FLOW_LIB names, otherwise the one that was installed with this package,
otherwise what the dynamic loader finds as ``libphalanx_flow.so.0``. NumPy is needed.
"""

from . import _methods, random
from ._compile import Lowered, Type
from ._devices import (
    Flow,
    Island,
    Mesh,
    P,
    Sharding,
    Slice,
    VirtualDevice,
    VirtualDeviceSet,
    connect,
    default_flow,
    islands,
    make_virtual_device_set,
)
from ._dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    from_bfloat16,
    int8,
    int16,
    int32,
    int64,
    to_bfloat16,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._errors import (
    ArgumentFailed,
    Cancelled,
    ComputationError,
    DeviceLost,
    DeviceMemoryExhausted,
    FunctionFailed,
    TraceError,
)
from ._grad import grad, value_and_grad
from ._program import Array, Program, get, jit, pmap, program, put, reshard, shard_map
from ._trace import Tensor
from ._tree import tree_flatten, tree_map, tree_unflatten
from .collective import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshift,
    psum,
    psum_scatter,
)
from .control import fori_loop, while_loop
from .elementwise import (
    absolute,
    add,
    arctan2,
    astype,
    broadcast_to,
    cbrt,
    ceil,
    clip,
    cos,
    divide,
    equal,
    exp,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    isfinite,
    less,
    less_equal,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    ones,
    power,
    rint,
    rsqrt,
    shift_left,
    shift_right,
    sigmoid,
    sign,
    sin,
    sqrt,
    square,
    stop_gradient,
    subtract,
    tan,
    tanh,
    where,
    zeros,
    zeros_like,
)
from .movement import (
    arange,
    concatenate,
    dynamic_slice,
    dynamic_update_slice,
    expand_dims,
    flip,
    iota,
    one_hot,
    pad,
    reshape,
    scatter_add,
    squeeze,
    stack,
    swapaxes,
    take,
    transpose,
    tril,
)
from .reduction import (
    all,
    any,
    argmax,
    argmin,
    cumsum,
    dot,
    dot_general,
    einsum,
    log_softmax,
    logsumexp,
    matmul,
    max,
    mean,
    min,
    prod,
    softmax,
    std,
    sum,
    var,
)

abs = absolute
__all__ = [name for name in globals() if not name.startswith("_")]
