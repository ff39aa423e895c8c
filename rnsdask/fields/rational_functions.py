"""Interpolation by rational functions over fields, chunk by chunk. No Dask in here.

The pairs of polynomials (p, q) with p(x_i) = y_i q(x_i) at the first points are a module over the
polynomials, which has a basis of two pairs. Each further point changes one of them to satisfy the equation,
and multiplies the other, of the lower degree, by x - x_i (L. Welch and E. Berlekamp, 1986). The degree of a
pair is the excess of p or q over its bound; the lower one of the basis is the least of all pairs. The
residuals of the pairs at further points are carried along, so that nothing is evaluated.
"""

from typing import NamedTuple

import numpy as np

from rnsdask.backend import Array
from rnsdask.core import rows
from rnsdask.core.errors import NumberError
from rnsdask.core.place import Place
from rnsdask.fields.polynomial_values import check_points, first_marked, is_nonzero, values_at
from rnsdask.fields.system import FiniteFields


class Degrees(NamedTuple):
    """Greatest degrees of numerators and denominators."""

    numerator: int
    denominator: int


def rational_interpolated(
    points: Array, values: Array, fields: FiniteFields, degrees: Degrees, place: Place
) -> Array:
    """Coefficients (rows, *batch, a + b + 2) of numerators, and of denominators with leading coefficient 1.

    Points and values (rows, *batch, N) broadcast. For degrees a and b, N is at least a + b + 1, so that there
    is at most one function. ValueError if two points of a function are equal in a field, naming the index of
    the second, and the prime; NumberError if no such function has the values, naming the index and the prime.
    """
    found, excess = _least_pairs(points, values, fields, degrees, place)
    denominators = found[..., degrees.numerator + 1 :]
    fits = (excess <= 0) & is_nonzero(values_at(denominators, points, fields), fields).all(axis=-1)
    if not fits.all():
        index, modulus = first_marked(~fits, fields, place)
        raise NumberError(
            f"no rational function of degrees up to {degrees.numerator} and {degrees.denominator} has the "
            f"values{f' at index {index}' if index else ''} modulo {modulus}; more points allow greater ones"
        )
    nonzero = is_nonzero(denominators, fields)
    last = degrees.denominator - nonzero[..., ::-1].argmax(axis=-1)
    last = np.broadcast_to(last, denominators.shape[:-1])[..., None]
    leading = np.take_along_axis(denominators, last, axis=-1)
    monic: Array = fields.apply(rows.multiply, found, fields.apply(rows.inverse, leading))
    return monic


def _least_pairs(
    points: Array, values: Array, fields: FiniteFields, degrees: Degrees, place: Place
) -> tuple[Array, Array]:
    """Coefficients (rows, *batch, a + b + 2) of the least pairs, and their excess over the degrees.

    Pairs that exceed the degrees lose coefficients, but never become the least.
    """
    count, (a, b) = points.shape[-1], degrees
    batch = np.broadcast_shapes(points.shape[1:-1], values.shape[1:-1])
    one, zero = (np.asarray(fields.column(k, len(batch) + 1), like=points) for k in (1, 0))
    pairs = np.zeros_like(points, shape=(2, len(points), *batch, count + a + b + 2), order="C")
    x, y = pairs  # residuals of (1, 0) and (0, 1) at all points, and their coefficients
    x[..., : count + 1] = one
    y[..., count + a + 1] = one[..., 0]
    y[..., :count] = fields.apply(rows.subtract, zero, values)
    marks = is_nonzero(x[..., 0], fields)
    excess, other = (np.full_like(marks, -degree, dtype=np.int64) for degree in degrees)
    equal = np.zeros_like(marks, shape=is_nonzero(points, fields).shape, order="C")
    for k in range(count):
        first, second = (is_nonzero(v[..., 0], fields) for v in (x, y))
        takes = first & (~second | (excess <= other))
        mask = takes[..., None]
        x, y = np.where(mask, x, y), np.where(mask, y, x)
        excess, other = np.where(takes, excess, other) + 1, np.where(takes, other, excess)
        y = fields.apply(rows.mulsub, y[..., 1:], x[..., :1], x[..., 1:], y[..., :1])
        point, later = points[..., k : k + 1], points[..., k + 1 :]
        distances = fields.apply(rows.subtract, later, point)
        equal[..., k + 1 :] |= ~is_nonzero(distances, fields)
        x = _times_linear(x[..., 1:], distances, point, a, fields)
    check_points(equal, fields, place)
    return np.where((excess <= other)[..., None], x, y), np.minimum(excess, other)


def _times_linear(x: Array, distances: Array, point: Array, a: int, fields: FiniteFields) -> Array:
    """Multiply residuals of pairs at points by distances from a point, and coefficients by x - point."""
    later = distances.shape[-1]
    coefficients = x[..., later:]
    moved = np.roll(coefficients, 1, axis=-1)
    moved[..., 0] = moved[..., a + 1] = 0
    products = fields.apply(rows.multiply, coefficients, point)
    left = fields.apply(rows.multiply, x[..., :later], distances)
    return np.concatenate([left, fields.apply(rows.subtract, moved, products)], axis=-1)
