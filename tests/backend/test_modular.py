"""Arithmetic modulo each m_i, as the element-wise kernels of both processors do it, against Python ints."""

import itertools
from typing import Any

import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from strategies import MODULI_SETS, moduli_sets

from rnsdask.backend import kernels_of
from rnsdask.constants import modulus_table
from rnsdask.core.moduli import ModuliSet

# Each alone as a set: the ends of the range, powers of two and their neighbours, primes, composites.
MODULI = sorted(
    {m for k in range(1, 33) for m in (2**k - 1, 2**k, 2**k + 1) if 2 <= m <= 2**32}
    | {5, 6, 10, 12, 65537, 65725, 10**9 + 7, 3 * 2**30, 2**32 - 5, 2**32 - 6, 3**20, 0xAAAAAAAB}
)

OPERATIONS = {
    "add": (2, lambda a, b: a + b),
    "subtract": (2, lambda a, b: a - b),
    "multiply": (2, lambda a, b: a * b),
    "fma": (3, lambda a, b, c: a * b + c),
    "mulsub": (4, lambda a, b, c, d: a * b - c * d),
}


def run(processor: Processor, name: str, operands: list[np.ndarray], moduli: ModuliSet, count: int) -> Any:
    out = processor.xp.empty((len(moduli), count), dtype=np.uint32)
    moved = [processor.xp.asarray(x) for x in operands]
    getattr(kernels_of(out), name)(*moved, moduli, out)
    return processor.to_numpy(out)


def check(processor: Processor, name: str, operands: list[np.ndarray], moduli: ModuliSet) -> None:
    count = max(x.shape[1] for x in operands)
    result = run(processor, name, operands, moduli, count)
    sizes = np.array(list(moduli), dtype=object)[:, None]
    expected = OPERATIONS[name][1](*(x.astype(object) for x in operands)) % sizes
    assert (result == expected).all()


def columns_of(rows: Any) -> list[np.ndarray]:
    """One (1, N) operand of residues for each column."""
    return [np.ascontiguousarray(column)[None] for column in np.array(rows, dtype=np.uint32).T]


def edge_residues(m: int) -> list[int]:
    near = {k + d for k in (0, m // 3, m // 2, m, 2**16, 2**31) for d in (-2, -1, 0, 1, 2)}
    return sorted(r for r in near if 0 <= r < m)


def random_residues(rng: np.random.Generator, moduli: ModuliSet, count: int) -> np.ndarray:
    rows = [rng.integers(0, m, size=count, dtype=np.uint32 if m < 2**32 else np.uint64) for m in moduli]
    return np.array(rows, dtype=np.uint32)


@pytest.mark.parametrize("name", OPERATIONS)
def test_edges_of_every_modulus(on_each_processor: Processor, name: str, rng: np.random.Generator) -> None:
    arity = OPERATIONS[name][0]
    for m in MODULI:
        edges = edge_residues(m)
        pairs = list(itertools.product(edges, repeat=2))
        # The third and fourth operand are the same pairs in another order; then the ends meet each other.
        others = [pairs[k] for k in rng.permutation(len(pairs))]
        operands = [*columns_of(pairs), *columns_of(others)][:arity]
        check(on_each_processor, name, operands, ModuliSet([m]))
        extremes = list(itertools.product((0, m - 1), repeat=arity))
        check(on_each_processor, name, columns_of(extremes), ModuliSet([m]))


@pytest.mark.parametrize("m", [2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17])
def test_every_residue_of_small_moduli(on_each_processor: Processor, m: int) -> None:
    for name, (arity, _) in OPERATIONS.items():
        if m**arity <= 10_000:
            tuples = list(itertools.product(range(m), repeat=arity))
            check(on_each_processor, name, columns_of(tuples), ModuliSet([m]))


@pytest.mark.parametrize("moduli", MODULI_SETS.values(), ids=MODULI_SETS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_set(
    on_each_processor: Processor, name: str, moduli: ModuliSet, rng: np.random.Generator
) -> None:
    operands = [random_residues(rng, moduli, 133) for _ in range(OPERATIONS[name][0])]
    check(on_each_processor, name, operands, moduli)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 1023, 1024, 1025, 5000])
def test_lengths_and_single_numbers(
    on_each_processor: Processor, count: int, rng: np.random.Generator
) -> None:
    moduli = MODULI_SETS["unsorted"]
    for name, (arity, _) in OPERATIONS.items():
        for single in itertools.product((False, True), repeat=arity):
            if not all(single):
                operands = [random_residues(rng, moduli, 1 if one else count) for one in single]
                check(on_each_processor, name, operands, moduli)


def test_rows_apart(on_each_processor: Processor, rng: np.random.Generator) -> None:
    moduli = MODULI_SETS["top"]
    whole = [on_each_processor.xp.asarray(random_residues(rng, moduli, 300)) for _ in range(4)]
    for part in (slice(1, 200), slice(4, 300), slice(0, 298)):
        for name, (arity, _) in OPERATIONS.items():
            views = [x[:, part] for x in whole[:arity]]
            count = views[0].shape[1]
            apart = run(on_each_processor, name, views, moduli, count)
            copies = [x.copy() for x in views]
            assert (apart == run(on_each_processor, name, copies, moduli, count)).all()


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 10, 65537, 2**32, 2**63 + 12345, 2**64 - 1])
def test_power(on_each_processor: Processor, exponent: int, rng: np.random.Generator) -> None:
    for moduli in [ModuliSet([m]) for m in MODULI[::7]] + [MODULI_SETS["unsorted"], MODULI_SETS["top"]]:
        edges = np.array([[r % m for r in edge_residues(max(moduli))] for m in moduli], dtype=np.uint32)
        for x in (edges, random_residues(rng, moduli, 1030 if len(moduli) > 1 else 5)):
            a, out = on_each_processor.xp.asarray(x), on_each_processor.xp.empty(x.shape, dtype=np.uint32)
            kernels_of(a).power(a, exponent, moduli, out)
            expected = [[pow(v, exponent, m) for v in row] for row, m in zip(x.tolist(), moduli, strict=True)]
            assert on_each_processor.to_numpy(out).tolist() == expected


@given(st.data())
def test_any_set(on_each_processor: Processor, data: st.DataObject) -> None:
    moduli = data.draw(moduli_sets(max_size=6))
    name = data.draw(st.sampled_from(sorted(OPERATIONS)))
    count = data.draw(st.integers(1, 9))

    def residues() -> np.ndarray:
        rows = [data.draw(st.lists(st.integers(0, m - 1), min_size=count, max_size=count)) for m in moduli]
        return np.array(rows, dtype=np.uint32)

    check(on_each_processor, name, [residues() for _ in range(OPERATIONS[name][0])], moduli)


def test_modulus_table() -> None:
    for m in MODULI:
        last, divisor, reciprocal, shift = modulus_table(ModuliSet([m]))[0].tolist()
        assert last == m - 1
        if m < 2**32:
            assert divisor == m << shift
            assert 2**31 <= divisor < 2**32
            assert reciprocal == (2**64 - 1) // divisor - 2**32
        else:
            assert (divisor, reciprocal, shift) == (0, 0, 0)
