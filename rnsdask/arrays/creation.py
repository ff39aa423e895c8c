"""Ways to make an array of numbers: from integers, residues, limbs, bytes, stores, and at random."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, SupportsIndex, TypeAlias, TypeVar, overload

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.arrays.field_array import FieldArray
from rnsdask.arrays.interval_rns_array import IntervalRNSArray
from rnsdask.arrays.number_array import NumberArray
from rnsdask.arrays.positional_array import PositionalArray
from rnsdask.arrays.rns_array import RNSArray, array_of_foreign_residues, array_of_residues
from rnsdask.backend import check_backend
from rnsdask.cluster.limits import check_bytes
from rnsdask.core import layout
from rnsdask.core.errors import abbreviate, brief, with_article
from rnsdask.core.moduli import ModuliSet, as_bool, as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Grid, Place
from rnsdask.core.ranges import range_of_bits
from rnsdask.core.ways import Setting, must
from rnsdask.core.wide_moduli import moduli_of_residues
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.system import PrimeFields, WidePrimeFields
from rnsdask.lazy.check import as_declared
from rnsdask.lazy.chunks import normalize_chunks
from rnsdask.lazy.foreign import (
    checked_bytes,
    checked_limbs,
    elements_of_residues,
    encode_chunk,
    move_residues_first,
    words_of_limbs,
)
from rnsdask.lazy.inputs import convert_any, is_on_disk, make_readable
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.read import read_words
from rnsdask.positional.system import Positional
from rnsdask.rns.foreign import Moduli, system_of
from rnsdask.rns.system import RNS
from rnsdask.rns.values import (
    OfBits,
    as_system,
    check_bits,
    flat_integers,
    system_of_range,
    system_that_holds,
)
from rnsdask.typing import Shape, SystemOf

Chunks = layout.Chunks

Kind = TypeVar("Kind", bound=np.generic)
A = TypeVar("A", bound=NumberArray)
"""Array class of the number system that a function is given."""

StoredArray: TypeAlias = "RNSArray | PositionalArray | FieldArray | IntervalRNSArray"
"""Array of the number system that a store has."""

_SEED_BITS = 128
"""Bits of a seed that is drawn, and of the longest seed that is part of an array's name."""


@overload
def from_ints(
    ints: Any,
    moduli: ModuliSet | None = None,
    signed: bool | None = None,
    chunks: Chunks | None = None,
    *,
    bits: SupportsIndex | None = None,
    scale: SupportsIndex | None = None,
) -> RNSArray: ...
@overload
def from_ints(
    ints: Any,
    moduli: SystemOf[A],
    signed: bool | None = None,
    chunks: Chunks | None = None,
    *,
    bits: SupportsIndex | None = None,
    scale: SupportsIndex | None = None,
) -> A: ...
def from_ints(
    ints: Any,
    moduli: ModuliSet | SystemOf[A] | None = None,
    signed: bool | None = None,
    chunks: Chunks | None = None,
    *,
    bits: SupportsIndex | None = None,
    scale: SupportsIndex | None = None,
) -> RNSArray | A:
    """Make an array of exact integers, in memory unless `chunks` or what it is made of are lazy.

    Without `moduli` and `bits` its range grows: results take more moduli where their bounds need them, and a
    sign where they may be negative, so that they equal those of Python's integers (docs/growing.md).

    Parameters
    ----------
    ints : iterable of int or gmpy2.mpz, nested lists, or array
        The numbers. A NumPy array of an integer type or of objects keeps its shape; nested lists have the
        shape that NumPy gives them. An item of a list or an array may be text: decimal, or hexadecimal after
        ``0x``. A Series or an Index of pandas, or an array of Arrow, may hold integers, text, or decimals
        without fraction. A matrix of FLINT or SymPy, or any other array in memory, keeps its shape. A Dask
        array stays lazy and keeps its chunks, as does a chunked array of Zarr, TensorStore or h5py.
    moduli : ModuliSet, RNS, IntervalRNS, Positional, PrimeFields or FermatField, optional
        The moduli set, large enough for every number, or a number system. Without it and without `bits`, the
        fewest 32-bit moduli that hold all numbers. For a lazy array they hold its integer type; a lazy array
        of objects or text needs `moduli` or `bits`. Under fields, any integer stands for the element with its
        residues.
    signed : bool, optional
        Symmetric range instead of ``0 .. M-1``; a system has its own. Without moduli, the range is signed if
        a number is negative, or if the type of a lazy array is signed.
    chunks : "auto", int, tuple, mapping, or str, optional
        Chunks of a Dask array, as :meth:`.NumberArray.rechunk` takes them. Without it, what is in memory
        gives an array in memory, and a lazy array keeps its chunks, as it does with ``"auto"``.
    bits : int, optional
        Instead of `moduli`: every number has at most that many bits, the sign among them. The array has
        ``ModuliSet.for_bits(bits)``, whose whole range results may use; it does not grow.
    scale : int, optional
        For decimals of Arrow, pandas or polars, which may have fractions: the integers count units of
        ``10**-scale``, so that ``1.50`` with ``scale=2`` is 150.

    Returns
    -------
    RNSArray, IntervalRNSArray, PositionalArray or FieldArray
        The class of the system.

    Raises
    ------
    TypeError
        If a value is not an integer; floats are refused because they may have lost bits already. If `ints` is
        a single text, a set, a mapping, or a lazy collection other than a Dask array. If `bits` and `moduli`
        are both given.
    ValueError
        If a value is out of range, masked or missing, or a text is not an integer. The errors name the
        position; for a Dask array the position in its chunk, when it is computed. If a number is beyond
        `bits` or the bound of the system, or `signed` contradicts it.
    """
    found: RNSArray | A
    of_bits = None if bits is None else OfBits.checked(bits, moduli)
    ints = convert_any(ints)
    if is_on_disk(ints):
        ints = make_readable(ints)
    given: Any = moduli
    unit = None if scale is None else as_integer(scale, "scale")
    if isinstance(ints, da.Array):
        if unit is not None:
            raise TypeError(f"scale={unit} is for decimals of Arrow, pandas or polars, got a Dask array")
        found = _from_lazy_ints(ints, given, signed, chunks, of_bits)
        return found
    flat, shape = flat_integers(ints, unit)
    if given is None:
        least = system_that_holds(flat, shape, signed)
        given, signed = (least, None) if of_bits is None else (of_bits.moduli, least.signed)
        if of_bits is not None:
            check_bits(flat, shape, of_bits.bits, least.signed)
    system = as_system(given, signed=signed)
    words = system.encode(flat).reshape(system.rows, *shape)
    bound = system.bound_of(flat)
    if system.bound is not None and bound is not None and bound > system.bound:
        raise ValueError(f"a number has the magnitude {abbreviate(bound)}, beyond the bound of {system!r}")
    array = system.array_type(words, system.with_bound(bound))
    found = array if chunks is None else array.rechunk(chunks)
    return found


@overload
def asarray(x: A, moduli: None = None, *, bits: None = None, chunks: Chunks | None = None) -> A: ...
@overload
def asarray(x: Any, moduli: SystemOf[A], *, bits: None = None, chunks: Chunks | None = None) -> A: ...
@overload
def asarray(
    x: Any,
    moduli: ModuliSet | None = None,
    *,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray: ...
def asarray(
    x: Any,
    moduli: ModuliSet | SystemOf[A] | None = None,
    *,
    bits: SupportsIndex | None = None,
    chunks: Chunks | None = None,
) -> RNSArray | A:
    """Return an array of numbers as it is, and make one of all else by :func:`from_ints`.

    Raises
    ------
    TypeError
        As :func:`from_ints`, or if `x` is an array of numbers and `moduli` or `bits` are given.
    ValueError
        As :func:`from_ints`.
    """
    if not isinstance(x, NumberArray):
        options: Any = {"moduli": moduli, "bits": bits, "chunks": chunks}
        made: RNSArray | A = from_ints(x, **options)
        return made
    if moduli is not None or bits is not None:
        what = "moduli" if bits is None else "bits"
        raise TypeError(
            f"{what}= is for integers, and {with_article(type(x))} has its own system; "
            "x.extend() and conversions as x.to_positional() make others"
        )
    given: Any = x
    found: RNSArray | A = given if chunks is None or chunks == "auto" else given.rechunk(chunks)
    return found


array = asarray  # arrays of numbers are never changed, so that none need be copied


def _from_lazy_ints(
    ints: da.Array,
    moduli: ModuliSet | NumberSystem | None,
    signed: bool | None,
    chunks: Chunks | None,
    of_bits: OfBits | None,
) -> Any:
    """Make a lazy array from a Dask array of integers, with its chunks unless others are given."""
    if ints.ndim == 0 or ints.dtype.kind not in "iuOSUT":
        raise TypeError(f"a lazy array must be of integers, of one axis or more, got {ints!r}")
    limits = np.iinfo(ints.dtype) if ints.dtype.kind in "iu" else None
    # The type proves a range of the numbers; bits and the bound of a system are checked.
    known = None if limits is None else max(int(limits.max), -int(limits.min))
    how: dict[str, Any] = {}
    if of_bits is not None:
        is_signed = (limits is not None and limits.min < 0) if signed is None else as_bool(signed, "signed")
        moduli, signed = of_bits.moduli, is_signed
        greatest = max(map(abs, range_of_bits(of_bits.bits, is_signed)))
        if known is None or known > greatest or (limits is not None and limits.min < 0 and not is_signed):
            how, known = {"bits": of_bits.bits}, greatest
    if moduli is None:
        if limits is None:
            raise TypeError(
                f"a lazy array of {ints.dtype}, whose numbers may have any size, needs the moduli that hold "
                "them: from_ints(x, moduli), or from_ints(x, bits=bits)"
            )
        moduli, signed = system_of_range(int(limits.min), int(limits.max), signed), None
    system = as_system(moduli, signed=signed)
    like = np.empty(0, system.word_dtype)
    how |= {"rows": system.rows, "like": like, "system": system}
    words = map_chunks(encode_chunk, as_declared(ints)[None], **how)
    array = system.array_type(words, system.with_bound(known))
    array = array if system.bound is None else array.with_bound(system.bound)
    return array if chunks is None or chunks == "auto" else array.rechunk(chunks)


@overload
def from_residues(
    residues: Any,
    moduli: PrimeFields,
    signed: bool | None = None,
    bound: int | None = None,
    *,
    axis: SupportsIndex = 0,
    chunks: Chunks | None = None,
    trusted: bool = False,
) -> FieldArray: ...
@overload
def from_residues(
    residues: Any,
    moduli: ModuliSet | RNS | Iterable[SupportsIndex],
    signed: bool | None = None,
    bound: int | None = None,
    *,
    axis: SupportsIndex = 0,
    chunks: Chunks | None = None,
    trusted: bool = False,
) -> RNSArray: ...
def from_residues(
    residues: Any,
    moduli: ModuliSet | RNS | Iterable[SupportsIndex] | PrimeFields,
    signed: bool | None = None,
    bound: int | None = None,
    *,
    axis: SupportsIndex = 0,
    chunks: Chunks | None = None,
    trusted: bool = False,
) -> RNSArray | FieldArray:
    """Make an array of integers from their residues, which are checked.

    Parameters
    ----------
    residues : array of an integer type, shape (n, *shape)
        NumPy, CuPy or Dask, or another library's array in memory. An array that is read by slices, such as of
        Zarr or TensorStore, makes a lazy array with its chunks. Residue i of every number must be from 0 to
        ``moduli[i] - 1``. A NumPy or CuPy array is copied, so that later writes to it change no number; a
        read-only NumPy array of uint32 is not copied: do not write to its memory afterwards, not even through
        another view.
    moduli : ModuliSet, RNS, PrimeFields or iterable of int
        The n moduli, or a number system. Moduli may be up to 2**64, as in homomorphic encryption: if one is
        greater than 2**32, each number is converted exactly to the 32-bit moduli that ``ModuliSet.for_bits``
        makes for the length of the product. Such numbers do not wrap: ``overflow="wrap"`` is an error, which
        names the way out.
    signed : bool, optional
        Symmetric range of the moduli given instead of ``0 .. M-1``; a system has its own.
    bound : int, optional
        Every number must be at most this in magnitude; a system has its own.
    axis : int
        The axis of residues, such as -1 for ``(*shape, n)``.
    chunks : "auto", int, or tuple of int, optional
        Chunks along the axes of the numbers; they make a Dask array. A file that NumPy has memory-mapped is
        then read chunk by chunk.
    trusted : bool
        Take the array as it is: neither checked nor copied. Results are wrong if a residue or the bound is
        wrong, or if the array is written to.

    Returns
    -------
    RNSArray, or FieldArray for PrimeFields

    Raises
    ------
    TypeError, ValueError
        If the dtype, the shape, a modulus, a residue or the bound is wrong. Residues of a Dask array and its
        bound are checked when it is computed.
    """
    if isinstance(moduli, PrimeFields):
        as_system(moduli, signed=signed, bound=bound)
        if isinstance(moduli, WidePrimeFields):
            moved = move_residues_first(residues, moduli.moduli, axis, chunks)
            elements = FieldArray(elements_of_residues(moved, moduli.moduli, trusted), moduli)
            return elements if chunks is None else elements.rechunk(chunks)
        options: dict[str, Any] = {"axis": axis, "chunks": chunks, "trusted": trusted}
        return FieldArray(from_residues(residues, moduli.moduli, **options).words, moduli)
    given, system = _system_of_residues(moduli, signed, bound)
    found = move_residues_first(residues, given, axis, chunks)
    # Other layouts are brought into the layout of words.
    if isinstance(given, ModuliSet) and found.dtype == np.uint32 and axis in (0, -found.ndim):
        array = array_of_residues(found, system, trusted=trusted)
    else:
        array = array_of_foreign_residues(found, given, system, trusted=trusted)
    return array if chunks is None else array.rechunk(chunks)


def _system_of_residues(moduli: Any, signed: bool | None, bound: int | None) -> tuple[Moduli, RNS]:
    """Return the moduli of given residues and the system of their array; TypeError if it has no residues."""
    if isinstance(moduli, FermatField):
        raise TypeError(f"elements of {moduli!r} have digits: FieldArray.from_words makes an array of them")
    if isinstance(moduli, Positional):
        raise TypeError(f"numbers of {moduli!r} have limbs: from_limbs makes an array of them")
    if isinstance(moduli, RNS):
        return moduli.moduli, as_system(moduli, signed=signed, bound=bound)
    if isinstance(moduli, NumberSystem):
        raise TypeError(
            f"residues alone have no signs; IntervalRNSArray.from_residues takes both, got {moduli!r}"
        )
    given = moduli_of_residues(moduli)
    return given, system_of(given, False if signed is None else signed, bound)


@overload
def from_limbs(
    limbs: Any,
    moduli: ModuliSet | None = None,
    signed: bool | None = None,
    *,
    axis: SupportsIndex = -1,
    chunks: Chunks | None = None,
) -> RNSArray: ...
@overload
def from_limbs(
    limbs: Any,
    moduli: SystemOf[A],
    signed: bool | None = None,
    *,
    axis: SupportsIndex = -1,
    chunks: Chunks | None = None,
) -> A: ...
def from_limbs(
    limbs: Any,
    moduli: ModuliSet | SystemOf[A] | None = None,
    signed: bool | None = None,
    *,
    axis: SupportsIndex = -1,
    chunks: Chunks | None = None,
) -> RNSArray | A:
    """Make an array of integers from machine words, the least significant first.

    Parameters
    ----------
    limbs : array of uint32 or uint64, shape (*shape, L)
        NumPy, CuPy or Dask. An array that is read by slices, such as of Zarr, makes a lazy array.
    moduli : ModuliSet, RNS, IntervalRNS, Positional or PrimeFields, optional
        The moduli set, or a number system. Without it, ``ModuliSet.for_bits`` of a number's width, which
        holds every number.
    signed : bool, optional
        Whether limbs are in two's complement and the range is symmetric; by default as in the system.
    axis : int
        The axis of limbs.
    chunks : "auto", int, or tuple of int, optional
        Chunks along the axes of the numbers; they make a Dask array.

    Returns
    -------
    RNSArray, IntervalRNSArray, PositionalArray or FieldArray
        The class of the system, on the processor of `limbs`; lazy if `limbs` are.

    Raises
    ------
    TypeError, ValueError
        If type, shape or axis is wrong, or `signed` contradicts the system.
    ValueError
        If a number is out of range. It names the first one's flat index, the first in its chunk; for a Dask
        array when it is computed.
    """
    limbs, axis = checked_limbs(limbs, axis)
    found: RNSArray | A = _from_words(
        limbs, axis, 8 * limbs.dtype.itemsize * limbs.shape[axis], moduli, signed, chunks
    )
    return found


@overload
def from_bytes(
    data: Any,
    length: SupportsIndex | None = None,
    byteorder: Literal["little", "big"] = "little",
    moduli: ModuliSet | None = None,
    signed: bool | None = None,
    *,
    chunks: Chunks | None = None,
) -> RNSArray: ...
@overload
def from_bytes(
    data: Any,
    length: SupportsIndex | None = None,
    byteorder: Literal["little", "big"] = "little",
    *,
    moduli: SystemOf[A],
    signed: bool | None = None,
    chunks: Chunks | None = None,
) -> A: ...
def from_bytes(
    data: Any,
    length: SupportsIndex | None = None,
    byteorder: Literal["little", "big"] = "little",
    moduli: ModuliSet | SystemOf[A] | None = None,
    signed: bool | None = None,
    *,
    chunks: Chunks | None = None,
) -> RNSArray | A:
    """Make an array of integers from bytes, as ``int.from_bytes`` reads each.

    Parameters
    ----------
    data : bytes-like, or array of uint8, shape (*shape, length)
        A buffer of consecutive numbers, or an array as :func:`from_limbs` takes it.
    length : int
        Bytes of a number; optional for an array, where it is the length of the last axis.
    byteorder : {"little", "big"}
        Which byte comes first.
    moduli, signed, chunks
        As in :func:`from_limbs`.

    Returns
    -------
    As in :func:`from_limbs`.

    Raises
    ------
    TypeError, ValueError
        As :func:`from_limbs`; or if the size of a buffer is not a multiple of `length`.
    """
    octets = checked_bytes(data, length, byteorder)
    found: RNSArray | A = _from_words(octets, octets.ndim - 1, 8 * octets.shape[-1], moduli, signed, chunks)
    return found


def _from_words(
    limbs: Any,
    axis: int,
    bits: int,
    moduli: Any,
    signed: bool | None,
    chunks: Chunks | None,
) -> Any:
    """Make an array of numbers from limbs of `bits` bits in total."""
    if isinstance(moduli, NumberSystem) and not moduli.extends:
        system: Any = moduli  # its numbers may be unsigned while the limbs are signed
    else:
        system = as_system(ModuliSet.for_bits(bits) if moduli is None else moduli, signed=signed)
    is_signed = system.is_signed if signed is None else signed
    words = words_of_limbs(limbs, system, is_signed, axis)
    width_bound = 2 ** (bits - 1) if is_signed else 2**bits - 1
    if system.bound is not None and system.bound < width_bound:
        array = system.array_type(words, system.with_bound(None)).with_bound(system.bound)
    else:
        array = system.array_type(words, system.with_bound(width_bound))
    return array if chunks is None else array.rechunk(chunks)


@overload
def random(
    moduli: SystemOf[A],
    shape: Shape,
    *,
    bits: SupportsIndex | None = None,
    seed: SupportsIndex | None = None,
    chunks: Chunks | None = None,
    signed: bool | None = None,
) -> A: ...
@overload
def random(
    moduli: ModuliSet | Shape | None = None,
    shape: Shape | None = None,
    *,
    bits: SupportsIndex | None = None,
    seed: SupportsIndex | None = None,
    chunks: Chunks | None = None,
    signed: bool | None = None,
) -> RNSArray: ...
def random(
    moduli: SystemOf[A] | ModuliSet | Shape | None = None,
    shape: Shape | None = None,
    *,
    bits: SupportsIndex | None = None,
    seed: SupportsIndex | None = None,
    chunks: Chunks | None = None,
    signed: bool | None = None,
) -> RNSArray | A:
    """Make an array of numbers uniform in a range, the same for the same seed and chunks.

    ``random(shape, bits=256)`` has numbers from 0 to ``2**256 - 1``; ``random(moduli, shape)`` has numbers of
    a moduli set's whole range. Each chunk has its own stream (NumPy's Philox, seeded with the seed and the
    chunk), so the numbers do not depend on workers or processors. An array in memory has the numbers of
    ``chunks="auto"``.

    Parameters
    ----------
    moduli : ModuliSet, RNS, Positional, PrimeFields or FermatField, optional
        The moduli set, or a number system. Numbers are uniform in the whole range, or in its part within the
        system's bound. Without it, `bits` chooses the fewest 32-bit moduli, and the shape comes first.
    shape : int or sequence of int
        The lengths of the axes.
    bits : int, optional
        Numbers are below ``2**bits``; in a signed range, below ``2**(bits - 1)`` in magnitude.
    chunks : "auto", int, tuple, mapping, or str, optional
        Chunks of a Dask array, as :meth:`.NumberArray.rechunk` takes them. Without it the array is in memory.
    seed : int, optional
        Not negative. Without it, 128 bits are drawn from the operating system: two such arrays differ. The
        seed stands in a Dask array's name, ``x.words.name`` = ``"random-seed-<seed>-..."``, so that the
        same numbers can be made again. The array has the same numbers whenever it is computed.

    Returns
    -------
    RNSArray, PositionalArray or FieldArray
        The class of the system.

    Raises
    ------
    TypeError
        If both moduli and bits are missing, or the shape is.
    ValueError
        If `shape` or `seed` is negative, `chunks` do not fit the shape, or the range is too small for numbers
        of `bits`.
    JobError
        If the array is to be in memory, and is larger than that.
    """
    if shape is None and bits is not None:
        moduli, shape = None, moduli
    if shape is None or moduli is bits is None:
        raise TypeError("random takes moduli and a shape, random(moduli, shape), or random(shape, bits=256)")
    found: RNSArray | A
    system = _system_with_bound(moduli, bits, signed)
    system.random_words((0,), np.random.default_rng(0))  # an error if the system has no random numbers
    lengths = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    sizes = tuple(as_integer(s, "shape") for s in lengths)
    seed = fresh_seed() if seed is None else as_integer(seed, "seed")
    if seed < 0:
        raise ValueError(must("seed", f"not be negative, got {abbreviate(seed)}"))
    if chunks is None:
        check_in_memory(sizes, system)
    lengths_of_chunks = normalize_chunks("auto" if chunks is None else chunks, sizes, system.words32)
    if chunks is None:
        found = system.array_type(_random_words(system, seed, lengths_of_chunks), system)
        return found
    described = (system, hex(seed), sizes, lengths_of_chunks)
    shown = f"-{seed}" if seed.bit_length() <= _SEED_BITS else ""
    words = map_chunks(
        _random_block,
        rows=system.rows,
        chunks=lengths_of_chunks,
        located=True,
        name=f"random-seed{shown}-{tokenize(described)}",
        system=system,
        seed=seed,
        grid=tuple(map(len, lengths_of_chunks)),
    )
    found = system.array_type(words, system)
    return found


def _random_words(system: NumberSystem, seed: int, chunks: layout.Lengths) -> NDArray[Any]:
    """Words in memory of the random numbers that a lazy array with these chunks has."""
    grid = Grid.of(chunks)
    words = np.empty((system.rows, *grid.shape), system.word_dtype)
    counts = tuple(map(len, chunks))
    for index in np.ndindex(*counts):
        place = grid.place(index)
        part = (slice(None), *(slice(*ends) for ends in place.location))
        words[part] = _random_block(system=system, seed=seed, grid=counts, place=place)
    return words


def check_in_memory(shape: Sequence[int], system: NumberSystem) -> None:
    """Raise JobError if an array of that shape is larger than this process's memory."""
    need = math.prod(shape) * system.rows * system.word_dtype.itemsize
    check_bytes(
        need, f"an array of shape {brief(tuple(shape))}", Setting("chunks", "auto"), " makes a lazy one"
    )


def _system_with_bound(moduli: Any, bits: SupportsIndex | None, signed: bool | None) -> Any:
    """Return the number system of random numbers, with the bound that `bits` implies."""
    if bits is None:
        return as_system(moduli, signed=signed)
    length = as_integer(bits, "bits")
    system = as_system(ModuliSet.for_bits(length) if moduli is None else moduli, signed=signed)
    if not system.extends:
        raise TypeError(f"bits= is for moduli sets and RNS, got {system!r}")
    if length < 1:
        raise ValueError(must("bits", f"be at least 1, got {abbreviate(length)}"))
    bound = (1 << length - system.signed) - 1
    if bound > system.value_range[1]:
        raise ValueError(f"{system!r} does not hold all numbers of {length} bits; give more moduli, or none")
    return system.with_bound(bound if system.bound is None else min(bound, system.bound))


def fresh_seed() -> int:
    """Draw a new seed: 128 bits from the operating system."""
    return secrets.randbits(_SEED_BITS)


def _random_block(*, system: Any, seed: int, grid: tuple[int, ...], place: Place) -> NDArray[Any]:
    part = tuple(stop - start for start, stop in place.location)
    number = int(np.ravel_multi_index(place.index, grid)) if 0 not in grid else 0
    # The seed's 32-bit words, then the chunk's number; a longer number is a key that no seed ends with.
    one_word = seed < 2**32
    sequence = np.random.SeedSequence(
        [seed, number] if one_word else seed, spawn_key=() if one_word else (number,)
    )
    words: NDArray[Any] = system.random_words(part, np.random.Generator(np.random.Philox(sequence)))
    return words


def open_zarr(
    path: store.StorePath,
    *,
    component: str | None = None,
    chunks: Chunks | None = None,
    part: SupportsIndex | None = None,
    backend: str = "cpu",
    storage_options: Mapping[str, Any] | None = None,
) -> StoredArray:
    """Open a complete store as a lazy array, by default with a Dask chunk for each stored chunk.

    Returns
    -------
    RNSArray, PositionalArray, FieldArray or IntervalRNSArray
        The class of the array that was written.

    Every chunk's checksum is verified when it is read.

    Parameters
    ----------
    path : str, path-like, or zarr.abc.store.Store
        A local path; a URL of any file system that fsspec knows; or Zarr's ``LocalStore``, ``FsspecStore`` or
        ``ObjectStore``. See docs/remote.md.
    component : str, optional
        The path of the array within the Zarr group at `path`, such as ``"a/b"``.
    storage_options : mapping, optional
        Options of fsspec for a URL, as in Zarr and xarray: credentials, the endpoint, and so on. They are
        sent to the workers.
    chunks : "auto", int, tuple, mapping, or str, optional
        Dask chunks, as :meth:`.NumberArray.rechunk` takes them. A task reads all stored chunks that a Dask
        chunk consists of, so that a cluster's workers exchange none. A store opened in two ways is read
        twice. Where Dask chunks begin within stored ones, these are read whole, then divided.
    part : int, optional
        For stored chunks too large for memory: length of a Dask chunk along the stored chunk's first axis
        that is longer than 1. Each part reads the whole stored chunk for its checksum, and takes as long.
    backend : {"cpu", "auto", "cuda"}
        Where chunks are placed: NumPy arrays, or CuPy arrays on the GPU of the process that reads them
        (``"auto"``: if it has one).

    Raises
    ------
    ValueError
        If `path` is neither a local path nor a URL that names a store (docs/remote.md); if `backend` is
        unknown; if `part` is less than 1, or given for a store whose chunks are not files: a remote or
        compressed store, or a group of an older version.
    StoreError
        If there is no rnsdask store at `path`, or its metadata are wrong; :class:`.IncompleteStoreError` if
        writing it did not finish. Reading a broken chunk raises :class:`.CorruptChunkError`; reading from a
        store that was overwritten since it was opened, :class:`.ChangedStoreError`.
    JobError
        If this process has too little memory for the graph of its chunks.
    """
    check_backend(backend)
    location = store.component_of(store.locate(path, storage_options), component)
    info = store.open_info(location, store.all_systems)
    found: StoredArray = open_words(info, chunks=chunks, part=part, backend=backend)
    return found


def open_words(info: store.StoreInfo, **options: Any) -> StoredArray:
    """Open a complete store by its metadata, with options of :func:`open_zarr`."""
    array: StoredArray = info.system.array_type(read_words(info, **options), info.system)
    return array
