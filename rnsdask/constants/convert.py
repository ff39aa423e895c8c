"""Constants of the conversion between limbs and residues, and of base extension."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

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
    last_residues,
    shoup_factors,
    word_factors,
)
from rnsdask.constants.kept import kept, kept_property
from rnsdask.constants.keys import sufficient_prefixes
from rnsdask.core.moduli import LIMB_BITS, ModuliSet

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
        """Those by digits of 100 bits, for processors that have them; None of limbs of another base."""
        return None


class BinaryForwardConstants(ForwardConstants):
    """Constants of the conversion of limbs of 32 bits, which are cut into longer digits too."""

    @kept_property
    def digits(self) -> ForwardDigits | None:
        """Those by digits of 100 bits, for processors that have them."""
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
        """Those by digits of 100 bits, for processors that have them."""
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
        """Those by digits of 100 bits, for processors that have them."""
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
