"""The CRC-32C of bytes, against one bit after the other and google_crc32c."""

import google_crc32c
import numpy as np
import pytest
from documents import crc32c

from rnsdask.backend.cpu import extend_checksum

KNOWN = {b"": 0, b"123456789": 0xE3069283, bytes(32): 0x8A9136AA, b"\xff" * 32: 0x62A8AB43}
"""Checksums by RFC 3720, B.4, and by the catalogue of parametrised CRC algorithms."""


@pytest.mark.parametrize("by_tables", [False, True])
@pytest.mark.parametrize("content", KNOWN)
def test_known(content: bytes, by_tables: bool) -> None:
    assert crc32c(content) == KNOWN[content]
    assert extend_checksum(0, np.frombuffer(content, np.uint8), by_tables=by_tables) == KNOWN[content]


@pytest.mark.parametrize("by_tables", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 1023, 3 * 2**13 - 1, 3 * 2**13, 6 * 2**13 + 77])
def test_parts_one_after_the_other(rng: np.random.Generator, length: int, by_tables: bool) -> None:
    content = rng.integers(0, 256, length + 3, dtype=np.uint8)[3:]  # at no multiple of 8
    expected = google_crc32c.value(content.tobytes())
    for cut in {0, 1, length // 2, length}:
        first = extend_checksum(0, content[:cut], by_tables=by_tables)
        assert extend_checksum(first, content[cut:], by_tables=by_tables) == expected
