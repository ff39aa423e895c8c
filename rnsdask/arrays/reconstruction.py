"""Fractions from residues: numerators and denominators, element-wise or over a common denominator."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, SupportsIndex

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.arrays.creation import from_residues
from rnsdask.backend import Array
from rnsdask.core.axes import axis_indices
from rnsdask.core.errors import abbreviate, with_article
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.core.place import Place
from rnsdask.core.ways import must
from rnsdask.core.wide_moduli import moduli_of_residues
from rnsdask.fields import reconstruction
from rnsdask.fields.polynomials import index_at
from rnsdask.fields.system import WidePrimeFields
from rnsdask.lazy.chunks import by_tasks, rechunk
from rnsdask.lazy.lazy_ints import as_exact, number
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import find_lengths, is_number_array
from rnsdask.lazy.pieces import kept_blocks
from rnsdask.typing import PlainArray


class Fractions(NamedTuple):
    """Fractions, as :func:`.rational_reconstruct` finds them and functions of :mod:`.linalg` take them.

    Attributes
    ----------
    numerators, denominators : object arrays of int
        In lowest terms, with positive denominators, from :func:`.rational_reconstruct`. Lazy if the residues
        are.
    confirmed_by : int or None
        Number of further moduli that agree; None if bounds prove the fractions to be unique, or they are
        given.
    """

    numerators: PlainArray[np.object_]
    denominators: PlainArray[np.object_]
    confirmed_by: int | None = None

    @property
    def certainty(self) -> str:
        """Statement of how the fractions are known to be right."""
        if self.confirmed_by is None:
            return "proved by bounds"
        return f"confirmed by {self.confirmed_by} more {'primes' if self.confirmed_by > 1 else 'prime'}"


def rational_reconstruct(
    x: Any,
    moduli: Any = None,
    *,
    numerator_bound: SupportsIndex | None = None,
    denominator_bound: SupportsIndex | None = None,
    confirm: SupportsIndex | None = None,
    common_axis: SupportsIndex | Sequence[SupportsIndex] | None = None,
) -> Fractions:
    """Find the fractions n/d with given residues: ``n = d x`` modulo M, in lowest terms.

    Parameters
    ----------
    x : FieldArray, RNSArray, or array of residues, shape (n, *shape)
        Residues of the fractions. Their denominators must be coprime to the moduli.
    moduli : ModuliSet, PrimeFields or iterable of int, optional
        The moduli of plain residues, up to 2**64, as :func:`.from_residues` takes them.
    numerator_bound, denominator_bound : int, optional
        Greatest magnitude of a numerator, and of a denominator. Twice the product of both must be below M;
        then fractions are proved to be unique. If one bound is missing, it is as large as the moduli allow;
        if both are missing, they are equal. With a `numerator_bound` of 0, 0 is the only fraction.
    confirm : int, optional
        Number of the last moduli that confirm fractions instead of finding them. The default is 0 with both
        bounds; otherwise it is 1, which is also the least. A wrong fraction passes by chance in one of P
        cases, where P is the product of these moduli.
    common_axis : int or tuple of int, optional
        Axes along which numbers share one denominator; the numerator bound applies to numerators over it.
        These axes become one chunk.

    Returns
    -------
    Fractions
        A named tuple of `numerators`, of the shape of the numbers, `denominators`, of the same shape without
        the common axes, and `confirmed_by`; its `certainty` describes the latter.

    Raises
    ------
    NumberError
        If a number has no such fraction. It names the number's index, and is a ValueError; on Dask it is
        raised when the result is computed.
    TypeError
        If `x` is not such an array, or moduli are given although it has its own.
    ValueError
        If bounds are too large for the moduli, the numerator bound is below 0 or the denominator bound below
        1, or no moduli are left to confirm fractions.

    Examples
    --------
    >>> import rnsdask as rd
    >>> F = rd.PrimeFields([2147483647, 2147483629, 2147483587])
    >>> x = rd.from_ints([1, -22, 5], F) / [3, 7, 1]
    >>> found = rd.rational_reconstruct(x)
    >>> found.numerators.tolist(), found.denominators.tolist(), found.certainty
    ([1, -22, 5], [3, 7, 1], 'confirmed by 1 more prime')
    >>> rd.rational_reconstruct(x, numerator_bound=1000, denominator_bound=1000).certainty
    'proved by bounds'
    """
    x, values = _check_residues(x, moduli)
    limits, confirmed = _limits(values, numerator_bound, denominator_bound, confirm)
    find_lengths(x)
    axes = () if common_axis is None else axis_indices(common_axis, x.ndim)
    order = (*(k for k in range(x.ndim) if k not in axes), *axes)
    shape = tuple(x.shape[k] for k in order)
    kept, common = shape[: x.ndim - len(axes)], shape[x.ndim - len(axes) :]
    words = x.words.transpose(0, *(k + 1 for k in order))
    if isinstance(words, da.Array):
        words = rechunk(words, dict.fromkeys(range(1 + len(kept), words.ndim), -1))
    with by_tasks(words):
        words = words.reshape(len(words), *kept, math.prod(common)) if axes else words[..., None]
    chunks = (*words.chunks[1:-1], (math.prod(common) + 1,)) if isinstance(words, da.Array) else None
    options = {"moduli": x.system.moduli, "limits": tuple(limits), "common": common, "order": order}
    packed = kept_blocks(map_chunks(_fractions, words, chunks=chunks, dtype=object, located=True, **options))
    back = np.argsort(order).tolist()
    numerators = packed[..., :-1].reshape(shape).transpose(back) if axes else packed[..., 0]
    return Fractions(as_exact(numerators), number(as_exact(packed)[..., -1]), confirmed)


def _check_residues(x: Any, moduli: Any) -> tuple[Any, list[int]]:
    """Return an array of residues, and the moduli that they were given under."""
    if is_number_array(x):
        if moduli is not None:
            raise TypeError(f"moduli= is for plain residues; {with_article(type(x))} has its own")
        if isinstance(x.system, WidePrimeFields):
            elements: Any = x
            return elements.lift(), list(x.system.primes)
        moduli = x.system.residue_moduli
        if moduli is None or len(moduli) < x.system.rows:  # no residues, or followed by other words
            raise TypeError(
                "rational_reconstruct takes a FieldArray of prime fields, an RNSArray or residues, got "
                f"{with_article(type(x))}"
            )
        return x, list(moduli)
    if moduli is None:
        raise TypeError(
            f"rational_reconstruct takes residues with moduli=, got {with_article(type(x))} alone"
        )
    given = moduli_of_residues(getattr(moduli, "moduli", moduli))
    return from_residues(x, given), list(given)


def _limits(
    moduli: list[int], numerator: Any, denominator: Any, confirm: Any
) -> tuple[reconstruction.Limits, int | None]:
    """Return the bounds of fractions and the number of confirming moduli, None if the bounds prove them."""
    n = _checked_bound(numerator, "numerator_bound", 0)
    d = _checked_bound(denominator, "denominator_bound", 1)
    proved = n is not None and d is not None
    extra = (0 if proved else 1) if confirm is None else as_integer(confirm, "confirm")
    least = 0 if proved else 1
    if least == len(moduli):
        raise ValueError("rational_reconstruct takes both bounds or two moduli, got 1 modulus")
    if not least <= extra < len(moduli):
        raise ValueError(
            f"confirm must be from {least} to {len(moduli) - 1}, for there are {len(moduli)} moduli"
            f"{'' if proved else ' and not both bounds'}, got {abbreviate(extra)}"
        )
    used = math.prod(moduli[: len(moduli) - extra])
    half = (used - 1) // 2
    if n is None:
        n = math.isqrt(half) if d is None else half // d
    if d is None:
        d = half // n if n else max(half, 1)
    if n * d > half or not d or (not n and numerator is None):
        raise ValueError(
            "2 * numerator_bound * denominator_bound must be less than the product of the moduli that find "
            f"fractions, of {used.bit_length()} bits; take more moduli or lower bounds"
        )
    return reconstruction.Limits(n, d, used, math.prod(moduli)), None if proved else extra


def _checked_bound(bound: Any, name: str, least: int) -> int | None:
    if bound is None:
        return None
    value = as_integer(bound, name)
    if value < least:
        raise ValueError(must(name, f"be at least {least}, got {abbreviate(value)}"))
    return value


def _fractions(
    words: Array,
    *,
    moduli: ModuliSet,
    limits: tuple[int, ...],
    common: tuple[int, ...],
    order: tuple[int, ...],
    place: Place,
) -> NDArray[np.object_]:
    def index_of(row: int, k: int) -> tuple[int, ...]:
        moved = *index_at(row, words.shape[1:-1], place), *map(int, np.unravel_index(k, common or (1,)))
        index = [0] * len(order)
        for axis, i in zip(order, moved, strict=False):
            index[axis] = i
        return tuple(index)

    return reconstruction.fractions(words, moduli, reconstruction.Limits(*limits), index_of)
