"""Reductions of segments and by small integers, with NumPy's names: ``ufunc.reduceat`` and ``bincount``."""

from typing import Any, SupportsIndex

import dask.array as da
import numpy as np

from rnsdask.backend import to_backend
from rnsdask.cluster.workers import checked_workers
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import with_article
from rnsdask.core.moduli import as_integer
from rnsdask.lazy import labels as labelling
from rnsdask.lazy import shape
from rnsdask.lazy.groups import Grouping, like, reduce_grouped
from rnsdask.lazy.operands import Numbers, find_lengths, is_number_array


def reduce_at(x: Numbers, indices: Any, axis: SupportsIndex, operation: str, name: str) -> Any:
    """Reduce the numbers from each index to the next one along an axis, as ``ufunc.reduceat``.

    ValueError, which calls the function `name`, unless indices ascend, where NumPy's segments would overlap.
    """
    find_lengths(x)
    ndim = x.words.ndim - 1
    along = axis_index(axis, ndim)
    count, starts = int(x.words.shape[1 + along]), np.asarray(to_backend(indices, "cpu"))
    starts = starts if starts.size else starts.astype(np.int64)  # of an empty list
    if starts.dtype.kind not in "iu" or starts.ndim != 1:
        raise TypeError(f"{name} takes indices of one axis, got {starts.dtype} of shape {starts.shape}")
    outside = (starts < 0) | (starts >= count)
    if outside.any():
        raise IndexError(f"index {starts[outside.argmax()]} of {name} is out of bounds for length {count}")
    if (np.diff(starts.astype(np.int64)) <= 0).any():
        i = int((np.diff(starts.astype(np.int64)) <= 0).argmax())
        raise ValueError(
            f"{name} of an array of numbers takes indices that ascend, got {starts[i + 1]} after "
            f"{starts[i]}; rd.group_reduce takes a label for each number"
        )
    codes = np.searchsorted(starts, np.arange(count), side="right").astype(np.int64) - 1
    sizes = np.bincount(codes[codes >= 0], minlength=len(starts))
    groups = Grouping(starts, codes, int(sizes.max(initial=0)))
    order = [*(k for k in range(ndim) if k != along), along]
    moved = like(x, shape.transpose(x.words, (tuple(order),)), x.system)
    found = reduce_grouped(moved, groups, operation)
    return like(found, shape.transpose(found.words, (tuple(np.argsort(order).tolist()),)), found.system)


def bincount(x: Any, weights: Any = None, minlength: SupportsIndex = 0) -> Any:
    """Sum the numbers `weights` of each value of `x`, as ``numpy.bincount``: max(x) + 1 or `minlength`."""
    if not is_number_array(weights):
        kind = with_article(type(x))
        raise TypeError(f"numpy.bincount counts machine integers, got {kind}; rd.histogram counts numbers")
    least = as_integer(minlength, "minlength")
    values = labelling.as_labels(x)
    find_lengths(weights)
    if getattr(values, "dtype", np.dtype(object)).kind not in "iu":
        raise TypeError(f"numpy.bincount takes machine integers, got {getattr(values, 'dtype', type(x))}")
    if values.shape != weights.words.shape[1:] or values.ndim != 1:
        raise ValueError(
            "numpy.bincount takes one weight for each of the integers along one axis, got shapes "
            f"{values.shape} and {weights.words.shape[1:]}"
        )
    if isinstance(values, da.Array):
        with checked_workers():
            values = np.asarray(to_backend(values.compute(), "cpu"))
    if least < 0 or int(values.min(initial=0)) < 0:
        raise ValueError("numpy.bincount takes integers and a minlength from 0 on")
    counts = np.bincount(values, minlength=least)
    codes = values.astype(np.int64)
    groups = Grouping(np.arange(len(counts)), codes, int(counts.max(initial=0)))
    return reduce_grouped(weights, groups, "sum")
