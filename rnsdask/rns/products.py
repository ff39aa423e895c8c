"""Product of all numbers of a chunk, and how those of chunks combine. No Dask in here.

A product without zeros that has more factors of magnitude 2 or more than M has bits is out of range. So a
few Python integers decide: zeros, ones and minus ones only count.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import exact
from rnsdask.rns.blocks import column_of
from rnsdask.rns.compare import differ, sign
from rnsdask.rns.system import RNS


@dataclass(frozen=True)
class Factors:
    """The product of some numbers, as far as it matters for that of more.

    Attributes
    ----------
    wrapped : int or None
        It modulo M; None if nobody wants that.
    has_zero : bool
        Whether one of them is 0. The others of these attributes leave zeros out.
    value : int or None
        The product; None if it is beyond M in magnitude, from where there is no way back.
    bits : int
        Its magnitude has at least so many bits.
    negative : bool
        Whether it is below 0.
    """

    wrapped: int | None
    has_zero: bool = False
    value: int | None = 1
    bits: int = 1
    negative: bool = False


def factors_of_chunk(residues: Array, system: RNS, mode: str) -> Factors:
    """Factors that the numbers of a chunk (n, *shape) contribute to a product."""
    matrix, moduli, signed = as_matrix(residues), system.moduli, system.signed
    wrapped = None if mode == "raise" else _product_modulo(matrix, moduli)
    if mode == "wrap":
        return Factors(wrapped)
    (nonzero,) = _differ(matrix, 0, system).nonzero()
    has_zero = nonzero.size < matrix.shape[1]
    if has_zero:
        matrix = kernels_of(matrix).gather(matrix, nonzero)
    other = _differ(matrix, 1, system)
    minus_ones = 0
    if signed:
        is_other = _differ(matrix, -1, system)
        minus_ones = int(other.size - is_other.sum())
        other &= is_other
    (chosen,) = other.nonzero()
    others = kernels_of(matrix).gather(matrix, chosen)
    negative = minus_ones % 2 == 1
    if chosen.size > moduli.bits:
        # Nothing but an error asks for the sign.
        if signed and mode == "raise":
            negative ^= int((sign(others, system) < 0).sum()) % 2 == 1
        return Factors(wrapped, has_zero, None, int(chosen.size) + 1, negative)
    factors = Factors(wrapped, has_zero, -1 if negative else 1, 1, negative)
    for value in system.decode(others).tolist():
        factors = combine(factors, Factors(1, False, value, abs(value).bit_length(), value < 0), moduli)
    return factors


def _differ(matrix: Array, value: int, system: RNS) -> Array:
    # The moduli that a bound needs do not tell any value from the numbers.
    return differ(matrix, column_of(value, system.moduli), system.with_bound(None))


def _product_modulo(matrix: Array, moduli: ModuliSet) -> int:
    """Product of all numbers modulo M, from 0 to M - 1: the first half times the second, again and again."""
    kernels, single = kernels_of(matrix), []
    while matrix.shape[1] > 1:
        if matrix.shape[1] % 2:
            single.append(matrix[:, -1].tolist())
        half = matrix.shape[1] // 2
        out = np.empty_like(matrix, shape=(len(moduli), half), order="C")
        kernels.apply("multiply", (matrix[:, :half], matrix[:, half : 2 * half]), moduli, out)
        matrix = out
    if matrix.shape[1]:
        single.append(matrix[:, 0].tolist())
    residues = [math.prod(row) % m for row, m in zip(zip(*single, strict=True), moduli, strict=False)]
    return exact.value_of(residues, moduli) if single else 1


def combine(a: Factors, b: Factors, moduli: ModuliSet) -> Factors:
    """The factors of both together."""
    wrapped = None
    if a.wrapped is not None and b.wrapped is not None:
        wrapped = a.wrapped * b.wrapped % moduli.product
    value = None
    bits = a.bits + b.bits - 1
    if a.value is not None and b.value is not None:
        value = a.value * b.value
        bits = value.bit_length()
        if abs(value) > moduli.product:
            value = None
    return Factors(wrapped, a.has_zero or b.has_zero, value, bits, a.negative ^ b.negative)


def result_of(factors: Factors, system: RNS, mode: str) -> Any:
    """The product as `mode` wants it: a number, with ``"flag"`` a pair of it and a bool."""
    (lowest, highest), moduli, signed = system.value_range, system.moduli, system.signed
    wrapped = None if factors.wrapped is None else (factors.wrapped - lowest) % moduli.product + lowest
    if mode == "wrap":
        return wrapped
    value = 0 if factors.has_zero else factors.value
    is_outside = value is None or not lowest <= value <= highest
    if mode == "flag":
        return wrapped, is_outside
    if value is None:
        # In two's complement -2**k is one bit shorter than 2**k.
        needed = factors.bits - int(factors.negative) + int(signed)
        raise system.overflow_type(0, needed, moduli.bits - 1, signed, factors.negative, at_least=True)
    if is_outside:
        raise system.overflow_error(value, 0)
    return value
