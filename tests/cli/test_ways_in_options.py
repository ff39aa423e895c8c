"""Ways out that commands name: each, taken as the message says it, gives the exact result."""

import io
import os
import subprocess
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
from commands import fail, succeed, values_in
from forks import Commands

import rnsdask as rd
from rnsdask.sparse import dense

MODULI = rd.ModuliSet.for_bits(64)
WIDE = [2**61 - 1, 2**61 + 15]
VALUES = [3, 2**60 + 1, 7]
FERMAT = rd.FermatField(2**28 + 2**22, 16)
FIELDS = rd.PrimeFields([7, 11])


@pytest.mark.usefixtures("in_empty_folder")
def test_residues_into_a_pipe(commands: Commands) -> None:
    """Along the last axis, residues are written in order."""
    rd.from_ints(VALUES, MODULI).to_zarr("x.zarr")
    words = ["--residues", "--moduli-list", "5,7,9", "--overflow", "wrap"]
    pipe: dict[str, Any] = {"env": {**os.environ, "PATH": commands.path}, "capture_output": True}
    ended = subprocess.run(["rnsdask", "export", "x.zarr", "-", *words], check=False, **pipe)
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"; --axis -1 writes them in order\n" in ended.stderr
    ended = subprocess.run(["rnsdask", "export", "x.zarr", "-", *words, "--axis", "-1"], check=True, **pipe)
    assert np.load(io.BytesIO(ended.stdout)).tolist() == [[v % m for m in (5, 7, 9)] for v in VALUES]


@pytest.mark.usefixtures("in_empty_folder")
def test_wrapping_under_replaced_moduli() -> None:
    """Exact results under more moduli are taken modulo those that residues were given under."""
    np.save("r.npy", np.array([[v % m for v in VALUES] for m in WIDE], dtype=np.uint64))
    given = ",".join(map(str, WIDE))
    succeed("import", "r.npy", "w.zarr", "--residues", "--moduli-list", given)
    message = fail("eval", "a**5", "a=w.zarr", "-o", "y.zarr", "--overflow", "wrap")
    assert "--overflow wrap would take results modulo the moduli that replaced" in message
    assert "rnsdask extend SRC -o DST to moduli that hold the exact results" in message
    assert "rnsdask export --residues --overflow wrap takes them modulo any others" in message
    succeed("extend", "w.zarr", "-o", "e.zarr", "--bits", "400")
    succeed("eval", "a**5", "a=e.zarr", "-o", "y.zarr")
    assert values_in("y.zarr") == [v**5 for v in VALUES]
    out = ["--residues", "--moduli-list", given, "--overflow", "wrap"]
    succeed("export", "y.zarr", "y.npy", *out)
    assert np.load("y.npy").tolist() == [[v**5 % m for v in VALUES] for m in WIDE]


@pytest.mark.usefixtures("in_empty_folder")
def test_the_least_bound() -> None:
    rd.from_ints([0, 1, 1]).with_bound(2**1000).to_zarr("x.zarr")
    command = ["eval", "a**1200000", "a=x.zarr", "-o", "y.zarr"]
    assert fail(*command).endswith("; rnsdask bound STORE --write has the least bound")
    succeed("bound", "x.zarr", "--write")
    succeed(*command)
    assert values_in("y.zarr") == [0, 1, 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores of a matrix and a vector in each number system."""
    folder = tmp_path_factory.mktemp("kinds")
    for name, values in (("m", [[1, 2], [3, 4]]), ("v", [5, 6])):
        x = rd.from_ints(values, MODULI)
        x.to_zarr(folder / f"{name}-residues")
        x.to_positional(64).to_zarr(folder / f"{name}-limbs")
        rd.IntervalRNSArray.from_rns(x).to_zarr(folder / f"{name}-intervals")
        rd.from_ints(values, FIELDS).to_zarr(folder / f"{name}-elements")
        rd.from_ints(values, rd.PrimeFields([13, 17])).to_zarr(folder / f"{name}-primes")
        rd.from_ints(values, FERMAT).to_zarr(folder / f"{name}-others")
    return folder


# Operations of two stores whose kinds do not mix: what the error names, each way to follow it, one of which
# has several steps, and the numbers then.
MIXED: dict[str, tuple[str, str, list[list[str]], list[int]]] = {
    "limbs with residues, solved": (
        "solve m-limbs v-residues",
        "--to rns makes",
        [["convert m-limbs -o made --to rns", "solve made v-residues -o y --denominators z"]],
        [-8, 9],
    ),
    "residues with limbs, solved": (
        "solve m-residues v-limbs",
        "--to rns makes",
        [["convert v-limbs -o made --to rns", "solve m-residues made -o y --denominators z"]],
        [-8, 9],
    ),
    "intervals with limbs, solved": (
        "solve m-intervals v-limbs",
        "--to interval makes",
        [["convert v-limbs -o made --to interval", "solve m-intervals made -o y --denominators z"]],
        [-8, 9],
    ),
    "limbs with residues, convolved": (
        "convolve v-limbs v-residues -o y",
        "--to rns makes",
        [["convert v-limbs -o made --to rns", "convolve made v-residues -o y"]],
        [25, 60, 36],
    ),
    "limbs with elements, convolved": (
        "convolve v-limbs v-elements -o y",
        "--to field makes",
        [["convert v-limbs -o made --to field --primes 7,11", "convolve made v-elements -o y"]],
        [25, 60, 36],
    ),
    "intervals with limbs, convolved": (
        "convolve v-intervals v-limbs -o y",
        "--to interval makes",
        [["convert v-limbs -o made --to interval", "convolve v-intervals made -o y"]],
        [25, 60, 36],
    ),
    "limbs with residues, as polynomials": (
        "resultant v-limbs v-residues",
        "--to rns makes",
        [["convert v-limbs -o made --to rns", "concat made v-residues -o y"]],
        [5, 6, 5, 6],
    ),
    "residues with intervals, solved": (
        "solve m-residues v-intervals",
        "--to interval or --to rns makes",
        [
            ["convert m-residues -o made --to interval", "solve made v-intervals -o y --denominators z"],
            ["convert v-intervals -o made --to rns", "solve m-residues made -o y --denominators z"],
        ],
        [-8, 9],
    ),
    "elements of two fields, added": (
        "eval a+b a=v-elements b=v-others -o y",
        "--to rns, and of that --to field, makes",
        [
            [
                "convert v-others -o integers --to rns",
                "convert integers -o made --to field --primes 7,11",
                "eval a+b a=v-elements b=made -o y",
            ]
        ],
        [10, 12],
    ),
    "elements of other primes, added": (
        "eval a+b a=v-elements b=v-primes -o y",
        "--to rns, and of that --to field, makes",
        [
            [
                "convert v-primes -o integers --to rns",
                "convert integers -o made --to field --primes 7,11",
                "eval a+b a=v-elements b=made -o y",
            ]
        ],
        [10, 12],
    ),
    "residues with limbs, by bits": (
        "eval a|b a=v-residues b=v-limbs -o y",
        "--to positional makes",
        [
            [
                "convert v-residues -o made --to positional --bits 64",
                "convert v-limbs -o other --to positional --bits 64",
                "eval a|b a=made b=other -o y",
            ]
        ],
        [5, 6],
    ),
    "residues with intervals, by bits of sums": (
        "eval (a+b)^b a=v-residues b=v-intervals -o y",
        "--to positional makes",
        [
            [
                "convert v-residues -o made --to positional --bits 64 --signed",
                "convert v-intervals -o other --to positional --bits 64",
                "eval (a+b)^b a=made b=other -o y",
            ]
        ],
        [10 ^ 5, 12 ^ 6],
    ),
    "residues with limbs, compared and added": (
        "eval where((a<b)|(b<3),a,a+b) a=v-residues b=v-limbs -o y",
        "--to positional or --to rns makes",
        [
            ["convert v-limbs -o made --to rns", "eval where((a<b)|(b<3),a,a+b) a=v-residues b=made -o y"],
        ],
        [10, 12],
    ),
    "elements of primes with those of another field, solved": (
        "solve m-elements v-others -o y",
        "--to rns, and of that --to field, makes",
        [
            [
                "convert v-others -o integers --to rns",
                "convert integers -o made --to field --primes 7,11",
                "solve m-elements made -o y",
            ]
        ],
        [73, 43],  # -4 and 9/2 modulo 77
    ),
    "elements of another field with those of primes, solved": (
        "solve m-others v-elements -o y",
        "--to rns, and of that --to field, makes",
        [
            [
                "convert m-others -o integers --to rns",
                "convert integers -o made --to field --primes 7,11",
                "solve made v-elements -o y",
            ]
        ],
        [73, 43],
    ),
    "elements of two fields, joined": (
        "concat v-elements v-others -o y",
        "--to rns, and of that --to field, makes",
        [
            [
                "convert v-others -o integers --to rns",
                "convert integers -o made --to field --primes 7,11",
                "concat v-elements made -o y",
            ]
        ],
        [5, 6, 5, 6],
    ),
    "residues with elements, joined": (
        "concat v-residues v-elements -o y",
        "--to field or --to rns makes",
        [
            ["convert v-residues -o made --to field --primes 7,11", "concat made v-elements -o y"],
            [
                "convert v-elements -o made --to rns",
                "extend v-residues -o more --bits 64",
                "concat made made -o y",
            ],
        ],
        [5, 6, 5, 6],
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_kinds_that_do_not_mix(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    command, told, ways, numbers = MIXED[name]
    message = fail(*command.split(), status=2)
    assert f"; rnsdask convert SRC -o DST {told} them of one kind" in message, message
    for way in ways:
        for line in way:
            succeed(*line.split(), "--overwrite")
        assert values_in("y") == numbers


def test_operations_that_no_kind_has_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    stores = "a=v-elements", "b=v-limbs"
    message = fail("eval", "(a @ b) | b", *stores, "-o", "y", status=2)
    assert "do not mix; no kind of numbers has all operations of the expressions" in message
    assert "convert" not in message
    assert "'sqrt'" in fail("eval", "sqrt(a) + b", *stores, "-o", "y", status=2)


# Sparse matrices modulo a prime for which draws of Wiedemann's algorithm never decide, however often, and
# what is asked of them; the way out without the file's name, and with the dense matrix.
SPARSE = {
    "rank": ([[0, 0, 1], [0, 0, 1], [1, 1, 0]], [], []),
    "det": (np.eye(5, dtype=int).tolist(), [], []),
    "solve": ([[0, 0, 1], [0, 0, 1], [1, 1, 0]], ["b", "-o", "y"], ["--any"]),
}


@pytest.mark.usefixtures("in_empty_folder")
@pytest.mark.parametrize("operation", SPARSE)
def test_matrices_that_are_too_large_for_draws(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values, words, more = SPARSE[operation]
    entries = [f"{i + 1} {j + 1} 1" for i, j in np.argwhere(np.array(values))]
    size = f"{len(values)} {len(values)} {len(entries)}"
    lines = ["%%MatrixMarket matrix coordinate integer general", size, *entries]
    Path("a.mtx").write_text("\n".join(lines) + "\n")
    rd.from_ints([0, 0, 1], rd.PrimeFields([2])).to_zarr("b")
    with monkeypatch.context() as patch:
        patch.setattr(dense, "MOST_BYTES", -1)
        message = fail(operation, "a.mtx", *(words or ["--primes", "2"]))
    way = f"; rnsdask import FILE.mtx STORE --primes P makes {operation}'s matrix"
    assert message.endswith(way + ", then with --any" * bool(more)), message
    succeed("import", "a.mtx", "dense", "--primes", "2")
    printed = succeed(operation, "dense", *words, *more)
    theirs = flint.nmod_mat(values, 2)
    if operation == "solve":
        assert (np.array(values) @ values_in("y") % 2).tolist() == [0, 0, 1]
    else:
        found = theirs.rank() if operation == "rank" else int(theirs.det())
        assert str(found) in printed.replace("\t", "\n").splitlines()
