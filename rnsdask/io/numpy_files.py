"""NumPy files (.npy) of integers: reading them, and writing them."""

import io
import math
import tokenize
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import InputError, JobError, abbreviate
from rnsdask.core.file_formats import FIRST_BYTES, NUMPY, ZIP, format_of_begin
from rnsdask.io.integer_reading import Batch, BinaryReader

Mapped: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Applies a function to items, in their order, as :class:`map` does."""

_MACHINE_TYPES = (np.dtype(np.int64), np.dtype(np.uint64))


def machine_type(lowest: int, highest: int) -> np.dtype[Any] | None:
    """Return int64 or uint64, the first that holds a range; None if neither does."""
    for kind in _MACHINE_TYPES:
        ends = np.iinfo(kind)
        if ends.min <= lowest and highest <= ends.max:
            return kind
    return None


class NumpyReader(BinaryReader):
    """The integers of a NumPy file (.npy) of an integer type, in C order.

    The header is read at once. A file in Fortran order is read into memory. Without `lowest` and `highest`,
    all values of the type are allowed. InputError if the header is damaged, or of another type, or the file
    is not of its length.
    """

    def __init__(
        self, stream: BinaryIO, name: str, lowest: int | None = None, highest: int | None = None
    ) -> None:
        shape, is_fortran, self._dtype = read_numpy_header(stream, name)
        if self._dtype.kind not in "iu":
            raise InputError(
                f"{name}: its NumPy array is of type {self._dtype}; import reads integers of 8 to 64 bits"
            )
        limits = np.iinfo(self._dtype)
        super().__init__(
            stream,
            name,
            int(limits.min) if lowest is None else lowest,
            int(limits.max) if highest is None else highest,
            width=self._dtype.itemsize,
            signed=self._dtype.kind == "i",
            byteorder="big" if self._dtype.str.startswith(">") else "little",
        )
        self.shape, self._is_fortran = shape, is_fortran and len(shape) > 1
        self._size = math.prod(shape) * self._dtype.itemsize
        self.held = 2 * self._size if self._is_fortran else 0

    def read(self, count: int) -> Batch:
        """Return the next integers: :meth:`.IntegerReader.read`."""
        if self._is_fortran:
            self._is_fortran = False
            data = self._stream.read(self._size)
            if len(data) < self._size:
                raise InputError(f"{self.name}: its header tells of {self._size} bytes, it holds {len(data)}")
            array = np.frombuffer(data, self._dtype).reshape(self.shape, order="F")
            self._stream = io.BytesIO(array.tobytes())
        return super().read(count)

    def _place(self, row: int) -> str:
        return f"{self.name}: index {self.count + row}"


_NUMPY_VERSIONS = ((1, 0), (2, 0), (3, 0))
"""Versions of the format of NumPy files that there are."""

_DAMAGE = (ValueError, EOFError, SyntaxError, tokenize.TokenError, TypeError, RecursionError, MemoryError)
"""Errors that NumPy's parser raises for headers of any bytes."""


def read_numpy_header(stream: BinaryIO, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of a NumPy file: its shape, whether it is in Fortran order, and its type.

    InputError if it is damaged, or of a version that does not exist.
    """
    try:
        version = np.lib.format.read_magic(stream)
        if version not in _NUMPY_VERSIONS:
            major, minor = version
            raise InputError(f"{name}: its NumPy file is of version {major}.{minor}; import reads 1.0 to 3.0")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else _read_header_2
        with warnings.catch_warnings(action="ignore"):  # of Python's parser, which reads any bytes
            shape, is_fortran, kind = read(stream)
        if any(length < 0 for length in shape):
            raise ValueError(f"it has shape {shape}")
    except InputError:
        raise
    except _DAMAGE as error:
        problem = str(error).partition("\n")[0]
        raise InputError(f"{name}: the header of its NumPy file is damaged: {problem}") from None
    return tuple(map(int, shape)), is_fortran, kind


def _read_header_2(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    return np.lib.format.read_array_header_2_0(stream)


def map_numpy(path: str, name: str) -> NDArray[Any]:
    """Map the array of a NumPy file into memory; InputError if it is none, or cut."""
    with Path(path).open("rb") as stream:
        kind = format_of_begin(stream.read(FIRST_BYTES))
        if kind == ZIP:
            raise InputError(f"{name}: it is an archive of NumPy files (.npz); one array (.npy) was expected")
        if kind != NUMPY:
            raise InputError(f"{name}: it is no NumPy file (.npy) of integers")
        stream.seek(0)
        read_numpy_header(stream, name)
    try:
        mapped: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:  # what it says is about pickles, or the length of what is mapped
        raise InputError(f"{name}: it is no NumPy file (.npy) of integers, or cut") from error
    return mapped


# ---- Writing ----------------------------------------------------------------------------------------------


def write_numpy(
    stream: BinaryIO,
    batches: Iterable[tuple[int, Any]],
    integers: Callable[[Any], list[int]],
    shape: Sequence[int],
    limits: tuple[int, int],
    mapped: Mapped = map,
    advance: Callable[[int], object] = lambda _: None,
) -> tuple[int, int]:
    """Write integers as a NumPy file: of int64, or of uint64 where that holds all of them and int64 does not.

    Their lowest 64 bits are the same in both types, so the header can be written again at the end. `batches`
    are some numbers at a time, at least one, in C order, each with the index of the first; `integers` gives
    them as such, and `limits` are what is known of their range. `mapped` converts the batches, in order, and
    `advance` is called with how many more are written. Return how many integers are written, and bytes.
    JobError if neither type holds all integers; or if only their values tell the type, and the stream
    is a pipe.
    """

    def converted(batch: tuple[int, Any]) -> tuple[int, int, int, bytes]:
        first, ints = batch[0], integers(batch[1])
        lowest, highest = min(ints), max(ints)
        kind = machine_type(lowest, highest)
        if kind is None:
            _refuse_wide(first, ints)
        return len(ints), lowest, highest, np.array(ints, dtype=kind).astype(f"<{kind.str[1:]}").tobytes()

    guess = machine_type(*limits) or np.dtype(np.int64)
    lowest = highest = done = 0
    written = write_numpy_header(stream, guess, shape)
    for count, low, high, data in mapped(converted, batches):
        stream.write(data)
        done, written = done + count, written + len(data)
        lowest, highest = min(lowest, low), max(highest, high)
        advance(count)
    kind = machine_type(lowest, highest)
    if kind is None:
        raise JobError(
            f"the integers go from {abbreviate(lowest)} to {abbreviate(highest)}, which {_NEITHER}; {_WAY}"
        )
    if machine_type(*limits) is None and kind != guess:
        if not stream.seekable():
            raise JobError(
                f"the integers take uint64, as only the last of them tells; a pipe cannot say so; {_WAY}"
            )
        stream.seek(0)
        write_numpy_header(stream, kind, shape)
    stream.flush()
    return done, written


_NEITHER = "neither int64 nor uint64 of a NumPy file holds"
_WAY = "a file named .parquet, .csv or .txt takes integers of any size"


def _refuse_wide(first: int, ints: Sequence[int]) -> NoReturn:
    """Raise JobError for integers that have no common type of 64 bits."""
    for index, value in enumerate(ints, first):
        if machine_type(value, value) is None:
            raise JobError(f"index {index}: {abbreviate(value)}, which {_NEITHER}; {_WAY}")
    raise JobError(
        f"the integers go from {abbreviate(min(ints))} to {abbreviate(max(ints))}, which {_NEITHER}; {_WAY}"
    )


def write_numpy_header(stream: BinaryIO, kind: np.dtype[Any], shape: Sequence[int]) -> int:
    """Write the header of a NumPy file in C order, and return how long it is, the same for each type."""
    header = io.BytesIO()
    described = {"descr": f"<{kind.str[1:]}", "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(header, described)
    stream.write(header.getvalue())
    return header.tell()
