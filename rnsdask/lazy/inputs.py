"""Arrays of other libraries, converted to NumPy, CuPy or Dask: in memory, or read by slices."""

from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import backend_name

# An attribute of every library's arrays in memory, which arrays on disk lack.
_IN_MEMORY = ("__array_interface__", "__array_namespace__", "__dlpack__")


class ReadBySlices:
    """An array on disk for Dask, with a NumPy type; its parts are not shared with anyone else."""

    def __init__(self, array: Any, dtype: np.dtype[Any], chunks: tuple[int, ...] | None = None) -> None:
        self._array, self.dtype, self.chunks = array, dtype, chunks
        self.shape, self.ndim = tuple(map(int, array.shape)), int(array.ndim)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        return np.array(self._array[key])


def convert_any(values: Any) -> Any:
    """Convert other libraries' arrays in memory to NumPy; arrays on disk get a NumPy type.

    All else is returned unchanged: arrays of NumPy, CuPy and Dask, and values that are not arrays.
    """
    if isinstance(values, np.ndarray | da.Array) or backend_name(values) == "cuda":
        return values
    if not all(hasattr(values, name) for name in ("dtype", "shape", "ndim")):
        return values
    library = type(values).__module__.partition(".")[0]
    if library == "xarray":
        return convert_any(values.data)
    if library != "pandas" and any(hasattr(values, name) for name in _IN_MEMORY):
        return np.asarray(values)
    if library == "tensorstore":
        layout = getattr(values, "chunk_layout", None)
        chunks = None if layout is None else layout.read_chunk.shape
        if not chunks or not all(chunks):
            chunks = None
        # Its first index may be of any kind.
        array = values.translate_to[(0,) * values.ndim]
        return ReadBySlices(array, np.dtype(values.dtype.numpy_dtype), chunks)
    return values


def is_on_disk(values: Any) -> bool:
    """Whether an array of another library is read by slices, chunk by chunk."""
    if isinstance(values, np.ndarray) or hasattr(values, "__dask_graph__"):
        return False
    names = ("dtype", "shape", "ndim", "__getitem__")
    is_array = all(hasattr(values, name) for name in names)
    return isinstance(values, ReadBySlices) or (is_array and getattr(values, "chunks", None) is not None)


def make_readable(values: Any, axis: int | None = None) -> Any:
    """Return an array of NumPy, CuPy or Dask; an array that is read by slices becomes lazy.

    In the latter, `axis` is kept in one chunk, such as the axis of a number's residues.
    """
    if isinstance(values, np.ndarray):
        return np.asarray(values)
    if isinstance(values, da.Array) or backend_name(values) == "cuda":
        return values
    if not hasattr(values, "__getitem__"):
        raise TypeError(f"residues must be an array that is read by slices, got {type(values).__name__}")
    chunks = list(getattr(values, "chunks", None) or ("auto",) * values.ndim)
    if axis is not None:
        chunks[axis] = -1
    # A new name: Dask would name it by the file, even after its contents have changed.
    return da.from_array(values, chunks=tuple(chunks), name=False)
