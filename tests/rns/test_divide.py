"""Division, remainders and shifts, against Python integers."""

import itertools
import operator

import dask
import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from oracles import rns
from oracles.rns import in_range
from strategies import (
    ALL_SETS,
    BOTH_RANGES,
    EXHAUSTIVE_SETS,
    MODULI_SETS,
    arrays_of_values,
    each_name,
    edge_values,
    moduli_sets,
    some_edges,
)

import rnsdask as rd
from rnsdask.backend import cpu
from rnsdask.core.errors import RNSOverflowError
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.rows import Part
from rnsdask.rns import divide

BOTH_PARTS: tuple[Part, ...] = ("quotient", "remainder")
TOP = MODULI_SETS["top"]


@pytest.fixture(params=["digits", "limbs"])
def _remainders_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "limbs":
        monkeypatch.setattr(cpu, "remainders", None)


def chosen_values(ms: ModuliSet, signed: bool, count: int, rng: np.random.Generator) -> list[int]:
    """Edge values and random ones, of all lengths, in random order."""
    lowest, highest = ms.value_range(signed)
    values = [*some_edges(ms, signed, rng, count), lowest, highest, 0]
    for _ in range(count // 2):
        value = int.from_bytes(rng.bytes(ms.bits // 8 + 8), "little") % (highest + 1)
        value >>= int(rng.integers(0, ms.bits))
        values.append(-value if signed and rng.integers(0, 2) else value)
    return values


def divisors_for(ms: ModuliSet, signed: bool, rng: np.random.Generator) -> list[int]:
    """1, small and huge ones, moduli and multiples of them, powers of two, around the range's ends."""
    product, random = ms.product, int.from_bytes(rng.bytes(ms.bits // 8 + 1), "little")
    fixed = [
        1,
        2,
        3,
        7,
        10,
        2**31,
        2**32 - 1,
        2**32,
        2**32 + 1,
        2**33,
        2**63,
        2**64 - 1,
        2**64 + 2**32,
        10**30,
    ]
    special = [
        ms[0],
        2 * ms[0],
        ms[-1] * ms[0],
        ms.partial_products[0],
        product - 1,
        product // 2,
        product // 3,
    ]
    fitting = [d for d in {*fixed, *special, product // 2 + 1, random, random % 2**70} if d > 0]
    return sorted([*fitting, *(-d for d in fitting)]) if signed else sorted(fitting)


def check_division(
    processor: Processor, values: list[int], divisors: int | list[int], ms: ModuliSet, signed: bool
) -> None:
    residues = processor.xp.asarray(rns.encode(values, ms, signed))
    each = [divisors] * len(values) if isinstance(divisors, int) else divisors
    other = divisors if isinstance(divisors, int) else processor.xp.asarray(rns.encode(each, ms, signed))
    result = divide.floor_divide(residues, other, rd.RNS(ms, signed), BOTH_PARTS)
    assert isinstance(result, processor.xp.ndarray)
    expected = [
        rns.encode([operation(x, d) for x, d in zip(values, each, strict=True)], ms, signed)
        for operation in (operator.floordiv, operator.mod)
    ]
    np.testing.assert_array_equal(processor.to_numpy(result), np.vstack(expected))


# ---- by an integer ----------------------------------------------------------------------------------------


@each_name(MODULI_SETS)
@BOTH_RANGES
def test_integer_divisors(
    on_each_processor: Processor, name: str, signed: bool, rng: np.random.Generator
) -> None:
    ms = MODULI_SETS[name]
    values = chosen_values(ms, signed, max(6, 1500 // len(ms)), rng)
    divisors = divisors_for(ms, signed, rng)
    for divisor in divisors if len(ms) <= 64 else rng.permutation(np.array(divisors, dtype=object))[:8]:
        fitting = [
            v for v in values if in_range(v // divisor, ms, signed) and in_range(v % divisor, ms, signed)
        ]
        check_division(on_each_processor, fitting, divisor, ms, signed)


@each_name(MODULI_SETS)
@BOTH_RANGES
def test_remainders_alone(
    on_each_processor: Processor, name: str, signed: bool, rng: np.random.Generator
) -> None:
    ms = MODULI_SETS[name]
    values = chosen_values(ms, signed, max(20, 3000 // len(ms)), rng)
    residues = on_each_processor.xp.asarray(rns.encode(values, ms, signed))
    for divisor in (1, 2, 6, ms[0], 2**16, 2**31 + 1, 2**32):
        expected = [v % divisor for v in values]
        if all(in_range(r, ms, signed) for r in expected):
            found = divide.divide_by_integer(residues, divisor, rd.RNS(ms, signed), ("remainder",))
            result = on_each_processor.to_numpy(found)
            np.testing.assert_array_equal(result, rns.encode(expected, ms, signed))
        if divisor > 1:
            small = divide.small_remainder(residues, rd.RNS(ms, signed), divisor)
            assert on_each_processor.to_numpy(small).tolist() == expected


@pytest.mark.parametrize("name", EXHAUSTIVE_SETS)
@BOTH_RANGES
def test_every_value_by_every_divisor(on_each_processor: Processor, name: str, signed: bool) -> None:
    ms = EXHAUSTIVE_SETS[name]
    lowest, highest = ms.value_range(signed)
    values = list(range(lowest, highest + 1))
    for divisor in sorted({*values[:40], *range(-40, 40), *values[-40:]} & set(values)):
        if divisor:
            fitting = [v for v in values if in_range(v // divisor, ms, signed)]
            check_division(on_each_processor, fitting, divisor, ms, signed)


# ---- by an array ------------------------------------------------------------------------------------------


@each_name(MODULI_SETS)
@pytest.mark.parametrize("by_limbs", [False, True])
@BOTH_RANGES
def test_array_divisors(
    on_each_processor: Processor,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    by_limbs: bool,
    signed: bool,
    rng: np.random.Generator,
) -> None:
    if by_limbs:
        monkeypatch.setattr(cpu, "divide_residues", None)
    ms = MODULI_SETS[name]
    count = max(20, 12_000 // len(ms))
    values = chosen_values(ms, signed, count, rng)
    divisors = chosen_values(ms, signed, count, rng)[::-1]
    # Dividends that are a multiple of the divisor, or one more or less, test the last digit's estimate.
    exact = [q * d + r for q, d in zip(values, divisors, strict=True) if d for r in (-1, 0, 1)]
    pairs = [
        *zip(values, divisors, strict=True),
        *zip(exact, [d for d in divisors if d for _ in range(3)], strict=True),
    ]
    limits = rns.limits_of(ms, signed)
    fitting = [(x, d) for x, d in pairs if d and limits.holds(x) and limits.holds(x // d)]
    check_division(on_each_processor, [x for x, _ in fitting], [d for _, d in fitting], ms, signed)


def test_estimates_one_too_great(on_each_processor: Processor) -> None:
    # Leading limbs of the divisor at their least and the others at their greatest, or the other way round.
    ms = MODULI_SETS["bits2048"]
    limbs = [0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1]
    divisors = [(a << 96) + (b << 64) + (c << 32) + 5 for a in limbs for b in limbs for c in limbs]
    values = [
        d * q + r for d in divisors for q in (2**32 - 1, 2**32, 2**64 - 1, 2**95 + 3) for r in (-1, 0, d - 1)
    ]
    check_division(on_each_processor, values, [d for d in divisors for _ in range(12)], ms, False)
    check_division(
        on_each_processor, [-v for v in values], [d for d in divisors for _ in range(12)], ms, True
    )


@given(st.data(), moduli_sets(), st.booleans())
def test_any_values_under_any_moduli(
    on_each_processor: Processor, data: st.DataObject, ms: ModuliSet, signed: bool
) -> None:
    values = data.draw(arrays_of_values(ms, signed))
    unit = -1 if signed else 1  # the signed range of M = 2 has no 1
    divisors = [
        d or unit for d in data.draw(arrays_of_values(ms, signed, min_size=len(values), max_size=len(values)))
    ]
    pairs = [(x, d) for x, d in zip(values, divisors, strict=True) if in_range(x // d, ms, signed)]
    check_division(on_each_processor, [x for x, _ in pairs], [d for _, d in pairs], ms, signed)
    integer = data.draw(st.integers(1, 2 * ms.product))
    fitting = [x for x in values if in_range(x % integer, ms, signed)]
    check_division(on_each_processor, fitting, integer, ms, signed)


# ---- arrays of numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [None, 128])
def test_operators(chunks: int | None) -> None:
    values = edge_values(TOP, signed=True)[:400]
    x = rd.from_ints(values, TOP, signed=True, chunks=chunks)
    assert (x // 7).to_ints().tolist() == [v // 7 for v in values]
    assert (x % 7).to_ints().tolist() == [v % 7 for v in values]
    assert (x % -(10**20)).to_ints().tolist() == [v % -(10**20) for v in values]
    quotient, remainder = divmod(x, -(2**70))
    assert quotient.to_ints().tolist() == [v // -(2**70) for v in values]
    assert remainder.to_ints().tolist() == [v % -(2**70) for v in values]
    assert np.asarray(x.is_even()).tolist() == [v % 2 == 0 for v in values]
    for bits in (0, 1, 31, 32, 33, 100, TOP.bits - 1, TOP.bits, TOP.bits + 5, 10**7):
        assert (x >> bits).to_ints().tolist() == [v >> bits for v in values]


@pytest.mark.parametrize("lazy", [False, True])
def test_arrays_broadcast(lazy: bool) -> None:
    a = np.arange(-130 * 3, 130 * 3, dtype=object).reshape(6, 130) ** 3
    b = np.array([[3], [-7], [2**40], [1], [-1], [10**9]], dtype=object)
    x, y = (rd.from_ints(v, TOP, True, chunks) for v, chunks in ((a, (2, 128) if lazy else None), (b, None)))
    expected = [np.vectorize(f, otypes=[object])(a, b) for f in (operator.floordiv, operator.mod)]
    for result, wanted in zip((*divmod(x, y), x // y, x % y), (*expected, *expected), strict=True):
        assert (result.to_ints() == wanted).all()
    by_array = 10**12 // rd.from_ints(b[:, 0], TOP, True, chunks=6 if lazy else None)
    assert by_array.to_ints().tolist() == [10**12 // v for v in b[:, 0]]


@BOTH_RANGES
def test_bounds_hold_and_help(signed: bool) -> None:
    x = rd.from_ints([-999 if signed else 999, 998], TOP, signed, chunks=None)
    y = rd.from_ints([10, 3], TOP, signed, chunks=None)
    assert ((x // 10).bound, (x % 10).bound) == (100 if signed else 99, 9)
    assert ((x // y).bound, (x % y).bound) == (999, 9)
    assert (x % 10**6).bound == (10**6 - 1 if signed else 999)
    z = rd.RNSArray(x.residues, rd.RNS(TOP, signed))
    assert ((z // y).bound, (y % z).bound) == (None, TOP.product // 2 - 1 if signed else 10)
    assert (z >> 100).bound.bit_length() <= TOP.bits - 100 + signed


@pytest.mark.parametrize("name", ["bits2048", "table2_128", "tiny_beside_huge", "even"])
@pytest.mark.parametrize("by_passes", [False, True])
@BOTH_RANGES
def test_long_shifts(
    on_each_processor: Processor,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    by_passes: bool,
    signed: bool,
    rng: np.random.Generator,
) -> None:
    """Shifts by more than 32 bits, in one division or in several, around where these take over."""
    if by_passes:
        monkeypatch.setattr(cpu, "remainder_limbs", None)
    moduli = MODULI_SETS[name] if name in MODULI_SETS else ModuliSet([2**32, *MODULI_SETS["table2_64"]])
    values = chosen_values(moduli, signed, 60, rng)
    residues = on_each_processor.xp.asarray(rns.encode(values, moduli, signed))
    passes = len(moduli) // 16
    for bits in {33, 63, 64, 65, 96, 127, 128, 32 * passes, 32 * passes + 1, moduli.bits - 2, moduli.bits}:
        x = rd.RNSArray(residues, rd.RNS(moduli, signed))
        assert (x >> bits).to_ints().tolist() == [v >> bits for v in values]


@BOTH_RANGES
@pytest.mark.parametrize("chunks", [None, 128])
def test_left_shifts(signed: bool, chunks: int | None) -> None:
    lowest, highest = TOP.value_range(signed)
    for bits in (0, 1, 32, 33, 100, highest.bit_length() - 1):
        values = [highest >> bits, -(-lowest >> bits), 1, 0]
        x = rd.from_ints(values, TOP, signed, chunks)
        assert (x << bits).to_ints().tolist() == [v << bits for v in values]
        if bits:
            with pytest.raises(RNSOverflowError, match="flat index 2: the exact result is"):
                (rd.from_ints([0, 1, (highest >> bits) + 1], TOP, signed, chunks) << bits).to_ints()
    for bits in (highest.bit_length(), 10**9):
        with pytest.raises(ValueError, match="outside the"):
            rd.from_ints([1], TOP, signed, chunks) << bits


# ---- what cannot be divided -------------------------------------------------------------------------------


def test_zero_divisors() -> None:
    x = rd.from_ints(np.full((3, 256), 5, dtype=object), TOP, chunks=(1, 128))
    for operation in (operator.floordiv, operator.mod, divmod):
        with pytest.raises(ZeroDivisionError, match="integer 0"):
            operation(x, 0)
    divisors = np.full((3, 256), 2, dtype=object)
    divisors[1, 200] = divisors[1, 201] = 0
    lazy = x // rd.from_ints(divisors, TOP, chunks=(1, 128))
    with pytest.raises(ZeroDivisionError, match=rf"at flat index {256 + 200}$"):
        dask.compute(lazy, scheduler="sync")
    eager = rd.from_ints([4, 5], TOP, chunks=None)
    with pytest.raises(ZeroDivisionError, match=r"at flat index 1$"):
        eager % rd.from_ints([1, 0], TOP, chunks=None)


@pytest.mark.parametrize("ms", [ModuliSet([2**32]), ModuliSet([2**32, 3]), ModuliSet([4, 3])])
def test_the_one_quotient_out_of_range(on_each_processor: Processor, ms: ModuliSet) -> None:
    lowest = -(ms.product // 2)
    residues = on_each_processor.xp.asarray(rns.encode([lowest + 1, 0, lowest], ms, True))
    for divisor in (-1, on_each_processor.xp.asarray(rns.encode([-1, -1, -1], ms, True))):
        with pytest.raises(RNSOverflowError, match="flat index 2: the exact result is"):
            divide.floor_divide(residues, divisor, rd.RNS(ms, True), ("quotient",))
    assert not divide.floor_divide(residues, -1, rd.RNS(ms, True), ("remainder",)).any()


def test_a_remainder_out_of_range() -> None:
    x = rd.from_ints([5, -1], TOP, signed=True, chunks=None)
    assert (x // TOP.product).to_ints().tolist() == [0, -1]
    with pytest.raises(RNSOverflowError, match="flat index 1: the exact result is"):
        x % TOP.product


def test_operands_refused() -> None:
    x = rd.from_ints([5], TOP, chunks=None)
    with pytest.raises(ValueError, match="unsigned numbers need a positive divisor, got -3"):
        x // -3
    with pytest.raises(TypeError):
        x // 2.0
    with pytest.raises(ValueError, match="different moduli sets"):
        x // rd.from_ints([5], MODULI_SETS["unsorted"], chunks=None)
    with pytest.raises(ValueError, match="shift must not be negative, got -1"):
        x >> -1
    with pytest.raises(ValueError, match="shift must not be negative, got -1"):
        x << -1


def small_divisors(moduli: rd.ModuliSet, signed: bool) -> list[int]:
    """Divisors of at most 32 bits: prime to all moduli, dividing some, and sharing factors with several."""
    _, highest = moduli.value_range(signed)
    some = [2, 3, 4, 6, 10, 30, 2**16, 2**31, 2**32 - 1, 2**32, 65537 * 3, 2**31 - 1]
    some += [m // k for m in moduli.moduli[:3] for k in (1, 2, 3)] + [2 * m for m in moduli.moduli[:3]]
    some += [m * n for m, n in itertools.pairwise(moduli.moduli[:4])]
    return sorted({d for d in some if 2 <= d <= min(2**32, highest + 1)})


@pytest.mark.usefixtures("_remainders_by")
@ALL_SETS
@BOTH_RANGES
def test_small_divisors(on_each_processor: Processor, moduli: rd.ModuliSet, signed: bool) -> None:
    edges = edge_values(moduli, signed)
    values = edges[:: max(1, len(edges) * len(moduli) // 20000)] + edges[:3] + edges[-3:]
    residues = on_each_processor.xp.asarray(rns.encode(values, moduli, signed))
    for d in small_divisors(moduli, signed):
        both = on_each_processor.to_numpy(divide.divide_by_integer(residues, d, rd.RNS(moduli, signed)))
        quotients, remainders = (rd.RNSArray(part, rd.RNS(moduli, signed)) for part in np.split(both, 2))
        assert quotients.to_ints().tolist() == [v // d for v in values], d
        assert remainders.to_ints().tolist() == [v % d for v in values], d
        alone = divide.divide_by_integer(residues, d, rd.RNS(moduli, signed), ("quotient",))
        np.testing.assert_array_equal(on_each_processor.to_numpy(alone), quotients.residues, str(d))


def test_small_divisors_need_no_limbs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnsdask.rns.divide.floor_divide", None)
    moduli = MODULI_SETS["top"]  # one of them is 2**32
    x = rd.from_ints([0, 1, 2**100 + 7, moduli.product // 2 - 1], moduli, signed=True)
    for d in (2, 10, 2**31, 2**32 - 1):
        assert (x // d).to_ints().tolist() == [v // d for v in x.to_ints().tolist()]
    assert (x >> 5).to_ints().tolist() == [v >> 5 for v in x.to_ints().tolist()]


def long_divisors(moduli: rd.ModuliSet, signed: bool, rng: np.random.Generator) -> list[int]:
    """Divisors beyond 32 bits: around powers of two, prime to the moduli or made of many of them."""
    _, highest = moduli.value_range(signed)
    bits = highest.bit_length()
    some = [highest, highest - 1, highest // 2 + 1, highest // 3, 2**32 + 1, *moduli.partial_products[:3]]
    some += [2**k + e for k in (33, 63, 64, 65, 95, 96, bits // 2, bits - 1) for e in (-1, 0, 1)]
    some += [moduli[0] * moduli[-1], int(np.prod([int(m) for m in moduli][::2], dtype=object))]
    some += [int.from_bytes(rng.bytes(bits // 8), "little") >> int(rng.integers(0, bits)) for _ in range(4)]
    return sorted({d for d in some if 2**32 < d <= highest})


@pytest.mark.usefixtures("_remainders_by")
@each_name(MODULI_SETS)
@BOTH_RANGES
def test_long_divisors(
    on_each_processor: Processor, name: str, signed: bool, rng: np.random.Generator
) -> None:
    moduli = MODULI_SETS[name]
    lowest, highest = moduli.value_range(signed)
    divisors = long_divisors(moduli, signed, rng)
    few = rng.permutation(np.array(divisors, dtype=object))[: 2000 // len(moduli) // 8 + 2].tolist()
    for d in few:
        # Next to multiples of d, to the ends of the range, where q is ambiguous, and any.
        multiples = [d * int(k) + e for k in rng.integers(0, 2**31, 8) for e in (-1, 0, 1)]
        multiples += [highest // d * d + e for e in (-1, 0, 1)] + [
            -(-lowest // d) * d + e for e in (-1, 0, 1)
        ]
        ends = [end + sign * e for end, sign in ((lowest, 1), (highest, -1)) for e in (0, 1, 2**40)]
        values = [*multiples, *ends, d - 1, -d, 0, -1, *chosen_values(moduli, signed, 20, rng)]
        values = [v for v in values if lowest <= v <= highest]
        residues = on_each_processor.xp.asarray(rns.encode(values, moduli, signed))
        parts = rng.choice(["quotient", "remainder", "both"])
        wanted = BOTH_PARTS if parts == "both" else (parts,)
        for bound in (None, max(map(abs, values))):
            found = divide.divide_by_integer(residues, d, rd.RNS(moduli, signed, bound), wanted)
            functions = {"quotient": operator.floordiv, "remainder": operator.mod}
            exact = [rns.encode([functions[part](v, d) for v in values], moduli, signed) for part in wanted]
            np.testing.assert_array_equal(on_each_processor.to_numpy(found), np.vstack(exact), hex(d))


@pytest.mark.usefixtures("_remainders_by")
@BOTH_RANGES
def test_long_remainders_of_bounded_numbers(
    on_each_processor: Processor, signed: bool, rng: np.random.Generator
) -> None:
    """Fewer moduli take part, around the bounds from which one more is needed."""
    moduli = MODULI_SETS["bits2048"]
    for count in (2, 3, 20):
        product = moduli.prefix(count).product
        for bound in (product // 2 - 1, product // 2, product - 1, product):
            values = [bound, bound - 1, 0, 1, *([-bound, -1] if signed else [])]
            residues = on_each_processor.xp.asarray(rns.encode(values, moduli, signed))
            for d in (
                2**33,
                2**64 - 1,
                bound // 2 + 1,
                bound,
                bound + 1,
                int(rng.integers(2**33, 2**63)) ** 3,
            ):
                both = divide.divide_by_integer(residues, d, rd.RNS(moduli, signed, bound))
                exact = [[v // d for v in values], [v % d for v in values]]
                encoded = np.vstack([rns.encode(part, moduli, signed) for part in exact])
                np.testing.assert_array_equal(on_each_processor.to_numpy(both), encoded)


def test_long_divisors_need_no_long_division(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnsdask.rns.divide.floor_divide", None)
    values = [0, 1, 2**100 + 7, TOP.product // 3]
    x = rd.from_ints(values, TOP, signed=True, chunks=None)
    for d in (2**32 + 1, 2**40, 10**20, 3 * TOP[1], TOP.product // 2 - 1):
        assert (x // d).to_ints().tolist() == [v // d for v in values]
        assert (x % d).to_ints().tolist() == [v % d for v in values]


@BOTH_RANGES
@pytest.mark.parametrize("chunks", [None, 128])
def test_arrays_of_bounded_numbers(chunks: int | None, signed: bool, rng: np.random.Generator) -> None:
    """Only so many moduli and limbs as the bounds of both arrays need, for any pair of these."""
    moduli = MODULI_SETS["bits2048"]
    for bits, divisor_bits in itertools.product((1, 31, 32, 64, 700, 2000), repeat=2):
        values, divisors = (
            [
                int.from_bytes(rng.bytes(250), "little") >> (2000 - length + int(k))
                for k in rng.integers(0, 9, 40)
            ]
            for length in (bits, divisor_bits)
        )
        divisors = [d or 1 for d in divisors]
        if signed:
            values, divisors = (
                [int(s) * v for s, v in zip(rng.choice([-1, 1], 40), part, strict=True)]
                for part in (values, divisors)
            )
        x, y = (rd.from_ints(part, moduli, signed, chunks) for part in (values, divisors))
        quotients, remainders = divmod(x, y)
        assert quotients.to_ints().tolist() == [v // d for v, d in zip(values, divisors, strict=True)]
        assert remainders.to_ints().tolist() == [v % d for v, d in zip(values, divisors, strict=True)]
