"""Times whole pipelines, and power series beside python-flint's.

    python scripts/bench_pipelines.py            pipelines at their default sizes, series up to 2**20
    python scripts/bench_pipelines.py --gpu
    python scripts/bench_pipelines.py --tiny     only see that it works

A pipeline's time is that of its command, once: the start of Python, writing and checks too,
beside the processor's time of all threads. "flint" is how
many times as long python-flint takes for the same modulo one prime of 31 bits, in the same run. With --json
FILE writes the rows.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import os
import resource
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

TINY = {
    "weak_rsa_keys": 200,
    "partition_numbers": 1000,
    "ramanujan_tau": 1000,
    "curve_intersections": 4,
    "domino_tilings": 6,
    "self_avoiding_paths": 4,
    "feynman_integrals": 4,
    "amplitude_ansatz": 2,
    "paillier_sums": 10,
    "determinants": 6,
}
"""Sizes of all pipelines with which they take no time of their own."""

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


def processor_seconds() -> float:
    """Processor time of all commands that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def bench_pipelines(tiny: bool, on_gpu: bool) -> list[dict[str, Any]]:
    """A row for each pipeline, run once as a command."""
    paths = [str(ROOT / "pipelines"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    rows = []
    for name, size in TINY.items():
        if name == "paillier_sums" and find_spec("phe") is None:
            continue
        options = [*(["--size", str(size)] if tiny else []), *(["--gpus", "1"] if on_gpu else [])]
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(ROOT / "pipelines" / f"{name}.py"), folder, *options]
            start, before = time.perf_counter(), processor_seconds()
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            taken, used = time.perf_counter() - start, processor_seconds() - before
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr}")
        rows.append({"table": "pipelines, whole", "what": name, "s": taken, "processor s": used})
    return rows


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    sizes = [2**10] if options.tiny else [2**12, 2**16, 2**20]
    rows = bench_series(sizes, options.gpu)
    rows += bench_pipelines(options.tiny, options.gpu)
    print_rows(rows)
    write_results(options.json, options.gpu, rows)


if __name__ == "__main__":
    main()
