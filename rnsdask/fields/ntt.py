"""Number-theoretic transforms of chunks of field elements along an axis. No Dask in here."""

from collections.abc import Callable

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import transform_constants, twiddle_factors, twist_factors
from rnsdask.core.moduli import ModuliSet
from rnsdask.fields.twiddles import multiplied
from rnsdask.rns import arithmetic
from rnsdask.rns.system import RNS


def transform(words: Array, moduli: ModuliSet, axis: int, inverse: bool, negacyclic: bool = False) -> Array:
    """Transforms of a chunk (n, *shape) along an axis of the numbers, or inverse ones.

    Parameters
    ----------
    moduli : ModuliSet
        Primes p; the length N of the axis is a power of two that divides each p - 1, and with `negacyclic` so
        does 2N.
    negacyclic : bool
        Whether element i is multiplied by ``psi**i`` before, or by its inverse after the inverse transform,
        where psi is the root of order 2N.
    """
    is_last = axis + 2 == words.ndim  # then moving it takes longer than few short transforms
    last = contiguous(words if is_last else np.moveaxis(words, axis + 1, -1))
    if negacyclic and not inverse:
        last = twisted(last, moduli, inverse)
    out = np.empty_like(last, order="C")
    if out.size:
        constants = transform_constants(moduli, last.shape[-1], inverse)
        kernels_of(words).ntt(last.reshape(len(moduli), -1), constants, out.reshape(len(moduli), -1))
    if negacyclic and inverse:
        out = twisted(out, moduli, inverse)
    return out if is_last else np.moveaxis(out, -1, axis + 1)


def contiguous(words: Array) -> Array:
    """The same array in C order: itself if it is, on either processor."""
    return words if words.flags.c_contiguous else words.copy(order="C")


def twisted(words: Array, moduli: ModuliSet, inverse: bool) -> Array:
    """Elements along the last axis, of a length N, times the powers of psi of order 2N, or of its inverse."""
    length = words.shape[-1]
    lines = words.reshape(len(moduli), -1, length, 1)
    factors = twist_factors(moduli, length, inverse)
    return multiplied(lines, factors, 0, _product(moduli)).reshape(words.shape)


def twiddled(
    words: Array, moduli: ModuliSet, length: int, first: int, inverse: bool, negacyclic: bool
) -> Array:
    """Matrices (n, B, rows, columns) by the :func:`.twiddle_factors` of transforms of a length.

    Those of their first row are of row `first`.
    """
    factors = twiddle_factors(moduli, length, words.shape[3], inverse, negacyclic)
    return multiplied(words, factors, first, _product(moduli))


def _product(moduli: ModuliSet) -> Callable[[Array, Array], Array]:
    return lambda x, y: arithmetic.apply("multiply", (x, y), RNS(moduli), "wrap")
