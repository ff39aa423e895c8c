"""``compare`` of elements of prime fields: planted differences, and every pattern by brute force."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from commands import as_json, fail, succeed

import rnsdask as rd
from rnsdask.lazy.field_differences import find_differences, find_patterns

WIDE = [1152921504606748673, 1099510890497, 786433]
NARROW = [132120577, 786433, 12289]
SHAPE, N = (4, 2, 64), 64
CHUNKS = [(4, 2, 64), (3, 1, 20), (1, 2, 64), (4, 2, 7)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def bits_reversed(n: int) -> list[int]:
    width = n.bit_length() - 1
    return [int(format(i, f"0{width}b")[::-1] or "0", 2) for i in range(n)]


def column(primes: list[int]) -> Any:
    return np.array(primes, object)[:, None, None, None]


@pytest.fixture(params=[WIDE, NARROW], ids=["64 bits", "32 bits"])
def words(request: pytest.FixtureRequest) -> tuple[list[int], Any]:
    """Primes and residues as Python ints, none of them 0 or equal to its negative."""
    generator = np.random.default_rng(5)
    rows = [generator.integers(1, p, SHAPE).astype(object) for p in request.param]
    return request.param, np.array(rows)


def store(name: str, primes: list[int], words: Any, chunks: tuple[int, ...]) -> None:
    fields = rd.PrimeFields(primes)
    x = rd.from_residues(words.astype(fields.word_dtype), fields)
    x.rechunk(chunks).to_zarr(name, overwrite=True)


def report(
    primes: list[int], a: Any, b: Any, chunks: tuple[int, ...], other: tuple[int, ...]
) -> dict[str, Any]:
    store("a.zarr", primes, a, chunks)
    store("b.zarr", primes, b, other)
    return as_json("compare", "a.zarr", "b.zarr", status=int((a != b).any()))


def lines() -> list[str]:
    """All lines but the stores, the counts and the time."""
    return succeed("compare", "a.zarr", "b.zarr", status=1).splitlines()[2:-1]


@pytest.mark.parametrize("chunks", CHUNKS)
def test_single_residue(words: tuple[list[int], Any], chunks: tuple[int, ...]) -> None:
    primes, a = words
    b = a.copy()
    b[1, 3, 1, 37] = (a[1, 3, 1, 37] + 5) % primes[1]
    found = report(primes, a, b, chunks, CHUNKS[0])
    assert (found["equal"], found["different"], found["count"]) == (511, 1, 512)
    assert found["residues"] == {str(primes[0]): 0, str(primes[1]): 1, str(primes[2]): 0}
    assert found["first_difference"] == (3 * 2 + 1) * 64 + 37
    assert found["first_prime"] == str(primes[1])
    before, after = a[1, 3, 1, 37], b[1, 3, 1, 37]
    assert found["first_values"] == [str(before), str(after)]
    assert found["positions"] == [[3, 3, 0], [1, 1, 0], [37, 37, 0]]
    assert found["patterns"] == []
    assert lines() == [
        f"first difference: polynomial (3, 1), coefficient 37, modulo {primes[1]}: {before} against {after}",
        f"modulo {primes[1]}: 1 residue differs",
        "axis 0: 3",
        "axis 1: 1",
        "coefficients: 37",
    ]
    listed = as_json("compare", "a.zarr", "b.zarr", "--all", status=1)
    assert (listed["indices"], listed["primes"]) == ([[3, 1, 37]], [str(primes[1])])
    assert listed["values"] == [[str(before), str(after)]]
    every = succeed("compare", "a.zarr", "b.zarr", "--all", status=1).splitlines()
    assert f"3,1,37\t{primes[1]}\t{before}\t{after}" in every


@pytest.mark.parametrize("chunks", CHUNKS)
def test_every_kth_coefficient(words: tuple[list[int], Any], chunks: tuple[int, ...]) -> None:
    primes, a = words
    b = a.copy()
    b[0, 1:3, :, 5::8] = (a[0, 1:3, :, 5::8] + 1) % primes[0]
    found = report(primes, a, b, chunks, CHUNKS[1])
    assert (found["different"], found["positions"]) == (32, [[1, 2, 1], [0, 1, 1], [5, 61, 8]])
    assert lines()[1:] == [
        f"modulo {primes[0]}: 32 residues differ",
        "axis 0: 1 to 2",
        "coefficients: 5 to 61, all 5 modulo 8",
    ]


def changes(primes: list[int], a: Any) -> dict[str, tuple[Any, str]]:
    """Arrays that differ by one error, and the line on it."""
    p, begin = column(primes), "polynomials of B that differ are A's "
    rolled = np.roll(a, 3, -1)
    negacyclic = rolled.copy()
    negacyclic[..., :3] = (p - rolled[..., :3]) % p
    shuffled = a[..., np.random.default_rng(1).permutation(N)]
    return {
        "sign": ((p - a) % p, "B is -A where they differ"),
        "bit-reversed": (a[..., bits_reversed(N)], f"{begin}in bit-reversed order"),
        "reversed": (a[..., ::-1], f"{begin}from the last coefficient to the first"),
        "rotated": (rolled, f"{begin}rotated: coefficient i is A's i - 3, modulo 64"),
        "rotated back": (np.roll(a, -3, -1), f"{begin}rotated: coefficient i is A's i + 3, modulo 64"),
        "times x**3": (negacyclic, f"{begin}times x**3 modulo x**64 + 1"),
        "times -x**3": ((p - negacyclic) % p, f"{begin}times x**67 modulo x**64 + 1"),
        "shuffled": (shuffled, f"{begin}with coefficients in another order"),
    }


@pytest.mark.parametrize(
    "name",
    ["sign", "bit-reversed", "reversed", "rotated", "rotated back", "times x**3", "times -x**3", "shuffled"],
)
@pytest.mark.parametrize(
    ("part", "chunks"), [("all", CHUNKS[1]), ("one prime", CHUNKS[2]), ("two polynomials", CHUNKS[3])]
)
def test_patterns(words: tuple[list[int], Any], name: str, part: str, chunks: tuple[int, ...]) -> None:
    primes, a = words
    changed, line = changes(primes, a)[name]
    b = a.copy()
    where = {"all": ..., "one prime": 1, "two polynomials": (slice(None), slice(1, 4, 2), 1)}[part]
    b[where] = changed[where]
    report(primes, a, b, chunks, CHUNKS[0])
    assert lines()[-1] == line
    # With one more wrong residue, in a polynomial that was equal or not, it holds no more.
    b[1, 2, 0, 9] = next(
        v for v in range(primes[1]) if v not in a[1, 2, 0] and v not in primes[1] - a[1, 2, 0]
    )
    report(primes, a, b, chunks, CHUNKS[3])
    assert not any(text.startswith(("B is", "polynomials")) for text in lines())


@pytest.mark.parametrize("chunks", CHUNKS)
def test_factors(words: tuple[list[int], Any], chunks: tuple[int, ...]) -> None:
    primes, a = words
    factors = [2**32 % primes[0], pow(N, -1, primes[1]), 7]
    b = a * np.array(factors, object)[:, None, None, None] % column(primes)
    found = report(primes, a, b, chunks, CHUNKS[1])
    assert found["factors"] == {str(p): str(c) for p, c in zip(primes, factors, strict=True)}
    names = [f", and {factors[0]} is 2**32", f", and {factors[1]} is 1/N", ""]
    assert lines()[-3:] == [
        f"modulo {p}: B is {c} A where they differ{name}"
        for p, c, name in zip(primes, factors, names, strict=True)
    ]
    b[1, 3, 1, 63] = 0
    found = report(primes, a, b, chunks, CHUNKS[2])
    assert found["factors"] == {str(primes[0]): str(factors[0]), str(primes[1]): None, str(primes[2]): "7"}


def test_different_shifts_are_no_rotation(words: tuple[list[int], Any]) -> None:
    primes, a = words
    b = a.copy()
    b[:, 0], b[:, 3] = np.roll(a[:, 0], 2, -1), np.roll(a[:, 3], 5, -1)
    for chunks in CHUNKS:
        assert report(primes, a, b, chunks, CHUNKS[0])["patterns"] == [["reordered", 0]]


def patterns_of(a: list[list[int]], b: list[list[int]], primes: list[int]) -> Iterator[tuple[str, int]]:
    """By brute force, for lines (prime, N) that differ."""
    pairs = [(x, y, p) for x, y, p in zip(a, b, primes, strict=True) if x != y]
    n = len(a[0])
    if all(sorted(x) == sorted(y) for x, y, _ in pairs):
        yield "reordered", 0
    if all(x[::-1] == y for x, y, _ in pairs):
        yield "reversed", 0
    if n & n - 1 == 0 and all([x[i] for i in bits_reversed(n)] == y for x, y, _ in pairs):
        yield "bit-reversed", 0
    for k in range(n):
        if all(x[k:] + x[:k] == y for x, y, _ in pairs):
            yield "rotated", k
    for k in range(2 * n):
        made = [[0] * n for _ in pairs]
        for (x, _, p), line in zip(pairs, made, strict=True):
            for i in range(n):
                line[(i + k) % n] = x[i] if (i + k) // n % 2 == 0 else -x[i] % p
        if made == [y for _, y, _ in pairs]:
            yield "multiplied by x", k


@pytest.mark.parametrize("seed", range(3))
def test_short_lines_by_brute_force(seed: int) -> None:
    """Few values, so that many patterns hold at once."""
    print(seed)
    generator = np.random.default_rng(seed)
    primes = [2, 3, 5]
    fields, tried = rd.PrimeFields(primes), 0
    for n, _ in itertools.product((2, 3, 4, 6, 8), range(60)):
        a = [generator.integers(0, min(p, 3), n).tolist() for p in primes]
        way = generator.integers(5)
        b = [list(line) for line in a]
        for row, p in enumerate(primes):
            if generator.random() < 0.6:
                k = int(generator.integers(n))
                signs = [-1 if i < k and way == 1 else 1 for i in range(n)]
                b[row] = [s * v % p for s, v in zip(signs, np.roll(a[row], k).tolist(), strict=True)]
                b[row] = {2: b[row][::-1], 3: [-v % p for v in a[row]], 4: sorted(a[row])}.get(way, b[row])
        words = [da.from_array(np.array(x, np.uint32), chunks=(3, -1)) for x in (a, b)]
        found = find_patterns(*words, fields).compute().item()
        if a == b:
            assert found is None
            continue
        tried += 1
        assert found == set(patterns_of(a, b, primes))
        differences = find_differences(*words, fields).compute().item()
        columns = [i for i in range(n) if any(x[i] != y[i] for x, y in zip(a, b, strict=True))]
        assert differences.elements == len(columns)
        (steps,) = differences.axes
        assert (steps.low, steps.high) == (columns[0], columns[-1])
        assert steps.step == math.gcd(*(i - columns[0] for i in columns))
    assert tried > 100


def test_other_shapes() -> None:
    """Stores of one axis, empty ones, and polynomials too short for an order."""
    for shape in ((3,), (0,), (2, 1)):
        x = rd.from_ints(range(math.prod(shape)), rd.PrimeFields(WIDE)).reshape(shape)
        x.to_zarr("a.zarr", overwrite=True)
        (x + 1).to_zarr("b.zarr", overwrite=True)
        assert as_json("compare", "a.zarr", "a.zarr")["different"] == 0
        found = as_json("compare", "a.zarr", "b.zarr", "--all", status=int(x.size > 0))
        assert (found["different"], len(found["indices"])) == (x.size, 3 * x.size)
        succeed("compare", "a.zarr", "b.zarr", status=int(x.size > 0))


def test_what_is_not_compared() -> None:
    rd.from_ints([1, 2], rd.PrimeFields(WIDE)).to_zarr("wide.zarr")
    rd.from_ints([1, 2], rd.PrimeFields(WIDE[::-1])).to_zarr("other.zarr")
    rd.from_ints([1, 2], rd.PrimeFields(NARROW)).to_zarr("narrow.zarr")
    rd.from_ints([1, 2, 3], rd.PrimeFields(NARROW)).to_zarr("long.zarr")
    rd.from_ints([1, 2], rd.FermatField.named("F449")).to_zarr("fermat.zarr")
    rd.from_ints([1, 2]).to_zarr("integers.zarr")
    assert "different" in fail("compare", "wide.zarr", "other.zarr", status=2)
    assert "different" in fail("compare", "wide.zarr", "narrow.zarr", status=2)
    assert "they must be the same" in fail("compare", "narrow.zarr", "long.zarr", status=2)
    assert "which this does not take" in fail("compare", "wide.zarr", "5", status=2)
    assert "which this does not take" in fail("compare", "fermat.zarr", "fermat.zarr", status=2)
    assert "makes them of one kind" in fail("compare", "wide.zarr", "integers.zarr", status=2)
