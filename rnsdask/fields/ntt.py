"""Number-theoretic transforms of chunks of field elements along an axis. No Dask in here."""

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import TwiddleFactors, transform_constants, twist_factors
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import arithmetic
from rnsdask.rns.system import RNS

# Residues that are multiplied at a time: they and their factors stay in a processor's cache.
_RESIDUES_AT_A_TIME = 2**18


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
    last = contiguous(np.moveaxis(words, axis + 1, -1))
    if negacyclic and not inverse:
        last = _twisted(last, moduli, inverse)
    out = np.empty_like(last, order="C")
    if out.size:
        constants = transform_constants(moduli, last.shape[-1], inverse)
        kernels_of(words).ntt(last.reshape(len(moduli), -1), constants, out.reshape(len(moduli), -1))
    if negacyclic and inverse:
        out = _twisted(out, moduli, inverse)
    return np.moveaxis(out, -1, axis + 1)


def contiguous(words: Array) -> Array:
    """The same array in C order: itself if it is, on either processor."""
    return words if words.flags.c_contiguous else words.copy(order="C")


def _twisted(words: Array, moduli: ModuliSet, inverse: bool) -> Array:
    """Elements along the last axis, times powers of psi."""
    length = words.shape[-1]
    lines = words.reshape(len(moduli), -1, length, 1)
    return multiplied(lines, twist_factors(moduli, length, inverse), 0).reshape(words.shape)


def multiplied(words: Array, factors: TwiddleFactors, first: int) -> Array:
    """Matrices (n, B, rows, columns) by factors, of which those of their first row are of row `first`."""
    n, batch, rows, columns = words.shape
    system = RNS(factors.moduli)
    table = np.asarray(factors.table, like=words)
    out = np.empty_like(words)
    given, result = (array.reshape(n, -1) for array in (words, out))
    for row in range(0, rows, table.shape[1]):
        count = min(table.shape[1], rows - row)
        start = factors.at_row(first + row)[:, None]
        if columns > 1:  # else a scalar of each prime, which kernels take from the host
            start = np.asarray(start, like=words)
        block = arithmetic.apply("multiply", (table[:, :count], start), system, "wrap")
        # Whole matrices lie one after the other, parts of several do not.
        together = max(1, _RESIDUES_AT_A_TIME // (n * count * columns)) if count == rows else 1
        copies = np.broadcast_to(block[:, None], (n, min(together, batch), count, columns)).reshape(n, -1)
        for i in range(0, batch, together):
            begin = (i * rows + row) * columns
            size = min(together, batch - i) * count * columns
            part = np.s_[:, begin : begin + size]
            result[part] = arithmetic.apply("multiply", (given[part], copies[:, :size]), system, "wrap")
    return out
