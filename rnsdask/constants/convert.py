"""Constants of conversion from limbs to residues and back, and from some residues to others."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.digits import (
    ExtensionDigits,
    ForwardDigits,
    ReverseDigits,
    extension_digits,
    forward_digits,
    partial_products_modulo,
    reverse_digits,
)
from rnsdask.constants.factors import (
    CACHED_SETS,
    kept,
    kept_property,
    last_residues,
    shoup_factors,
    word_factors,
)
from rnsdask.constants.keys import sufficient_prefixes
from rnsdask.core.integer_text import to_decimal
from rnsdask.core.moduli import LIMB_BITS, ModuliSet
from rnsdask.core.wide_moduli import WIDE_BITS, WideModuli

TABLE_MULTIPLE = 8
"""The tables of conversion have rows of a multiple of this many results (kResults in the kernels)."""


@dataclass
class Spent:
    """Seconds that trees of products took in excess of what tables would have taken."""

    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class ForwardConstants:
    """Constants of the conversion of `limb_count` limbs to residues.

    ``factors[i]`` are those of 1, 2**32 and 2**64; ``last[i]`` is m_i - 1. ``bounds`` are the
    lowest and the highest value of the range as limbs, to be compared with numbers whose top limb has the
    bits of ``flip`` inverted; None if no number of so many limbs is out of range. ``base`` is that of the
    limbs, if they have one.
    """

    moduli: ModuliSet
    limb_count: int
    make_table: Callable[[], NDArray[np.uint32]]
    last: NDArray[np.uint32]
    factors: NDArray[np.uint32]
    bounds: NDArray[np.uint32] | None
    flip: int
    base: int | None = None
    spent: Spent = field(default_factory=Spent, init=False)

    @kept_property
    def table(self) -> NDArray[np.uint32]:
        """Row l has ``|2**(32 l)|`` modulo each m_i; of two's complement numbers, one more is the sign's."""
        return self.make_table()

    @property
    def digits(self) -> ForwardDigits | None:
        """Constants in 100-bit digits, or None without IFMA or for limbs of another base."""
        return None


class BinaryForwardConstants(ForwardConstants):
    """Constants of the conversion of limbs of 32 bits, which are cut into longer digits too."""

    @kept_property
    def digits(self) -> ForwardDigits | None:
        """Constants in 100-bit digits, or None without IFMA."""
        return forward_digits(self.moduli, self.limb_count, self.flip != 0)


@kept
def forward_constants(moduli: ModuliSet, limb_count: int, signed: bool = False) -> ForwardConstants:
    """Constants of the conversion to residues from `limb_count` limbs, two's complement when `signed`."""
    return BinaryForwardConstants(
        moduli,
        limb_count,
        partial(forward_table, moduli, 2**LIMB_BITS, limb_count, signed),
        last_residues(moduli),
        word_factors(moduli),
        range_bounds(moduli.value_range(signed), limb_count, signed),
        2**31 if signed else 0,
        2**LIMB_BITS,
    )


def forward_table(moduli: ModuliSet, base: int, limb_count: int, signed: bool) -> NDArray[np.uint32]:
    """Powers of the limbs' base modulo each; the last row of signed numbers is minus the next power."""
    sizes = np.array(moduli.moduli, dtype=np.uint64)
    table = np.zeros((limb_count + signed, _padded_length(len(sizes))), dtype=np.uint32)
    power, ratio = np.ones_like(sizes), np.array([base % m for m in moduli], dtype=np.uint64)
    for row in table:
        row[: len(sizes)] = power
        power = power * ratio % sizes
    if signed:
        table[-1, : len(sizes)] = -table[-1, : len(sizes)].astype(np.int64) % sizes.astype(np.int64)
    return table


def _padded_length(length: int) -> int:
    return -(-length // TABLE_MULTIPLE) * TABLE_MULTIPLE


def padded(table: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Append zeros to each row, up to a multiple of TABLE_MULTIPLE."""
    return np.ascontiguousarray(np.pad(table, ((0, 0), (0, -table.shape[1] % TABLE_MULTIPLE))))


def range_bounds(value_range: tuple[int, int], limb_count: int, signed: bool) -> NDArray[np.uint32] | None:
    """The ends of a range as limbs, as :class:`ForwardConstants` has them."""
    representable = 1 << LIMB_BITS * limb_count
    offset = representable >> 1 if signed else 0
    lowest, highest = (end + offset for end in value_range)
    if lowest <= 0 and highest >= representable - 1:
        return None
    return limbs_of([max(lowest, 0), min(highest, representable - 1)], limb_count)


def _fractions(moduli: ModuliSet) -> NDArray[np.uint32]:
    """The two words of ``floor(2**64 / m)`` of each modulus."""
    return limbs_of([2**64 // m for m in moduli], 2)


def limbs_of(values: Iterable[int], limb_count: int) -> NDArray[np.uint32]:
    """Little-endian 32-bit limbs of integers that are not negative and fit, one row for each."""
    data = b"".join([value.to_bytes(LIMB_BITS // 8 * limb_count, "little") for value in values])
    return np.frombuffer(data, dtype="<u4").reshape(-1, limb_count).astype(np.uint32, copy=False)


@dataclass(frozen=True, eq=False)
class ReverseConstants:
    """Constants of the conversion of residues to `limb_count` limbs.

    ``inverses[i]`` is the factor w_i; ``last[i]`` is m_i - 1. ``product`` are the limbs of M (0 if it is
    ``2**(32 limb_count)``), ``highest`` those of the range's highest value; it is ``signed`` or not.
    """

    moduli: ModuliSet
    limb_count: int
    last: NDArray[np.uint32]
    inverses: NDArray[np.uint32]
    product: NDArray[np.uint32]
    highest: NDArray[np.uint32]
    signed: bool
    spent: Spent = field(default_factory=Spent, init=False)

    @kept_property
    def table(self) -> NDArray[np.uint32]:
        """Row i has the two words of ``floor(2**64 / m_i)`` and the limbs of M_i."""
        table = np.zeros((len(self.moduli), _padded_length(self.limb_count + 2)), dtype=np.uint32)
        table[:, :2] = _fractions(self.moduli)
        total = gmpy2.mpz(self.moduli.product)
        for row, m in zip(table, self.moduli, strict=True):
            row[2 : self.limb_count + 2] = limbs_of([int(total // m)], self.limb_count)[0]
        return table

    @kept_property
    def digits(self) -> ReverseDigits | None:
        """Constants in 100-bit digits, or None without IFMA."""
        return reverse_digits(self.moduli, self.limb_count, self.signed)


@kept
def reverse_constants(moduli: ModuliSet, signed: bool = False) -> ReverseConstants:
    """Constants of the conversion from residues to limbs, two's complement when `signed`."""
    limb_count = moduli.limb_count(signed)
    _, highest = moduli.value_range(signed)
    return ReverseConstants(
        moduli,
        limb_count,
        last_residues(moduli),
        shoup_factors(list(moduli.partial_inverses), list(moduli)),
        limbs_of([moduli.product % 2 ** (LIMB_BITS * limb_count)], limb_count)[0],
        limbs_of([highest], limb_count)[0],
        bool(signed),
    )


@dataclass(frozen=True, eq=False)
class ExtensionConstants:
    """Constants of the base extension from the residues of `moduli` to those of `targets`.

    ``inverses[i]`` is the factor w_i, ``last[i]`` is m_i - 1;
    ``target_last[k]`` and ``factors[k]`` are the last residue of a target and its factors of 1, 2**32
    and 2**64. ``start`` and ``ambiguous_below`` are in units of 2**-32 (kernels/include/rns/convert.cuh);
    the latter is 0 if no number is ambiguous.
    """

    moduli: ModuliSet
    targets: ModuliSet
    signed: bool
    last: NDArray[np.uint32]
    inverses: NDArray[np.uint32]
    start: int
    ambiguous_below: int
    target_last: NDArray[np.uint32]
    factors: NDArray[np.uint32]
    spent: Spent = field(default_factory=Spent, init=False)

    @kept_property
    def table(self) -> NDArray[np.uint32]:
        """Row i has the two words of ``floor(2**64 / m_i)`` and M_i modulo each target.

        The last row has two zeros and -M modulo each target.
        """
        table = np.zeros((len(self.moduli) + 1, _padded_length(len(self.targets) + 2)), dtype=np.uint32)
        table[:-1, :2] = _fractions(self.moduli)
        table[:, 2 : len(self.targets) + 2] = partial_products_modulo(self.moduli.moduli, self.targets)
        return table

    @kept_property
    def digits(self) -> ExtensionDigits | None:
        """Constants in 100-bit digits, or None without IFMA."""
        return extension_digits(self.moduli, self.targets)


@kept
def extension_constants(
    moduli: ModuliSet, targets: ModuliSet, signed: bool = False, bound: int | None = None
) -> ExtensionConstants:
    """Constants of the base extension from `moduli`, or from as few of them as `bound` allows."""
    source, start, ambiguous_below = extension_source(moduli, signed, bound)
    return ExtensionConstants(
        source,
        targets,
        bool(signed),
        last_residues(source),
        shoup_factors(list(source.partial_inverses), list(source)),
        start,
        ambiguous_below,
        last_residues(targets),
        word_factors(targets),
    )


def extension_source(moduli: ModuliSet, signed: bool, bound: int | None) -> tuple[ModuliSet, int, int]:
    """The fewest moduli that determine numbers of a bound, and `start` and `ambiguous_below` of their q."""
    for count in sufficient_prefixes(moduli, signed, bound):
        source = moduli.prefix(count)
        if not _may_be_ambiguous(source, signed, bound):
            break
    n = len(source)
    return source, n + (2**31 if signed else 0), n if _may_be_ambiguous(source, signed, bound) else 0


def _may_be_ambiguous(moduli: ModuliSet, signed: bool, bound: int | None) -> bool:
    """Whether the fraction of a number, plus n 2**-32, can pass 1: X/M, or signed X/M + 1/2."""
    _, highest = moduli.value_range(signed)
    highest = highest if bound is None else min(bound, highest)
    room = (moduli.product - 2 * highest) // 2 if signed else moduli.product - highest
    return room << LIMB_BITS <= len(moduli) * moduli.product


DECIMAL_DIGITS = 9
DECIMAL_BASE = 10**DECIMAL_DIGITS


@lru_cache(CACHED_SETS)
def decimal_forward_constants(moduli: ModuliSet, limb_count: int, signed: bool = False) -> ForwardConstants:
    """Constants of the conversion to residues from `limb_count` decimal limbs, for the same kernels.

    When `signed`, the last limb is 1 for a negative number, and counts ``-10**(9 (limb_count - 1))``.
    ``flip`` inverts it, so that unsigned comparisons order such numbers.
    """
    end = DECIMAL_BASE ** (limb_count - signed)
    lowest, highest = moduli.value_range(signed)
    bounds = _decimal_limbs([max(lowest, -end) % end, min(highest, end - 1)], limb_count)
    if signed:
        bounds[:, -1] = [0, 1]
    return ForwardConstants(
        moduli,
        limb_count,
        partial(forward_table, moduli, DECIMAL_BASE, limb_count - signed, signed),
        last_residues(moduli),
        word_factors(moduli),
        bounds,
        int(signed),
        DECIMAL_BASE,
    )


@dataclass(frozen=True, eq=False)
class DecimalConstants:
    """Constants of the conversion of residues to decimal limbs.

    ``table[i]`` holds the two words of ``floor(2**64 / m_i)`` and the limbs of M_i, its last row two zeros
    and the limbs of -M; ``inverses[i]`` is the factor w_i, ``last[i]`` is m_i - 1. ``product`` are the limbs
    of M, ``highest`` those of the range's highest value.
    """

    table: NDArray[np.uint32]
    last: NDArray[np.uint32]
    inverses: NDArray[np.uint32]
    product: NDArray[np.uint32]
    highest: NDArray[np.uint32]


@lru_cache(CACHED_SETS)
def decimal_constants(moduli: ModuliSet, signed: bool = False) -> DecimalConstants:
    """Constants of the conversion from residues to decimal limbs, enough for twice the product."""
    _, highest = moduli.value_range(signed)
    limb_count = -(-len(to_decimal(2 * moduli.product)) // DECIMAL_DIGITS)
    negative = DECIMAL_BASE**limb_count - moduli.product
    product, top, complement = _decimal_limbs([moduli.product, highest, negative], limb_count)
    fractions = limbs_of([*(2**64 // m for m in moduli), 0], 2)
    return DecimalConstants(
        padded(np.hstack([fractions, np.vstack([_decimal_quotients(product, moduli), complement])])),
        last_residues(moduli),
        shoup_factors(list(moduli.partial_inverses), list(moduli)),
        product,
        top,
    )


def _decimal_quotients(limbs: NDArray[np.uint32], moduli: ModuliSet) -> NDArray[np.uint32]:
    """The limbs of a number divided by each modulus, by long division for all of them together."""
    sizes = np.array(list(moduli), dtype=np.uint64)
    quotients = np.empty((len(sizes), len(limbs)), dtype=np.uint32)
    remainders = np.zeros_like(sizes)
    for limb in reversed(range(len(limbs))):
        values = remainders * np.uint64(DECIMAL_BASE) + limbs[limb]  # less than 2**62
        quotients[:, limb] = values // sizes
        remainders = values % sizes
    return quotients


def _decimal_limbs(values: list[int], limb_count: int) -> NDArray[np.uint32]:
    """Decimal limbs, the least significant first, of integers that are not negative and fit."""
    texts = [to_decimal(value).zfill(DECIMAL_DIGITS * limb_count) for value in values]
    ends = range(DECIMAL_DIGITS * limb_count, 0, -DECIMAL_DIGITS)
    limbs = [[int(text[end - DECIMAL_DIGITS : end]) for end in ends] for text in texts]
    return np.array(limbs, dtype=np.uint32).reshape(-1, limb_count)


@dataclass(frozen=True, eq=False)
class MixedRadixConstants:
    """Factors of mixed-radix conversion, each a pair (value, Shoup quotient) of uint32.

    ``inverses[i (i-1)/2 + j]`` is ``|1/m_j|`` modulo m_i for j < i; ``ones[i]`` is 1 modulo m_i;
    ``last[i]`` is m_i - 1.
    """

    moduli: ModuliSet
    last: NDArray[np.uint32]
    ones: NDArray[np.uint32]
    inverses: NDArray[np.uint32]


@kept
def mixed_radix_constants(moduli: ModuliSet) -> MixedRadixConstants:
    """Constants of mixed-radix conversion in the set's own order."""
    ms = list(moduli)
    pairs = [(int(gmpy2.invert(ms[j] % m, m)), m) for i, m in enumerate(ms) for j in range(i)]
    return MixedRadixConstants(
        moduli,
        last_residues(moduli),
        shoup_factors([1] * len(ms), ms),
        shoup_factors([w for w, _ in pairs], [m for _, m in pairs]),
    )


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
    """Constants of numbers' mixed-radix digits, and of a last one: whether they exceed the highest."""
    ms = list(moduli)
    inverses = [_wide_factor(int(gmpy2.invert(ms[j], m)), m) for i, m in enumerate(ms) for j in range(i)]
    _, rest = moduli.value_range(signed)
    highest = []
    for m in ms:
        rest, digit = divmod(rest, m)
        highest.append(digit)
    return WideDigitConstants(
        moduli,
        _wide_words([m - 1 for m in ms]),
        np.array(inverses, dtype=np.uint64).reshape(-1, 2),
        _wide_words(highest),
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
    factors = [(*_wide_factor(1, m), *_wide_factor(2**WIDE_BITS % m, m)) for m in ms]
    return WideForwardConstants(
        moduli,
        limb_count,
        np.array(weights, dtype=np.uint64),
        _wide_words([m - 1 for m in ms]),
        np.array(factors, dtype=np.uint64),
        range_bounds(moduli.value_range(signed), limb_count, signed),
        2**31 if signed else 0,
    )


@kept
def digits_to_wide_residue(sources: ModuliSet, moduli: WideModuli) -> WideForwardConstants:
    """Constants of the conversion of mixed-radix digits under `sources`, one limb each, to residues."""
    weights, weight = [], gmpy2.mpz(1)
    for m in sources:
        weights.append([int(weight % target) for target in moduli])
        weight *= m
    return replace(
        wide_forward_constants(moduli, len(sources), False), weights=np.array(weights, dtype=np.uint64)
    )


def _wide_factor(value: int, m: int) -> tuple[int, int]:
    return value, (value << WIDE_BITS) // m


def _wide_words(values: list[int]) -> NDArray[np.uint64]:
    return np.array(values, dtype=np.uint64)
