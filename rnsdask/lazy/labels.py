"""Labels of groups: what arrays, columns and lists of them are, their distinct ones, and codes for these."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import to_backend
from rnsdask.core.errors import abbreviate, brief
from rnsdask.core.ways import Way, with_ways
from rnsdask.lazy.inputs import convert_any
from rnsdask.lazy.operands import is_number_array

MISSING = -1
"""Code of a label that is missing, or in no group."""

_MOST_OF_TABLE = 4
"""Entries of a table, relative to the labels, up to which integers are not sorted."""

Codes = NDArray[np.int64]


def as_labels(by: Any) -> Any:
    """Return labels as a column of pandas or Arrow, a NumPy array, or a Dask array.

    Lists and tuples of labels become an object array of one axis, so that tuples stay labels. TypeError for
    a table of several columns, and for anything that is no array.
    """
    if isinstance(by, list | tuple):
        return objects_of(by)
    if is_number_array(by):
        raise TypeError(f"labels must be plain values, got {brief(by)}; its astype(object) has them")
    if hasattr(by, "to_dask_array"):  # a column of dask.dataframe
        return by.to_dask_array(lengths=True)
    library = type(by).__module__.partition(".")[0]
    if library == "polars" and hasattr(by, "to_arrow"):
        by, library = by.to_arrow(), "pyarrow"
    if library == "xarray" and hasattr(by, "data"):
        return as_labels(by.data)
    if (getattr(by, "ndim", 1) == 2 and hasattr(by, "columns")) or hasattr(by, "column_names"):
        raise TypeError(
            f"labels must be a column, got a {type(by).__name__}; table[name] is one, and "
            "pandas.MultiIndex.from_frame(table) makes labels of all columns"
        )
    if (library == "pandas" and hasattr(by, "factorize")) or hasattr(by, "dictionary_encode"):
        return by
    by = convert_any(by)
    if not hasattr(by, "dtype") or not getattr(by, "ndim", 0):
        raise TypeError(f"labels must be an array, a column or a list, got {brief(by)}")
    return by if hasattr(by, "__dask_graph__") else to_backend(by, "cpu")


def objects_of(values: Sequence[Any]) -> NDArray[Any]:
    """Make an array of one axis of any Python objects, of int64 if all are ints that fit."""
    found = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):  # an assignment of all would take tuples apart
        found[i] = value
    if found.size and set(map(type, values)) == {int}:
        low, high = min(values), max(values)
        if low >= -(2**63) and high < 2**63:
            return found.astype(np.int64)
    return found


def factorize(labels: Any) -> tuple[NDArray[Any], Codes]:
    """Return the distinct labels (G,) of labels in memory, and the code (*shape) of each one.

    The distinct ones are sorted if they have an order, else in order of their first occurrence. The code of a
    missing label (None, NaN, NaT, a masked one, or a tuple with one of them) is :data:`MISSING`.
    """
    if isinstance(labels, np.ma.MaskedArray):
        present = ~np.ma.getmaskarray(labels)
        codes = np.full(labels.shape, MISSING, dtype=np.int64)
        groups, codes[present] = factorize(np.ma.getdata(labels)[present])
        return groups, codes
    if hasattr(labels, "dictionary_encode"):
        groups, codes = _factorize_arrow(labels)
    elif not isinstance(labels, np.ndarray):  # of pandas
        codes, found = labels.factorize()
        groups = objects_of(list(found)) if type(found).__name__ == "MultiIndex" else np.asarray(found)
        codes = np.asarray(codes, dtype=np.int64)
    elif labels.dtype.kind in "biu":
        groups, codes = _factorize_integers(labels.reshape(-1))
    elif labels.dtype.kind in "fcmM":
        groups, codes = np.unique(labels, return_inverse=True)
    else:
        found, codes = _factorize_objects(labels.reshape(-1).tolist())
        groups = np.empty(len(found), dtype=labels.dtype)
        for i, label in enumerate(found):
            groups[i] = label
    groups, codes = _without_missing(groups, codes.reshape(-1))
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "biufcmM":
        groups, codes = _sorted(groups, codes)
    return groups, codes.reshape(np.shape(labels)).astype(np.int64, copy=False)


def codes_among(labels: Any, groups: NDArray[Any]) -> Codes:
    """Return the index of each label (*shape) among groups, or :data:`MISSING`."""
    own, codes = factorize(labels)
    if own.dtype.kind in "mM" and groups.dtype.kind in "mM":  # whose Python objects depend on their units
        common = np.result_type(own, groups)
        own, groups = own.astype(common), groups.astype(common)
    index = {label: i for i, label in enumerate(groups.tolist())}
    places = np.array([index.get(label, MISSING) for label in own.tolist()] + [MISSING], dtype=np.int64)
    return places[codes]


def check_complete(codes: Codes) -> None:
    """Raise ValueError if a label is missing."""
    if codes.size and int(codes.min()) == MISSING:
        raise missing_label(int((codes.reshape(-1) == MISSING).argmax()))


def missing_label(position: int) -> ValueError:
    """Make the error of a missing label at a flat position."""
    return ValueError(with_ways(f"label at position {position} is missing", Way.EXPECTED_GROUPS))


def as_groups(expected: Any) -> NDArray[Any]:
    """Return expected groups as an array of labels, in their order; ValueError if one occurs twice."""
    labels = as_labels(expected)
    if hasattr(labels, "__dask_graph__"):
        labels = labels.compute()
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise ValueError(f"expected_groups must have one axis, got shape {labels.shape}")
    groups, codes = factorize(labels)
    check_complete(codes)
    if len(groups) < len(codes):
        (places,) = (np.bincount(codes)[codes] > 1).nonzero()
        raise ValueError(
            f"expected_groups must differ, got {brief(groups[codes[places[0]]])} twice, at {places[0]} and "
            f"{(codes == codes[places[0]]).nonzero()[0][1]}"
        )
    return groups[codes]


def name_of(label: Any) -> str:
    """Return a label as messages show it."""
    value = label.item() if isinstance(label, np.generic) else label
    return abbreviate(value) if type(value) is int else f"{value!r:.80}"


# ---- kinds of labels ---------------------------------------------------------------------------------------


def _factorize_arrow(labels: Any) -> tuple[NDArray[Any], Codes]:
    if str(labels.type).startswith("dictionary"):
        labels = labels.cast(labels.type.value_type)
    if hasattr(labels, "combine_chunks"):
        labels = labels.combine_chunks()
    encoded = labels.dictionary_encode()
    chunks = encoded.chunks if hasattr(encoded, "chunks") else [encoded]
    if len(chunks) > 1:  # more text than one array of Arrow holds
        chunks = encoded.unify_dictionaries().chunks
    groups = objects_of(chunks[0].dictionary.to_pylist() if chunks else [])
    parts = [np.asarray(part.indices.fill_null(MISSING), dtype=np.int64) for part in chunks]
    return groups, np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _factorize_integers(labels: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """Find distinct integers by a table where their range is short, else by sorting."""
    if not labels.size:
        return labels, np.empty(0, dtype=np.int64)
    if labels.dtype.kind == "b":
        groups, codes = _factorize_integers(labels.view(np.uint8))
        return groups.astype(np.bool_), codes
    low, high = int(labels.min()), int(labels.max())
    span = high - low + 1
    if span > _MOST_OF_TABLE * len(labels) or high >= 2**63:
        groups, codes = np.unique(labels, return_inverse=True)
        return groups, codes.reshape(-1)
    places = labels.astype(np.int64) - low
    table = np.zeros(span, dtype=np.bool_)
    table[places] = True
    (found,) = table.nonzero()
    codes = places if len(found) == span else (np.cumsum(table) - 1)[places]
    return (found + low).astype(labels.dtype), codes


def _factorize_objects(labels: list[Any]) -> tuple[list[Any], Codes]:
    """Find distinct Python objects in order of their first occurrence."""
    index: defaultdict[Any, int] = defaultdict()
    index.default_factory = index.__len__  # one lookup a label
    try:
        codes = np.fromiter(map(index.__getitem__, labels), dtype=np.int64, count=len(labels))
    except TypeError:
        i, wrong = next((i, label) for i, label in enumerate(labels) if not _is_hashable(label))
        raise TypeError(
            f"label at position {i} must be hashable, got {brief(wrong)} of type {type(wrong).__name__}; "
            "tuples are"
        ) from None
    return list(index), codes


def _is_hashable(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def _sorted(groups: NDArray[Any], codes: Codes) -> tuple[NDArray[Any], Codes]:
    """Sort distinct labels that have an order."""
    try:
        if groups.dtype.kind == "O":
            values = groups.tolist()
            order = np.array(sorted(range(len(values)), key=values.__getitem__), dtype=np.int64)
        else:
            order = np.argsort(groups, kind="stable")
    except TypeError:  # no order, such as of text and integers
        return groups, codes
    rank = np.empty(len(order) + 1, dtype=np.int64)
    rank[order], rank[-1] = np.arange(len(order)), MISSING  # the last one is what codes of -1 find
    return groups[order], rank[codes]


def _without_missing(groups: NDArray[Any], codes: Codes) -> tuple[NDArray[Any], Codes]:
    """Remove missing labels from the distinct ones."""
    if groups.dtype.kind in "biuSU":
        return groups, codes
    missing = np.array([is_missing(label) for label in groups.tolist()], dtype=np.bool_)
    if groups.dtype.kind in "mM":
        missing = np.isnat(groups)
    if not missing.any():
        return groups, codes
    places = np.append(np.where(missing, MISSING, np.cumsum(~missing) - 1), MISSING)
    return groups[~missing], places[codes]


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, NaT or pandas' NA, or a tuple with one of them."""
    if label is None:
        return True
    if isinstance(label, tuple):
        return any(map(is_missing, label))
    try:
        return bool(label != label)
    except (TypeError, ValueError):  # NA has no truth value
        return type(label).__name__ == "NAType"


def merge(parts: Iterable[tuple[NDArray[Any], Codes]]) -> tuple[NDArray[Any], Codes]:
    """Merge distinct labels of chunks, each with their counts."""
    pairs = list(parts)
    labels = np.concatenate([labels for labels, _ in pairs])
    groups, codes = factorize(labels)
    counts = np.zeros(len(groups), dtype=np.int64)
    np.add.at(counts, codes, np.concatenate([counts for _, counts in pairs]))
    return groups, counts
