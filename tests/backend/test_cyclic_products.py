"""Transforms and cyclic products by each instruction set of this processor, against FLINT and each other."""

import flint
import numpy as np
import pytest

from rnsdask.backend import cpu
from rnsdask.constants import transform_constants
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.primes import primes_below

METHODS = cpu.transform_methods()

# The greatest primes with transforms of length 2**17 below each power of two where another way begins.
LARGE = ModuliSet([next(primes_below(2**k, 2**17)) for k in (32, 31, 30)])
# Modulo the least primes residues are all there is, from -1 to 1.
SMALL = {1: (2, 3, 2**32 - 5), 2: (3, 2**31 - 1, 2**32 - 5), 4: (5, 13), 16: (17, 97), 256: (257,)}
LENGTHS = [2**e for e in range(15)]


def drawn(rng: np.random.Generator, moduli: ModuliSet, count: int, length: int) -> np.ndarray:
    """Runs (n, count N): any residues, but p - 1 throughout in the first, only at the end of the last."""
    runs = np.stack([rng.integers(0, p, (count, length), dtype=np.uint64) for p in moduli])
    for i, p in enumerate(moduli):
        runs[i, -1] = 0
        runs[i, -1, -1] = p - 1
        runs[i, 0] = p - 1
    return runs.astype(np.uint32).reshape(len(moduli), -1)


def by_flint(x: np.ndarray, y: np.ndarray, p: int) -> list[int]:
    """The cyclic product of two runs."""
    product = (flint.nmod_poly(x.tolist(), p) * flint.nmod_poly(y.tolist(), p)).coeffs()
    result = [0] * len(x)
    for k, c in enumerate(product):
        result[k % len(x)] = (result[k % len(x)] + int(c)) % p
    return result


def check(moduli: ModuliSet, length: int, x: np.ndarray, y: np.ndarray, count: int, method: str) -> None:
    forward, inverse = (transform_constants(moduli, length, direction) for direction in (False, True))
    out = np.empty((len(moduli), count * length), dtype=np.uint32)
    cpu.cyclic_products(x, y, forward, inverse, out, method)
    runs = [a.reshape(len(moduli), -1, length) for a in (x, y, out)]
    for i, p in enumerate(moduli):
        for k in {0, count // 2, count - 1}:
            a, b, c = (run[i, k % run.shape[1]] for run in runs)
            assert c.tolist() == by_flint(a, b, p), (method, p, k)


@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(length: int, rng: np.random.Generator) -> None:
    for moduli in (LARGE, ModuliSet(SMALL[length]) if length in SMALL else LARGE):
        for count in (1, 33 if length <= 64 else 3):
            x, y = (drawn(rng, moduli, count, length) for _ in range(2))
            for method in METHODS if length <= 2**12 else METHODS[-1:]:
                check(moduli, length, x, y, count, method)


@pytest.mark.parametrize("length", [1, 8, 512, 1024, 4096])
def test_one_run_serves_for_all(length: int, rng: np.random.Generator) -> None:
    x, y = drawn(rng, LARGE, 35 if length < 1024 else 3, length), drawn(rng, LARGE, 1, length)
    for method in METHODS:
        check(LARGE, length, x, y, x.shape[1] // length, method)
        check(LARGE, length, y, x, x.shape[1] // length, method)


@pytest.mark.parametrize("length", [1, 16, 1024, 2048])
def test_squares(length: int, rng: np.random.Generator) -> None:
    x = drawn(rng, LARGE, 3, length)
    check(LARGE, length, x, x, 3, METHODS[-1])
    check(LARGE, length, x[:, :length], x[:, :length], 1, METHODS[-1])


@pytest.mark.parametrize("length", [2**e for e in (0, 1, 2, 3, 5, 9, 10, 11, 13, 17)])
@pytest.mark.parametrize("inverse", [False, True])
def test_all_methods_transform_alike(length: int, inverse: bool, rng: np.random.Generator) -> None:
    constants = transform_constants(LARGE, length, inverse)
    x = drawn(rng, LARGE, 33 if length <= 64 else 2, length)
    # Where the first words begin a line of the cache, and where they do not.
    for residues in (x, np.ascontiguousarray(np.pad(x, ((0, 0), (1, 0))))[:, 1:]):
        expected, found = np.empty_like(x), np.empty_like(x)
        cpu.ntt(residues, constants, expected, "portable")
        for method in METHODS[1:]:
            cpu.ntt(residues, constants, found, method)
            np.testing.assert_array_equal(found, expected, method)


def test_arguments() -> None:
    assert METHODS[0] == "portable"
    forward, inverse = (transform_constants(LARGE, 8, direction) for direction in (False, True))
    x, out = np.zeros((3, 16), dtype=np.uint32), np.empty((3, 16), dtype=np.uint32)
    with pytest.raises(ValueError, match="no such method"):
        cpu.ntt(x, forward, out, "slow")
    with pytest.raises(ValueError, match="as many elements a row as the result, or one run"):
        cpu.cyclic_products(np.zeros((3, 24), dtype=np.uint32), x, forward, inverse, out)
    with pytest.raises(ValueError, match="a row for each modulus"):
        cpu.cyclic_products(x, x[:2], forward, inverse, out)
    cpu.cyclic_products(x[:, :0], x[:, :8], forward, inverse, out[:, :0].copy())
