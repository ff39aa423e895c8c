"""The number system of elements of the integers modulo a generalized Fermat prime."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from math import gcd
from typing import Any, ClassVar, SupportsIndex

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import FermatConstants, fermat_root, radix_division
from rnsdask.core import rows
from rnsdask.core.errors import NumberError, abbreviate, brief
from rnsdask.core.fermat_primes import factors_of_radix, is_fermat_prime
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.place import Locate
from rnsdask.core.rows import Row
from rnsdask.core.stored_fields import read_hexadecimal
from rnsdask.core.table import FERMAT_FIELDS_TABLE
from rnsdask.core.ways import Message, Way, with_ways
from rnsdask.fields.system import FiniteFields
from rnsdask.rns.convert import as_python_ints, flat_values, ints_to_limbs, limbs_to_ints
from rnsdask.rns.random import uniform_limbs

# Numbers that are converted together: their limbs are in memory in addition to the words.
_BLOCK = 2**16

# Elements that are drawn at a time, few enough that their memory is negligible.
_BATCH = 2**14

# P3 and P4 are named in L. Chen and others, "Big prime field FFT on the GPU" (2017). The others have digits
# of 32 bits; in the fields of 233, 449, 851 and 1813 bits, sums of products of digits fit 64 bits.
_NAMED = {
    "F233": (2**29 + 2**25, 8),
    "F256": (2**32 - 2**20, 8),
    "F449": (2**28 + 2**22, 16),
    "F481": (2**30 + 2**16, 16),
    "F851": (2**27 - 2**25, 32),
    "F1024": (2**32 - 2**13, 32),
    "F1813": (2**28 + 2**26, 64),
    "F2048": (2**32 - 2**24, 64),
    "F3829": (2**30 - 2**26, 128),
    "P3": (2**63 + 2**34, 8),
    "P4": (2**62 + 2**36, 16),
}


@dataclass(frozen=True, init=False, repr=False)
class FermatField(FiniteFields):
    """Elements of the integers modulo p = radix**digits + 1, a generalized Fermat prime.

    The words of an element x, from 0 to p - 1, are its digits x_i, the least significant first: x is the sum
    of the ``x_i * radix**i``, and ``0 <= x_i < radix``. Only -1, which is ``radix**digits``, has another
    form: its last digit is the radix itself, and the others are 0. The radix is a root of unity of order ``2
    * digits``, so that multiplying by a power of it only moves digits (:meth:`.FieldArray.multiply_by_root`).

    Parameters
    ----------
    radix : int
        ``2**a + 2**b`` or ``2**a - 2**b`` with a > b + 1, from 2**8 + 1 to 2**64 - 2.
    digits : int
        A power of two from 4 to 128.

    Raises
    ------
    TypeError
        If one is no integer.
    ValueError
        If they are not of these forms, or p is not a prime. Primality is proved, not only probable:
        :func:`.is_fermat_prime`.
    """

    constants: FermatConstants

    table_name: ClassVar[str] = FERMAT_FIELDS_TABLE
    words_are = "digits"
    stored_as: ClassVar[str] = "fermat-field"
    required_fields: ClassVar[tuple[str, ...] | None] = ("radix", "digits")

    def __init__(self, radix: SupportsIndex, digits: SupportsIndex) -> None:
        constants = FermatConstants(as_integer(radix, "radix"), as_integer(digits, "digits"))
        if not is_fermat_prime(constants.radix, constants.digits):
            raise ValueError(
                f"{constants.radix}**{constants.digits} + 1 is not a prime, so it makes no field"
            )
        object.__setattr__(self, "constants", constants)

    @classmethod
    def named(cls, name: str) -> "FermatField":
        """A field by its name: F and the bits of its prime, such as ``"F449"``, or ``"P3"`` or ``"P4"``.

        Raises
        ------
        ValueError
            If no field has this name; the message lists the names.
        """
        if name not in _NAMED:
            raise ValueError(f"name must be one of {', '.join(_NAMED)}, got {brief(name)}")
        return cls(*_NAMED[name])

    @property
    def radix(self) -> int:
        """The radix r of the digits, a root of unity of order 2 * digits."""
        return self.constants.radix

    @property
    def digits(self) -> int:
        """Number of digits of an element."""
        return self.constants.digits

    @cached_property
    def modulus(self) -> int:
        """The prime p = radix**digits + 1."""
        return int(self.constants.modulus)

    @property
    def primes(self) -> tuple[int]:
        """The prime, the number of elements of the field."""
        return (self.modulus,)

    @property
    def bits(self) -> int:
        """Bits of the prime."""
        return self.modulus.bit_length()

    def check_divisor(self, value: int) -> None:
        """Raise ZeroDivisionError if p divides an integer."""
        if value % self.modulus == 0:
            raise ZeroDivisionError(f"division by {abbreviate(value)}, which is 0 modulo {self}")

    def reciprocal(self, value: int) -> int:
        """The inverse of an integer modulo p; an error as of :meth:`check_divisor`."""
        self.check_divisor(value)
        return int(gmpy2.invert(value, self.modulus))

    # ---- roots of unity -----------------------------------------------------------------------------------

    def root_of_unity(self, length: SupportsIndex) -> int:
        """A primitive root of unity w of an order N that divides p - 1.

        If ``2 * digits`` divides N, ``w**(N / (2 * digits))`` is the radix; if N, a power of two, divides ``2
        * digits``, w is a power of the radix. If N is a power of two, its root is the square of the root of
        order 2N.

        Raises
        ------
        TypeError
            If the order is no integer.
        ValueError
            If it is not positive, or does not divide p - 1.
        """
        order = as_integer(length, "length")
        if order < 1:
            raise ValueError(f"length must be at least 1, got {abbreviate(order)}")
        if (self.modulus - 1) % order:
            raise ValueError(
                f"the field modulo {self} has no primitive root of unity of order {abbreviate(order)}, which "
                f"does not divide {self.radix}**{self.digits}"
            )
        if order.bit_count() == 1:
            return int(fermat_root(self.constants, order))
        return self._root_of_composite_order(order)

    def _root_of_composite_order(self, order: int) -> int:
        p, k = self.modulus, self.digits
        factors = [q for q in factors_of_radix(self.radix) if order % q == 0]
        x = next(x for x in count(2) if all(gmpy2.powmod(x, (p - 1) // q, p) != 1 for q in factors))
        root = gmpy2.powmod(x, (p - 1) // order, p)
        if order % (2 * k):
            return int(root)
        power = gmpy2.powmod(root, order // (2 * k), p)
        exponent = next(j for j in range(1, 2 * k, 2) if gmpy2.powmod(power, j, p) == self.radix)
        # Of the candidates with a power that is the radix, the least of full order.
        exponent = next(j for j in count(exponent, 2 * k) if gcd(j, order) == 1)
        return int(gmpy2.powmod(root, exponent, p))

    def roots(self, length: SupportsIndex) -> tuple[int, ...]:
        """The :meth:`root_of_unity` in a tuple of length 1, as :meth:`.PrimeFields.roots` gives it."""
        return (self.root_of_unity(length),)

    # ---- a number system ----------------------------------------------------------------------------------

    @property
    def word_dtype(self) -> np.dtype[Any]:
        """uint32 for a radix below 2**32, else uint64."""
        return self.constants.dtype

    @property
    def rows(self) -> int:
        """Digits of an element."""
        return self.digits

    @property
    def value_range(self) -> tuple[int, int]:
        """Least and greatest integer that elements are read as: 0 and p - 1."""
        return 0, self.modulus - 1

    def encode(self, values: Any) -> NDArray[Any]:
        """Convert any integers that :func:`.ints_to_limbs` takes to digits (k, *shape)."""
        flat, shape = flat_values(values)
        signed = isinstance(flat, np.ndarray)  # of a machine type, of any size and sign
        if not isinstance(flat, np.ndarray):
            flat = as_python_ints(flat, shape)
            if flat and not 0 <= min(flat) <= max(flat) < self.modulus:
                flat = [value % self.modulus for value in flat]
        limb_count = 3 if signed else radix_division(self.constants).limb_count
        words = np.empty((self.rows, len(flat)), dtype=self.word_dtype)
        for first in range(0, len(flat), _BLOCK):
            block = slice(first, first + _BLOCK)
            limbs = ints_to_limbs(flat[block], limb_count, signed)
            words[:, block] = kernels_of(words).limbs_to_fermat(limbs, signed, self.constants)
        return words.reshape(self.rows, *shape)

    def decode(self, words: Any) -> NDArray[np.object_]:
        """Convert elements to the integers from 0 to p - 1 that they stand for."""
        self.check_words(words)
        matrix = as_matrix(words)
        values = np.empty(matrix.shape[1], dtype=object)
        for first in range(0, len(values), _BLOCK):
            block = slice(first, first + _BLOCK)
            values[block] = limbs_to_ints(self.limbs_of(matrix[:, block]))
        return values.reshape(words.shape[1:])

    def limbs_of(self, words: Any) -> Any:
        """Limbs of the integers from 0 to p - 1 that elements stand for."""
        return kernels_of(words).fermat_to_limbs(words, self.constants)

    def words_of_limbs(self, limbs: Any, signed: bool, locate: Locate) -> Any:  # noqa: ARG002  (any is in range)
        """Elements that integers of limbs stand for."""
        return kernels_of(limbs).limbs_to_fermat(limbs, bool(signed), self.constants)

    def random_words(self, shape: tuple[int, ...], generator: "np.random.Generator") -> NDArray[Any]:
        """Draw elements uniform from 0 to p - 1, as digits."""
        digits = np.empty((self.rows, math.prod(shape)), dtype=self.word_dtype)
        for start in range(0, digits.shape[1], _BATCH):
            count = min(_BATCH, digits.shape[1] - start)
            limbs = uniform_limbs(self.modulus - 1, count, generator)
            digits[:, start : start + count] = self.words_of_limbs(limbs, False, int)
        return digits.reshape(self.rows, *shape)

    def column(self, value: int, ndim: int = 1) -> NDArray[Any]:
        """The element that any integer stands for, as one column with `ndim` axes of length 1."""
        return self.encode([value % self.modulus]).reshape(-1, *(1,) * ndim)

    def check_digits(self, words: Array, locate: Locate = int) -> None:
        """Check that the digits of each element (k, *shape), of NumPy or CuPy, are canonical.

        Raises
        ------
        ValueError
            If one has others; the message names the first, at what `locate` makes of its flat index.
        """
        if (index := self.first_invalid(words)) is not None:
            digits = as_matrix(words)[:, index].tolist()
            raise NumberError(f"the element at flat index {locate(index)} {self.fault_of(digits)}")

    def first_invalid(self, words: Array) -> int | None:
        """Flat index of the first element (k, *shape) with invalid digits, or None."""
        matrix = as_matrix(words)
        return kernels_of(matrix).fermat_first_invalid(matrix, self.constants)

    def fault_of(self, digits: list[int]) -> str:
        """Fault of an element's digits, for an error, as in ``has the digit 9``."""
        row = next(i for i, digit in enumerate(digits) if digit >= self.radix)
        if row < self.digits - 1 or digits[row] > self.radix:
            return f"has the digit {digits[row]} (row {row}), which is not below the radix {self.radix}"
        return (
            f"has the radix {self.radix} as its last digit (row {row}), as -1 has, but others that are not 0"
        )

    def lacking(self, row: Row[..., Any]) -> Message:
        """Text of the error for an operation that the table lacks; integers are a way out only for `det`."""
        if row.kind != "arrays":
            return super().lacking(row)
        what = (
            f"it takes integers or elements of prime fields, got those of {self!r}, which have no elimination"
        )
        way = Message(Way.INTEGERS, " makes integers, whose determinant modulo p is this one")
        return with_ways(what, *[way] * (row is rows.det))

    def same_numbers(self, other: NumberSystem) -> bool:
        """Whether the field is the same, with the same digits."""
        return isinstance(other, FermatField) and self.constants == other.constants

    def __getstate__(self) -> dict[str, Any]:
        return {"constants": self.constants}

    def __dask_tokenize__(self) -> Any:
        return "rnsdask.FermatField", self.radix, self.digits

    def __str__(self) -> str:
        a, b, sign = self.constants.exponents
        return f"(2**{a} {'+' if sign > 0 else '-'} 2**{b})**{self.digits} + 1"

    def details(self) -> dict[str, str]:
        """The prime and its bits."""
        return {"Prime": str(self), "Bits": str(self.bits)}

    # ---- in stores and on the command line ----------------------------------------------------------------

    def stored_fields(self) -> dict[str, Any]:
        """The radix in hexadecimal, and the number of digits."""
        return {"radix": hex(self.radix), "digits": self.digits}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> "FermatField":
        """Return the field with the stored radix and number of digits; its prime is proved."""
        return cls(read_hexadecimal(stored, "radix"), stored["digits"])

    def summary(self) -> dict[str, str]:
        """The prime and the range."""
        return {"field": repr(self), "range": "elements of a Fermat field, 0 to p-1"}

    def facts(self) -> dict[str, Any]:
        """Bits of the prime, radix and digits."""
        return {"bits": self.bits, "radix": self.radix, "digits": self.digits}
