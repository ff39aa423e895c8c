"""Large matrices and long polynomials over prime fields beyond 32 bits, against FLINT, on a CPU.

Sizes are around those of tiles and panels; half-gcds and division begin at short lengths in these tests.
"""

import itertools
from random import Random

import flint
import numpy as np
import pytest

import rnsdask as rd
from rnsdask.core import rows
from rnsdask.core.place import ALONE
from rnsdask.fields import elimination, half_gcd, polynomials

PRIMES = [
    2**32 + 15,
    2**50 - 27,
    2**59 - 55,
    2**60 - 93,
    2**61 - 1,
    2**62 - 57,
    2**63 - 25,
    2**64 - 2**32 + 1,
    2**64 - 59,
]


def of_matrix(words: np.ndarray, p: int) -> flint.nmod_mat:
    return flint.nmod_mat(*words.shape[-2:], words.ravel().tolist(), p)


def of_polynomial(words: np.ndarray, p: int) -> flint.nmod_poly:
    return flint.nmod_poly(words.ravel().tolist(), p)


def coefficients(polynomial: flint.nmod_poly) -> list[int]:
    return [int(c) for c in polynomial.coeffs()]


def entries(matrix: flint.nmod_mat) -> list[int]:
    return [int(c) for c in matrix.entries()]


def edges(p: int, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Words around those whose digits change: 0, the halves of p and of 2**64, and p - 1."""
    generator = np.random.default_rng(seed)
    words = generator.integers(0, p, shape, dtype=np.uint64)
    carry = 2**63 - 2**43 - 2**21
    special = [0, 1, p - 1, p - 2, p // 2, p // 2 + 1, 2**20, 2**21, 2**42 - 1, 2**63, carry, carry - 1]
    which = generator.integers(0, 2 * len(special), shape)
    for k, value in enumerate(special):
        words[which == k] = value % p
    return words


@pytest.mark.parametrize("p", PRIMES)
@pytest.mark.parametrize("shape", [(16, 16, 16), (17, 33, 19), (96, 128, 96), (97, 257, 105), (18, 8500, 17)])
def test_products_of_matrices(p: int, shape: tuple[int, int, int]) -> None:
    fields, (i, k, j) = rd.PrimeFields([p]), shape
    greatest = [np.full((1, *s), p - 1, dtype=np.uint64) for s in ((i, k), (k, j))]
    halves = [np.full((1, *s), p // 2, dtype=np.uint64) for s in ((i, k), (k, j))]
    least = [np.full((1, *s), p // 2 + 1, dtype=np.uint64) for s in ((i, k), (k, j))]
    mixed = [edges(p, (1, *s), seed) for seed, s in enumerate(((i, k), (k, j)))]
    for a, b in (greatest, halves, least, (halves[0], least[1]), mixed):
        expected = entries(of_matrix(a, p) * of_matrix(b, p))
        for order in ("C", "F"):
            x, y = (np.asarray(v[0], order=order)[None] for v in (a, b))
            assert fields.apply(rows.multiply_matrices, x, y).ravel().tolist() == expected


@pytest.mark.parametrize("p", PRIMES)
def test_elimination(p: int) -> None:
    fields, random = rd.PrimeFields([p]), np.random.default_rng(p % 2**32)
    for n in (31, 33, 95, 130):
        x = rd.FieldArray(edges(p, (1, n, n), n), fields)
        theirs = of_matrix(x.words, p)
        assert rd.linalg.det(x) == int(theirs.det())
        assert rd.linalg.inv(x).words.ravel().tolist() == entries(theirs.inv())
        right = fields.random_words((n, 20), random)
        solved = rd.linalg.solve(x, rd.FieldArray(right, fields))
        assert solved.words.ravel().tolist() == entries(theirs.inv() * of_matrix(right, p))
        P, L, U = rd.linalg.lu(x)
        assert ((P @ L @ U).words == x.words).all()


@pytest.mark.parametrize("p", [2**32 + 15, 2**61 - 1, 2**64 - 59])
@pytest.mark.parametrize("shape", [(90, 90), (70, 140), (140, 70)])
def test_elimination_of_matrices_without_full_rank(p: int, shape: tuple[int, int]) -> None:
    """Columns of zeros and sums of others fill whole panels, at the begin, between and at the end."""
    fields, (m, n) = rd.PrimeFields([p]), shape
    generator = np.random.default_rng(m)
    missing = [range(40), range(20, 60), range(n - 40, n), range(0, n, 2), range(n)]
    for seed, columns in enumerate(missing):
        words = edges(p, (1, m, n), seed)
        words[..., list(columns)] = 0
        low = fields.random_words((m, 9), generator)
        sums = fields.apply(rows.multiply_matrices, low, fields.random_words((9, n), generator))
        for x in (words, sums, np.where(np.arange(m)[:, None] < 50, 0, words)):
            form, rank = of_matrix(x, p).rref()
            ours = rd.FieldArray(x, fields)
            assert rd.linalg.rank(ours).tolist() == [rank]
            assert rd.linalg.rref(ours).matrix.words.ravel().tolist() == entries(form)
            P, L, U = rd.linalg.lu(ours)
            assert ((P @ L @ U).words == x).all()


def test_elimination_over_several_fields_and_matrices() -> None:
    fields = rd.PrimeFields([3, 2**31 - 1, 2**61 - 1, 2**64 - 59])
    x = fields.random_words((3, 70, 70), np.random.default_rng(4))
    found = elimination.determinants(x, fields.moduli)[..., 0, 0]
    for i, p in enumerate(fields.primes):
        assert found[i].tolist() == [int(of_matrix(x[i, b], p).det()) for b in range(3)]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin half-gcds and divisions by series at few coefficients."""
    monkeypatch.setattr(half_gcd, "LONG", 12)
    monkeypatch.setattr(half_gcd, "SHORT", 3)
    monkeypatch.setattr(polynomials, "WIDE_LONG", 10)
    monkeypatch.setattr(polynomials, "SHORT", 3)


def check_divisors(fields: rd.PrimeFields, f: np.ndarray, g: np.ndarray) -> None:
    """Compare the gcd, the resultant and both divisions of polynomials (1, A) and (1, C) with FLINT's."""
    p = fields.primes[0]
    theirs = of_polynomial(f, p), of_polynomial(g, p)
    divisor = coefficients(theirs[0].gcd(theirs[1]))
    found = fields.apply(rows.common_divisors, f, g)[0].tolist()
    assert found == divisor + [0] * (len(found) - len(divisor))
    assert fields.apply(rows.resultants, f, g).tolist() == [int(theirs[0].resultant(theirs[1]))]
    for (x, u), (y, v) in itertools.permutations(zip((f, g), theirs, strict=True)):
        if not y.any():
            continue
        packed = fields.apply(rows.divided, x, y, place=ALONE)[0].tolist()
        parts = packed[: x.shape[-1]], packed[x.shape[-1] :]
        for ours, values in zip(parts, map(coefficients, divmod(u, v)), strict=True):
            assert ours == values + [0] * (len(ours) - len(values))


@pytest.mark.parametrize("p", PRIMES)
@pytest.mark.usefixtures("short")
def test_sequences_whose_degrees_jump(p: int) -> None:
    """Polynomials whose remainder sequence has given quotients, times a common factor."""
    random, fields = Random(p), rd.PrimeFields([p])

    def any_of(degree: int) -> flint.nmod_poly:
        values = [random.choice((0, 1, p - 1, random.randrange(p))) for _ in range(degree)]
        return flint.nmod_poly([*values, random.choice((1, p - 1, random.randrange(1, p)))], p)

    for degrees in ([1] * 60, [9, 1, 1, 30, 1, 2], [40], [1, 40], [40, 1], [3] * 15, [20, 20], [1, 1, 50, 1]):
        for common in (0, 1, 25):
            f, g = flint.nmod_poly([1], p), flint.nmod_poly([0], p)
            for degree in degrees:
                f, g = f * any_of(degree) + g, f
            factor = any_of(common)
            f, g = f * factor, g * factor
            x, y = (np.array([coefficients(v) or [0]], dtype=np.uint64) for v in (f, g))
            check_divisors(fields, x, y)
            check_divisors(fields, y, x)


@pytest.mark.parametrize("p", [2, 3, 2**61 - 1, 2**64 - 59])
@pytest.mark.usefixtures("short")
def test_polynomials_of_all_kinds(p: int) -> None:
    """Zeros, constants, leading zeros, multiples, p - 1 everywhere, in one batch and alone."""
    fields = rd.PrimeFields([p, 2**61 - 1] if p < 2**32 else [p])
    top = np.array([q - 1 for q in fields.primes], dtype=np.uint64)[:, None]
    random = fields.random_words((2, 24), np.random.default_rng(p % 2**32))
    kinds = [np.zeros_like(random[:, 0]) for _ in range(6)]
    kinds[1][:, :1] = top
    kinds[2][:, :] = top
    kinds[3][:, :12] = random[:, 0, :12]
    kinds[4][:, 23:] = 1
    kinds[5][:, :23] = random[:, 1, :23]
    pairs = list(itertools.product([*kinds, *random.swapaxes(0, 1)], repeat=2))
    x, y = (np.stack(side, axis=1) for side in zip(*pairs, strict=True))
    divisors, resultants = (fields.apply(row, x, y) for row in (rows.common_divisors, rows.resultants))
    discriminants = fields.apply(rows.discriminants, x)
    for i, q in enumerate(fields.primes):
        for b in range(len(pairs)):
            f, g = of_polynomial(x[i, b], q), of_polynomial(y[i, b], q)
            divisor = coefficients(f.gcd(g))
            assert divisors[i, b].tolist() == divisor + [0] * (24 - len(divisor))
            expected = int(f.resultant(g)) if f.degree() >= 0 and g.degree() >= 0 else 0
            assert resultants[i, b] == expected
            if q > 2**32 and f.degree() > 0:
                sign = -1 if f.degree() % 4 >= 2 else 1
                assert (
                    discriminants[i, b]
                    == sign * int(f.resultant(f.derivative()) / f.leading_coefficient()) % q
                )
    nonzero = [b for b in range(len(pairs)) if y[:, b].any(axis=1).all()]
    packed = fields.apply(rows.divided, x[:, nonzero], y[:, nonzero], place=ALONE)
    for i, q in enumerate(fields.primes):
        for k, b in enumerate(nonzero):
            quotient, rest = divmod(of_polynomial(x[i, b], q), of_polynomial(y[i, b], q))
            quotient, rest = coefficients(quotient), coefficients(rest)
            assert packed[i, k, :24].tolist() == quotient + [0] * (24 - len(quotient))
            assert packed[i, k, 24:].tolist() == rest + [0] * (23 - len(rest))
    with pytest.raises(ZeroDivisionError, match=rf"index \(0,\) is 0 modulo {p}"):
        fields.apply(rows.divided, x, y, place=ALONE)


@pytest.mark.parametrize("p", [2**61 - 1, 2**64 - 59])
def test_polynomials_as_long_as_those_that_are_halved(p: int) -> None:
    fields, generator = rd.PrimeFields([p]), np.random.default_rng(p % 2**32)
    length = half_gcd.LONG + 500
    common = fields.random_words((700,), generator)
    f, g = (fields.random_words((k,), generator) for k in (length, length - 3))
    check_divisors(fields, f, g)
    check_divisors(fields, *(fields.apply(rows.window, v, common) for v in (f, g)))
