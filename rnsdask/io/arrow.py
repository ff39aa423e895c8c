"""Arrow's arrays of integers: their types, and how they are made."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnsdask.core.errors import abbreviate
from rnsdask.core.integer_text import to_decimal
from rnsdask.io.numpy_files import machine_type
from rnsdask.rns.values import range_of_arrow


def pyarrow_for(what: str) -> Any:
    """Return the module pyarrow, or raise ImportError that says what needs it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{what} needs pyarrow: pip install 'rnsdask[parquet]'") from None
    return pyarrow


def check_arrow_type(kind: Any) -> None:
    """Raise TypeError unless numbers can be written in a type of Arrow."""
    if not isinstance(kind, pyarrow_for("Arrow").DataType):
        raise TypeError(f"type must be a type of pyarrow's, got {type(kind).__name__}")
    range_of_arrow(kind)


def arrow_type(lowest: int, highest: int) -> Any:
    """Return the first Arrow type that holds a range: 64-bit integers, decimals of 38 or 76 digits, text."""
    pyarrow = pyarrow_for("Arrow")
    if kind := machine_type(lowest, highest):
        return pyarrow.from_numpy_dtype(kind)
    for digits, decimal in ((38, pyarrow.decimal128), (76, pyarrow.decimal256)):
        if max(highest, -lowest) < 10**digits:
            return decimal(digits, 0)
    return pyarrow.large_string()


def arrow_array(ints: Sequence[int], kind: Any, first: int = 0) -> Any:
    """Make an Arrow array of Python ints, whose first one has the flat index `first`.

    OverflowError if a number does not fit, naming its flat index.
    """
    pyarrow = pyarrow_for("Arrow")
    limits = range_of_arrow(kind)
    if limits is None:
        return pyarrow.array([to_decimal(value) for value in ints], kind)
    lowest, highest = limits
    if ints and not lowest <= min(ints) <= max(ints) <= highest:
        index = next(i for i, value in enumerate(ints) if not lowest <= value <= highest)
        raise OverflowError(
            f"the number at flat index {first + index} is {abbreviate(ints[index])}, outside of {kind}: "
            f"{abbreviate(lowest)} to {abbreviate(highest)}"
        )
    if hasattr(kind, "precision"):
        return pyarrow.array(ints, kind)
    return pyarrow.array(np.array(ints, dtype=kind.to_pandas_dtype()), kind)


def text_array(lines: memoryview) -> Any:
    """Make an Arrow array, large_string, of lines of text that each end with a newline."""
    pyarrow = pyarrow_for("Arrow")
    octets = np.frombuffer(lines, dtype=np.uint8)
    is_end = octets == ord("\n")
    (ends,) = is_end.nonzero()
    offsets = np.zeros(len(ends) + 1, dtype=np.int64)
    offsets[1:] = ends - np.arange(len(ends))  # without the ends of the lines before
    buffers = map(pyarrow.py_buffer, (offsets, octets[~is_end]))
    return pyarrow.LargeStringArray.from_buffers(len(ends), *buffers)
