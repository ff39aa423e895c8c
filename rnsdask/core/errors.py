"""Exceptions raised by rnsdask.

A plainly wrong argument raises the built-in ``ValueError``, ``TypeError`` or ``IndexError``. The classes here
are those that a caller may want to distinguish: a store that cannot be trusted, bad lines in imported data, a
job that failed.
"""

import operator
import re
import reprlib
from typing import Any, Self

from rnsdask.core.ways import Kind, Message, Setting, Way

_SHOWN = 40
"""Most characters of a value that a message repeats: enough to recognise it, and short enough for a line."""

_FEW = 2**64
"""Numbers of bits from here on are themselves described by their length in bits."""

_WRAPPING = (Setting("overflow", "wrap", "flag"), ", where it is taken, gives it")


class RNSError(Exception):
    """Base class of every exception defined by rnsdask."""


class StoreError(RNSError, ValueError):
    """A path does not hold a valid rnsdask store, or holds one that cannot be used as asked."""

    # Not pickled by a worker: the error of another library may not be picklable, nor readable in a process
    # without that library. Its text is in the message.
    __cause__ = None
    __context__ = None


class IncompleteStoreError(StoreError):
    """A store whose writing has not been finished."""


class ChangedStoreError(StoreError):
    """A store that was overwritten or removed after it was opened: its chunks belong to another one."""


class StoreAccessError(StoreError):
    """A file of a store could not be read or written: a full disk, no permission, a network that failed.

    Attributes
    ----------
    errno : int or None
        The operating system's error number, if there is one.
    """

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message, errno)
        self.errno = errno

    @classmethod
    def of(cls, what: str, error: OSError) -> "StoreAccessError":
        """Make the error of an operation that failed, such as ``x.zarr: it cannot be read``."""
        return cls(f"{what}: {error.strerror or error}", error.errno)

    def __str__(self) -> str:
        return str(self.args[0])


class CorruptChunkError(StoreError):
    """A chunk of a store is missing, truncated, or does not match its checksum."""


class InputError(RNSError, ValueError):
    """A line or record of imported data is not a number that the moduli set can represent."""


class NumberError(RNSError, ValueError):
    """A number that is out of range or has no result; the message names it."""


class ExpressionError(RNSError, ValueError):
    """An expression that is malformed, or whose operands do not fit one another."""


class JobError(RNSError, RuntimeError):
    """A batch job that could not be finished."""


class SchedulerLostError(JobError):
    """The scheduler of the cluster that a job runs on is gone, or no longer answers."""


class WorkerVersionError(JobError):
    """The scheduler or a worker of a cluster has another version of the package, or lacks it."""


class QueryPlanningError(RNSError, NotImplementedError):
    """Operation that Dask's arrays lack while the setting ``array.query-planning`` is on."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return (
            f"Dask's arrays cannot do this with array.query-planning on{why}; set "
            "DASK_ARRAY__QUERY_PLANNING=False before Python starts"
        )


class NoGPUError(RNSError, RuntimeError):
    """A process without a GPU was asked to compute on one."""


class GPUMemoryError(RNSError, MemoryError):
    """A GPU has too little free memory for a chunk."""

    # Not pickled by a worker: processes without CuPy cannot read CuPy's error.
    __context__ = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message alone, in a form that tblib understands too."""
        return type(self), self.args


class RNSOverflowError(RNSError, OverflowError):
    """An exact result is outside the range of its moduli set.

    Attributes
    ----------
    index : int
        Flat (C order) index of the number: the first in its chunk, if the array is chunked.
    bits_needed : int
        Bits of the exact result, with a sign bit if it is negative or the range is signed.
    bits_available : int
        Greatest length in bits, counted likewise, at which every number is in range.
    signed : bool
        Whether the range is symmetric around 0.
    negative : bool
        Whether the exact result is below 0.
    at_least : bool
        Whether ``bits_needed`` is only a lower bound: products of many numbers are not computed for it.
    """

    # How many bits longer M is than the numbers that are in range without exception, their sign counted; and
    # further ways out, for the message.
    _bits_beyond = 1
    _way_out = Message(Way.EXTEND_OR_EXTENDING, " takes more moduli; ", *_WRAPPING, " modulo M")
    _way_below = Message(Way.NEGATIVE)

    def __init__(
        self,
        index: int,
        bits_needed: int,
        bits_available: int,
        signed: bool,
        negative: bool,
        at_least: bool = False,
    ) -> None:
        super().__init__(index, bits_needed, bits_available, signed, negative, at_least)
        self.index = index
        self.bits_needed = bits_needed
        self.bits_available = bits_available
        self.signed = signed
        self.negative = negative
        self.at_least = at_least

    @classmethod
    def of_value(cls, value: int, index: int, range_bits: int, signed: bool) -> Self:
        """Make the error of an exact result, for a dynamic range M of `range_bits` bits."""
        # Two's complement: -2**k needs k bits and a sign bit.
        needed = (value if value >= 0 else -value - 1).bit_length() + int(signed or value < 0)
        return cls(index, needed, range_bits - 1, signed, value < 0)

    def __str__(self) -> str:
        is_below = self.negative and not self.signed
        what = "negative and " if is_below else ""
        if self.at_least and self.bits_needed < _FEW:
            what += "at least "
        what += f"{bits_text(self.bits_needed)} long"
        what += " with its sign" if self.signed or self.negative else ""
        where = f"overflow at flat index {self.index}"
        way_out = self._way_below if is_below else self._way_out
        return Message(f"{where}: the exact result is {what}, {self._range()}; ", way_out)

    def _range(self) -> str:
        """Name the range that the result is outside of; a moduli set is described by the bits of M."""
        kind, available = "signed" if self.signed else "unsigned", self.bits_available
        return (
            f"outside the {kind} range of M of {bits_text(available + self._bits_beyond)}, which holds all "
            f"numbers of {bits_text(available)}"
        )


class IntervalOverflowError(RNSOverflowError):
    """An exact result is not from -(M - 1) to M - 1, the range of numbers that carry an interval."""

    _bits_beyond = 0
    _way_out = Message(Way.EXTEND, " takes more moduli; ", *_WRAPPING, " modulo M")


class ReplacedModuliOverflowError(RNSOverflowError):
    """An exact result is outside the range of the moduli that replaced those given with residues."""

    _way_out = Message(Way.EXTEND, " takes more moduli")


class ReplacedIntervalOverflowError(IntervalOverflowError):
    """Overflow, modulo replaced moduli, of numbers that carry an interval."""

    _way_out = ReplacedModuliOverflowError._way_out


class LimitOverflowError(RNSOverflowError):
    """Results that may be too long for any moduli set."""

    def __str__(self) -> str:
        return Message(
            f"overflow: by the operands' bounds, results may be {bits_text(self.bits_needed)} long, and no "
            f"moduli set holds more than {bits_text(self.bits_available)}; ",
            Way.LEAST_BOUND,
            " has the least bound",
        )


class PrecisionOverflowError(RNSOverflowError):
    """An exact result does not fit into the bits of positional numbers."""

    _way_out = Message(Way.LIMBS, " takes more bits; ", *_WRAPPING, " modulo a power of two")
    _way_below = Message(Way.SIGNED_LIMBS, " holds negative integers too")

    def _range(self) -> str:
        kind = "signed" if self.signed else "unsigned"
        return f"the array holds {kind} numbers of {bits_text(self.bits_available)}"


class ResultOverflowError(RNSOverflowError):
    """An exact result does not fit into the moduli requested for it."""

    _way_out = _way_below = Message("give moduli of more bits, or none for Python ints")


def bits_text(count: int) -> str:
    """Write a number of bits for a message; a lower bound if the number itself is long."""
    if count >= _FEW:
        return f"more than 2**{(count - 1).bit_length() - 1} bits"
    return f"{abbreviate(count)} bit{'' if count == 1 else 's'}"


def out_of_range(what: str, ends: tuple[int, int], kind: str, owner: str) -> NumberError:
    """Make the error for a value outside a range, such as ``value 5 at position 2``."""
    lowest, highest = map(abbreviate, ends)
    name = f"{kind} range" if kind else "range"
    return NumberError(f"{what} is outside the {name} from {lowest} to {highest} of {owner}")


def brief(value: object) -> str:
    """Write any object short enough for one line of an error message.

    Containers name their first items; numbers are abbreviated, but never cut.
    """
    try:
        return _BRIEF.repr(value)
    except ValueError:  # integers of another type with more than 4300 digits
        return f"a value of type {type(value).__name__}"


class _Brief(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist, self.maxtuple, self.maxset, self.maxdict = 2, 3, 3, 3, 3

    def repr_int(self, x: int, level: int) -> str:
        return abbreviate(x) if type(x) is int else self.repr_instance(x, level)

    def repr_str(self, x: str | bytes, level: int) -> str:  # noqa: ARG002  (reprlib's arguments)
        return repr(x[:_SHOWN]) + "..." * (len(x) > _SHOWN)

    repr_bytes = repr_str

    def repr_instance(self, x: Any, level: int) -> str:
        text = " ".join(repr(x).split())  # arrays and tables have several lines
        if len(text) <= _SHOWN:
            return text
        try:
            return self.repr_int(operator.index(x), level)
        except TypeError:
            return re.sub(r"[\w.+-]+$", "", text[:_SHOWN]) + "..."


_BRIEF = _Brief()


def with_article(kind: type) -> str:
    """Return the name of an array type or number system with its article: "an RNSArray", "a FieldArray"."""
    return str(Kind.of(kind, "a"))


def abbreviate(value: int) -> str:
    """Write an integer of any length short enough for one line of an error message.

    Up to 64 bits it is decimal. Beyond, it is hexadecimal without the middle digits, followed by the number
    of bits. This is quick for any length, and free of Python's limit on decimal digits.
    """
    bits = value.bit_length()
    if bits <= 64:
        return str(value)
    sign = "-" if value < 0 else ""
    digits = f"{abs(value):x}"
    if len(digits) > 32:
        digits = f"{digits[:16]}...{digits[-16:]}"
    return f"{sign}0x{digits} ({bits} bits)"
