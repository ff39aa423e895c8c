"""Other programs' forms of numbers, lazy on Dask: residues under wide moduli, limbs, bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, SupportsIndex, TypeAlias, TypeVar

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from numpy.typing import DTypeLike, NDArray

from rnsdask.core.axes import axis_index
from rnsdask.core.errors import abbreviate, brief
from rnsdask.core.layout import check_dense, plan_chunks
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ways import must
from rnsdask.core.wide_moduli import WideModuli, moduli_of_residues
from rnsdask.fields.ntt import interleaved, separated
from rnsdask.fields.system import PrimeFields
from rnsdask.lazy.check import as_declared
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.inputs import ReadBySlices, convert_any, make_readable
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Numbers
from rnsdask.rns import foreign
from rnsdask.rns.system import RNS
from rnsdask.rns.values import check_bits, flat_integers
from rnsdask.typing import PlainArray

Kind = TypeVar("Kind", bound=np.generic)

Words: TypeAlias = "NDArray[np.uint32 | np.uint64] | da.Array | PlainArray[np.uint32 | np.uint64]"

_LIMB_TYPES = {32: np.uint32, 64: np.uint64}


def encode_chunk(block: Any, *, system: NumberSystem, bits: int | None = None) -> Any:
    """Encode a chunk of integers (1, *shape), or of their text, as words; NumberError beyond `bits` bits."""
    flat, shape = flat_integers(block[0])
    if bits is not None:
        check_bits(flat, shape, bits, system.is_signed)
    words = system.encode(flat)
    return words.reshape(len(words), *shape)


# ---- residues ---------------------------------------------------------------------------------------------


def move_residues_first(
    residues: Any, moduli: ModuliSet | WideModuli, axis: SupportsIndex, chunks: Any = None
) -> Any:
    """Move the axis of residues, of any integer type, to the front: (n, *shape).

    An array that is read by slices becomes lazy, as does a memory-mapped NumPy file if `chunks` are given.
    """
    check_dense(residues, "residues")
    residues = convert_any(residues)
    _check_array(residues, "residues", "iuO", "integers")
    axis = _checked_axis(residues, axis, len(moduli), "residue")
    if isinstance(residues, np.memmap) and chunks is not None:
        residues = _lazy_file(residues, axis, len(moduli), chunks)
    return _move_to_front(make_readable(residues, axis), axis)


def _lazy_file(residues: Any, axis: int, rows: int, chunks: Any) -> da.Array:
    lengths = list(residues.shape)
    del lengths[axis]
    shape = tuple(lengths)
    lengths = list(plan_chunks(chunks, shape, rows).chunks)
    lengths.insert(axis, -1)
    # Dask would copy the whole file if it took it for an array.
    mapped = ReadBySlices(residues, residues.dtype)
    lazy: da.Array = da.from_array(mapped, chunks=tuple(lengths), name=False)
    return lazy


def words_of_residues(residues: Any, moduli: ModuliSet | WideModuli, system: RNS, trusted: bool) -> Any:
    """Convert residues (n, *shape) of any integer type to words: :func:`.foreign.words_of_residues`."""
    options: dict[str, Any] = {"moduli": moduli, "system": system, "trusted": trusted}
    residues = as_declared(residues)
    return map_chunks(foreign.words_of_residues, residues, rows=system.rows, located=True, **options)


def elements_of_residues(residues: Any, moduli: WideModuli, trusted: bool) -> Any:
    """Convert residues (n, *shape) of any integer type to words of fields: :func:`.foreign.wide_residues`."""
    how: dict[str, Any] = {"rows": len(moduli), "dtype": np.uint64, "located": True}
    options: dict[str, Any] = {"moduli": moduli, "trusted": trusted}
    return map_chunks(foreign.wide_residues, as_declared(residues), **how, **options)


def to_residues(
    x: Numbers,
    moduli: ModuliSet | Iterable[SupportsIndex],
    *,
    axis: SupportsIndex = 0,
    dtype: DTypeLike | None = None,
    overflow: Literal["raise", "wrap"] = "raise",
) -> PlainArray[np.generic]:
    """Compute residues under any moduli up to 2**64, as :func:`.from_residues` reads them.

    Parameters
    ----------
    moduli : ModuliSet or iterable of int
        Pairwise coprime integers from 2 to 2**64.
    axis : int
        The axis of residues in the result: 0 for ``(k, *shape)``, -1 for ``(*shape, k)``.
    dtype : integer type, optional
        By default uint32 if no modulus is greater than 2**32, else uint64.
    overflow : {"raise", "wrap"}
        With ``"raise"``, numbers must be in the range of these moduli, the symmetric one if this array may
        have negative numbers, so that they can be read back. With ``"wrap"`` they need not be.

    Returns
    -------
    NumPy, CuPy or Dask array
        Lazy if this array is. Residues are never negative, like Python's remainders.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong.
    ValueError
        If a number is out of range. It names the first one's flat index, the first in its chunk; for a Dask
        array when it is computed.
    """
    others = moduli_of_residues(moduli)
    if overflow not in ("raise", "wrap"):
        raise ValueError(must("overflow", f"be 'raise' or 'wrap', got {brief(overflow)}"))
    smallest = np.uint32 if isinstance(others, ModuliSet) else np.uint64
    wanted = np.dtype(smallest if dtype is None else dtype)
    greatest = max(others) - 1
    if wanted.kind not in "iu" or greatest > np.iinfo(wanted).max:
        raise ValueError(f"dtype must be an integer type that holds residues up to {greatest}, got {wanted}")
    options: dict[str, Any] = {"system": x.system, "moduli": others, "wrap": overflow == "wrap"}
    how: dict[str, Any] = {"rows": len(others), "dtype": wanted, "located": True}
    place = _axis_of(x, axis)
    if isinstance(x.system, PrimeFields | RNS) and x.system.moduli == others:
        return _move_first_axis(x.words.astype(wanted), place)
    first: PlainArray[np.generic] = map_chunks(_residues_block, x.words, **how, **options, wanted=wanted)
    return _move_first_axis(first, place)


def _residues_block(block: Any, *, wanted: np.dtype[Any], **options: Any) -> Any:
    return foreign.residues_of_words(block, dtype=wanted, **options)


# ---- limbs and bytes --------------------------------------------------------------------------------------


def words_of_limbs(limbs: Any, system: NumberSystem, signed: bool, axis: int) -> Any:
    """Convert limbs of 32 or 64 bits, or bytes, along an axis, least significant first, to words."""
    limbs = _move_to_front(as_declared(make_readable(limbs, axis)), axis)
    options: dict[str, Any] = {"system": system, "signed": signed}
    return map_chunks(foreign.words_of_limbs, limbs, rows=system.rows, located=True, **options)


def checked_limbs(limbs: Any, axis: SupportsIndex) -> tuple[Any, int]:
    """Check an array of limbs from any library; return it with its axis of limbs."""
    check_dense(limbs, "limbs")
    limbs = convert_any(limbs)
    _check_array(limbs, "limbs", "u", "uint32 or uint64", (4, 8))
    return limbs, _checked_axis(limbs, axis, None, "limb")


def checked_bytes(data: Any, length: Any, byteorder: str | None) -> Any:
    """Return an array of bytes (*shape, length), least significant first, from such an array or a buffer."""
    little = _is_little(byteorder)
    if isinstance(data, bytes | bytearray | memoryview):
        if length is None:
            raise TypeError("a buffer needs the length of each number in bytes, as length=")
        width = _as_positive(length, "length")
        octets = np.frombuffer(data, dtype=np.uint8)
        if octets.size % width:
            raise ValueError(
                f"the buffer's size of {octets.size} bytes is not a multiple of the length of {width}: "
                f"{octets.size % width} bytes remain after the last whole number"
            )
        data = octets.reshape(-1, width)
    data = convert_any(data)
    _check_array(data, "bytes", "u", "uint8", (1,))
    data = make_readable(data, -1)
    _checked_axis(data, -1, None if length is None else _as_positive(length, "length"), "byte")
    return data if little else data[..., ::-1]


def to_limbs(
    x: Numbers, bits: int = 32, *, count: int | None = None, axis: SupportsIndex = -1
) -> PlainArray[np.uint32 | np.uint64]:
    """Convert to machine words, least significant first, as :func:`.from_limbs` reads them.

    They are in two's complement if the range has negative numbers.

    Parameters
    ----------
    bits : {32, 64}
        Bits of a limb, of uint32 or uint64.
    count : int, optional
        Limbs of a number; by default as many as the whole range needs.
    axis : int
        The axis of limbs in the result.

    Returns
    -------
    NumPy, CuPy or Dask array of shape (*shape, count)
        Lazy if this array is.

    Raises
    ------
    ValueError
        If a number does not fit. It names the first one's flat index, the first in its chunk; for a Dask
        array when it is computed.
    """
    if bits not in _LIMB_TYPES:
        raise ValueError(must("bits", f"be 32 or 64, got {brief(bits)}"))
    dtype = np.dtype(_LIMB_TYPES[bits])
    axis = _axis_of(x, axis)
    found: PlainArray[np.uint32 | np.uint64] = _move_first_axis(
        _limbs(x, _count(x, count, bits, "count"), dtype, reverse=False), axis
    )
    return found


def to_bytes(x: Numbers, length: int | None = None, byteorder: str = "little") -> PlainArray[np.uint8]:
    """Convert to bytes, uint8 of shape (*shape, length), as :func:`.from_bytes` reads them.

    They are in two's complement if the range has negative numbers. ``x.to_bytes(8).tobytes()`` is a buffer.

    Parameters
    ----------
    length : int, optional
        Bytes of a number; by default as many as the whole range needs.
    byteorder : {"little", "big"}
        Which byte comes first.

    Raises
    ------
    ValueError
        As :meth:`to_limbs`.
    """
    reverse = not _is_little(byteorder)
    found: PlainArray[np.uint8] = _move_first_axis(
        _limbs(x, _count(x, length, 8, "length"), np.dtype(np.uint8), reverse=reverse), x.words.ndim - 1
    )
    return found


def _limbs(x: Numbers, count: int, dtype: np.dtype[Any], *, reverse: bool) -> Any:
    options: dict[str, Any] = {"system": x.system, "count": count, "reverse": reverse, "limb_type": dtype}
    return map_chunks(_limbs_block, x.words, rows=count, dtype=dtype, located=True, **options)


def _limbs_block(block: Any, *, limb_type: np.dtype[Any], **options: Any) -> Any:
    return foreign.limbs_of_words(block, dtype=limb_type, **options)


def _count(x: Numbers, count: int | None, bits: int, name: str) -> int:
    """Return the number of limbs, by default as many as the system's range needs."""
    if count is not None:
        return _as_positive(count, name)
    lowest, highest = x.system.value_range
    needed: int = max(1, -(-(max(highest, ~lowest if lowest < 0 else 0).bit_length() + (lowest < 0)) // bits))
    return needed


# ---- shared helpers ---------------------------------------------------------------------------------------


def _is_little(byteorder: str | None) -> bool:
    if byteorder not in ("little", "big"):
        raise ValueError(f"byteorder must be 'little' or 'big', got {brief(byteorder)}")
    return byteorder == "little"


def _as_positive(value: Any, name: str) -> int:
    number = as_integer(value, name)
    if number < 1:
        raise ValueError(must(name, f"be at least 1, got {abbreviate(number)}"))
    return number


def _check_array(array: Any, what: str, kinds: str, wanted: str, sizes: tuple[int, ...] = ()) -> None:
    if not all(hasattr(array, name) for name in ("dtype", "shape", "ndim")):
        raise TypeError(f"{what} must be a NumPy, CuPy or Dask array, got {type(array).__name__}")
    dtype = np.dtype(array.dtype)
    if dtype.kind not in kinds or (sizes and dtype.itemsize not in sizes):
        raise TypeError(f"{what} must be {wanted}, got dtype {dtype}")
    if np.ma.is_masked(array):
        raise ValueError(f"{what} are masked; fill them first")


def _checked_axis(array: Any, axis: SupportsIndex, length: int | None, what: str) -> int:
    """Check that an array has an axis of residues, limbs or bytes and one of numbers; return the former."""
    if array.ndim < 2:
        raise ValueError(
            f"the array must have a {what} axis and at least one axis of numbers, got shape {array.shape}"
        )
    axis = axis_index(axis, array.ndim)
    found = array.shape[axis]
    if length is not None and found != length:
        rule = f"one row for each of the {length} moduli" if what == "residue" else f"a length of {length}"
        raise ValueError(f"the {what} axis (axis {axis}) must have {rule}, got shape {array.shape}")
    if not found > 0:
        raise ValueError(f"the {what} axis (axis {axis}) must not be empty, got shape {array.shape}")
    return axis


def _move_to_front(array: Any, axis: int) -> Any:
    """Move one axis to the front, in one chunk on Dask."""
    if not isinstance(array, da.Array):
        return np.moveaxis(array, axis, 0)
    return rechunk(da.moveaxis(array, axis, 0), {0: -1})


def _axis_of(x: Numbers, axis: SupportsIndex) -> int:
    """Check the position of a new axis among the axes of the numbers."""
    return axis_index(axis, x.words.ndim)


def _move_first_axis(array: PlainArray[Kind], axis: int) -> PlainArray[Kind]:
    """Move the first axis to another position."""
    given: Any = array
    move = da.moveaxis if isinstance(given, da.Array) else np.moveaxis
    placed: PlainArray[Kind] = given if axis == 0 else move(given, 0, axis)
    return placed


def to_interleaved(numbers: Words) -> PlainArray[np.uint32 | np.uint64]:
    """Transpose words from number by number to word by word, the layout of arrays of numbers.

    Parameters
    ----------
    numbers : array of uint32 or uint64, shape (*shape, k)
        NumPy, CuPy or Dask: the k digits, residues or limbs of each number. For N numbers they form an N x k
        matrix, which is transposed (a stride permutation).

    Returns
    -------
    array of the same type, shape (k, *shape)
        In C order, in new memory; lazy if `numbers` is, with the chunks of its numbers.

    Raises
    ------
    TypeError
        If it is not an array of these types.
    ValueError
        If it lacks an axis of numbers or an axis of words.
    """
    found: PlainArray[np.uint32 | np.uint64] = _permute(
        "to_interleaved", interleaved, numbers, numbers_first=True
    )
    return found


def from_interleaved(words: Words) -> PlainArray[np.uint32 | np.uint64]:
    """Transpose words (k, *shape), such as ``x.words``, to (*shape, k).

    The inverse of :func:`to_interleaved`, with the same types and errors.
    """
    found: PlainArray[np.uint32 | np.uint64] = _permute(
        "from_interleaved", separated, words, numbers_first=False
    )
    return found


def _permute(name: str, function: Callable[[Any], Any], array: Any, *, numbers_first: bool) -> Any:
    dtype = getattr(array, "dtype", None)
    if dtype not in (np.uint32, np.uint64) or not hasattr(array, "ndim"):
        found = type(array).__name__ if dtype is None else f"dtype {dtype}"
        raise TypeError(f"{name} takes an array of uint32 or uint64, got {found}")
    if array.ndim < 2:
        raise ValueError(f"{name} takes an axis of words and one of numbers, got shape {brief(array.shape)}")
    if not isinstance(array, da.Array):
        return function(array)
    axes = tuple(range(array.ndim))
    given, made = ((*axes[1:], 0), axes) if numbers_first else (axes, (*axes[1:], 0))
    array = rechunk(array, {given.index(0): -1})
    meta = meta_from_array(array).reshape((0,) * array.ndim)
    permuted: da.Array = da.blockwise(
        function, made, array, given, dtype=array.dtype, meta=meta, token=f"field-{name}"
    )
    return permuted
