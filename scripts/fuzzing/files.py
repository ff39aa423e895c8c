"""Files: columns of Parquet, and what the commands import and export."""

import tempfile
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from click.testing import CliRunner

import rnsdask as rd
from fuzzing.case import Case
from fuzzing.checking import must_fail, operation, require, same_array, same_numbers
from rnsdask.cli import main

RNS = ("unsigned", "signed")

ONE_COMMAND = threading.Lock()


@operation("read_parquet")
def check_parquet(case: Case, rng: Random) -> int:
    """Text, of rows in groups and of one file or several; and a number that is out of range."""
    if find_spec("pyarrow") is None:
        return 0
    x = case.fresh(rng, (rng.choice((1, 5, 100, 300)),))
    values = x.values.tolist()
    write: Callable[[int], str] = rng.choice((hex, lambda v: str(v) if abs(v) < 10**4000 else hex(v)))
    end = rng.choice((case.limits.lowest - 1, case.limits.highest + 1))
    with tempfile.TemporaryDirectory() as folder:
        cut, group = rng.randint(0, len(values)), rng.choice((1, 7, 1000))
        if len(values) > 20 * group:
            group = len(values)
        paths = []
        for i, part in enumerate((values[:cut], values[cut:], [*values, end])):
            paths.append(Path(folder) / f"{i}.parquet")
            write_texts(paths[-1], list(map(write, part)), group)
        system = x.array.system.with_bound(None) if case.system != "interval" else x.array.system
        got = rd.read_parquet(paths[:2], "n", system)
        must_fail(lambda: rd.read_parquet(paths[2], "n", system), rd.InputError, "a number out of range")
        return same_numbers(case, got, x.values)


def write_texts(path: Path, texts: list[str], group: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    column = pa.array(texts, pa.string())
    pq.write_table(pa.table({"n": column, "other": column}), path, row_group_size=group)


def run(*arguments: Any) -> None:
    """Run a command that must succeed, one at a time: the runner takes the process's output."""
    with ONE_COMMAND:
        result = CliRunner().invoke(main, [str(one) for one in arguments], prog_name="rnsdask")
    require(result.exit_code == 0, f"{arguments[0]}: {result.output[:500]}")


@operation("commands: import and export", RNS)
def check_import(case: Case, rng: Random) -> int:
    """A matrix as text or of Matrix Market to a store, and its numbers to a file again."""
    shape = rng.randint(1, 6), rng.randint(1, 6)
    x = case.fresh(rng, shape)
    if case.moduli.bits > 4000:  # of which Python writes no decimals
        return 0
    with tempfile.TemporaryDirectory() as folder:
        source, store, target, moduli = (Path(folder) / name for name in ("in", "x.zarr", "out", "moduli"))
        moduli.write_text("".join(f"{m}\n" for m in case.moduli.moduli))
        options = ["--signed"] if case.signed else []
        form = rng.choice(("text", "array", "coordinate"))
        case.note("form", form)
        if form == "text":
            source.write_text("".join(f"{rng.choice((str, hex))(v)}\n" for v in x.values.reshape(-1)))
            options += ["--shape", f"{shape[0]},{shape[1]}"]
        else:
            source.write_text(matrix_market(rng, x.values, form))
        run("import", source, store, "--moduli", moduli, "--chunk", rng.choice((1, 2, 100)), *options)
        count = same_numbers(case, rd.open_zarr(store), x.values)
        run("export", store, target, *rng.choice(((), ("--hex",))))
        lines = [int(line, 0) for line in target.read_text().split()]
        return count + same_array(np.array(lines, dtype=object).reshape(shape), x.values, "exported")


def matrix_market(rng: Random, values: np.ndarray, form: str) -> str:
    """A file of a matrix, column by column, or of what is not 0 in any order."""
    rows, columns = values.shape
    banner = f"%%MatrixMarket matrix {form} integer general\n% a comment\n"
    if form == "array":
        return banner + f"{rows} {columns}\n" + "".join(f"{v}\n" for v in values.T.reshape(-1))
    places = [(i, j) for i in range(rows) for j in range(columns) if values[i, j] or rng.random() < 0.1]
    rng.shuffle(places)
    entries = "".join(f"{i + 1} {j + 1} {values[i, j]}\n" for i, j in places)
    return banner + f"{rows} {columns} {len(places)}\n" + entries
