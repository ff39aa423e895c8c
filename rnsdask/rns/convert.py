"""Conversion between Python integers, fixed-width numbers of 32-bit limbs, and residues.

Limb arrays are ``uint32`` of shape ``(*shape, L)``, the least significant limb first, in two's complement
when signed. The kernels convert them to and from residues; Python integers pass through limbs, in blocks, to
bound the memory in addition to the result.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, cpu, kernels_of, to_backend
from rnsdask.constants import forward_constants, reverse_constants
from rnsdask.core.errors import abbreviate, brief, out_of_range
from rnsdask.core.layout import as_matrix, check_dense, check_residue_array
from rnsdask.core.moduli import LIMB_BITS, ModuliSet, as_integer
from rnsdask.core.place import Locate
from rnsdask.core.ways import with_ways

_LIMB = np.dtype("<u4")

# Python integers converted at a time, enough to make the calls' own time small, and most bytes of their
# limbs, which stay in the second-level cache. A GPU takes more at a time.
BLOCK_NUMBERS = 2**15
_BLOCK_BYTES = 2**18
_GPU_BLOCK_BYTES = 8 * 2**20
# Numbers that kernels take together: blocks hold at least as many.
_TOGETHER, _LONG_BLOCK_BYTES = 64, 2**20

# Limbs of a range from which on numbers are measured before they are converted.
_FEW_LIMBS = 8

# Types whose values are integers; values of other types are checked one by one.
_INTEGER_TYPES = {int, gmpy2.mpz}


def to_residues(limbs: Array, moduli: ModuliSet, signed: bool = False, locate: Locate | None = None) -> Array:
    """Convert limbs (*shape, L) of any length, in two's complement if `signed`, to residues (n, *shape).

    ValueError if a number is out of the set's range; the message names the first one and its position.
    """
    matrix = _limb_matrix(limbs)
    count, limb_count = matrix.shape
    kernels = kernels_of(matrix)
    constants = forward_constants(moduli, limb_count, bool(signed))
    shape = limbs.shape[:-1]
    outside = kernels.first_outside(matrix, constants)
    if outside is not None:
        value = limbs_to_ints(matrix[outside : outside + 1], signed)[0]
        place = place_of(outside, shape) if locate is None else f"flat index {locate(outside)}"
        raise _moduli_range(moduli, signed).error(value, place)
    residues = np.empty_like(matrix, shape=(len(moduli), count), order="C")
    kernels.limbs_to_residues(matrix, constants, residues)
    return residues.reshape(len(moduli), *shape)


def unchanged(residues: Array) -> Array:
    """Return residues as they are: a conversion between equal moduli."""
    return residues


def to_limbs(residues: Array, moduli: ModuliSet, signed: bool = False) -> Array:
    """Convert residues to ``moduli.limb_count(signed)`` limbs (*shape, L), in two's complement if signed."""
    check_residue_array(residues, moduli)
    matrix = as_matrix(residues)
    limbs = kernels_of(matrix).residues_to_limbs(matrix, reverse_constants(moduli, bool(signed)))
    return limbs.reshape(*residues.shape[1:], limbs.shape[1])


def ints_to_residues(values: Iterable[Any], moduli: ModuliSet, signed: bool = False) -> NDArray[np.uint32]:
    """Convert integers of any type, in an array or another iterable, to residues (n, *shape) in NumPy.

    TypeError, with its position, for a value that is not an integer, because a float may already have lost
    bits; ValueError for an integer out of the set's range.
    """
    flat, shape = flat_values(values)
    allowed = _moduli_range(moduli, signed)
    most = _limbs_needed(flat, moduli.limb_count(signed), bool(signed))
    residues = np.empty((len(moduli), len(flat)), dtype=np.uint32)
    kernels = kernels_of(residues)
    for block in _blocks(len(flat), most):
        limb_count = _limbs_needed(flat[block], most, bool(signed))  # few long numbers are in few blocks
        constants = forward_constants(moduli, limb_count, bool(signed))
        limbs = _block_to_limbs(flat[block], limb_count, allowed, block.start, shape)
        outside = kernels.first_outside(limbs, constants)
        if outside is not None:
            position = block.start + outside
            raise allowed.error(int(flat[position]), place_of(position, shape))
        kernels.limbs_to_residues(limbs, constants, residues[:, block])
    return residues.reshape(len(moduli), *shape)


def _limbs_needed(flat: Any, most: int, signed: bool) -> int:
    """Limbs that integers from :func:`flat_values` need, rounded up to a power of two, of at most `most`.

    Each limb is multiplied for each modulus, also one that is 0.
    """
    if most <= _FEW_LIMBS or not len(flat):
        return most
    if isinstance(flat, np.ndarray):
        bits = 8 * int(flat.dtype.itemsize)
    else:
        greatest = cpu.greatest_magnitude(flat)
        if greatest is None:  # other types, which are looked at one by one
            return most
        bits = int(greatest).bit_length()
    needed: int = max(1, -(-(bits + signed) // LIMB_BITS))
    return min(most, 1 << (needed - 1).bit_length())


def residues_to_ints(residues: Array, moduli: ModuliSet, signed: bool = False) -> NDArray[np.object_]:
    """Convert residues to Python ints (*shape), in NumPy; a GPU's are copied to the host in blocks."""
    check_residue_array(residues, moduli)
    matrix = as_matrix(residues)
    kernels, constants = kernels_of(matrix), reverse_constants(moduli, bool(signed))
    values = np.empty(matrix.shape[1], dtype=object)
    for block in _blocks(len(values), constants.limb_count, _block_bytes(matrix)):
        limbs = kernels.residues_to_limbs(matrix[:, block], constants)
        values[block] = _block_to_ints(limbs, signed)
    return values.reshape(residues.shape[1:])


def ints_to_limbs(values: Iterable[Any], limb_count: int, signed: bool = False) -> NDArray[np.uint32]:
    """Convert integers that :func:`ints_to_residues` takes to limbs (*shape, limb_count), in NumPy.

    Errors are as in :func:`ints_to_residues`; `signed` limbs are in two's complement.
    """
    limb_count = as_integer(limb_count, "limb_count")
    if limb_count < 1:
        raise ValueError(f"limb_count must be at least 1, got {abbreviate(limb_count)}")
    return ints_to_bits(values, LIMB_BITS * limb_count, signed, f"{limb_count} limbs of {LIMB_BITS} bits")


def ints_to_bits(values: Iterable[Any], bits: int, signed: bool, owner: str) -> NDArray[np.uint32]:
    """Convert integers of `bits` bits to limbs; errors call their source `owner`.

    If `signed`, they are in two's complement, and unused bits of the highest limb are copies of the sign.
    Errors are as in :func:`ints_to_limbs`.
    """
    flat, shape = flat_values(values)
    ends = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    allowed = _Range(*ends, bool(signed), owner)
    limb_count = -(-bits // LIMB_BITS)
    limbs = np.empty((len(flat), limb_count), dtype=np.uint32)
    unused = LIMB_BITS * limb_count - bits
    for block in _blocks(len(flat), limb_count):
        limbs[block] = _block_to_limbs(flat[block], limb_count, allowed, block.start, shape)
        top = limbs[block, -1].view(np.int32 if signed else np.uint32)
        (outside,) = (top << unused >> unused != top).nonzero()
        if outside.size:
            position = block.start + int(outside[0])
            raise allowed.error(int(flat[position]), place_of(position, shape))
    return limbs.reshape(*shape, limb_count)


def limbs_to_ints(limbs: Array, signed: bool = False) -> NDArray[np.object_]:
    """Convert limbs (*shape, L), in two's complement when `signed`, to Python ints (*shape), in NumPy."""
    matrix = _limb_matrix(limbs)
    count, limb_count = matrix.shape
    values = np.empty(count, dtype=object)
    for block in _blocks(count, limb_count, _block_bytes(matrix)):
        values[block] = _block_to_ints(matrix[block], signed)
    return values.reshape(limbs.shape[:-1])


@dataclass(frozen=True)
class _Range:
    """Range of values that `owner` can represent."""

    lowest: int
    highest: int
    signed: bool
    owner: str

    def error(self, value: int, place: str) -> ValueError:
        kind = "signed" if self.signed else "unsigned"
        what = f"value {abbreviate(value)} at {place}"
        return out_of_range(what, (self.lowest, self.highest), kind, self.owner)


def _moduli_range(moduli: ModuliSet, signed: bool) -> _Range:
    return _Range(*moduli.value_range(signed), bool(signed), "the moduli set")


def place_of(position: int, shape: tuple[int, ...]) -> str:
    """Describe the place of a flat position in an array of this shape."""
    if len(shape) == 1:
        return f"position {position}"
    return f"index {tuple(map(int, np.unravel_index(position, shape)))}"


def _blocks(count: int, limb_count: int, block_bytes: int = _BLOCK_BYTES) -> Iterator[slice]:
    """Divide `count` numbers into blocks."""
    size = _LIMB.itemsize * limb_count
    length = max(1, min(BLOCK_NUMBERS, block_bytes // size), min(_TOGETHER, _LONG_BLOCK_BYTES // size))
    return (slice(first, min(first + length, count)) for first in range(0, count, length))


def _block_bytes(source: Array) -> int:
    return _BLOCK_BYTES if isinstance(source, np.ndarray) else _GPU_BLOCK_BYTES


def _limb_matrix(limbs: Array) -> Array:
    """Check an array of limbs, and return it as (N, L), contiguous along L; a view if possible."""
    if not all(hasattr(limbs, name) for name in ("dtype", "shape", "ndim")):
        raise TypeError(f"limbs must be a NumPy or CuPy array, got {type(limbs).__name__}")
    if limbs.dtype != np.uint32:
        raise TypeError(f"limbs must have dtype uint32, got {limbs.dtype}")
    if limbs.ndim < 2 or limbs.shape[-1] == 0:
        raise ValueError(
            f"limbs must have at least one axis of numbers and, last, an axis of at least one limb, "
            f"got shape {limbs.shape}"
        )
    matrix = limbs.reshape(-1, limbs.shape[-1])
    if matrix.shape[1] > 1 and matrix.strides[1] != matrix.itemsize:
        matrix = matrix.copy()
    return matrix


def flat_values(values: Any) -> tuple[Any, tuple[int, ...]]:
    """Values as a list, or as a one-dimensional array of a NumPy integer type, and their shape.

    `values` is an array in memory, nested lists or tuples, a matrix of another library, or any other ordered
    iterable. Callers check that each value is an integer, and name its position. TypeError if values are
    lazy, text, a set, an array of another type, or have a shape that cannot be read; ValueError if they are
    masked, or nested lists differ in length along an axis.
    """
    _check_source(values)
    values = _with_shape(values)
    if hasattr(values, "dtype") and hasattr(values, "ndim"):
        return _flat_array(values)
    integers = list(values)
    if integers and _is_row(integers[0]):
        return _flat_rows(integers)
    if integers and type(integers[0]) is gmpy2.mpz and set(map(type, integers)) == {gmpy2.mpz}:
        integers = list(map(int, integers))
    return integers, (len(integers),)


def as_python_ints(flat: list[Any], shape: tuple[int, ...]) -> list[int]:
    """Convert flat integers of any type to Python ints; TypeError if an item is not an integer."""
    if not flat or cpu.greatest_magnitude(flat) is not None:
        return flat
    return [_integer(value, i, shape) for i, value in enumerate(flat)]


def greatest_magnitude(flat: Any) -> int:
    """Greatest magnitude of integers from :func:`flat_values`; 0 without integers."""
    if len(flat) == 0:
        return 0
    if isinstance(flat, np.ndarray):
        return max(int(flat.max()), -int(flat.min()))
    greatest = cpu.greatest_magnitude(flat)
    return max(abs(int(value)) for value in flat) if greatest is None else greatest


def _check_source(values: Any) -> None:
    kind = type(values).__name__
    check_dense(values, "values")
    if hasattr(values, "__dask_graph__") and values.__dask_graph__() is not None:
        raise TypeError(f"values must be integers in memory, got a lazy {kind}; compute it first")
    if not isinstance(values, Iterable) and hasattr(values, "dtype") and getattr(values, "ndim", None):
        raise TypeError(f"values must be integers in memory, got a {kind}; np.asarray(values) reads it")
    if _shape_of(values) is None and (not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0):
        raise TypeError(f"values must be an iterable of integers, got {brief(values)} of type {kind}")
    if isinstance(values, str | bytes | bytearray | memoryview | Mapping | set | frozenset | ModuliSet):
        raise TypeError(f"values must be a list, an array or another sequence of integers, got a {kind}")


def _shape_of(values: Any) -> tuple[int, ...] | None:
    """Shape of another library's object that its items do not show, such as a matrix's; else None."""
    if isinstance(values, list | tuple) or hasattr(values, "dtype"):
        return None
    if callable(getattr(values, "nrows", None)) and callable(getattr(values, "ncols", None)):  # FLINT's
        return int(values.nrows()), int(values.ncols())
    shape = getattr(values, "shape", None)
    shape = tuple(shape) if isinstance(shape, Iterable) else ()
    return shape if len(shape) > 1 else None


def _with_shape(values: Any) -> Any:
    """Convert another library's object with a shape of its own to NumPy; return all else as it is."""
    shape = _shape_of(values)
    if shape is None:
        return values
    array = None
    if hasattr(values, "__array__"):
        array = np.asarray(values)
    elif hasattr(values, "tolist"):
        array = np.array(values.tolist(), dtype=object)
        array = array if array.size else array.reshape(shape)
    if array is None or array.shape != shape:
        kind = f"{type(values).__name__} of shape {shape}"
        raise TypeError(f"values must keep their shape, got a {kind}; give nested lists or a NumPy array")
    return array


def _flat_array(values: Any) -> tuple[Any, tuple[int, ...]]:
    """Flatten an array of one axis or more, as :func:`flat_values` does."""
    if np.ma.is_masked(values):
        first = int(np.flatnonzero(np.ma.getmaskarray(values))[0])
        raise ValueError(f"values are masked, the first at {place_of(first, values.shape)}; fill them first")
    # Without a mask, and without np.matrix's way to reshape.
    array = np.asarray(to_backend(values, "cpu"))
    if array.dtype.kind in "mMV":
        raise TypeError(f"values must be integers, got an array of dtype {array.dtype}")
    flat = array.reshape(-1)
    # Not integers, such as floats, are refused one by one, with their positions.
    return (flat if flat.dtype.kind in "iu" else flat.tolist()), array.shape


def _is_row(value: Any) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _flat_rows(rows: list[Any]) -> tuple[list[Any], tuple[int, ...]]:
    """Flatten nested lists, as :func:`flat_values` does."""
    flat: list[Any] = []
    shapes: set[tuple[int, ...]] = set()
    for row in rows:
        part, shape = flat_values(row) if _is_row(row) else ([row], ())
        flat += part if isinstance(part, list) else part.tolist()
        shapes.add(shape)
    if len(shapes) > 1:
        raise ValueError("nested lists of values must all have one length along each axis")
    return flat, (len(rows), *shapes.pop())


def _block_to_limbs(
    values: Any, limb_count: int, allowed: _Range, first: int, shape: tuple[int, ...]
) -> NDArray[np.uint32]:
    """Convert a part of an array's values, from flat position `first` on, to limbs.

    A value that does not fit into the limbs is outside the allowed range, and an error.
    """
    if isinstance(values, np.ndarray):
        outside = np.flatnonzero((values < allowed.lowest) | (values > allowed.highest))
        if outside.size:
            raise allowed.error(int(values[outside[0]]), place_of(first + int(outside[0]), shape))
        return _machine_integers_to_limbs(values, limb_count)
    limbs = np.empty((len(values), limb_count), dtype=np.uint32)
    if cpu.ints_to_limbs(values, allowed.signed, limbs) < len(values):
        values = [_integer(value, first + i, shape) for i, value in enumerate(values)]
        if cpu.ints_to_limbs(values, allowed.signed, limbs) < len(values):
            i = next(i for i, value in enumerate(values) if not allowed.lowest <= value <= allowed.highest)
            raise allowed.error(values[i], place_of(first + i, shape))
    return limbs


def _integer(value: Any, position: int, shape: tuple[int, ...]) -> int:
    if type(value) in _INTEGER_TYPES:
        return int(value)
    try:
        return as_integer(value, f"value at {place_of(position, shape)}")
    except TypeError as error:
        if not isinstance(value, float | np.floating):
            raise
        hint = "a float may have lost bits already; in NumPy, give large integers dtype=object"
        raise TypeError(with_ways(error, hint)) from None


def _machine_integers_to_limbs(values: NDArray[Any], limb_count: int) -> NDArray[np.uint32]:
    """Convert NumPy integers to limbs that are known to hold them."""
    wide = values.astype("<i8" if values.dtype.kind == "i" else "<u8")
    limbs = np.empty((len(values), limb_count), dtype=np.uint32)
    limbs[:, :2] = wide.view(_LIMB).reshape(-1, 2)[:, :limb_count]
    limbs[:, 2:] = np.where(wide < 0, np.uint32(2**32 - 1), np.uint32(0))[:, None]
    return limbs


def _block_to_ints(limbs: Array, signed: bool) -> list[int]:
    """Convert (N, L) limbs to Python ints."""
    return cpu.limbs_to_ints(to_backend(limbs, "cpu"), signed)
