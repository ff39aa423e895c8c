"""Signed integers with stored intervals: interval arithmetic and chunks, against exact rationals and ints."""

import itertools
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from conftest import Processor
from interval_numbers import check_columns, edge_numbers, wrapped
from strategies import MODULI_SETS, slow

from rnsdask.backend import INTERVAL_RNS_ALGORITHMS, kernels_of
from rnsdask.constants import MAX_EXPONENT, product_bounds
from rnsdask.core.errors import RNSOverflowError
from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns import arithmetic, layout
from rnsdask.interval_rns.arithmetic import interval_arithmetic
from rnsdask.interval_rns.reduce import ordering, reduce_columns
from rnsdask.rns.convert import ints_to_residues
from rnsdask.rns.evaluation import IntervalEvaluation, interval_evaluation
from rnsdask.rns.sort import sorted_indices
from rnsdask.rns.system import RNS

PAPER_SET = ModuliSet([7, 9, 11, 13])
ALGORITHMS = tuple(INTERVAL_RNS_ALGORITHMS)
SETS = {
    name: MODULI_SETS[name]
    for name in ("one", "one_full", "two_three", "tiny_unsorted", "top", "tiny_beside_huge", "table2_32")
}
OPERATIONS = {"add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y}


def columns_of(values: Sequence[int], moduli: ModuliSet, xp: Any = np) -> Any:
    residues = xp.asarray(ints_to_residues([abs(v) for v in values], moduli))
    return layout.evaluated(residues, moduli, xp.asarray([v < 0 for v in values], dtype=bool))


# ---- interval arithmetic -----------------------------------------------------------------------------------


def intervals(items: Sequence[tuple[float, float, int]], xp: Any) -> IntervalEvaluation:
    low, upp, exponent = zip(*items, strict=True)
    return IntervalEvaluation(
        xp.asarray(low, dtype=np.float64), xp.asarray(upp, np.float64), xp.asarray(exponent, dtype=np.int32)
    )


def scaled(bound: float, exponent: int) -> Fraction:
    return Fraction(bound) * Fraction(2) ** exponent


def exact_bounds(
    operation: str, x: tuple[float, float, int], y: tuple[float, float, int], product: int
) -> tuple[Fraction, Fraction]:
    """Return the least and the greatest result of numbers of two intervals."""
    xs = [scaled(bound, x[2]) for bound in x[:2]]
    ys = [scaled(bound, y[2]) for bound in y[:2]]
    if operation == "add":
        ends = [a + b for a in xs for b in ys]
    elif operation == "subtract":
        ends = [a - b for a in xs for b in ys]
    elif operation == "multiply":
        ends = [a * b * product for a in xs for b in ys]
    else:
        ends = [a / b / product for a in xs for b in ys]
    return min(ends), max(ends)


def adversarial_intervals(generator: random.Random, positive: bool) -> list[tuple[float, float, int]]:
    """Point intervals, powers of two, full significands, wide ones and those around 0, at near exponents."""
    bounds = [0.5, 1.0 - 2.0**-53, 0.5 + 2.0**-53, 0.75, 1.0, 3.0, 2.0**-60]
    bounds += [generator.random() for _ in range(4)]
    pairs = (
        [(b, b) for b in bounds] + [(b, b * (1 + 2.0**-40)) for b in bounds] + [(b, 2 * b) for b in bounds]
    )
    pairs.append((2.0**-250, 1.0))
    if not positive:
        pairs += [(-upp, -low) for low, upp in pairs]
        pairs += [(-low, upp) for low, upp in pairs[:20]] + [(0.0, 0.0), (0.0, 0.5), (-0.5, 0.0)]
    return [(low, upp, generator.choice([-3, 0, 1, 7])) for low, upp in pairs]


@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "divide"])
@pytest.mark.parametrize("gap", [0, 1, 53, 400, 1100, *slow(52, 54, 200, 399, 401, 1023, 5000)])
def test_interval_arithmetic_is_sound_and_narrow(
    operation: str, gap: int, on_each_processor: Processor
) -> None:
    generator = random.Random(gap)
    moduli = SETS["top"]
    items = adversarial_intervals(generator, operation in ("multiply", "divide"))
    pairs = [(x, (low, upp, e - gap)) for x in items for low, upp, e in items]
    pairs = generator.sample(pairs, min(len(pairs), 900))
    pairs += [(y, x) for x, y in pairs[::5]]
    if operation == "divide":
        pairs = [(x, y) for x, y in pairs if y[0] > 2.0**-200]
    x, y = (intervals(side, on_each_processor.xp) for side in zip(*pairs, strict=True))
    z = interval_arithmetic(operation, x, y, moduli)
    fields = (on_each_processor.to_numpy(field).tolist() for field in (z.low, z.upp, z.exponent))
    for (a, b), low, upp, exponent in zip(pairs, *fields, strict=True):
        least, greatest = exact_bounds(operation, a, b, moduli.product)
        what = f"{operation} {a} {b}: [{low!r}, {upp!r}] * 2**{exponent}"
        below, above = scaled(low, exponent), scaled(upp, exponent)
        assert below <= least, what
        assert greatest <= above, what
        # Rounding moves a bound by a few units of the greatest number that takes part, or of 2**-200.
        largest = max(abs(below), abs(above))
        if operation in ("add", "subtract"):
            largest = max(*(abs(scaled(i, v[2])) for v in (a, b) for i in v[:2]))
        assert least - below <= largest * Fraction(1, 2**50), what
        assert above - greatest <= largest * Fraction(1, 2**50), what
        assert max(abs(low), abs(upp)) == 0 or 0.5 <= max(abs(low), abs(upp)) < 1, what


def test_a_huge_gap_is_one_step_outwards(on_each_processor: Processor) -> None:
    far = -MAX_EXPONENT
    x = intervals([(0.75, 0.75, 0)] * 3, on_each_processor.xp)
    y = intervals([(0.5, 0.5, far), (-0.5, -0.5, far), (-0.5, 0.5, far)], on_each_processor.xp)
    z = interval_arithmetic("add", x, y, PAPER_SET)
    step = 2.0**-53
    assert on_each_processor.to_numpy(z.low).tolist() == [0.75, 0.75 - step, 0.75 - step]
    assert on_each_processor.to_numpy(z.upp).tolist() == [0.75 + step, 0.75, 0.75 + step]
    assert not on_each_processor.to_numpy(z.exponent).any()


def test_interval_arithmetic_of_evaluations(on_each_processor: Processor) -> None:
    moduli = SETS["table2_32"]
    values = [1, 3**40, 10**20, moduli.product - 1]
    x = interval_evaluation(on_each_processor.xp.asarray(ints_to_residues(values, moduli)), RNS(moduli))
    for operation, exact in {
        "add": lambda a, b: Fraction(a + b),
        "subtract": lambda a, b: Fraction(a - b),
        "multiply": lambda a, b: Fraction(a * b),
        "divide": Fraction,
    }.items():
        z = interval_arithmetic(operation, x, x, moduli)
        fields = (on_each_processor.to_numpy(field).tolist() for field in (z.low, z.upp, z.exponent))
        for value, low, upp, exponent in zip(values, *fields, strict=True):
            fraction = exact(value, value) / moduli.product
            assert scaled(low, exponent) <= fraction <= scaled(upp, exponent)


@pytest.mark.parametrize(
    ("operation", "x", "y", "message"),
    [
        ("power", (0.5, 0.5, 0), (0.5, 0.5, 0), "operation must be one of add, .* got 'power'"),
        ("add", (0.5, 0.4, 0), (0.5, 0.5, 0), "must not be above"),
        ("add", (0.5, np.inf, 0), (0.5, 0.5, 0), "from 2\\*\\*-500 to 2\\*\\*500"),
        ("add", (np.nan, 0.5, 0), (0.5, 0.5, 0), "must not be above"),
        ("add", (0.5, 0.5, 2**30), (0.5, 0.5, 0), "exponents of intervals must be from"),
        ("multiply", (-0.5, 0.5, 0), (0.5, 0.5, 0), "not negative"),
        ("divide", (0.5, 0.5, 0), (0.0, 0.5, 0), "more than 2\\*\\*-200"),
    ],
)
def test_interval_arithmetic_refuses(
    operation: str, x: tuple[float, float, int], y: tuple[float, float, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        interval_arithmetic(operation, intervals([x], np), intervals([y], np), PAPER_SET)


def test_interval_arithmetic_refuses_other_shapes() -> None:
    x, y = intervals([(0.5, 0.5, 0)], np), intervals([(0.5, 0.5, 0)] * 2, np)
    with pytest.raises(ValueError, match="one shape"):
        interval_arithmetic("add", x, y, PAPER_SET)


def test_columns_in_one_pass_follow_the_rules() -> None:
    """Headers on both sides of each rule, by the array operations that say what the rules are."""
    moduli, below = PAPER_SET, np.nextafter
    wide = 0.5 + 0.5 * 1.001 * layout.ACCURACY
    bounds = [0.0, -0.5, 0.25, below(0.5, 0), 0.5, wide, below(wide, 1), below(wide, 0), below(1, 0), 1.0]
    bounds += [np.nan, np.inf]
    exponents = [-moduli.bits - 1, -moduli.bits, 0, 1, 2]
    residues = np.ones((len(moduli), 1), np.uint32)
    found = 0
    for values in itertools.product((0, 1, 2), bounds, bounds, exponents):
        parts = dict(zip(("sign", "low", "upp", "exponent"), values, strict=True))
        arrays = {name: np.array([value], layout.PART_DTYPES[name]) for name, value in parts.items()}
        columns = layout.pack(residues, moduli, **arrays)
        follows = bool(layout.follow_rules(residues, moduli, **arrays).all())
        assert (layout.first_invalid(columns, moduli) is None) == follows, parts
        found += follows
    assert found >= 12
    zero = layout.pack(residues, moduli, **{n: np.zeros(1, dtype) for n, dtype in layout.PART_DTYPES.items()})
    assert layout.first_invalid(zero, moduli) == 0
    assert layout.first_invalid(np.zeros_like(zero), moduli) is None


# ---- the paper's tables ------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tables_1_and_2_of_the_paper(algorithm: int | str, on_each_processor: Processor) -> None:
    """x = <0, (5, 7, 5, 8), [0.416, 0.420]> plus y = <1, (3, 7, 6, 4), [0.444, 0.448]>."""
    xp, n = on_each_processor.xp, len(PAPER_SET)
    x, y = (
        layout.pack(
            xp.asarray(residues, dtype=np.uint32).reshape(n, 1),
            PAPER_SET,
            xp.asarray([sign]),
            *layout.normalised(xp.asarray([low]), xp.asarray([upp]), xp.asarray([0], dtype=np.int32)),
        )
        for sign, residues, low, upp in (
            (0, (5, 7, 5, 8), 0.416, 0.420),
            (1, (3, 7, 6, 4), 0.444, 0.448),
        )
    )
    assert [int(v[0]) for v in (arithmetic.to_ints(x, PAPER_SET), arithmetic.to_ints(y, PAPER_SET))] == [
        3778,
        -4021,
    ]
    out = xp.empty_like(x)
    # The paper's intervals have three digits. An accuracy of 1 keeps the kernel's interval as it is.
    flags = kernels_of(out).interval_rns_add(x, y, PAPER_SET, False, algorithm, 1.0, out)
    assert on_each_processor.to_numpy(flags).tolist() == [0]
    assert on_each_processor.to_numpy(out[:n, 0]).tolist() == [5, 0, 1, 9]
    assert arithmetic.to_ints(out, PAPER_SET).tolist() == [-243]
    part = {name: layout.part_of(out, PAPER_SET, name).tolist()[0] for name in layout.PART_DTYPES}
    assert part["sign"] == 1
    low, upp = scaled(part["low"], part["exponent"]), scaled(part["upp"], part["exponent"])
    # Rounded as the paper writes it; and outwards of what its decimal bounds are as doubles.
    assert (round(float(low), 3), round(float(upp), 3)) == (0.024, 0.032)
    assert low <= Fraction(0.444) - Fraction(0.420)
    assert upp >= Fraction(0.448) - Fraction(0.416)
    assert low <= Fraction(243, 9009) <= upp
    # With stored intervals, the whole operation.
    result = arithmetic.apply(
        "add", *(columns_of([v], PAPER_SET, xp) for v in (3778, -4021)), PAPER_SET, "raise"
    )
    check_columns(result, [-243], PAPER_SET, on_each_processor)


# ---- sums, differences, products ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_all_pairs_of_edges(name: str, operation: str, on_each_processor: Processor) -> None:
    moduli = SETS[name]
    values = edge_numbers(moduli, random.Random(name))
    pairs = [(x, y) for x in values for y in values]
    x, y = (columns_of(side, moduli, on_each_processor.xp) for side in zip(*pairs, strict=True))
    exact = [OPERATIONS[operation](*pair) for pair in pairs]
    results = []
    for algorithm in ALGORITHMS if operation != "multiply" else (None,):
        result = arithmetic.apply(operation, x, y, moduli, "flag", algorithm)
        outside = on_each_processor.to_numpy(result[-1]).tolist()
        assert outside == [abs(v) >= moduli.product for v in exact]
        check_columns(result[:-1], [wrapped(v, moduli.product) for v in exact], moduli, on_each_processor)
        results.append(on_each_processor.to_numpy(result))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_cancellation(algorithm: int | str, on_each_processor: Processor) -> None:
    moduli = SETS["table2_32"]
    x = [10**20, 10**20 + 1, 10**20, moduli.product - 1, -(moduli.product - 1), 7, -7, 2**60]
    y = [10**20 + 1, 10**20, 10**20, moduli.product - 2, -(moduli.product - 2), 7, -7, 2**60 - 2**20]
    columns = (columns_of(values, moduli, on_each_processor.xp) for values in (x, y))
    result = arithmetic.apply("subtract", *columns, moduli, "raise", algorithm)
    expected = [a - b for a, b in zip(x, y, strict=True)]
    check_columns(result, expected, moduli, on_each_processor)


def test_algorithms_agree_bit_for_bit_on_many_numbers(on_each_processor: Processor) -> None:
    """Rows read by vectors, and a rest of up to three numbers; unaligned rows; one number for all."""
    generator, moduli = random.Random(4), SETS["tiny_beside_huge"]
    half = moduli.product // 2
    for count in (1, 2, 3, 4, 5, 1023, 1024, 1027, 2500):
        x, y = (
            [generator.randint(-half, half) >> generator.choice([0, 0, 0, 400]) for _ in range(count)]
            for _ in "xy"
        )
        a, b = (columns_of(values, moduli, on_each_processor.xp) for values in (x, y))
        whole = on_each_processor.xp.zeros((len(a), count + 1), dtype=np.uint32)
        whole[:, 1:] = a
        for operation in ("add", "subtract"):
            expected = [OPERATIONS[operation](*pair) for pair in zip(x, y, strict=True)]
            first = arithmetic.apply(operation, a, b, moduli, "raise", 2)
            check_columns(first, expected, moduli, on_each_processor)
            for algorithm in ALGORITHMS:
                for left in (a, whole[:, 1:]):
                    again = arithmetic.apply(operation, left, b, moduli, "raise", algorithm)
                    assert bool((again == first).all())
            one = [OPERATIONS[operation](v, y[0]) for v in x]
            single = columns_of(y[:1], moduli)  # in NumPy on every processor
            for algorithm in ALGORITHMS:
                result = arithmetic.apply(operation, a, single, moduli, "raise", algorithm)
                check_columns(result, one, moduli, on_each_processor)
        product = arithmetic.apply("multiply", a, columns_of([-1], moduli), moduli, "raise")
        check_columns(product, [-v for v in x], moduli, on_each_processor)


def test_candidates_of_extrema(on_each_processor: Processor) -> None:
    """The extremum is among them, and each is near it, by the exact values."""
    moduli = ModuliSet.for_bits(300)
    generator, top = random.Random(8), moduli.product - 1
    near = [top - k * (top >> 40) for k in range(50)]
    for values in (
        [0],
        [0] * 300,
        [-5],
        [*near, *(top - 7 for _ in range(400)), 0, 1, -top],
        [generator.randrange(-top, top + 1) >> generator.randrange(300) for _ in range(1000)],
        [*(-(1 << k) for k in range(250)), *(-(1 << k) - 1 for k in range(250))],
    ):
        columns = columns_of(values, moduli, on_each_processor.xp)
        for minimum in (False, True):
            best, found = kernels_of(columns).interval_rns_candidates(columns, moduli.bits, 4, minimum)
            extremum = min(values) if minimum else max(values)
            assert (best > 0) - (best < 0) == (extremum > 0) - (extremum < 0)
            assert (np.diff(found) > 0).all()
            assert {j for j, value in enumerate(values) if value == extremum} <= set(found.tolist())
            # Each of the 4 units is at most 2**-19 of a number.
            assert all(abs(values[j] - extremum) << 16 <= abs(extremum) for j in found.tolist())


def test_empty_chunks(on_each_processor: Processor) -> None:
    empty = on_each_processor.xp.zeros((layout.rows_of(PAPER_SET), 0), dtype=np.uint32)
    for operation in OPERATIONS:
        assert arithmetic.apply(operation, empty, empty, PAPER_SET, "raise").shape == empty.shape
        assert arithmetic.apply(operation, empty, empty, PAPER_SET, "flag").shape == (len(empty) + 1, 0)


@pytest.mark.parametrize("count", [1, 100])  # few are settled on the host
def test_overflow_names_the_first(count: int, on_each_processor: Processor) -> None:
    moduli, xp = SETS["top"], on_each_processor.xp
    x = [1] * 5 + [-(moduli.product - 1)] * count
    a, b = columns_of(x, moduli, xp), columns_of([-1] * len(x), moduli, xp)
    with pytest.raises(RNSOverflowError) as caught:
        arithmetic.apply("add", a, b, moduli, "raise", locate=lambda index: index + 1000)
    assert caught.value.index == 1005
    assert caught.value.negative
    assert (caught.value.bits_needed, caught.value.bits_available) == (moduli.bits + 1, moduli.bits)
    wrap = arithmetic.apply("add", a, b, moduli, "wrap")
    check_columns(wrap, [0] * len(x), moduli, on_each_processor)


@pytest.mark.parametrize("name", ["table2_32", *slow("tiny_beside_huge")])
def test_ten_thousand_random_operations(name: str, on_each_processor: Processor) -> None:
    """Chains in 60 numbers at once: sums mostly, with products, cancellation and shrinking on the way."""
    moduli, xp = SETS[name], on_each_processor.xp
    generator = random.Random(name)
    product, width = moduli.product, 60
    values = [generator.randint(1 - product, product - 1) for _ in range(width)]
    others = [generator.randint(-(2**70), 2**70) for _ in range(width)]
    x, y = columns_of(values, moduli, xp), columns_of(others, moduli, xp)
    for step in range(10_000):
        operation = generator.choices(["add", "subtract", "multiply", "swap"], [8, 8, 1, 3])[0]
        if operation == "swap":
            values, others, x, y = others, values, y, x
        else:
            algorithm = None if operation == "multiply" else generator.choice(ALGORITHMS)
            x = arithmetic.apply(operation, x, y, moduli, "wrap", algorithm)
            pairs = zip(values, others, strict=True)
            values = [wrapped(OPERATIONS[operation](*pair), product) for pair in pairs]
        if step % 50 == 0:
            check_columns(x, values, moduli, on_each_processor)
    check_columns(x, values, moduli, on_each_processor)
    check_columns(y, others, moduli, on_each_processor)


def test_intervals_of_long_sums_stay_narrow_without_evaluation(on_each_processor: Processor) -> None:
    """One number is added 10,000 times: no result is evaluated anew, and the width grows as derived."""
    moduli, xp = SETS["table2_32"], on_each_processor.xp
    x, y = columns_of([0], moduli, xp), columns_of([-(3**100)], moduli, xp)
    out, kernels = xp.empty_like(x), kernels_of(x)
    for _ in range(10_000):
        flags = kernels.interval_rns_add(x, y, moduli, False, 2, layout.ACCURACY, out)
        assert not flags.any()
        x, out = out, x
    check_columns(x, [-(3**100) * 10_000], moduli, on_each_processor)


@pytest.mark.parametrize("name", SETS)
def test_sums_and_order_of_numbers_of_every_length(on_each_processor: Processor, name: str) -> None:
    moduli = SETS[name]
    for bits in {0, 1, moduli.bits // 2, moduli.bits - 1, moduli.bits}:
        greatest = min(2**bits, moduli.product) - 1
        for ends in ((greatest,), (-greatest,), (greatest, -greatest), (greatest, 0, -(greatest // 3))):
            values = [end // k for k in range(1, 9) for end in ends]
            columns = columns_of(values, moduli, on_each_processor.xp)
            assert layout.system_of_magnitudes(columns, moduli).known_magnitude >= greatest
            assert reduce_columns(columns, moduli, "sum").value == sum(values)
            order = sorted_indices(ordering(columns, moduli), (len(values),), 0).tolist()
            assert order == sorted(range(len(values)), key=values.__getitem__)


def test_bounds_of_the_product() -> None:
    for moduli in (*MODULI_SETS.values(), ModuliSet([2**32, 2**32 - 1])):
        bounds = product_bounds(moduli)
        low, upp = (scaled(bound, bounds.exponent) for bound in (bounds.low, bounds.upp))
        assert low <= moduli.product <= upp
        assert 0.5 <= bounds.upp < 1.0
        assert (upp - low) <= low * Fraction(1, 2**51)
