"""Conversions of numbers, lazy on Dask: to integers, residues of other moduli, and bounds."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array
from rnsdask.core import rows
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet, check_moduli_set
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Place
from rnsdask.lazy.elementwise import entry_of, map_entry
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import Numbers, is_number_array
from rnsdask.rns import evaluation as evaluations
from rnsdask.rns import extend
from rnsdask.rns.evaluation import FixedPointInterval, IntervalEvaluation
from rnsdask.rns.system import RNS
from rnsdask.typing import PlainArray

_PACKED = np.dtype([("low", np.float64), ("upp", np.float64), ("exponent", np.int32)])


def to_ints(x: Numbers) -> Any:
    """Convert the numbers to an object array of Python ints; lazy if the array is."""
    return map_chunks(_ints_block, x.words, dtype=object, system=x.system)


def _ints_block(block: Array, *, system: NumberSystem) -> NDArray[np.object_]:
    return system.decode(block)[None]


def change_moduli(x: Numbers, moduli: ModuliSet) -> Any:
    """Return the residues of the numbers under other moduli, which are checked to hold them."""
    options: dict[str, Any] = {"system": x.system, "targets": moduli}
    return map_chunks(_change_moduli, x.words, rows=len(moduli), located=True, **options)


def _change_moduli(block: Array, *, system: RNS, targets: ModuliSet, place: Place) -> Array:
    return extend.change_moduli(block, system, targets, place.flat_index)


def interval_evaluation(x: Numbers, accuracy: float) -> IntervalEvaluation:
    """Evaluate an interval of X/M for each number, as :meth:`.RNSArray.interval`."""
    words, system = x.words, x.system
    if not isinstance(words, da.Array):
        return evaluations.interval_evaluation(words, system, accuracy)
    # Evaluate one number at once, to refuse an accuracy out of reach.
    evaluations.interval_evaluation(np.zeros((system.rows, 1), np.uint32), system, accuracy)
    options: dict[str, Any] = {"dtype": _PACKED, "like": np.empty(0), "system": system, "accuracy": accuracy}
    packed = map_chunks(_packed_interval, words, **options)
    return IntervalEvaluation(packed["low"], packed["upp"], packed["exponent"])


def _packed_interval(block: Array, *, system: RNS, accuracy: float) -> NDArray[np.void]:
    """Evaluate the intervals of a chunk as one structured array, so that one task makes all three fields."""
    evaluation = evaluations.interval_evaluation(block, system, accuracy)
    packed = np.empty((1, *block.shape[1:]), dtype=_PACKED)
    for name in ("low", "upp", "exponent"):
        field = getattr(evaluation, name)
        packed[name][0] = field.get() if hasattr(field, "get") else field
    return packed


def mixed_radix_digits(
    x: Numbers | NDArray[np.uint32] | PlainArray[np.uint32], moduli: ModuliSet | None = None
) -> PlainArray[np.uint32]:
    """Mixed-radix digits of each number X modulo M, least significant first, in the set's own order.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray, or array of uint32, shape (n, *shape)
        The numbers, or their residues in NumPy or CuPy, each below its modulus.
    moduli : ModuliSet, optional
        The set of n moduli, in any order, for residues; an array of numbers has its own.

    Returns
    -------
    array of uint32, shape (n, *shape)
        Digit i is below ``moduli[i]`` and has the weight ``moduli[0] * ... * moduli[i-1]``. Lazy if the
        array of numbers is.

    Raises
    ------
    TypeError
        If residues come without a moduli set, or an array with another set than its own.
    """
    words, moduli = _residues_and_moduli("mixed_radix_digits", x, moduli)
    found: PlainArray[np.uint32] = map_chunks(
        evaluations.mixed_radix_digits, words, rows=len(moduli), moduli=moduli
    )
    return found


def fixed_point_interval(
    x: Numbers | NDArray[np.uint32] | PlainArray[np.uint32],
    moduli: ModuliSet | None = None,
    bits: int | None = None,
    scale: int = 0,
) -> FixedPointInterval:
    """Evaluate the interval of ``2**scale * X/M`` modulo 1 in fixed point.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray, or array of uint32, shape (n, *shape)
        The numbers, or their residues in NumPy or CuPy.
    moduli : ModuliSet, optional
        The set of n moduli for residues; an array of numbers has its own.
    bits : {64, 96, 128}, optional
        Fraction bits; by default the fewest that make ``upp - low`` at most ``2**(bits - 24)``.
    scale : int
        Refinement: the interval is that of ``2**scale * X`` modulo M.

    Returns
    -------
    FixedPointInterval
        Its arrays are lazy if the array of numbers is.

    Raises
    ------
    TypeError, ValueError
        If residues do not fit the set, the set is missing or is not the array's, `bits` is another number, or
        `scale` is negative.
    """
    found: FixedPointInterval
    words, moduli = _residues_and_moduli("fixed_point_interval", x, moduli)
    if not isinstance(words, da.Array):
        found = evaluations.fixed_point_interval(words, moduli, bits, scale)
        return found
    # Evaluate one number at once: this finds `bits`, and refuses invalid arguments.
    bits = evaluations.fixed_point_interval(np.zeros((len(moduli), 1), np.uint32), moduli, bits, scale).bits
    count = bits // 32
    options: dict[str, Any] = {"moduli": moduli, "bits": bits, "scale": scale}
    both = map_chunks(_packed_fixed_point, words, rows=2 * count, **options)
    found = FixedPointInterval(both[:count], both[count:], bits, scale)
    return found


def _packed_fixed_point(block: Array, *, moduli: ModuliSet, bits: int, scale: int) -> Array:
    found = evaluations.fixed_point_interval(block, moduli, bits, scale)
    return np.concatenate([found.low, found.upp])


def _residues_and_moduli(name: str, x: Any, moduli: ModuliSet | None) -> tuple[Any, ModuliSet]:
    if not is_number_array(x):
        if moduli is None:
            raise TypeError("residues need the moduli set that they belong to")
        check_moduli_set(moduli)
        if not hasattr(x, "ndim"):
            raise TypeError(f"residues must be an array, got {type(x).__name__}")
        return x, moduli
    entry_of(rows.residues_modulo, x, name=name)
    if moduli not in (None, x.system.moduli):
        raise TypeError(f"the array's moduli set is {x.system.moduli!r}, not {moduli!r}")
    return map_entry(rows.residues_modulo, (x.words,), x.system, result=RNS(x.system.moduli)), x.system.moduli


# ---- other systems ----------------------------------------------------------------------------------------


def words_in(x: Numbers, system: NumberSystem) -> Any:
    """Return the numbers' words in another system, which is checked to hold them."""
    options: dict[str, Any] = {"system": system, "given": x.system}
    return map_chunks(_converted_block, x.words, rows=system.rows, located=True, **options)


def _converted_block(x: Array, *, system: NumberSystem, given: NumberSystem, place: Place) -> Array:
    limbs, signed = given.limbs_of(as_matrix(x)), given.is_signed
    if system.is_signed and not signed:  # only residues of signed numbers can use limbs with a sign
        limbs, signed = np.concatenate([limbs, np.zeros_like(limbs[:, :1])], axis=1), True
    words: Array = system.words_of_limbs(limbs, signed, place.flat_index)
    return words.reshape(system.rows, *x.shape[1:])
