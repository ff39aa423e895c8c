"""Sparse matrices by dense elimination, one prime at a time. No Dask in here.

Every answer is proved. Wiedemann's algorithm falls back to it where its draws fail.
"""

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name, to_backend
from rnsdask.backend.protocol import Moduli
from rnsdask.core.place import ALONE
from rnsdask.core.wide_moduli import moduli_of_residues
from rnsdask.fields import echelon, elimination
from rnsdask.sparse.matrix import SparseMatrix

MOST_BYTES = 2**26
"""Most bytes of a matrix modulo one prime below 2**32, including right-hand sides: 4096 rows and columns.

A matrix of the same shape takes twice as many modulo a greater prime, where draws hardly ever fail.

Elimination takes three times as much memory, and about ten seconds.
"""


def fits(shape: tuple[int, int], vectors: int = 0) -> bool:
    """Return whether a matrix with a number of right-hand sides is small enough."""
    rows, columns = shape
    return rows * (columns + vectors) * np.dtype(np.uint32).itemsize <= MOST_BYTES


def solve(a: SparseMatrix, b: Array, prime: int) -> Array | int:
    """Return solutions (1, C, K) of A x = b (1, R, K), or the index of the first vector without one."""
    (words, some), columns = _one_prime(a, prime), a.shape[1]
    joined = np.concatenate([words, to_backend(b, "cpu").astype(words.dtype)], axis=2)
    try:
        found = echelon.any_solutions(joined, columns, some, ALONE)
        return to_backend(found.astype(b.dtype), backend_name(b))
    except np.linalg.LinAlgError:
        form = elimination.echelon(joined, some, columns)
        left_over = form.words[0, 0, int(form.ranks[0, 0]) :, columns:]
        return int(left_over.any(axis=0).argmax())


def ranks(a: SparseMatrix, moduli: Moduli) -> NDArray[np.int64]:
    """Compute the ranks (n,)."""
    return np.array([elimination.ranks(*_one_prime(a, p))[0, 0, 0] for p in moduli], np.int64)


def determinants(a: SparseMatrix, moduli: Moduli) -> list[int]:
    """Compute the determinants of a square matrix, one for each prime."""
    return [int(elimination.determinants(*_one_prime(a, p))[0, 0, 0]) for p in moduli]


def _one_prime(a: SparseMatrix, prime: int) -> tuple[Array, Moduli]:
    some = moduli_of_residues([prime])  # of 32 bits where they suffice
    return a.dense_words(some), some
