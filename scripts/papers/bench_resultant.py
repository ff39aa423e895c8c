"""Times one resultant of two polynomials in x and y step by step, beside published figures of a GTX 580.

    python scripts/papers/bench_resultant.py cpu    one thread
    python scripts/papers/bench_resultant.py gpu
    python scripts/papers/bench_resultant.py cpu --plain    and with plain % as the reduction

The case is P. Emeliyanenko's (a forum's post, a GTX 580): a resultant with respect to y of degree 2481 in x,
with coefficients of 10,227 bits, from 330 primes and 2482 points. The polynomials are not known; here they
are of total degree 50 and of degree 46 in y, which gives these numbers but for 3 bits. "evaluation" is that
of the coefficients of y at the points, "elimination" the remainder sequences, "inverses" those of their
denominators and the points' tables, "CRT" the conversion to Python ints. His elimination holds the
evaluation. The result is checked at a point with FLINT.

`--plain` builds the package once more with `x % m` as its reduction, in a folder of its own, for CPU and GPU
alike, and runs the same there. With --json FILE writes the rows.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # PYTHONSAFEPATH leaves them out
sys.path.insert(0, str(Path(__file__).resolve().parent))

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

import flint
import numpy as np
from benchmarking import ROOT, argument_parser, print_rows, waited_seconds, wall_seconds, write_results

import rnsdask as rd
from rnsdask.backend import kernels_of
from rnsdask.fields import bivariate_resultant as bivariate
from rnsdask.fields import polynomials

RUNS = {
    "cpu": ("cpu",),
    "gpu": ("gpu",),
    "tiny": ("cpu --scale 10 --repeat 1",),
    "tiny-gpu": ("gpu --scale 10 --repeat 1",),
}

TOTAL, DEGREE_Y, DEGREES_X = 50, 46, (49, 47)
MAGNITUDE = 43 * 2**99

# Milliseconds with % and with his reduction, on a GTX 580.
PUBLISHED = {
    "elimination": (5755.4, 1100.1),
    "inverses": (0.907, 0.193),
    "interpolation": (856.0, 220.6),
    "CRT": (44.07, 10.38),
    "all": (6659.4, 1334.7),
}

PLAIN = """RNS_INLINE u32 mod_reduce(u64 x, Modulus m) {
  return static_cast<u32>(x % (static_cast<u64>(m.last) + 1));
}
"""


def polynomial(rng: np.random.Generator, degree_x: int, scale: int) -> np.ndarray:
    """Coefficients (degree_y + 1, degree_x + 1) of a dense polynomial with a bounded total degree."""
    total, degree_y, width = TOTAL // scale, DEGREE_Y // scale, degree_x // scale
    values = np.zeros((degree_y + 1, width + 1), dtype=object)
    for i in range(degree_y + 1):
        for j in range(min(width, total - i) + 1):
            drawn = int.from_bytes(rng.bytes(16), "little")
            values[i, j] = (drawn >> 1) % MAGNITUDE * (-1) ** (drawn & 1) or 1
    return values


class Steps:
    """The steps of a resultant, each called and timed by itself for all groups of primes."""

    def __init__(self, task: bivariate.Task) -> None:
        self.task = task
        self.images = [bivariate.Image(task, part) for part in task.parts(0, task.prime_count)]

    def tables(self) -> None:
        self.points = [image.points for image in self.images]

    def evaluation(self) -> None:
        self.values = [image.values for image in self.images]

    def elimination(self) -> None:
        self.found = []
        for image, (f, g) in zip(self.images, self.values, strict=True):
            found = kernels_of(f).remainder_sequences(f, g, image.formal_degrees, image.moduli, False)
            self.found.append(found[:2])

    def inverses(self) -> None:
        pairs = zip(self.found, self.images, strict=True)
        self.resultants = [polynomials.quotients_of(x, y, image.moduli) for (x, y), image in pairs]

    def interpolation(self) -> None:
        pairs = zip(self.points, self.resultants, strict=True)
        self.coefficients = [
            points.interpolate(v[:, None])[..., : self.task.degree + 1] for points, v in pairs
        ]

    def crt(self) -> None:
        self.result = bivariate.lifted(self.task, self.coefficients, self.task.degree + 1)


def measured(
    task: bivariate.Task, seconds: Callable[[Callable[[], Any]], float]
) -> tuple[Any, dict[str, float]]:
    """The resultant, and seconds of each step."""
    steps = Steps(task)
    tables = seconds(steps.tables)
    spent = {
        "evaluation": seconds(steps.evaluation),
        "elimination": seconds(steps.elimination),
        "inverses": tables + seconds(steps.inverses),
        "interpolation": seconds(steps.interpolation),
        "CRT": seconds(steps.crt),
    }
    return steps.result, spent | {"all": sum(spent.values())}


def check(f: np.ndarray, g: np.ndarray, result: Any) -> None:
    """The resultant at x = 3 is that of the polynomials at x = 3."""
    at = [[sum(c * 3**j for j, c in enumerate(row)) for row in v.tolist()] for v in (f, g)]
    expected = int(flint.fmpz_poly(at[0]).resultant(flint.fmpz_poly(at[1])))
    assert sum(c * 3**j for j, c in enumerate(result)) == expected, "the resultant is wrong"


def bench(kind: str, scale: int, repeat: int) -> list[dict[str, Any]]:
    """A row for each step, with the least times of some runs."""
    rng = np.random.default_rng(1)
    f, g = (polynomial(rng, degree, scale) for degree in DEGREES_X)
    system = rd.RNS(rd.ModuliSet.for_bits(MAGNITUDE.bit_length() + 2), signed=True)
    words = [system.encode(v) for v in (f, g)]
    if kind == "gpu":
        import cupy

        words = [cupy.asarray(v) for v in words]
    task = bivariate.task_of(*(v[:, None] for v in words), system)
    facts = {
        "degree": task.degree,
        "bits": task.bound.bit_length(),
        "primes": task.prime_count,
        "points": task.degree + 1,
    }
    seconds = waited_seconds if kind == "gpu" else wall_seconds
    results, runs = zip(*(measured(task, seconds) for _ in range(repeat + 1)), strict=True)
    check(f, g, results[0][0])
    return [{"step": step, "ms": 1e3 * min(run[step] for run in runs[1:]), **facts} for step in runs[0]]


def build_plain(folder: Path) -> None:
    """Install the package with % as its reduction into a folder."""
    source = folder / "source"
    for name in ("rnsdask", "kernels"):
        shutil.copytree(ROOT / name, source / name)
    for name in ("CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    header = source / "kernels" / "include" / "rns" / "modular.cuh"
    text, count = re.subn(
        r"RNS_INLINE u32 mod_reduce\(u64 x, Modulus m\) \{.*?\n\}\n",
        PLAIN,
        header.read_text("utf-8"),
        flags=re.DOTALL,
    )
    assert count == 1, "modular.cuh has no mod_reduce"
    header.write_text(text, "utf-8")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps"]
    subprocess.run([*command, "--target", str(folder / "site"), str(source)], check=True)


def bench_plain(arguments: list[str]) -> dict[str, float]:
    """Milliseconds of each step with %."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_plain(folder)
        path = folder / "rows.json"
        paths = os.pathsep.join([str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, str(Path(__file__).resolve()), *arguments, "--json", str(path)]
        subprocess.run(
            command, check=True, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.DEVNULL
        )
        return {row["step"]: row["ms"] for row in json.loads(path.read_text("utf-8"))["rows"]}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("kind", choices=("cpu", "gpu"))
    parser.add_argument("--scale", type=int, default=1, help="what degrees are divided by")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--plain", action="store_true", help="also with %% as the reduction")
    options = parser.parse_args()
    rows = bench(options.kind, options.scale, options.repeat)
    plain: dict[str, float] = {}
    if options.plain:
        given = [options.kind, "--scale", str(options.scale), "--repeat", str(options.repeat)]
        plain = bench_plain(given)
    for row in rows:
        if options.plain:
            row["ms with %"] = plain[row["step"]]
            row["gain"] = plain[row["step"]] / row["ms"]
        if options.scale == 1 and row["step"] in PUBLISHED:
            row["GTX 580, ms with %"], row["GTX 580, ms"] = PUBLISHED[row["step"]]
    print_rows(rows)
    write_results(options.json, options.kind == "gpu", rows)


if __name__ == "__main__":
    main()
