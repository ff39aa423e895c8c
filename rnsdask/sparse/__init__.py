"""Sparse matrices over prime fields: products with blocks of vectors, solutions, ranks, determinants."""

from rnsdask.sparse.files import read as read
from rnsdask.sparse.matrix import SparseMatrix as SparseMatrix
from rnsdask.sparse.matrix import from_entries as from_entries
from rnsdask.sparse.matrix import from_scipy as from_scipy
from rnsdask.sparse.systems import det as det
from rnsdask.sparse.systems import minpoly as minpoly
from rnsdask.sparse.systems import rank as rank
from rnsdask.sparse.systems import solve as solve
