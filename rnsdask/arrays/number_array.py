"""NumberArray: the common base of arrays of every number system, with NumPy's protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np

from rnsdask.arrays import protocols
from rnsdask.arrays.reductions import Truth
from rnsdask.arrays.showing import Showing
from rnsdask.arrays.storage import Storage
from rnsdask.arrays.tables import Tables
from rnsdask.lazy.operands import is_true
from rnsdask.typing import Integer


class NumberArray(Tables, Storage, Truth, Showing):
    """An array of numbers with NumPy's indexing and shapes, ``+ - *``, ``@``, ``== !=``, and conversions."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Whether the array's only number differs from 0, as in NumPy; computes a lazy array.

        Raises
        ------
        ValueError
            If the array has no number, or more than one.
        """
        self._find_lengths()
        count = self.size
        if count != 1:
            kind = "truth value of an empty array" if count == 0 else f"truth value of {count} numbers"
            raise ValueError(f"the {kind} is ambiguous; use a comparison and any() or all()")
        return bool(self.to_ints().item())

    def __contains__(self, value: Any) -> bool:
        """Whether a number equals a value, as in NumPy; computes a lazy array."""
        return is_true((self == value).any())

    def __iter__(self) -> Iterator[Integer | Self]:
        """Iterate along the first axis: Python ints if it is the only axis, else arrays.

        A lazy array of one axis is computed chunk by chunk; with more axes its parts are lazy, as in Dask.
        """
        if self.ndim > 1:
            self._find_lengths()
            return (self[i] for i in range(len(self)))
        if not self._is_lazy:
            return iter(self.to_ints())
        blocks = self._with_words(self._words).blocks  # a copy: finding lengths changes self in place
        return (number for i in range(blocks.size) for number in blocks[i].to_ints())

    @property
    def real(self) -> Self:
        """Return the array itself: its numbers have no imaginary part."""
        return self

    @property
    def imag(self) -> Self:
        """Return zeros in the shape of the array."""
        # xarray converts arrays without `real` and `imag`.
        like: Any = self
        zeros: Self = np.zeros_like(like)
        return zeros

    # ---- protocols of NumPy -------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply ufuncs of NumPy such as ``np.add``; see :mod:`.protocols`."""
        return protocols.apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(
        self, function: Callable[..., Any], types: Iterable[type], args: Any, kwargs: Any
    ) -> Any:
        """Apply functions of NumPy such as ``np.concatenate``; see :mod:`.protocols`."""
        return protocols.apply_function(function, types, args, kwargs)
