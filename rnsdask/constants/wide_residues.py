"""Constants of residues under moduli of up to 64 bits: mixed-radix digits, and residues of limbs."""

from dataclasses import dataclass

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.convert import ForwardConstants, padded, range_bounds
from rnsdask.constants.factors import last_residues, word_factors
from rnsdask.constants.kept import kept
from rnsdask.core.moduli import LIMB_BITS, ModuliSet
from rnsdask.core.wide_moduli import WIDE_BITS, WideModuli


@dataclass(frozen=True, eq=False)
class WideDigitConstants:
    """Constants of mixed-radix digits under `moduli`, all uint64.

    ``inverses[i (i-1)/2 + j]`` is the pair of ``|1/m_j|`` modulo m_i, j < i, and its Shoup quotient;
    ``last[i]`` is m_i - 1. ``highest`` are the digits of the range's highest number.
    """

    moduli: WideModuli
    last: NDArray[np.uint64]
    inverses: NDArray[np.uint64]
    highest: NDArray[np.uint64]


@kept
def wide_digit_constants(moduli: WideModuli, signed: bool) -> WideDigitConstants:
    """Constants of the digits of numbers, each with a last one that tells if it is above the highest."""
    ms = list(moduli)
    inverses = [_factor(int(gmpy2.invert(ms[j], m)), m) for i, m in enumerate(ms) for j in range(i)]
    _, rest = moduli.value_range(signed)
    highest = []
    for m in ms:
        rest, digit = divmod(rest, m)
        highest.append(digit)
    return WideDigitConstants(
        moduli,
        _words([m - 1 for m in ms]),
        np.array(inverses, dtype=np.uint64).reshape(-1, 2),
        _words(highest),
    )


@kept
def digits_to_residues(moduli: WideModuli, targets: ModuliSet) -> ForwardConstants:
    """Constants of the conversion of such digits, two limbs each, to residues modulo `targets`.

    Digit i has the weight ``m_0 ... m_{i-1}``; the last one, of numbers above the highest, -M.
    """
    weights = [gmpy2.mpz(1)]
    for m in moduli:
        weights.append(weights[-1] * m)
    weights[-1] = -weights[-1]
    table = [[int(w % t) for t in targets] for weight in weights for w in (weight, weight << LIMB_BITS)]
    limbs = padded(np.array(table, dtype=np.uint32))
    return ForwardConstants(
        targets, len(limbs), lambda: limbs, last_residues(targets), word_factors(targets), None, 0
    )


@dataclass(frozen=True, eq=False)
class WideForwardConstants:
    """Constants of the conversion of `limb_count` limbs to residues modulo `moduli`.

    ``weights[l, i]`` is ``|2**(32 l)|`` modulo m_i, uint64; of two's complement numbers, one row more belongs
    to the sign bit. ``factors[i]`` are those of 1 and 2**64, ``last[i]`` is m_i - 1. ``bounds`` and ``flip``
    are those of :class:`.ForwardConstants`.
    """

    moduli: WideModuli
    limb_count: int
    weights: NDArray[np.uint64]
    last: NDArray[np.uint64]
    factors: NDArray[np.uint64]
    bounds: NDArray[np.uint32] | None
    flip: int


@kept
def wide_forward_constants(moduli: WideModuli, limb_count: int, signed: bool) -> WideForwardConstants:
    """Constants of the conversion from `limb_count` limbs, two's complement when `signed`."""
    ms = list(moduli)
    weights = [[pow(2, LIMB_BITS * k, m) for m in ms] for k in range(limb_count)]
    if signed:
        weights.append([-(2 ** (LIMB_BITS * limb_count)) % m for m in ms])
    factors = [(*_factor(1, m), *_factor(2**WIDE_BITS % m, m)) for m in ms]
    return WideForwardConstants(
        moduli,
        limb_count,
        np.array(weights, dtype=np.uint64),
        _words([m - 1 for m in ms]),
        np.array(factors, dtype=np.uint64),
        range_bounds(moduli.value_range(signed), limb_count, signed),
        2**31 if signed else 0,
    )


def _factor(value: int, m: int) -> tuple[int, int]:
    return value, (value << WIDE_BITS) // m


def _words(values: list[int]) -> NDArray[np.uint64]:
    return np.array(values, dtype=np.uint64)
