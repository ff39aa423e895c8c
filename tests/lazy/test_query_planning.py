"""Lazy arrays where Dask's arrays are expressions, with its setting ``array.query-planning`` on.

These tests, and the laws, run so by ``scripts/test_query_planning.sh``; without the setting they hold too.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import rnsdask as rd
from rnsdask.core.errors import QueryPlanningError, StoreError
from rnsdask.lazy.planning import PLANS_QUERIES

MODULI = rd.ModuliSet.for_bits(200)
VALUES = [(-3) ** (i % 37) + i for i in range(100)]
SYSTEMS = {
    "rns": rd.RNS(MODULI, signed=True),
    "interval": rd.IntervalRNS(MODULI),
    "positional": rd.Positional(200, True),
}


@pytest.fixture(params=SYSTEMS)
def x(request: pytest.FixtureRequest) -> Any:
    return rd.from_ints(VALUES, SYSTEMS[request.param], chunks=30)


def test_element_wise_operations(x: Any) -> None:
    in_memory, made = x.compute(), {}
    made["plus one"] = x + 1, [v + 1 for v in VALUES]
    made["product"] = x * x - x, [v * v - v for v in VALUES]
    made["in memory"] = x + in_memory, [2 * v for v in VALUES]
    made["other chunks"] = x + x.rechunk(7), [2 * v for v in VALUES]
    made["quotient"] = x // 7, [v // 7 for v in VALUES]
    made["remainder"] = x % 7, [v % 7 for v in VALUES]
    made["magnitude"] = abs(x), [abs(v) for v in VALUES]
    made["where"] = rd.where(x > 5, x, 5), [max(v, 5) for v in VALUES]
    made["clip"] = rd.clip(x, -9, 9), [min(max(v, -9), 9) for v in VALUES]
    made["lazy integer"] = x - x.min(), [v - min(VALUES) for v in VALUES]
    for name, (found, expected) in made.items():
        assert found.to_ints().tolist() == expected, name
    assert (x < in_memory[::-1]).compute().tolist() == [
        v < w for v, w in zip(VALUES, VALUES[::-1], strict=True)
    ]


def test_reductions(x: Any) -> None:
    ints = np.array(VALUES, dtype=object)
    for name in ("max", "min", "sum", "argmax", "argmin"):
        assert int(getattr(x, name)()) == getattr(ints, name)()
    assert int(x.max() - 2 * x.min()) == ints.max() - 2 * ints.min()
    assert (x.max() == ints.max()).compute()
    table = rd.from_ints(ints.reshape(10, 10), x.system, chunks=(4, 3))
    assert table.sum(axis=0).compute().tolist() == ints.reshape(10, 10).sum(axis=0).tolist()
    assert table.max(axis=1).to_ints().tolist() == ints.reshape(10, 10).max(axis=1).tolist()
    assert x.cummax().to_ints().tolist() == np.maximum.accumulate(ints).tolist()
    assert rd.sort(x).to_ints().tolist() == sorted(VALUES)


def test_reading_and_writing(x: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    x.to_zarr(path)
    stored = rd.open_zarr(path)
    assert stored.to_ints().tolist() == VALUES
    assert int(stored.max()) == max(VALUES)
    for made in (stored + 1, stored[5:].rechunk(7), rd.concatenate([stored, stored])):
        with pytest.raises(StoreError, match=r"cannot overwrite the (store|group) that it is read from"):
            made.to_zarr(path, overwrite=True)
    (stored * 2).to_zarr(tmp_path / "y.zarr", compute=False).compute()
    assert rd.open_zarr(tmp_path / "y.zarr").to_ints().tolist() == [2 * v for v in VALUES]


@pytest.mark.filterwarnings("error::UserWarning")
def test_dasks_own_functions(x: Any) -> None:
    (computed,) = dask.compute(x + 1)
    assert computed.to_ints().tolist() == [v + 1 for v in VALUES]
    both = dask.compute(x, x[3:50:2])
    assert [part.to_ints().tolist() for part in both] == [VALUES, VALUES[3:50:2]]
    for (made,) in (dask.persist(x), dask.optimize(x)):
        assert made.to_ints().tolist() == VALUES
    given = da.from_array(np.array(VALUES, dtype=object), chunks=20)
    assert rd.from_ints(given, x.system).to_ints().tolist() == VALUES
    assert "chunksize=(30,)" in repr(x)
    assert "<svg" in x._repr_html_()


LACKING: dict[str, Callable[[Any], Any]] = {
    "method": lambda x: x.reshape(10, 10),
    "condition": lambda x: x[x > 5],
    "blocks": lambda x: x.blocks[0],
    "function": rd.unique,
}


@pytest.mark.skipif(not PLANS_QUERIES, reason="array.query-planning is off")
@pytest.mark.parametrize("name", LACKING)
def test_what_dasks_arrays_lack_is_one_error(name: str) -> None:
    x = rd.from_ints(VALUES, SYSTEMS["rns"], chunks=30)
    with pytest.raises(QueryPlanningError, match="set DASK_ARRAY__QUERY_PLANNING=False before Python"):
        LACKING[name](x)
