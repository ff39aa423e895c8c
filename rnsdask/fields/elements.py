"""Arithmetic of chunks of field elements, a class for each kind of fields. No Dask here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rnsdask.backend import Array
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate
from rnsdask.fields import arithmetic, ntt
from rnsdask.fields.fermat_arithmetic import FermatElements
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.finite_fields import FiniteFields
from rnsdask.rns.arithmetic import apply
from rnsdask.rns.compare import differ
from rnsdask.rns.matmul import multiply
from rnsdask.rns.products import factors_along
from rnsdask.rns.system import RNS


class Elements(Protocol):
    """Arithmetic of chunks (rows, *shape) of words of elements, on NumPy or CuPy.

    Where chunks broadcast, a NumPy array of one element goes with those of any processor. `locate` turns an
    index of a chunk into the one that an error names; only zeros where there must be none are errors.
    """

    def apply(self, operation: str, blocks: Sequence[Array], /) -> Array:
        """A sum of signed products (:data:`.operations.OPERATIONS`) of chunks, which broadcast."""

    def differ(self, a: Array, b: Array, /) -> Array:
        """Boolean (*shape): where two chunks, which broadcast, have different elements."""

    def inverse(self, words: Array, locate: Locate = ..., /) -> Array:
        """Inverses; ZeroDivisionError if an element has none."""

    def reciprocal(self, value: int, /) -> int:
        """An integer that stands for the inverse of another's element; ZeroDivisionError if it has none."""

    def power(self, words: Array, exponent: int, locate: Locate = ..., /) -> Array:
        """Powers by any integer, a negative one of the inverses; 0**0 is 1."""

    def powers(self, words: Array, exponents: Array, locate: Locate = ..., /) -> Array:
        """Powers by an exponent for each element, machine integers (1, *shape)."""

    def sums_along(self, words: Array, axes: tuple[int, ...], /) -> Array:
        """Elements added along axes of the numbers, which keep length 1."""

    def products_along(self, words: Array, axes: tuple[int, ...], /) -> Array:
        """Elements multiplied along axes of the numbers, which keep length 1."""

    def matmul(self, a: Array, b: Array, /) -> Array:
        """Products of matrices (rows, *batch, I, K) and (rows, *batch, K, J), whose batches broadcast."""

    def transform(self, words: Array, axis: int, inverse: bool, negacyclic: bool, /) -> Array:
        """Number-theoretic transforms along an axis of the numbers, as :func:`rnsdask.ntt` says."""

    def twiddled(self, words: Array, length: int, first: int, inverse: bool, negacyclic: bool, /) -> Array:
        """Contiguous matrices (rows, B, I, K) by the twiddle factors of transforms of a length as matrices.

        Element (i, r) is multiplied as :func:`.twiddle_factors` says of ``(first + i, r)``.
        """


@dataclass(frozen=True)
class PrimeElements:
    """Arithmetic of chunks of elements of prime fields."""

    moduli: ModuliSet

    def apply(self, operation: str, blocks: Sequence[Array]) -> Array:
        return apply(operation, blocks, RNS(self.moduli), "wrap")

    def differ(self, a: Array, b: Array) -> Array:
        return differ(a, b, RNS(self.moduli))

    def inverse(self, words: Array, locate: Locate = int) -> Array:
        return arithmetic.inverse(words, self.moduli, locate)

    def reciprocal(self, value: int) -> int:
        return arithmetic.reciprocal(value, self.moduli)

    def power(self, words: Array, exponent: int, locate: Locate = int) -> Array:
        return arithmetic.power(words, exponent, self.moduli, locate)

    def powers(self, words: Array, exponents: Array, locate: Locate = int) -> Array:
        return arithmetic.powers(words, exponents, self.moduli, locate)

    def sums_along(self, words: Array, axes: tuple[int, ...]) -> Array:
        return arithmetic.sums_along(words, self.moduli, axes)

    def products_along(self, words: Array, axes: tuple[int, ...]) -> Array:
        return factors_along(words, self.moduli, axes)

    def matmul(self, a: Array, b: Array) -> Array:
        return multiply(a, b, self.moduli)

    def transform(self, words: Array, axis: int, inverse: bool, negacyclic: bool) -> Array:
        return ntt.transform(words, self.moduli, axis, inverse, negacyclic)

    def twiddled(self, words: Array, length: int, first: int, inverse: bool, negacyclic: bool) -> Array:
        return ntt.twiddled(words, self.moduli, length, first, inverse, negacyclic)


def elements_of(fields: FiniteFields) -> Any:
    """The arithmetic of elements of some fields: :class:`Elements`, and what only they have."""
    if isinstance(fields, FermatField):
        return FermatElements(fields)
    return PrimeElements(fields.moduli)  # type: ignore[attr-defined]
