"""Constants of fields of generalised Fermat primes: arithmetic, transforms, and digits from limbs."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.moduli import LIMB_BITS

DIGIT_COUNTS = (4, 8, 16, 32, 64, 128)
"""How many digits a number may have."""

LEAST_RADIX, GREATEST_RADIX = 2**8 + 1, 2**64 - 2
"""Between these the kernels' carries and borrows fit a digit and its word."""


@dataclass(frozen=True)
class FermatConstants:
    """Kernel parameters of p = r^k + 1: the radix r = 2^a + 2^b or 2^a - 2^b, and k digits.

    Radixes and lengths that kernels do not take are a ValueError. Whether p is a prime is not asked: the
    operations are right modulo any p.
    """

    radix: int
    digits: int

    def __post_init__(self) -> None:
        if self.digits not in DIGIT_COUNTS:
            counts = ", ".join(map(str, DIGIT_COUNTS))
            raise ValueError(f"a Fermat field takes {counts} digits, got {self.digits}")
        if not LEAST_RADIX <= self.radix <= GREATEST_RADIX:
            raise ValueError(f"a Fermat field takes a radix from 2**8 + 1 to 2**64 - 2, got {self.radix}")
        _ = self.exponents

    @cached_property
    def exponents(self) -> tuple[int, int, int]:
        """a, b and the sign: the radix is ``2**a + sign * 2**b``, and no power of two."""
        low = (self.radix & -self.radix).bit_length() - 1
        odd = self.radix >> low
        for sign in (1, -1):
            if odd > 1 and (odd - sign).bit_count() == 1:
                return low + (odd - sign).bit_length() - 1, low, sign
        raise ValueError(
            f"a Fermat field takes a radix 2**a + 2**b or 2**a - 2**b, a > b + 1, got {self.radix}"
        )

    @property
    def modulus(self) -> int:
        """The number p = r^k + 1."""
        return int(self.radix**self.digits + 1)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the digits: 32-bit words for radices below 2^32, else 64-bit ones."""
        return np.dtype(np.uint32 if self.radix < 2**32 else np.uint64)

    @cached_property
    def division(self) -> tuple[int, int]:
        """`shift` and `factors` of ``FermatRadix`` (kernels/include/rns/fermat.cuh), which says why."""
        a, b, _ = self.exponents
        greatest = self.digits * (max(self.radix, 2**a) + 2) * (self.radix + 2)
        bits = greatest.bit_length()
        factors = next(n for n in count(1) if (a - b) << n >= bits - a + 3)
        return max(0, bits + 1 - 16 * self.dtype.itemsize), factors

    @property
    def tile(self) -> int:
        """How many numbers a pass of a transform takes together: those of 32 KiB, at most 512."""
        return min(512, 32768 // (self.digits * self.dtype.itemsize))

    @cached_property
    def parameters(self) -> tuple[int, ...]:
        """The fields of ``FermatRadix``, and the number of digits."""
        a, b, sign = self.exponents
        return self.radix, a, b, int(sign > 0), *self.division, self.digits

    @property
    def is_wide(self) -> bool:
        """Whether a sum of products of digits takes more than two of their words."""
        return self.division[0] > 0


@dataclass(frozen=True, eq=False)
class FermatPass:
    """One pass of a transform (``FermatPass`` in kernels/include/rns/fermat.cuh, which says what it does).

    Of N = R J S numbers; `factors` are (k, J R) digits of the powers that results are multiplied by, (k, 0)
    where all are 1.
    """

    field: FermatConstants
    log_radix: int
    log_columns: int
    log_done: int
    is_inverse: bool
    factors: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The fields of the kernels' structure."""
        return self.log_radix, self.log_columns, self.log_done, int(self.is_inverse)


@lru_cache(256)
def fermat_root(field: FermatConstants, length: int) -> int:
    """A primitive root of unity modulo a prime p = r^k + 1, of an order that is a power of two.

    Of an order that 2 k divides, the root w is such that ``w**(length / (2 k)) = r``, so that those of 2 k
    elements take products by powers of r alone, which shift digits. Algorithm 1 of L. Chen, S. Covanov, D.
    Mohajerani, M. Moreno Maza, "Big prime field FFT on the GPU", 2017: of a root g, here that of the least
    base, the power g^j for which ``g**(j length / (2 k))`` is r. Of a lesser order: ``r**(2 k / length)``.
    ValueError if the order is no power of two, or does not divide p - 1.
    """
    p, order = field.modulus, 2 * field.digits
    if length < 1 or length.bit_count() > 1 or (p - 1) % length:
        raise ValueError(
            f"there is no root of unity of order {length} modulo {field.radix}**{field.digits} + 1"
        )
    if length <= order:
        return int(gmpy2.powmod(field.radix, order // length, p))
    base = next(x for x in count(2) if gmpy2.jacobi(x, p) == -1)  # whose half power is -1
    g = gmpy2.powmod(base, (p - 1) // length, p)
    step = gmpy2.powmod(g, length // order, p)
    exponent, power = 1, step
    while power != field.radix:
        exponent, power = exponent + 1, power * step % p
    return int(gmpy2.powmod(g, exponent, p))


@dataclass(frozen=True)
class RadixDivision:
    """The radix R of 64-bit digits, and what division of two words by it takes (`WideRadix` of the kernels).

    R is the radix r of a field, or ``r**2`` where digits have 32 bits. ``normalized`` is ``R * 2**shift``,
    whose highest bit is that of a word; ``reciprocal`` is the quotient of ``2**128 - 1`` by it, less
    ``2**64``. ``digits`` are those to the radix R. ``limb_count`` is how many 32-bit limbs hold any element.
    """

    radix: int
    normalized: int
    reciprocal: int
    shift: int
    digits: int
    limb_count: int


@lru_cache(CACHED_SETS)
def radix_division(field: FermatConstants) -> RadixDivision:
    """Constants of division by the radix of a field."""
    joined = 8 // field.dtype.itemsize
    radix = field.radix**joined
    shift = 64 - radix.bit_length()
    normalized = radix << shift
    reciprocal = (2**128 - 1) // normalized - 2**64
    limb_count = -(-(field.modulus - 1).bit_length() // LIMB_BITS)
    return RadixDivision(radix, normalized, reciprocal, shift, field.digits // joined, limb_count)
