"""The command ``eval``: several expressions in one pass, masks and signs as operands, parts, more moduli."""

import itertools
import json
import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from commands import call, fail, succeed, values_in
from strategies import slow

import rnsdask as rd
from rnsdask import store
from rnsdask.core.moduli import ModuliSet
from rnsdask.lazy import call as lazy_call

MS = ModuliSet.for_bits(256)
A = [(i * i * 31) % 1009 - 500 for i in range(700)]
B = [(i**3 + 7) % 2003 - 900 for i in range(700)]
STORES = ["a=a.zarr", "b=b.zarr"]
PAIRS = list(zip(A, B, strict=True))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two stores whose chunks differ."""
    folder = tmp_path_factory.mktemp("made")
    for name, values, chunk in (("a", A, 128), ("b", B, 256)):
        rd.from_ints(values, MS, True, chunks=chunk).to_zarr(folder / f"{name}.zarr")
    return folder


@pytest.fixture(autouse=True)
def stores(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of them, of which a test may change any."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, tuple[int, ...]]]:
    """How often each chunk was read."""
    found: Counter[tuple[str, tuple[int, ...]]] = Counter()
    lock = threading.Lock()

    def counting(read: Any) -> Any:
        def counted(info: Any, index: tuple[int, ...], *how: Any) -> Any:
            with lock:
                found[Path(info.path).name, index] += 1
            return read(info, index, *how)

        return counted

    for name in ("read_chunk", "read_plain_chunk"):
        monkeypatch.setattr(store, name, counting(getattr(store, name)))
    return found


def once(*names: str, chunks: int) -> Counter[tuple[str, tuple[int, ...]]]:
    return Counter({(name, (i,)): 1 for name in names for i in range(chunks)})


def as_json(*args: str, warned: str = "") -> dict[str, Any]:
    result = call("eval", *args, "--json")
    assert (result.exit_code, warned in result.stderr) == (0, True), result.output
    assert warned or not result.stderr
    return dict(json.loads(result.stdout))


def plain_in(path: str) -> list[Any]:
    return list(np.asarray(zarr.open_array(path, mode="r")[:]).tolist())


# ---- several expressions ----------------------------------------------------------------------------------

SEVERAL = ["-e", "s = a + b", "-e", "p = s*a - 1", "-e", "less = a < b", *STORES]
SUMS = [a + b for a, b in PAIRS]
PRODUCTS = [(a + b) * a - 1 for a, b in PAIRS]


def test_several_results_in_one_pass(reads: Counter[Any]) -> None:
    outputs = [
        "-o",
        "s=s.zarr",
        "--max",
        "p",
        "--sum",
        "s",
        "--argmin",
        "p",
        "--count",
        "less",
        "-o",
        "less=m.zarr",
    ]
    found = as_json(*SEVERAL, *outputs)
    assert reads == once("a.zarr", chunks=6) + once("b.zarr", chunks=3)
    results = found["results"]
    assert list(results) == ["s", "p", "less"]
    assert results["p"]["results"]["max"]["value"] == str(max(PRODUCTS))
    assert results["p"]["results"]["max"]["index"] == PRODUCTS.index(max(PRODUCTS))
    assert results["p"]["results"]["argmin"]["value"] == str(PRODUCTS.index(min(PRODUCTS)))
    assert "output" not in results["p"]
    assert results["s"]["results"]["sum"]["value"] == str(sum(SUMS))
    assert (results["s"]["output"], results["s"]["expression"].strip()) == ("s.zarr", "a + b")
    assert results["less"]["results"]["count"]["value"] == str(sum(a < b for a, b in PAIRS))
    assert found["bytes_read"] == sum(rd.open_zarr(f"{n}.zarr").nbytes for n in "ab")
    assert values_in("s.zarr") == SUMS
    assert plain_in("m.zarr") == [a < b for a, b in PAIRS]
    assert "whole and valid" in succeed("verify", "s.zarr")


EXPECTED: dict[str, Callable[[list[int]], int]] = {
    "max": max,
    "min": min,
    "sum": sum,
    "argmax": lambda values: values.index(max(values)),
    "argmin": lambda values: values.index(min(values)),
    "count": sum,
}
"""Reductions, as Python has them."""


def check_results(texts: dict[str, str], asked: list[tuple[str, str]], outputs: list[str], *how: str) -> None:
    """Run expressions of a and b, and compare what is asked of them with what Python makes of the numbers."""
    rows = [{"a": a, "b": b} for a, b in PAIRS]
    for name, text in texts.items():
        for row in rows:
            row[name] = eval(text.replace("[:]", ""), {}, row)
    values = {name: [row[name] for row in rows] for name in texts}
    everything = " ".join(texts.values())
    args = [word for name, text in texts.items() for word in ("-e", f"{name}={text}")]
    args += [f"{name}={name}.zarr" for name in "ab" if re.search(rf"\b{name}\b", everything)]
    args += [word for option, name in asked for word in (f"--{option}", name)]
    args += [word for name in outputs for word in ("-o", f"{name}={name}.zarr")]
    found = as_json(*args, *how)["results"]
    for option, name in asked:
        assert found[name]["results"][option]["value"] == str(EXPECTED[option](values[name]))
    for name in outputs:
        is_number = type(values[name][0]) is int
        assert (values_in if is_number else plain_in)(f"{name}.zarr") == values[name]


@pytest.mark.parametrize(
    ("asked", "outputs"),
    [
        *(([(name, "r0"), (name, "r1")], []) for name in ("max", "sum", "argmax", "min")),
        ([("max", "r0"), ("argmin", "r1"), ("min", "r0"), ("max", "r1")], []),
        ([("max", "r0"), ("max", "r1")], ["r0", "r1"]),
        ([("sum", "r1"), ("sum", "r0")], ["r0"]),
    ],
)
@pytest.mark.parametrize("texts", [("a+1", "a+1"), ("a+1", "r0"), ("abs(a)", "abs(a)"), ("a[:]", "a[:]")])
def test_equal_results(texts: tuple[str, str], asked: list[tuple[str, str]], outputs: list[str]) -> None:
    check_results(dict(zip(("r0", "r1"), texts, strict=True)), asked, outputs)


def test_equal_results_of_comparisons_and_masks() -> None:
    check_results({"r0": "a<b", "r1": "a<b"}, [("count", "r0"), ("count", "r1")], ["r1"])
    flagged = ["--overflow", "flag", "--max", "r0", "--max", "r1", "-o", "r0=r0.zarr", "--mask", "r0=m0.zarr"]
    found = as_json("-e", "r0=a**40", "-e", "r1=a**40", *STORES[:1], *flagged)["results"]
    assert found["r0"]["flagged"] == found["r1"]["flagged"] == sum(a**40 > MS.product // 2 for a in A) > 0
    assert found["r0"]["results"] == found["r1"]["results"]


def test_equal_results_are_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    job = ["-e", "r0=a*b", "-e", "r1=a*b", *STORES, "-o", "r0=r0.zarr", "-o", "r1=r1.zarr", "--max", "r1"]
    interrupt(monkeypatch, *job, "--max", "r0")
    found = as_json(*job, "--max", "r0", "--resume")["results"]
    products = [a * b for a, b in PAIRS]
    assert values_in("r0.zarr") == values_in("r1.zarr") == products
    assert [found[name]["results"]["max"]["value"] for name in ("r0", "r1")] == 2 * [str(max(products))]


@pytest.mark.parametrize("trials", [8, *slow(17)])
def test_any_results_some_of_them_equal(trials: int, rng: np.random.Generator) -> None:
    """Expressions drawn with repetition, also as names of others, against Python's integers."""
    numbers = ["a+1", "1+a", "a", "a[:]", "abs(a)", "a*b", "b*a", "a*b+a", "max(a, b)", "-a", "b-a"]
    for trial in range(trials):
        texts: dict[str, str] = {}
        for i in range(int(rng.integers(2, 6))):
            pool = [*numbers, "a<b", "b>a", "a==a"] + 3 * [*texts]
            pool += 2 * [*texts.values()]
            texts[f"r{i}"] = str(rng.choice(pool))
        compares = {name for name, text in texts.items() if set("<=>") & set(resolved(texts, text))}
        asked, outputs = [], []
        for name in texts:
            options = ["count"] if name in compares else list(EXPECTED)[:-1]
            chosen = rng.choice(options, int(rng.integers(1, 1 + len(options))), replace=False)
            asked += [(str(option), name) for option in chosen]
            outputs += [name] if rng.integers(3) == 0 else []
        for name in outputs:
            shutil.rmtree(f"{name}.zarr", ignore_errors=True)
        rng.shuffle(asked)
        print(trial, texts, asked, outputs)  # shown on failure
        check_results(texts, [(str(option), str(name)) for option, name in asked], outputs)


def resolved(texts: dict[str, str], text: str) -> str:
    """The expression that a name alone stands for."""
    while text in texts:
        text = texts[text]
    return text


def test_one_thread_is_first_to_count_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy compiles its sum at first use, for one thread after the other."""
    alone: list[str] = []

    def first_alone(function: Callable[..., Any], *_: Any) -> AbstractContextManager[None]:
        alone.append(function.__name__)
        return nullcontext()

    monkeypatch.setattr(lazy_call, "uses_gpu", lambda *_: True)
    monkeypatch.setattr(lazy_call, "first_alone", first_alone)
    found = as_json("a < b", *STORES, "--count")
    assert found["results"]["count"]["value"] == str(sum(a < b for a, b in PAIRS))
    assert alone.count("_count_block") == 6


def test_text_of_several_results() -> None:
    lines = succeed("eval", *SEVERAL, "--max", "p", "-o", "s=s.zarr", "--count", "less").splitlines()
    assert lines[0] == f"max of p, 700 values at index {PRODUCTS.index(max(PRODUCTS))}:"
    assert lines[1] == str(max(PRODUCTS))
    assert lines[2:4] == ["count of less, 700 values:", str(sum(a < b for a, b in PAIRS))]
    assert lines[4] == f"s.zarr: 700 values, {700 * len(MS) * 4 / 1000:.4g} kB"
    assert lines[5].startswith("(")


def test_a_store_and_reductions_of_one_expression(reads: Counter[Any]) -> None:
    found = as_json("a*b", *STORES, "-o", "o.zarr", "--max", "--min")
    assert reads == once("a.zarr", chunks=6) + once("b.zarr", chunks=3)
    products = [a * b for a, b in PAIRS]
    assert found["results"]["max"]["value"] == str(max(products))
    assert found["results"]["min"]["value"] == str(min(products))
    assert (found["output"], found["bytes_written"]) == ("o.zarr", 700 * len(MS) * 4)
    assert values_in("o.zarr") == products


def test_overflow_of_several(reads: Counter[Any]) -> None:
    top = MS.value_range(True)[1]
    x = [1, top, 5, *[0] * 300, top - 1]
    rd.from_ints(x, MS, True, chunks=128).to_zarr("x.zarr")
    several = ["-e", "d = 2*x", "-e", "t = d + 0", "-e", "u = x - 1", "x=x.zarr"]
    assert "expressions d, t, u: overflow at flat index" in fail(
        "eval", *several, "--max", "t", "-o", "u=u.zarr"
    )
    assert not Path("u.zarr").exists()
    reads.clear()
    flag = ["--overflow", "flag", "--mask", "t=m.zarr"]
    found = as_json(*several, "--max", "d", "-o", "u=u.zarr", "-o", "t=t.zarr", *flag)["results"]
    assert reads == once("x.zarr", chunks=3)
    assert [found[name]["flagged"] for name in ("d", "t", "u")] == [2, 2, 0]
    assert plain_in("m.zarr") == [2 * v > top for v in x]
    assert values_in("u.zarr") == [v - 1 for v in x]


OTHER_JOB = "it cannot be resumed: it was begun by another job: "


def interrupt(monkeypatch: pytest.MonkeyPatch, *command: str) -> None:
    """Run a job that ends when it has written three chunks to stores, also for its threads that go on."""
    write, before = store.StoreWriter.write_chunk, itertools.count()
    writers: set[str] = set()
    is_over = threading.Event()

    def write_chunk(writer: store.StoreWriter, index: tuple[int, ...], block: Any) -> None:
        if not is_over.is_set():
            writers.add(writer.target.token)
        if writer.target.token in writers and next(before) >= 3:
            raise RuntimeError("the end")
        write(writer, index, block)

    monkeypatch.setattr(store.StoreWriter, "write_chunk", write_chunk)
    assert "the end" in fail("eval", *command)
    is_over.set()


def test_a_mask_of_another_job_is_not_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Complete masks can be resumed, for their values may not be, and do not say of which job they are."""
    job = ["a + b", "a=a.zarr", "b=b.zarr", "--overflow", "flag", "-o", "o.zarr"]
    succeed("eval", "a - b", *job[1:-1], "other.zarr", "--mask", "other-mask.zarr")
    interrupt(monkeypatch, *job, "--mask", "m.zarr")
    before = plain_in("other-mask.zarr")
    assert OTHER_JOB in fail("eval", *job, "--mask", "other-mask.zarr", "--resume")
    assert plain_in("other-mask.zarr") == before
    succeed("eval", *job, "--mask", "m.zarr", "--resume")
    assert values_in("o.zarr") == SUMS
    assert not any(plain_in("m.zarr"))


def test_several_are_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = ["-o", "s=s.zarr", "-o", "p=p.zarr", "-o", "less=m.zarr", "--sum", "s"]
    interrupt(monkeypatch, *SEVERAL, *outputs)
    changed = [*SEVERAL[:3], "p = s*a - 2", *SEVERAL[4:], *outputs]
    assert OTHER_JOB in fail("eval", *changed, "--resume")
    assert "it cannot be resumed" in fail("eval", *SEVERAL, "--count", "less", "-o", "p=s.zarr", "--resume")
    found = as_json(*SEVERAL, *outputs, "--resume")["results"]
    assert found["s"]["results"]["sum"]["value"] == str(sum(SUMS))
    assert found["s"]["chunks_kept"] + found["p"]["chunks_kept"] == 3
    assert (values_in("s.zarr"), values_in("p.zarr")) == (SUMS, PRODUCTS)
    assert plain_in("m.zarr") == [a < b for a, b in PAIRS]


def test_what_was_not_begun_is_resumed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    both = ["-o", "s=s.zarr", "-o", "p=p.zarr"]
    interrupt(monkeypatch, *SEVERAL[:4], *STORES, *both)
    while Path("p.zarr").exists():  # threads of the interrupted job may still end their chunks
        shutil.rmtree("p.zarr", ignore_errors=True)
    as_json(*SEVERAL[:4], *STORES, *both, "--resume")
    assert (values_in("s.zarr"), values_in("p.zarr")) == (SUMS, PRODUCTS)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-e", "s=a+b", *STORES], "give -o STORE, or reductions"),
        (["-e", "s=a+b", *STORES, "--max", "t"], "'t' is the name of no expression; these are s"),
        (["-e", "s=a+b", *STORES, "-o", "t=o.zarr"], "'t' is the name of no expression; these are s"),
        (["-e", "s=a+b", *STORES, "-o", "o.zarr"], "'o.zarr' is not NAME=STORE"),
        (["-e", "a+b", *STORES, "--max", "s"], "'a\\+b' is not NAME=EXPRESSION"),
        (["-e", "s=a", "-e", "s=b", *STORES, "--max", "s"], "the name 's' is given twice"),
        (["-e", "a=a+b", *STORES, "--max", "a"], "the name 'a' is that of a store and of an expression"),
        (["-e", "s=a", *STORES, "--max", "s"], "no expression uses the name 'b'"),
        (["-e", "s=a+b", "-e", "t=a", *STORES, "--max", "t"], "'s' is not reduced, written or used"),
        (
            ["-e", "s=t", "-e", "t=a", "a=a.zarr", "--max", "t"],
            "column 1: 't' stands for nothing; the names are a",
        ),
        (["-e", "s=1+2", "-e", "t=a", "a=a.zarr", "--max", "t"], "it has no array, only integers"),
        (["-e", "s=a<1", "a=a.zarr", "--max", "s"], "max is for numbers, and this has dtype bool"),
        (["-e", "s=a", "a=a.zarr", "--max", "s", "--mask", "s=m"], "--mask needs -o and --overflow flag"),
        (
            ["-e", "s=a", "a=a.zarr", "-o", "s=o.zarr", "--overflow", "flag", "--mask", "t=m"],
            "--mask t=PATH needs -o t=STORE",
        ),
        (["-e", "s=a"], "Missing argument 'NAME=STORE...'"),
        (["-e", "s=a", "a=a.zarr", "--max"], "'--max' requires an argument"),
        ([], "Missing argument 'EXPRESSION'"),
        (["a", "a=a.zarr", "-o", "o.zarr", "-o", "p.zarr"], "one expression has one -o"),
        (["a", "a=a.zarr", "--max", "--extend", "--overflow", "wrap"], "--extend makes all results fit"),
        (["m", "m=a.zarr", "--extend", "--count"], "count is for comparisons, and this is not one"),
    ],
)
def test_wrong_usage(args: list[str], message: str, reads: Counter[Any]) -> None:
    error = fail("eval", *args, status=2)
    assert re.search(message, error), error
    assert not Path("o.zarr").exists()
    assert not reads


def test_nothing_is_begun_where_a_path_is_taken() -> None:
    succeed("eval", "a", "a=a.zarr", "-o", "t.zarr")
    both = ["-e", "s = a + 1", "-e", "t = a + 2", "a=a.zarr", "-o", "s=s.zarr", "-o", "t=t.zarr"]
    assert "t.zarr: it exists" in fail("eval", *both)
    assert not Path("s.zarr").exists()
    assert "values of t cannot be written there, the values of s are" in fail("eval", *both[:-1], "t=s.zarr")
    assert "an operand is read from there" in fail("eval", *both[:-1], "t=a.zarr", "--overwrite")
    succeed("eval", *both, "--overwrite")
    assert (values_in("s.zarr"), values_in("t.zarr")) == ([a + 1 for a in A], [a + 2 for a in A])


def test_reductions_before_the_expression_are_flags() -> None:
    found = as_json("--max", "a + b", "--sum", *STORES)
    assert list(found["results"]) == ["max", "sum"]
    assert succeed("eval", "--min", "--", "(-a)", "a=a.zarr").splitlines()[1] == str(-max(A))


def test_what_is_whole_but_not_finished_is_only_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store.StoreWriter, "finish", lambda _: (_ for _ in ()).throw(RuntimeError("the end")))
        assert "the end" in fail("eval", "a + b", *STORES, "-o", "o.zarr")
    assert as_json("a + b", *STORES, "-o", "o.zarr", "--resume")["chunks_kept"] == 6
    assert values_in("o.zarr") == SUMS


# ---- masks and signs --------------------------------------------------------------------------------------


def test_masks_and_signs_are_operands(reads: Counter[Any]) -> None:
    succeed("eval", "a < b", *STORES, "-o", "m.zarr")
    succeed("eval", "sign(a - b)", *STORES, "-o", "s.zarr")
    reads.clear()
    both = ["m=m.zarr", "s=s.zarr"]
    found = as_json("where(m, a, b*s)", *STORES, *both, "-o", "w.zarr")
    assert reads == once("a.zarr", "m.zarr", "s.zarr", chunks=6) + once("b.zarr", chunks=3)
    signs = [(a > b) - (a < b) for a, b in PAIRS]
    assert values_in("w.zarr") == [a if a < b else b * s for (a, b), s in zip(PAIRS, signs, strict=True)]
    assert found["bytes_read"] == 2 * 700 + sum(rd.open_zarr(f"{n}.zarr").nbytes for n in "ab")
    for text, names, expected in (
        ("m & (a > 3)", ["m=m.zarr", "a=a.zarr"], sum(a < b and a > 3 for a, b in PAIRS)),
        ("m", ["m=m.zarr"], sum(a < b for a, b in PAIRS)),
        ("(s > -1) & ~m", both, sum(a >= b for a, b in PAIRS)),
    ):
        assert as_json(text, *names, "--count")["results"]["count"]["value"] == str(expected)
    assert as_json("m[600:]", "m=m.zarr", "--count")["bytes_read"] == 128 + 60
    succeed("eval", "~m[::2]", "m=m.zarr", "-o", "n.zarr")
    assert plain_in("n.zarr") == [a >= b for a, b in PAIRS[::2]]
    assert "no moduli set" in fail("eval", "s * s", "s=s.zarr", "-o", "x.zarr", status=2)
    assert "an operand is read from there" in fail("eval", "~m", "m=m.zarr", "-o", "m.zarr", "--overwrite")


def test_plain_arrays_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = store.create_plain("half.zarr", (700,), (128,), np.bool_)
    writer.write_chunk((0,), np.ones((1, 128), bool))
    assert "half.zarr: the store is incomplete" in fail("eval", "m", "m=half.zarr", "--count")
    zarr.create_array("own.zarr", shape=(700,), chunks=(128,), dtype="bool")[:] = True
    assert "own.zarr" in fail("eval", "m", "m=own.zarr", "--count")
    store.create_plain("f.zarr", (0,), (1,), np.float64).finish()
    assert "its dtype must be one of bool, int8" in fail("eval", "m", "m=f.zarr", "--count")
    succeed("eval", "a < b", *STORES, "-o", "m.zarr")
    chunk = Path("m.zarr/c/3")
    data = bytearray(chunk.read_bytes())
    data[5] ^= 1
    chunk.write_bytes(data)
    assert "chunk c/3 is corrupt" in fail("eval", "m", "m=m.zarr", "--count")
    chunk.unlink()
    assert "chunk c/3 is missing" in fail("eval", "m", "m=m.zarr", "--count")


def test_a_mask_that_changes_is_another_operand(monkeypatch: pytest.MonkeyPatch) -> None:
    succeed("eval", "a < b", *STORES, "-o", "m.zarr")
    command = ["where(m, a, b)", "m=m.zarr", *STORES, "-o", "o.zarr"]
    interrupt(monkeypatch, *command)
    zarr.open_array("m.zarr", mode="r+")[2 * 128] ^= True
    assert OTHER_JOB in fail("eval", *command, "--resume")


def test_masks_without_values() -> None:
    rd.from_ints([], MS, True).to_zarr("none.zarr")
    succeed("eval", "x < 1", "x=none.zarr", "-o", "m.zarr")
    assert as_json("m", "m=m.zarr", "--count")["results"]["count"]["value"] == "0"
    succeed("eval", "where(m, x, 2*x)", "x=none.zarr", "m=m.zarr", "-o", "o.zarr")
    assert values_in("o.zarr") == []


# ---- parts ------------------------------------------------------------------------------------------------


def test_parts_read_only_their_chunks(reads: Counter[Any]) -> None:
    found = as_json("a[130:300] - a[129:299]", "a=a.zarr", "--sum", "-o", "d.zarr")
    assert set(reads) == {("a.zarr", (1,)), ("a.zarr", (2,))}
    assert found["bytes_read"] == 2 * 128 * len(MS) * 4
    assert found["results"]["sum"]["value"] == str(A[299] - A[129])
    assert values_in("d.zarr") == [y - x for x, y in itertools.pairwise(A[129:300])]
    succeed("eval", "(a + b[::-1])[::3]", *STORES, "-o", "r.zarr")
    assert values_in("r.zarr") == [a + b for a, b in zip(A, B[::-1], strict=True)][::3]
    succeed("eval", "a[-1]", "a=a.zarr", "-o", "one.zarr")
    assert values_in("one.zarr") == A[-1:]
    assert "column 1: index 700 is out of bounds" in fail("eval", "a[700]", "a=a.zarr", "--max", status=2)
    top = MS.value_range(True)[1]
    rd.from_ints([top, 1, top, 2], MS, True).to_zarr("x.zarr")
    flag = ["--overflow", "flag", "--mask", "m.zarr"]
    found = as_json("(2*x)[1:]", "x=x.zarr", "-o", "f.zarr", *flag)
    assert (found["flagged"], plain_in("m.zarr")) == (1, [False, True, False])


# ---- more moduli ------------------------------------------------------------------------------------------


def fewest(moduli: ModuliSet, lowest: int, highest: int, signed: bool) -> bool:
    """Whether a set holds a range, and without its last modulus would not."""
    ends, before = moduli.value_range(signed), moduli.prefix(len(moduli) - 1).value_range(signed)
    return ends[0] <= lowest and highest <= ends[1] and not (before[0] <= lowest and highest <= before[1])


def test_extension_to_the_fewest_moduli() -> None:
    highest = max(map(abs, A)) ** 40
    assert "overflow" in fail("eval", "a**40", "a=a.zarr", "--max")
    found = as_json("a**40", "a=a.zarr", "-o", "o.zarr", "--extend", "--max", warned="extended from 9 to")
    assert values_in("o.zarr") == [a**40 for a in A]
    assert found["results"]["max"]["value"] == str(highest)
    info = store.open_info("o.zarr")
    assert info.moduli.prefix(len(MS)) == MS
    assert fewest(info.moduli, 0, highest, True)
    assert found["n_moduli"] == len(info.moduli)
    # Where the moduli suffice, nothing changes.
    assert as_json("a + b", *STORES, "-o", "s.zarr", "--extend")["n_moduli"] == len(MS)
    assert store.open_info("s.zarr").moduli == MS


def test_extension_counts_every_step() -> None:
    found = as_json("a**40 // a[0]**39 - 7", "a=a.zarr", "-o", "o.zarr", "--extend", warned="extended from")
    assert found["n_moduli"] > len(MS)
    assert values_in("o.zarr") == [a**40 // A[0] ** 39 - 7 for a in A]
    several = ["-e", "s = a*b", "-e", "t = s**30", "-e", "u = abs(t - 1) % 1000", *STORES]
    as_json(*several, "-o", "u=u.zarr", "--extend", warned="extended from")
    assert values_in("u.zarr") == [abs((a * b) ** 30 - 1) % 1000 for a, b in PAIRS]


def test_extension_without_bounds() -> None:
    small = ModuliSet.for_bits(64)
    x = rd.from_ints([5, 7, 2**63], small)
    x.with_bound(None).to_zarr("x.zarr")
    warned = "of x no bound is known: rnsdask bound STORE --write may make them fewer"
    as_json("x*x + 3", "x=x.zarr", "-o", "o.zarr", "--extend", warned=warned)
    assert values_in("o.zarr") == [28, 52, 2**126 + 3]
    assert fewest(store.open_info("o.zarr").moduli, 0, (small.product - 1) ** 2 + 3, False)
    # What is below 0 no extension holds.
    assert "negative" in fail_extended("eval", "x - 6*x*x", "x=x.zarr", "-o", "n.zarr", "--extend")


def fail_extended(*args: str) -> str:
    result = call(*args)
    assert result.exit_code == 1
    return str(result.stderr)


def test_extension_of_different_moduli() -> None:
    rd.from_ints([3**20] * 700, ModuliSet.for_bits(64), True, chunks=128).to_zarr("x.zarr")
    succeed("eval", "a < b", *STORES, "-o", "m.zarr")
    assert "different moduli sets" in fail("eval", "a * x", "a=a.zarr", "x=x.zarr", "--max", status=2)
    found = as_json("where(m, a*x, sign(a))", "a=a.zarr", "x=x.zarr", "m=m.zarr", "-o", "o.zarr", "--extend")
    assert found["n_moduli"] == len(MS)
    assert values_in("o.zarr") == [a * 3**20 if a < b else (a > 0) - (a < 0) for a, b in PAIRS]
    rd.from_ints([1] * 700, MS, chunks=128).to_zarr("u.zarr")
    message = fail("eval", "a * u", "a=a.zarr", "u=u.zarr", "--max", "--extend", status=2)
    assert "one is signed, another unsigned" in message
    assert "--extend needs an array of numbers" in fail(
        "eval", "m", "m=m.zarr", "--count", "--extend", status=2
    )


def test_a_resumed_extension_is_of_the_same_job(monkeypatch: pytest.MonkeyPatch) -> None:
    rd.from_ints(A, MS, True, chunks=128).with_bound(None).to_zarr("x.zarr")
    command = ["x*x - 1", "x=x.zarr", "-o", "o.zarr"]
    interrupt(monkeypatch, *command)
    assert "it cannot be resumed" in fail_extended("eval", *command, "--extend", "--resume")
    assert as_json(*command, "--resume")["chunks_kept"] == 3


# ---- numbers with intervals -------------------------------------------------------------------------------


def test_interval_arrays(reads: Counter[Any]) -> None:
    for name, values in (("g", A), ("h", B)):
        rd.IntervalRNSArray.from_ints(values, MS, 128).to_zarr(f"{name}.zarr")
    names = ["g=g.zarr", "h=h.zarr"]
    found = as_json("max(g*h - 3, g)", *names, "-o", "o.zarr", "--sum", "--argmax")
    expected = [max(a * b - 3, a) for a, b in PAIRS]
    assert isinstance(rd.open_zarr("o.zarr"), rd.IntervalRNSArray)
    assert values_in("o.zarr") == expected
    assert found["results"]["sum"]["value"] == str(sum(expected))
    assert found["results"]["argmax"]["value"] == str(expected.index(max(expected)))
    assert all(count == 1 for (name, _), count in reads.items() if name in ("g.zarr", "h.zarr"))
    assert "whole and valid" in succeed("verify", "o.zarr")
    succeed("eval", "g < h", *names, "-o", "m.zarr")
    assert plain_in("m.zarr") == [a < b for a, b in PAIRS]
    message = fail("eval", "g + a", "g=g.zarr", "a=a.zarr", "--max", status=2)
    assert "do not mix; rnsdask convert SRC -o DST --to interval or --to rns makes" in message
    found = as_json("g**40 - h", *names, "-o", "p.zarr", "--extend", warned="extended from 9 to")
    assert values_in("p.zarr") == [a**40 - b for a, b in PAIRS]
    needed = (MS.product - 1) ** 40 + MS.product - 1
    moduli = store.open_info("p.zarr", store.all_systems).moduli
    assert moduli.prefix(found["n_moduli"] - 1).product <= needed < moduli.product
    assert "an operand is read from there" in fail("eval", "g", "g=g.zarr", "-o", "g.zarr", "--overwrite")
