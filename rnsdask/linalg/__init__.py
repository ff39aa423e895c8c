"""Linear algebra of arrays of numbers, exact, with the names of NumPy's linalg."""

from rnsdask.lazy.elimination import charpoly, det, inv, lu, nullspace, rank, solve
from rnsdask.linalg.matrix_power import matrix_power

__all__ = ["charpoly", "det", "inv", "lu", "matrix_power", "nullspace", "rank", "solve"]
