"""Products of stacks of matrices of which each entry is a sum of no terms."""

import numpy as np
import pytest

import rnsdask as rd


@pytest.mark.parametrize("chunks", [None, -1])
def test_sums_of_no_terms_are_zero(chunks: int | None) -> None:
    a, b = np.empty((2, 1, 1, 0), dtype=object), np.empty((4, 0, 3), dtype=object)
    x, y = (rd.from_ints(values, rd.ModuliSet([2**32, 5]), chunks=chunks) for values in (a, b))
    found = rd.matmul(x, y, overflow="wrap").to_ints()
    assert found.shape == (2, 4, 1, 3)
    assert not found.any()
