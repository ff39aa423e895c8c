"""Inverses of triangular matrices over prime fields, by doubling. No Dask in here.

Matrices are (n, *batch, N, N), in any layout. The blocks of their diagonals are inverted all at once. Then
pairs of neighbours are joined, all pairs at once, until one block is left: a GPU takes little longer for many
small triangles than for one, and a CPU takes less time than for one large system.
"""

import math

import numpy as np

from rnsdask.backend import Array, Moduli, kernels_of
from rnsdask.core import rows
from rnsdask.fields.system import fields_of

MOST_SOLVED = 128
"""Most rows of a block that is inverted by solving a system: on a CPU 64 to 256 rows take about as long."""


def inverse_of_upper(words: Array, moduli: Moduli) -> Array:
    """Invert upper triangles, which have no 0 on the diagonal; elements below it are not read."""
    if not words.size:
        return words.copy()
    length = words.shape[-1]
    doublings = (-(-length // MOST_SOLVED) - 1).bit_length()
    size = -(-length >> doublings)
    upper, padded = words, size << doublings
    if padded > length:
        upper = _identities((*words.shape[:-2], padded, padded), words)
        upper[..., :length, :length] = words
    blocks = _diagonal_blocks(upper, size)
    found = _identities((len(words), math.prod(blocks.shape[1:-2]), size, size), words)
    kernels_of(found).solve_upper(blocks.reshape(found.shape), found, moduli, found)
    inverses = found.reshape(blocks.shape)
    while size < padded:
        corners = _diagonal_blocks(upper, 2 * size)[..., :size, size:]
        inverses = _join(inverses[..., ::2, :, :], corners, inverses[..., 1::2, :, :], moduli)
        size *= 2
    inverse = inverses[..., 0, :length, :length]
    return inverse if padded == length else inverse.copy()


def inverse_of_lower(words: Array, moduli: Moduli) -> Array:
    """Invert lower triangles with ones on the diagonal, of which only the elements below it are read."""
    places: Array = np.arange(words.shape[-1], like=words)
    # Read from its end, it is an upper triangle.
    upper = np.where(places[:, None] == places, words.dtype.type(1), words[..., ::-1, ::-1])
    return inverse_of_upper(upper, moduli)[..., ::-1, ::-1].copy()


def _join(first: Array, corners: Array, last: Array, moduli: Moduli) -> Array:
    """Join the inverses of A and D to that of [A B; 0 D], which has -A⁻¹ B D⁻¹ in the corner of B."""
    fields, size = fields_of(moduli), first.shape[-1]
    product = fields.apply(rows.multiply_matrices, first, corners)
    product = fields.apply(rows.multiply_matrices, product, last)
    corners = fields.apply(rows.subtract, np.zeros_like(product), product)
    out = np.zeros_like(first, shape=(*first.shape[:-2], 2 * size, 2 * size), order="C")
    out[..., :size, :size], out[..., size:, size:] = first, last
    out[..., :size, size:] = corners
    return out


def _diagonal_blocks(x: Array, size: int) -> Array:
    """View the blocks (..., K, size, size) on the diagonals of matrices with K * size rows."""
    count = x.shape[-1] // size
    cut = x.reshape(*x.shape[:-2], count, size, count, size)
    return np.moveaxis(cut.diagonal(axis1=-4, axis2=-2), -1, -3)


def identity(length: int, like: Array) -> Array:
    """Make the identity matrix (length, length) of residues."""
    places = np.arange(length, like=like)
    return (places == places[:, None]).astype(like.dtype)


def _identities(shape: tuple[int, ...], like: Array) -> Array:
    """Make identity matrices (*batch, N, N)."""
    out = np.empty_like(like, shape=shape, order="C")
    out[...] = identity(shape[-1], like)
    return out
