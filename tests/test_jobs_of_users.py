"""Jobs that new users bring, a few lines each, against oracles that share no code with the package.

Those that docs/jobs.md does are in tests/test_first_jobs.py; Make and Snakemake are in tests/test_chains.py.
"""

import csv
import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import flint
import gmpy2
import numpy as np
import pandas as pd
import pytest
from commands import as_json, fail, succeed
from distributed import Client, LocalCluster

import rnsdask as rd


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_combinatorial_numbers() -> None:
    n = rd.arange(200)
    catalan = rd.binomial(2 * n, n) // (n + 1)
    expected = [1]
    for k in range(199):
        expected.append(sum(a * b for a, b in zip(expected, expected[::-1], strict=True)))
        assert len(expected) == k + 2
    assert catalan.tolist() == expected
    assert rd.binomial(n[:, None], n[None, :]).sum(axis=1).tolist() == [2**k for k in range(200)]


def test_exact_linear_algebra(rng: np.random.Generator) -> None:
    a, b = rng.integers(-(10**6), 10**6, (30, 30)), rng.integers(-9, 9, 30)
    x = rd.from_ints(a)
    matrix = flint.fmpz_mat(a.tolist())
    assert rd.linalg.det(x) == int(matrix.det())
    assert rd.linalg.charpoly(x).tolist() == [int(c) for c in matrix.charpoly().coeffs()]
    numerators, denominator = rd.linalg.solve(x, b)
    exact = flint.fmpq_mat(matrix).solve(flint.fmpq_mat(30, 1, b.tolist()))
    found = [flint.fmpq(int(value), int(denominator)) for value in numerators]
    assert found == [exact[i, 0] for i in range(30)]


def test_batches_of_signatures() -> None:
    """Each of many RSA signatures has a modulus of its own, and one of them is forged."""
    primes = [int(gmpy2.next_prime(3**k * 10**30)) for k in range(1, 41)]
    pairs = list(zip(primes[::2], primes[1::2], strict=True))
    moduli, messages = [p * q for p, q in pairs], [7**k + 1 for k in range(20)]
    exponents = [pow(65537, -1, math.lcm(p - 1, q - 1)) for p, q in pairs]
    signatures = [pow(m, d, n) for m, d, n in zip(messages, exponents, moduli, strict=True)]
    signatures[13] += 1
    is_right = pow(rd.array(signatures), 65537, rd.array(moduli)) == rd.array(messages)
    assert np.flatnonzero(~is_right).tolist() == [13]
    signed = pow(rd.array(messages), rd.array(exponents), rd.array(moduli))
    assert (signed != rd.array(signatures)).nonzero()[0].tolist() == [13]


def test_data_under_a_limit_of_memory() -> None:
    """A store of many chunks is read a few at a time, as the plan says that the limit allows."""
    numbers = [pow(3, k, 2**127 - 1) for k in range(20_000)]
    rd.from_ints(numbers, chunks=500).to_zarr("x.zarr")
    job = ["eval", "x*x + 1", "x=x.zarr", "--sum", "--max", "--extend", "--memory"]
    found = as_json(*job, "500MB", "--log-json", "log.jsonl")["results"]
    assert found["sum"]["value"] == str(sum(v * v + 1 for v in numbers))
    assert found["max"]["value"] == str(max(numbers) ** 2 + 1)
    events = map(json.loads, Path("log.jsonl").read_text().splitlines())
    (plan,) = (event for event in events if event["event"] == "plan")
    assert plan["host"] <= plan["host_limit"] == 500 * 10**6
    assert "does not fit into the memory of this process" in fail(*job, "1MB")
    for size in ("17", "0GB", "many"):
        assert "--memory must be a size with its unit, such as 4GiB" in fail(*job, size, status=2)


def test_the_same_on_a_cluster() -> None:
    numbers = [pow(3, k, 2**127 - 1) for k in range(5000)]
    rd.from_ints(numbers, chunks=600).to_zarr("x.zarr")
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, Client(cluster):
        x = rd.open_zarr("x.zarr")
        assert (x * x).sum().compute() == sum(v * v for v in numbers)
        assert rd.sort(x).to_ints().tolist() == sorted(numbers)


def test_balances_in_wei() -> None:
    """Amounts beyond 64 bits as text of Parquet, decimals of Parquet, and CSV, summed by account."""
    amounts = [(-1) ** k * 10**18 * 7**k for k in range(30)]
    accounts = [f"0x{k % 4:040x}" for k in range(30)]
    table = pd.DataFrame({"account": accounts, "wei": list(map(str, amounts))})
    table.to_parquet("text.parquet")
    table.to_csv("table.csv", index=False, quoting=csv.QUOTE_MINIMAL)
    small = [Decimal(amount // 10**16) / 100 for amount in amounts[:9]]
    pd.DataFrame({"ether": small}).to_parquet("decimals.parquet")
    expected = table.assign(wei=amounts).groupby("account")["wei"].agg(lambda column: sum(column)).to_dict()

    x = rd.read_parquet("text.parquet", "wei", bits=256, signed=True)
    groups, sums = rd.group_reduce(x, table["account"], "sum")
    assert dict(zip(groups.tolist(), sums.to_ints().tolist(), strict=True)) == expected
    ether = rd.read_parquet("decimals.parquet", "ether", scale=2)
    assert ether.to_ints().tolist() == [amount // 10**16 for amount in amounts[:9]]
    succeed("import", "table.csv", "-o", "wei.zarr", "--column", "wei", "--no-progress")
    printed = succeed("group", "wei.zarr", "--by", "table.csv:account", "--no-progress")
    assert dict(line.split("\t") for line in printed.splitlines()) == {k: str(v) for k, v in expected.items()}


def test_five_primes_of_60_bits() -> None:
    """Residues as libraries of homomorphic encryption have them; products modulo the primes' product."""
    primes = [int(gmpy2.next_prime(2**60 - 10**k)) for k in range(4, 9)]
    modulus = math.prod(primes)
    a, b = ([pow(g, k, modulus) for k in range(64)] for g in (3, 10**50))
    residues = [np.array([[v % p for v in values] for p in primes], dtype=np.uint64) for values in (a, b)]
    x, y = (rd.from_residues(rows, primes) for rows in residues)
    assert x.to_ints().tolist() == a
    product = rd.mod_multiply(x, y, modulus - 1)
    assert product.to_residues(primes).tolist() == [
        [v * w % (modulus - 1) % p for v, w in zip(a, b, strict=True)] for p in primes
    ]


def test_exact_regression() -> None:
    """A polynomial through noisy points of great numbers, which floats would lose."""
    points = range(10**9, 10**9 + 20)
    rows = [[1, p, p * p] for p in points]
    values = [5 * p * p - 3 * p + 10**20 + (p % 3) for p in points]
    x, y = rd.array(rows), rd.array(values)
    numerators, denominator = rd.linalg.solve(x.T @ x, x.T @ y)
    solution = [Fraction(int(n), int(denominator)) for n in numerators]
    residuals = [
        v - sum(c * f for c, f in zip(row, solution, strict=True))
        for row, v in zip(rows, values, strict=True)
    ]
    for column in zip(*rows, strict=True):  # the normal equations
        assert sum(r * c for r, c in zip(residuals, column, strict=True)) == 0


def test_a_thousand_digits_of_pi() -> None:
    """Machin's formula: pi = 16 arctan(1/5) - 4 arctan(1/239)."""
    unit = 10**1010

    def arctan(q: int, terms: int) -> int:
        k = 2 * np.arange(terms) + 1
        quotients = unit // (rd.array(k) * rd.full(terms, q) ** k)
        return int(quotients[::2].sum() - quotients[1::2].sum())

    pi = (16 * arctan(5, 730) - 4 * arctan(239, 220)) // 10**10
    with gmpy2.context(precision=4000):
        assert pi == int(gmpy2.floor(gmpy2.const_pi() * gmpy2.mpz(10) ** 1000))


def test_permanents() -> None:
    """Derangements, as permanents of matrices of ones without the diagonal."""
    for n in range(2, 13):
        derangements = sum((-1) ** k * math.factorial(n) // math.factorial(k) for k in range(n + 1))
        assert rd.linalg.permanent(1 - rd.eye(n)) == derangements


def test_spanning_trees() -> None:
    """Kirchhoff's theorem for grids of points, against a count of all trees, and Cayley's formula."""
    edges = [
        ((i, j), (k, m))
        for (i, j), (k, m) in itertools.combinations(itertools.product(range(3), repeat=2), 2)
    ]
    edges = [(a, b) for a, b in edges if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1]
    places = {point: k for k, point in enumerate(itertools.product(range(3), repeat=2))}
    laplacian = np.zeros((9, 9), dtype=np.int64)
    for a, b in edges:
        i, j = places[a], places[b]
        laplacian[i, i] += 1
        laplacian[j, j] += 1
        laplacian[i, j] = laplacian[j, i] = -1
    trees = sum(
        _is_tree([(places[a], places[b]) for a, b in chosen]) for chosen in itertools.combinations(edges, 8)
    )
    assert rd.linalg.det(rd.array(laplacian)[1:, 1:]) == trees
    assert rd.linalg.det(rd.array(60 * np.eye(59, dtype=np.int64) - 1)) == 60**58


def _is_tree(edges: list[tuple[int, int]]) -> bool:
    """Whether 8 edges connect 9 points."""
    group = list(range(9))
    for a, b in edges:
        if group[a] == group[b]:
            return False
        old, new = group[a], group[b]
        group = [new if g == old else g for g in group]
    return True
