"""Linear algebra of arrays of numbers, exact, with the names of NumPy's linalg."""

from rnsdask.lazy.elimination import lu, nullspace
from rnsdask.lazy.planning import explained
from rnsdask.linalg.elimination import charpoly, det, inv, rank, solve
from rnsdask.linalg.matrix_power import matrix_power

__all__ = ["charpoly", "det", "inv", "lu", "matrix_power", "nullspace", "rank", "solve"]

globals().update((name, explained(globals()[name])) for name in __all__)
