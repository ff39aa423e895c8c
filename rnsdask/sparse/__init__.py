"""Sparse matrices over prime fields: products with blocks of vectors, solutions, ranks, determinants."""

from typing import TYPE_CHECKING, Any

from rnsdask.core.public import unknown_name
from rnsdask.sparse.files import read
from rnsdask.sparse.matrix import SparseMatrix, from_entries, from_scipy
from rnsdask.sparse.systems import det, minpoly, rank, solve

__all__ = ["SparseMatrix", "det", "from_entries", "from_scipy", "minpoly", "rank", "read", "solve"]

if not TYPE_CHECKING:  # to which each name would be one

    def __getattr__(name: str) -> Any:
        raise unknown_name("rd.sparse", name, __all__)


def __dir__() -> list[str]:
    return __all__
