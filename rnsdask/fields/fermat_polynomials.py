"""Resultants, divisors and quotients of polynomials over a Fermat field, chunk by chunk. No Dask in here.

A chunk is digits (k, *batch, A) of coefficients, ascending; batches of operands broadcast. Pairs of the same
degrees go through the steps of kernels/include/rns/remainder_sequence.cuh side by side.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, backend_name, is_all, is_any, to_backend
from rnsdask.core import rows
from rnsdask.core.place import Place
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.polynomial_values import derivatives
from rnsdask.fields.polynomials import degrees_of, index_at, packed, stacks
from rnsdask.fields.polynomials import divide_series as long_divided

# Fewest coefficients of a divisor and of a quotient for which division by convolutions is quicker.
_LONG = {"cpu": 64, "cuda": 32}


def _degrees(words: Array) -> NDArray[np.int32]:
    """Degrees (B,), on the host, of polynomials (k, B, A)."""
    degrees: NDArray[np.int32] = to_backend(degrees_of(words.any(axis=0)[None])[0], "cpu")
    return degrees


def resultants(f: Array, g: Array, system: FermatField) -> Array:
    """Resultants (k, *batch), 0 where a polynomial is 0."""
    x, y, batch = stacks(f, g)
    found = np.zeros_like(x, shape=x.shape[:2], order="C")
    for pairs in _sequences(x, y, system):
        values = system.apply(rows.multiply, pairs.numerator, system.apply(rows.inverse, pairs.denominator))
        found[:, np.asarray(pairs.where, like=x)] = _negate(values, system) if pairs.negative else values
    return found.reshape(len(x), *batch)


def common_divisors(f: Array, g: Array, system: FermatField) -> Array:
    """Monic greatest common divisors (k, *batch, max(A, C)); 0 for two zeros."""
    x, y, batch = stacks(f, g)
    found = np.zeros_like(x, shape=(*x.shape[:2], max(x.shape[-1], y.shape[-1])), order="C")
    for pairs in _sequences(x, y, system, wants_zero=True):
        inverses = system.apply(rows.inverse, pairs.f[..., pairs.m :])
        monic = system.apply(rows.multiply, pairs.f, inverses)
        found[:, np.asarray(pairs.where, like=x), : pairs.m + 1] = monic
    return found.reshape(len(x), *batch, found.shape[-1])


def discriminants(f: Array, system: FermatField) -> Array:
    """Discriminants (k, *batch) of degree m: R(f, f') (-1)^(m (m - 1) / 2) / c; 0 for constants."""
    x = f.reshape(len(f), -1, f.shape[-1])
    degrees = np.maximum(_degrees(x), 0)
    if x.shape[-1] == 1 or not x.shape[1]:
        return np.zeros_like(f[..., 0])
    # Degrees are far below p, so they are not 0 in the field.
    found = resultants(x, derivatives(x, system), system)
    leading = np.take_along_axis(x, np.asarray(degrees[None, :, None].astype(np.int64), like=x), axis=-1)
    one = np.asarray(system.column(1, 2), like=x)
    inverses = system.apply(rows.inverse, np.where(leading.any(axis=0), leading, one))[..., 0]
    found = system.apply(rows.multiply, found, inverses)
    is_negative = np.asarray(degrees % 4 >= 2, like=x)
    signed: Array = np.where(is_negative, _negate(found, system), found)
    return signed.reshape(f.shape[:-1])


def divided(f: Array, g: Array, system: FermatField, place: Place) -> Array:
    """Quotients and remainders, one after another: (k, *batch, A + max(C - 1, 1)).

    ZeroDivisionError if a divisor is 0, naming its index in the array and the field.
    """
    x, y, batch = stacks(f, g)
    degrees = _degrees(y)
    if is_any(degrees < 0):
        index = index_at(int((degrees < 0).argmax()), batch, place)
        raise ZeroDivisionError(f"the divisor{f' at index {index}' if index else ''} is 0 modulo {system}")
    quotients, remainders = np.zeros_like(x, order="C"), x.copy(order="C")
    for degree in np.unique(degrees[degrees < x.shape[-1]]).tolist():
        where = np.asarray((degrees == degree).nonzero()[0], like=x)
        operands = x[:, where], y[:, where, : degree + 1], degree, system
        is_long = min(degree, x.shape[-1] - degree) >= _LONG[backend_name(x)]
        quotients[:, where], remainders[:, where] = (long_divided if is_long else _divide_stack)(*operands)
    found = packed(quotients, remainders, y.shape[-1])
    return found.reshape(len(x), *batch, found.shape[-1])


def _divide_stack(x: Array, y: Array, degree: int, field: FermatField) -> tuple[Array, Array]:
    """Quotients and remainders (k, B, A) by divisors of one degree, coefficient by coefficient."""
    quotients, rest = np.zeros_like(x, order="C"), x.copy(order="C")
    inverses = field.apply(rows.inverse, y[..., degree:])
    for k in range(x.shape[-1] - 1, degree - 1, -1):
        factors = field.apply(rows.multiply, rest[..., k : k + 1], inverses)
        quotients[..., k - degree : k - degree + 1] = factors
        if degree:
            part = np.s_[..., k - degree : k]
            products = field.apply(rows.multiply, factors, y[..., :degree])
            rest[part] = field.apply(rows.subtract, rest[part], products)
    rest[..., degree:] = 0
    return quotients, rest


def _negate(words: Array, field: FermatField) -> Array:
    negated: Array = field.apply(rows.subtract, np.zeros_like(words), words)
    return negated


# ---- Euclid's algorithm ------------------------------------------------------------------------------------


class _Pairs:
    """Pairs of polynomials (k, B, m + 1) and (k, B, n + 1) with formal degrees m >= n >= 0.

    `where` are their places in the batch, on the host. At the end, numerator and denominator, (k, B), give
    the resultants up to sign, and f is the greatest common divisor, of degree m.
    """

    def __init__(self, f: Array, g: Array, where: NDArray[np.int64], field: FermatField) -> None:
        self.f, self.g, self.where, self._field = f, g, where, field
        self.m, self.n = f.shape[-1] - 1, g.shape[-1] - 1
        self.negative = self.is_done = False
        one = np.broadcast_to(np.asarray(field.column(1, 1), like=f), f.shape[:2])
        self.numerator = self.denominator = self._weight = one

    def part(self, mask: NDArray[np.bool_]) -> "_Pairs":
        """Select the pairs that a mask (B,) marks."""
        chosen = np.asarray(mask.nonzero()[0], like=self.f)
        part = _Pairs(self.f[:, chosen], self.g[:, chosen], self.where[mask], self._field)
        part.negative = self.negative
        part.numerator, part.denominator, part._weight = (
            x[:, chosen] for x in (self.numerator, self.denominator, self._weight)
        )
        return part

    def leading(self) -> NDArray[np.bool_]:
        """Mark the polynomials g whose leading coefficient is not 0, (B,), on the host."""
        found: NDArray[np.bool_] = to_backend(self.g[..., self.n].any(axis=0), "cpu")
        return found

    def step(self, nonzero: bool) -> None:
        """Take the next step, where the leading coefficients of g are all nonzero, or all 0."""
        if self.n == 0:
            self._finish(nonzero)
            return
        if nonzero:
            self._divide()
        else:
            self.numerator = self._times(self.numerator, self.f[..., self.m])
            self.g = self.g[..., : self.n]
        self.n -= 1
        if self.n:
            self.denominator = self._times(self.denominator, self._weight)

    def _finish(self, nonzero: bool) -> None:
        if nonzero:
            power = self._field.apply(rows.power, self.g[..., 0], exponent=self.m)
            self.numerator = self._times(self.numerator, power)
            one = np.asarray(self._field.column(1, 2), like=self.f)
            self.f, self.m = np.broadcast_to(one, (*self.f.shape[:2], 1)), 0
        elif self.m:
            self.numerator = np.zeros_like(self.f, shape=self.f.shape[:2], order="C")
        self.is_done = True

    def _divide(self) -> None:
        """Replace (f, g) by g and the remainder of f, of formal degree n - 1."""
        m, n = self.m, self.n
        f, g, top = self.f, self.g, self.g[..., n:]
        d = m - n + 1
        self.negative ^= bool(n & d & 1)
        if d > 2:
            rest = _divide_stack(f, g, n, self._field)[1][..., :n]
            self.numerator = self._times(
                self.numerator, self._field.apply(rows.power, top[..., 0], exponent=d)
            )
        elif d == 2:
            square = self._times(top, top)
            linear = self._times(f[..., m:], top)
            # square f - (linear x + constant) g
            constant = self._less(self._times(f[..., n:m], top), self._times(f[..., m:], g[..., n - 1 : n]))
            rest = self._less(self._times(square, f[..., :n]), self._times(constant, g[..., :n]))
            if n > 1:
                rest[..., 1:] = self._less(rest[..., 1:], self._times(linear, g[..., : n - 1]))
            self._weight = self._times(self._weight, square[..., 0])
        else:
            rest = self._less(self._times(top, f[..., :n]), self._times(f[..., m:], g[..., :n]))
            self._weight = self._times(self._weight, top[..., 0])
        self.f, self.g, self.m = g, rest, n

    def _times(self, x: Array, y: Array) -> Array:
        product: Array = self._field.apply(rows.multiply, x, y)
        return product

    def _less(self, x: Array, y: Array) -> Array:
        difference: Array = self._field.apply(rows.subtract, x, y)
        return difference


def _sequences(x: Array, y: Array, field: FermatField, wants_zero: bool = False) -> Iterator[_Pairs]:
    """Run pairs of (k, B, A) and (k, B, C) to their ends; with `wants_zero`, pairs with a 0 too."""
    degrees = np.stack([_degrees(x), _degrees(y)])
    todo = []
    for first, second in sorted({*zip(*degrees.tolist(), strict=True)}):
        where = (degrees == [[first], [second]]).all(axis=0).nonzero()[0]
        chosen = np.asarray(where, like=x)
        f, g = x[:, chosen, : first + 1], y[:, chosen, : second + 1]
        pairs = _Pairs(g, f, where, field) if first < second else _Pairs(f, g, where, field)
        pairs.negative = first < second and bool(first & second & 1)
        if min(first, second) >= 0:
            todo.append(pairs)
        elif wants_zero and max(first, second) >= 0:
            yield pairs
    while todo:
        pairs = todo.pop()
        while not pairs.is_done:
            nonzero = pairs.leading()
            if is_any(nonzero) and not is_all(nonzero):
                todo.append(pairs.part(~nonzero))
                pairs, nonzero = pairs.part(nonzero), nonzero[nonzero]
            pairs.step(bool(nonzero[0]))
        yield pairs
