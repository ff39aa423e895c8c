"""Sums, differences and products of chunks of numbers, and exactly which of them overflow.

A result has the residues of the exact result. Whether the exact result t is in range is decided in steps,
each for the numbers that the previous one leaves open (docs/exact-operations.md):

0. Bounds of the factors of a product, measured in one pass over each factor of unknown size.
1. 64-bit keys, evaluated in the pass that computes the result: of both operands of a sum or a difference, or
   of one operand that decides alone because ranges of the others are known. If they leave many numbers open,
   as for small numbers, bounds of these.
2. X/M of each operand X as a double with an exponent: they give t/M with a small relative error.
3. The same of the result r modulo M: (t - r)/M is an integer, and 0 just when t is in range. If t/M is too
   large for its error (in a difference of two huge products), t as a Python integer.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from rnsdask.backend import OPEN, OVERFLOWS, Array, backend_name, empty_like, is_any, kernels_of, to_backend
from rnsdask.constants import WindowCheck, sum_check, window_check
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.errors import RNSOverflowError
from rnsdask.core.operations import OPERATIONS, Operation
from rnsdask.core.place import Locate
from rnsdask.core.ranges import SUMS_OF_PRODUCTS, Range, multiply
from rnsdask.rns.blocks import matrices
from rnsdask.rns.bounds import MANY, measured_bound, sampled_bound
from rnsdask.rns.compare import compare
from rnsdask.rns.evaluation import magnitudes
from rnsdask.rns.system import RNS

# Residues, and columns on each processor, that are evaluated at a time. In addition to a chunk, that takes up
# to 50 doubles a column, which mostly stay in a CPU's cache.
_RESIDUES_AT_A_TIME = 2**24
_COLUMNS_AT_A_TIME = {"cpu": 2**16, "cuda": 2**21}

# Most open numbers that a GPU leaves to the host: it would first compile some thirty kernels, for seconds.
_FEW = 2**10

# Relative error of a product of two fractions X/M, each with its MAGNITUDE_ERROR.
_RELATIVE_ERROR = 2.0**-11

# Exponents are limited so that doubles neither overflow nor underflow; the error of that is below _CUT_OFF.
_HIGHEST_EXPONENT = 500
_LOWEST_EXPONENT = -600
_CUT_OFF = 2.0**-590

# Greatest share of keys left open with which one operand's keys decide a sum; otherwise both operands' do.
_OPEN_SUMS = 2**-16

# If the errors of t/M and r/M add up to less than this and 1/1000, rounding their difference is exact.
_ROUNDING_ROOM = 0.25


def apply(
    name: str,
    blocks: Sequence[Array],
    system: RNS,
    mode: str,
    locate: Locate = int,
    ranges: tuple[Range, ...] | None = None,
) -> Array:
    """Apply one of :data:`.OPERATIONS` to a chunk of each operand, as :func:`apply_to_blocks` does."""
    return apply_to_blocks(name, *blocks, system=system, mode=mode, locate=locate, ranges=ranges)


def apply_to_blocks(
    name: str,
    *blocks: Array,
    system: RNS,
    mode: str,
    locate: Locate = int,
    ranges: tuple[Range, ...] | None = None,
) -> Array:
    """Apply one of :data:`.OPERATIONS` to a chunk of each operand, a row of the table.

    ``"wrap"`` also serves if all results are known to be in range. `ranges` are the known ranges of the
    operands, lowest and highest number each; they may save most of the check's cost.
    """
    if system.bound is not None:  # it does not hold for results; `ranges` hold for operands
        system = system.with_bound(None)
    operation, n, moduli = OPERATIONS[name], system.rows, system.moduli
    operands, shape = matrices(*blocks)
    prototype = next((x for x in operands if not isinstance(x, np.ndarray)), operands[0])
    rows = n + (mode == "flag")
    out = empty_like(prototype, (rows, math.prod(shape)))
    if mode == "wrap":
        kernels_of(out).apply(name, operands, moduli, out)
    else:
        known = ranges or (system.value_range,) * len(operands)
        mask = _apply_checked(operation, operands, system, known, out if rows == n else out[:n])
        if mode == "flag":
            out[n] = 0 if mask is None else mask
        elif mask is not None and is_any(mask):
            raise _error(operation, operands, system, int(mask.argmax()), locate)
    return out if len(shape) == 1 else out.reshape(rows, *shape)


def _error(
    operation: Operation, operands: Sequence[Array], system: RNS, index: int, locate: Locate
) -> RNSOverflowError:
    values = (system.decode_at(x, index if x.shape[1] > 1 else 0) for x in operands)
    return system.overflow_error(operation.evaluate(*values), locate(index))


def _apply_checked(
    operation: Operation,
    operands: Sequence[Array],
    system: RNS,
    ranges: tuple[Range, ...],
    out: Array,
) -> Array | None:
    """Write the result modulo M; return a mask (N,) of exact results out of range, or None without any."""
    kernels, count, moduli = kernels_of(out), out.shape[1], system.moduli
    window = deciding_window(operation.name, system, ranges)
    if window is None and not operation.is_sum and count >= MANY:
        ranges = _measured_ranges(operation, operands, system, ranges)
        if _is_decided_by_sign(operation, ranges, system):
            kernels.apply(operation.name, operands, moduli, out)
            return _out_of_range(operation, ranges, out, system)
        window = deciding_window(operation.name, system, ranges)
    if window is None and not operation.is_sum:  # keys decide nothing for products
        kernels.apply(operation.name, operands, moduli, out)
        return _decide_in_parts(
            partial(_overflows, operation, system=system, ranges=ranges), None, operands, out
        )
    if window is None:
        check = sum_check(moduli, system.signed, operation.name == "subtract")
        states = kernels.apply_checked(operation.name, operands, moduli, check, out)
    else:
        states = kernels.apply_windowed(operation.name, operands, moduli, window, out)
    if states is None:
        return None
    decide = partial(_overflows_beside_keys, operation, system=system, ranges=ranges)
    return _decide_in_parts(decide, states, operands, out)


def _decide_in_parts(
    decide: Callable[[Sequence[Array], Array], Array],
    states: Array | None,
    operands: Sequence[Array],
    out: Array,
) -> Array:
    """Mask (N,) of exact results out of range; numbers left open by states, or all, are decided in parts."""
    most, count = _COLUMNS_AT_A_TIME[backend_name(out)], out.shape[1]
    step = min(_RESIDUES_AT_A_TIME // len(out) or 1, most)
    parts: Iterator[Any] = (slice(k, k + step) for k in range(0, count, step))
    left = count if states is None else int(np.count_nonzero(states == OPEN))
    if states is None or left == count:
        mask = np.empty_like(out, shape=(count,), dtype=np.bool_, order="C")
    else:
        mask = states == OVERFLOWS
        (indices,) = (states == OPEN).nonzero() if left else ((),)
        parts = (indices[k : k + step] for k in range(0, left, step))
    for part in parts:
        *chosen, result = (_columns(x, part) for x in (*operands, out))
        if left <= _FEW:
            *chosen, result = (to_backend(x, "cpu") for x in (*chosen, result))
        mask[part] = np.asarray(decide(chosen, result), like=mask)
    return mask


def _overflows_beside_keys(
    operation: Operation,
    operands: Sequence[Array],
    result: Array,
    system: RNS,
    ranges: tuple[Range, ...],
) -> Array:
    """Mark overflows among numbers that keys leave open; if they are many, most are likely small."""
    if operation.name == "subtract" and not system.signed:
        minuend, subtrahend = operands
        below: Array = compare(minuend, subtrahend, system.with_bound(max(high for _, high in ranges))) < 0
        return below
    if result.shape[1] >= MANY:
        ranges = _measured_ranges(operation, operands, system, ranges)
        if _is_decided_by_sign(operation, ranges, system):
            mask = _out_of_range(operation, ranges, result, system)
            return (
                np.zeros_like(result, shape=result.shape[1:], dtype=np.bool_, order="C")
                if mask is None
                else mask
            )
    return _overflows(operation, operands, result, system, ranges)


def _measured_ranges(
    operation: Operation, operands: Sequence[Array], system: RNS, ranges: tuple[Range, ...]
) -> tuple[Range, ...]:
    """Ranges of the operands, measured in one pass over each if a sample shows that they may decide."""
    known = [system.with_bound(max(map(abs, ends))) for ends in ranges]
    sampled = [sampled_bound(*pair) for pair in zip(operands, known, strict=True)]
    if not _is_decided_by_sign(operation, _cut(ranges, sampled), system):
        return ranges
    triples = zip(operands, known, sampled, strict=True)
    return _cut(ranges, [measured_bound(x, own, sampled=guess) for x, own, guess in triples])


def _cut(ranges: Sequence[Range], bounds: Sequence[int]) -> tuple[Range, ...]:
    """Cut ranges to bounds of magnitudes."""
    return tuple((max(low, -b), min(high, b)) for b, (low, high) in zip(bounds, ranges, strict=True))


def _is_decided_by_sign(operation: Operation, ranges: tuple[Range, ...], system: RNS) -> bool:
    """Whether residues determine results, and only negative results of unsigned numbers are out of range."""
    results = SUMS_OF_PRODUCTS[operation.name](*ranges)
    return _is_within(results, system.value_range) or _is_within(results, system.moduli.value_range(True))


def _out_of_range(
    operation: Operation, ranges: tuple[Range, ...], result: Array, system: RNS
) -> Array | None:
    """Mask (N,) of results out of range that are decided by their sign; None if none can be out of range."""
    results = SUMS_OF_PRODUCTS[operation.name](*ranges)
    if _is_within(results, system.value_range):
        return None
    exact = RNS(system.moduli, True, max(map(abs, results)))
    below: Array = compare(result, np.zeros((len(result), 1), dtype=np.uint32), exact) < 0
    return below


def _is_within(inner: Range, outer: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


@lru_cache(CACHED_SETS)
def deciding_window(name: str, system: RNS, ranges: tuple[Range, ...]) -> WindowCheck | None:
    """Windows of one operand's keys that prove a result to fit or not; None if they prove little.

    A result is s x y + z, where x is the operand, s a sign, y the product of the other factors of its term
    and z the sum of the other terms. The operand whose keys prove the most results to fit decides. In a sum
    or a difference without a narrow range, both operands should.
    """
    operation, best, score = OPERATIONS[name], None, 0
    for sign, factors in operation.terms:
        for k in factors:
            certain, possible = _windows(operation, k, sign, factors, system.value_range, ranges)
            check = window_check(system.moduli, system.signed, k, certain, possible)
            if _length(check.fits) > score:
                best, score = check, _length(check.fits)
    if best is not None and operation.is_sum and _length(best.open) - score > _OPEN_SUMS * 2**64:
        return None
    return best


def _length(window: Range) -> int:
    return max(0, window[1] - window[0] + 1)


def _windows(
    operation: Operation,
    k: int,
    sign: int,
    factors: tuple[int, ...],
    allowed: Range,
    ranges: tuple[Range, ...],
) -> tuple[Range, Range]:
    """Ranges of operand k in which the result fits for all values of the others, and for some."""
    y = (sign, sign)
    for other in factors:
        if other != k:
            y = multiply(y, ranges[other])
    z = (0, 0)
    for other_sign, others in operation.terms:
        if k not in others:
            term = (other_sign, other_sign)
            for other in others:
                term = multiply(term, ranges[other])
            z = (z[0] + term[0], z[1] + term[1])
    lowest, highest = allowed
    always, ever = (lowest - z[0], highest - z[1]), (lowest - z[1], highest - z[0])
    certain = [_quotients(always, end, allowed) for end in y]
    both = (max(low for low, _ in certain), min(high for _, high in certain))
    # x y covers the values between x y[0] and x y[1]; if the range of y includes 0, some value always fits.
    possible = [_quotients(ever, end, allowed) for end in y]
    if y[0] <= 0 <= y[1] and y[0] != y[1]:
        return both, allowed
    return both, (min(low for low, _ in possible), max(high for _, high in possible))


def _quotients(allowed: Range, y: int, every: Range) -> Range:
    """Lowest and highest integer x for which x y is in a range; (1, 0) if there is none."""
    low, high = allowed
    if y == 0:
        return every if low <= 0 <= high else (1, 0)
    if y < 0:
        low, high, y = -high, -low, -y
    return (-(-low // y), high // y) if low <= high else (1, 0)


def _columns(operand: Array, part: Any) -> Array:
    """Select numbers of an operand by a slice or by indices; a single number stays single."""
    if operand.shape[1] == 1:
        return operand
    return operand[:, part] if isinstance(part, slice) else kernels_of(operand).gather(operand, part)


def _overflows(
    operation: Operation,
    operands: Sequence[Array],
    result: Array,
    system: RNS,
    ranges: tuple[Range, ...],
) -> Array:
    """Mask (N,) of exact results t out of range, given the results modulo M."""
    t, error = _evaluate(operation, operands, system, result, ranges)
    signed = system.signed
    # In units of M, integers between these two are in range, and those outside are not. The number 0 and the
    # ends themselves are left to the last step.
    low, high = (-0.5, 0.5) if signed else (0.0, 1.0)
    fits = t + error < high
    if signed or any(sign < 0 for sign, _ in operation.terms):
        fits &= t - error > low
    mask = (t - error > high) | (t + error < low)
    (near,) = (~fits & ~mask & (error < _ROUNDING_ROOM)).nonzero()
    if near.size:
        r, exponent = magnitudes(result[:, near], system)
        r = np.ldexp(r, np.maximum(exponent, _LOWEST_EXPONENT).astype(np.int32))
        mask[near] = np.rint(t[near] - r) != 0
    (huge,) = (~fits & ~mask & (error >= _ROUNDING_ROOM)).nonzero()
    if huge.size:
        lowest, highest = system.value_range
        exact = operation.evaluate(*(system.decode(_columns(x, huge)) for x in operands))
        outside = np.array((exact < lowest) | (exact > highest), dtype=np.bool_)
        mask[huge] = np.asarray(outside, like=mask)
    return mask


def _evaluate(
    operation: Operation,
    operands: Sequence[Array],
    system: RNS,
    result: Array,
    ranges: tuple[Range, ...],
) -> tuple[Array, Array]:
    """t/M and a bound of its error, as doubles; both divided by the same power of 2 where t/M is huge.

    Each product of the operation has a relative error below `_RELATIVE_ERROR`, plus `_CUT_OFF` if it is tiny;
    the error of adding doubles is negligible.
    """
    # A single number may be a NumPy array although the other operands are on a GPU.
    values = []
    for x, known in zip(operands, ranges, strict=True):
        parts = magnitudes(x, system.with_bound(max(map(abs, known))))
        values.append(tuple(np.asarray(part, like=result) for part in parts))
    moduli = system.moduli
    # M = size * 2**bits, rounded to a double.
    size = float(moduli.product >> max(moduli.bits - 64, 0)) / 2.0 ** min(moduli.bits, 64)
    products = []
    for sign, factors in operation.terms:
        mantissa, exponent = values[factors[0]]
        for k in factors[1:]:
            # (X/M) (Y/M) M
            mantissa = mantissa * values[k][0] * size
            exponent = exponent + values[k][1] + moduli.bits
        # A product that is 0 must not determine the common scale.
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
