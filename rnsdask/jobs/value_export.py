"""The job that writes what is no store of residues to a stream: a group's integers, Booleans, signs."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rnsdask import store
from rnsdask.arrays import interval_rns_storage
from rnsdask.cluster.memory import Work
from rnsdask.core import layout
from rnsdask.core.errors import JobError
from rnsdask.jobs import memory_plan
from rnsdask.jobs.compute import Advance, map_ahead
from rnsdask.jobs.integer_streams import binary_records, text_lines
from rnsdask.jobs.writing import Transfer
from rnsdask.rns import convert

# Words of a batch: some batches at a time take less memory than a chunk.
_BATCH_WORDS = 2**18


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
        return memory_plan.describe("export", 2, self.info.shape, self.info.chunks, direct=False)

    def export(
        self,
        stream: BinaryIO,
        *,
        hexadecimal: bool = False,
        width: int | None = None,
        advance: Advance = lambda _: None,
    ) -> Transfer:
        """Write all values to a stream in C order, as :func:`.export_integers` those of a store.

        Raises
        ------
        JobError
            If an integer does not fit into a record, or the chunks are not consecutive parts of the array.
        """
        _check_consecutive(self.info.path, self.array.shape, self.array.chunks)
        done = written = 0

        def convert_batch(batch: tuple[int, NDArray[np.uint32]]) -> tuple[int, bytes | memoryview]:
            first, limbs = batch
            if width is None:
                return len(limbs), text_lines(limbs, signed=True, hexadecimal=hexadecimal)
            return len(limbs), binary_records(limbs, width, signed=True, first_index=first)

        for count, data in map_ahead(convert_batch, self._batches()):
            stream.write(data)
            done += count
            written += len(data)
            advance(count)
        stream.flush()
        return Transfer(done, self.nbytes, written)

    def _batches(self) -> Iterator[tuple[int, NDArray[np.uint32]]]:
        """Limbs (integers, L) in two's complement of some values at a time, each with its position."""
        first = 0
        for index in self.array.indices():
            if isinstance(self.info, store.GroupInfo):
                residues, parts = store.read_group_chunk(self.info, index)
                matrix, negative = layout.as_matrix(residues), parts["sign"].reshape(-1) != 0
                size = max(16, _BATCH_WORDS // len(matrix))
                for start in range(0, matrix.shape[1], size):
                    part = slice(start, start + size)
                    magnitudes = convert.to_limbs(matrix[:, part], self.info.residues.moduli)
                    yield first + start, _with_signs(magnitudes, negative[part])
                first += matrix.shape[1]
                continue
            values = store.read_plain_chunk(self.info, index).reshape(-1)
            for start in range(0, values.size, _BATCH_WORDS):
                whole = values[start : start + _BATCH_WORDS].astype("<i8")
                yield first + start, whole.view(np.uint32).reshape(-1, 2)
            first += values.size


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


def _check_consecutive(path: str, shape: Sequence[int], chunks: Sequence[int]) -> None:
    """Check that the chunks, one after the other, are the array in C order."""
    divided = [axis for axis, count in enumerate(layout.chunk_grid(shape, chunks)) if count > 1]
    if divided and math.prod(chunks[: divided[-1]]) > 1:
        raise JobError(
            f"{path}: its chunks of shape {tuple(chunks)} are not consecutive parts of the array of shape "
            f"{tuple(shape)}; rnsdask rechunk makes such an array of a store"
        )
