"""Permanents of chunks of matrices over prime fields and of integers, by Ryser's formula. No Dask in here.

H. J. Ryser, "Combinatorial Mathematics" (1963): the permanent of N rows is the sum over all sets S of columns
of (-1)^(N - |S|) times the product, over the rows, of the sum of their elements in S. It takes N 2^N products
of numbers for a matrix.
"""

import math

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, Moduli
from rnsdask.core import rows
from rnsdask.fields.determinant_bounds import magnitude_of
from rnsdask.fields.system import fields_of
from rnsdask.rns.lift import lift
from rnsdask.rns.system import RNS

STEP_WORDS = 2**22
"""Words of the sums of a step: 16 MB, enough for the whole width of a GPU, and as much for their products."""


def integers(words: Array, system: RNS) -> NDArray[np.object_]:
    """Permanents (1, *batch, 1, 1) of matrices of integers, Python ints."""
    length = words.shape[-1]
    bound = math.factorial(length) * magnitude_of(words, system) ** length
    return lift(permanents, words, system, bound)[None]


def permanents(words: Array, moduli: Moduli) -> Array:
    """Permanents (n, *batch, 1, 1) of matrices (n, *batch, N, N), modulo each modulus, or each prime."""
    length = words.shape[-1]
    fields = fields_of(moduli)  # sums and products are those modulo any modulus

    def apply(name: str, a: Array, b: Array) -> Array:
        found: Array = fields.apply(rows.ROWS[name], a, b)
        return found

    # Each step takes all sets of the first columns, beside one set of the others in the order of a Gray code.
    first = _columns_of_step(words)
    offset = np.zeros_like(words, shape=(*words.shape[:-1], 1), order="C")
    sums = offset
    for j in range(first):
        sums = np.concatenate([sums, apply("add", sums, words[..., j : j + 1])], axis=-1)
    total = np.zeros_like(words, shape=(*words.shape[:-2], 1, 1), order="C")
    for step in range(1 << length - first):
        others = step ^ step >> 1
        if step:
            changed = (step & -step).bit_length() - 1
            column = words[..., first + changed : first + changed + 1]
            offset = apply("add" if others >> changed & 1 else "subtract", offset, column)
        terms = fields.apply(rows.prod_along, apply("add", sums, offset), axes=(words.ndim - 3,))
        while (half := terms.shape[-1] // 2) > 0:  # each column that a set has changes the sign
            terms = apply("subtract", terms[..., :half], terms[..., half:])
        total = apply("subtract" if (others.bit_count() + length) % 2 else "add", total, terms)
    return total


def _columns_of_step(words: Array) -> int:
    """Return how many columns have sets whose sums are in memory at once."""
    room = STEP_WORDS // max(math.prod(words.shape[:-1]), 1)
    columns: int = min(words.shape[-1], max(room.bit_length() - 1, 0))
    return columns
