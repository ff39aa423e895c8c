"""The element-wise operations, evaluated in Python integers, and the memory of every operation."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Operation:
    """An operation: a sum of signed products.

    Attributes
    ----------
    name : str
        Name of the kernels and of the public function, too.
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

    @cached_property
    def is_sum(self) -> bool:
        """Whether no operands are multiplied."""
        return all(len(factors) == 1 for _, factors in self.terms)


# kernels/include/rns/operations.cuh has the same list for residues.
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


class Footprint(NamedTuple):
    """Memory of an operation's task on top of the chunks that it reads.

    Attributes
    ----------
    arrays : int
        Arrays of a chunk's size: results and intermediate arrays.
    words : int
        Further words for each number, whatever the number's size: keys, indices, flags, Python ints.
    workspace : int
        Bytes of tables of fixed size on a GPU.
    passes : float
        GPU work relative to the data read, which decides whether several GPUs gain time: 1 is about a second
        for each GB, 0 is less time than reading takes.
    """

    arrays: int
    words: int
    workspace: int = 0
    passes: float = 0


BY_INTEGERS = 100
"""Words for each number where all of them become Python ints."""

POWER_TABLES = 3 * 2**26
"""Bytes of the powers by which a GPU raises limbs modulo integers."""

OF_MATRICES = Footprint(2, 20, passes=1)
"""Footprint of an operation of whole matrices; images of them, and their number, come on top."""

STEP = Footprint(1, 30)
"""Footprint of a step of an expression without an entry of its own."""

LONG_ROWS, LONG_PRODUCT = 2047, Footprint(5, 0)
"""Limbs above which products use transforms, and the memory of these on top of the row's footprint."""
