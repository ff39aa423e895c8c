"""The job that writes what is no store of residues to a stream: a group's integers, Booleans, signs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.arrays import interval_rns_storage
from rnsdask.constants import DECIMAL_BASE
from rnsdask.core import layout
from rnsdask.interval_rns.system import IntervalRNS
from rnsdask.jobs import memory_plan
from rnsdask.jobs.compute import Advance
from rnsdask.jobs.integer_reading import ByteOrder
from rnsdask.jobs.integer_writing import Form, check_consecutive, write_integers
from rnsdask.jobs.memory_plan import Work
from rnsdask.jobs.writing import Transfer
from rnsdask.rns import convert
from rnsdask.rns.decimal import residues_to_decimal

# Words of a batch: some batches at a time take less memory than a chunk.
_BATCH_WORDS = 2**18

_Numbers = tuple[NDArray[Any], NDArray[np.bool_]]
"""Residues (n, integers) of magnitudes, or integers (1, integers); and which are negative."""


@dataclass(frozen=True)
class Values:
    """A group, or a plain array, that is to be written as text or as binary records.

    Attributes
    ----------
    info : GroupInfo or PlainInfo
        What it says about itself.
    """

    info: store.GroupInfo | store.PlainInfo

    @classmethod
    def at(cls, path: str) -> "Values | None":
        """The complete one at a place; None if something else is there.

        Raises
        ------
        StoreError
            If it is incomplete, or wrong.
        """
        if store.is_plain(path):
            return cls(store.open_plain(path))
        if store.is_group(store.locate(path)):
            return cls(interval_rns_storage.open_info(path))
        return None

    @property
    def array(self) -> store.StoreInfo | store.PlainInfo:
        """The array whose shape and chunks are those of all."""
        return self.info.residues if isinstance(self.info, store.GroupInfo) else self.info

    @property
    def nbytes(self) -> int:
        """Bytes of the values, of a group those of the residues."""
        array = self.array
        return array.nbytes if isinstance(array, store.StoreInfo) else array.count * array.dtype.itemsize

    @property
    def work(self) -> Work:
        """What is known of the memory that writing it takes."""
        if isinstance(self.info, store.GroupInfo):
            return memory_plan.work_on(self.info, "export")
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
        check_consecutive(self.info.path, self.array.shape, self.array.chunks)
        how: dict[str, Any] = {"shape": self.array.shape, "limits": self._limits, "form": form}
        how |= {"hexadecimal": hexadecimal, "width": width, "byteorder": byteorder}
        batches = self._batches(width or 0)
        done, written = write_integers(
            stream, batches, self._decimal, self._limbs, signed=True, **how, advance=advance
        )
        return Transfer(done, self.nbytes, written)

    @property
    def _limits(self) -> tuple[int, int]:
        """The least and the greatest value that there may be."""
        if isinstance(self.info, store.GroupInfo):
            return IntervalRNS(self.info.residues.moduli).value_range
        return -(2**63), 2**63 - 1

    def _batches(self, width: int) -> Iterator[tuple[int, _Numbers]]:
        """Some values at a time, with the index of the first; records of them have so many bytes."""
        first = 0
        for index in self.array.indices():
            if isinstance(self.info, store.GroupInfo):
                residues, parts = store.read_group_chunk(self.info, index)
                numbers, negative = layout.as_matrix(residues), parts["sign"].reshape(-1) != 0
            else:
                numbers = store.read_plain_chunk(self.info, index).reshape(1, -1).astype("<i8")
                negative = numbers[0] < 0
            size = max(16, _BATCH_WORDS // max(len(numbers), width // 4))
            for start in range(0, len(negative), size):
                part = slice(start, start + size)
                yield first + start, (numbers[:, part], negative[part])
            first += len(negative)

    def _decimal(self, values: _Numbers) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        """Decimal limbs (integers, L) of the absolute values, and which are negative."""
        numbers, negative = values
        if isinstance(self.info, store.GroupInfo):
            return residues_to_decimal(numbers, self.info.residues.moduli)[0], negative
        magnitudes = np.abs(numbers[0]).view(np.uint64)  # also right of -2**63
        powers = np.array([DECIMAL_BASE**k for k in range(3)], dtype=np.uint64)
        limbs: NDArray[np.uint64] = magnitudes[:, np.newaxis] // powers % np.uint64(DECIMAL_BASE)
        return limbs.astype(np.uint32), negative

    def _limbs(self, values: _Numbers) -> NDArray[np.uint32]:
        """Limbs (integers, L) in two's complement."""
        numbers, negative = values
        if isinstance(self.info, store.GroupInfo):
            return _with_signs(convert.to_limbs(numbers, self.info.residues.moduli), negative)
        limbs: NDArray[np.uint32] = numbers[0].view(np.uint32).reshape(-1, 2)
        return limbs


def _with_signs(magnitudes: NDArray[np.uint32], negative: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Limbs (integers, L + 1) in two's complement of magnitudes (integers, L) and signs."""
    limbs = np.zeros((len(magnitudes), magnitudes.shape[1] + 1), dtype=np.uint32)
    limbs[:, :-1] = magnitudes
    rows = ~limbs[negative]
    carry = np.ones(len(rows), dtype=np.bool_)
    for column in rows.T:
        column += carry
        carry &= column == 0
    limbs[negative] = rows
    return limbs
