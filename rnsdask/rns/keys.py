"""The key of every number of a chunk: 64 bits that order numbers, but for those too near to one another.

Reductions of all numbers keep no keys (:mod:`rnsdask.rns.reduce`). Where many numbers are compared with one
another - along an axis, in a scan, for the k greatest - their keys are computed once, 8 bytes a number.
"""

from collections.abc import Iterator

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import KEY_BITS, KeyConstants, fixed_point_constants
from rnsdask.rns.mixed_radix import mixed_radix_digits, near_top, shifted_residues

# Residues gathered at a time for exact decisions.
EXACT_RESIDUES = 2**22

_LAST_KEY = 2**KEY_BITS - 1


def number_keys(residues: Array, constants: KeyConstants) -> Array:
    """Key of each number, ambiguous ones decided, so that keys compare as plain integers.

    With t = 2**64 Y/M and Y as `constants` say, a key U satisfies ``U - slack <= t < U + 1``, and
    ``U_a + slack < U_b`` proves that number a is less than number b. Equal numbers have equal keys.

    Parameters
    ----------
    residues : array of uint32, shape (k, N)
        NumPy or CuPy; the rows of ``constants.moduli``.

    Returns
    -------
    array of uint64, shape (N,)
    """
    evaluation = fixed_point_constants(constants.moduli, KEY_BITS, constants.scale)
    words, _ = kernels_of(residues).fixed_point(residues, evaluation)
    keys = words[1].astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= words[0]
    keys += np.uint64(constants.start)  # wraps, as the sum of the key itself does
    if constants.ambiguous_below:
        (ambiguous,) = (keys < np.uint64(constants.ambiguous_below)).nonzero()
        for indices in batches(ambiguous, len(residues)):
            digits = mixed_radix_digits(shifted_residues(residues, indices, constants), constants.moduli)
            # Near 0 the key stands as it is. Near M it passed 2**64, of which t stays short.
            keys[indices[near_top(digits, constants.moduli)]] = np.uint64(_LAST_KEY)
    return keys


def certain_below(keys: Array, constants: KeyConstants) -> Array:
    """For each key, the greatest one whose numbers are not proved to be less; at least 0."""
    slack = np.uint64(constants.slack)
    return np.maximum(keys, slack) - slack


def complemented(keys: Array, minimum: bool) -> Array:
    """Keys by which the least number is the greatest, for `minimum`; the same slack holds for them."""
    return ~keys if minimum else keys


def batches(indices: Array, rows: int) -> Iterator[Array]:
    """Indices of numbers, so many at a time that gathering `rows` residues of each takes bounded memory."""
    size = max(1, EXACT_RESIDUES // max(rows, 1))
    return (indices[i : i + size] for i in range(0, len(indices), size))
