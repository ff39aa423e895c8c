"""The fixed-point interval evaluation contains the exact value, for every X and every number of bits."""

import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from oracles import rns
from strategies import (
    ALL_SETS,
    EXHAUSTIVE_SETS,
    MODULI_SETS,
    arrays_of_values,
    edge_values,
    moduli_sets,
    some_edges,
)

from rnsdask.constants import fixed_point_constants
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.evaluation import fixed_point_interval


def integers(words: np.ndarray) -> list[int]:
    """Words of 32 bits, least significant first, as Python integers."""
    return [sum(w << 32 * k for k, w in enumerate(column)) for column in words.T.tolist()]


def check(
    processor: Processor, values: list[int], moduli: ModuliSet, bits: int | None, scale: int = 0
) -> None:
    residues = processor.xp.asarray(rns.encode(values, moduli))
    interval = fixed_point_interval(residues, moduli, bits, scale)
    lows = integers(processor.to_numpy(interval.low))
    upps = integers(processor.to_numpy(interval.upp))
    width = fixed_point_constants(moduli, bits, scale).width
    for value, low, upp in zip(values, lows, upps, strict=True):
        exact = ((value << scale) % moduli.product << interval.bits) // moduli.product
        assert low <= exact <= upp
        assert upp - low <= width
        assert value or upp == 0


@ALL_SETS
@pytest.mark.parametrize("bits", [None, 64, 96, 128])
def test_contains_the_exact_value(
    on_each_processor: Processor, moduli: ModuliSet, bits: int | None, rng: np.random.Generator
) -> None:
    values = [0, *some_edges(moduli, False, rng, 20_000 // len(moduli))]
    check(on_each_processor, values, moduli, bits)


@pytest.mark.parametrize("name", ["three_two", "top", "unsorted", "table2_16"])
@pytest.mark.parametrize("scale", [1, 31, 32, 60, 200])
def test_scaled(on_each_processor: Processor, name: str, scale: int) -> None:
    moduli = MODULI_SETS[name]
    for bits in (64, 96, 128):
        check(on_each_processor, edge_values(moduli), moduli, bits, scale)


@pytest.mark.parametrize("moduli", EXHAUSTIVE_SETS.values(), ids=EXHAUSTIVE_SETS)
def test_every_value_of_small_sets(on_each_processor: Processor, moduli: ModuliSet) -> None:
    check(on_each_processor, list(range(moduli.product)), moduli, 64)


@given(st.data())
def test_any_set_and_values(on_each_processor: Processor, data: st.DataObject) -> None:
    moduli = data.draw(moduli_sets())
    values = data.draw(arrays_of_values(moduli, min_size=1, max_size=20))
    check(
        on_each_processor,
        values,
        moduli,
        data.draw(st.sampled_from([None, 64, 96, 128])),
        data.draw(st.integers(0, 99)),
    )


def test_bits_chosen_by_the_set() -> None:
    chosen = {name: fixed_point_constants(moduli).bits for name, moduli in MODULI_SETS.items()}
    assert chosen["three_two"] == 64
    assert chosen["table2_4"] == 64
    assert chosen["moduli512"] == 96
    for name, moduli in MODULI_SETS.items():
        assert fixed_point_constants(moduli).width <= 2 ** (chosen[name] - 24)


def test_wrong_arguments() -> None:
    moduli = MODULI_SETS["top"]
    residues = rns.encode([1, 2], moduli)
    with pytest.raises(ValueError, match=r"one of \(64, 96, 128\), got 65"):
        fixed_point_interval(residues, moduli, bits=65)
    with pytest.raises(ValueError, match="scale must not be negative, got -1"):
        fixed_point_interval(residues, moduli, scale=-1)
    with pytest.raises(TypeError, match="uint32"):
        fixed_point_interval(residues.astype(np.int64), moduli)
