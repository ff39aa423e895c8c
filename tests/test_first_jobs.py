"""The first jobs of new users: docs/jobs.md does each, and an oracle that shares no code checks it.

Two of them are notebooks too, cluster.ipynb and chain.ipynb, which tests/test_notebooks.py runs. Help texts
are read by tests/cli/test_help.py.
"""

import itertools
import math
import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pyarrow.parquet
import pytest
from forks import Commands
from pages import run_code

import rnsdask as rd

PAGE = Path(__file__).resolve().parents[1] / "docs/jobs.md"
JOBS = dict(
    re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(job: str) -> dict[str, Any]:
    """Run the Python of a job as it stands; return its variables."""
    return run_code(JOBS[job], job)


def write_lines(file: str, lines: list[Any]) -> None:
    Path(file).write_text("".join(f"{line}\n" for line in lines))


def test_keys_that_share_a_prime() -> None:
    primes = [2**e - 1 for e in (31, 61, 89, 107, 127, 521, 607)]
    pairs = [(0, 1), (2, 3), (5, 6), (3, 4)]
    keys = [primes[i] * primes[j] for i, j in pairs]
    write_lines("keys.txt", keys)
    names = run("Find keys that share a prime")
    shared = [[i, j] for i, j in itertools.combinations(range(4), 2) if math.gcd(keys[i], keys[j]) > 1]
    assert names["weak"].tolist() == shared


def test_partitions() -> None:
    p = run("Count partitions")["p"].tolist()
    expected = [1] + [0] * 1000  # Euler's recurrence by pentagonal numbers
    for n in range(1, 1001):
        for k in range(1, n + 1):
            if (step := k * (3 * k - 1) // 2) > n:
                break
            sign = -1 if k % 2 == 0 else 1
            expected[n] += sign * expected[n - step]
            if step + k <= n:
                expected[n] += sign * expected[n - step - k]
    assert p == expected


def test_a_job_on_a_cluster() -> None:
    plt.close("all")  # of other tests, in whose picture the bars would be
    names = run("Compute on a cluster from a notebook")
    try:
        greatest = sorted(names["x"].to_ints().tolist(), reverse=True)[:10]
        assert names["greatest"].tolist() == greatest
        assert sum(patch.get_data().values.sum() for patch in names["picture"].patches) == 100_000
    finally:
        plt.close("all")
        names["client"].close()


def test_a_chain_that_is_killed(commands: Commands) -> None:
    """Kill a chain once it has written something; the same script goes on, and its answer is right."""
    numbers = [(i * i * 123456789) % 2**40 for i in range(20_000)]
    write_lines("numbers.txt", numbers)
    (script,) = re.findall(r"```sh\n(.*?)```", JOBS["Let a chain of commands be killed"], re.DOTALL)
    Path("chain.sh").write_text(script)
    command, environment = ["bash", "chain.sh"], os.environ | {"PATH": commands.path}
    chain = subprocess.Popen(command, env=environment, start_new_session=True)
    while not list(Path("cubes.zarr").glob("c/*")) and chain.poll() is None:
        time.sleep(0.001)
    with suppress(ProcessLookupError):
        os.killpg(chain.pid, signal.SIGKILL)
    chain.wait()
    subprocess.run(command, env=environment, check=True)
    sums = list(itertools.accumulate(number**3 for number in numbers))
    assert rd.open_zarr("sums.zarr").to_ints().tolist() == sums


def test_an_exact_inverse() -> None:
    names = run("Invert a matrix exactly")
    n, inverse = names["n"], names["inverse"].tolist()
    for i, j in itertools.product(range(n), repeat=2):
        entry = sum(Fraction(inverse[k][j], i + k + 1) for k in range(n))
        assert entry == (i == j)


def test_encrypted_numbers() -> None:
    names = run("Compute with encrypted numbers")
    n, t = names["n"], names["t"]
    a, weights = names["a"].tolist(), names["weights"].tolist()
    expected = [0] * n
    for (i, x), (j, y) in itertools.product(enumerate(a), enumerate(weights)):
        expected[(i + j) % n] += x * y if i + j < n else -x * y
    assert names["weighted"].tolist() == [number % t for number in expected]
    assert names["total"].tolist() == [(x + y) % t for x, y in zip(a, names["b"].tolist(), strict=True)]


def test_a_table_of_pandas() -> None:
    numbers = [3**k for k in range(100)]
    write_lines("numbers.csv", ["n", *numbers])
    table = run("Give a table of pandas exact columns")["table"]
    assert table["bits"].tolist() == [number.bit_length() for number in numbers]
    assert table["residue"].tolist() == [number % 65537 for number in numbers]
    column = pyarrow.parquet.read_table("n.parquet")["value"].to_pylist()
    assert [int(number) for number in column] == numbers


def test_axes_of_xarray() -> None:
    names = run("Name the axes with xarray")
    counts = names["counts"]
    assert names["greatest"].values.tolist() == [max(column) for column in zip(*counts, strict=True)]
    assert names["total"].values.tolist() == [sum(row) for row in counts]
    assert names["mean"].values.tolist() == [Fraction(sum(column), 3) for column in zip(*counts, strict=True)]
