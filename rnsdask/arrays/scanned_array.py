"""What arrays of integers have that takes numbers in order, or their squares: running results, variance."""

from typing import Any

from numpy.typing import DTypeLike

from rnsdask.arrays.elementary_array import ElementaryArray
from rnsdask.arrays.reduced_array import ReducedArray
from rnsdask.arrays.ring_array import Axis, without_axes
from rnsdask.core.moduli import as_integer
from rnsdask.lazy import moments, scan
from rnsdask.lazy.tree import checked_split


class ScannedArray(ElementaryArray, ReducedArray):
    """An array of integers with `var`, `cumsum`, `cumprod`, `cummax` and `cummin`."""

    __slots__ = ()

    # ---- statistics ---------------------------------------------------------------------------------------

    def var(
        self,
        axis: Axis | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        *,
        keepdims: bool = False,
        split_every: int | None = None,
    ) -> Any:
        """Variance of all numbers or along axes, exact, as :meth:`mean` gives means.

        Parameters
        ----------
        axis, dtype, out, keepdims
            Those of :meth:`sum`.
        ddof : int
            The sum of the squares of the differences from the mean is divided by the count minus this.
        split_every : int, optional
            How many partial results a task of the tree combines.

        Raises
        ------
        TypeError
            If `ddof` is no integer.
        ValueError
            If an axis is wrong, there are no more numbers than `ddof`, or a length is unknown.
        """
        self._check_numpys("var", out, dtype)
        axes, count = self._axes(axis), self._count("var", axis, ddof)
        checked_split(split_every)
        if not axes:  # each number is its own mean
            return moments.mean(self.astype(object) * 0, 1)
        variances = moments.variance(self, axes, count, as_integer(ddof, "ddof"), split_every)
        return variances if keepdims else without_axes(variances, axes)

    # ---- scan ---------------------------------------------------------------------------------------------

    def cumsum(
        self,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        backend: str = "auto",
    ) -> Any:
        """Sums of all numbers up to each one along an axis, exactly.

        On Dask, one pass over the chunks gives their sums and a second one writes, with the same chunks. The
        array is made, or read, in each of them, so that it need not fit in memory.

        Parameters
        ----------
        axis : int, optional
            The axis; without it the result is that of :meth:`ravel`, as NumPy's.
        dtype, out
            There for NumPy, whose ``np.cumsum(x)`` gives them.
        backend : {"auto", "cpu", "cuda"}
            Where the first pass over a Dask array's chunks computes, as for :meth:`reduce`. The second one
            does so where they are.

        Raises
        ------
        ValueError
            If there is no such axis, or a length is unknown.
        RNSOverflowError
            If a sum is out of range, naming the first one; for a Dask array when it is computed, naming
            the first one of a chunk or the last one before it.
        """
        self._check_numpys("cumsum", out, dtype)
        x, k = self._line(axis)
        return scan.running_sums(x, k, backend)

    def cumprod(
        self,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        *,
        overflow: str | None = None,
        backend: str = "auto",
    ) -> Any:
        """Products of all numbers up to each one along an axis, in two passes as :meth:`cumsum`.

        Parameters
        ----------
        axis, dtype, out, backend
            Those of :meth:`cumsum`.
        overflow : {"raise", "wrap", "flag", "extend"}, optional
            What happens to products out of range; without it, what :func:`.errstate` set, else ``"extend"``
            for arrays whose range grows, ``"raise"`` for others.

        Returns
        -------
        array like this one
            With ``"wrap"`` the products modulo M; with ``"flag"`` a pair, the same and a Boolean array that
            is true where the exact product is out of range.

        Raises
        ------
        RNSOverflowError
            With ``"raise"``, if a product is out of range, naming the first one; for a Dask array when it is
            computed, naming the first one of a chunk.
        ValueError
            If there is no such axis, or a length is unknown.
        """
        self._check_numpys("cumprod", out, dtype)
        x, k = self._line(axis)
        return scan.running_products(x, k, overflow, backend)

    def cummax(self, axis: int | None = None, *, backend: str = "auto") -> Any:
        """Maxima of all numbers up to each one along an axis, in two passes as :meth:`cumsum`."""
        x, k = self._line(axis)
        return scan.running_extrema(x, k, False, backend)

    def cummin(self, axis: int | None = None, *, backend: str = "auto") -> Any:
        """Minima of all numbers up to each one along an axis, in two passes as :meth:`cumsum`."""
        x, k = self._line(axis)
        return scan.running_extrema(x, k, True, backend)
