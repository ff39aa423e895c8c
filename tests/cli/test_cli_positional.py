"""Stores of limbs on the command line: in, out, to residues and back, and what is computed of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import fail, succeed

import rnsdask as rd

NUMBERS = [(-1) ** i * (7**i * 12345678901 % 2**199) for i in range(300)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("".join(f"{v}\n" for v in NUMBERS), encoding="ascii")
    succeed("import", "in.txt", "p.zarr", "--positional", "--bits", "200", "--signed", "--chunks", "128")


def values_in(path: str) -> Any:
    return rd.open_zarr(path).to_ints().tolist()


def test_numbers_come_in_and_go_out() -> None:
    assert rd.open_zarr("p.zarr").system == rd.Positional(200, True)
    assert values_in("p.zarr") == NUMBERS
    succeed("export", "p.zarr", "out.txt")
    assert Path("out.txt").read_bytes() == Path("in.txt").read_bytes()
    succeed("export", "p.zarr", "hex.txt", "--hex")
    succeed("import", "hex.txt", "h.zarr", "--positional", "--bits", "233", "--signed")
    succeed("export", "p.zarr", "out.bin", "--binary", "32")
    succeed("import", "out.bin", "b.zarr", "--positional", "--bits", "200", "--signed", "--binary", "32")
    assert values_in("h.zarr") == values_in("b.zarr") == NUMBERS
    assert "whole and valid" in succeed("verify", "p.zarr")
    described = json.loads(succeed("info", "p.zarr", "--json"))
    assert (described["bits"], described["limbs"], described["signed"]) == (200, 7, True)
    assert "in.txt:2: " in fail("import", "in.txt", "n.zarr", "--positional", "--bits", "250")
    assert "needs --bits" in fail("import", "in.txt", "n.zarr", "--positional", status=2)


def test_residues_and_limbs_are_made_of_one_another() -> None:
    succeed("convert", "p.zarr", "x.zarr", "--to", "rns")
    assert isinstance(rd.open_zarr("x.zarr"), rd.RNSArray)
    succeed("convert", "x.zarr", "q.zarr", "--to", "positional", "--bits", "200")
    succeed("convert", "p.zarr", "i.zarr", "--to", "interval")
    succeed("convert", "i.zarr", "r.zarr", "--to", "positional")
    assert values_in("x.zarr") == values_in("q.zarr") == values_in("r.zarr") == NUMBERS
    assert rd.open_zarr("q.zarr").system == rd.Positional(200, True)
    assert "flat index" in fail("convert", "x.zarr", "n.zarr", "--to", "positional", "--bits", "100")
    assert "already" in fail("convert", "p.zarr", "n.zarr", "--to", "positional", status=2)


def test_what_is_computed_of_them() -> None:
    found = json.loads(succeed("max", "p.zarr", "--json"))
    assert (int(found["value"]), found["index"]) == (max(NUMBERS), NUMBERS.index(max(NUMBERS)))
    assert int(json.loads(succeed("sum", "p.zarr", "--json"))["value"]) == sum(NUMBERS)
    succeed("eval", "(a >> 5) * 3 - b // 7", "a=p.zarr", "b=p.zarr", "-o", "e.zarr")
    assert values_in("e.zarr") == [(v >> 5) * 3 - v // 7 for v in NUMBERS]
    succeed("slice", "p.zarr", "s.zarr", "::-2")
    succeed("concat", "s.zarr", "p.zarr", "-o", "c.zarr")
    assert values_in("c.zarr") == NUMBERS[::-2] + NUMBERS
    assert "takes no PositionalArray" in fail("convolve", "p.zarr", "p.zarr", "-o", "n.zarr", status=2)
    assert "of residues" in fail("eval", "a*a", "a=p.zarr", "-o", "n.zarr", "--extend", status=2)
