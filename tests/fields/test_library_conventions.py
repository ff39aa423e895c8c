"""Roots, orders, rounding and halves of SEAL, OpenFHE, Lattigo and HEonGPU: the rows of the table in
docs/homomorphic-encryption.md, against their algorithms in plain Python."""

import math
import random
from collections.abc import Callable
from typing import Any

import flint
import numpy as np
import pytest
from conftest import Processor
from oracles import homomorphic

import rnsdask as rd

PRIMES = [576460752303415297, 1152921504606830593, 2**64 - 2**32 + 1, 65537]  # of 59, 60, 64 and 17 bits
NARROW = [65537, 786433, 2013265921]

LIBRARIES: dict[str, tuple[Callable[..., list[int]], Callable[..., int] | None]] = {
    "SEAL": (homomorphic.seal_transform, homomorphic.seal_root),
    "OpenFHE": (homomorphic.openfhe_transform, homomorphic.openfhe_root),
    "Lattigo": (homomorphic.lattigo_transform, None),
    "HEonGPU": (homomorphic.gpu_ntt_transform, homomorphic.seal_root),
}


def prime_factors(n: int) -> list[int]:
    found, d = [], 2
    while d * d <= n:
        if n % d == 0:
            found.append(d)
            while n % d == 0:
                n //= d
        d += 1
    return [*found, n] if n > 1 else found


def drawn(fields: rd.PrimeFields, shape: tuple[int, ...], seed: int, processor: Processor) -> rd.FieldArray:
    words = rd.random(fields, shape, seed=seed).words
    return rd.FieldArray(processor.xp.asarray(words), fields)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("primes", [PRIMES, NARROW], ids=["uint64", "uint32"])
@pytest.mark.parametrize("length", [2, 8, 64])
def test_transforms_of_libraries(
    library: str,
    primes: list[int],
    length: int,
    on_each_processor: Processor,
) -> None:
    transform, root_of = LIBRARIES[library]
    fields = rd.PrimeFields(primes)
    if root_of is None:
        factors = [prime_factors(p - 1) for p in primes]
        roots = [homomorphic.lattigo_root(2 * length, p, own) for p, own in zip(primes, factors, strict=True)]
    else:
        roots = [root_of(2 * length, p) for p in primes]
        assert fields.roots(2 * length, minimal=True) == tuple(roots)
    how: dict[str, Any] = {"negacyclic": True, "root": roots, "order": "bit-reversed"}
    f = drawn(fields, (3, length), length, on_each_processor)
    found = rd.ntt(f, **how)
    given, words = (on_each_processor.to_numpy(x.words).tolist() for x in (f, found))
    for rows, results, p, root in zip(given, words, primes, roots, strict=True):
        assert [transform(row, p, root) for row in rows] == results
    assert (rd.intt(found, **how) == f).all()
    in_natural_order = rd.ntt(f, negacyclic=True, root=roots)
    bits = length.bit_length() - 1
    places = [homomorphic.reversed_bits(j, bits) for j in range(length)]
    assert (in_natural_order[:, places] == found).all()
    assert (rd.intt(in_natural_order, negacyclic=True, root=roots) == f).all()


@pytest.mark.parametrize("length", [1, 2, 16])
def test_cyclic_transforms_of_gpu_ntt(length: int, on_each_processor: Processor) -> None:
    fields = rd.PrimeFields(PRIMES)
    roots = fields.roots(length, minimal=True)
    f = drawn(fields, (length,), length, on_each_processor)
    found = rd.ntt(f, root=roots, order="bit-reversed")
    given, words = (on_each_processor.to_numpy(x.words).tolist() for x in (f, found))
    for row, results, p, root in zip(given, words, PRIMES, roots, strict=True):
        assert homomorphic.gpu_ntt_transform(row, p, root, cyclic=True) == results
    assert (rd.intt(found, root=roots, order="bit-reversed") == f).all()


@pytest.mark.parametrize("negacyclic", [False, True])
def test_every_root_by_the_definition(negacyclic: bool) -> None:
    length, fields = 8, rd.PrimeFields([97, 193])
    order = 2 * length if negacyclic else length
    f = rd.random(fields, length, seed=3)
    for k in range(1, order, 2):
        roots = [
            pow(w, pair, p) for w, pair, p in zip(fields.roots(order), (k, order - k), (97, 193), strict=True)
        ]
        found = rd.ntt(f, negacyclic=negacyclic, root=roots)
        for row, result, w, p in zip(f.words, found.words, roots, (97, 193), strict=True):
            expected = [
                sum(int(x) * pow(w, i * (2 * j + 1 if negacyclic else j), p) for i, x in enumerate(row)) % p
                for j in range(length)
            ]
            assert result.tolist() == expected
        assert (rd.intt(found, negacyclic=negacyclic, root=roots) == f).all()


def test_products_in_any_order_are_flints() -> None:
    length, fields = 256, rd.PrimeFields(PRIMES)
    f, g = (rd.random(fields, length, seed=seed) for seed in (1, 2))
    how: dict[str, Any] = {
        "root": fields.roots(2 * length, minimal=True),
        "order": "bit-reversed",
        "negacyclic": True,
    }
    found = rd.intt(rd.ntt(f, **how) * rd.ntt(g, **how), **how)
    for x, y, words, p in zip(f.words.tolist(), g.words.tolist(), found.words.tolist(), PRIMES, strict=True):
        product = flint.nmod_poly(x, p) * flint.nmod_poly(y, p)
        modulus = flint.nmod_poly([1, *[0] * (length - 1), 1], p)
        expected = [int(c) for c in (product % modulus).coeffs()]
        assert words == expected + [0] * (length - len(expected))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("chunks", [(4, 3), (16, 5), (1, 16)])
def test_roots_and_orders_in_chunks(axis: int, chunks: tuple[int, int]) -> None:
    fields = rd.PrimeFields(PRIMES)
    f = rd.random(fields, (16, 16), seed=4)
    for how in (
        {"order": "bit-reversed"},
        {"root": fields.roots(16, minimal=True)},
        {"root": fields.roots(32, minimal=True), "order": "bit-reversed", "negacyclic": True},
    ):
        lazy = f.rechunk(chunks)
        found, expected = rd.ntt(lazy, axis, **how), rd.ntt(f, axis, **how)
        assert found.chunks == lazy.chunks
        assert (found.compute() == expected).all()
        back = rd.intt(found, axis, **how)
        assert back.chunks == lazy.chunks
        assert (back.compute() == f).all()


def test_roots_and_orders_of_a_fermat_field() -> None:
    field = rd.FermatField(2**28 + 2**22, 16)
    f = rd.from_ints([5, 1, 4, 2], field)
    (own,) = field.roots(8)
    root = pow(own, 3, field.modulus)
    found = rd.ntt(f, negacyclic=True, root=root, order="bit-reversed")
    expected = [
        sum(x * pow(root, i * (2 * j + 1), field.modulus) for i, x in enumerate([5, 1, 4, 2])) % field.modulus
        for j in (0, 2, 1, 3)
    ]
    assert found.tolist() == expected
    assert (rd.intt(found, negacyclic=True, root=root, order="bit-reversed") == f).all()


SETS = [PRIMES, PRIMES[::-1], [PRIMES[0], 65537, PRIMES[1]], NARROW]
ROUNDING = {
    "SEAL, HEonGPU": (homomorphic.seal_rescale, SETS),
    "Lattigo": (homomorphic.lattigo_rescale, SETS),
    # SwitchModulus subtracts a difference once, for a last prime up to twice the others.
    "OpenFHE": (homomorphic.openfhe_rescale, [PRIMES, PRIMES[1::-1], PRIMES[:2]]),
}


@pytest.mark.parametrize(
    ("library", "primes"), [(name, primes) for name, (_, sets) in ROUNDING.items() for primes in sets]
)
def test_libraries_round(library: str, primes: list[int]) -> None:
    rescale = ROUNDING[library][0]
    draw, d, m = random.Random(1), primes[-1], math.prod(primes)
    xs = [x % m for k in range(20) for x in (draw.randrange(m), draw.randrange(m) // d * d + d // 2 + k % 3)]
    f = rd.from_ints(xs, rd.PrimeFields(primes))
    expected = [rescale([x % p for p in primes], primes) for x in xs]
    assert np.array(rd.rescale(f).words).T.tolist() == expected


def test_half_of_all_inputs_differ_between_rounding_and_flooring() -> None:
    primes = PRIMES[:3]
    f = rd.random(rd.PrimeFields(primes), 1000, seed=5)
    floored = rd.rescale(f, rounding="floor")
    rows = np.array(f.words).T.tolist()
    assert np.array(floored.words).T.tolist() == [
        homomorphic.lattigo_rescale(row, primes, floor=True) for row in rows
    ]
    differences = (rd.rescale(f) - floored).to_ints()
    assert set(differences.tolist()) == {0, 1}
    assert 400 < differences.sum() < 600


HALVES: dict[str, tuple[str | None, ...]] = {
    "SEAL, HEonGPU: upper_half_threshold": (None,),
    "OpenFHE: qHalf of CKKSPackedEncoding, SwitchModulus": ("up",),
    "Lattigo: PolyToBigintCentered": ("down",),
    "Lattigo: ExtendBasisSmallNormAndCenter": ("up",),
    "Lattigo: ModUpQtoP": (None,),
}


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("primes", [[2, *PRIMES], PRIMES, [2, 97], [97, 193]])
def test_halves_of_libraries(name: str, primes: list[int]) -> None:
    m, centred = math.prod(primes), homomorphic.CENTRED[name]
    xs = [0, 1, m - 1, *(m // 2 + k for k in (-2, -1, 0, 1, 2))]
    f = rd.from_ints(xs, rd.PrimeFields(primes))
    for half in HALVES[name]:
        assert f.lift(signed=True, half=half).tolist() == [centred(x, m) for x in xs]
        others = rd.base_extend(f, [2**61 - 1], signed=True, half=half)
        assert others.tolist() == [centred(x, m) % (2**61 - 1) for x in xs]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"order": "reversed"}, ValueError, "order must be 'natural' or 'bit-reversed', got 'reversed'"),
        ({"root": 5}, ValueError, "root must be one primitive root for each of the 2 fields, got 1"),
        ({"root": (1, 1)}, ValueError, "root 1 is not a primitive root of unity of order 4 modulo 97"),
        ({"root": (96, 81)}, ValueError, "root 96 is not a primitive root of unity of order 4 modulo 97"),
        ({"root": (22, 0)}, ValueError, "root 0 is not a primitive root of unity of order 4 modulo 193"),
        ({"root": (22, 81 + 193)}, ValueError, "root 274 is not a primitive root"),
        ({"root": (22, 2.5)}, TypeError, "root must be an integer"),
        (
            {"root": (22, 81), "negacyclic": True},
            ValueError,
            "root 22 is not a primitive root of unity of order 8",
        ),
    ],
)
def test_wrong_roots_and_orders(options: Any, error: type[Exception], text: str) -> None:
    f = rd.from_ints([1, 2, 3, 4], rd.PrimeFields([97, 193]))
    for function in (rd.ntt, rd.intt):
        with pytest.raises(error, match=text) as caught:
            function(f, **options)
        assert "\n" not in str(caught.value)


def test_minimal_roots_of_any_order() -> None:
    fields = rd.PrimeFields([97, 193, 2**61 - 1])
    for order in (1, 2, 3, 6):
        for p, root in zip(fields.primes, fields.roots(order, minimal=True), strict=True):
            own = fields.roots(order)[fields.primes.index(p)]
            powers = [pow(own, k, p) for k in range(1, order + 1) if math.gcd(k, order) == 1]
            assert root == min(powers)
