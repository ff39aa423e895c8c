"""Times of first calls on a GPU, with an empty cache of compiled kernels and once more with a full one.

    python scripts/cold_calls.py                 all
    python scripts/cold_calls.py batchgcd ntt    some, by their names

Each is a new process, cold with an empty CUPY_CACHE_DIR and warm with what that run left there: whole
commands on small stores, and first calls in Python. A line for each has the seconds of both, the modules that
NVRTC compiled in the cold run, the seconds that this took (of threads side by side, added up), and how many
came compiled. Below it are these modules with their options and seconds: what is missing in VARIANTS of
`rnsdask/backend/cuda/variants.py`, or all where the installation has no kernels.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import rnsdask as rd

COMMANDS = {
    "batchgcd": "batchgcd keys.zarr -o out.zarr",
    "stats": "stats x.zarr",
    "eval": "eval x*y+x x=x.zarr y=y.zarr -o out.zarr --overflow wrap",
    "convolve": "convolve p.zarr q.zarr -o out.zarr",
    "powmod": "powmod limbs.zarr 65537 modulus.zarr -o out.zarr",
    "sort": "sort x.zarr -o out.zarr",
    "det": "det m.zarr",
}
"""Command lines, by the names of what they measure."""

CALLS = {
    "linalg.det": ("fields", "rd.linalg.det(a).compute()"),
    "linalg.rref": ("fields", "rd.linalg.rref(a)[0].words.compute()"),
    "ntt": ("field", "rd.ntt(a).words.compute()"),
    "batch_gcd": ("keys", "rd.batch_gcd(a).words.compute()"),
    "x > k": ("x", "(a > 2**100).compute()"),
}
"""A store and a first call in Python on its array `a`."""

CALL = """
import time
import rnsdask as rd
a = rd.open_zarr({store!r}, backend="cuda").persist()
started = time.perf_counter()
{call}
print("seconds", time.perf_counter() - started)
"""

COMMAND = """
import sys
from rnsdask.cli import main
main(sys.argv[1:], prog_name="rnsdask")
"""

LISTING = """
import atexit, json, sys
from pathlib import Path
def write():
    module = sys.modules.get("rnsdask.backend.cuda.launching")
    Path("loads.json").write_text(json.dumps(module.loads if module else []))
atexit.register(write)
"""


class Run(NamedTuple):
    """One process: its seconds, or those of the call in it, and what it compiled and loaded."""

    seconds: float
    compiled: list[tuple[str, float]]
    loaded: list[tuple[str, float]]


def make_stores(folder: Path) -> None:
    """Write the stores that commands and calls read."""
    rng = random.Random(1)
    moduli = rd.ModuliSet.for_bits(256)

    def numbers(count: int, bits: int) -> list[int]:
        return [rng.getrandbits(bits) | 1 for _ in range(count)]

    prime = 2**31 - 1
    entries = [rng.randrange(prime) for _ in range(10**6)]
    matrix = [entries[1000 * i : 1000 * i + 1000] for i in range(1000)]
    transforms = rd.PrimeFields(rd.ModuliSet.ntt_primes(60, 2**16))
    arrays: dict[str, Any] = {
        "keys": rd.from_ints(numbers(20_000, 512), rd.Positional(512)),
        "x": rd.from_ints(numbers(200_000, 200), moduli),
        "y": rd.from_ints(numbers(200_000, 200), moduli),
        "p": rd.from_ints(numbers(4000, 60)),
        "q": rd.from_ints(numbers(4000, 60)),
        "limbs": rd.from_ints(numbers(20_000, 1000), rd.Positional(1024)),
        "modulus": rd.from_ints(numbers(20_000, 1024), rd.Positional(1024)),
        "m": rd.from_ints([numbers(100, 30) for _ in range(100)]),
        "fields": rd.from_ints(matrix, rd.PrimeFields([prime])),
        "field": rd.from_ints(numbers(2**16, 25), transforms),
    }
    for name, array in arrays.items():
        array.to_zarr(folder / f"{name}.zarr")


def run(name: str, folder: Path, cache: Path) -> Run:
    """Run a command or a call in a new process, with a cache of compiled kernels."""
    listed = folder / "loads.json"
    listed.unlink(missing_ok=True)
    if name in COMMANDS:
        program, words = LISTING + COMMAND, COMMANDS[name].split()
        words += ["--overwrite"] if "out.zarr" in words else []
    else:
        store, call = CALLS[name]
        program, words = LISTING + CALL.format(store=f"{store}.zarr", call=call), []
    command = [sys.executable, "-P", "-c", program, *words]
    environment = {**os.environ, "CUPY_CACHE_DIR": str(cache)}
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        sys.exit(f"error: {name}: exit status {done.returncode}\n{done.stderr}")
    if of_call := re.search(r"^seconds (.*)$", done.stdout, re.MULTILINE):
        seconds = float(of_call[1])
    loads = json.loads(listed.read_text(encoding="utf-8"))
    compiled, loaded = (
        [(" ".join((module, *defines)), took) for module, defines, how, took in loads if how == is_compiled]
        for is_compiled in (True, False)
    )
    return Run(seconds, compiled, loaded)


def measure(name: str, folder: Path, report: Callable[[str], None]) -> None:
    """Print the line of a command or a call, and the modules that it compiled."""
    with tempfile.TemporaryDirectory() as cache:
        cold = run(name, folder, Path(cache))
        warm = run(name, folder, Path(cache))
    took = sum(seconds for _, seconds in cold.compiled)
    report(
        f"{name:<12} {cold.seconds:>8.2f} {warm.seconds:>8.2f} {len(cold.compiled):>9} {took:>8.2f} "
        f"{len(cold.loaded):>7}"
    )
    for module, seconds in sorted(cold.compiled, key=lambda one: -one[1]):
        report(f"    {seconds:>7.2f} s  {module}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*COMMANDS, *CALLS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"by default all: {', '.join(names)}")
    given = parser.parse_args().names
    if unknown := set(given) - set(names):
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    with tempfile.TemporaryDirectory() as folder:
        make_stores(Path(folder))
        print(f"{'':<12} {'cold s':>8} {'warm s':>8} {'compiled':>9} {'in s':>8} {'loaded':>7}", flush=True)
        for name in given or names:
            measure(name, Path(folder), lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
