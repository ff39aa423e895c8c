"""X/M as a double with an exponent, against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from conftest import Processor
from oracles import rns
from strategies import ALL_SETS, BOTH_RANGES, MODULI_SETS, edge_values

import rnsdask as rd
from rnsdask.rns.evaluation import MAGNITUDE_ERROR, magnitudes


def check(
    processor: Processor, values: list[int], moduli: rd.ModuliSet, signed: bool, bound: int | None
) -> None:
    residues = processor.xp.asarray(rns.encode(values, moduli, signed))
    mantissas, exponents = map(processor.to_numpy, magnitudes(residues, rd.RNS(moduli, signed, bound)))
    assert mantissas.dtype == np.float64
    assert exponents.dtype == np.int64
    assert (abs(mantissas) < 1).all()
    for value, mantissa, exponent in zip(values, mantissas.tolist(), exponents.tolist(), strict=True):
        found = Fraction(mantissa) * Fraction(2) ** exponent * moduli.product
        assert abs(found - value) <= Fraction(MAGNITUDE_ERROR) * abs(value), value


@ALL_SETS
@BOTH_RANGES
def test_edges_of_every_set(on_each_processor: Processor, moduli: rd.ModuliSet, signed: bool) -> None:
    values = edge_values(moduli, signed)
    values = values[:: max(1, len(values) * len(moduli) // 40000)]
    check(on_each_processor, values, moduli, signed, None)


@BOTH_RANGES
@pytest.mark.parametrize("name", ["top", "unsorted", "bits2048", "table2_16"])
@pytest.mark.parametrize("bits", [0, 1, 33, 70])
def test_bounds(on_each_processor: Processor, name: str, signed: bool, bits: int) -> None:
    moduli = MODULI_SETS[name]
    bound = min(2**bits, moduli.value_range(signed)[1])
    values = [v for v in edge_values(moduli, signed) if abs(v) <= bound]
    check(on_each_processor, values, moduli, signed, bound)


def test_nothing() -> None:
    mantissas, exponents = magnitudes(np.empty((4, 0), dtype=np.uint32), rd.RNS(MODULI_SETS["top"], True))
    assert mantissas.shape == exponents.shape == (0,)
