"""Reading and writing integers, against Python's own conversions."""

import io
import os
import random
import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import BOTH_RANGES, slow

from rnsdask.core.errors import InputError, JobError, abbreviate
from rnsdask.core.integer_text import to_decimal
from rnsdask.io.integer_reading import Batch, BinaryReader, IntegerReader, TextReader, remaining_bytes
from rnsdask.jobs.exporting import binary_records, decimal_lines, hexadecimal_lines

HIGHEST = 10**30
ANY = (-(2**60000), 2**60000)


def text_reader(text: bytes, lowest: int = 0, highest: int = HIGHEST) -> TextReader:
    return TextReader(io.BytesIO(text), "numbers.txt", lowest, highest, strict=True)


def integers_of(batch: Batch) -> list[int]:
    assert batch.limbs.dtype == np.uint32
    if not batch.decimal:
        rows = batch.limbs.astype("<u4")
        return [int.from_bytes(row.tobytes(), "little", signed=batch.signed) for row in rows]
    count = batch.limbs.shape[1] - batch.signed
    texts = ["".join(f"{limb:09}" for limb in row[count - 1 :: -1]) for row in batch.limbs.tolist()]
    values = [int(gmpy2.mpz(text)) for text in texts]
    signs = batch.limbs[:, -1].tolist() if batch.signed else [0] * len(values)
    assert set(signs) <= {0, 1}
    return [value - sign * 10 ** (9 * count) for value, sign in zip(values, signs, strict=True)]


def read(reader: IntegerReader, count: int) -> list[int]:
    return integers_of(reader.read(count))


def batches(reader: IntegerReader, size: int) -> Iterator[list[int]]:
    """All batches of a reader."""
    while integers := read(reader, size):
        yield integers


def lines(values: Iterable[int], hexadecimal: bool = False) -> bytes:
    """Integers as lines of text."""
    return "".join(f"{hex(v) if hexadecimal else to_decimal(v)}\n" for v in values).encode()


def records(values: list[int], width: int, signed: bool) -> bytes:
    return b"".join(value.to_bytes(width, "little", signed=signed) for value in values)


def limbs_of(values: list[int], limb_count: int, signed: bool) -> np.ndarray:
    return (
        np.frombuffer(records(values, 4 * limb_count, signed), "<u4")
        .reshape(-1, limb_count)
        .astype(np.uint32)
    )


def written(values: list[int], limb_count: int, signed: bool, hexadecimal: bool) -> bytes:
    """Lines that the kernels write of integers."""
    if hexadecimal:
        return bytes(hexadecimal_lines(limbs_of(values, limb_count, signed), signed=signed))
    count = (32 * limb_count) // 29 + 1
    texts = [to_decimal(abs(value)).zfill(9 * count) for value in values]
    limbs = [[int(text[end - 9 : end]) for end in range(9 * count, 0, -9)] for text in texts]
    negative = np.array([value < 0 for value in values], dtype=np.bool_)
    return bytes(decimal_lines(np.array(limbs, dtype=np.uint32).reshape(-1, count), negative))


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
    assert read(reader, 10) == [value]
    assert read(reader, 10) == []
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
    assert read(reader, 10) == [-5, 0, 4]
    assert reader.bound == 5
    for text, lowest, highest, message in [
        (b"1\n2\n5\n6\n", -5, 4, r":3: 5 is not in the range of -5 to 4; bits=4 holds it$"),
        (b"1\n-6\n", -5, 4, r":2: -6 is not in the range of -5 to 4; bits=4 holds it$"),
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
        for text in (lines([value]), lines([value], hexadecimal=True)):
            for line in (text, text.replace(b"\n", b"\r\n"), text.strip()):
                assert read(text_reader(line, lowest, highest), 1) == [value]
    for value in (lowest - 1, highest + 1):
        for hexadecimal in (False, True):
            with pytest.raises(InputError, match=r"^numbers\.txt:1: "):
                text_reader(lines([value], hexadecimal), lowest, highest).read(1)


def test_text_beyond_the_digit_limit_of_python() -> None:
    value = 7**20000  # 16,902 digits
    for hexadecimal in (False, True):
        text = written([value, -value], 1755, True, hexadecimal)
        assert text == lines([value, -value], hexadecimal)
        assert read(text_reader(text, *ANY), 2) == [value, -value]


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
        text = written(values, 10, True, hexadecimal)
        assert text == lines(values, hexadecimal)
        reader = text_reader(text, -(2**300), 2**300)
        assert [v for b in batches(reader, 97) for v in b] == values
        assert (reader.count, reader.bound) == (2000, max(map(abs, values)))


# Lengths around whole limbs of either kind.
DIGITS = [*range(1, 42), 56, 57, 63, 64, 80, 81, 82, 308, 617, 1000, 6000]
LIMBS = [1, 2, 3, 4, 5, 8, 9, 64, 200]


@pytest.mark.parametrize("digits", DIGITS)
def test_text_of_each_length_is_read(digits: int, rng: np.random.Generator) -> None:
    low, high = 10 ** (digits - 1), 10**digits - 1
    (middle,) = random_integers(rng, [high.bit_length() - 1], 1, signed=False)
    values = [low, high, middle, -low, -high, -middle, 0]
    for form in (b"", b"0", b"00000000000000000000"):  # leading zeros
        for hexadecimal in (False, True):
            text = re.sub(rb"^(-?(?:0x)?)(?=.)", rb"\g<1>" + form, lines(values, hexadecimal), flags=re.M)
            reader = text_reader(text, -(10 ** (digits + 21)), 10 ** (digits + 21))
            assert read(reader, 100) == values
            assert (reader.count, reader.bound, reader.bytes_read) == (7, high, len(text))


@pytest.mark.parametrize("limb_count", LIMBS)
@BOTH_RANGES
def test_text_of_each_length_is_written(limb_count: int, signed: bool, rng: np.random.Generator) -> None:
    bits = 32 * limb_count - signed
    powers = [10**k for k in {0, 1, 18, 19, 20, 37, 38, 39, int(bits * 0.30102)} if 10**k < 2**bits]
    values = [0, 1, 2**bits - 1, *powers, *(power - 1 for power in powers)]
    values += random_integers(rng, [0, 1, bits // 2, bits], 50, signed=False)
    values += [~value for value in values] if signed else []
    random.Random(int(rng.integers(2**63))).shuffle(values)  # numbers of all lengths side by side
    for part in ([], values[:1], values):
        for hexadecimal in (False, True):
            assert written(part, limb_count, signed, hexadecimal) == lines(part, hexadecimal)


@pytest.mark.parametrize("digits", [1, 9, 77, 4000, 4001, *slow(10, 39, 3999)])
@pytest.mark.parametrize("first", [0, 1, 63, 200])
@BOTH_RANGES
def test_text_of_both_bases(digits: int, first: int, signed: bool, rng: np.random.Generator) -> None:
    """Decimal lines up to one, then of both kinds; the last one has no end."""
    values = random_integers(rng, [1, int(digits * 3.3219)], 200, signed)
    pieces = [hex(v) if i == first or (i > first and i % 3) else to_decimal(v) for i, v in enumerate(values)]
    text = "\n".join(pieces).replace("0x", "0X" if first % 2 else "0x").encode()
    highest = 10**digits
    for size in (1, 150):
        reader = TextReader(io.BytesIO(b"\n" + text), "n", -highest * signed, highest)
        assert [v for part in batches(reader, size) for v in part] == values
        assert (reader.count, reader.bound) == (200, max(map(abs, values)))
    for end in (b"\n0xg", b"\n 1 2", b"\n%d" % (10 * highest), b"\n0x%x" % (16 * highest)):
        reader = TextReader(io.BytesIO(b"\n" + text + end), "n", -highest * signed, highest)
        with pytest.raises(InputError, match=r"^n:202: "):
            list(batches(reader, 7))


def test_text_of_every_character_at_every_position() -> None:
    """Only a digit may take the place of a digit."""
    for digits, good in (
        (b"1234567890123456789012345", b"0123456789"),
        (b"0x1aB2c3D4e5f60718293", HEXADECIMAL),
    ):
        for place in range(2 if digits.startswith(b"0x") else 0, len(digits)):
            for c in set(range(256)) - {10}:
                line = digits[:place] + bytes([c]) + digits[place + 1 :]
                reader = text_reader(line + b"\n", -HIGHEST, HIGHEST)
                if c in good or (place == 0 and c in b"+-"):
                    assert read(reader, 1) == [int(line, 0 if good == HEXADECIMAL else 10)]
                    continue
                if (place == 1 and c in b"xX") or (place == len(digits) - 1 and c == 13):
                    continue  # hexadecimal, if the first one is 0; the end of a line
                with pytest.raises(InputError, match=r"^numbers\.txt:1: .* is not an integer"):
                    reader.read(1)


HEXADECIMAL = b"0123456789abcdefABCDEF"


def first_problem(text: bytes, lowest: int, highest: int, strict: bool = True) -> tuple[list[int], str]:
    """Read a text plainly; return its integers before the first bad line, and the pattern of its error."""
    longest = max(-lowest, highest)
    limit = max(gmpy2.mpz(longest).num_digits(10), len(hex(longest))) + 1  # digits: so many, or one more
    values: list[int] = []
    for number, line in enumerate(re.findall(rb"[^\n]*\n|[^\n]+$", text), 1):
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if not strict:
            line = line.strip(b" \t")
            if not line:
                continue
        match = re.fullmatch(rb"([+-]?)(0[xX](?=[0-9a-fA-F])|)([0-9a-fA-F]+)", line)
        base = 16 if match and match[2] else 10
        if not line:
            return values, rf"^n:{number}: empty line"
        if not match or (base == 10 and not match[3].isdigit()):
            # Of a very long line the begin alone is looked at.
            long = f"|the line has more than {limit} characters" if len(line) > limit else ""
            return values, rf"^n:{number}: (.* is not an integer{long})"
        if len(line) > limit:
            return values, rf"^n:{number}: the line has more than {limit} characters"
        value = int(match[1] + match[3], base)
        if not lowest <= value <= highest:
            return values, rf"^n:{number}: {re.escape(abbreviate(value))} is not in the range"
        values.append(value)
    return values, ""


# What is legal, nearly legal and not, put together to lines.
DIGITS_OF_LINES = [b"0", b"1", b"9", b"00000000", b"12345678", b"4294967296", b"18446744073709551615"]
OTHERS = [
    b"+",
    b"-",
    b"0x",
    b"0X",
    b"fF",
    b" ",
    b"\t",
    b"\x0b",
    b"\r",
    b"\0",
    b"_",
    b".",
    b"e",
    b"/",
    b":",
    b"@",
]
OTHERS += [b"g", b"\xb2", b"\xff", "\u0663".encode()]
PIECES = st.sampled_from(DIGITS_OF_LINES) | st.sampled_from(OTHERS)
RANGES = [(0, 4), (0, 255), (-128, 127), (0, 2**32 - 1), (-(2**31), 2**31 - 1)]
RANGES += [(-(2**63), 2**63 - 2), (0, 10**60)]


@given(
    st.lists(st.lists(PIECES, max_size=5).map(b"".join), max_size=12),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([b"", b"\n", b"\r", b"\r\n", b"\n\n"]),
    st.sampled_from(RANGES),
    st.integers(1, 13),
    st.booleans(),
)
def test_text_like_a_plain_reader(
    pieces: list[bytes], end: bytes, last: bytes, allowed: tuple[int, int], batch: int, strict: bool
) -> None:
    text = end.join(pieces) + last
    values, problem = first_problem(text, *allowed, strict)
    reader = TextReader(io.BytesIO(text), "n", *allowed, strict=strict)
    found: list[int] = []
    with pytest.raises(InputError, match=problem) if problem else nullcontext():
        for part in batches(reader, batch):
            found += part
    assert found == values[: len(found)]
    assert problem or found == values


@pytest.mark.parametrize(
    "bad", [b"", b"x", b" 1", b"1_0", b"1\0", b"-", b"0x", b"9" * 29, b"1" * 32, b"-1", "\u0663".encode()]
)
@pytest.mark.parametrize("before", [0, 1, 8738, 8739, *slow(5000, 20000)])  # 8738 lines are read at a time
@pytest.mark.parametrize("strict", [False, True])
def test_text_bad_line_anywhere(bad: bytes, before: int, strict: bool) -> None:
    good = b"%029d\n" % (10**28)
    text = good * before + bad + b"\n" + good + b"y\n"
    values, problem = first_problem(text, 0, 10**28, strict)
    assert len(values) == before + (not strict and bad in (b"", b" 1")) * 2 - (not strict and bad == b"")
    for batch in (2**20, 777):
        with pytest.raises(InputError, match=problem):
            list(batches(TextReader(io.BytesIO(text), "n", 0, 10**28, strict=strict), batch))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("size", [1, 3, 10**6])
def test_text_with_spaces_and_blank_lines(mark: bytes, end: bytes, size: int) -> None:
    values = [k**9 for k in range(300)]
    padded = [b"%*d" % (40, v) if v % 2 else b"\t%d  \t" % v for v in values]
    pieces = [line for k, text in enumerate(padded) for line in [b"", b" \t "] * (k % 3) + [text]]
    data = mark + end.join([*pieces, b"", b" "])
    reader = TextReader(io.BytesIO(data), "n", 0, HIGHEST)
    assert [v for part in batches(reader, size) for v in part] == values
    assert (reader.count, reader.bound) == (300, max(values))
    bad = TextReader(io.BytesIO(data + end + b"x"), "n", 0, HIGHEST)
    with pytest.raises(InputError, match=rf"^n:{len(pieces) + 3}: 'x' is not an integer"):
        list(batches(bad, size))
    high = TextReader(io.BytesIO(data), "n", 0, 299**9 - 1)
    with pytest.raises(InputError, match=rf"^n:{len(pieces)}: .* is not in the range"):
        list(batches(high, size))


def test_text_of_a_mark_alone_or_late() -> None:
    mark = b"\xef\xbb\xbf"
    reader = TextReader(io.BytesIO(mark), "n", 0, 9)
    assert (read(reader, 5), reader.bytes_read) == ([], 3)
    for data in (mark + mark + b"1", b"1\n" + mark + b"1"):
        with pytest.raises(InputError, match=r"^n:[12]: .* is not an integer"):
            list(batches(TextReader(io.BytesIO(data), "n", 0, 9), 5))


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_a_mark_that_comes_in_parts(most: int) -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(most if size is None or size < 0 else min(size, most))

    mark = b"\xef\xbb\xbf"
    for text, values in ((b"12\n3", [12, 3]), (b"", [])):
        reader = TextReader(Slow(mark + text), "n", 0, 99)
        assert (read(reader, 5), reader.bytes_read) == (values, len(mark + text))
    for data, strict in ((mark[:1], False), (mark[:2], False), (mark[:2] + b"7", False), (mark + b"1", True)):
        with pytest.raises(InputError, match=r"^n:1: .* is not an integer"):
            read(TextReader(Slow(data), "n", 0, 99, strict=strict), 5)


def test_text_of_too_many_spaces() -> None:
    for spaces, good in ((4096, True), (5000, False), (10**6, False)):
        for data in (b" " * spaces + b"7\n", b"7" + b" " * spaces + b"\n8", b"1\n" + b" " * spaces + b"\n2"):
            reader = TextReader(io.BytesIO(data), "n", 0, 9)
            if good:
                assert sum(v for part in batches(reader, 2) for v in part) in (7, 15, 3)
            else:
                with pytest.raises(InputError, match=r"^n:[12]: the line has more than \d+ characters"):
                    list(batches(reader, 2))


def test_text_first_of_many_bad_lines_is_named() -> None:
    with pytest.raises(InputError, match=r"^numbers\.txt:2: 6 is not in the range"):
        text_reader(b"1\n6\nx\n", 0, 5).read(100)


def test_text_of_short_reads() -> None:
    class Short(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 7))

    values = [10**i for i in range(30)]
    reader = TextReader(Short(lines(values)), "n", 0, HIGHEST)
    assert [v for b in batches(reader, 4) for v in b] == values


@pytest.mark.slow
def test_text_lines_of_a_million_digits(rng: np.random.Generator) -> None:
    values = random_integers(rng, [3_321_928, 3_000_000, 100], 3, signed=True)
    values.append(2**3_321_928)
    reader = TextReader(io.BytesIO(lines(values).rstrip()), "n", -(2**3_321_928), 2**3_321_928)
    assert read(reader, 3) == values[:3]
    assert read(reader, 3) == values[3:]
    limit = r"^n:2: the line has more than 100000[12] characters"  # GMP says 10**6 or one more
    reader = TextReader(io.BytesIO(b"1\n" + b"0" * 1_000_003), "n", 0, 10**1_000_000 - 1)
    with pytest.raises(InputError, match=limit):
        reader.read(2)


# --- Binary -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 12, 13, 256])
@BOTH_RANGES
@pytest.mark.parametrize("batch", [1, 3, 1000])
def test_binary(width: int, signed: bool, batch: int) -> None:
    bits = 8 * width
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    values = [0, 1, 2, 127, lowest, highest, highest - 1, lowest + 1, highest // 2, lowest // 2, 0]
    data = records(values, width, signed)
    reader = BinaryReader(io.BytesIO(data), "x.bin", lowest, highest, width=width, signed=signed)
    assert [v for b in batches(reader, batch) for v in b] == values
    assert (reader.count, reader.bytes_read) == (len(values), len(data))
    assert reader.bound == max(map(abs, values))


@BOTH_RANGES
def test_binary_bound_of_random_integers(rng: np.random.Generator, signed: bool) -> None:
    for _ in range(50):
        lengths = rng.choice([1, 20, 33, 70, 94], 3).tolist()
        values = random_integers(rng, lengths, 30, signed)
        data = records(values, 12, signed)
        reader = BinaryReader(io.BytesIO(data), "x.bin", -(2**95), 2**95, width=12, signed=signed)
        for _ in batches(reader, 7):
            pass
        assert reader.bound == max(map(abs, values))


class Reads(np.ndarray):
    """Counts how often a part of it is taken."""

    count = 0

    def __getitem__(self, key: object) -> object:
        if type(self) is Reads:
            Reads.count += 1
        return np.asarray(self)[key]


@BOTH_RANGES
@pytest.mark.parametrize("rows", [2, 3, 5, 600])
def test_extremes_of_wide_records(rows: int, signed: bool, rng: np.random.Generator) -> None:
    """All limbs the same, the last or some one of them different, or each number leading for a while."""
    count = 2000 if rows < 10 else 40
    batches = [np.zeros((rows, count), dtype=np.uint32) for _ in range(5)]
    batches[1][:, 0] = rng.permutation(rows)
    batches[2][:, count // 2] = rng.permutation(rows)
    batches[3][rng.integers(rows), rng.integers(count)] = 2**31
    for i, row in enumerate(rng.permutation(rows)):
        batches[4][row, : count - i * count // rows] = 2**32 - 1
    for limbs in batches:
        for changed in (limbs, ~limbs):
            Reads.count = 0
            batch = Batch(changed.view(Reads), signed)
            numbers = [
                int.from_bytes(row.astype("<u4").tobytes(), "little", signed=signed) for row in changed
            ]
            assert batch.extreme(largest=True) == max(numbers)
            assert batch.extreme(largest=False) == min(numbers)
            assert rows > 10 or Reads.count < 200


def test_binary_range() -> None:
    data = records([5, 6, 1000, 7, 2000], 3, False)
    reader = BinaryReader(io.BytesIO(data), "x.bin", 0, 999, width=3, signed=False)
    assert len(reader.read(2)) == 2
    with pytest.raises(
        InputError,
        match=r"^x\.bin: index 2 \(byte 6\): 1000 is not in the range of 0 to 999; bits=10 holds it$",
    ):
        reader.read(3)
    reader = BinaryReader(io.BytesIO(records([-5, -6], 3, True)), "x.bin", -5, 5, width=3, signed=True)
    with pytest.raises(InputError, match=r"^x\.bin: index 1 \(byte 3\): -6 is not"):
        reader.read(2)


def test_binary_stream_that_ends_within_a_record() -> None:
    reader = BinaryReader(io.BytesIO(b"abcdefgh" * 3 + b"ijk"), "<stdin>", 0, 2**64, width=8, signed=False)
    assert len(reader.read(3)) == 3
    with pytest.raises(InputError, match=r"^<stdin>: its size of 27 bytes .* width of 8: 3 bytes remain"):
        reader.read(3)


def test_binary_file_size_is_checked_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(27))
    with path.open("rb") as stream:
        assert remaining_bytes(stream) == 27
        with pytest.raises(InputError, match=r"27 bytes .* 3 bytes remain"):
            BinaryReader(stream, "x.bin", 0, 2**64, width=8, signed=False)
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
