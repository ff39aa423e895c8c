"""Number-theoretic transforms of arrays of field elements, lazy on Dask (:mod:`rnsdask.fields.ntt`)."""

from typing import Any, SupportsIndex

import dask.array as da
from numpy.lib.array_utils import normalize_axis_index

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.fields.ntt import transform
from rnsdask.lazy.fields import of_fields
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import find_lengths, made_like


def ntt(f: Any, axis: SupportsIndex = -1) -> Any:
    """Number-theoretic transform along an axis: ``X_j``, the sum of ``x_i w**(i j)``, in each field.

    Products of transforms, element by element, are the transforms of cyclic convolutions.

    Parameters
    ----------
    f : FieldArray
        The array.
    axis : int
        The axis, of a length N that is a power of two; w is the root of unity of order N that
        ``f.system.roots(N)`` gives. Both ends are in natural order. Of a Dask array it must be one chunk.

    Returns
    -------
    FieldArray
        Of the same shape; lazy with the same chunks if `f` is.

    Raises
    ------
    TypeError
        If `f` is no FieldArray.
    ValueError
        If the length is no power of two, does not divide p - 1 for each prime p (the message names the
        first), or is in several chunks; AxisError, which is one, if there is no such axis.
    NotImplementedError
        If the words are on a GPU.
    """
    return _transformed("ntt", f, axis, inverse=False)


def intt(f: Any, axis: SupportsIndex = -1) -> Any:
    """Inverse of :func:`ntt`: ``x_i``, the sum of ``X_j w**(-i j)`` divided by N, in each field."""
    return _transformed("intt", f, axis, inverse=True)


def _transformed(name: str, f: Any, axis: SupportsIndex, inverse: bool) -> Any:
    if not of_fields(f):
        kind = type(f).__name__
        raise TypeError(f"{name} takes a FieldArray, got {kind}; rd.from_ints(x, fields) makes one")
    find_lengths(f)
    words = f.words
    k = int(normalize_axis_index(as_integer(axis, "axis"), words.ndim - 1))
    length = words.shape[k + 1]
    if length < 1 or length.bit_count() > 1:
        raise ValueError(f"{name} takes an axis of a power of two elements, got {length} on axis {k}")
    f.system.roots(length)  # an error that names the prime where there is none
    if isinstance(words, da.Array) and (chunks := words.numblocks[k + 1]) > 1:
        raise ValueError(
            f"{name} takes an axis that is one chunk, got {chunks} on axis {k}; f.rechunk({{{k}: -1}}) joins "
            "them"
        )
    options: dict[str, Any] = {"moduli": f.system.moduli, "axis": k, "inverse": inverse}
    words = map_chunks(_transform_block, words, rows=f.system.rows, token=f"field-{name}", **options)
    return made_like((f,), words, f.system, "raise")


def _transform_block(block: Array, *, moduli: ModuliSet, axis: int, inverse: bool) -> Array:
    return transform(block, moduli, axis, inverse)
