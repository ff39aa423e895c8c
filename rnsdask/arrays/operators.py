"""Operators: the mixin of arrays of numbers that has ``+ - * @``, ``// % **``, bits and comparison."""

from __future__ import annotations

from typing import Any, Self, SupportsIndex

import numpy as np

from rnsdask.arrays.collection import NumberCollection
from rnsdask.lazy import functions, matmul, powers
from rnsdask.typing import Integers, PlainArray


class Operators(NumberCollection):
    """Operators of arrays of numbers, by the public functions that have the operation's name.

    Those that a number system lacks raise TypeError, which says the way to a system that has them.
    """

    __slots__ = ()

    def __add__(self, other: Self | Integers) -> Self:
        return functions.add(self, other)

    def __radd__(self, other: Integers) -> Self:
        return functions.add(other, self)

    def __sub__(self, other: Self | Integers) -> Self:
        return functions.subtract(self, other)

    def __rsub__(self, other: Integers) -> Self:
        return functions.subtract(other, self)

    def __mul__(self, other: Self | Integers) -> Self:
        return functions.multiply(self, other)

    def __rmul__(self, other: Integers) -> Self:
        return functions.multiply(other, self)

    def __matmul__(self, other: Self | Integers) -> Self:
        return matmul.matmul(self, other)

    def __rmatmul__(self, other: Integers) -> Self:
        return matmul.matmul(other, self)

    def __neg__(self) -> Self:
        return functions.negative(self)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return functions.absolute(self)

    # ---- division and powers ------------------------------------------------------------------------------

    def __floordiv__(self, other: Self | Integers) -> Self:
        return functions.divided(self, other, "quotient")[0]

    def __rfloordiv__(self, other: Integers) -> Self:
        return functions.divided(other, self, "quotient")[0]

    def __mod__(self, other: Self | Integers) -> Self:
        return functions.divided(self, other, "remainder")[0]

    def __rmod__(self, other: Integers) -> Self:
        return functions.divided(other, self, "remainder")[0]

    def __divmod__(self, other: Self | Integers) -> tuple[Self, Self]:
        quotients, remainders = functions.divided(self, other, "quotient", "remainder")
        return quotients, remainders

    def __rdivmod__(self, other: Integers) -> tuple[Self, Self]:
        quotients, remainders = functions.divided(other, self, "quotient", "remainder")
        return quotients, remainders

    def __pow__(self, exponent: Integers, modulus: SupportsIndex | None = None) -> Self:
        """Powers by :func:`.power`; with a modulus, as ``pow(x, k, m)``, powers modulo that integer.

        These are exact, whatever lies between. Their exponent is one integer of any size, or an array of
        machine integers, one for each number; a negative one raises inverses. The modulus' magnitude minus 1
        must be in the range.

        Raises
        ------
        TypeError, ValueError
            If an argument is not of these types, or a number has no inverse, naming its index; that is found
            when a Dask array is computed.
        """
        if modulus is None:
            return powers.power(self, exponent)
        return powers.power_modulo(self, exponent, modulus)

    def __rpow__(self, base: Any) -> Self:
        exponent: Any = self  # which power refuses, as shifts do below
        power: Self = powers.power(base, exponent)
        return power

    # ---- bits ---------------------------------------------------------------------------------------------

    def __lshift__(self, bits: Integers) -> Self:
        return functions.left_shift(self, bits)

    def __rlshift__(self, other: Any) -> Self:
        bits: Any = self
        shifted: Self = functions.left_shift(other, bits)
        return shifted

    def __rshift__(self, bits: Integers) -> Self:
        return functions.right_shift(self, bits)

    def __rrshift__(self, other: Any) -> Self:
        bits: Any = self
        shifted: Self = functions.right_shift(other, bits)
        return shifted

    def __and__(self, other: Self | Integers) -> Self:
        return functions.bitwise_and(self, other)

    def __rand__(self, other: Integers) -> Self:
        return functions.bitwise_and(other, self)

    def __or__(self, other: Self | Integers) -> Self:
        return functions.bitwise_or(self, other)

    def __ror__(self, other: Integers) -> Self:
        return functions.bitwise_or(other, self)

    def __xor__(self, other: Self | Integers) -> Self:
        return functions.bitwise_xor(self, other)

    def __rxor__(self, other: Integers) -> Self:
        return functions.bitwise_xor(other, self)

    def __invert__(self) -> Self:
        return functions.invert(self)

    # ---- comparison ---------------------------------------------------------------------------------------

    # An operand of another type is an error for == too: False would be no answer. As in NumPy and Dask, ==
    # does not return one bool, so there can be no hash.

    def __lt__(self, other: Self | Integers) -> PlainArray[np.bool_]:
        return functions.relate(self, "<", other)

    def __le__(self, other: Self | Integers) -> PlainArray[np.bool_]:
        return functions.relate(self, "<=", other)

    def __gt__(self, other: Self | Integers) -> PlainArray[np.bool_]:
        return functions.relate(self, ">", other)

    def __ge__(self, other: Self | Integers) -> PlainArray[np.bool_]:
        return functions.relate(self, ">=", other)

    def __eq__(self, other: object) -> PlainArray[np.bool_]:  # type: ignore[override]
        return functions.relate(self, "==", other)

    def __ne__(self, other: object) -> PlainArray[np.bool_]:  # type: ignore[override]
        return functions.relate(self, "!=", other)

    __hash__ = None  # type: ignore[assignment]
