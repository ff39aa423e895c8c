"""The number system of signed integers with stored intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import RNSOverflowError
from rnsdask.core.moduli import ModuliSet, check_moduli_set
from rnsdask.core.number_system import NumberSystem, check_source
from rnsdask.core.place import Locate
from rnsdask.core.stored_fields import read_flag, read_moduli, read_source, source_fields
from rnsdask.core.table import (
    FERMAT_FIELDS_TABLE,
    INTERVAL_RNS_TABLE,
    POSITIONAL_TABLE,
    PRIME_FIELDS_TABLE,
    RNS_TABLE,
    WIDE_PRIME_FIELDS_TABLE,
)
from rnsdask.core.ways import Conversion, Kind, Message, Way
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.interval_rns import arithmetic, convert, layout
from rnsdask.interval_rns.convert import columns_of_limbs, limbs_of_columns
from rnsdask.interval_rns.wide_system import wide_system
from rnsdask.rns.convert import flat_values
from rnsdask.rns.system import RNS

if TYPE_CHECKING:
    from rnsdask.arrays.interval_rns_array import IntervalRNSArray


@dataclass(frozen=True, repr=False)
class IntervalRNS(NumberSystem):
    """Signed integers as the residues of their magnitudes, a sign and an interval of X/M: n + 6 words.

    :mod:`rnsdask.interval_rns.layout` defines the words. The range is from ``-(M-1)`` to ``M-1``.

    Parameters
    ----------
    moduli : ModuliSet
        The set of n moduli, whose product is M.
    source : WideModuli, optional
        As in :class:`.RNS`.

    Raises
    ------
    TypeError
        If `moduli` is no ModuliSet, or `source` no WideModuli.
    """

    array_type: ClassVar[type["IntervalRNSArray"]]
    table_name: ClassVar[str] = INTERVAL_RNS_TABLE
    stored_as: ClassVar[str] = "interval-rns"
    required_fields: ClassVar[tuple[str, ...] | None] = ("moduli", "signed", "bound")
    way_to_residues: ClassVar[Message] = Message(Way.RESIDUES, " makes residues of them")
    lacks: ClassVar[str] = "numbers with intervals have no such operation"
    ways_out: ClassVar[Mapping[str, Message]] = {
        RNS_TABLE: Message(Way.RESIDUES_ALONE, " makes ", Kind("RNSArray", "a")),
        POSITIONAL_TABLE: Message(Way.LIMBS, " makes limbs"),
        PRIME_FIELDS_TABLE: Message(Way.FIELDS, " makes elements of fields"),
    }
    conversions: ClassVar[Mapping[str, Conversion]] = {
        RNS_TABLE: Conversion.RESIDUES,
        POSITIONAL_TABLE: Conversion.LIMBS,
        PRIME_FIELDS_TABLE: Conversion.FIELDS,
        WIDE_PRIME_FIELDS_TABLE: Conversion.FIELDS,
        FERMAT_FIELDS_TABLE: Conversion.FERMAT_FIELD,
    }
    wider: ClassVar[Message] = Message(Way.EXTEND, " takes more moduli")
    arrays_beside: ClassVar[int] = 6  # signs, bounds, numbers of either sign, and a wider system

    moduli: ModuliSet
    source: WideModuli | None = None

    def __post_init__(self) -> None:
        check_moduli_set(self.moduli)
        check_source(self.source)

    @property
    def rows(self) -> int:
        """Number of words of a number: its residues and its header."""
        return layout.rows_of(self.moduli)

    @cached_property
    def value_range(self) -> tuple[int, int]:
        """The lowest and the highest number."""
        return 1 - self.moduli.product, self.moduli.product - 1

    def encode(self, values: Any) -> NDArray[np.uint32]:
        """Columns (n + 6, *shape) of integers: :func:`.columns_of_ints`."""
        flat, shape = flat_values(values)
        columns = convert.columns_of_ints(flat, self.moduli)
        return columns.reshape(len(columns), *shape)

    def decode(self, words: Any) -> NDArray[np.object_]:
        """Convert columns to Python ints."""
        ints: NDArray[np.object_] = arithmetic.to_ints(words, self.moduli)
        return ints

    def limbs_of(self, words: Any) -> Any:
        """Convert columns to limbs, in two's complement."""
        return limbs_of_columns(words, self.moduli)

    def words_of_limbs(self, limbs: Any, signed: bool, locate: Locate) -> Any:
        """Convert limbs to columns: :func:`.columns_of_limbs`."""
        return columns_of_limbs(limbs, self.moduli, signed, locate)

    def check_words(self, words: Any) -> None:
        """Check the type and the shape of an array of columns: :func:`.check_columns`."""
        layout.check_columns(words, self.moduli)

    def first_invalid(self, words: Any) -> int | None:
        """Flat index of the first number (n + 6, *shape) with an invalid header, or None.

        Residues are not checked: :func:`.layout.first_invalid`.
        """
        return layout.first_invalid(words, self.moduli)

    def fault_of(self, words: list[int]) -> str:
        """Say what is wrong with the words of a number, as in ``has the sign 2, ...``."""
        column = np.array(words, np.uint32).reshape(-1, 1)
        parts = {name: layout.part_of(column, self.moduli, name)[0] for name in layout.PART_DTYPES}
        parts["sign"] = words[len(self.moduli)]
        values = ", ".join(f"{name} {value}" for name, value in parts.items())
        return f"has a header that no number has: {values}"

    def same_numbers(self, other: NumberSystem) -> bool:
        """Whether the moduli are the same."""
        return isinstance(other, IntervalRNS) and self.moduli == other.moduli

    def mismatch(self, other: "IntervalRNS") -> str:
        """Text of an error for operands in two systems."""
        return Message(
            f"operands have different moduli sets: {self.moduli!r} and {other.moduli!r}; ",
            Way.EXTEND_ALIKE,
            " makes them alike",
        )

    def overflow_error(self, value: int, index: int) -> RNSOverflowError:
        """The error of an exact result out of range, at a flat index of the array."""
        return arithmetic.overflow_error(value, index, self.moduli, self.source)

    def overflow_of_length(
        self, length: int, negative: bool, index: int, at_least: bool = False
    ) -> RNSOverflowError:
        """Overflow error of a result of `length` bits in two's complement, not counting the sign."""
        error = arithmetic.error_type(self.source)
        return error(index, length + 1, self.moduli.bits, True, negative, at_least)

    @property
    def residue_moduli(self) -> ModuliSet:
        """The moduli."""
        return self.moduli

    def factor_layout(self, mode: str) -> tuple[int, np.dtype[Any]]:  # noqa: ARG002
        """Residues of a magnitude and a row of flags; every mode needs the flags for signs."""
        return len(self.moduli) + 1, self.word_dtype

    def wrapped(self, value: int) -> int:
        """Wrap an integer: its sign, with its magnitude modulo M."""
        magnitude = abs(value) % self.moduli.product
        return -magnitude if value < 0 else magnitude

    def wide_system(self, bits: int | None) -> RNS:
        """System of the moduli and further ones: :func:`.wide_system.wide_system`."""
        return wide_system(self.moduli, self.moduli.bits if bits is None else bits)

    def identifying_words(self, words: Any) -> Any:
        """Residues of numbers of either sign."""
        return layout.signed_residues_of(words, self.moduli)

    def __getstate__(self) -> dict[str, Any]:
        return {"moduli": self.moduli, "source": self.source}

    def __dask_tokenize__(self) -> Any:
        source = () if self.source is None else (self.source.__dask_tokenize__(),)
        return "rnsdask.IntervalRNS", self.moduli.__dask_tokenize__(), *source

    def __str__(self) -> str:
        source = "" if self.source is None else f", in place of {self.source!r}"
        return f"{self.moduli!r}{source}"

    def details(self) -> dict[str, str]:
        """The moduli."""
        source = {} if self.source is None else {"In place of": repr(self.source)}
        return {"Moduli": repr(self.moduli), **source}

    # ---- in stores and on the command line ----------------------------------------------------------------

    def stored_fields(self) -> dict[str, Any]:
        """The moduli, and the source if there is one; signed, without a bound."""
        fields = {"moduli": list(self.moduli), "signed": True, "bound": None}
        return {**fields, **source_fields(self.source)}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> "IntervalRNS":
        """Return the system of these fields."""
        if not read_flag(stored, "signed") or stored["bound"] is not None:
            raise ValueError(
                "numbers with intervals are signed, without a bound: signed must be true, bound null"
            )
        return cls(read_moduli(stored), read_source(stored))

    def first_contradiction(self, words: Any) -> tuple[int, str] | None:
        """Find the first number whose sign or interval does not match its residues."""
        header = layout.find_wrong_header(words, self.moduli)
        return None if header is None else (header.index, f"has a wrong header: {header.text()}")

    def summary(self) -> dict[str, str]:
        """Moduli, source and range."""
        source = {} if self.source is None else {"source": repr(self.source)}
        text = "signed, -(M-1) to M-1, with an interval of each"
        return {"moduli": repr(self.moduli), **source, "range": text}

    def facts(self) -> dict[str, Any]:
        """Bits of the range, moduli and source."""
        source = {} if self.source is None else {"source": list(self.source)}
        return {"bits": self.moduli.bits, "moduli": list(self.moduli), "intervals": True, **source}

    @property
    def wraps_modulo(self) -> str:
        """The product of the moduli."""
        return "M"
