"""The laws of every number system that there is, and of systems that are drawn."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import laws
import numpy as np
import pytest
from conftest import SESSION_SEED, Processor
from dask.base import tokenize
from laws import LAWS, LAYOUTS, SUBJECTS, Case, check
from laws.case import KINDS
from laws.systems import SYSTEMS, drawn_system
from oracles.integers import objects
from sample_arrays import CPU

SEEDS = int(os.environ.get("RNSDASK_LAW_SEEDS", 1))
"""Cases of each law that are drawn. `scripts/fuzz.py` draws more and greater ones."""

OF_ANY_NUMBERS = {
    *("nothing_is_computed_before_it_is_asked_for", "tokens_tell_numbers_apart", "wrong_shapes_are_refused"),
    *("moduli_sets_are_what_they_say", "required_bits_are_least", "long_products_are_gmps"),
    *("seeds_repeat_random_numbers", "wrong_residues_are_refused", "wrong_operands_are_refused"),
    *("integers_of_any_type_are_taken", "columns_of_parquet_are_read", "imported_numbers_are_exported"),
    "sparse_determinants_and_ranks_are_dense_ones",
}
"""Laws that do not ask which numbers an array has."""

NEAR_OTHERS = {
    *("signed", "unsigned-bound", "tight-bounds", "two-moduli-signed", "33-moduli"),
    *("interval-two-moduli", "interval-33-moduli", "positional-33"),
}
"""Systems like others, which are tried with --slow only; drawn ones are like these too."""

LACKS = {name: system.lacks for name, system in SYSTEMS.items()}


pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture
def random(rng: np.random.Generator) -> Random:
    return Random(int(rng.integers(2**63)))


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes a folder where one is asked for."""
    return lambda: tmp_path_factory.mktemp("laws")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("name", "law"),
    [
        pytest.param(s, w, marks=pytest.mark.slow if s in NEAR_OTHERS else [])
        for s in SYSTEMS
        for w in LAWS
        if w not in LACKS[s]
    ],
)
def test_law(
    name: str, law: str, layout: str, on_each_processor: Processor, random: Random, folder: Callable[[], Path]
) -> None:
    check(law, Case(SYSTEMS[name], layout, on_each_processor, random, folder))


@pytest.mark.parametrize(("name", "law"), [(s, w) for s in SYSTEMS for w in LACKS[s]])
def test_what_a_system_is_said_to_lack_it_lacks(
    name: str, law: str, random: Random, folder: Callable[[], Path]
) -> None:
    with pytest.raises((TypeError, AttributeError)):
        check(law, Case(SYSTEMS[name], "eager", CPU, random, folder))


@pytest.mark.parametrize("law", [*LAWS, *SUBJECTS])
def test_law_of_drawn_systems(law: str, on_each_processor: Processor, folder: Callable[[], Path]) -> None:
    for seed in range(SEEDS):
        check(law, drawn_case(law, f"{SESSION_SEED}/{law}/{seed}", on_each_processor, folder))


def drawn_case(law: str, seed: str, processor: Processor, folder: Callable[[], Path]) -> Case:
    """A case of a system that has the law."""
    random = Random(seed)
    kinds = SUBJECTS[law][0] if law in SUBJECTS else KINDS
    while law in (system := drawn_system(random, kinds)).lacks:
        pass
    return Case(system, "drawn", processor, random, folder, is_lazy=random.random() < 0.3)


@pytest.mark.parametrize("law", [w for w in (*LAWS, *SUBJECTS) if w not in OF_ANY_NUMBERS])
def test_wrong_numbers_break_every_law(law: str, folder: Callable[[], Path]) -> None:
    """Within some cases: in one a law may look at few numbers."""
    for seed in range(40):
        case = drawn_case(law, f"{SESSION_SEED}/{law}/wrong {seed}", CPU, folder)
        case.system = replace(case.system, array=off_by_one(case.system))
        try:
            check(law, case)
        except (Exception, pytest.fail.Exception):  # also an error of the call
            return
    pytest.fail("wrong numbers are right")


def off_by_one(system: laws.System) -> Callable[..., Any]:
    """Make arrays of other numbers than those that are asked for."""

    def array(a: np.ndarray, place: Callable[[Any], Any]) -> Any:
        wrong = a - np.sign(a)
        return system.array(wrong[..., ::-1] if wrong.ndim else wrong, place)

    return array


def tokens() -> list[str]:
    """Tokens of the same numbers in every system, and of a lazy result of them."""
    numbers = objects([0, 1, 2, 0, 1])
    arrays = [system.array(numbers, lambda words: words) for system in SYSTEMS.values()]
    lazy = [x.rechunk() for x in arrays]
    return [tokenize(x) for x in (*arrays, *lazy, *(x + x[::-1] for x in lazy))]


def test_tokens_tell_systems_apart_and_are_the_same_in_every_process() -> None:
    found = tokens()
    assert len(set(found)) == len(found)
    code = f"import sys; sys.path[:0] = {sys.path!r}; import test_laws; print(*test_laws.tokens())"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split() == found
