"""The CRC-32C of bytes, against one bit after the other; and that threads need not wait for one another."""

import ctypes
import importlib

import google_crc32c
import numpy as np
import pytest

from rnsdask.store import checksum

KNOWN = {b"": 0, b"123456789": 0xE3069283, bytes(32): 0x8A9136AA, b"\xff" * 32: 0x62A8AB43}
"""Checksums by RFC 3720, B.4, and by the catalogue of parametrised CRC algorithms."""


def bit_by_bit(content: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("content", KNOWN)
def test_known(content: bytes) -> None:
    assert checksum.extend(0, np.frombuffer(content, np.uint8)) == KNOWN[content] == bit_by_bit(content)


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 1023, 5000])
def test_parts_one_after_the_other(rng: np.random.Generator, length: int) -> None:
    content = rng.integers(0, 256, length, dtype=np.uint8)
    for cut in {0, 1, length // 2, length}:
        found = checksum.extend(checksum.extend(0, content[:cut]), content[cut:])
        assert found == bit_by_bit(content.tobytes())


def test_the_library_is_called_without_the_lock() -> None:
    assert checksum.address is not None
    assert checksum.extend is not google_crc32c.extend


@pytest.mark.parametrize("wrong", [0, 0xE3069283 ^ 1])
def test_another_function_of_that_name_is_not_used(monkeypatch: pytest.MonkeyPatch, wrong: int) -> None:
    class Library:
        @staticmethod
        def crc32c_extend(*_: object) -> int:
            return wrong

    with monkeypatch.context() as patch:
        patch.setattr(ctypes, "CDLL", lambda _: Library)
        try:
            importlib.reload(checksum)
            assert checksum.address is None
            assert checksum.extend is google_crc32c.extend
        finally:
            patch.undo()
            importlib.reload(checksum)
