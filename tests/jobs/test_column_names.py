"""The first line of text in columns: names or a row, by labels that people gave to fields."""

import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from commands import as_json, fail, succeed, values_in

import rnsdask as rd
from rnsdask.core.errors import InputError
from rnsdask.jobs.input_forms import Allowed, TextForm

pytestmark = pytest.mark.usefixtures("in_empty_folder")

SYSTEM = rd.RNS(rd.ModuliSet.for_bits(64), signed=True)

NAMES = [
    "alice",
    "price_usd",
    "a(n)",
    "Größe",
    "名前",
    "a b",
    "-x",
    "fee",
    "$ amount",
    "% of all",
    "Value (in £)",
]
"""Fields that nobody takes for a value."""

NUMBERS = {"5": 5, "-7": -7, "+3": 3, "0x1F": 31, "2023": 2023, "007": 7}
"""Integers; a name that is a year cannot be told from one."""

DOUBTFUL = [
    *("$5", "(5)", "'5'", "- 5", "\u22125", "NaN", "\u00a05", "5\u00a0", "\u00a0", "５", "5.0", "1e5", ".5"),
    *(
        "5 EUR",
        "EUR 5",
        "x5",
        "ff0",
        "1 000",
        "1_000",
        "1'000",
        "½",
        "五",
        "-",
        "?",
        "--",
        "n/a",
        "N/A",
        "<NA>",
    ),
    *("null", "None", "-inf", "TRUE", "\\N", "5%", "\u200b5", "٣", "²", "0x", "Type 1"),
]
"""Fields that are no integers, and that someone may have meant as a value."""

OPTIONS = (None, True, False)


def read(text: str, column: str, **how: Any) -> tuple[list[int], list[str]] | str:
    """Integers of a column and the names, or the error."""
    form = TextForm(column=column, **how)
    data = text.encode()
    try:
        form.range_of(io.BytesIO(data), "n")
        reader = form.reader(io.BytesIO(data), "n", Allowed(SYSTEM))
        found: list[int] = []
        while batch := reader.read(100):
            found += map(batch.value, range(len(batch)))  # type: ignore[attr-defined]
    except InputError as error:
        return str(error)
    return found, reader.names


def line(*fields: str, separator: str = ",") -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, lineterminator="\n").writerow(fields)
    return stream.getvalue()


def is_right(field: str, other: str, header: bool | None, found: Any) -> bool:
    """Judge what was read of a first line with a field of the column and another, before a line of 6."""
    labels = [other in ("", *NAMES), field in NAMES]
    if header or (header is None and all(labels)):
        return bool(found[0] == [6] and sorted(found[1]) == sorted((field, other)))
    if field in NUMBERS:
        return bool(found == ([NUMBERS[field], 6], []))
    way = "; header=True says that the first line has names"
    return isinstance(found, str) and found.startswith("n:1: ") and found.endswith(way) == (header is None)


def test_first_lines() -> None:
    """No first line is lost that has a value in any column."""
    fields = [*NAMES, *NUMBERS, *DOUBTFUL, ""]
    few = [*NAMES[:2], "5", "$5", "NaN", ""]
    styles = itertools.cycle(itertools.product(",;\t", ("\n", "\r\n"), ("", "\ufeff")))
    for field, other in sorted({*itertools.product(fields, few), *itertools.product(few, fields)}):
        for header, column in itertools.product(OPTIONS, ("1", "2")):
            pair, last = ((field, other), ("6", "x")) if column == "1" else ((other, field), ("x", "6"))
            separator, end, mark = next(styles)
            text = mark + (line(*pair, separator=separator) + line(*last, separator=separator))
            found = read(text.replace("\n", end), column, header=header)
            assert is_right(field, other, header, found), (text, column, header, found)


@pytest.mark.parametrize("field", DOUBTFUL)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_order_does_not_matter(field: str, place: int) -> None:
    """A row is an error wherever it stands, or nowhere."""
    row = ["bob", "bob", "bob"]
    row[place] = field
    good = ["ann", "ann", "ann"]
    good[place] = "6"
    column = str(place + 1)
    for first, last in ((row, good), (good, row)):
        assert isinstance(read(line(*first) + line(*last), column), str)


def test_programs_that_write_tables() -> None:
    pandas = ",value\n0,5\n1,6\n"
    assert read(pandas, "2") == ([5, 6], ["", "value"])
    assert read(pandas, "value") == ([5, 6], ["", "value"])
    assert "n:1: column 1 is empty; header=True says" in read(pandas, "1")
    assert read(pandas, "1", header=True) == ([0, 1], ["", "value"])
    assert read("index,value\n0,5\n", "1") == ([0], ["index", "value"])
    # pandas' names without names, years and other numbers are values, unless it is told.
    assert read("year,2023\nx,6\n", "2") == ([2023, 6], [])
    assert read("year,2023\nx,6\n", "2", header=True) == ([6], ["year", "2023"])
    assert "column 2023 is number 2023; the one called '2023' is number 2" in read("year,2023\nx,6\n", "2023")
    assert read('"id","a(n)"\n"1","5"\n', "2") == ([5], ["id", "a(n)"])
    assert read('"two\nlines",value\n"x\ny",5\n', "2") == ([5], ["two lines", "value"])
    assert read("# by a program\n\nid;value\n1;5\n", "2") == ([5], ["id", "value"])
    assert read("n a(n)\n1 5\n", "2") == ([5], ["n", "a(n)"])
    assert read("1 5\n2 6\n", "2", header=True) == ([6], ["1", "5"])


@pytest.mark.parametrize("header", OPTIONS)
def test_a_row_called_value(header: bool | None) -> None:
    """The line that export writes first is passed over in text without columns alone."""
    found = read("1,value\n2,6\n", "2", header=header)
    assert found == ([6], ["1", "value"]) if header else str(found).startswith("n:1: 'value' is not an")
    assert "n:2: 'value' is not" in read(
        "x,y\n1,value\n2,6\n", "2", header=None if header is False else header
    )


def test_files_of_names_and_of_one_line() -> None:
    for text in ("alice\n", "alice"):
        Path("n").write_text(text)
        message = fail("import", "n", "x.zarr", "--column", 1)
        assert message == "n: it is empty but for names, ['alice']; at least one integer was expected"
    Path("n").write_text("alice\nbob\n")
    assert fail("import", "n", "x.zarr", "--column", 1).startswith("n:2: 'bob' is not an integer")
    Path("n").write_text("7")
    succeed("import", "n", "x.zarr", "--column", 1)
    assert values_in("x.zarr") == [7]
    assert "it is empty but for names" in fail("import", "n", "y.zarr", "--column", 1, "--header")


# ---- comments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("column", ["1", "2"])
def test_a_row_that_begins_as_a_comment_is_an_error_in_any_order(separator: str, column: str) -> None:
    for hidden in (("#red", "5"), ("# 4", "red"), (" #red", ""), ("#5", "5")):
        rows = [separator.join(hidden), separator.join(("6", "7"))]
        errors = []
        for order in (rows, rows[::-1], ["", *rows], ["# text", *rows]):
            found = read("\n".join(order) + "\n", column)
            at = order.index(rows[0]) + 1
            if hidden == (" #red", "") and column == "1" and order[-1] != rows[0]:
                continue  # names, for all that is known before
            assert isinstance(found, str), (order, found)
            assert found.startswith(f"n:{at}: the line begins with #, as a comment, and has 2 columns"), found
            errors.append(found.partition(": ")[2])
        assert len(set(errors)) == 1


def test_comments_that_hide_no_row() -> None:
    assert read("# a,b\n1,5\n2,6\n", "2") == ([5, 6], [])  # as np.savetxt writes names
    assert read("#CHROM\tPOS\n1\t5\n", "2") == ([5], [])
    assert read("# 1, 2, 3\n1,5\n", "2") == ([5], [])
    assert read("# made in 2023\n1 5\n#2 6\n", "2") == ([5], [])
    assert "n:1: the line begins with #" in read("# a,b\n1,5\n", "2", header=True)
    assert "n:1: the line begins with #" in read("#red,5\nname,value\nblue,6\n", "value")


# ---- options ----------------------------------------------------------------------------------------------


def test_what_was_taken_for_names_is_told() -> None:
    Path("n").write_text("name,value\nx,5\n")
    for options in (["--column", 2], ["--column", "value"], ["--column", 2, "--header"]):
        told = succeed("import", "n", "x.zarr", "--overwrite", *options)
        assert told.splitlines()[-1] == "  names in its first line: 'name', 'value'"
        assert as_json("import", "n", "x.zarr", "--overwrite", *options)["names"] == ["name", "value"]
        assert values_in("x.zarr") == [5]
    message = fail("import", "n", "y.zarr", "--column", 2, "--no-header")
    assert message == "n:1: 'value' is not an integer (decimal, or hexadecimal after 0x)"
    Path("n").write_text("x,4\nx,5\n")
    assert "names" not in succeed("import", "n", "x.zarr", "--overwrite", "--column", 2)
    assert "names" not in json.loads(succeed("import", "n", "x.zarr", "--overwrite", "--column", 2, "--json"))
    succeed("import", "n", "x.zarr", "--overwrite", "--column", 2, "--header")
    assert values_in("x.zarr") == [5]
    Path("n").write_text("value\n5\n")
    assert succeed("import", "n", "x.zarr", "--overwrite").endswith("  names in its first line: 'value'\n")
    Path("n").write_text(",".join(f"c{'x' * k}" for k in range(40)) + "\n" + ",".join("1" * 40) + "\n")
    assert succeed("import", "n", "x.zarr", "--overwrite", "--column", "c").endswith(", ...\n")


def test_options_that_contradict() -> None:
    Path("n").write_text("name,value\nx,5\n")
    for options in (["--header"], ["--no-header"]):
        assert "of which --column chooses one" in fail("import", "n", "x.zarr", *options, status=2)
    message = fail("import", "n", "x.zarr", "--column", "value", "--no-header", status=2)
    assert (
        message
        == "--column 'value' is a name, and --no-header says that there are none (see rnsdask import --help)"
    )
    Path("n").write_text("alice,\nbob,6\n")
    message = fail("import", "n", "x.zarr", "--column", 2)
    assert message == "n:1: column 2 is empty; --header says that the first line has names"


def test_hexadecimal_columns() -> None:
    assert read("n;ff\n1;10\n", "2", hexadecimal=True) == ([255, 16], [])
    assert read("n;ff\n1;10\n", "2", hexadecimal=True, header=True) == ([16], ["n", "ff"])
    found = read("n;value\n1;10\n", "2", hexadecimal=True)
    assert str(found).startswith("n:1: 'value' is not an integer")


def test_strict_columns() -> None:
    """Nothing is passed over that nobody told; line k is the number of index k - 1, without names."""
    assert read("1,5\n2,-6\n", "2", strict=True) == ([5, -6], [])
    assert read("1,5\r\n2,6", "2", strict=True) == ([5, 6], [])
    assert read('"a\nb","5"\n"c, 1",6\n', "2", strict=True) == ([5, 6], [])
    assert read("name,value\n2,6\n", "value", strict=True) == ([6], ["name", "value"])
    assert read("name,value\n2,6\n", "2", strict=True, header=True) == ([6], ["name", "value"])
    for text, message in (
        ("name,value\n2,6\n", "n:1: 'value' is not an integer"),
        ("1,5\n\n2,6\n", "n:2: empty line"),
        ("\n1,5\n", "n:1: empty line"),
        ("1, 5\n", "n:1: ' 5' is not"),
        ("1,5\n2,6 \n", "n:2: '6 ' is not"),
        ('1,5\n2," 6"\n', "n:2: ' 6' is not"),
        ("1,5\n2,\n", "n:2: column 2 is empty"),
        ("1,5\n2,6#x\n", "n:2: '6#x' is not"),
        ("1,5\n# 2,6\n", "n:2: the line begins with #, as a comment, where reading is strict"),
        ("# text\n1,5\n", "n:1: the line begins with #"),
        ("#red,5\nblue,6\n", "n:1: the line begins with #"),
        ("\ufeff1,5\n", "n:1: a byte order mark is before the first field, where reading is strict"),
    ):
        assert str(read(text, "2", strict=True)).startswith(message), text
    Path("n").write_text("#red,5\n")
    message = fail("import", "n", "x.zarr", "--column", 2, "--strict")
    assert message == "n:1: the line begins with #, as a comment, which --strict refuses"
    Path("n").write_text("name,value\nred,5\n")
    succeed("import", "n", "x.zarr", "--column", "value", "--strict")
    assert values_in("x.zarr") == [5]
