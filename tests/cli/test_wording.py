"""Ways out that errors name: Python's in Python, options and commands on the command line."""

import ast
import re
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import zarr
from commands import call as run
from commands import fail

import rnsdask as rd
from rnsdask import store
from rnsdask.cli import main, wording
from rnsdask.cluster.failures import describe
from rnsdask.core.files import new_file
from rnsdask.core.layout import ChunkPlan, check_consecutive
from rnsdask.core.ways import Conversion, Kind, Setting, Way

PACKAGE = Path(rd.__file__).parent
OF_COMMANDS = re.compile(r"(?<![\w-])--[a-z]|\brnsdask [a-z]+ (SRC|STORE|DST|--)")
OF_PYTHON = re.compile(
    r"\b\w+=(True|False|None|\"|')|\b(x|rd|np|numpy)\.(?!zarr)\w+|\b(to|from)_\w+\(|\b\w+Arrays?\b|\b\w+= is"
)


def messages(folder: Path) -> Iterator[tuple[str, str]]:
    """Place and text of each literal of several words that is no docstring and no help text."""
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text())
        skipped: set[ast.AST] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                skipped.add(node.value)
            if isinstance(node, ast.JoinedStr):
                skipped |= set(node.values)
            if isinstance(node, ast.keyword) and node.arg == "help":
                skipped |= set(ast.walk(node.value))
        for node in ast.walk(tree):
            if node in skipped:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
                text = "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            if " " in text:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", text


Texts = list[tuple[str, str]]

OF_THE_TERMINAL = ("cli/", "doctor/")
"""Packages that only commands use."""


@pytest.fixture(scope="module")
def texts() -> Texts:
    """Place and text of each message of the package."""
    return list(messages(PACKAGE))


def test_messages_of_the_package_name_no_options(texts: Texts) -> None:
    own = [text for place, text in texts if not place.startswith(OF_THE_TERMINAL)]
    assert len(own) > 500
    found = [text for text in own if OF_COMMANDS.search(text)]
    # It is for that command only, which nothing in Python does.
    assert [text for text in found if not text.startswith("the command that began it goes on with")] == []


def test_messages_of_commands_name_no_parameters(texts: Texts) -> None:
    own = [(place, text) for place, text in texts if place.startswith("cli/")]
    own = [(place, text) for place, text in own if not place.startswith("cli/wording.py")]
    assert len(own) > 50
    assert [found for found in own if OF_PYTHON.search(found[1])] == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of stores of each kind, of incomplete arrays, and of a file."""
    folder = tmp_path_factory.mktemp("stores")
    x = rd.from_ints([[1, 2], [3, 4]], MODULI)
    made = {
        "x": x,
        "columns": x.rechunk((2, 1)),
        "p": x.to_positional(64),
        "q": x.to_positional(100),
        "i": rd.IntervalRNSArray.from_rns(x),
        "f": rd.from_ints([[1, 2], [3, 4]], rd.PrimeFields([7, 11])),
        "o": rd.from_ints([[1, 2], [3, 4]], rd.ModuliSet.for_bits(200)),
        "s": rd.from_ints([[1, 2], [3, 4]], MODULI, True),
        "full": rd.from_residues(x.words, MODULI).with_bound(None),
    }
    for name, array in made.items():
        array.to_zarr(folder / f"{name}.zarr")
    store.create(folder / "begun.zarr", x.system, (2,), chunks=1)
    store.create_plain(folder / "mask.zarr", (2,), (1,), np.dtype(bool))
    zarr.create_array(folder / "plain.zarr", shape=(3,), dtype="int64")
    (folder / "taken.txt").touch()
    return folder


@pytest.fixture(autouse=True)
def _in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


MODULI = rd.ModuliSet.for_bits(64)

# The same error, told in Python and by a command: what each must say.
BOTH: dict[str, tuple[Callable[[], Any], str, str, str]] = {
    "exists": (
        lambda: rd.open_zarr("x.zarr").to_zarr("p.zarr"),
        "random p.zarr --bits 64 --count 3",
        "p.zarr: it exists; replace it with overwrite=True",
        "p.zarr: it exists; replace it with --overwrite",
    ),
    "exists, of intervals": (
        lambda: rd.open_zarr("i.zarr").rechunk(1).to_zarr("i.zarr"),
        "convert x.zarr -o i.zarr --to interval",
        "i.zarr: it exists; replace it with overwrite=True",
        "i.zarr: it exists; replace it with --overwrite",
    ),
    "exists, of a result": (
        lambda: rd.open_zarr("x.zarr").to_zarr("x.zarr"),
        "det x.zarr -o p.zarr",
        "it exists; replace it with overwrite=True",
        "it exists; replace it with --overwrite",
    ),
    "exists, of a file": (
        lambda: new_file(Path("taken.txt")).__enter__(),
        "export x.zarr taken.txt",
        "taken.txt: it exists; replace it with overwrite=True",
        "taken.txt: it exists; replace it with --overwrite",
    ),
    "incomplete": (
        lambda: rd.open_zarr("begun.zarr"),
        "sum begun.zarr",
        "did not finish; write it anew with overwrite=True",
        "did not finish; write the rest with --resume, or all of it anew with --overwrite",
    ),
    "incomplete, of a mask": (
        lambda: store.open_plain("mask.zarr"),
        "eval where(m,a,0) a=x.zarr m=mask.zarr -o y",
        "did not finish; write it anew with overwrite=True",
        "did not finish; write the rest with --resume, or all of it anew with --overwrite",
    ),
    "elements of fields": (
        lambda: store.open_info("f.zarr"),
        "max f.zarr",
        "which this does not take; of the array, x.lift() makes integers",
        "which this does not take; rnsdask convert SRC -o DST --to rns makes integers",
    ),
    "fields and integers": (
        lambda: rd.linalg.solve(rd.open_zarr("f.zarr"), rd.open_zarr("x.zarr")),
        "solve f.zarr x.zarr",
        "do not mix; FieldArray.from_rns(x, fields) and lift() convert",
        "do not mix; rnsdask convert SRC -o DST --to field or --to rns makes them of one kind",
    ),
    "overflow": (
        lambda: (rd.open_zarr("x.zarr") ** 99).compute(),
        "eval a**99 a=x.zarr -o y",
        'x.extend(moduli) or overflow="extend" takes more moduli; overflow="wrap" or "flag", where it is '
        "taken, gives it modulo M",
        "rnsdask extend SRC -o DST, or eval --extend, takes more moduli; --overflow wrap or flag, where it "
        "is taken, gives it modulo M",
    ),
    "below 0": (
        lambda: (rd.open_zarr("full.zarr") - 9).compute(),
        "eval a-9 a=full.zarr -o z",
        'rd.IntervalRNSArray.from_rns(x) holds negative integers too, and overflow="extend", where it is '
        "taken, makes signed residues",
        "rnsdask convert SRC -o DST --to interval makes a store that holds them",
    ),
    "limbs below 0": (
        lambda: (rd.open_zarr("p.zarr") - 9).compute(),
        "eval a-9 a=p.zarr -o z",
        "x.to_positional(bits, signed=True) holds negative integers too",
        "rnsdask convert SRC -o DST --to positional --bits B --signed holds negative integers too",
    ),
    "no store of this package": (
        lambda: rd.open_zarr("plain.zarr"),
        "max plain.zarr",
        "it has no attribute 'rnsdask'; rd.from_ints(zarr.open_array(path)) reads an array of integers",
        "it has no attribute 'rnsdask'; in Python, rd.from_ints(zarr.open_array(path)) reads an array of "
        "integers",
    ),
    "overflow of limbs": (
        lambda: (rd.open_zarr("p.zarr") << 63).compute(),
        "eval a<<63 a=p.zarr -o z",
        'x.to_positional(bits) takes more bits; overflow="wrap" or "flag", where it is taken, gives it '
        "modulo a power of two",
        "rnsdask convert SRC -o DST --to positional --bits B takes more bits; --overflow wrap or flag, where "
        "it is taken, gives it modulo a power of two",
    ),
    "powers modulo more than M": (
        lambda: pow(rd.open_zarr("x.zarr"), 3, 10**30),
        "eval pow(a,3,10**30) a=x.zarr -o y",
        "x.extend(moduli) takes more moduli",
        "rnsdask extend SRC -o DST, or eval --extend, takes more moduli",
    ),
    "precisions": (
        lambda: rd.open_zarr("p.zarr") + rd.open_zarr("q.zarr"),
        "eval a+b a=p.zarr b=q.zarr -o y",
        "x.to_positional(bits) makes them alike",
        "rnsdask convert SRC -o DST --to positional --bits B makes them alike",
    ),
    "bits of residues": (
        lambda: rd.bitwise_count(rd.open_zarr("x.zarr")),
        "eval bitwise_count(a) a=x.zarr -o y",
        "x.to_positional(bits) makes limbs",
        "takes no store of residues: residues have no such operation; rnsdask convert SRC -o DST --to",
    ),
    "modular arithmetic of intervals": (
        lambda: rd.mod_add(rd.open_zarr("i.zarr"), 1, 5),
        "eval mod_add(a,1,5) a=i.zarr -o y",
        "no such operation; x.to_rns() makes an RNSArray",
        "rnsdask convert SRC -o DST --to rns makes a store of residues",
    ),
    "bits of intervals": (
        lambda: rd.open_zarr("i.zarr") & 3,
        "eval a&3 a=i.zarr -o y",
        "no such operation; x.to_positional(bits) makes limbs",
        "no such operation; rnsdask convert SRC -o DST --to positional --bits B makes limbs",
    ),
    "limbs where residues are needed": (
        lambda: rd.convolve(rd.open_zarr("p.zarr"), rd.open_zarr("p.zarr")),
        "convolve p.zarr p.zarr -o y",
        "x.to_rns(moduli) makes residues of its numbers",
        "rnsdask convert SRC -o DST --to rns makes residues of its numbers",
    ),
    "a store of limbs where residues are needed": (
        lambda: store.open_info("p.zarr"),
        "export --residues --moduli-list 3,5,7 p.zarr -",
        "x.to_rns(moduli) makes residues",
        "rnsdask convert SRC -o DST --to rns makes residues",
    ),
    "kinds that do not mix": (
        lambda: rd.open_zarr("x.zarr") + rd.open_zarr("i.zarr"),
        "eval a+b a=x.zarr b=i.zarr -o y",
        "IntervalRNSArray.from_rns(x) and to_rns() convert",
        "rnsdask convert SRC -o DST --to interval or --to rns makes them of one kind",
    ),
    "integers where elements are needed": (
        lambda: rd.ntt(rd.open_zarr("x.zarr")),
        "ntt x.zarr -o y",
        "rd.FieldArray.from_rns(x, fields) makes one",
        "rnsdask convert SRC -o DST --to field makes one",
    ),
    "moduli sets": (
        lambda: rd.open_zarr("x.zarr") + rd.open_zarr("o.zarr"),
        "eval a+b a=x.zarr b=o.zarr -o y",
        "; x.extend(y.moduli) makes them alike",
        "; rnsdask extend SRC -o DST makes them alike",
    ),
    "ranges": (
        lambda: rd.concatenate([rd.open_zarr("full.zarr"), rd.open_zarr("s.zarr")]),
        "concat full.zarr s.zarr -o y",
        "; x.with_bound(bound) of the unsigned one does",
        "; rnsdask bound STORE --write of the unsigned one may",
    ),
    "order of chunks": (
        lambda: check_consecutive("x.zarr", ChunkPlan((2, 2), (2, 1))),
        "export columns.zarr -",
        "x.rechunk(chunks) makes such an array",
        "rnsdask rechunk SRC -o DST --chunks N,... makes such an array",
    ),
}


@pytest.mark.parametrize("name", BOTH)
def test_ways_out(name: str) -> None:
    """An error names Python's way out in Python, and an option on the command line."""
    call, command, in_python, told = BOTH[name]
    with pytest.raises((TypeError, ValueError, ArithmeticError, rd.RNSError)) as caught:
        call()
    assert in_python in str(caught.value)
    assert not OF_COMMANDS.search(str(caught.value))
    words = command.split(" ")
    result = run(*words)
    message = result.stderr.removeprefix("rnsdask: error: ").rstrip("\n")
    assert result.exit_code in (1, 2)
    assert told in message, message
    assert not OF_PYTHON.search(re.sub(r"in Python, [^;]*", "", message)), message


def test_many_kinds_that_do_not_mix() -> None:
    message = fail("eval", "a+b+c", "a=x.zarr", "b=i.zarr", "c=p.zarr", "-o", "y", status=2)
    assert "a is a store of residues, and b is a store of intervals, which do not mix" in message


def test_a_log_speaks_of_options() -> None:
    fail("eval", "a**99", "a=x.zarr", "-o", "w", "--log-json", "log")
    assert "--overflow wrap or flag" in Path("log").read_text()
    assert "x.extend" not in Path("log").read_text()


def test_only_the_command_line_offers_its_debug_option() -> None:
    assert "--debug" not in describe(RuntimeError("x"))


def test_extend_of_nothing_to_extend() -> None:
    message = fail("eval", "a+1", "a=p.zarr", "-o", "y", "--extend", status=2)
    assert message.startswith(
        "--extend is for residues, and a holds none: limbs have no such operation; rnsdask convert SRC -o DST"
    )


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("moduli --bits 0", "--bits must be at least 1, got 0"),
        ("moduli --bits 64 --modulus-bits 40", "--modulus-bits must be from 2 to 32, got 40"),
        ("moduli --start 4 --count 3", "--start must be an odd integer from 3 to 2**32 - 1, got 4"),
        ("moduli --start 5 --count 0", "--count must be at least 1, got 0"),
        ("rechunk x.zarr -o y --chunks foo", "--chunks must be 'auto', a size such as '64MiB'"),
        (
            "convert x.zarr -o y --to positional --bits 1e9",
            "--bits must be from 1 to 1048576, got 1000000000",
        ),
        ("convolve f.zarr f.zarr -o y --overflow wrap", "so --overflow is not taken, got 'wrap'"),
        ("eval a*a a=f.zarr -o y --overflow wrap", "so --overflow is not taken, got 'wrap'"),
        ("eval a*a a=f.zarr -o y --overflow flag --mask m", "so --overflow is not taken, got 'flag'"),
        ("eval a*a a=f.zarr -o y --overflow raise", "so --overflow is not taken, got 'raise'"),
        (
            "compare x.zarr p.zarr",
            "x.zarr is a store of residues and p.zarr a store of limbs; rnsdask convert",
        ),
        ("eval a+b a=x.zarr b=f.zarr -o y", "do not mix; rnsdask convert SRC -o DST --to field or --to rns"),
        ("max f.zarr", "which this does not take; rnsdask convert SRC -o DST --to rns makes integers"),
        ("det p.zarr", "rnsdask convert SRC -o DST --to rns makes residues of its numbers"),
    ],
)
def test_parameters_and_types_are_options_and_stores(command: str, told: str) -> None:
    message = fail(*command.split(" "), status=1 if command.startswith("max") else 2)
    assert told in message
    assert message.count("in Python") <= 1


def members(kind: type[Enum]) -> set[str]:
    """Names of the members of an enumeration that sources of the package name, as in ``Way.EXTEND``."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if path.name not in ("ways.py", "wording.py"):
            found |= set(re.findall(rf"\b{kind.__name__}\.([A-Z_]+)\b", path.read_text()))
    return found


@pytest.mark.parametrize(
    ("kind", "words"), [(Way, wording.WAYS), (Conversion, wording.CONVERSIONS)], ids=["ways", "conversions"]
)
def test_the_command_line_has_words_for_each_way(kind: type[Enum], words: dict[Enum, str | None]) -> None:
    """One that has none, or that no message names any more, is an error."""
    assert list(words) == list(kind), "in the order of their declaration"
    assert members(kind) == set(kind.__members__)


def test_the_command_line_has_words_for_each_type() -> None:
    types = {"RNSArray", "IntervalRNSArray", "FieldArray", "PositionalArray"}
    assert set(wording.STORES) == types
    assert all(getattr(rd, name).__name__ == name for name in types)
    for name in types:
        for form, told in (
            ("", "a store of {}"),
            ("a", "a store of {}"),
            ("no", "no store of {}"),
            ("s", "stores of {}"),
        ):
            assert wording.words_of(Kind(name, form)) == told.format(wording.STORES[name])
    assert wording.words_of(Kind("Other", "a")) == "an Other"


def settings() -> Iterator[Setting]:
    """Parameters with their values that sources of the package name as ways out."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Setting":
                yield Setting(*map(literal, node.args))


def literal(node: ast.expr) -> Any:
    """The value of a literal; of what is computed some number."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return 2


def test_settings_are_options_of_commands() -> None:
    """Each is an option of some command, which takes its values."""
    found = list(settings())
    assert len(found) > 8
    for setting in found:
        if setting == Setting("overflow", "extend"):  # of functions in Python alone
            continue
        option = wording.words_of(setting).split()[0]
        params = [p for command in main.commands.values() for p in command.params if option in p.opts]
        assert params, setting
        assert any(p.is_flag == (setting.values == (True,)) for p in params if isinstance(p, click.Option))


WORDS = [
    *wording.WAYS.values(),
    *(f"rnsdask convert SRC -o DST {to}" for to in wording.CONVERSIONS.values() if to),
]


@pytest.mark.parametrize("words", WORDS)
def test_commands_and_options_of_ways_out_exist(words: str) -> None:
    """Each option is one of the command named before it, or of some command if none is."""
    taken = {
        name: {option for param in command.params for option in param.opts}
        for name, command in main.commands.items()
    }
    assert not words.startswith("--") or words.split()[0] in set().union(*taken.values())
    for clause in re.split("in Python, .*|, or |, then ", words):
        of = re.search(r"\b(?:rnsdask )?(" + "|".join(taken) + r") (?=SRC|STORE|FILE|--)", clause)
        options = set(re.findall(r"--[a-z][a-z-]*", clause))
        assert options <= (taken[of[1]] if of else set().union(*taken.values()))
        assert all(name in taken for name in re.findall(r"rnsdask (\w+)", clause))


@pytest.mark.parametrize(
    ("command", "way", "values"),
    [
        ("eval a&3 a=f.zarr -o y.zarr", "convert f.zarr -o l.zarr --to rns", [1, 2, 3, 0]),
        ("eval a//3 a=f.zarr -o y.zarr", "convert f.zarr -o l.zarr --to rns", [0, 0, 1, 1]),
    ],
)
def test_the_way_from_elements_works(command: str, way: str, values: list[int]) -> None:
    message = run(*command.split()).stderr
    assert "rnsdask convert SRC -o DST --to rns" in message
    run(*way.split(), "--overwrite")
    if "and of that --to positional --bits B" in message:
        run("convert", "l.zarr", "-o", "m.zarr", "--to", "positional", "--bits", "64", "--overwrite")
        Path("m.zarr").rename("l.zarr.new")
        command = command.replace("f.zarr", "l.zarr.new")
    run(*command.replace("f.zarr", "l.zarr").split(), "--overwrite")
    assert rd.open_zarr("y.zarr").to_ints().ravel().tolist() == values


@pytest.mark.parametrize(
    ("command", "told", "way"),
    [
        ("import n.txt n.zarr --bits 64", "(--signed allows negative integers)", "--signed"),
        ("import n.csv of-csv.zarr --bits 64", "--column chooses a column", "--column 2"),
        ("import n.npy of-npy.zarr --bits 64", "(--signed allows negative integers)", "--signed"),
    ],
)
def test_the_option_that_an_error_names_works(command: str, told: str, way: str) -> None:
    Path("n.txt").write_text("-5\n3\n")
    Path("n.csv").write_text("1,-5\n3,3\n")
    np.save("n.npy", np.array([-5, 3]))
    assert told in fail(*command.split())
    signed = "" if "--signed" in way else " --signed"
    assert run(*f"{command} {way}{signed} --overwrite".split()).exit_code == 0
    assert rd.open_zarr(command.split()[2]).tolist() == [-5, 3]
