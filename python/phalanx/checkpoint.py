"""Named regions of a program's state, for Job.checkpoint_register, _take and _load.

A region is a numpy array, a torch tensor, or any other writable buffer (bytearray, memoryview, array.array),
contiguous, rows first. Registering copies nothing: the library reads and writes the object's own memory, so the
objects are kept alive here, and an object whose memory has moved is refused. A tensor on a device is copied
through (page-locked) memory of the host.

Neither numpy nor torch is imported unless the program brings an object of theirs.
"""

import ctypes
from typing import Any, List, Mapping, Optional, Tuple

from . import _library

IN_MEMORY, IN_STORAGE = 1, 2  # PHX_IN_MEMORY, PHX_IN_STORAGE
DIMS_MAX = 8

_DTYPES = ("bool", "uint8", "int8", "uint16", "int16", "float16", "bfloat16", "uint32", "int32", "float32",
           "uint64", "int64", "float64")  # in the order of enum phx_dtype  # fmt: skip
_CODES = {name: code for code, name in enumerate(_DTYPES)}
_FORMATS = {"?": "bool", "e": "float16", "f": "float32", "d": "float64"}  # of struct and memoryview


class Region:
    """A region: where its memory is, and how its data gets there. ``shard``: (axis, index, count) or None."""

    def __init__(self, name: str, value: Any, shard: Optional[Tuple[int, int, int]]):
        self.name, self.value, self.staging = name, value, None
        self._keep = value
        try:
            if hasattr(value, "data_ptr"):
                self._of_tensor(value)
            elif hasattr(value, "__array_interface__"):
                self._of_array(value)
            else:
                self._of_buffer(value)
        except ValueError as error:
            raise ValueError(f"region {name}: {error}") from None
        if len(self.shape) > DIMS_MAX:
            raise ValueError(f"region {name}: {len(self.shape)} dimensions, at most {DIMS_MAX} can be kept")
        self.axis, self.index, self.count = self._place(shard)

    def _of_tensor(self, tensor) -> None:
        kind = str(tensor.dtype).rpartition(".")[2]
        if kind not in _CODES:
            raise ValueError(f"a tensor of {tensor.dtype} can't be kept")
        if str(tensor.layout) != "torch.strided" or not tensor.is_contiguous():
            raise ValueError("the tensor is not contiguous (tensor.contiguous() makes one that is)")
        if tensor.device.type == "meta":
            raise ValueError("a tensor of the device meta has no memory")
        if tensor.device.type != "cpu":
            import torch

            self.staging = torch.empty(
                tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=torch.cuda.is_available()
            )
            self._keep = self.staging
        self.dtype, self.shape = _CODES[kind], tuple(tensor.shape)
        self.address = self._keep.data_ptr()

    def _of_array(self, array) -> None:
        facts = array.__array_interface__
        kind = getattr(getattr(array, "dtype", None), "name", facts["typestr"])
        if kind not in _CODES or facts["typestr"][0] == ">":
            raise ValueError(f"an array of {getattr(array, 'dtype', facts['typestr'])} can't be kept")
        if not array.flags.c_contiguous:
            raise ValueError("the array is not contiguous, rows first (numpy.ascontiguousarray makes one)")
        if facts["data"][1]:
            raise ValueError("the array can't be written to")
        self.dtype, self.shape, self.address = _CODES[kind], tuple(facts["shape"]), facts["data"][0]

    def _of_buffer(self, value) -> None:
        try:
            view = memoryview(value)
        except TypeError:
            raise ValueError(f"{type(value).__name__} is no tensor, no array and no buffer") from None
        letter = view.format.lstrip("@=<")
        kind = _FORMATS.get(letter)
        if letter in tuple("bBhHiIlLqQ"):
            kind = f"{'int' if letter.islower() else 'uint'}{8 * view.itemsize}"
        if kind is None or not view.c_contiguous or view.readonly:
            raise ValueError(f"a buffer of format {view.format!r} must be contiguous, writable and of numbers")
        # Exports the buffer for as long as the region lives, so that a bytearray cannot be resized.
        self._keep = (ctypes.c_char * view.nbytes).from_buffer(view) if view.nbytes else view
        self.address = ctypes.addressof(self._keep) if view.nbytes else 0
        self.dtype, self.shape = _CODES[kind], tuple(view.shape)

    def _place(self, shard) -> Tuple[int, int, int]:
        if shard is None:
            return 0, 0, 0
        try:
            axis, index, count = (int(number) for number in shard)
        except (TypeError, ValueError):
            raise ValueError(f"region {self.name}: a shard is (axis, index, count), not {shard!r}") from None
        dims = len(self.shape)
        if not -dims <= axis < dims or not 0 <= index < count:
            raise ValueError(f"region {self.name}: part {index} of {count} along axis {axis} of {dims}")
        return axis % dims, index, count

    def _moved(self) -> bool:
        if self.staging is not None:
            return self.value.shape != self.staging.shape or self.value.dtype != self.staging.dtype
        if hasattr(self.value, "data_ptr"):
            return self.value.data_ptr() != self.address or tuple(self.value.shape) != self.shape
        if hasattr(self.value, "__array_interface__"):
            return self.value.__array_interface__["data"][0] != self.address
        return False

    def check(self) -> None:
        """Raises if the object's memory has moved since it was registered."""
        if self._moved():
            raise ValueError(f"region {self.name}: its memory has moved since it was registered; register again")

    def fill_struct(self, struct: "_library.RegionStruct") -> None:
        """Describes it as struct phx_region."""
        struct.name, struct.data, struct.dtype = self.name.encode(), self.address or None, self.dtype
        struct.dims = len(self.shape)
        struct.shape[: len(self.shape)] = self.shape
        struct.shard_axis, struct.shard_index, struct.shard_count = self.axis, self.index, self.count


class Regions:
    """All that a job has registered."""

    def __init__(self, regions: Mapping[str, Any], shards: Optional[Mapping[str, Tuple[int, int, int]]]):
        shards = dict(shards or {})
        unknown = sorted(set(shards) - set(regions))
        if unknown:
            raise ValueError(f"shards names {unknown[0]}, which is no region")
        self.list: List[Region] = [Region(name, value, shards.get(name)) for name, value in regions.items()]
        self._staged = [region for region in self.list if region.staging is not None]

    def structs(self):
        """An array of struct phx_region."""
        array = (_library.RegionStruct * len(self.list))()
        for struct, region in zip(array, self.list):
            region.fill_struct(struct)
        return array

    def _synchronize(self) -> None:
        import torch

        for device in {region.value.device for region in self._staged if region.value.device.type == "cuda"}:
            torch.cuda.synchronize(device)

    def check(self) -> None:
        """Raises when one of them is not where it was when it was registered."""
        for region in self.list:
            region.check()

    def fetch(self) -> None:
        """Copies data from devices to the host, before it is kept."""
        self.check()
        for region in self._staged:
            region.staging.copy_(region.value.detach(), non_blocking=True)
        if self._staged:
            self._synchronize()

    def deliver(self) -> None:
        """Copies loaded data to the devices."""
        for region in self._staged:
            region.value.detach().copy_(region.staging, non_blocking=True)
        if self._staged:
            self._synchronize()
