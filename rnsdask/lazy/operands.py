"""Operands of operations on arrays of numbers, checked against one another and broadcast as in NumPy.

An operation is a function of blocks: words (rows, *shape) of each operand, all with the same number of axes,
each axis of the common length or of length 1. :func:`.map_chunks` applies it.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard, TypeVar

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from numpy.typing import DTypeLike

from rnsdask.backend import Array, backend_beside, empty_like_chunks, to_backend
from rnsdask.cluster.workers import checked_workers
from rnsdask.core.errors import with_article
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem, with_source_of
from rnsdask.core.ways import Kind, Message
from rnsdask.lazy import plan
from rnsdask.lazy.check import as_declared
from rnsdask.lazy.chunks import as_lazy, without_empty_chunks
from rnsdask.lazy.inputs import convert_any, is_on_disk, make_readable
from rnsdask.lazy.map import map_chunks, map_values
from rnsdask.lazy.plan import Known
from rnsdask.lazy.promotion import convert_to_system


class Numbers(Protocol):
    """Interface of an array of numbers as an operand, such as :class:`.NumberArray`."""

    @property
    def words(self) -> Any:
        """NumPy, CuPy or Dask array of the system's words, shape (rows, *shape)."""

    @property
    def system(self) -> Any:
        """The number system."""

    def _measured_system(self) -> Any:
        """Number system with all that is known of the numbers, for results that do not depend on it."""

    def compute_chunk_sizes(self) -> Any:
        """Compute unknown chunk sizes in place."""


N = TypeVar("N", bound=Numbers)
"""Class of the arrays of numbers that are operands and result of a function."""

# Includes integers of gmpy2 and NumPy: anything with __index__ but bool. And Dask arrays of one integer.
Operand: TypeAlias = Any


class Operands(NamedTuple):
    """Operands that fit one another.

    Attributes
    ----------
    blocks : tuple of arrays
        First the masks, (1, *shape) Boolean, then the operands' words, (rows, *shape), with the result's
        number of axes; each axis may have length 1 instead. A Python int is a NumPy array (rows, 1, ..., 1)
        on every processor.
    system : NumberSystem
        The system of the first array; all have the same numbers. Its source is the first one that an array
        has.
    """

    blocks: tuple[Any, ...]
    system: Any


def _has_words_and_system(kind: Any) -> bool:
    # Asks the type, because `words` of the array itself would make a copy.
    return hasattr(kind, "words") and hasattr(kind, "system")


is_number_type: Callable[[Any], bool] = cache(_has_words_and_system)
"""Whether a type is of arrays of numbers."""


def is_number_array(operand: Operand) -> TypeGuard[Numbers]:
    """Whether an operand is an array of numbers, not a single number."""
    return is_number_type(type(operand))


def scalar(operand: Operand) -> int:
    """Return a single integer as a Python int; TypeError for any other operand."""
    if isinstance(operand, da.Array):
        raise TypeError(
            Message(
                "an operand must be ",
                Kind("RNSArray", "a"),
                " or an integer, which may be lazy, got a Dask array of shape "
                f"{operand.shape} and dtype {operand.dtype}",
            )
        )
    check_no_array(operand)
    if isinstance(operand, np.ndarray):  # NumPy passes it if the array is the second operand
        operand = operand[()]
    return as_integer(operand, "an operand beside an array of numbers")


def check_no_array(operand: Operand) -> None:
    """Raise TypeError, which names the way out, for another library's array or a list as an operand."""
    if getattr(operand, "ndim", 0) or isinstance(operand, list | tuple):
        dtype, kind = getattr(operand, "dtype", None), type(operand).__name__
        what = kind if dtype is None else f"{kind} of {dtype}, shape {operand.shape}"
        raise TypeError(
            f"an operand beside an array of numbers must be an integer, got {what}; rd.from_ints(values, "
            "x.system) makes an array of numbers of it"
        )


def is_true(value: Any) -> bool:
    """Return whether a truth value is true; compute a lazy one."""
    return bool(value.compute() if isinstance(value, da.Array) else value)


def is_lazy_integer(operand: Operand) -> TypeGuard[da.Array]:
    """Whether an operand is a lazy integer, such as the maximum of a Dask array."""
    return isinstance(operand, da.Array) and operand.ndim == 0 and operand.dtype.kind in "iuO"


def is_array(operand: Operand) -> bool:
    """Whether an operand is an array of any kind or a list, with an item for each number."""
    if is_lazy_integer(operand):
        return False
    return isinstance(operand, list | tuple) or is_number_array(operand) or np.ndim(operand) > 0


def integer_of(block: Any) -> int:
    """Return the integer in a lazy operand's block; TypeError if it is something else."""
    return as_integer(block.item() if hasattr(block, "item") else block, "a lazy operand")


def known_of(operand: Operand) -> Known:
    """Return what a plan uses of an operand; TypeError unless it is an array of numbers or an integer."""
    if is_number_type(type(operand)):
        system: NumberSystem = operand.system
        return system
    if type(operand) is int:
        return operand
    return getattr(operand, "known_range", None) or () if is_lazy_integer(operand) else scalar(operand)


def prepare(*operands: Operand, masks: Sequence[Any] = ()) -> Operands:
    """Check operands, at least one of which is an array, against one another, and broadcast their shapes.

    They are arrays of numbers, or integers of the common range, maybe lazy. `masks` are Boolean arrays,
    broadcast with the operands. TypeError for anything else, and for arrays on different processors;
    ValueError if moduli sets, ranges or shapes disagree, or an integer is out of range.
    """
    if not any(map(is_number_type, map(type, operands))):
        raise TypeError(
            Message("at least one operand must be ", Kind("RNSArray", "a"), ", got integers only")
        )
    system, is_alike = plan.meeting_of(list(map(known_of, operands)))
    return Operands(
        blocks_of(operands if is_alike else bring_to_system(operands, system), system, masks), system
    )


def blocks_of(operands: Sequence[Operand], system: Any, masks: Sequence[Any] = ()) -> tuple[Any, ...]:
    """Return blocks, as in :class:`Operands`, of arrays in fitting systems, and of integers of a system.

    TypeError for arrays on different processors; ValueError if shapes disagree or an integer is out of range.
    """
    words = [operand.words for operand in operands if is_number_type(type(operand))]
    if not masks and _fit(words):
        if len(words) == len(operands):
            return tuple(words)
        if all(type(operand) is int or is_number_type(type(operand)) for operand in operands):
            left, ndim = iter(words), words[0].ndim - 1
            return tuple(
                [system.column(value, ndim) if type(value) is int else next(left) for value in operands]
            )
    masks = [as_mask(mask) for mask in masks]
    if len(words) + len(masks) > 1:
        masks = [compute_lengths(mask) for mask in masks]
        arrays = list(filter(is_number_array, operands))
        find_lengths(*arrays)
        words = [array.words for array in arrays]
    moved = bring_to_one_processor([*masks, *words])
    masks, words = moved[: len(masks)], moved[len(masks) :]
    shape = broadcast_shape([tuple(array.shape[1:]) for array in (*masks, *words)])
    blocks = [with_axes(mask, len(shape)) for mask in masks]
    remaining = iter(words)
    for operand in operands:
        if is_number_array(operand):
            blocks.append(with_axes(next(remaining), len(shape)))
        elif is_lazy_integer(operand):
            blocks.append(lazy_column(operand, system, len(shape)))
        else:
            blocks.append(system.column(scalar(operand), len(shape)))
    return tuple(blocks)


def _fit(words: Sequence[Any]) -> bool:
    """Whether words are in memory, and of the same shape and processor, so that nothing is to be done."""
    first = words[0]
    if isinstance(first, da.Array):
        return False
    for other in words[1:]:
        if type(other) is not type(first) or other.shape[1:] != first.shape[1:]:
            return False
    return True


def lazy_column(integer: da.Array, system: Any, ndim: int) -> da.Array:
    """Return words of one lazy integer, with `ndim` axes of length 1."""
    chunks, options = ((1,),) * ndim, {"system": system, "ndim": ndim}
    column: da.Array = map_chunks(_column_block, integer, rows=system.rows, chunks=chunks, **options)
    return column


def _column_block(integer: Any, *, system: Any, ndim: int) -> Any:
    return system.column(integer_of(integer), ndim)


def make_alike(*arrays: Numbers) -> tuple[Any, ...]:
    """Convert arrays of residues to their common system; other arrays stay unchanged.

    ValueError if they have no common system; TypeError if they are on different processors.
    """
    given = [array.words for array in arrays]
    if all(type(words) is np.ndarray for words in given):  # as for most small arrays
        return bring_to_common_system(*arrays)
    moved = [
        array if found is words else make_like((array,), found, array.system, "raise")
        for array, words, found in zip(arrays, given, bring_to_one_processor(given), strict=True)
    ]
    return bring_to_common_system(*moved)


def bring_to_common_system(*operands: Operand) -> tuple[Any, ...]:
    """Return operands with their arrays, all of one kind, in one system, as :func:`make_alike`."""
    system, is_alike = plan.meeting_of(list(map(known_of, operands)))
    return operands if is_alike else bring_to_system(operands, system)


def bring_to_system(operands: Sequence[Operand], system: Any) -> tuple[Any, ...]:
    """Return operands with their arrays converted to a system, repeated operands only once."""
    arrays = {id(operand): operand for operand in operands if is_number_array(operand)}
    made = {key: convert_to_system(array, system) for key, array in arrays.items()}
    return tuple([made.get(id(operand), operand) for operand in operands])


def ends_of(integer: Operand) -> tuple[int, ...]:
    """Return the range of an operand that is an integer, maybe lazy; () if it is unknown."""
    return getattr(integer, "known_range", None) or () if is_lazy_integer(integer) else (scalar(integer),)


def common_system(*arrays: Numbers) -> Any:
    """Return the first array's system, with the source of the first array that has one."""
    return with_source_of(*[array.system for array in arrays])


def find_lengths(*arrays: Numbers) -> None:
    """Compute unknown lengths of arrays that others must fit."""
    for array in arrays:
        if any(map(math.isnan, array.words.shape)):
            array.compute_chunk_sizes()


def compute_lengths(values: Any) -> Any:
    """Return a plain array with its lengths, computed if Dask does not know them."""
    if not isinstance(values, da.Array) or not any(map(math.isnan, values.shape)):
        return values
    with checked_workers():
        return without_empty_chunks(values.copy().compute_chunk_sizes())


def check_machine_integers(integers: Any, what: str, beside: str) -> None:
    """Raise TypeError for an array of numbers as machine integers, the right operand of `beside`."""
    if is_number_array(integers):
        raise TypeError(
            f"{what} must be machine integers, got {with_article(type(integers))}; "
            f"{beside} x.astype(np.int64) takes its numbers"
        )


def with_machine_integers(x: Numbers, integers: Any, what: str) -> tuple[Any, ...]:
    """Return words and an array of machine integers, as :func:`blocks_with_integers`."""
    find_lengths(x)
    return blocks_with_integers((x.words,), x.words, integers, what)


def blocks_with_integers(blocks: Sequence[Any], words: Any, integers: Any, what: str) -> tuple[Any, ...]:
    """Add an array of machine integers to blocks of operands (:class:`Operands`); axes broadcast.

    The integers, which errors call `what`, are an array of any library, or nested lists, on the processor of
    `words`. TypeError or ValueError if they are of another type, masked, on another processor or of a shape
    that does not broadcast.
    """
    integers = convert_any(integers)
    if not hasattr(integers, "dtype"):
        integers = np.asarray(integers, like=meta_from_array(words))
    if integers.dtype.kind not in "iu":
        raise TypeError(f"{what} must be integers of a machine type, got {integers.dtype}")
    integers = make_readable(integers) if is_on_disk(integers) else integers
    _, integers = bring_to_one_processor([words, integers])
    integers = compute_lengths(integers)
    shape = broadcast_shape([*(tuple(block.shape[1:]) for block in blocks), tuple(integers.shape)])
    return tuple(with_axes(block, len(shape)) for block in (*blocks, as_declared(integers)[None]))


def as_mask(mask: Any) -> Any:
    """Check a Boolean array, and give it a residue axis of length 1."""
    if getattr(mask, "dtype", None) != np.bool_:
        kind = getattr(mask, "dtype", type(mask).__name__)
        raise TypeError(f"a condition must be a Boolean NumPy, CuPy or Dask array, got {kind}")
    return as_declared(mask)[None]


def bring_to_one_processor(arrays: Sequence[Any]) -> list[Any]:
    """Return arrays on one processor; TypeError if one is known to be of NumPy and another of CuPy.

    If chunks of one are on the GPU of each process that has one, tasks move NumPy's chunks there, and Dask
    hears the same of all, for it joins the empty arrays that stand for them.
    """
    if all(type(array) is np.ndarray for array in arrays):
        return list(arrays)
    metas = [meta_from_array(array) if isinstance(array, da.Array) else array for array in arrays]
    places = [backend_beside(meta) for meta in metas]
    if "auto" not in places:
        if len(set(places)) > 1:
            raise TypeError("operands are on different processors: one is NumPy's, another CuPy's")
        return list(arrays)
    like = metas[places.index("auto")]
    return [
        _move(as_lazy(array), like) if place == "cpu" else _beside(array, like)
        for array, place in zip(arrays, places, strict=True)
    ]


def _beside(array: Any, like: Any) -> da.Array:
    """Replace the empty array that stands for chunks by one such as `like`; the Dask array is the same."""
    lazy = as_lazy(array)
    meta = empty_like_chunks(like, lazy.ndim, lazy.dtype)
    return da.Array(lazy.dask, lazy.name, lazy.chunks, meta=meta)


def _move(array: da.Array, like: Any) -> da.Array:
    """Move chunks of words or plain values to the processor of `like`, an empty array."""
    return map_values(
        to_backend, array, dtype=array.dtype, like=like, chunks=array.chunks, backend=backend_beside(like)
    )


def broadcast_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common shape of arrays; ValueError if there is none."""
    if len(shapes) == 1:
        return shapes[0]
    if any(map(math.isnan, chain.from_iterable(shapes))):
        raise ValueError("chunk sizes are unknown; call compute_chunk_sizes() first")
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"shapes do not broadcast together: {' and '.join(map(str, shapes))}") from None


def with_axes(array: Any, ndim: int) -> Any:
    """Insert axes of length 1 after the axis of the words, until numbers have `ndim` axes."""
    missing = ndim - (array.ndim - 1)
    return array[(slice(None), *(None,) * missing)] if missing else array


def make_like(operands: Sequence[Operand], words: Any, system: Any, mode: str) -> Any:
    """Make an array of the operands' kind; with ``"flag"``, a pair of it and the mask in the last row."""
    array_type: Any = next(type(operand) for operand in operands if is_number_type(type(operand)))
    if mode == "flag":
        return array_type(words[:-1], system), words[-1] != 0
    return array_type(words, system)


def fill_like(words: Any, value: int, dtype: DTypeLike) -> Any:
    """Fill an array (*shape) with a value that ranges determine without reading words (rows, *shape).

    A lazy array stays in the graph: it may raise when it is computed, and such an error must not be lost.
    """
    if not isinstance(words, da.Array):
        return np.full_like(words[0], value, dtype=dtype)
    return map_chunks(_filled_block, words, dtype=dtype, value=value, kind=np.dtype(dtype))


def _filled_block(block: Array, *, value: int, kind: np.dtype[Any]) -> Array:
    return np.full_like(block[:1], value, dtype=kind)
