"""Laws of files: columns of Parquet, and what the commands import and export."""

import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from click.testing import CliRunner

import rnsdask as rd
from laws.case import RESIDUES, RNS, Case, law_of, must_fail
from rnsdask.cli import main

ONE_COMMAND = threading.Lock()


@law_of(*RESIDUES)
def columns_of_parquet_are_read(case: Case) -> None:
    """Text, of rows in groups and of one file or several; and a number that is out of range."""
    if find_spec("pyarrow") is None:
        return
    random, system, folder = case.random, case.system.value, case.folder()
    x = case.fresh((random.choice((1, 5, 100, 300)),))
    values = x.values.tolist()
    write: Callable[[int], str] = random.choice((hex, lambda v: str(v) if abs(v) < 10**4000 else hex(v)))
    end = random.choice((case.limits.lowest - 1, case.limits.highest + 1))
    cut, group = random.randint(0, len(values)), random.choice((1, 7, 1000))
    if len(values) > 20 * group:
        group = len(values)
    paths = []
    for i, part in enumerate((values[:cut], values[cut:], [*values, end])):
        paths.append(folder / f"{i}.parquet")
        write_texts(paths[-1], list(map(write, part)), group)
    case.claim_array(rd.read_parquet(paths[:2], "n", system), x.values, "read_parquet")
    must_fail(lambda: rd.read_parquet(paths[2], "n", system), rd.InputError, "a number out of range")
    case.settle()


def write_texts(path: Path, texts: list[str], group: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    column = pa.array(texts, pa.string())
    pq.write_table(pa.table({"n": column, "other": column}), path, row_group_size=group)


def run(*arguments: Any) -> None:
    """Run a command that must succeed, one at a time: the runner takes the process's output."""
    with ONE_COMMAND:
        result = CliRunner().invoke(main, [str(one) for one in arguments], prog_name="rnsdask")
    assert result.exit_code == 0, f"{arguments[0]}: {result.output[:500]}"


@law_of(*RNS)
def imported_numbers_are_exported(case: Case) -> None:
    """A matrix as text or of Matrix Market to a store, and its numbers to a file again."""
    random, moduli = case.random, case.system.value.moduli
    shape = random.randint(1, 6), random.randint(1, 6)
    x = case.fresh(shape)
    if moduli.bits > 4000:  # of which Python writes no decimals
        return
    source, store, target, sizes = (case.folder() / name for name in ("in", "x.zarr", "out", "moduli"))
    sizes.write_text("".join(f"{m}\n" for m in moduli))
    options = ["--signed"] if case.system.signed else []
    form = random.choice(("text", "array", "coordinate"))
    case.note("form", form)
    if form == "text":
        source.write_text("".join(f"{random.choice((str, hex))(v)}\n" for v in x.values.ravel()))
        options += ["--shape", f"{shape[0]},{shape[1]}"]
    else:
        source.write_text(matrix_market(random, x.values, form))
    run("import", source, store, "--moduli", sizes, "--chunk", random.choice((1, 2, 100)), *options)
    case.claim_array(rd.open_zarr(store), x.values, "imported")
    run("export", store, target, *random.choice(((), ("--hex",))))
    lines = [int(line, 0) for line in target.read_text().split()]
    case.claim(np.array(lines, dtype=object).reshape(shape), x.values, "exported")


def matrix_market(random: Random, values: np.ndarray, form: str) -> str:
    """A file of a matrix, column by column, or of what is not 0 in any order."""
    rows, columns = values.shape
    banner = f"%%MatrixMarket matrix {form} integer general\n% a comment\n"
    if form == "array":
        return banner + f"{rows} {columns}\n" + "".join(f"{v}\n" for v in values.T.reshape(-1))
    places = [(i, j) for i in range(rows) for j in range(columns) if values[i, j] or random.random() < 0.1]
    random.shuffle(places)
    entries = "".join(f"{i + 1} {j + 1} {values[i, j]}\n" for i, j in places)
    return banner + f"{rows} {columns} {len(places)}\n" + entries
