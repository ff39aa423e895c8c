"""Element-wise arithmetic: exact results, and overflow told exactly, against Python integers."""

import itertools
import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from oracles.rns import in_range, wrapped
from sample_arrays import CPU, array_of
from strategies import (
    ALL_SETS,
    BOTH_RANGES,
    EXHAUSTIVE_SETS,
    MODULI_SETS,
    arrays_of_values,
    edge_values,
    moduli_sets,
    values_in,
)

import rnsdask as rd
from rnsdask.constants import sum_check
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.overflow import overflow_mode
from rnsdask.core.ranges import SUMS_OF_PRODUCTS
from rnsdask.rns import arithmetic
from rnsdask.rns.arithmetic import deciding_window
from rnsdask.rns.evaluation import magnitudes

EACH = pytest.mark.parametrize("name", OPERATIONS)


def check(
    processor: Processor, name: str, columns: Sequence[Sequence[int]], moduli: rd.ModuliSet, signed: bool
) -> None:
    """Compare results and flags of one operation on arrays with those of Python integers."""
    operands = [array_of(processor, column, moduli, signed) for column in columns]
    exact = [OPERATIONS[name].evaluate(*values) for values in zip(*columns, strict=True)]
    result, mask = getattr(rd, name)(*operands, overflow="flag")
    expected = [not in_range(value, moduli, signed) for value in exact]
    assert processor.to_numpy(mask).tolist() == expected
    assert result.to_ints().tolist() == [wrapped(value, moduli, signed) for value in exact]
    if True in expected:
        with pytest.raises(rd.RNSOverflowError) as caught:
            getattr(rd, name)(*operands)
        assert caught.value.index == expected.index(True)


def tuples(moduli: rd.ModuliSet, signed: bool, name: str, count: int, seed: int) -> list[list[int]]:
    """Columns of operands: edges against edges, results at the ends of the range, and cancellation."""
    generator = random.Random(seed)
    arity, (sign, _) = OPERATIONS[name].arity, OPERATIONS[name].terms[-1]
    lowest, highest = moduli.value_range(signed)
    edges = edge_values(moduli, signed)
    rows = []
    while len(rows) < count:
        row = [generator.choice(edges) for _ in range(arity)]
        # The last operand so that the exact result comes to lie beside an end of the range, or beside 0.
        target = generator.choice((lowest, highest, 0)) + generator.randint(-2, 2)
        kind = generator.randrange(4)
        if arity == 2 and kind:
            a = row[0]
            row[1] = generator.choice((target - a, a - target, target // a if a else 0, edges[-1] - a))
        elif arity == 3 and kind:
            a, b = row[0], row[1]
            if kind == 1 and a:
                b = row[1] = target // a + generator.randint(-1, 1)
            row[2] = target - a * b
        elif arity == 4 and kind:
            a, b = row[0], row[1]
            if kind == 1 or not a:
                row[2:] = [a, b + generator.randint(-1, 1)]
            elif kind == 2:
                row[2:] = [a + generator.randint(-1, 1), b + generator.randint(-1, 1)]
            else:
                row[3] = (a * b - target) // row[2] if row[2] else 0
            row[3] *= -sign
        if all(lowest <= value <= highest for value in row):
            rows.append(row)
        else:
            rows.append([min(max(value, lowest), highest) for value in row])
    return [list(column) for column in zip(*rows, strict=True)]


@ALL_SETS
@BOTH_RANGES
@EACH
def test_edges_of_every_set(
    on_each_processor: Processor, name: str, moduli: rd.ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    count = max(8, min(400, 6000 // len(moduli)))
    columns = tuples(moduli, signed, name, count, int(rng.integers(2**32)))
    check(on_each_processor, name, columns, moduli, signed)


@pytest.mark.parametrize("moduli", EXHAUSTIVE_SETS.values(), ids=EXHAUSTIVE_SETS)
@BOTH_RANGES
def test_every_pair_of_small_sets(on_each_processor: Processor, moduli: rd.ModuliSet, signed: bool) -> None:
    lowest, highest = moduli.value_range(signed)
    step = max(1, moduli.product // 64)  # of the larger sets a part
    values = sorted({*range(lowest, highest + 1, step), lowest, lowest + 1, highest - 1, highest})
    columns = list(zip(*itertools.product(values, repeat=2), strict=True))
    for name in ("add", "subtract", "multiply"):
        check(on_each_processor, name, columns, moduli, signed)


@pytest.mark.parametrize("moduli", [rd.ModuliSet([2, 3]), rd.ModuliSet([5]), rd.ModuliSet([3, 4])], ids=str)
@BOTH_RANGES
def test_every_triple_and_quadruple(on_each_processor: Processor, moduli: rd.ModuliSet, signed: bool) -> None:
    lowest, highest = moduli.value_range(signed)
    for name, operation in OPERATIONS.items():
        values = range(lowest, highest + 1)
        columns = list(zip(*itertools.product(values, repeat=operation.arity), strict=True))
        check(on_each_processor, name, columns, moduli, signed)


@BOTH_RANGES
@pytest.mark.parametrize("name_of_set", ["top", "bits2048", "table2_16", "tiny_beside_huge"])
def test_cancellation_far_beyond_the_range(
    on_each_processor: Processor, name_of_set: str, signed: bool
) -> None:
    moduli = MODULI_SETS[name_of_set]
    lowest, highest = moduli.value_range(signed)
    h = highest
    rows = [(h, h, h, h), (h, h, h - 1, h), (h, h, h, h - 1), (h, h, h - 1, h - 1), (h, h - 2, h - 1, h - 1)]
    rows += [(h - 1, h - 1, h, h - 2), (h, 2, 2, h), (h // 2, 4, h // 4, 8), (0, h, h, 0), (h, h, 0, 0)]
    rows += [(lowest, h, h, lowest), (lowest, lowest, lowest, lowest), (lowest, h, lowest, h - 1)]
    rows += [(2**k, h, h, 2**k) for k in range(1, 30)] + [(2**k, h, 2**k + 1, h) for k in range(1, 30)]
    # Products of very different size, one of them 0.
    small = [1 << moduli.bits * k // 8 for k in range(8)]
    rows += [
        row for v in small for row in ((v, h, 0, 0), (0, 0, v, h), (v, h, 0, h), (v, h, 1, 1), (v, v, h, 1))
    ]
    for name in (name for name, operation in OPERATIONS.items() if operation.arity == 4):
        if signed and OPERATIONS[name].terms[-1][0] > 0:
            rows = [(a, b, c, min(-d, h)) for a, b, c, d in rows]
        check(on_each_processor, name, list(zip(*rows, strict=True)), moduli, signed)
    if signed:
        rows3 = [(2, h, -h), (2, h, lowest), (3, h, lowest), (-2, h, h), (-2, lowest, h), (2, lowest, h)]
        check(on_each_processor, "fma", list(zip(*rows3, strict=True)), moduli, signed)


def check_ranged(
    processor: Processor, name: str, operands: Sequence[Any], moduli: rd.ModuliSet, signed: bool
) -> None:
    """Compare an operation of lists, lists with bounds, and integers with that of Python integers."""
    lists = [x[0] if isinstance(x, tuple) else x for x in operands]
    length = max(len(x) for x in lists if not isinstance(x, int))
    columns = [[x] * length if isinstance(x, int) else x for x in lists]
    exact = [OPERATIONS[name].evaluate(*values) for values in zip(*columns, strict=True)]
    arguments = [
        x
        if isinstance(x, int)
        else array_of(
            processor,
            *((x[0],) if isinstance(x, tuple) else (x,)),
            moduli,
            signed,
            x[1] if isinstance(x, tuple) else None,
        )
        for x in operands
    ]
    result, mask = getattr(rd, name)(*arguments, overflow="flag")
    assert processor.to_numpy(mask).tolist() == [not in_range(value, moduli, signed) for value in exact]
    assert result.to_ints().tolist() == [wrapped(value, moduli, signed) for value in exact]


@ALL_SETS
@BOTH_RANGES
def test_thresholds_of_integers_and_bounds(
    on_each_processor: Processor, moduli: rd.ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    lowest, highest = moduli.value_range(signed)
    factors = [2, 3, 10, 255, 2**31, 2**40, highest // 3, highest - 1, *((-1, -2, -7, -(2**33)) * signed)]
    factors = [k for k in factors if lowest <= k <= highest and k]
    edges = edge_values(moduli, signed)
    edges = edges[:: max(1, len(edges) * len(moduli) // 2000)]
    # Some in each run; each bound has tables of its own to compute.
    for place in rng.permutation(len(factors))[: 4 if len(moduli) <= 64 else 1]:
        k = factors[place]
        ends = {highest // k, lowest // k, (highest - 5) // k, highest - k, lowest - k, highest, lowest, 0}
        near = {end + d for end in ends for d in (-2, -1, 0, 1, 2)} | set(edges)
        xs = sorted(v for v in near if lowest <= v <= highest)
        for name, operands in (
            ("multiply", (xs, k)),
            ("multiply", (k, xs)),
            ("add", (xs, k)),
            ("subtract", (xs, k)),
            ("subtract", (k, xs)),
            ("fma", (xs, k, 5 if highest >= 5 else 0)),
            ("fma", (k, 1, xs)),
            ("mulsub", (xs, k, k, 1)),
            ("mulsub", (k, 1, xs, k)),
            ("fma", (xs, k, (xs, max(abs(lowest), highest)))),
        ):
            check_ranged(on_each_processor, name, operands, moduli, signed)
        bound = abs(k)
        ys = [
            v
            for v in (bound, bound - 1, 0, 1, *((-bound, 1 - bound, -1) if signed else ()))
            if abs(v) <= bound
        ]
        ys = [ys[i % len(ys)] for i in range(len(xs))]
        ys = [min(max(y, lowest), highest) for y in ys]
        for name, operands in (
            ("multiply", (xs, (ys, bound))),
            ("multiply", ((ys, bound), xs)),
            ("add", (xs, (ys, bound))),
            ("subtract", ((ys, bound), xs)),
            ("fma", (xs, (ys, bound), (ys, bound))),
            ("fma", ((ys, bound), (ys, bound), xs)),
            ("mulsub", ((ys, bound), (ys, bound), xs, (ys, bound))),
        ):
            check_ranged(on_each_processor, name, operands, moduli, signed)


@BOTH_RANGES
def test_keys_of_one_operand_decide(signed: bool) -> None:
    moduli = MODULI_SETS["bits2048"]
    full = moduli.value_range(signed)
    window = deciding_window("multiply", rd.RNS(moduli, signed), (full, (3, 3)))
    assert window is not None
    assert window.deciding == 0
    # Hardly any key is neither proved to fit nor proved to overflow.
    proved, left_open = (last - first for first, last in (window.fits, window.open))
    assert 0 <= left_open - proved < 2**48
    assert deciding_window("multiply", rd.RNS(moduli, signed), (full, full)) is None
    assert deciding_window("add", rd.RNS(moduli, signed), (full, full)) is None
    window = deciding_window("fma", rd.RNS(moduli, signed), ((0, 9), full, (0, 2**100)))
    assert window is not None
    assert window.deciding == 1


@given(st.data())
def test_any_set_and_values(on_each_processor: Processor, data: st.DataObject) -> None:
    moduli = data.draw(moduli_sets(max_size=8))
    signed = data.draw(st.booleans())
    name = data.draw(st.sampled_from(sorted(OPERATIONS)))
    first = data.draw(arrays_of_values(moduli, signed, max_size=10))
    others = st.lists(values_in(moduli, signed), min_size=len(first), max_size=len(first))
    columns = [first, *(data.draw(others) for _ in range(OPERATIONS[name].arity - 1))]
    check(on_each_processor, name, columns, moduli, signed)


@EACH
@pytest.mark.parametrize("limit", ["_RESIDUES_AT_A_TIME", "_COLUMNS_AT_A_TIME"])
def test_chunks_are_checked_in_parts(
    on_each_processor: Processor,
    limit: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
) -> None:
    moduli = MODULI_SETS["unsorted"]
    evaluated = []

    def evaluate(residues: Any, system: rd.RNS) -> Any:
        evaluated.append(residues.shape[1])
        return magnitudes(residues, system)

    of_residues = limit == "_RESIDUES_AT_A_TIME"
    few: Any = 7 * len(moduli) if of_residues else dict.fromkeys(("cpu", "cuda"), 7)
    monkeypatch.setattr(arithmetic, limit, few)
    monkeypatch.setattr(arithmetic, "magnitudes", evaluate)
    columns = tuples(moduli, True, name, 100, int(rng.integers(2**32)))
    check(on_each_processor, name, columns, moduli, True)
    assert max(evaluated, default=0) <= 7
    assert evaluated or OPERATIONS[name].is_sum


# ---- the interface ----------------------------------------------------------------------------------------

TOP = MODULI_SETS["top"]


def test_modes() -> None:
    x = array_of(CPU, [1, TOP.product - 1, 5], TOP, False)
    with pytest.raises(rd.RNSOverflowError):
        x + 1
    assert rd.add(x, 1, overflow="wrap").to_ints().tolist() == [2, 0, 6]
    with rd.errstate(overflow="wrap"):
        assert (x + 1).to_ints().tolist() == [2, 0, 6]
        with rd.errstate(overflow="flag"):
            result, mask = x + 1
            assert result.to_ints().tolist() == [2, 0, 6]
            assert mask.tolist() == [False, True, False]
        with pytest.raises(rd.RNSOverflowError):
            rd.add(x, 1, overflow="raise")
        lazy = x.rechunk(128) + 1
    assert overflow_mode() == "raise"
    assert lazy.to_ints().tolist() == [2, 0, 6]  # as set when it was called
    with pytest.raises(ValueError, match="raise, wrap, flag, extend, got 'ignore'"):
        rd.add(x, 1, overflow="ignore")
    with pytest.raises(ValueError, match="got 'no'"), rd.errstate(overflow="no"):
        pass


def test_error_on_dask_names_the_index_in_the_array() -> None:
    values = np.zeros((3, 500), dtype=object)
    values[2, 300] = TOP.product - 3
    x = rd.from_ints(values, TOP, chunks=(1, 128))
    x = rd.RNSArray(x.residues, rd.RNS(TOP))
    lazy = x + 3
    with pytest.raises(rd.RNSOverflowError) as caught:
        lazy.to_ints()
    assert caught.value.index == 2 * 500 + 300
    assert (x + 2).max().compute() == TOP.product - 1


def test_error() -> None:
    processor = CPU
    limit = TOP.product
    message = r"index 1: .* is 128 bits long, .* unsigned range of M of 128 bits, .* numbers of 127 bits;"
    with pytest.raises(rd.RNSOverflowError, match=message) as c:
        array_of(processor, [0, limit - 1], TOP, False) + 1
    assert isinstance(c.value, OverflowError)
    assert isinstance(c.value, rd.RNSError)
    assert (c.value.index, c.value.bits_needed, c.value.bits_available) == (1, limit.bit_length(), 127)
    copy = pickle.loads(pickle.dumps(c.value))
    assert str(copy) == str(c.value)
    with pytest.raises(rd.RNSOverflowError, match=r"index 0: .* is negative and 3 bits long"):
        array_of(processor, [1], TOP, False) - 5
    with pytest.raises(
        rd.RNSOverflowError, match=r"with its sign, .* signed range of M of 128 bits, .* 127 bits;"
    ):
        array_of(processor, [limit // 2 - 1], TOP, True) * 2


def test_bounds() -> None:
    x, y = (array_of(CPU, [3, 4], TOP, True, bound) for bound in (10, 1000))
    assert (x + y).bound == 1010
    assert (x - y).bound == 1010
    assert (x * y).bound == 10_000
    assert (x * -7).bound == 70
    assert rd.fma(x, y, 5).bound == 10_005
    assert rd.mulsub(x, y, y, 3).bound == 13_000
    assert (-x).bound == 10
    u, v = (array_of(CPU, [3, 4], TOP, False, bound) for bound in (10, 1000))
    assert (v - u).bound == 1000
    assert (v - 1).bound == 999
    unknown = array_of(CPU, [3, 4], TOP, True)
    assert (unknown * x).bound is None
    with rd.errstate(overflow="wrap"):
        assert (x * y).bound == 10_000  # cannot overflow
        assert (v - u).bound is None


def test_results_known_to_fit_are_not_checked() -> None:
    """A bound that is wrong shows it: nobody sees the overflow of numbers that are beyond it."""
    highest = TOP.value_range(True)[1]
    x = array_of(CPU, [3, -4, highest], TOP, True, 5)
    beyond = wrapped(highest**2 + highest - 1, TOP, True)
    assert (x * x + x - 1).to_ints().tolist() == [11, 11, beyond]


def test_mismatches() -> None:
    x = array_of(CPU, [1, 2], TOP, False)
    with pytest.raises(ValueError, match="different moduli sets"):
        x + array_of(CPU, [1, 2], MODULI_SETS["unsorted"], False)
    with pytest.raises(ValueError, match="one is signed, another unsigned"):
        x * array_of(CPU, [1, 2], TOP, True)
    with pytest.raises(ValueError, match="do not broadcast"):
        x - array_of(CPU, [1, 2, 3], TOP, False)
    with pytest.raises(ValueError, match="outside the unsigned range"):
        x + TOP.product
    with pytest.raises(TypeError, match="must be an integer"):
        x + 1.5
    with pytest.raises(TypeError, match="takes at least one array of numbers"):
        rd.fma(1, 2, 3)


# ---- what the checks rest on ------------------------------------------------------------------------------


@EACH
def test_result_range(name: str) -> None:
    generator = random.Random(5)
    for _ in range(300):
        ranges = [sorted(generator.randint(-4, 4) for _ in range(2)) for _ in range(OPERATIONS[name].arity)]
        values = [
            OPERATIONS[name].evaluate(*choice)
            for choice in itertools.product(*(range(a, b + 1) for a, b in ranges))
        ]
        assert SUMS_OF_PRODUCTS[name](*((a, b) for a, b in ranges)) == (min(values), max(values))


def test_operand_range() -> None:
    moduli = rd.ModuliSet([3, 5])
    assert rd.RNS(moduli).known_range == (0, 14)
    assert rd.RNS(moduli, False, 20).known_range == (0, 14)
    assert rd.RNS(moduli, True, 3).known_range == (-3, 3)
    assert rd.RNS(moduli, True, 20).known_range == (-7, 7)


@ALL_SETS
@BOTH_RANGES
@pytest.mark.parametrize("subtract", [False, True])
def test_sum_check_leaves_one_comparison(moduli: rd.ModuliSet, signed: bool, subtract: bool) -> None:
    check = sum_check(moduli, signed, subtract)
    # Halved sums of keys are from 0 to 2**64 - 2, differences from -2**63 to 2**63 - 1: a window within that
    # is one comparison modulo 2**64.
    least, greatest = (-(2**63), 2**63 - 1) if subtract else (0, 2**64 - 2)
    assert len(check.limits) == 5
    assert all(0 <= limit < 2**64 for limit in check.limits)
    for first, last in (check.fits, check.open):
        assert first > last or least <= first <= last <= greatest


def test_no_numbers_in_arrays_of_different_kinds() -> None:
    """An eager operand of no numbers beside lazy ones in chunks along an axis that has a length."""
    moduli = MODULI_SETS["top"]
    empty = np.zeros((len(moduli), 4, 0), dtype=np.uint32)
    eager = rd.from_residues(empty, moduli)
    lazy = rd.from_residues(da.from_array(empty, chunks=(len(moduli), 3, 1)), moduli)
    for mode in ("raise", "wrap", "flag"):
        result = rd.fma(lazy, eager, lazy, overflow=mode)
        parts = result if mode == "flag" else (result,)
        assert [part.compute().shape for part in parts] == [(4, 0)] * len(parts)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@BOTH_RANGES
def test_lazy_flagged_arithmetic_without_numbers(
    shape: tuple[int, ...], signed: bool, tmp_path: Path
) -> None:
    moduli = rd.ModuliSet.for_bits(100)
    x = rd.from_ints(np.zeros(shape, dtype=object), moduli, signed=signed, chunks="auto")
    with rd.errstate(overflow="flag"):
        found = {
            "sums": x + x,
            "differences": 5 - x,
            "products": x * 3,
            "negative": -x,
            "fma": rd.fma(x, x, 1),
            "mulsub": rd.mulsub(x, x, x, 1),
            "shifted": x << 3,
            "powers": x**3,
        }
    for i, (name, (values, mask)) in enumerate(found.items()):
        assert (values.to_ints().shape, mask.compute().shape, mask.dtype) == (shape, shape, bool), name
        assert int(mask.sum()) == 0
        values.to_zarr(tmp_path / f"{i}.zarr")
        assert rd.open_zarr(tmp_path / f"{i}.zarr").size == 0
