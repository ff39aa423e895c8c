"""Resultants, divisors and quotients of polynomials modulo primes, chunk by chunk. No Dask in here.

A chunk is coefficients (n, *batch, A), ascending, in any layout; batches of operands broadcast. The degree is
that of the last coefficient that is not 0, and differs from field to field; the polynomial 0 has degree -1.
"""

import math
from typing import Any

import numpy as np

from rnsdask.backend import Array, Moduli, backend_name, is_all, is_any, kernels_of
from rnsdask.core import rows
from rnsdask.core.place import ALONE, Place
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.fields import arithmetic, half_gcd
from rnsdask.fields.system import FiniteFields, WidePrimeFields, fields_of


def window(x: Array, y: Array, fields: FiniteFields, first: int, stop: int) -> Array:
    """Coefficients `first` to `stop` of products of polynomials (rows, *batch, A) and (rows, *batch, C)."""
    found: Array = fields.apply(rows.window, x, y, first=first, stop=stop)
    return found


def inverse_series(q: Array, length: int, fields: FiniteFields, found: Array | None = None) -> Array:
    """First `length` coefficients of 1 / q, for q with the constant term 1, by Newton's iteration.

    The iteration starts from the coefficients in `found`, if given.
    """
    zero = np.asarray(fields.column(0, q.ndim - 1), like=q)
    if q.shape[-1] < length:
        missing = np.zeros_like(q, shape=(*q.shape[:-1], length - q.shape[-1]), order="C")
        q = np.concatenate([q, missing], axis=-1)
    found = _short_inverse(q, length, fields) if found is None else found
    while (known := found.shape[-1]) < length:
        more = min(2 * known, length)
        error = fields.apply(rows.subtract, zero, window(q[..., :more], found, fields, known, more))
        found = np.concatenate([found, window(found, error, fields, 0, more - known)], axis=-1)
    return found


def _short_inverse(q: Array, length: int, fields: FiniteFields) -> Array:
    """First coefficients of 1 / q, from which few steps of the iteration are left.

    They are those of the quotient of a power of x by q in reverse order.
    """
    few = isinstance(fields, WidePrimeFields) and isinstance(q, np.ndarray) and q[..., 0].size <= _FEW
    if not few:
        return q[..., :1]
    count = length
    while count > SHORT:
        count = -(-count // 2)
    power = np.zeros_like(q, shape=(*q.shape[:-1], 2 * count - 1), order="C")
    power[..., -1] = 1
    found: Array = fields.apply(rows.divided, power, q[..., count - 1 :: -1], place=ALONE)
    return found[..., count - 1 :: -1]


def divide_series(x: Array, y: Array, degree: int, fields: FiniteFields) -> tuple[Array, Array]:
    """Divide polynomials (rows, B, A) by others that share one degree below A: quotients and remainders.

    With coefficients in reverse order, the quotient is the power series x / y (V. Strassen, 1973).
    """
    count = x.shape[-1] - degree
    inverses = fields.apply(rows.inverse, y[..., degree])[..., None]
    monic = fields.apply(rows.multiply, y[..., degree::-1][..., :count], inverses)
    scaled = fields.apply(rows.multiply, x[..., : degree - 1 if degree else None : -1], inverses)
    series = window(scaled, inverse_series(monic, count, fields), fields, 0, count)
    quotients, remainders = np.zeros_like(x, order="C"), np.zeros_like(x, order="C")
    quotients[..., :count] = series[..., ::-1]
    if degree:
        products = window(quotients[..., : min(count, degree)], y[..., :degree], fields, 0, degree)
        remainders[..., :degree] = fields.apply(rows.subtract, x[..., :degree], products)
    return quotients, remainders


Pair = tuple[Array, Array]

# Most inverse series of 64-bit words that division finds more quickly.
_FEW = 16

SHORT = 512
"""Most of their coefficients that it finds."""

# Fewest coefficients of a divisor and of a quotient for which division by convolutions is quicker.
LONG = {"cpu": 2**10, "cuda": 6000}
WIDE_LONG = 2**12
"""Fewest such coefficients of words of 64 bits on a CPU."""


def degrees_of(words: Array) -> Array:
    """Degrees (n, *batch), int32, of polynomials over prime fields, or of a mask of nonzero coefficients."""
    leading = words[..., -1] != 0
    if is_all(leading):  # nearly always, and quicker than a search
        return np.full_like(leading, words.shape[-1] - 1, dtype=np.int32, order="C")
    is_there = words != 0
    last = words.shape[-1] - 1 - is_there[..., ::-1].argmax(axis=-1)
    return np.where(is_there.any(axis=-1), last, -1).astype(np.int32)


def stacks(f: Array, g: Array) -> tuple[Array, Array, tuple[int, ...]]:
    """Join the batch axes of pairs to one: (n, B, A), (n, B, C), and the shape of the batch."""
    batch = np.broadcast_shapes(f.shape[1:-1], g.shape[1:-1])
    x, y = (
        np.broadcast_to(v, (len(v), *batch, v.shape[-1])).reshape(len(v), math.prod(batch), v.shape[-1])
        for v in (f, g)
    )
    return x, y, batch


def resultants(f: Array, g: Array, moduli: Moduli, degrees: Pair | None = None) -> Array:
    """Resultants (n, *batch) modulo primes, 0 where a polynomial is 0.

    `degrees`, int32 (n, *batch) each, are formal degrees, whose coefficients may be 0: the resultants are the
    determinants of Sylvester's matrices of these. The default is the polynomials' own degrees.
    """
    x, y, batch = stacks(f, g)
    own = _degrees(x, y)
    found = own if degrees is None else (degrees[0].reshape(x.shape[:2]), degrees[1].reshape(x.shape[:2]))
    numerators, denominators, _ = _remainder_sequences(x, y, own, found, moduli, False)
    return quotients_of(numerators, denominators, moduli).reshape(len(x), *batch)


def _remainder_sequences(
    x: Array, y: Array, own: Pair, degrees: Pair, moduli: Moduli, divisors: bool
) -> tuple[Array, Array, Array]:
    """Call the kernel of this name for all pairs but those for which half-gcds are quicker."""
    kernels = kernels_of(x)
    if kernels.half_gcd is None or not isinstance(moduli, WideModuli):
        return kernels.remainder_sequences(x, y, degrees, moduli, divisors)
    is_long = np.minimum(*own) >= half_gcd.LONG
    for first, second in zip(own, degrees, strict=True):
        is_long &= first == second
    # To the kernel the others are 0, which takes no time.
    short: Any = tuple(np.where(is_long, np.int32(-1), d) for d in degrees)
    values, denominators, found = kernels.remainder_sequences(x, y, short, moduli, divisors)
    for i, b in zip(*is_long.nonzero(), strict=True):
        field = fields_of(WideModuli((moduli[i],)))
        assert isinstance(field, WidePrimeFields)
        euclid = half_gcd.Euclid(field)
        pair = x[i, b, : own[0][i, b] + 1], y[i, b, : own[1][i, b] + 1]
        if divisors:
            divisor = euclid.common_divisor(*pair)
            found[i, b, : len(divisor)] = divisor
        else:
            values[i, b] = euclid.resultant(*pair)
    return values, denominators, found


def quotients_of(numerators: Array, denominators: Array, moduli: Moduli) -> Array:
    """Divide numerators by nonzero denominators, (n, B)."""
    inverses = arithmetic.inverse(denominators, moduli)
    found: Array = fields_of(moduli).apply(rows.multiply, numerators, inverses)
    return found


def _degrees(x: Array, y: Array) -> Pair:
    return degrees_of(x), degrees_of(y)


def common_divisors(f: Array, g: Array, moduli: Moduli) -> Array:
    """Monic greatest common divisors (n, *batch, max(A, C)) modulo primes; 0 for two zeros."""
    x, y, batch = stacks(f, g)
    degrees = _degrees(x, y)
    found = _remainder_sequences(x, y, degrees, degrees, moduli, True)[2]
    return found.reshape(len(x), *batch, found.shape[-1])


def discriminants(f: Array, moduli: Moduli) -> Array:
    """Discriminants (n, *batch) modulo primes; 0 for constants.

    For the degree m and the leading coefficient c it is R(f, f') (-1)^(m (m - 1) / 2) / c, where f' has the
    formal degree m - 1.
    """
    x = f.reshape(len(f), math.prod(f.shape[1:-1]), f.shape[-1])
    degrees = degrees_of(x)
    lower = np.maximum(degrees, 0)
    # The derivative of a constant is of degree -1.
    formal = lower.astype(np.int32), (lower - 1).astype(np.int32)
    found = resultants(x, derivatives(x, moduli), moduli, formal)
    leading = np.take_along_axis(x, lower[..., None].astype(np.int64), axis=-1)[..., 0]
    found = quotients_of(found, np.where(leading == 0, x.dtype.type(1), leading), moduli)
    negative = fields_of(moduli).apply(rows.subtract, np.zeros_like(found), found)
    signed: Array = np.where(degrees % 4 >= 2, negative, found)
    return signed.reshape(f.shape[:-1])


def derivatives(f: Array, moduli: Moduli) -> Array:
    """Derivatives (n, *batch, max(A - 1, 1)) modulo primes."""
    fields = fields_of(moduli)
    words = np.asarray(fields.encode(np.arange(f.shape[-1])), like=f)
    words = words.reshape(len(f), *(1,) * (f.ndim - 2), -1)
    products: Array = fields.apply(rows.multiply, f, words)
    return products[..., 1:] if f.shape[-1] > 1 else products


def divided(f: Array, g: Array, moduli: Moduli, place: Place) -> Array:
    """Quotients and remainders modulo primes, one after another: (n, *batch, A + max(C - 1, 1)).

    ZeroDivisionError if a divisor is 0 modulo a prime, naming its index in the array and the prime.
    """
    x, y, batch = stacks(f, g)
    degrees = check_divisors(y, batch, moduli, place)
    least = WIDE_LONG if isinstance(moduli, WideModuli) else LONG[backend_name(x)]
    may_be_long = x.size and y.shape[-1] > least and x.shape[-1] >= 2 * least
    degree = int(degrees.max()) if may_be_long else 0  # synchronizes with a GPU
    if min(degree, x.shape[-1] - degree) >= least and is_all(degrees == degree):
        quotients, remainders = divide_series(x, y[..., : degree + 1], degree, fields_of(moduli))
    else:
        quotients, remainders = kernels_of(x).divide_polynomials(x, y, degrees, moduli)
    found = packed(quotients, remainders, y.shape[-1])
    return found.reshape(len(x), *batch, found.shape[-1])


def check_divisors(g: Array, batch: tuple[int, ...], moduli: Moduli, place: Place) -> Array:
    """Degrees (n, B) of divisors (n, B, C); ZeroDivisionError as :func:`divided` if one is 0."""
    degrees = degrees_of(g)
    if is_any(degrees < 0):
        raise ZeroDivisionError(f"the divisor{_at(degrees < 0, batch, moduli, place)}")
    return degrees


def packed(quotients: Array, remainders: Array, length: int) -> Array:
    """Quotients and remainders (rows, B, A) by divisors (rows, B, length), one after another."""
    length = max(length - 1, 1)
    missing = np.zeros_like(
        quotients, shape=(*quotients.shape[:2], max(length - quotients.shape[-1], 0)), order="C"
    )
    return np.concatenate([quotients, remainders[..., :length], missing], axis=-1)


def _at(mask: Array, batch: tuple[int, ...], moduli: Moduli, place: Place) -> str:
    """Name the first element that a mask (n, B) marks, by its index in the array, and its prime."""
    first = int(mask.any(axis=0).argmax())
    row = int(mask[:, first].argmax())
    index = index_at(first, batch, place)
    return f"{f' at index {index}' if index else ''} is 0 modulo {moduli[row]}"


def index_at(flat_index: int, batch: tuple[int, ...], place: Place) -> tuple[int, ...]:
    """Index in the array of a flat index in the batch of a chunk."""
    index = np.unravel_index(flat_index, batch) if batch else ()
    starts = [start for start, _ in place.location[: len(index)]] or [0] * len(index)
    return tuple(int(i) + start for i, start in zip(index, starts, strict=True))
