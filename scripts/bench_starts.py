"""Times commands that compute little, each in a process of its own: what a command costs before it computes.

    python scripts/bench_starts.py                    twenty commands on a small store
    python scripts/bench_starts.py info max           some, by their names
    python scripts/bench_starts.py --before FOLDER    in turn with another rnsdask, which is in FOLDER
    python scripts/bench_starts.py --tiny             only see that it works

All run in turn with and without xarray, pandas and SciPy, which Dask imports where they are installed: a
`sitecustomize` in a folder of the benchmark hides them. Prints Markdown: the least of the wall-clock seconds
and of the processor's seconds of all threads, which other load disturbs least. On threads, without a
cluster; files are in the page cache.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import os
import resource
import subprocess
import tempfile
import time
from typing import Any

from benchmarking import argument_parser, markdown, tables_of, write_results

import rnsdask as rd

COMMANDS = (
    *("--version", "--help", "max --help"),
    *("info x", "head x", "verify x"),
    *("max x", "min x", "sum x", "gcd x", "bound x", "stats x"),
    *("hist x", "prod x --overflow wrap", "topk 3 x", "compare x x", "eval a*a+1 a=x --max"),
    *(
        "slice x -o y :100 --overwrite",
        "export x y.txt --overwrite",
        "random y --count 9 --bits 64 --overwrite",
    ),
)
"""Twenty command lines; x is the store that all read."""

HIDDEN = ("xarray", "pandas", "scipy")

NUMBERS, CHUNK, BITS = 1000, 250, 128

RUNS = {"cpu": ("--repeat 3",), "gpu": (), "tiny": ("--tiny",), "tiny-gpu": ()}


def seconds(command: str, folder: str, *paths: str | None) -> tuple[float, float]:
    """Wall-clock and processor seconds of a command in a folder, with `paths` before all others."""
    program = [sys.executable, "-P", "-c", "from rnsdask.cli import main; main()", *command.split()]
    found = os.pathsep.join(filter(None, [*paths, os.environ.get("PYTHONPATH")]))
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        program, cwd=folder, env={**os.environ, "PYTHONPATH": found}, capture_output=True, text=True
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"rnsdask {command}: {done.stderr}")
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def bench(commands: tuple[str, ...], repeat: int, before: str | None, folder: str) -> list[dict[str, Any]]:
    """A row for each command, with and without the packages that are hidden."""
    hiding = Path(folder, "hiding")
    hiding.mkdir()
    hiding.joinpath("sitecustomize.py").write_text(
        f"import sys\nsys.modules.update(dict.fromkeys({HIDDEN}))\n", encoding="utf-8"
    )
    rd.from_ints(range(2**BITS - NUMBERS, 2**BITS), chunks=CHUNK).to_zarr(Path(folder, "x"))
    tables = {"installed": None, "hidden": str(hiding)}
    versions = {"": None, **({"before: ": str(Path(before).resolve())} if before else {})}
    runs = [(table, version, command) for command in commands for table in tables for version in versions]
    taken: dict[tuple[str, str, str], list[tuple[float, float]]] = {run: [] for run in runs}
    for _ in range(1 + repeat):  # in turn, so that other load meets all alike
        for table, version, command in runs:
            found = seconds(command, folder, tables[table], versions[version])
            taken[table, version, command].append(found)
    rows = []
    for table in tables:
        for command in commands:
            row = {"table": f"{', '.join(HIDDEN)} {table}", "command": command.partition(" --o")[0]}
            for version in versions:
                least = map(min, zip(*taken[table, version, command][1:], strict=True))
                wall, processor = (round(s, 2) for s in least)
                row |= {f"{version}s": wall, f"{version}processor s": processor}
            rows.append(row)
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="commands to time; all without names")
    parser.add_argument(
        "--repeat", type=int, default=7, metavar="N", help="timed runs of each, after one more"
    )
    parser.add_argument("--before", metavar="FOLDER", help="folder that holds another version of rnsdask")
    parser.add_argument("--tiny", action="store_true", help="two commands, once each")
    options = parser.parse_args()
    commands, repeat = (COMMANDS[5:7], 1) if options.tiny else (COMMANDS, options.repeat)
    if options.names:
        commands = tuple(command for command in commands if command.split()[0] in options.names)
    with tempfile.TemporaryDirectory() as folder:
        rows = bench(commands, repeat, options.before, folder)
    for name, table in tables_of(rows).items():
        print(f"\n**{name}**\n", *markdown(table), sep="\n")
    write_results(options.json, False, rows)


if __name__ == "__main__":
    main()
