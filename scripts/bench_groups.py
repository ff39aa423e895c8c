"""Times sums and maxima of groups beside pandas with Python's ints, and beside polars and DuckDB, in turn.

    python scripts/bench_groups.py cpu
    python scripts/bench_groups.py cpu --numbers 10000000 --groups 100000 --cases accounts

In the case "text" numbers have 100 bits, in 10 chunks, and labels are text in a column of pandas. In the case
"accounts" numbers are int64, in chunks of 2^20, labels are integers, and sums may be beyond 64 bits: polars
adds Int128, and DuckDB HUGEINT, where these are installed. Labels and numbers are in memory, and looking at
labels is part of each time. The results are compared. With --json FILE writes the rows.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from benchmarking import argument_parser, print_rows, time_in_turn, wall_seconds, write_results
from dask.system import CPU_COUNT

import rnsdask as rd

RUNS = {
    "cpu": ("cpu",),
    "gpu": (),
    "tiny": ("cpu --numbers 2000 --groups 50 --repeat 1",),
    "tiny-gpu": (),
}
CASES = {"text": ("sum", "max"), "accounts": ("sum",)}
"""Reductions of each case."""

_CHUNKS = 10
_ACCOUNT_CHUNK = 2**20


def text_case(numbers: int, groups: int, func: str) -> dict[str, Callable[[], dict[Any, int]]]:
    """Return calls that give the result of each group of text."""
    import pandas

    rng = np.random.default_rng(1)
    high, low = rng.integers(0, 2**60, numbers).tolist(), rng.integers(0, 2**40, numbers).tolist()
    ints = [(a << 40) | b for a, b in zip(high, low, strict=True)]
    labels = pandas.Series([f"account {i:07}" for i in rng.integers(0, groups, numbers).tolist()])
    x, column = rd.from_ints(ints, chunks=-(-numbers // _CHUNKS)), pandas.Series(ints, dtype=object)
    return {
        "rnsdask": partial(by_rnsdask, x, labels, func),
        "pandas": lambda: getattr(column.groupby(labels), func)(),
    }


def accounts_case(numbers: int, groups: int, func: str) -> dict[str, Callable[[], Any]]:
    """Return calls that give the sum of each account."""
    rng = np.random.default_rng(1)
    values, accounts = rng.integers(-(2**62), 2**63 - 1, numbers), rng.integers(0, groups, numbers)
    x = rd.from_ints(values, chunks=_ACCOUNT_CHUNK).persist()
    calls: dict[str, Callable[[], Any]] = {"rnsdask": partial(by_rnsdask, x, accounts, func)}
    if find_spec("polars"):
        import polars

        frame = polars.DataFrame({"account": accounts, "value": values})
        wide = polars.col("value").cast(polars.Int128).sum()
        calls["polars"] = lambda: frame.group_by("account").agg(wide)
    if find_spec("duckdb"):
        import duckdb

        base = duckdb.connect()
        base.register("given", {"account": accounts, "value": values})
        base.execute("CREATE TABLE balances AS SELECT * FROM given")
        query = "SELECT account, sum(value) FROM balances GROUP BY account"
        calls["duckdb"] = lambda: base.sql(query).arrow()
    return calls


def by_rnsdask(x: Any, labels: Any, func: str) -> tuple[Any, Any]:
    """Reduce groups by this package."""
    groups, result = rd.group_reduce(x, labels, func)
    return groups, result.compute()


def as_dict(found: Any) -> dict[Any, int]:
    """Return the results of any library by label, as Python ints."""
    if isinstance(found, tuple):
        return dict(zip(found[0].tolist(), found[1].to_ints().tolist(), strict=True))
    if hasattr(found, "items") and hasattr(found, "index"):  # of pandas
        return {label: int(value) for label, value in found.items()}
    if hasattr(found, "read_all"):  # a reader of Arrow
        found = found.read_all()
    labels, values = (
        found.to_dict(as_series=False) if hasattr(found, "rows") else found.to_pydict()
    ).values()
    return {label: int(value) for label, value in zip(labels, values, strict=True)}


_MAKE = {"text": text_case, "accounts": accounts_case}


def bench(cases: list[str], numbers: int, groups: int, repeat: int) -> list[dict[str, Any]]:
    """A row for each case, reduction and library."""
    rows = []
    for case in cases:
        for func in CASES[case]:
            calls = _MAKE[case](numbers, groups, func)
            results = {name: as_dict(call()) for name, call in calls.items()}
            if any(found != results["rnsdask"] for found in results.values()):
                raise SystemExit(f"error: {case}, {func}: results differ")
            timed = time_in_turn({name: partial(wall_seconds, call) for name, call in calls.items()}, repeat)
            for name, timing in timed.items():
                row = {"labels": case, "reduction": func, "numbers": numbers, "groups": len(results[name])}
                row |= {"threads": CPU_COUNT, "library": name, **timing.row()}
                row["ratio"] = min(timing.seconds) / min(timed["rnsdask"].seconds)
                rows.append(row)
                print_rows([row])
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("kind", choices=("cpu",))
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--numbers", type=int, default=10**6)
    parser.add_argument("--groups", type=int, default=10**5)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    rows = bench(options.cases.split(","), options.numbers, options.groups, options.repeat)
    write_results(options.json, False, rows)


if __name__ == "__main__":
    main()
