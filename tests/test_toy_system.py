"""Number systems of the tests' own, a value of six methods and a class, keep the laws of all systems."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from laws import LAWS, LAYOUTS, Case, System, check
from oracles.integers import Range
from sample_arrays import CPU, host
from toy_system import ExcessArray, Pair, PairArray

import rnsdask as rd

# It is not stored.
LACKS = {"stores_round_trip", "stores_grow"}


def described(array_type: Any, kind: str) -> System:
    system = array_type.system_type()
    return System(
        name=str(system),
        limits=Range.of(kind, 2**64),
        array=lambda a, place: array_type(place(system.encode(a)), system),
        from_ints=lambda a: array_type(system.encode(a), system),
        is_defined=lambda x, a: bool((host(x.words) == system.encode(a)).all()),
    )


SYSTEMS = {"pairs": described(PairArray, "unsigned"), "excess": described(ExcessArray, "signed")}

pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "law"), [(s, w) for s in SYSTEMS for w in LAWS if w not in LACKS])
def test_law(name: str, law: str, layout: str, rng: np.random.Generator, tmp_path: Path) -> None:
    folder: Callable[[], Path] = lambda: tmp_path  # noqa: E731
    check(law, Case(SYSTEMS[name], layout, CPU, Random(int(rng.integers(2**63))), folder))


def test_what_its_table_lacks_is_one_error() -> None:
    x = PairArray(Pair().encode([1, 2, 3]), Pair())
    for name, call in {
        "matmul": lambda: x @ x,
        "mod_add": lambda: rd.mod_add(x, x, 7),
        "inverse": lambda: rd.inverse(x),
    }.items():
        with pytest.raises(TypeError, match=f"{name} takes no PairArray: it has no such operation"):
            call()
