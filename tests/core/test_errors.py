"""Types and attributes of errors, and long integers in messages."""

import itertools
import math

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rnsdask as rd
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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([2**60 - 93, 2**60 - 107], "[1152921504606846883, 1152921504606846869]"),
        ((2**60 - 93,) * 4, "(1152921504606846883, 1152921504606846883, 1152921504606846883, ...)"),
        ([2**200, [10**5000]], f"[{errors.abbreviate(2**200)}, [{errors.abbreviate(10**5000)}]]"),
        (np.array([2**60 - 93, 2**60 - 107, 1]), "array([1152921504606846883, ..."),
        (gmpy2.mpz(2) ** 200, errors.abbreviate(2**200)),
        (gmpy2.mpz(5), "mpz(5)"),
        (True, "True"),
        ("a" * 41, f"'{'a' * 40}'..."),
        ("a" * 40, f"'{'a' * 40}'"),
        (b"a" * 41, f"b'{'a' * 40}'..."),
    ],
    ids=itertools.count(),
)
def test_no_number_is_cut(value: object, text: str) -> None:
    assert errors.brief(value) == text


def test_a_moduli_set_is_told_by_the_bits_of_its_product_everywhere() -> None:
    """The array, its errors and what numbers it holds for sure, signed or not."""
    moduli = rd.ModuliSet([2**32 - k for k in (5, 17, 65, 99, 107, 135, 153, 185, 209)])
    assert moduli.bits == math.prod(moduli).bit_length() == 288
    for signed in (False, True):
        x = rd.from_ints(np.array([2**286 - 1], dtype=object), moduli, signed=signed).compute()
        assert "M of 288 bits" in repr(x)
        with pytest.raises(rd.RNSOverflowError) as caught:
            x * 4
        kind, sign, needed = ("signed", " with its sign", 289) if signed else ("unsigned", "", 288)
        told = f"is {needed} bits long{sign}, outside the {kind} range of M of 288 bits, which holds all "
        assert f"{told}numbers of 287 bits; " in str(caught.value)
    y = rd.IntervalRNSArray.from_rns(x)
    with pytest.raises(
        rd.RNSOverflowError, match=r"289 bits long with its sign.* 288 bits, .* all numbers of 288"
    ):
        y * 4


@pytest.mark.parametrize("exponent", [10**30, 2**64, 10**5000], ids=["10**30", "2**64", "10**5000"])
def test_sizes_that_are_long_themselves(exponent: int) -> None:
    """Results are told by a lower bound of their bits that people can read."""
    # Of 2**64 the bits are 2**64 + 1; a lower bound of limbs may be one less.
    two = rd.from_ints([2], rd.ModuliSet.for_bits(64)).compute()
    limbs = two.to_positional(64)
    bound = rf"more than 2\*\*({exponent.bit_length() - 1}|{(exponent - 1).bit_length() - 1}) bits"
    for x in (two, limbs, rd.IntervalRNSArray.from_rns(two)):
        with pytest.raises(rd.RNSOverflowError, match=f"the exact result is {bound} long"):
            x**exponent
    for x in (two, rd.IntervalRNSArray.from_rns(two)):
        with pytest.raises(ValueError, match=f"the factor of a shift by {bound} is outside"):
            x << (exponent + 1)
    with pytest.raises(rd.RNSOverflowError, match=f"the exact result is at least {2**62 + 2} bits long"):
        limbs << exponent
