"""Matrices times the factors of their rows, some rows at a time, against Python integers."""

from typing import Any

import numpy as np
import pytest
from conftest import Processor

import rnsdask as rd
from rnsdask.fields import ntt
from rnsdask.rns import arithmetic

PRIMES = rd.ModuliSet([2013265921, 97])
A, B, C = (5, 3), (7, 96), (11, 2)


class Factors:
    """Factors ``a**i * b**r * c**(i r)``, with a table of some rows."""

    def __init__(self, size: int, columns: int) -> None:
        self.columns = columns
        self.table = np.array(
            [
                [[pow(a, i, p) * pow(c, i * r, p) % p for r in range(columns)] for i in range(size)]
                for a, c, p in zip(A, C, PRIMES, strict=True)
            ],
            dtype=np.uint32,
        )

    def at_row(self, i: int) -> Any:
        return np.array(
            [
                [pow(a, i, p) * pow(b, r, p) * pow(c, i * r, p) % p for r in range(self.columns)]
                for a, b, c, p in zip(A, B, C, PRIMES, strict=True)
            ],
            dtype=np.uint32,
        )


@pytest.mark.parametrize("words_at_a_time", [1, 60, 500, 2**20])
@pytest.mark.parametrize(
    ("batch", "rows", "columns", "size"),
    [(1, 16, 4, 4), (3, 16, 4, 4), (2, 13, 3, 4), (3, 5, 1, 2), (1, 7, 1, 7), (2, 1, 5, 1), (4, 6, 2, 16)],
)
def test_products(
    on_each_processor: Processor,
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
    words_at_a_time: int,
    batch: int,
    rows: int,
    columns: int,
    size: int,
) -> None:
    for name in ("_CPU_WORDS", "_GPU_WORDS"):
        monkeypatch.setattr(ntt, name, words_at_a_time)
    first, factors = 3, Factors(size, columns)
    words = np.stack([rng.integers(0, p, (batch, rows, columns)) for p in PRIMES]).astype(np.uint32)
    found = ntt.multiplied(
        on_each_processor.xp.asarray(words),
        factors,
        first,
        lambda x, y: arithmetic.apply("multiply", (x, y), rd.RNS(PRIMES), "wrap"),
    )
    expected = [
        [
            [
                [int(x) * int(f) % p for x, f in zip(*pair, strict=True)]
                for pair in zip(matrix, by_row, strict=True)
            ]
            for matrix in words[k]
        ]
        for k, p in enumerate(PRIMES)
        for by_row in [[factors.at_row(first + i)[k] for i in range(rows)]]
    ]
    assert on_each_processor.to_numpy(found).tolist() == expected
