"""Division with Python's floor semantics: ``x = q d + r``, and r is 0 or has the sign of d.

A quotient depends on the size of a number, which residues hide. So numbers pass through limbs, in blocks:
table products there and back and a long division in between, O(n**2) operations a number; on a CPU that
multiplies words of 52 bits, one kernel does all of it with digits of 52 bits. For an integer d the quotient
is (x - r) / d, an exact division in O(n), and only the remainder r takes more: for d of at most 32 bits, a
base extension to the modulus d; for a longer one, a table product to limbs and one back.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, is_all, kernels_of
from rnsdask.constants import (
    forward_constants,
    remainder_constants,
    reverse_constants,
    sufficient_prefix,
)
from rnsdask.constants.digits import DivisionDigits
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.errors import abbreviate
from rnsdask.core.generic import check_nonzero
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import LIMB_BITS, MODULUS_MAX, ModuliSet
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Locate
from rnsdask.core.ranges import Range
from rnsdask.core.rows import Part
from rnsdask.rns.convert import ints_to_limbs, limbs_to_ints
from rnsdask.rns.extend import base_extend
from rnsdask.rns.system import RNS

# Limbs that are divided at a time: on a CPU they stay in its cache.
_CPU_BLOCK_BYTES = 2**20
_GPU_BLOCK_BYTES = 32 * 2**20
_LIMB_BYTES = LIMB_BITS // 8

# Moduli for which a long division takes as long as a division by at most 32 bits: 15 to 20 on a CPU, fewer on
# a GPU.
_MODULI_A_PASS = 16


def floor_divide(
    residues: Array,
    divisor: int | Array,
    system: RNS,
    parts: Sequence[Part] = ("quotient", "remainder"),
    locate: Locate = int,
    divisor_bound: int | None = None,
) -> Array:
    """Divide each number by an integer, negative only for signed numbers, or by an array's number.

    The result has the residues of all parts, one after the other along the first axis. The system has the
    bound of the dividends; `divisor_bound` is the bound of an array's divisors. ZeroDivisionError for a
    divisor of 0, RNSOverflowError for a result out of range: the quotient of the lowest signed value by -1,
    or the remainder of a number by a greater divisor of the other sign; both name the first one's index.
    """
    system.check_words(residues)
    if isinstance(divisor, int):
        check_divisor(system, divisor)
    matrix = as_matrix(residues)
    divisors = _divisor_rows(matrix, divisor)
    result = np.empty_like(matrix, shape=(len(parts), *matrix.shape), order="C")
    divisor_system = system.with_bound(divisor_bound)
    written = dict(zip(parts, result, strict=True))
    if isinstance(divisor, int) or not _divide_at_once(
        matrix, divisors, system, divisor_system, written, locate
    ):
        fixed = _fixed_divisor(divisor, matrix, system.signed) if isinstance(divisor, int) else None
        for block in _blocks(matrix, system.moduli.limb_count(system.signed)):
            other = fixed if fixed is not None else _limbs(divisors[:, block], divisor_system)
            _check_not_zero(other, locate, block.start)
            limbs = _limbs(matrix[:, block], system)
            _divide_block(limbs, other, system, parts, result[:, :, block], locate, block.start)
    return result.reshape(len(parts) * system.rows, *residues.shape[1:])


def divide_arrays(
    x: Array, y: Array, system: RNS, parts: Sequence[Part], locate: Locate, ranges: Sequence[Range]
) -> Array:
    """Divide two chunks, which broadcast, as :func:`floor_divide` does; `ranges` are known for both."""
    like = y if isinstance(x, np.ndarray) else x  # a single number is a NumPy array on any processor
    shape = (system.rows, *np.broadcast_shapes(x.shape[1:], y.shape[1:]))
    x, y = (np.broadcast_to(np.asarray(block, like=like), shape) for block in (x, y))
    dividends, divisors = (system.holding(known) for known in ranges)
    return floor_divide(x, y, dividends, parts, locate, divisors.bound)


def divide_by_integer(
    residues: Array,
    divisor: int,
    system: RNS,
    parts: Sequence[Part] = ("quotient", "remainder"),
    locate: Locate = int,
) -> Array:
    """Divide by an integer as :func:`floor_divide` does, without long division for 2 or more in the range.

    If the system has a bound, fewer moduli are used. On a processor without a kernel for long remainders, a
    quotient by a power of two beyond 32 bits takes several divisions, if they are faster than a long one.
    """
    check_divisor(system, divisor)
    moduli, highest = system.moduli, system.value_range[1]
    has_long_remainders = kernels_of(residues).remainder_limbs is not None
    if not has_long_remainders and divisor <= highest and _takes_passes(divisor, moduli, parts):
        once = divide_by_integer(residues, MODULUS_MAX, system, parts, locate)
        # The quotients are small, and without their bound a base extension could not distinguish them from 0.
        left = system.with_bound(system.known_magnitude // MODULUS_MAX + system.signed)
        return divide_by_integer(once, divisor // MODULUS_MAX, left, parts, locate)
    if not 2 <= divisor <= highest + 1 or (divisor > MODULUS_MAX and not has_long_remainders):
        return floor_divide(residues, divisor, system, parts, locate)
    division = _exact_division(divisor, moduli, system.signed) if "quotient" in parts else None
    if "quotient" in parts and division is None:
        return floor_divide(residues, divisor, system, parts, locate)
    system.check_words(residues)
    n, matrix = system.rows, as_matrix(residues)
    # Remainders by a divisor of a modulus are known.
    if division is not None and tuple(parts) == ("quotient",) and all(m % divisor for m in moduli):
        quotients = np.empty_like(matrix, order="C")
        if _write_at_once(matrix, divisor, system, quotients, division):
            return division.completed(quotients, system).reshape(n, *residues.shape[1:])
    results = {"remainder": _remainders(matrix, divisor, system)}
    if division is not None:
        results["quotient"] = division.quotients(matrix, results["remainder"], system)
    stacked = np.concatenate([results[part] for part in parts]) if len(parts) > 1 else results[parts[0]]
    return stacked.reshape(len(parts) * n, *residues.shape[1:])


def _remainders(matrix: Array, divisor: int, system: RNS) -> Array:
    """Residues of each number's remainder by a divisor from 2 to one more than the highest value."""
    result = np.empty_like(matrix, order="C")
    if divisor <= MODULUS_MAX:
        small = small_remainder(matrix, system, divisor).reshape(-1, 1)
        kernels_of(small).limbs_to_residues(small, forward_constants(system.moduli, 1), result)
        return result
    if _write_at_once(matrix, divisor, system, result):
        return result
    width = -(-divisor.bit_length() // LIMB_BITS)
    back = forward_constants(system.moduli, width)
    for block in _blocks(matrix, width):
        limbs = _remainder_limbs(matrix[:, block], divisor, system)[:, :width]
        kernels_of(limbs).limbs_to_residues(limbs, back, result[:, block])
    return result


def _write_at_once(
    matrix: Array, divisor: int, system: RNS, result: Array, division: "_ExactDivision | None" = None
) -> bool:
    """Write remainders, or exact quotients except modulo factors shared with the divisor, by one kernel.

    Returns whether there is one for the processor and for numbers of this length.
    """
    kernels = kernels_of(matrix)
    if kernels.remainders is None:
        return False
    constants = remainder_constants(system.moduli, divisor, system.signed, system.bound)
    back = forward_constants(system.moduli, -(-divisor.bit_length() // LIMB_BITS))
    flags = kernels.remainders(matrix, constants, back, division and division.factors, result)
    if flags is None:
        return False
    (ambiguous,) = flags.nonzero()
    if ambiguous.size:
        numbers = kernels.gather(matrix, ambiguous)
        if divisor <= MODULUS_MAX:
            rest = _remainders(numbers, divisor, system)
        else:
            rest = floor_divide(numbers, divisor, system, ("remainder",))
        result[:, ambiguous] = rest if division is None else division.products(numbers, rest, system.moduli)
    return True


def _remainder_limbs(matrix: Array, divisor: int, system: RNS) -> Array:
    """Limbs of remainders by a long divisor; by long division for ambiguous numbers."""
    kernels = kernels_of(matrix)
    assert kernels.remainder_limbs is not None
    constants = remainder_constants(system.moduli, divisor, system.signed, system.bound)
    limbs, flags = kernels.remainder_limbs(matrix, constants)
    (ambiguous,) = flags.nonzero()
    if ambiguous.size:
        numbers = _limbs(kernels.gather(matrix, ambiguous), system)
        other = _fixed_divisor(divisor, matrix, system.signed)
        width = max(numbers.shape[1] + system.signed, other.shape[1])
        _, exact = kernels.floor_divide_limbs(numbers, other, width, system.signed)
        used = min(exact.shape[1], limbs.shape[1])
        limbs[ambiguous, :used] = exact[:, :used]
        limbs[ambiguous, used:] = 0
    return limbs


def _takes_passes(divisor: int, moduli: ModuliSet, parts: Sequence[Part]) -> bool:
    """Whether repeated division by 2**32, and a last one, is quicker than a long division."""
    passes = -(-(divisor.bit_length() - 1) // LIMB_BITS)
    is_power = divisor > 0 and divisor.bit_count() == 1
    return is_power and tuple(parts) == ("quotient",) and 1 < passes <= len(moduli) // _MODULI_A_PASS


@dataclass(frozen=True, eq=False)
class _ExactDivision:
    """Division of multiples of the divisor d by d, modulo each of the moduli m_i.

    With g = gcd(d, m), the residue of a multiple of d is a multiple of g, and divided by d it is known modulo
    m/g. All the m/g together hold every quotient, so where g is not 1 a base extension completes it.

    `inverses` (n, 1) are the inverses of d modulo m_i, or 1. Each i where g is not 1 has an entry (i, g,
    inverse of d/g modulo m_i/g) in `shared`, and its m_i in `targets`. `known` are the m_i/g that are not 1,
    and `rows` their i, as a slice if they are consecutive.
    """

    divisor: int
    moduli: ModuliSet
    inverses: NDArray[np.uint32]
    shared: tuple[tuple[int, int, int], ...]
    known: ModuliSet
    rows: list[int] | slice
    targets: ModuliSet | None

    @cached_property
    def factors(self) -> NDArray[np.uint64]:
        """Inverses w and ``floor(2**52 w / m)``, (n, 2)."""
        return np.array(
            [(w, (w << 52) // m) for w, m in zip(self.inverses.ravel().tolist(), self.moduli, strict=True)],
            dtype=np.uint64,
        )

    def quotients(self, residues: Array, remainders: Array, system: RNS) -> Array:
        """(X - r) / d for matrices (n, N) of the residues of X and of r."""
        return self.completed(self.products(residues, remainders, system.moduli), system)

    def products(self, residues: Array, remainders: Array, moduli: ModuliSet) -> Array:
        """Multiply X - r by the inverses."""
        result, inverses = np.empty_like(remainders), self.inverses
        kernels_of(result).apply("mulsub", (residues, inverses, remainders, inverses), moduli, result)
        return result

    def completed(self, result: Array, system: RNS) -> Array:
        """Complete the products to quotients, in place."""
        moduli = system.moduli
        if self.targets is None:
            return result
        for i, g, inverse in self.shared:
            if g < moduli[i]:
                quotient = (result[i] // np.uint32(g)).astype(np.uint64) * np.uint64(inverse)
                result[i] = (quotient % np.uint64(moduli[i] // g)).astype(np.uint32)
        # The divisor bounds the quotients; otherwise a base extension could not distinguish small ones from
        # 0.
        known = RNS(self.known, system.signed, system.known_magnitude // self.divisor + system.signed)
        result[[i for i, _, _ in self.shared]] = base_extend(result[self.rows], known, self.targets)
        return result


@lru_cache(CACHED_SETS)
def _exact_division(divisor: int, moduli: ModuliSet, signed: bool) -> _ExactDivision | None:
    """Plan exact division by an integer of at least 2; None if the remaining moduli cannot hold quotients."""
    factors = [math.gcd(divisor, m) for m in moduli]
    rows = [i for i, (g, m) in enumerate(zip(factors, moduli, strict=True)) if g < m]
    if not rows:
        return None
    kept, (lowest, highest) = ModuliSet(moduli[i] // factors[i] for i in rows), moduli.value_range(signed)
    least, greatest = kept.value_range(signed)
    if lowest // divisor < least or highest // divisor > greatest:
        return None  # signed, with an odd product: one more quotient than values
    inverses = [pow(divisor, -1, m) if g == 1 else 1 for m, g in zip(moduli, factors, strict=True)]
    shared = tuple(
        (i, g, pow(divisor // g, -1, moduli[i] // g) if moduli[i] != g else 0)
        for i, g in enumerate(factors)
        if g > 1
    )
    return _ExactDivision(
        divisor,
        moduli,
        np.array(inverses, dtype=np.uint32).reshape(-1, 1),
        shared,
        kept,
        slice(rows[0], rows[-1] + 1) if rows[-1] - rows[0] == len(rows) - 1 else rows,
        ModuliSet(moduli[i] for i, _, _ in shared) if shared else None,
    )


def small_remainder(residues: Array, system: RNS, divisor: int) -> Array:
    """Remainder of each number by a divisor from 2 to 2**32: uint32 (*shape).

    If the divisor divides a modulus, that residue alone decides; else it is a base extension to one modulus.
    """
    system.check_words(residues)
    for row, m in zip(residues, system.moduli, strict=True):
        if m % divisor == 0:
            return row.copy() if m == divisor else row % np.uint32(divisor)
    return base_extend(residues, system, ModuliSet([divisor]))[0]


def is_multiple(residues: Array, system: RNS, divisor: int) -> Array:
    """Mask (*shape) of the multiples of a divisor from 2 to the greatest magnitude."""
    if divisor <= MODULUS_MAX:
        return small_remainder(residues, system, divisor) == 0
    return ~divide_by_integer(residues, divisor, system, ("remainder",)).any(axis=0)


def is_even(residues: Array, system: RNS) -> Array:
    """Mask (*shape) of the even numbers."""
    return small_remainder(residues, system, 2) == 0


def check_divisor(system: NumberSystem, divisor: int, **_: Any) -> None:
    """Refuse an impossible divisor: 0, or a negative one for unsigned numbers."""
    check_nonzero(system, divisor)
    if divisor < 0 and not system.is_signed:
        raise ValueError(f"unsigned numbers need a positive divisor, got {abbreviate(divisor)}")


def _divisor_rows(matrix: Array, divisor: int | Array) -> Array:
    """The divisors' residues as a matrix."""
    if isinstance(divisor, int):
        return None
    rows = as_matrix(divisor)
    if rows.shape != matrix.shape:
        raise ValueError(
            f"divisors must have the shape of the dividends, got {rows.shape} and {matrix.shape}"
        )
    return rows


def _check_not_zero(limbs: Array, locate: Locate, first: int) -> None:
    """Raise ZeroDivisionError if a divisor is 0 in a block that begins at the flat index `first`.

    Limbs are checked, not residues: a residue that is not below its modulus may stand for 0 as well.
    """
    if is_all(limbs[:, 0]):  # the cheapest proof that no divisor is 0
        return
    (zeros,) = (~limbs.any(axis=1)).nonzero()
    if zeros.size:
        raise ZeroDivisionError(f"division by zero at flat index {locate(first + int(zeros[0]))}")


def _fixed_divisor(divisor: int, like: Array, signed: bool) -> Array:
    """Limbs (1, K) of an integer, in two's complement when `signed`."""
    count = -(-(divisor.bit_length() + signed) // LIMB_BITS)
    return np.asarray(ints_to_limbs([divisor], count, signed), like=like)


def _blocks(matrix: Array, limb_count: int) -> Iterator[slice]:
    count, size = matrix.shape[1], _CPU_BLOCK_BYTES if isinstance(matrix, np.ndarray) else _GPU_BLOCK_BYTES
    length = max(1, size // (_LIMB_BYTES * limb_count))
    return (slice(first, min(first + length, count)) for first in range(0, count, length))


def _limbs(matrix: Array, system: RNS) -> Array:
    """Limbs of numbers, as few as their bound allows."""
    source = sufficient_prefix(system.moduli, system.signed, system.bound)
    constants = reverse_constants(source, system.signed)
    return kernels_of(matrix).residues_to_limbs(matrix[: len(source)], constants)


def _divide_at_once(
    matrix: Array, divisors: Array, system: RNS, other: RNS, written: dict[Part, Array], locate: Locate
) -> bool:
    """Write the residues of the parts of a division by divisors, of the system `other`, by one kernel.

    Returns whether there is one for the processor and for numbers of this length.
    """
    divide_residues = kernels_of(matrix).divide_residues
    if divide_residues is None:
        return False
    signed = system.signed
    dividend_source, divisor_source = (sufficient_prefix(s.moduli, signed, s.bound) for s in (system, other))
    dividends, by = (reverse_constants(s, signed).digits for s in (dividend_source, divisor_source))
    limb_count = max(s.limb_count(signed) for s in (dividend_source, divisor_source))
    back = forward_constants(system.moduli, limb_count).digits
    if dividends is None or by is None or back is None:
        return False
    digits = DivisionDigits(dividends, by, back, signed)
    x, y = matrix[: len(dividend_source)], divisors[: len(divisor_source)]
    zero, outside = divide_residues(x, y, digits, written.get("quotient"), written.get("remainder"))
    if zero >= 0:
        raise ZeroDivisionError(f"division by zero at flat index {locate(zero)}")
    if outside >= 0:  # the lowest value by -1
        raise system.overflow_error(-system.value_range[0], locate(outside))
    return True


def _divide_block(
    limbs: Array,
    divisors: Array,
    system: RNS,
    parts: Sequence[Part],
    result: Array,
    locate: Locate,
    first: int,
) -> None:
    """Divide limbs by limbs, and write the residues of each part, (parts, n, N), to `result`."""
    kernels, signed = kernels_of(limbs), system.signed
    # An extra limb for the quotient of the lowest signed value by -1, which must differ from the value
    # itself.
    width = max(limbs.shape[1] + signed, divisors.shape[1])
    quotients, remainders = kernels.floor_divide_limbs(limbs, divisors, width, signed)
    for residues, part in zip(result, parts, strict=True):
        values = quotients if part == "quotient" else remainders
        constants = forward_constants(system.moduli, values.shape[1], signed)
        outside = kernels.first_outside(values, constants)
        if outside is not None:
            value = limbs_to_ints(values[outside : outside + 1], signed)[0]
            raise system.overflow_error(value, locate(first + outside))
        kernels.limbs_to_residues(values, constants, residues)
