"""The commands det, rank, charpoly, solve and resultant, against FLINT."""

import errno
import json
import math
import os
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
from commands import as_json, call, fail, succeed

import rnsdask as rd
from rnsdask import store
from rnsdask.core import layout
from rnsdask.jobs import exact_results, memory_plan
from rnsdask.jobs.checkpoint import Checkpoint
from rnsdask.jobs.sources import OF_NUMBERS, Source
from rnsdask.lazy import block_elimination, exact_elimination

MODULI = rd.ModuliSet.for_bits(200)
PRIMES = [4294967291, 2147483647, 65537]


pytestmark = pytest.mark.usefixtures("in_empty_folder")


def drawn(rng: np.random.Generator, *shape: int, bits: int = 100) -> Any:
    values = np.array([int.from_bytes(rng.bytes(bits // 8)) for _ in range(int(np.prod(shape)))], object)
    return (values - (1 << bits - 1)).reshape(shape)


def stored(path: str, values: Any, chunks: Any = "auto") -> None:
    rd.from_ints(values, MODULI, signed=True).rechunk(chunks).to_zarr(path, overwrite=True)


def flint_of(matrix: Any) -> flint.fmpz_mat:
    return flint.fmpz_mat([[int(value) for value in row] for row in matrix])


def lines(text: str) -> dict[tuple[int, ...], str]:
    pairs = (line.split("\t") for line in text.splitlines())
    return {tuple(map(int, index.split(","))): value for index, value in pairs}


def interrupted(*_args: object) -> None:
    raise RuntimeError("the end")


@pytest.mark.parametrize("primes", [[97], PRIMES])
def test_results_of_one_matrix_and_of_one_pair_are_stores_of_one_number(primes: list[int]) -> None:
    fields = rd.PrimeFields(primes)
    values, f, g = np.array([[2, 1, 5], [7, 3, 0], [1, 1, 4]]), [1, 2, 3], [1, 5]
    rd.from_ints(values, fields).to_zarr("m")
    rd.from_ints(values, MODULI).to_zarr("integers")
    rd.from_ints(f, fields).to_zarr("f")
    rd.from_ints(g, fields).to_zarr("g")
    succeed("det", "m", "-o", "d")
    succeed("det", "integers", "-o", "e")
    succeed("resultant", "f", "g", "-o", "r")
    det, product = flint_of(values).det(), math.prod(primes)
    assert rd.open_zarr("e").to_ints().tolist() == [det]
    assert rd.open_zarr("d").to_ints().tolist() == [int(det) % product]
    assert rd.open_zarr("r").to_ints().tolist() == [
        int(flint.fmpz_poly(f).resultant(flint.fmpz_poly(g))) % product
    ]
    assert "by this very job" in succeed("det", "m", "-o", "d", "--resume")


def test_one_matrix_in_several_chunks(rng: np.random.Generator) -> None:
    x = drawn(rng, 9, 9)
    stored("x", x, (4, 5))
    expected = flint_of(x)
    assert succeed("det", "x").splitlines() == ["det of x:", str(expected.det())]
    assert as_json("det", "x")["value"] == str(expected.det())
    assert succeed("rank", "x").splitlines() == ["rank of x:", "9"]
    coefficients = [str(c) for c in expected.charpoly().coeffs()]
    assert lines(succeed("charpoly", "x")) == {(k,): c for k, c in enumerate(coefficients)}
    assert as_json("charpoly", "x")["values"] == coefficients


def test_stacks(rng: np.random.Generator) -> None:
    x = drawn(rng, 2, 3, 4, 4)
    x[1, 2, 3] = x[1, 2, 0] * 5
    stored("x", x, (1, 2, 3, 4))
    found = lines(succeed("det", "x"))
    assert found == {index: str(flint_of(x[index]).det()) for index in np.ndindex(2, 3)}
    assert found[1, 2] == "0"
    ranks = as_json("rank", "x")
    assert ranks["values"] == [["4", "4", "4"], ["4", "4", "3"]]
    assert ranks["shape"] == [2, 3]


def test_results_in_stores(rng: np.random.Generator) -> None:
    x = drawn(rng, 3, 4, 4)
    stored("x", x)
    told = succeed("det", "x", "-o", "d")
    assert told.startswith("d: 3 integers, ")
    expected = [int(flint_of(m).det()) for m in x]
    assert rd.open_zarr("d").to_ints().tolist() == expected
    assert as_json("det", "x", "-o", "d", "--overwrite", "--bits", 500)["output"] == "d"
    assert rd.open_zarr("d").moduli == rd.ModuliSet.for_bits(500)
    assert rd.open_zarr("d").to_ints().tolist() == expected
    assert "range" in fail("det", "x", "-o", "d", "--overwrite", "--bits", 100)
    assert "d: " in fail("det", "x", "-o", "d")  # it is there
    succeed("rank", "x", "-o", "r")
    assert rd.open_zarr("r").to_ints().tolist() == [4, 4, 4]


def test_results_of_intervals_are_in_the_plan_of_memory(rng: np.random.Generator) -> None:
    values, moduli = drawn(rng, 2, 4, 4, bits=40), rd.ModuliSet.for_bits(64)
    rd.from_ints(values, moduli, signed=True).to_zarr("x")
    rd.from_ints(values, rd.IntervalRNS(moduli)).to_zarr("i")
    x, i = (
        exact_results.prepare("det", [Source.at(path, OF_NUMBERS)], rd.linalg.det).work for path in ("x", "i")
    )
    assert i.held >= x.held > 0  # Python ints of some size
    assert i.passes == x.passes


def test_solutions(rng: np.random.Generator) -> None:
    a, b = drawn(rng, 5, 5, bits=40), drawn(rng, 5, bits=40)
    stored("a", a, (2, 3))
    stored("b", b, 2)
    x = [Fraction(lines(succeed("solve", "a", "b"))[k,]) for k in range(5)]
    assert [sum(c * v for c, v in zip(row, x, strict=True)) for row in a.tolist()] == b.tolist()
    found = as_json("solve", "a", "b")
    assert [Fraction(int(n), int(found["denominators"])) for n in found["numerators"]] == x
    told = succeed("solve", "a", "b", "-o", "n", "--denominators", "d").splitlines()
    assert [line.split(":")[0] for line in told] == ["n", "d"]
    (denominator,) = rd.open_zarr("d").to_ints()
    assert [Fraction(n, denominator) for n in rd.open_zarr("n").to_ints()] == x
    # Matrices, and a batch of them.
    several = drawn(rng, 2, 5, 3, bits=40)
    stored("s", several)
    texts = lines(succeed("solve", "a", "s"))
    for k, row, column in np.ndindex(2, 5, 3):
        total = sum(int(a[row, j]) * Fraction(texts[k, j, column]) for j in range(5))
        assert total == several[k, row, column]


def test_solutions_of_any_equations(rng: np.random.Generator) -> None:
    a = drawn(rng, 3, 5, bits=40)
    a[2] = a[0] + a[1]
    stored("a", a, (2, 3))
    stored("b", a @ np.arange(5))
    assert "takes square matrices" in fail("solve", "a", "b", status=2)
    x = [Fraction(lines(succeed("solve", "a", "b", "--any"))[k,]) for k in range(5)]
    assert [sum(c * v for c, v in zip(row, x, strict=True)) for row in a.tolist()] == (
        a @ np.arange(5)
    ).tolist()
    assert x[2:] == [0] * 3
    succeed("solve", "a", "b", "--any", "-o", "n", "--denominators", "d")
    (denominator,) = rd.open_zarr("d").to_ints()
    assert [Fraction(n, denominator) for n in rd.open_zarr("n").to_ints()] == x
    stored("c", np.array([0, 0, 1], dtype=object))
    assert "the matrix makes equations without a solution" in fail("solve", "a", "c", "--any")


def test_solutions_modulo_integers() -> None:
    a, b = np.array([[2, 1], [7, 3]], dtype=object), np.array([5, 6], dtype=object)
    stored("a", a)
    stored("b", b)
    for factors in ((10**60,), (7, 2**61 - 1, 9)):
        modulo = [text for factor in factors for text in ("--modulo", str(factor))]
        x = [int(lines(succeed("solve", "a", "b", *modulo))[k,]) for k in range(2)]
        assert not ((a @ x - b) % math.prod(factors)).any()
        succeed("solve", "a", "b", *modulo, "-o", "x", "--overwrite")
        assert rd.open_zarr("x").to_ints().tolist() == x
    # The job is known by its modulus.
    assert "it exists" in fail("solve", "a", "b", "--modulo", "11", "-o", "x")
    succeed("solve", "a", "b", *modulo, "-o", "x", "--resume")
    assert "coprime" in fail("solve", "a", "b", "--modulo", "6", "--modulo", "4", status=2)
    assert "not for --modulo" in fail("solve", "a", "b", "--modulo", "6", "--any", status=2)
    stored("s", np.array([[2, 0], [0, 3]], dtype=object))
    assert "is 6" in fail("solve", "s", "b", "--modulo", "12")


def test_matrices_of_polynomials() -> None:
    stored("x", np.array([[[1, 1], [2, 0]], [[0, -3], [1, 1]]], dtype=object), (1, 2, 1))
    assert lines(succeed("det", "x", "--variables", "1")) == {(0,): "1", (1,): "8", (2,): "1"}
    assert lines(succeed("det", "x")) == {(0,): "-2", (1,): "3"}
    succeed("det", "x", "--variables", "1", "-o", "d")
    assert rd.open_zarr("d").to_ints().tolist() == [1, 8, 1]
    rd.from_ints([[[1, 1]]], rd.PrimeFields(PRIMES)).to_zarr("f")
    succeed("det", "f", "--variables", "1", "-o", "g")
    assert rd.open_zarr("g").to_ints().tolist() == [1, 1]


def test_elements_of_fields(rng: np.random.Generator) -> None:
    fields = rd.PrimeFields(PRIMES)
    x = drawn(rng, 3, 4, 4)
    elements = rd.from_ints(x, fields)
    elements.rechunk((2, 3, 4)).to_zarr("x")
    expected = [[int(flint.nmod_mat(flint_of(m), p).det()) for p in PRIMES] for m in x]
    found = lines(succeed("det", "x"))
    assert [[int(found[k,]) % p for p in PRIMES] for k in range(3)] == expected
    assert "d: 3 " in succeed("det", "x", "-o", "d")
    assert np.asarray(rd.open_zarr("d").words).T.tolist() == expected
    ranks = as_json("rank", "x")["values"]
    assert ranks == [["4"] * 3] * 3
    succeed("solve", "x", "x", "-o", "y")
    assert (rd.open_zarr("y").to_ints() == np.eye(4, dtype=object)).all()
    rd.from_ints(x[0], fields).rechunk(-1).to_zarr("one")
    assert succeed("det", "one").splitlines()[0] == "det of one:"
    succeed("det", "one", "-o", "z")
    assert np.asarray(rd.open_zarr("z").words).T.tolist() == expected[:1]


@pytest.mark.parametrize(
    ("command", "shape", "chunks"),
    [
        (["det", "x"], (30, 30), -1),  # groups of primes
        (["det", "x"], (2, 20, 20), (1, -1, -1)),
        (["charpoly", "x"], (12, 12), -1),
        (["rank", "x"], (3, 4, 5), (1, 2, 3)),
        (["solve", "x", "x"], (3, 4, 4), (2, 3, 3)),
        (["solve", "x", "x"], (9, 9), -1),  # groups of primes
        (["resultant", "x", "x"], (3, 5), (1, 5)),
        (["resultant", "x", "y", "--variables", "2"], (9, 9), -1),  # groups of primes
        (["resultant", "x", "y", "--variables", "2"], (2, 3, 3), (1, 3, 3)),
    ],
)
def test_checkpoints(
    command: list[str],
    shape: tuple[int, ...],
    chunks: Any,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kept pieces are not computed again; missing and damaged ones are."""
    monkeypatch.setattr(exact_elimination, "STEPS", {"cpu": 1})
    stored("x", drawn(rng, *shape), chunks)
    stored("y", drawn(rng, *shape), chunks)
    expected = succeed(*command)
    assert succeed(*command, "--checkpoint", "kept") == expected
    pieces = sorted(Path("kept").glob("piece-*.json"))
    assert len(pieces) > 1
    pieces[0].unlink()
    pieces[-1].write_text(pieces[-1].read_text().replace("0x", "0x1", 1))
    kept = [path.stat().st_mtime_ns for path in pieces[1:-1]]
    assert succeed(*command, "--checkpoint", "kept") == expected
    assert [path.stat().st_mtime_ns for path in pieces[1:-1]] == kept
    computed: list[object] = []
    monkeypatch.setattr(Checkpoint, "save", lambda *args: computed.append(args))
    assert succeed(*command, "--checkpoint", "kept") == expected
    assert not computed
    stored("x", drawn(rng, *shape), chunks)
    assert "the checkpoint cannot be continued" in fail(*command, "--checkpoint", "kept")


def test_checkpoints_of_other_pieces(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of other primes are not mixed, which would leave primes out."""
    stored("x", drawn(rng, 1, 6, 6, bits=200), -1)
    monkeypatch.setattr(exact_elimination, "STEPS", {"cpu": 25 * 6**3})
    expected = succeed("charpoly", "x", "--checkpoint", "kept")
    count = len(list(Path("kept").glob("piece-*.json")))
    Path("kept/piece-00001.json").unlink()
    monkeypatch.setattr(exact_elimination, "STEPS", {"cpu": 30 * 6**3})
    succeed("charpoly", "x", "--checkpoint", "other")
    assert len(list(Path("other").glob("piece-*.json"))) == count == 2
    assert "its pieces are others" in fail("charpoly", "x", "--checkpoint", "kept")
    assert succeed("charpoly", "x") == expected


def test_what_is_refused(rng: np.random.Generator) -> None:
    x = drawn(rng, 2, 3, 3)
    x[1] = 0
    stored("x", x)
    assert "solve of x x: " in fail("solve", "x", "x")
    assert "(1,)" in fail("solve", "x", "x")
    stored("wide", drawn(rng, 3, 4))
    assert "square matrices, got shape (3, 4)" in fail("det", "wide", status=2)
    assert succeed("rank", "wide").splitlines()[-1] == "3"
    stored("flat", drawn(rng, 5))
    assert "two axes" in fail("rank", "flat", status=2)
    assert "need -o" in fail("det", "x", "--overwrite", status=2)
    assert "need -o" in fail("det", "x", "--bits", 64, status=2)
    assert "give -o and --denominators" in fail("solve", "x", "x", "-o", "y", status=2)
    rd.from_ints(x, rd.PrimeFields(PRIMES)).rechunk(-1).to_zarr("f")
    assert "are for integers" in fail("det", "f", "-o", "y", "--bits", 64, status=2)
    with pytest.raises(rd.StoreError):
        rd.open_zarr("y")
    assert "is read from there" in fail("det", "x", "-o", "x", "--overwrite")


def test_places_of_results(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are checked before anything is computed, and one result does not replace the other."""
    stored("a", drawn(rng, 3, 3))
    stored("d", drawn(rng, 3))
    monkeypatch.setattr(exact_results, "integers", None)
    for mode in ("--overwrite", "--resume"):
        told = fail("solve", "a", "a", "-o", "n", "--denominators", "./n", mode)
        assert "./n: the denominators cannot be written there, the numerators are" in told
    assert "is read from there" in fail("solve", "a", "a", "-o", "n", "--denominators", "a", "--overwrite")
    assert "d: it exists" in fail("solve", "a", "a", "-o", "n", "--denominators", "d")
    assert "d: it exists" in fail("det", "a", "-o", "d")
    assert not Path("n").exists()


def test_results_of_other_matrices_are_not_resumed(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks that are kept would be those of matrices that have changed since."""
    matrices = drawn(rng, 300, 2, 2)
    stored("x", matrices)
    monkeypatch.setattr(layout, "DEFAULT_CHUNK_BYTES", 512)
    with monkeypatch.context() as patched:
        patched.setattr(store.StoreWriter, "finish", interrupted)
        call("det", "x", "-o", "d")
    matrices[200, 0, 0] += 1
    stored("x", matrices)
    assert "it was begun by another job" in fail("det", "x", "-o", "d", "--resume")
    succeed("det", "x", "-o", "d", "--overwrite")
    assert rd.open_zarr("d").to_ints().tolist() == [int(flint_of(m).det()) for m in matrices]


@pytest.mark.parametrize("ended", ["n", "between", "d"])
def test_solutions_are_resumed_wherever_they_ended(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    stored("a", drawn(rng, 2, 3, 3))
    stored("b", drawn(rng, 3))
    job = "solve", "a", "b", "-o", "n", "--denominators", "d"
    succeed(*job)
    expected = [rd.open_zarr(path).to_ints().tolist() for path in "nd"]
    finish = store.StoreWriter.finish
    for path in "nd":
        shutil.rmtree(path)
    with monkeypatch.context() as patched:
        patched.setattr(
            store.StoreWriter,
            "finish",
            lambda w: interrupted(w) if w.info.path.endswith(ended) else finish(w),
        )
        call(*job)
    if ended == "between":
        shutil.rmtree("d")
    succeed(*job, "--resume")
    assert [rd.open_zarr(path).to_ints().tolist() for path in "nd"] == expected
    shutil.rmtree("n")
    stored("d", drawn(rng, 2))
    assert "d: it is complete, but not known to be this job's" in fail(*job, "--resume")
    assert not Path("n").exists()


def test_resultants(rng: np.random.Generator) -> None:
    f, g = drawn(rng, 2, 6), drawn(rng, 2, 4)
    g[1] = 0
    stored("f", f, (1, 4))
    stored("g", g)
    expected = [str(flint.fmpz_poly(f[0].tolist()).resultant(flint.fmpz_poly(g[0].tolist()))), "0"]
    assert lines(succeed("resultant", "f", "g")) == {(k,): text for k, text in enumerate(expected)}
    succeed("resultant", "f", "g", "-o", "r")
    assert rd.open_zarr("r").to_ints().tolist() == list(map(int, expected))
    # y**2 - x and y - (x + 1): (x + 1)**2 - x.
    stored("f2", np.array([[0, -1], [0, 0], [1, 0]], dtype=object), (2, 1))
    stored("g2", np.array([[-1, -1], [1, 0]], dtype=object))
    assert as_json("resultant", "f2", "g2", "--variables", 2)["values"] == [*"1110"]
    fields = rd.PrimeFields(PRIMES)
    rd.from_ints(f, fields).rechunk(-1).to_zarr("a")
    rd.from_ints(g, fields).rechunk(-1).to_zarr("b")
    succeed("resultant", "a", "b", "-o", "c")
    assert np.asarray(rd.open_zarr("c").words).T.tolist() == [[int(t) % p for p in PRIMES] for t in expected]
    assert "integers in two variables" in fail("resultant", "a", "b", "--variables", 2, status=2)


def test_fields_in_other_derived_stores(rng: np.random.Generator) -> None:
    fields = rd.PrimeFields(PRIMES)
    elements = rd.from_ints(drawn(rng, 40), fields)
    elements.rechunk(16).to_zarr("x")
    succeed("slice", "x", "-o", "y", "::-1")
    assert (rd.open_zarr("y").to_ints() == elements.to_ints()[::-1]).all()
    succeed("reshape", "y", "-o", "z", "5,8")
    succeed("concat", "z", "z", "-o", "zz")
    assert rd.open_zarr("zz").shape == (10, 8)
    succeed("rechunk", "z", "-o", "w", "--chunks", "2,8")
    assert (rd.open_zarr("w").to_ints().ravel() == elements.to_ints()[::-1]).all()
    succeed("convolve", "x", "y", "-o", "c")
    expected = rd.convolve(elements, elements[::-1])
    assert (rd.open_zarr("c").to_ints() == expected.to_ints()).all()


# ---- places that cannot be written ------------------------------------------------------------------------

COMMANDS = (
    "det x -o d",
    "rank x -o d",
    "charpoly x -o d",
    "solve x x -o d --denominators e",
    "resultant p p -o d",
)


def no_work(*_args: object, **_options: object) -> None:
    raise AssertionError("it is computed before its place is looked at")


@pytest.mark.parametrize("command", COMMANDS)
def test_places_are_looked_at_before_the_work(
    command: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = drawn(rng, 4, 4)
    stored("x", x)
    stored("p", x[0])
    for name in ("folder", "data"):
        Path(name).mkdir()
        Path(name, "other").write_text("other")
    Path("file").write_text("other")
    words, modes = command.split(), ([], ["--overwrite"])
    stored("whole", x)
    store.create("begun", rd.RNS(MODULI), (4,), job="another one")
    before = sorted(map(str, Path().rglob("*")))
    monkeypatch.setattr(exact_results, "integers", no_work)
    for place in ("folder", "file", "file/d", "n" * 256):
        for mode in modes:
            words[words.index("-o") + 1] = place
            message = fail(*words, *mode)
            assert place in message
    for place, why in (("whole", "not known to be this job's"), ("begun", "another job")):
        words[words.index("-o") + 1] = place
        if "solve" not in words:
            assert why in fail(*words, "--resume")
    assert sorted(map(str, Path().rglob("*"))) == before


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="Linux alone tells")
def test_folders_that_cannot_be_written_are_refused_before_the_work(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored("x", drawn(rng, 4, 4))
    monkeypatch.setattr(exact_results, "integers", no_work)
    assert "it cannot be written" in fail("det", "x", "-o", "/proc/d")
    assert "it cannot be written" in fail("det", "x", "-o", "/proc/self/d", "--overwrite")


@pytest.mark.parametrize("command", COMMANDS)
def test_results_that_cannot_be_written_are_printed(
    command: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = drawn(rng, 4, 4)
    stored("x", x)
    stored("p", x[0])
    words = command.split()
    plain = words[: words.index("-o")]
    expected = succeed(*plain)

    def full(*_args: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "d")

    monkeypatch.setattr(exact_results, "write_array", full)
    why = "d: No space left on device; the results are not stored, but printed on standard output"
    result = call(*words)
    assert (result.exit_code, result.stdout, result.stderr) == (1, expected, f"rnsdask: error: {why}\n")
    result = call(*words, "--json")
    assert (result.exit_code, result.stderr) == (1, f"rnsdask: error: {why}\n")
    names = ("value", "values", "numerators", "denominators")
    printed = {name: value for name, value in json.loads(result.stdout).items() if name in names}
    assert printed
    assert printed == {name: value for name, value in as_json(*plain).items() if name in names}


def test_a_result_beyond_the_moduli_is_printed(rng: np.random.Generator) -> None:
    x = drawn(rng, 4, 4)
    stored("x", x)
    result = call("det", "x", "-o", "d", "--bits", 64)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == ["det of x:", str(flint_of(x).det())]
    assert "range" in result.stderr
    assert result.stderr.endswith("; the results are not stored, but printed on standard output\n")
    assert not Path("d").exists()


# ---- one matrix of elements of fields in several chunks ---------------------------------------------------


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep matrices in block columns, of three columns at least."""
    monkeypatch.setattr(block_elimination, "LEAST_COLUMNS", 3)
    monkeypatch.setattr(block_elimination, "MOST_JOINED", 0)


@pytest.mark.usefixtures("narrow")
def test_matrices_of_fields_in_several_chunks(rng: np.random.Generator) -> None:
    fields = rd.PrimeFields(PRIMES)
    residues = np.stack([rng.integers(0, p, (10, 10)) for p in PRIMES]).astype(np.uint32)
    residues[1, :, 6] = 0  # of rank 9 modulo this prime
    x, b = rd.FieldArray(residues, fields), rd.FieldArray(residues[:, :, 1:3].copy(), fields)
    x.rechunk((4, 2)).to_zarr("x")
    b.rechunk((3, 1)).to_zarr("b")
    assert succeed("det", "x").splitlines()[1] == str(rd.linalg.det(x))
    assert as_json("rank", "x")["values"] == ["10", "9", "10"]
    succeed("det", "x", "-o", "d")
    assert rd.open_zarr("d").to_ints().tolist() == [rd.linalg.det(x)]
    expected = rd.linalg.solve(x, b, unique=False)
    succeed("solve", "x", "b", "--any", "-o", "y")
    assert (rd.open_zarr("y") == expected).all()
    printed = lines(succeed("solve", "x", "b", "--any"))
    assert [printed[i, 0] for i in range(10)] == [str(v) for v in expected.to_ints()[:, 0]]
    assert "solve of x b: the matrix is singular modulo 2147483647" in fail("solve", "x", "b")
    assert "by this very job" in succeed("solve", "x", "b", "--any", "-o", "y", "--resume")


@pytest.mark.usefixtures("narrow")
def test_the_plan_counts_a_matrix_in_several_chunks_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in memory once, and a task has some block columns."""
    x = rd.from_ints(np.arange(40_000).reshape(200, 200), rd.PrimeFields([65537]))
    x.rechunk((50, 20)).to_zarr("x")
    x.to_zarr("one", chunks=(200, 200))
    for operation, share in (("det", 0.875), ("rank", 0.875)):
        works = [
            exact_results.prepare(
                operation, [Source.at(path, OF_NUMBERS)], getattr(rd.linalg, operation)
            ).work
            for path in ("x", "one")
        ]
        assert share * 4 * 40_000 <= 2 * works[0].held <= 4 * 40_000  # the plan counts it twice
        assert works[0].numbers * works[0].chunks == works[1].numbers == 40_000
        assert 1 < works[0].chunks <= 200 // 3 + 1
    monkeypatch.setattr(memory_plan, "process_limit", lambda: 2**28)
    for command in (["det", "x"], ["rref", "x", "-o", "y"], ["solve", "x", "x", "--any", "-o", "y"]):
        assert "does not fit into the memory of this process" in fail(*command)


@pytest.mark.usefixtures("narrow")
def test_reduced_forms_of_fields(rng: np.random.Generator) -> None:
    fields = rd.PrimeFields(PRIMES)
    residues = np.stack([rng.integers(0, p, (6, 11)) for p in PRIMES]).astype(np.uint32)
    residues[0, :, 3:7] = 0
    x = rd.FieldArray(residues, fields)
    x.rechunk((4, 2)).to_zarr("x")
    x.to_zarr("one", chunks=(6, 11))
    expected = rd.linalg.rref(x).matrix
    for path in ("x", "one"):
        succeed("rref", path, "-o", f"{path}-form")
        assert (rd.open_zarr(f"{path}-form") == expected).all()
    assert as_json("rref", "x")["values"] == [[str(v) for v in row] for row in expected.to_ints().tolist()]
    assert "are for integers" in fail("rref", "x", "-o", "y", "--denominators", "z", status=2)


def test_reduced_forms_of_integers(rng: np.random.Generator) -> None:
    values = drawn(rng, 4, 6, bits=40)
    values[3] = values[0] - values[1]
    stored("x", values, (2, 3))
    form, rank = flint.fmpq_mat(flint_of(values)).rref()
    expected = [[Fraction(int(v.p), int(v.q)) for v in row] for row in form.tolist()]
    assert rank == 3
    printed = lines(succeed("rref", "x"))
    assert [[Fraction(printed[i, j]) for j in range(6)] for i in range(4)] == expected
    succeed("rref", "x", "-o", "n", "--denominators", "d")
    (denominator,) = rd.open_zarr("d").to_ints()
    assert [
        [Fraction(v, denominator) for v in row] for row in rd.open_zarr("n").to_ints().tolist()
    ] == expected
    assert "give -o and --denominators" in fail("rref", "x", "-o", "n", "--overwrite", status=2)
    kept = succeed("rref", "x", "--checkpoint", "kept")
    assert lines(kept) == printed
