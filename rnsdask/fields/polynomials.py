"""Polynomials over fields, chunks of coefficients along the last axis, ascending. No Dask in here.

A chunk is (rows, *batch, coefficients), in any layout; batches of operands broadcast. Degrees are those of
the last coefficients that are not 0, and differ from field to field; that of the polynomial 0 is -1.
"""

import math
from typing import Any

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Place
from rnsdask.fields import arithmetic, convolution
from rnsdask.fields.elements import elements_of
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.finite_fields import FiniteFields
from rnsdask.rns.arithmetic import apply
from rnsdask.rns.system import RNS

# Words of the powers of points that polynomials are evaluated at together.
_WORDS = 2**22

Pair = tuple[Array, Array]


def degrees_of(words: Array) -> Array:
    """Degrees (n, *batch), int32, of polynomials over prime fields, or by Booleans (n, *batch, A)."""
    is_there = words != 0
    last = words.shape[-1] - 1 - is_there[..., ::-1].argmax(axis=-1)
    return np.where(is_there.any(axis=-1), last, -1).astype(np.int32)


def _stacks(f: Array, g: Array) -> tuple[Array, Array, tuple[int, ...]]:
    """Polynomials with one axis for all pairs, (n, B, A) and (n, B, C), and the shape of the batch."""
    batch = np.broadcast_shapes(f.shape[1:-1], g.shape[1:-1])
    x, y = (
        np.broadcast_to(v, (len(v), *batch, v.shape[-1])).reshape(len(v), math.prod(batch), v.shape[-1])
        for v in (f, g)
    )
    return x, y, batch


# ---- remainder sequences ----------------------------------------------------------------------------------


def resultants(f: Array, g: Array, moduli: ModuliSet, degrees: Pair | None = None) -> Array:
    """Resultants (n, *batch) modulo primes, 0 where a polynomial is 0.

    `degrees`, int32 (n, *batch) each, are the formal ones, whose coefficients may be 0: the resultants are
    the determinants of Sylvester's matrices of these. Without them they are the polynomials' own.
    """
    x, y, batch = _stacks(f, g)
    first, second = _degrees(x, y) if degrees is None else degrees
    found = first.reshape(x.shape[:2]), second.reshape(x.shape[:2])
    numerators, denominators, _ = kernels_of(x).remainder_sequences(x, y, found, moduli, False)
    return quotients_of(numerators, denominators, moduli).reshape(len(x), *batch)


def quotients_of(numerators: Array, denominators: Array, moduli: ModuliSet) -> Array:
    """Quotients (n, B), where no denominator is 0."""
    inverses = arithmetic.inverse(denominators, moduli)
    return apply("multiply", (numerators, inverses), RNS(moduli), "wrap")


def _degrees(x: Array, y: Array) -> Pair:
    return degrees_of(x), degrees_of(y)


def common_divisors(f: Array, g: Array, moduli: ModuliSet) -> Array:
    """Greatest common divisors (n, *batch, max(A, C)) modulo primes, monic; that of zeros is 0."""
    x, y, batch = _stacks(f, g)
    found = kernels_of(x).remainder_sequences(x, y, _degrees(x, y), moduli, True)[2]
    return found.reshape(len(x), *batch, found.shape[-1])


def discriminants(f: Array, moduli: ModuliSet) -> Array:
    """Discriminants (n, *batch) modulo primes, 0 of constants.

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
    found = quotients_of(found, np.where(leading == 0, np.uint32(1), leading), moduli)
    negative = apply("subtract", (np.zeros_like(found), found), RNS(moduli), "wrap")
    signed: Array = np.where(degrees % 4 >= 2, negative, found)
    return signed.reshape(f.shape[:-1])


def derivatives(f: Array, moduli: ModuliSet) -> Array:
    """Derivatives (n, *batch, max(A - 1, 1)) modulo primes."""
    factors = np.arange(f.shape[-1])[None] % np.array(list(moduli), dtype=np.int64)[:, None]
    words = np.asarray(factors.astype(np.uint32), like=f).reshape(len(f), *(1,) * (f.ndim - 2), -1)
    products = apply("multiply", (f, words), RNS(moduli), "wrap")
    return products[..., 1:] if f.shape[-1] > 1 else products


def divided(f: Array, g: Array, moduli: ModuliSet, place: Place) -> Array:
    """Quotients and remainders modulo primes, one after another: (n, *batch, A + max(C - 1, 1)).

    Raises
    ------
    ZeroDivisionError
        If a divisor is 0 modulo a prime, naming its index in the array and the prime.
    """
    x, y, batch = _stacks(f, g)
    degrees = degrees_of(y)
    if (degrees < 0).any():
        raise ZeroDivisionError(f"the divisor{_at(degrees < 0, batch, moduli, place)}")
    quotients, remainders = kernels_of(x).divide_polynomials(x, y, degrees, moduli)
    length = max(y.shape[-1] - 1, 1)
    missing = np.zeros_like(x, shape=(*x.shape[:2], max(length - x.shape[-1], 0)), order="C")
    packed = np.concatenate([quotients, remainders[..., :length], missing], axis=-1)
    return packed.reshape(len(x), *batch, packed.shape[-1])


def _at(mask: Array, batch: tuple[int, ...], moduli: ModuliSet, place: Place) -> str:
    """Which of (n, B) is the first that a mask names, by its index in the array, and modulo which prime."""
    first = int(mask.any(axis=0).argmax())
    row = int(mask[:, first].argmax())
    index = index_at(first, batch, place)
    return f"{f' at index {index}' if index else ''} is 0 modulo {moduli[row]}"


def index_at(flat_index: int, batch: tuple[int, ...], place: Place) -> tuple[int, ...]:
    """The index in the array of a place in the batch of a chunk."""
    index = np.unravel_index(flat_index, batch) if batch else ()
    starts = [start for start, _ in place.location[: len(index)]] or [0] * len(index)
    return tuple(int(i) + start for i, start in zip(index, starts, strict=True))


# ---- values -----------------------------------------------------------------------------------------------


def values_at(f: Array, points: Array, fields: FiniteFields) -> Array:
    """Values (rows, *batch, P) of polynomials at points (rows, *batch, P) of any fields.

    Coefficients are taken in groups of S: the groups times the powers of the points below S are a product of
    matrices, and their values the coefficients of a polynomial in the power S, which is evaluated by Horner's
    rule (M. Paterson and L. Stockmeyer, 1973).
    """
    elements = elements_of(fields)
    batch = np.broadcast_shapes(f.shape[1:-1], points.shape[1:-1])
    rows, length, count = len(f), f.shape[-1], points.shape[-1]
    is_shared = math.prod(points.shape[1:-1]) == 1
    polynomials = math.prod(f.shape[1:-1])
    # Powers of its own points for each polynomial would be more than its coefficients.
    groups = max(1, round(math.sqrt(length / max(1, polynomials)))) if is_shared else length
    size = -(-length // groups)
    padded = np.zeros_like(f, shape=(*f.shape[:-1], groups * size), order="C")
    padded[..., :length] = f
    padded = padded.reshape(rows, polynomials * groups, size) if is_shared else padded
    step = max(1, _WORDS // (rows * size))
    parts = []
    for start in range(0, count, step):
        x = points[..., start : start + step]
        if not is_shared:
            parts.append(_by_horner(padded[..., None], x, elements, batch))
            continue
        x = x.reshape(rows, -1)
        table = powers(x, size + 1, fields)
        values = elements.matmul(padded, table[:, :size])
        values = values.reshape(rows, *f.shape[1:-1], groups, x.shape[-1])
        power = table[:, size].reshape(rows, *(1,) * len(batch), -1)
        parts.append(_by_horner(values, power, elements, batch))
    return np.concatenate(parts, axis=-1)


def _by_horner(coefficients: Array, x: Array, elements: Any, batch: tuple[int, ...]) -> Array:
    """The sums over k of the coefficients (rows, *batch, K, P or 1) times x**k, (rows, *batch, P)."""
    shape = (len(x), *batch, x.shape[-1])
    total = np.broadcast_to(coefficients[..., -1, :], shape)
    for k in range(coefficients.shape[-2] - 2, -1, -1):
        total = elements.apply("fma", (total, x, coefficients[..., k, :]))
    return total


def powers(points: Array, count: int, fields: FiniteFields) -> Array:
    """Powers (rows, count, P) of points (rows, P), from that by 0 on."""
    elements = elements_of(fields)
    table = np.empty_like(points, shape=(len(points), count, points.shape[-1]), order="C")
    table[:, 0] = np.asarray(fields.column(1, 1), like=points)
    known, power = 1, points[:, None]
    while known < count:
        more = min(known, count - known)
        table[:, known : known + more] = elements.apply("multiply", (table[:, :more], power))
        known += more
        if known < count:
            power = elements.apply("multiply", (power, power))
    return table


# ---- interpolation ----------------------------------------------------------------------------------------


def interpolated(points: Array, values: Array, fields: FiniteFields, place: Place) -> Array:
    """Coefficients (rows, *batch, N) of the polynomials with values at points, (rows, *batch, N) both.

    J. Lagrange's formula, its terms added up in a tree: with M the product of all x - x_i, the polynomial is
    the sum of v_i / M'(x_i) M / (x - x_i).

    Raises
    ------
    ValueError
        If two points of a polynomial are equal in a field, naming where the first of them is, and the prime.
    """
    elements = elements_of(fields)
    tree = _product_tree(points, fields)
    # The greatest product has zeros where there are more leaves than points.
    slopes = _derivatives(tree[-1][..., 0, : points.shape[-1] + 1], fields)
    slopes = values_at(slopes, points, fields)
    _check_different(slopes, fields, place)
    factors = elements.apply("multiply", (values, elements.inverse(slopes)))
    batch = np.broadcast_shapes(points.shape[1:-1], values.shape[1:-1])
    found = np.zeros_like(points, shape=(len(points), *batch, tree[0].shape[-2], 1), order="C")
    found[..., : points.shape[-1], 0] = factors
    for level in tree[:-1]:
        crossed = (found[..., 0::2, :], level[..., 1::2, :]), (found[..., 1::2, :], level[..., 0::2, :])
        found = elements.apply("add", [products(x, y, fields) for x, y in crossed])
    return found[..., 0, : points.shape[-1]]


def _product_tree(points: Array, fields: FiniteFields) -> list[Array]:
    """Products of x - x_i, then of pairs of these, and so on: (rows, *batch, count, length) each."""
    elements = elements_of(fields)
    rows, *batch, count = points.shape
    leaves = 1 << (count - 1).bit_length()
    level = np.zeros_like(points, shape=(rows, *batch, leaves, 2), order="C")
    one, zero = (np.asarray(fields.column(k, points.ndim - 1), like=points) for k in (1, 0))
    level[..., :count, 0] = elements.apply("subtract", (zero, points))
    level[..., :count, 1] = one
    level[..., count:, 0] = one
    tree = [level]
    while tree[-1].shape[-2] > 1:
        tree.append(products(tree[-1][..., 0::2, :], tree[-1][..., 1::2, :], fields))
    return tree


def _derivatives(f: Array, fields: FiniteFields) -> Array:
    factors = np.asarray(fields.encode(list(range(1, f.shape[-1]))), like=f)
    factors = factors.reshape(len(f), *(1,) * (f.ndim - 2), f.shape[-1] - 1)
    return elements_of(fields).apply("multiply", (f[..., 1:], factors))


def _check_different(slopes: Array, fields: Any, place: Place) -> None:
    """Raise ValueError if a derivative of the product of all x - x_i is 0 at a point."""
    is_fermat = isinstance(fields, FermatField)
    zeros = (slopes == 0).all(axis=0)[None] if is_fermat else slopes == 0
    if not zeros.any():
        return
    flat = zeros.reshape(len(zeros), -1)
    first = int(flat.any(axis=0).argmax())
    which = index_at(first, slopes.shape[1:], place)
    modulus = fields.modulus if is_fermat else fields.moduli[int(flat[:, first].argmax())]
    raise ValueError(f"points must be different, but that at index {which} equals another modulo {modulus}")


def products(x: Array, y: Array, fields: Any) -> Array:
    """Products of polynomials (rows, *batch, A) and (rows, *batch, C), (rows, *batch, A + C - 1)."""
    if not isinstance(fields, FermatField):
        return convolution.convolve(x, y, fields.moduli)
    elements, total = elements_of(fields), x.shape[-1] + y.shape[-1] - 1
    length = 1 << (total - 1).bit_length()
    transforms = []
    for v in (x, y):
        padded = np.zeros_like(v, shape=(*v.shape[:-1], length), order="C")
        padded[..., : v.shape[-1]] = v
        transforms.append(elements.transform(padded, v.ndim - 2, False, False))
    product = elements.apply("multiply", transforms)
    return elements.transform(product, product.ndim - 2, True, False)[..., :total]
