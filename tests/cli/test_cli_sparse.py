"""``det``, ``rank`` and ``solve`` of sparse matrices in files, against python-flint."""

from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
from commands import as_json, fail, succeed

import rnsdask as rd
from rnsdask.jobs import memory_plan
from rnsdask.sparse import dense, matrix

PRIMES = [2147483647, 4294967291, 65537]
OPTION = ",".join(map(str, PRIMES))

LONG_PRIMES = [2**32 + 15, 2**61 - 1, 65537, 2**63 - 25]
OF_EACH_WIDTH = pytest.mark.parametrize("primes", [PRIMES, LONG_PRIMES], ids=["short", "long"])

pytestmark = pytest.mark.usefixtures("in_empty_folder")


def written(path: str, values: Any) -> None:
    """Write a matrix of integers as an .sms or a Matrix Market file, by the name's end."""
    entries = [(i + 1, j + 1, int(values[i, j])) for i, j in np.argwhere(values)]
    rows, columns = values.shape
    text = "\n".join(" ".join(map(str, entry)) for entry in entries)
    if path.endswith(".sms"):
        Path(path).write_text(f"{rows} {columns} M\n{text}\n0 0 0\n")
    else:
        header = "%%MatrixMarket matrix coordinate integer general"
        Path(path).write_text(f"{header}\n{rows} {columns} {len(entries)}\n{text}\n")


def drawn(rng: np.random.Generator, rows: int, columns: int) -> Any:
    return rng.integers(-99, 100, (rows, columns)) * (rng.random((rows, columns)) < 0.2)


@OF_EACH_WIDTH
@pytest.mark.parametrize("name", ["a.sms", "a.mtx"])
def test_determinants_and_ranks(name: str, primes: list[int], rng: np.random.Generator) -> None:
    option = ",".join(map(str, primes))
    values = drawn(rng, 30, 30) + np.diag(rng.integers(1, 9, 30))
    written(name, values)
    modulus = np.prod(np.array(primes, object))
    expected = int(flint.fmpz_mat(values.tolist()).det()) % modulus
    assert succeed("det", name, "--primes", option).splitlines() == [f"det of {name}:", str(expected)]
    found = as_json("det", name, "--primes", option)
    assert (found["value"], found["shape"], found["moduli"]) == (str(expected), [30, 30], option.split(","))
    values[7] = values[3] + values[5]
    written(name, values)
    ranks = [flint.nmod_mat(30, 30, (values % p).ravel().tolist(), p).rank() for p in primes]
    told = succeed("rank", name, "--primes", option).splitlines()
    assert told == [f"{p}\t{rank}" for p, rank in zip(primes, ranks, strict=True)]
    assert as_json("rank", name, "--primes", option)["values"] == list(map(str, ranks))
    assert succeed("det", name, "--primes", option).splitlines()[1] == "0"


@OF_EACH_WIDTH
@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("shape", [(20, 20), (12, 25)])
def test_solutions(count: int, shape: tuple[int, int], primes: list[int], rng: np.random.Generator) -> None:
    values, fields = drawn(rng, *shape), rd.PrimeFields(primes)
    written("a.sms", values)
    vectors = rng.integers(-9, 9, (shape[1], count) if count else shape[1])
    right = values @ vectors
    rd.from_ints(right, fields, chunks=7).to_zarr("b")
    told = as_json("solve", "a.sms", "b", "-o", "x")
    assert told["bytes_read"] == fields.word_dtype.itemsize * len(primes) * right.size
    x = rd.open_zarr("x")
    assert x.shape == vectors.shape
    for p, residues in zip(primes, np.asarray(x.residues).astype(object), strict=True):
        assert ((values.astype(object) @ residues - right) % p == 0).all()
    assert "complete already" in succeed("solve", "a.sms", "b", "-o", "x", "--resume")
    values[0, 0] += 1
    written("a.sms", values)
    assert "but of another job" in fail("solve", "a.sms", "b", "-o", "x", "--resume")


def test_small_primes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices are eliminated; of larger ones what is not decided is said so, with a way out."""
    values = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    written("a.mtx", values)
    for name, right in (("b", [0, 0, 1]), ("c", [0, 1, 1])):
        rd.from_ints(right, rd.PrimeFields([2])).to_zarr(name)
    assert succeed("rank", "a.mtx", "--primes", "2,3").splitlines() == ["2\t2", "3\t2"]
    assert succeed("det", "a.mtx", "--primes", "2").splitlines()[1] == "0"
    succeed("solve", "a.mtx", "b", "-o", "x")
    assert (values @ np.array(rd.open_zarr("x").to_ints().tolist()) % 2).tolist() == [0, 0, 1]
    assert fail("solve", "a.mtx", "c", "-o", "y") == "solve of c: the system has no solution modulo 2"
    before = dense.MOST_BYTES
    monkeypatch.setattr(dense, "MOST_BYTES", -1)
    for operation, text, words in (
        ("rank", "ranks of 3 rows or columns are found modulo primes from 24 on, got 2", ["--primes", "2"]),
        ("solve", "neither a solution modulo 2 nor a proof that there is none was found", ["b", "-o", "y"]),
    ):
        message = fail(operation, "a.mtx", *words)
        assert text in message
        way_out = f"rnsdask import FILE.mtx STORE --primes P makes {operation}'s matrix"
        assert message.endswith(way_out + (", then with --any" if operation == "solve" else ""))
    monkeypatch.setattr(dense, "MOST_BYTES", before)
    succeed("import", "a.mtx", "dense", "--primes", "2")
    succeed("solve", "dense", "b", "-o", "y", "--any")
    assert (values @ np.array(rd.open_zarr("y").to_ints().tolist()) % 2).tolist() == [0, 0, 1]


def test_errors(rng: np.random.Generator) -> None:
    values = drawn(rng, 20, 10)
    written("a.sms", values)
    written("square.mtx", np.eye(9, dtype=int) * 7)
    rd.from_ints(np.arange(20) + 10**6, rd.PrimeFields(PRIMES)).to_zarr("b")
    rd.from_ints(np.arange(20), rd.ModuliSet.for_bits(64)).to_zarr("c")
    assert "--primes says modulo which primes" in fail("rank", "a.sms", status=2)
    assert "which c is not" in fail("rank", "c", "--primes", "7", status=2)
    assert "takes square matrices, got shape (20, 10)" in fail("det", "a.sms", "--primes", "7", status=2)
    assert "not a prime" in fail("rank", "a.sms", "--primes", "9", status=2)
    assert "with --primes are printed" in fail("rank", "a.sms", "--primes", "7", "-o", "y", status=2)
    assert "with --primes are printed" in fail(
        "det", "square.mtx", "--primes", "7", "--variables", "1", status=2
    )
    assert "-o STORE" in fail("solve", "a.sms", "b", status=2)
    assert "options of moduli are not for it" in fail("solve", "a.sms", "b", "-o", "x", "--any", status=2)
    assert "solve of b: the system has no solution modulo" in fail("solve", "a.sms", "b", "-o", "x")
    assert "must be a store of field elements" in fail("solve", "a.sms", "c", "-o", "x", status=2)
    assert "there is no such store" in fail("rank", "missing.sms", status=1)
    Path("a.sms").write_text("2 2 M\n1 1 5\n")
    assert "ends with the line 0 0 0" in fail("rank", "a.sms", "--primes", "65537")


def test_plans_of_memory(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Shapes are planned before entries are read, and the matrix with its vectors before it is."""
    rd.from_ints([1, 2], rd.PrimeFields(PRIMES)).to_zarr("b")
    Path("a.sms").write_text("2000000000 2000000000 M\n1 1 1\n0 0 0\n")
    with monkeypatch.context() as patch:
        patch.setattr(matrix, "process_limit", lambda: 2**33)
        for command in (("rank", "a.sms", "--primes", 65537), ("det", "a.sms", "--primes", 65537)):
            message = fail(*command)
            assert message.startswith(
                "a.sms: a sparse matrix of shape (2000000000, 2000000000) with 0 entries"
            )
            assert message.endswith("takes 48 GB, and this process may use 8.59 GB")
        assert fail("solve", "a.sms", "b", "-o", "x").startswith(
            "a.sms: a sparse matrix of shape (2000000000"
        )
    Path("a.sms").write_text("1 2000000000 M\n1 1 1\n0 0 0\n")
    monkeypatch.setattr(memory_plan, "process_limit", lambda: 2**33)
    message = fail("rank", "a.sms", "--primes", 65537)
    assert message.startswith(
        "rank of a sparse matrix of shape (1, 2000000000) with up to 2 entries does not fit"
    )
    assert "1 thread may need" in message
    assert message.endswith("GB of 8.59 GB")
    Path("a.sms").write_text("2 20000000 M\n1 1 1\n0 0 0\n")
    monkeypatch.setattr(memory_plan, "process_limit", lambda: 2**32)
    message = fail("solve", "a.sms", "b", "-o", "x")
    assert message.startswith("solve of a sparse matrix of shape (2, 20000000) with up to 2 entries does")
    assert not Path("x").exists()


def test_two_entries_of_one_place_are_refused_by_every_command() -> None:
    rd.from_ints([1, 2], rd.PrimeFields(PRIMES)).to_zarr("b")
    entries = "1 1 5\n2 1 3\n1 1 6\n"
    Path("a.mtx").write_text(f"%%MatrixMarket matrix coordinate integer general\n2 2 3\n{entries}")
    Path("a.sms").write_text(f"2 2 M\n{entries}0 0 0\n")
    for name in ("a.mtx", "a.sms"):
        commands: list[tuple[Any, ...]] = [
            ("rank", name, "--primes", OPTION),
            ("det", name, "--primes", OPTION),
        ]
        commands.append(("solve", name, "b", "-o", "x"))
        if name == "a.mtx":
            commands.append(("import", name, "x"))
        assert {fail(*command) for command in commands} == {
            f"{name}: it has two entries of row 1, column 1, and no format says whether they add up; in "
            "Python, rd.sparse.from_entries adds entries of one place"
        }
