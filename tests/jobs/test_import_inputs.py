"""Files as users have them: without moduli told, with comments, in columns, of other programs, to fields."""

import csv
import gzip
import io
import json
import math
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from commands import fail, succeed
from strategies import slow

import rnsdask as rd
from rnsdask.cli import main
from rnsdask.io.line_forms import range_of_lines

COMMAND = [sys.executable, "-c", "from rnsdask.cli import main; main()"]


pytestmark = pytest.mark.usefixtures("in_empty_folder")


def imported(data: bytes | str, *options: object, name: str = "n") -> list[Any]:
    """The integers of a file after it was imported."""
    Path(name).write_bytes(data.encode() if isinstance(data, str) else data)
    succeed("import", name, "x.zarr", "--overwrite", *options)
    values: list[Any] = rd.open_zarr("x.zarr").to_ints().tolist()
    return values


def refused(data: bytes | str, *options: object, name: str = "n") -> str:
    """Return the error of an import that is refused."""
    Path(name).write_bytes(data.encode() if isinstance(data, str) else data)
    message = fail("import", name, "y.zarr", *options)
    assert not Path("y.zarr").exists()
    return message


def system() -> tuple[int, bool]:
    """Bits of M and sign of what was imported."""
    x = rd.open_zarr("x.zarr")
    return x.moduli.bits, x.signed


# ---- moduli that nobody told ------------------------------------------------------------------------------


def test_moduli_are_chosen_by_the_numbers() -> None:
    assert imported("".join(f"{k}\n" for k in range(1000))) == list(range(1000))
    assert system() == (33, False)  # one modulus, 2**32
    assert imported("1\n-3\n") == [1, -3]
    assert system() == (33, True)
    values = [2**32 - 1, 0]
    assert imported("".join(f"{v}\n" for v in values)) == values
    assert system() == (33, False)
    values = [2**32, 1]
    assert imported("".join(f"{v}\n" for v in values)) == values
    assert system()[0] == 64
    printed = succeed("import", "n", "x.zarr", "--overwrite", "--signed")
    assert "signed" in printed.splitlines()[0]
    assert system()[1]
    told = json.loads(succeed("import", "n", "x.zarr", "--overwrite", "--json"))
    assert (told["bits"], told["signed"]) == (64, False)
    assert imported("5\n-300\n", "--positional") == [5, -300]
    assert rd.open_zarr("x.zarr").system == rd.Positional(10, signed=True)


def test_the_range_of_any_lines() -> None:
    """The first pass agrees with Python, however lines are written and reads end."""
    rng = Random(5)
    for _ in range(60):
        values = [rng.randrange(-(10**k), 10**k) for k in rng.choices(range(1, 30), k=rng.randrange(1, 40))]
        values = [abs(v) for v in values] if rng.random() < 0.3 else values
        forms = rng.choice(
            [[str], [str, lambda v: f"{v:+d}", hex, lambda v: f" {v}\t", lambda v: f"{v:040d}"]]
        )
        end = rng.choice(["\n", "\r\n"])
        text = end.join(rng.choice(forms)(v) for v in values) + rng.choice(["", end, end + end])
        text = rng.choice(["", "\ufeff", "value" + end]) + text

        class Slow(io.BytesIO):
            def read(self, _size: int | None = -1, /) -> bytes:
                return super().read(rng.randrange(1, 50))

        found = range_of_lines(Slow(text.encode()), "n")
        assert (found.lowest, found.highest) == (min(0, *values), max(0, *values)), text


@pytest.mark.parametrize("packed", [True, *slow(False)])
def test_a_pipe_is_read_once_and_kept_in_no_file(packed: bool) -> None:
    text = "".join(f"{k**5}\n" for k in range(5000)).encode()
    done = subprocess.run(
        [*COMMAND, "import", "-", "x.zarr"],
        input=gzip.compress(text) if packed else text,
        check=True,
        capture_output=True,
    )
    assert b"5000 integers" in done.stdout
    assert rd.open_zarr("x.zarr").to_ints().tolist() == [k**5 for k in range(5000)]
    assert [path.name for path in Path().iterdir()] == ["x.zarr"]


def test_a_missing_file_is_told_before_all_else() -> None:
    for options in ([], ["--bits", 64], ["--strict", "--binary", 8], ["--modulus-bits", 9]):
        assert fail("import", "none.txt", "x.npy", *options) == "none.txt: No such file or directory"
    assert "no such file or Zarr array" in fail("import", "none.npy", "x.zarr", "--residues")
    rd.from_ints([1]).to_zarr("x.zarr")
    Path("n").write_text("1\n")
    assert "it exists" in fail("import", "n", "x.zarr")


def test_what_no_first_pass_forgives() -> None:
    """Wrong lines are told by their number, whatever was found of the range before."""
    for text, message in (
        ("1\n1e5\n", "n:2: '1e5' is not an integer"),
        ("1\n--5\n", "n:2: '--5' is not an integer"),
        ("1\n-\n", "n:2: '-' is not an integer"),
        ("1_000\n", "n:1: '1_000' is not an integer"),
        ("7\n\n8\nx" + "1" * 5000 + "\n9\n", "n:4: "),
        ("7\nno number, but a line of text\n", "n:2: 'no number, but a line of text' is not an integer"),
        ("7\n" + "no number " * 5000, "n:2: 'no number no number"),
        ("", "n: it is empty"),
        ("# nothing\n\n", "n: it is empty"),
    ):
        assert refused(text).startswith(message), text
    assert imported("+5\n-0\n007\n" + "0" * 50 + "9\n") == [5, 0, 7, 9]
    assert system() == (33, False)
    assert refused("1\n300\n", "--bits", 8, "--modulus-bits", 8).startswith("n:2: ")
    assert refused("1\n-3\n", "--bits", 8).startswith("n:2: -3 is not in the range of 0 to")


def test_records_and_matrices_choose_too() -> None:
    values = [1, 2**40, 2**63 + 5]
    assert imported(np.array(values, np.uint64).tobytes(), "--binary", 8) == values
    assert system()[0] == 64
    signed = [-5, 7]
    assert imported(np.array(signed, np.int16).tobytes(), "--binary", 2, "--signed") == signed
    matrix = "%%MatrixMarket matrix coordinate integer skew-symmetric\n% a\n2 2 1\n2 1 70000000000\n"
    assert imported(matrix) == [[0, -70000000000], [70000000000, 0]]
    assert system() == (64, True)


# ---- comments, columns, hexadecimal -----------------------------------------------------------------------


def test_comments() -> None:
    text = "# A000001\n1 # one\r\n\n  # " + "long " * 50_000 + "\n2#\n#3\n4"
    assert imported(text) == [1, 2, 4]
    assert imported(text, "--bits", 64) == [1, 2, 4]
    assert refused(text, "--strict", "--bits", 64).startswith("n:1: '# A000001' is not an integer")
    assert refused("# a\n\n1 # x\n2 3 # y\n").startswith("n:4: '2 3' is not an integer")


def test_columns_of_a_b_file() -> None:
    text = "# A000796\n\n1 3\n2   1 # the second\n3\t-4\n"
    assert imported(text, "--column", 2) == [3, 1, -4]
    assert imported(text, "--column", "1", "--bits", 64) == [1, 2, 3]
    assert refused(text + "4\n", "--column", 2).startswith("n:6: the line has 1 column, column 2 is number 2")
    assert "no column is called 'a(n)'" in refused(text, "--column", "a(n)")
    assert imported("n a(n)\n0 1\n1 2\n", "--column", "a(n)") == [1, 2]
    message = refused("1 3\n")
    assert message.startswith("n:1: '1 3' is not an integer")
    assert "--column" in message


@pytest.mark.parametrize("column", ["0", "00", "0" * 12])
def test_columns_are_counted_from_one(column: str) -> None:
    assert "columns are counted from 1" in refused("a,b\n1,2\n", "--column", column)
    assert imported("a,b\n1,2\n", "--column", "0" * 12 + "1") == [1]
    assert imported("0,b\n1,2\n", "--column", "b") == [2]


@pytest.mark.parametrize("text", ["1,2\r3,4\r", "1 2\r3 4\r", 'a,b\r1,"2"\r', "5,6\n1,2\r3,4\n"])
@pytest.mark.parametrize("column", ["1", "2"])
def test_lone_carriage_returns_end_no_line_and_hide_none(text: str, column: str) -> None:
    message = refused(text, "--column", column)
    assert message.startswith(f"n:{text.count(chr(10)) or 1}: a carriage return")
    assert imported('1,"2\r"\r\n"3\r",4\r\r\n', "--column", column) == [int(column), int(column) + 2]


def test_bytes_of_a_file_with_columns_are_those_of_the_file() -> None:
    Path("b.txt").write_text("# A000041\n0 1\n1 1\n")
    found = json.loads(succeed("import", "b.txt", "x.zarr", "--column", "2", "--json"))
    assert found["bytes_read"] == Path("b.txt").stat().st_size


@pytest.mark.parametrize(("separator", "end"), [(",", "\r\n"), (";", "\n"), ("\t", "\r\n")])
def test_columns_of_csv(separator: str, end: str) -> None:
    """Files of Python's csv, with quotation marks and lines in fields, names and a byte order mark."""
    rows = [[f"a {separator} b", "5", 'he said "7"'], ["two\nlines", "-12", ""], ["x#", str(10**70), "1"]]
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, lineterminator=end).writerows([["na,me", "a(n)", "n;\t,"], *rows])
    text = "\ufeff" + stream.getvalue()
    for column in ("a(n)", "2"):
        assert imported(text, "--column", column) == [5, -12, 10**70]
    quoted = io.StringIO()
    writer = csv.writer(quoted, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows(rows)
    assert imported(f"#{separator}7{end}" + quoted.getvalue(), "--column", 2) == [5, -12, 10**70]
    broken = text.replace(str(10**70), "1.5")
    assert refused(broken, "--column", 2).startswith("n:5: '1.5' is not an integer")
    assert refused(text.replace("-12", ""), "--column", 2).startswith("n:4: column 2 is empty")
    assert refused(text + '3,"4', "--column", 2).startswith("n:6: a quotation mark is not closed")
    twice = f"a{separator}a{end}1{separator}2"
    assert "several columns are called 'a'" in refused(twice, "--column", "a")
    comment = f"#{separator}2{separator}{end}"  # or is it a row?
    assert "n:6: the line begins with #, as a comment, and has 3 columns" in refused(
        text + comment, "--column", 2
    )
    assert imported(text + f"# no row{end}", "--column", 2) == [5, -12, 10**70]
    stray = f'5" disc{separator}10{end}6" disc{separator}20{end}'
    assert "quotation marks are around whole fields" in refused(stray, "--column", 2)
    assert refused(text, "--column", 4).startswith("n:1: the line has 3 columns, column 4 is number 4")


def test_no_number_is_taken_for_a_name() -> None:
    for first in ("1.5", "1e5", ".5", "-7x", "+"):
        assert refused(f"{first} a\n2 b\n", "--column", 1).startswith(f"n:1: '{first}' is not an integer")
    assert imported("ff;a\nab;b\n", "--column", 1, "--hex") == [255, 0xAB]
    assert refused("name\nab\n", "--column", 1, "--hex").startswith("n:1: 'name' is not an integer")
    assert imported('a b"\n5" 7\n', "--column", 2) == [7]  # spaces part columns, and quote nothing
    assert "a quotation mark is not closed" in refused('"a b\n5" 7\n', "--column", 2)


def test_long_columns_take_the_quick_way() -> None:
    """Lines of several reads, and one far behind that is wrong."""
    lines = [f"{k},{k**3},x" for k in range(60_000)]
    assert imported("n,cube,c\n" + "\n".join(lines), "--column", "cube") == [k**3 for k in range(60_000)]
    lines[50_000] = "50000"
    assert refused("n,cube,c\n" + "\n".join(lines), "--column", "cube").startswith("n:50002: the line has 1 ")


def test_hexadecimal_without_a_prefix() -> None:
    long = "f" * 400
    assert imported(f"ff\r\n-0x10\n+1e5 # c\n\nDEAD\n{long}\n10", "--hex") == [
        255,
        -16,
        0x1E5,
        0xDEAD,
        int(long, 16),
        16,
    ]
    assert imported("n,v\n1,ff\n", "--hex", "--column", "v", "--bits", 64) == [255]
    assert imported("10\n0xA\n", "--hex", "--strict") == [16, 10]
    assert refused("10\nA#1\n", "--hex", "--strict").startswith("n:2: 'A#1' is not an integer")
    assert refused("ff\nfg\n", "--hex").startswith("n:2: 'fg' is not an integer")
    assert refused("10\n0x\n", "--hex", "--bits", 64).startswith("n:2: '0x' is not an integer")
    message = fail("import", "n", "y.zarr", "--hex", "--binary", 8, status=2)
    assert "--column and --hex exclude" in message


# ---- NumPy and Parquet files ------------------------------------------------------------------------------


def saved(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["i1", ">i2", "<u4", ">i8", "<u8"])
def test_numpy_files(kind: str) -> None:
    limits = np.iinfo(kind)
    array = np.array([[limits.min, 0, 5], [limits.max, 1, 7]], dtype=kind)
    for data in (saved(array), saved(np.asfortranarray(array)), gzip.compress(saved(array))):
        for options in ([], ["--bits", 70, "--signed"], ["--positional"]):
            assert imported(data, *options) == array.tolist()
        assert imported(data, "--primes", "97,193") == (array.astype(object) % (97 * 193)).tolist()
    assert imported(saved(array), "--shape", "6") == array.ravel().tolist()


def test_numpy_files_that_are_refused() -> None:
    for array, message in (
        (np.array([1.0]), "type float64; import reads integers"),
        (np.array([True]), "type bool; import reads integers"),
        (np.array([2**70], dtype=object), "type object; import reads integers"),
    ):
        assert message in refused(saved(array))
    assert "the header of its NumPy file is damaged" in refused(saved(np.arange(5))[:40])
    assert "is not a multiple of the width" in refused(saved(np.arange(5))[:-3])
    assert "shape (5,) takes 5 integers, it holds 4" in refused(saved(np.arange(5))[:-8])
    assert "n: index 1: -3 is not in the range of 0 to" in refused(saved(np.array([1, -3])), "--bits", 8)
    for option in (["--hex"], ["--column", 1], ["--strict"]):
        assert "is about text, and n is a NumPy file" in fail("import", "n", "y.zarr", *option, status=2)


@pytest.mark.parametrize("name", ["out.npy", "out.csv", "out.parquet", "out.txt", "out.txt.gz"])
def test_what_export_writes_comes_back(name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    several = name.endswith("npy")
    values = [[1, -(2**62)], [3, 5]] if several else [0, -5, *(10**k + k for k in range(0, 90, 7))]
    rd.from_ints(values).to_zarr("x.zarr")
    succeed("export", "x.zarr", name)
    succeed("import", name, "y.zarr")
    assert rd.open_zarr("y.zarr").to_ints().tolist() == values


def test_columns_of_parquet() -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    from decimal import Decimal

    count = 40_000
    table = pa.table(
        {
            "small": pa.array(range(-5, count - 5), pa.int32()),
            "decimal": pa.array([Decimal(10**30 + k) for k in range(count)], pa.decimal128(38, 0)),
            "wide": pa.array([Decimal(-(10**60)), *map(Decimal, range(count - 1))], pa.decimal256(70, 0)),
            "text": [str(3**k) if k < 200 else hex(k) for k in range(count)],
            "float": pa.array([0.5] * count),
            "holes": pa.array([None if k == 33_000 else k for k in range(count)], pa.int64()),
            "junk": ["1e5" if k == 33_000 else "1" for k in range(count)],
        }
    )
    pq.write_table(table, "n", row_group_size=9_000)
    data = Path("n").read_bytes()
    assert imported(data, "--column", "small") == list(range(-5, count - 5))
    assert imported(data, "--column", "2") == [10**30 + k for k in range(count)]
    assert imported(data, "--column", "wide", "--bits", 300, "--signed") == [-(10**60), *range(count - 1)]
    texts = [3**k if k < 200 else k for k in range(count)]
    assert imported(data, "--column", "text") == texts
    assert imported(data, "--column", "text", "--primes", "97,193") == [v % (97 * 193) for v in texts]
    result = CliRunner().invoke(
        main, ["import", "-", "z.zarr", "--column", "small", "--bits", "64", "--signed"], data
    )
    assert result.exit_code == 0, result.output
    assert "--column chooses one of 'small', 'decimal'" in refused(data)
    assert "no column 'none'" in refused(data, "--column", "none")
    assert "column 'float': values must be integers" in refused(data, "--column", "float")
    for options in ([], ["--bits", 64]):
        assert refused(data, "--column", "holes", *options).startswith(
            "n: column 'holes', row 33001: the value"
        )
        assert refused(data, "--column", "junk", *options).startswith(
            "n: column 'junk', row 33001: '1e5' is not"
        )
    assert refused(data, "--column", "small", "--bits", 64).startswith(
        "n: column 'small', row 1: -5 is not in"
    )
    assert imported(gzip.compress(data), "--column", "small")[-1] == count - 6


def test_parquet_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = refused(b"PAR1\x15\x04\x150" + bytes(64) + b"PAR1")
    assert message == "n: reading Parquet needs pyarrow: pip install 'rnsdask[parquet]'"


# ---- fields -----------------------------------------------------------------------------------------------


def test_integers_become_elements_of_fields_beyond_32_bits() -> None:
    values = [5, -1, 10**50, -(3**100), 2**64 - 1, 2**32]
    primes = [2**64 - 59, 3, 2**32 + 15]
    fields, m = ("--primes", ",".join(map(str, primes))), math.prod(primes)
    expected = [v % m for v in values]
    text = "".join(f"{v}\n" for v in values)
    assert imported(text, *fields) == expected
    assert rd.open_zarr("x.zarr").system == rd.PrimeFields(primes)
    assert imported(text.replace("5\n", "0x5\n", 1), *fields) == expected
    records = b"".join(v.to_bytes(32, "little", signed=True) for v in values)
    assert imported(records, *fields, "--binary", 32, "--signed") == expected
    assert imported(saved(np.array([-1, 2**62])), *fields) == [m - 1, 2**62 % m]
    entries = "".join(f"{k} {k} {v}\n" for k, v in enumerate(values, 1))
    matrix = f"%%MatrixMarket matrix coordinate integer general\n6 6 6\n{entries}"
    found = np.array(imported(matrix, *fields, name="n.mtx"))
    assert np.diagonal(found).tolist() == expected
    assert np.count_nonzero(found) == len(values)


def test_integers_of_any_size_become_elements_of_fields() -> None:
    values = [5, -1, 10**50, -(3**100), 0]
    m = 97 * 193
    text = "".join(f"{v}\n" for v in values)
    assert imported(text, "--primes", "97,193") == [v % m for v in values]
    assert rd.open_zarr("x.zarr").system == rd.PrimeFields([97, 193])
    assert imported(text + "-0xffffffffffffffffffff\n", "--primes", "97, 193")[-1] == -(16**20 - 1) % m
    records = b"".join(v.to_bytes(32, "little", signed=True) for v in values)
    assert imported(records, "--primes", "97,193", "--binary", 32, "--signed") == [v % m for v in values]
    matrix = "%%MatrixMarket matrix array integer general\n2 1\n-1\n1000000000000\n"
    assert imported(matrix, "--primes", "97,193") == [[m - 1], [10**12 % m]]
    assert "fields exclude" in fail("import", "n", "y.zarr", "--primes", "97", "--positional", status=2)


def test_cyclic_convolution_from_raw_integers_to_printed_numbers() -> None:
    """The whole way by commands: import, transforms, products, the transform back, numbers as text."""
    rng = Random(3)
    length, bits = 64, 40
    a, b = ([rng.randrange(-(2**bits), 2**bits) for _ in range(length)] for _ in range(2))
    for name, values in (("a", a), ("b", b)):
        Path(f"{name}.txt").write_text("".join(f"{v}\n" for v in values))
    fields = ["--bits", 2 * bits + 8, "--ntt-length", length]  # 64 products of 80 bits, and a sign
    succeed("import", "a.txt", "a.zarr", *fields)
    succeed("import", "b.txt", "integers.zarr")
    succeed("convert", "integers.zarr", "-o", "b.zarr", "--to", "field", *fields)
    for name in ("a", "b"):
        succeed("ntt", f"{name}.zarr", "-o", f"{name}-hat.zarr")
    succeed("eval", "a*b", "a=a-hat.zarr", "b=b-hat.zarr", "-o", "c-hat.zarr")
    succeed("ntt", "c-hat.zarr", "-o", "c.zarr", "--inverse")
    succeed("convert", "c.zarr", "-o", "result.zarr", "--to", "rns", "--signed")
    expected = [sum(a[i] * b[(k - i) % length] for i in range(length)) for k in range(length)]
    assert [int(line) for line in succeed("export", "result.zarr", "-").split()] == expected
    printed = succeed("head", "result.zarr", "-n", 2)
    assert printed == f"0\t{expected[0]}\n1\t{expected[1]}\n"
    product = rd.open_zarr("c.zarr").moduli.product
    assert succeed("export", "c.zarr", "-").split() == [str(v % product) for v in expected]
    assert succeed("head", "c.zarr", "-n", 1) == f"0\t{expected[0] % product}\n"
    assert "elements of prime fields" in succeed("info", "c.zarr")
    for name in ("c.npy", "c.parquet", "c.csv"):
        if name == "c.parquet":
            pytest.importorskip("pyarrow")
        if name == "c.npy":
            assert "neither int64 nor uint64" in fail("export", "c.zarr", name)
            continue
        succeed("export", "c.zarr", name)
        succeed("import", name, "again.zarr", *fields, "--overwrite")
        assert succeed("export", "again.zarr", "-") == succeed("export", "c.zarr", "-")


def test_what_fields_do_not_have() -> None:
    succeed("random", "f.zarr", "--count", 8, "--primes", "97,193", "--seed", 1)
    rd.from_ints([1, 2]).to_zarr("x.zarr")
    of_max = ("eval", "a*a", "a=f.zarr", "--max")
    assert "max is for integers, and these are elements of fields" in fail(*of_max, status=2)
    extended = ("eval", "a*a", "a=f.zarr", "-o", "o.zarr", "--extend")
    assert "--extend is for residues" in fail(*extended, status=2)
    assert "rnsdask convert SRC -o DST --to rns" in fail("max", "f.zarr")
    mixed = ("eval", "a + b", "a=f.zarr", "b=x.zarr", "-o", "o.zarr")
    assert "do not mix" in fail(*mixed, status=2)
    for options in (["--to", "field"], ["--to", "rns", "--primes", "97"]):
        assert "--to field goes with --primes" in fail(
            "convert", "x.zarr", "-o", "o.zarr", *options, status=2
        )
    assert "its integers" not in fail("convert", "f.zarr", "-o", "o.zarr", "--to", "interval", status=2)
    succeed("convert", "f.zarr", "-o", "x2.zarr", "--to", "rns")
    assert succeed("export", "x2.zarr", "-") == succeed("export", "f.zarr", "-")
