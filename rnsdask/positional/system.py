"""The number system of integers of a fixed number of bits, as 32-bit limbs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import is_any, kernels_of
from rnsdask.core import rows
from rnsdask.core.errors import PrecisionOverflowError, abbreviate, bits_text, brief
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import LIMB_BITS, as_bool, as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Locate
from rnsdask.core.rows import Row
from rnsdask.core.stored_fields import read_flag
from rnsdask.core.table import (
    FERMAT_FIELDS_TABLE,
    INTERVAL_RNS_TABLE,
    POSITIONAL_TABLE,
    PRIME_FIELDS_TABLE,
    RNS_TABLE,
    WIDE_PRIME_FIELDS_TABLE,
)
from rnsdask.core.ways import Conversion, Message, Way, must
from rnsdask.positional.operands import resized, trimmed
from rnsdask.rns.convert import ints_to_bits, limbs_to_ints

if TYPE_CHECKING:
    from rnsdask.arrays.positional_array import PositionalArray

MOST_BITS = 2**20
"""Bits of the longest numbers."""

# Words that are converted to Python ints at a time, to bound the memory of intermediate results.
_BLOCK_WORDS = 2**22


@dataclass(frozen=True, repr=False)
class Positional(NumberSystem):
    """Integers of a fixed number of bits, as k limbs of 32 bits: word i counts ``2**(32 * i)``.

    Unsigned numbers are from 0 to ``2**bits - 1``, and the unused bits of the highest limb are 0. Signed
    numbers are from ``-2**(bits - 1)`` to ``2**(bits - 1) - 1`` in two's complement; their unused bits are
    copies of the sign, so that the limbs are the same number in 32 k bits.

    Parameters
    ----------
    bits : int
        Bits of a number, from 1 to 2**20, including the sign.
    signed : bool
        Whether numbers may be negative.

    Raises
    ------
    TypeError, ValueError
        If `bits` is no integer, or not from 1 to 2**20, or `signed` no bool.
    """

    words_are = "limbs"
    array_type: ClassVar[type["PositionalArray"]]
    table_name: ClassVar[str] = POSITIONAL_TABLE
    stored_as: ClassVar[str] = "positional"
    required_fields: ClassVar[tuple[str, ...] | None] = ("bits", "signed")
    way_to_residues: ClassVar[Message] = Message(Way.RESIDUES, " makes residues of them")
    lacks: ClassVar[str] = "limbs have no such operation"
    ways_out: ClassVar[Mapping[str, Message]] = {
        RNS_TABLE: Message(Way.RESIDUES, " makes residues of its numbers"),
        PRIME_FIELDS_TABLE: Message(Way.FIELDS, " makes elements of fields"),
    }
    conversions: ClassVar[Mapping[str, Conversion]] = {
        RNS_TABLE: Conversion.RESIDUES_OF_LIMBS,
        INTERVAL_RNS_TABLE: Conversion.INTERVALS_OF_LIMBS,
        PRIME_FIELDS_TABLE: Conversion.FIELDS,
        WIDE_PRIME_FIELDS_TABLE: Conversion.FIELDS,
        FERMAT_FIELDS_TABLE: Conversion.FERMAT_FIELD,
    }
    wider: ClassVar[Message] = Message(Way.SIGNED_LIMBS, " takes more bits, and negative numbers")

    bits: int
    signed: bool = False

    def __post_init__(self) -> None:
        bits = as_integer(self.bits, "bits")
        if not 1 <= bits <= MOST_BITS:
            raise ValueError(must("bits", f"be from 1 to {MOST_BITS}, got {abbreviate(bits)}"))
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "signed", as_bool(self.signed, "signed"))

    @property
    def rows(self) -> int:
        """Number of limbs of a number."""
        return -(-self.bits // LIMB_BITS)

    @property
    def top_bits(self) -> int:
        """Bits of the highest limb that are used, from 1 to 32."""
        return self.bits - LIMB_BITS * (self.rows - 1)

    @cached_property
    def value_range(self) -> tuple[int, int]:
        """The lowest and the highest number."""
        half = 1 << self.bits - 1
        return (-half, half - 1) if self.signed else (0, 2 * half - 1)

    @property
    def is_signed(self) -> bool:
        """Whether numbers may be negative."""
        return self.signed

    @property
    def range_kind(self) -> str:  # type: ignore[override]
        """Name of the range in errors."""
        return "signed" if self.signed else "unsigned"

    def encode(self, values: Any) -> NDArray[np.uint32]:
        """Convert integers that :func:`.ints_to_limbs` takes to limbs (k, *shape)."""
        limbs = ints_to_bits(values, self.bits, self.signed, repr(self))
        words = np.empty((self.rows, limbs.size // self.rows), dtype=np.uint32)
        kernels_of(words).transpose(limbs.reshape(-1, self.rows), words)
        return words.reshape(self.rows, *limbs.shape[:-1])

    def decode(self, words: Any) -> NDArray[np.object_]:
        """Convert limbs to Python ints."""
        self.check_words(words)
        matrix = as_matrix(words)
        values = np.empty(matrix.shape[1], dtype=object)
        step = max(1, _BLOCK_WORDS // self.rows)
        for first in range(0, len(values), step):
            block = slice(first, first + step)
            values[block] = limbs_to_ints(self.limbs_of(matrix[:, block]), self.signed)
        return values.reshape(words.shape[1:])

    def decode_at(self, words: Any, index: int) -> int:
        """Convert the number at a flat index of words (k, *shape) to an int."""
        value: int = self.decode(as_matrix(words)[:, index : index + 1])[0]
        return value

    def limbs_of(self, words: Any) -> Any:
        """Limbs (*shape, k), contiguous by number."""
        limbs = np.empty_like(words, shape=(words.shape[1], self.rows), order="C")
        kernels_of(words).transpose(words, limbs)
        return limbs

    def words_of_limbs(self, limbs: Any, signed: bool, locate: Locate) -> Any:
        """Words of numbers in any number of limbs, checked to be in range."""
        given = np.empty_like(limbs, shape=(limbs.shape[1], len(limbs)), order="C")
        kernels_of(limbs).transpose(limbs, given)
        words, outside = resized(given, signed, self.rows, self.top_bits, self.signed)
        if is_any(outside):
            index = int(outside.argmax())
            value = limbs_to_ints(limbs[index : index + 1], signed)[0]
            raise self.out_of_range(f"value {abbreviate(value)} at flat index {locate(index)}")
        return words

    def random_words(self, shape: tuple[int, ...], generator: "np.random.Generator") -> NDArray[np.uint32]:
        """Draw numbers uniform in the whole range, as limbs."""
        words = generator.integers(2**32, size=(self.rows, *shape), dtype=np.uint32)
        words[-1] = trimmed(words[-1], self.top_bits, self.signed)
        return words

    def out_of_range(self, what: str, owner: str | None = None) -> ValueError:
        """Error of a number outside the range, which the message calls `what`, such as ``operand 5``."""
        return super().out_of_range(what, repr(self) if owner is None else owner)

    def first_invalid(self, words: Any) -> int | None:
        """Flat index of the first number (k, *shape) whose limbs are not canonical, or None."""
        if self.top_bits == LIMB_BITS:
            return None
        top = words[-1].reshape(-1)
        wrong = trimmed(top, self.top_bits, self.signed) != top
        return int(wrong.argmax()) if is_any(wrong) else None

    def fault_of(self, limbs: list[int]) -> str:
        """Fault of a number's limbs, for an error, as in ``has the highest limb 9``."""
        bits = "copies of the sign" if self.signed else "0"
        return (
            f"has the highest limb {limbs[-1]:#x} (row {self.rows - 1}), whose bits beyond {self.top_bits} "
            f"must be {bits}"
        )

    def same_numbers(self, other: NumberSystem) -> bool:
        """Whether the bits and the range are the same."""
        return isinstance(other, Positional) and (self.bits, self.signed) == (other.bits, other.signed)

    def factor_layout(self, mode: str) -> tuple[int, np.dtype[Any]]:
        """Limbs and a row of flags, unless results wrap."""
        return self.rows + (mode != "wrap"), self.word_dtype

    def exact_system(self, row: Row[..., Any], other: "Positional") -> "Positional":
        """System of the fewest bits that hold each sum, difference or product of numbers of two systems."""
        signed = self.signed or other.signed
        if row is rows.multiply:
            return Positional(self.bits + other.bits, signed)
        # An unsigned number takes one more bit in a signed system.
        widest = max(s.bits + (signed and not s.signed) for s in (self, other))
        return Positional(widest + 1, signed or row is rows.subtract)

    def mismatch(self, other: "Positional") -> str:
        """Text of an error for operands in two systems."""
        return Message(
            f"operands have different precisions: {self} and {other}; ", Way.LIMBS, " makes them alike"
        )

    def overflow_error(self, value: int, index: int) -> PrecisionOverflowError:
        """The error of an exact result out of range, at a flat index of the array."""
        length = (value if value >= 0 else ~value).bit_length()
        return self.overflow_of_length(length, value < 0, index)

    def overflow_of_length(
        self, length: int, negative: bool, index: int, at_least: bool = False
    ) -> PrecisionOverflowError:
        """Overflow error of a result of `length` bits in two's complement, not counting the sign."""
        needed = length + int(self.signed or negative)
        return PrecisionOverflowError(index, needed, self.bits, self.signed, negative, at_least)

    def __getstate__(self) -> dict[str, Any]:
        return {"bits": self.bits, "signed": self.signed}

    def __dask_tokenize__(self) -> Any:
        return "rnsdask.Positional", self.bits, self.signed

    def __str__(self) -> str:
        return f"{bits_text(self.bits)}, {self.range_kind}"

    def details(self) -> dict[str, str]:
        """Bits and range."""
        return {"Bits": str(self.bits), "Range": self.range_kind}

    # ---- in stores and on the command line ----------------------------------------------------------------

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> "Positional":
        """Return the system with the stored bits and sign."""
        if type(stored["bits"]) is not int:
            raise ValueError(f"bits must be an integer, got {brief(stored['bits'])}")
        return cls(stored["bits"], read_flag(stored, "signed"))

    def summary(self) -> dict[str, str]:
        """Limbs and range."""
        return {"limbs": f"{self.rows} of 32 bits", "range": str(self)}

    def facts(self) -> dict[str, Any]:
        """Bits and limbs of a number."""
        return {"bits": self.bits, "limbs": self.rows}

    @property
    def wraps_modulo(self) -> str:
        """Name of the modulus of results that wrap: a power of two."""
        return f"2**{self.bits}"
