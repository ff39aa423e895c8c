"""Logarithms of numbers as doubles, by their leading limbs; lazy on Dask."""

from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.constants import sufficient_prefix
from rnsdask.core.layout import as_matrix
from rnsdask.core.number_system import NumberSystem
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.ordering import check_numbers
from rnsdask.rns.magnitude import leading_limbs
from rnsdask.rns.system import RNS

# Words of numbers whose limbs are in memory at one time.
_BLOCK_WORDS = 2**22


def log2(x: Any) -> Any:
    """Logarithm to the base 2 of each number, as ``numpy.log2``, also of numbers beyond the range of doubles.

    Parameters
    ----------
    x : RNSArray, IntervalRNSArray or PositionalArray
        The numbers.

    Returns
    -------
    array of float64, shape of `x`
        NumPy or CuPy; lazy on Dask. The relative error is below ``2**-50``, and a power of two has its exact
        logarithm. Of 0 it is -inf, of a negative number nan, with NumPy's warnings (``numpy.errstate``).

    Raises
    ------
    TypeError
        If `x` is no array of numbers that have a size.
    """
    check_numbers("log2", x)
    return map_chunks(_log2_block, x.words, dtype=np.float64, system=x.system)


def _log2_block(block: Array, *, system: NumberSystem) -> Array:
    """Logarithms of the numbers of a chunk (rows, *shape): float64 (1, *shape)."""
    matrix, signed = as_matrix(block), system.is_signed
    if isinstance(system, RNS):
        moduli = sufficient_prefix(system.moduli, system.signed, system.bound)
        system, matrix = RNS(moduli, system.signed), matrix[: len(moduli)]
    out = np.empty_like(matrix, shape=(matrix.shape[1],), dtype=np.float64, order="C")
    step = max(1, _BLOCK_WORDS // system.rows)
    for start in range(0, len(out), step):
        limbs = system.limbs_of(matrix[:, start : start + step])
        sizes, exponents = leading_limbs(limbs, signed)
        # A mantissa of 0 or below 0 has the logarithm, and the warning, that it has in NumPy. The two rounded
        # steps of a mantissa are below 1.5 * 2**-53, those of its logarithm and of the sum 2**-52 and 2**-53.
        mantissas, shifts = np.frexp(sizes)
        out[start : start + step] = np.log2(mantissas) + (shifts + exponents)
    return out.reshape(1, *block.shape[1:])
