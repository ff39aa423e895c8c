"""Evaluation and interpolation of polynomials over fields, chunk by chunk. No Dask in here.

A chunk is coefficients (rows, *batch, A), ascending, or points, in any layout; batches of operands broadcast.
"""

import math
from typing import Any

import numpy as np

from rnsdask.backend import Array, backend_name, is_any
from rnsdask.core import rows
from rnsdask.core.place import Place
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.polynomials import index_at, inverse_series, window
from rnsdask.fields.system import FiniteFields

# Words of the powers of those points at which polynomials are evaluated together.
_WORDS = 2**22

# Fewest coefficients and points for which trees of products are quicker, as measured.
TREE_FROM = {"cpu": 2**12, "cuda": 2**15}


def values_at(f: Array, points: Array, fields: FiniteFields) -> Array:
    """Values (rows, *batch, P) of polynomials at points (rows, *batch, P) of any fields."""
    least = TREE_FROM[backend_name(f)]
    is_shared = math.prod(points.shape[1:-1]) == 1
    # Where matrix products are not products modulo primes, they take longer.
    if isinstance(fields, FermatField):
        least //= 8
    elif not is_shared:
        least //= 4
    length, count = f.shape[-1], points.shape[-1]
    if min(length, count) < least:
        return _values_by_powers(f, points, fields)
    step = 1 << (length - 1).bit_length()
    parts = [_values_by_tree(f, points[..., k : k + step], fields) for k in range(0, count, step)]
    return np.concatenate(parts, axis=-1)


def _values_by_powers(f: Array, points: Array, fields: FiniteFields) -> Array:
    """Evaluate polynomials with few coefficients or at few points.

    Coefficients are taken in groups of S: the groups times the powers of the points below S are a product of
    matrices, and their values the coefficients of a polynomial in the power S, which is evaluated by Horner's
    rule (M. Paterson and L. Stockmeyer, 1973).
    """
    batch = np.broadcast_shapes(f.shape[1:-1], points.shape[1:-1])
    n, length, count = len(f), f.shape[-1], points.shape[-1]
    is_shared = math.prod(points.shape[1:-1]) == 1
    polynomials = math.prod(f.shape[1:-1])
    # The powers of separate points for each polynomial would outnumber its coefficients.
    groups = max(1, round(math.sqrt(length / max(1, polynomials)))) if is_shared else length
    size = -(-length // groups)
    padded = np.zeros_like(f, shape=(*f.shape[:-1], groups * size), order="C")
    padded[..., :length] = f
    padded = padded.reshape(n, polynomials * groups, size) if is_shared else padded
    step = max(1, _WORDS // (n * size))
    parts = []
    for start in range(0, count, step):
        x = points[..., start : start + step]
        if not is_shared:
            parts.append(_by_horner(padded[..., None], x, fields, batch))
            continue
        x = x.reshape(n, -1)
        table = powers(x, size + 1, fields)
        values = fields.apply(rows.multiply_matrices, padded, table[:, :size])
        values = values.reshape(n, *f.shape[1:-1], groups, x.shape[-1])
        power = table[:, size].reshape(n, *(1,) * len(batch), -1)
        parts.append(_by_horner(values, power, fields, batch))
    return np.concatenate(parts, axis=-1)


def _by_horner(coefficients: Array, x: Array, fields: FiniteFields, batch: tuple[int, ...]) -> Array:
    """Sums over k of coefficients (rows, *batch, K, P or 1) times x**k: (rows, *batch, P)."""
    shape = (len(x), *batch, x.shape[-1])
    total = np.broadcast_to(coefficients[..., -1, :], shape)
    for k in range(coefficients.shape[-2] - 2, -1, -1):
        total = fields.apply(rows.fma, total, x, coefficients[..., k, :])
    return total


def powers(points: Array, count: int, fields: FiniteFields) -> Array:
    """Powers 0 to `count` - 1 of points (rows, P): (rows, count, P)."""
    table = np.empty_like(points, shape=(len(points), count, points.shape[-1]), order="C")
    table[:, 0] = np.asarray(fields.column(1, 1), like=points)
    known, power = 1, points[:, None]
    while known < count:
        more = min(known, count - known)
        table[:, known : known + more] = fields.apply(rows.multiply, table[:, :more], power)
        known += more
        if known < count:
            power = fields.apply(rows.multiply, power, power)
    return table


def _values_by_tree(f: Array, points: Array, fields: FiniteFields) -> Array:
    """Evaluate by a tree of products of polynomials (A. Bostan, G. Lecerf and E. Schost, ISSAC 2003).

    With Q the product of all 1 - x_k t, a value is the sum of the coefficients of Q / (1 - x_k t) times v_i,
    the sums of all f_j c_(j - i) with the coefficients c of the series 1 / Q. Each half of the points takes
    the same sums of the v_i with the product of the other half's factors.
    """
    tree = _product_tree(points, fields, 1)
    length, leaves = f.shape[-1], tree[0].shape[-2]
    series = inverse_series(tree[-1][..., 0, :], length, fields)
    sums = window(f[..., ::-1], series, fields, max(0, length - leaves), length)[..., ::-1]
    v = np.zeros_like(sums, shape=(*sums.shape[:-1], 1, leaves), order="C")
    v[..., 0, : sums.shape[-1]] = sums
    for level in reversed(tree[:-1]):
        *outer, count, width = level.shape
        others = level.reshape(*outer, count // 2, 2, width)[..., ::-1, ::-1]
        v = window(others, v[..., None, :], fields, width - 1, 2 * width - 2)
        v = v.reshape(*v.shape[:-3], count, width - 1)
    return v[..., : points.shape[-1], 0]


# ---- interpolation ----------------------------------------------------------------------------------------


def interpolated(points: Array, values: Array, fields: FiniteFields, place: Place) -> Array:
    """Coefficients (rows, *batch, N) of the polynomials with values at points, (rows, *batch, N) both.

    J. Lagrange's formula, its terms added up in a tree: with M the product of all x - x_i, the polynomial is
    the sum of v_i / M'(x_i) M / (x - x_i). ValueError if two points of a polynomial are equal in a field,
    naming the index of the first, and the prime.
    """
    tree = _product_tree(points, fields, 0)
    # The root of the tree has zeros where there are more leaves than points.
    slopes = derivatives(tree[-1][..., 0, : points.shape[-1] + 1], fields)
    slopes = values_at(slopes, points, fields)
    _check_different(slopes, fields, place)
    factors = fields.apply(rows.multiply, values, fields.apply(rows.inverse, slopes))
    batch = np.broadcast_shapes(points.shape[1:-1], values.shape[1:-1])
    found = np.zeros_like(points, shape=(len(points), *batch, tree[0].shape[-2], 1), order="C")
    found[..., : points.shape[-1], 0] = factors
    for level in tree[:-1]:
        crossed = (found[..., 0::2, :], level[..., 1::2, :]), (found[..., 1::2, :], level[..., 0::2, :])
        length = found.shape[-1] + level.shape[-1] - 1
        found = fields.apply(rows.add, *(window(x, y, fields, 0, length) for x, y in crossed))
    return found[..., 0, : points.shape[-1]]


def _product_tree(points: Array, fields: FiniteFields, place: int) -> list[Array]:
    """Products of x - x_i, then of pairs of these, and so on: (rows, *batch, count, length) each.

    With `place` 1 they are products of 1 - x_i t. Leaves are padded to a power of two with the polynomial 1.
    """
    n, *batch, count = points.shape
    leaves = 1 << (count - 1).bit_length()
    level = np.zeros_like(points, shape=(n, *batch, leaves, 2), order="C")
    one, zero = (np.asarray(fields.column(k, points.ndim - 1), like=points) for k in (1, 0))
    level[..., 0] = one
    level[..., :count, 1 - place] = one
    level[..., :count, place] = fields.apply(rows.subtract, zero, points)
    tree = [level]
    while tree[-1].shape[-2] > 1:
        x, y = tree[-1][..., 0::2, :], tree[-1][..., 1::2, :]
        tree.append(window(x, y, fields, 0, 2 * x.shape[-1] - 1))
    return tree


def derivatives(f: Array, fields: FiniteFields) -> Array:
    """Derivatives (rows, *batch, A - 1)."""
    factors = np.asarray(fields.encode(list(range(1, f.shape[-1]))), like=f)
    factors = factors.reshape(len(f), *(1,) * (f.ndim - 2), f.shape[-1] - 1)
    return fields.apply(rows.multiply, f[..., 1:], factors)


def _check_different(slopes: Array, fields: Any, place: Place) -> None:
    """Raise ValueError if a derivative of the product of all x - x_i is 0 at a point."""
    check_points(~is_nonzero(slopes, fields), fields, place)


def is_nonzero(words: Array, fields: FiniteFields) -> Array:
    """Mark elements (rows, ...) that are not 0: Booleans (n, ...), or (1, ...) in a Fermat field."""
    nonzero: Array = words != 0
    return nonzero.any(axis=0)[None] if isinstance(fields, FermatField) else nonzero


def check_points(equal: Array, fields: Any, place: Place) -> None:
    """Raise ValueError if a mask (n, *batch, N) marks points as equal to others; it names the first."""
    if not is_any(equal):
        return
    which, modulus = first_marked(equal, fields, place)
    raise ValueError(f"points must be different, but that at index {which} equals another modulo {modulus}")


def first_marked(marked: Array, fields: Any, place: Place) -> tuple[tuple[int, ...], Any]:
    """Index in the array of the first element that a mask (n, *batch) marks, and its modulus."""
    flat = marked.reshape(len(marked), -1)
    first = int(flat.any(axis=0).argmax())
    is_fermat = isinstance(fields, FermatField)
    modulus = fields if is_fermat else fields.moduli[int(flat[:, first].argmax())]
    return index_at(first, marked.shape[1:], place), modulus
