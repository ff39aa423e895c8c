"""FieldArray: an array of elements of prime fields, or of a Fermat field, on NumPy, CuPy or Dask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, NoReturn, Self, SupportsIndex

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from rnsdask.arrays.integer_array import IntegerArray
from rnsdask.arrays.number_array import NumberArray
from rnsdask.arrays.reductions import FieldReductions
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.core import rows
from rnsdask.core.moduli import fewest_moduli
from rnsdask.fields.fermat_field import FermatField
from rnsdask.fields.system import FiniteFields, PrimeFields, WidePrimeFields, centring_offset
from rnsdask.lazy import convert, functions, powers
from rnsdask.lazy import fields as lazy_fields
from rnsdask.lazy.elementwise import refuse
from rnsdask.lazy.foreign import words_of_residues
from rnsdask.lazy.operands import is_number_array
from rnsdask.rns.system import RNS
from rnsdask.typing import Integers, PlainArray


def _make_refusal(name: str) -> Callable[..., NoReturn]:
    """Make a method that raises TypeError, for operations that need an order."""

    def method(self: Any, *_: Any, **__: Any) -> NoReturn:
        refuse(name, self, rows.compare)

    method.__name__ = name
    method.__doc__ = "Raise TypeError: elements of fields have no order."
    return method


class FieldArray(FieldReductions, NumberArray):
    """An array of elements of fields, with ``+ - * / **``, ``==`` and sums and products.

    Elements belong to n prime fields at once, or to one Fermat field. Operands are arrays of the same fields,
    integers, and lists of integers. An integer of any size and sign represents the element with its residues.
    An element converts to the integer from 0 to M - 1 that represents it, where M is the product of the
    primes. Nothing overflows, and there is no order.

    Make one with :func:`.from_ints`, :func:`.from_residues`, :meth:`from_words`, :meth:`from_rns` or
    :func:`.open_zarr`.

    Parameters
    ----------
    words : array, shape (rows, *shape)
        Residues or digits as the system defines them, of its ``word_dtype``. This class does not check them
        (:func:`.from_residues` and :meth:`from_words` do). A NumPy or CuPy array is not copied: do not write
        to it afterwards.
    system : PrimeFields or FermatField
        The fields.

    Raises
    ------
    TypeError, ValueError
        If residues and fields do not fit.
    """

    __slots__ = ()

    system_type = FiniteFields
    _dasks_way: ClassVar[str] = "x.lift().to_dask_array()"

    @property
    def system(self) -> FiniteFields:
        """Number system of the words."""
        system: FiniteFields = self._system
        return system

    # ---- as integers --------------------------------------------------------------------------------------

    @classmethod
    def from_words(cls, words: NDArray[Any] | da.Array | PlainArray[Any], field: FermatField) -> FieldArray:
        """Make an array of elements of a Fermat field from their digits, which are checked.

        Parameters
        ----------
        words : array of the field's `word_dtype`, shape (digits, *shape)
            NumPy, CuPy, or Dask. In memory it is copied, so that later writes to it change nothing.

        Raises
        ------
        TypeError
            If `field` is not a FermatField (:func:`.from_residues` is for prime fields), or the digits are of
            another type.
        ValueError
            If the shape is wrong, or digits do not form an element. It names that element's flat index; for a
            Dask array when it is computed.
        """
        if not isinstance(field, FermatField):
            raise TypeError(f"from_words takes a FermatField, got {type(field).__name__}; see from_residues")
        field.check_words(words)
        return cls(lazy_fields.checked_words(words, field), field)

    @classmethod
    def from_rns(cls, x: IntegerArray, fields: FiniteFields) -> FieldArray:
        """Make an array of the elements that the integers of any array represent; lazy if `x` is.

        Raises
        ------
        TypeError
            If `x` is not an RNSArray, IntervalRNSArray or PositionalArray, or `fields` are not a PrimeFields
            or FermatField.
        """
        if not is_number_array(x) or isinstance(x, FieldArray):
            raise TypeError(f"from_rns takes an array of integers, got {type(x).__name__}")
        if not isinstance(fields, FiniteFields):
            raise TypeError(f"from_rns takes PrimeFields or a FermatField, got {type(fields).__name__}")
        return cls(convert.words_in(x, fields), fields)

    def lift(self, signed: bool = False, half: Literal["up", "down"] | None = None) -> RNSArray:
        """Return the integers from 0 to M - 1, or with `signed` around 0, that represent the elements.

        For primes below 2**32 the result has the same residues, with the primes as the moduli set, unless
        `half` gives a range that these do not have; for others and for a Fermat field it has the fewest
        32-bit moduli. Lazy if this array is.

        Parameters
        ----------
        half : {"up", "down"}, optional
            With `signed`, where programs differ: whether the element ``M // 2`` is positive, as by
            ``x > M // 2`` in OpenFHE, or negative, as by ``x >= M // 2`` in Lattigo. By default it is
            negative only if M is even, as by ``x >= (M + 1) // 2`` in SEAL and HEonGPU.

        Raises
        ------
        TypeError
            If `signed` is not a bool.
        ValueError
            If `half` is wrong, or given without `signed`.
        """
        lowest, greatest = self._system.value_range  # 0 and M - 1
        below = centring_offset(greatest + 1, signed, half)
        lowest, greatest = lowest - below, greatest - below
        moduli = self._system.residue_moduli
        if moduli is not None and moduli.value_range(signed) == (lowest, greatest):
            return RNSArray(self._words, RNS(moduli, bool(signed)))
        system = RNS(fewest_moduli(lowest, greatest, bool(signed)), bool(signed))
        bounded = system.with_bound(max(greatest, below))
        if isinstance(self._system, WidePrimeFields):
            wide = self._system.moduli
            if wide.value_range(signed) == (lowest, greatest):
                return RNSArray(words_of_residues(self._words, wide, bounded, trusted=True), bounded)
        raised = RNSArray((self + below).to_residues(system.moduli, overflow="wrap"), system)
        # Sums from 0 to M - 1 may be out of range; the differences, modulo the product, are not.
        lifted = functions.subtract(raised, below, overflow="wrap")
        return RNSArray(lifted.residues, bounded)

    def to_dask_array(self) -> NoReturn:
        """Raise TypeError: Dask's functions would add and multiply integers, not elements.

        Raises
        ------
        TypeError
            Always; ``x.lift().to_dask_array()`` is a Dask array of the integers from 0 to M - 1.
        """
        raise TypeError(
            "a FieldArray is no Dask array: Dask's functions would calculate with integers, not elements of "
            "fields; functions of np and rd take it, and x.lift().to_dask_array() has its integers"
        )

    @property
    def residues(self) -> PlainArray[np.uint32 | np.uint64]:
        """Residues in each prime field: NumPy, CuPy or Dask array of uint32 or uint64, shape (n, *shape).

        A NumPy array is read-only. CuPy has no read-only arrays: do not write to one.

        Raises
        ------
        AttributeError
            For a Fermat field, whose elements have digits instead: :attr:`words`.
        """
        if not isinstance(self._system, PrimeFields):
            raise AttributeError("elements of a FermatField have no residues but digits: x.words")
        return self.words

    # ---- division -----------------------------------------------------------------------------------------

    def __truediv__(self, divisor: Self | Integers) -> Self:
        return functions.divide(self, divisor)

    def __rtruediv__(self, dividend: Integers) -> Self:
        return functions.divide(dividend, self)

    def inverse(self) -> FieldArray:
        """Invert each element; ZeroDivisionError, with its index, if an element is 0 in a field."""
        return powers.inverse(self)

    def multiply_by_root(self, exponent: SupportsIndex) -> FieldArray:
        """Multiply elements of a Fermat field by a power of its radix r, ``x * r**exponent``.

        Digits move, and those that wrap around change their sign, as ``r**digits`` is -1: no product is
        computed. r is a root of unity of order ``2 * digits``.

        Parameters
        ----------
        exponent : int
            Any integer, including a negative one.

        Raises
        ------
        TypeError
            If the elements are of prime fields, or the exponent is not an integer.
        """
        found: FieldArray = lazy_fields.multiply_by_root(self, exponent)
        return found

    # ---- operations that need an order ---------------------------------------------------------------------

    max, min, argmax, argmin, cummax, cummin = map(
        _make_refusal, ("max", "min", "argmax", "argmin", "cummax", "cummin")
    )
    sort, argsort, topk, argtopk, clip = map(_make_refusal, ("sort", "argsort", "topk", "argtopk", "clip"))
