"""What happens on overflow, set for a block of code as NumPy's ``errstate`` does."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rnsdask.core.number_system import NumberSystem

OVERFLOW_MODES = ("raise", "wrap", "flag")
"""An error; the result modulo M; or the result modulo M with a mask of those that overflowed."""

_mode: ContextVar[str] = ContextVar("rnsdask_overflow", default="raise")


@contextmanager
def errstate(*, overflow: str) -> Iterator[None]:
    """Set what operations do on overflow, for the operations called inside a ``with`` statement.

    A lazy operation keeps what was set when it was called, not when it is computed.

    Parameters
    ----------
    overflow : {"raise", "wrap", "flag"}
        ``"raise"``, the default outside: :class:`.RNSOverflowError`; ``"wrap"``: results are modulo M;
        ``"flag"``: an operation returns a pair, the result modulo M and a Boolean array that is true where
        the exact result is out of range.

    Raises
    ------
    ValueError
        If `overflow` is none of these.
    """
    token = _mode.set(overflow_mode(overflow))
    try:
        yield
    finally:
        _mode.reset(token)


def overflow_mode(overflow: str | None = None, *systems: NumberSystem) -> str:
    """Return the mode an operation is called with, or if that is None the one set by :func:`errstate`.

    Parameters
    ----------
    systems
        Those of the operands, which are checked if results are to wrap.

    Raises
    ------
    ValueError
        If `overflow` is not a mode, or numbers of a system do not wrap.
    """
    mode = _mode.get() if overflow is None else overflow
    if mode not in OVERFLOW_MODES:
        raise ValueError(f"overflow must be one of {', '.join(OVERFLOW_MODES)}, got {mode!r}")
    if mode == "wrap":
        for system in systems:
            system.check_wraps()
    return mode
