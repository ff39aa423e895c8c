"""Integers that are not computed yet: their arithmetic, and as operands, against Python ints."""

import operator
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize
from strategies import slow

import rnsdask as rd
from rnsdask.core.scalar_int import ScalarInt
from rnsdask.lazy.lazy_ints import LazyInts

MODULI = rd.ModuliSet.for_bits(300)
SMALL = rd.ModuliSet([251, 253, 255, 256])
VALUES = [2**62, 3, 2**250 + 7, 1, 2**63 - 1]


def lazy(values: list[int], moduli: rd.ModuliSet = MODULI, signed: bool = False, chunks: int = 2) -> Any:
    residues = rd.from_ints(values, moduli, signed, chunks=None).residues
    return rd.RNSArray(da.from_array(residues, chunks=(-1, chunks)), rd.RNS(moduli, signed))


BINARY: list[Callable[[Any, Any], Any]] = [
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.and_, operator.or_),
    *(operator.xor, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
]


@pytest.mark.parametrize("kind", ["rns", "interval"])
def test_lazy_integers_calculate_as_python_ints(kind: str) -> None:
    y = lazy(VALUES)
    if kind == "interval":
        y = rd.IntervalRNSArray.from_rns(y)
    pairs = [(y.max(), max(VALUES)), (y.min(), min(VALUES)), (y.sum(), sum(VALUES)), (y[0], VALUES[0])]
    pairs += [(y.argmax(), 2), (y.argmin(), 3)]
    if kind == "rns":
        pairs += [(y[:2].prod(), VALUES[0] * 3), (y.topk(3)[1], 2**63 - 1)]
    found, expected = [], []
    for function in BINARY:
        for x, value in pairs:
            for z, other in [pairs[0], (7, 7), (np.int64(2**62), 2**62), (10**100, 10**100)]:
                found += [function(x, z), function(z, x)]
                expected += [function(value, other), function(other, value)]
    assert all(isinstance(result, da.Array) for result in found)
    assert list(dask.compute(*found)) == expected
    for result, value in list(zip(found, expected, strict=True))[::40]:
        assert type(value)(result) == value


def test_lazy_integers_convert_and_stay_exact_in_dask_and_numpy() -> None:
    y = lazy(VALUES)
    big = 2**250 + 7
    assert float(y.max()) == float(big)
    assert complex(y[1]) == 3
    assert list(range(y[1])) == [0, 1, 2]
    assert bool(y.max() > 5)
    assert bool(y.min() - 1) is False
    assert float(y.sum() / y.size) == sum(VALUES) / 5
    assert float(0.5 + y[1]) == float(y[1] + 0.5) == 3.5
    assert rd.where(y[1] > 2.5, y[:1], 7).to_ints().tolist() == [2**62]
    assert [int(part) for part in divmod(y.max(), y[1])] == list(divmod(big, 3))
    assert int(-y.max()) == -big
    huge = 10**5000  # of which Python writes no digit, and Dask makes no name
    assert int(y.max() + huge) == int(huge + y.max()) == big + huge
    assert bool(y.max() < huge)
    assert int((y.max() + huge) // huge) == 1
    assert int(np.floor_divide(huge, y[1])) == huge // 3
    assert int(abs(-y[1]) << y[1]) == 24
    assert int(y[1] ** y[1]) == 27
    assert int(2 ** y[1]) == 8
    assert int(y.topk(2).sum()) == big + 2**63 - 1
    assert (y.topk(2) + y[0]).compute().tolist() == [big + 2**62, 2**63 - 1 + 2**62]
    # NumPy alone would add such as int64, and wrap.
    assert int(np.add(y[0], y[0])) == int(da.add(y[0], y[0])) == int(sum([y[0], y[0]])) == 2**63
    assert int(da.stack([y[0], y[0]]).sum()) == 2**63
    assert int(da.maximum(y[1], y[0])) == 2**62
    assert int(np.int64(2) * y[0] * np.int64(2)) == 2**64
    assert np.add(ScalarInt(2**62), ScalarInt(2**62)) == 2**63
    assert np.stack([ScalarInt(2**63), ScalarInt(1)]).sum() == 2**63 + 1
    assert y[1].astype(float).compute() == 3.0
    with pytest.raises(OverflowError):
        y.max().astype(np.int64).compute()
    assert type(y[0].compute()) is type((y[0] + 1).compute()) is ScalarInt
    assert isinstance(dask.compute(y.max())[0], int)
    assert pickle.loads(pickle.dumps(y[0].compute())) == 2**62
    assert hash(y[0].compute()) == hash(2**62)
    # A result is a plain int to other Dask arrays.
    three, plain = y[1].compute(), da.arange(1, 4)
    assert (plain - three).compute().tolist() == [-2, -1, 0]
    assert (three - plain).compute().tolist() == [2, 1, 0]
    assert (three // plain).compute().tolist() == [3, 1, 1]
    assert (three > plain).compute().tolist() == [True, True, False]
    assert (y[1:2] * three).to_ints().tolist() == (three * y[1:2]).to_ints().tolist() == [9]
    table = lazy(VALUES[:4])
    table = rd.RNSArray(table.residues.reshape((-1, 2, 2)), rd.RNS(MODULI))
    assert int(table.sum(axis=0)[0]) == 2**62 + 2**250 + 7
    assert isinstance(table.sum(axis=0), LazyInts)
    with pytest.raises(
        TypeError, match=r"only an array of one number converts to a Python number, got shape \(2,\)"
    ):
        int(table.sum(axis=0))


@pytest.fixture(autouse=True)
def in_this_thread() -> Iterator[None]:
    """Compute without a pool of threads, which takes longer to start than most of these do."""
    with dask.config.set(scheduler="synchronous"):
        yield


OPERATIONS: list[Callable[[Any, Any], Any]] = [
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod),
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
]


def result_of(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Numbers or truths, or the type of the error."""
    try:
        found = function(x, y)
        assert (
            isinstance(x, int)
            or isinstance(y, int)
            or dask.is_dask_collection(found[0] if type(found) is tuple else found)
        )
        if isinstance(found, tuple):
            return [np.asarray(part).tolist() for part in dask.compute(*found)]
        return np.asarray(found).tolist()
    except (ValueError, ZeroDivisionError, rd.RNSOverflowError) as error:
        return type(error)


@pytest.mark.parametrize("seed", [0, *slow(1)])
@pytest.mark.parametrize("signed", [False, True, "interval"])
def test_a_lazy_operand_acts_as_the_integer_itself(seed: int, signed: bool | str) -> None:
    rng = random.Random(seed)
    lowest, highest = SMALL.value_range(bool(signed))
    low = lowest if signed else 0
    values = [
        rng.choice([low, highest, 0, 1, rng.randint(low, highest), rng.randint(0, 99)]) for _ in range(7)
    ]
    x = lazy(values, SMALL, bool(signed))
    bounded = rd.from_ints([v % 1000 for v in values], SMALL, bool(signed), chunks=None)
    arrays: list[Any] = [x, x.compute(), bounded]
    if signed == "interval":
        arrays = [rd.IntervalRNSArray.from_rns(a) for a in arrays]
    integers = [
        0,
        1,
        -1,
        2,
        7,
        1000,
        highest,
        lowest,
        highest + 1,
        lowest - 1,
        10**40,
        -(10**40),
        rng.randint(0, 99),
    ]
    functions = OPERATIONS + [lambda a, b: rd.where(np.array([True, False] * 3 + [True]), a, b)] * (
        signed != "interval"
    )
    if signed != "interval":
        functions += [rd.maximum, rd.minimum, divmod, lambda a, b: rd.fma(a, b, 1)]
        functions += [
            lambda a, b: rd.add(a, b, overflow="flag"),
            lambda a, b: rd.power(a, b, overflow="flag"),
        ]
        functions += [operator.pow, operator.rshift, operator.lshift]
    for value in integers:
        for function in rng.sample(functions, 9):
            integer = da.from_delayed(dask.delayed(ScalarInt(value)), (), object)
            integer = LazyInts.of(integer) if rng.random() < 0.5 else integer
            array = rng.choice(arrays)
            if function is not operator.pow or value < 10**6:
                expected = result_of(function, array, value)
                assert result_of(function, array, integer) == expected, (seed, signed, function, value, array)
            if function in OPERATIONS:
                expected = result_of(function, value, array)
                assert result_of(function, integer, array) == expected, (seed, signed, function, value, array)


@pytest.mark.parametrize("shape", [(40,), (8, 5)])
@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_reductions_of_what_lazy_integers_are_combined_with(
    rng: np.random.Generator, shape: tuple[int, ...], scheduler: str
) -> None:
    ints = rng.integers(3, 1000, shape).astype(object)
    x = rd.from_ints(ints, rd.ModuliSet.for_bits(100), chunks=(3,) * len(shape))
    with dask.config.set(scheduler=scheduler):
        assert int((x - x.min()).max()) == ints.max() - ints.min()
        assert int((x * x.max() + x).sum()) == (ints * ints.max() + ints).sum()
        assert int((x.max() - x).argmax().compute()) == int((ints.max() - ints).argmax())
        assert int((x + x.sum() % 7).min()) == ints.min() + ints.sum() % 7
        assert ((x - x.min()).to_ints() == ints - ints.min()).all()


def exact_results() -> Iterator[tuple[str, Any, int]]:
    """Lazy integers that functions of linear algebra and of polynomials give, and what they are."""
    big = 2**40 + 1
    diagonal = np.array([[big, 0], [0, 1]], dtype=object)
    system = rd.RNS(MODULI, True)
    for kind in (system, rd.IntervalRNS(MODULI)):
        x, stack = (rd.from_ints(a, kind, chunks=-1) for a in (diagonal, np.array([diagonal] * 2)))
        yield "det", rd.linalg.det(x), big
        yield "dets", rd.linalg.det(stack)[1], big
        yield "charpoly", rd.linalg.charpoly(x)[0], big
        yield "inv", rd.linalg.inv(x)[1], big
        yield "numerators", rd.linalg.inv(x)[0][1, 1], big
        yield "solve", rd.linalg.solve(x, rd.from_ints([1, 1], kind, chunks=-1))[1], big
    f, g = (rd.from_ints(c, system, chunks=-1) for c in ([big, 1], [0, 1]))
    yield "resultant", rd.poly.resultant(f, g), -big
    yield "discriminant", rd.poly.discriminant(rd.from_ints([-big, 0, 1], system, chunks=-1)), 4 * big
    rows = (rd.from_ints(c, system, chunks=-1) for c in ([[big, 0], [1, 0]], [[0, 0], [1, 0]]))
    yield "two variables", rd.poly.resultant(*rows, variables=2)[0], -big


def test_exact_results_calculate_as_python_ints() -> None:
    for name, lazily, value in exact_results():
        assert isinstance(lazily, LazyInts), name
        assert int(lazily) == operator.index(lazily) == value, name
        assert np.multiply(lazily, lazily).compute() == value**2, name
        assert np.add(lazily, 2**63 - 1).compute() == value + 2**63 - 1, name
        assert da.stack([lazily, lazily]).prod().compute() == value**2, name
        assert divmod(lazily, 3)[0].compute() == value // 3, name
        product = rd.from_ints([5], MODULI, True, chunks=1) * lazily
        assert product.to_ints().tolist() == [5 * value], name


LONG = 10**5000


@pytest.mark.parametrize(
    "ufunc", [np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.greater, np.equal, np.remainder]
)
def test_numpys_functions_take_integers_of_any_length(ufunc: Any) -> None:
    values = [LONG + 1, -LONG, 7]
    x = rd.from_ints(values, rd.RNS(rd.ModuliSet.for_bits(40_000), signed=True), chunks=2)
    as_objects = np.array([max(values), LONG], dtype=object)
    assert ufunc(x.max(), LONG).compute() == ufunc(as_objects[:1], LONG)[0]
    assert ufunc(LONG, x.max()).compute() == ufunc(LONG, as_objects[:1])[0]


@pytest.mark.parametrize(
    "system",
    [rd.RNS(rd.ModuliSet.for_bits(20_100), True, 2**20_000), rd.Positional(20_096, True)],
    ids=["rns", "positional"],
)
def test_graphs_and_tokens_take_integers_of_20000_bits(system: Any) -> None:
    values = [LONG - 5, -LONG, LONG + 3, 0, 7**100]
    x = rd.from_ints(values, system, chunks=2)
    top = x.max()
    assert (x + LONG).to_ints().tolist() == [v + LONG for v in values]
    assert (x // LONG).to_ints().tolist() == [v // LONG for v in values]
    assert (x % LONG).to_ints().tolist() == [v % LONG for v in values]
    assert (x > LONG).compute().tolist() == [v > LONG for v in values]
    assert rd.where(x > 0, x, LONG).to_ints().tolist() == [v if v > 0 else LONG for v in values]
    assert rd.clip(x, -LONG + 1, LONG).to_ints().tolist() == [min(max(v, 1 - LONG), LONG) for v in values]
    assert [q.compute() for q in divmod(top, LONG)] == [1, 3]
    assert top.clip(0, LONG).compute() == np.clip(top, 0, LONG).compute() == LONG
    assert (x - (top - 3)).to_ints().tolist() == [v - LONG for v in values]
    counts, edges = rd.histogram(x, bins=[-LONG, 0, LONG, LONG + 4])
    assert np.asarray(counts).tolist() == [1, 3, 1]
    assert list(edges) == [-LONG, 0, LONG, LONG + 4]
    found = x.reduce("max").compute()
    tokens = {tokenize(item) for item in (x, system, found, top, top.compute(), x.reduce("min").compute())}
    assert len(tokens) == 6
    assert dask.delayed(lambda result: result.value, pure=True)(found).compute() == LONG + 3
