"""How many primes a bound takes, and how they are cut into parts, against Python's integers."""

import math

import numpy as np
import pytest

from rnsdask.rns import lift
from rnsdask.rns.lift import count_beyond, parts_of, primes


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 33, 64, 257])
@pytest.mark.parametrize("start", [0, 7])
def test_fewest_primes_are_counted_whose_product_is_above_a_limit(count: int, start: int) -> None:
    product = math.prod(primes(start, count))
    assert count_beyond(product - 1, start) == count
    assert count_beyond(product, start) == count + 1
    assert count_beyond(product + 1, start) == count + 1


def test_small_limits_and_those_beyond_all_primes() -> None:
    assert [count_beyond(limit) for limit in (0, 1, 2, 2**31)] == [0, 1, 1, 2]
    below, step = 2**12, 2**8
    every = [p for p in range(1 + step, below, step) if all(p % q for q in range(2, p))]
    assert count_beyond(math.prod(every) - 1, below=below, step=step) == len(every)
    for limit, start in ((math.prod(every), 0), (2**400, 0), (2**400, len(every))):
        with pytest.raises(ValueError, match="no product above"):
            count_beyond(limit, start, below, step)


@pytest.mark.parametrize(("count", "most"), [(1, 8), (8, 8), (9, 8), (100, 8), (17, 16)])
def test_parts_are_about_one_size(count: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lift.RESIDUES, "cpu", most)
    parts = list(parts_of(np.zeros((2, 1), np.uint32), 5, count))
    assert [k for first, size in parts for k in range(first, first + size)] == list(range(5, 5 + count))
    sizes = [size for _, size in parts]
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1
