"""Exceptions raised by rnsdask.

A plainly wrong argument raises the built-in ``ValueError``, ``TypeError`` or ``IndexError``. The classes here
are for what a caller may want to tell apart: a store that cannot be trusted, bad lines in imported data, a
job that failed.
"""


class RNSError(Exception):
    """Base class of every exception defined by rnsdask."""


class StoreError(RNSError, ValueError):
    """A path does not hold a valid rnsdask store, or holds one that cannot be used as asked."""


class IncompleteStoreError(StoreError):
    """A store whose writing has not been finished."""


class CorruptChunkError(StoreError):
    """A chunk of a store is missing, truncated, or does not match its checksum."""


class InputError(RNSError, ValueError):
    """A line or record of imported data is not a number that the moduli set can represent."""


class JobError(RNSError, RuntimeError):
    """A batch job could not be run to its end."""


def abbreviate(value: int) -> str:
    """Write an integer of any length short enough for one line of an error message.

    Up to 64 bits it is decimal. Beyond, it is hexadecimal, the middle left out, with the number of bits:
    quick for any length, and free of Python's limit on the digits of a decimal conversion.
    """
    bits = value.bit_length()
    if bits <= 64:
        return str(value)
    sign = "-" if value < 0 else ""
    digits = f"{abs(value):x}"
    if len(digits) > 32:
        digits = f"{digits[:16]}...{digits[-16:]}"
    return f"{sign}0x{digits} ({bits} bits)"
