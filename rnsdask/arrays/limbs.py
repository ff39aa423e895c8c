"""Ways to make an array from machine words and bytes: numbers of fixed width, as other programs hold them."""

from typing import Any

from rnsdask.arrays.collection import array_type_of
from rnsdask.arrays.creation import as_system
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core.layout import Chunks
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.number_system import NumberSystem
from rnsdask.lazy.foreign import checked_bytes, checked_limbs, words_of_limbs
from rnsdask.rns.system import RNS


def from_limbs(
    limbs: Any,
    moduli: ModuliSet | NumberSystem | None = None,
    signed: bool | None = None,
    *,
    axis: int = -1,
    chunks: Chunks | None = None,
) -> Any:
    """Make an array of integers from machine words, the least significant first.

    Parameters
    ----------
    limbs : array of uint32 or uint64, shape (*shape, L)
        NumPy, CuPy or Dask; or Zarr's and others that are read by slices, which makes a lazy array.
    moduli : ModuliSet, RNS, IntervalRNS, Positional or PrimeFields, optional
        The moduli set, or a number system. Without it ``ModuliSet.for_bits`` of the width of a number, which
        holds every one.
    signed : bool, optional
        Two's complement, and the symmetric range. A signed system tells it itself.
    axis : int
        The axis of limbs.
    chunks : "auto", int, or tuple of int, optional
        Chunks along the axes of the numbers, which make a Dask array.

    Returns
    -------
    RNSArray, IntervalRNSArray, PositionalArray or FieldArray
        As the system is, on the processor of `limbs`; lazy if that is.

    Raises
    ------
    TypeError, ValueError
        If type, shape or axis is wrong, or `signed` contradicts the system.
    ValueError
        If a number is out of range, naming the first one's flat index, the first in its chunk; for a Dask
        array when it is computed.
    """
    limbs, axis = checked_limbs(limbs, axis)
    return _array(limbs, axis, 8 * limbs.dtype.itemsize * limbs.shape[axis], moduli, signed, chunks)


def from_bytes(
    data: Any,
    length: int | None = None,
    byteorder: str = "little",
    moduli: ModuliSet | NumberSystem | None = None,
    signed: bool | None = None,
    *,
    chunks: Chunks | None = None,
) -> Any:
    """Make an array of integers from bytes, as ``int.from_bytes`` reads each.

    Parameters
    ----------
    data : bytes-like, or array of uint8, shape (*shape, length)
        A buffer of numbers one after the other; or an array as :func:`from_limbs` takes it.
    length : int
        Bytes of a number; of an array optional, for its last axis tells it.
    byteorder : {"little", "big"}
        Which byte comes first.
    moduli, signed, chunks
        As of :func:`from_limbs`.

    Returns
    -------
    As of :func:`from_limbs`.

    Raises
    ------
    TypeError, ValueError
        As :func:`from_limbs`; or if the size of a buffer is not a multiple of `length`.
    """
    octets = checked_bytes(data, length, byteorder)
    return _array(octets, octets.ndim - 1, 8 * octets.shape[-1], moduli, signed, chunks)


def _array(
    limbs: Any,
    axis: int,
    bits: int,
    moduli: ModuliSet | NumberSystem | None,
    signed: bool | None,
    chunks: Chunks | None,
) -> Any:
    """An array of numbers of limbs of so many bits in all."""
    array: Any
    if isinstance(moduli, NumberSystem) and not isinstance(moduli, RNS):
        is_signed = moduli.is_signed if signed is None else signed
        array = array_type_of(moduli)(words_of_limbs(limbs, moduli, is_signed, axis), moduli)
    else:
        system: RNS = as_system(ModuliSet.for_bits(bits) if moduli is None else moduli, signed=signed)
        width_bound = 2 ** (bits - 1) if system.signed else 2**bits - 1
        words = words_of_limbs(limbs, system, system.signed, axis)
        if system.bound is not None and system.bound < width_bound:
            array = RNSArray(words, system.with_bound(None)).with_bound(system.bound)
        else:
            array = RNSArray(words, system.with_bound(width_bound))
    return array if chunks is None else array.rechunk(chunks)
