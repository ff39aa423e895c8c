"""Sums and differences of chunks of positional numbers. No Dask in here."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from rnsdask.backend import Array, backend_name, kernels_of
from rnsdask.core.place import Locate
from rnsdask.positional.system import Positional
from rnsdask.rns.blocks import matrices

EXACT: dict[str, Callable[[int, int], int]] = {"add": lambda a, b: a + b, "subtract": lambda a, b: a - b}
"""The operations on Python ints."""


def apply(
    name: str,
    blocks: Sequence[Array],
    systems: Sequence[Positional],
    system: Positional,
    mode: str,
    locate: Locate = int,
) -> Array:
    """Apply an operation to a chunk of each operand.

    Parameters
    ----------
    name : {"add", "subtract"}
        The operation.
    blocks : two arrays of uint32, shape (k, *shape) each
        NumPy or CuPy; shapes broadcast. A NumPy block of one number goes with CuPy blocks too.
    systems : two Positional
        What the blocks mean; each has at most as many bits as the result.
    system : Positional
        What the result is in.
    mode : {"raise", "wrap", "flag"}
        What happens where an exact result is out of range.
    locate : callable
        Turns a flat index in the chunk into the one that an error names.

    Returns
    -------
    array of uint32, shape (rows, *shape)
        Results, which wrap; with ``"flag"`` one row more, 1 where the exact result is out of range, else 0.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range.
    """
    operands, shape = matrices(*blocks)
    prototype = next((block for block in operands if backend_name(block) == "cuda"), operands[0])
    rows = system.rows
    out = np.empty_like(prototype, shape=(rows + (mode == "flag"), math.prod(shape)), order="C")
    signs = [s.signed for s in systems]
    flags = kernels_of(out).positional_add(
        operands, signs, name == "subtract", system.top_bits, system.signed, out[:rows]
    )
    if mode == "flag":
        out[rows] = flags
    elif mode == "raise" and bool(flags.any()):
        index = int(flags.argmax())
        x, y = (
            s.decode_at(block, index if block.shape[1] > 1 else 0)
            for block, s in zip(operands, systems, strict=True)
        )
        raise system.overflow_error(EXACT[name](x, y), locate(index))
    return out.reshape(len(out), *shape)


def result_system(name: str, x: Positional, y: Positional) -> Positional:
    """The fewest bits that hold each result of an operation on two operands."""
    signed = x.signed or y.signed
    # A number without a sign takes one bit more where there are signs.
    widest = max(s.bits + (signed and not s.signed) for s in (x, y))
    return Positional(widest + 1, signed or name == "subtract")
