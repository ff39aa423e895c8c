"""Positional numbers as integers of GMP, on the host. No Dask in here."""

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array


def on_host(matrix: Array) -> NDArray[np.uint32]:
    """A matrix (k, N) of words as a NumPy array."""
    return matrix if isinstance(matrix, np.ndarray) else matrix.get()


def to_integers(matrix: Array, signed: bool) -> list[gmpy2.mpz]:
    """The integers of a matrix (k, N)."""
    host = on_host(matrix)
    data, size = np.copy(host.T, order="C").astype("<u4", copy=False).tobytes(), 4 * len(host)
    values = [gmpy2.mpz.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]
    if signed:
        half, modulus = gmpy2.mpz(1) << 8 * size - 1, gmpy2.mpz(1) << 8 * size
        values = [value - modulus if value >= half else value for value in values]
    return values


def from_integers(values: list[gmpy2.mpz], limbs: int, like: Array) -> Array:
    """A matrix (limbs, N) of integers modulo 2**(32 limbs), where `like` is."""
    try:
        data = b"".join(value.to_bytes(4 * limbs, "little") for value in values)
    except OverflowError:  # some are negative, or too long
        modulus = gmpy2.mpz(1) << 32 * limbs
        data = b"".join((value % modulus).to_bytes(4 * limbs, "little") for value in values)
    rows = np.frombuffer(data, dtype="<u4").astype(np.uint32, copy=False).reshape(len(values), limbs)
    return np.asarray(np.copy(rows.T, order="C"), like=like)
