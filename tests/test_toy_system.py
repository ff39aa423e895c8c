"""A number system of the tests' own, a value of six methods and a class, keeps the laws of all systems."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from fuzzing.oracle import Range
from laws import LAWS, LAYOUTS, Case, System, check
from sample_arrays import CPU, host
from toy_system import SYSTEM, PairArray

import rnsdask as rd

# It is not stored.
LACKS = {"stores_round_trip", "stores_grow"}

PAIRS = System(
    name="pairs",
    limits=Range.of("unsigned", 2**64),
    array=lambda a, place: PairArray(place(SYSTEM.encode(a)), SYSTEM),
    from_ints=lambda a: PairArray(SYSTEM.encode(a), SYSTEM),
    is_defined=lambda x, a: bool((host(x.words) == SYSTEM.encode(a)).all()),
)

pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("law", [law for law in LAWS if law not in LACKS])
def test_law(law: str, layout: str, rng: np.random.Generator, tmp_path: Path) -> None:
    folder: Callable[[], Path] = lambda: tmp_path  # noqa: E731
    check(law, Case(PAIRS, layout, CPU, Random(int(rng.integers(2**63))), folder))


def test_what_its_table_lacks_is_one_error() -> None:
    x = PairArray(SYSTEM.encode([1, 2, 3]), SYSTEM)
    for name, call in {
        "matmul": lambda: x @ x,
        "mod_add": lambda: rd.mod_add(x, x, 7),
        "inverse": lambda: rd.inverse(x),
    }.items():
        with pytest.raises(TypeError, match=f"{name} takes no PairArray: it has no such operation"):
            call()
