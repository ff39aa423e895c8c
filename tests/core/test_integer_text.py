"""Files of moduli. What else reads and writes integers as text is tested in ``tests/jobs``."""

import io

import pytest

from rnsdask.core.errors import InputError
from rnsdask.core.integer_text import read_moduli


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
