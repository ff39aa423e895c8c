"""Results of tasks that hold several arrays, as Dask sends them from worker to worker at full speed.

Dask sends an array, or a tuple of arrays, by the fastest way there is, which is NVLink between GPUs with UCX.
Other objects it pickles, and CuPy's arrays in them pass through the host's memory; nor does it know their
size, by which it chooses workers. A parcel is a tuple: an object that was pickled without its arrays, and
these.
"""

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rnsdask.backend import is_array
from rnsdask.lazy.call import Call


@dataclass(frozen=True)
class _Contents:
    """A pickled object whose arrays lie beside it."""

    pickled: bytes


class _Packer(pickle.Pickler):
    """Pickles an object, and lists its arrays instead."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.arrays: list[Any] = []

    def persistent_id(self, value: Any) -> int | None:
        """Return the number of an array, None for what is pickled."""
        if not is_array(value):
            return None
        self.arrays.append(value)
        return len(self.arrays) - 1


class _Unpacker(pickle.Unpickler):
    """Restores an object with its arrays."""

    def __init__(self, file: io.BytesIO, arrays: tuple[Any, ...]) -> None:
        super().__init__(file)
        self.arrays = arrays

    def persistent_load(self, number: int) -> Any:
        """Return the array with a number."""
        return self.arrays[number]


def packed(value: Any) -> Any:
    """Pack an object, whose arrays are not copied; arrays themselves stay as they are."""
    if is_array(value):
        return value
    packer = _Packer(file := io.BytesIO())
    packer.dump(value)
    return (_Contents(file.getvalue()), *packer.arrays)


def unpacked(value: Any) -> Any:
    """Return what was packed; anything else as it is, and lists item by item."""
    if type(value) is list:
        return [unpacked(item) for item in value]
    if type(value) is not tuple or not value or type(value[0]) is not _Contents:
        return value
    return _Unpacker(io.BytesIO(value[0].pickled), value[1:]).load()


@dataclass(frozen=True, eq=False)
class Parcelled:
    """A task's call that takes parcels for objects, and returns one unless it returns an array."""

    call: Call

    def __call__(self, *given: Any) -> Any:
        """Call with what was packed."""
        return packed(self.call(*map(unpacked, given)))

    def __dask_tokenize__(self) -> Any:
        return "parcelled", self.call.__dask_tokenize__()


def parcelled(function: Callable[..., Any], **options: Any) -> Parcelled:
    """Call a function with options, in tasks whose arguments and results may be parcels."""
    return Parcelled(Call(function, options))
