"""Operands of element-wise operations: checked, broadcast as NumPy does, and mapped chunk by chunk.

An operation is a function of blocks: residues (n, *shape) of each operand, all with the same number of
axes, each axis of the common length or of length 1. It runs at once on NumPy and CuPy arrays; one Dask
operand makes the result lazy.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeGuard

import dask.array as da
import numpy as np
from dask.blockwise import Blockwise
from numpy.typing import DTypeLike

from rnsdask.backend import Array, backend_name
from rnsdask.core.errors import abbreviate
from rnsdask.core.layout import RESIDUE_DTYPE
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.rns.exact import residues_of


class ResidueArray(Protocol):
    """What an operand that is an array of numbers offers; :class:`.RNSArray` does."""

    @property
    def residues(self) -> Any:
        """NumPy, CuPy or Dask array of uint32, shape (n, *shape)."""

    @property
    def moduli(self) -> ModuliSet:
        """The moduli set."""

    @property
    def signed(self) -> bool:
        """Whether the range is symmetric around 0."""

    @property
    def bound(self) -> int | None:
        """An upper bound of every magnitude, or None."""


# Also gmpy2's and NumPy's integers: whatever has __index__ and is no bool. And Dask arrays of one integer.
Operand: TypeAlias = Any


@dataclass(frozen=True)
class Operands:
    """Operands that fit one another.

    Attributes
    ----------
    blocks : tuple of arrays
        First the masks, (1, *shape) Boolean, then the operands' residues, (n, *shape), with as many axes as
        the result; each axis of ``shape`` may have length 1 instead. A Python int is a NumPy array
        (n, 1, ..., 1) on every processor.
    moduli, signed
        What all operands have in common.
    bounds : tuple of int or None
        An upper bound of each operand's magnitude; of a Python int the magnitude itself, of a lazy one None.
    shape : tuple of int
        Shape of the result.
    """

    blocks: tuple[Any, ...]
    moduli: ModuliSet
    signed: bool
    bounds: tuple[int | None, ...]
    shape: tuple[int, ...]

    @property
    def bound(self) -> int | None:
        """An upper bound of the magnitude of all operands, or None if one of them has none."""
        known = [bound for bound in self.bounds if bound is not None]
        return max(known) if len(known) == len(self.bounds) else None


def is_residue_array(operand: Operand) -> TypeGuard[ResidueArray]:
    """Whether an operand is an array of numbers, not a single one."""
    return all(hasattr(operand, name) for name in ("residues", "moduli", "signed"))


def scalar(operand: Operand) -> int:
    """Return an operand that is a single integer as a Python int.

    Raises
    ------
    TypeError
        If it is anything else.
    """
    if isinstance(operand, da.Array):
        raise TypeError(
            "an operand must be an RNSArray or an integer, which may be lazy, got a Dask array of shape "
            f"{operand.shape} and dtype {operand.dtype}"
        )
    if hasattr(operand, "residues"):
        raise TypeError(
            "RNSArrays and IntervalRNSArrays do not mix; IntervalRNSArray.from_rns(x) and to_rns() convert"
        )
    return as_integer(operand, "an operand beside an array of numbers")


def function_of(name: str, *operands: Operand) -> Callable[..., Any] | None:
    """The function of a name for the arrays of another number system that are among the operands, if any are.

    Raises
    ------
    TypeError
        If that system has no such function.
    """
    for operand in operands:
        functions = getattr(type(operand), "functions_of_system", None)
        if functions is not None:
            if name not in functions:
                kind = type(operand).__name__
                raise TypeError(f"{name} takes RNSArrays, got an {kind}; its to_rns() makes one")
            function: Callable[..., Any] = functions[name]
            return function
    return None


def is_lazy_integer(operand: Operand) -> TypeGuard[da.Array]:
    """Whether an operand is one integer that is not computed yet, such as the maximum of a Dask array."""
    return isinstance(operand, da.Array) and operand.ndim == 0 and operand.dtype.kind in "iuO"


def integer_of(block: Any) -> int:
    """The integer of a lazy one's block; TypeError if it turns out to be something else."""
    return as_integer(block.item() if hasattr(block, "item") else block, "a lazy operand")


def lazy_column(
    integer: da.Array, ndim: int, rows: int, function: Callable[..., Any], **options: Any
) -> da.Array:
    """A lazy integer as the words of one number: a Dask array (rows, 1, ..., 1) with `ndim` axes of length 1.

    ``function(value, **options)`` gives the words (rows,) of a Python int.
    """
    axes = ndim + 1
    column: da.Array = da.map_blocks(
        _column_block,
        integer,
        function,
        axes,
        **options,
        new_axis=list(range(axes)),
        chunks=((rows,), *((1,),) * ndim),
        dtype=RESIDUE_DTYPE,
        meta=np.empty((0,) * axes, dtype=RESIDUE_DTYPE),
    )
    return column


def _column_block(block: Any, function: Callable[..., Any], axes: int, **options: Any) -> Any:
    return function(integer_of(block), **options).reshape(-1, *(1,) * (axes - 1))


def integer_residues(value: int, moduli: ModuliSet, signed: bool) -> Any:
    """Residues (n,) of an integer; ValueError if it is out of range."""
    check_in_range(value, moduli, signed)
    return np.array(residues_of(value, moduli), dtype=RESIDUE_DTYPE)


def map_with_integer(
    function: Callable[..., Any],
    words: Any,
    integer: da.Array,
    rows: int,
    *arguments: Any,
    dtype: DTypeLike = RESIDUE_DTYPE,
    **options: Any,
) -> da.Array:
    """Map chunks of words (n, *shape) and one lazy integer of any size to chunks of so many rows.

    Parameters
    ----------
    function
        Called with a chunk, the integer's block, `arguments` and `options`; Dask's ``block_info`` too, if it
        takes that.
    """
    lazy = words if isinstance(words, da.Array) else da.from_array(words, chunks=-1, asarray=False)
    mapped: da.Array = da.map_blocks(
        function,
        lazy,
        integer,
        *arguments,
        **options,
        chunks=((rows,), *lazy.chunks[1:]),
        dtype=dtype,
        meta=np.empty_like(lazy._meta, shape=(0,) * lazy.ndim, dtype=dtype),
    )
    return mapped


def prepare(*operands: Operand, masks: Sequence[Any] = ()) -> Operands:
    """Check operands against one another and broadcast their shapes.

    Parameters
    ----------
    *operands
        Arrays of numbers, or integers of the common range, lazy ones too; at least one array.
    masks : sequence of Boolean arrays
        Further inputs without residues, broadcast with the operands.

    Raises
    ------
    TypeError
        If an operand is neither, no operand is an array, a mask is not Boolean, or arrays are on different
        processors.
    ValueError
        If moduli sets, ranges or shapes disagree, an integer is out of range, or the shape of one of several
        arrays is unknown.
    """
    arrays = [operand for operand in operands if is_residue_array(operand)]
    if not arrays:
        raise TypeError("at least one operand must be an RNSArray, got integers only")
    moduli, signed = arrays[0].moduli, arrays[0].signed
    inputs = [*map(as_mask, masks), *(array.residues for array in arrays)]
    check_alike(*arrays)
    check_same_processor(inputs)
    shape = broadcast_shape([tuple(array.shape[1:]) for array in inputs])
    blocks, bounds = [with_axes(as_mask(mask), len(shape)) for mask in masks], []
    for operand in operands:
        if is_residue_array(operand):
            blocks.append(with_axes(operand.residues, len(shape)))
            bounds.append(operand.bound)
        elif is_lazy_integer(operand):
            options = {"moduli": moduli, "signed": signed}
            blocks.append(lazy_column(operand, len(shape), len(moduli), integer_residues, **options))
            bounds.append(None)
        else:
            value = scalar(operand)
            blocks.append(integer_residues(value, moduli, signed).reshape(-1, *(1,) * len(shape)))
            bounds.append(abs(value))
    return Operands(tuple(blocks), moduli, signed, tuple(bounds), shape)


def check_in_range(value: int, moduli: ModuliSet, signed: bool) -> None:
    """Raise ValueError if an integer lies outside the range of a moduli set."""
    lowest, highest = moduli.value_range(signed)
    if not lowest <= value <= highest:
        kind = "signed" if signed else "unsigned"
        raise ValueError(
            f"operand {abbreviate(value)} is outside the {kind} range "
            f"from {abbreviate(lowest)} to {abbreviate(highest)} of the moduli set"
        )


def check_alike(*arrays: ResidueArray) -> None:
    """Raise ValueError if arrays differ in moduli or range, TypeError if they are on different processors."""
    for other in arrays[1:]:
        _check_same_range(arrays[0], other)
    check_same_processor([array.residues for array in arrays])


def _check_same_range(a: ResidueArray, b: ResidueArray) -> None:
    if a.moduli != b.moduli:
        raise ValueError(f"operands have different moduli sets: {a.moduli!r} and {b.moduli!r}")
    if a.signed != b.signed:
        first, second = ("signed" if x.signed else "unsigned" for x in (a, b))
        raise ValueError(f"operands have different ranges: one is {first}, another {second}")


def as_mask(mask: Any) -> Any:
    """Check a Boolean array, and give it a residue axis of length 1."""
    if getattr(mask, "dtype", None) != np.bool_:
        kind = getattr(mask, "dtype", type(mask).__name__)
        raise TypeError(f"a condition must be a Boolean NumPy, CuPy or Dask array, got {kind}")
    return mask[None]


def check_same_processor(arrays: Sequence[Any]) -> None:
    """Raise TypeError if arrays are on different processors."""
    names = {backend_name(array._meta if isinstance(array, da.Array) else array) for array in arrays}
    if len(names) > 1:
        raise TypeError("operands are on different processors: one is NumPy's, another CuPy's")


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Common shape of arrays, or ValueError."""
    if len(shapes) == 1:
        return shapes[0]
    if any(np.isnan(length) for shape in shapes for length in shape):
        raise ValueError("chunk sizes are unknown; call compute_chunk_sizes() first")
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"shapes do not broadcast together: {' and '.join(map(str, shapes))}") from None


def with_axes(array: Any, ndim: int) -> Any:
    """Put axes of length 1 between the residue axis and the numbers' axes, until these are `ndim`."""
    missing = ndim - (array.ndim - 1)
    return array[(slice(None), *(None,) * missing)] if missing else array


def elementwise(
    function: Callable[..., Any],
    operands: Operands,
    *arguments: Any,
    dtype: DTypeLike = RESIDUE_DTYPE,
    drop_residues: bool = False,
) -> Any:
    """Apply a function to the blocks of operands.

    Parameters
    ----------
    function
        Called with one block for each of ``operands.blocks`` and `arguments`; a function of a module, for
        Dask sends it to workers. It returns residues (n, *shape) or, with `drop_residues`, an array
        (1, *shape).
    *arguments
        Passed on; they take part in Dask's tokens, so integers of any size go as text
        (:func:`.moduli.to_text`).
    dtype
        Type of what it returns.
    drop_residues
        Whether it returns one value for each number; the result then has no residue axis.

    Returns
    -------
    NumPy or CuPy array, or a lazy Dask array if an operand is one
        Shape (n, *shape), or `shape` with `drop_residues`.
    """
    if not any(isinstance(block, da.Array) for block in operands.blocks):
        result = function(*operands.blocks, *arguments)
    else:
        result = _map_lazily(function, operands, arguments, np.dtype(dtype), drop_residues)
    return result[0] if drop_residues else result


def _map_lazily(
    function: Callable[..., Any],
    operands: Operands,
    arguments: tuple[Any, ...],
    dtype: np.dtype[Any],
    drop_residues: bool,
) -> da.Array:
    axes = tuple(range(len(operands.shape) + 1))
    pairs: list[Any] = []
    for block in operands.blocks:
        if isinstance(block, da.Array):
            pairs += [block, axes]
        elif block.size == block.shape[0]:  # one number: it goes to the tasks as it is
            pairs += [block, None]
        else:
            pairs += [da.from_array(block, chunks=-1, asarray=False), axes]
    for argument in arguments:
        pairs += [argument, None]
    result: da.Array = da.blockwise(
        function,
        axes,
        *pairs,
        dtype=dtype,
        meta=np.empty_like(_prototype(operands.blocks), shape=(0,) * len(axes), dtype=dtype),
        # Dask's own way to drop an axis copies every chunk; an axis of length 1 costs nothing.
        adjust_chunks={0: 1 if drop_residues else len(operands.moduli)},
        token=f"rns-{function.__name__.strip('_')}",
    )
    return result


def _prototype(blocks: Sequence[Any]) -> Array:
    """An array of the processor that blocks are on: a column of one number is NumPy's on each."""
    metas = [block._meta if isinstance(block, da.Array) else block for block in blocks]
    return next((meta for meta in metas if backend_name(meta) == "cuda"), metas[0])


def map_located(
    function: Callable[..., Any],
    blocks: Sequence[Any],
    rows: int,
    *,
    token: str,
    dtype: DTypeLike = RESIDUE_DTYPE,
    **options: Any,
) -> da.Array:
    """Apply a function to the chunks of blocks, each of which learns where it lies.

    Parameters
    ----------
    function
        Called with one block for each of `blocks`, `options` and Dask's ``block_info``; it returns an array
        (rows, *shape).
    blocks : sequence of arrays (n, *shape)
        At least one a Dask array; broadcast as those of :class:`Operands`.
    """
    axes = tuple(range(max(block.ndim for block in blocks)))
    arrays = [
        da.from_array(block, chunks=-1, asarray=False)
        if not isinstance(block, da.Array) and block.size != block.shape[0]  # one number goes as it is
        else block
        for block in blocks
    ]
    pairs = [part for block in arrays if isinstance(block, da.Array) for part in (block, axes)]
    chunks, aligned = da.core.unify_chunks(*pairs)
    unified = iter(aligned)
    # Python ints are in NumPy always.
    like = np.empty(()) if np.dtype(dtype) == object else _prototype(arrays)
    mapped: da.Array = da.map_blocks(
        function,
        *(next(unified) if isinstance(block, da.Array) else block for block in arrays),
        token=token,
        chunks=((rows,), *(chunks[axis] for axis in axes[1:])),
        dtype=dtype,
        meta=np.empty_like(like, shape=(0,) * len(axes), dtype=dtype),
        **options,
    )
    return mapped


# Layers of graphs that only read, hold or cut what is there already; those of the first kind are Blockwise.
_READING_LAYERS = ("open-zarr-", "open-interval-rns-")
_CUTTING_LAYERS = ("array-", "getitem-", "rechunk-")


def filled_like(words: Any, value: int, dtype: DTypeLike) -> Any:
    """One value for each number of an array (rows, *shape), where ranges decide without its words.

    A lazy array stays in the graph, for it may raise when it is computed, and what is left out of a graph
    must not be able to. Only arrays that are just read, or in memory, or parts of such, are left out.

    Returns
    -------
    NumPy or CuPy array, or a lazy Dask array if `words` is one
        Shape `shape`.
    """
    if not isinstance(words, da.Array) or _is_plain(words):
        return np.full_like(words[0], value, dtype=dtype)
    filled = da.map_blocks(
        _filled_block,
        words,
        value,
        np.dtype(dtype),
        chunks=((1,), *words.chunks[1:]),
        dtype=dtype,
        meta=np.empty_like(words._meta, shape=(0,) * words.ndim, dtype=dtype),
    )
    return filled[0]


def _filled_block(block: Array, value: int, dtype: np.dtype[Any]) -> Array:
    return np.full_like(block[:1], value, dtype=dtype)


def _is_plain(words: da.Array) -> bool:
    """Whether making a lazy array takes nothing but reading and cutting."""
    return all(
        name.startswith(_READING_LAYERS if isinstance(layer, Blockwise) else _CUTTING_LAYERS)
        for name, layer in words.dask.layers.items()
    )
