"""Digits of random elements of a Fermat field, uniform. In NumPy."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.fields.fermat_field import FermatField
from rnsdask.rns.random import uniform_limbs

# Elements that are drawn at a time: beside the digits they take no memory that counts.
_BATCH = 2**14


def random_digits(
    system: FermatField, shape: tuple[int, ...], generator: np.random.Generator
) -> NDArray[Any]:
    """Digits (k, *shape) of elements uniform from 0 to p - 1."""
    digits = np.empty((system.rows, math.prod(shape)), dtype=system.word_dtype)
    for start in range(0, digits.shape[1], _BATCH):
        count = min(_BATCH, digits.shape[1] - start)
        limbs = uniform_limbs(system.modulus - 1, count, generator)
        digits[:, start : start + count] = system.words_of_limbs(limbs, False, int)
    return digits.reshape(system.rows, *shape)
