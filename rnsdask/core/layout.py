"""Shapes of residue arrays: the residue axis and the rules for chunks.

The residues of an array of numbers of shape ``shape`` under n moduli are one ``uint32`` array of shape
``(n, *shape)``. Chunks divide the axes of ``shape`` only: all residues of a number lie in the same chunk.
Shapes and chunks in this module leave the residue axis out.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

from rnsdask.core.errors import JobError, abbreviate, brief
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.core.ways import Message, Way, must

RESIDUE_AXIS = 0
"""Axis of a residue array that runs over the moduli."""

RESIDUE_DTYPE = np.dtype(np.uint32)
"""Type of a residue."""

CHUNK_MULTIPLE = 128
"""The last length of a default chunk is a multiple of this, so that rows start at multiples of 512 bytes."""

DEFAULT_CHUNK_BYTES = 64 * 2**20
"""Least size of a default chunk in bytes; chunks are smaller than twice this."""

Chunks: TypeAlias = str | SupportsIndex | Sequence[Any] | Mapping[int, Any]
"""Chunks along the axes of the numbers, in any form that Dask accepts."""

Lengths: TypeAlias = tuple[tuple[int, ...], ...]
"""Lengths of all chunks along each axis."""


def check_dense(array: Any, name: str) -> None:
    """Raise TypeError for a sparse matrix of SciPy, CuPy or another library."""
    if hasattr(array, "toarray") and hasattr(array, "nnz"):
        raise TypeError(
            must(
                name,
                f"be dense, got a sparse {type(array).__name__}; its toarray() is, and a Matrix "
                "Market file of it can be imported",
            )
        )


def round_up(value: int, multiple: int) -> int:
    """Return the least multiple of `multiple` that is not below `value`."""
    return -(-value // multiple) * multiple


def default_chunk(n_moduli: int, count: int | None = None) -> int:
    """Return the default number of numbers in a chunk of a one-dimensional array.

    It is the power of two, at least 128, for which a chunk has from 64 MiB to less than 128 MiB. For a
    shorter array it is the length, rounded up to a multiple of 128. None is an unknown length.
    """
    number_bytes = n_moduli * RESIDUE_DTYPE.itemsize
    least = -(-DEFAULT_CHUNK_BYTES // number_bytes)
    chunk = max(CHUNK_MULTIPLE, 1 << (least - 1).bit_length())
    return min(chunk, round_up(count, CHUNK_MULTIPLE)) if count else chunk


def check_shape(shape: Sequence[int]) -> None:
    """Raise ValueError unless it can be the shape of an array of numbers."""
    if len(shape) == 0:
        raise ValueError("an array of numbers needs at least one axis, got shape ()")
    for axis, length in enumerate(shape):
        if length < 0:
            raise ValueError(must("shape", f"not be negative, got {abbreviate(length)} on axis {axis}"))


def are_regular(chunks: Sequence[Sequence[int]]) -> bool:
    """Whether chunks are all alike along each axis, but for a shorter last one, as in a store."""
    return all(all(c == axis[0] for c in axis[:-1]) and axis[-1] <= axis[0] for axis in chunks)


def _last_chunk(chunk: int, length: int) -> int:
    """Cut a chunk's length along the last axis down to the axis."""
    if not length:
        return chunk
    return min(chunk, length if chunk % CHUNK_MULTIPLE else round_up(length, CHUNK_MULTIPLE))


def _chunk_lengths(chunks: object, shape: Sequence[int]) -> tuple[int, ...]:
    """Read explicit chunks: one positive integer for each axis."""
    if isinstance(chunks, Sequence):
        lengths = tuple(as_integer(c, f"chunk length of axis {axis}") for axis, c in enumerate(chunks))
    else:
        lengths = (as_integer(chunks, "chunks"),) * len(shape)
    if len(lengths) != len(shape):
        raise ValueError(
            must("chunks", f"give one length for each of the {len(shape)} axes, got {brief(chunks)}")
        )
    lengths = tuple(s if c == -1 and s else c for c, s in zip(lengths, shape, strict=True))
    for axis, length in enumerate(lengths):
        if length == -1:
            raise ValueError(f"a chunk of a whole axis needs an axis of known length, got -1 on axis {axis}")
        if length < 1:
            raise ValueError(f"a chunk's length must be at least 1, got {abbreviate(length)} on axis {axis}")
    return lengths


def _automatic_chunks(shape: Sequence[int], n_moduli: int) -> tuple[int, ...]:
    """Fill a default chunk from the last axis upwards, so that a chunk's rows are as long as possible.

    An axis of length 0 will grow, maybe beyond any chunk.
    """
    chunks = [default_chunk(n_moduli, shape[-1])]
    room = default_chunk(n_moduli) // chunks[0]
    for length in reversed(shape[:-1]):
        chunks.append(max(1, min(room, length or room)))
        room //= chunks[-1]
    return tuple(reversed(chunks))


@dataclass(frozen=True)
class ChunkPlan:
    """Division of an array into chunks of one length along each axis, as in a store.

    Attributes
    ----------
    shape : tuple of int
        Shape of the array of numbers, without an axis of words.
    chunks : tuple of int
        Chunk length along each axis of `shape`, which may be longer than the axis.
    """

    shape: tuple[int, ...]
    chunks: tuple[int, ...]

    @classmethod
    def longest(cls, lengths: Sequence[Sequence[int]]) -> "ChunkPlan":
        """Plan for an array in chunks of these lengths along each axis: the longest, but at least 1."""
        return ChunkPlan(tuple(map(sum, lengths)), tuple(max(1, *map(int, axis)) for axis in lengths))

    @property
    def count(self) -> int:
        """Number of numbers."""
        return math.prod(self.shape)

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of chunks along each axis."""
        return tuple(-(-length // chunk) for length, chunk in zip(self.shape, self.chunks, strict=True))

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return math.prod(self.grid)

    @property
    def chunk_count(self) -> int:
        """Number of numbers of a whole chunk."""
        return math.prod(self.chunks)

    @property
    def lengths(self) -> Lengths:
        """Lengths of all chunks along each axis, cut at the edge; an axis of length 0 has one, as in Dask."""
        return tuple(
            (chunk,) * (length // chunk) + ((length % chunk,) if length % chunk or not length else ())
            for length, chunk in zip(self.shape, self.chunks, strict=True)
        )

    @property
    def split_axis(self) -> int:
        """Axis along which a chunk is read in parts: the first that is longer than 1."""
        return next((axis for axis, length in enumerate(self.chunks) if length > 1), len(self.chunks) - 1)

    @property
    def is_consecutive(self) -> bool:
        """Whether the chunks, one after another, are the array in C order."""
        divided = [axis for axis, count in enumerate(self.grid) if count > 1]
        return not divided or math.prod(self.chunks[: divided[-1]]) == 1

    def indices(self) -> Iterator[tuple[int, ...]]:
        """Iterate over the indices of all chunks in the grid, in C order."""
        return grid_indices(self.grid)

    def slices(self, index: Sequence[int]) -> tuple[slice, ...]:
        """Return the part of the array that the chunk at `index` of the grid covers, cut at the edge."""
        grid = self.grid
        if len(index) != len(grid) or not all(0 <= i < count for i, count in zip(index, grid, strict=True)):
            raise IndexError(f"no chunk {tuple(index)} in a grid of {grid} chunks")
        places = zip(index, self.chunks, self.shape, strict=True)
        return tuple(slice(i * c, min((i + 1) * c, s)) for i, c, s in places)

    def part_shape(self, index: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of a chunk, cut at the edge; an axis of length 0 has one chunk, as in Dask."""
        places = zip(index, self.chunks, self.shape, strict=True)
        return tuple(min(c, s - i * c) for i, c, s in places)


def plan_chunks(chunks: Chunks, shape: Sequence[int], words: int) -> ChunkPlan:
    """Plan the chunks of a store, which are all alike, as they are requested, for numbers of `words` words.

    ``"auto"`` means chunks of 64 to 128 MiB. Otherwise give one integer for all axes of numbers, or one for
    each axis of `shape`; -1 is the whole axis. A chunk longer than its axis is cut down to the axis (along
    the last one, if it is a multiple of 128, to the axis rounded up to 128). An axis of length 0 will grow:
    its chunk is kept.
    """
    check_shape(shape)
    if isinstance(chunks, str):
        if chunks != "auto":
            raise ValueError(must("chunks", f"be 'auto', an integer or a tuple of integers, got {chunks!r}"))
        return ChunkPlan(tuple(shape), _automatic_chunks(shape, words))
    lengths = _chunk_lengths(chunks, shape)
    outer = (min(c, s) if s else c for c, s in zip(lengths[:-1], shape[:-1], strict=True))
    return ChunkPlan(tuple(shape), (*outer, _last_chunk(lengths[-1], shape[-1])))


def storable_plan(lengths: Sequence[Sequence[int]], words: int) -> ChunkPlan:
    """Plan the chunks of a store for an array in chunks: the same, or the longest where they differ."""
    longest = ChunkPlan.longest(lengths)
    return plan_chunks(longest.chunks, longest.shape, words)


def check_consecutive(path: str, plan: ChunkPlan) -> None:
    """Raise JobError unless the chunks, one after another, are the array in C order."""
    if not plan.is_consecutive:
        raise JobError(
            Message(
                f"{path}: its chunks of shape {tuple(plan.chunks)} are not consecutive parts of the array of "
                f"shape {tuple(plan.shape)}; ",
                Way.RECHUNK,
                " makes such an array",
            )
        )


def grid_indices(grid: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Iterate over the indices of all chunks of a grid, in C order.

    ``itertools.product``, which NumPy's ``ndindex`` uses too, would first list each axis: gigabytes if a
    store claims millions of chunks.
    """
    if not grid:
        yield ()
        return
    *outer, last = grid
    for index in grid_indices(outer):
        for i in range(last):
            yield (*index, i)


def check_residue_array(residues: Any, moduli: ModuliSet) -> None:
    """Check by type and shape alone that an array can hold residues under a moduli set.

    A NumPy, CuPy or Dask array is valid if its dtype is ``uint32``, its shape is ``(n, *shape)`` with n
    moduli and at least one axis in `shape`, and no element is masked.
    """
    try:
        dtype, shape, ndim = residues.dtype, residues.shape, residues.ndim
    except AttributeError:
        kind = type(residues).__name__
        raise TypeError(f"residues must be a NumPy, CuPy or Dask array, got {kind}") from None
    if dtype != RESIDUE_DTYPE:
        raise TypeError(f"residues must have dtype uint32, got {dtype}")
    if isinstance(residues, np.ma.MaskedArray) and np.ma.is_masked(residues):
        raise ValueError("residues are masked; fill them first")
    if ndim < 2:
        raise ValueError(
            f"residues must have a residue axis and at least one axis of numbers, got shape {shape}"
        )
    if shape[RESIDUE_AXIS] != len(moduli):
        raise ValueError(
            f"the residue axis (axis 0) must have one row for each of the {len(moduli)} moduli, "
            f"got shape {shape}"
        )


def as_matrix(residues: Any) -> Any:
    """Return residues of shape (n, *shape) as (n, N), contiguous along N: a view where that is possible.

    Rows may have gaps between them, as the kernels allow: columns of a longer array stay a view.
    """
    matrix = residues if residues.ndim == 2 else residues.reshape(residues.shape[RESIDUE_AXIS], -1)
    if matrix.shape[1] > 1 and matrix.strides[1] != matrix.itemsize:
        matrix = matrix.copy()
    return matrix
