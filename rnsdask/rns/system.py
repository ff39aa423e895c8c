"""The residue number system of an array: moduli set, range, and known bound of the numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants import sufficient_prefix
from rnsdask.core.errors import (
    LimitOverflowError,
    ReplacedModuliOverflowError,
    RNSOverflowError,
    abbreviate,
    bits_text,
)
from rnsdask.core.layout import check_residue_array
from rnsdask.core.moduli import (
    LIMB_BITS,
    MOST_MODULI,
    ModuliSet,
    as_bool,
    as_integer,
    check_moduli_set,
    first_moduli,
    to_text,
)
from rnsdask.core.number_system import RESIDUES, NumberSystem, check_source
from rnsdask.core.place import Locate
from rnsdask.core.stored_fields import read_bound, read_flag, read_moduli, read_source, source_fields
from rnsdask.core.table import (
    FERMAT_FIELDS_TABLE,
    INTERVAL_RNS_TABLE,
    POSITIONAL_TABLE,
    PRIME_FIELDS_TABLE,
    RNS_TABLE,
    WIDE_PRIME_FIELDS_TABLE,
)
from rnsdask.core.ways import Conversion, Message, Setting, Way
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.rns.convert import greatest_magnitude, ints_to_residues, residues_to_ints, to_limbs, to_residues
from rnsdask.rns.exact import residues_of, value_of
from rnsdask.rns.random import random_residues

MOST_BITS = LIMB_BITS * MOST_MODULI
"""Most bits of a moduli set, whose moduli have at most 32 bits each."""

if TYPE_CHECKING:
    from rnsdask.arrays.rns_array import RNSArray


@dataclass(frozen=True, repr=False)
class RNS(NumberSystem):
    """Numbers as residues: word i is the number modulo ``moduli[i]``.

    Parameters
    ----------
    moduli : ModuliSet
        The set of n moduli, whose product is M.
    signed : bool
        Whether the numbers are in the symmetric range ``-(M//2) .. (M-1)//2`` instead of ``0 .. M-1``.
    bound : int, optional
        Greatest magnitude of the numbers, with which operations read fewer moduli. A bound beyond the range
        is reduced to its end.
    source : WideModuli, optional
        Original moduli beyond 2**32, which `moduli` replace. Such numbers do not wrap, because M is not the
        product that the user knows.
    grows : bool
        Whether results get more moduli if their bounds need them (``overflow="extend"``), as for arrays made
        without moduli. The moduli are then the first ones of the sequence of :meth:`.ModuliSet.for_bits`:
        2**32, 2**32 - 1 and so on.

    Raises
    ------
    TypeError, ValueError
        If `moduli` is no ModuliSet, `signed` or `grows` no bool, `source` no WideModuli, or the bound no
        integer, or negative; or the system grows, and its moduli are others.
    """

    array_type: ClassVar[type["RNSArray"]]
    table_name: ClassVar[str] = RNS_TABLE
    stored_as: ClassVar[str] = RESIDUES
    required_fields: ClassVar[tuple[str, ...] | None] = ("moduli", "signed", "bound")
    lacks: ClassVar[str] = "residues have no such operation"
    ways_out: ClassVar[Mapping[str, Message]] = {
        POSITIONAL_TABLE: Message(Way.LIMBS, " makes limbs"),
        PRIME_FIELDS_TABLE: Message(Way.FIELDS, " makes elements of fields"),
    }
    conversions: ClassVar[Mapping[str, Conversion]] = {
        INTERVAL_RNS_TABLE: Conversion.INTERVALS,
        POSITIONAL_TABLE: Conversion.LIMBS,
        PRIME_FIELDS_TABLE: Conversion.FIELDS,
        WIDE_PRIME_FIELDS_TABLE: Conversion.FIELDS,
        FERMAT_FIELDS_TABLE: Conversion.FERMAT_FIELD,
    }
    extends: ClassVar[bool] = True

    moduli: ModuliSet
    signed: bool = False
    bound: int | None = None
    source: WideModuli | None = None
    grows: bool = False

    def __post_init__(self) -> None:
        check_moduli_set(self.moduli)
        check_source(self.source)
        object.__setattr__(self, "signed", as_bool(self.signed, "signed"))
        object.__setattr__(self, "grows", as_bool(self.grows, "grows"))
        if self.grows and self.moduli != first_moduli(len(self.moduli)):
            raise ValueError(
                f"a system that grows has the first moduli of ModuliSet.for_bits, got {self.moduli!r}"
            )
        if self.bound is not None:
            object.__setattr__(self, "bound", self._within_range(self.bound))

    def _within_range(self, bound: int) -> int:
        """Check a bound, and limit it to the range, because one derived from operands may be beyond."""
        bound = as_integer(bound, "bound")
        if bound < 0:
            raise ValueError(f"bound must not be negative, got {abbreviate(bound)}")
        return min(bound, self.greatest_magnitude)

    @property
    def rows(self) -> int:
        """Number of residues of a number."""
        return len(self.moduli)

    @cached_property
    def value_range(self) -> tuple[int, int]:
        """The lowest and the highest number that the residues can hold."""
        return self.moduli.value_range(self.signed)

    @property
    def range_kind(self) -> str:  # type: ignore[override]
        """Name of the range in errors."""
        return "signed" if self.signed else "unsigned"

    @property
    def greatest_magnitude(self) -> int:
        """The greatest magnitude in the range."""
        lowest, highest = self.value_range
        return max(-lowest, highest)

    @property
    def wider(self) -> Message:  # type: ignore[override]
        """Way to hold an integer that is out of range."""
        more = Message(Way.EXTEND, " takes more moduli")
        if self.signed:
            return more
        return Message(more, ", and an array made with ", Setting("signed", True), " takes negative numbers")

    @cached_property
    def known_range(self) -> tuple[int, int]:
        """The lowest and the highest number that the bound leaves."""
        lowest, highest = self.value_range
        return (
            (lowest, highest) if self.bound is None else (max(lowest, -self.bound), min(highest, self.bound))
        )

    @property
    def known_magnitude(self) -> int:
        """The greatest magnitude that the bound leaves."""
        return self.greatest_magnitude if self.bound is None else self.bound

    def with_bound(self, bound: int | None) -> "RNS":
        """Replace the bound; None removes it."""
        if bound is self.bound:
            return self
        made = object.__new__(RNS)  # the other fields are already checked
        made.__dict__.update(self.__dict__, bound=None if bound is None else self._within_range(bound))
        made.__dict__.pop("known_range", None)
        return made

    @property
    def residue_moduli(self) -> ModuliSet:
        """The moduli."""
        return self.moduli

    def factor_layout(self, mode: str) -> tuple[int, np.dtype[Any]]:
        """Residues and a row of flags, unless results wrap."""
        return self.rows + (mode != "wrap"), self.word_dtype

    def identifying_words(self, words: Any) -> Any:
        """Residues modulo the first moduli that the bound needs."""
        return self.sufficient(words)[1]

    def sufficient(self, words: Any) -> tuple["RNS", Any]:
        """Return a system and words of the same numbers, with only the moduli that their bound needs."""
        moduli = sufficient_prefix(self.moduli, self.signed, self.bound)
        return RNS(moduli, self.signed), words[: len(moduli)]

    def random_words(self, shape: tuple[int, ...], generator: "np.random.Generator") -> NDArray[np.uint32]:
        """Residues of random numbers: :func:`.random_residues`."""
        return random_residues(
            self.moduli, shape, generator, None if self.bound is None else self.known_range
        )

    def bound_of(self, integers: Any) -> int:
        """The greatest magnitude of integers: :func:`.greatest_magnitude`."""
        return greatest_magnitude(integers)

    def bound_of_products(self, terms: int) -> int | None:
        """Bound of products of `terms` numbers: the bound to this power."""
        magnitude, highest = max(self.known_magnitude, 1), self.value_range[1]
        # Magnitudes above 1 grow by at least a bit.
        if magnitude > 1 and terms > highest.bit_length():
            return None
        bound: int = magnitude**terms
        return bound if bound <= highest else None

    def for_range(self, lowest: int, highest: int, *, signed: bool | None = None) -> "RNS":
        """Growing system of the fewest moduli for a range: :func:`least_system`."""
        return (
            least_system(lowest, highest, self.signed if signed is None else signed) if self.grows else self
        )

    def encode(self, values: Any) -> NDArray[np.uint32]:
        """Residues of integers: :func:`.ints_to_residues`."""
        return ints_to_residues(values, self.moduli, self.signed)

    def _encode_one(self, value: int) -> NDArray[np.uint32]:
        return np.array(residues_of(value, self.moduli), dtype=np.uint32)

    def decode(self, words: Any) -> NDArray[np.object_]:
        """Convert residues to Python ints: :func:`.residues_to_ints`."""
        return residues_to_ints(words, self.moduli, self.signed)

    def decode_at(self, words: Any, index: int) -> int:
        """Convert the number at a flat index of residues (n, *shape) to an int."""
        column = words.reshape(len(words), -1)[:, index].tolist()
        return value_of(column, self.moduli, self.signed)

    def limbs_of(self, words: Any) -> Any:
        """Convert residues to limbs: :func:`.to_limbs`."""
        return to_limbs(words, self.moduli, self.signed)

    def words_of_limbs(self, limbs: Any, signed: bool, locate: Locate) -> Any:
        """Convert limbs, in two's complement just if the range is signed, to residues."""
        if signed != self.signed:
            raise ValueError(f"signed={signed} contradicts the number system {self!r}")
        return to_residues(limbs, self.moduli, signed, locate)

    def check_words(self, words: Any) -> None:
        """Check the type and the shape of an array of residues: :func:`.check_residue_array`."""
        check_residue_array(words, self.moduli)

    def same_numbers(self, other: NumberSystem) -> bool:
        """Whether the moduli and the range are the same."""
        return isinstance(other, RNS) and (self.moduli, self.signed) == (other.moduli, other.signed)

    def mismatch(self, other: "RNS") -> str:
        """Text of an error for operands in two systems."""
        return f"operands have different moduli sets: {self.moduli!r} and {other.moduli!r}"

    @property
    def overflow_type(self) -> type[RNSOverflowError]:
        """Class of overflow errors, whose messages name the way out."""
        return RNSOverflowError if self.source is None else ReplacedModuliOverflowError

    def overflow_error(self, value: int, index: int) -> RNSOverflowError:
        """The error of an exact result out of range, at a flat index of the array."""
        return self.overflow_type.of_value(value, index, self.moduli.bits, self.signed)

    def overflow_of_length(
        self, length: int, negative: bool, index: int, at_least: bool = False
    ) -> RNSOverflowError:
        """Overflow error of a result of `length` bits in two's complement, not counting the sign."""
        needed, range_bits = length + int(self.signed), self.moduli.bits - 1
        return self.overflow_type(index, needed, range_bits, self.signed, negative, at_least)

    def __getstate__(self) -> dict[str, Any]:
        # Without the cached ranges.
        return {
            "moduli": self.moduli,
            "signed": self.signed,
            "bound": self.bound,
            "source": self.source,
            "grows": self.grows,
        }

    def __dask_tokenize__(self) -> Any:
        # Dask writes an integer in decimal, which Python refuses beyond 4300 digits.
        source = () if self.source is None else (self.source.__dask_tokenize__(),)
        mode = ("grows",) if self.grows else ()
        return (
            "rnsdask.RNS",
            self.moduli.__dask_tokenize__(),
            self.signed,
            to_text(self.bound),
            *source,
            *mode,
        )

    def __str__(self) -> str:
        parts = [repr(self.moduli), self.range_kind]
        if self.bound is not None:
            parts.append(f"bound of {bits_text(self.bound.bit_length())}")
        if self.source is not None:
            parts.append(f"in place of {self.source!r}")
        if self.grows:
            parts.append("grows")
        return ", ".join(parts)

    def details(self) -> dict[str, str]:
        """Moduli, range and bound."""
        bound = "unknown" if self.bound is None else bits_text(self.bound.bit_length())
        source = {} if self.source is None else {"In place of": repr(self.source)}
        kind = f"{self.range_kind}, grows" if self.grows else self.range_kind
        return {"Moduli": repr(self.moduli), **source, "Range": kind, "Bound": bound}

    # ---- in stores and on the command line ----------------------------------------------------------------

    def stored_fields(self) -> dict[str, Any]:
        """Moduli, range and bound; the source if there is one, and whether it grows."""
        bound = None if self.bound is None else hex(self.bound)
        mode = {"grows": True} if self.grows else {}
        fields = {"moduli": list(self.moduli), "signed": self.signed, "bound": bound}
        return {**fields, **source_fields(self.source), **mode}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> "RNS":
        """Return the system of these fields."""
        moduli, source = read_moduli(stored), read_source(stored)
        system = cls(
            moduli, read_flag(stored, "signed"), source=source, grows=read_flag(stored, "grows", False)
        )
        bound = read_bound(stored)
        return system if bound is None else system.with_exact_bound(bound)

    def first_contradiction(self, words: Any) -> tuple[int, str] | None:
        """Find the first number beyond the bound."""
        if self.bound is None:
            return None
        # By its name, as the table: it imports this module.
        excess = resolve_name("rnsdask.rns.bounds:find_excess")(words, self)
        return None if excess is None else (excess.index, f"is {excess.text(self.bound)}")

    def summary(self) -> dict[str, str]:
        """Moduli, source, range and known magnitudes."""
        source = {} if self.source is None else {"source": repr(self.source)}
        ends = "signed, -(M//2) to (M-1)//2" if self.signed else "unsigned, 0 to M-1"
        known = "unknown" if self.bound is None else f"at most {bits_text(self.bound.bit_length())}"
        holds = "grows" if self.grows else f"holds results of {bits_text(self.moduli.bits - 1)}"
        kind = {"range": f"{ends}; {holds}", "magnitude": known}
        return {"moduli": repr(self.moduli), **source, **kind}

    def facts(self) -> dict[str, Any]:
        """Bits of the range, moduli, source, and whether it grows."""
        source = {} if self.source is None else {"source": list(self.source)}
        mode = {"grows": True} if self.grows else {}
        return {"bits": self.moduli.bits, "moduli": list(self.moduli), **source, **mode}

    @property
    def wraps_modulo(self) -> str:
        """The product of the moduli."""
        return "M"


def check_length(bits: int) -> None:
    """Raise LimitOverflowError if no moduli set can hold results of that length."""
    if bits > MOST_BITS:
        raise LimitOverflowError(0, bits, MOST_BITS, signed=False, negative=False)


def least_system(low: int, high: int, signed: bool, count: int = 1) -> RNS:
    """Growing system of the fewest moduli, at least `count`, that hold a range; signed if requested.

    LimitOverflowError for a range that no set can hold.
    """
    is_signed = signed or low < 0
    bits = max(high.bit_length(), (~low).bit_length() if low < 0 else 0) + is_signed
    check_length(bits)
    count = max(count, bits // LIMB_BITS)
    while True:
        if count > MOST_MODULI:
            raise LimitOverflowError(0, bits, MOST_BITS, signed=is_signed, negative=False)
        system = RNS(first_moduli(count), is_signed, grows=True)
        lowest, highest = system.value_range
        if lowest <= low and high <= highest:
            return system
        count += 1
