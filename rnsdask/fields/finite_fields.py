"""The base of number systems of field elements."""

from abc import abstractmethod
from typing import Any, ClassVar, SupportsIndex

from rnsdask.core.errors import RNSOverflowError
from rnsdask.core.number_system import NumberSystem


class FiniteFields(NumberSystem):
    """Elements of one finite field or of several at once: :class:`.PrimeFields` or :class:`.FermatField`.

    Every integer stands for an element, and every result is an element: nothing is out of range.
    """

    ways_out: ClassVar[str] = (
        "elements of fields have no order, sign or size; x.lift() makes integers, which have"
    )
    conversions: ClassVar[str] = "FieldArray.from_rns(x, fields) and lift() convert"
    overflows: ClassVar[bool] = False

    def mismatch(self, other: Any) -> str:
        """Text of an error for elements of two fields."""
        return f"operands are of different fields: {self!r} and {other!r}"

    @abstractmethod
    def roots(self, length: SupportsIndex) -> tuple[int, ...]:
        """A primitive root of unity of each field, of one order.

        Raises
        ------
        ValueError
            If a field has none.
        """

    def overflow_error(self, value: int, index: int) -> RNSOverflowError:
        """Never called, for every result in a field is an element."""
        raise AssertionError(f"{value} at {index} is an element of a field")
