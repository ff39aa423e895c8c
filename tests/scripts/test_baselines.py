"""The 2021 paper's MAX in scripts/papers: what benchmarks compare with must be right, too."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_paper import fixed_point_steps
from benchmarking import moduli_set
from conftest import Processor
from paper_baselines import (
    ACCURACY,
    EVALUATION,
    CpuBaselines,
    GpuBaselines,
    most_refinement_steps,
    refinement_factor,
)

from rnsdask import ModuliSet
from rnsdask.rns import evaluation
from rnsdask.rns.system import RNS

SETS = {32: moduli_set("32")}


@pytest.fixture(scope="session")
def baselines(on_each_processor: Processor, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Any]:
    """Compiled for each set, once."""
    if on_each_processor.name == "cuda":
        return {n: GpuBaselines(moduli) for n, moduli in SETS.items()}
    folder: Path = tmp_path_factory.mktemp("baselines")
    return {n: CpuBaselines(moduli, folder) for n, moduli in SETS.items()}


def residues_of(values: list[int], moduli: ModuliSet) -> np.ndarray:
    return np.array([[v % m for v in values] for m in moduli], dtype=np.uint32)


def edge_values(moduli: ModuliSet) -> list[int]:
    M = moduli.product
    near = [0, 1, 2, M - 1, M - 2, M // 2, M // 2 + 1, M // 3, M // 3 + 1]
    return near + [2**k for k in range(0, moduli.bits - 1, 5)]


def exact(bound: np.void) -> Fraction:
    fraction = Fraction(float(bound["fraction"]))
    return fraction * Fraction(2) ** int(bound["exponent"]) if fraction else fraction


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("n", SETS)
def test_evaluations_contain_the_fraction(
    n: int,
    interleaved: bool,
    baselines: dict[int, Any],
    on_each_processor: Processor,
    rng: np.random.Generator,
) -> None:
    moduli = SETS[n]
    random = [int.from_bytes(rng.bytes(moduli.bits // 8), "little") for _ in range(100)]
    values = [v % moduli.product for v in edge_values(moduli) + random]
    residues = residues_of(values, moduli)
    array = on_each_processor.xp.asarray(residues if interleaved else np.ascontiguousarray(residues.T))
    found = baselines[n].evaluate(array, interleaved)
    found = on_each_processor.to_numpy(found).view(EVALUATION)
    assert found["index"].tolist() == list(range(len(values)))
    for value, evaluated in zip(values, found, strict=True):
        low, upp = exact(evaluated["low"]), exact(evaluated["upp"])
        assert low <= Fraction(value, moduli.product) <= upp
        assert upp - low <= ACCURACY * Fraction(value, moduli.product)


def cases(moduli: ModuliSet) -> dict[str, list[int]]:
    M, edges = moduli.product, edge_values(moduli)
    return {
        "one number": [M - 1],
        "edges": edges,
        "edges, backwards": edges[::-1],
        "equal": [M // 2] * 700,
        "zeros": [0] * 300,
        "small": [k * k % 1000 for k in range(700)],
        "near the top": [M - 1 - k * 7 % 600 for k in range(600)],
        "near each other": [M // 3 + k * 7 % 600 for k in range(600)],
    }


@pytest.mark.parametrize("n", SETS)
@pytest.mark.parametrize("case", cases(SETS[32]))
def test_maxima(n: int, case: str, baselines: dict[int, Any], on_each_processor: Processor) -> None:
    values = cases(SETS[n])[case]
    residues = residues_of(values, SETS[n])
    interleaved = on_each_processor.xp.asarray(residues)
    numbers = on_each_processor.xp.asarray(np.ascontiguousarray(residues.T))
    paper = baselines[n]
    for found in (
        paper.proposed(numbers),
        paper.proposed(interleaved, interleaved=True),
        paper.naive(numbers),
        paper.mixed_radix(numbers),
    ):
        assert values[found] == max(values)


@pytest.mark.parametrize("n", SETS)
def test_refinement_steps(n: int, baselines: dict[int, Any], on_each_processor: Processor) -> None:
    moduli = SETS[n]
    residues = residues_of([2**k for k in range(moduli.bits - 1)], moduli)
    array = on_each_processor.xp.asarray(residues)
    original, improved = (
        on_each_processor.to_numpy(baselines[n].refinement_steps(array, improved))
        for improved in (False, True)
    )
    assert original[0] == most_refinement_steps(moduli)  # Theorem 1, for X = 1
    assert (original <= original[0]).all()
    assert (improved <= original).all()
    # A step gains about the bits of a double, less those that rounding costs.
    own = evaluation.refinement_steps(residues, RNS(moduli), ACCURACY)
    assert (own <= improved.astype(np.int64) + 2).all()


def test_fixed_point_needs_fewer_steps() -> None:
    moduli = moduli_set("256")
    one = np.ones((256, 1), dtype=np.uint32)
    assert most_refinement_steps(moduli) == 292
    assert refinement_factor(256) == 14
    assert fixed_point_steps(one, moduli, 96) <= 58
    assert fixed_point_steps(one, moduli, 128) <= 40


@pytest.mark.parametrize("moduli", [[3, 5, 7], [5, 3], [7]])
def test_sets_that_the_baselines_refuse(moduli: list[int], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ascending"):
        CpuBaselines(ModuliSet(moduli), tmp_path)
