"""Linear algebra of arrays of numbers, exact, with the names of NumPy's linalg."""

from rnsdask.linalg.matrix_power import matrix_power

__all__ = ["matrix_power"]
