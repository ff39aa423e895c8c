"""What callers may rely on when they catch errors, and the writing of long integers in messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnsdask.core import errors


def test_each_error_is_caught_by_its_kind_and_by_the_built_in_one() -> None:
    for kind in (errors.StoreError, errors.IncompleteStoreError, errors.CorruptChunkError, errors.InputError):
        assert issubclass(kind, errors.RNSError)
        assert issubclass(kind, ValueError)
    assert issubclass(errors.IncompleteStoreError, errors.StoreError)
    assert issubclass(errors.CorruptChunkError, errors.StoreError)
    assert issubclass(errors.JobError, errors.RNSError)
    assert issubclass(errors.JobError, RuntimeError)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-1, "-1"),
        (2**64 - 1, "18446744073709551615"),
        (1 - 2**64, "-18446744073709551615"),
        (2**64, "0x10000000000000000 (65 bits)"),
        (-(2**64), "-0x10000000000000000 (65 bits)"),
        (2**128 - 1, "0xffffffffffffffffffffffffffffffff (128 bits)"),
        (2**128 + 5, "0x1000000000000000...0000000000000005 (129 bits)"),
    ],
)
def test_abbreviate_by_hand(value: int, text: str) -> None:
    assert errors.abbreviate(value) == text


@given(st.integers())
def test_abbreviate_is_exact_for_short_integers(value: int) -> None:
    text = errors.abbreviate(value).split(" ")[0]
    if abs(value) < 2**128:
        assert int(text, 0) == value


def test_abbreviate_is_short_for_integers_beyond_the_limit_of_decimal_conversion() -> None:
    assert len(errors.abbreviate(-(7**100_000))) < 70
