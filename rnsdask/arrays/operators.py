"""Operators: the mixin of number arrays with ``+ - * @``, ``// % **``, operators of bits and comparisons."""

from __future__ import annotations

from typing import Any, Self, SupportsIndex

import numpy as np

from rnsdask.arrays.collection import NumberCollection
from rnsdask.lazy import functions, matmul, powers
from rnsdask.typing import Integers, PlainArray


class Operators(NumberCollection):
    """Operators of arrays of numbers, each by the public function of the operation's name.

    An operation that a number system lacks raises TypeError, which names the way to a system that has it.
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
        return functions.floor_divide(self, other, "quotient")[0]

    def __rfloordiv__(self, other: Integers) -> Self:
        return functions.floor_divide(other, self, "quotient")[0]

    def __mod__(self, other: Self | Integers) -> Self:
        return functions.floor_divide(self, other, "remainder")[0]

    def __rmod__(self, other: Integers) -> Self:
        return functions.floor_divide(other, self, "remainder")[0]

    def __divmod__(self, other: Self | Integers) -> tuple[Self, Self]:
        quotients, remainders = functions.floor_divide(self, other, "quotient", "remainder")
        return quotients, remainders

    def __rdivmod__(self, other: Integers) -> tuple[Self, Self]:
        quotients, remainders = functions.floor_divide(other, self, "quotient", "remainder")
        return quotients, remainders

    def __pow__(self, exponent: Integers, modulus: SupportsIndex | None = None) -> Self:
        """Raise to a power by :func:`.power`, or with a modulus, as ``pow(x, k, m)``, modulo that integer.

        Powers modulo an integer are exact whatever the size of the powers. The exponent is one integer of any
        size, or an array of machine integers, one for each number; a negative exponent applies to inverses.
        The magnitude of the modulus minus 1 must be in the range.

        Raises
        ------
        TypeError, ValueError
            If an argument is not of these types, or a number has no inverse. The latter error names the
            number's index; for a Dask array when it is computed.
        """
        if modulus is None:
            return powers.power(self, exponent)
        return powers.power_modulo(self, exponent, modulus)

    def __rpow__(self, base: Any) -> Self:
        exponent: Any = self  # power refuses an array as the exponent, as shifts do below
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

    # An operand of another type is an error for == too: False would be wrong. As in NumPy and Dask, == does
    # not return one bool, so there can be no hash.

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
