"""Solutions and determinants of one integer matrix, exact, by p-adic lifting. No Dask in here.

J. Dixon, "Exact solution of linear equations using p-adic expansions", Numerische Mathematik 40 (1982). The
base is a product P of primes, and the matrix is inverted modulo each; residuals are numbers of a residue
number system, as in Z. Chen and A. Storjohann, "A BLAS based C library for exact linear algebra on integer
matrices" (ISSAC 2005). Bounds and proofs: docs/exact-linalg.md.
"""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name, is_any, kernels_of
from rnsdask.constants import extension_constants
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.moduli import ModuliSet, unchecked_set
from rnsdask.fields import elimination
from rnsdask.fields.determinant_bounds import (
    determinant_bound,
    elements,
    greatest_determinant,
    hadamard,
    hadamard_bound,
)
from rnsdask.fields.elimination import MOST_SMALL_ROWS
from rnsdask.rns.arithmetic import apply
from rnsdask.rns.extend import base_extend
from rnsdask.rns.lift import at_a_time, count_beyond, decode, primes
from rnsdask.rns.matmul import multiply
from rnsdask.rns.rational import rational
from rnsdask.rns.system import RNS

# Bound of primes: below it, 512 products of two residues add up to less than 2**64.
LIMIT = math.isqrt(2**64 // 512)
_BITS = LIMIT.bit_length()

# Seconds of the parts: a step of an elimination; a step of a product with vectors; the calls for a digit; the
# conversion of a solution, for each digit and for each bit; a bit of a reconstructed fraction; all else.
_INVERSION_SECONDS, _PRODUCT_SECONDS, _DIGIT_SECONDS = 3.5e-10, 2.5e-10, 6e-5
_NUMBER_SECONDS, _BIT_SECONDS, _FRACTION_SECONDS, _CALL_SECONDS = 6e-7, 1.2e-8, 4.5e-7, 2e-3
# Seconds of images: an element modulo a prime, for each modulus; the Chinese remainder theorem, for two
# primes of a number; the tree of a determinant, for each prime.
_EXTENSION_SECONDS, _CRT_SECONDS, _TREE_SECONDS = 1.8e-10, 5e-10, 4e-7
# Elements that a row's fixed cost corresponds to; seconds of a step of small matrices, several at a time.
_SHORT_ROWS = 64
_SMALL_SECONDS = 1e-10
_MOST_PRIMES = 64

# Solutions of about half as many bits are short; they are tried where all else takes _TRIALS times as long.
_SHORT_BITS, _TRIALS = 192, 8


@dataclass(frozen=True)
class Plan:
    """Number of primes in the base, and of digits in solutions."""

    primes: int
    digits: int

    @classmethod
    def of(cls, limit: int, rows: int, columns: int, reach: int) -> "Plan":
        """Choose the fastest plan for expansions beyond a limit."""
        words = limit.bit_length() / (_BITS - 1)
        others = reach.bit_length() / (_BITS - 1)
        product = rows**2 * columns * _PRODUCT_SECONDS
        best = math.sqrt(words * (others * product + _DIGIT_SECONDS) / (rows**3 * _INVERSION_SECONDS))
        count = min(max(1, round(best)), _MOST_PRIMES, max(1, math.ceil(words)))
        return cls(count, math.ceil(limit.bit_length() / (count * math.log2(LIMIT) - 1)) + 1)

    @classmethod
    def of_short(cls, rows: int, columns: int, reach: int) -> "Plan":
        """Choose the plan for solutions whose numerators and denominator are short."""
        return cls.of(max(reach, 1) << _SHORT_BITS, rows, columns, reach)

    def seconds(self, rows: int, columns: int, reach: int) -> float:
        """Estimated time in seconds."""
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
    """Whether lifting one matrix takes less time than images modulo the primes that the results' bound needs.

    `words` is an array on its processor, `columns` counts right-hand sides. On a GPU images are always
    quicker.
    """
    return _is_possible(words, rows, columns) and _takes_less(rows, columns, magnitude)


@functools.lru_cache(CACHED_SETS)
def _takes_less(rows: int, columns: int, magnitude: int) -> bool:
    reach = max(1, rows * magnitude)
    plan = Plan.of(hadamard_bound(rows, magnitude) ** 2, rows, columns, reach)
    return _images_seconds(rows, columns, magnitude) > plan.seconds(rows, columns, reach)


def may_be_short(words: Array, rows: int, columns: int, magnitudes: tuple[int, int]) -> bool:
    """Whether a trial for short solutions takes little time compared with images."""
    return _is_possible(words, rows, columns) and _takes_little(rows, columns, magnitudes)


@functools.lru_cache(CACHED_SETS)
def _takes_little(rows: int, columns: int, magnitudes: tuple[int, int]) -> bool:
    reach = reach_of(rows, magnitudes)
    trial = Plan.of_short(rows, columns, reach).seconds(rows, columns, reach)
    return _images_seconds(rows, columns, magnitudes[0]) > _TRIALS * trial


def _is_possible(words: Array, rows: int, columns: int) -> bool:
    return backend_name(words) == "cpu" and rows > 0 and columns <= max(1, rows // 16)


def _images_seconds(rows: int, columns: int, magnitude: int) -> float:
    """Estimated time of images modulo primes, in seconds."""
    primes_needed = hadamard_bound(rows, magnitude).bit_length() / 31
    step = _SMALL_SECONDS if rows <= MOST_SMALL_ROWS else _INVERSION_SECONDS
    elimination = rows * (rows / 3 + columns) * (rows + _SHORT_ROWS) * step
    extension = rows * (rows + columns) * magnitude.bit_length() / 31 * _EXTENSION_SECONDS
    numbers = _TREE_SECONDS
    if columns:  # whose numerators are converted 64 at a time
        numbers += -(-rows * columns // 64) * 64 * primes_needed * _CRT_SECONDS
    return primes_needed * (elimination + extension + numbers)


def reach_of(rows: int, magnitudes: tuple[int, int]) -> int:
    """Bound of the residuals of equations with elements up to the magnitudes."""
    return max(rows * magnitudes[0], magnitudes[1])


# Bits of random right-hand sides, and of the weights of sums of solutions.
_WEIGHT_BITS = 8

_AS_MPZ = np.frompyfunc(gmpy2.mpz, 1, 1)

# Divisor of the number of digits after which solutions are first tried: shorter ones are found early.
_TRIAL = 8


@dataclass(frozen=True)
class Inverse:
    """Inverses (t, N, N) of a matrix modulo primes, and its determinants."""

    moduli: ModuliSet
    words: Array
    determinants: list[int]
    taken: int


@dataclass(frozen=True)
class Expansion:
    """First digits (t + s, k, N, K) of solutions to the base P, modulo the primes of P and others."""

    words: Array
    base: ModuliSet
    moduli: ModuliSet

    @cached_property
    def modulus(self) -> gmpy2.mpz:
        """Modulus of the solutions: P to the number of digits."""
        return gmpy2.mpz(self.base.product) ** self.words.shape[1]

    def numbers(self) -> NDArray[np.object_]:
        """Solutions (N, K), from 0 to the modulus less 1."""
        digits = RNS(self.base).decode(self.words[: len(self.base)])
        return _join_digits(digits, self.base.product)

    def weighted(self, weights: Array) -> list[int]:
        """Sums (K,) of the solutions times weights (N,) below 2**8."""
        # Sums of digits are below 2**8 N P, and the other moduli have a product above 2**27: so the sums are
        # in range for matrices of up to 2**19 rows.
        count, _, columns = self.words.shape[1:]
        terms = self.words.transpose(0, 1, 3, 2).reshape(len(self.moduli), count * columns, weights.size)
        factors = np.broadcast_to(weights[:, None], (len(self.moduli), weights.size, 1))
        digits = RNS(self.moduli).decode(multiply(terms, factors, self.moduli)).reshape(count, columns)
        found: list[int] = (_join_digits(digits, self.base.product) % self.modulus).tolist()
        return found


def _join_digits(digits: NDArray[np.object_], base: int) -> NDArray[np.object_]:
    """Join digits (k, *shape) to gmpy2 integers, two neighbours at a time."""
    digits, power = np.asarray(_AS_MPZ(digits), dtype=object), gmpy2.mpz(base)
    while len(digits) > 1:
        if len(digits) % 2:
            digits = np.concatenate([digits, digits[:1] * 0])
        digits = digits[::2] + power * digits[1::2]
        power *= power
    joined: NDArray[np.object_] = digits[0]
    return joined


def inverse_modulo_primes(words: Array, system: RNS, count: int) -> Inverse | None:
    """Invert a matrix (n, N, N) modulo `count` primes; None if it is singular modulo as many others."""
    kept: list[int] = []
    found: list[Array] = []
    determinants: list[int] = []
    taken = 0
    while len(kept) < count and taken < 2 * count:
        part = primes(taken, min(count - len(kept), at_a_time(words)), LIMIT)
        taken += len(part)
        images = elimination.with_identity(base_extend(words, system, part))
        inverses, products = elimination.solutions_and_determinants(images, part)
        here = products.reshape(-1).tolist()
        places = [i for i, value in enumerate(here) if value]
        kept += [part[i] for i in places]
        determinants += [here[i] for i in places]
        found += [inverses[i] for i in places]
        if not kept:
            break
    if len(kept) < count:
        return None
    return Inverse(unchecked_set(kept), np.stack(found), determinants, taken)


class Lifting:
    """Lifting of the solutions of A x = b, (n, N, N) and (m, N, K), digit by digit, up to `count` digits.

    `inverse` is the inverse of A modulo the primes whose product P is the base. Elements of b, and N times
    elements of A, are at most `reach` in magnitude; so residuals are, too.
    """

    def __init__(
        self,
        words: Array,
        system: RNS,
        right: Array,
        right_system: RNS,
        inverse: Inverse,
        reach: int,
        count: int,
    ) -> None:
        self._inverse, self._base = inverse, inverse.moduli
        self._others = others = primes(
            inverse.taken, count_beyond(2 * reach + 1, inverse.taken, LIMIT), LIMIT
        )
        self._residuals = RNS(others, signed=True, bound=reach)
        inverses = [pow(self._base.product, -1, q) for q in others]
        self._scales = _column(inverses, words)
        negative = _column([q - w for q, w in zip(others, inverses, strict=True)], words)
        step = base_extend(words, system, others)
        self._step = apply("multiply", (step, negative[..., None]), RNS(others), "wrap")
        self._residual = base_extend(right, right_system, others).reshape(len(others), -1)
        shape = count, len(self._base) + len(others), *right.shape[1:]
        self._digits = np.empty_like(words, shape=shape, order="C")
        self._found = 0

    def expansion(self, count: int) -> Expansion:
        """First `count` digits of the solutions."""
        for digit in self._digits[self._found : count]:
            self._find(digit)
        self._found = max(self._found, count)
        moduli = unchecked_set((*self._base, *self._others))
        return Expansion(self._digits[:count].transpose(1, 0, 2, 3), self._base, moduli)

    def _find(self, digit: Array) -> None:
        """Write the next digit y, and replace the residual r by the integer ``(r - A y) / P``."""
        base, others = self._base, self._others
        known, extended = digit[: len(base)], digit[len(base) :]
        image = np.empty_like(known, order="C")
        flat = image.reshape(len(base), -1)
        constants = extension_constants(others, base, True, self._residuals.bound)
        if is_any(kernels_of(flat).base_extend(self._residual, constants, flat)):
            flat[:] = base_extend(self._residual, self._residuals, base)
        _product(self._inverse.words, image, base, known)
        flat, target = known.reshape(len(base), -1), extended.reshape(len(others), -1)
        if is_any(kernels_of(flat).base_extend(flat, extension_constants(base, others), target)):
            target[:] = base_extend(flat, RNS(base), others)
        product = np.empty_like(extended, order="C")
        _product(self._step, extended, others, product)
        following = np.empty_like(self._residual)
        sums = product.reshape(len(others), -1)
        kernels_of(sums).apply("fma", (self._residual, self._scales, sums), others, following)
        self._residual = following


def _product(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    """Write products (n, I, J) of matrices to contiguous memory."""
    kernels_of(out).matmul(a[:, None], b[:, None], moduli, out[:, None])


def _column(values: list[int], like: Array) -> Array:
    return np.asarray(np.array(values, dtype=np.uint32), like=like)[:, None]


def _random(rng: np.random.Generator, shape: tuple[int, ...], like: Array) -> Array:
    """Draw integers from 1 to 255."""
    return np.asarray(rng.integers(1, 2**_WEIGHT_BITS, shape, dtype=np.uint32), like=like)


def determinant(words: Array, system: RNS, magnitude: int) -> int | None:
    """Determinant of a matrix (n, N, N); None if it is singular modulo several primes.

    The denominator of a sum of solutions divides the determinant. The cofactor is found modulo primes.
    """
    rows = words.shape[-1]
    matrix = elements(words, system)
    bound = determinant_bound(matrix)
    if bound == 0:
        return 0
    greatest = 2**_WEIGHT_BITS
    lengths = matrix.column_lengths()
    numerator = greatest_determinant(lengths, matrix.scale) * greatest**2 * rows * (math.isqrt(rows) + 1)
    reach = max(rows * magnitude, greatest)
    limit = 2 * numerator * bound
    plan = Plan.of(limit, rows, 1, reach)
    inverse = inverse_modulo_primes(words, system, plan.primes)
    if inverse is None:
        return None
    rng = np.random.default_rng(rows)
    right, weights = _random(rng, (1, rows, 1), words), _random(rng, (rows,), words)
    one = RNS(ModuliSet([2**32]), bound=greatest)
    found = Lifting(words, system, right, one, inverse, reach, plan.digits).expansion(plan.digits)
    # By Cramer's rule the sum has a numerator and a denominator within these bounds. The denominator divides
    # the determinant, which no prime of the base divides. A plan has a digit more than the limit needs if
    # each prime is above LIMIT / 2**(1 / 64), as all are. So there is exactly one such fraction.
    fraction = rational(found.weighted(weights)[0], found.modulus, numerator, bound)
    assert found.modulus > limit
    assert fraction is not None
    return _find_determinant(words, system, inverse, fraction[1], bound)


def _find_determinant(words: Array, system: RNS, inverse: Inverse, divisor: int, bound: int) -> int:
    """Determinant from a known divisor."""
    most = 2 * (bound // divisor) + 1
    moduli, images, taken = list(inverse.moduli), inverse.determinants, inverse.taken
    product = inverse.moduli.product
    while product <= most:
        part = primes(taken, max(1, min(64, count_beyond(most // product, taken, LIMIT))), LIMIT)
        taken += len(part)
        here = elimination.determinants(base_extend(words, system, part), part).reshape(-1).tolist()
        pairs = [(p, value) for p, value in zip(part, here, strict=True) if divisor % p]
        moduli, images = moduli + [p for p, _ in pairs], images + [value for _, value in pairs]
        product *= math.prod(p for p, _ in pairs)
    cofactors = [value * pow(divisor, -1, p) % p for value, p in zip(images, moduli, strict=True)]
    column = np.array(cofactors, dtype=np.uint32)[:, None]
    return int(divisor * decode([column], unchecked_set(moduli))[0])


def solution(words: Array, right: Array, system: RNS, magnitudes: tuple[int, int]) -> tuple[Any, int] | None:
    """Solve A x = b: numerators (N, K) as gmpy2 integers, and a common denominator, mostly the least.

    Elements of A (n, N, N) and b (n, N, K) are at most `magnitudes`. None if A is singular modulo several
    primes.
    """
    rows, columns = right.shape[1:]
    if may_be_short(words, rows, columns, magnitudes):
        found = short_solution(words, right, system, magnitudes)
        if found is not None:
            return found
    matrix = elements(words, system)
    bound = hadamard(matrix)
    if bound == 0:
        return None
    length = greatest_determinant(matrix.column_lengths(), matrix.scale)
    numerator = length * magnitudes[1] * (math.isqrt(rows) + 1) * 2**_WEIGHT_BITS * rows
    reach = reach_of(rows, magnitudes)
    plan = Plan.of(2 * max(numerator, 1) * max(bound, reach), rows, columns, reach)
    return _solve_by_expansion(words, right, system, magnitudes, plan, (numerator, bound))


def short_solution(
    words: Array, right: Array, system: RNS, magnitudes: tuple[int, int]
) -> tuple[Any, int] | None:
    """Solve as :func:`solution` does if numerators and denominator are short; else return None."""
    rows, columns = right.shape[1:]
    plan = Plan.of_short(rows, columns, reach_of(rows, magnitudes))
    return _solve_by_expansion(words, right, system, magnitudes, plan)


def _solve_by_expansion(
    words: Array,
    right: Array,
    system: RNS,
    magnitudes: tuple[int, int],
    plan: Plan,
    bounds: tuple[int, int] | None = None,
) -> tuple[Any, int] | None:
    """Solutions from at most the digits planned; None if they need more.

    `bounds` are bounds of numerators and denominator for which these digits are enough.
    """
    inverse = inverse_modulo_primes(words, system, plan.primes)
    if inverse is None:
        return None
    rows = right.shape[1]
    weights = _random(np.random.default_rng(rows), (rows,), words)
    lifting = Lifting(words, system, right, system, inverse, reach_of(rows, magnitudes), plan.digits)
    for digits in _attempts(plan.digits):
        found = lifting.expansion(digits)
        is_last = digits == plan.digits
        limits = bounds if bounds and is_last else (math.isqrt(found.modulus // 4),) * 2
        result = _fractions(found, weights, limits, (rows * magnitudes[0], magnitudes[1]))
        if result is not None:
            return result
    return None


def _attempts(digits: int) -> Iterator[int]:
    """Numbers of digits after which solutions are tried."""
    if digits >= 4 * _TRIAL:
        yield digits // _TRIAL
    yield digits


def _fractions(
    found: Expansion, weights: Array, limits: tuple[int, int], factors: tuple[int, int]
) -> tuple[Any, int] | None:
    """Numerators and a denominator of solutions, proved; None if these need more digits.

    A times the numerators minus the denominator times b is 0 modulo the modulus. As N elements of A, and one
    of b, are at most `factors`, its magnitude is below the modulus, so it is 0.
    """
    modulus, denominator = found.modulus, gmpy2.mpz(1)
    for image in found.weighted(weights):
        denominator = _common(image, denominator, modulus, limits)
        if denominator == 0:
            return None
    numbers = found.numbers()
    while True:
        numerators = _reduce_around_zero(numbers * denominator % modulus, modulus)
        greatest = max(map(abs, numerators.reshape(-1).tolist()), default=0)
        if factors[0] * greatest + factors[1] * denominator < modulus:
            return numerators, int(denominator)
        # A factor of the denominator that the weighted sums lack.
        worst = abs(numerators).reshape(-1).argmax()
        former = denominator
        denominator = _common(numbers.reshape(-1)[worst], denominator, modulus, limits)
        if denominator in (0, former):
            return None


def _common(image: int, denominator: int, modulus: int, limits: tuple[int, int]) -> int:
    """Common denominator of one and of the fraction with an image; 0 without a fraction within the limits."""
    fraction = rational(image * denominator % modulus, modulus, limits[0], max(1, limits[1] // denominator))
    return 0 if fraction is None else denominator * fraction[1]


def _reduce_around_zero(numbers: Any, modulus: int) -> Any:
    """Reduce numbers modulo an integer to residues of least magnitude."""
    return np.where(numbers > modulus // 2, numbers - modulus, numbers)
