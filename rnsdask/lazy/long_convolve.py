"""Convolution along an axis in several chunks, by transforms in chunks (:mod:`rnsdask.lazy.ntt`)."""

from typing import Any

import numpy as np

from rnsdask.core import rows
from rnsdask.fields.fermat_convolution import has_cyclic_transform
from rnsdask.fields.fermat_field import FermatField
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.elementwise import apply
from rnsdask.lazy.ntt import chunk_length, intt, ntt
from rnsdask.lazy.operands import Numbers, make_like
from rnsdask.lazy.shape import fill_chunks, join


def convolve_in_chunks(x: Numbers, y: Numbers, axis: int, mode: str, window: tuple[int, int]) -> Any:
    """Convolve lazy elements of a Fermat field in chunks of a power of two along the axis.

    Both have the same number of axes, in any chunks; all but `axis` broadcast. The field must have roots of
    unity for transforms of :func:`transform_length`. `mode` is as in :func:`rnsdask.convolve`; `window` is
    the range of wanted elements.
    """
    negacyclic, count = mode == "negacyclic", int(x.words.shape[axis + 1])
    length = transform_length(x.system, (count, int(y.words.shape[axis + 1])), mode)
    is_whole = mode.endswith("cyclic") and length == count
    chunk = chunk_length(length, max(max(array.words.chunks[axis + 1]) for array in (x, y)))
    twisted = negacyclic and is_whole
    f, g = (ntt(_pad(array, axis, length, chunk), axis, twisted) for array in (x, y))
    found = intt(apply(rows.multiply, f, g), axis, twisted)
    if not mode.endswith("cyclic"):
        return _part(found, axis, *window)
    if is_whole:
        return found
    # The full product has less than twice as many elements; those beyond the length wrap around.
    low, high = _part(found, axis, 0, count), _part(found, axis, count, 2 * count - 1)
    return apply(rows.subtract if negacyclic else rows.add, low, _pad(high, axis, count, chunk))


def transform_length(field: FermatField, lengths: tuple[int, int], mode: str) -> int:
    """Length of the transforms in :func:`convolve_in_chunks`."""
    if mode.endswith("cyclic") and has_cyclic_transform(field, lengths[0], mode == "negacyclic"):
        return lengths[0]
    return 1 << (sum(lengths) - 2).bit_length()


def _part(array: Numbers, axis: int, first: int, stop: int) -> Any:
    return make_like(
        (array,), array.words[(*(slice(None),) * (axis + 1), slice(first, stop))], array.system, "raise"
    )


def _pad(array: Numbers, axis: int, length: int, chunk: int) -> Any:
    """Pad elements with zeros to a length along an axis, in chunks of one length."""
    words = array.words
    shape = [*words.shape]
    shape[axis + 1] = length - shape[axis + 1]
    chunks = [*words.chunks]
    chunks[axis + 1] = (chunk,) * (shape[axis + 1] // chunk) + (shape[axis + 1] % chunk,)
    column = np.zeros((words.shape[0], *(1,) * (words.ndim - 1)), words.dtype)
    zeros = fill_chunks(words, column, tuple(shape), chunks)
    padded = rechunk(join([words, zeros], axis), {axis + 1: chunk})
    return make_like((array,), padded, array.system, "raise")
