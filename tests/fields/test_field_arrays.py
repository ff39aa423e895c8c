"""Arrays of elements of prime fields against Python's integers modulo each prime."""

import json
import math
import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from commands import fail, succeed
from conftest import Processor
from dask.base import tokenize
from oracles.integers import objects
from sample_arrays import host

import rnsdask as rd
from rnsdask.fields import arithmetic

PRIMES = [2**32 - 5, 3, 2**31 - 1, 2, 65537, 4293918721, 7]
FIELDS = rd.PrimeFields(PRIMES)
ODD = rd.PrimeFields([p for p in PRIMES if p > 7])
CHUNKS = (None, -1, 5, ((1, 11, 4),))
HUGE = 10**5000


def numbers(rng: np.random.Generator, count: int, fields: rd.PrimeFields = FIELDS) -> list[int]:
    """Edges of the fields, then any integers, also negative and huge ones."""
    edges = [0, 1, -1, *fields.primes, *(p - 1 for p in fields.primes), fields.moduli.product - 1, -HUGE]
    drawn = [int.from_bytes(rng.bytes(40), "little", signed=True) for _ in range(count)]
    return [edges[i] if i < len(edges) else v for i, v in enumerate(drawn)]


def residues(values: Any, fields: rd.PrimeFields = FIELDS) -> np.ndarray:
    """By the definition, with Python's integers alone."""
    flat = np.asarray(values, dtype=object)
    rows = [[v % p for v in flat.ravel().tolist()] for p in fields.primes]
    return np.array(rows, dtype=np.uint32).reshape(len(rows), *flat.shape)


def same(found: Any, expected: np.ndarray) -> None:
    """That an array has these residues, whatever it is computed on."""
    np.testing.assert_array_equal(host(found.residues), expected)


def by_field(function: Callable[..., int], *rows: np.ndarray, fields: rd.PrimeFields = FIELDS) -> np.ndarray:
    """A function of one number of each array and the prime, applied to residues row by row."""
    found = [
        [function(*map(int, column), p) for column in zip(*(r[i].ravel() for r in rows), strict=True)]
        for i, p in enumerate(fields.primes)
    ]
    return np.array(found, dtype=np.uint32).reshape(rows[0].shape)


@pytest.mark.parametrize("chunks", CHUNKS)
def test_division_and_inverses(chunks: Any, rng: np.random.Generator) -> None:
    a, b = numbers(rng, 16, ODD), [v for v in numbers(rng, 60, ODD) if residues([v], ODD).all()][:16]
    assert len(b) == 16
    x, y = (rd.from_ints(v, ODD, chunks=chunks) for v in (a, b))
    inverses = by_field(lambda v, p: pow(v, -1, p), residues(b, ODD), fields=ODD)
    for found in (rd.inverse(y), y.inverse(), 1 / y, y**-1, np.divide(1, y)):
        same(found, inverses)
    quotients = by_field(lambda v, w, p: v * w % p, residues(a, ODD), inverses, fields=ODD)
    for found in (x / y, np.divide(x, y), np.true_divide(x, y), x / b, a / y):
        same(found, quotients)
    for divisor in (3, -3, HUGE + 1, 2**70):
        same(
            x / divisor, by_field(lambda v, p, d=divisor: v * pow(d, -1, p) % p, residues(a, ODD), fields=ODD)
        )
    same((x * y) / y, residues(a, ODD))


@pytest.mark.parametrize("field", [ODD, rd.FermatField(2**63 + 2**34, 8)])
def test_no_elements_are_divided_by_zero(field: Any) -> None:
    zero = rd.from_ints([0], field, chunks=None)
    for chunks in (None, 1):
        x = rd.from_ints([5], field, chunks=chunks)
        assert (x[:0] / zero).to_ints().shape == (x[:0] / 0).to_ints().shape == (0,)
        rows = rd.from_ints(np.zeros((3, 0), dtype=np.int64), field, chunks=chunks)
        assert (rows / zero).to_ints().shape == (3, 0)


def test_zero_has_no_inverse_and_is_named() -> None:
    values = [1, 5, 2**31 - 1, 8, 65537, 9]
    for chunks in (None, 4, (4, 2)):
        x = rd.from_ints(values, ODD, chunks=chunks)
        # Of a lazy array the first of the chunk that is computed first.
        message = r"the element at flat index (2|4) is 0 modulo (2147483647|65537), so it has no inverse"
        for attempt in (lambda x=x: rd.inverse(x), lambda x=x: 1 / x, lambda x=x: x / x, lambda x=x: x**-3):
            with pytest.raises(ZeroDivisionError, match=message):
                attempt().to_ints()
        with pytest.raises(ZeroDivisionError, match="division by 131074, which is 0 modulo 65537"):
            x / 131074
        with pytest.raises(ZeroDivisionError, match="flat index 1 is 0 modulo"):
            (x / [1, 65537, *range(1, 5)]).to_ints()
        with pytest.raises(ZeroDivisionError, match="division by 65537"):
            (x / rd.from_ints([65537, 1], rd.RNS(rd.ModuliSet([2**32])), chunks=1).max()).to_ints()


@pytest.mark.parametrize("chunks", CHUNKS)
def test_powers(chunks: Any, rng: np.random.Generator) -> None:
    a = numbers(rng, 16)
    x = rd.from_ints(a, FIELDS, chunks=chunks)
    for k in (0, 1, 2, 3, 2**32 - 6, 2**64, 2**64 + 1, HUGE):
        same(x**k, by_field(lambda v, p, k=k: pow(v, k, p), residues(a)))
    each = [0, 1, 2, 3, 4, 5, 2**40, 7] * 2
    expected = [[pow(v, k, p) for v, k in zip(a, each, strict=True)] for p in PRIMES]
    same(rd.power(x, each), np.array(expected, dtype=np.uint32))
    same(np.power(x, 5), by_field(lambda v, p: pow(v, 5, p), residues(a)))
    b = [v for v in numbers(rng, 60, ODD) if residues([v], ODD).all()][:16]
    y = rd.from_ints(b, ODD, chunks=chunks)
    for k in (-1, -2, -(2**70)):
        same(y**k, by_field(lambda v, p, k=k: pow(v, k, p), residues(b, ODD), fields=ODD))
    each = [-1, 3, 0, -(2**63), 2**63 - 1, -7, 1, -2] * 2
    expected = [[pow(v, k, p) for v, k in zip(b, each, strict=True)] for p in ODD.primes]
    same(y ** np.array(each), np.array(expected, dtype=np.uint32))
    # Only bases of negative exponents need an inverse.
    z = rd.from_ints([0, 2], ODD, chunks=None)
    same(z ** np.array([3, -1]), residues([0, pow(2, -1, ODD.moduli.product)], ODD))
    with pytest.raises(ZeroDivisionError, match="flat index 0"):
        z ** np.array([-1, 3])


@pytest.mark.parametrize("chunks", [None, -1, (2, 3), ((1, 3), (5, 2))])
def test_sums_and_products(chunks: Any, rng: np.random.Generator) -> None:
    a = objects(numbers(rng, 28), (4, 7))
    x = rd.from_ints(a, FIELDS, chunks=chunks)
    product = FIELDS.moduli.product
    for name, exact in (("sum", np.sum), ("prod", np.prod)):
        assert int(getattr(x, name)()) == int(getattr(np, name)(x)) == exact(a) % product
        for axis in (0, 1, -1):
            same(getattr(x, name)(axis), residues(exact(a, axis=axis)))
            same(getattr(x, name)(axis, keepdims=True), residues(exact(a, axis=axis, keepdims=True)))
        same(getattr(x, name)((0, 1), keepdims=True), residues(exact(a, keepdims=True)))
        same(getattr(x, name)(0, split_every=2), residues(exact(a, axis=0)))
        assert int(getattr(x[:0], name)()) == exact(a[:0])
        same(getattr(x[:0], name)(0), residues(exact(a[:0], axis=0)))
        same(getattr(x[:, :0], name)(1), residues(exact(a[:, :0], axis=1)))
    same(np.add.reduce(x, axis=1), residues(a.sum(axis=1)))
    assert int(x.trace()) == np.trace(a) % product
    chosen = x[(x != 0)]  # of a length that Dask does not know
    assert int(chosen.sum()) == int(x.sum())


def test_long_sums_do_not_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "TERMS", 3)
    a = [2**32 - 6] * 20
    x = rd.from_ints([a, a], rd.PrimeFields([2**32 - 5]), chunks=None)
    assert x.sum() == sum(a) * 2 % (2**32 - 5)
    assert x.sum(1).to_ints().tolist() == [sum(a) % (2**32 - 5)] * 2


@pytest.mark.parametrize("chunks", [None, (2, 3)])
def test_matrix_products(chunks: Any, rng: np.random.Generator) -> None:
    a, b = objects(numbers(rng, 20), (4, 5)), objects(numbers(rng, 35), (5, 7))
    x, y = (rd.from_ints(v, FIELDS, chunks=chunks) for v in (a, b))
    for found in (x @ y, rd.matmul(x, y), np.dot(x, y)):
        same(found, residues(a.dot(b)))
    same(x @ y[:, 0], residues(a.dot(b[:, 0])))
    assert int(x[0] @ y[:, 1]) == a[0].dot(b[:, 1]) % FIELDS.moduli.product
    same(rd.outer(x[0], y[0]), residues(np.multiply.outer(a[0], b[0])))
    with pytest.raises(TypeError, match="results in a field do not overflow"):
        rd.matmul(x, y, overflow="wrap")
    with pytest.raises(ValueError, match="do not match for a matrix product"):
        x @ x
    with pytest.raises(TypeError, match="RNSArrays and FieldArrays do not mix"):
        x @ rd.from_ints(b)


def test_there_is_no_order(rng: np.random.Generator) -> None:
    x = rd.from_ints(numbers(rng, 8), FIELDS)
    attempts: list[Callable[[], Any]] = [
        *(lambda f=f: f(x, 1) for f in (operator.lt, operator.le, operator.gt, operator.ge)),
        *(getattr(x, name) for name in ("max", "min", "argmax", "argmin", "sort", "argsort", "clip")),
        *(lambda name=name: getattr(x, name)(2) for name in ("topk", "argtopk", "cummax")),
        *(
            lambda f=f: f(x)
            for f in (rd.sort, rd.argsort, rd.median, rd.unique, rd.sign, rd.absolute, np.max)
        ),
        *(
            lambda f=f: f(x, 1)
            for f in (rd.maximum, rd.minimum, rd.gcd, rd.lcm, np.less, rd.clip, np.remainder)
        ),
        *(lambda f=f: f(x, [1]) for f in (rd.isin, rd.searchsorted)),
        *(lambda f=f: f(x) for f in (rd.bit_length, rd.mixed_radix_digits, rd.fixed_point_interval)),
        *(lambda: x // 1, lambda: x % 2, lambda: abs(x), lambda: x >> 1, lambda: pow(x, 2, 5)),
    ]
    for attempt in attempts:
        with pytest.raises(
            TypeError, match=r"takes no FieldArray: elements of fields have no order, sign or size"
        ):
            attempt()
    with pytest.raises(TypeError):
        rd.ptp(x)


def test_overflow_is_not_taken() -> None:
    x = rd.from_ints([1, 2], FIELDS, chunks=None)
    for function in (rd.add, rd.subtract, rd.multiply, rd.power):
        with pytest.raises(TypeError, match="results in a field do not overflow, so overflow= is not taken"):
            function(x, 2, overflow="raise")
    with rd.errstate(overflow="flag"):
        same(x + HUGE, residues([1 + HUGE, 2 + HUGE]))


def test_fields_are_values() -> None:
    systems = [FIELDS, ODD, rd.PrimeFields(PRIMES[::-1]), rd.PrimeFields([7]), rd.PrimeFields([2**32 - 5])]
    assert len({*systems}) == len({tokenize(s) for s in systems}) == len(systems)
    for system in systems:
        again = pickle.loads(pickle.dumps(system))
        assert again == system
        assert hash(again) == hash(system)
        assert tokenize(again) == tokenize(system)
        assert system.same_numbers(again)
        assert system.value_range == (0, math.prod(system.primes) - 1)
        assert (system.column(HUGE, 2)[:, 0, 0] == [HUGE % p for p in system.primes]).all()
    assert not systems[0].same_numbers(systems[2])
    assert tokenize(rd.RNS(FIELDS.moduli)) != tokenize(FIELDS)
    assert repr(systems[3]) == "PrimeFields([7])"
    assert "7 primes of 2 to 32 bits" in repr(rd.from_ints([1], FIELDS))
    for primes, message in (
        ([7, 9], r"^9 \(position 1\) is not a prime"),
        ([3215031751], "3215031751 .* is not a prime"),
        ([7, 1], r"1 \(position 1\) is out of bounds"),
        ([2**32 + 17], "4294967313 .* is not a prime"),
        ([2**64 + 13], "is out of bounds: primes are from 2 to"),
        ([7, 5, 7], "the prime 7 is given more than once"),
        ([], "prime fields need at least one prime, got none"),
    ):
        with pytest.raises(ValueError, match=message):
            rd.PrimeFields(primes)
    for wrong in (7, [7.0], ["7"], [True]):
        with pytest.raises(TypeError, match="integer"):
            rd.PrimeFields(wrong)  # type: ignore[arg-type]


def test_systems_do_not_mix() -> None:
    x = rd.from_ints([1, 2], FIELDS, chunks=None)
    intervals = rd.from_ints([1, 2], rd.IntervalRNS(FIELDS.moduli))
    both = r"do not mix; FieldArray.from_rns\(x, fields\) and lift\(\) convert$"
    either = (
        r"mix; FieldArray.from_rns\(x, fields\)( and IntervalRNSArray.from_rns\(x.lift\(\)\))? converts?$"
    )
    for other, told in ((rd.from_ints([1, 2]), both), (intervals, either)):
        for attempt in (lambda o=other: x + o, lambda o=other: o * x, lambda o=other: x == o):
            with pytest.raises(TypeError, match=told):
                attempt()
    with pytest.raises(
        ValueError, match=r"moduli sets: .*; FieldArray.from_rns\(x.lift\(\), fields\) converts"
    ):
        x + rd.from_ints([1, 2], ODD, chunks=None)
    with pytest.raises(TypeError, match="a FieldArray has words and a FiniteFields system, got RNS"):
        rd.FieldArray(x.words, rd.RNS(FIELDS.moduli))
    with pytest.raises(TypeError, match="integer"):
        x + 1.5
    with pytest.raises(TypeError, match="integer"):
        x + list(map(float, range(2)))
    with pytest.raises(TypeError, match="from_rns takes"):
        rd.FieldArray.from_rns(x, FIELDS)


@pytest.mark.parametrize("chunks", [None, 5])
def test_ways_in_and_out(chunks: Any, rng: np.random.Generator) -> None:
    a = numbers(rng, 30)
    product = FIELDS.moduli.product
    least = [v % product for v in a]
    x = rd.from_ints(a, FIELDS, chunks=chunks)
    for given in (objects(a), [hex(v) if v >= 0 else v for v in a], tuple(a)):
        same(rd.from_ints(given, FIELDS, chunks=chunks), residues(a))
    for dtype in (np.int8, np.uint8, np.int64, np.uint64):
        ends = np.iinfo(dtype)
        machine = np.array([ends.min, ends.max, 0, 1, ends.max - 1], dtype=dtype)
        same(rd.from_ints(machine, FIELDS, chunks=chunks), residues(machine.tolist()))
    same(rd.from_ints(da.from_array(objects(a), chunks=7), FIELDS), residues(a))
    assert x.lift().to_ints().tolist() == least
    assert x.lift(signed=True).to_ints().tolist() == [(v + product // 2) % product - product // 2 for v in a]
    assert x.lift().system == rd.RNS(FIELDS.moduli)
    signed = rd.from_ints(a, chunks=chunks)
    for y in (signed, rd.IntervalRNSArray.from_rns(signed), x.lift(), x.lift(True)):
        same(rd.FieldArray.from_rns(y, FIELDS), residues(a))
    same(rd.from_residues(x.residues, FIELDS), residues(a))
    same(rd.from_residues(np.moveaxis(residues(a), 0, -1).astype(np.int64), FIELDS, axis=-1), residues(a))
    with pytest.raises(ValueError, match="is not below its modulus 2"):
        rd.from_residues(np.full((7, 2), 2, np.uint32), FIELDS)
    with pytest.raises(ValueError, match="contradicts the number system"):
        rd.from_residues(residues(a), FIELDS, bound=5)
    same(
        rd.from_limbs(np.array([[5, 6], [2**64 - 1, 2**64 - 1]], np.uint64), FIELDS),
        residues([5 + 6 * 2**64, 2**128 - 1]),
    )
    same(
        rd.from_bytes(b"\xff" * 40 + b"\x01" * 40, 40, moduli=FIELDS, signed=True),
        residues([-1, int.from_bytes(b"\x01" * 40)]),
    )
    assert x[3] == least[3]
    assert list(x) == least
    np.testing.assert_array_equal(host(x.to_residues(FIELDS.moduli)), residues(a))
    y = rd.random(FIELDS, 50, seed=3, chunks=20)
    assert isinstance(y, rd.FieldArray)
    assert (host(y.residues) == host(rd.random(FIELDS.moduli, 50, seed=3, chunks=20).residues)).all()


@pytest.mark.parametrize(
    "fields", [FIELDS, rd.PrimeFields([2]), rd.PrimeFields(rd.ModuliSet.ntt_primes(12_300, 2**10))]
)
def test_few_and_many_primes(
    fields: rd.PrimeFields, rng: np.random.Generator, on_each_processor: Processor
) -> None:
    a, b = numbers(rng, 900, fields), numbers(rng, 900, fields)[::-1]
    x, y = (rd.FieldArray(on_each_processor.xp.asarray(residues(v, fields)), fields) for v in (a, b))
    same(x * y - x, residues([v * w - v for v, w in zip(a, b, strict=True)], fields))
    same(x + b, residues([v + w for v, w in zip(a, b, strict=True)], fields))
    assert x.to_ints().tolist() == [v % fields.moduli.product for v in a]


# ---- stores -----------------------------------------------------------------------------------------------


def test_what_a_store_says_of_fields_is_checked(tmp_path: Path) -> None:
    rd.from_ints([1, 2, 3], FIELDS).to_zarr(tmp_path / "x")
    file = tmp_path / "x" / "zarr.json"
    document = json.loads(file.read_text())
    attribute = document["attributes"]["rnsdask"]
    assert (attribute["format"], attribute["system"], attribute["moduli"]) == (2, "prime-fields", PRIMES)
    for changes, message in (
        ({"moduli": [9, *PRIMES[1:]]}, "9 .* is not a prime"),
        ({"moduli": [3, *PRIMES[1:]]}, "the prime 3 is given more than once"),
        (
            {"system": "rns"},
            "system must be the name of a number system, got 'rns'",
        ),
        ({"signed": True}, "no sign and no bound"),
        ({"bound": "0x7"}, "no sign and no bound"),
        ({"format": 3}, "it is of format 3; this version of rnsdask reads formats 1 and 2"),
        ({"format": 1}, "its checksum is|its digest is"),
    ):
        document["attributes"]["rnsdask"] = {**attribute, **changes}
        file.write_text(json.dumps(document))
        with pytest.raises(rd.StoreError, match=message):
            rd.open_zarr(tmp_path / "x")


def test_commands_describe_and_verify_fields_and_refuse_the_rest(tmp_path: Path) -> None:
    path = str(tmp_path / "x")
    rd.from_ints([1, 2, 3], ODD, chunks=2).to_zarr(path)
    assert "elements of prime fields" in succeed("info", path)
    assert "3 integers, whole and valid" in succeed("verify", path)
    assert json.loads(succeed("info", path, "--json"))["moduli"] == list(map(str, ODD.primes))
    for command in (("max", path), ("bound", path)):
        assert "it holds elements of PrimeFields" in fail(*command)
