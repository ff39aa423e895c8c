"""Logarithms of numbers as doubles, by their leading limbs; lazy on Dask."""

from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.core.layout import as_matrix
from rnsdask.core.number_system import NumberSystem
from rnsdask.lazy.elementwise import entry_of
from rnsdask.lazy.limb_blocks import limb_blocks
from rnsdask.lazy.map import map_chunks
from rnsdask.rns.evaluation import leading_limbs


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
    entry_of("bit_length", x, name="log2")
    return map_chunks(_log2_block, x.words, dtype=np.float64, system=x.system)


def _log2_block(block: Array, *, system: NumberSystem) -> Array:
    """Logarithms of the numbers of a chunk (rows, *shape): float64 (1, *shape)."""
    matrix = as_matrix(block)
    out = np.empty_like(matrix, shape=(matrix.shape[1],), dtype=np.float64, order="C")
    for part, limbs in limb_blocks(block, system):
        sizes, exponents = leading_limbs(limbs, system.is_signed)
        # A mantissa of 0 or below 0 has the logarithm, and the warning, that it has in NumPy. The two rounded
        # steps of a mantissa are below 1.5 * 2**-53, those of its logarithm and of the sum 2**-52 and 2**-53.
        mantissas, shifts = np.frexp(sizes)
        out[part] = np.log2(mantissas) + (shifts + exponents)
    return out.reshape(1, *block.shape[1:])
