"""Number systems: what the words of a number mean."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, replace
from importlib.metadata import entry_points
from itertools import chain, islice
from pkgutil import resolve_name
from typing import Any, ClassVar, ParamSpec, Self, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import NumberError, RNSOverflowError, abbreviate, brief, out_of_range
from rnsdask.core.moduli import ModuliSet, as_integer
from rnsdask.core.place import Locate
from rnsdask.core.rows import Row
from rnsdask.core.table import Table, table_at
from rnsdask.core.ways import Conversion, Message, Setting, Way, with_ways
from rnsdask.core.wide_moduli import WideModuli

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="NumberSystem")

_LIMB_BITS = 32

ENTRY_POINTS = "rnsdask.number_systems"
"""Entry point group in which packages declare classes of arrays, each by its system's name in stores."""

RESIDUES = "rns"
"""Name in stores of the system that holds integers as residues."""

_OWN = {
    RESIDUES: "rnsdask.rns.system:RNS",
    "interval-rns": "rnsdask.interval_rns.system:IntervalRNS",
    "positional": "rnsdask.positional.system:Positional",
    "prime-fields": "rnsdask.fields.system:PrimeFields",
    "fermat-field": "rnsdask.fields.fermat_field:FermatField",
}
"""Modules and classes of the package's own systems, by their names in stores."""

_IMPORTED: dict[str, type["NumberSystem"]] = {}
"""Classes of systems by their names in stores, for those that this process has imported."""


class NumberSystem(ABC):
    """How integers are written as rows of machine words: a frozen value, hashable and picklable.

    An array of numbers is an array of words, ``(rows, *shape)``, and its system. Operations ask the system.
    Two operands fit together if :meth:`same_numbers` of their systems says so.
    """

    array_type: ClassVar[Any]
    """The array class of the system, which registers itself here."""

    range_kind: str = ""
    """Name of the range in errors, such as "signed"."""

    words_are: str = "words"
    """Name of the words in errors."""

    stored_as: ClassVar[str]
    """Name of the class's systems in stores and on the command line; by default ``module.Class``."""

    required_fields: ClassVar[tuple[str, ...] | None] = None
    """Names of the :meth:`stored_fields` that every store has, in the order that its checksum covers.

    None means all fields of a store, in alphabetical order.
    """

    number_is: ClassVar[str] = "number"
    numbers_are: ClassVar[str] = "integers"
    """Singular and plural name of a number, for messages and ``rnsdask info``."""

    way_to_residues: ClassVar[Message] = Message(Way.LIMBS, " makes limbs of them")
    """Way to residues of stored numbers, for jobs that take only residues."""

    table_name: ClassVar[str] = "rnsdask.core.generic:INTEGERS"
    """Name of the table of rows, such as ``rnsdask.tables.residues:TABLE``, which may import this value.

    Without one, the system has the rows that :meth:`encode` and :meth:`decode` suffice for.
    """

    lacks: ClassVar[str] = "it has no such operation"
    """Reason why the table lacks an operation, for errors."""

    ways_out: ClassVar[Mapping[str, Message]] = {}
    """Ways to other systems by the names of their tables, for errors; the shortest way first."""

    conversions: ClassVar[Mapping[str, Conversion]] = {}
    """Conversions to other systems by the names of their tables, for errors of arrays that do not mix."""

    wider: ClassVar[str] = "no other integers have words"
    """Way to hold an integer that is out of range, for errors of operations with arrays."""

    overflows: ClassVar[bool] = True
    """Whether results may be out of the system's range."""

    extends: ClassVar[bool] = False
    """Whether such systems know bounds, and can hold operands and results in a system of more words."""

    arrays_beside: ClassVar[int] = 0
    """Arrays of a chunk's size that operations hold in addition to their :class:`.Footprint`."""

    bound: int | None = None
    """Greatest magnitude of a number, if a bound is known."""

    source: WideModuli | None = None
    """Moduli beyond 2**32 that the numbers were given under; the system's moduli replace them."""

    grows: bool = False
    """Whether results take more moduli as needed, instead of overflowing."""

    def __init_subclass__(cls, *, has_own_stores: bool = True, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not has_own_stores:  # its base reads and writes them
            return
        if "stored_as" not in cls.__dict__:
            cls.stored_as = f"{cls.__module__}.{cls.__qualname__}"
        _IMPORTED[cls.stored_as] = cls

    @property
    def table(self) -> Table:
        """Rows of the system by name."""
        return table_at(self.table_name)

    def apply(self, row: Row[P, R], *blocks: P.args, **options: P.kwargs) -> R:
        """Apply a row to chunks of words, (rows, *shape) each."""
        entry = self.table.get(row.name)
        if entry is None:
            raise TypeError(Message(f"{row.name} takes no numbers of {self!r}: ", self.lacking(row)))
        result: R = entry.call(*blocks, system=self, **options)
        return result

    def lacking(self, row: Row[..., Any]) -> Message:
        """Return an error's text for an operation that the table lacks, with the way to one that has it."""
        ways = (way for table, way in self.ways_out.items() if row.name in table_at(table))
        return with_ways(self.lacks, *islice(ways, 1))

    @property
    def word_dtype(self) -> np.dtype[Any]:
        """NumPy type of a word."""
        return np.dtype(np.uint32)

    @property
    @abstractmethod
    def rows(self) -> int:
        """Number of words of a number."""

    @property
    def residue_moduli(self) -> ModuliSet | None:
        """Moduli of the residues among the words, or None if the words are not residues."""
        return None

    @property
    def words32(self) -> int:
        """Number of words of a number in units of 32 bits, which determines the sizes of chunks."""
        return self.rows * self.word_dtype.itemsize // 4

    @property
    @abstractmethod
    def value_range(self) -> tuple[int, int]:
        """Lowest and highest number that the words can hold."""

    @property
    def known_range(self) -> tuple[int, int]:
        """Lowest and highest number that the array may hold, by its range and bound."""
        return self.value_range

    def with_bound(self, bound: int | None) -> Self:  # noqa: ARG002  (for systems that know one)
        """Return the same system with another bound or none, or itself if it knows no bounds."""
        return self

    def holding(self, *ranges: tuple[int, int]) -> Self:
        """Return the same system with the bound that ranges of numbers imply, if it knows bounds."""
        if not self.extends:
            return self
        low, high = self.value_range
        greatest = max(map(abs, chain.from_iterable(ranges)))
        bound = greatest if greatest < max(-low, high) else None
        return self if bound == self.bound else self.with_bound(bound)

    def factor_layout(self, mode: str) -> tuple[int, np.dtype[Any]]:  # noqa: ARG002
        """Number of rows and type of the factors of products along axes, by the mode of overflow."""
        return 1, np.dtype(object)

    def wrapped(self, value: int) -> int:
        """Reduce any integer into the range, for systems whose results wrap."""
        lowest, highest = self.value_range
        return lowest + (value - lowest) % (highest - lowest + 1)

    def wide_system(self, bits: int | None) -> Any:  # noqa: ARG002  (without residues)
        """Return a signed RNS for numbers of `bits` bits, or by default for all numbers of this system.

        None for a system none of whose rows are computed through residues of more moduli.
        """
        return None

    def exact_system(self, row: Row[..., Any], other: Any) -> Any:  # noqa: ARG002  (where words have one size)
        """Return a system that holds all exact results of a row on operands of two systems, or None."""
        return None

    def random_words(self, shape: tuple[int, ...], generator: "np.random.Generator") -> NDArray[Any]:  # noqa: ARG002
        """Draw words (rows, *shape) of numbers uniform in the range, or within the bound, in NumPy.

        TypeError if the system has no random numbers.
        """
        raise TypeError(f"random numbers are those of an RNS, a Positional or fields, got {self!r}")

    def bound_of(self, integers: Any) -> int | None:  # noqa: ARG002  (for systems that know bounds)
        """Return the greatest magnitude of integers from :func:`.flat_values`, if it is useful as a bound."""
        return None

    def bound_of_products(self, terms: int) -> int | None:  # noqa: ARG002  (for systems that know bounds)
        """Return a bound of the products of `terms` numbers if it proves them in range, else None."""
        return None

    def for_range(self, lowest: int, highest: int, *, signed: bool | None = None) -> Any:  # noqa: ARG002
        """Return the system for numbers of a range in operations with this one: itself, unless it grows.

        A system that grows takes the fewest moduli. It has a sign if `signed` says so (by default as in this
        one) or negative numbers require it.
        """
        return self

    def identifying_words(self, words: Any) -> Any:
        """Return the words (rows or more, *shape) in which unequal numbers differ, maybe as a view."""
        return words[: self.rows]

    def sufficient(self, words: Any) -> tuple["NumberSystem", Any]:
        """Return a system and words (rows, *shape) of the same numbers, as short as keeps them distinct."""
        return self, words

    @abstractmethod
    def encode(self, values: Any) -> NDArray[Any]:
        """Write integers as words, ``(rows, *shape)``.

        TypeError for a value that is not an integer, ValueError for one out of range; both name its position.
        """

    @abstractmethod
    def decode(self, words: Any) -> NDArray[np.object_]:
        """Convert words of NumPy or CuPy to Python ints, an object array of shape ``shape``."""

    def limbs_of(self, words: Any) -> Any:
        """Convert words (rows, N) of NumPy or CuPy to 32-bit limbs, uint32 (N, L), least significant first.

        Limbs are in two's complement if :attr:`is_signed`; L suffices for every number of the range.
        """
        count = max(end.bit_length() for end in self.value_range) // _LIMB_BITS + 1
        size = count * _LIMB_BITS // 8
        data = b"".join(value.to_bytes(size, "little", signed=self.is_signed) for value in self.decode(words))
        return np.asarray(np.frombuffer(data, "<u4").astype(np.uint32).reshape(-1, count), like=words)

    def words_of_limbs(self, limbs: Any, signed: bool, locate: Locate) -> Any:
        """Convert contiguous limbs (N, L), in two's complement if `signed`, to words (rows, N).

        ValueError if a number is out of range; it names the first one, at the index that `locate` gives.
        """
        host = limbs if isinstance(limbs, np.ndarray) else limbs.get()
        numbers = [int.from_bytes(row.astype("<u4").tobytes(), "little", signed=signed) for row in host]
        lowest, highest = self.value_range
        for i, value in enumerate(numbers):
            if not lowest <= value <= highest:
                raise self.out_of_range(f"value {abbreviate(value)} at flat index {locate(i)}", repr(self))
        return np.asarray(self.encode(numbers), like=limbs)

    @property
    def is_signed(self) -> bool:
        """Whether numbers may be negative."""
        return self.value_range[0] < 0

    def check_words(self, words: Any) -> None:
        """Check the type and shape of a NumPy, CuPy or Dask array of words, not its contents.

        It must have the type :attr:`word_dtype`, a row for each word and at least one axis of numbers, and
        must not be masked.
        """
        try:
            dtype, shape, ndim = words.dtype, words.shape, words.ndim
        except AttributeError:
            kind = type(words).__name__
            raise TypeError(f"{self.words_are} must be a NumPy, CuPy or Dask array, got {kind}") from None
        if dtype != self.word_dtype:
            raise TypeError(f"{self.words_are} must have dtype {self.word_dtype}, got {dtype}")
        if isinstance(words, np.ma.MaskedArray) and np.ma.is_masked(words):
            raise ValueError(f"{self.words_are} are masked; fill them first")
        if ndim < 2 or shape[0] != self.rows:
            raise ValueError(
                f"{self.words_are} of {self!r} must have {self.rows} rows (axis 0) and at least one axis of "
                f"numbers, got shape {shape}"
            )

    def same_numbers(self, other: "NumberSystem") -> bool:
        """Whether words of the other system mean the same numbers; their bounds may differ."""
        return self == other

    def mismatch(self, other: Any) -> str:
        """Return an error's text for operands in this system and in another one of its kind."""
        return f"operands are of different number systems: {self!r} and {other!r}"

    def overflow_error(self, value: int, index: int) -> RNSOverflowError:
        """Make the error for an exact result out of range, at a flat index of the array."""
        bits = max(end.bit_length() for end in self.value_range) + self.is_signed
        return RNSOverflowError.of_value(value, index, bits, self.is_signed)

    def check_wraps(self) -> None:
        """Raise ValueError if results would wrap modulo moduli that the user did not choose."""
        if self.source is not None:
            raise ValueError(
                Message(
                    Setting("overflow", "wrap"),
                    f" would take results modulo the moduli that replaced the {self.source!r}, under which "
                    "residues were given; ",
                    Way.EXTEND_FIRST,
                    ", and then ",
                    Way.RESIDUES_OF_ANY,
                    " takes them modulo any others",
                )
            )

    @abstractmethod
    def __dask_tokenize__(self) -> Any:
        """Return the system's identity for Dask's tokens; long numbers become short text."""

    @abstractmethod
    def __str__(self) -> str:
        """Return the system's text in an array's repr."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def column(self, value: int, ndim: int = 1) -> NDArray[Any]:
        """Return the words of one integer as an operand: (rows, 1, ..., 1) with `ndim` axes of length 1."""
        lowest, highest = self.value_range
        if not lowest <= value <= highest:
            raise NumberError(with_ways(self.out_of_range(f"operand {abbreviate(value)}"), self.wider))
        return self._encode_one(value).reshape(-1, *(1,) * ndim)

    def _encode_one(self, value: int) -> NDArray[Any]:
        return self.encode([value])

    def details(self) -> dict[str, str]:
        """Return the system's properties for people: names and values of a few words."""
        return {}

    # ---- in stores and on the command line ----------------------------------------------------------------

    def stored_fields(self) -> dict[str, Any]:
        """Return the fields of a store's attribute that identify the system, as JSON values.

        By default these are the dataclass's fields.
        """
        return {field.name: getattr(self, field.name) for field in _fields_of(type(self))}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> Self:
        """Return the system that fields of a store's attribute describe; the fields are not trusted.

        The :attr:`required_fields` are known to be present. TypeError or ValueError, which names the field,
        if there is no such system.
        """
        known = {field.name for field in _fields_of(cls)}
        if unknown := sorted(stored.keys() - known):
            raise ValueError(f"a system {cls.stored_as!r} has no {', '.join(unknown)}")
        return cls(**stored)

    def with_exact_bound(self, bound: SupportsIndex) -> Self:
        """Return the system with exactly this bound: ValueError if it is beyond the range."""
        value, greatest = as_integer(bound, "bound"), max(map(abs, self.value_range))
        if not 0 <= value <= greatest:
            raise ValueError(f"bound must be from 0 to {abbreviate(greatest)}, got {abbreviate(value)}")
        bounded: Self = self.with_bound(value)
        return bounded

    def first_invalid(self, words: Any) -> int | None:
        """Return the flat index of the first number with invalid words (rows, *shape), or None.

        Residues are known to be below their moduli. By default words are valid if :meth:`encode` returns them
        for the value that :meth:`decode` reads.
        """
        if self.residue_moduli is not None and self.rows == len(self.residue_moduli):
            return None
        columns = words.reshape(self.rows, -1)
        if self._are_encoded(columns):
            return None
        return next(i for i in range(columns.shape[1]) if not self._are_encoded(columns[:, i : i + 1]))

    def _are_encoded(self, columns: Any) -> bool:
        try:
            return bool((np.asarray(self.encode(self.decode(columns)), like=columns) == columns).all())
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return False

    def fault_of(self, words: list[int]) -> str:
        """Describe why the words of a number are invalid, as in ``has the sign 2``."""
        return f"has the {self.words_are} {brief(words)}, which no {self.number_is} has"

    def first_contradiction(self, words: Any) -> tuple[int, str] | None:  # noqa: ARG002  (for systems that say more)
        """Return the flat index of the first number that contradicts the system, with a description, or None.

        The words are valid, but the number is beyond the bound, or its words contradict one another, as in
        ``is 7, beyond 5``.
        """
        return None

    def summary(self) -> dict[str, str]:
        """Lines of ``rnsdask info`` on the system: names and texts."""
        return {"system": repr(self)}

    def facts(self) -> dict[str, Any]:
        """Fields of ``rnsdask info --json`` on the system."""
        return {"system": self.stored_as, **self.stored_fields()}

    @property
    def wraps_modulo(self) -> str:
        """Modulus of results that wrap, as messages call it."""
        lowest, highest = self.value_range
        return abbreviate(highest - lowest + 1)

    def out_of_range(self, what: str, owner: str = "the moduli set") -> ValueError:
        """Make the error for a number outside the range, named as in ``operand 5``."""
        return out_of_range(what, self.value_range, self.range_kind, owner)


def _fields_of(system_type: type[NumberSystem]) -> list[Any]:
    return [field for field in fields(system_type) if field.init]  # type: ignore[arg-type]  # a dataclass


def system_type(name: str) -> type[NumberSystem]:
    """Find the class of systems by its name in stores.

    It may be the package's own, imported by this process, or provided by an entry point of the group
    :data:`ENTRY_POINTS`. LookupError if there is none; the message names the way to get it.
    """
    if name not in _IMPORTED and name in _OWN:
        resolve_name(_OWN[name])
    if name not in _IMPORTED:
        for entry_point in entry_points(group=ENTRY_POINTS, name=name):
            entry_point.load()
    if name not in _IMPORTED:
        raise LookupError(
            f"this process knows no number system {brief(name)}; import the module that defines it, or "
            f"install its package, with an entry point of the group {ENTRY_POINTS}; known are "
            f"{', '.join(sorted(_OWN))}"
        )
    return _IMPORTED[name]


def with_source_of(system: S, *others: NumberSystem) -> S:
    """Return the system with the first `source` that one of the given systems has, if any."""
    if system.grows and not all(other.grows for other in others):
        system = replace(system, grows=False)  # type: ignore[type-var]  # a dataclass
    for other in others:
        if system.source is None and other.source is not None:
            return replace(system, source=other.source)  # type: ignore[type-var]  # a dataclass
    return system


def check_source(source: WideModuli | None) -> None:
    """Raise TypeError if a system's `source` is of another type."""
    if not isinstance(source, WideModuli | None):
        raise TypeError(f"source must be WideModuli or None, got {type(source).__name__}")
