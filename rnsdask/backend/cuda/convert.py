"""Conversion of residues: from limbs and back, to other moduli, digits and fractions; division of limbs."""

from typing import Any

import cupy
import numpy as np

from rnsdask.backend.cpu import trees
from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import array_arguments, on_device, row_stride
from rnsdask.backend.cuda.layout import BLOCK, LENGTH_TABLE, TILE_LIMBS, WARP
from rnsdask.backend.protocol import Array
from rnsdask.constants import (
    ExtensionConstants,
    FixedPointConstants,
    ForwardConstants,
    LengthConstants,
    MixedRadixConstants,
    ReverseConstants,
    WideDigitConstants,
    WideForwardConstants,
)
from rnsdask.constants.convert import TABLE_MULTIPLE

# Fewer numbers, each by a thread of its own, do not keep a GPU busy if they have many moduli.
_MANY_NUMBERS = 2**15
_MANY_MODULI = 16

# Sums of products that are in memory at a time, 16 bytes each.
SUMS = 2**24


def first_outside(limbs: Array, constants: ForwardConstants | WideForwardConstants) -> int | None:
    if constants.bounds is None:
        return None
    position = cupy.full(1, 2**64 - 1, dtype=cupy.uint64)
    bounds = on_device(constants, "bounds")
    arguments = (*_limb_arguments(limbs), bounds, np.uint32(constants.flip), position)
    launching.launch("convert", "first_outside", limbs.shape[0], arguments)
    found = int(position[0])
    return None if found == 2**64 - 1 else found


def _limb_arguments(limbs: Array) -> tuple[Any, ...]:
    return limbs, row_stride(limbs), np.int64(limbs.shape[0]), np.int32(limbs.shape[1])


def _by_tree(constants: Any, numbers: int, moduli: tuple[int, int]) -> bool:
    """Whether the host converts the numbers by trees, without a table of all pairs of moduli."""
    return trees.is_quicker(constants.spent, numbers, moduli, trees.BY_GPU)


def limbs_to_residues(limbs: Array, constants: ForwardConstants, residues: Array) -> None:
    moduli = len(residues)
    if constants.base is not None and _by_tree(constants, len(limbs), (constants.limb_count, moduli)):
        found = np.empty(residues.shape, dtype=np.uint32)
        trees.limbs_to_residues(limbs.get(), constants, found)
        residues[...] = cupy.asarray(found)
        return
    table, last, factors = (on_device(constants, field) for field in ("table", "last", "factors"))
    terms, padded = (np.int32(length) for length in table.shape)
    results = (last, factors, np.int32(moduli), residues, row_stride(residues))
    arguments = (*_limb_arguments(limbs), terms, table, padded, *results)
    shared = 4 * TILE_LIMBS * (BLOCK + 1)
    launching.launch("convert", "limbs_to_residues", limbs.shape[0], arguments, shared=shared)


def residues_to_limbs(residues: Array, constants: ReverseConstants) -> Array:
    count = residues.shape[1]
    if _by_tree(constants, count, (len(residues), len(residues))):
        found = np.empty((count, constants.limb_count), dtype=np.uint32)
        trees.residues_to_limbs(residues.get(), constants, found)
        return cupy.asarray(found)
    limbs = cupy.empty((count, constants.limb_count), dtype=cupy.uint32)
    table, *others = (
        on_device(constants, field) for field in ("table", "last", "inverses", "product", "highest")
    )
    columns = table.shape[1]
    if count >= _MANY_NUMBERS or len(table) < _MANY_MODULI:
        results = (*others, np.int32(constants.limb_count), limbs)
        arguments = (*array_arguments(residues), table, np.int32(columns), *results)
        launching.launch("convert", "residues_to_limbs", count, arguments)
        return limbs
    *factors, product, highest = others
    step = max(1, min(count, SUMS // columns))
    sums = cupy.empty(step * columns * 2, dtype=cupy.uint64)  # of two words
    for start in range(0, count, step):
        part, found = residues[:, start : start + step], limbs[start : start + step]
        threads = len(found) * (columns // TABLE_MULTIPLE)
        arguments = (*array_arguments(part), table, np.int32(columns), *factors, sums)
        launching.launch("convert", "reverse_sums", threads, arguments)
        results = (np.int64(len(found)), product, highest, np.int32(constants.limb_count), found)
        launching.launch("convert", "limbs_of_sums", len(found), (sums, *results), block=WARP)
    return limbs


def base_extend(residues: Array, constants: ExtensionConstants, result: Array) -> Array:
    source = residues[: len(constants.moduli)]
    if _by_tree(constants, source.shape[1], (len(source), len(result))):
        found = np.empty(result.shape, dtype=np.uint32)
        trees.base_extend(source.get(), constants, found)
        result[...] = cupy.asarray(found)
        return cupy.zeros(source.shape[1], dtype=cupy.bool_)
    ambiguous = cupy.empty(residues.shape[1], dtype=cupy.bool_)
    table, *tables, target_last, factors = (
        on_device(constants, field) for field in ("table", "last", "inverses", "target_last", "factors")
    )
    decision = (np.uint32(constants.start), np.uint32(constants.ambiguous_below))
    targets = (target_last, factors, np.int32(len(constants.targets)))
    results = (result, row_stride(result), ambiguous)
    arguments = (table, np.int32(table.shape[1]), *tables, *decision, *targets, *results)
    launching.launch("convert", "base_extend", residues.shape[1], (*array_arguments(source), *arguments))
    return ambiguous


def wide_digits(residues: Array, constants: WideDigitConstants) -> Array:
    moduli, count = residues.shape
    digits = cupy.empty((count, moduli + 1), dtype=cupy.uint64)
    strides = (np.int64(stride // residues.itemsize) for stride in residues.strides)
    tables = (on_device(constants, field) for field in ("last", "inverses", "highest"))
    arguments = (residues, *strides, np.int64(count), np.int32(moduli), *tables, digits)
    launching.launch("wide_residues", "wide_digits", count, arguments)
    return digits


def limbs_to_wide_residues(limbs: Array, constants: WideForwardConstants) -> Array:
    limbs = cupy.ascontiguousarray(limbs)
    count, limb_count = limbs.shape
    moduli = len(constants.last)
    residues = cupy.empty((moduli, count), dtype=cupy.uint64)
    is_signed = len(constants.weights) > limb_count
    tables = (on_device(constants, field) for field in ("weights", "last", "factors"))
    numbers = (limbs, np.int64(count), np.int32(limb_count), np.int32(is_signed))
    arguments = (*numbers, *tables, np.int32(moduli), residues)
    launching.launch("wide_residues", "limbs_to_wide_residues", count, arguments)
    return residues


def mixed_radix_digits(residues: Array, constants: MixedRadixConstants) -> Array:
    digits = cupy.empty(residues.shape, dtype=cupy.uint32)
    tables = tuple(on_device(constants, field) for field in ("last", "ones", "inverses"))
    launching.launch(
        "mixed_radix", "mixed_radix_digits", residues.shape[1], (*array_arguments(residues), *tables, digits)
    )
    return digits


def fixed_point(residues: Array, constants: FixedPointConstants) -> tuple[Array, Array]:
    count = residues.shape[1]
    words = cupy.empty((constants.bits // 32, count), dtype=cupy.uint32)
    zero = cupy.empty(count, dtype=cupy.bool_)
    arguments = (*array_arguments(residues), on_device(constants, "coefficients"), words, zero)
    launching.launch("fixed_point", f"fixed_point_{constants.bits}", count, arguments)
    return words, zero


def bit_lengths(residues: Array, constants: LengthConstants) -> tuple[Array, Array]:
    count, evaluation = residues.shape[1], constants.evaluation
    lengths, decided = cupy.empty(count, dtype=cupy.int64), cupy.empty(count, dtype=cupy.bool_)
    table = np.array(constants.table, dtype=LENGTH_TABLE)[()]
    arguments = (*array_arguments(residues), on_device(evaluation, "coefficients"), table, lengths, decided)
    launching.launch("fixed_point", f"bit_lengths_{evaluation.bits}", count, arguments)
    return lengths, decided


def floor_divide_limbs(limbs: Array, divisors: Array, width: int, signed: bool) -> tuple[Array, Array]:
    quotients, remainders = (cupy.empty((len(limbs), width), dtype=cupy.uint32) for _ in range(2))
    stride = np.int64(divisors.shape[1] if len(divisors) > 1 else 0)
    numbers = (limbs, np.int64(len(limbs)), np.int32(limbs.shape[1]))
    others = (divisors, stride, np.int32(divisors.shape[1]))
    results = (np.int32(signed), np.int32(width), quotients, remainders)
    launching.launch("divide", "floor_divide_limbs", len(limbs), (*numbers, *others, *results))
    return quotients, remainders


# Remainders by long integers, and division by arrays, are left to the division of limbs.
remainder_limbs = remainders = divide_residues = None
