"""Moduli sets: pairwise coprime integers and the constants that follow from them."""

import math
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, Self, SupportsIndex

import gmpy2
import numpy as np

from rnsdask.core.coprime import first_shared, greedy_coprime, partial_inverses, product, product_tree
from rnsdask.core.errors import abbreviate, brief
from rnsdask.core.primes import most_primes, primes_below
from rnsdask.core.ways import must

MODULUS_MAX = 2**32
"""Largest modulus: its residues are exactly the unsigned 32-bit integers."""

MOST_MODULI = 2**20
"""Most moduli of a set: at 16 bytes each, the 16 MiB of a store's metadata hold no more."""

# From this length on, all primes that have the transform are found in less than a second.
_SHORT_LENGTH = 2**12

LIMB_BITS = 32
"""Bits of one limb of a positional number."""


def as_integer(value: object, name: str) -> int:
    """Convert any integer type (int, NumPy integer, gmpy2.mpz) to a Python int without loss.

    TypeError for anything else, including Booleans and floating-point numbers.
    """
    if type(value) is int:
        return value
    graph = getattr(value, "__dask_graph__", None)  # a method, which returns None for an array in memory
    if graph is not None and graph() is not None:
        raise TypeError(must(name, f"be an integer, got a lazy {type(value).__name__}; compute it first"))
    try:
        if not isinstance(value, bool | np.bool_ | np.ndarray):
            return operator.index(value)  # type: ignore[arg-type]  # raises unless it is an integer
    except TypeError:
        pass
    raise TypeError(must(name, f"be an integer, got {brief(value)} of type {type(value).__name__}"))


def as_bool(value: object, name: str) -> bool:
    """Convert a bool of Python or NumPy to Python's; TypeError for any other truth value."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise TypeError(must(name, f"be a bool, got {brief(value)}"))


def check_moduli_set(moduli: object) -> None:
    """Raise TypeError unless the argument is a ModuliSet."""
    if not isinstance(moduli, ModuliSet):
        way = ".for_bits(bits)" if isinstance(moduli, int) else "(integers)"
        kind = type(moduli).__name__
        raise TypeError(
            must("moduli", f"be a ModuliSet, got {brief(moduli)} of type {kind}; ModuliSet{way} makes one")
        )


def to_text(value: int | None) -> str | None:
    """Write an integer in hexadecimal, of any length; None stays None."""
    return None if value is None else hex(value)


@dataclass(frozen=True, init=False, repr=False)
class ModuliSet:
    """A set of pairwise coprime moduli m_0, ..., m_{n-1}, in the order given.

    It represents the integers of its dynamic range M = m_0 ... m_{n-1}: 0 to M - 1, or, signed, the symmetric
    range of :meth:`value_range`. A moduli set is immutable, hashable and picklable; two are equal when their
    moduli are the same in the same order.

    Parameters
    ----------
    moduli
        One or more pairwise coprime integers, each from 2 to 2**32, in any order; even and composite ones
        too.

    Raises
    ------
    TypeError
        If a modulus is not an integer.
    ValueError
        If there is no modulus, one is out of bounds, or two share a factor; the message names values and
        positions.
    """

    moduli: tuple[int, ...]

    def __init__(self, moduli: Iterable[SupportsIndex]) -> None:
        if not isinstance(moduli, Iterable):
            raise TypeError(must("moduli", f"be an iterable of integers, got {type(moduli).__name__}"))
        values = tuple(as_integer(m, f"modulus at position {i}") for i, m in enumerate(moduli))
        check_moduli(values)
        object.__setattr__(self, "moduli", values)

    @classmethod
    def _from_checked(cls, moduli: tuple[int, ...]) -> Self:
        """Make a set of moduli that are known to be valid."""
        self = object.__new__(cls)
        object.__setattr__(self, "moduli", moduli)
        return self

    @classmethod
    def for_bits(cls, bits: int, modulus_bits: int = 32) -> Self:
        """Make the moduli set for numbers of a given length, with as few and as large moduli as possible.

        The moduli are 2**modulus_bits, 2**modulus_bits - 1 and so on downwards, each coprime to all before,
        until M >= 2**bits.

        Parameters
        ----------
        bits
            Length of the numbers, at least 1. For signed numbers count the sign as one bit.
        modulus_bits
            Width of a residue, from 2 to 32.

        Raises
        ------
        ValueError
            If a parameter is out of bounds, or the moduli of that width do not suffice.
        """
        bits, modulus_bits = as_integer(bits, "bits"), as_integer(modulus_bits, "modulus_bits")
        if bits < 1:
            raise ValueError(must("bits", f"be at least 1, got {abbreviate(bits)}"))
        if not 2 <= modulus_bits <= 32:
            raise ValueError(must("modulus_bits", f"be from 2 to 32, got {abbreviate(modulus_bits)}"))
        largest = 2**modulus_bits
        # Pairwise coprime integers up to x multiply to at most lcm(1, ..., x), whose natural logarithm is
        # below 1.03883 x (Rosser and Schoenfeld, 1962), so to fewer than 1.5 x bits. A hopeless request is
        # refused before a long search.
        if modulus_bits < 32 and bits >= 1.5 * largest:
            raise ValueError(
                f"no set of moduli up to 2**{modulus_bits} has M >= 2**{abbreviate(bits)}; use larger moduli"
            )
        _check_count(-(-bits // modulus_bits), f"M >= 2**{abbreviate(bits)}")
        found = greedy_coprime(largest, -1, 1)
        moduli: list[int] = []
        total = gmpy2.mpz(1)
        while (missing := bits + 1 - total.bit_length()) > 0:
            # Take as many at once as are needed in any case, but for the last.
            some = list(islice(found, -(-missing // modulus_bits)))
            if not some:
                raise ValueError(
                    f"the {len(moduli)} largest pairwise coprime moduli up to 2**{modulus_bits} have M of "
                    f"{total.bit_length()} bits, less than 2**{bits}; use larger moduli"
                )
            moduli += some
            total *= product(some)
            _check_count(len(moduli), f"M >= 2**{bits}")
        return cls._from_checked(tuple(moduli))

    @classmethod
    def consecutive_odd(cls, start: int, count: int) -> Self:
        """Make the increasing set of the next odd integers from `start` on, each coprime to all before.

        Parameters
        ----------
        start
            The first and smallest modulus, odd, at least 3.
        count
            Number of moduli, at least 1.

        Raises
        ------
        ValueError
            If a parameter is out of bounds, or `count` moduli would go beyond 2**32.

        Notes
        -----
        Algorithm 3 of K. Isupov and V. Knyazkov, "Efficient GPU Implementation of Multiple-Precision Addition
        based on Residue Arithmetic" (2020).
        """
        start, count = as_integer(start, "start"), as_integer(count, "count")
        if start % 2 == 0 or not 3 <= start <= MODULUS_MAX:
            raise ValueError(must("start", f"be an odd integer from 3 to 2**32 - 1, got {abbreviate(start)}"))
        if count < 1:
            raise ValueError(must("count", f"be at least 1, got {abbreviate(count)}"))
        _check_count(count, f"count {abbreviate(count)}")
        moduli = tuple(islice(greedy_coprime(start, 2, MODULUS_MAX), count))
        if len(moduli) < count:
            raise ValueError(
                f"only {len(moduli)} moduli from {start} to 2**32 qualify, {abbreviate(count)} were asked for"
            )
        return cls._from_checked(moduli)

    @classmethod
    def ntt_primes(cls, bits: int, length: int) -> Self:
        """Make the set of the fewest and greatest primes below 2**31 that have transforms of a length.

        Modulo each of them there is a primitive root of unity of that order: it divides p - 1.

        Parameters
        ----------
        bits
            M is at least 2**bits, at least 1.
        length
            Length of a number-theoretic transform, a power of two.

        Raises
        ------
        ValueError
            If a parameter is out of bounds, or all such primes do not suffice; the message says how many
            there are.
        """
        bits, length = as_integer(bits, "bits"), as_integer(length, "length")
        if bits < 1:
            raise ValueError(must("bits", f"be at least 1, got {abbreviate(bits)}"))
        if length < 1 or length.bit_count() > 1:
            raise ValueError(f"length must be a power of two, got {abbreviate(length)}")
        # A hopeless request is refused before a long search.
        if length < _SHORT_LENGTH and bits >= 31 * (most := most_primes(31, length)):
            raise ValueError(
                f"at most {most} primes below 2**31 have transforms of length {length}; their M is less than "
                f"2**{abbreviate(bits)}"
            )
        if length < _SHORT_LENGTH:
            _check_count(-(-bits // 31), f"M >= 2**{abbreviate(bits)}")
        primes, found, total = primes_below(2**31, length), list[int](), gmpy2.mpz(1)
        while total.bit_length() <= bits:
            prime = next(primes, None)
            if prime is None:
                raise ValueError(
                    f"{len(found)} primes below 2**31 have transforms of length {abbreviate(length)}; their "
                    f"M of {total.bit_length()} bits is less than 2**{abbreviate(bits)}"
                )
            found.append(prime)
            total *= prime
        return cls._from_checked(tuple(found))

    @cached_property
    def product_tree(self) -> list[list[gmpy2.mpz]]:
        """The moduli, the products of every two of them, and so on up to M."""
        return product_tree(self.moduli)

    @cached_property
    def product(self) -> int:
        """Dynamic range M, the product of all moduli."""
        return int(self.product_tree[-1][0])

    @cached_property
    def bits(self) -> int:
        """Length of M in bits."""
        return self.product.bit_length()

    @cached_property
    def partial_products(self) -> tuple[int, ...]:
        """Partial products M_i = M / m_i."""
        product = gmpy2.mpz(self.product)
        return tuple(int(product // m) for m in self.moduli)

    @cached_property
    def partial_inverses(self) -> tuple[int, ...]:
        """Partial inverses w_i: the inverse of M_i modulo m_i, 0 < w_i < m_i."""
        return tuple(partial_inverses(self.product_tree))

    def value_range(self, signed: bool = False) -> tuple[int, int]:
        """Return the lowest and the highest value: (0, M - 1), or signed (-(M // 2), (M - 1) // 2)."""
        if signed:
            return -(self.product // 2), (self.product - 1) // 2
        return 0, self.product - 1

    def limb_count(self, signed: bool = False) -> int:
        """Return how many 32-bit limbs hold any value of the range, in two's complement when signed."""
        _, highest = self.value_range(signed)
        # The lowest signed value, -(M // 2), never needs more bits than the highest with its sign bit.
        return -(-(highest.bit_length() + signed) // LIMB_BITS)

    def prefix(self, count: int) -> Self:
        """Return the set of the first `count` moduli.

        Raises
        ------
        ValueError
            If `count` is not from 1 to the number of moduli.
        """
        count = as_integer(count, "count")
        if not 1 <= count <= len(self):
            raise ValueError(f"a prefix has from 1 to {len(self)} moduli, got {abbreviate(count)}")
        return self if count == len(self) else self._from_checked(self.moduli[:count])

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Cached: caches of constants hash the set in every call.
        return hash(self.moduli)

    def __len__(self) -> int:
        return len(self.moduli)

    def __iter__(self) -> Iterator[int]:
        return iter(self.moduli)

    def __getitem__(self, index: SupportsIndex) -> int:
        return self.moduli[index]

    def __repr__(self) -> str:
        if len(self) <= 4:
            return f"ModuliSet({list(self.moduli)})"
        # The width of a modulus is that of its greatest residue: 2**32 counts as 32 bits.
        narrowest, widest = (min(self.moduli) - 1).bit_length(), (max(self.moduli) - 1).bit_length()
        width = f"{widest}" if narrowest == widest else f"{narrowest} to {widest}"
        return f"ModuliSet({len(self)} moduli of {width} bits, M of {self.bits} bits)"

    def __getstate__(self) -> dict[str, Any]:
        # Without the cached constants: computing them again is cheaper than sending them.
        return {"moduli": self.moduli}

    def __dask_tokenize__(self) -> tuple[str, tuple[int, ...]]:
        return "rnsdask.ModuliSet", self.moduli


def fewest_moduli(lowest: int, highest: int, signed: bool) -> ModuliSet:
    """Fewest of the largest 32-bit moduli whose range, signed or not, holds all integers between two.

    Without `signed`, a negative number counts as 0.
    """
    bits = max(highest.bit_length(), (~lowest).bit_length() if lowest < 0 else 0, 1) + signed
    moduli = ModuliSet.for_bits(bits)
    while len(moduli) > 1:
        fewer = moduli.prefix(len(moduli) - 1)
        least, greatest = fewer.value_range(signed)
        if least > (lowest if signed else 0) or highest > greatest:
            break
        moduli = fewer
    return moduli


def first_moduli(count: int) -> ModuliSet:
    """First moduli of the sequence that :meth:`ModuliSet.for_bits` takes: 2**32, 2**32 - 1 and so on.

    Each set is a prefix of all longer ones. While it is cached, one count gives one object.
    """
    _check_count(count, "it")
    return _first_moduli(count)


@lru_cache(2**8)
def _first_moduli(count: int) -> ModuliSet:
    return _long_sequence((count - 1).bit_length()).prefix(count)


@lru_cache(2)
def _long_sequence(levels: int) -> ModuliSet:
    """First 2**levels moduli of the sequence."""
    return ModuliSet._from_checked(tuple(islice(greedy_coprime(MODULUS_MAX, -1, 1), 1 << levels)))


def unchecked_set(moduli: Iterable[int]) -> ModuliSet:
    """Make a set of moduli from 2 to 2**32 known to be pairwise coprime, such as distinct primes.

    Checking thousands of them takes long.
    """
    return ModuliSet._from_checked(tuple(moduli))


def check_moduli(moduli: tuple[int, ...], bits: int = 32) -> None:
    """Raise ValueError unless there are moduli, all from 2 to 2**bits and pairwise coprime."""
    if not moduli:
        raise ValueError("a moduli set needs at least one modulus, got none")
    _check_count(len(moduli), "it")
    for j, m in enumerate(moduli):
        if not 2 <= m <= 2**bits:
            raise ValueError(
                f"modulus {abbreviate(m)} (position {j}) is out of bounds: moduli are from 2 to 2**{bits}"
            )
    if (shared := first_shared(moduli)) is not None:
        i, j = shared
        raise ValueError(
            f"moduli {moduli[i]} (position {i}) and {moduli[j]} (position {j}) are not coprime: "
            f"both are divisible by {math.gcd(moduli[i], moduli[j])}"
        )


def _check_count(count: int, what: str) -> None:
    """Raise ValueError if `what` needs more moduli than a store can hold."""
    if count > MOST_MODULI:
        raise ValueError(
            f"{what} takes {abbreviate(count)} moduli or more; a set has at most {MOST_MODULI} moduli, "
            "because no store can hold more"
        )
