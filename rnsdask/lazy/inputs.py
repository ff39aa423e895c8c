"""Arrays of other libraries as those of NumPy, CuPy or Dask: in memory, or read by slices."""

from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import backend_name

# An attribute of arrays in memory, of any library, that arrays on disk lack.
_IN_MEMORY = ("__array_interface__", "__array_namespace__", "__dlpack__")


class ReadBySlices:
    """An array on disk for Dask, with a type of NumPy's, which gives parts that nobody else writes to."""

    def __init__(self, array: Any, dtype: np.dtype[Any], chunks: tuple[int, ...] | None = None) -> None:
        self._array, self.dtype, self.chunks = array, dtype, chunks
        self.shape, self.ndim = tuple(map(int, array.shape)), int(array.ndim)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        return np.array(self._array[key])


def of_any_library(values: Any) -> Any:
    """An array of another library that is in memory as NumPy's; one on disk with a type of NumPy's.

    All else stays as it is: arrays of NumPy, CuPy and Dask, and what is no array.
    """
    if isinstance(values, np.ndarray | da.Array) or backend_name(values) == "cuda":
        return values
    if not all(hasattr(values, name) for name in ("dtype", "shape", "ndim")):
        return values
    library = type(values).__module__.partition(".")[0]
    if library == "xarray":
        return of_any_library(values.data)
    if library != "pandas" and any(hasattr(values, name) for name in _IN_MEMORY):
        return np.asarray(values)
    if library == "tensorstore":
        layout = getattr(values, "chunk_layout", None)
        chunks = None if layout is None else layout.read_chunk.shape
        if not chunks or not all(chunks):
            chunks = None
        # Its first index may be any.
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


def readable(values: Any, axis: int | None = None) -> Any:
    """An array of NumPy, CuPy or Dask: a lazy one of any other kind, which is read by slices.

    Of the latter, `axis` is not cut into chunks, such as the one that runs over a number's residues.
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
    # A new name, for Dask's would be the file's, even after its contents have changed.
    return da.from_array(values, chunks=tuple(chunks), name=False)
