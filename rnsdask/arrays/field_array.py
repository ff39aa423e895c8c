"""FieldArray: an array of elements of several prime fields at once, on NumPy, CuPy or Dask."""

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, SupportsIndex

from numpy.typing import DTypeLike

from rnsdask.arrays import rns_storage
from rnsdask.arrays.ring_array import Axis, RingArray, without_axes
from rnsdask.arrays.rns_array import RNSArray
from rnsdask.arrays.storage import Storage
from rnsdask.fields.system import PrimeFields
from rnsdask.lazy import fields as lazy_fields
from rnsdask.lazy import functions, powers
from rnsdask.lazy.operands import Operand, is_number_array
from rnsdask.rns.system import RNS


def _refused(name: str) -> Callable[..., NoReturn]:
    """A method that an array of elements without an order does not have: it raises TypeError."""

    def method(*_: Any, **__: Any) -> NoReturn:
        lazy_fields.refuse(name)

    return method


class FieldArray(RingArray):
    """An array of elements of n prime fields at once, with ``+ - * / **``, ``==`` and sums and products.

    Operands are arrays of the same fields, integers, and lists of integers. An integer stands for the element
    with its residues, whatever its size and sign. Read as an integer, an element is the one from 0 to M - 1
    that stands for it, where M is the product of the primes. Nothing overflows, and there is no order.

    Make one with :func:`.from_ints`, :func:`.from_residues`, :meth:`from_rns` or :func:`.open_zarr`.

    Parameters
    ----------
    words : array of uint32, shape (n, *shape)
        Residues: row i is an element of the field modulo ``primes[i]``, below it, which this class does not
        check (:func:`.from_residues` does). A NumPy or CuPy array is not copied: nobody may write to it any
        more.
    system : PrimeFields
        The fields.

    Raises
    ------
    TypeError, ValueError
        If residues and fields do not fit.
    """

    __slots__ = ()

    system_type = PrimeFields
    storage: ClassVar[Storage] = rns_storage

    # ---- as integers --------------------------------------------------------------------------------------

    @classmethod
    def from_rns(cls, x: Any, fields: PrimeFields) -> "FieldArray":
        """The elements that the integers of an RNSArray or an IntervalRNSArray stand for; lazy if that is.

        Raises
        ------
        TypeError
            If `x` is no such array.
        """
        if not is_number_array(x) or isinstance(x, FieldArray):
            raise TypeError(f"from_rns takes an RNSArray or an IntervalRNSArray, got {type(x).__name__}")
        return cls(x.to_residues(fields.moduli, overflow="wrap"), fields)  # type: ignore[attr-defined]

    def lift(self, signed: bool = False) -> RNSArray:
        """The integers from 0 to M - 1 that stand for the elements, or with `signed` those around 0.

        They have the same residues, under the primes as the moduli set; lazy if this array is.
        """
        return RNSArray(self._words, RNS(self.moduli, signed))

    @property
    def residues(self) -> Any:
        """The elements of each field: NumPy, CuPy or Dask array of uint32, shape (n, *shape).

        A NumPy array is read-only. CuPy knows no such arrays: do not write to it.
        """
        return self.words

    # ---- division and powers ------------------------------------------------------------------------------

    def __truediv__(self, other: Operand) -> Any:
        """Quotients; a divisor that is 0 in a field is a ZeroDivisionError, with its index in an array."""
        return functions.divide(self, other)

    def __rtruediv__(self, other: Operand) -> Any:
        return functions.divide(other, self)

    def inverse(self) -> "FieldArray":
        """Inverse of each element; ZeroDivisionError if one is 0 in a field, with its index."""
        found: FieldArray = powers.inverse(self)
        return found

    def __pow__(self, exponent: Any, modulus: SupportsIndex | None = None) -> Any:
        """Powers by :func:`.power`, negative ones of the inverses; a modulus is a TypeError."""
        if modulus is not None:
            raise TypeError("pow of a FieldArray takes no modulus, for the fields have their own")
        return powers.power(self, exponent)

    # ---- sums and products --------------------------------------------------------------------------------

    def sum(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Sum of all elements or along axes, in each field; 0 of none.

        Parameters
        ----------
        axis : int or tuple of int, optional
            The axes to reduce; all without it.
        dtype, out
            There for NumPy, whose ``np.sum(x)`` gives them.
        keepdims : bool
            Keep the axes reduced, with length 1.
        split_every : int, optional
            How many partial results a task of the tree combines, on Dask.

        Returns
        -------
        int or FieldArray
            Of all elements a Python int, from 0 to M - 1; on Dask a lazy 0-d array that computes to one.

        Raises
        ------
        ValueError
            If an axis is wrong.
        """
        return self._reduced("sum", axis, dtype, out, keepdims, split_every)

    def prod(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Product of all elements or along axes, in each field; 1 of none. As :meth:`sum`."""
        return self._reduced("prod", axis, dtype, out, keepdims, split_every)

    def _reduced(
        self,
        name: str,
        axis: Axis | None,
        dtype: DTypeLike | None,
        out: None,
        keepdims: bool,
        split_every: int | None,
    ) -> Any:
        self._check_numpys(name, out, dtype)
        axes = self._axes(axis)
        self._find_lengths()
        found = lazy_fields.reduce_along(name, self, axes, split_every)
        return found if keepdims else without_axes(found, axes)

    # ---- order, which there is none of --------------------------------------------------------------------

    __lt__, __le__, __gt__, __ge__ = map(_refused, ("<", "<=", ">", ">="))
    max, min, argmax, argmin, cummax, cummin = map(
        _refused, ("max", "min", "argmax", "argmin", "cummax", "cummin")
    )
    sort, argsort, topk, argtopk, clip = map(_refused, ("sort", "argsort", "topk", "argtopk", "clip"))
