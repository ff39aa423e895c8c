"""Products of very long integers, by transforms modulo primes. No Dask in here."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, SupportsIndex, TypeAlias, overload

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import cpu
from rnsdask.constants import (
    ForwardConstants,
    ReverseConstants,
    TransformConstants,
    forward_constants,
    reverse_constants,
    transform_constants,
)
from rnsdask.core.moduli import LIMB_BITS, ModuliSet, as_integer

Words: TypeAlias = NDArray[np.uint32]
Map: TypeAlias = Callable[[Callable[[int], Any], Iterable[int]], Iterator[Any]]
"""``map``, or that of a pool of threads."""

LEAST_OPERAND_BITS = 2**16
LEAST_PRODUCT_BITS = 2**20
LEAST_SQUARE_BITS = 2**22
"""Bits of the shorter operand, of a product and of a square from which transforms are quicker than GMP."""

LEAST_QUOTIENT_BITS = 2**19
"""Bits of a divisor and of a quotient from which products are quicker than GMP's division."""

# Bits that the numbers of a division keep in addition to the bits of the result.
_SPARE_BITS = 64

MOST_LIMBS = 2**26 - 16
"""Limbs of the longest product by transforms: the primes below 2**31 suffice for 2**23 digits of 8 limbs."""

# Fewest limbs of a digit, which is a coefficient; it has at most twice as many. Longer digits take fewer
# primes for each bit, but a longer Chinese remaindering.
_FEWEST_LIMBS = 4

# Bits of a product from which starting threads pays off.
PARALLEL_BITS = 2**22

# Digits that a thread converts at a time.
BLOCK = 2**13


@overload
def long_multiply(a: int, b: int) -> int: ...
@overload
def long_multiply(a: SupportsIndex, b: SupportsIndex) -> gmpy2.mpz: ...
def long_multiply(a: SupportsIndex, b: SupportsIndex) -> int | gmpy2.mpz:
    """Exact product of two integers, which may have billions of bits.

    The integers are polynomials with digits of 128 to 256 bits as coefficients. These are multiplied modulo
    10 to 19 primes below 2**31 by number-theoretic transforms, on as many threads as the process may use
    processors; the coefficients follow by the Chinese remainder theorem, and carries turn them into the
    product. Nothing is rounded. Where an operand is short, GMP multiplies.

    Parameters
    ----------
    a, b : int or gmpy2.mpz
        Integers of any sign and length; other types that stand for integers are taken as int.

    Returns
    -------
    int or gmpy2.mpz
        mpz if `a` or `b` is one.

    Raises
    ------
    TypeError
        If an operand is no integer.

    Notes
    -----
    In addition to operands and product, it takes some 4 times the memory of the product: 1 GB for 2**31 bits.
    For longer products, one operand is cut in half.

    The method is that of J. Pollard, "The fast Fourier transform in a finite field", Mathematics of
    Computation 25 (1971).
    """
    x, y = _as_mpz(a, "a"), _as_mpz(b, "b")
    product = _product(abs(x), abs(y))
    if (x < 0) != (y < 0):
        product = -product
    return product if isinstance(a, gmpy2.mpz) or isinstance(b, gmpy2.mpz) else int(product)


def long_floor_divide(x: gmpy2.mpz, y: gmpy2.mpz) -> gmpy2.mpz:
    """Floor of x / y for x >= 0 and y > 0, by an approximate reciprocal where that is quicker."""
    length = y.bit_length()
    bits = x.bit_length() - length + 1
    if min(bits, length) < LEAST_QUOTIENT_BITS:
        return x // y
    cut = max(0, length - _SPARE_BITS)
    quotient = long_multiply(x >> cut, _reciprocal(y, bits)) >> length + bits - cut
    # The quotient is a few units too small; the exact remainder corrects it.
    return quotient + (x - long_multiply(quotient, y)) // y


def _reciprocal(y: gmpy2.mpz, bits: int) -> gmpy2.mpz:
    """About ``2**(bits + y.bit_length()) / y``, by Newton's iteration."""
    length = min(y.bit_length(), bits + _SPARE_BITS)
    y >>= y.bit_length() - length
    if bits < LEAST_QUOTIENT_BITS:
        return (gmpy2.mpz(1) << length + bits) // y
    half = bits // 2 + _SPARE_BITS
    found = _reciprocal(y, half)
    cut = max(0, length - half - _SPARE_BITS)
    rest = ((gmpy2.mpz(1) << length + half) - long_multiply(found, y)) >> cut
    return (found << bits - half) + (long_multiply(found, rest) >> length + 2 * half - bits - cut)


def _as_mpz(value: Any, name: str) -> gmpy2.mpz:
    return value if isinstance(value, gmpy2.mpz) else gmpy2.mpz(as_integer(value, name))


def _product(x: gmpy2.mpz, y: gmpy2.mpz) -> gmpy2.mpz:
    """Product of nonnegative integers."""
    if x.bit_length() < y.bit_length():
        x, y = y, x
    least = LEAST_SQUARE_BITS if x == y else LEAST_PRODUCT_BITS
    if y.bit_length() < LEAST_OPERAND_BITS or x.bit_length() + y.bit_length() < least:
        return x * y
    if _limb_count(x) + _limb_count(y) > MOST_LIMBS:
        bits = x.bit_length() // 2
        high, low = _product(x >> bits, y), _product(gmpy2.f_mod_2exp(x, bits), y)
        return (high << bits) + low
    return multiply_by_transforms(x, y)


def multiply_by_transforms(x: gmpy2.mpz, y: gmpy2.mpz) -> gmpy2.mpz:
    """Multiply nonnegative integers, of at most `MOST_LIMBS` limbs together."""
    a = _limbs(x)
    product = multiply_limbs(a, a if x == y else _limbs(y))
    return gmpy2.mpz.from_bytes(product.astype("<u4", copy=False).tobytes(), "little")


def _limb_count(x: gmpy2.mpz) -> int:
    bits: int = x.bit_length()
    return -(-bits // LIMB_BITS)


def _limbs(x: gmpy2.mpz) -> Words:
    data = x.to_bytes(_limb_count(x) * (LIMB_BITS // 8), "little")
    return np.frombuffer(data, dtype="<u4").astype(np.uint32, copy=False)


def multiply_limbs(x: Words, y: Words, *, cyclic: bool = False) -> Words:
    """Multiply two integers by transforms, of no more than ``MOST_LIMBS`` limbs together.

    For a square, both are the same array. The result has ``len(x) + len(y)`` limbs. With `cyclic`, `x` has at
    least twice as many limbs as `y`, the result has ``len(x)``, and only its limbs from place ``len(y)`` on
    are valid. They come from a shorter product, and may be too great by one unit of place ``len(y)``.
    """
    lengths = (len(x),) if cyclic else (len(x), len(y))
    threads, plan = _threads(), plan_for(*lengths)
    if threads == 1 or LIMB_BITS * (len(x) + len(y)) < PARALLEL_BITS:
        return _multiply_polynomials(x, y, plan, map)[: sum(lengths)]
    with ThreadPoolExecutor(threads) as pool:
        return _multiply_polynomials(x, y, plan, pool.map)[: sum(lengths)]


@dataclass(frozen=True, eq=False)
class _Plan:
    """Parameters of a product of polynomials: N, the limbs of a digit, constants for all primes and each."""

    length: int
    limb_count: int
    moduli: ModuliSet
    to_residues: ForwardConstants
    to_limbs: ReverseConstants
    transforms: list[tuple[TransformConstants, TransformConstants]]


@lru_cache(16)
def _plan(length: int, limb_count: int) -> _Plan:
    # If a product has N coefficients, one factor has at most N/2: the number of products in a sum.
    bits = 2 * LIMB_BITS * limb_count + length.bit_length() - 2
    moduli = ModuliSet.ntt_primes(bits, length)
    each = [ModuliSet([p]) for p in moduli]
    return _Plan(
        length,
        limb_count,
        moduli,
        forward_constants(moduli, limb_count),
        reverse_constants(moduli),
        [(transform_constants(p, length, False), transform_constants(p, length, True)) for p in each],
    )


def plan_for(*limbs: int) -> _Plan:
    """Plan for operands of these numbers of limbs."""
    length = 1 << max(3, (sum(limbs) // _FEWEST_LIMBS).bit_length() - 1)  # at least one digit of each
    limb_count = -(-sum(limbs) // length)
    while sum(-(-count // limb_count) for count in limbs) > length:
        limb_count += 1
    return _plan(length, limb_count)


def _multiply_polynomials(x: Words, y: Words, plan: _Plan, each: Map) -> Words:
    return _join_all(_coefficients(x, y, plan, each), plan, each)


def _coefficients(x: Words, y: Words, plan: _Plan, each: Map) -> Words:
    """The product's coefficients modulo each prime."""
    operands = [_digits(limbs, plan.limb_count) for limbs in ((x,) if x is y else (x, y))]
    counts = [len(digits) for digits in operands]
    # The operands' digits side by side; the coefficients replace them.
    residues = np.empty((len(plan.moduli), max(plan.length, sum(counts))), dtype=np.uint32)
    start = 0
    for digits in operands:
        part = residues[:, start : start + len(digits)]
        list(each(partial(_convert, digits, plan, part), range(0, len(digits), BLOCK)))
        start += len(digits)
    list(each(partial(_multiply_row, residues, plan, counts), range(len(plan.moduli))))
    return residues[:, : min(plan.length, counts[0] + counts[-1] - 1)]


def _join_all(residues: Words, plan: _Plan, each: Map) -> Words:
    """Limbs of the sum of the coefficients at their places."""
    coefficients = residues.shape[1]
    # The last coefficient extends beyond its own place, and a carry may follow.
    result = np.zeros((coefficients - 1) * plan.limb_count + plan.to_limbs.limb_count + 1, dtype=np.uint32)
    for start, end in list(each(partial(_join, residues, plan, result), range(0, coefficients, BLOCK))):
        cpu.overlap_add(end[np.newaxis], 1, result[start:])
    return result


def _threads() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _digits(limbs: Words, limb_count: int) -> Words:
    """The digits of an integer, one row of limbs for each."""
    count = -(-len(limbs) // limb_count)
    if len(limbs) < count * limb_count:
        limbs = np.concatenate([limbs, np.zeros(count * limb_count - len(limbs), dtype=np.uint32)])
    return limbs.reshape(count, limb_count)


def _convert(digits: Words, plan: _Plan, residues: Words, start: int) -> None:
    """Write the residues of a block of digits."""
    block = slice(start, start + BLOCK)
    cpu.limbs_to_residues(digits[block], plan.to_residues, residues[:, block])


def _multiply_row(residues: Words, plan: _Plan, counts: list[int], i: int) -> None:
    """Replace the operands' digits by the product's coefficients modulo prime i."""
    row = residues[i : i + 1]
    operands, start = [], 0
    for count in counts:
        operand = np.zeros((1, plan.length), dtype=np.uint32)
        operand[:, :count] = row[:, start : start + count]
        operands.append(operand)
        start += count
    cpu.cyclic_products(operands[0], operands[-1], *plan.transforms[i], row[:, : plan.length])


def _join(residues: Words, plan: _Plan, result: Words, start: int) -> tuple[int, Words]:
    """Write the sum of a block of coefficients, except what reaches into the next block's places.

    Return the place where that is to be added, and its limbs.
    """
    limbs = cpu.residues_to_limbs(residues[:, start : start + BLOCK], plan.to_limbs)
    total = np.zeros((len(limbs) - 1) * plan.limb_count + limbs.shape[1] + 1, dtype=np.uint32)
    cpu.overlap_add(limbs, plan.limb_count, total)
    first, places = start * plan.limb_count, len(limbs) * plan.limb_count
    result[first : first + places] = total[:places]
    return first + places, total[places:]
