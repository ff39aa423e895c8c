"""Reading and writing integers, against Python's own conversions."""

import io
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from strategies import BOTH_RANGES

from rnsdask.core.errors import InputError, JobError, abbreviate
from rnsdask.core.integer_text import (
    BinaryReader,
    TextReader,
    binary_records,
    read_moduli,
    remaining_bytes,
    text_lines,
)

HIGHEST = 10**30
ANY = (-(2**60000), 2**60000)


def text_reader(text: bytes, lowest: int = 0, highest: int = HIGHEST) -> TextReader:
    return TextReader(io.BytesIO(text), "numbers.txt", lowest, highest)


def batches(reader: TextReader | BinaryReader, size: int) -> Iterator[list[int]]:
    """All batches of a reader, as Python ints (limbs of a binary reader taken as unsigned)."""
    while len(batch := reader.read(size)):
        if isinstance(batch, list):
            yield [int(value) for value in batch]
        else:
            assert batch.dtype == np.uint32
            yield [int.from_bytes(row.astype("<u4").tobytes(), "little") for row in batch]


def records(values: list[int], width: int, signed: bool) -> bytes:
    return b"".join(value.to_bytes(width, "little", signed=signed) for value in values)


def limbs_of(values: list[int], limb_count: int, signed: bool) -> np.ndarray:
    return (
        np.frombuffer(records(values, 4 * limb_count, signed), "<u4")
        .reshape(-1, limb_count)
        .astype(np.uint32)
    )


# --- Text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b"0", 0),
        (b"-0", 0),
        (b"+7", 7),
        (b"-7", -7),
        (b"0007", 7),
        (b"0777", 777),  # decimal, not octal
        (b"0xff", 255),
        (b"0XFf", 255),
        (b"+0x10", 16),
        (b"-0x10", -16),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b"18446744073709551615", 2**64 - 1),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_text_line(line: bytes, value: int, end: bytes) -> None:
    reader = text_reader(line + end, *ANY)
    assert reader.read(10) == [value]
    assert reader.read(10) == []
    assert (reader.count, reader.bound, reader.bytes_read) == (1, abs(value), len(line + end))


@pytest.mark.parametrize(
    "line",
    [
        b"abc",
        b"1_000",
        b"1,000",
        b" 1",
        b"1 ",
        b"1\t",
        b"+",
        b"-",
        b"--1",
        b"+-1",
        b"0x",
        b"-0x",
        b"0xg",
        b"0b1",
        b"0o7",
        b"1.0",
        b"1e3",
        b"ff",
        b"nan",
        b"1\x00",
        b"1\r",
        b"\xef\xbb\xbf1",  # a byte order mark
        "١".encode(),  # a digit that is not ASCII
        b"\xff\xfe",
    ],
)
def test_text_bad_line_is_named(line: bytes) -> None:
    with pytest.raises(InputError, match=r"^numbers\.txt:3: .* is not an integer") as caught:
        text_reader(b"1\r\n2\n" + line + b"\r\n4\n", *ANY).read(100)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [b"1\n\n3\n", b"1\n\r\n3\n", b"1\n\n"])
def test_text_empty_line_is_named(text: bytes) -> None:
    with pytest.raises(InputError, match=r"^numbers\.txt:2: empty line"):
        text_reader(text).read(100)


def test_text_long_bad_line_is_shortened() -> None:
    with pytest.raises(InputError) as caught:
        text_reader(b"x" * 5000, *ANY).read(1)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_text_batches_and_line_numbers(batch: int) -> None:
    good = b"".join(b"%d\n" % i for i in range(50))
    assert [v for b in batches(text_reader(good), batch) for v in b] == list(range(50))
    reader = text_reader(good + b"x\n")
    with pytest.raises(InputError, match=r"^numbers\.txt:51: "):
        list(batches(reader, batch))


def test_text_range() -> None:
    reader = text_reader(b"-5\n0\n4\n", -5, 4)
    assert reader.read(10) == [-5, 0, 4]
    assert reader.bound == 5
    for text, lowest, highest, message in [
        (b"1\n2\n5\n6\n", -5, 4, r":3: 5 is not in the range of -5 to 4$"),
        (b"1\n-6\n", -5, 4, r":2: -6 is not in the range of -5 to 4$"),
        (
            b"0\n-1\n",
            0,
            4,
            r":2: -1 is not in .* 0 to 4 \(negative integers need a signed array\)$",
        ),
        (b"0x5\n", 0, 4, r":1: 5 is not in"),
    ]:
        with pytest.raises(InputError, match=r"^numbers\.txt" + message):
            text_reader(text, lowest, highest).read(10)


@pytest.mark.parametrize("highest", [9, 10, 15, 16, 99, 2**64, 2**2048 - 1, 10**617])
@BOTH_RANGES
def test_text_extremes_of_the_range_are_read(highest: int, signed: bool) -> None:
    lowest = -highest - 1 if signed else 0
    for value in (lowest, highest):
        for text in (text_lines([value]), text_lines([value], hexadecimal=True)):
            for line in (text, text.replace(b"\n", b"\r\n"), text.strip()):
                assert text_reader(line, lowest, highest).read(1) == [value]
    for value in (lowest - 1, highest + 1):
        for hexadecimal in (False, True):
            with pytest.raises(InputError, match=r"^numbers\.txt:1: "):
                text_reader(text_lines([value], hexadecimal=hexadecimal), lowest, highest).read(1)


def test_text_beyond_the_digit_limit_of_python() -> None:
    value = 7**20000  # 16,902 digits
    text = text_lines([value, -value])
    assert text.count(b"\n") == 2
    assert text_reader(text, *ANY).read(2) == [value, -value]
    assert text_reader(text_lines([value], hexadecimal=True), *ANY).read(1) == [value]


def test_text_endless_line_is_not_held_in_memory() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            buffer[:] = b"1" * len(buffer)
            self.given += len(buffer)
            return len(buffer)

    endless = Endless()
    with pytest.raises(InputError, match=r"^numbers\.txt:1: the line has more than 32 characters"):
        TextReader(io.BufferedReader(endless), "numbers.txt", 0, HIGHEST).read(1000)
    assert endless.given < 10**6


def random_integers(rng: np.random.Generator, lengths: list[int], count: int, signed: bool) -> list[int]:
    """Integers of mixed lengths, given in bits."""
    bits = random.Random(int(rng.integers(2**63)))
    signs = (-1, 1) if signed else (1,)
    return [bits.choice(signs) * bits.getrandbits(bits.choice(lengths)) for _ in range(count)]


def test_text_round_trip_of_random_integers(rng: np.random.Generator) -> None:
    values = random_integers(rng, [1, 31, 32, 64, 300], 2000, signed=True)
    for hexadecimal in (False, True):
        reader = text_reader(text_lines(values, hexadecimal=hexadecimal), -(2**300), 2**300)
        assert [v for b in batches(reader, 97) for v in b] == values
        assert (reader.count, reader.bound) == (2000, max(map(abs, values)))


def test_text_lines() -> None:
    assert text_lines([]) == b""
    assert text_lines([0, -12, 300]) == b"0\n-12\n300\n"
    assert text_lines([0, -12, 300], hexadecimal=True) == b"0x0\n-0xc\n0x12c\n"
    assert text_lines(np.array([2**64 - 1, 1], dtype=object)) == b"18446744073709551615\n1\n"


# --- Binary -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 12, 13, 256])
@BOTH_RANGES
@pytest.mark.parametrize("batch", [1, 3, 1000])
def test_binary(width: int, signed: bool, batch: int) -> None:
    bits = 8 * width
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    values = [0, 1, 2, 127, lowest, highest, highest - 1, lowest + 1, highest // 2, lowest // 2, 0]
    data = records(values, width, signed)
    reader = BinaryReader(io.BytesIO(data), "x.bin", width, lowest, highest, signed=signed)
    limb_count = -(-width // 4)
    expected = [v % 2 ** (32 * limb_count) for v in values]  # two's complement, widened to whole limbs
    assert [v for b in batches(reader, batch) for v in b] == expected
    assert (reader.count, reader.bytes_read) == (len(values), len(data))
    assert reader.bound == max(map(abs, values))


@BOTH_RANGES
def test_binary_bound_of_random_integers(rng: np.random.Generator, signed: bool) -> None:
    for _ in range(50):
        lengths = rng.choice([1, 20, 33, 70, 94], 3).tolist()
        values = random_integers(rng, lengths, 30, signed)
        data = records(values, 12, signed)
        reader = BinaryReader(io.BytesIO(data), "x.bin", 12, -(2**95), 2**95, signed=signed)
        for _ in batches(reader, 7):
            pass
        assert reader.bound == max(map(abs, values))


def test_binary_range() -> None:
    data = records([5, 6, 1000, 7, 2000], 3, False)
    reader = BinaryReader(io.BytesIO(data), "x.bin", 3, 0, 999, signed=False)
    assert len(reader.read(2)) == 2
    with pytest.raises(
        InputError, match=r"^x\.bin: index 2 \(byte 6\): 1000 is not in the range of 0 to 999$"
    ):
        reader.read(3)
    reader = BinaryReader(io.BytesIO(records([-5, -6], 3, True)), "x.bin", 3, -5, 5, signed=True)
    with pytest.raises(InputError, match=r"^x\.bin: index 1 \(byte 3\): -6 is not"):
        reader.read(2)


def test_binary_stream_that_ends_within_a_record() -> None:
    reader = BinaryReader(io.BytesIO(b"abcdefgh" * 3 + b"ijk"), "<stdin>", 8, 0, 2**64, signed=False)
    assert len(reader.read(3)) == 3
    with pytest.raises(InputError, match=r"^<stdin>: its size of 27 bytes .* width of 8: 3 bytes remain"):
        reader.read(3)


def test_binary_file_size_is_checked_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(27))
    with path.open("rb") as stream:
        assert remaining_bytes(stream) == 27
        with pytest.raises(InputError, match=r"27 bytes .* 3 bytes remain"):
            BinaryReader(stream, "x.bin", 8, 0, 2**64, signed=False)
        assert remaining_bytes(stream) == 27
        stream.read(7)
        assert remaining_bytes(stream) == 20


def test_remaining_bytes_of_other_streams() -> None:
    assert remaining_bytes(io.BytesIO(b"abc")) is None
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as stream:
        os.close(write_end)
        assert remaining_bytes(stream) is None


@pytest.mark.parametrize("limb_count", [1, 2, 3])
@BOTH_RANGES
def test_binary_records(limb_count: int, signed: bool) -> None:
    for width in range(1, 4 * limb_count + 6):
        bits = min(8 * width, 32 * limb_count) - signed
        low = -(2**bits) if signed else 0
        values = [0, 1, low, 2**bits - 1, 2**bits // 3]
        data = binary_records(limbs_of(values, limb_count, signed), width, signed=signed)
        assert data == records(values, width, signed)
        if width < 4 * limb_count:
            for bad in (2**bits, low - 1) if signed else (2**bits,):
                message = re.escape(f"index 102: {abbreviate(bad)} does not fit into {width} bytes")
                limbs = limbs_of([1, 2, bad, bad], limb_count, signed)
                with pytest.raises(JobError, match=message):
                    binary_records(limbs, width, signed=signed, first_index=100)


def test_binary_records_of_no_integers() -> None:
    assert binary_records(np.empty((0, 3), np.uint32), 5, signed=True) == b""


# --- Moduli -------------------------------------------------------------------------------------------------


def test_moduli() -> None:
    text = b"# a set\n\n 4294967296 # the largest\n0xffffffff\r\n\t3\n"
    assert read_moduli(io.BytesIO(text), "set.txt") == [2**32, 2**32 - 1, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"3\n5 7\n", r"^set\.txt:2: '5 7' is not an integer"),
        (b"3,\n", r"^set\.txt:1: '3,' is not"),
        (b"\n# none\n", r"^set\.txt: holds no modulus"),
        (b"", r"^set\.txt: holds no modulus"),
        (b"1" * 10000, r"^set\.txt:1: '1{40}'\.\.\. is not"),
    ],
)
def test_bad_moduli(text: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_moduli(io.BytesIO(text), "set.txt")
