"""Products and quotients of polynomials over any fields, by convolutions. No Dask in here."""

from typing import Any

import numpy as np

from rnsdask.backend import Array
from rnsdask.fields import convolution, fermat_convolution
from rnsdask.fields.elements import elements_of
from rnsdask.fields.fermat_field import FermatField


def window(x: Array, y: Array, fields: Any, first: int, stop: int) -> Array:
    """Coefficients `first` to `stop` of products of polynomials (rows, *batch, A) and (rows, *batch, C)."""
    if isinstance(fields, FermatField):
        return fermat_convolution.convolve(x, y, fields, first, stop)
    return convolution.convolve(x, y, fields.moduli, first, stop)


def inverse_series(q: Array, length: int, fields: Any) -> Array:
    """So many coefficients of 1 / q, where that of degree 0 of q is 1, by Newton's iteration."""
    elements = elements_of(fields)
    zero = np.asarray(fields.column(0, q.ndim - 1), like=q)
    if q.shape[-1] < length:
        missing = np.zeros_like(q, shape=(*q.shape[:-1], length - q.shape[-1]), order="C")
        q = np.concatenate([q, missing], axis=-1)
    found = q[..., :1]
    while (known := found.shape[-1]) < length:
        more = min(2 * known, length)
        error = elements.apply("subtract", (zero, window(q[..., :more], found, fields, known, more)))
        found = np.concatenate([found, window(found, error, fields, 0, more - known)], axis=-1)
    return found


def divided(x: Array, y: Array, degree: int, fields: Any) -> tuple[Array, Array]:
    """Quotients and remainders of polynomials (rows, B, A) by others of one degree below A.

    With coefficients in the opposite order the quotient is the power series x / y (V. Strassen, 1973).

    Returns
    -------
    quotients, remainders : arrays (rows, B, A)
    """
    elements, count = elements_of(fields), x.shape[-1] - degree
    inverses = elements.inverse(y[..., degree])[..., None]
    monic = elements.apply("multiply", (y[..., degree::-1][..., :count], inverses))
    scaled = elements.apply("multiply", (x[..., : degree - 1 if degree else None : -1], inverses))
    series = window(scaled, inverse_series(monic, count, fields), fields, 0, count)
    quotients, remainders = np.zeros_like(x, order="C"), np.zeros_like(x, order="C")
    quotients[..., :count] = series[..., ::-1]
    if degree:
        products = window(quotients[..., : min(count, degree)], y[..., :degree], fields, 0, degree)
        remainders[..., :degree] = elements.apply("subtract", (x[..., :degree], products))
    return quotients, remainders
