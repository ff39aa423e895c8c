"""The CRC-32C kernels against google_crc32c, an independent implementation."""

import google_crc32c
import numpy as np
import pytest
from conftest import Processor
from numpy.typing import NDArray

from rnsdask.backend import free_device_bytes, kernels_of
from rnsdask.core.moduli import ModuliSet

# Words that a vector, a row of lanes on the CPU, a warp and a block of a GPU take at once.
TILES = (4, 64, 128, 1024)


def crc32c(processor: Processor, words: NDArray[np.uint32]) -> int:
    array = processor.xp.asarray(words)
    return kernels_of(array).crc32c(array)


@pytest.mark.parametrize(
    ("message", "checksum"),
    [(bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E), (b"", 0)],
)
def test_known_checksums(on_each_processor: Processor, message: bytes, checksum: int) -> None:
    """The examples of RFC 3720, appendix B.4."""
    assert crc32c(on_each_processor, np.frombuffer(message, "<u4")) == checksum


def test_lengths(on_each_processor: Processor, rng: np.random.Generator) -> None:
    edges = {times * tile + more for tile in TILES for times in (1, 2, 3, 7) for more in range(-5, 6)}
    for length in sorted({*range(200), *(edge for edge in edges if edge > 0)}):
        words = rng.integers(0, 2**32, length, dtype=np.uint32)
        assert crc32c(on_each_processor, words) == google_crc32c.value(words.tobytes()), length


def test_contents(on_each_processor: Processor) -> None:
    """Messages of equal bits, and those with one bit that differs, at every place of a vector and at ends."""
    for length in (1, 4, 129, 5000):
        for value in (0, 2**32 - 1):
            words = np.full(length, value, dtype=np.uint32)
            for position in {0, 1, 2, 3, length // 2, length - 2, length - 1} & set(range(length)):
                for bit in (0, 7, 8, 31):
                    words[position] ^= np.uint32(1 << bit)
                    assert crc32c(on_each_processor, words) == google_crc32c.value(words.tobytes())
                    words[position] = value


def test_many_rows_of_all_threads(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """More words than all threads of a GPU take at once, several times; also where a view starts anywhere."""
    words = rng.integers(0, 2**32, 4_000_037, dtype=np.uint32)
    array = on_each_processor.xp.asarray(words)
    for start in (0, 1, 2, 3, 4, 1000):
        for end in (len(words), len(words) - 1, 3 * 2**20):
            expected = google_crc32c.value(words[start:end].tobytes())
            assert kernels_of(array).crc32c(array[start:end]) == expected


def test_with_validity(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """Residues at the ends and amid each row, as great as may be and greater; with one more word."""
    moduli = ModuliSet([2**32, 2**32 - 5, 97])
    for count in (1, 2, 5, 1000):
        words = rng.integers(0, 97, 3 * count + 1, dtype=np.uint32)
        words[-1] = 2**32 - 1
        for row, modulus in enumerate(moduli):
            for index in {0, count // 2, count - 1}:
                for residue in {0, modulus - 1, min(modulus, 2**32 - 1)}:
                    words[row * count + index] = residue
                    expected = google_crc32c.value(words.tobytes()), residue < modulus
                    array = on_each_processor.xp.asarray(words)
                    assert kernels_of(array).crc32c_and_validity(array, moduli, 3) == expected
                    # A header is no residue.
                    first = moduli.prefix(2)
                    expected = expected[0], row == 2 or expected[1]
                    assert kernels_of(array).crc32c_and_validity(array, first, 3) == expected
                words[row * count + index] = 0


@pytest.mark.gpu
def test_more_than_32_bits_of_words(rng: np.random.Generator) -> None:
    import cupy

    piece = rng.integers(0, 2**32, 2**24 + 3, dtype=np.uint32)
    times = 2**31 // len(piece) + 1
    if (free_device_bytes() or 0) < 9 * len(piece) * times:
        pytest.skip("the GPU has too little memory")
    words = cupy.empty((times, len(piece)), dtype=cupy.uint32)
    words[...] = cupy.asarray(piece)
    expected = 0
    for _ in range(times):
        expected = google_crc32c.extend(expected, piece.view(np.uint8))
    assert words.size > 2**31
    assert kernels_of(words).crc32c(words.reshape(-1)) == expected
