"""Reconstruction of fractions from residues, chunk by chunk, on the host. No Dask in here.

A fraction n/d is known modulo M, and its numerator and denominator are bounded: if twice the product of the
bounds is below M, there is at most one (:mod:`rnsdask.rns.rational`).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array
from rnsdask.core.errors import NumberError, abbreviate
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.convert import residues_to_ints
from rnsdask.rns.rational import rational


class Limits(NamedTuple):
    """Greatest magnitudes of numerators and denominators, and the moduli that fractions are found with.

    `used` is the product of these moduli, above ``2 * numerator * denominator``; `product` is the product of
    all: the moduli that are left confirm the fractions.
    """

    numerator: int
    denominator: int
    used: int
    product: int


def fractions(
    words: Array, moduli: ModuliSet, limits: Limits, index_of: Callable[[int, int], tuple[int, ...]]
) -> NDArray[np.object_]:
    """Fractions of numbers (n, *batch, K): numerators (1, *batch, K), and last the least common denominator.

    NumberError if a number is no fraction within the limits. It names the first by the index that `index_of`
    derives from a flat index of the batch and an index of the K numbers.
    """
    images = residues_to_ints(words, moduli)
    *batch, length = images.shape
    packed = np.empty((math.prod(batch), length + 1), dtype=object)
    for row, line in enumerate(images.reshape(math.prod(batch), length).tolist()):
        found = _over_one_denominator(line, limits)
        if isinstance(found, int):
            raise NumberError(_failure(index_of(row, found), length > 1, limits))
        packed[row] = found
    return packed.reshape(1, *batch, length + 1)


def _over_one_denominator(images: list[int], limits: Limits) -> list[int] | int:
    """Numerators and last their least common denominator, or the index of a number that is no fraction.

    Let D be the common denominator of the numbers so far. An image times D is the image of a fraction with
    the remaining factor of the common denominator.
    """
    numerators, below = list[Any](), gmpy2.mpz(1)
    used, product = gmpy2.mpz(limits.used), gmpy2.mpz(limits.product)
    for k, image in enumerate(images):
        value = image * below % used
        value = value - used if 2 * value > used else value
        if abs(value) > limits.numerator:
            found = rational(value, limits.used, limits.numerator, int(limits.denominator // below))
            if found is None or gmpy2.gcd(*found) != 1:
                return k
            value, more = found
            if more != 1:
                below *= more
                numerators = [numerator * more for numerator in numerators]
        if (value - image * below) % product or gmpy2.gcd(below, product) != 1:
            return k
        numerators.append(value)
    for k, value in enumerate(numerators):
        if abs(value) > limits.numerator:
            return k
    return [*map(int, numerators), int(below)]


def _failure(index: tuple[int, ...], is_common: bool, limits: Limits) -> str:
    where = f" at index {index}" if index else ""
    common = " over one denominator" if is_common else ""
    n, d = abbreviate(limits.numerator), abbreviate(limits.denominator)
    confirmed = ", confirmed by the other moduli," if limits.used != limits.product else ""
    return (
        f"no fraction{common} with a numerator up to {n} and a denominator up to {d}{confirmed} has the "
        f"residues{where}; residues modulo more primes, or other bounds, may find one"
    )
