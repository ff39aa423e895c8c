"""Products of polynomials."""

from typing import Any

from rnsdask.lazy.convolve import convolve


def multiply(f: Any, g: Any, *, overflow: str | None = None) -> Any:
    """Product of polynomials: the convolution of their coefficients, as :func:`.convolve` with ``"full"``.

    Parameters
    ----------
    f, g : RNSArray, IntervalRNSArray, FieldArray, list of int, or int
        At least one array, (..., A) and (..., B); the other axes are those of many polynomials, and
        broadcast.
    overflow : {"raise", "wrap", "flag", "extend"}, optional
        What happens to coefficients out of range, as in :func:`.convolve`.

    Returns
    -------
    RNSArray, IntervalRNSArray or FieldArray, shape (..., A + B - 1)
        Lazy if an operand is. With ``"flag"`` a pair, as of :func:`.convolve`.

    Raises
    ------
    RNSOverflowError, TypeError, ValueError
        As :func:`.convolve`.
    """
    return convolve(f, g, overflow=overflow)
