"""Product of all numbers of an array, exact. On Dask, chunk by chunk and in a tree.

A product without zeros that has more factors of magnitude 2 or more than M has bits is out of range. So a
few Python integers decide: zeros, ones and minus ones only count.
"""

import math
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import dask.array as da
import numpy as np

from rnsdask.backend import Array, kernels_of, to_backend
from rnsdask.core.errors import RNSOverflowError
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet, from_text, to_text
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.lazy.operands import ResidueArray
from rnsdask.lazy.tree import boxed, combine_tree
from rnsdask.rns import exact
from rnsdask.rns.compare import differ, sign
from rnsdask.rns.convert import residues_to_ints


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


def prod(x: ResidueArray, overflow: str | None, split_every: int | None) -> Any:
    """Product of all numbers, as :meth:`.RNSArray.prod` says."""
    mode = overflow_mode(overflow)
    residues, moduli, signed = x.residues, x.moduli, x.signed
    if not isinstance(residues, da.Array):
        return _result(factors_of_chunk(residues, moduli, signed, x.bound, mode), moduli, signed, mode)
    ones = ((1,), *((1,) * len(axis) for axis in residues.chunks[1:]))
    partials = da.map_blocks(
        _factors_block,
        residues,
        moduli=moduli,
        signed=signed,
        bound=to_text(x.bound),
        mode=mode,
        chunks=ones,
        dtype=object,
        meta=np.empty((0,) * residues.ndim, dtype=object),
    )
    axes = tuple(range(residues.ndim))
    combine = partial(_combine_blocks, moduli=moduli)
    factors = combine_tree(partials, combine, axes, "rns-prod", split_every, keepdims=False)
    meta: Any = np.empty((), dtype=object)
    options: dict[str, Any] = {"moduli": moduli, "signed": signed, "mode": mode}
    result: Any = da.map_blocks(_result_block, factors, **options, dtype=object, meta=meta)
    if mode != "flag":
        return LazyInts.of(result)
    value = LazyInts.of(result.map_blocks(_item, 0, dtype=object, meta=meta))
    return value, result.map_blocks(_item, 1, dtype=np.bool_, meta=np.empty((), dtype=np.bool_))


def _factors_block(
    block: Any, *, moduli: ModuliSet, signed: bool, bound: str | None, mode: str
) -> np.ndarray[Any, Any]:
    factors = factors_of_chunk(to_backend(block, "auto"), moduli, signed, from_text(bound), mode)
    return boxed(factors, block.ndim)


def _combine_blocks(blocks: Any, axis: Any, keepdims: bool, moduli: ModuliSet) -> Any:  # noqa: ARG001
    if blocks.size == 0:  # Dask tries functions on an empty array to learn what they return
        return blocks
    factors = reduce(partial(combine, moduli=moduli), blocks.flat)
    return boxed(factors, blocks.ndim) if keepdims else factors


def _result_block(factors: Any, *, moduli: ModuliSet, signed: bool, mode: str) -> Any:
    result = _result(factors, moduli, signed, mode)
    return result if mode == "flag" else ScalarInt(result)


def _item(pair: tuple[int, bool], index: int) -> Any:
    return np.bool_(pair[1]) if index else ScalarInt(pair[0])


# ---- chunks -----------------------------------------------------------------------------------------------


def factors_of_chunk(
    residues: Array, moduli: ModuliSet, signed: bool, bound: int | None, mode: str
) -> Factors:
    """What the numbers of a chunk (n, *shape) contribute to a product."""
    matrix = as_matrix(residues)
    wrapped = None if mode == "raise" else _product_modulo(matrix, moduli)
    if mode == "wrap":
        return Factors(wrapped)
    (nonzero,) = _differ(matrix, 0, moduli, signed).nonzero()
    has_zero = nonzero.size < matrix.shape[1]
    if has_zero:
        matrix = kernels_of(matrix).gather(matrix, nonzero)
    other = _differ(matrix, 1, moduli, signed)
    minus_ones = 0
    if signed:
        is_other = _differ(matrix, -1, moduli, signed)
        minus_ones = int(other.size - is_other.sum())
        other &= is_other
    (chosen,) = other.nonzero()
    others = kernels_of(matrix).gather(matrix, chosen)
    negative = minus_ones % 2 == 1
    if chosen.size > moduli.bits:
        # Nothing but an error asks for the sign.
        if signed and mode == "raise":
            negative ^= int((sign(others, moduli, signed, bound) < 0).sum()) % 2 == 1
        return Factors(wrapped, has_zero, None, int(chosen.size) + 1, negative)
    factors = Factors(wrapped, has_zero, -1 if negative else 1, 1, negative)
    for value in residues_to_ints(others, moduli, signed).tolist():
        factors = combine(factors, Factors(1, False, value, abs(value).bit_length(), value < 0), moduli)
    return factors


def _differ(matrix: Array, value: int, moduli: ModuliSet, signed: bool) -> Array:
    column = np.array(exact.residues_of(value, moduli), dtype=np.uint32)[:, None]
    return differ(matrix, column, moduli, signed)


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


def _result(factors: Factors, moduli: ModuliSet, signed: bool, mode: str) -> Any:
    """The product as `mode` wants it: a number, with ``"flag"`` a pair of it and a bool."""
    lowest, highest = moduli.value_range(signed)
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
        raise RNSOverflowError(0, needed, moduli.bits - 1, signed, factors.negative, at_least=True)
    if is_outside:
        raise RNSOverflowError.of_value(value, 0, moduli.bits, signed)
    return value
