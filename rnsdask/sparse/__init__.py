"""Sparse matrices over prime fields: products with blocks of vectors, solutions, ranks, determinants."""

from rnsdask.sparse.files import read
from rnsdask.sparse.matrix import SparseMatrix, from_entries, from_scipy
from rnsdask.sparse.systems import det, minpoly, rank, solve

__all__ = ["SparseMatrix", "det", "from_entries", "from_scipy", "minpoly", "rank", "read", "solve"]
