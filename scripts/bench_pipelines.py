"""Times power series beside python-flint's, and the pipelines that are made of them.

    python scripts/bench_pipelines.py            one over Euler's product, up to 2**20 coefficients
    python scripts/bench_pipelines.py --gpu
    python scripts/bench_pipelines.py --tiny     only see that it works

"flint" is how many times as long python-flint takes for the same modulo one prime of 31 bits, in the same
run. A pipeline's time holds the start of its tasks and the writing of its stores; of four, the start of
Python and the check too. With --json FILE writes the rows.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pipelines"))
sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import contextlib
import io
import os
import runpy
import subprocess
import tempfile
import time
from functools import partial
from importlib.util import find_spec
from typing import Any

import flint
import numpy as np
from benchmarking import (
    ROOT,
    argument_parser,
    print_rows,
    time_in_turn,
    waited_seconds,
    wall_seconds,
    write_results,
)

import rnsdask as rd

PIPELINES = {"partition_numbers": "partition_numbers", "ramanujan_tau": "tau"}
PRIME = 2013265921
REPEAT, SECONDS = 5, 20.0


def bench_series(sizes: list[int], on_gpu: bool) -> list[dict[str, Any]]:
    """Rows for functions of dense power series modulo a prime."""
    rows = []
    fields = rd.PrimeFields([PRIME])
    for size in sizes:
        words = np.random.default_rng(1).integers(0, PRIME, (1, size), dtype=np.uint32)
        words[0, 0] = 1
        theirs = flint.nmod_poly(words[0].tolist(), PRIME)
        if on_gpu:
            import cupy

            words = cupy.asarray(words)
        f = rd.FieldArray(words, fields)
        without = f - [1, *[0] * (size - 1)]
        calls = {
            "inverse_series": (
                partial(rd.poly.inverse_series, f),
                partial(theirs.inverse_series_trunc, size),
            ),
            "log_series": (partial(rd.poly.log_series, f), None),
            "exp_series": (partial(rd.poly.exp_series, without), None),
            "power_mod(f, 8)": (
                partial(rd.poly.power_mod, f, 8, length=size),
                partial(theirs.pow_trunc, 8, size),
            ),
        }
        for name, (ours, peer) in calls.items():
            timed = {"ours": partial(waited_seconds if on_gpu else wall_seconds, ours)}
            if peer is not None:
                timed["flint"] = partial(wall_seconds, peer)
            timings = time_in_turn(timed, REPEAT, SECONDS)
            row = {"table": "power series modulo a prime of 31 bits", "what": name, "coefficients": size}
            row |= timings["ours"].row()
            if peer is not None:
                row["flint"] = min(timings["flint"].seconds) / min(timings["ours"].seconds)
            rows.append(row)
    return rows


def bench_pipelines(sizes: list[int], on_gpu: bool) -> list[dict[str, Any]]:
    """A row for each pipeline at each size, run once."""
    rows = []
    for script, name in PIPELINES.items():
        pipeline = runpy.run_path(str(ROOT / "pipelines" / f"{script}.py"))
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
                start = time.perf_counter()
                numbers = pipeline[name](Path(folder) / "x.zarr", size, None, on_gpu)
                taken = time.perf_counter() - start
            row = {"table": "pipelines", "what": script, "numbers": size, "primes": len(numbers.moduli)}
            rows.append({**row, "s": taken, "numbers/s": size / taken})
    return rows


def bench_matrices(tiny: bool, on_gpu: bool) -> list[dict[str, Any]]:
    """A row for each pipeline of determinants, run once: rows of a matrix, or the side of a board."""
    runs = {"determinants": (6, 100) if tiny else (24, 200_000), "domino_tilings": (6,) if tiny else (48,)}
    rows = []
    for name, sizes in runs.items():
        pipeline = runpy.run_path(str(ROOT / "pipelines" / f"{name}.py"))
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            start = time.perf_counter()
            found = pipeline[name](Path(folder), *sizes, None, on_gpu)
            taken = time.perf_counter() - start
        row = {"table": "pipelines of determinants", "what": name, "size": sizes[0]}
        rows.append({**row, "determinants": len(found), "s": taken})
    return rows


def bench_scripts(tiny: bool, on_gpu: bool) -> list[dict[str, Any]]:
    """A row for each pipeline that is timed as a whole, with its start and its check, run once."""
    runs = {
        "weak_rsa_keys": (200, 20_000),
        "paillier_sums": (10, 2000),
        "self_avoiding_paths": (4, 12),
        "curve_intersections": (4, 50),
        "feynman_integrals": (4, 30),
    }
    if find_spec("phe") is None:
        del runs["paillier_sums"]
    paths = [str(ROOT / "pipelines"), *filter(None, [os.environ.get("PYTHONPATH")])]
    rows = []
    for name, (least, size) in runs.items():
        size = least if tiny else size
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(ROOT / "pipelines" / f"{name}.py"), folder, "--size", str(size)]
            start = time.perf_counter()
            subprocess.run(
                [*command, *(["--gpus", "1"] if on_gpu else [])],
                check=True,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )
            taken = time.perf_counter() - start
        rows.append({"table": "pipelines with their checks", "what": name, "size": size, "s": taken})
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    sizes = [2**10] if options.tiny else [2**12, 2**16, 2**20]
    rows = bench_series(sizes, options.gpu)
    rows += bench_pipelines([2**10] if options.tiny else [2**18, 2**20], options.gpu)
    rows += bench_matrices(options.tiny, options.gpu)
    rows += bench_scripts(options.tiny, options.gpu)
    print_rows(rows)
    write_results(options.json, options.gpu, rows)


if __name__ == "__main__":
    main()
