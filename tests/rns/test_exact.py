"""The package's own residues and numbers in Python integers, against the oracle."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import rns
from strategies import ALL_SETS, BOTH_RANGES, MS_357, edge_values, moduli_sets, values_in

from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import exact


@ALL_SETS
@BOTH_RANGES
def test_edges(moduli: ModuliSet, signed: bool) -> None:
    values = edge_values(moduli, signed)[:: 1 + len(moduli) // 64]
    columns = rns.encode(values, moduli, signed).T.tolist()
    assert [exact.residues_of(value, moduli) for value in values] == columns
    assert [exact.value_of(column, moduli, signed) for column in columns] == values


@given(st.data(), moduli_sets(), st.booleans())
def test_any_value(data: st.DataObject, moduli: ModuliSet, signed: bool) -> None:
    value = data.draw(values_in(moduli, signed))
    residues = exact.residues_of(value, moduli)
    assert residues == rns.encode([value], moduli, signed)[:, 0].tolist()
    assert exact.value_of(residues, moduli, signed) == rns.value_of(residues, moduli, signed) == value


def test_residues_of_integers_out_of_range() -> None:
    assert exact.residues_of(105 + 23, MS_357) == exact.residues_of(23 - 105, MS_357) == [2, 3, 2]


@pytest.mark.parametrize(
    ("residues", "message"),
    [
        ([0, 0], "there must be one residue for each of the 3 moduli, got 2"),
        ([0, 0, 0, 0], "there must be one residue for each of the 3 moduli, got 4"),
        ([0, 5, 0], "residue 1 must be from 0 to 4 under the modulus 5, got 5"),
        ([0, 0, -1], "residue 2 must be from 0 to 6 under the modulus 7, got -1"),
    ],
)
def test_residues_that_break_the_rules_are_refused(residues: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        exact.value_of(residues, MS_357)
