"""Each function in the tables of number systems takes what its row declares."""

# ruff: noqa: ARG005

import ast
import inspect
import math
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rnsdask as rd
from rnsdask.core import rows
from rnsdask.core.reductions import REDUCTIONS, Reduction, ReductionResult
from rnsdask.core.rows import ROWS, Row
from rnsdask.core.table import OF_SYSTEMS, Entry, table, table_at
from rnsdask.lazy.chunk_reductions import reduce_words
from rnsdask.lazy.tree import tree_reduce

TABLES = {
    name: table_at(f"rnsdask.{path}")
    for name, path in {
        "any system": "core.generic:INTEGERS",
        "residues": "tables.residues:TABLE",
        "intervals": "tables.intervals:TABLE",
        "limbs": "tables.limbs:TABLE",
        "prime fields": "tables.fields:PRIME_FIELDS",
        "Fermat fields": "tables.fields:FERMAT_FIELDS",
    }.items()
}
MODULI = rd.ModuliSet.for_bits(64)
KINDS = inspect.Parameter
ENTRIES = {
    f"{name}-{entry.row.name}": entry
    for name, found in TABLES.items()
    for entry in found.values()
    if isinstance(entry, Entry)
}


def difference(row: Row[..., Any], function: Any) -> str | None:
    """Name what a function takes otherwise than a row declares, or None."""
    given = set(function.keywords) if isinstance(function, partial) else set()
    taken = {p.name: p for p in inspect.signature(function).parameters.values() if p.name not in given}
    if any(parameter.kind is KINDS.VAR_KEYWORD for parameter in taken.values()):
        return "any option"
    declared, of_system = row.signature.parameters.values(), OF_SYSTEMS
    if (
        row.kind == "arrays"
    ):  # whose systems they know, and which take an option that is not the row's default
        of_system = ()
        others = {
            name for name, p in taken.items() if name in row.optional and p.default != row.defaults[name]
        }
        if others:
            return f"other defaults: {others}"
    blocks = [p.name for p in declared if p.kind is KINDS.POSITIONAL_OR_KEYWORD]
    options = {p.name: p for p in declared if p.kind is KINDS.KEYWORD_ONLY}
    several = [p for p in taken.values() if p.kind is KINDS.VAR_POSITIONAL]
    if several:
        rest = set(taken) - {several[0].name}
    else:
        names = list(taken)
        if len(names) < len(blocks) or set(names[: len(blocks)]) & {*options, *of_system} - set(blocks):
            return f"other blocks: {names}"
        rest = set(names[len(blocks) :])
    unknown = {name for name in rest - {*options, *of_system} if taken[name].default is KINDS.empty}
    missing = {name for name, option in options.items() if option.default is KINDS.empty} - rest
    return f"also {unknown}, not {missing}" if unknown or missing else None


@pytest.mark.parametrize("name", ENTRIES)
def test_functions_take_what_their_rows_declare(name: str) -> None:
    entry = ENTRIES[name]
    assert difference(entry.row, entry.function) is None


@pytest.mark.parametrize(
    ("row", "function"),
    [
        (rows.isqrt, lambda x, **how: x),
        (rows.isqrt, lambda x, y, system: x),
        (rows.compare, lambda a, system: a),
        (rows.power, lambda x, system, locate: x),
        (rows.floor_divide_by, lambda divisor, x, parts, system: x),
        (rows.det, lambda x, system: x),
        (rows.det, lambda x, variables: x),
        (rows.det, lambda x, *, moduli=2: x),
        (rows.solve, lambda a: a),
    ],
)
def test_functions_that_take_something_else_are_found(row: Row[..., Any], function: Any) -> None:
    assert difference(row, function) is not None


def test_every_row_is_in_a_table() -> None:
    used = {entry.row.name for found in TABLES.values() for entry in found.values()}
    assert used == set(ROWS)


def test_a_row_stands_once() -> None:
    with pytest.raises(ValueError, match=r"rows stand twice: \['isqrt'\]"):
        table(Entry(rows.isqrt, len), Entry(rows.gcd, len), Entry(rows.isqrt, abs))
    with pytest.raises(ValueError, match="two rows are named isqrt"):
        rows.row("numbers")(rows.isqrt.declared)


def test_rows_stay_themselves_on_their_way_to_workers() -> None:
    assert all(pickle.loads(pickle.dumps(row)) is row for row in ROWS.values())


def test_other_names_are_numpys() -> None:
    names = [name for row in ROWS.values() for name in row.numpy]
    assert len(names) == len(set(names)) > 14
    for name, _, method in (name.partition(".") for name in names):
        found = getattr(np, name, None) or getattr(np.linalg, name)
        assert callable(getattr(found, method) if method else found)


@pytest.mark.parametrize(
    "system",
    [rd.RNS(rd.ModuliSet.for_bits(64)), rd.IntervalRNS(rd.ModuliSet.for_bits(64)), rd.Positional(64)],
)
def test_a_new_reduction_is_data(system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    joined = REDUCTIONS["gcd"].combine

    def combine(a: ReductionResult, b: ReductionResult) -> ReductionResult:
        return replace(joined(a, b), value=math.lcm(a.value, b.value))

    multiple = Reduction("multiple", lambda values: math.lcm(*values), combine, identity=1)
    monkeypatch.setitem(REDUCTIONS, "multiple", multiple)
    x = rd.from_ints([4, 6, 10, 15, 1, 12, 7], system, chunks=None)
    assert reduce_words("multiple", x.words, system).value == 420
    lazy = tree_reduce(x.rechunk(3).words, system, "multiple", field="value")
    assert int(lazy.compute()) == 420


def test_no_local_name_hides_the_rows() -> None:
    """Many functions call a number of words `rows`, of a type that no checker knows."""
    for path in Path(rd.__file__).parent.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                nodes = list(ast.walk(function))
                names = [node for node in nodes if isinstance(node, ast.Name) and node.id == "rows"]
                hidden = any(isinstance(name.ctx, ast.Store) for name in names)
                hidden |= any(isinstance(node, ast.arg) and node.arg == "rows" for node in nodes)
                used = {n.attr for n in nodes if isinstance(n, ast.Attribute) and n.value in names}
                assert not hidden or not used & set(ROWS), f"{path}:{function.lineno}"


def test_options_that_a_function_does_not_take_are_left_out() -> None:
    entry = Entry(rows.cumsum, lambda system, axis: (system, axis))
    assert entry.call(system="S", axis=2, line=True) == ("S", 2)
    assert (entry.overflows, entry.located, entry.ranged) == (False, False, False)
