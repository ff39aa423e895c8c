"""Graphs that write chunks: threads that write for the first time do not wait for one another."""

from collections.abc import Sequence
from threading import Barrier
from typing import Any

import dask.array as da
import numpy as np
import pytest

from rnsdask.lazy import call
from rnsdask.lazy.write import write_chunks

TOGETHER = 4


class MeetingWriter:
    """Writes a chunk once as many others are being written."""

    def __init__(self) -> None:
        self.written: list[tuple[int, ...]] = []
        self._barrier = Barrier(TOGETHER, timeout=300)

    def __dask_tokenize__(self) -> str:
        return "meeting writer"

    def write_chunk(self, index: Sequence[int], _block: Any, /) -> None:
        self._barrier.wait()
        self.written.append(tuple(index))

    def finish(self) -> None:
        pass


@pytest.mark.parametrize("with_mask", [False, True])
def test_first_chunks_are_written_at_one_time(monkeypatch: pytest.MonkeyPatch, with_mask: bool) -> None:
    monkeypatch.setattr(call, "uses_gpu", lambda *_: True)  # where first calls may be alone
    words = da.from_array(np.arange(2 * 8 * TOGETHER).reshape(2, -1), chunks=(2, 8))
    mask = words[:1] % 3 == 0 if with_mask else None
    writer = MeetingWriter()
    counts = write_chunks(words, writer, mask).compute(scheduler="threads", num_workers=TOGETHER)
    assert sorted(writer.written) == [(i,) for i in range(TOGETHER)]
    expected = (np.arange(8 * TOGETHER) % 3 == 0).reshape(TOGETHER, 8).sum(axis=1).tolist()
    assert counts.ravel().tolist() == (expected if with_mask else [0] * TOGETHER)
