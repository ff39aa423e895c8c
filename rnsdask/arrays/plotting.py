"""Pictures of numbers of any size by Matplotlib, which the extra ``plot`` installs."""

from fractions import Fraction
from typing import Any

import numpy as np
from dask.base import compute

from rnsdask.lazy.histogram import histogram
from rnsdask.lazy.logarithm import log2 as logarithms

# Bits of the greatest number that an axis shows as it is: Matplotlib adds margins to what doubles hold.
_MOST_BITS = 1000

_MOST_POINTS = 10**6
"""Numbers that a line has at most, each of which becomes a Python int and a double."""


class Plot:
    """Pictures of an array's numbers: ``x.plot.hist()``, ``x.plot.line()``.

    An axis has doubles. Where numbers are beyond their range, it shows them divided by a power of two, which
    its label names. A lazy array is computed.
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    def hist(
        self,
        bins: Any = 10,
        *,
        range: Any = None,  # noqa: A002  (as of rd.histogram)
        log2: bool = False,
        ax: Any = None,
        **options: Any,
    ) -> Any:
        """Draw how many numbers are in each bin, counted exactly.

        Parameters
        ----------
        bins, range
            As :func:`.histogram` takes them; with `log2` as ``numpy.histogram``, of the logarithms.
        log2 : bool
            Show the distribution of the logarithms to the base 2, for numbers of very different sizes.
        ax : matplotlib.axes.Axes, optional
            Where to draw; without it the current axes.
        **options
            Of Matplotlib's ``stairs``, such as ``color``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        TypeError, ValueError
            As :func:`.histogram`; or if a logarithm is asked for of a number that is not positive.
        """
        axes = _axes(ax)
        if log2:
            counts, edges = np.histogram(self._logarithms(), bins, range)
            label = "log2 of the numbers"
        else:
            counts, exact_edges = compute(*histogram(self._array, bins, range))
            shift = _shift(exact_edges)
            edges, label = _scaled(exact_edges, shift), _label("numbers", shift)
        axes.stairs(counts, edges, **{"fill": True, **options})
        axes.set_xlabel(label)
        axes.set_ylabel("count")
        return axes

    def line(self, *, log2: bool = False, ax: Any = None, **options: Any) -> Any:
        """Draw the numbers of one axis against their index.

        Parameters
        ----------
        log2 : bool
            Draw the logarithms to the base 2.
        ax : matplotlib.axes.Axes, optional
            Where to draw; without it the current axes.
        **options
            Of Matplotlib's ``plot``, such as ``color`` and ``marker``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        ValueError
            If the array has several axes, or more than a million numbers, or a logarithm is asked for of a
            number that is not positive.
        """
        array = self._array
        if array.ndim != 1:
            raise ValueError(f"plot.line draws numbers along one axis, got shape {array.shape}; select some")
        if len(array) > _MOST_POINTS:
            way = f"x[::{-(-len(array) // _MOST_POINTS)}].plot.line() draws some of them"
            raise ValueError(f"plot.line draws at most {_MOST_POINTS} numbers, got {len(array)}; {way}")
        axes = _axes(ax)
        if log2:
            values, label = self._logarithms(), "log2 of the number"
        else:
            integers = array.to_ints()
            shift = _shift(integers)
            values, label = _scaled(integers, shift), _label("number", shift)
        axes.plot(values, **options)
        axes.set_xlabel("index")
        axes.set_ylabel(label)
        return axes

    def _logarithms(self) -> Any:
        """The logarithms of all numbers in one NumPy array (N,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            (found,) = compute(logarithms(self._array))
        flat = (found.get() if hasattr(found, "get") else found).ravel()
        if not np.isfinite(flat).all():
            place = int((~np.isfinite(flat)).argmax())
            raise ValueError(f"log2=True is for positive numbers; the one at flat index {place} is not")
        return flat


def _axes(ax: Any) -> Any:
    """The axes to draw on."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("pictures need Matplotlib: pip install 'rnsdask[plot]'") from None
    return pyplot.gca()


def _shift(integers: Any) -> int:
    """The bits by which integers are shifted so that doubles hold all; 0 if they do as they are."""
    bits = max((abs(value).bit_length() for value in integers), default=0)
    return bits if bits > _MOST_BITS else 0


def _scaled(integers: Any, shift: int) -> Any:
    """Integers divided by a power of two, each rounded once."""
    return np.array([float(Fraction(value, 1 << shift)) for value in integers])


def _label(what: str, shift: int) -> str:
    return f"{what} / 2**{shift}" if shift else what
