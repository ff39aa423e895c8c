"""What arrays of integers of every number system have of NumPy's elementary methods."""

from typing import Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from rnsdask.arrays.arithmetic_array import ArithmeticArray
from rnsdask.arrays.operators import deferring
from rnsdask.arrays.ring_array import Axis, without_axes
from rnsdask.core.errors import abbreviate, with_article
from rnsdask.core.moduli import as_integer
from rnsdask.core.overflow import overflow_mode
from rnsdask.lazy import functions, moments, powers, products
from rnsdask.lazy.growing import extends
from rnsdask.lazy.operands import Operand, filled_like
from rnsdask.lazy.tree import checked_split


class ElementaryArray(ArithmeticArray):
    """An array of numbers with absolute values, `clip`, products, powers, exact statistics."""

    __slots__ = ()

    def __abs__(self) -> Any:
        return functions.absolute(self)

    def clip(
        self,
        min: Operand | None = None,  # noqa: A002
        max: Operand | None = None,  # noqa: A002
        out: None = None,
    ) -> Any:
        """The numbers, but none below `min` or above `max`: :func:`.clip`; `out` is there for NumPy."""
        self._check_numpys("clip", out)
        return functions.clip(self, min, max)

    # ---- products and powers ------------------------------------------------------------------------------

    @deferring
    def __pow__(self, exponent: Any, modulus: SupportsIndex | None = None) -> Any:
        """Powers by :func:`.power`; with a modulus, as ``pow(x, k, m)``, powers modulo that integer.

        These are exact, whatever lies between. Their exponent is one integer of any size, or an array of
        machine integers, one for each number; a negative one raises inverses. The modulus' magnitude minus 1
        must be in the range.

        Raises
        ------
        TypeError, ValueError
            If an argument is none of these, or a number has no inverse, naming its index; that is found when
            a Dask array is computed.
        """
        if modulus is None:
            return powers.power(self, exponent)
        return powers.power_modulo(self, exponent, modulus)

    @deferring
    def __rshift__(self, bits: Any) -> Any:
        """Floor division by ``2**bits``, as :func:`.right_shift`."""
        return functions.right_shift(self, bits)

    @deferring
    def __lshift__(self, bits: Any) -> Any:
        """Product with ``2**bits``, as :func:`.left_shift`; overflow as in a product."""
        return functions.left_shift(self, bits)

    def prod(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        overflow: str | None = None,
        split_every: int | None = None,
        backend: str = "auto",
    ) -> Any:
        """Product of all numbers or along axes, exact; 1 of no numbers.

        Parameters
        ----------
        axis, dtype, out, keepdims
            Those of :meth:`sum`.
        overflow : {"raise", "wrap", "flag", "extend"}, optional
            What happens if it is out of range; without it, what :func:`.errstate` set, else ``"extend"`` for
        arrays whose range grows, ``"raise"`` for others.
        split_every : int, optional
            How many partial results a task of the tree combines.
        backend : {"auto", "cpu", "cuda"}
            Where the chunks of a Dask array are gone through, as for :meth:`reduce`.

        Returns
        -------
        int or RNSArray
            Of all numbers a Python int, on Dask a lazy 0-d array that computes to one; along some axes, or
            with `keepdims`, an RNSArray. With ``"wrap"`` modulo M, as numbers of the range; with ``"flag"`` a
            pair, the same and a bool, or Boolean array, that is true where the exact product is out of range.

        Raises
        ------
        RNSOverflowError
            With ``"raise"``, if a product is out of range, naming its flat index in the result; on Dask
            when it is computed.
        ValueError
            If an axis is wrong.
        """
        self._check_numpys("prod", out, dtype)
        axes = self._axes(axis)
        checked_split(split_every)
        if not axes:
            mode = "raise" if extends(overflow, self) else overflow_mode(overflow, self.system)
            return (self, filled_like(self._words, 0, np.bool_)) if mode == "flag" else self
        if len(axes) == self.ndim and not keepdims:
            return products.prod(self, overflow, split_every, backend)
        self._find_lengths()
        found = products.prod_along(self, axes, overflow, split_every)
        if keepdims:
            return found
        if isinstance(found, tuple):
            return without_axes(found[0], axes), without_axes(found[1], axes)
        return without_axes(found, axes)

    def _line(self, axis: int | None) -> tuple[Any, int]:
        """The array and its axis, or with None all numbers along one axis."""
        self._find_lengths()
        if axis is None:
            return self if self.ndim == 1 else self.ravel(), 0
        return self, self._axes(as_integer(axis, "axis"))[0]

    # ---- statistics ---------------------------------------------------------------------------------------

    def mean(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Mean of all numbers or along axes, exact.

        Parameters are those of `sum`.

        Returns
        -------
        fractions.Fraction
            On Dask a lazy 0-d array that computes to one. Along some axes, or with `keepdims`, an object
            array of them.

        Raises
        ------
        ValueError
            If an axis is wrong, there are no numbers, or a length is unknown.
        """
        self._check_numpys("mean", out, dtype)
        count = self._count("mean", axis)
        options: dict[str, Any] = {"keepdims": True} if keepdims else {}
        total = self.sum(axis, split_every=split_every, **options)  # type: ignore[attr-defined]
        return moments.mean(total, count)

    def std(self, *_: Any, **__: Any) -> NoReturn:
        """Refused, for a standard deviation is irrational as a rule.

        Raises
        ------
        TypeError
            Always; it names the way out.
        """
        raise TypeError(
            f"std of {with_article(type(self))} would not be exact: it is the root of the variance, which "
            "math.sqrt(x.var()) takes to a float"
        )

    def _count(self, function: str, axis: Axis | None, ddof: int = 0) -> int:
        """How many numbers are reduced to one; ValueError if they are too few, or it is unknown."""
        self._find_lengths()
        freedom = as_integer(ddof, "ddof")
        count = int(np.prod([self.shape[k] for k in self._axes(axis)], dtype=object))
        if count <= max(freedom, 0):
            needed = (
                "at least one number" if freedom <= 0 else f"more numbers than ddof={abbreviate(freedom)}"
            )
            raise ValueError(f"{function} needs {needed}, got {count} of shape {self.shape}")
        return count
