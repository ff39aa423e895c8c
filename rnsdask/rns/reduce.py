"""MAX, MIN, SUM, GCD and a tight bound of a chunk of numbers.

A chunk takes one pass over its residues, which evaluates every number's key (a 64-bit upper bound of 2**64
X/M, or of a multiple if numbers are known to be small) without storing the keys. Numbers whose keys are too
close are decided by their limbs. The bounds are derived in docs/mathematics.md.
"""

from collections.abc import Callable, Iterator

import gmpy2
import numpy as np

from rnsdask.backend import Array, Extremum, KeySums, backend_name, kernels_of
from rnsdask.constants import KEY_BITS, KeyConstants, key_constants
from rnsdask.core import generic
from rnsdask.core.layout import as_matrix
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.reductions import REDUCTIONS, ReductionResult
from rnsdask.rns import exact
from rnsdask.rns.blocks import EXACT_RESIDUES, batches
from rnsdask.rns.bounds import measured_bound, narrowed
from rnsdask.rns.divide import is_multiple
from rnsdask.rns.order import are_near_top, comparable_limbs, greatest
from rnsdask.rns.system import RNS

# Numbers whose candidate flags are computed at a time, to bound the memory of an adversarial chunk.
FLAG_BLOCK = 2**26

WORTH_A_GLANCE = 2**18
"""Fewest residues of a chunk whose first few numbers are examined before all."""

_FIRST = 8  # numbers

# Numbers whose common divisor is computed at once: mostly that of the first ones is 1 already.
_FIRST_DIVIDED = 64

# Most numbers whose sums of residues and of half keys stay below 2**64.
SUM_BLOCK = 2**31


# ---- MAX and MIN ------------------------------------------------------------------------------------------


def _maximum(residues: Array, system: RNS) -> ReductionResult:
    return _extremum(residues, system, minimum=False)


def _minimum(residues: Array, system: RNS) -> ReductionResult:
    return _extremum(residues, system, minimum=True)


def _extremum(residues: Array, system: RNS, minimum: bool) -> ReductionResult:
    moduli = key_constants(system.moduli, system.signed, system.bound).moduli
    if len(moduli) != system.rows:
        system, residues = RNS(moduli, system.signed, system.bound), residues[: len(moduli)]
    index, fallbacks, found = _place_of_extremum(residues, system, minimum)
    if found is None:
        value = system.decode_at(residues, index)
    else:
        value = exact.value_of_checked(found, moduli, system.signed)
    return ReductionResult(value, index, residues.shape[1], fallbacks, backend_name(residues))


def _place_of_extremum(residues: Array, system: RNS, minimum: bool) -> tuple[int, int, list[int] | None]:
    """Index of the first extremum, the count of numbers that were decided exactly, and its residues.

    Residues are None unless one pass separated the extremum from all other numbers.
    """
    constants = key_constants(system.moduli, system.signed, system.bound)
    if len(constants.moduli) != len(residues):
        residues = residues[: len(constants.moduli)]
    if residues.shape[1] == 1:
        return 0, 0, None
    is_small = looks_small(residues, constants)
    narrow = narrowed(system, residues) if is_small else None
    if narrow is None:
        found = kernels_of(residues).extremum(residues, constants, minimum)
        if _is_decided(found, constants):
            return found.index, 0, found.residues
        narrow = None if is_small else narrowed(system, residues)
    if narrow is not None:
        index, fallbacks, _ = _place_of_extremum(residues, narrow, minimum)
        return index, fallbacks, None  # the residues would be of fewer moduli
    return *_decide_exactly(residues, system, minimum, found), None


def _is_decided(found: Extremum, constants: KeyConstants) -> bool:
    """Whether one pass separated the extremum from all other numbers."""
    return not found.ambiguous and found.runner_up < found.best - constants.slack


def looks_small(residues: Array, constants: KeyConstants) -> bool:
    """Whether keys cannot even separate the first few of many numbers, because these are small.

    A pass over all would then decide nothing. On a GPU this is not tested: it would wait for the answer.
    """
    if not isinstance(residues, np.ndarray) or residues.size < WORTH_A_GLANCE:
        return False
    few = residues[:, :_FIRST]
    return not _is_decided(kernels_of(few).extremum(few, constants, minimum=False), constants)


def _decide_exactly(residues: Array, system: RNS, minimum: bool, found: Extremum) -> tuple[int, int]:
    """Index of the extremum among the numbers whose keys are too close, and the count of these."""
    constants = key_constants(system.moduli, system.signed, system.bound)
    used = RNS(constants.moduli, system.signed, system.bound)
    threshold = max(found.best - constants.slack, 0)
    best_index, best_value, best_residues, candidates = -1, 0, None, 0
    for indices in _candidates(residues, constants, minimum, threshold):
        candidates += indices.size
        chosen = kernels_of(residues).gather(residues, indices)
        if best_residues is not None:
            # Later equal numbers lose, so an array of equal numbers needs no conversion.
            (different,) = (chosen != best_residues).any(axis=0).nonzero()
            if different.size == 0:
                continue
            chosen, indices = kernels_of(chosen).gather(chosen, different), indices[different]
        narrow = narrowed(used, chosen)
        if narrow is None:
            position = greatest(comparable_limbs(chosen, used.moduli, used.signed), minimum)
        else:
            position, *_ = _place_of_extremum(chosen, narrow, minimum)
        value = used.decode_at(chosen, position)
        if best_residues is None or (value < best_value if minimum else value > best_value):
            best_index, best_value = int(indices[position]), value
            best_residues = chosen[:, position : position + 1]
    return best_index, candidates


def _candidates(residues: Array, constants: KeyConstants, minimum: bool, threshold: int) -> Iterator[Array]:
    """Ascending indices of the numbers to decide exactly, in batches; the first batch is a single index."""
    kernels = kernels_of(residues)
    first = True
    for start in range(0, residues.shape[1], FLAG_BLOCK):
        block = residues[:, start : start + FLAG_BLOCK]
        (indices,) = kernels.candidates(block, constants, minimum, threshold).nonzero()
        indices = indices + start
        if first and indices.size:
            yield indices[:1]
            indices, first = indices[1:], False
        yield from batches(indices, len(residues))


# ---- SUM --------------------------------------------------------------------------------------------------


def _sum(residues: Array, system: RNS) -> ReductionResult:
    # The keys' error, at most the sum of the moduli, adds up: the number of wraps is unique while all of it
    # is below 2**64.
    block = min(SUM_BLOCK, 2 ** (KEY_BITS - 1) // (sum(system.moduli) + 1) // 4 * 4)
    count = residues.shape[1]
    starts = range(0, count, block)
    blocks = [residues] if len(starts) == 1 else [residues[:, k : k + block] for k in starts]
    parts = [_sum_of_block(part, system) for part in blocks]
    total, fallbacks = (sum(column) for column in zip(*parts, strict=True))
    return ReductionResult(total, None, count, fallbacks, backend_name(residues))


def _sum_of_block(residues: Array, system: RNS) -> tuple[int, int]:
    """Exact sum of some numbers, and the count of ambiguous keys."""
    constants = key_constants(system.moduli, system.signed, system.bound)
    used = residues if len(constants.moduli) == len(residues) else residues[: len(constants.moduli)]
    sums = kernels_of(used).row_sums(used, constants)
    if sums.ambiguous == used.shape[1]:  # as for small numbers, but not under their own bound
        narrow = narrowed(system, residues)
        if narrow is not None:
            return _sum_of_block(residues, narrow)
    return _exact_sum(used, sums, constants), sums.ambiguous


def _exact_sum(residues: Array, sums: KeySums, constants: KeyConstants) -> int:
    """Sum of X from the sums of residues and keys: S = sum of Y = q M + R, where Y = 2**scale X + offset.

    R follows from the row sums. The sum K of the keys is 2**64 S/M and at most count * slack more, less than
    2**64, so q = floor((K M - R 2**64) / (2**64 M)).
    """
    moduli, count = constants.moduli, int(residues.shape[1])
    product = moduli.product
    shift, scale = count * constants.offset, constants.scale
    rows = [((a << scale) + shift) % m for a, m in zip(sums.rows, moduli, strict=True)]
    remainder = exact.value_of_checked(rows, moduli)
    keys = sums.keys + (_count_wrapped(residues, sums, constants) << KEY_BITS)
    wraps = (keys * product - (remainder << KEY_BITS)) // (product << KEY_BITS)
    return (wraps * product + remainder - shift) >> scale  # exact: these low bits are 0


def _count_wrapped(residues: Array, sums: KeySums, constants: KeyConstants) -> int:
    """Count the numbers so near M that their key, an upper bound, passed 2**64; 0 for scaled keys."""
    if not sums.ambiguous:
        return 0
    # Of the complemented keys only that of 0 reaches the greatest threshold, and a key of 0 is ambiguous.
    threshold = 2**KEY_BITS - 1
    wrapped = 0
    for indices in _candidates(residues, constants, True, threshold):
        chosen = kernels_of(residues).gather(residues, indices)
        wrapped += int(are_near_top(chosen, constants.moduli, constants.signed).sum())
    return wrapped


# ---- GCD --------------------------------------------------------------------------------------------------


def common_divisor(
    words: Array, system: NumberSystem, is_multiple: Callable[[Array, int], Array]
) -> ReductionResult:
    """Greatest common divisor of words (rows, N) of any system: at least 0, and 0 without numbers.

    Only a few numbers are converted to integers: for all others `is_multiple` checks which are multiples of
    the common divisor so far, which is 2 or more.
    """
    count, width = words.shape[1], max(1, EXACT_RESIDUES // len(words))
    divisor = int(gmpy2.gcd(*system.decode(words[:, :_FIRST_DIVIDED]).tolist()))
    for start in range(0, count, width):
        block = words[:, start : start + width]
        while divisor != 1:
            (others,) = (_nonzero(block) if divisor == 0 else ~is_multiple(block, divisor)).nonzero()
            if others.size == 0:
                break
            numbers = kernels_of(block).gather(block, others[:_FIRST_DIVIDED])
            divisor = int(gmpy2.gcd(divisor, *system.decode(numbers).tolist()))
    return ReductionResult(divisor, None, count, 0, backend_name(words))


def _nonzero(words: Array) -> Array:
    """Mask of the nonzero numbers, row by row, because a view may span more than 2**31 words."""
    found = words[0] != 0
    for row in words[1:]:
        found |= row != 0
    return found


def _divisor(residues: Array, system: RNS) -> ReductionResult:
    return common_divisor(residues, system, lambda x, divisor: is_multiple(x, system, divisor))


# ---- bound ------------------------------------------------------------------------------------------------


def _bound(residues: Array, system: RNS) -> ReductionResult:
    bound, count = measured_bound(residues, system), residues.shape[1]
    return ReductionResult(bound, None, count, 0, backend_name(residues))


_CHUNKS: dict[str, Callable[[Array, RNS], ReductionResult]] = {
    "max": _maximum,
    "min": _minimum,
    "sum": _sum,
    "gcd": _divisor,
    "bound": _bound,
}
"""Functions of a chunk of residues (n, N), N >= 1, by the name of a reduction."""


def reduce_chunk(residues: Array, system: RNS, operation: str) -> ReductionResult:
    """Reduce all numbers of one array by one of :data:`.REDUCTIONS`; ValueError for an extremum of none."""
    matrix = as_matrix(residues)
    if operation not in _CHUNKS:
        return generic.reduce(matrix, system, operation)
    if matrix.shape[1] == 0:
        return REDUCTIONS[operation].empty_result(backend_name(matrix))
    return _CHUNKS[operation](matrix, system)
