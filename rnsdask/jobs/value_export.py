"""The job that writes a plain array to a stream: Booleans as 0 and 1, or signs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.constants import DECIMAL_BASE
from rnsdask.jobs import memory_plan
from rnsdask.jobs.compute import Advance
from rnsdask.jobs.integer_reading import ByteOrder
from rnsdask.jobs.integer_writing import Form, check_consecutive, write_integers
from rnsdask.jobs.memory_plan import Work
from rnsdask.jobs.writing import Transfer

_BATCH_BYTES = 2**20
"""Bytes of a batch: some batches at a time take less memory than a chunk."""


@dataclass(frozen=True)
class Values:
    """A plain array that is to be written as text or as binary records.

    Attributes
    ----------
    info : PlainInfo
        What it says about itself.
    """

    info: store.PlainInfo

    @classmethod
    def at(cls, path: str) -> "Values | None":
        """The complete one at a place; None if something else is there.

        Raises
        ------
        StoreError
            If it is incomplete, or wrong.
        """
        return cls(store.open_plain(path)) if store.is_plain(path) else None

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return self.info.count * self.info.dtype.itemsize

    @property
    def work(self) -> Work:
        """What is known of the memory that writing it takes."""
        return memory_plan.describe("export", [], self.info.shape, self.info.chunks, rows=2, direct=False)

    def export(
        self,
        stream: BinaryIO,
        *,
        form: Form = "text",
        hexadecimal: bool = False,
        width: int | None = None,
        byteorder: ByteOrder = "little",
        advance: Advance = lambda _: None,
    ) -> Transfer:
        """Write all values to a stream in C order, as :func:`.export_integers` those of a store.

        Raises
        ------
        JobError
            If an integer does not fit into a record, or the chunks are not consecutive parts of the array.
        """
        info = self.info
        check_consecutive(info.path, info.shape, info.chunks)
        how: dict[str, Any] = {"shape": info.shape, "limits": (-(2**63), 2**63 - 1), "form": form}
        how |= {"hexadecimal": hexadecimal, "width": width, "byteorder": byteorder}
        batches = self._batches(width or 0)
        done, written = write_integers(stream, batches, _decimal, _limbs, signed=True, **how, advance=advance)
        return Transfer(done, self.nbytes, written)

    def _batches(self, width: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Some values at a time, with the index of the first; records of them have so many bytes."""
        first, size = 0, max(16, _BATCH_BYTES // max(4, width))
        for index in self.info.indices():
            values = store.read_plain_chunk(self.info, index).reshape(-1).astype("<i8")
            for start in range(0, len(values), size):
                yield first + start, values[start : start + size]
            first += len(values)


def _decimal(values: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Decimal limbs (integers, L) of the absolute values, and which are negative."""
    magnitudes = np.abs(values).view(np.uint64)  # also right of -2**63
    powers = np.array([DECIMAL_BASE**k for k in range(3)], dtype=np.uint64)
    limbs: NDArray[np.uint64] = magnitudes[:, np.newaxis] // powers % np.uint64(DECIMAL_BASE)
    return limbs.astype(np.uint32), values < 0


def _limbs(values: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Limbs (integers, 2) in two's complement."""
    limbs: NDArray[np.uint32] = values.view(np.uint32).reshape(-1, 2)
    return limbs
