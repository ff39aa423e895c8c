"""Ranges that errors state: both ends are taken, and their neighbours outside are refused by that range."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rnsdask as rd

ZEROS = np.zeros((1, 2), np.uint64)
X = rd.from_ints([1, 2, 3], rd.ModuliSet.for_bits(64), chunks=None)
ELEMENTS = rd.from_ints([1, 2, 3, 4], rd.PrimeFields([2013265921]), chunks=None)

# What is called with a number, its least and greatest value, and how the error states them.
RANGES: dict[str, tuple[Callable[[int], Any], int, int | None, str]] = {
    "moduli of a set": (lambda m: rd.ModuliSet([m]), 2, 2**32, r"from 2 to 2\*\*32"),
    "moduli of residues": (lambda m: rd.from_residues(ZEROS, [m]), 2, 2**64, r"from 2 to 2\*\*64"),
    "moduli of wide residues": (
        lambda m: rd.from_residues(np.zeros((2, 2), np.uint64), [2**61 - 1, m]),
        2,
        2**64,
        r"from 2 to 2\*\*64",
    ),
    "widths of moduli": (
        lambda bits: rd.ModuliSet.for_bits(4 if bits < 9 else 64, bits),
        3,
        32,
        r"from 2 to 32|no set of moduli",
    ),
    "primes": (lambda p: rd.PrimeFields([p]), 2, 4294967291, r"from 2 to 2\*\*32|not a prime"),
    "bits of limbs": (rd.Positional, 1, 2**20, "from 1 to 1048576"),
    "bits of a conversion": (X.to_positional, 2, 2**20, "from 1 to 1048576|outside"),
    "bits of a set": (rd.ModuliSet.for_bits, 1, None, "at least 1"),
    "split_every": (lambda n: X.rechunk(1).sum(split_every=n), 1, None, "at least 1"),
    "bins": (lambda n: rd.histogram(X, n), 1, None, "at least 1"),
    "orders of roots": (ELEMENTS.system.roots, 1, 2013265920, "at least 1|no primitive root"),
    "bytes of limbs": (lambda n: X.to_limbs(n), 1, None, "at least 1|limb"),
    "lengths of series": (lambda n: rd.poly.inverse_series(ELEMENTS, n), 1, None, "at least 1"),
    "variables": (lambda n: rd.poly.resultant(X, X, variables=n), 1, 1, "1 or 2|axes"),
}


@pytest.mark.parametrize("what", RANGES)
def test_both_ends_are_taken_and_no_more(what: str) -> None:
    call, least, greatest, message = RANGES[what]
    for value in [least] if greatest is None else [least, greatest]:
        call(value)
    for value in [least - 1] if greatest is None else [least - 1, greatest + 1]:
        with pytest.raises(ValueError, match=message):
            call(value)
