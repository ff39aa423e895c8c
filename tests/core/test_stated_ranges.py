"""Ranges that errors state: both ends are taken, and their neighbours outside are refused by that range."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call
from strategies import slow

import rnsdask as rd
from rnsdask.constants.fermat import FermatConstants
from rnsdask.core.errors import abbreviate
from rnsdask.core.moduli import MOST_MODULI, first_moduli
from rnsdask.io.matrix_market import MatrixMarketReader
from rnsdask.rns.convert import ints_to_limbs
from rnsdask.rns.exact import value_of
from rnsdask.sparse.matrix import check_shape
from rnsdask.store.documents import MOST_CHUNKS, check_lengths

MODULI = rd.ModuliSet.for_bits(64)
ZEROS = np.zeros((1, 2), np.uint64)
X = rd.from_ints([1, 2, 3], rd.ModuliSet.for_bits(64), chunks=None)
ELEMENTS = rd.from_ints([1, 2, 3, 4], rd.PrimeFields([2013265921]), chunks=None)

POLYNOMIALS = rd.from_ints(np.ones((1, 1, 1), int), MODULI, chunks=None)
ZERO = rd.from_ints([0], MODULI, chunks=None)
ONE = rd.from_ints([[1]], MODULI, chunks=None)
FERMAT = rd.FermatField(2**28 + 2**22, 16)
SPARSE = rd.sparse.from_entries([0, 1], [0, 1], [1, 1], (2, 2))


@pytest.fixture(autouse=True)
def _in_folder_of_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    X.rechunk(3).to_zarr("x.zarr")


def command(*words: object) -> None:
    """Run a command; ValueError with what it prints if it refuses its options."""
    result = call(*words)
    if result.exit_code == 2:
        raise ValueError(result.stderr)


def drawn(count: int) -> None:
    """Draw a line of numbers."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure = pyplot.figure()
    rd.RNSArray(np.zeros((1, count), np.uint32), rd.RNS(rd.ModuliSet([7]))).plot.line(ax=figure.gca())
    pyplot.close(figure)


def matrix(size: str, *entries: str, kind: str = "general") -> None:
    """Read the first numbers of a Matrix Market file of given entries."""
    text = "\n".join([f"%%MatrixMarket matrix coordinate integer {kind}", size, *entries, ""])
    system = rd.RNS(MODULI)
    reader = MatrixMarketReader(io.BytesIO(text.encode()), "m", system, system.value_range)
    reader.read(10)


# What is called with a number, its least and greatest value, and how the error states them.
RANGES: dict[str, tuple[Callable[[int], Any], int | None, int | None, str]] = {
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
    "primes": (lambda p: rd.PrimeFields([p]), 2, 2**64 - 59, r"from 2 to 2\*\*64|not a prime"),
    "bits of limbs": (rd.Positional, 1, 2**20, "from 1 to 1048576"),
    "bits of a conversion": (X.to_positional, 2, 2**20, "from 1 to 1048576|outside"),
    "bits of a set": (rd.ModuliSet.for_bits, 1, None, "at least 1"),
    "split_every": (lambda n: X.rechunk(1).sum(split_every=n), 1, None, "at least 1"),
    "bins": (lambda n: rd.histogram(X, n), 1, None, "at least 1"),
    "orders of roots": (ELEMENTS.system.roots, 1, 2013265920, "at least 1|no primitive root"),
    "lengths of series": (lambda n: rd.poly.inverse_series(ELEMENTS, n), 1, None, "at least 1"),
    "variables": (lambda n: rd.poly.resultant(X, X, variables=n), 1, 1, "1 or 2|axes"),
    "variables of determinants": (lambda n: rd.linalg.det(POLYNOMIALS, variables=n), 0, 1, "0 or 1"),
    "starts of odd moduli": (
        lambda m: rd.ModuliSet.consecutive_odd(m, 1),
        3,
        2**32 - 1,
        r"odd integer from 3 to 2\*\*32 - 1",
    ),
    "counts of odd moduli": (lambda n: rd.ModuliSet.consecutive_odd(3, n), 1, None, "at least 1"),
    "most moduli of a set": (
        lambda n: first_moduli(n) if n else rd.ModuliSet([]),
        1,
        MOST_MODULI,
        f"at least one modulus|at most {MOST_MODULI} moduli",
    ),
    "bits of NTT primes": (lambda bits: rd.ModuliSet.ntt_primes(bits, 4), 1, None, "at least 1"),
    "lengths of NTT primes": (lambda n: rd.ModuliSet.ntt_primes(8, n), 1, None, "power of two"),
    "prefixes": (MODULI.prefix, 1, len(MODULI), f"from 1 to {len(MODULI)}"),
    "radixes": (
        lambda r: FermatConstants(r, 4),
        2**8 + 1,
        2**64 - 2,
        r"from 2\*\*8 \+ 1 to 2\*\*64 - 2",
    ),
    "digits of Fermat fields": (
        lambda n: FermatConstants(2**28 + 2**22, n),
        4,
        128,
        "takes 4, 8, 16, 32, 64, 128 digits",
    ),
    "orders of roots of Fermat fields": (
        FERMAT.root_of_unity,
        1,
        FERMAT.modulus - 1,
        "at least 1|no primitive root",
    ),
    "stored bounds": (
        rd.RNS(MODULI).with_exact_bound,
        0,
        MODULI.product - 1,
        f"from 0 to {re.escape(abbreviate(MODULI.product - 1))}",
    ),
    "stored bounds of signed numbers": (
        rd.RNS(MODULI, signed=True).with_exact_bound,
        0,
        MODULI.product // 2,
        "from 0 to ",
    ),
    "confirming moduli": (
        lambda n: rd.rational_reconstruct(X, confirm=n),
        1,
        len(MODULI) - 1,
        f"from 1 to {len(MODULI) - 1}, for there are {len(MODULI)} moduli",
    ),
    "confirming moduli, with bounds": (
        lambda n: rd.rational_reconstruct(X, numerator_bound=3, denominator_bound=1, confirm=n),
        0,
        len(MODULI) - 1,
        f"from 0 to {len(MODULI) - 1}",
    ),
    "bounds of numerators": (
        lambda n: rd.rational_reconstruct(ZERO, numerator_bound=n, denominator_bound=1),
        0,
        None,
        "at least 0",
    ),
    "bounds of denominators": (
        lambda n: rd.rational_reconstruct(X, numerator_bound=3, denominator_bound=n),
        1,
        None,
        "at least 1",
    ),
    "confirming points": (
        lambda n: rd.poly.rational_interpolate(
            ELEMENTS, ELEMENTS * 0 + 1, numerator_degree=0, denominator_degree=0, confirm=n
        ),
        0,
        3,
        "at least 0|points",
    ),
    "limbs": (lambda n: ints_to_limbs([0], n, False), 1, None, "limb_count must be at least 1"),
    "bits of random numbers": (
        lambda bits: rd.random(MODULI, 3, bits=bits),
        1,
        MODULI.product.bit_length() - 1,
        "at least 1|does not hold all numbers of",
    ),
    "seeds": (lambda n: rd.random(MODULI, 3, seed=n), 0, None, "not be negative"),
    "parts": (lambda n: rd.open_zarr("x.zarr", part=n), 1, None, "part must be at least 1"),
    "exponents of series": (lambda n: rd.poly.power_mod(SERIES, n, length=3), 0, None, "at least 0"),
    "modulo": (lambda n: rd.linalg.inv(ONE, modulo=n), 2, None, "at least 2"),
    "matrix powers": (lambda n: rd.linalg.matrix_power(ONE, n), 0, None, "not be negative"),
    "lazy matrix powers": (
        lambda n: rd.linalg.matrix_power(ONE.rechunk(1), n, overflow="wrap"),
        0,
        2**128 - 1,
        "not be negative|at most 128 bits",
    ),
    "sparse shapes": (lambda n: check_shape((n, 0)), 0, 2**31 - 1, r"from 0 to 2\*\*31 - 1"),
    "chunks of primes": (
        lambda n: rd.sparse.solve(SPARSE, ELEMENTS[:2], chunks=n),
        1,
        None,
        "at least 1 prime",
    ),
    "chunk lengths": (lambda n: X.rechunk(n), 1, None, "at least 1, or -1"),
    "chunk lengths of new arrays": (lambda n: rd.random(MODULI, 3, chunks=n), 1, None, "at least 1"),
    "chunks of an axis": (lambda n: X.rechunk(((n, 3 - n),)), 0, 3, "from 0 on"),
    "axes of a store": (lambda n: check_lengths([1] * n, [1] * n, 4), None, 32, "at most 32 axes"),
    "chunks of a store": (
        lambda n: check_lengths([n], [1], 4),
        0,
        MOST_CHUNKS,
        f"integers from 0 on|of {MOST_CHUNKS} at most",
    ),
    "chunk lengths of a store": (lambda n: check_lengths([5], [n], 4), 1, None, "integers from 1 on"),
    "numbers of a line": (
        drawn,
        None,
        10**6,
        "at most 1000000 numbers",
    ),
    "residues of a number": (
        lambda r: value_of([r, 0, 0], MODULI),
        0,
        2**32 - 1,
        r"residue 0 must be from 0 to 4294967295",
    ),
    "rows of a Matrix Market file": (
        lambda n: matrix("3 2 1", f"{n} 1 5"),
        1,
        3,
        "row .* is not from 1 to 3",
    ),
    "rows of a long Matrix Market file": (
        lambda n: matrix(f"{10**18} 2 1", f"{n} 1 5"),
        1,
        10**18,
        f"row .* is not from 1 to {10**18}",
    ),
    "columns of a Matrix Market file": (
        lambda n: matrix("3 2 1", f"3 {n} 5"),
        1,
        2,
        "column .* is not from 1 to 2",
    ),
    "entries of a symmetric Matrix Market file": (
        lambda n: matrix(f"2 2 {n}", *["1 1 1", "2 1 1", "2 2 1", "2 2 1"][: max(n, 0)], kind="symmetric"),
        0,
        3,
        "at most 3 entries|expected the numbers of",
    ),
    "--max-bits": (
        lambda n: command("random", "r.zarr", "--overwrite", "--count", 3, "--bits", 64, "--max-bits", n),
        1,
        MODULI.product.bit_length() - 1,
        f"must be at least 1|--max-bits must be at most {MODULI.product.bit_length() - 1}",
    ),
    "--chunks": (
        lambda n: command("rechunk", "x.zarr", "-o", "c.zarr", "--overwrite", "--chunks", n),
        1,
        None,
        "at least 1, or -1",
    ),
    "--chunk": (
        lambda n: command("random", "c.zarr", "--overwrite", "--bits", 64, "--count", 3, "--chunk", n),
        1,
        2**63 - 1,
        "from 1 to 9223372036854775807, or -1",
    ),
    "--gpus": (
        lambda n: command("sum", "x.zarr", "--gpus", n),
        1,
        10**9 - 1,
        "from 1 to 999999999, or 'all'",
    ),
    "--digits": (
        lambda n: command("sum", "x.zarr", "--digits", n),
        1,
        10**9 - 1,
        "from 1 to 999999999, or 'all'",
    ),
    "times of differences": (lambda n: rd.diff(X, n), 0, None, "n must not be negative"),
    "repeats": (lambda n: X.repeat(n), 0, None, "not be negative"),
    "widths of pads": (lambda n: rd.pad(X, n), 0, None, "not be negative"),
    "shifts": (lambda n: X << n, 0, None, "not be negative"),
}


LONG = ("most moduli of a set", "numbers of a line", "lazy matrix powers")


@pytest.mark.parametrize("what", [*(what for what in RANGES if what not in LONG), *slow(*LONG)])
def test_both_ends_are_taken_and_no_more(what: str) -> None:
    call, least, greatest, message = RANGES[what]
    taken = [value for value in (least, greatest) if value is not None]
    refused = [value + step for value, step in ((least, -1), (greatest, 1)) if value is not None]
    for value in taken:
        call(value)
    for value in refused:
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
