"""Base extension, changes of the moduli set and the bits a chain needs, against Python integers."""

import itertools
from typing import Any

import dask
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
    arrays_of_values,
    each_name,
    moduli_sets,
    some_edges,
    values_in,
)

import rnsdask as rd
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import extend

TOP = MODULI_SETS["top"]
TARGETS = {
    name: MODULI_SETS[name] for name in ("one_full", "three_two", "unsorted", "top", "table2_8", "bits2048")
}


def residues_by_hand(values: list[int], moduli: ModuliSet) -> np.ndarray:
    rows = [[value % m for value in values] for m in moduli]
    return np.array(rows, dtype=np.uint32).reshape(len(moduli), -1)


def chosen_values(
    ms: ModuliSet, signed: bool, count: int, rng: np.random.Generator, bound: int | None = None
) -> list[int]:
    """Edge values and random ones, in random order; the ends of the range always."""
    lowest, highest = ms.value_range(signed)
    values = some_edges(ms, signed, rng, count)
    drawn = [int.from_bytes(rng.bytes(ms.bits // 8 + 8), "little") for _ in range(count // 4)]
    values += [lowest + value % ms.product for value in drawn] + [lowest, highest, 0]
    return [v for v in values if bound is None or abs(v) <= bound]


def check_base_extend(
    processor: Processor,
    values: list[int],
    ms: ModuliSet,
    targets: ModuliSet,
    signed: bool,
    bound: int | None = None,
) -> None:
    residues = processor.xp.asarray(rns.encode(values, ms, signed))
    result = extend.base_extend(residues, rd.RNS(ms, signed, bound), targets)
    assert isinstance(result, processor.xp.ndarray)
    assert result.dtype == np.uint32
    np.testing.assert_array_equal(processor.to_numpy(result), residues_by_hand(values, targets))


# ---- residues modulo other moduli -------------------------------------------------------------------------


@each_name(MODULI_SETS, "source")
@pytest.mark.parametrize("target", TARGETS)
@BOTH_RANGES
def test_base_extend(
    on_each_processor: Processor, source: str, target: str, signed: bool, rng: np.random.Generator
) -> None:
    ms = MODULI_SETS[source]
    values = chosen_values(ms, signed, max(40, 8000 // len(ms)), rng)
    check_base_extend(on_each_processor, values, ms, TARGETS[target], signed)


@pytest.mark.parametrize("source", EXHAUSTIVE_SETS)
@pytest.mark.parametrize("target", EXHAUSTIVE_SETS)
@BOTH_RANGES
def test_every_value_of_small_sets(
    on_each_processor: Processor, source: str, target: str, signed: bool
) -> None:
    ms = EXHAUSTIVE_SETS[source]
    lowest, highest = ms.value_range(signed)
    check_base_extend(
        on_each_processor, list(range(lowest, highest + 1)), ms, EXHAUSTIVE_SETS[target], signed
    )


@BOTH_RANGES
@pytest.mark.parametrize("distance", [0, 1, 2**30, 2**60, 2**90])
def test_bounds_use_few_moduli_and_stay_exact(
    on_each_processor: Processor, signed: bool, distance: int, rng: np.random.Generator
) -> None:
    # Bounds at and around where a prefix's range ends, and a room for the error begins.
    ms = MODULI_SETS["table2_16"]
    for count in (1, 2, 8, 15, 16):
        _, highest = ms.prefix(count).value_range(signed)
        for bound in {max(0, highest - distance), highest + distance}:
            values = [v for v in (0, 1, bound - 1, bound, bound // 2) if 0 <= v <= ms.value_range(signed)[1]]
            values += [-v for v in values if signed]
            check_base_extend(on_each_processor, values, ms, TOP, signed, bound)


@given(st.data(), moduli_sets(), moduli_sets(), st.booleans())
def test_any_values_between_any_moduli(
    on_each_processor: Processor, data: st.DataObject, ms: ModuliSet, targets: ModuliSet, signed: bool
) -> None:
    values = data.draw(arrays_of_values(ms, signed))
    bound = data.draw(st.sampled_from([None, max(abs(v) for v in values)]))
    check_base_extend(on_each_processor, values, ms, targets, signed, bound)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (2, 3, 5)])
def test_shapes(on_each_processor: Processor, shape: tuple[int, ...]) -> None:
    values = list(range(int(np.prod(shape))))
    residues = on_each_processor.xp.asarray(rns.encode(values, TOP).reshape(4, *shape))
    result = extend.base_extend(residues, rd.RNS(TOP), MODULI_SETS["unsorted"])
    expected = residues_by_hand(values, MODULI_SETS["unsorted"]).reshape(6, *shape)
    np.testing.assert_array_equal(on_each_processor.to_numpy(result), expected)


# ---- other moduli sets for the same numbers ---------------------------------------------------------------


def test_extension_teaches_a_bound() -> None:
    x = rd.random(TOP, 300, seed=5)
    assert x.bound is None
    assert x.extend(MODULI_SETS["bits2048"]).bound == TOP.product - 1
    assert x.extend(TOP).bound is None


@BOTH_RANGES
@pytest.mark.parametrize("source", ["top", "tiny_unsorted", "unsorted", "table2_16", "bits2048"])
def test_values_just_inside_and_just_outside(on_each_processor: Processor, source: str, signed: bool) -> None:
    ms = MODULI_SETS[source]
    small = ModuliSet(list(ms)[1:-1][::-1])
    lowest, highest = small.value_range(signed)
    inside = [lowest, lowest + 1, 0, highest - 1, highest]
    residues = on_each_processor.xp.asarray(rns.encode(inside, ms, signed))
    result = extend.change_moduli(residues, rd.RNS(ms, signed), small)
    np.testing.assert_array_equal(on_each_processor.to_numpy(result), rns.encode(inside, small, signed))
    outside = [
        highest + 1,
        ms.value_range(signed)[1],
        *([lowest - 1, ms.value_range(True)[0]] if signed else []),
    ]
    for value in outside:
        residues = on_each_processor.xp.asarray(rns.encode([*inside, value, value], ms, signed))
        with pytest.raises(ValueError, match="at flat index 5 is outside"):
            extend.change_moduli(residues, rd.RNS(ms, signed), small)


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(EXHAUSTIVE_SETS, 2)))
@BOTH_RANGES
def test_a_value_fits_or_is_an_error(source: str, target: str, signed: bool) -> None:
    ms, targets = EXHAUSTIVE_SETS[source], EXHAUSTIVE_SETS[target]
    lowest, highest = targets.value_range(signed)
    least, greatest = ms.value_range(signed)
    for value in range(least, greatest + 1, 1 + ms.product // 500):
        residues = rns.encode([value], ms, signed)
        if lowest <= value <= highest:
            result = extend.change_moduli(residues, rd.RNS(ms, signed), targets)
            assert rns.decode(result, targets, signed) == [value]
        else:
            with pytest.raises(ValueError, match=f"value {value} at flat index 0 is outside"):
                extend.change_moduli(residues, rd.RNS(ms, signed), targets)


def test_misfit_is_named_by_its_index_in_the_whole_array() -> None:
    ms = MODULI_SETS["table2_8"]
    values = np.zeros((3, 384), dtype=object)
    values[2, 300] = TOP.product
    x = rd.from_ints(values, ms, chunks=(2, 128))
    lazy = rd.RNSArray(x.residues, rd.RNS(ms)).shrink(TOP)
    with pytest.raises(ValueError, match=f"at flat index {2 * 384 + 300} is outside the unsigned range"):
        lazy.to_ints()


def test_a_bound_proves_without_looking() -> None:
    # A false bound shows that nothing was checked.
    x = rd.RNSArray(
        rns.encode([TOP.product], MODULI_SETS["table2_8"]), rd.RNS(MODULI_SETS["table2_8"], False, 9)
    )
    assert x.shrink(TOP).shape == (1,)


def test_shrinking_to_more_moduli_is_refused() -> None:
    with pytest.raises(ValueError, match="4 moduli cannot shrink to 6"):
        rd.from_ints([1], TOP, chunks=None).shrink(MODULI_SETS["unsorted"])
    with pytest.raises(TypeError, match="ModuliSet"):
        rd.from_ints([1], TOP, chunks=None).extend([2, 3])  # type: ignore[arg-type]


def test_extension_is_lazy() -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("computed")

    with dask.config.set(scheduler=refuse):
        rd.random(TOP, 1000, chunks=128).extend(MODULI_SETS["bits2048"]).shrink(TOP)


# ---- bits that a chain needs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "bounds", "bits"),
    [
        ("a", {"a": 0}, 1),
        ("a", {"a": 255}, 8),
        ("a", {"a": 256}, 9),
        ("a", {"a": (-255, 255)}, 9),
        ("a", {"a": (-256, 0)}, 9),
        ("a + b", {"a": 255, "b": 1}, 9),
        ("a - b", {"a": 255, "b": 255}, 9),
        ("a - a", {"a": 3}, 3),
        ("-a * b", {"a": 15, "b": 15}, 9),
        ("a*b + c", {"a": 15, "b": 15, "c": 30}, 8),
        ("a*b + c", {"a": 15, "b": 15, "c": 31}, 9),
        ("(a*b + c) - a*b", {"a": 15, "b": 15, "c": 1}, 9),
        ("x**2", {"x": (-15, 3)}, 9),
        ("a**0", {"a": (-3, 3)}, 3),
        ("2**64 + a", {"a": 0}, 65),
        ("1000", {}, 10),
    ],
)
def test_required_bits(expression: str, bounds: dict[str, Any], bits: int) -> None:
    assert rd.required_bits(expression, **bounds) == bits


def test_required_bits_of_arrays() -> None:
    x = rd.from_ints([7, 3], TOP, chunks=None)
    y = rd.from_ints([-7, 3], TOP, signed=True, chunks=None)
    assert rd.required_bits("x*x", x=x) == 6
    assert rd.required_bits("x*y", x=x, y=y) == 7
    assert rd.required_bits("z", z=rd.random(TOP, 4)) == TOP.bits


@given(st.data(), moduli_sets(max_size=3), st.booleans())
def test_required_bits_suffice(data: st.DataObject, ms: ModuliSet, signed: bool) -> None:
    a, b, c = (data.draw(values_in(ms, signed)) for _ in range(3))
    lowest, highest = ms.value_range(signed)
    bounds = {name: (min(lowest, v), max(highest, v)) for name, v in zip("abc", (a, b, c), strict=True)}
    bits = rd.required_bits("a*b - c**3 + 5", **bounds)
    low, high = ModuliSet.for_bits(bits).value_range(True)
    assert low <= a * b - c**3 + 5 <= high


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("a +", "invalid syntax"),
        ("a / b", "column 1: / is not exact"),
        ("f(a)", "'f' is none"),
        ("a ** b", "column 6: the exponent of [*][*] must be an integer"),
        ("a ** -1", "must not be negative"),
        ("a ** 1000000", "more than 1048576 bits"),
        ("a << 2**40", "more than 1048576 bits"),
        ("a + True", "column 5: allowed are integers"),
        ("a + 1.5", "column 5: allowed are integers"),
        ("a + d", "'d' stands for nothing; the names are a, b"),
        ("a @ b", "the number of terms of @ is known from arrays only"),
        ("__import__('os')", "unexpected character"),
    ],
)
def test_expressions_refused(expression: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rd.required_bits(expression, a=5, b=5)


@pytest.mark.parametrize(
    ("bound", "error"), [(-1, ValueError), ((1, 0), ValueError), ((1, 2, 3), ValueError), (1.5, TypeError)]
)
def test_bounds_refused(bound: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="bound of 'a'"):
        rd.required_bits("a", a=bound)


def test_required_bits_of_very_long_expressions() -> None:
    terms = ["a"] * 50
    assert rd.required_bits("+".join([f"({'+'.join(terms)})"] * 60), a=5) == (5 * 3000).bit_length()
    for long in ("+".join(["a"] * 3000), "-" * 3000 + "a", "(" * 5000 + "a" + ")" * 5000):
        with pytest.raises(ValueError, match=r"nested") as error:
            rd.required_bits(long, a=5)
        assert len(str(error.value)) < 250
