"""Convolutions modulo any m of chunks of residues, against FLINT's products of integer polynomials."""

import itertools

import flint
import numpy as np
import pytest
from conftest import Processor

from rnsdask.backend import kernels_of
from rnsdask.constants import THREE_PRIMES, three_prime_constants
from rnsdask.core.moduli import ModuliSet
from rnsdask.fields import convolution

# With transforms of long runs, of short ones, of none; tiny, even, composite, about 31 and 32 bits.
MIXED = ModuliSet(
    [2013265921, 2**32, 12289, 4294967291, 3, 2**31 - 1, 4293918721, 5 * 7, 2**32 - 1 - 2**16 + 2]
)
OWN = ModuliSet([469762049, 4293918721])
LENGTHS = [1, 2, 3, 5, 8, 9, 16, 31, 33, 64, 70]


def drawn(rng: np.random.Generator, moduli: ModuliSet, shape: tuple[int, ...]) -> np.ndarray:
    """Residues: any, but m - 1 throughout for every third modulus."""
    rows = [rng.integers(0, m, shape, dtype=np.uint64) for m in moduli]
    for row, m in itertools.islice(zip(rows, moduli, strict=True), 0, None, 3):
        row[...] = m - 1
    return np.stack(rows).astype(np.uint32)


def full(x: np.ndarray, y: np.ndarray, moduli: ModuliSet) -> np.ndarray:
    """Convolutions (n, A + B - 1) of residues (n, A) and (n, B), as Python's integers."""
    rows = []
    for a, b, m in zip(x, y, moduli, strict=True):
        product = (flint.fmpz_poly(a.tolist()) * flint.fmpz_poly(b.tolist())).coeffs()
        rows.append([int(c) % m for c in product] + [0] * (len(a) + len(b) - 1 - len(product)))
    return np.array(rows, dtype=object)


def folded(x: np.ndarray, y: np.ndarray, moduli: ModuliSet, sign: int) -> np.ndarray:
    length, result = x.shape[1], full(x, y, moduli)
    result[:, : length - 1] += sign * result[:, length:]
    return result[:, :length] % np.array(list(moduli), dtype=object)[:, None]


@pytest.fixture(params=["as measured", "transforms only"])
def thresholds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "transforms only":
        monkeypatch.setattr(convolution, "SHORT_OWN", 0)
        monkeypatch.setattr(convolution, "SHORT_OTHER", 0)


@pytest.mark.usefixtures("thresholds")
def test_lengths_and_windows(on_each_processor: Processor, rng: np.random.Generator) -> None:
    longer = [(1000, 33), (97, 600), (700, 700), (4100, 200), (96, 97), (511, 513), (512, 512), (512, 513)]
    for lengths in [*itertools.product(LENGTHS, repeat=2), *longer]:
        x, y = (drawn(rng, MIXED, (length,)) for length in lengths)
        expected = full(x, y, MIXED)
        a, b = map(on_each_processor.xp.asarray, (x, y))
        found = on_each_processor.to_numpy(convolution.convolve(a, b, MIXED))
        np.testing.assert_array_equal(found, expected, str(lengths))
        first = int(rng.integers(0, expected.shape[1]))
        stop = int(rng.integers(first, expected.shape[1])) + 1
        found = on_each_processor.to_numpy(convolution.convolve(a, b, MIXED, first, stop))
        np.testing.assert_array_equal(found, expected[:, first:stop], str((lengths, first, stop)))


@pytest.mark.usefixtures("thresholds")
@pytest.mark.parametrize("length", [1, 2, 3, 8, 9, 16, 33, 64, 97, 100, 128, 255, 256, 1000, 1024])
def test_cyclic(on_each_processor: Processor, length: int, rng: np.random.Generator) -> None:
    for moduli, is_negacyclic in itertools.product((MIXED, OWN), (False, True)):
        x, y = (drawn(rng, moduli, (length,)) for _ in range(2))
        a, b = map(on_each_processor.xp.asarray, (x, y))
        found = on_each_processor.to_numpy(convolution.convolve_cyclic(a, b, moduli, is_negacyclic))
        np.testing.assert_array_equal(found, folded(x, y, moduli, -1 if is_negacyclic else 1))


def test_long_operands(on_each_processor: Processor, rng: np.random.Generator) -> None:
    moduli = ModuliSet([2013265921, 2**32, 4294967291])
    x, y = (drawn(rng, moduli, (length,)) for length in (2**12, 2**12 + 1))
    a, b = map(on_each_processor.xp.asarray, (x, y))
    found = on_each_processor.to_numpy(convolution.convolve(a, b, moduli))
    np.testing.assert_array_equal(found, full(x, y, moduli))


@pytest.mark.usefixtures("thresholds")
@pytest.mark.parametrize(
    "batches",
    [((3,), (3,)), ((3, 1), (4,)), ((1,), (5,)), ((5,), ()), ((2, 3), (2, 1)), ((0,), (1,)), ((2,), (0, 1))],
)
@pytest.mark.parametrize("lengths", [(300, 300), (1500, 70), (50, 9), (7, 200)])
def test_batches_broadcast(
    on_each_processor: Processor,
    batches: tuple[tuple[int, ...], tuple[int, ...]],
    lengths: tuple[int, int],
    rng: np.random.Generator,
) -> None:
    x, y = (drawn(rng, MIXED, (*batch, n)) for batch, n in zip(batches, lengths, strict=True))
    batch = np.broadcast_shapes(*batches)
    a, b = map(on_each_processor.xp.asarray, (x, y))
    found = on_each_processor.to_numpy(convolution.convolve(a, b, MIXED))
    assert found.shape == (len(MIXED), *batch, sum(lengths) - 1)
    x, y = (
        np.broadcast_to(
            v[(slice(None), *(None,) * (len(batch) + 2 - v.ndim))], (len(MIXED), *batch, v.shape[-1])
        )
        for v in (x, y)
    )
    for index in np.ndindex(batch):
        place = (slice(None), *index)
        np.testing.assert_array_equal(found[place], full(x[place], y[place], MIXED))


def test_any_layout(on_each_processor: Processor, rng: np.random.Generator) -> None:
    xp = on_each_processor.xp
    x, y = drawn(rng, MIXED, (120, 4)), drawn(rng, MIXED, (30,))
    expected = convolution.convolve(np.moveaxis(x, 1, -1).copy(), y, MIXED)
    found = convolution.convolve(
        xp.moveaxis(xp.asarray(x), 1, -1), xp.asarray(y[:, ::-1].copy())[:, ::-1], MIXED
    )
    np.testing.assert_array_equal(on_each_processor.to_numpy(found), expected)


def test_sums_of_products_of_any_length(on_each_processor: Processor, rng: np.random.Generator) -> None:
    xp = on_each_processor.xp
    for lengths in ((1, 1), (130, 3), (600, 513), (1200, 1024), (129, 512)):
        x, y = (drawn(rng, MIXED, (1, length)) for length in lengths)
        expected = full(x[:, 0], y[:, 0], MIXED)
        for first in (0, 1, expected.shape[1] - 1):
            out = xp.empty((len(MIXED), 1, expected.shape[1] - first), dtype=np.uint32)
            kernels_of(out).convolve(xp.asarray(x), xp.asarray(y), MIXED, first, out)
            np.testing.assert_array_equal(on_each_processor.to_numpy(out)[:, 0], expected[:, first:])


def test_remainders_of_three_primes(on_each_processor: Processor, rng: np.random.Generator) -> None:
    xp, product = on_each_processor.xp, THREE_PRIMES.product
    p0, p1, _ = THREE_PRIMES
    values = [0, 1, product - 1, p0, p0 * p1, p0 * p1 - 1, 2**26 * (2**32 - 1) ** 2]
    values += [int.from_bytes(rng.bytes(16)) % product for _ in range(93)]
    residues = np.array([[v % p for v in values] * len(MIXED) for p in THREE_PRIMES], dtype=np.uint32)
    out = xp.empty((len(MIXED), len(values)), dtype=np.uint32)
    kernels_of(out).three_prime_remainders(xp.asarray(residues), three_prime_constants(MIXED), out)
    assert on_each_processor.to_numpy(out).tolist() == [[v % m for v in values] for m in MIXED]


def test_the_three_primes_hold_the_longest_sums() -> None:
    assert THREE_PRIMES.product > convolution.LONGEST * (2**32 - 1) ** 2
    assert all((p - 1) % convolution.LONGEST == 0 for p in THREE_PRIMES)


def test_too_long() -> None:
    with pytest.raises(
        ValueError, match=r"at most 33554432 numbers where both are so long, got 40000000 and"
    ):
        convolution.plan_blocks(4 * 10**7, 4 * 10**7, 0, 8 * 10**7 - 1)
    plan = convolution.plan_blocks(2**40, 2**20, 0, 2**40)
    assert 2**21 <= plan.length <= convolution.LONGEST
    assert plan.blocks * plan.step >= 2**40


def test_one_run_by_many_modulo_one_prime(on_each_processor: Processor) -> None:
    """Residues of one row and one run are of both layouts, in C and in Fortran order."""
    (p,) = moduli = ModuliSet.ntt_primes(20, 64)
    one, many = ((np.arange(k * 64).reshape(1, k, 64) * 7919 % p).astype(np.uint32) for k in (1, 5))
    x, y = (on_each_processor.xp.asarray(v) for v in (one, many))
    found = on_each_processor.to_numpy(convolution.cyclic_products(x, y, moduli))
    for run, product in zip(many[0], found[0], strict=True):
        full = np.convolve(one[0, 0].astype(object), run.astype(object))
        full[:63] += full[64:]
        assert product.tolist() == (full[:64] % p).tolist()
