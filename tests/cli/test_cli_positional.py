"""Stores of limbs on the command line: in, out, to residues and back, and what is computed of them."""

import json
import math
import operator
import re
import shutil
import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from commands import fail, succeed, values_in

import rnsdask as rd

NUMBERS = [(-1) ** i * (7**i * 12345678901 % 2**199) for i in range(300)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with numbers as text, and a store of their limbs."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "in.txt").write_text("".join(f"{v}\n" for v in NUMBERS), encoding="ascii")
    options = ["--positional", "--bits", "200", "--signed", "--chunks", "128"]
    succeed("import", folder / "in.txt", folder / "p.zarr", *options)
    return folder


@pytest.fixture(autouse=True)
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of them, of which a test may change any."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("bits", [4096, 4097, 2**17])
@pytest.mark.parametrize("signed", [False, True])
def test_decimal_text_of_long_numbers(bits: int, signed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of residues, which take the square of the bits, are for short ones."""
    if bits > 4096:
        monkeypatch.setattr(rd.ModuliSet, "for_bits", None)
    lowest, highest = rd.Positional(bits, signed).value_range
    numbers = [lowest, highest, 0, 1, 10**9, 10**1200 - 1, lowest // 3, 12345 << bits - 15]
    Path("long.txt").write_text("".join(f"{rd.to_decimal(v)}\n" for v in numbers), encoding="ascii")
    range_of = ["--signed"] if signed else []
    succeed("import", "long.txt", "l.zarr", "--positional", "--bits", bits, *range_of)
    assert values_in("l.zarr") == numbers
    succeed("export", "l.zarr", "again.txt")
    assert Path("again.txt").read_bytes() == Path("long.txt").read_bytes()


def test_an_error_is_the_last_that_a_process_says() -> None:
    """Its frames keep kernels alive to the end of Python, of which their library would complain."""
    command = [sys.executable, "-c", "from rnsdask.cli import main; main(prog_name='rnsdask')"]
    ended = subprocess.run([*command, "prod", "p.zarr"], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert re.fullmatch(r"rnsdask: error: prod of p.zarr: overflow at flat index 0: .*\n", ended.stderr)


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
    told = [line.split()[0] for line in succeed("info", "p.zarr").splitlines()]
    assert told == ["store", "integers", "limbs", "range", "chunks", "size", "codecs", "complete", "job"]
    assert "in.txt:2: " in fail("import", "in.txt", "n.zarr", "--positional", "--bits", "250")
    succeed("import", "in.txt", "n.zarr", "--positional")  # in the fewest bits
    assert rd.open_zarr("n.zarr").to_ints().tolist() == NUMBERS


def test_residues_and_limbs_are_made_of_one_another() -> None:
    succeed("convert", "p.zarr", "-o", "x.zarr", "--to", "rns")
    assert isinstance(rd.open_zarr("x.zarr"), rd.RNSArray)
    succeed("convert", "x.zarr", "-o", "q.zarr", "--to", "positional", "--bits", "200")
    succeed("convert", "p.zarr", "-o", "i.zarr", "--to", "interval")
    succeed("convert", "i.zarr", "-o", "r.zarr", "--to", "positional")
    assert values_in("x.zarr") == values_in("q.zarr") == values_in("r.zarr") == NUMBERS
    assert rd.open_zarr("q.zarr").system == rd.Positional(200, True)
    assert "flat index" in fail("convert", "x.zarr", "-o", "n.zarr", "--to", "positional", "--bits", "100")
    assert "already" in fail("convert", "p.zarr", "-o", "n.zarr", "--to", "positional", status=2)


def test_what_is_computed_of_them() -> None:
    found = json.loads(succeed("max", "p.zarr", "--json"))
    assert (int(found["value"]), found["index"]) == (max(NUMBERS), NUMBERS.index(max(NUMBERS)))
    assert int(json.loads(succeed("sum", "p.zarr", "--json"))["value"]) == sum(NUMBERS)
    succeed("eval", "(a >> 5) * 3 - b // 7", "a=p.zarr", "b=p.zarr", "-o", "e.zarr")
    assert values_in("e.zarr") == [(v >> 5) * 3 - v // 7 for v in NUMBERS]
    succeed("eval", "(a & 255) ^ isqrt(abs(a))", "a=p.zarr", "-o", "f.zarr")
    assert values_in("f.zarr") == [(v & 255) ^ math.isqrt(abs(v)) for v in NUMBERS]
    assert re.search(
        r"modulus at flat index \d+ is negative",
        fail("eval", "mod_add(a, b, b)", "a=p.zarr", "b=p.zarr", "--max"),
    )
    succeed("eval", "bitwise_count(a)", "a=p.zarr", "-o", "n.zarr")
    succeed("export", "n.zarr", "n.txt")
    assert Path("n.txt").read_text().split() == [str(v.bit_count()) for v in NUMBERS]
    shutil.rmtree("n.zarr")
    succeed("slice", "p.zarr", "-o", "s.zarr", "::-2")
    succeed("concat", "s.zarr", "p.zarr", "-o", "c.zarr")
    assert values_in("c.zarr") == NUMBERS[::-2] + NUMBERS
    assert "takes no store of limbs" in fail("convolve", "p.zarr", "p.zarr", "-o", "n.zarr", status=2)
    succeed("eval", "a // 1000", "a=s.zarr", "-o", "small.zarr")
    small = [v // 1000 for v in NUMBERS[::-2]]
    for name, function in (("cumsum", operator.add), ("cummax", max), ("cummin", min)):
        succeed(name, "small.zarr", "-o", f"{name}.zarr")
        assert values_in(f"{name}.zarr") == list(accumulate(small, function))
    succeed("slice", "p.zarr", "-o", "few.zarr", "1:4")
    assert succeed("prod", "few.zarr").splitlines()[1] == str(math.prod(NUMBERS[1:4]))
    assert "out of range, modulo 2**200" in succeed("prod", "p.zarr", "--overflow", "flag")
    found = json.loads(succeed("bound", "p.zarr", "--json"))
    assert found["bits"] == max(v.bit_length() for v in NUMBERS)
    assert "for residues" in fail("eval", "a*a", "a=p.zarr", "-o", "n.zarr", "--extend", status=2)


def test_powers_modulo_integers() -> None:
    moduli = [2 + 3 * i * 2 ** (i % 190) for i in range(300)]  # odd and even
    exponents = [0, 1, 2**150, *range(297)]
    rd.from_ints(moduli, rd.Positional(200, True), chunks=100).to_zarr("m.zarr", chunks=128)
    rd.from_ints(exponents, rd.Positional(200, True)).to_zarr("k.zarr")
    for exponent, modulus in ((65537, 2**190 + 6), (-1, 2**127 - 1), ("k.zarr", 3**100), (3, "m.zarr")):
        found = json.loads(
            succeed("powmod", "p.zarr", exponent, modulus, "-o", "o.zarr", "--json", "--overwrite")
        )
        ks = exponents if exponent == "k.zarr" else [exponent] * 300
        ms = moduli if modulus == "m.zarr" else [modulus] * 300
        assert values_in("o.zarr") == list(map(pow, NUMBERS, ks, ms))
        stores = ["p.zarr", *(name for name in (exponent, modulus) if isinstance(name, str))]
        assert found.get("stores", [found.get("store")]) == stores
        assert rd.open_zarr("o.zarr").system == rd.Positional(200, True)
    succeed("powmod", "p.zarr", "k.zarr", "m.zarr", "-o", "o.zarr", "--overwrite")
    assert values_in("o.zarr") == list(map(pow, NUMBERS, exponents, moduli))
    succeed("powmod", "p.zarr", "0x10001", "0xffff", "-o", "h.zarr")
    assert values_in("h.zarr") == [pow(v, 65537, 65535) for v in NUMBERS]


def test_powers_of_residues_modulo_integers() -> None:
    moduli, system = (
        [2 + 3 * i * 2 ** (i % 190) for i in range(300)],
        rd.RNS(rd.ModuliSet.for_bits(200), True),
    )
    rd.from_ints(moduli, system, chunks=100).to_zarr("m.zarr", chunks=128)
    rd.from_ints(NUMBERS, system).to_zarr("y.zarr")
    succeed("powmod", "y.zarr", "65537", "m.zarr", "-o", "o.zarr")
    assert values_in("o.zarr") == [pow(v, 65537, m) for v, m in zip(NUMBERS, moduli, strict=True)]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["p.zarr", 3, 0], 2, "powmod of p.zarr: the modulus is 0"),
        (["p.zarr", 3, -7], 2, "the modulus must be positive, got -7"),
        (["p.zarr", 3, 2**199], 2, "is outside the signed range"),
        (["p.zarr", 3, "z.zarr"], 1, "powmod of p.zarr z.zarr: the modulus at flat index 299 is 0"),
        (["n.zarr", 3, "n.zarr"], 1, "the modulus at flat index 299 is negative"),
        (["p.zarr", "n.zarr", 7], 1, "the exponent at flat index 299 is negative"),
        (["z.zarr", -2, 7], 1, "the number at flat index 299 has no inverse modulo 7: their greatest"),
        (["x.zarr", 3, -7], 2, "the modulus must be positive, got -7"),
        (["p.zarr", "x.zarr", 7], 2, "rnsdask convert SRC -o DST --to positional or --to rns makes"),
        (["f.zarr", 3, 7], 1, "it holds elements of PrimeFields"),
        (["p.zarr", "b.zarr", 7], 2, "different precisions: 200 bits, signed and 201 bits, signed"),
        (["p.zarr", 3, "s.zarr"], 2, "shapes do not broadcast together"),
        (["p.zarr", "nothing", 7], 1, "nothing: there is no such store"),
        ([5, 3, "p.zarr"], 1, "5: there is no such store"),
    ],
)
def test_powers_that_there_are_not(arguments: list[Any], status: int, message: str) -> None:
    signed = rd.Positional(200, True)
    rd.from_ints([1] * 299 + [0], signed, chunks=128).to_zarr("z.zarr")
    rd.from_ints([1] * 299 + [-1], signed, chunks=128).to_zarr("n.zarr")
    rd.from_ints([1] * 300, rd.Positional(201, True)).to_zarr("b.zarr")
    rd.from_ints([1] * 3, signed).to_zarr("s.zarr")
    rd.from_ints([1] * 300, rd.ModuliSet.for_bits(200)).to_zarr("x.zarr")
    rd.from_ints([1] * 300, rd.PrimeFields([97])).to_zarr("f.zarr")
    assert message in fail("powmod", *arguments, "-o", "o.zarr", status=status)


def test_random_limbs() -> None:
    options = ["--count", 300, "--bits", 77, "--positional", "--signed", "--seed", 5, "--chunk", 128]
    assert "of limbs" in succeed("random", "r.zarr", *options)
    x = rd.open_zarr("r.zarr")
    assert (x.system, x.shape, x.chunks) == (rd.Positional(77, True), (300,), ((128, 128, 44),))
    again = rd.random(rd.Positional(77, True), 300, seed=5, chunks=128)
    assert x.to_ints().tolist() == again.to_ints().tolist()
    assert -(2**76) <= min(x.to_ints()) < -(2**70) < 2**70 < max(x.to_ints()) < 2**76
    assert "--max-bits is for residues" in fail("random", "n.zarr", *options, "--max-bits", 9, status=2)
    assert "excludes --modulus-bits" in fail("random", "n.zarr", *options, "--modulus-bits", 9, status=2)
    count = ["--count", 3, "--positional"]
    assert "needs --bits" in fail("random", "n.zarr", *count, status=2)
    assert "bits must be from 1" in fail("random", "n.zarr", *count, "--bits", 0, status=2)


def test_compare_limbs() -> None:
    others = [v + (i % 100 == 7) - (i == 250) for i, v in enumerate(NUMBERS)]
    rd.from_ints(others, rd.Positional(200, True), chunks=100).to_zarr("o.zarr", chunks=128)
    found = json.loads(succeed("compare", "p.zarr", "o.zarr", "--json", status=1))
    assert [found[name] for name in ("less", "equal", "greater", "first_difference")] == [3, 296, 1, 7]
    succeed("compare", "p.zarr", "p.zarr")
    found = json.loads(succeed("compare", "p.zarr", -(2**300), "--json", status=1))
    assert (found["greater"], found["equal"]) == (300, 0)
    rd.from_ints(NUMBERS, rd.Positional(201, True)).to_zarr("b.zarr")
    assert "different precisions" in fail("compare", "p.zarr", "b.zarr", status=2)
    succeed("convert", "p.zarr", "-o", "x.zarr", "--to", "rns")
    assert "convert SRC -o DST --to rns makes them of one kind" in fail(
        "compare", "p.zarr", "x.zarr", status=2
    )
    message = fail("concat", "p.zarr", "x.zarr", "-o", "c.zarr", status=2)
    assert message == (
        "concat of p.zarr x.zarr: stores of residues and stores of limbs do not mix; rnsdask convert SRC -o "
        "DST --to positional or --to rns makes them of one kind (see rnsdask concat --help)"
    )


@pytest.mark.parametrize(("command", "expected"), [("max", max(NUMBERS)), ("sum", sum(NUMBERS))])
def test_reductions_of_limbs_keep_checkpoints(command: str, expected: int) -> None:
    for _ in range(2):  # the second reads what the first has kept
        found = json.loads(succeed(command, "p.zarr", "--checkpoint", "kept", "--json"))
        assert int(found["value"]) == expected
    succeed("import", "in.txt", "p.zarr", "--positional", "--bits", "201", "--signed", "--overwrite")
    assert "kept" in fail(command, "p.zarr", "--checkpoint", "kept")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["bound", "p.zarr", "--write"], 1, "for stores of residues, and this is one of Positional(200 bits"),
        (["cumsum", "p.zarr", "-o", "n.zarr"], 1, "cumsum of p.zarr: overflow at flat index "),
        (["convolve", "p.zarr", "p.zarr", "-o", "n.zarr"], 2, "rnsdask convert SRC -o DST --to rns"),
        (["eval", "isqrt(a)", "a=p.zarr", "--max"], 1, "'isqrt(a)': the number at flat index "),
        (["extend", "p.zarr", "-o", "n.zarr", "--bits", 300], 1, "rnsdask convert SRC -o DST --to rns"),
        (["ntt", "p.zarr", "-o", "n.zarr"], 2, "ntt takes a store of field elements"),
        (["resultant", "p.zarr", "p.zarr"], 2, "resultant takes no store of limbs"),
        (["export", "p.zarr", "-", "--residues"], 1, "rnsdask convert SRC -o DST --to rns"),
        (["eval", "a @ a", "a=p.zarr", "-o", "n.zarr"], 2, "matmul takes no store of limbs"),
    ],
)
def test_what_limbs_do_not_have_is_told(arguments: list[Any], status: int, message: str) -> None:
    assert message in fail(*arguments, status=status)
    with pytest.raises(TypeError, match="discriminant takes no PositionalArray"):
        rd.poly.discriminant(rd.open_zarr("p.zarr"))
