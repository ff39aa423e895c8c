"""Size of numbers as X/M: fixed-point and floating-point intervals, magnitudes; mixed-radix digits.

Fixed point takes one integer multiply-add a residue. The floating-point interval evaluation gives bounds of a
chosen relative width, for numbers of any size. It is Algorithm 1 of K. Isupov, "High-Performance Computation
in Residue Number System Using Floating-Point Arithmetic", Computation 9(2):9, 2021, with its improved
refinement, for signed numbers too. The bounds have a separate exponent, since X/M of a small number is far
below the range of doubles. Unlike in the paper, no number needs mixed-radix conversion: refining separates
numbers near M from those near 0, and in signed arrays those near M/2 from those near -M/2
(docs/mathematics.md).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from rnsdask.backend import Array, IntervalGoal, backend_name, kernels_of, to_backend
from rnsdask.constants import (
    FixedPointConstants,
    directed,
    fixed_point_constants,
    interval_constants,
    mixed_radix_constants,
    reverse_constants,
    sufficient_prefix,
)
from rnsdask.core.errors import brief
from rnsdask.core.layout import as_matrix, check_residue_array
from rnsdask.core.moduli import LIMB_BITS, ModuliSet
from rnsdask.rns.order import are_near_top
from rnsdask.rns.system import RNS


@dataclass(frozen=True)
class FixedPointInterval:
    """Bounds of ``t = 2**bits * |2**scale * X|_M / M``, 0 <= t < 2**bits, for each number X.

    ``low`` and ``upp`` hold integers of `bits` bits as uint32 words, shape (bits/32, *shape), the least
    significant first: ``low <= floor(t) <= upp``. For X = 0 both are 0.
    """

    low: Array
    upp: Array
    bits: int
    scale: int


def fixed_point_interval(
    residues: Array, moduli: ModuliSet, bits: int | None = None, scale: int = 0
) -> FixedPointInterval:
    """Evaluate the interval of ``2**scale * X/M`` modulo 1 in fixed point: a scale is a refinement.

    A fraction has 64, 96 or 128 bits; by default, the fewest that make ``upp - low`` at most ``2**(bits -
    24)``. ValueError for other `bits` and for a negative `scale`.
    """
    check_residue_array(residues, moduli)
    constants = fixed_point_constants(moduli, bits, scale)
    matrix = as_matrix(residues)
    words, zero = kernels_of(matrix).fixed_point(matrix, constants)
    low, upp = _bounds(words, zero, matrix, constants)
    shape = (words.shape[0], *residues.shape[1:])
    return FixedPointInterval(low.reshape(shape), upp.reshape(shape), constants.bits, scale)


def _bounds(sums: Array, zero: Array, residues: Array, constants: FixedPointConstants) -> tuple[Array, Array]:
    """Turn the sums T of x_i c_i into bounds: floor(t) lies in [T, T + width] modulo 2**bits."""
    low, upp, wraps = sums, *_add(sums, constants.width)
    (unclear,) = (wraps & ~zero).nonzero()
    if unclear.size:
        # T + width passed 2**bits: t is near the top, or near 0 and T is a negative number.
        top = _near_top(residues, unclear, constants)
        low, upp = low.copy(), upp
        low[:, unclear[~top]] = 0
        upp[:, unclear[top]] = 0xFFFFFFFF
    upp[:, zero] = 0
    return low, upp


def _add(words: Array, addend: int) -> tuple[Array, Array]:
    """Add an integer to numbers of 32-bit words; return the sums' words and a mask of overflows."""
    total = words.astype(np.uint64)
    for k in range(len(total)):
        total[k] += (addend >> 32 * k) & 0xFFFFFFFF
        if k:
            total[k] += total[k - 1] >> np.uint64(32)
    overflow = (total[-1] >> np.uint64(32)).astype(bool)
    return (total & np.uint64(0xFFFFFFFF)).astype(np.uint32), overflow


def _near_top(residues: Array, indices: Array, constants: FixedPointConstants) -> Array:
    """Whether 2**scale * X modulo M is near M, for the numbers at `indices`, known to be near 0 or M."""
    moduli = constants.moduli
    factors = np.array([pow(2, constants.scale, m) for m in moduli], dtype=np.uint64)[:, None]
    sizes = np.array(list(moduli), dtype=np.uint64)[:, None]
    chosen = kernels_of(residues).gather(residues, indices).astype(np.uint64)
    # Each is below 2**32, so the product of a residue and a factor fits 64 bits.
    chosen = chosen * np.asarray(factors, like=chosen) % np.asarray(sizes, like=chosen)
    return are_near_top(chosen.astype(np.uint32), moduli, signed=False)


# ---- floating point ----------------------------------------------------------------------------------------

# For each modulus, each of the two bounds loses up to one unit by the reciprocal and two by the fused
# multiply-add. One more in total covers the rounding in the test of an interval's accuracy.
_UNIT = Fraction(1, 2**52)
_UNITS_PER_MODULUS = 6

# A refinement makes |X/M| at most 1/4, and must be able to double an interval that is not yet accurate.
_ACCURATE_FROM = Fraction(1, 8)


@dataclass(frozen=True)
class IntervalEvaluation:
    """Bounds of X/M for each number X: ``low * 2**exponent <= X/M <= upp * 2**exponent``, exactly.

    Parameters
    ----------
    low, upp : array of float64
        Lower and upper bound; negative for negative numbers, both 0 just for 0.
    exponent : array of int32
        Exponent of both bounds; 0 for 0.
    """

    low: Array
    upp: Array
    exponent: Array


def interval_evaluation(residues: Array, system: RNS, accuracy: float = 1e-7) -> IntervalEvaluation:
    """Evaluate bounds of X/M for each number X: ``upp - low <= accuracy * min(|low|, |upp|)``.

    Raises
    ------
    ValueError
        If residues do not fit the set, or `accuracy` is not positive and finite or smaller than double
        precision allows for this moduli set.
    """
    low, upp, exponent, _ = _evaluate(residues, system, accuracy)
    shape = residues.shape[1:]
    return IntervalEvaluation(low.reshape(shape), upp.reshape(shape), exponent.reshape(shape))


def refinement_steps(residues: Array, system: RNS, accuracy: float = 1e-7) -> Array:
    """Count the refinement steps that :func:`interval_evaluation` takes for each number.

    Arguments and errors are the same; the result is an array of uint32 of shape ``shape``. Each step reads
    the number's residues once more.
    """
    *_, steps = _evaluate(residues, system, accuracy)
    return steps.reshape(residues.shape[1:])


def _evaluate(residues: Array, system: RNS, accuracy: float) -> tuple[Array, Array, Array, Array]:
    system.check_words(residues)
    prefix = sufficient_prefix(system.moduli, system.signed, system.bound)
    goal = _goal(prefix, system, accuracy)
    matrix = as_matrix(residues[: len(prefix)])
    return kernels_of(matrix).interval(matrix, interval_constants(prefix), goal)


def _goal(prefix: ModuliSet, system: RNS, accuracy: Any) -> IntervalGoal:
    """Goal for the kernel, which evaluates X/P, for P the product of `prefix`, and multiplies by P/M."""
    if not isinstance(accuracy, Real):
        raise TypeError(f"accuracy must be a number, got {brief(accuracy)} of type {type(accuracy).__name__}")
    accuracy, moduli = float(accuracy), system.moduli
    if not (accuracy > 0 and math.isfinite(accuracy)):
        raise ValueError(f"accuracy must be a positive finite number, got {accuracy}")
    least = least_accuracy(len(prefix))
    scale_low, scale_upp, exponent, wanted = 1.0, 1.0, 0, Fraction(accuracy)
    if len(prefix) < len(moduli):
        exponent = prefix.bits - moduli.bits
        scale_low, scale_upp = directed(Fraction(prefix.product, moduli.product) / Fraction(2) ** exponent)
        # The factor and the multiplication, each rounded either way, widen the interval by 4 units.
        wanted, least = wanted - (1 + wanted) * 4 * _UNIT, (least + 4 * _UNIT) / (1 - 4 * _UNIT)
    if accuracy < least:
        raise ValueError(
            f"accuracy {accuracy} is out of reach of double precision for {len(prefix)} moduli: "
            f"it must be at least {1.01 * float(least):.3g}"
        )
    return IntervalGoal(directed(wanted)[0], system.signed, scale_low, scale_upp, exponent)


def least_accuracy(count: int) -> Fraction:
    """Least relative width that an evaluation with `count` moduli can always reach."""
    width = (_UNITS_PER_MODULUS * count + 1) * _UNIT
    return width / (_ACCURATE_FROM - width)


# ---- magnitudes --------------------------------------------------------------------------------------------

MAGNITUDE_ERROR = 2.0**-13
"""Upper bound of the relative error of :func:`magnitudes`."""

# An evaluation counts for a number whose magnitude is at least 2**_ACCURACY_BITS times its error.
_ACCURACY_BITS = 14

# Numbers that are evaluated once more on the host.
_FEW = 2**16

# A limb, rounded up, divided by the size of M (1/2 to 1) is below 2**_LIMB_ROOM.
_LIMB_ROOM = LIMB_BITS + 2


def magnitudes(residues: Array, system: RNS) -> tuple[Array, Array]:
    """X/M of each number (n, N) as ``mantissa * 2**exponent``: float64 and int64, each (N,).

    Mantissas are below 1 in magnitude, and 0 only for 0; the relative error is below `MAGNITUDE_ERROR`.
    Fixed-point evaluations of 64 and 128 bits suffice unless a number is far smaller than M or at an end of
    the range. The others pass through limbs: O(n**2) operations each, but far fewer than refining an interval
    step by step takes.
    """
    whole, signed = system.moduli, system.signed
    moduli = sufficient_prefix(whole, signed, system.bound)
    residues = as_matrix(residues[: len(moduli)])
    kernels = kernels_of(residues)
    mantissas, known = _fraction(_fixed_point_words(residues, moduli, 64), moduli, signed, 64)
    exponents = np.zeros_like(mantissas, dtype=np.int64)
    (rest,) = (~known).nonzero()
    if rest.size:
        is_few = rest.size <= _FEW  # these on the host: a GPU takes longer to launch, and to compile
        words = _fixed_point_words(kernels.gather(residues, rest), moduli, 128)
        refined, known = _fraction(to_backend(words, "cpu") if is_few else words, moduli, signed, 128)
        mantissas[rest] = np.asarray(refined, like=mantissas)
        small = np.asarray(to_backend(rest, backend_name(known))[~known], like=rest)
        if small.size:
            limbs = kernels.residues_to_limbs(
                kernels.gather(residues, small), reverse_constants(moduli, signed)
            )
            mantissa, exponent = leading_limbs(limbs, signed)
            mantissas[small] = mantissa / size_of(moduli) * 2.0**-_LIMB_ROOM
            exponents[small] = exponent + (_LIMB_ROOM - moduli.bits)
    if moduli is not whole:
        mantissas *= size_of(moduli) / size_of(whole) / 2
        exponents += moduli.bits - whole.bits + 1
    return mantissas, exponents


def size_of(moduli: ModuliSet) -> float:
    """M / 2**bits, from 1/2 to 1, rounded to a double."""
    return float(moduli.product >> max(moduli.bits - 64, 0)) / 2.0 ** min(moduli.bits, 64)


def _fixed_point_words(residues: Array, moduli: ModuliSet, bits: int) -> Array:
    """Words (bits / 32, N) of a fixed-point evaluation of X/M, the lowest first."""
    return kernels_of(residues).fixed_point(residues, fixed_point_constants(moduli, bits))[0]


def _fraction(words: Array, moduli: ModuliSet, signed: bool, bits: int) -> tuple[Array, Array]:
    """X/M by the words of a fixed-point evaluation, and a mask of the values known to be accurate.

    With t = 2**bits X/M, the evaluation is less than `width` below t, modulo 2**bits. So it is t for all but
    the numbers at the ends of the range. These and many near them count as unknown, so that the doubles' own
    errors do not matter.
    """
    constants = fixed_point_constants(moduli, bits)
    high = words[-1].view(np.int32) if signed else words[-1]
    values = high.astype(np.float64)
    for word in words[-2::-1]:
        values = values * 2.0**LIMB_BITS + word
    size = abs(values)
    limit = 2.0 ** (bits - signed) * (1 - 2.0**-_ACCURACY_BITS)
    return values * 2.0**-bits, (size >= float(constants.width << _ACCURACY_BITS)) & (size < limit)


def leading_limbs(limbs: Array, signed: bool) -> tuple[Array, Array]:
    """Convert (N, L) limbs to doubles and exponents, divided by the weight of the leading limb.

    Limbs are in two's complement if `signed`. The relative error of a double is below 1.5 * 2**-53 for a
    positive number: it is rounded when the leading limb is added, and when the one before is, which counts
    half as much.
    """
    count, limb_count = limbs.shape
    inverted = limbs[:, -1] >> np.uint32(LIMB_BITS - 1) if signed else np.zeros_like(limbs[:, 0])
    flip = np.uint32(0) - inverted  # all bits of a negative X, which leaves -X - 1
    mantissas, top = (
        np.zeros_like(limbs, shape=(count,), dtype=t, order="C") for t in (np.float64, np.int64)
    )
    below = np.zeros_like(mantissas)
    for k in range(limb_count):
        limb = limbs[:, k] ^ flip
        below = below * 2.0**-LIMB_BITS + limb  # the number so far, divided by 2**(32 k)
        mantissas = np.where(limb != 0, below, mantissas)
        top = np.where(limb != 0, k, top)
    one = np.ldexp(inverted.astype(np.float64), np.maximum(-LIMB_BITS * top, -1000).astype(np.int32))
    return np.where(inverted != 0, -(mantissas + one), mantissas), LIMB_BITS * top


# ---- mixed radix -------------------------------------------------------------------------------------------


def mixed_radix_digits(residues: Array, moduli: ModuliSet) -> Array:
    """Mixed-radix digits (n, *shape) of each number, least significant first, in the set's own order.

    Digit i is below ``moduli[i]`` and has the weight ``moduli[0] * ... * moduli[i-1]``. The digits compare
    like those of a positional number, are exact, and cost O(n**2) operations a number.
    """
    matrix = as_matrix(residues)
    digits = kernels_of(matrix).mixed_radix_digits(matrix, mixed_radix_constants(moduli))
    return digits.reshape(residues.shape)
