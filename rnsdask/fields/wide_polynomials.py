"""Polynomials over prime fields of which one is beyond 32 bits, chunk by chunk. No Dask in here.

On a CPU all fields have the same kernels. On a GPU fields below 2**32 are computed together as such, the
others one by one, by steps on all pairs of the same degrees.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.core import rows
from rnsdask.core.moduli import MODULUS_MAX, ModuliSet
from rnsdask.core.place import Place
from rnsdask.core.rows import Row
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.fields import fermat_polynomials, polynomials
from rnsdask.fields.system import PrimeFields, WidePrimeFields, fields_of


def resultants(f: Array, g: Array, system: WidePrimeFields) -> Array:
    """Resultants (n, *batch), 0 where a polynomial is 0."""
    return _by_fields(rows.resultants, f, g, system=system)


def discriminants(f: Array, system: WidePrimeFields) -> Array:
    """Discriminants (n, *batch); 0 for constants."""
    return _by_fields(rows.discriminants, f, system=system)


def common_divisors(f: Array, g: Array, system: WidePrimeFields) -> Array:
    """Monic greatest common divisors (n, *batch, max(A, C)); 0 for two zeros."""
    return _by_fields(rows.common_divisors, f, g, system=system)


def divided(f: Array, g: Array, system: WidePrimeFields, place: Place) -> Array:
    """Quotients and remainders, one after another, as :func:`.polynomials.divided`."""
    return _by_fields(rows.divided, f, g, system=system, place=place)


_OF_ALL_FIELDS: dict[str, Any] = {
    rows.resultants.name: polynomials.resultants,
    rows.discriminants.name: polynomials.discriminants,
    rows.common_divisors.name: polynomials.common_divisors,
    rows.divided.name: polynomials.divided,
}
_OF_ONE_FIELD: dict[str, Any] = {
    rows.resultants.name: fermat_polynomials.resultants,
    rows.discriminants.name: fermat_polynomials.discriminants,
    rows.common_divisors.name: fermat_polynomials.common_divisors,
    rows.divided.name: fermat_polynomials.divided,
}


def _by_fields(row: Row[..., Array], *blocks: Array, system: WidePrimeFields, **options: Any) -> Array:
    if kernels_of(blocks[0]).half_gcd is not None:
        shared: Array = _OF_ALL_FIELDS[row.name](*blocks, system.moduli, **options)
        return shared
    if row is rows.divided:
        _, divisors, batch = polynomials.stacks(*blocks)
        polynomials.check_divisors(divisors, batch, system.moduli, options["place"])
    out: Array | None = None
    for chosen, fields in _parts(system):
        words = [block[chosen].astype(fields.word_dtype, copy=False) for block in blocks]
        if isinstance(fields, WidePrimeFields):
            found = _OF_ONE_FIELD[row.name](*words, fields, **options)
        else:
            found = fields.apply(row, *words, **options)
        if out is None:
            out = np.empty_like(blocks[0], shape=(system.rows, *found.shape[1:]), order="C")
        out[chosen] = found
    return out


def _parts(system: WidePrimeFields) -> Iterator[tuple[list[int], PrimeFields]]:
    """The fields below 2**32, with their rows, and each other one."""
    narrow = [i for i, p in enumerate(system.primes) if p <= MODULUS_MAX]
    if narrow:
        yield narrow, fields_of(ModuliSet([system.primes[i] for i in narrow]))
    for i, p in enumerate(system.primes):
        if p > MODULUS_MAX:
            yield [i], fields_of(WideModuli((p,)))
