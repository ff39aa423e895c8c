"""Number systems of field elements: their base, and elements of prime fields, of 32 bits and of 64."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, is_any, kernels_of
from rnsdask.constants import forward_constants, progressions, wide_forward_constants
from rnsdask.core.errors import RNSOverflowError, abbreviate, brief
from rnsdask.core.layout import as_matrix, check_residue_array
from rnsdask.core.moduli import LIMB_BITS, MODULUS_MAX, ModuliSet, as_bool, as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import ALONE, Locate
from rnsdask.core.primes import is_prime, root_of_unity
from rnsdask.core.stored_fields import read_flag, read_list
from rnsdask.core.table import (
    FERMAT_FIELDS_TABLE,
    INTERVAL_RNS_TABLE,
    POSITIONAL_TABLE,
    PRIME_FIELDS_TABLE,
    RNS_TABLE,
    WIDE_PRIME_FIELDS_TABLE,
)
from rnsdask.core.ways import Conversion, Conversions, Message, Way, must, with_ways
from rnsdask.core.wide_moduli import WIDE_BITS, WideModuli
from rnsdask.rns import foreign
from rnsdask.rns.blocks import column_of
from rnsdask.rns.convert import (
    as_python_ints,
    flat_values,
    ints_to_limbs,
    ints_to_residues,
    limbs_to_ints,
    residues_to_ints,
    to_limbs,
)
from rnsdask.rns.random import random_residues
from rnsdask.rns.system import RNS

if TYPE_CHECKING:
    from rnsdask.arrays.field_array import FieldArray

# Numbers that are converted together: their limbs are in memory in addition to the words.
_BLOCK = 2**16


class FiniteFields(NumberSystem):
    """Elements of one finite field or of several at once: :class:`.PrimeFields` or :class:`.FermatField`.

    Every integer stands for an element, and every result is an element, so nothing is out of range.
    """

    array_type: ClassVar[type["FieldArray"]]
    lacks: ClassVar[str] = "elements of fields have no order, sign or size"
    ways_out: ClassVar[Mapping[str, Message]] = {
        RNS_TABLE: Message(Way.INTEGERS, " makes integers, which have"),
        POSITIONAL_TABLE: Message(Way.INTEGERS_AS_LIMBS, " makes limbs, which have"),
    }
    conversions: ClassVar[Mapping[str, Conversion]] = {
        RNS_TABLE: Conversion.LIFT,
        INTERVAL_RNS_TABLE: Conversion.INTERVALS_OF_ELEMENTS,
        POSITIONAL_TABLE: Conversion.LIMBS_OF_ELEMENTS,
        PRIME_FIELDS_TABLE: Conversion.FIELDS_OF_ELEMENTS,
        WIDE_PRIME_FIELDS_TABLE: Conversion.FIELDS_OF_ELEMENTS,
        FERMAT_FIELDS_TABLE: Conversion.FERMAT_FIELD_OF_ELEMENTS,
    }
    overflows: ClassVar[bool] = False
    number_is: ClassVar[str] = "element"
    numbers_are: ClassVar[str] = "elements"
    way_to_residues: ClassVar[Message] = Message(Way.INTEGERS_OF_STORE, " makes integers")

    def mismatch(self, other: Any) -> str:
        """Text of the error for elements of two different fields."""
        return with_ways(
            f"operands are of different fields: {self!r} and {other!r}",
            Conversions((self.conversions[self.table_name],)),
        )

    @property
    @abstractmethod
    def primes(self) -> tuple[int, ...]:
        """The primes, each the number of elements of a field."""

    @abstractmethod
    def check_divisor(self, value: int) -> None:
        """Raise ZeroDivisionError if the element that an integer stands for is 0 in a field."""

    @abstractmethod
    def reciprocal(self, value: int) -> int:
        """Integer that stands for the inverse of a value's element; ZeroDivisionError if that is 0."""

    @abstractmethod
    def roots(self, length: SupportsIndex) -> tuple[int, ...]:
        """Primitive roots of unity of one order, one for each field; ValueError if a field lacks it."""

    def overflow_error(self, value: int, index: int) -> RNSOverflowError:
        """Never called, because every result in a field is an element."""
        raise AssertionError(f"{value} at {index} is an element of a field")


@dataclass(frozen=True, init=False, repr=False)
class PrimeFields(FiniteFields):
    """Elements of n prime fields at once: word i is an element of the integers modulo ``primes[i]``.

    Read as one integer, an element is the one from 0 to M - 1 with these residues, where M is the product of
    the primes. Any other integer with the same residues stands for it too. Words are uint32 if all primes are
    below 2**32, else uint64.

    Parameters
    ----------
    primes : iterable of int
        One or more different primes from 2 to 2**64, in any order; a :class:`.ModuliSet` too.

    Raises
    ------
    TypeError
        If one is no integer.
    ValueError
        If the iterable is empty, or a number is not a prime or appears twice; the message names it.
    """

    table_name: ClassVar[str] = PRIME_FIELDS_TABLE
    stored_as: ClassVar[str] = "prime-fields"
    required_fields: ClassVar[tuple[str, ...] | None] = ("moduli", "signed", "bound")

    moduli: ModuliSet

    def __new__(cls, primes: Iterable[SupportsIndex]) -> "PrimeFields":
        """Check the primes, and return fields of the width that they need."""
        if not isinstance(primes, Iterable):
            raise TypeError(must("primes", f"be an iterable of integers, got {type(primes).__name__}"))
        values = tuple(as_integer(p, f"prime at position {i}") for i, p in enumerate(primes))
        for i, p in enumerate(values):
            if not 2 <= p < 2**WIDE_BITS:
                raise ValueError(
                    f"{abbreviate(p)} (position {i}) is out of bounds: primes are from 2 to 2**64"
                )
            if not is_prime(p):
                raise ValueError(f"{p} (position {i}) is not a prime, so it makes no field")
        if not values:
            raise ValueError("prime fields need at least one prime, got none")
        if len(set(values)) < len(values):
            twice = next(p for p, count in Counter(values).items() if count > 1)
            raise ValueError(f"the prime {twice} is given more than once")
        return fields_of(WideModuli(values) if max(values) > MODULUS_MAX else ModuliSet(values))

    def mismatch(self, other: "PrimeFields") -> str:
        """Text of the error for elements of other fields, with both sets of primes."""
        return with_ways(
            f"operands have different moduli sets: {self.moduli!r} and {other.moduli!r}",
            Conversions((Conversion.FIELDS_OF_ELEMENTS,)),
        )

    def check_divisor(self, value: int) -> None:
        """Raise ZeroDivisionError if a prime divides an integer, naming the first."""
        for p in self.moduli:
            if value % p == 0:
                raise ZeroDivisionError(f"division by {abbreviate(value)}, which is 0 modulo {p}")

    def reciprocal(self, value: int) -> int:
        """The inverse of an integer modulo M; an error as of :meth:`check_divisor`."""
        self.check_divisor(value)
        return int(gmpy2.invert(value, self.moduli.product))

    @property
    def primes(self) -> tuple[int, ...]:
        """The primes, each the modulus and the number of elements of a field."""
        return self.moduli.moduli

    def roots(self, length: SupportsIndex, minimal: bool = False) -> tuple[int, ...]:
        """Primitive roots of unity of one order, one for each field.

        The root of order N modulo p is ``x**((p - 1) / N)`` for the least x that gives a primitive one. So if
        N is a power of two, it is the square of the root of order 2N.

        Parameters
        ----------
        length
            The order N, positive: the least power of the root that is 1.
        minimal : bool
            Whether the root is the least of all primitive ones instead, as in SEAL, OpenFHE and HEonGPU; it
            is found among all N powers of one.

        Raises
        ------
        ValueError
            If N does not divide p - 1 for each prime p; the message names the first.
        """
        order = as_integer(length, "length")
        if order < 1:
            raise ValueError(f"length must be at least 1, got {abbreviate(order)}")
        for p in self.moduli:
            if (p - 1) % order:
                raise ValueError(
                    f"the field modulo {p} has no primitive root of unity of order {abbreviate(order)}, "
                    f"which does not divide {p - 1}"
                )
        find = _least_root if minimal else root_of_unity
        return tuple(find(order, p) for p in self.moduli)

    @property
    def rows(self) -> int:
        """Number of residues of an element: one for each field."""
        return len(self.moduli)

    @cached_property
    def value_range(self) -> tuple[int, int]:
        """Least and greatest integer that elements are read as: 0 and M - 1."""
        return self.moduli.value_range()

    def encode(self, values: Any) -> NDArray[np.uint32]:
        """Convert any integers that :func:`.ints_to_residues` takes to residues (n, *shape)."""
        flat, shape = flat_values(values)
        if isinstance(flat, np.ndarray):  # of a machine type, into which each prime fits as a 64-bit integer
            wide = flat.astype(np.int64 if flat.dtype.kind == "i" else np.uint64)
            rows = [wide % wide.dtype.type(p) for p in self.moduli]
            return np.array(rows, dtype=np.uint32).reshape(self.rows, *shape)
        flat = as_python_ints(flat, shape)
        product = self.moduli.product
        if flat and not 0 <= min(flat) <= max(flat) < product:
            flat = [value % product for value in flat]
        return ints_to_residues(flat, self.moduli).reshape(self.rows, *shape)

    def decode(self, words: Any) -> NDArray[np.object_]:
        """Convert elements to the integers from 0 to M - 1 that they stand for."""
        return residues_to_ints(words, self.moduli)

    def limbs_of(self, words: Any) -> Any:
        """Limbs of the integers from 0 to M - 1 that elements stand for."""
        return to_limbs(words, self.moduli)

    def words_of_limbs(self, limbs: Any, signed: bool, locate: Locate) -> Any:  # noqa: ARG002  (any is in range)
        """Elements that integers of limbs stand for."""
        residues = np.empty_like(limbs, shape=(self.rows, len(limbs)), order="C")
        constants = forward_constants(self.moduli, limbs.shape[1], bool(signed))
        kernels_of(limbs).limbs_to_residues(limbs, constants, residues)
        return residues

    def random_words(self, shape: tuple[int, ...], generator: "np.random.Generator") -> NDArray[np.uint32]:
        """Draw elements that are uniform in each field, independently."""
        return random_residues(self.moduli, shape, generator)

    def column(self, value: int, ndim: int = 1) -> NDArray[np.uint32]:
        """The element that any integer stands for, as one column with `ndim` axes of length 1."""
        return column_of(value, self.moduli, ndim)

    def check_words(self, words: Any) -> None:
        """Check the type and the shape of an array of residues: :func:`.check_residue_array`."""
        check_residue_array(words, self.moduli)

    @property
    def residue_moduli(self) -> ModuliSet:
        """The primes."""
        return self.moduli

    @cached_property
    def ring(self) -> RNS:
        """The integers modulo M as residues, whose sums and products are those of elements."""
        return RNS(self.moduli)

    def same_numbers(self, other: NumberSystem) -> bool:
        """Whether the primes are the same, in the same order."""
        return isinstance(other, PrimeFields) and self.moduli == other.moduli

    def __reduce__(self) -> Any:
        return fields_of, (self.moduli,)  # without the tests of the primes

    def __dask_tokenize__(self) -> Any:
        return "rnsdask.PrimeFields", self.moduli.__dask_tokenize__()

    def __repr__(self) -> str:
        return f"PrimeFields({self})"

    def __str__(self) -> str:
        if self.rows <= 4:
            return str(list(self.moduli))
        narrowest, widest = (p.bit_length() for p in (min(self.moduli), max(self.moduli)))
        width = f"{widest}" if narrowest == widest else f"{narrowest} to {widest}"
        return f"{self.rows} primes of {width} bits"

    def details(self) -> dict[str, str]:
        """The primes."""
        return {"Primes": str(self)}

    # ---- in stores and on the command line ----------------------------------------------------------------

    def stored_fields(self) -> dict[str, Any]:
        """The primes as moduli, without a sign or a bound."""
        return {"moduli": list(self.moduli), "signed": False, "bound": None}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> "PrimeFields":
        """Return the fields of the stored primes, of either width."""
        primes = read_list(stored, "moduli")
        if read_flag(stored, "signed") or stored["bound"] is not None:
            raise ValueError("elements of fields have no sign and no bound: signed must be false, bound null")
        return PrimeFields(primes)

    def summary(self) -> dict[str, str]:
        """Primes and range."""
        return {"primes": str(self), "range": "elements of prime fields, 0 to p-1 in each"}

    def facts(self) -> dict[str, Any]:
        """Bits of the product of the primes, and the primes as moduli."""
        return {"bits": self.moduli.bits, "moduli": list(self.moduli)}


@dataclass(frozen=True, init=False, repr=False)
class WidePrimeFields(PrimeFields, has_own_stores=False):
    """:class:`PrimeFields` of which a prime is beyond 2**32: words are uint64."""

    table_name: ClassVar[str] = WIDE_PRIME_FIELDS_TABLE
    words_are = "residues"
    mismatch = FiniteFields.mismatch  # WideModuli do not show their moduli

    moduli: WideModuli  # type: ignore[assignment]  # these fields have another table and other kernels

    @property
    def word_dtype(self) -> np.dtype[Any]:
        """uint64."""
        return np.dtype(np.uint64)

    @property
    def residue_moduli(self) -> None:  # type: ignore[override]
        """None: kernels for residues of 32 bits take none of these."""

    @cached_property
    def value_range(self) -> tuple[int, int]:
        """Least and greatest integer that elements are read as: 0 and M - 1."""
        return self.moduli.value_range(False)

    @cached_property
    def integers(self) -> RNS:
        """Residues of up to 32 bits for the integers from 0 to M - 1."""
        return foreign.system_of(self.moduli, False, None)

    def encode(self, values: Any) -> NDArray[Any]:
        """Convert any integers that :func:`.ints_to_residues` takes to residues (n, *shape)."""
        flat, shape = flat_values(values)
        if isinstance(flat, np.ndarray):
            return _residues_of_words(flat, self.primes).reshape(self.rows, *shape)
        flat, product = as_python_ints(flat, shape), self.moduli.product
        if flat and not 0 <= min(flat) <= max(flat) < product:
            flat = [value % product for value in flat]
        words = np.empty((self.rows, len(flat)), dtype=np.uint64)
        limb_count = -(-product.bit_length() // LIMB_BITS)
        for first in range(0, len(flat), _BLOCK):
            block = slice(first, first + _BLOCK)
            words[:, block] = self.words_of_limbs(ints_to_limbs(flat[block], limb_count), False, int)
        return words.reshape(self.rows, *shape)

    def decode(self, words: Any) -> NDArray[np.object_]:
        """Convert elements to the integers from 0 to M - 1 that they stand for."""
        self.check_words(words)
        matrix = as_matrix(words)
        values = np.empty(matrix.shape[1], dtype=object)
        for first in range(0, len(values), _BLOCK):
            block = slice(first, first + _BLOCK)
            values[block] = limbs_to_ints(self.limbs_of(matrix[:, block]))
        return values.reshape(words.shape[1:])

    def limbs_of(self, words: Any) -> Any:
        """Limbs of the integers from 0 to M - 1 that elements stand for."""
        if self.rows == 1:
            return np.asarray(words[0], order="C", like=words).view(np.uint32).reshape(-1, 2)
        options: dict[str, Any] = {"system": self.integers, "trusted": True, "place": ALONE}
        residues = foreign.words_of_residues(words, moduli=self.moduli, **options)
        return to_limbs(residues, self.integers.moduli)

    def words_of_limbs(self, limbs: Any, signed: bool, locate: Locate) -> Any:  # noqa: ARG002  (any is in range)
        """Elements that integers of limbs stand for."""
        constants = wide_forward_constants(self.moduli, limbs.shape[1], bool(signed))
        return kernels_of(limbs).limbs_to_wide_residues(limbs, constants)

    def random_words(self, shape: tuple[int, ...], generator: "np.random.Generator") -> NDArray[Any]:
        """Draw elements that are uniform in each field, independently."""
        rows = [generator.integers(0, p, size=shape, dtype=np.uint64) for p in self.primes]
        return np.array(rows, dtype=np.uint64).reshape(self.rows, *shape)

    def column(self, value: int, ndim: int = 1) -> NDArray[Any]:
        """The element that any integer stands for, as one column with `ndim` axes of length 1."""
        return np.array([value % p for p in self.primes], dtype=np.uint64).reshape(-1, *(1,) * ndim)

    def check_words(self, words: Any) -> None:
        """Check the type and the shape of an array of residues."""
        NumberSystem.check_words(self, words)

    def first_invalid(self, words: Array) -> int | None:
        """Flat index of the first element (n, *shape) with a residue not below its prime, or None."""
        invalid = np.zeros_like(words[0], dtype=np.bool_)
        for row, p in zip(words, self.primes, strict=True):
            invalid |= row > np.uint64(p - 1)
        return int(invalid.argmax()) if is_any(invalid) else None

    def fault_of(self, words: list[int]) -> str:
        """Fault of an element's residues, for an error."""
        row = next(i for i, (word, p) in enumerate(zip(words, self.primes, strict=True)) if word >= p)
        return f"has the residue {words[row]}, which is not below its prime {self.primes[row]} (row {row})"


@lru_cache(4096)
def _least_root(order: int, p: int) -> int:
    """The least primitive root of unity of an order modulo p."""
    powers = progressions([1], [root_of_unity(order, p)], order, [p])[0]
    return int(powers[np.gcd(np.arange(order), order) == 1].min())


def _residues_of_words(words: NDArray[Any], primes: tuple[int, ...]) -> NDArray[np.uint64]:
    """Residues (n, N) of machine integers (N,)."""
    is_signed = words.dtype.kind == "i"
    sizes = words.astype(np.int64).view(np.uint64) if is_signed else words.astype(np.uint64)
    negative = words < 0
    sizes = np.where(negative, np.uint64(0) - sizes, sizes)  # magnitudes
    residues = np.empty((len(primes), len(words)), dtype=np.uint64)
    for row, p in zip(residues, primes, strict=True):
        np.remainder(sizes, np.uint64(p), out=row)
        np.subtract(np.uint64(p), row, out=row, where=negative & (row != 0))
    return residues


def prime_fields(primes: PrimeFields | Iterable[SupportsIndex]) -> PrimeFields:
    """Fields of primes, or those that are given."""
    return primes if isinstance(primes, PrimeFields) else PrimeFields(primes)


def check_prime_fields(name: str, system: NumberSystem) -> None:
    """Raise TypeError, for a function of a name, unless elements are of prime fields."""
    if not isinstance(system, PrimeFields):
        raise TypeError(f"{name} takes elements of PrimeFields, got {system!r}")


def centring_offset(product: int, signed: bool, half: str | None) -> int:
    """Number of elements, of `product` ones, that are read as negative: the integers begin at minus it.

    Raises the errors of :meth:`.FieldArray.lift` for its arguments.
    """
    signed = as_bool(signed, "signed")
    if half not in (None, "up", "down"):
        raise ValueError(must("half", f"be 'up' or 'down', got {brief(half)}"))
    if half is not None and not signed:
        raise ValueError("half= is for signed=True: integers from 0 to M - 1 have no half")
    return (product + {None: 0, "up": -1, "down": 1}[half]) // 2 if signed else 0


def fields_of(moduli: ModuliSet | WideModuli) -> PrimeFields:
    """Fields modulo integers that are known to be primes, without the long test of thousands."""
    fields = object.__new__(PrimeFields if isinstance(moduli, ModuliSet) else WidePrimeFields)
    object.__setattr__(fields, "moduli", moduli)
    return fields
