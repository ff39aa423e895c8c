"""The product of a table with terms, by each instruction set of this processor, against Python integers."""

import numpy as np
import pytest

from rnsdask.backend import cpu

TOP = 2**32 - 1


def exact_sums(terms: np.ndarray, table: np.ndarray) -> list[list[int]]:
    columns = [[int(c) for c in column] for column in table.T]
    numbers = [[int(x) for x in number] for number in terms.T]
    return [[sum(map(int.__mul__, column, number)) for number in numbers] for column in columns]


def check_sums(terms: np.ndarray, table: np.ndarray) -> None:
    expected = exact_sums(terms, table)
    for method in cpu.sum_methods():
        lanes = (lane.astype(object) for lane in cpu.table_sums(terms, table, method))
        low, high = lanes
        assert ((low - (high << 32)) % 2**64 + (high << 32)).tolist() == expected, method


def test_methods() -> None:
    assert cpu.sum_methods()[0] == "portable"
    words = np.ones((1, 1), dtype=np.uint32)
    with pytest.raises(ValueError, match="no such method"):
        cpu.table_sums(words, words, "slow")


# One result to two groups and the rest; part of a vector to a whole tile; at the edges of a block of terms.
@pytest.mark.parametrize("results", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 23])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 17, 63, 64])
def test_shapes(results: int, count: int, rng: np.random.Generator) -> None:
    rows = int(rng.integers(1, 40))
    terms = rng.integers(0, 2**32, (rows, count), dtype=np.uint32)
    check_sums(terms, rng.integers(0, 2**32, (rows, results), dtype=np.uint32))


@pytest.mark.parametrize("rows", [1, 2, 129, 1023, 1024, 1025, 2500])
def test_greatest_sums(rows: int, rng: np.random.Generator) -> None:
    terms = np.full((rows, 5), TOP, dtype=np.uint32)
    terms[:, 1] = 0
    terms[:, 2] = 2**31
    terms[:, 3:] = TOP - rng.integers(0, 3, (rows, 2), dtype=np.uint32)
    table = np.full((rows, 4), TOP, dtype=np.uint32)
    table[:, 1] = 2**31
    table[:, 2:] = TOP - rng.integers(0, 300, (rows, 2), dtype=np.uint32)
    check_sums(terms, table)


@pytest.mark.parametrize("rows", [5, 100, 1024])
def test_sums_next_to_multiples_of_two_words(rows: int, rng: np.random.Generator) -> None:
    # The upper word is found by rounding: the last two terms, times 2^32 - 1 and 1, bring the sum to where
    # one less or more would carry.
    terms = rng.integers(2**31, 2**32, (rows, 40), dtype=np.uint32)
    table = rng.integers(2**31, 2**32, (rows, 1), dtype=np.uint32)
    table[-2:, 0] = TOP, 1
    terms[-2:] = 0
    (sums,) = exact_sums(terms, table)
    for j, total in enumerate(sums):
        missing = -total % 2**64 + (j % 5) - 2
        terms[-2, j] = min(max(missing, 0) // TOP, TOP)
        terms[-1, j] = min(max(missing, 0) - int(terms[-2, j]) * TOP, TOP)
    (sums,) = exact_sums(terms, table)
    assert {(total + 2) % 2**64 for total in sums} == set(range(5))
    check_sums(terms, table)
