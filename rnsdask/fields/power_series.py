"""Power series and powers of polynomials over fields, chunk by chunk. No Dask in here.

A chunk is coefficients (rows, *batch, A), ascending, in any layout. A series is known up to a length: it is a
polynomial modulo x**length. Newton's iteration doubles the length of an inverse or an exponential (R. Brent,
"Multiple-precision zero-finding methods", 1976).
"""

import math
from typing import Any

import numpy as np

from rnsdask.backend import Array, is_any
from rnsdask.core import rows
from rnsdask.core.errors import NumberError
from rnsdask.core.place import Place
from rnsdask.fields import polynomial_values
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.polynomials import index_at, inverse_series, window
from rnsdask.fields.system import FiniteFields


def inverses(f: Array, length: int, fields: FiniteFields, place: Place) -> Array:
    """Invert series, to (rows, *batch, length).

    ZeroDivisionError if a constant term is 0 in a field; it names the index and the prime.
    """
    f = to_length(f, length)
    constants = f[..., :1]
    if where := first_equal(constants, 0, fields, place):
        raise ZeroDivisionError(f"inverse_series: the constant term{where} is 0, which has no inverse")
    scale = fields.apply(rows.inverse, constants)
    monic = fields.apply(rows.multiply, f, scale)
    found: Array = fields.apply(rows.multiply, inverse_series(monic, length, fields), scale)
    return found


def logarithms(f: Array, length: int, fields: FiniteFields, place: Place) -> Array:
    """Logarithms (rows, *batch, length) of series with the constant term 1: the integral of f' / f.

    NumberError if a constant term is not 1; it names the index and the prime.
    """
    if where := first_different(f[..., :1], 1, fields, place):
        raise NumberError(f"log_series: the constant term{where} is not 1")
    return _integrals(logarithmic_derivatives(to_length(f, length), fields), fields)


def logarithmic_derivatives(f: Array, fields: FiniteFields, inverse: Array | None = None) -> Array:
    """The series f' / f, (rows, *batch, A - 1), of series with the constant term 1.

    `inverse` gives the first coefficients of 1 / f, if they are known.
    """
    length = f.shape[-1] - 1
    if length == 0:
        return f[..., :0]
    slopes = polynomial_values.derivatives(f, fields)
    return window(slopes, inverse_series(f[..., :length], length, fields, inverse), fields, 0, length)


def _integrals(f: Array, fields: FiniteFields) -> Array:
    """Antiderivatives (rows, *batch, A + 1) with the constant term 0."""
    length = f.shape[-1]
    found = np.zeros_like(f, shape=(*f.shape[:-1], length + 1), order="C")
    if length:
        factors = fields.apply(rows.inverse, _numbers(1, length + 1, f, fields))
        found[..., 1:] = fields.apply(rows.multiply, f, factors)
    return found


def _numbers(start: int, stop: int, like: Array, fields: FiniteFields) -> Array:
    """The integers from `start` to below `stop` as elements (rows, 1, ..., 1, stop - start)."""
    words = np.asarray(fields.encode(np.arange(start, stop)), like=like)
    return words.reshape(len(words), *(1,) * (like.ndim - 2), stop - start)


def exponentials(f: Array, length: int, fields: FiniteFields, place: Place) -> Array:
    """Exponentials (rows, *batch, length) of series with the constant term 0.

    If g is right up to a length, then ``g + g (f - log g)`` is right up to twice the length. NumberError if a
    constant term is not 0; it names the index and the prime.
    """
    if where := first_different(f[..., :1], 0, fields, place):
        raise NumberError(f"exp_series: the constant term{where} is not 0")
    f = to_length(f, length)
    found = inverse = _ones(f, 1, fields)
    while (known := found.shape[-1]) < length:
        more = min(2 * known, length)
        inverse = inverse_series(found, known, fields, inverse)
        slopes = logarithmic_derivatives(to_length(found, more), fields, inverse)
        series = _integrals(slopes, fields)
        error = fields.apply(rows.subtract, f[..., known:more], series[..., known:])
        found = np.concatenate([found, window(found, error, fields, 0, more - known)], axis=-1)
    return found


def compositions(f: Array, g: Array, length: int, fields: FiniteFields) -> Array:
    """Values f(g) modulo x**length, (rows, *batch, length).

    Coefficients of f are taken in groups of S: the groups times the powers of g below S are a product of
    matrices, and Horner's rule goes through the groups in the power S of g (R. Brent and H. T. Kung, 1978).
    """
    batch = np.broadcast_shapes(f.shape[1:-1], g.shape[1:-1])
    size = max(1, math.isqrt(f.shape[-1]))
    groups = -(-f.shape[-1] // size)
    g = to_length(g, length)
    table = np.zeros_like(g, shape=(*g.shape[:-1], size, length), order="C")
    power = to_length(np.asarray(fields.column(1, g.ndim - 1), like=g), length)
    power = np.broadcast_to(power, g.shape)
    for k in range(size):
        table[..., k, :] = power
        power = window(power, g, fields, 0, length)
    table = _broadcast_batch(table, batch, 2)
    grouped = _broadcast_batch(to_length(f, groups * size), batch, 1)
    values = fields.apply(rows.multiply_matrices, grouped.reshape(len(f), *batch, groups, size), table)
    total = values[..., -1, :]
    for k in range(groups - 2, -1, -1):
        total = fields.apply(rows.add, window(total, power, fields, 0, length), values[..., k, :])
    return total


def powers(f: Array, exponent: int, length: int, fields: FiniteFields) -> Array:
    """Powers of polynomials modulo x**length, (rows, *batch, length), by repeated squaring."""
    f = to_length(f, length)
    found = None
    for bit in bin(exponent)[2:] if exponent else "":
        if found is not None:
            found = window(found, found, fields, 0, length)
        if bit == "1":
            found = f if found is None else window(found, f, fields, 0, length)
    return _ones(f, length, fields) if found is None else found


def powers_modulo(f: Array, g: Array, exponent: int, fields: FiniteFields, place: Place) -> Array:
    """Powers of f modulo polynomials g, (rows, *batch, max(C - 1, 1)), by repeated squaring.

    ZeroDivisionError if a polynomial g is 0 in a field; it names the index and the prime.
    """

    def reduced(x: Array) -> Array:
        found: Array = fields.apply(rows.divided, x, g, place=place)
        return found[..., x.shape[-1] :]

    f, found = reduced(f), reduced(_ones(f, 1, fields))
    for bit in bin(exponent)[2:] if exponent else "":
        found = reduced(window(found, found, fields, 0, 2 * found.shape[-1] - 1))
        if bit == "1":
            found = reduced(window(found, f, fields, 0, found.shape[-1] + f.shape[-1] - 1))
    return found


def _ones(like: Array, length: int, fields: FiniteFields) -> Array:
    """The polynomial 1 for each of a batch, (rows, *batch, length)."""
    one = to_length(np.asarray(fields.column(1, like.ndim - 1), like=like), length)
    return np.broadcast_to(one, (*like.shape[:-1], length))


def to_length(f: Array, length: int) -> Array:
    """Cut or pad coefficients to a length."""
    missing = length - f.shape[-1]
    if missing <= 0:
        return f[..., :length]
    zeros = np.zeros_like(f, shape=(*f.shape[:-1], missing), order="C")
    return np.concatenate([f, zeros], axis=-1)


def _broadcast_batch(words: Array, batch: tuple[int, ...], axes: int) -> Array:
    """Broadcast words (rows, *batch, ...) to a batch; their last `axes` axes are not part of it."""
    own = words.ndim - 1 - axes
    words = words[(slice(None), *(None,) * (len(batch) - own))]
    return np.broadcast_to(words, (len(words), *batch, *words.shape[words.ndim - axes :]))


def first_equal(words: Array, value: int, fields: FiniteFields, place: Place) -> str:
    """Text that names where (rows, *batch, 1) is first equal to a value in a field; empty if nowhere."""
    return _where(words, value, True, fields, place)


def first_different(words: Array, value: int, fields: FiniteFields, place: Place) -> str:
    """Text that names where (rows, *batch, 1) first differs from a value in a field; empty if nowhere."""
    return _where(words, value, False, fields, place)


def _where(words: Array, value: int, equal: bool, fields: Any, place: Place) -> str:
    same = words == np.asarray(fields.column(value, words.ndim - 1), like=words)
    if isinstance(fields, FermatField):
        same = same.all(axis=0)[None]
    found = (same if equal else ~same).reshape(len(same), -1)
    if not is_any(found):
        return ""
    first = int(found.any(axis=0).argmax())
    index = index_at(first, words.shape[1:-1], place)
    modulus = fields if isinstance(fields, FermatField) else fields.moduli[int(found[:, first].argmax())]
    return f"{f' at index {index}' if index else ''} modulo {modulus}"
