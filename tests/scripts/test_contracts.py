"""The figures of scripts/contracts.py that have a ceiling."""

import contracts
import pytest

MOST_STAYS = 15
"""Changes of the module on the way of a product of residues in memory."""


def test_a_product_of_residues_goes_through_few_modules() -> None:
    visited = contracts.stays(contracts.products()["residues"])
    assert len(visited) <= MOST_STAYS, visited


@pytest.mark.parametrize("name", contracts.products())
def test_a_product_is_planned_once(name: str) -> None:
    visited = contracts.stays(contracts.products()[name])
    assert "rnsdask.lazy.plan" not in visited  # which only makes plans that are not kept yet
    assert "rnsdask.core.ranges" not in visited
