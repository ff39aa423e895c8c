"""Commands that write a store or a file take its place by -o; some take it as an argument too."""

from pathlib import Path

import pytest
from commands import call, fail, succeed, values_in

import rnsdask as rd

VALUES = [5, 3, 8, 1, 9, 2]
WRITERS = {
    "sort": (["sort", "x.zarr"], [], sorted(VALUES)),
    "cumsum": (["cumsum", "x.zarr"], [], [5, 8, 16, 17, 26, 28]),
    "cummax": (["cummax", "x.zarr"], [], [5, 5, 8, 8, 9, 9]),
    "extend": (["extend", "x.zarr"], ["--bits", "200"], VALUES),
    "shrink": (["shrink", "wide.zarr"], ["--bits", "60"], VALUES),
    "convert": (["convert", "x.zarr"], ["--to", "positional"], VALUES),
    "slice": (["slice", "x.zarr"], ["1:4"], VALUES[1:4]),
    "reshape": (["reshape", "x.zarr"], ["-1"], VALUES),
    "rechunk": (["rechunk", "x.zarr"], ["--chunks", "2"], VALUES),
}
"""First words, last words and the values that each writes."""


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rd.from_ints(VALUES, rd.ModuliSet.for_bits(64)).to_zarr("x.zarr")
    rd.from_ints(VALUES, rd.ModuliSet.for_bits(200)).to_zarr("wide.zarr")


@pytest.mark.parametrize("name", WRITERS)
def test_by_the_option_and_in_the_former_form(name: str) -> None:
    first, last, expected = WRITERS[name]
    new, former = (call(*words) for words in ([*first, *last, "-o", "a.zarr"], [*first, "b.zarr", *last]))
    assert (new.exit_code, former.exit_code) == (0, 0), new.stderr + former.stderr
    assert "warning" not in new.stderr
    assert (
        "rnsdask: warning: give the new store by -o; as an argument it is in the former form" in former.stderr
    )
    assert values_in("a.zarr") == values_in("b.zarr") == expected
    assert "Missing option '-o' / '--output'" in fail(*first, *last, status=2)
    assert "Got unexpected extra argument" in fail(*first, "c.zarr", *last, "-o", "d.zarr", status=2)
    assert f"Usage: rnsdask {name} [OPTIONS] SRC" in succeed(name, "--help")
    assert not Path("c.zarr").exists()


def test_commands_that_take_both() -> None:
    Path("n.txt").write_text("".join(f"{value}\n" for value in VALUES))
    for out in (["a.zarr"], ["-o", "b.zarr"]):
        found = call("import", "n.txt", *out)
        assert "warning" not in found.stderr
        assert values_in(out[-1]) == VALUES
        assert "warning" not in call("export", out[-1], *out[:-1], f"{out[-1]}.txt").stderr
        assert Path(f"{out[-1]}.txt").read_text() == Path("n.txt").read_text()
    succeed("random", "-o", "c.zarr", "--count", 5, "--bits", 64, "--seed", 1)
    succeed("random", "d.zarr", "--count", 5, "--bits", 64, "--seed", 1)
    assert values_in("c.zarr") == values_in("d.zarr")
    assert "Missing argument 'STORE'" in fail("random", "--count", 5, "--bits", 64, status=2)
    assert "Got unexpected extra argument (f.zarr)" in fail("import", "n.txt", "e.zarr", "f.zarr", status=2)


def test_the_warning_keeps_the_secret_of_a_url() -> None:
    result = call("cumsum", "x.zarr", "s3://KEY:SECRET@bucket//o")
    assert result.exit_code == 1
    assert "by -o" in result.stderr
    assert "SECRET" not in result.stderr
