"""Residues from limbs and back, in other moduli, and as digits; division of limbs and of residues."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu import trees
from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import Array
from rnsdask.constants import (
    ExtensionConstants,
    FixedPointConstants,
    ForwardConstants,
    LengthConstants,
    MixedRadixConstants,
    ProofConstants,
    RemainderConstants,
    ReverseConstants,
    WideDigitConstants,
    WideForwardConstants,
    proof_constants,
)
from rnsdask.constants.digits import MOST_DIGIT_BITS, DivisionDigits, ReverseDigits
from rnsdask.core.moduli import ModuliSet

MULTIPLIES_WORDS: bool = _cpu.multiplies_words()
"""Whether this processor has the kernels by digits of 100 bits; those by limbs have the same results."""

FEWEST_BY_DIGITS = {"limbs_to_residues": 9, "residues_to_limbs": 5, "base_extend": 3}
"""Moduli, of base extension the new ones, from which digits are quicker than limbs, as measured."""


def first_outside(limbs: Array, constants: ForwardConstants | WideForwardConstants) -> int | None:
    if constants.bounds is None:
        return None
    index: int = _cpu.first_outside(limbs, constants.bounds, constants.flip)
    return None if index < 0 else index


def _by_digits(kernel: str, moduli: int) -> bool:
    return MULTIPLIES_WORDS and moduli >= FEWEST_BY_DIGITS[kernel]


def _table_seconds(kernel: str, moduli: int, source: ModuliSet) -> trees.Seconds:
    """How long a kernel takes by the table that it will choose."""
    has_digits = _by_digits(kernel, moduli) and source.bits <= MOST_DIGIT_BITS
    return trees.BY_DIGITS if has_digits else trees.BY_LIMBS


def limbs_to_residues(limbs: Array, constants: ForwardConstants, residues: Array) -> None:
    sizes, moduli = (constants.limb_count, len(residues)), constants.moduli
    if constants.base is not None:
        seconds = _table_seconds("limbs_to_residues", len(residues), moduli)
        if trees.is_quicker(constants.spent, len(limbs), sizes, seconds):
            trees.limbs_to_residues(limbs, constants, residues)
            return
    digits = constants.digits if _by_digits("limbs_to_residues", len(residues)) else None
    if digits is not None:
        targets = (digits.targets.starts, digits.targets.factors)
        _cpu.limbs_to_residues_by_digits(limbs, constants.flip != 0, digits.table, *targets, residues)
    else:
        _cpu.limbs_to_residues(limbs, constants.table, constants.last, constants.factors, residues)


def reverse_arguments(digits: ReverseDigits) -> tuple[NDArray[Any], ...]:
    return digits.sources.starts, digits.sources.factors, digits.table, digits.product, digits.highest


def residues_to_limbs(residues: Array, constants: ReverseConstants) -> NDArray[np.uint32]:
    limbs = np.empty((residues.shape[1], constants.limb_count), dtype=np.uint32)
    sizes, seconds = (
        (len(residues),) * 2,
        _table_seconds("residues_to_limbs", len(residues), constants.moduli),
    )
    if trees.is_quicker(constants.spent, len(limbs), sizes, seconds):
        trees.residues_to_limbs(residues, constants, limbs)
        return limbs
    digits = constants.digits if _by_digits("residues_to_limbs", len(residues)) else None
    if digits is not None:
        _cpu.residues_to_limbs_by_digits(residues, *reverse_arguments(digits), limbs)
    else:
        tables = (constants.table, constants.last, constants.inverses, constants.product, constants.highest)
        _cpu.residues_to_limbs(residues, *tables, limbs)
    return limbs


def base_extend(residues: Array, constants: ExtensionConstants, result: Array) -> NDArray[np.bool_]:
    source = residues[: len(constants.moduli)]
    sizes, seconds = (len(source), len(result)), _table_seconds("base_extend", len(result), constants.moduli)
    if trees.is_quicker(constants.spent, residues.shape[1], sizes, seconds):
        trees.base_extend(source, constants, result)
        return np.zeros(residues.shape[1], dtype=np.bool_)
    ambiguous = np.empty(residues.shape[1], dtype=np.uint8)
    decision = (constants.start, constants.ambiguous_below)
    digits = constants.digits if _by_digits("base_extend", len(result)) else None
    if digits is not None:
        groups = (digits.sources.starts, digits.sources.factors)
        new_groups = (digits.targets.starts, digits.targets.factors)
        _cpu.base_extend_by_digits(source, *groups, digits.table, *decision, *new_groups, result, ambiguous)
    else:
        tables = (constants.table, constants.last, constants.inverses)
        targets = (constants.target_last, constants.factors)
        _cpu.base_extend(source, *tables, *decision, *targets, result, ambiguous)
    return ambiguous.view(np.bool_)


def bound_proof(moduli: ModuliSet, first: int, low: int, high: int) -> ProofConstants | None:
    if not MULTIPLIES_WORDS or first == len(moduli):
        return None
    return proof_constants(moduli.prefix(first), ModuliSet(moduli.moduli[first:]), low, high)


def prove_bound(residues: Array, constants: ProofConstants) -> NDArray[np.bool_]:
    proved = np.empty(residues.shape[1], dtype=np.uint8)
    sources, targets = constants.sources, constants.targets
    _cpu.prove_bound(
        residues,
        *(sources.starts, sources.factors, constants.source_groups),
        constants.table,
        *(targets.starts, targets.factors, constants.target_groups),
        constants.lowest,
        constants.room,
        proved,
    )
    return proved.view(np.bool_)


def table_sums(
    terms: NDArray[np.uint32], table: NDArray[np.uint32], method: str
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The (C, N) sums of the products of (R, N) terms and an (R, C) table by one of `sum_methods`, for tests.

    N is at most 64. With the sums' two lanes, a sum is ``(low - 2**32 high) % 2**64 + 2**32 high``.
    """
    shape = table.shape[1], terms.shape[1]
    low, high = np.empty(shape, dtype=np.uint64), np.empty(shape, dtype=np.uint64)
    _cpu.table_sums(terms, table, method, low, high)
    return low, high


def sum_methods() -> list[str]:
    """The ways to sum a table's products that this processor has; all give the same sums."""
    methods: list[str] = _cpu.sum_methods()
    return methods


def wide_digits(residues: Array, constants: WideDigitConstants) -> NDArray[np.uint64]:
    digits = np.empty((residues.shape[1], len(residues) + 1), dtype=np.uint64)
    _cpu.wide_digits(residues, constants.last, constants.inverses, constants.highest, digits)
    return digits


def limbs_to_wide_residues(limbs: Array, constants: WideForwardConstants) -> NDArray[np.uint64]:
    residues = np.empty((len(constants.last), len(limbs)), dtype=np.uint64)
    _cpu.limbs_to_wide_residues(limbs, constants.weights, constants.last, constants.factors, residues)
    return residues


def mixed_radix_digits(residues: Array, constants: MixedRadixConstants) -> NDArray[np.uint32]:
    digits = np.empty(residues.shape, dtype=np.uint32)
    _cpu.mixed_radix_digits(residues, constants.last, constants.ones, constants.inverses, digits)
    return digits


def fixed_point(
    residues: Array, constants: FixedPointConstants
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    words = np.empty((constants.bits // 32, residues.shape[1]), dtype=np.uint32)
    zero = np.empty(residues.shape[1], dtype=np.uint8)
    _cpu.fixed_point(residues, constants.coefficients, words, zero)
    return words, zero.view(np.bool_)


def bit_lengths(residues: Array, constants: LengthConstants) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    lengths = np.empty(residues.shape[1], dtype=np.int64)
    decided = np.empty(residues.shape[1], dtype=np.uint8)
    _cpu.bit_lengths(residues, constants.evaluation.coefficients, *constants.table, lengths, decided)
    return lengths, decided.view(np.bool_)


def floor_divide_limbs(
    limbs: Array, divisors: Array, width: int, signed: bool, method: str = "best"
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    quotients, remainders = (np.empty((len(limbs), width), dtype=np.uint32) for _ in range(2))
    used = _cpu.floor_divide_limbs(limbs, divisors, signed, quotients, remainders, method) + signed
    # Signed, a remainder may be a divisor plus a number; else neither is exceeded.
    rest = divisors.shape[1] if signed else min(limbs.shape[1], divisors.shape[1])
    return quotients[:, : max(1, min(used, width))], remainders[:, :rest]


def division_methods() -> list[str]:
    """Ways to divide limbs that this processor has, the GPU kernel's way first; all give the same results."""
    methods: list[str] = _cpu.division_methods()
    return methods


def remainder_limbs(
    residues: Array, constants: RemainderConstants
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    count = residues.shape[1]
    limbs = np.empty((count, constants.limb_count), dtype=np.uint32)
    ambiguous = np.empty(count, dtype=np.uint8)
    tables = (constants.table, constants.last, constants.inverses)
    decision = (constants.start, constants.ambiguous_below)
    _cpu.remainder_limbs(
        residues[: len(constants.moduli)], *tables, *decision, constants.divisor, limbs, ambiguous
    )
    return limbs, ambiguous.view(np.bool_)


def _remainders(
    residues: Array,
    constants: RemainderConstants,
    forward: ForwardConstants,
    factors: NDArray[np.uint64] | None,
    result: Array,
) -> NDArray[np.bool_] | None:
    digits, back = constants.digits, forward.digits
    if digits is None or back is None:
        return None
    ambiguous = np.empty(residues.shape[1], dtype=np.uint8)
    _cpu.remainders_by_digits(
        residues[: len(constants.moduli)],
        residues,
        *(digits.sources.starts, digits.sources.factors, digits.table),
        *(constants.start, constants.ambiguous_below, digits.divisor, digits.highest),
        *(back.table, back.targets.starts, back.targets.factors),
        factors,
        result,
        ambiguous,
    )
    return ambiguous.view(np.bool_)


remainders = _remainders if MULTIPLIES_WORDS else None


def _divide_residues(
    x: Array, y: Array, digits: DivisionDigits, quotients: Array | None, remainders: Array | None
) -> tuple[int, int]:
    numbers = (x, reverse_arguments(digits.dividends), y, reverse_arguments(digits.divisors))
    results = (digits.results.table, digits.results.targets.starts, digits.results.targets.factors)
    zero, outside = _cpu.divide_by_digits(*numbers, digits.signed, *results, quotients, remainders)
    return zero, outside


divide_residues = _divide_residues if MULTIPLIES_WORDS else None
