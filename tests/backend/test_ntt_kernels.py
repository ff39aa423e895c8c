"""Kernels of transforms and cyclic products: every length and way to cut it, both processors alike."""

from itertools import product
from typing import Any

import flint
import numpy as np
import pytest
from conftest import Processor

from rnsdask.backend import cpu, kernels_of
from rnsdask.constants import transform_constants, twists
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.primes import is_prime, primes_below
from rnsdask.core.wide_moduli import WideModuli

# The greatest primes with long transforms below each power of two where another way begins, and one above.
GREATEST = [next(primes_below(2**bits + 1, 2**20)) for bits in (30, 31, 32)]
LEAST = next(p for p in range(2**31 + 1, 2**32, 2**20) if is_prime(p))
SETS = [ModuliSet(primes) for primes in (GREATEST[:1], GREATEST[:2], [LEAST, *GREATEST])]


# Primes of words of 8 bytes by the ways to compute with them, and several lengths of primes together.
WIDE_SETS = [
    WideModuli(tuple(next(primes_below(2**bits, 2**22)) for bits in widths))
    for widths in ((60,), (62, 33, 50), (63, 61), (64,))
]

# The greatest and the least ones for each set of instructions, and a few shorter than 32 bits.
WIDEST = (
    786433,
    next(primes_below(2**32, 2**18)),
    *(next(p for p in range(2**bits + 1, 2**64, 2**18) if is_prime(p)) for bits in (50, 62, 63)),
    *(next(primes_below(2**bits, 2**18)) for bits in (50, 62, 63, 64)),
)


def drawn(rng: np.random.Generator, moduli: ModuliSet | WideModuli, count: int) -> np.ndarray:
    """Residues, p - 1 among them and in runs."""
    words = np.stack([rng.integers(0, p, count, dtype=np.uint64) for p in moduli])
    greatest = np.array([p - 1 for p in moduli], dtype=np.uint64)[:, None]
    words[:, : count // 3] = np.where(rng.integers(2, size=count // 3), greatest, words[:, : count // 3])
    return words if isinstance(moduli, WideModuli) else words.astype(np.uint32)


def in_wider_rows(words: np.ndarray, xp: Any) -> Any:
    """Copy residues to a processor, into rows that lie further apart and begin anywhere."""
    rows, count = words.shape
    held = xp.zeros((rows, count + 5), dtype=words.dtype)
    held[:, 3 : 3 + count] = xp.asarray(words)
    return held[:, 3 : 3 + count]


@pytest.mark.gpu
@pytest.mark.parametrize("length", [2**e for e in range(21)])
def test_transforms_are_those_of_the_cpu(length: int, rng: np.random.Generator) -> None:
    import cupy

    for moduli, runs in zip(SETS, (1, 3, 2 if length > 2**14 else 67), strict=True):
        words = drawn(rng, moduli, length * runs)
        for inverse in (False, True):
            constants = transform_constants(moduli, length, inverse)
            expected, found = np.empty_like(words), in_wider_rows(np.empty_like(words), cupy)
            cpu.ntt(words, constants, expected)
            kernels_of(found).ntt(in_wider_rows(words, cupy), constants, found)
            np.testing.assert_array_equal(found.get(), expected)


def compare_long_primes(moduli: WideModuli, length: int, runs: int, rng: np.random.Generator) -> None:
    """Transforms on a GPU with those of the CPU, out of place and in place."""
    import cupy

    words = drawn(rng, moduli, length * runs)
    for inverse in (False, True):
        constants, expected = transform_constants(moduli, length, inverse), np.empty_like(words)
        cpu.ntt(words, constants, expected)
        x, found = in_wider_rows(words, cupy), in_wider_rows(np.empty_like(words), cupy)
        kernels_of(found).ntt(x, constants, found)
        np.testing.assert_array_equal(found.get(), expected)
        np.testing.assert_array_equal(x.get(), words)
        kernels_of(x).ntt(x, constants, x)
        np.testing.assert_array_equal(x.get(), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("log_length", range(23))
def test_transforms_modulo_long_primes_are_those_of_the_cpu(
    log_length: int, rng: np.random.Generator
) -> None:
    for moduli, runs in zip(WIDE_SETS, (100 if log_length <= 14 else 9, 3, 1, 1), strict=True):
        compare_long_primes(moduli, 2**log_length, runs, rng)


def compare_conventions(
    moduli: ModuliSet | WideModuli, length: int, runs: int, rng: np.random.Generator
) -> None:
    """Negacyclic transforms, and both orders, on a GPU with those of the CPU."""
    import cupy

    words = drawn(rng, moduli, length * runs)
    for is_inverse in (False, True):
        constants, psi = transform_constants(moduli, length, is_inverse), twists(moduli, length, is_inverse)
        for powers, is_reversed in ((psi, False), (psi, True), (None, True)):
            x, found = in_wider_rows(words, cupy), in_wider_rows(np.empty_like(words), cupy)
            how: dict[str, Any] = {"twists": powers, "is_inverse": is_inverse, "is_reversed": is_reversed}
            expected = np.empty_like(words)
            cpu.ntt(words, constants, expected, **how)
            kernels_of(found).ntt(x, constants, found, **how)
            np.testing.assert_array_equal(found.get(), expected)
            np.testing.assert_array_equal(x.get(), words)


@pytest.mark.gpu
@pytest.mark.parametrize("log_length", range(22))
def test_twists_and_orders_are_those_of_the_cpu(log_length: int, rng: np.random.Generator) -> None:
    for moduli, runs in zip(WIDE_SETS, (100 if log_length <= 14 else 9, 3, 1, 1), strict=True):
        compare_conventions(moduli, 2**log_length, runs, rng)
    if log_length < 20:
        for moduli, runs in zip(SETS, (1, 3, 2 if log_length > 14 else 67), strict=True):
            compare_conventions(moduli, 2**log_length, runs, rng)


@pytest.mark.gpu
@pytest.mark.parametrize("length", [2**21, 2**22, 2**23, 2**25])
def test_long_transforms_of_the_cpu(length: int, rng: np.random.Generator) -> None:
    import cupy

    moduli = ModuliSet([next(primes_below(2**31, length))])
    words = drawn(rng, moduli, length)
    constants, expected, found = (
        transform_constants(moduli, length, False),
        np.empty_like(words),
        cupy.empty_like(words),
    )
    cpu.ntt(words, constants, expected)
    kernels_of(found).ntt(cupy.asarray(words), constants, found)
    assert (found.get() == expected).all()
    back = cupy.empty_like(found)
    kernels_of(found).ntt(found, transform_constants(moduli, length, True), back)
    assert (back.get() == words).all()


@pytest.mark.gpu
@pytest.mark.parametrize(("log_length", "runs"), [(15, 131), (16, 67), (18, 17), (19, 9), (20, 7)])
def test_many_transforms_of_two_passes(log_length: int, runs: int, rng: np.random.Generator) -> None:
    """More than the memory between passes holds at a time, in place too."""
    import cupy

    length = 2**log_length
    for moduli in SETS[1:]:
        words = drawn(rng, moduli, runs * length)
        for inverse in (False, True):
            constants = transform_constants(moduli, length, inverse)
            expected, found = np.empty_like(words), in_wider_rows(words, cupy)
            cpu.ntt(words, constants, expected)
            kernels_of(found).ntt(found, constants, found)
            np.testing.assert_array_equal(found.get(), expected)


@pytest.mark.gpu
@pytest.mark.parametrize(("log_length", "runs"), [(22, 3), (24, 1)])
def test_many_transforms_of_three_passes(log_length: int, runs: int, rng: np.random.Generator) -> None:
    import cupy

    length = 2**log_length
    primes = primes_below(2**31, length)
    moduli = ModuliSet([next(primes), next(primes)])
    words = drawn(rng, moduli, runs * length)
    for inverse in (False, True):
        constants = transform_constants(moduli, length, inverse)
        expected, found = np.empty_like(words), cupy.empty_like(words)
        cpu.ntt(words, constants, expected)
        kernels_of(found).ntt(cupy.asarray(words), constants, found)
        np.testing.assert_array_equal(found.get(), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("lengths", [[5, 6], [4, 3, 5], [6, 4, 6]])
def test_all_ways_to_cut_a_transform(
    lengths: list[int], rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cupy

    from rnsdask.backend.cuda import ntt

    length, moduli = 2 ** sum(lengths), SETS[2]
    monkeypatch.setattr(ntt, "longest_row", lambda _: 4)
    monkeypatch.setattr(ntt, "overlapped_matrix", lambda _: 0)
    monkeypatch.setattr(ntt, "cut_length", lambda *_: lengths)
    monkeypatch.setattr(ntt, "cut_product", lambda _: lengths[:-1])
    monkeypatch.setattr(ntt, "BETWEEN", 2 * length)  # three runs of four rows are done in several parts
    for long_primes in WIDE_SETS:
        compare_long_primes(long_primes, length, 3, rng)
        compare_conventions(long_primes, length, 3, rng)
    compare_conventions(moduli, length, 3, rng)
    words, other = drawn(rng, moduli, 3 * length), drawn(rng, moduli, 3 * length)
    for inverse in (False, True):
        constants = transform_constants(moduli, length, inverse)
        expected, found = np.empty_like(words), cupy.empty_like(words)
        cpu.ntt(words, constants, expected)
        ntt.ntt(cupy.asarray(words), constants, found)
        np.testing.assert_array_equal(found.get(), expected)
    for second in (other, other[:, :length]):
        result = products(words, second, moduli, length, cupy)
        np.testing.assert_array_equal(result, products_by_transforms(words, second, moduli, length))


def products(x: np.ndarray, y: np.ndarray, moduli: ModuliSet, length: int, xp: Any) -> np.ndarray:
    """By the kernel, of rows that lie apart, which it leaves as they are; on a GPU the results do too."""
    constants = [transform_constants(moduli, length, inverse) for inverse in (False, True)]
    a, b = (in_wider_rows(words, xp) for words in (x, y))
    out = np.zeros((len(x), max(x.shape[1], y.shape[1])), dtype=np.uint32)
    out = out if xp is np else in_wider_rows(out, xp)
    kernels_of(out).cyclic_products(a, b, *constants, out)
    host = np.asarray if xp is np else xp.asnumpy
    np.testing.assert_array_equal(host(a), x)
    np.testing.assert_array_equal(host(b), y)
    return host(out)


def products_by_transforms(x: np.ndarray, y: np.ndarray, moduli: ModuliSet, length: int) -> np.ndarray:
    def transformed(words: np.ndarray, inverse: bool) -> np.ndarray:
        out = np.empty_like(words)
        cpu.ntt(words, transform_constants(moduli, length, inverse), out)
        return out.reshape(len(words), -1, length)

    sizes = np.array(list(moduli), dtype=np.uint64)[:, None, None]
    a, b = (transformed(np.ascontiguousarray(words), False).astype(np.uint64) for words in (x, y))
    product = (a * b % sizes).astype(np.uint32).reshape(len(x), -1)
    return transformed(product, True).reshape(product.shape)


@pytest.mark.parametrize("length", [2**e for e in range(17)])
def test_cyclic_products(length: int, rng: np.random.Generator, on_each_processor: Processor) -> None:
    xp = on_each_processor.xp
    for moduli, runs in zip(SETS, (1, 3, 2 if length > 2**10 else 35), strict=True):
        x, y = (drawn(rng, moduli, length * runs) for _ in range(2))
        for a, b in ((x, y), (x, y[:, :length]), (x[:, :length], y)):
            found = products(a, b, moduli, length, xp)
            np.testing.assert_array_equal(found, products_by_transforms(a, b, moduli, length))


@pytest.mark.parametrize("method", cpu.transform_methods())
@pytest.mark.parametrize("length", [2**e for e in range(12)])
def test_few_short_transforms_are_those_of_many(length: int, method: str, rng: np.random.Generator) -> None:
    """Few are cut as long ones are, and many share a tile."""
    most = 35
    for moduli in SETS:
        words, other = drawn(rng, moduli, length * most), drawn(rng, moduli, length * most)
        constants = [transform_constants(moduli, length, inverse) for inverse in (False, True)]
        many = [np.empty_like(words) for _ in range(3)]
        for c, out in zip(constants, many, strict=False):
            cpu.ntt(words, c, out)
        cpu.cyclic_products(words, other, *constants, many[2])
        for first, stop in ((0, 1), (1, 3), (3, 6), (6, 13), (13, most)):
            part = np.s_[:, first * length : stop * length]
            x, y = (np.ascontiguousarray(v[part]) for v in (words, other))
            few = [np.empty_like(x) for _ in range(3)]
            for c, out in zip(constants, few, strict=False):
                cpu.ntt(x, c, out, method)
            cpu.cyclic_products(x, y, *constants, few[2], method)
            for found, expected in zip(few, many, strict=True):
                np.testing.assert_array_equal(found, expected[part])


@pytest.mark.parametrize("method", cpu.wide_methods())
@pytest.mark.parametrize("log_length", [*range(13), 15, 16, 17, 18])
def test_instruction_sets_transform_long_primes(
    method: str, log_length: int, rng: np.random.Generator
) -> None:
    """Products of transforms are FLINT's cyclic products, of the greatest residues and any."""
    length = 2**log_length
    moduli = WideModuli(WIDEST if log_length < 16 else WIDEST[-6:])
    x, y = (drawn(rng, moduli, 3 * length) for _ in range(2))
    x[:, :length], y[:, 2 * length :] = (
        np.array([[p - 1] for p in moduli], dtype=np.uint64) for _ in range(2)
    )
    forward, inverse = (transform_constants(moduli, length, back) for back in (False, True))
    transforms = np.empty((2, *x.shape), dtype=np.uint64)
    for words, out in zip((x, y), transforms, strict=True):
        cpu.ntt(words, forward, out, method)
    products = np.array(
        [
            [a * b % p for a, b in zip(u, v, strict=True)]
            for u, v, p in zip(*transforms.tolist(), moduli, strict=True)
        ],
        dtype=np.uint64,
    )
    found = np.empty_like(x)
    cpu.ntt(products, inverse, found, method)
    for p, *rows in zip(moduli, found.tolist(), x.tolist(), y.tolist(), strict=True):
        for first in range(0, 3 * length, length):
            row, a, b = (values[first : first + length] for values in rows)
            full = [int(c) for c in (flint.nmod_poly(a, p) * flint.nmod_poly(b, p)).coeffs()]
            full += [0] * (2 * length - len(full))
            assert row == [(low + high) % p for low, high in zip(full[:length], full[length:], strict=True)]


def reversed_places(length: int) -> list[int]:
    bits = length.bit_length() - 1
    return [int(f"{k:0{bits}b}"[::-1], 2) if bits else 0 for k in range(length)]


def assert_twists_and_orders(
    moduli: ModuliSet | WideModuli, words: np.ndarray, length: int, is_inverse: bool, method: str
) -> None:
    """Compare with plain transforms of words that Python's integers multiply and NumPy puts in order."""
    places, constants = reversed_places(length), transform_constants(moduli, length, is_inverse)
    roots = twists(moduli, length, is_inverse)
    powers = [[pow(psi, k, p) for k in range(length)] for psi, p in zip(roots.tolist(), moduli, strict=True)]

    def twisted(array: np.ndarray) -> np.ndarray:
        sizes = np.array(list(moduli), dtype=object)[:, None, None]
        factors = np.array(powers, dtype=object)[:, None]
        product = array.reshape(len(array), -1, length).astype(object) * factors % sizes
        return product.reshape(array.shape).astype(array.dtype)

    def in_order(array: np.ndarray) -> np.ndarray:
        return array.reshape(len(array), -1, length)[..., places].reshape(array.shape)

    for psi, is_reversed in product([None, roots], [False, True]):
        given, expected, found = words, np.empty_like(words), np.empty_like(words)
        if is_inverse and is_reversed:
            given = in_order(given)
        if not is_inverse and psi is roots:
            given = twisted(given)
        cpu.ntt(np.ascontiguousarray(given), constants, expected, "portable")
        if is_inverse and psi is roots:
            expected = twisted(expected)
        if not is_inverse and is_reversed:
            expected = in_order(expected)
        how: dict[str, Any] = {"twists": psi, "is_inverse": is_inverse, "is_reversed": is_reversed}
        cpu.ntt(words, constants, found, method, **how)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("method", cpu.wide_methods())
@pytest.mark.parametrize("is_inverse", [False, True])
@pytest.mark.parametrize("log_length", [*range(13), 16])
def test_twists_and_orders_of_long_primes(
    method: str, is_inverse: bool, log_length: int, rng: np.random.Generator
) -> None:
    length = 2**log_length
    moduli = WideModuli(WIDEST if log_length < 12 else WIDEST[-6:])
    assert_twists_and_orders(moduli, drawn(rng, moduli, 2 * length), length, is_inverse, method)


@pytest.mark.parametrize("method", cpu.transform_methods())
@pytest.mark.parametrize("is_inverse", [False, True])
@pytest.mark.parametrize("log_length", range(15))
def test_twists_and_orders_of_short_primes(
    method: str, is_inverse: bool, log_length: int, rng: np.random.Generator
) -> None:
    """Few are cut as long ones are, and many share a tile."""
    length = 2**log_length
    for count in (1, 2, 7, 33) if log_length < 11 else (1, 2):
        for moduli in SETS[1:]:
            words = drawn(rng, moduli, count * length)
            assert_twists_and_orders(moduli, words, length, is_inverse, method)


@pytest.mark.parametrize("length", [1, 2, 16, 512, 2**14])
def test_cyclic_products_are_those_of_flint(
    length: int, rng: np.random.Generator, on_each_processor: Processor
) -> None:
    xp = on_each_processor.xp
    moduli = SETS[2]
    x, y = (drawn(rng, moduli, length) for _ in range(2))
    found = products(x, y, moduli, length, xp)
    for row, a, b, p in zip(found.tolist(), x.tolist(), y.tolist(), moduli, strict=True):
        full = [int(c) for c in (flint.nmod_poly(a, p) * flint.nmod_poly(b, p)).coeffs()]
        full += [0] * (2 * length - len(full))
        assert row == [(low + high) % p for low, high in zip(full[:length], full[length:], strict=True)]
