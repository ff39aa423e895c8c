"""Number systems: what the words of a number mean."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import RNSOverflowError, abbreviate, out_of_range
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Locate
from rnsdask.core.rows import Row
from rnsdask.core.table import Table, table_at
from rnsdask.core.wide_moduli import WideModuli

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="NumberSystem")

_LIMB_BITS = 32


class NumberSystem(ABC):
    """How integers are written as rows of machine words: a frozen value, hashable and picklable.

    An array of numbers is an array of words, ``(rows, *shape)``, and its system. Operations ask the system;
    two operands go together when their systems have :meth:`same_numbers`.
    """

    array_type: ClassVar[Any]
    """The class of arrays of the system, which puts itself here."""

    range_kind: str = ""
    """Name of the range in errors, such as "signed"."""

    words_are: str = "words"
    """Name of the words in errors."""

    table_name: ClassVar[str] = "rnsdask.core.generic:INTEGERS"
    """Name of the table of rows, such as ``rnsdask.rns.table:TABLE``, which may import this value.

    Without one, the system has all that follows from :meth:`encode` and :meth:`decode`.
    """

    lacks: ClassVar[str] = "it has no such operation"
    """Why the table lacks an operation, as errors say it."""

    ways_out: ClassVar[Mapping[str, str]] = {}
    """Ways to other systems by the names of their tables, as errors say them; the shortest ways first."""

    conversions: ClassVar[str] = ""
    """Conversions between this system and others, as errors name them."""

    wider: ClassVar[str] = "no other integers have words"
    """How to hold an integer that is out of range, as an error beside an array says it."""

    overflows: ClassVar[bool] = True
    """Whether results may be out of range."""

    extends: ClassVar[bool] = False
    """Whether systems of the kind know bounds, and meet and hold results in others of more words."""

    arrays_beside: ClassVar[int] = 0
    """Arrays of a chunk's size that operations hold beside those of :data:`.FOOTPRINTS`."""

    bound: int | None = None
    """Greatest magnitude of a number, where something is known of it."""

    source: WideModuli | None = None
    """Moduli beyond 2**32 that the numbers were given under, and that the system's moduli replace."""

    grows: bool = False
    """Whether results take more moduli where they need them, instead of overflowing."""

    @property
    def table(self) -> Table:
        """The rows of the system, by name."""
        return table_at(self.table_name)

    def apply(self, row: Row[P, R], *blocks: P.args, **options: P.kwargs) -> R:
        """Apply a row to chunks of words, (rows, *shape) each."""
        entry = self.table.get(row.name)
        if entry is None:
            raise TypeError(f"{row.name} takes no numbers of {self!r}: {self.lacking(row)}")
        result: R = entry.call(*blocks, system=self, **options)
        return result

    def lacking(self, row: Row[..., Any]) -> str:
        """Text of an error for an operation that the table lacks, with the way to a system that has it."""
        ways = [way for table, way in self.ways_out.items() if row.name in table_at(table)]
        return "; ".join([self.lacks, *ways[:1]])

    @property
    def word_dtype(self) -> np.dtype[Any]:
        """Type of a word."""
        return np.dtype(np.uint32)

    @property
    @abstractmethod
    def rows(self) -> int:
        """Words of a number."""

    @property
    def residue_moduli(self) -> ModuliSet | None:
        """Moduli of the residues among the words; None where words are anything else."""
        return None

    @property
    def words32(self) -> int:
        """Words of a number in units of 32 bits, from which the sizes of chunks are computed."""
        return self.rows * self.word_dtype.itemsize // 4

    @property
    @abstractmethod
    def value_range(self) -> tuple[int, int]:
        """The lowest and the highest number that the words can hold."""

    @property
    def known_range(self) -> tuple[int, int]:
        """The lowest and the highest number that the array may hold, by its range and bound."""
        return self.value_range

    def with_bound(self, bound: int | None) -> Self:  # noqa: ARG002  (for systems that know one)
        """Return the same system with another bound, or without; itself if it knows none."""
        return self

    def holding(self, *ranges: tuple[int, int]) -> Self:
        """Return the same system with the bound that ranges of numbers give, if it knows one."""
        if not self.extends:
            return self
        low, high = self.value_range
        greatest = max(map(abs, chain.from_iterable(ranges)))
        bound = greatest if greatest < max(-low, high) else None
        return self if bound == self.bound else self.with_bound(bound)

    def factor_layout(self, mode: str) -> tuple[int, np.dtype[Any]]:  # noqa: ARG002
        """Rows and type of factors of products along axes, by the mode of overflow: Python ints."""
        return 1, np.dtype(object)

    def wrapped(self, value: int) -> int:
        """Return the number of the range that stands for any integer, where results wrap."""
        lowest, highest = self.value_range
        return lowest + (value - lowest) % (highest - lowest + 1)

    def wide_system(self, bits: int | None) -> Any:  # noqa: ARG002  (without residues)
        """Return a signed RNS that holds numbers of so many bits, or as long as these; None without one."""
        return None

    def exact_system(self, row: Row[..., Any], other: Any) -> Any:  # noqa: ARG002  (where words have one size)
        """Return the system that holds each result of a row of numbers of two systems, or None."""
        return None

    def identifying_words(self, words: Any) -> Any:
        """Return words that unequal numbers differ in, of words (rows or more, *shape): maybe a view."""
        return words[: self.rows]

    def sufficient(self, words: Any) -> tuple["NumberSystem", Any]:
        """Return a system and words (rows, *shape) of the same numbers, no more than tell them apart."""
        return self, words

    @abstractmethod
    def encode(self, values: Any) -> NDArray[Any]:
        """Write integers as words, ``(rows, *shape)``.

        TypeError or ValueError, with its position, for a value that is no integer, or out of range.
        """

    @abstractmethod
    def decode(self, words: Any) -> NDArray[np.object_]:
        """Read words of NumPy or CuPy as Python ints, an object array of shape ``shape``."""

    def limbs_of(self, words: Any) -> Any:
        """Words (rows, N) of NumPy or CuPy as 32-bit limbs, uint32 (N, L), least significant first.

        In two's complement if :attr:`is_signed`, and as many as hold any number.
        """
        count = max(end.bit_length() for end in self.value_range) // _LIMB_BITS + 1
        size = count * _LIMB_BITS // 8
        data = b"".join(value.to_bytes(size, "little", signed=self.is_signed) for value in self.decode(words))
        return np.asarray(np.frombuffer(data, "<u4").astype(np.uint32).reshape(-1, count), like=words)

    def words_of_limbs(self, limbs: Any, signed: bool, locate: Locate) -> Any:
        """Words (rows, N) of NumPy's or CuPy's contiguous limbs (N, L), in two's complement if `signed`.

        ValueError if a number is out of range; it names the first, and its index as `locate` turns it.
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
        """Check type and shape of a NumPy, CuPy or Dask array of words, not its contents.

        It must have the type :attr:`word_dtype`, a row for each word, and an axis of numbers, and not be
        masked.
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
        """Whether words of the other system mean the same numbers: what is known of their size may differ."""
        return self == other

    def mismatch(self, other: Any) -> str:
        """Text of an error for operands in this system and in another one of its kind."""
        return f"operands are of different number systems: {self!r} and {other!r}"

    def overflow_error(self, value: int, index: int) -> RNSOverflowError:
        """The error of an exact result out of range, at a flat index of the array."""
        bits = max(end.bit_length() for end in self.value_range) + self.is_signed
        return RNSOverflowError.of_value(value, index, bits, self.is_signed)

    def check_wraps(self) -> None:
        """Raise ValueError if wrapping would reduce modulo moduli that the user did not give."""
        if self.source is not None:
            raise ValueError(
                f'overflow="wrap" would take results modulo the moduli that replaced the {self.source!r}, '
                "under which residues were given; x.extend(moduli) to moduli that hold the exact results, "
                'and then to_residues(moduli, overflow="wrap") takes them modulo any others'
            )

    @abstractmethod
    def __dask_tokenize__(self) -> Any:
        """Identity of the system for Dask's tokens; numbers of any length become short text."""

    @abstractmethod
    def __str__(self) -> str:
        """Text of the system in an array's repr."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def column(self, value: int, ndim: int = 1) -> NDArray[Any]:
        """Words of an operand that is one integer, ``(rows, 1, ..., 1)`` with `ndim` axes of length 1."""
        lowest, highest = self.value_range
        if not lowest <= value <= highest:
            raise self.out_of_range(f"operand {abbreviate(value)}")
        return self._encode_one(value).reshape(-1, *(1,) * ndim)

    def _encode_one(self, value: int) -> NDArray[Any]:
        return self.encode([value])

    def details(self) -> dict[str, str]:
        """Properties of the system for people: names and values, a few words each."""
        return {}

    def out_of_range(self, what: str, owner: str = "the moduli set") -> ValueError:
        """The error of a number outside the range, named as in ``operand 5``."""
        return out_of_range(what, self.value_range, self.range_kind, owner)


def with_source_of(system: S, *others: NumberSystem) -> S:
    """The system of numbers of all systems: it has a source if one of them does, the first one's."""
    if system.grows and not all(other.grows for other in others):
        system = replace(system, grows=False)  # type: ignore[type-var]  # a dataclass
    for other in others:
        if system.source is None and other.source is not None:
            return replace(system, source=other.source)  # type: ignore[type-var]  # a dataclass
    return system


def check_source(source: WideModuli | None) -> None:
    """Raise TypeError if the source of a system is not one."""
    if not isinstance(source, WideModuli | None):
        raise TypeError(f"source must be WideModuli or None, got {type(source).__name__}")
