"""Ranges that errors state: both ends are taken, and their neighbours outside are refused by that range."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rnsdask as rd

MODULI = rd.ModuliSet.for_bits(64)
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
        r"from 2 to 32|use larger moduli",
    ),
    "primes": (lambda p: rd.PrimeFields([p]), 2, 4294967291, r"from 2 to 2\*\*32|not a prime"),
    "bits of limbs": (rd.Positional, 1, 2**20, "from 1 to 1048576"),
    "bits of a conversion": (X.to_positional, 2, 2**20, "from 1 to 1048576|outside"),
    "bits of a set": (rd.ModuliSet.for_bits, 1, None, "at least 1"),
    "split_every": (lambda n: X.rechunk(1).sum(split_every=n), 1, None, "at least 1"),
    "bins": (lambda n: rd.histogram(X, n), 1, None, "at least 1"),
    "orders of roots": (ELEMENTS.system.roots, 1, 2013265920, "at least 1|no primitive root"),
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


HUGE = [2**63 - 1, 2**63, 2**64, 2**200, -1, -(2**63), -(2**64)]
"""Integers that no C integer of the libraries below holds, or only just."""

SERIES = rd.from_ints([1, 2, 0, 0], ELEMENTS.system, chunks=None)
INTS = rd.from_ints([1, 2, 0, 0], chunks=None)
ROOTLESS = rd.from_ints([0, 1], ELEMENTS.system, chunks=None)

TAKES: dict[str, Callable[[int], Any]] = {
    "compose": lambda n: rd.poly.compose(SERIES, ROOTLESS, n),
    "inverse_series": lambda n: rd.poly.inverse_series(SERIES, n),
    "inverse_series of integers": lambda n: rd.poly.inverse_series(INTS, n),
    "log_series": lambda n: rd.poly.log_series(SERIES, n),
    "exp_series": lambda n: rd.poly.exp_series(ROOTLESS, n),
    "random": lambda n: rd.random(n, bits=64),
    "random chunks": lambda n: rd.random(MODULI, (n, n)),
    "tile": lambda n: rd.tile(X, n),
    "tile, lazy": lambda n: rd.tile(X.rechunk(1), n),
    "pad": lambda n: rd.pad(X, n),
    "pad at the end": lambda n: rd.pad(X, (0, n)),
    "pad, lazy": lambda n: rd.pad(X.rechunk(1), n),
    "matrix_power": lambda n: rd.linalg.matrix_power(X[:1].reshape(1, 1) + 1, n),
    "broadcast_to": lambda n: rd.broadcast_to(X, (n, 3)),
    "broadcast_to, lazy": lambda n: np.broadcast_to(X.rechunk(1), (n, 3)),
    "reshape": lambda n: X.reshape(n if n != -1 else 5, 1),
    "array_split": lambda n: np.array_split(X, n),
    "index": lambda n: X[n if n != -1 else 5],
    "index, lazy": lambda n: X.rechunk(1)[n if n != -1 else 5],
    "histogram": lambda n: rd.histogram(X, n),
    "histogram, lazy": lambda n: rd.histogram(X.rechunk(1), n),
    "repeat": lambda n: np.repeat(X, n),
    "repeat of each": lambda n: X.repeat([1, n, 1]),
    "repeat, lazy": lambda n: X.rechunk(1).repeat(n),
    "repeat of each, lazy": lambda n: X.rechunk(1).repeat([1, n, 1]),
    "axis": lambda n: X.sum(axis=n if n != -1 else 5),
    "axes": lambda n: rd.expand_dims(X, n if n != -1 else 5),
    "axis of cumsum": lambda n: X.cumsum(n if n != -1 else 5),
}
"""Functions that take a length, a count or an axis."""

OF_OTHERS = re.compile("C long|C int|too big|Maximum allowed|index-sized|iterator is|Unable to allocate")


@pytest.mark.parametrize("number", HUGE, ids=[f"{'-' * (n < 0)}{abs(n):x}" for n in HUGE])
@pytest.mark.parametrize("name", TAKES)
def test_huge_numbers_are_one_clear_error(name: str, number: int) -> None:
    with pytest.raises((ValueError, IndexError, rd.RNSError)) as caught:
        TAKES[name](number)
    assert not OF_OTHERS.search(str(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("count", [2**31, 2**63, 2**64])
def test_any_number_of_results_is_combined(count: int, lazy: bool) -> None:
    x = X.rechunk(1) if lazy else X
    assert (int(x.sum(split_every=count)), int(x.max(split_every={0: count}))) == (6, 3)
    assert bool(x.any(split_every=count))
    assert list(x.topk(2, split_every=count)) == [3, 2]
