"""Upper bounds of determinants of integer matrices, proved (docs/exact-linalg.md). No Dask in here.

Elements are doubles with a proven relative error. Lengths of rows and columns are rounded upwards by more
than rounding can have reduced them, and bounds are integers.
"""

import functools
from dataclasses import dataclass
from fractions import Fraction

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name, is_all, to_backend
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.rns.bounds import measured_bound
from rnsdask.rns.convert import greatest_magnitude as greatest_of_ints
from rnsdask.rns.evaluation import interval_evaluation, least_accuracy
from rnsdask.rns.matmul import greatest_magnitude
from rnsdask.rns.system import RNS

Floats = NDArray[np.float64]

# Relative error of elements, where a moduli set allows that.
_ACCURACY = 2.0**-36
# Exponent of 2, relative to the greatest element, below which elements are replaced by greater ones.
_LEAST_SHIFT = -450
_EXPONENT_OF_ZERO = -(2**30)
# Rows of matrices that take little time. Where the bits of a determinant's bound times the elements are fewer
# than these, images take no longer than to measure magnitudes.
FEW_ROWS = 32
_FEW_BITS = 2**17
# Most numbers whose magnitudes are measured as Python ints.
_FEW_NUMBERS = 1024
# Most elements on a GPU whose doubles are the host's.
_FEW_ELEMENTS = 2**16
# Rows from which orthogonalization takes less time than it saves.
MANY_ROWS = 384
# Count of mantissas from 1/2 to 1 whose product is still a double.
_FACTORS = 512
_UNIT = 2.0**-52


@dataclass(frozen=True)
class Elements:
    """Elements of matrices ``scale * x``, for doubles x (*batch, rows, columns) of magnitude at most 1.

    The magnitude of each x is at least the true one, and if `is_near` exceeds it by at most the relative
    `error`. The scale's denominator is a power of 2. The doubles are on the processor of the matrices, or, if
    they are few, on the host: a GPU takes longer to launch, and far longer to compile.
    """

    x: Array
    scale: Fraction
    error: float

    @property
    def is_near(self) -> bool:
        """Whether no nonzero element was replaced by a greater one."""
        return is_all((self.x == 0) | (abs(self.x) > 2.0 ** (_LEAST_SHIFT + 1)))

    def row_lengths(self) -> Floats:
        """Upper bounds (*batch, rows) of the rows' lengths, in units of `scale`."""
        return _lengths(self.x, -1)

    def column_lengths(self) -> Floats:
        """Upper bounds (*batch, columns) of the columns' lengths, in units of `scale`."""
        return _lengths(self.x, -2)


def elements(words: Array, system: RNS) -> Elements:
    """Convert matrices (n, *batch, rows, columns) to doubles."""
    accuracy = max(_ACCURACY, 4 * float(least_accuracy(len(system.moduli))))
    found = interval_evaluation(words, system, accuracy)
    low, upp, exponent = found.low, found.upp, found.exponent
    if low.size <= _FEW_ELEMENTS:
        low, upp, exponent = (to_backend(array, "cpu") for array in (low, upp, exponent))
    x: Array = np.where(low < 0, low, upp)
    exponents: Array = np.where(x == 0, _EXPONENT_OF_ZERO, exponent)
    top = int(exponents.max()) if x.size else _EXPONENT_OF_ZERO
    if top == _EXPONENT_OF_ZERO:
        return Elements(x, Fraction(1), 2 * accuracy)
    shifts = np.where(x == 0, 0, np.maximum(exponents - top, _LEAST_SHIFT)).astype(np.int32)
    return Elements(np.ldexp(x, shifts), system.moduli.product * Fraction(2) ** top, 2 * accuracy)


def magnitude_of(words: Array, system: RNS, rows: int | None = None) -> int:
    """Upper bound of the magnitudes in a chunk: the array's bound, or a measured one.

    For matrices of few `rows` it is quicker, and looser by less than a bit for each number of a row.
    """
    known, numbers = system.known_magnitude, words[0].size
    if rows is None or rows > FEW_ROWS or backend_name(words) == "cuda":
        return min(known, greatest_magnitude(words, system.with_bound(None)))
    if rows * known.bit_length() * numbers < _FEW_BITS:
        return known
    return _longest(words, system) if numbers <= _FEW_NUMBERS else measured_bound(words, system)


def _longest(words: Array, system: RNS) -> int:
    """Greatest integer with as many bits as the greatest magnitude of a few numbers."""
    greatest = greatest_of_ints(system.decode(words).reshape(-1).tolist())
    return min((1 << greatest.bit_length()) - 1, system.known_magnitude)


@functools.lru_cache(CACHED_SETS)
def hadamard_bound(length: int, magnitude: int, last: int | None = None) -> int:
    """Hadamard's bound of determinants of `length` rows.

    Elements are at most `magnitude` in magnitude; elements of one column at most `last`, if given.

    J. Hadamard (1893): a determinant is at most the product of the columns' lengths, here ``magnitude
    sqrt(length)``.
    """
    if length == 0:
        return 1
    factor = magnitude if last is None else last
    power = gmpy2.mpz(magnitude) ** (length - 1) * factor
    return int(gmpy2.isqrt(gmpy2.mpz(length) ** length * power**2)) + 1


def greatest_determinant(lengths: Floats, scale: Fraction) -> int:
    """Greatest product of lengths (*batch, N) in units of a scale, rounded upwards."""
    if 0 in lengths.shape[:-1]:
        return 0
    mantissas, exponents = _products(lengths)
    top = int(exponents.max())
    product = float(np.ldexp(mantissas, np.maximum(exponents - top, -1000)).max())
    numerator, power = product.as_integer_ratio()
    length = int(lengths.shape[-1])
    # All denominators are powers of 2; Fraction would compute greatest common divisors.
    shift = top - (power.bit_length() - 1) - length * (scale.denominator.bit_length() - 1)
    whole = numerator * gmpy2.mpz(scale.numerator) ** length
    return int(whole << shift if shift >= 0 else -(-whole >> -shift))


def hadamard(matrices: Elements) -> int:
    """Hadamard's bound of the determinants: the product of the rows' or of the columns' lengths.

    J. Hadamard (1893). It is the greatest for any of the matrices.
    """
    lengths = matrices.row_lengths(), matrices.column_lengths()
    return min(greatest_determinant(of, matrices.scale) for of in lengths)


def determinant_bound(matrix: Elements) -> int:
    """Bound of the determinant of one matrix A (N, N), close to it if A is well-conditioned.

    For any upper triangular X the determinant is that of A X over the product of X's diagonal, and Hadamard's
    inequality bounds the former. X is about the inverse of R of A = Q R, so that A X is about orthogonal.
    """
    bound = hadamard(matrix)
    length = matrix.x.shape[-1]
    if bound == 0 or length < MANY_ROWS or not matrix.is_near:
        return bound
    x: Floats = to_backend(matrix.x, "cpu")
    try:
        with np.errstate(all="ignore"):
            inverse = np.triu(np.linalg.inv(np.linalg.qr(x, mode="r")))
            # In any order of its additions, a sum of N products is wrong by at most about N/2 units of the
            # products of magnitudes (N. Higham, "Accuracy and Stability of Numerical Algorithms", 3.1).
            slack = (2 * length * _UNIT + matrix.error) * (abs(x) @ abs(inverse)) * (1 + 2.0**-20)
            lengths = _lengths(abs(x @ inverse) + slack, -2)
    except np.linalg.LinAlgError:
        return bound
    diagonal: Floats = abs(np.diagonal(inverse))
    # Where nothing underflows or is infinite; below, what underflows in a product is less than rounding.
    ends = 2.0**-200, 2.0**200
    if not all(np.isfinite(a).all() and ends[0] < a.min() <= a.max() < ends[1] for a in (lengths, diagonal)):
        return bound
    mantissas, exponents = _products(lengths)
    divisors, powers = _products(diagonal)
    quotient = _exact(float(mantissas), int(exponents)) / _exact(float(divisors), int(powers))
    # The product of the divisors may be too great by rounding.
    quotient *= 1 + Fraction(length + 1, 2**46)
    return min(bound, _ceiling(quotient * matrix.scale**length))


def _lengths(x: Array, axis: int) -> Floats:
    """Euclidean lengths along an axis, rounded upwards."""
    found: Floats = to_backend(np.sqrt((x * x).sum(axis=axis)), "cpu") * (1 + (x.shape[axis] + 8) * _UNIT)
    return found


def _products(lengths: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Products of numbers (*batch, N), rounded upwards, as mantissas and exponents of 2."""
    mantissas, exponents = np.frexp(lengths)
    total = exponents.sum(axis=-1, dtype=np.int64)
    product = np.ones(lengths.shape[:-1])
    for start in range(0, lengths.shape[-1], _FACTORS):
        product, more = np.frexp(product * mantissas[..., start : start + _FACTORS].prod(axis=-1))
        total = total + more
    product = product * (1 + (lengths.shape[-1] + 8) * _UNIT)
    return product, np.where(product == 0, _EXPONENT_OF_ZERO, total)


def _exact(mantissa: float, exponent: int) -> Fraction:
    return Fraction(mantissa) * Fraction(2) ** exponent if mantissa else Fraction(0)


def _ceiling(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
