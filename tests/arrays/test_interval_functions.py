"""Functions of IntervalRNSArrays at the ends of their range, against Python's integers."""

import math
from collections.abc import Callable
from random import Random
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from interval_numbers import check_columns, edge_numbers
from oracles.integers import Range, best, mapped, objects
from sample_arrays import host
from strategies import MODULI_SETS, slow

import rnsdask as rd
from rnsdask import IntervalRNSArray, RNSOverflowError
from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns import widening
from rnsdask.rns.system import RNS

EIGHT = MODULI_SETS["table2_8"]
SETS = {"eight": EIGHT, "two": ModuliSet([3, 2**32]), "one": ModuliSet([2**32]), "tiny": ModuliSet([2])}
KINDS = ("eager", "dask")
LIMITS = Range.of("interval", EIGHT.product)
SHAPE = (4, 6)


pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def random(rng: np.random.Generator) -> Random:
    return Random(int(rng.integers(2**63)))


def made(values: Any, moduli: ModuliSet, processor: Processor, kind: str) -> IntervalRNSArray:
    x = IntervalRNSArray.from_ints(values, moduli)
    columns = processor.xp.asarray(x.columns)
    if kind == "dask":
        chunks = (len(columns), *(max(1, length // 3) for length in x.shape))
        columns = da.from_array(columns, chunks=chunks, asarray=False)
    return IntervalRNSArray(columns, x.system)


def check(result: Any, expected: Any, processor: Processor) -> None:
    (result,) = dask.compute(result)
    assert isinstance(result, IntervalRNSArray)
    assert result.shape == np.shape(expected)
    flat = result.columns.reshape(len(result.columns), -1)
    check_columns(flat, np.asarray(expected, dtype=object).reshape(-1).tolist(), result.moduli, processor)


def check_modes(
    function: Callable[..., Any],
    exact: np.ndarray,
    limits: Range,
    processor: Processor,
    wrapped: np.ndarray | None = None,
) -> None:
    """Check a function of the overflow mode by what its exact results are."""
    outside = limits.outside(exact)
    wrapped = limits.wrapped(exact) if wrapped is None else wrapped
    result, mask = function(overflow="flag")
    assert (host(mask) == outside).all()
    check(result, wrapped, processor)
    check(function(overflow="wrap"), wrapped, processor)
    if not outside.any():
        check(function(overflow="raise"), exact, processor)
        return
    with pytest.raises(RNSOverflowError) as error:
        dask.compute(function(overflow="raise"))
    index = error.value.index
    assert outside.reshape(-1)[index]
    value = exact.reshape(-1)[index]
    assert error.value.bits_available == limits.product.bit_length()
    assert error.value.negative == (value < 0)
    if not error.value.at_least:
        assert error.value.bits_needed == limits.bits_needed(value)


# ---- element by element -----------------------------------------------------------------------------------


@pytest.mark.parametrize("moduli", SETS.values(), ids=SETS)
def test_powers(moduli: ModuliSet, random: Random, on_each_processor: Processor, kind: str) -> None:
    product = moduli.product
    limits = Range.of("interval", product)
    roots = {s * (round(product ** (1 / k)) + d) for k in (2, 3, 5) for d in (-1, 0, 1) for s in (1, -1)}
    values = objects(v for v in (*edge_numbers(moduli, random), *roots) if limits.holds(v))
    x = made(values, moduli, on_each_processor, kind)
    for k in (0, 1, 2, 3, 5, moduli.bits, 2**64 + 1, 2**70):
        # A long power of what is no 0, 1, -1 is out of range: any number with its sign stands for it.
        exact = mapped(
            lambda v, k=k: v**k if k < 400 or abs(v) < 2 else (-2 if v < 0 and k % 2 else 2) * product, values
        )
        wrapped = mapped(lambda v, k=k: pow(abs(v), k, product) * (-1 if v < 0 and k % 2 else 1), values)
        check_modes(lambda k=k, **mode: rd.power(x, k, **mode), exact, limits, on_each_processor, wrapped)
    check(made([2, -1, 0], EIGHT, on_each_processor, kind) ** 5, [32, -1, 0], on_each_processor)
    lazy = da.from_delayed(dask.delayed(3), (), dtype=np.int64)
    check(made([2, -1, 0], EIGHT, on_each_processor, kind) ** lazy, [8, -1, 0], on_each_processor)
    with pytest.raises(ValueError, match="an exponent must not be negative"):
        x**-1
    with pytest.raises(TypeError, match="exponent must be an integer"):
        rd.power(x, 2.0)  # type: ignore[arg-type]


def test_inverses(random: Random, on_each_processor: Processor, kind: str) -> None:
    moduli = EIGHT
    values = [v for v in edge_numbers(moduli, random) if math.gcd(v, moduli.product) == 1]
    x = made(values, moduli, on_each_processor, kind)
    inverses = rd.inverse(x)
    expected = [pow(abs(v), -1, moduli.product) * (-1 if v < 0 else 1) for v in values]
    check(inverses, expected, on_each_processor)
    quotients = objects(random.randint(-(2**20), 2**20) for _ in values)
    products = rd.multiply(x, made(quotients, moduli, on_each_processor, kind), overflow="wrap")
    assert [int(v) for v in rd.multiply(products, inverses, overflow="wrap").to_ints()] == quotients.tolist()
    with pytest.raises(ValueError, match="the number at flat index 1 has no inverse"):
        dask.compute(rd.inverse(made([1, moduli[2], -1], moduli, on_each_processor, kind)))


@pytest.mark.parametrize(
    "moduli", [EIGHT, ModuliSet([2]), *slow(SETS["two"], SETS["one"])], ids=["eight", "tiny", "two", "one"]
)
def test_division_by_integers_of_any_size(
    moduli: ModuliSet, random: Random, on_each_processor: Processor, kind: str
) -> None:
    product, limits = moduli.product, Range.of("interval", moduli.product)
    values = objects(edge_numbers(moduli, random))
    x = made(values, moduli, on_each_processor, kind)
    near = (
        product,
        product + 1,
        product + product // 2,
        2 * product - 3,
        2 * product - 2,
        2 * product,
        product**2,
    )
    for d in (*near, *(-v for v in near), product - 1, 1 - product, 7, -(2**32), 1, -1, 10**400):
        if limits.holds(d) and d == 0:
            continue
        quotients = mapped(lambda v, d=d: v // d, values)
        check(x // d, quotients, on_each_processor)
        remainders = mapped(lambda v, d=d: v % d, values)
        outside = limits.outside(remainders)
        lazy = da.from_array(objects([d]), chunks=1)[0]
        fitting = values[~outside]
        y = made(fitting, moduli, on_each_processor, kind)
        for divisor in (d, lazy):
            q, r = divmod(y, divisor)
            check(q, fitting // d, on_each_processor)
            check(r, fitting % d, on_each_processor)
        if outside.any():
            with pytest.raises(RNSOverflowError) as error:
                dask.compute(x % d)
            assert outside[error.value.index]
            assert error.value.bits_needed == limits.bits_needed(remainders[error.value.index])
    with pytest.raises(ZeroDivisionError):
        x // 0
    with pytest.raises(ZeroDivisionError):
        dask.compute(x % da.from_array(objects([0]), chunks=1)[0])


def test_shifts_and_parity(random: Random, on_each_processor: Processor, kind: str) -> None:
    values = objects(edge_numbers(EIGHT, random))
    x = made(values, EIGHT, on_each_processor, kind)
    for bits in (0, 1, 31, 64, EIGHT.bits - 1, EIGHT.bits, 10**9):
        reach = min(bits, EIGHT.bits + 1)
        check(x >> bits, mapped(lambda v, reach=reach: v >> reach, values), on_each_processor)
    small = values[abs(values) < 2**30]
    check(made(small, EIGHT, on_each_processor, kind) << 70, small * 2**70, on_each_processor)
    with pytest.raises(ValueError, match="outside the range"):
        x << EIGHT.bits
    with pytest.raises(RNSOverflowError):
        dask.compute(x << 2)
    with pytest.raises(ValueError, match="shift must not be negative"):
        x >> -1
    for moduli in SETS.values():
        numbers = edge_numbers(moduli, random)
        found = made(numbers, moduli, on_each_processor, kind).is_even()
        assert host(found).tolist() == [v % 2 == 0 for v in numbers]


# ---- products ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"), [((3, 5), (5, 4)), ((5,), (5, 4)), ((3, 5), (5,)), ((2, 0), (0, 3)), ((1, 1), (1, 1))]
)
def test_matrix_products(
    left: tuple[int, ...], right: tuple[int, ...], random: Random, on_each_processor: Processor, kind: str
) -> None:
    limits, edges = Range.of("interval", EIGHT.product), edge_numbers(EIGHT, random)
    for pool in (edges, [v for v in edges if abs(v) < 2**50]):
        a, b = (objects(random.choices(pool, k=math.prod(s)), s) for s in (left, right))
        x, y = (made(v, EIGHT, on_each_processor, kind) for v in (a, b))
        exact = np.asarray(np.dot(a, b), dtype=object) if left[-1] else objects([0] * 6, (2, 3))
        check_modes(lambda x=x, y=y, **mode: rd.matmul(x, y, **mode), exact, limits, on_each_processor)
    check(x @ y, exact, on_each_processor)


def test_product_of_vectors(on_each_processor: Processor, kind: str) -> None:
    product = EIGHT.product
    x = made([product - 1, 2, -3], EIGHT, on_each_processor, kind)
    y = made([1, -5, 4], EIGHT, on_each_processor, kind)
    assert int(rd.dot(x, y)) == product - 1 - 10 - 12
    value, mask = rd.dot(x, x, overflow="flag")
    assert int(value) == ((product - 1) ** 2 + 13) % product
    assert bool(host(mask)) is True
    assert int(rd.dot(x, -x, overflow="wrap")) == -(((product - 1) ** 2 + 13) % product)
    with pytest.raises(RNSOverflowError, match="flat index 0"):
        int(rd.dot(x, x))
    if kind == "eager":
        assert type(rd.dot(x, y)) is int
        assert type(mask) is bool
    with pytest.raises(ValueError, match="do not match for a matrix product"):
        rd.dot(x, y[:2])
    with pytest.raises(TypeError, match="both operands of a matrix product must be"):
        x @ 5
    with pytest.raises(ValueError, match="one or two axes, got 3"):
        rd.dot(x[None, None], y)


# ---- products and powers of tables ------------------------------------------------------------------------


@pytest.fixture
def numbers(rng: np.random.Generator) -> np.ndarray:
    random = Random(int(rng.integers(2**63)))
    pool = [*edge_numbers(EIGHT, random), *(-3, -2, -1, 0, 1, 2, 5) * 6]
    return objects(random.choices(pool, k=24), SHAPE)


def check_flagged(pair: Any, exact: np.ndarray, processor: Processor) -> None:
    result, mask = pair
    assert (host(mask) == LIMITS.outside(exact)).all()
    check(result, LIMITS.wrapped(exact), processor)


def test_products_out_of_range_name_the_first(on_each_processor: Processor, kind: str) -> None:
    top = EIGHT.product - 1
    x = made([[1, top, 1, -1], [-1, 2, 0, 7], [3, -top, 5, 1], [1, 1, 1, 0]], EIGHT, on_each_processor, kind)
    # Any chunk of a Dask array may fail first, and names the first of its own.
    for call, places in ((lambda: x.prod(1), {2}), (lambda: x.cumprod(0), {5, 9, 13})):
        with pytest.raises(RNSOverflowError) as error:
            dask.compute(call())
        assert error.value.index in places
        assert error.value.at_least
        assert error.value.bits_available == EIGHT.bits
    (mask,) = dask.compute(x.prod(1, overflow="flag")[1])
    assert host(mask).tolist() == [False, False, True, False]
    check(x[:0].prod(0), objects([1] * 4), on_each_processor)
    with pytest.raises(ValueError, match="axis"):
        x.prod(2)


def test_exponents_for_each_number(numbers: np.ndarray, on_each_processor: Processor, kind: str) -> None:
    x = made(numbers, EIGHT, on_each_processor, kind)
    exponents = np.array([0, 1, 2, 3, EIGHT.bits, EIGHT.bits + 7])
    given = on_each_processor.xp.asarray(exponents)
    exact = mapped(pow, numbers, np.broadcast_to(exponents.astype(object), SHAPE))
    check_flagged(rd.power(x, given, overflow="flag"), exact, on_each_processor)
    check(rd.power(x, exponents.tolist(), overflow="wrap"), LIMITS.wrapped(exact), on_each_processor)
    signs = np.sign(numbers)
    check(made(signs, EIGHT, on_each_processor, kind) ** given, signs**exponents, on_each_processor)
    outside = LIMITS.outside(exact)
    if outside.any():
        with pytest.raises(RNSOverflowError) as error:
            dask.compute(x**given)
        index = error.value.index
        assert outside.reshape(-1)[index]
        assert error.value.bits_needed == LIMITS.bits_needed(exact.reshape(-1)[index])
    with pytest.raises(ValueError, match="an exponent must not be negative"):
        dask.compute(made(signs, EIGHT, on_each_processor, kind) ** (given - 1))
    with pytest.raises(TypeError, match="exponents must be"):
        rd.power(x, x)
    with pytest.raises(TypeError, match="machine integers, got an IntervalRNSArray"):
        rd.power(7, x)


@pytest.mark.parametrize("modulus", [1, 97, -97, 2**32, 2**40 + 15, EIGHT.product - 1, -EIGHT.product])
def test_powers_modulo_integers(
    modulus: int, numbers: np.ndarray, on_each_processor: Processor, kind: str
) -> None:
    x = made(numbers, EIGHT, on_each_processor, kind)
    for exponent in (0, 1, 5, 2**70):
        exact = mapped(lambda v, k=exponent: pow(v, k, modulus), numbers)
        check(pow(x, exponent, modulus), exact, on_each_processor)
    with pytest.raises(ValueError, match="do not fit the moduli set"):
        pow(x, 2, EIGHT.product + 1)
    with pytest.raises(ValueError, match="must not be 0"):
        pow(x, 2, 0)


def test_powers_and_stacks_of_matrices(numbers: np.ndarray, on_each_processor: Processor, kind: str) -> None:
    a = numbers[:, :4] % 11 - 5
    x = made(a, EIGHT, on_each_processor, kind)
    check(rd.linalg.matrix_power(x, 0), np.eye(4, dtype=object) * 1, on_each_processor)
    check(rd.linalg.matrix_power(x, 5), a.dot(a).dot(a).dot(a).dot(a), on_each_processor)
    check(rd.dot(x, x), a.dot(a), on_each_processor)
    stack = rd.stack([x, -x])
    check(rd.matmul(stack, x), np.stack([a.dot(a), -a.dot(a)]), on_each_processor)
    with pytest.raises(ValueError, match='takes overflow="raise", got "wrap"'):
        rd.linalg.matrix_power(x, 2, overflow="wrap")
    with pytest.raises(ValueError, match="have one or two axes, got 3"):
        rd.dot(stack, stack)


# ---- reductions, selections, scans ------------------------------------------------------------------------


def test_selections_and_scans(random: Random, on_each_processor: Processor, kind: str) -> None:
    values = random.sample(edge_numbers(EIGHT, random), 20) * 2
    x = made(values, EIGHT, on_each_processor, kind)
    for k in (0, 1, 7, -7, 100):
        places = best(values, k)
        assert host(x.argtopk(k)).tolist() == places
        assert host(x.topk(k)).tolist() == [values[i] for i in places]
    for name, function in (("cummax", np.maximum), ("cummin", np.minimum)):
        check(getattr(x, name)(), function.accumulate(objects(values)), on_each_processor)
    top = EIGHT.product - 1
    steps = [top, -1, -top, -top + 1, 2, top, top - 2]
    check(made(steps, EIGHT, on_each_processor, kind).cumsum(), np.cumsum(objects(steps)), on_each_processor)
    over = made([top, -5, 6, 9, -20], EIGHT, on_each_processor, kind)
    with pytest.raises(RNSOverflowError) as error:
        dask.compute(over.cumsum())
    # In chunks of one number, any of the chunks may be the first to fail.
    assert error.value.index in ((2,) if kind == "eager" else (2, 3))
    assert error.value.bits_needed == Range.of("interval", top + 1).bits_needed(top + 1)
    assert x[:0].cumsum().shape == (0,)
    assert host(x[None].topk(2, 0)).tolist() == [values]
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        x.cumsum(1)


# ---- other moduli, bounds ---------------------------------------------------------------------------------


def test_other_moduli(random: Random, on_each_processor: Processor, kind: str) -> None:
    values = edge_numbers(EIGHT, random)
    x = made(values, EIGHT, on_each_processor, kind)
    other = ModuliSet([*ModuliSet.for_bits(EIGHT.bits + 1, 16), *ModuliSet([3]).moduli][:-1])
    check(x.extend(other), values, on_each_processor)
    small = [v for v in values if abs(v) < 3 * 2**32]
    two = SETS["two"]
    check(made(small, EIGHT, on_each_processor, kind).shrink(two), small, on_each_processor)
    beyond = made([1, 3 * 2**32 - 1, -3 * 2**32], EIGHT, on_each_processor, kind)
    with pytest.raises(ValueError, match=r"value -12884901888 at flat index 2 is outside the range from"):
        dask.compute(beyond.shrink(two))
    with pytest.raises(ValueError, match="cannot shrink to"):
        x.shrink(ModuliSet.for_bits(2000))
    with pytest.raises(TypeError, match="moduli must be a ModuliSet"):
        x.extend([3, 5])  # type: ignore[arg-type]


def test_measured_bounds(on_each_processor: Processor, kind: str) -> None:
    for values, bound in (
        ([3, -(2**70) - 1], 2**71 - 1),
        ([0, 0], 0),
        ([EIGHT.product - 1], EIGHT.product - 1),
    ):
        assert made(values, EIGHT, on_each_processor, kind).measure_bound() == bound


# ---- the way there and back -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MODULI_SETS))
def test_wide_systems_hold_all_numbers(name: str, random: Random, on_each_processor: Processor) -> None:
    moduli = MODULI_SETS[name]
    top = moduli.product - 1
    values = [0, 1, -1, top, -top, top // 2 + 1, *(random.randint(-top, top) for _ in range(5))]
    columns = on_each_processor.xp.asarray(IntervalRNSArray.from_ints(values, moduli).columns)
    for bits in (moduli.bits, moduli.bits + 1, 2 * moduli.bits + 7):
        wide = widening.wide_system(moduli, bits)
        assert wide.moduli.moduli[: len(moduli)] == moduli.moduli
        assert wide.value_range[0] <= -(2**bits) < 2**bits <= wide.value_range[1]
        residues = widening.widened(columns, moduli, wide)
        assert wide.decode(residues).tolist() == values
        for known in (wide, wide.with_bound(top)):
            back = widening.narrowed(residues, known, moduli, "raise")
            check_columns(back, values, moduli, on_each_processor)
    larger = [top + 1, -top - 1, *values]
    packed = widening.narrowed(on_each_processor.xp.asarray(wide.encode(larger)), wide, moduli, "flag")
    assert on_each_processor.to_numpy(packed[-1]).tolist() == [1, 1] + [0] * len(values)
    check_columns(packed[:-1], [0, 0, *values], moduli, on_each_processor)


def test_small_numbers_take_few_more_moduli(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact results of a sum of products take as many moduli as the intervals ask for."""
    asked: list[RNS] = []
    original = widening.wide_system

    def noted(*args: Any) -> RNS:
        asked.append(original(*args))
        return asked[-1]

    monkeypatch.setattr(widening, "wide_system", noted)
    moduli = ModuliSet.for_bits(1000)
    x = IntervalRNSArray.from_ints([3**100, -7], moduli)
    assert rd.fma(x, x, x).to_ints().tolist() == [3**200 + 3**100, 42]
    assert len(asked[-1].moduli) <= len(moduli) + 2
    y = IntervalRNSArray.from_ints([moduli.product - 1], moduli)
    rd.fma(y, y, y, overflow="wrap")
    assert len(asked[-1].moduli) >= 2 * len(moduli)
