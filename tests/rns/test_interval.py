"""Floating-point interval evaluation against exact rationals, on each processor."""

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from oracles import rns
from strategies import (
    BOTH_RANGES,
    EXHAUSTIVE_SETS,
    MODULI_SETS,
    SMALL_SETS,
    arrays_of_values,
    each_name,
    edge_values,
    moduli_sets,
)

from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.evaluation import IntervalEvaluation, interval_evaluation, refinement_steps
from rnsdask.rns.system import RNS

ACCURACY = 1e-7
BIG_SET = MODULI_SETS["table2_64"]


def is_at_most(bound: float, exponent: int, value: int, product: int) -> bool:
    """bound * 2**exponent <= value / product, in integers."""
    numerator, denominator = bound.as_integer_ratio()
    left, right = numerator * product, value * denominator
    return left << max(exponent, 0) <= right << max(-exponent, 0)


def check_interval(
    interval: IntervalEvaluation,
    values: list[int],
    moduli: ModuliSet,
    processor: Processor,
    accuracy: float = ACCURACY,
) -> None:
    lows, upps, exponents = (
        processor.to_numpy(field).tolist() for field in (interval.low, interval.upp, interval.exponent)
    )
    assert len(lows) == len(upps) == len(exponents) == len(values)
    product, widest = moduli.product, Fraction(accuracy)
    for value, low, upp, exponent in zip(values, lows, upps, exponents, strict=True):
        what = f"X = {value:#x}, [{low!r}, {upp!r}] * 2**{exponent}, accuracy {accuracy}, {moduli}"
        assert is_at_most(low, exponent, value, product), what
        assert is_at_most(-upp, exponent, -value, product), what
        assert Fraction(upp) - Fraction(low) <= widest * Fraction(min(abs(low), abs(upp))), what
        if value == 0:
            assert (low, upp, exponent) == (0.0, 0.0, 0), what


def evaluate_and_check(
    values: list[int],
    moduli: ModuliSet,
    processor: Processor,
    signed: bool = False,
    bound: int | None = None,
    accuracy: float = ACCURACY,
) -> None:
    residues = processor.xp.asarray(rns.encode(values, moduli, signed))
    interval = interval_evaluation(residues, RNS(moduli, signed, bound), accuracy)
    check_interval(interval, values, moduli, processor, accuracy)


def least_accuracy(moduli: ModuliSet, signed: bool = False, bound: int | None = None) -> float:
    """The limit that the error for an impossible accuracy names."""
    residues = np.zeros((len(moduli), 1), dtype=np.uint32)
    with pytest.raises(ValueError, match="accuracy") as caught:
        interval_evaluation(residues, RNS(moduli, signed, bound), 1e-300)
    found = re.search(r"at least (\S+)$", str(caught.value))
    assert found, caught.value
    return float(found[1])


def some(values: list[int], moduli: ModuliSet) -> list[int]:
    """Fewer of them for a long set: its small numbers take hundreds of steps."""
    return values[:: 1 + len(moduli) // 32]


@BOTH_RANGES
@each_name(MODULI_SETS)
def test_edge_values(name: str, signed: bool, on_each_processor: Processor) -> None:
    moduli = MODULI_SETS[name]
    values = some(edge_values(moduli, signed), moduli)
    lowest, highest = moduli.value_range(signed)
    values += [v for v in (lowest, lowest + 1, -1, 0, 1, highest - 1, highest) if lowest <= v <= highest]
    evaluate_and_check(values, moduli, on_each_processor, signed)


@BOTH_RANGES
@pytest.mark.parametrize("name", EXHAUSTIVE_SETS)
def test_every_value(name: str, signed: bool, on_each_processor: Processor) -> None:
    moduli = EXHAUSTIVE_SETS[name]
    lowest, highest = moduli.value_range(signed)
    values = list(range(lowest, highest + 1))
    for accuracy in (least_accuracy(moduli), 1e-3, 10.0):
        evaluate_and_check(values, moduli, on_each_processor, signed, accuracy=accuracy)


@each_name(SMALL_SETS)
def test_accuracies(name: str, on_each_processor: Processor) -> None:
    moduli = SMALL_SETS[name]
    for signed in (False, True):
        values = edge_values(moduli, signed)[::7]
        for accuracy in (1.0, 1e-2, 1e-10, least_accuracy(moduli)):
            evaluate_and_check(values, moduli, on_each_processor, signed, accuracy=accuracy)


def test_least_accuracy_of_a_long_set(on_each_processor: Processor) -> None:
    moduli = MODULI_SETS["moduli512"]
    values = [1, 2**4000 + 1, moduli.product // 2, moduli.product - 1]
    evaluate_and_check(values, moduli, on_each_processor, accuracy=least_accuracy(moduli))


@pytest.mark.parametrize("accuracy", [0.0, -1e-7, math.nan, math.inf, 1e-300, 1e-15])
def test_impossible_accuracies(accuracy: float) -> None:
    with pytest.raises(ValueError, match="accuracy") as caught:
        interval_evaluation(np.zeros((64, 3), dtype=np.uint32), RNS(BIG_SET), accuracy)
    assert str(accuracy) in str(caught.value)


def rounded(value: Fraction, up: bool) -> Fraction:
    """A number in [1, 4) rounded to a double, down or up."""
    unit = Fraction(1 if value < 2 else 2, 2**52)
    return (math.ceil(value / unit) if up else math.floor(value / unit)) * unit


def exact_sum(value: int, moduli: ModuliSet, up: bool) -> float:
    """The bound of X/M that directed rounding gives, each operation carried out exactly and then rounded."""
    total = Fraction(1)
    for m, w in zip(moduli, moduli.partial_inverses, strict=True):
        reciprocal = Fraction(1 / m)
        if (reciprocal < Fraction(1, m)) is up and reciprocal != Fraction(1, m):
            reciprocal = Fraction(math.nextafter(1 / m, 1.0 if up else 0.0))
        total = rounded(total + value * w % m * reciprocal, up)
        total -= total >= 2
    return float(total - 1)


@each_name(SMALL_SETS)
def test_each_operation_rounds_as_directed(
    name: str, on_each_processor: Processor, rng: np.random.Generator
) -> None:
    moduli = SMALL_SETS[name]
    random = [int.from_bytes(rng.bytes(moduli.bits // 8 + 9)) % moduli.product for _ in range(30)]
    # Large enough for the first sum to be the result, and not so near M that it may wrap.
    values = [v for v in random if moduli.product // 100 < v < moduli.product // 100 * 99]
    residues = on_each_processor.xp.asarray(rns.encode(values, moduli))
    interval = interval_evaluation(residues, RNS(moduli), 1e-3)
    low, upp = on_each_processor.to_numpy(interval.low), on_each_processor.to_numpy(interval.upp)
    assert low.tolist() == [exact_sum(v, moduli, up=False) for v in values]
    assert upp.tolist() == [exact_sum(v, moduli, up=True) for v in values]
    assert not on_each_processor.to_numpy(interval.exponent).any()


@BOTH_RANGES
@pytest.mark.parametrize("bits", [0, 1, 31, 32, 100, 511, 1022, 1100])
def test_a_bound_needs_the_first_moduli_only(bits: int, signed: bool, on_each_processor: Processor) -> None:
    bound = 2**bits - 1
    lowest, highest = BIG_SET.value_range(signed)
    near = [0, 1, 2, bound // 3, bound // 2, bound - 1, bound]
    values = sorted(
        {s * v for v in near for s in ((-1, 1) if signed else (1,)) if lowest <= s * v <= highest}
    )
    residues = rns.encode(values, BIG_SET, signed)
    range_of_bound = 2 * bound + 1 if signed else bound + 1
    needed = 1
    while needed < len(BIG_SET) and BIG_SET.prefix(needed).product < range_of_bound:
        needed += 1
    residues[needed:] = 0
    residues = on_each_processor.xp.asarray(residues)
    least = least_accuracy(BIG_SET, signed, bound)
    for accuracy in (ACCURACY, least):
        interval = interval_evaluation(residues, RNS(BIG_SET, signed, bound), accuracy)
        check_interval(interval, values, BIG_SET, on_each_processor, accuracy)


def test_invalid_bounds() -> None:
    residues = np.zeros((64, 1), dtype=np.uint32)
    with pytest.raises(ValueError, match="bound must not be negative, got -1"):
        interval_evaluation(residues, RNS(BIG_SET, bound=-1))
    with pytest.raises(TypeError, match="bound"):
        interval_evaluation(residues, RNS(BIG_SET, bound=1.5))  # type: ignore[arg-type]


def test_invalid_residues() -> None:
    with pytest.raises(TypeError, match="uint32"):
        interval_evaluation(np.zeros((64, 1)), RNS(BIG_SET))
    with pytest.raises(ValueError, match="64 moduli"):
        interval_evaluation(np.zeros((63, 1), dtype=np.uint32), RNS(BIG_SET))


@pytest.mark.parametrize("name", ["table2_64", "table2_256", "moduli512"])
def test_near_the_ends(name: str, on_each_processor: Processor) -> None:
    """Numbers next to 0 and M, where the first sum cannot tell the two, and next to M/2 when signed."""
    moduli = MODULI_SETS[name]
    product = moduli.product
    near = [0, 1, 2, 3, product >> 60, product >> 53, product >> 45, product >> 40]
    values = [*near, *(product - v for v in near[1:])]
    evaluate_and_check(values, moduli, on_each_processor)
    lowest, highest = moduli.value_range(signed=True)
    values = [*near, *(-v for v in near), *(lowest + v for v in near), *(highest - v for v in near)]
    evaluate_and_check(values, moduli, on_each_processor, signed=True)


def test_many_numbers_of_all_sizes(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """More than the CPU handles at a time, with those to refine anywhere among the others."""
    moduli = MODULI_SETS["table2_16"]
    sizes = np.where(rng.random(2500) < 0.7, moduli.bits - 1, rng.integers(0, moduli.bits, 2500))
    random = int.from_bytes(rng.bytes(64))
    values = [random % min(2 << int(size), moduli.product) for size in sizes]
    evaluate_and_check(values, moduli, on_each_processor)


@pytest.mark.parametrize("n", [8, 32, 64, 256])
def test_refinement_steps_of_powers_of_two(n: int, on_each_processor: Processor) -> None:
    """The paper's figures 2 and 3: about a third of the steps of the algorithm without its improvement."""
    moduli = MODULI_SETS[f"table2_{n}"]
    exponents = list(range(0, moduli.bits - 1, max(1, moduli.bits // 100)))
    residues = on_each_processor.xp.asarray(rns.encode([1 << k for k in exponents], moduli))
    steps = on_each_processor.to_numpy(refinement_steps(residues, RNS(moduli), ACCURACY)).tolist()
    psi = 4 * 2**-52 * n * math.log2(n) * (1 + ACCURACY / 2) / ACCURACY
    factor = math.floor(math.log2(1 / (2 * psi)))
    original = [max(0, math.ceil((math.log2(psi) + moduli.bits - k) / factor)) for k in exponents]
    assert all(s <= o for s, o in zip(steps, original, strict=True))
    assert steps[0] * 2 <= original[0] if n == 8 else steps[0] * 2.5 <= original[0]
    assert steps[-1] == 0


def test_a_bound_saves_refinement() -> None:
    residues = rns.encode([2**40 - 1], BIG_SET)
    assert refinement_steps(residues, RNS(BIG_SET)).tolist() > [20]
    assert refinement_steps(residues, RNS(BIG_SET, bound=2**40 - 1)).tolist() == [0]


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 3), (2, 0, 3)])
def test_shapes(shape: tuple[int, ...], on_each_processor: Processor) -> None:
    moduli = MODULI_SETS["table2_4"]
    values = list(range(math.prod(shape)))
    residues = on_each_processor.xp.asarray(rns.encode(values, moduli)).reshape(4, *shape)
    interval = interval_evaluation(residues, RNS(moduli))
    fields = {"low": np.float64, "upp": np.float64, "exponent": np.int32}
    for name, dtype in fields.items():
        field = getattr(interval, name)
        assert (field.shape, field.dtype) == (shape, dtype), name
    assert refinement_steps(residues, RNS(moduli)).shape == shape
    flat = IntervalEvaluation(*(getattr(interval, name).ravel() for name in fields))
    check_interval(flat, values, moduli, on_each_processor)


def test_views(on_each_processor: Processor) -> None:
    """Parts of a longer array, which is not contiguous, every second number among them."""
    moduli = MODULI_SETS["table2_8"]
    values = edge_values(moduli)[:50]
    residues = on_each_processor.xp.asarray(rns.encode(values, moduli))
    for part in (slice(5, 23), slice(1, None, 2), slice(None, None, -1)):
        interval = interval_evaluation(residues[:, part], RNS(moduli))
        check_interval(interval, values[part], moduli, on_each_processor)


@given(data=st.data(), moduli=moduli_sets(), signed=st.booleans())
def test_any_set_and_values(
    data: st.DataObject, moduli: ModuliSet, signed: bool, on_each_processor: Processor
) -> None:
    values = data.draw(arrays_of_values(moduli, signed))
    exponent = data.draw(st.floats(-13, 1))
    accuracy = max(10**exponent, least_accuracy(moduli))
    evaluate_and_check(values, moduli, on_each_processor, signed, accuracy=accuracy)
    bound = max(map(abs, values))
    accuracy = max(accuracy, least_accuracy(moduli, signed, bound))
    evaluate_and_check(values, moduli, on_each_processor, signed, bound, accuracy)


@pytest.mark.gpu
@each_name(MODULI_SETS)
def test_processors_agree_bit_for_bit(name: str, rng: np.random.Generator) -> None:
    cupy: Any = pytest.importorskip("cupy")
    moduli = MODULI_SETS[name]
    for signed in (False, True):
        residues = rns.encode(some(edge_values(moduli, signed), moduli), moduli, signed)
        random = np.stack([rng.integers(0, m, 1000, dtype=np.uint64).astype(np.uint32) for m in moduli])
        residues = np.concatenate([residues, random], axis=1)
        on_cpu = interval_evaluation(residues, RNS(moduli, signed))
        on_gpu = interval_evaluation(cupy.asarray(residues), RNS(moduli, signed))
        for field in ("low", "upp", "exponent"):
            np.testing.assert_array_equal(getattr(on_gpu, field).get(), getattr(on_cpu, field), strict=True)
