"""The element-wise operations: what each is in Python integers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operation:
    """An operation: a sum of signed products.

    Attributes
    ----------
    name : str
        Also that of the kernels, and of the public function.
    evaluate : callable
        The operation on Python integers, or on NumPy arrays of them.
    terms : tuple of (sign, indices of the operands that are multiplied)
    """

    name: str
    evaluate: Callable[..., Any]
    terms: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def arity(self) -> int:
        """Number of operands."""
        return sum(len(factors) for _, factors in self.terms)

    @property
    def is_sum(self) -> bool:
        """Whether no operands are multiplied."""
        return all(len(factors) == 1 for _, factors in self.terms)


# kernels/include/rns/operations.cuh lists the same, on residues.
OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("add", lambda a, b: a + b, ((1, (0,)), (1, (1,)))),
        Operation("subtract", lambda a, b: a - b, ((1, (0,)), (-1, (1,)))),
        Operation("multiply", lambda a, b: a * b, ((1, (0, 1)),)),
        Operation("fma", lambda a, b, c: a * b + c, ((1, (0, 1)), (1, (2,)))),
        Operation("mulsub", lambda a, b, c, d: a * b - c * d, ((1, (0, 1)), (-1, (2, 3)))),
        Operation("muladd", lambda a, b, c, d: a * b + c * d, ((1, (0, 1)), (1, (2, 3)))),
    )
}
"""The operations by name."""
