"""Division of limbs, those of a number side by side, and of residues by one number or by residues."""

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.convert import MULTIPLIES_WORDS, reverse_arguments
from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import Array
from rnsdask.constants import ForwardConstants, RemainderConstants
from rnsdask.constants.digits import DivisionDigits


def floor_divide_limbs(
    limbs: Array, divisors: Array, width: int, signed: bool, method: str = "best"
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    quotients, remainders = (np.empty((len(limbs), width), dtype=np.uint32) for _ in range(2))
    used = _cpu.floor_divide_limbs(limbs, divisors, signed, quotients, remainders, method) + signed
    # Signed, a remainder may be a divisor plus a number; else neither is exceeded.
    rest = divisors.shape[1] if signed else min(limbs.shape[1], divisors.shape[1])
    return quotients[:, : max(1, min(used, width))], remainders[:, :rest]


def division_methods() -> list[str]:
    """The ways to divide limbs that this processor has, that of the GPU's kernel first; all give the same."""
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
