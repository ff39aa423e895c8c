"""Arrays of words in another order, lazy on Dask (:mod:`rnsdask.fields.ntt`)."""

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array

from rnsdask.core.errors import brief
from rnsdask.fields.ntt import interleaved, separated


def to_interleaved(numbers: Any) -> Any:
    """Words of numbers, each number's side by side, as arrays of numbers here hold them: word by word.

    Parameters
    ----------
    numbers : array of uint32 or uint64, shape (*shape, k)
        NumPy, CuPy or Dask: the k digits, residues or limbs of each number. For N numbers these are the
        rows of a matrix, and the result is the stride permutation that transposes it.

    Returns
    -------
    array of the same type, shape (k, *shape)
        In C order, in new memory; lazy if `numbers` is, with the chunks of its numbers.

    Raises
    ------
    TypeError
        If it is no array of these types.
    ValueError
        If it has not an axis of numbers and one of words.
    """
    return _permuted("to_interleaved", interleaved, numbers, numbers_first=True)


def from_interleaved(words: Any) -> Any:
    """Words (k, *shape), such as those of an array of numbers, as (*shape, k).

    The inverse of :func:`to_interleaved`; arguments, results and errors are like its.
    """
    return _permuted("from_interleaved", separated, words, numbers_first=False)


def _permuted(name: str, function: Callable[[Any], Any], array: Any, *, numbers_first: bool) -> Any:
    dtype = getattr(array, "dtype", None)
    if dtype not in (np.uint32, np.uint64) or not hasattr(array, "ndim"):
        found = type(array).__name__ if dtype is None else f"dtype {dtype}"
        raise TypeError(f"{name} takes an array of uint32 or uint64, got {found}")
    if array.ndim < 2:
        raise ValueError(f"{name} takes an axis of words and one of numbers, got shape {brief(array.shape)}")
    if not isinstance(array, da.Array):
        return function(array)
    axes = tuple(range(array.ndim))
    given, made = ((*axes[1:], 0), axes) if numbers_first else (axes, (*axes[1:], 0))
    array = array.rechunk({given.index(0): -1})
    meta = meta_from_array(array).reshape((0,) * array.ndim)
    permuted: da.Array = da.blockwise(
        function, made, array, given, dtype=array.dtype, meta=meta, token=f"field-{name}"
    )
    return permuted
