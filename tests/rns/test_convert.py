"""Conversion between Python integers, limbs and residues, against Python integers."""

import itertools
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gmpy2
import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from oracles import rns
from oracles.integers import limbs, objects
from strategies import (
    BOTH_RANGES,
    EXHAUSTIVE_SETS,
    MODULI_SETS,
    MS_357,
    arrays_of_values,
    each_set,
    edge_values,
    moduli_sets,
    some_edges,
)

from rnsdask.constants import (
    extension_constants,
    forward_constants,
    mixed_radix_constants,
    remainder_constants,
    reverse_constants,
)
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import convert


def primes_above(start: int, count: int) -> ModuliSet:
    primes = [start]
    while len(primes) <= count:
        primes.append(int(gmpy2.next_prime(primes[-1])))
    return ModuliSet(primes[1:])


SETS = {
    **MODULI_SETS,
    # A little above 2**31, the quotients of 2**32 and of its square by m lose nearly 1 to rounding.
    "above_half": primes_above(2**31 + 22_000, 24),
    "three_quarters": primes_above(3 * 2**30 + 12_345, 40),
    # M is below 2**96 by 2**-41.6 of itself: X + M may need one bit more than three limbs.
    "nearly_full": ModuliSet([2883661097, 3830230057, 3, 2391053263]),
}
ALL_SETS = each_set(SETS, "ms")
MS = MODULI_SETS["top"]


def limbs_by_hand(values: list[int], limb_count: int) -> np.ndarray:
    return limbs(objects(values), limb_count)


def random_values(ms: ModuliSet, signed: bool, count: int, rng: np.random.Generator) -> list[int]:
    lowest, _ = ms.value_range(signed)
    data = (int.from_bytes(rng.bytes(ms.bits // 8 + 8), "little") for _ in range(count))
    return [lowest + value % ms.product for value in data]


def check_both_ways(processor: Processor, values: list[int], ms: ModuliSet, signed: bool) -> None:
    limbs = limbs_by_hand(values, ms.limb_count(signed))
    residues = rns.encode(values, ms, signed)
    forward = convert.to_residues(processor.xp.asarray(limbs), ms, signed)
    assert isinstance(forward, processor.xp.ndarray)
    assert forward.dtype == np.uint32
    np.testing.assert_array_equal(processor.to_numpy(forward), residues)
    reverse = convert.to_limbs(processor.xp.asarray(residues), ms, signed)
    assert isinstance(reverse, processor.xp.ndarray)
    assert reverse.dtype == np.uint32
    np.testing.assert_array_equal(processor.to_numpy(reverse), limbs)
    assert convert.residues_to_ints(processor.xp.asarray(residues), ms, signed).tolist() == values


# ---- the kernels, on each processor ---------------------------------------------------------------------


@ALL_SETS
@BOTH_RANGES
def test_edge_values(
    on_each_processor: Processor, ms: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    values = some_edges(ms, signed, rng, 150_000 // len(ms))  # all of them, but for the longest sets
    check_both_ways(on_each_processor, values, ms, signed)


@pytest.mark.parametrize("ms", EXHAUSTIVE_SETS.values(), ids=EXHAUSTIVE_SETS)
@BOTH_RANGES
def test_every_value_of_small_sets(on_each_processor: Processor, ms: ModuliSet, signed: bool) -> None:
    lowest, highest = ms.value_range(signed)
    check_both_ways(on_each_processor, list(range(lowest, highest + 1)), ms, signed)


@ALL_SETS
@BOTH_RANGES
def test_sums_at_their_greatest(on_each_processor: Processor, ms: ModuliSet, signed: bool) -> None:
    # Every u_i = m_i - 1 makes the sum of u_i M_i and its quotient by M as great as they can be; all u_i
    # at half their modulus put the sum near where a signed quotient is rounded the other way.
    _, highest = ms.value_range(signed)
    greatest = -sum(ms.partial_products)
    halves = sum(p * (m // 2 + d) for p, m in zip(ms.partial_products, ms, strict=True) for d in (0, 1))
    values = [(v + d) % ms.product for v in (greatest, -greatest, halves) for d in (-1, 0, 1)]
    values = [v if v <= highest else v - ms.product for v in values]
    check_both_ways(on_each_processor, values, ms, signed)


@BOTH_RANGES
def test_quotients_too_small_by_one(
    on_each_processor: Processor, signed: bool, rng: np.random.Generator
) -> None:
    # Values below n M 2**-32 may come out as X + M at first, here with a carry out of the limbs.
    ms = SETS["nearly_full"]
    missing = 2**96 - ms.product
    values = [missing + (ms.product * int(u) >> 52) for u in rng.integers(0, 2**21, 500)]
    check_both_ways(on_each_processor, [missing - 1, missing, *values], ms, signed)


@given(st.data(), moduli_sets(), st.booleans())
def test_any_values_under_any_moduli(
    on_each_processor: Processor, data: st.DataObject, ms: ModuliSet, signed: bool
) -> None:
    check_both_ways(on_each_processor, data.draw(arrays_of_values(ms, signed)), ms, signed)


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000])
def test_numbers_do_not_depend_on_their_neighbours(on_each_processor: Processor, count: int) -> None:
    ms = MODULI_SETS["bits2048"]
    values = edge_values(ms, signed=True)[:count]
    check_both_ways(on_each_processor, values, ms, signed=True)


@pytest.mark.parametrize("name", ["one", "one_full", "two_three", "top", "unsorted", "bits2048"])
@BOTH_RANGES
def test_more_or_fewer_limbs_than_the_range_needs(
    on_each_processor: Processor, name: str, signed: bool
) -> None:
    ms = MODULI_SETS[name]
    needed = ms.limb_count(signed)
    for limb_count in {1, 2, 3, needed - 1, needed + 1, needed + 2, needed + 40} - {0}:
        size = 2 ** (32 * limb_count)
        lowest, highest = (-size // 2, size // 2 - 1) if signed else (0, size - 1)
        values = {lowest, lowest + 1, -1, 0, 1, highest - 1, highest, *edge_values(ms, signed)}
        bottom, top = ms.value_range(signed)
        fitting = sorted(v for v in values if max(lowest, bottom) <= v <= min(highest, top))
        limbs = on_each_processor.xp.asarray(limbs_by_hand(fitting, limb_count))
        residues = on_each_processor.to_numpy(convert.to_residues(limbs, ms, signed))
        np.testing.assert_array_equal(residues, rns.encode(fitting, ms, signed))
        assert convert.limbs_to_ints(limbs, signed).tolist() == fitting


@ALL_SETS
@BOTH_RANGES
def test_the_range_of_limbs_ends_where_it_says(
    on_each_processor: Processor, ms: ModuliSet, signed: bool
) -> None:
    lowest, highest = ms.value_range(signed)
    inside = [lowest, lowest + 1, highest - 1, highest, 0]
    for more in (0, 1, 3):
        limb_count = ms.limb_count(signed) + more
        size = 2 ** (32 * limb_count)
        bottom, top = (-size // 2, size // 2 - 1) if signed else (0, size - 1)
        convert.to_residues(on_each_processor.xp.asarray(limbs_by_hand(inside, limb_count)), ms, signed)
        for value in (lowest - 1, highest + 1, highest + 2, bottom, top, lowest - 2**32, highest + 2**32):
            if bottom <= value <= top and not lowest <= value <= highest:
                limbs = on_each_processor.xp.asarray(limbs_by_hand([*inside, value, highest], limb_count))
                with pytest.raises(ValueError, match="at position 5 is outside the "):
                    convert.to_residues(limbs, ms, signed)


@pytest.mark.parametrize("position", [0, 1, 63, 64, 255, 256, 70_000])
@BOTH_RANGES
def test_the_first_number_out_of_range_is_named(
    on_each_processor: Processor, position: int, signed: bool
) -> None:
    lowest, highest = MS_357.value_range(signed)
    limbs = np.zeros((70_010, 2), np.uint32)
    limbs[position:, 0] = highest + 1  # and all that follow
    kind = "signed" if signed else "unsigned"
    message = (
        f"value {highest + 1} at position {position} is outside the {kind} range from {lowest} to {highest} "
        f"of the moduli set"
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        convert.to_residues(on_each_processor.xp.asarray(limbs), MS_357, signed)


def test_position_in_an_array_of_several_axes(on_each_processor: Processor) -> None:
    limbs = on_each_processor.xp.zeros((2, 3, 4, 1), np.uint32)
    limbs[1, 0, 3] = 2**32 - 1
    with pytest.raises(
        ValueError, match=r"value 4294967295 at index \(1, 0, 3\) is outside the unsigned range"
    ):
        convert.to_residues(limbs, MS_357)
    with pytest.raises(ValueError, match=r"value 105 at index \(1, 2\) is outside the unsigned range"):
        convert.ints_to_residues(np.array([[0, 1, 2], [3, 4, 105]]), MS_357)


def test_shapes_and_strides(on_each_processor: Processor, rng: np.random.Generator) -> None:
    values = random_values(MS, True, 240, rng)
    limbs = limbs_by_hand(values, 4).reshape(4, 6, 10, 4)
    residues = rns.encode(values, MS, signed=True).reshape(4, 4, 6, 10)
    views: list[Callable[[Any], Any]] = [
        lambda a: a,
        lambda a: a[1],
        lambda a: a[::2, 1:, ::-3],
        lambda a: a[:, :, 5],
        lambda a: a[:, :1, :1],
        lambda a: a.swapaxes(0, 2),
        lambda a: a[:, 3:3],
    ]
    xp, to_numpy = on_each_processor.xp, on_each_processor.to_numpy
    for view, order in itertools.product(views, "CF"):
        some_limbs = view(xp.asarray(limbs, order=order))
        some_residues = xp.moveaxis(view(xp.moveaxis(xp.asarray(residues, order=order), 0, -1)), -1, 0)
        forward = to_numpy(convert.to_residues(some_limbs, MS, signed=True))
        np.testing.assert_array_equal(forward, to_numpy(some_residues))
        reverse = to_numpy(convert.to_limbs(some_residues, MS, signed=True))
        np.testing.assert_array_equal(reverse, to_numpy(some_limbs))
        ints = view(np.array(values, dtype=object).reshape(4, 6, 10, 1))[..., 0]
        for result in (
            convert.residues_to_ints(some_residues, MS, signed=True),
            convert.limbs_to_ints(some_limbs, signed=True),
        ):
            assert isinstance(result, np.ndarray)
            assert result.dtype == object
            assert result.shape == ints.shape
            assert result.tolist() == ints.tolist()


def test_limbs_in_another_order(on_each_processor: Processor) -> None:
    limbs = on_each_processor.xp.asarray(limbs_by_hand([7, 2**70 + 5], 3))
    expected = rns.encode([7 << 64, 5 << 64 | 64], MS)
    np.testing.assert_array_equal(
        on_each_processor.to_numpy(convert.to_residues(limbs[:, ::-1], MS)), expected
    )
    repeated = on_each_processor.xp.broadcast_to(limbs[1], (5, 3))
    np.testing.assert_array_equal(
        on_each_processor.to_numpy(convert.to_residues(repeated, MS)), rns.encode([2**70 + 5] * 5, MS)
    )


def test_no_numbers(on_each_processor: Processor) -> None:
    xp = on_each_processor.xp
    for shape in [(0,), (2, 0), (0, 3)]:
        residues = convert.to_residues(xp.empty((*shape, 4), np.uint32), MS)
        assert residues.shape == (4, *shape)
        assert convert.to_limbs(residues, MS, signed=True).shape == (*shape, 4)
        assert convert.residues_to_ints(residues, MS).shape == shape
        assert convert.limbs_to_ints(xp.empty((*shape, 2), np.uint32)).shape == shape


def test_blocks(
    on_each_processor: Processor, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    ms = MODULI_SETS["table2_16"]
    values = random_values(ms, True, 100, rng)
    residues = rns.encode(values, ms, signed=True)
    monkeypatch.setattr(convert, "BLOCK_NUMBERS", 7)
    np.testing.assert_array_equal(convert.ints_to_residues(values, ms, signed=True), residues)
    on_device = on_each_processor.xp.asarray(residues)
    assert convert.residues_to_ints(on_device, ms, signed=True).tolist() == values
    limbs = on_each_processor.xp.asarray(limbs_by_hand(values, ms.limb_count(True)))
    assert convert.limbs_to_ints(limbs, signed=True).tolist() == values
    np.testing.assert_array_equal(
        convert.ints_to_limbs(values, ms.limb_count(True), signed=True), limbs_by_hand(values, limbs.shape[1])
    )
    values[51] = 2.0
    with pytest.raises(TypeError, match=r"^value at position 51 "):
        convert.ints_to_residues(values, ms, signed=True)
    for bad in (ms.product, 2**5000, -(2**5000)):
        values[51:] = [bad] * 49
        with pytest.raises(ValueError, match=r"at position 51 is outside the signed range"):
            convert.ints_to_residues(values, ms, signed=True)
    with pytest.raises(ValueError, match=r"at position 23 is outside the signed range"):
        convert.ints_to_residues(np.arange(100) + 30, MS_357, signed=True)


# ---- Python integers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["one", "two_three", "top", "unsorted", "bits2048", "table2_64"])
@BOTH_RANGES
def test_ints_both_ways(name: str, signed: bool) -> None:
    ms = MODULI_SETS[name]
    values = edge_values(ms, signed)
    residues = convert.ints_to_residues(values, ms, signed)
    assert residues.dtype == np.uint32
    np.testing.assert_array_equal(residues, rns.encode(values, ms, signed))
    back = convert.residues_to_ints(residues, ms, signed)
    assert back.tolist() == values
    assert set(map(type, back)) == {int}


@pytest.mark.parametrize("limb_count", [1, 2, 3, 65])
@BOTH_RANGES
def test_ints_to_limbs_and_back(limb_count: int, signed: bool) -> None:
    size = 2 ** (32 * limb_count)
    lowest, highest = (-size // 2, size // 2 - 1) if signed else (0, size - 1)
    values = [lowest, lowest + 1, 0, 1, 2, highest // 2, highest - 1, highest]
    limbs = convert.ints_to_limbs(values, limb_count, signed)
    np.testing.assert_array_equal(limbs, limbs_by_hand(values, limb_count))
    assert convert.limbs_to_ints(limbs, signed).tolist() == values
    kind = "signed" if signed else "unsigned"
    for value in (lowest - 1, highest + 1, 10**5000):
        with pytest.raises(
            ValueError, match=f"at position 2 is outside the {kind} range .* {limb_count} limbs of"
        ):
            convert.ints_to_limbs([0, 1, value, value], limb_count, signed)


@pytest.mark.parametrize("dtype", [np.dtype(c) for c in "bBhHiIlLqQ"] + [np.dtype(">i8"), np.dtype(">u4")])
@pytest.mark.parametrize("limb_count", [1, 2, 3])
@BOTH_RANGES
def test_numpy_integers_to_limbs(dtype: np.dtype[Any], limb_count: int, signed: bool) -> None:
    size = 2 ** (32 * limb_count)
    lowest, highest = (-size // 2, size // 2 - 1) if signed else (0, size - 1)
    info = np.iinfo(dtype)
    candidates = {info.min, info.max, 0, 1, lowest, highest, lowest - 1, highest + 1, -1, 2**31, 2**63}
    candidates = {v for v in candidates if info.min <= v <= info.max}
    fitting = sorted(v for v in candidates if lowest <= v <= highest)
    limbs = convert.ints_to_limbs(np.array(fitting, dtype=dtype), limb_count, signed)
    np.testing.assert_array_equal(limbs, limbs_by_hand(fitting, limb_count))
    for value in candidates - set(fitting):
        with pytest.raises(ValueError, match=f"^value {value} at position 1 is outside"):
            convert.ints_to_limbs(np.array([0, value, value], dtype=dtype), limb_count, signed)


@pytest.mark.parametrize(
    "values",
    [
        [2**64 - 1, 1],
        (2**64 - 1, 1),
        np.array([2**64 - 1, 1], dtype=np.uint64),
        np.array([2**64 - 1, 1], dtype=object),
        np.array([2**64 - 1, 7, 1], dtype=np.uint64)[::2],
        [gmpy2.mpz(2**64 - 1), gmpy2.mpz(1)],
        [gmpy2.mpz(2**64 - 1), np.uint8(1)],
        [np.uint64(2**64 - 1), 1],
        (v for v in (2**64 - 1, 1)),
        {2**64 - 1: None, 1: None}.keys(),
    ],
    ids=lambda values: type(values).__name__,
)
def test_no_bit_is_lost_from_any_integer_type(values: Any) -> None:
    residues = convert.ints_to_residues(values, MS)
    np.testing.assert_array_equal(residues, rns.encode([2**64 - 1, 1], MS))


@pytest.mark.parametrize(
    "values",
    [
        np.array([2**64 - 1, -1]),  # NumPy's own choice here is float64
        [2**64 - 1.0, 1],
        [np.float32(1), 1],
        [float("nan"), 1],
    ],
)
def test_floats_are_refused(values: Any) -> None:
    for call in (
        lambda: convert.ints_to_residues(values, MS, signed=True),
        lambda: convert.ints_to_limbs(values, 3, signed=True),
    ):
        with pytest.raises(
            TypeError, match=r"^value at position 0 must be an integer, got .* lost bits .* dtype=object$"
        ):
            call()


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ([1, True], "position 1"),
        ([1, np.True_], "position 1"),
        (np.array([True]), "position 0"),
        ([1, "2"], "position 1"),
        (iter("12"), "position 0"),
        ([1, None], "position 1"),
        ([1, 2, [3]], "position 2"),
        ([1j], "position 0"),
        (np.array([[1, 2], [3, 4.5]], dtype=object), r"index \(1, 1\)"),
    ],
)
def test_what_is_not_an_integer_is_refused(values: Any, place: str) -> None:
    with pytest.raises(TypeError, match=f"^value at {place} must be an integer, got "):
        convert.ints_to_residues(values, MS)


@pytest.mark.parametrize("values", [5, None, np.array(5)])
def test_what_is_not_an_iterable_is_refused(values: Any) -> None:
    with pytest.raises(TypeError, match=r"^values must be an iterable of integers, got "):
        convert.ints_to_residues(values, MS)


@pytest.mark.parametrize("as_array", [list, np.array, lambda v: np.array(v, dtype=object)])
@BOTH_RANGES
def test_ints_out_of_range_are_refused(as_array: Callable[[list[int]], Any], signed: bool) -> None:
    lowest, highest = MS_357.value_range(signed)
    for value in (lowest - 1, highest + 1, -(2**40), 2**40):
        values = [0, highest, value, value + 1]
        message = (
            f"value {value} at position 2 is outside the {'signed' if signed else 'unsigned'} range "
            f"from {lowest} to {highest} of the moduli set"
        )
        with pytest.raises(ValueError, match=f"^{message}$"):
            convert.ints_to_residues(as_array(values), MS_357, signed)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("kind", [list, np.int64, np.uint64, np.int8, object])
def test_short_values_under_many_moduli(kind: Any, signed: bool) -> None:
    """Values are measured first: around the ends of one limb, two, four and so on, alone and with others."""
    moduli = ModuliSet.for_bits(32 * 23 - 5)
    lowest, highest = moduli.value_range(signed)
    ends = [
        sign * (1 << 32 * k - half) + d
        for k in (1, 2, 3, 4, 5, 8, 9, 16, 17)
        for half in (0, 1)
        for sign in (1, -1)
        for d in (-1, 0, 1)
    ]
    values = [v for v in (0, lowest, highest, highest - 1, *ends) if lowest <= v <= highest]
    if isinstance(kind, type) and issubclass(kind, np.integer):
        info = np.iinfo(kind)
        values = [v for v in (*values, info.min, info.max) if max(lowest, info.min) <= v <= info.max]
    for part in (values, values[::-1], *([v] for v in values)):
        given = part if kind is list else np.array(part, dtype=kind)
        found = convert.ints_to_residues(given, moduli, signed)
        assert found.tolist() == [[v % m for v in part] for m in moduli]


@pytest.mark.parametrize("wrong", [-1, 1 << 40])
def test_short_values_out_of_range_under_many_moduli(wrong: int) -> None:
    moduli = ModuliSet.for_bits(32 * 23)
    wrong = wrong if wrong < 0 else moduli.product
    for values in ([3, wrong, 5], np.array([3, wrong, 5], dtype=np.int64 if wrong < 0 else object)):
        with pytest.raises(ValueError, match="at position 1 "):
            convert.ints_to_residues(values, moduli)


def test_long_values_are_shortened_in_messages() -> None:
    with pytest.raises(ValueError, match=r"bits\) at position 0 is outside") as error:
        convert.ints_to_residues([10**100_000], MODULI_SETS["moduli512"])
    assert len(str(error.value)) < 400


def test_shape_of_an_array_of_ints() -> None:
    values = np.arange(24).reshape(2, 3, 4)
    residues = convert.ints_to_residues(values, MS)
    assert residues.shape == (4, 2, 3, 4)
    assert convert.residues_to_ints(residues, MS).tolist() == values.tolist()
    objects = values.astype(object)
    np.testing.assert_array_equal(convert.ints_to_residues(objects.T, MS), residues.transpose(0, 3, 2, 1))
    limbs = convert.ints_to_limbs(values, 5)
    assert limbs.shape == (2, 3, 4, 5)
    assert convert.limbs_to_ints(limbs).tolist() == values.tolist()


def test_no_ints() -> None:
    for empty in ([], np.array([], dtype=object), np.array([]), np.array([], dtype=np.uint64)):
        assert convert.ints_to_residues(empty, MS).shape == (4, 0)
        assert convert.ints_to_limbs(empty, 3).shape == (0, 3)


# ---- arguments ------------------------------------------------------------------------------------------


def test_arrays_that_are_no_limbs() -> None:
    with pytest.raises(TypeError, match="limbs must be a NumPy or CuPy array, got list"):
        convert.to_residues([[1]], MS)
    with pytest.raises(TypeError, match="limbs must have dtype uint32, got uint64"):
        convert.to_residues(np.zeros((2, 2), np.uint64), MS)
    for shape in [(), (4,), (4, 0)]:
        with pytest.raises(ValueError, match=re.escape(f"got shape {shape}")):
            convert.limbs_to_ints(np.zeros(shape, np.uint32))
    for limb_count in (0, -1):
        with pytest.raises(ValueError, match=f"limb_count must be at least 1, got {limb_count}"):
            convert.ints_to_limbs([1], limb_count)
    with pytest.raises(TypeError, match=r"limb_count must be an integer, got 1\.5"):
        convert.ints_to_limbs([1], 1.5)  # type: ignore[arg-type]


def test_arrays_that_are_no_residues() -> None:
    with pytest.raises(TypeError, match="residues must have dtype uint32, got int64"):
        convert.to_limbs(np.zeros((4, 2), np.int64), MS)
    with pytest.raises(ValueError, match="one row for each of the 4 moduli"):
        convert.residues_to_ints(np.zeros((3, 2), np.uint32), MS)


def test_threads_share_a_table() -> None:
    """Each thread's own would be as large, and on a GPU there would be a copy of each."""
    moduli, targets = (ModuliSet.for_bits(31 * n, modulus_bits=b) for n, b in ((300, 32), (299, 31)))
    makers: list[Callable[[], object]] = [
        lambda: reverse_constants(moduli),
        lambda: forward_constants(moduli, 301),
        lambda: extension_constants(moduli, targets),
        lambda: remainder_constants(moduli, 10**100),
        lambda: mixed_radix_constants(targets),
    ]
    start = threading.Barrier(4)

    def made_at_once(make: Callable[[], object]) -> object:
        start.wait()
        return make()

    with ThreadPoolExecutor(4) as pool:
        for make in makers:
            found = list(pool.map(made_at_once, [make] * 4))
            assert all(table is found[0] for table in found)
