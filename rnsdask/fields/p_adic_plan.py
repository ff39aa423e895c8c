"""What p-adic lifting is planned to be, and where it is quicker than images modulo primes. No Dask here."""

import functools
import math
from dataclasses import dataclass

from rnsdask.backend import Array, backend_name
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.fields.determinant_bounds import hadamard_bound
from rnsdask.fields.elimination import MOST_SMALL_ROWS

# Of primes below it, 512 products of two residues add up to less than 2**64.
LIMIT = math.isqrt(2**64 // 512)
_BITS = LIMIT.bit_length()

# How long the parts take: a step of an elimination and one of a product with vectors, the calls for a digit,
# a digit of a solution that becomes a number, a bit of that, one of a fraction that is reconstructed, and all
# else.
_INVERSION_SECONDS, _PRODUCT_SECONDS, _DIGIT_SECONDS = 3.5e-10, 2.5e-10, 6e-5
_NUMBER_SECONDS, _BIT_SECONDS, _FRACTION_SECONDS, _CALL_SECONDS = 6e-7, 1.2e-8, 4.5e-7, 2e-3
# Of images: a prime of an element, for each modulus; two primes of a number by the remainder theorem, or one
# of a determinant by a tree.
_EXTENSION_SECONDS, _CRT_SECONDS, _TREE_SECONDS = 1.8e-10, 5e-10, 4e-7
# A row takes as long as if it were longer by so much; a step of small matrices, several at a time.
_SHORT_ROWS = 64
_SMALL_SECONDS = 1e-10
_MOST_PRIMES = 64

# Solutions of about half as many bits are short, and looked for where all else takes so many times as long.
_SHORT_BITS, _TRIALS = 192, 8


@dataclass(frozen=True)
class Plan:
    """Of how many primes the base is, and of how many digits solutions are."""

    primes: int
    digits: int

    @classmethod
    def of(cls, limit: int, rows: int, columns: int, reach: int) -> "Plan":
        """That which takes the least time for expansions beyond a limit."""
        words = limit.bit_length() / (_BITS - 1)
        others = reach.bit_length() / (_BITS - 1)
        product = rows**2 * columns * _PRODUCT_SECONDS
        best = math.sqrt(words * (others * product + _DIGIT_SECONDS) / (rows**3 * _INVERSION_SECONDS))
        count = min(max(1, round(best)), _MOST_PRIMES, max(1, math.ceil(words)))
        return cls(count, math.ceil(limit.bit_length() / (count * math.log2(LIMIT) - 1)) + 1)

    @classmethod
    def of_short(cls, rows: int, columns: int, reach: int) -> "Plan":
        """That for solutions whose numerators and denominator are short."""
        return cls.of(max(reach, 1) << _SHORT_BITS, rows, columns, reach)

    def seconds(self, rows: int, columns: int, reach: int) -> float:
        """About how long it takes."""
        others = reach.bit_length() / (_BITS - 1)
        product = rows**2 * columns * _PRODUCT_SECONDS
        inversion = self.primes * rows**2 * (rows + _SHORT_ROWS) * _INVERSION_SECONDS
        number = rows * columns * (_NUMBER_SECONDS + self.primes * _BITS * _BIT_SECONDS)
        return (
            _CALL_SECONDS
            + inversion
            + self.digits * self.primes * _BITS / 2 * _FRACTION_SECONDS
            + self.digits * (_DIGIT_SECONDS + number + (self.primes + others) * product)
        )


def is_quicker(words: Array, rows: int, columns: int, magnitude: int) -> bool:
    """Whether one matrix takes less time so than modulo as many primes as the results' bound needs.

    `words` are an array of its processor, `columns` counts right-hand sides. On a GPU images are quick.
    """
    return _is_possible(words, rows, columns) and _takes_less(rows, columns, magnitude)


@functools.lru_cache(CACHED_SETS)
def _takes_less(rows: int, columns: int, magnitude: int) -> bool:
    reach = max(1, rows * magnitude)
    plan = Plan.of(hadamard_bound(rows, magnitude) ** 2, rows, columns, reach)
    return _images_seconds(rows, columns, magnitude) > plan.seconds(rows, columns, reach)


def may_be_short(words: Array, rows: int, columns: int, magnitudes: tuple[int, int]) -> bool:
    """Whether it takes little time, beside images, to find out if solutions are short."""
    return _is_possible(words, rows, columns) and _takes_little(rows, columns, magnitudes)


@functools.lru_cache(CACHED_SETS)
def _takes_little(rows: int, columns: int, magnitudes: tuple[int, int]) -> bool:
    reach = reach_of(rows, magnitudes)
    trial = Plan.of_short(rows, columns, reach).seconds(rows, columns, reach)
    return _images_seconds(rows, columns, magnitudes[0]) > _TRIALS * trial


def _is_possible(words: Array, rows: int, columns: int) -> bool:
    return backend_name(words) == "cpu" and rows > 0 and columns <= max(1, rows // 16)


def _images_seconds(rows: int, columns: int, magnitude: int) -> float:
    """About how long images modulo primes take."""
    primes_needed = hadamard_bound(rows, magnitude).bit_length() / 31
    step = _SMALL_SECONDS if rows <= MOST_SMALL_ROWS else _INVERSION_SECONDS
    elimination = rows * (rows / 3 + columns) * (rows + _SHORT_ROWS) * step
    extension = rows * (rows + columns) * magnitude.bit_length() / 31 * _EXTENSION_SECONDS
    numbers = _TREE_SECONDS
    if columns:  # whose numerators are converted 64 at a time
        numbers += -(-rows * columns // 64) * 64 * primes_needed * _CRT_SECONDS
    return primes_needed * (elimination + extension + numbers)


def reach_of(rows: int, magnitudes: tuple[int, int]) -> int:
    """No residual is greater, of equations with elements up to the magnitudes."""
    return max(rows * magnitudes[0], magnitudes[1])
