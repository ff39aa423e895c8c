"""The commands that show numbers: head, stats, hist; and how a terminal shows long ones."""

import io
import json
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import fail, succeed
from distributed import LocalCluster
from forks import Commands

import rnsdask as rd
from rnsdask.cli import printing

RNG = np.random.default_rng(7)
VALUES = [int.from_bytes(RNG.bytes(40), "little") >> int(RNG.integers(0, 319)) for _ in range(200)]
SIGNED = [value * (-1) ** i for i, value in enumerate(VALUES)]
BITS = rd.ModuliSet.for_bits(330)
SYSTEMS = {
    "unsigned": BITS,
    "signed": rd.RNS(BITS, True),
    "positional": rd.Positional(330, True),
    "interval": rd.IntervalRNS(BITS),
}


def store(path: Path, values: Any, system: Any, chunks: Any = 30) -> str:
    rd.from_ints(values, system, chunks=chunks).to_zarr(path / "x.zarr")
    return str(path / "x.zarr")


@pytest.mark.parametrize("name", SYSTEMS)
def test_stats(name: str, tmp_path: Path) -> None:
    values = VALUES if name == "unsigned" else SIGNED
    path = store(tmp_path, values, SYSTEMS[name])
    printed = json.loads(succeed("stats", path, "--json"))
    lengths: dict[str, int] = {}
    for value in values:
        bits = str(abs(value).bit_length())
        lengths[bits] = lengths.get(bits, 0) + 1
    assert printed["bit_lengths"] == lengths
    assert (printed["count"], printed["min"], printed["max"], printed["sum"]) == (
        *(200, str(min(values)), str(max(values)), str(sum(values))),
    )
    assert abs(Fraction(printed["mean"]) - Fraction(sum(values), 200)) <= Fraction(1, 200)
    text = succeed("stats", path).splitlines()
    assert text[:4] == [
        "count  200",
        f"min    {min(values)}",
        f"max    {max(values)}",
        f"sum    {sum(values)}",
    ]
    rows = [line.split() for line in text[text.index("bits") + 1 :]]
    assert sum(int(count) for _, count, *_ in rows) == 200
    assert len(rows) <= 20
    assert max(map(len, text[text.index("bits") :])) <= 80


def test_stats_reads_each_chunk_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store(tmp_path, VALUES, BITS)
    asked = []
    from rnsdask.lazy import summary

    move = summary.move_to_reduce
    monkeypatch.setattr(summary, "move_to_reduce", lambda x, *how: asked.append(x.shape) or move(x, *how))
    assert json.loads(succeed("stats", path, "--json"))["bytes_read"] == 200 * 4 * len(BITS)
    assert len(asked) == 7


def test_stats_of_no_numbers_and_of_small_ones(tmp_path: Path) -> None:
    path = store(tmp_path, [], BITS)
    assert succeed("stats", path) == "count  0\nsum    0\n"
    (tmp_path / "b").mkdir()
    path = store(tmp_path / "b", [[1, 2], [4, -8]], rd.RNS(BITS, True), chunks=1)
    assert succeed("stats", path).splitlines() == [
        *("count  4", "min    -8", "max    4", "sum    -1", "mean   -0.25", "", "bits"),
        *(f"{bits}  1 {'█' * 75}" for bits in (1, 2, 3, 4)),
    ]


def test_stats_needs_an_order(tmp_path: Path) -> None:
    path = store(tmp_path, [1, 2], rd.PrimeFields([7, 11]))
    assert "x.zarr" in fail("stats", path)


@pytest.mark.parametrize("name", [*SYSTEMS, "fields"])
def test_head(name: str, tmp_path: Path) -> None:
    values = VALUES if name in ("unsigned", "fields") else SIGNED
    system = rd.PrimeFields(rd.ModuliSet.ntt_primes(330, 4)) if name == "fields" else SYSTEMS[name]
    path = store(tmp_path, values, system)
    assert succeed("head", path, "-n", 3) == "".join(f"{i}\t{values[i]}\n" for i in range(3))
    assert len(succeed("head", path).splitlines()) == 10
    assert len(succeed("head", path, "-n", 1000).splitlines()) == 200


def test_head_of_several_axes_reads_few_chunks(tmp_path: Path) -> None:
    a = np.arange(60).reshape(3, 4, 5)
    path = store(tmp_path, a, rd.ModuliSet.for_bits(40), chunks=(1, 2, 2))
    (tmp_path / "x.zarr" / "c" / "0" / "2" / "1" / "0").unlink()  # that of the last numbers
    for count in (1, 4, 5, 7, 19, 21, 40):
        indices = [",".join(map(str, np.unravel_index(i, a.shape))) for i in range(count)]
        assert succeed("head", path, "-n", count) == "".join(f"{i}\t{k}\n" for k, i in enumerate(indices))
    printed = json.loads(succeed("head", path, "-n", 2, "--json"))
    assert (printed["indices"], printed["values"]) == ([[0, 0, 0], [0, 0, 1]], ["0", "1"])


@pytest.mark.parametrize("name", SYSTEMS)
def test_hist(name: str, tmp_path: Path) -> None:
    values = VALUES if name == "unsigned" else SIGNED
    path = store(tmp_path, values, SYSTEMS[name])
    edges = [0, 2**100, 2**200, 2**320]
    printed = json.loads(succeed("hist", path, "--edges", ",".join(map(str, edges)), "--json"))
    assert printed["edges"] == list(map(str, edges))
    wanted = [sum(low <= v < high for v in values) for low, high in pairwise(edges)]
    assert printed["counts"] == wanted
    printed = json.loads(succeed("hist", path, "--bins", 4, "--json"))
    assert (printed["edges"][0], printed["edges"][-1]) == (str(min(values)), str(max(values)))
    assert sum(printed["counts"]) == 200


def test_hist_prints_bars(tmp_path: Path) -> None:
    path = store(tmp_path, [0, 1, 1, 1, 5, 12], rd.ModuliSet.for_bits(40))
    assert succeed("hist", path, "--edges", "0,1,2,12").splitlines() == [
        f" [0, 1)  1 {'█' * 23}",
        f" [1, 2)  3 {'█' * 69}",
        f"[2, 12]  2 {'█' * 46}",
    ]
    assert len(succeed("hist", path).splitlines()) == 10
    for wrong in ("1", "a,b", "3,1", "1,,2", ""):
        assert "--edges takes" in fail("hist", path, "--edges", wrong, status=2)
    assert "not both" in fail("hist", path, "--edges", "1,2", "--bins", 3, status=2)


@pytest.mark.parametrize("columns", [80, 100])
def test_hist_keeps_to_the_columns_beyond_a_terminal(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    path = store(tmp_path, [-(10**150), -5, 10**150], None)
    lines = succeed("hist", path, "--bins", 3).splitlines()
    assert [len(lines), max(map(len, lines))] == [3, columns]
    assert str(10**150) in succeed("hist", path, "--bins", 3, "--digits", "all")
    assert "1" + "0" * 150 in succeed("max", path)  # one number a line is whole


LONG = 7**300  # 254 digits
SHORT = f"{str(LONG)[:20]}…{str(LONG)[-20:]}, 254 digits"


def test_a_terminal_shows_the_ends_of_long_numbers(tmp_path: Path, commands: Commands) -> None:
    def on_a_terminal(*args: str) -> str:
        streams = ("stdin", "stdout", "stderr")
        return commands.run_on_terminal(*args, folder=tmp_path, streams=streams)[1]

    path = store(tmp_path, [5, LONG, -(10**59), 10**60], None)
    printed = on_a_terminal("max", path, "--no-progress")
    assert printed.splitlines()[1] == SHORT
    assert str(LONG) in on_a_terminal("max", path, "--digits", "all", "--no-progress")
    assert str(LONG) in json.loads(on_a_terminal("max", path, "--json", "--no-progress"))["value"]
    lines = on_a_terminal("head", path).splitlines()
    assert lines == ["0\t5", f"1\t{SHORT}", f"2\t-{10**59}", f"3\t1{'0' * 19}…{'0' * 20}, 61 digits"]
    assert f"max    {SHORT}" in on_a_terminal("stats", path, "--no-progress").splitlines()
    for line in on_a_terminal("hist", path, "--bins", "2", "--no-progress").splitlines():
        assert len(line) <= 80
        assert "(254 digits)" in line


def test_digits_may_be_told(tmp_path: Path) -> None:
    path = store(tmp_path, [LONG, 12345], None)
    text = str(LONG)
    assert succeed("head", path) == f"0\t{text}\n1\t12345\n"
    assert succeed("head", path, "--digits", 9) == f"0\t{text[:3]}…{text[-3:]}, 254 digits\n1\t12345\n"
    assert succeed("topk", 1, path, "--digits", 60) == f"0\t{SHORT}\n"
    assert succeed("max", path, "--digits", 254).splitlines()[1] == text
    assert json.loads(succeed("max", path, "--digits", 3, "--json"))["value"] == text
    assert succeed("eval", "x + 0", f"x={path}", "--max", "--digits", 60).splitlines()[1] == SHORT
    for command in (("sum",), ("min",), ("bound",), ("prod",), ("det",), ("stats",), ("hist",)):
        assert "--digits" in succeed(*command, "--help")
    for wrong in ("0", "-1", "many", "1.5"):
        assert "it must be an integer from 1 to 999999999, or 'all', got" in fail(
            "head", path, "--digits", wrong, status=2
        )


def test_fractions_are_abbreviated_on_both_sides(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.mkdir()
    b.mkdir()
    moduli = rd.ModuliSet.for_bits(1000)
    matrix, right = store(a, [[3**150, 0], [0, 7]], moduli), store(b, [2**200, 14], moduli)
    first, second = succeed("solve", matrix, right, "--digits", 9).splitlines()
    digits = [str(2**200), str(3**150)]
    wanted = "/".join(f"{text[:3]}…{text[-3:]} ({len(text)} digits)" for text in digits)
    assert (first, second) == (f"0\t{wanted}", "1\t2")


def test_terminals_without_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    monkeypatch.setenv("COLUMNS", "20")
    assert printing.bars(["a"], [2]) == ["a  2 ###############"]
    assert printing.bars(["a", "b"], [0, 0]) == ["a  0", "b  0"]


def test_hist_on_a_cluster(tmp_path: Path) -> None:
    path = store(tmp_path, VALUES, BITS)
    how = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**how) as cluster:
        for options in ([], ["--edges", f"0,5,{2**70}"]):
            command = ["hist", path, "--json", *options]
            alone, there = (
                json.loads(succeed(*command, *w)) for w in ([], ["--scheduler", cluster.scheduler_address])
            )
            assert [alone[k] for k in ("counts", "edges")] == [there[k] for k in ("counts", "edges")]


def test_one_is_not_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rd.from_ints([5], rd.ModuliSet.for_bits(64)).to_zarr("one.zarr")
    assert succeed("max", "one.zarr").startswith("max of 1 integer at index 0:\n5\n")
    assert succeed("prod", "one.zarr").startswith("prod of 1 integer:\n5\n")
    assert succeed("verify", "one.zarr").startswith("one.zarr: 1 integer, whole and valid")
    assert succeed("compare", "one.zarr", "one.zarr").startswith("one.zarr against one.zarr: 1 integer\n")
    assert succeed("eval", "x + 1", "x=one.zarr", "--sum").startswith("sum of 1 value:\n6\n")
    assert succeed("slice", "one.zarr", "-o", "same.zarr", ":").startswith("same.zarr: 1 integer, ")
    assert succeed("random", "r.zarr", "--bits", "8", "--count", "1", "--seed", "1").startswith(
        "r.zarr: 1 random integer, "
    )
