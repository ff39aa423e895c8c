"""Overflow mode for a block of code, set as NumPy's ``errstate`` does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rnsdask.core.errors import brief
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.ways import Kind, Message, Setting, Way, must

OVERFLOW_MODES = ("raise", "wrap", "flag", "extend")
"""Modes: an error, the result modulo M, that with a mask of the overflows, or more moduli."""

_mode: ContextVar[str | None] = ContextVar("rnsdask_overflow", default=None)

get_overflow: Callable[[], str | None] = _mode.get
"""Return the mode that :func:`errstate` has set, or None."""


@contextmanager
def errstate(*, overflow: str) -> Iterator[None]:
    """Set what operations do on overflow, for the operations called inside a ``with`` statement.

    A lazy operation keeps the mode that was set when it was called, not when it is computed. Outside, arrays
    made without moduli, bits or a number system extend, and all others raise.

    Parameters
    ----------
    overflow : {"raise", "wrap", "flag", "extend"}
        ``"raise"``: :class:`.RNSOverflowError`; ``"wrap"``: results are modulo M; ``"flag"``: an operation
        returns a pair, the result modulo M and a Boolean array that is true where the exact result is out of
        range; ``"extend"``: results of RNSArrays have the fewest moduli that their bounds need, and a sign if
        they may be negative, so that all are in range. Arrays of other kinds do not extend: they raise.

    Raises
    ------
    ValueError
        If `overflow` is not one of these.
    """
    with use_overflow(_check_mode(overflow)):
        yield


@contextmanager
def use_overflow(overflow: str | None) -> Iterator[None]:
    """Set a known mode as :func:`errstate` does; None is the default outside of all blocks."""
    token = _mode.set(overflow)
    try:
        yield
    finally:
        _mode.reset(token)


def chosen_mode(overflow: str | None, *systems: NumberSystem) -> str:
    """Return the mode of an operation on numbers of some systems.

    It is the operation's argument, else the mode that :func:`errstate` set, else ``"extend"`` if all systems
    grow, else ``"raise"``.
    """
    mode = _mode.get() if overflow is None else _check_mode(overflow)
    if mode is None:
        mode = "extend" if systems and all(system.grows for system in systems) else "raise"
    return mode


def overflow_mode(overflow: str | None = None, *systems: NumberSystem) -> str:
    """Return the mode of an operation whose operands have been extended, or do not extend.

    It is ``"wrap"`` where nothing overflows, ``"raise"`` where :func:`errstate` says ``"extend"``. TypeError
    if a mode is given for a system whose results do not overflow; ValueError if it is ``"extend"``, or if it
    is ``"wrap"`` and numbers of a system do not wrap.
    """
    if not all(system.overflows for system in systems):
        if overflow is not None:
            raise TypeError(
                Message(
                    "results in a field do not overflow, so ",
                    Setting("overflow"),
                    f" is not taken, got {brief(overflow)}",
                )
            )
        return "wrap"
    mode = chosen_mode(overflow, *systems)
    if mode == "extend":
        if overflow == "extend":
            raise ValueError(
                Message(
                    Setting("overflow", "extend"),
                    " is for ",
                    Kind("RNSArray", "s"),
                    "; ",
                    Way.RESIDUES_ALONE,
                    " makes one",
                )
            )
        return "raise"
    if mode == "wrap":
        for system in systems:
            system.check_wraps()
    return mode


def _check_mode(overflow: str) -> str:
    if overflow not in OVERFLOW_MODES:
        raise ValueError(must("overflow", f"be one of {', '.join(OVERFLOW_MODES)}, got {overflow!r}"))
    return overflow
