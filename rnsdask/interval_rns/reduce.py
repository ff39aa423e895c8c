"""Reductions, sort keys and lengths in bits of signed integers with stored intervals.

The intervals select the candidates for the extremum, without reading residues; the reductions of residues
(:mod:`rnsdask.rns.reduce`) decide among these few, and sum the magnitudes of each sign.
"""

import numpy as np

from rnsdask.backend import Array, backend_name, kernels_of, to_backend
from rnsdask.constants import KEY_BITS, key_constants, product_bounds
from rnsdask.core import generic
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.order import Ordering
from rnsdask.core.reductions import REDUCTIONS, ReductionResult
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.rns import sort
from rnsdask.rns.blocks import batches
from rnsdask.rns.number_theory import decide, lengths_of
from rnsdask.rns.reduce import reduce_chunk
from rnsdask.rns.system import RNS


def reduce_columns(columns: Array, moduli: ModuliSet, operation: str) -> ReductionResult:
    """Reduce all numbers of one array by one of :data:`.REDUCTIONS`; ValueError for an extremum of none.

    A maximum or minimum names the smallest flat index that holds it.
    """
    if operation not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {operation!r}")
    matrix = as_matrix(columns)
    if matrix.shape[1] == 0:
        return REDUCTIONS[operation].empty_result(backend_name(matrix))
    if operation in ("bound", "gcd"):  # of magnitudes
        return reduce_chunk(layout.residues_of(matrix, moduli), RNS(moduli), operation)
    if operation == "sum":
        return _sum(matrix, moduli)
    if operation in ("max", "min"):
        return _extremum(matrix, moduli, operation == "min")
    return generic.reduce(matrix, IntervalRNS(moduli), operation)


def _extremum(columns: Array, moduli: ModuliSet, minimum: bool) -> ReductionResult:
    kernels = kernels_of(columns)
    best, candidates = kernels.interval_rns_candidates(columns, moduli.bits, layout.ORDER_KEY_SLACK, minimum)
    # Keys of nonzero numbers of one sign are far from 0.
    negative = best < 0
    residues = layout.residues_of(columns, moduli)
    if candidates.size == 1:
        residues = residues[:, candidates[0] :][:, :1]
    else:
        residues = kernels.gather(residues, candidates)
    found = reduce_chunk(residues, RNS(moduli), "min" if minimum != negative else "max")
    assert found.index is not None
    fallbacks = int(candidates.size) if candidates.size > 1 else 0
    value = -found.value if negative else found.value
    index = int(candidates[found.index])
    return ReductionResult(value, index, columns.shape[1], fallbacks, backend_name(columns))


def _sum(columns: Array, moduli: ModuliSet) -> ReductionResult:
    total, fallbacks = 0, 0
    negative = layout.is_negative(columns, moduli)
    system = layout.system_of_magnitudes(columns, moduli)
    residues = columns[: len(key_constants(moduli, bound=system.bound).moduli)]
    system = RNS(moduli.prefix(len(residues)), bound=system.bound)
    for sign, mask in ((1, ~negative), (-1, negative)):
        (indices,) = mask.nonzero()
        if indices.size == columns.shape[1]:
            parts = iter((residues,))  # all of one sign: no copy
        else:
            parts = (kernels_of(columns).gather(residues, part) for part in batches(indices, len(columns)))
        for part in parts:
            found = reduce_chunk(part, system, "sum")
            total += sign * found.value
            fallbacks += found.exact_fallbacks
    return ReductionResult(total, None, columns.shape[1], fallbacks, backend_name(columns))


def ordering(columns: Array, moduli: ModuliSet) -> Ordering:
    """Sort keys of columns (n + 6, *shape).

    The key of a number is 2**63 plus half the key U of its magnitude, rounded down, or minus that for
    negative numbers. The error of U halves, and rounding adds 1 on either side.
    """
    matrix = as_matrix(columns)
    negative = layout.is_negative(matrix, moduli)
    residues, system = layout.residues_of(matrix, moduli), layout.system_of_magnitudes(matrix, moduli)
    of_magnitudes = sort.ordering(residues, system)
    middle = np.uint64(2 ** (KEY_BITS - 1))
    half = of_magnitudes.keys >> np.uint64(1)
    keys = np.where(negative, middle - np.uint64(1) - half, middle + half)
    slack = 2 * (-(-of_magnitudes.slack // 2) + 1)

    def digits(indices: Array) -> Array:
        magnitudes = of_magnitudes.digits(indices)
        below = to_backend(negative[indices], backend_name(magnitudes))  # few are on the host
        top = (~below).astype(np.uint32)
        return np.concatenate([np.where(below, ~magnitudes, magnitudes), top[None]])

    return Ordering(keys, slack, layout.signed_residues_of(matrix, moduli), digits)


def bit_length(columns: Array, system: IntervalRNS) -> Array:
    """Bits of the magnitude of each number of a chunk (n + 6, *shape), 0 for 0: int64 (*shape)."""
    matrix, moduli = as_matrix(columns), system.moduli
    lengths, decided = kernels_of(matrix).interval_rns_lengths(matrix, product_bounds(moduli))
    residues = layout.residues_of(matrix, moduli)
    decide(lengths, decided, residues, lambda left: lengths_of(left, moduli, signed=False))
    return lengths.reshape(columns.shape[1:])
