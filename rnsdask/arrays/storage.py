"""Arrays of numbers in Zarr: written to a new path, over an old array or at its end, and read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, Literal, Self, overload

import dask.array as da
import numpy as np
from dask.delayed import Delayed

from rnsdask import store
from rnsdask.arrays.collection import NumberCollection
from rnsdask.backend import to_backend
from rnsdask.cluster.workers import checked_workers
from rnsdask.core import layout
from rnsdask.core.axes import axis_index
from rnsdask.core.errors import StoreError
from rnsdask.core.moduli import as_bool
from rnsdask.core.number_system import NumberSystem, with_source_of
from rnsdask.core.ways import REPLACE, Message, Setting, must, with_ways
from rnsdask.lazy import write
from rnsdask.lazy.chunks import rechunk, store_chunks
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.promotion import convert_to_stored
from rnsdask.lazy.read import read_words
from rnsdask.lazy.write import reads

_MODES = ("w-", "w", "a", "r+")

# ---- writing ----------------------------------------------------------------------------------------------


class Storage(NumberCollection):
    """Arrays written to Zarr: to a new path, over an old array, or at its end."""

    __slots__ = ()

    @overload
    def to_zarr(
        self,
        path: store.StorePath,
        *,
        component: str | None = None,
        chunks: layout.Chunks | None = None,
        mode: str | None = None,
        append_dim: int | None = None,
        overwrite: bool = False,
        compute: Literal[True] = True,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None: ...
    @overload
    def to_zarr(
        self,
        path: store.StorePath,
        *,
        component: str | None = None,
        chunks: layout.Chunks | None = None,
        mode: str | None = None,
        append_dim: int | None = None,
        overwrite: bool = False,
        compute: Literal[False],
        storage_options: Mapping[str, Any] | None = None,
    ) -> Delayed: ...
    def to_zarr(
        self,
        path: store.StorePath,
        *,
        component: str | None = None,
        chunks: layout.Chunks | None = None,
        mode: str | None = None,
        append_dim: int | None = None,
        overwrite: bool = False,
        compute: bool = True,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Delayed | None:
        """Write the array to Zarr, chunk by chunk (docs/store-format.md).

        Parameters
        ----------
        path, component, storage_options
            The path, as :func:`.open_zarr` takes it. Missing Zarr groups above a component are created.
        chunks
            The stored chunks, as :meth:`rechunk` takes them, but of one length along each axis. A length may
            be longer than its axis, for later appends. The default is the array's chunks, or 64 to 128 MiB
            for an array in memory. If chunks differ along an axis, the longest length is used, with a
            warning, as in Dask.
        mode : {"w-", "w", "a", "r+"}, optional
            As in Zarr. ``"w-"`` (the default without `append_dim`): the path must be free. ``"w"``: replace
            an array at the path, and take over an array that another job is writing; on a local disk the old
            array stays until the new one is complete. ``"a"`` (the default with `append_dim`): append to the
            array at the path, or write a new one. ``"r+"``: append; there must be an array.
        append_dim : int, optional
            The axis along which the array is appended to the stored one. Moduli, range and the lengths of the
            other axes must be the same. The stored chunks, codecs and attributes stay, and the bound becomes
            the greater of the two. The old array can be read until the longer one is complete and replaces it
            (docs/failures.md); then readers must reopen it.
        overwrite : bool
            The same as mode ``"w"``.
        compute : bool
            With False nothing is computed: the result is a Dask Delayed that writes the chunks and then marks
            the store as complete. Until then the store is incomplete.

        Returns
        -------
        None, or a Dask Delayed with ``compute=False``

        Raises
        ------
        TypeError
            If `overwrite` or `compute` is not a bool.
        ValueError
            If modes or chunks are wrong, the array cannot be appended to the stored one, or `path` is neither
            a local path nor a URL that names a store, or a Zarr store is read-only.
        StoreError
            If `path` holds something that must not be replaced or is not such an array, or is within a Zarr
            array, or if this array is read from the store that it would replace; :class:`.StoreAccessError`
            if the store cannot be written.
        JobError
            If it would be computed on a cluster with a worker that runs another version of rnsdask.
        """
        mode, compute = _checked_mode(mode, append_dim, overwrite), as_bool(compute, "compute")
        root = store.locate_to_write(path, storage_options)
        location = store.component_of(root, component)
        if not self._has_lengths:  # finding them takes as long as computing the array
            if mode == "w-" and store.exists(location):
                raise StoreError(with_ways(f"{location.path}: it exists", REPLACE))
            store.check_can_write(location)
            self._find_lengths()
        if append_dim is not None:
            store.settle(location)
        if append_dim is not None and (mode == "r+" or store.exists(location)):
            return _append(self, location, append_dim, chunks, compute)
        source, lengths = _make_storable(self, chunks)
        check_not_its_own(source, location, mode == "w")
        with checked_workers() if compute else nullcontext():
            store.create_parents(root, component)
            how: dict[str, Any] = {"overwrite": mode == "w", "with_room": chunks is not None}
            writer = store.create(location, source.system, source.shape, chunks=lengths, **how)
            return _write(source.words, writer, compute)

    def create_store(
        self, path: store.StorePath, *, overwrite: bool = False, job: str | None = None
    ) -> store.ArrayWriter:
        """Create an empty store for this array, a Dask array with storable chunks."""
        location = store.locate(path)
        check_not_its_own(self, location, overwrite)
        how: dict[str, Any] = {"overwrite": overwrite, "job": job}
        return store.create(location, self.system, self.shape, chunks=self.storable_lengths(), **how)

    def storable_lengths(self) -> tuple[int, ...]:
        """Return the lengths of a stored chunk along each axis, for a Dask array with storable chunks."""
        chunks: Any = "auto" if self.size == 0 else self.chunksize
        return layout.plan_chunks(chunks, self.shape, self.system.words32).chunks

    def with_storable_chunks(self) -> Self:
        """Rechunk to chunks of one length along each axis, the longest one, for a store."""
        self._find_lengths()
        if not self._is_lazy:
            return self.rechunk("auto")
        if layout.are_regular(self.chunks):
            return self
        return self.rechunk(layout.storable_plan(self.chunks, self.system.words32).chunks)


def check_not_its_own(array: Any, location: store.Location, overwrite: bool) -> None:
    """Raise StoreError if a lazy array is read from the store that it would overwrite."""
    if overwrite and reads(array.words.dask, location):
        raise StoreError(f"{location.path}: an array cannot overwrite the store that it is read from")


def _checked_mode(mode: str | None, append_dim: int | None, overwrite: bool) -> str:
    """Return the mode that the arguments mean together; TypeError or ValueError if there is none."""
    overwrite = as_bool(overwrite, "overwrite")
    if mode is None:
        mode = "w" if overwrite else "w-" if append_dim is None else "a"
    if mode not in _MODES:
        raise ValueError(must("mode", f"be one of {', '.join(map(repr, _MODES))}, got {mode!r:.40}"))
    if overwrite and mode != "w":
        raise ValueError(Message(Setting("overwrite", True), f" is mode 'w', got mode {mode!r}"))
    if append_dim is not None and mode in ("w", "w-"):
        raise ValueError(f"append_dim needs mode 'a' or 'r+', got {mode!r}")
    if append_dim is None and mode == "r+":
        raise ValueError("mode 'r+' changes an array that is there: it needs append_dim, the axis that grows")
    return mode


def _make_storable(array: Any, chunks: layout.Chunks | None) -> tuple[Any, tuple[int, ...]]:
    """Return the array as a Dask array with the chunks of its store, and the chunks' lengths."""
    if chunks is not None:
        lengths = store_chunks(chunks, array.shape, array.system.words32, array._lengths)
        return array.rechunk(chunks), lengths
    source = array.with_storable_chunks()
    lengths = source.storable_lengths()
    if array._is_lazy and source is not array:
        warnings.warn(
            "the array's chunks differ along an axis, which those of a store cannot: it gets chunks of "
            f"{lengths}; rechunk() before, or chunks=, chooses others",
            UserWarning,
            stacklevel=3,
        )
    return source, lengths


def _write(words: da.Array, writer: store.ArrayWriter, compute: bool, **how: Any) -> Delayed | None:
    """Write and finish a store, now or when the returned value is computed."""
    written = write.write_chunks(words, writer, **how)
    if not compute:
        finish: Delayed = write.finish_later(written, writer)
        return finish
    with write.removing_failed(writer.discard):
        write.compute_on_own_threads(written)
        writer.finish()
    return None


def _append(
    array: Any,
    location: store.Location,
    append_dim: int,
    chunks: layout.Chunks | None,
    compute: bool,
) -> Delayed | None:
    stored = store.open_info(location, store.all_systems)
    axis = axis_index(append_dim, len(stored.shape), "append_dim")
    array = convert_to_stored(array, stored.system)
    _check_appended(array, stored, axis, chunks)
    first = [0] * len(stored.shape)
    first[axis], kept = divmod(stored.shape[axis], stored.chunks[axis])
    how: dict[str, Any] = {"rows": array.system.rows, "dtype": array.system.word_dtype, "like": np.empty(0)}
    parts = [map_chunks(_move_to_host, _make_lazy(array), **how)]
    if kept:  # the last chunks, which are not full
        end = slice(stored.shape[axis] - kept, None)
        parts.insert(0, read_words(stored)[(slice(None),) * (1 + axis) + (end,)])
    words = rechunk(da.concatenate(parts, axis + 1), (-1, *stored.chunks))
    system = _system_of_both(stored.system, array.system)
    with checked_workers() if compute else nullcontext():
        writer = store.append(stored, system, axis, array.shape[axis])
        return _write(words, writer, compute, first=tuple(first))


def _check_appended(array: Any, stored: store.StoreInfo, axis: int, chunks: layout.Chunks | None) -> None:
    """Raise ValueError unless an array can be appended to the stored one."""
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


def _make_lazy(array: Any) -> da.Array:
    lazy: da.Array = array.words if array._is_lazy else array.rechunk(-1).words
    return lazy


def _move_to_host(block: Any) -> Any:
    return to_backend(block, "cpu")


def _system_of_both(stored: NumberSystem, appended: NumberSystem) -> NumberSystem:
    """Return the system of both arrays, with the greater bound if both have bounds."""
    bounds = [system.bound for system in (stored, appended) if system.bound is not None]
    both: NumberSystem = with_source_of(stored, appended).with_bound(
        max(bounds) if len(bounds) == 2 else None
    )
    return both
