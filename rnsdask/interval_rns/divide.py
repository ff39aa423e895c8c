"""Division of chunks of signed integers with Python's floor semantics, by division of magnitudes."""

import math
from collections.abc import Sequence

import numpy as np

from rnsdask.backend import Array, is_any, kernels_of
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate
from rnsdask.core.rows import Part
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.interval_rns import layout
from rnsdask.interval_rns.arithmetic import absolute, apply, compare, negative, overflow_error, to_ints
from rnsdask.interval_rns.convert import columns_of_ints
from rnsdask.rns import divide
from rnsdask.rns.blocks import matrices
from rnsdask.rns.system import RNS


def floor_divide(
    x: Array,
    y: Array,
    moduli: ModuliSet,
    parts: Sequence[Part] = ("quotient", "remainder"),
    locate: Locate = int,
) -> Array:
    """Quotients and remainders: ``x = q y + r``, and r is 0 or has the sign of y.

    The result has the columns of the parts, one after the other; both are always in range. A divisor of 0 is
    a ZeroDivisionError that names the index of the first.
    """
    n = len(moduli)
    (first, second), shape = matrices(x, y)
    like = second if isinstance(first, np.ndarray) else first
    count = math.prod(shape)
    first, second = (np.asarray(columns, like=like) for columns in (first, second))
    if count == 0:
        return np.empty_like(like, shape=(len(parts) * layout.rows_of(moduli), *shape), order="C")
    dividends = np.broadcast_to(first[:n], (n, count))
    if second.shape[1] == 1:
        divisor = abs(to_ints(second, moduli)[0])
        if divisor == 0:
            raise ZeroDivisionError(f"division by zero at flat index {locate(0)}")
        both = divide.divide_by_integer(dividends, divisor, RNS(moduli), locate=locate)
    else:
        both = divide.floor_divide(dividends, second[:n], RNS(moduli), locate=locate)
    quotients, remainders = both[:n], both[n:]
    sign, divisor_sign = (np.broadcast_to(layout.is_negative(c, moduli), (count,)) for c in (first, second))
    # Where the signs differ, the floor is further from 0, unless the remainder is 0.
    away = (sign != divisor_sign) & (remainders != 0).any(axis=0)
    kernels = kernels_of(quotients)
    found = []
    for part in parts:
        out = np.empty_like(quotients)
        if part == "quotient":
            kernels.apply("add", (quotients, np.ones((n, 1), dtype=np.uint32)), moduli, out)
            magnitudes, signs = np.where(away, out, quotients), sign != divisor_sign
        else:
            kernels.apply("subtract", (second[:n], remainders), moduli, out)
            magnitudes, signs = np.where(away, out, remainders), divisor_sign
        found.append(layout.evaluated(magnitudes, moduli, signs))
    columns = np.concatenate(found)
    return columns.reshape(len(columns), *shape)


def divide_by_integer(
    columns: Array,
    divisor: int,
    moduli: ModuliSet,
    parts: Sequence[Part],
    locate: Locate = int,
    source: WideModuli | None = None,
) -> Array:
    """Divide by an integer of any size, as :func:`floor_divide` does.

    A remainder by a divisor beyond the range and of the other sign may be out of range: an RNSOverflowError.
    """
    ndim = columns.ndim - 1
    if abs(divisor) < moduli.product:
        return floor_divide(columns, _column(divisor, moduli, ndim), moduli, parts, locate)
    away = layout.nonzero(columns, moduli) & (layout.is_negative(columns, moduli) != (divisor < 0))
    found = {"remainder": columns}
    if "quotient" in parts:
        minus_one, zero = (np.asarray(_column(value, moduli, ndim), like=columns) for value in (-1, 0))
        found["quotient"] = np.where(away, minus_one, zero)
    if "remainder" in parts and is_any(away):
        far = _far_remainders(columns, divisor, away, moduli, locate, source)
        found["remainder"] = np.where(away, far, columns)
    return np.concatenate([found[part] for part in parts])


def _far_remainders(
    columns: Array,
    divisor: int,
    away: Array,
    moduli: ModuliSet,
    locate: Locate,
    source: WideModuli | None,
) -> Array:
    """Columns of x + d where `away` holds, for d beyond the range and of the other sign; undefined elsewhere.

    With T = M - 1, the magnitude |d| - |x| is T - (|x| - e), for e = |d| - T; it is in range from |x| = e on.
    """
    ndim, top = columns.ndim - 1, moduli.product - 1
    least = abs(divisor) - top
    sizes = absolute(columns, moduli)
    outside = away
    if least <= top:
        outside = away & (compare(sizes, _column(least, moduli, ndim), moduli) < 0)
    if is_any(outside):
        index = int(outside.reshape(-1).argmax())
        value = to_ints(columns.reshape(len(columns), -1)[:, [index]], moduli)[0] + divisor
        raise overflow_error(value, locate(index), moduli, source)
    above = apply("subtract", sizes, _column(least, moduli, ndim), moduli, "wrap")
    remainders = apply("subtract", _column(top, moduli, ndim), above, moduli, "wrap")
    return negative(remainders, moduli) if divisor < 0 else remainders


def _column(value: int, moduli: ModuliSet, ndim: int) -> Array:
    return columns_of_ints([value], moduli).reshape(-1, *(1,) * ndim)
