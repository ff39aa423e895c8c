"""The pipelines against slow and obvious computations of the same."""

import itertools
import math
import runpy
import sys
from collections.abc import Iterator
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
import sympy
from distributed import Client, LocalCluster
from forking import forked_workers
from strategies import slow

import rnsdask as rd
from rnsdask.core.errors import NumberError

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"


def exact_determinant(matrix: list[list[int]]) -> int:
    """Bareiss' fraction-free elimination in Python integers."""
    rows = [row.copy() for row in matrix]
    sign, previous = 1, 1
    for k in range(len(rows) - 1):
        swap = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if swap is None:
            return 0
        if swap != k:
            rows[k], rows[swap] = rows[swap], rows[k]
            sign = -sign
        for i in range(k + 1, len(rows)):
            for j in range(k + 1, len(rows)):
                rows[i][j] = (rows[i][j] * rows[k][k] - rows[i][k] * rows[k][j]) // previous
        previous = rows[k][k]
    return sign * rows[-1][-1]


@pytest.fixture(scope="module")
def pipeline() -> dict[str, Any]:
    return runpy.run_path(str(PIPELINES / "determinants.py"))


@pytest.mark.parametrize(("size", "count"), [(1, 5), (2, 40), (5, 60), (16, 30)])
def test_determinants(pipeline: dict[str, Any], size: int, count: int, tmp_path: Path) -> None:
    expected = [exact_determinant(m.tolist()) for m in pipeline["sign_matrices"](size, count)]
    x = pipeline["determinants"](tmp_path, size, count)
    assert x.to_ints().tolist() == expected
    pipeline["check"](x, size)
    assert pipeline["summary"](x) == {
        "greatest": max(expected),
        "index": expected.index(max(expected)),
        "least": min(expected),
        "sum": sum(expected),
        "bound": math.isqrt(size**size),
    }
    with pytest.raises(SystemExit, match="python-flint has other determinants"):
        pipeline["check"](x + 2**size, size)
    if size > 1:
        with pytest.raises(SystemExit, match="is no multiple of 2"):
            pipeline["check"](x + 1, size)


def test_determinants_go_on(
    pipeline: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In several stores of several chunks; one that is lost is computed again, the same."""
    monkeypatch.setitem(pipeline["determinants"].__globals__, "OF_STORE", 2**14)
    first = pipeline["determinants"](tmp_path, 4, 20_000)
    values = first.to_ints().tolist()
    assert (max(values), min(values)) == (16, -16)  # Hadamard's maximum for 4 x 4, met by many
    (tmp_path / "4-0-16384.zarr").rename(tmp_path / "removed")
    capsys.readouterr()
    assert pipeline["determinants"](tmp_path, 4, 20_000).to_ints().tolist() == values
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("determinants")] == [
        "determinants 0 to 16383 of 20000"
    ]


@pytest.fixture(scope="module")
def tilings() -> dict[str, Any]:
    return runpy.run_path(str(PIPELINES / "domino_tilings.py"))


def test_tilings_of_square_boards(
    tilings: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tilings["domino_tilings"](tmp_path, 12)
    assert list(found.values()) == [2, 36, 6728, 12988816, 258584046368, 53060477521960000]  # A004003
    assert tilings["check"](found) == "the cosine formula gives the same for all 6 boards"
    (tmp_path / "6.txt").unlink()
    assert tilings["domino_tilings"](tmp_path, 14) == found | {14: tilings["cosine_formula"](14, 100)}
    assert "7 boards, of which 5 are there" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="another number for 4 x 4"):
        tilings["check"](found | {4: 37})


def test_signs_of_pairs(tilings: dict[str, Any]) -> None:
    """Each pair of neighbours once; around each four cells there is an odd number of minus signs."""
    for size in (2, 4, 10):
        matrix, pairs = tilings["kasteleyn_matrix"](size), tilings["edges"](size)
        assert abs(matrix).sum() == sum(black.size for black, _ in pairs) == 2 * size * (size - 1)
        across, down = (matrix[pair] for pair in pairs)
        assert (across[:-1] * across[1:] * down[:, :-1] * down[:, 1:] == -1).all()


# ---- counting ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counting() -> dict[str, Any]:
    return runpy.run_path(str(PIPELINES / "counting.py"))


@pytest.mark.parametrize("rows", [1, 2, 40])
def test_pascal(counting: dict[str, Any], rows: int) -> None:
    expected = [[math.comb(i + j, i) for j in range(rows)] for i in range(rows)]
    assert counting["pascal"](rows).to_ints().tolist() == expected


@pytest.mark.parametrize("coefficients", [[7], [0, 0, -1], [3**k * (-1) ** k for k in range(30)]])
def test_horner(counting: dict[str, Any], coefficients: list[int]) -> None:
    points = np.array([-1000, -1, 0, 1, 2, 999])
    expected = [sum(c * int(p) ** k for k, c in enumerate(coefficients)) for p in points]
    assert counting["horner"](coefficients, points).to_ints().tolist() == expected


def test_domino_tilings(counting: dict[str, Any]) -> None:
    fibonacci = [1, 1]
    for _ in range(99):
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    assert counting["domino_tilings"](2, 100) == fibonacci[100]
    assert counting["domino_tilings"](3, 3) == 0
    assert counting["domino_tilings"](8, 8) == 12_988_816  # Kasteleyn 1961


# ---- weak keys and encrypted sums --------------------------------------------------------------------------


def run(script: str, *arguments: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [script, *map(str, arguments)])
    runpy.run_path(str(PIPELINES / script), run_name="__main__")


def test_weak_rsa_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = tmp_path / "keys", "--size", 300, "--bits", 128, "--picture", tmp_path / "keys.svg"
    run("weak_rsa_keys.py", *arguments, monkeypatch=monkeypatch)
    assert "of 300 keys share a prime with another" in capsys.readouterr().out
    assert (tmp_path / "keys.svg").exists()
    for line in (tmp_path / "keys" / "report.txt").read_text().splitlines():
        index, p, q = line.split()
        keys = (tmp_path / "keys" / "300-128.txt").read_text().split()
        assert int(p, 16) * int(q, 16) == int(keys[int(index)], 16)
        assert 1 < int(p, 16) < int(keys[int(index)], 16)


def test_keys_of_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("weak_rsa_keys.py", tmp_path, "--size", 20, "--bits", 64, monkeypatch=monkeypatch)
    with pytest.raises(SystemExit, match="has the keys of another file"):
        run("weak_rsa_keys.py", tmp_path, "--size", 30, "--bits", 64, monkeypatch=monkeypatch)


@pytest.mark.parametrize(
    ("text", "message"), [("ff\nxyz\n", "'xyz'"), ("ff", "has 1 moduli"), (None, "No such file")]
)
def test_files_without_keys(
    text: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "moduli.txt"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SystemExit, match=f"^error: .*moduli.txt.*{message}"):
        run("weak_rsa_keys.py", tmp_path / "keys", "--file", file, monkeypatch=monkeypatch)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--size", 31), "must be from 1 to 30, got 31"),
        (("--size", 0), "must be from 1 to 30, got 0"),
        (("--size", "x"), "invalid integer value: 'x'"),
        (("--size", 2, "--gpus", 1), "this host has 0"),
        (("--size", 2, "--scheduler", "tcp://127.0.0.1:1"), "no Dask scheduler answers"),
    ],
)
def test_wrong_options(
    options: tuple[Any, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as error:
        run("self_avoiding_paths.py", tmp_path, *options, monkeypatch=monkeypatch)
    assert message in f"{error.value} {capsys.readouterr().err}"


def test_keys_of_which_others_have_both_primes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "moduli.txt"
    file.write_text("".join(f"{n:x}\n" for n in (101 * 103, 103 * 107, 107 * 101, 109 * 113)))
    run("weak_rsa_keys.py", tmp_path / "keys", "--file", file, monkeypatch=monkeypatch)
    assert "3 of 4 keys" in capsys.readouterr().out
    found = [line.split()[1:] for line in (tmp_path / "keys" / "report.txt").read_text().splitlines()]
    assert [sorted(int(p, 16) for p in pair) for pair in found] == [[101, 103], [103, 107], [101, 107]]


def test_paillier_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("phe")
    for size in (20, 20, 2100):  # the second time what is there; then two stores
        run("paillier_sums.py", tmp_path, "--size", size, "--bits", 256, monkeypatch=monkeypatch)
        assert f"phe decrypts the sum of {size} numbers" in capsys.readouterr().out
    names = "256-0-20.zarr", "256-0-2000.zarr", "256-2000-2100.zarr", "key-256.json"
    assert {file.name for file in tmp_path.iterdir()} == {*names}


# ---- series ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 6, 257, 5000])
def test_partition_numbers(size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = runpy.run_path(str(PIPELINES / "partition_numbers.py"))
    numbers = pipeline["partition_numbers"](tmp_path, size)
    expected = [int(flint.fmpz(n).partitions_p()) for n in range(size)]
    assert numbers.to_ints().tolist() == expected
    assert pipeline["check"](numbers)[0].endswith(f"ends in {str(expected[-1])[-10:]}")
    capsys.readouterr()
    stores = sorted(tmp_path.iterdir())
    written = [store.stat().st_mtime_ns for store in stores]
    removed = stores[0].rename(tmp_path / "removed")
    again = pipeline["partition_numbers"](tmp_path, size)
    assert f"in {len(stores)} stores, of which {len(stores) - 1} are there" in capsys.readouterr().out
    assert again.to_ints().tolist() == expected
    assert [store.stat().st_mtime_ns for store in stores[1:]] == written[1:]
    assert removed.exists()


def test_wrong_partition_numbers(tmp_path: Path) -> None:
    pipeline = runpy.run_path(str(PIPELINES / "partition_numbers.py"))
    numbers = pipeline["partition_numbers"](tmp_path, 1000)
    wrong = rd.where(np.arange(1000) == 999, numbers + 385, numbers)  # a multiple of 5, 7 and 11
    for x, message in ((numbers + 1, "no multiple of 5, 7 or 11"), (wrong, "FLINT has another")):
        with pytest.raises(SystemExit, match=message):
            pipeline["check"](x)


@pytest.mark.parametrize("size", [1, 2, 6, 257, 5000])
def test_ramanujan_tau(size: int, tmp_path: Path) -> None:
    pipeline = runpy.run_path(str(PIPELINES / "ramanujan_tau.py"))
    numbers = pipeline["tau"](tmp_path, size)
    found = numbers.to_ints().tolist()
    euler = flint.fmpz_poly(pipeline["jacobi_series"](size).tolist())
    power = flint.fmpz_poly([1])
    for _ in range(8):
        power = flint.fmpz_poly((power * euler).coeffs()[:size])
    assert found == [int(c) for c in power.coeffs()]
    assert found[:8] == [1, -24, 252, -1472, 4830, -6048, -16744, 84480][:size]  # OEIS A000594
    # tau is multiplicative, and tau(p^2) is tau(p)^2 - p^11.
    tau = dict(enumerate(found, 1))
    for m, n in ((2, 3), (4, 7), (9, 25), (32, 49), (63, 64)):
        if m * n <= size:
            assert tau[m * n] == tau[m] * tau[n]
    for p in (2, 3, 5, 67):
        if p * p <= size:
            assert tau[p * p] == tau[p] ** 2 - p**11
    assert pipeline["check"](numbers).endswith(f"n = 1 to {size}; 0 are 0")
    with pytest.raises(SystemExit, match="is not the sum of the 11th powers"):
        pipeline["check"](numbers + 1)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("partition_numbers", 1000),
        ("ramanujan_tau", 1000),
        ("determinants", 5),
        ("domino_tilings", 8),
        ("self_avoiding_paths", 3),
        ("curve_intersections", 3),
        ("feynman_integrals", 3),
        ("amplitude_ansatz", 2),
    ],
)
def test_pictures(name: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.svg"
    arguments = [f"{name}.py", str(tmp_path / "x.zarr"), "--size", str(size), "--picture", str(picture)]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(PIPELINES / f"{name}.py"), run_name="__main__")
    assert picture.stat().st_size > 10_000


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["partition_numbers", "tau"])
def test_series_on_a_gpu(name: str, tmp_path: Path) -> None:
    """The GPU's results are the CPU's."""
    script = {"tau": "ramanujan_tau"}.get(name, name)
    function = runpy.run_path(str(PIPELINES / f"{script}.py"))[name]
    found, expected = (function(tmp_path / f"{on_gpu}.zarr", 3000, None, on_gpu) for on_gpu in (True, False))
    assert found.to_ints().tolist() == expected.to_ints().tolist()


@pytest.mark.gpu
def test_determinants_on_a_gpu(pipeline: dict[str, Any], tilings: dict[str, Any], tmp_path: Path) -> None:
    """The GPU's results are the CPU's."""
    for function, sizes in ((pipeline["determinants"], (20, 100)), (tilings["domino_tilings"], (20,))):
        folders = (tmp_path / f"{len(sizes)}-{on_gpu}" for on_gpu in (True, False))
        found = [function(folder, *sizes, None, k == 0) for k, folder in enumerate(folders)]
        values = [x.to_ints().tolist() if isinstance(x, rd.RNSArray) else x for x in found]
        assert values[0] == values[1]


# ---- self-avoiding paths -----------------------------------------------------------------------------------


def paths_by_search(size: int) -> int:
    """Follow all paths from a corner to the opposite one."""

    def follow(x: int, y: int, seen: frozenset[tuple[int, int]]) -> int:
        if (x, y) == (size, size):
            return 1
        near = {(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)} - seen
        inside = [(a, b) for a, b in near if 0 <= a <= size and 0 <= b <= size]
        return sum(follow(*vertex, seen | {vertex}) for vertex in inside)

    return follow(0, 0, frozenset({(0, 0)}))


@pytest.fixture(scope="module")
def paths() -> dict[str, Any]:
    return runpy.run_path(str(PIPELINES / "self_avoiding_paths.py"))


def test_self_avoiding_paths(paths: dict[str, Any], tmp_path: Path) -> None:
    sizes = range(1, 5)
    assert [paths["count_paths"](tmp_path, n) for n in sizes] == [paths_by_search(n) for n in sizes]
    # OEIS A007764; from 9 on states are in parts
    assert paths["count_paths"](tmp_path, 7) == 789_360_053_252
    assert paths["count_paths"](tmp_path, 10) == 1_568_758_030_464_750_013_214_100


def test_paths_go_on(paths: dict[str, Any], tmp_path: Path) -> None:
    expected = paths["count_paths"](tmp_path, 9)
    last, before = (paths["files_of"](tmp_path, 9, step) for step in (19, 18))
    last[1].unlink()
    kept = last[0].stat().st_mtime_ns
    assert paths["count_paths"](tmp_path, 9) == expected
    assert last[0].stat().st_mtime_ns == kept
    for file in before:
        file.unlink()
    assert paths["count_paths"](tmp_path, 9) == expected


def test_wrong_residues_of_paths(paths: dict[str, Any], tmp_path: Path) -> None:
    paths["count_paths"](tmp_path, 5)
    (file,) = paths["files_of"](tmp_path, 5, 11)
    arrays = dict(np.load(file))
    arrays["counts0"][0, 0] ^= 1
    np.savez(file, **arrays)
    with pytest.raises(SystemExit, match="there are not"):
        paths["count_paths"](tmp_path, 5)


# ---- curves ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 5, 12])
def test_curve_intersections(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):  # the second time what is there
        run("curve_intersections.py", tmp_path, "--size", size, monkeypatch=monkeypatch)
    curves = [rd.open_zarr(tmp_path / f"{name}.zarr").to_ints().tolist() for name in ("first", "second")]
    context = flint.fmpz_mpoly_ctx.get(("x", "y"), "lex")
    f, g = (
        context.from_dict({(j, i): c for i, row in enumerate(curve) for j, c in enumerate(row)})
        for curve in curves
    )
    expected = f.resultant(g, "y")
    coefficients = rd.open_zarr(tmp_path / "resultant.zarr").to_ints().tolist()
    assert context.from_dict({(k, 0): c for k, c in enumerate(coefficients)}) == expected
    points = [line.split() for line in (tmp_path / "points.txt").read_text().splitlines()]
    roots = [x.real for x, _ in flint.fmpz_poly(coefficients).complex_roots() if x.imag == 0]
    assert len(points) == len(roots)
    for (x, y), root in zip(points, sorted(roots), strict=True):
        assert float(x) == pytest.approx(float(root), rel=1e-12)
        for curve in curves:
            terms = [c * float(x) ** j * float(y) ** i for i, r in enumerate(curve) for j, c in enumerate(r)]
            assert abs(sum(terms)) < 1e-9 * max(map(abs, terms))


def test_wrong_resultants(tmp_path: Path) -> None:
    pipeline = runpy.run_path(str(PIPELINES / "curve_intersections.py"))
    *curves, found = pipeline["resultant"](tmp_path, 4)
    with pytest.raises(SystemExit, match="FLINT has another resultant"):
        pipeline["check"](curves, [found[0] + 1, *found[1:].tolist()])


@pytest.mark.parametrize(
    ("roots", "complex_pairs"), [((0,), 0), ((-1000, -1, 0, 1, 7, 8), 2), (tuple(range(-9, 10)), 5)]
)
def test_real_roots(roots: tuple[int, ...], complex_pairs: int) -> None:
    f = math.prod((flint.fmpz_poly([-root, 1]) for root in roots), start=flint.fmpz_poly([1]))
    for k in range(complex_pairs):
        f *= flint.fmpz_poly([5 + k, k, 1])
    real_roots = runpy.run_path(str(PIPELINES / "curve_intersections.py"))["real_roots"]
    found = sorted(real_roots([int(c) for c in f.coeffs()]))
    assert len(found) == len(roots)
    assert all(abs(x - root) < 1e-60 and x.contains(root) for x, root in zip(found, roots, strict=True))


def test_real_roots_that_are_double() -> None:
    with pytest.raises(SystemExit, match="too near"):
        runpy.run_path(str(PIPELINES / "curve_intersections.py"))["real_roots"]([1, -2, 1])


# ---- Feynman integrals -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def integrals() -> dict[str, Any]:
    return runpy.run_path(str(PIPELINES / "feynman_integrals.py"))


def test_feynman_integrals(
    integrals: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SymPy solves the equations for the same functions."""
    found = integrals["reduce_integrals"](tmp_path, 4)
    assert (
        capsys.readouterr().out == "11 integrals, coefficients of up to 16 bits, confirmed by 1 more prime\n"
    )
    integrals["check"](4, found, tmp_path / "text")
    s, masters = sympy.Symbol("s"), sympy.symbols("m:3")
    names = {pair: sympy.Symbol(f"I{pair}") for pair in found}
    names |= dict(zip(integrals["MASTERS"], masters, strict=True))
    rows = [
        sum((u + v * s) * names[pair] for pair, (u, v) in row.items()) for row in integrals["equations"](4)[1]
    ]
    (expected,) = sympy.linsolve(rows, [names[pair] for pair in found])
    for (pair, row), value in zip(found.items(), expected, strict=True):
        ours = sum(
            sympy.sympify(str(p).replace("^", "**"), {"x": s})
            / sympy.sympify(str(q).replace("^", "**"), {"x": s})
            * m
            for (p, q), m in zip(row, masters, strict=True)
        )
        assert sympy.simplify(ours - value) == 0, pair
    lines = (tmp_path / "text").read_text().splitlines()
    assert lines[0] == "I(0, 2) = (5)/(18)*I(0, 1)"
    assert len(lines) == 11


def test_feynman_integrals_at_a_point(integrals: dict[str, Any], tmp_path: Path) -> None:
    """All equations with fractions at a point, without a polynomial of python-flint's."""
    found, s = integrals["reduce_integrals"](tmp_path, 9), Fraction(-7, 3)
    values = {
        pair: [
            Fraction(sum(int(c) * s**k for k, c in enumerate(p.coeffs())))
            / sum(int(c) * s**k for k, c in enumerate(q.coeffs()))
            for p, q in row
        ]
        for pair, row in found.items()
    }
    values |= {master: [Fraction(k == j) for j in range(3)] for k, master in enumerate(integrals["MASTERS"])}
    unknown, rows = integrals["equations"](9)
    assert set(unknown) == set(found)
    for row in rows:
        for k in range(3):
            assert sum((u + v * s) * values[pair][k] for pair, (u, v) in row.items()) == 0


@pytest.mark.slow
def test_feynman_integrals_go_on(integrals: dict[str, Any], tmp_path: Path) -> None:
    expected = integrals["reduce_integrals"](tmp_path, 12)
    first, last = sorted(tmp_path.iterdir())
    kept = first.stat().st_mtime_ns
    last.unlink()
    assert integrals["reduce_integrals"](tmp_path, 12) == expected
    assert first.stat().st_mtime_ns == kept


def test_wrong_feynman_integrals(integrals: dict[str, Any], tmp_path: Path) -> None:
    found = integrals["reduce_integrals"](tmp_path, 4)
    for pair, message in (((3, 1), "do not solve"), ((0, 2), "do not solve"), ((2, 2), "poles beside")):
        wrong = {key: list(row) for key, row in found.items()}
        p, q = wrong[pair][2]
        wrong[pair][2] = (p, q + 1) if pair == (2, 2) else (p + 1, q)
        with pytest.raises(SystemExit, match=message):
            integrals["check"](4, wrong, tmp_path / "text")
    for file in tmp_path.glob("4-8-*.npz"):
        coefficients = np.load(file)["coefficients"]
        coefficients[:, 3, 1, 0] ^= 1
        np.savez(file, coefficients=coefficients)
    with pytest.raises(NumberError, match="index"):
        integrals["reduce_integrals"](tmp_path, 4)


# ---- homomorphic encryption --------------------------------------------------------------------------------


def test_homomorphic_encryption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """TenSEAL decrypts all, SEAL's evaluator has the same bits, and a changed file or bit is found."""
    pytest.importorskip("tenseal")
    arguments = tmp_path, "--size", 7, "--picture", tmp_path / "errors.svg"
    run("homomorphic.py", *arguments, monkeypatch=monkeypatch)
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in printed[:3]] == ["3 sums", "7 scaled", "3 products"]
    assert printed[3] == "SEAL computes the same bits, 3 of each"
    assert (tmp_path / "errors.svg").exists()
    pipeline = runpy.run_path(str(PIPELINES / "homomorphic.py"))
    context, values = pipeline["context_of"](tmp_path / "context"), pipeline["values_of"](7)
    files = [tmp_path / "fresh" / f"{i}.seal" for i in range(7)]
    primes = pipeline["primes_of"](context)
    written = pipeline["evaluate"](tmp_path, files, primes)
    x, form = rd.read_seal(written["products"], primes[:-1])
    changed = np.array(x.words)
    changed[0, 2, 0, 17] ^= 1  # the transform at a point, which changes all coefficients
    rd.write_seal(written["products"], rd.FieldArray(changed, x.system), form, overwrite=True)
    with pytest.raises(SystemExit, match="TenSEAL decrypts other products"):
        pipeline["check_numbers"](context, values, written)
    with pytest.raises(SystemExit, match="SEAL computes other products"):
        pipeline["check_bits"](context, tmp_path, files, written)


@pytest.mark.parametrize("scheme", ["BGV", "CKKS"])
def test_noise_of_ciphertexts(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Phases of short ciphertexts by Python's integers, modulo q and modulo x**8 + 1."""
    pipeline = runpy.run_path(str(PIPELINES / "ciphertext_noise.py"))
    monkeypatch.setitem(pipeline["encrypt"].__globals__, "DEGREE", n := 8)
    primes, (t, _) = pipeline["FIELDS"].primes, pipeline["SCHEMES"][scheme]
    pipeline["_measure"](scheme, 3, 10, tmp_path / "bits.npz", False)
    found = np.load(tmp_path / "bits.npz")
    encrypted = pipeline["encrypt"](scheme, 3, 10)

    def integers(x: Any) -> list[list[int]]:
        return [list(map(int, row)) for row in rd.intt(x, negacyclic=True).to_ints().reshape(-1, n)]

    def times(x: list[int], y: list[int]) -> list[int]:
        made = [0] * n
        for i, j in itertools.product(range(n), range(n)):
            made[(i + j) % n] += (-1) ** ((i + j) // n) * x[i] * y[j]
        return made

    def phase(polynomials: list[list[int]], q: int) -> list[int]:
        made = [0] * n
        for polynomial in reversed(polynomials):
            made = [(a + b) % q for a, b in zip(times(made, secret), polynomial, strict=True)]
        return made

    def bits(noise: list[int], q: int) -> float:
        centred = [(v + q // 2) % q - q // 2 for v in noise]
        assert all(v % t == 0 for v in centred)
        return math.log2(max(map(abs, centred)))

    ((secret,), q) = integers(encrypted.secret), math.prod(primes)
    c0, c1 = map(integers, encrypted.polynomials)
    m = encrypted.integers.tolist()
    last = primes[-1]
    for i in range(10):
        noise = [a - b for a, b in zip(phase([c0[i], c1[i]], q), m[i], strict=True)]
        assert found["fresh"][i] == pytest.approx(bits(noise, q), abs=1e-9)
    for i in range(5):
        product = [times(c0[i], c0[i + 5]), times(c0[i], c1[i + 5]), times(c1[i], c1[i + 5])]
        product[1] = [a + b for a, b in zip(product[1], times(c1[i], c0[i + 5]), strict=True)]
        exact = times(m[i], m[i + 5])
        noise = [a - b for a, b in zip(phase(product, q), exact, strict=True)]
        assert found["products"][i] == pytest.approx(bits(noise, q), abs=1e-9)
        less = []  # each coefficient minus the multiple of t near 0 with its remainder
        for polynomial in product:
            remainders = [(v * pow(t, -1, last) + last // 2) % last - last // 2 for v in polynomial]
            less.append([(v % q - t * r) // last for v, r in zip(polynomial, remainders, strict=True)])
        noise = [last * a - b for a, b in zip(phase(less, q // last), exact, strict=True)]
        assert found["rescaled"][i] == pytest.approx(bits(noise, q // last) - math.log2(last), abs=1e-9)


def test_noise_of_wrong_ciphertexts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        "ciphertext_noise.py", tmp_path, "--size", 9, "--picture", tmp_path / "x.svg", monkeypatch=monkeypatch
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9
    assert lines[0].startswith("BGV, 9 fresh: 19.")
    assert (tmp_path / "x.svg").exists()
    pipeline = runpy.run_path(str(PIPELINES / "ciphertext_noise.py"))
    noise = pipeline["measure"](tmp_path, 9)
    noise["CKKS"]["products"][2] = 107.5
    with pytest.raises(SystemExit, match="the noise of CKKS's products is beyond q/2"):
        pipeline["check"](noise)
    noise["CKKS"]["products"][2] = 1
    monkeypatch.setitem(pipeline["check"].__globals__, "multiply", lambda a, b: [a[0] * b[0], a[0] * b[1]])
    with pytest.raises(SystemExit, match="NumPy has another product"):
        pipeline["check"](noise)


# ---- clusters ----------------------------------------------------------------------------------------------

TINY = {
    "amplitude_ansatz": ("--size", 2),
    "ciphertext_noise": ("--size", 6),
    "curve_intersections": ("--size", 4),
    "determinants": ("--size", 5, "--count", 100),
    "domino_tilings": ("--size", 6),
    "feynman_integrals": ("--size", 4),
    "homomorphic": ("--size", 6),
    "paillier_sums": ("--size", 20, "--bits", 256),
    "partition_numbers": ("--size", 500),
    "ramanujan_tau": ("--size", 500),
    "self_avoiding_paths": ("--size", 9),
    "weak_rsa_keys": ("--size", 200, "--bits", 64),
}


PACKAGES = {"paillier_sums": "phe", "homomorphic": "tenseal"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster whose workers cannot import what pipelines share."""
    before = sys.path.copy()
    sys.path[:] = [folder for folder in before if Path(folder).resolve() != PIPELINES]
    try:
        with (
            forked_workers(),
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as running,
        ):
            sys.path[:] = before
            with Client(running, set_as_default=False) as client:
                client.wait_for_workers(2)
                assert not any(client.run(find_spec, "running").values())
            yield running.scheduler_address
    finally:
        sys.path[:] = before


def test_every_pipeline_has_a_run_on_a_cluster() -> None:
    others = {"counting", "running"}
    assert {file.stem for file in PIPELINES.glob("*.py")} == {*TINY, *others}


@pytest.mark.parametrize(
    "name", ["weak_rsa_keys", *slow(*(name for name in TINY if name != "weak_rsa_keys"))]
)
def test_on_a_cluster(
    name: str,
    cluster: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each pipeline prints the same with --scheduler as without, and as when it finds all in the folder."""
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    printed = []
    for folder, more in (
        ("alone", ()),
        ("many", ("--scheduler", cluster)),
        ("many", ("--scheduler", cluster)),
    ):
        run(f"{name}.py", tmp_path / folder, *TINY[name], *more, monkeypatch=monkeypatch)
        lines = capsys.readouterr().out.replace(str(tmp_path / folder), "folder").splitlines()
        printed.append([line for line in lines if " are there" not in line and "determinants 0" not in line])
    assert printed[0] == printed[1] == printed[2]


@pytest.mark.gpu
@pytest.mark.parametrize("name", TINY)
def test_on_a_gpu(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each pipeline prints the same with --gpus 1 as without."""
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    printed = []
    for folder, more in (("cpu", ()), ("gpu", ("--gpus", 1))):
        run(f"{name}.py", tmp_path / folder, *TINY[name], *more, monkeypatch=monkeypatch)
        printed.append(capsys.readouterr().out.replace(str(tmp_path / folder), "folder"))
    assert printed[0] == printed[1]


# ---- an amplitude ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ansatz() -> dict[str, Any]:
    return runpy.run_path(str(PIPELINES / "amplitude_ansatz.py"))


def test_tableaux_are_counted_by_kostka(ansatz: dict[str, Any]) -> None:
    """Kostka numbers of small shapes (Macdonald, "Symmetric Functions and Hall Polynomials", I.6)."""
    for shape, content, count in (
        ((2, 1), (1, 1, 1), 2),
        ((2, 2), (1, 1, 1, 1), 2),
        ((3, 2), (1, 1, 1, 1, 1), 5),
        ((3, 1), (2, 1, 1), 2),
        ((2, 2), (3, 1), 0),
        ((4, 2), (2, 2, 2), 3),
    ):
        assert len(list(ansatz["tableaux"](shape, content))) == count


def test_spinors_of_momenta_whose_sum_is_0(ansatz: dict[str, Any]) -> None:
    point = ansatz["Point"](rd.PrimeFields([2**31 - 1, 65521]), 5, [1], False)
    for i in (1, 4, 6):
        for j in (2, 5):
            assert (point.between(i, tuple(range(1, 7)), j) == 0).all()
    assert (point.invariant(1, 2, 3) == point.invariant(4, 5, 6)).all()
    assert (ansatz["amplitude"](point) == ansatz["other_amplitude"](point)).all()


def test_amplitude_ansatz(ansatz: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each gluon has its weight in each monomial, and a changed coefficient is found."""
    terms = ansatz["monomials"]()
    assert len({tuple(term) for term in terms}) == 1326  # as linac's tests have
    for term in terms:
        names = [ansatz["BRACKETS"][k] for k in term]
        for gluon, weight in zip("123456", ansatz["WEIGHTS"], strict=True):
            signs = [1 if name[0] == "<" else -1 for name in names if gluon in name]
            assert sum(signs) == weight
    found = ansatz["find_coefficients"](tmp_path, 2)
    assert "1326 coefficients, 327 not 0, confirmed by 1 more prime" in capsys.readouterr().out
    assert "Feynman diagrams at 100 points" in ansatz["check"](found, tmp_path / "numerator.txt")
    assert len((tmp_path / "numerator.txt").read_text().splitlines()) == 327
    with pytest.raises(SystemExit, match="not that of Feynman diagrams"):
        ansatz["check"]([(found[0][0] + 1, 1), *found[1:]], tmp_path / "wrong.txt")
    assert not (tmp_path / "wrong.txt").exists()
