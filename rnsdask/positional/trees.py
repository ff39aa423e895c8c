"""Products and remainders of many positive numbers in balanced trees. No Dask in here.

A level of a tree is a matrix (limbs, count) of numbers. Number i is the product of the numbers i and i +
ceil(n / 2) of the level below, which has n, or a copy of number i, so that all numbers of a level are about
as long.

Remainders go down as fractions (D. Bernstein, "Scaled remainder trees", 2004). The fraction of a node is
value / P modulo 1 for its product P, in fixed point; times the product of one child, modulo 1, it is the
fraction of the other child. So no level divides, and only the middle limbs of each product are needed.
"""

import math
from dataclasses import dataclass
from typing import Any

import gmpy2
import numpy as np

from rnsdask.backend import Array, assign, is_any, kernels_of, padded
from rnsdask.core.errors import NumberError
from rnsdask.core.layout import as_matrix
from rnsdask.core.place import Locate
from rnsdask.fields.long_product import MOST_LIMBS, long_floor_divide, long_multiply, multiply_limbs
from rnsdask.positional import divide
from rnsdask.positional.multiply import add, multiply
from rnsdask.positional.operands import LIMB_BITS, from_integers, limbs_of, to_integers, used_limbs
from rnsdask.positional.system import Positional

_GUARD_LIMBS = 1
"""Limbs of a leaf's fraction in addition to those of its number."""

_MOST_ERROR = 256
"""Bound of the error of a leaf's fraction, in units of the last place: one a level, one for the quotient."""


@dataclass(frozen=True, eq=False)
class Root:
    """The top of a tree: the product (limbs, 1) of all numbers.

    `cofactors`, if requested, is the sum over all numbers of the product of all others; `limbs` is the length
    of the root's fraction that suffices for all remainders.
    """

    product: Array
    cofactors: Array
    limbs: int


class Tree:
    """Tree of the products of all numbers of a chunk (k, *shape), which must be positive.

    ValueError otherwise, naming the index that `locate` derives from the first such number's.
    """

    def __init__(self, words: Array, *, system: Positional, locate: Locate = int) -> None:
        self._words = words
        self._numbers = _positive(words, system, locate)
        self._levels = _levels(self._numbers)
        self._limbs = len(self._numbers) + _GUARD_LIMBS

    @property
    def product(self) -> int:
        """Product of all numbers."""
        return int(to_integers(self._levels[-1], False)[0])

    def root(self, cofactors: bool) -> Root:
        """Return the root, for a larger tree with this branch, with or without the sum of cofactors."""
        numbers = self._cofactors() if cofactors else self._levels[-1][:1]
        return Root(self._levels[-1], numbers, _needed_limbs(self._levels, self._limbs))

    def remainders(self, value: int) -> Array:
        """Return one integer modulo each number: words (k, *shape)."""
        return self.leaves(self._fraction(value), divisors=False)

    def common_divisors(self) -> Array:
        """Return the greatest common divisors of each number and the product of all others."""
        return self.leaves(self._fraction(self._cofactors()), divisors=True)

    def leaves(self, fraction: Array, *, divisors: bool) -> Array:
        """Return remainders by each number, or their common divisors with it, from the root's fraction."""
        found = _scale(_descend(self._levels, fraction, self._limbs), self._numbers)
        if divisors:
            found = divide.gcd(found, self._numbers, False)
        rows, *shape = self._words.shape
        count = math.prod(shape)
        return padded(found[:, :count], (rows, count)).reshape(self._words.shape)

    def _cofactors(self) -> Array:
        ones = np.ones((1, self._numbers.shape[1]), dtype=np.uint32)
        return _cofactors(self._levels, np.asarray(ones, like=self._numbers))

    def _fraction(self, value: Any) -> Array:
        return _fraction(value, self._levels[-1], _needed_limbs(self._levels, self._limbs))


def fractions(roots: list[Root], value: int | None = None) -> list[Array]:
    """Return the fractions of the branches of a tree, for a value or for the sum of all cofactors."""
    levels = _levels(_join_columns([one.product for one in roots]))
    limbs = max(one.limbs for one in roots)
    numerator = (
        _cofactors(levels, _join_columns([one.cofactors for one in roots])) if value is None else value
    )
    fraction = _fraction(numerator, levels[-1], _needed_limbs(levels, limbs))
    found = _descend(levels, fraction, limbs)
    return [found[:, i : i + 1] for i in range(len(roots))]


def product_of(roots: list[Root]) -> int:
    """Return the product of all numbers of some trees."""
    return int(to_integers(_levels(_join_columns([one.product for one in roots]))[-1], False)[0])


def _positive(words: Array, system: Positional, locate: Locate) -> Array:
    """Positive numbers (limbs, N) without upper limbs that are 0 in all; the number 1 without numbers."""
    matrix = as_matrix(words)
    if not matrix.shape[1]:
        return np.ones_like(words, shape=(1, 1), order="C")
    lengths = kernels_of(matrix).positional_count(matrix, False, "length")
    longest, whole = int(lengths.max()), LIMB_BITS * len(matrix)
    if not int(lengths.min()) or (system.signed and longest == whole):
        wrong = lengths == 0
        if system.signed:
            wrong |= lengths == whole
        index = int(wrong.argmax())
        what = "0" if not is_any(matrix[:, index] != 0) else "negative"
        raise NumberError(
            f"the number at flat index {locate(index)} is {what}: a tree takes positive numbers"
        )
    return matrix[: limbs_of(longest)]


def _trim(numbers: Array) -> Array:
    return numbers[: used_limbs(numbers)]


def _join_columns(columns: list[Array]) -> Array:
    limbs = max(map(len, columns))
    out = np.zeros_like(columns[0], shape=(limbs, len(columns)), order="C")
    for i, column in enumerate(columns):
        assign(out[: len(column), i : i + 1], column)
    return out


def _levels(numbers: Array) -> list[Array]:
    """All levels of the tree of products, from the leaves to the root."""
    levels = [numbers]
    while (count := levels[-1].shape[1]) > 1:
        below, pairs = levels[-1], count // 2
        products = _multiply(below[:, :pairs], below[:, count - pairs :])
        levels.append(_trim(_join_middle(products, below)))
    return levels


def _join_middle(pairs: Array, below: Array) -> Array:
    """Join what the pairs of a level give and the number in its middle, if it is in no pair."""
    count = pairs.shape[1]
    if below.shape[1] == 2 * count:
        return pairs
    above = padded(pairs, (len(pairs), count + 1))
    assign(above[: len(below), count:], below[:, count : count + 1])
    return above


def _cofactors(levels: list[Array], sums: Array) -> Array:
    """Sum of the leaves' sums, each times the numbers of all other leaves: (limbs, 1)."""
    for below in levels[:-1]:
        count = below.shape[1]
        pairs = count // 2
        first, last = slice(0, pairs), slice(count - pairs, count)
        a = _multiply(sums[:, first], below[:, last])
        b = _multiply(sums[:, last], below[:, first])
        sums = _trim(_join_middle(add(a, b, len(a) + 1), sums))
    return sums


def _needed_limbs(levels: list[Array], limbs: int) -> int:
    """Limbs of the root's fraction that leave each leaf a fraction of `limbs` limbs."""
    return limbs + sum(map(len, levels[:-1]))


def _fraction(value: Any, product: Array, limbs: int) -> Array:
    """The fraction value / product modulo 1, rounded down: (limbs, 1)."""
    numerator = value if isinstance(value, int) else to_integers(value, False)[0]
    (divisor,) = to_integers(product, False)
    if numerator < 0:
        numerator = gmpy2.f_mod(numerator, divisor)
    quotient = long_floor_divide(gmpy2.mpz(numerator) << LIMB_BITS * limbs, divisor)
    return from_integers([gmpy2.f_mod_2exp(quotient, LIMB_BITS * limbs)], limbs, product)


def _descend(levels: list[Array], fraction: Array, limbs: int) -> Array:
    """Derive the leaves' fractions (limbs, count) from the root's.

    A fraction that is wrong by e units of the last place gives a child's that is wrong by at most e + 1,
    because it loses as many limbs as the product that it is multiplied by has.
    """
    fractions = fraction[len(fraction) - _needed_limbs(levels, limbs) :]
    for level, below in reversed(list(enumerate(levels[:-1]))):
        width, count = len(below), below.shape[1]
        pairs, kept = count // 2, _needed_limbs(levels[: level + 1], limbs)
        out = np.empty_like(below, shape=(kept, count), order="C")
        first, last = slice(0, pairs), slice(count - pairs, count)
        above = fractions[:, :pairs]
        assign(out[:, first], _multiply(above, below[:, last], kept))
        assign(out[:, last], _multiply(above, below[:, first], kept))
        assign(out[:, pairs : count - pairs], fractions[width:, pairs:])
        fractions = out
    return fractions


def _scale(fractions: Array, numbers: Array) -> Array:
    """Remainders of fractions that are wrong by less than ``_MOST_ERROR`` units.

    These units are added, so that all fractions are too great by less than twice as many, and the floor of
    each product is the remainder.
    """
    limbs = len(fractions)
    error = np.zeros((limbs, 1), dtype=np.uint32)
    error[0] = _MOST_ERROR
    return _multiply(add(fractions, np.asarray(error, like=fractions), limbs), numbers)[limbs:]


def _multiply(x: Array, y: Array, middle: int = 0) -> Array:
    """Products of matrices (k, N) and (l, N): all limbs, or the `middle` limbs from place l to k.

    Middle limbs may be too great by one unit.
    """
    both, below = len(x) + len(y), len(y) if middle else 0
    by_kernels = min(len(x), len(y)) <= kernels_of(x).most_product_limbs or not isinstance(x, np.ndarray)
    if by_kernels and both <= MOST_LIMBS:
        return multiply(x, y, LIMB_BITS * (below + (middle or both)), False)[below:]
    out = np.empty_like(x, shape=(middle or both, x.shape[1]), order="C")
    for i in range(x.shape[1]):
        a, b = x[:, i].copy(), y[:, i].copy()
        if both <= MOST_LIMBS:
            product = multiply_limbs(a, b, cyclic=bool(middle))
        else:
            numbers = (to_integers(one[:, np.newaxis], False)[0] for one in (a, b))
            product = from_integers([long_multiply(*numbers)], both, x)[:, 0]
        out[:, i] = product[below : below + len(out)]
    return out
