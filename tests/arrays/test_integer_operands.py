"""Lists and plain arrays of integers beside arrays of numbers, in every function that takes two operands."""

import operator
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from sample_arrays import host

import rnsdask as rd

MODULI = rd.ModuliSet.for_bits(64)
PRIMES = [10007, 10009, 10037]
A = np.array([[5, 3, 10**15], [7, 0, 2]], dtype=object)
B = [[2, 3, 4], [5, 6, 10**15]]
SYSTEMS = {
    "residues": rd.RNS(MODULI, True),
    "intervals": rd.IntervalRNS(MODULI),
    "limbs": rd.Positional(128, True),
    "fields": rd.PrimeFields(PRIMES),
    "Fermat": rd.FermatField.named("F233"),
}
OF_INTEGERS = ["residues", "intervals", "limbs"]


def make(kind: str, values: Any = A, chunks: Any = None, processor: Processor | None = None) -> Any:
    x = rd.from_ints(np.asarray(values, dtype=object), SYSTEMS[kind], chunks=None)
    if processor is not None:
        x = type(x)(processor.xp.asarray(x.words), x.system)
    return x if chunks is None else x.rechunk(chunks)


def found(result: Any) -> Any:
    """Python's integers, or items, of a result; of a tuple those of each part."""
    if isinstance(result, tuple | list):
        return [found(part) for part in result]
    if hasattr(result, "compute"):
        result = result.compute()
    return result.tolist() if hasattr(result, "system") else host(result).tolist()


C = np.array(B, dtype=object)
ROW = [1, 2, 3]
MASK = np.array([[True, False, True], [False, True, False]])


def mask_beside(x: Any) -> Any:
    """`MASK` on the processor of an array."""
    return np.asarray(MASK, like=(x[:0].compute() if hasattr(x[:0], "compute") else x[:0]).words)


# A call with a plain operand, and what Python's integers give.
CALLS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "x + list": (lambda x: x + B, A + C),
    "list + x": (lambda x: B + x, A + C),
    "row * x": (lambda x: np.array(ROW) * x, A * ROW),
    "x - tuple": (lambda x: x - tuple(ROW), A - ROW),
    "int8 - x": (lambda x: np.array([100, 101, 102], dtype=np.int8) - x + A, 0 * A + [100, 101, 102]),
    "one number": (lambda x: operator.add(x, [[1]]), A + 1),
    "more axes": (lambda x: x + np.arange(4).reshape(2, 2, 1, 1), A + np.arange(4).reshape(2, 2, 1, 1)),
    "==": (lambda x: x == [5, 4, 2], A == [5, 4, 2]),
    "list !=": (lambda x: operator.ne([5, 4, 2], x), A != [5, 4, 2]),
    "== any size": (lambda x: x == A, np.ones((2, 3), bool)),
    "ufunc": (lambda x: np.add(x, np.array(ROW)), A + ROW),
    "ufunc before": (lambda x: np.multiply(np.array(B, dtype=object), x), A * C),
    "outer ufunc": (lambda x: np.add.outer(x, [1, 2]), np.add.outer(A, [1, 2])),
    "add": (lambda x: rd.add(ROW, x), A + ROW),
    "fma": (lambda x: rd.fma(x, ROW, B), A * ROW + C),
    "mulsub": (lambda x: rd.mulsub(x, B, x, 1), A * C - A),
    "muladd": (lambda x: rd.muladd(ROW, x, B, 2), A * ROW + 2 * C),
    "where": (lambda x: rd.where(mask_beside(x), x, ROW), np.where(MASK, A, ROW)),
    "numpy.where": (lambda x: np.where(mask_beside(x), np.array(ROW), x), np.where(MASK, ROW, A)),
    "concatenate": (lambda x: rd.concatenate([[ROW], x, np.array([ROW])]), np.concatenate([[ROW], A, [ROW]])),
    "append": (lambda x: np.append(x, [8, 9]), np.append(A, [8, 9])),
    "append to a list": (lambda x: np.append([8, 9], x), np.append([8, 9], A)),
    "stack": (lambda x: rd.stack([B, x]), np.stack([C, A])),
    "block": (lambda x: rd.block([[x, np.array([[1], [2]])]]), np.hstack([A, [[1], [2]]])),
    "array_equal": (lambda x: np.asarray(np.array_equal(x, A.tolist())), np.array(True)),
    "another shape": (lambda x: np.asarray(np.array_equal(ROW, x)), np.array(False)),
    "diff": (lambda x: rd.diff(x, axis=0, prepend=[[1, 0, 1]]), np.diff(A, axis=0, prepend=[[1, 0, 1]])),
    "outer": (lambda x: rd.outer(ROW, x), np.outer(ROW, A)),
    "Dask's": (lambda x: da.from_array(np.array(ROW)) + x, A + ROW),
    "Dask's objects": (lambda x: x * da.from_array(C, chunks=1), A * C),
}
OF_RINGS = {  # limbs have neither
    "x @ list": (lambda x: x @ [[1, 2], [3, 4], [5, 6]], A @ np.array([[1, 2], [3, 4], [5, 6]])),
    "list @ x": (lambda x: [1, 2] @ x, np.array([1, 2]) @ A),
    "dot": (lambda x: rd.dot(x, np.array(ROW)), A @ ROW),
    "convolve": (lambda x: rd.convolve(x[1], np.array(ROW)), np.convolve([7, 0, 2], ROW)),
    "numpy.convolve": (lambda x: np.convolve([2, 1], x[1]), np.convolve([2, 1], [7, 0, 2])),
}
OF_ORDERED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "<": (lambda x: x < [5, 4, 2], A < [5, 4, 2]),
    "array <=": (lambda x: np.array([5, 4, 2]) <= x, np.array([5, 4, 2]) <= A),
    "== out of range": (lambda x: x == [10**100, 3, -(10**100)], A == [0, 3, 10]),
    "!= out of range": (lambda x: x != [10**100, 3, -(10**100)], A != [0, 3, 10]),
    "< out of range": (lambda x: x < [10**100, 3, -(10**100)], [[True, False, False], [True, True, False]]),
    "maximum": (lambda x: rd.maximum(x, [4, 4, 4]), np.maximum(A, [4, 4, 4])),
    "numpy.minimum": (lambda x: np.minimum(np.array([4, 4, 4]), x), np.minimum(A, [4, 4, 4])),
    "clip": (lambda x: rd.clip(x, [1, 1, 1], [4, 4, 9]), np.clip(A, [1, 1, 1], [4, 4, 9])),
    "//": (lambda x: x // [2, 3, 4], A // [2, 3, 4]),
    "list %": (lambda x: [[7], [9]] % (x + 1), np.array([[7], [9]]) % (A + 1)),
    "divmod": (lambda x: divmod(x, np.array([2, 3, -4])), np.stack([A // [2, 3, -4], A % [2, 3, -4]])),
    "gcd": (lambda x: rd.gcd(x, [10, 9, 8]), np.gcd(A, np.array([10, 9, 8], dtype=object))),
    "lcm": (lambda x: np.lcm([1, 2, 3], x), np.lcm(np.array(ROW, dtype=object), A)),
    "isin": (lambda x: rd.isin(x, [3, 7, 10**100]), [[False, True, False], [True, False, False]]),
}
OF_LIMBS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "&": (lambda x: x & [1, 2, 3], A & ROW),
    "list ^": (lambda x: ROW ^ x, A ^ ROW),
    "mod_add": (lambda x: rd.mod_add(x, ROW, [[7], [11]]), (A + ROW) % np.array([[7], [11]])),
}


@pytest.mark.parametrize("chunks", [None, (1, 2)])
@pytest.mark.parametrize("kind", SYSTEMS)
def test_plain_integers_are_operands(kind: str, chunks: Any, on_each_processor: Processor) -> None:
    calls = {**CALLS, **(OF_RINGS if kind != "limbs" else OF_LIMBS)}
    if kind in OF_INTEGERS:
        calls |= OF_ORDERED
    for name, (call, expected) in calls.items():
        if "Dask" in name and on_each_processor.name != "cpu" and chunks is None:
            continue  # what is not lazy stays on one processor
        numbers = np.asarray(expected)
        x = make(kind, A, chunks, on_each_processor)
        if kind in OF_INTEGERS or numbers.dtype == bool:
            assert found(call(x)) == numbers.tolist(), name
        else:
            product = getattr(SYSTEMS[kind], "modulus", 0) or SYSTEMS[kind].moduli.product
            assert found(call(x)) == (numbers.astype(object) % product).tolist(), name


@pytest.mark.parametrize("chunks", [None, 2])
def test_linear_algebra_and_polynomials(chunks: Any, on_each_processor: Processor) -> None:
    a, b = [[2, 1], [1, 3]], [3, 5]
    for kind in ("residues", "intervals"):
        x = make(kind, a, chunks, on_each_processor)
        assert found(rd.linalg.solve(x, b)) == found(
            rd.linalg.solve(x, make(kind, b, None, on_each_processor))
        )
        assert found(np.linalg.solve(np.array(a), make(kind, b, chunks))) == found(
            rd.linalg.solve(make(kind, a), make(kind, b))
        )
        assert found(rd.poly.multiply(make(kind, b, chunks), [1, 2])) == [3, 11, 10]
        assert int(np.asarray(found(rd.poly.resultant(make(kind, [-2, 1], chunks), [-5, 1])))) == -3
    x = make("fields", [1, 2, 1], chunks, on_each_processor)
    product = SYSTEMS["fields"].moduli.product  # type: ignore[attr-defined]
    assert found(rd.poly.evaluate(x, [0, 1, 10**40])) == [1, 4, (10**40 + 1) ** 2 % product]
    assert found(rd.poly.divmod(x, [1, 1])) == [[1, 1, 0], [0]]
    assert found(rd.poly.gcd([1, 1], x))[:2] == [1, 1]
    assert found(rd.poly.interpolate([0, 1, 2], make("fields", [1, 4, 9], chunks))) == [1, 2, 1]
    assert found(rd.linalg.solve(make("fields", a, chunks), b)) == [
        value * pow(5, -1, product) % product for value in (4, 7)
    ]


def test_chunks_and_bounds_are_those_of_both() -> None:
    x = make("residues", [range(100)] * 3, (2, 30))
    assert (x + np.ones((3, 100), int)).chunks == x.chunks
    assert (np.array([[1], [2], [3]]) + x).chunks == x.chunks
    large = x * np.arange(300).reshape(3, 100)
    parts = [value for value in large.words.dask.to_dict().values() if isinstance(value, np.ndarray)]
    assert all(part.shape[1:] in {(2, 30), (2, 10), (1, 30), (1, 10)} for part in parts if part.ndim == 3)
    assert rd.add(make("residues", [[3]]), [[7, -9]]).bound == 12


def test_of_unknown_length() -> None:
    line = make("residues", range(100), 30)
    chosen = line[line >= 50]
    assert found(chosen + list(range(50))) == [50 + 2 * k for k in range(50)]


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a float": ([1, 2.5, 3], TypeError, "value at position 1 must be an integer, got 2.5 of type float"),
    "floats": (np.ones(3), TypeError, "value at position 0 must be an integer, got 1.0 of type float"),
    "Dask's floats": (da.ones(3), TypeError, "must be integers, got a Dask array of float64"),
    "Booleans": (np.array([True] * 3), TypeError, "got Booleans; rd.where(mask, x, 0) chooses numbers"),
    "a Boolean": ([1, True, 2], TypeError, "value at position 1 must be an integer, got True of type bool"),
    "text": (["1", "2", "3"], TypeError, "value at position 0 must be an integer, got '1' of type str"),
    "None": ([None] * 3, TypeError, "value at position 0 must be an integer, got None"),
    "ragged": ([[1, 2, 3], [4, 5]], ValueError, "nested lists of values must all have one length along each"),
    "masked": (
        np.ma.masked_array([1, 2, 3], [0, 1, 0]),
        ValueError,
        "values are masked, the first at positi",
    ),
    "matrix": (np.matrix([[1, 2, 3]]), TypeError, "got a NumPy matrix; np.asarray makes one"),
    "dates": (
        np.zeros(3, "M8[s]"),
        TypeError,
        "values must be integers, got an array of dtype datetime64[s]",
    ),
    "a shape": ([1, 2], ValueError, "shapes do not broadcast together: (3,) and (2,)"),
}


@pytest.mark.parametrize("chunks", [None, 2])
@pytest.mark.parametrize("kind", SYSTEMS)
def test_what_is_no_list_of_integers(kind: str, chunks: Any) -> None:
    x = make(kind, [1, 2, 3], chunks)
    for name, (operand, error, message) in REFUSED.items():
        for call in (lambda v: x + v, lambda v: x == v, lambda v: rd.where(np.array([True] * 3), v, x)):
            with pytest.raises(error) as caught:
                pytest.fail(f"{name}: {call(operand)}")
            assert message in str(caught.value), name
            assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match=r'got a tuple of 2, the first .*Array; .* overflow="flag" gave'):
        rd.add(x, (x, x == x))


def test_a_value_out_of_range_is_named_with_the_way_out() -> None:
    below = rd.from_ints([1, 2], MODULI)
    for x, values, message in (
        (
            below,
            [1, -2],
            r"value -2 at position 1 is outside the unsigned range .*signed=True takes negative",
        ),
        (
            below,
            [[1, 2**99]],
            r"value .* at index \(0, 1\) is outside .*; x.extend\(moduli\) takes more moduli",
        ),
        (make("residues"), [10**50] * 3, r"at position 0 is outside the signed range .*; x.extend\(moduli\)"),
        (
            make("intervals"),
            [10**50] * 3,
            r"at position 0, .* is outside .*; x.extend\(moduli\) takes more moduli",
        ),
        (make("limbs"), [0, 0, 2**127], r"at position 2 is outside .*; x.to_positional\(bits"),
    ):
        for call in (lambda v: x * v, lambda v: v - x, lambda v: rd.maximum(x, v)):  # noqa: B023
            with pytest.raises(ValueError, match=message):
                call(values)
    with pytest.raises(ValueError, match=r"value -2 at position 0 is outside .*signed=True"):
        (below + da.from_array(np.array([1, -2]), chunks=1)).compute()


def test_ranges_that_grow_take_any_value() -> None:
    for x in (rd.from_ints([1, 2, 3], chunks=None), rd.from_ints([1, 2, 3], chunks=2)):
        assert found(x - [5, 5, 10**50]) == [-4, -3, 3 - 10**50]
        assert found(x @ [1, -2, 10**50]) == 3 * 10**50 - 3
        assert found(np.append(x, [-(10**40)])) == [1, 2, 3, -(10**40)]
        assert found(x * da.from_array(np.array([-1, 2**63 - 1, 0]), chunks=1)) == [-1, 2**64 - 2, 0]
        assert found(x < [10**50, -(10**50), 3]) == [True, False, False]


def test_fields_divide_by_lists() -> None:
    product = rd.PrimeFields(PRIMES).moduli.product
    x = make("fields", [1, 2, 3])
    inverse = pow(7, -1, product)
    assert found(x / [7, 7, 7]) == [k * inverse % product for k in (1, 2, 3)]
    assert found(np.array([7, 14, 21]) / x) == [7, 7, 7]
