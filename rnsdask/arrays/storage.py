"""Writing arrays of numbers to Zarr: to a new place, in place of what is there, or at its end."""

import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np

from rnsdask import store
from rnsdask.arrays.rns_storage import read_words
from rnsdask.backend import to_backend
from rnsdask.cluster.workers import checked_workers
from rnsdask.core import layout
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import StoreError
from rnsdask.core.moduli import as_bool
from rnsdask.core.number_system import NumberSystem, with_source_of
from rnsdask.lazy import write
from rnsdask.lazy.chunks import store_chunks
from rnsdask.lazy.compute import compute_on_own_threads
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.promotion import in_system
from rnsdask.lazy.sources import reads

if TYPE_CHECKING:
    from rnsdask.arrays.number_array import NumberArray

_MODES = ("w-", "w", "a", "r+")


def to_zarr(
    array: "NumberArray",
    path: store.StorePath,
    *,
    component: str | None,
    chunks: layout.Chunks | None,
    mode: str | None,
    append_dim: int | None,
    overwrite: bool,
    compute: bool,
    storage_options: Mapping[str, Any] | None,
) -> Any:
    """Write an array as :meth:`.NumberArray.to_zarr` says."""
    mode, compute = _checked_mode(mode, append_dim, overwrite), as_bool(compute, "compute")
    root = store.locate(path, storage_options)
    location = store.component_of(root, component)
    if not array._has_lengths:  # which takes as long as to compute the array
        if mode == "w-" and store.exists(location):
            raise StoreError(f"{location.path}: it exists; replace it with overwrite=True")
        store.check_can_write(location)
        array._find_lengths()
    if append_dim is not None:
        store.settle(location)
    if append_dim is not None and (mode == "r+" or store.exists(location)):
        return _append(array, location, append_dim, chunks, compute)
    source, lengths = _storable(array, chunks)
    check_not_its_own(source, location, mode == "w")
    with checked_workers() if compute else nullcontext():
        store.create_parents(root, component)
        how: dict[str, Any] = {"overwrite": mode == "w", "with_room": chunks is not None}
        writer = store.create(location, source.system, source.shape, chunks=lengths, **how)
        return _write(source.words, writer, compute)


def check_not_its_own(array: "NumberArray", location: store.Location, overwrite: bool) -> None:
    """Raise StoreError if what is to be overwritten is what a lazy array is read from."""
    if overwrite and reads(array.words.dask, location):
        raise StoreError(f"{location.path}: an array cannot overwrite the store that it is read from")


def _checked_mode(mode: str | None, append_dim: int | None, overwrite: bool) -> str:
    """The mode, of those that are known, that the arguments mean together, or TypeError or ValueError."""
    overwrite = as_bool(overwrite, "overwrite")
    if mode is None:
        mode = "w" if overwrite else "w-" if append_dim is None else "a"
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r:.40}")
    if overwrite and mode != "w":
        raise ValueError(f"overwrite=True is mode 'w', got mode {mode!r}")
    if append_dim is not None and mode in ("w", "w-"):
        raise ValueError(f"append_dim needs mode 'a' or 'r+', got {mode!r}")
    if append_dim is None and mode == "r+":
        raise ValueError("mode 'r+' changes an array that is there: it needs append_dim, the axis that grows")
    return mode


def _storable(array: "NumberArray", chunks: layout.Chunks | None) -> tuple["NumberArray", tuple[int, ...]]:
    """The array as a Dask array with the chunks that a store of it has, and their lengths."""
    rows = array.system.words32
    if chunks is not None:
        lengths = store_chunks(chunks, array.shape, rows, array._lengths)
        return array.rechunk(chunks), lengths
    if array._is_lazy and not layout.are_regular(array.chunks):
        lengths = layout.storable_chunks(array.chunks, array.shape, rows)
        warnings.warn(
            "the array's chunks differ along an axis, which those of a store cannot: it gets chunks of "
            f"{lengths}; rechunk() before, or chunks=, chooses others",
            UserWarning,
            stacklevel=4,
        )
    source = array.with_storable_chunks()
    return source, source.storable_lengths()


def _write(words: da.Array, writer: store.ArrayWriter, compute: bool, **how: Any) -> Any:
    """Write and finish, at once or when what is returned is computed."""
    written = write.write_chunks(words, writer, **how)
    if not compute:
        return write.finished(written, writer)
    with write.removing_failed(writer.discard):
        compute_on_own_threads(written)
        writer.finish()
    return None


def _append(
    array: "NumberArray",
    location: store.Location,
    append_dim: int,
    chunks: layout.Chunks | None,
    compute: bool,
) -> Any:
    stored = store.open_info(location, store.ALL_SYSTEMS)
    axis = axis_index(append_dim, len(stored.shape), "append_dim")
    array = _in_stored_system(array, stored.system)
    _check_appended(array, stored, axis, chunks)
    first = [0] * len(stored.shape)
    first[axis], kept = divmod(stored.shape[axis], stored.chunks[axis])
    how: dict[str, Any] = {"rows": array.system.rows, "dtype": array.system.word_dtype, "like": np.empty(0)}
    parts = [map_chunks(_on_host, _lazy(array), **how)]
    if kept:  # the last chunks, which are not whole
        end = slice(stored.shape[axis] - kept, None)
        parts.insert(0, read_words(stored)[(slice(None),) * (1 + axis) + (end,)])
    words = da.concatenate(parts, axis + 1).rechunk((-1, *stored.chunks))
    system = _system_of_both(stored.system, array.system)
    with checked_workers() if compute else nullcontext():
        writer = store.append(stored, system, axis, array.shape[axis])
        return _write(words, writer, compute, first=tuple(first))


def _in_stored_system(array: "NumberArray", system: Any) -> "NumberArray":
    """An array that grows, in the moduli of what it is appended to, which must hold its numbers."""
    own = array.system
    if not system.extends or not own.extends:
        return array
    if not own.grows and not (system.grows and own.same_numbers(system)):
        return array
    made: NumberArray = in_system(array, system)
    return made


def _check_appended(
    array: "NumberArray", stored: store.StoreInfo, axis: int, chunks: layout.Chunks | None
) -> None:
    """Raise ValueError unless an array goes at the end of what is stored."""
    path = stored.path
    if not array.system.same_numbers(stored.system):
        raise ValueError(
            f"{path}: it holds numbers of {stored.system}, not of {array.system}; nothing is appended"
        )
    is_alike = array.ndim == len(stored.shape) and all(
        k == axis or old == length
        for k, (old, length) in enumerate(zip(stored.shape, array.shape, strict=True))
    )
    if not is_alike:
        raise ValueError(
            f"{path}: it has shape {stored.shape}, so an array of shape {array.shape} cannot be appended "
            f"along axis {axis}"
        )
    if chunks is not None:
        grown = tuple(length + array.shape[axis] * (k == axis) for k, length in enumerate(stored.shape))
        lengths = store_chunks(chunks, grown, array.system.words32)
        if lengths != stored.chunks:
            raise ValueError(
                f"{path}: its chunks are {stored.chunks}, and stay so when it grows; got chunks of {lengths}"
            )


def _lazy(array: "NumberArray") -> da.Array:
    lazy: da.Array = array.words if array._is_lazy else array.rechunk(-1).words
    return lazy


def _on_host(block: Any) -> Any:
    return to_backend(block, "cpu")


def _system_of_both(stored: NumberSystem, appended: NumberSystem) -> NumberSystem:
    """The system of numbers of both, with the greater bound if both have one."""
    stored = with_source_of(stored, appended)
    bounds = (stored.bound, appended.bound)
    both: NumberSystem = stored.with_bound(None if None in bounds else max(filter(None, bounds), default=0))
    return both
