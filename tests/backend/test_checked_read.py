"""Words of files, read and checked in one go, against Python's own reads and checksums."""

import errno
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
from numpy.typing import NDArray

from rnsdask.backend.cpu import read_checked
from rnsdask.core.errors import CorruptChunkError
from rnsdask.store import chunk_files

NONE = np.empty(0, np.uint32)
PIECE = 2**16  # words that are read at a time

SHAPES = [(5, 0), (1, 1), (3, 7), (1, PIECE), (2, PIECE), (1, PIECE + 1), (3, PIECE - 1), (70_000, 1)]


def write(path: Path, words: NDArray[np.uint32], more: bytes = b"") -> Path:
    path.write_bytes(words.astype("<u4").tobytes() + more)
    return path


def read(path: Path, shape: tuple[int, int], last: NDArray[np.uint32]) -> tuple[Any, NDArray[np.uint32]]:
    rows = np.full(shape, 7, np.uint32)
    with path.open("rb", buffering=0) as file:
        found = read_checked(file.fileno(), rows, last)
        assert file.tell() == found[0]
    return found, rows


@pytest.mark.parametrize("shape", SHAPES)
def test_words(tmp_path: Path, rng: np.random.Generator, shape: tuple[int, int]) -> None:
    words = rng.integers(0, 2**32, shape, dtype=np.uint32)
    path = write(tmp_path / "x", words, b"more")
    greatest = [max((int(x) for x in row), default=0) for row in words]
    expected = google_crc32c.value(words.astype("<u4").tobytes())
    found, rows = read(path, shape, np.array(greatest, np.uint32))
    assert found == (words.nbytes, expected, True)
    np.testing.assert_array_equal(rows, words)
    assert read(path, shape, NONE)[0] == (words.nbytes, expected, False)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if 0 not in shape])
def test_a_word_too_great(tmp_path: Path, rng: np.random.Generator, shape: tuple[int, int]) -> None:
    last = rng.integers(0, 2**32 - 1, shape[0], dtype=np.uint32)
    words = np.broadcast_to(last[:, None], shape).copy()
    assert read(write(tmp_path / "x", words), shape, last)[0][2]
    size = words.size
    for place in {0, size - 1, size // 2, min(PIECE, size) - 1, min(PIECE, size - 1), shape[1] - 1}:
        words.flat[place] += 1
        assert not read(write(tmp_path / "x", words), shape, last)[0][2], place
        words.flat[place] -= 1


@pytest.mark.parametrize("left", [0, 1, 4, 4 * PIECE - 1, 4 * PIECE, 4 * PIECE + 3])
def test_a_file_that_has_shrunk(tmp_path: Path, rng: np.random.Generator, left: int) -> None:
    shape = 3, PIECE
    words = rng.integers(0, 2**32, shape, dtype=np.uint32)
    path = write(tmp_path / "x", words)
    path.write_bytes(path.read_bytes()[:left])
    (size, _, valid), rows = read(path, shape, np.full(3, 2**32 - 1, np.uint32))
    assert (size, valid) == (left, False)
    assert rows.tobytes()[:left] == path.read_bytes()
    with (
        path.open("rb") as stream,
        pytest.raises(CorruptChunkError, match=f"^it has {left} bytes; .* 786436"),
    ):
        chunk_files.read_checksummed(stream, rows, None, "it")


def test_errors(tmp_path: Path) -> None:
    rows = np.zeros((2, 3), np.uint32)
    with (tmp_path / "x").open("wb") as file:
        assert read_checked(file.fileno(), rows, NONE)[0] == -errno.EBADF
        with pytest.raises(OSError, match="Bad file descriptor"):
            chunk_files.read_checksummed(file, rows, None, "it")  # type: ignore[arg-type]
    for last in (np.zeros(1, np.uint32), np.zeros(3, np.uint32)):
        with pytest.raises(ValueError, match="one word for each row"):
            read_checked(0, rows, last)
