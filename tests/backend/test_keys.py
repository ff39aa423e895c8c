"""Keys and sums of residues, by each instruction set of this processor, against Python integers."""

import itertools

import numpy as np
import pytest

from rnsdask.backend import cpu

TOP = 2**32 - 1


def check(residues: np.ndarray, coefficients: np.ndarray) -> None:
    columns = [[int(x) for x in number] for number in residues.T]
    c = [int(x) for x in coefficients]
    keys = [sum(map(int.__mul__, number, c)) % 2**64 for number in columns]
    sums = [sum(map(int, row)) % 2**64 for row in residues]
    for method, ahead in itertools.product(cpu.key_methods(), (0, 40)):
        found, found_sums = cpu.keys_by(method, residues, coefficients, ahead)
        assert found.tolist() == keys, method
        assert found_sums.tolist() == sums, method


def test_methods() -> None:
    assert cpu.key_methods()[0] == "portable"
    with pytest.raises(ValueError, match="no such method"):
        cpu.keys_by("slow", np.ones((1, 1), dtype=np.uint32), np.ones(1, dtype=np.uint64), 0)


# Groups of 8, 4, 2 and 1 rows; parts of a block to several blocks.
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 9, 15, 31])
@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 31, 32, 33, 200])
def test_shapes(rows: int, count: int, rng: np.random.Generator) -> None:
    residues = rng.integers(0, 2**32, (rows, count), dtype=np.uint32)
    check(residues, rng.integers(0, 2**64, rows, dtype=np.uint64))


@pytest.mark.parametrize("coefficient", [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 2**32, 2**64 - 1])
def test_edges_of_words(coefficient: int, rng: np.random.Generator) -> None:
    residues = rng.choice(np.array([0, 1, 2**31, TOP - 1, TOP], dtype=np.uint32), (300, 50))
    residues[:, :17] = TOP
    check(residues, np.full(300, coefficient, dtype=np.uint64))


def test_rows_apart(rng: np.random.Generator) -> None:
    residues = rng.integers(0, 2**32, (13, 5000), dtype=np.uint32)[::3, 1:1100]
    check(residues, rng.integers(0, 2**64, 5, dtype=np.uint64))
