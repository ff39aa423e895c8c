"""MAX, MIN and SUM of one array against Python's own, on values that intervals can hardly tell apart."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from oracles import integers, rns
from strategies import (
    ALL_SETS,
    BOTH_RANGES,
    MODULI_SETS,
    SHORT_SETS,
    arrays_of_values,
    bounds_around_prefixes,
    moduli_sets,
    some_edges,
    values_within,
)

from rnsdask.constants import key_constants
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.reductions import REDUCTIONS, ReductionResult
from rnsdask.rns import blocks, reduce
from rnsdask.rns.reduce import reduce_chunk
from rnsdask.rns.system import RNS


def longest(values: list[int]) -> int:
    """The greatest integer as long, in bits, as the greatest magnitude."""
    return int(2 ** max(map(abs, values)).bit_length() - 1)


def check(
    processor: Processor, moduli: ModuliSet, values: list[int], signed: bool = False, bound: int | None = None
) -> dict[str, ReductionResult]:
    """Reduce on a processor, and compare with Python's max, min, sum and length in bits."""
    residues = processor.xp.asarray(rns.encode(values, moduli, signed))
    results = {op: reduce_chunk(residues, RNS(moduli, signed, bound), op) for op, r in REDUCTIONS.items()}
    assert results["max"].value == max(values)
    assert results["max"].index == values.index(max(values))
    assert results["min"].value == min(values)
    assert results["min"].index == values.index(min(values))
    assert results["sum"].value == sum(values)
    assert results["bound"].value == min(longest(values), RNS(moduli, signed, bound).known_magnitude)
    for result in results.values():
        assert result.count == len(values)
        assert result.backend == processor.name
    return results


@ALL_SETS
@BOTH_RANGES
def test_edge_values(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    check(on_each_processor, moduli, some_edges(moduli, signed, rng, 20_000 // len(moduli)), signed)


@ALL_SETS
@BOTH_RANGES
def test_single_numbers(on_each_processor: Processor, moduli: ModuliSet, signed: bool) -> None:
    lowest, highest = moduli.value_range(signed)
    for value in {lowest, lowest + 1, 0, 1, highest - 1, highest}:
        check(on_each_processor, moduli, [value], signed)


@ALL_SETS
@BOTH_RANGES
def test_values_within_the_error_bound_of_one_another(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    lowest, highest = moduli.value_range(signed)
    for middle in (lowest, (lowest + highest) // 2, 0, highest):
        near = [min(max(middle + int(d), lowest), highest) for d in rng.integers(-4, 5, size=80)]
        check(on_each_processor, moduli, near, signed)


@ALL_SETS
@BOTH_RANGES
def test_equal_values(on_each_processor: Processor, moduli: ModuliSet, signed: bool) -> None:
    for value in {*moduli.value_range(signed), 0, 1}:
        results = check(on_each_processor, moduli, [value] * 35, signed)
        assert results["max"].index == results["min"].index == 0


@ALL_SETS
@BOTH_RANGES
def test_a_bound_takes_fewer_moduli_and_no_fallback_for_want_of_a_sign(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    lowest, highest = moduli.value_range(signed)
    for bound in {0, 1, highest // 10**6, highest // 7, highest}:
        values = [bound, *(int(f) * bound >> 62 for f in rng.integers(0, 2**62, size=60))]
        if signed:
            values += [max(-v, lowest) for v in values]
        results = check(on_each_processor, moduli, values, signed, bound)
        if not key_constants(moduli, signed, bound).ambiguous_below:
            assert results["sum"].exact_fallbacks == 0


def test_a_bound_shortens_the_set() -> None:
    moduli = MODULI_SETS["bits2048"]
    assert len(key_constants(moduli).moduli) == len(moduli)
    assert len(key_constants(moduli, bound=2**100).moduli) == 4
    assert len(key_constants(moduli, bound=2**128).moduli) == 5
    # 2 B + 1 signed numbers must fit.
    short = ModuliSet([2**32, 2**32 - 1])
    assert len(key_constants(short, bound=2**32 - 1).moduli) == 1
    assert len(key_constants(short, signed=True, bound=2**31 - 1).moduli) == 1
    assert len(key_constants(short, signed=True, bound=2**31).moduli) == 2


@SHORT_SETS
@BOTH_RANGES
def test_bounds_around_the_products_of_prefixes(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    for bound in bounds_around_prefixes(moduli, signed):
        results = check(on_each_processor, moduli, values_within(bound, signed, rng), signed, bound)
        if not key_constants(moduli, signed, bound).ambiguous_below:
            assert results["sum"].exact_fallbacks == 0
        check(on_each_processor, moduli, [-bound if signed else bound] * 9 + [bound - 1], signed, bound)


@SHORT_SETS
@BOTH_RANGES
def test_the_scale_of_keys_is_the_greatest_or_next_to_it(moduli: ModuliSet, signed: bool) -> None:
    assert key_constants(moduli, signed).scale == 0
    for bound in bounds_around_prefixes(moduli, signed):
        constants = key_constants(moduli, signed, bound)
        product, offset = constants.moduli.product, constants.offset
        lowest, highest = (offset + sign * (bound << constants.scale) for sign in (-1, 1))
        if constants.scale:
            assert constants.ambiguous_below == 0
            assert (highest << 64) + constants.slack * product < product << 64
            assert lowest >= 0 or not signed
        if constants.ambiguous_below == 0:  # two steps more would not fit
            assert offset + (bound << constants.scale + 2) >= product


@BOTH_RANGES
def test_random_numbers_far_below_the_prefix_need_no_exact_decision(
    on_each_processor: Processor, signed: bool, rng: np.random.Generator
) -> None:
    """A bound may leave nearly all of a modulus of 32 bits unused, and keys still tell numbers apart."""
    moduli = MODULI_SETS["bits2048"]
    for count in (2, 31, len(moduli) - 1):
        product = moduli.prefix(count).product
        for bound in (product // 2 + 1, product, product * 4 // 3, product * 2 - 1, product * 2**16):
            random = rng.integers(-(2**62) if signed else 0, 2**62, size=1000)
            values = [int(v) * bound >> 62 for v in random]
            residues = on_each_processor.xp.asarray(rns.encode(values, moduli, signed))
            for operation, exactly in (("max", max), ("min", min)):
                found = reduce_chunk(residues, RNS(moduli, signed, bound), operation)
                assert found.value == exactly(values)
                assert found.exact_fallbacks == 0


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 127, 1023, 1024, 1025, 2049, 5000])
@pytest.mark.parametrize("name", ["three_two", "unsorted", "table2_8"])
def test_every_length_and_the_extremum_at_every_kind_of_place(
    on_each_processor: Processor, name: str, length: int, rng: np.random.Generator
) -> None:
    moduli = MODULI_SETS[name]
    _, highest = moduli.value_range()
    for place in {0, length // 2, length - 1}:
        values = [int(f) * (highest - 2) // 2**62 + 1 for f in rng.integers(0, 2**62, size=length)]
        values[place] = highest
        check(on_each_processor, moduli, values)
        values[place] = 0
        check(on_each_processor, moduli, values)


@ALL_SETS
def test_sums_far_beyond_the_range(on_each_processor: Processor, moduli: ModuliSet) -> None:
    for signed in (False, True):
        lowest, highest = moduli.value_range(signed)
        check(on_each_processor, moduli, [highest] * 40, signed)
        check(on_each_processor, moduli, [lowest] * 30 + [highest] * 29, signed)


@pytest.mark.parametrize("moduli", [ModuliSet([7, 9, 11, 13]), MODULI_SETS["table2_32"]], ids=["four", "32"])
@pytest.mark.parametrize("values", [[-1], [-1] * 5, [-2], [-2, 1]], ids=str)
def test_sums_that_a_start_rounded_down_gets_wrong(
    on_each_processor: Processor, moduli: ModuliSet, values: list[int]
) -> None:
    """The key of the offset M//2 must be rounded up, or these sums come out M too small."""
    check(on_each_processor, moduli, values, signed=True)


@pytest.mark.parametrize("shape", [(6, 1), (1, 6), (2, 3)])
def test_any_shape_has_flat_indices(on_each_processor: Processor, shape: tuple[int, ...]) -> None:
    moduli = MODULI_SETS["top"]
    residues = on_each_processor.xp.asarray(rns.encode([3, 9, 1, 9, 1, 2], moduli))
    shaped = residues.reshape(len(moduli), *shape)
    assert reduce_chunk(shaped, RNS(moduli), "max").index == 1
    assert reduce_chunk(shaped, RNS(moduli), "min").index == 2


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[:, 3:1000],
        lambda a: a[:, 1:],
        lambda a: a[:, ::2],
        lambda a: a[:, ::-1],
        lambda a: a[:, 7:8],
    ],
    ids=["columns", "unaligned", "strided", "reversed", "one"],
)
def test_views(on_each_processor: Processor, view: Any, rng: np.random.Generator) -> None:
    moduli = MODULI_SETS["table2_8"]
    values = [int(f) * moduli.product >> 62 for f in rng.integers(0, 2**62, size=1003)]
    residues = view(on_each_processor.xp.asarray(rns.encode(values, moduli)))
    part = view(np.array(values, dtype=object)[None])[0].tolist()
    assert reduce_chunk(residues, RNS(moduli), "max").value == max(part)
    assert reduce_chunk(residues, RNS(moduli), "min").index == part.index(min(part))
    assert reduce_chunk(residues, RNS(moduli), "sum").value == sum(part)


def test_small_blocks_give_the_same_results(
    on_each_processor: Processor, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks of flags, exact decisions and sums, which only huge chunks fill otherwise."""
    monkeypatch.setattr(reduce, "FLAG_BLOCK", 64)
    monkeypatch.setattr(blocks, "EXACT_RESIDUES", 50)
    monkeypatch.setattr(reduce, "SUM_BLOCK", 68)
    moduli = MODULI_SETS["table2_8"]
    for top in (1, 3, 1000):
        values = [moduli.product - 1 - int(d) for d in rng.integers(0, top, size=1001)]
        check(on_each_processor, moduli, values)
        check(on_each_processor, moduli, [int(d) for d in rng.integers(0, top, size=1001)])


def test_fallbacks_are_counted(on_each_processor: Processor) -> None:
    moduli = MODULI_SETS["bits2048"]
    spread = [moduli.product // 7 * k for k in range(7)]
    assert check(on_each_processor, moduli, spread)["max"].exact_fallbacks == 0
    assert check(on_each_processor, moduli, [*spread, spread[-1] - 1])["max"].exact_fallbacks == 2
    # M - 1 may be 0 to the interval evaluation, and the other way round.
    results = check(on_each_processor, moduli, [*spread, moduli.product - 1])
    assert all(results[name].exact_fallbacks >= 1 for name in ("max", "min", "sum"))


def test_conversions_of_an_adversarial_array_are_linear(
    on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal numbers are not converted at all, distinct ones within the error bound once each."""
    converted: list[int] = []
    convert = reduce.comparable_limbs

    def counted(residues: Any, moduli: ModuliSet, signed: bool) -> Any:
        converted.append(residues.shape[1])
        return convert(residues, moduli, signed)

    monkeypatch.setattr(reduce, "comparable_limbs", counted)
    moduli = MODULI_SETS["table2_16"]
    middle = moduli.product // 2
    for values, most in (([middle] * 5000, 1), ([middle + j % 1000 for j in range(5000)], 5000)):
        residues = on_each_processor.xp.asarray(rns.encode(values, moduli))
        converted.clear()
        assert reduce_chunk(residues, RNS(moduli), "max").value == max(values)
        assert sum(converted) <= most


@pytest.mark.parametrize("operation", REDUCTIONS)
def test_empty(on_each_processor: Processor, operation: str) -> None:
    moduli = MODULI_SETS["top"]
    empty = on_each_processor.xp.zeros((len(moduli), 0), dtype=np.uint32)
    if operation not in ("max", "min"):
        result = reduce_chunk(empty, RNS(moduli), operation)
        assert (result.value, result.index, result.count) == (1 if operation == "lcm" else 0, None, 0)
        return
    with pytest.raises(ValueError, match=f"{operation} of an empty array"):
        reduce_chunk(empty, RNS(moduli), operation)


@given(st.data())
def test_any_set_and_values(on_each_processor: Processor, data: st.DataObject) -> None:
    moduli = data.draw(moduli_sets())
    signed = data.draw(st.booleans())
    values = data.draw(arrays_of_values(moduli, signed, min_size=1, max_size=40))
    bound = data.draw(st.sampled_from([None, max(abs(v) for v in values)]))
    check(on_each_processor, moduli, values, signed, bound)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30), st.data())
def test_combining_is_independent_of_grouping(values: list[int], data: st.DataObject) -> None:
    moduli = MODULI_SETS["tiny_unsorted"]
    cuts = sorted({0, len(values), *data.draw(st.lists(st.integers(0, len(values)), max_size=5))})
    for operation, reduction in REDUCTIONS.items():
        partials = []
        for start, stop in pairwise(cuts):
            part = rns.encode(values[start:stop], moduli, signed=True)
            result = reduce_chunk(part, RNS(moduli, True), operation)
            index = None if result.index is None else result.index + start
            partials.append(ReductionResult(result.value, index, result.count, result.exact_fallbacks, "cpu"))
        partials = data.draw(st.permutations(partials))
        while len(partials) > 1:
            i = data.draw(st.integers(0, len(partials) - 2))
            partials[i : i + 2] = [reduction.combine(partials[i], partials[i + 1])]
        (whole,) = partials
        assert whole.value == {**integers.REDUCTIONS, "bound": longest}[operation](values)
        assert whole.count == len(values)
        if operation in ("max", "min"):
            assert whole.index == values.index(whole.value)


def test_backends_join() -> None:
    a = ReductionResult(1, 5, 2, 1, "cpu")
    b = ReductionResult(1, 3, 4, 2, "cuda")
    assert REDUCTIONS["max"].combine(a, b) == ReductionResult(1, 3, 6, 3, "cpu+cuda")
    assert REDUCTIONS["min"].combine(b, a) == ReductionResult(1, 3, 6, 3, "cpu+cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("operation", ["max", "min", "sum", "gcd", "bound"])  # lcm makes ints of all numbers
def test_more_than_2_to_32_numbers(operation: str) -> None:
    import cupy

    moduli = ModuliSet([65537, 65539, 65543])
    count = 2**32 + 5
    residues = cupy.zeros((3, count), dtype=cupy.uint32)
    value = moduli.product - 2
    for row, m in zip(residues, moduli, strict=True):
        row[count - 1] = value % m
    result = reduce_chunk(residues, RNS(moduli), operation)
    assert result.count == count
    bound = min(longest([value]), moduli.product - 1)
    assert result.value == {"max": value, "min": 0, "sum": value, "gcd": value, "bound": bound}[operation]
    assert result.index == {"max": count - 1, "min": 0}.get(operation)


@pytest.mark.parametrize("name", ["table2_8", "bits2048"])
def test_numbers_around_the_ends_of_tiles(name: str, rng: np.random.Generator) -> None:
    """Few moduli are reduced 1024 numbers at a time, and many 4096, or 49,152 by AVX-512."""
    moduli = MODULI_SETS[name]
    some = [int.from_bytes(rng.bytes(moduli.bits // 8 + 1)) % moduli.product for _ in range(97)]
    for count in (1025, 4095, 4097, 8200, 49152 + 1030):
        values = (some * 520)[:count]
        residues = np.tile(rns.encode(some, moduli), 520)[:, :count]
        for place in {0, 1023, 1024, 4095, 4096, 49151, 49152, count - 1} & set(range(count)):
            changed, greatest = residues.copy(), moduli.product - 1 - place
            changed[:, place] = rns.encode([greatest], moduli)[:, 0]
            expected = [*values[:place], greatest, *values[place + 1 :]]
            results = {op: reduce_chunk(changed, RNS(moduli), op) for op in ("max", "min", "sum")}
            assert (results["max"].value, results["max"].index) == (greatest, place)
            assert results["min"].value == min(expected)
            assert results["sum"].value == sum(expected)
