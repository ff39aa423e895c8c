"""The plain transforms in scripts/papers: what benchmarks compare with must be right, too."""

from pathlib import Path

import numpy as np
import pytest
from conftest import Processor
from small_prime_ffts import VARIANTS, CpuTransforms, GpuTransforms

import rnsdask as rd

# All have roots of order 256; the first two are the greatest such ones below 2**32 and 2**31.
PRIMES = rd.ModuliSet([4294962689, 2147483137, 257, 3329, 7681])


@pytest.fixture(scope="session")
def plain(
    on_each_processor: Processor, tmp_path_factory: pytest.TempPathFactory
) -> CpuTransforms | GpuTransforms:
    """Compiled once."""
    if on_each_processor.name == "cuda":
        return GpuTransforms()
    folder: Path = tmp_path_factory.mktemp("transforms")
    return CpuTransforms(folder)


def transform_by_definition(x: np.ndarray, root: int, p: int) -> list[int]:
    """The sums of ``x_i root**(i j)`` modulo p, for a root that is one of order N."""
    length = len(x)
    assert pow(root, length // 2, p) == p - 1
    powers = np.array([pow(root, k, p) for k in range(length)], dtype=np.uint64)
    exponents = np.outer(np.arange(length), np.arange(length)) % length
    return ((x.astype(np.uint64) * powers[exponents] % p).sum(axis=1) % p).tolist()


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("length", [2, 4, 8, 32, 256])
def test_transforms(
    length: int,
    rows: int,
    plain: CpuTransforms | GpuTransforms,
    on_each_processor: Processor,
    rng: np.random.Generator,
) -> None:
    primes = rd.ModuliSet(list(PRIMES)[:rows])
    bounds = np.array(list(primes), dtype=np.uint64)[:, None]
    greatest = np.broadcast_to(bounds - 1, (rows, length))
    last_only = greatest * (np.arange(length) == length - 1)
    random = rng.integers(0, bounds, (rows, length), dtype=np.uint64)
    roots = rd.PrimeFields(primes).roots(length)
    for values in (greatest, last_only, random):
        x = on_each_processor.xp.asarray(values.astype(np.uint32))
        calls = plain.calls(x, primes)
        assert tuple(calls) == VARIANTS
        expected = [
            transform_by_definition(row, root, p) for row, root, p in zip(values, roots, primes, strict=True)
        ]
        for name, call in calls.items():
            assert on_each_processor.to_numpy(call()).tolist() == expected, name
        assert on_each_processor.to_numpy(x).tolist() == values.tolist()
