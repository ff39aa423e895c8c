"""Division of chunks of signed integers with Python's floor semantics, by their magnitudes' division."""

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.arithmetic import to_ints
from rnsdask.rns import divide
from rnsdask.rns.blocks import matrices
from rnsdask.rns.system import RNS


def floor_divide(x: Array, y: Array, moduli: ModuliSet, locate: Locate = int) -> Array:
    """Quotients and remainders: ``x = q y + r``, and r is 0 or has the sign of y.

    Parameters
    ----------
    x, y : arrays of uint32, shape (n + 6, *shape) each
        Columns, NumPy or CuPy; shapes broadcast. A NumPy block of one number goes with CuPy blocks too.

    Returns
    -------
    array of uint32, shape (2 (n + 6), *shape)
        The columns of the quotients, then those of the remainders. Both are always in range.

    Raises
    ------
    ZeroDivisionError
        If a divisor is 0, naming the first one's index.
    """
    n = len(moduli)
    (first, second), shape = matrices(x, y)
    like = second if isinstance(first, np.ndarray) else first
    count = int(np.prod(shape))
    first, second = (np.asarray(columns, like=like) for columns in (first, second))
    if count == 0:
        return np.empty_like(like, shape=(2 * layout.rows_of(moduli), *shape))
    dividends, divisor = np.broadcast_to(first[:n], (n, count)), second[:n]
    if second.shape[1] == 1:
        divisor = abs(to_ints(second, moduli)[0])
        if divisor == 0:
            raise ZeroDivisionError(f"division by zero at flat index {locate(0)}")
    parts = divide.floor_divide(dividends, divisor, RNS(moduli), locate=locate)
    quotients, remainders = parts[:n], parts[n:]
    sign, divisor_sign = (np.broadcast_to(layout.is_negative(c, moduli), (count,)) for c in (first, second))
    # Where the signs differ, the floor is further from 0, unless the remainder is 0.
    away = (sign != divisor_sign) & (remainders != 0).any(axis=0)
    kernels = kernels_of(quotients)
    more, rest = np.empty_like(quotients), np.empty_like(remainders)
    kernels.apply("add", (quotients, np.ones((n, 1), dtype=np.uint32)), moduli, more)
    kernels.apply("subtract", (second[:n], remainders), moduli, rest)
    quotients, remainders = np.where(away, more, quotients), np.where(away, rest, remainders)
    columns = np.concatenate(
        [
            layout.evaluated(quotients, moduli, sign != divisor_sign),
            layout.evaluated(remainders, moduli, divisor_sign),
        ]
    )
    return columns.reshape(len(columns), *shape)
