"""MAX, MIN, SUM and a bound of a chunk of signed integers with stored intervals. No Dask in here.

The intervals choose the numbers that may be the extremum, without a look at residues; the reductions of
residues (:mod:`rnsdask.rns.reduce`) decide among these few, and sum the magnitudes of either sign.
"""

import numpy as np

from rnsdask.backend import Array, backend_name, kernels_of
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns import layout
from rnsdask.rns.blocks import batches
from rnsdask.rns.reduce import REDUCTIONS, ReductionResult, reduce_chunk
from rnsdask.rns.system import RNS

# Far beyond what a candidate's exponent can differ from the best one's, within the range of doubles.
_FAR = 900
_ZERO_EXPONENT = -(2**30)


def reduce_columns(operation: str, columns: Array, moduli: ModuliSet) -> ReductionResult:
    """Reduce all numbers of one array of columns (n + 6, *shape), NumPy or CuPy.

    Parameters
    ----------
    operation : {"max", "min", "sum", "bound"}
        What to compute. Of a maximum or minimum the result names the smallest flat index that holds it.

    Raises
    ------
    ValueError
        If there are no numbers, whose sum and bound alone are 0, or the operation is another one.
    """
    if operation not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {operation!r}")
    matrix = as_matrix(columns)
    if matrix.shape[1] == 0:
        return REDUCTIONS[operation].of_nothing(backend_name(matrix))
    if operation == "bound":
        return reduce_chunk(REDUCTIONS[operation], layout.residues_of(matrix, moduli), RNS(moduli))
    if operation == "sum":
        return _sum(matrix, moduli)
    return _extremum(matrix, moduli, operation == "min")


def _extremum(columns: Array, moduli: ModuliSet, minimum: bool) -> ReductionResult:
    negative = layout.is_negative(columns, moduli)
    # Of the numbers of the better sign the greatest magnitude wins; where there are none, the least.
    better = negative if minimum else ~negative
    right_side = bool(better.any())
    (chosen,) = (better if right_side else ~better).nonzero()
    interval = (layout.part_of(columns, moduli, name)[chosen] for name in ("low", "upp", "exponent"))
    candidates = chosen[_may_be_extreme(*interval, least=not right_side)]
    residues = kernels_of(columns).gather(layout.residues_of(columns, moduli), candidates)
    found = reduce_chunk(REDUCTIONS["max" if right_side else "min"], residues, RNS(moduli))
    assert found.index is not None
    fallbacks = int(candidates.size) if candidates.size > 1 else 0
    value = -found.value if minimum == right_side else found.value
    index = int(candidates[found.index])
    return ReductionResult(value, index, columns.shape[1], fallbacks, backend_name(columns))


def _may_be_extreme(low: Array, upp: Array, exponent: Array, *, least: bool) -> Array:
    """Boolean (k,): the magnitude may be the greatest, or the least, by its interval."""
    exponent = np.where(upp == 0, np.full_like(exponent, _ZERO_EXPONENT), exponent)
    # At the best number's exponent, bounds of the others near it stay exact, and far ones stay far.
    best = exponent.min() if least else exponent.max()
    shift = np.clip(exponent - best, -_FAR, _FAR)
    low, upp = np.ldexp(low, shift), np.ldexp(upp, shift)
    return low <= upp.min() if least else upp >= low.max()


def _sum(columns: Array, moduli: ModuliSet) -> ReductionResult:
    total, fallbacks = 0, 0
    negative = layout.is_negative(columns, moduli)
    residues = layout.residues_of(columns, moduli)
    for sign, mask in ((1, ~negative), (-1, negative)):
        (indices,) = mask.nonzero()
        if indices.size == columns.shape[1]:
            parts = iter((residues,))  # all of one sign: no copy
        else:
            parts = (kernels_of(columns).gather(residues, part) for part in batches(indices, len(columns)))
        for part in parts:
            found = reduce_chunk(REDUCTIONS["sum"], part, RNS(moduli))
            total += sign * found.value
            fallbacks += found.exact_fallbacks
    return ReductionResult(total, None, columns.shape[1], fallbacks, backend_name(columns))
