"""Writing arrays of numbers to Zarr: to a new place, in place of what is there, or at its end."""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import dask.array as da
import numpy as np

from rnsdask import store
from rnsdask.backend import to_backend
from rnsdask.cluster.workers import checked_workers
from rnsdask.core import layout
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import StoreError
from rnsdask.core.moduli import as_bool
from rnsdask.core.number_system import NumberSystem, with_source_of
from rnsdask.lazy import write
from rnsdask.lazy.chunks import store_chunks
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.promotion import in_system
from rnsdask.lazy.sources import reads
from rnsdask.rns.system import RNS

if TYPE_CHECKING:
    from rnsdask.arrays.number_array import NumberArray

_MODES = ("w-", "w", "a", "r+")


@dataclass(frozen=True)
class Stored:
    """What is stored already, and is to be appended to.

    Attributes
    ----------
    info : StoreInfo or GroupInfo
        The store, as it was opened.
    system : NumberSystem
        What its words mean.
    shape, chunks : tuple of int
        Its shape, and a chunk's length along each axis.
    """

    info: Any
    system: Any
    shape: tuple[int, ...]
    chunks: tuple[int, ...]


class Storage(Protocol):
    """How arrays of a number system are stored: what a module such as :mod:`.rns_storage` has."""

    def create(
        self,
        location: store.Location,
        system: Any,
        shape: Sequence[int],
        chunks: Sequence[int],
        *,
        overwrite: bool,
        with_room: bool = False,
        job_identity: str | None = None,
    ) -> store.ArrayWriter:
        """Create a store without chunks."""

    def open_stored(self, location: store.Location) -> Stored:
        """Open a complete store that is to be appended to."""

    def append(self, info: Any, system: Any, axis: int, length: int) -> store.ArrayWriter:
        """Begin a store of more numbers along an axis, which has the chunks that stay."""

    def read_words(self, info: Any) -> da.Array:
        """The words of a complete store, lazy."""


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
        writer = source.storage.create(location, source.system, source.shape, lengths, **how)
        return _write(source.words, writer, compute)


def check_not_its_own(array: "NumberArray", location: store.Location, overwrite: bool) -> None:
    """Raise StoreError if what is to be overwritten is what a lazy array is read from."""
    if overwrite and reads(array.words.dask, location):
        kind = "group" if store.is_group(location) else "store"
        raise StoreError(f"{location.path}: an array cannot overwrite the {kind} that it is read from")


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
        write.compute_on_own_threads(written)
        writer.finish()
    return None


def _append(
    array: "NumberArray",
    location: store.Location,
    append_dim: int,
    chunks: layout.Chunks | None,
    compute: bool,
) -> Any:
    stored = array.storage.open_stored(location)
    axis = axis_index(append_dim, len(stored.shape), "append_dim")
    array = _in_stored_system(array, stored.system)
    _check_appended(array, stored, axis, chunks)
    first = [0] * len(stored.shape)
    first[axis], kept = divmod(stored.shape[axis], stored.chunks[axis])
    how: dict[str, Any] = {"rows": array.system.rows, "dtype": array.system.word_dtype, "like": np.empty(0)}
    parts = [map_chunks(_on_host, _lazy(array), **how)]
    if kept:  # the last chunks, which are not whole
        end = slice(stored.shape[axis] - kept, None)
        parts.insert(0, array.storage.read_words(stored.info)[(slice(None),) * (1 + axis) + (end,)])
    words = da.concatenate(parts, axis + 1).rechunk((-1, *stored.chunks))
    system = _system_of_both(stored.system, array.system)
    with checked_workers() if compute else nullcontext():
        writer = array.storage.append(stored.info, system, axis, array.shape[axis])
        return _write(words, writer, compute, first=tuple(first))


def _in_stored_system(array: "NumberArray", system: NumberSystem) -> "NumberArray":
    """An array that grows, in the moduli of what it is appended to, which must hold its numbers."""
    own = array.system
    if not isinstance(system, RNS) or not isinstance(own, RNS):
        return array
    if not own.grows and not (system.grows and own.same_numbers(system)):
        return array
    made: NumberArray = in_system(array, system)
    return made


def _check_appended(array: "NumberArray", stored: Stored, axis: int, chunks: layout.Chunks | None) -> None:
    """Raise ValueError unless an array goes at the end of what is stored."""
    path = stored.info.path
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
    if not isinstance(stored, RNS) or not isinstance(appended, RNS):
        return stored
    bounds = (stored.bound, appended.bound)
    return stored.with_bound(None if None in bounds else max(b for b in bounds if b is not None))
