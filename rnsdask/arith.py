"""Sums, differences and products of chunks of numbers, and exactly which of them overflow. No Dask in here.

The residues of a result are those of the exact result modulo M. Whether the exact result t is in range is
decided in three steps, each for the numbers that the one before leaves open (docs/operations.md):

1. Of a sum or a difference, the operands' 64-bit keys, evaluated in the pass that computes it.
2. The floating-point intervals of the operands: they give t/M with a small relative error.
3. The interval of the result r modulo M: (t - r)/M is an integer, and 0 just when t is in range. If t/M is
   too large to tell it from the intervals (in a difference of two huge products), t as a Python integer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rnsdask import reference
from rnsdask.backend import Array, backend_name, kernels_of
from rnsdask.constants import sum_check
from rnsdask.convert import residues_to_ints
from rnsdask.errors import RNSOverflowError
from rnsdask.interval import interval_evaluation
from rnsdask.moduli import ModuliSet
from rnsdask.operands import matrices
from rnsdask.position import Locate

Range: TypeAlias = tuple[int, int]

# Residues of the columns that are evaluated at a time: it bounds the memory beside a chunk.
_RESIDUES_AT_A_TIME = 2**24

# A product of two numbers whose intervals have this relative width is wrong by less than _RELATIVE_ERROR.
_ACCURACY = 2.0**-13
_RELATIVE_ERROR = 2.0**-11

# Exponents are kept where doubles cannot overflow or vanish; what is cut off below is less than _CUT_OFF.
_HIGHEST_EXPONENT = 500
_LOWEST_EXPONENT = -600
_CUT_OFF = 2.0**-590

# With t/M and r/M wrong by less than this together with 1/1000, rounding their difference is exact.
_ROUNDING_ROOM = 0.25


@dataclass(frozen=True)
class Operation:
    """An operation: a sum of signed products.

    Attributes
    ----------
    name : str
        Also the kernel's name.
    evaluate : callable
        The operation on Python integers, or on NumPy arrays of them.
    terms : tuple of (sign, indices of the operands that are multiplied)
    """

    name: str
    evaluate: Callable[..., Any]
    terms: tuple[tuple[int, tuple[int, ...]], ...]


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("add", lambda a, b: a + b, ((1, (0,)), (1, (1,)))),
        Operation("subtract", lambda a, b: a - b, ((1, (0,)), (-1, (1,)))),
        Operation("multiply", lambda a, b: a * b, ((1, (0, 1)),)),
        Operation("fma", lambda a, b, c: a * b + c, ((1, (0, 1)), (1, (2,)))),
        Operation("mulsub", lambda a, b, c, d: a * b - c * d, ((1, (0, 1)), (-1, (2, 3)))),
    )
}
"""The operations by name."""


def operand_range(moduli: ModuliSet, signed: bool, bound: int | None) -> Range:
    """Lowest and highest value of an array whose magnitudes are at most `bound`, or unknown."""
    lowest, highest = moduli.value_range(signed)
    return (lowest, highest) if bound is None else (max(lowest, -bound), min(highest, bound))


def result_range(operation: str, *ranges: Range) -> Range:
    """Bounds of the exact result of an operation on operands in the given ranges, as Python integers.

    They are reached if the operands are independent of one another.
    """
    low, high = 0, 0
    for sign, factors in OPERATIONS[operation].terms:
        ends = [sign]
        for k in factors:
            ends = [a * b for a in ends for b in ranges[k]]
        low, high = low + min(ends), high + max(ends)
    return low, high


def apply(
    name: str, blocks: Sequence[Array], moduli: ModuliSet, signed: bool, mode: str, locate: Locate = int
) -> Array:
    """Apply an operation to a chunk of each operand.

    Parameters
    ----------
    name : str
        One of `OPERATIONS`.
    blocks : sequence of arrays of uint32, shape (n, *shape) each
        NumPy or CuPy; shapes broadcast. A NumPy block of one number goes with CuPy blocks too.
    mode : {"raise", "wrap", "flag"}
        What happens on overflow; ``"wrap"`` also serves where all results are known to be in range.
    locate : callable
        Turns a flat index in the chunk into the one that an error names.

    Returns
    -------
    array of uint32, shape (n, *shape)
        With ``"flag"`` one row more, which holds 1 where the exact result is out of range, else 0.

    Raises
    ------
    RNSOverflowError
        With ``"raise"``, if an exact result is out of range.
    """
    operation, n = OPERATIONS[name], len(moduli)
    operands, shape = matrices(*blocks)
    prototype = next((x for x in operands if backend_name(x) == "cuda"), operands[0])
    rows = n + (mode == "flag")
    out = np.empty_like(prototype, shape=(rows, int(np.prod(shape))))
    if mode == "wrap":
        getattr(kernels_of(out), name)(*operands, moduli, out)
    else:
        mask = _apply_checked(operation, operands, moduli, signed, out[:n])
        if mode == "flag":
            out[n] = mask
        elif mask.any():
            raise _error(operation, operands, moduli, signed, int(mask.argmax()), locate)
    return out.reshape(rows, *shape)


def _error(
    operation: Operation,
    operands: Sequence[Array],
    moduli: ModuliSet,
    signed: bool,
    index: int,
    locate: Locate,
) -> RNSOverflowError:
    columns = [x[:, index if x.shape[1] > 1 else 0].tolist() for x in operands]
    value = operation.evaluate(*(reference.value_of(column, moduli, signed) for column in columns))
    return RNSOverflowError.of_value(value, locate(index), moduli.bits, signed)


def _apply_checked(
    operation: Operation, operands: Sequence[Array], moduli: ModuliSet, signed: bool, out: Array
) -> Array:
    """Write the result modulo M; Boolean (N,): the exact result is out of range."""
    kernels, count = kernels_of(out), out.shape[1]
    mask = np.zeros_like(out, shape=(count,), dtype=np.bool_)
    step = max(1, _RESIDUES_AT_A_TIME // len(moduli))
    if operation.name in ("add", "subtract"):
        check = sum_check(moduli, signed, operation.name == "subtract")
        unproven = getattr(kernels, f"{operation.name}_checked")(*operands, moduli, check, out)
        (indices,) = unproven.nonzero()
        parts: Iterator[Any] = (indices[k : k + step] for k in range(0, indices.size, step))
    else:
        getattr(kernels, operation.name)(*operands, moduli, out)
        parts = (slice(k, k + step) for k in range(0, count, step))
    for part in parts:
        chosen = [_columns(x, part) for x in operands]
        mask[part] = _overflows(operation, chosen, out[:, part], moduli, signed)
    return mask


def _columns(operand: Array, part: Any) -> Array:
    return operand if operand.shape[1] == 1 else operand[:, part]


def _overflows(
    operation: Operation, operands: Sequence[Array], result: Array, moduli: ModuliSet, signed: bool
) -> Array:
    """Boolean (N,): whether the exact result t is out of range, given the result modulo M."""
    t, error = _evaluate(operation, operands, moduli, signed, result)
    # Between these two, in units of M, every integer is in range, and none outside of them. The numbers 0 and
    # those at the ends themselves are left to the last step.
    low, high = (-0.5, 0.5) if signed else (0.0, 1.0)
    fits = t + error < high
    if signed or any(sign < 0 for sign, _ in operation.terms):
        fits &= t - error > low
    mask = (t - error > high) | (t + error < low)
    (near,) = (~fits & ~mask & (error < _ROUNDING_ROOM)).nonzero()
    if near.size:
        r, exponent = _mantissas(result[:, near], moduli, signed)
        r = np.ldexp(r, np.maximum(exponent, _LOWEST_EXPONENT).astype(np.int32))
        mask[near] = np.rint(t[near] - r) != 0
    (huge,) = (~fits & ~mask & (error >= _ROUNDING_ROOM)).nonzero()
    if huge.size:
        ints = [residues_to_ints(_columns(x, huge), moduli, signed) for x in operands]
        lowest, highest = moduli.value_range(signed)
        exact = operation.evaluate(*ints)
        outside = np.array((exact < lowest) | (exact > highest), dtype=np.bool_)
        mask[huge] = np.asarray(outside, like=mask)
    return mask


def _mantissas(residues: Array, moduli: ModuliSet, signed: bool, like: Any = None) -> tuple[Array, Array]:
    """X/M as mantissas and exponents, wrong by the relative error `_ACCURACY` at most."""
    interval = interval_evaluation(residues, moduli, signed, accuracy=_ACCURACY)
    mantissas, exponents = interval.low, interval.exponent.astype(np.int64)
    if like is None:
        return mantissas, exponents
    return np.asarray(mantissas, like=like), np.asarray(exponents, like=like)


def _evaluate(
    operation: Operation, operands: Sequence[Array], moduli: ModuliSet, signed: bool, result: Array
) -> tuple[Array, Array]:
    """t/M and a bound of its error, as doubles; both divided by the same power of 2 where t/M is huge.

    Each product of the operation is wrong by less than `_RELATIVE_ERROR` of itself and, where it is tiny,
    `_CUT_OFF`; adding doubles is exact in comparison.
    """
    values = [_mantissas(x, moduli, signed, like=result) for x in operands]
    # M = size * 2**bits, rounded to a double.
    size = float(moduli.product >> max(moduli.bits - 64, 0)) / 2.0 ** min(moduli.bits, 64)
    products = []
    for sign, factors in operation.terms:
        mantissa, exponent = values[factors[0]]
        for k in factors[1:]:
            # (X/M) (Y/M) M
            mantissa = mantissa * values[k][0] * size
            exponent = exponent + values[k][1] + moduli.bits
        # A product that is 0 must not decide what the others are divided by.
        products.append((sign * mantissa, np.where(mantissa == 0, _LOWEST_EXPONENT, exponent)))
    highest = products[0][1]
    for _, exponent in products[1:]:
        highest = np.maximum(highest, exponent)
    excess = np.maximum(highest - _HIGHEST_EXPONENT, 0)
    scaled = [
        np.ldexp(mantissa, np.maximum(exponent - excess, _LOWEST_EXPONENT).astype(np.int32))
        for mantissa, exponent in products
    ]
    t = sum(scaled[1:], start=scaled[0])
    error = sum((abs(x) for x in scaled[1:]), start=abs(scaled[0])) * _RELATIVE_ERROR + _CUT_OFF
    return t, error
