"""Arithmetic modulo each m_i, as the element-wise kernels of both processors do it, against Python ints."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from conftest import Processor
from hypothesis import given
from hypothesis import strategies as st
from strategies import ALL_SETS, MODULI_SETS, moduli_sets

from rnsdask.backend import kernels_of
from rnsdask.backend.cuda import sources as cuda_sources
from rnsdask.constants import modulus_table
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.operations import OPERATIONS

# Each alone as a set: the ends of the range, powers of two and their neighbours, primes, composites.
MODULI = sorted(
    {m for k in range(1, 33) for m in (2**k - 1, 2**k, 2**k + 1) if 2 <= m <= 2**32}
    | {5, 6, 10, 12, 65537, 65725, 10**9 + 7, 3 * 2**30, 2**32 - 5, 2**32 - 6, 3**20, 0xAAAAAAAB}
)


ARITIES = [(name, operation.arity) for name, operation in OPERATIONS.items()]


def test_both_tables_hold_the_same_operations() -> None:
    entries = [entry.split(", ")[:2] for entry in cuda_sources.listed("RNS_OPERATIONS")]
    assert [(name, int(operands)) for name, operands in entries] == ARITIES
    sums = {entry.partition(",")[0] for entry in cuda_sources.listed("RNS_SUMS")}
    assert sums == {name for name, operation in OPERATIONS.items() if operation.is_sum}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_expression_is_the_sum_of_its_terms(name: str) -> None:
    operation = OPERATIONS[name]
    assert sorted(k for _, factors in operation.terms for k in factors) == list(range(operation.arity))
    for values in itertools.product((-3, 0, 1, 7), repeat=operation.arity):
        terms = (sign * math.prod(values[k] for k in factors) for sign, factors in operation.terms)
        assert operation.evaluate(*values) == sum(terms)


def run(processor: Processor, name: str, operands: list[np.ndarray], moduli: ModuliSet, count: int) -> Any:
    out = processor.xp.empty((len(moduli), count), dtype=np.uint32)
    moved = [processor.xp.asarray(x) for x in operands]
    kernels_of(out).apply(name, moved, moduli, out)
    return processor.to_numpy(out)


def check(processor: Processor, name: str, operands: list[np.ndarray], moduli: ModuliSet) -> None:
    count = max(x.shape[1] for x in operands)
    result = run(processor, name, operands, moduli, count)
    sizes = np.array(list(moduli), dtype=object)[:, None]
    expected = OPERATIONS[name].evaluate(*(x.astype(object) for x in operands)) % sizes
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
    arity = OPERATIONS[name].arity
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
    for name, arity in ARITIES:
        if m**arity <= 10_000:
            tuples = list(itertools.product(range(m), repeat=arity))
            check(on_each_processor, name, columns_of(tuples), ModuliSet([m]))


@ALL_SETS
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_set(
    on_each_processor: Processor, name: str, moduli: ModuliSet, rng: np.random.Generator
) -> None:
    operands = [random_residues(rng, moduli, 133) for _ in range(OPERATIONS[name].arity)]
    check(on_each_processor, name, operands, moduli)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 1023, 1024, 1025, 5000])
def test_lengths_and_single_numbers(
    on_each_processor: Processor, count: int, rng: np.random.Generator
) -> None:
    moduli = MODULI_SETS["unsorted"]
    for name, arity in ARITIES:
        for single in itertools.product((False, True), repeat=arity):
            if not all(single):
                operands = [random_residues(rng, moduli, 1 if one else count) for one in single]
                check(on_each_processor, name, operands, moduli)


def test_rows_apart(on_each_processor: Processor, rng: np.random.Generator) -> None:
    moduli = MODULI_SETS["top"]
    whole = [on_each_processor.xp.asarray(random_residues(rng, moduli, 300)) for _ in range(4)]
    for part in (slice(1, 200), slice(4, 300), slice(0, 298)):
        for name, arity in ARITIES:
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

    check(on_each_processor, name, [residues() for _ in range(OPERATIONS[name].arity)], moduli)


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
