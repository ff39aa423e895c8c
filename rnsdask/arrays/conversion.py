"""Conversion: the mixin that converts an array to Python ints and to arrays of NumPy and Dask."""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np
from dask.base import compute
from numpy.typing import DTypeLike, NDArray

from rnsdask.arrays.operators import Operators
from rnsdask.arrays.shapes import Shapes
from rnsdask.backend import to_backend
from rnsdask.cluster.workers import checked_workers
from rnsdask.core.errors import brief, with_article
from rnsdask.lazy import convert, doubles, foreign
from rnsdask.lazy.casting import to_machine_integers
from rnsdask.lazy.lazy_ints import LazyInts
from rnsdask.typing import PlainArray

Kind = TypeVar("Kind", bound=np.generic)

_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


class Conversion(Shapes, Operators):
    """Conversions of the numbers, exact unless rounding is asked for."""

    __slots__ = ()

    def to_ints(self) -> NDArray[np.object_]:
        """Convert to a NumPy object array of Python ints, of the same shape. Computes a lazy array."""
        ints = convert.to_ints(self)
        if self._is_lazy:
            with checked_workers():
                ints = ints.compute()
        return np.asarray(ints)

    def tolist(self) -> list[Any]:
        """Convert all numbers to nested lists of Python ints; computes a lazy array."""
        found: list[Any] = self.to_ints().tolist()
        return found

    def item(self, *args: SupportsIndex | tuple[SupportsIndex, ...]) -> int:
        """Return one number as a Python int, as ``ndarray.item``; computes it in a lazy array.

        Parameters
        ----------
        *args
            Nothing, for an array of one number; or a flat (C order) index; or an index for each axis.

        Raises
        ------
        ValueError
            If the array has more than one number, or there is not one index for each axis.
        IndexError
            If an index is out of bounds.
        """
        self._find_lengths()
        if not args and self.size != 1:
            raise ValueError(f"item() takes an array of one number, got shape {self.shape}; name an index")
        index: Any = args[0] if len(args) == 1 else args or (0,) * self.ndim
        if isinstance(index, tuple):
            if len(index) != self.ndim:
                raise ValueError(f"item() takes an index of each of {self.ndim} axes, got {brief(index)}")
            return int(self[tuple(map(operator.index, index))])
        flat = operator.index(index)
        if not -self.size <= flat < self.size:
            raise IndexError(f"index {flat} is out of bounds for size {self.size}")
        return int(self[np.unravel_index(flat % self.size, self.shape)])

    @overload
    def astype(
        self, dtype: type[Kind] | np.dtype[Kind], copy: bool = True, *, casting: str = "safe"
    ) -> PlainArray[Kind]: ...
    @overload
    def astype(
        self, dtype: DTypeLike, copy: bool = True, *, casting: str = "safe"
    ) -> PlainArray[np.generic]: ...
    def astype(self, dtype: DTypeLike, copy: bool = True, *, casting: str = "safe") -> PlainArray[np.generic]:
        """Convert the numbers to another type: exactly, or to rounded floats if `casting` allows it.

        Parameters
        ----------
        dtype
            object for Python ints; a type of integers; bool, true for numbers other than 0; or, with
            ``casting="unsafe"``, float32 or float64.
        copy : bool
            With False, an array in memory is returned unchanged if `dtype` is its own type, object: so xarray
            pads numbers, not objects. Otherwise the result is a new array.
        casting : {"safe", "unsafe", "no", "equiv", "same_kind"}
            ``"unsafe"`` allows floats too: each number is rounded to nearest, ties to even, as Python's
            ``float`` does. Integers never wrap. The other values allow no rounding.

        Returns
        -------
        array of `dtype`, of the same shape
            NumPy; CuPy if the words are, except for object; lazy on Dask.

        Raises
        ------
        TypeError
            If `dtype` is another type, or a float type without ``casting="unsafe"``, or a float type for
            elements of fields.
        ValueError
            If `casting` is not one of these words.
        OverflowError
            If a number does not fit, or is beyond the greatest float (NumPy would return infinity). It names
            the number's flat index, the first in its chunk; for a lazy array when it is computed.
        """
        if casting not in _CASTINGS:
            raise ValueError(
                f"casting must be one of {', '.join(map(repr, _CASTINGS))}, got {brief(casting)}"
            )
        wanted = np.dtype(dtype)
        if wanted.kind == "b":
            return self != 0
        if wanted.kind != "O":
            rounds = wanted.kind == "f" and casting == "unsafe"
            to_machine = doubles.to_floats if rounds else to_machine_integers
            numbers: PlainArray[np.generic] = to_machine(self, wanted)
            return numbers
        ints: Any = self
        if copy or self._is_lazy:
            ints = self._lazy_ints() if self._is_lazy else self.to_ints()
        found: PlainArray[np.generic] = ints
        return found

    def to_numpy(self, dtype: DTypeLike | None = None, *, casting: str = "safe") -> NDArray[Any]:
        """Convert the numbers to a NumPy array of int64, or of uint64 if only that holds them.

        Matplotlib calls it, as in ``plt.plot(x)`` and ``plt.hist(x)``. Computes a lazy array.

        Parameters
        ----------
        dtype, casting
            Another type, as :meth:`astype` takes it: ``x.to_numpy(float, casting="unsafe")`` rounds.

        Raises
        ------
        TypeError, ValueError
            As :meth:`astype`.
        OverflowError
            If `dtype`, or else both int64 and uint64, cannot hold all numbers; it names a way that can.
        """
        if dtype is not None:
            (found,) = compute(self.astype(dtype, casting=casting))
            return np.asarray(to_backend(found, "cpu"))
        for kind in (np.int64, np.uint64):
            try:
                (found,) = compute(to_machine_integers(self, np.dtype(kind)))
            except OverflowError:
                continue
            return np.asarray(to_backend(found, "cpu"))
        raise OverflowError(
            "the numbers do not fit into 64 bits: x.plot.hist() and x.plot.line() draw them, rd.histogram(x) "
            "counts them, x.log2() gives float64 and x.to_ints() Python ints"
        )

    def to_dask_array(self) -> LazyInts:
        """Convert to a Dask array of Python ints, as ``da.asarray(x)`` does.

        Dask's own functions, such as ``da.concatenate``, compute with Python ints; NumPy's and this package's
        keep residues. docs/numpy.md lists all of Dask's functions.
        """
        return self._lazy_ints()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Convert to a NumPy array of Python ints, so that no bit is lost."""
        name = with_article(type(self))
        if dtype is not None and np.dtype(dtype) != object:
            raise TypeError(
                f"{name} converts to dtype object only, got {np.dtype(dtype)}; x.astype(dtype) converts what "
                'fits, x.astype(float, casting="unsafe") rounds, and x.to_zarr(path) stores the numbers, '
                "which xarray does not"
            )
        if copy is False:
            raise ValueError(f"{name} cannot be converted to an array of numbers without a copy")
        return self.to_ints()

    def __int__(self) -> int:
        # An array has at least one axis. The method is here for type checkers, which then accept int(x[i]).
        raise TypeError(
            f"int() takes one number, got {with_article(type(self))}; x.item(i) gives one of an array"
        )

    def _lazy_ints(self) -> LazyInts:
        """Convert any array, of fields too, to a Dask array of Python ints."""
        return LazyInts.of_ints(convert.to_ints(self if self._is_lazy else self.rechunk()))

    # ---- words of other programs --------------------------------------------------------------------------

    to_residues = foreign.to_residues
    to_limbs = foreign.to_limbs
    to_bytes = foreign.to_bytes
