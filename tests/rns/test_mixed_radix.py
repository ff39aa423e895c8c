"""Mixed-radix digits against Python integers."""

import numpy as np
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from oracles import rns
from strategies import (
    ALL_SETS,
    MODULI_SETS,
    arrays_of_values,
    moduli_sets,
    some_edges,
)

from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.evaluation import mixed_radix_digits


def digits_of(processor: Processor, values: list[int], moduli: ModuliSet) -> np.ndarray:
    residues = processor.xp.asarray(rns.encode(values, moduli))
    return processor.to_numpy(mixed_radix_digits(residues, moduli))


@ALL_SETS
def test_edge_values(on_each_processor: Processor, moduli: ModuliSet, rng: np.random.Generator) -> None:
    values = some_edges(moduli, False, rng, 20_000 // len(moduli))
    digits = digits_of(on_each_processor, values, moduli)
    for column, value in zip(digits.T.tolist(), values, strict=True):
        for digit, m in zip(column, moduli, strict=True):
            value, expected = divmod(value, m)
            assert digit == expected
        assert value == 0


@given(st.data())
def test_any_order_of_moduli(on_each_processor: Processor, data: st.DataObject) -> None:
    moduli = data.draw(moduli_sets())
    values = data.draw(arrays_of_values(moduli, min_size=1, max_size=20))
    digits = digits_of(on_each_processor, values, moduli)
    assert [rns.from_mixed_radix(column, moduli) for column in digits.T.tolist()] == values


def test_shape_is_kept(on_each_processor: Processor) -> None:
    moduli = MODULI_SETS["unsorted"]
    residues = on_each_processor.xp.asarray(rns.encode(list(range(24)), moduli)).reshape(6, 2, 3, 4)
    digits = mixed_radix_digits(residues, moduli)
    assert digits.shape == residues.shape
    flat = mixed_radix_digits(residues.reshape(6, 24), moduli)
    assert (on_each_processor.to_numpy(digits).reshape(6, 24) == on_each_processor.to_numpy(flat)).all()
