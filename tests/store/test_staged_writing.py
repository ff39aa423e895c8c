"""Chunks that come back from a GPU piece by piece while they are written: the files, or errors, of others.

Without a GPU an array of NumPy is written; tests/backend/test_gpu_files.py is about copies.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
from numpy.typing import NDArray
from strategies import STORE_SET
from zarr.codecs import ZstdCodec

from rnsdask import store
from rnsdask.core.errors import StoreAccessError
from rnsdask.rns.system import RNS
from rnsdask.store import chunk_files, writing

MODULI = STORE_SET


PIECE = 1000


def gpu_to_file(file: int, array: NDArray[Any]) -> None:
    """In the place of `backend.cuda.files.gpu_to_file`."""
    content = array.tobytes()
    for start in range(0, len(content), PIECE):
        os.write(file, content[start : start + PIECE])


@pytest.fixture(params=["numpy", pytest.param("gpu", marks=pytest.mark.gpu)])
def on_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[NDArray[Any]], Any]:
    if request.param == "numpy":
        monkeypatch.setattr(chunk_files, "backend_name", lambda _: "cuda")
        monkeypatch.setattr(writing, "backend_name", lambda _: "cuda")
        monkeypatch.setattr(chunk_files, "gpu_to_file", gpu_to_file)
        return np.asarray
    import cupy

    to_gpu: Callable[[NDArray[Any]], Any] = cupy.asarray
    return to_gpu


def residues_of(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.uint32]:
    return np.stack([rng.integers(0, m, shape, dtype=np.uint64).astype(np.uint32) for m in MODULI])


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [((1,), (128,)), ((300,), (128,)), ((5, 300), (2, 128)), ((2**20,), (2**19,)), ((100_003,), (50_001,))],
)
def test_same_files(
    tmp_path: Path,
    rng: np.random.Generator,
    on_gpu: Callable[[NDArray[Any]], Any],
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
) -> None:
    residues = residues_of(rng, shape)
    writer = store.create(tmp_path / "x", RNS(MODULI), shape, chunks=chunks)
    info = writer.info
    for index in info.indices():
        block = residues[(slice(None), *info.slices(index))]
        writer.write_chunk(index, on_gpu(block))
        whole = np.zeros(info.chunk_shape, "<u4")
        whole[tuple(slice(length) for length in block.shape)] = block
        content = whole.tobytes()
        expected = content + google_crc32c.value(content).to_bytes(4, "little")
        assert info.chunk_file(index).read_bytes() == expected
    writer.finish()


@pytest.mark.parametrize("codec", [False, True])
def test_a_residue_too_great(
    tmp_path: Path, rng: np.random.Generator, on_gpu: Callable[[NDArray[Any]], Any], codec: bool
) -> None:
    codecs = [ZstdCodec()] if codec else None
    writer = store.create(tmp_path / "x", RNS(MODULI), (300,), chunks=128, codecs=codecs)
    residues = residues_of(rng, (128,))
    residues[2, 5] = MODULI[2]
    with pytest.raises(ValueError, match=r"of number 133 is not below its modulus .* \(row 2\)$"):
        writer.write_chunk((1,), on_gpu(residues))
    assert not list((tmp_path / "x").rglob("c/*/*"))


def test_other_words_and_shapes(tmp_path: Path, on_gpu: Callable[[NDArray[Any]], Any]) -> None:
    writer = store.create(tmp_path / "x", RNS(MODULI), (300,), chunks=128)
    with pytest.raises(TypeError, match="dtype uint32, got uint64"):
        writer.write_chunk((1,), on_gpu(np.zeros((len(MODULI), 128), np.uint64)))
    with pytest.raises(ValueError, match="got residues of shape"):
        writer.write_chunk((2,), on_gpu(np.zeros((len(MODULI), 128), np.uint32)))


def test_a_disk_that_is_full(
    tmp_path: Path,
    rng: np.random.Generator,
    on_gpu: Callable[[NDArray[Any]], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = store.create(tmp_path / "x", RNS(MODULI), (2**18,), chunks=2**18)
    whole = chunk_files.gpu_to_file

    def fail_after_a_piece(file: int, array: Any) -> None:
        whole(file, array[:2].copy())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(chunk_files, "gpu_to_file", fail_after_a_piece)
    block = on_gpu(residues_of(rng, (2**18,)))
    with pytest.raises(StoreAccessError, match="No space left"):
        writer.write_chunk((0,), block)
    assert writer.missing_chunks() == [(0,)]
    monkeypatch.setattr(chunk_files, "gpu_to_file", whole)
    writer.write_chunk((0,), block)
    np.testing.assert_array_equal(writer.read_chunk((0,)), block.get() if hasattr(block, "get") else block)
