"""Arrays whose residues were given under moduli beyond 2**32, and replaced: they do not wrap."""

import json
import pickle
import re
from math import prod

import dask
import dask.array as da
import numpy as np
import pytest
from commands import call
from dask.base import tokenize

import rnsdask as rd
from rnsdask.core.wide_moduli import WideModuli

PRIMES = [2**60 - 93, 2**60 - 107, 2**60 - 173, 2**60 - 179, 2**60 - 257, 2**60 - 279]
VALUES = [7, prod(PRIMES) - 1, prod(PRIMES) // 3, 0]
RESIDUES = np.array([[v % p for p in PRIMES] for v in VALUES], dtype=np.uint64)
REFUSED = "would take results modulo the moduli that replaced the 6 .*extend.moduli.*to_residues"


def given(*, lazy: bool = False, signed: bool = False, of: np.ndarray = RESIDUES):
    return rd.from_residues(of, PRIMES, signed, axis=-1, chunks=3 if lazy else None)


def plain(x):
    return rd.from_ints([1, 2, 3, 4], rd.RNS(x.moduli, x.signed))


WRAPPING = {
    "add": lambda x, **o: rd.add(x, x, **o),
    "add an integer": lambda x, **o: rd.add(x, 1, **o),
    "add to an integer": lambda x, **o: rd.add(1, x, **o),
    "subtract": lambda x, **o: rd.subtract(x, x, **o),
    "multiply": lambda x, **o: rd.multiply(x, x, **o),
    "multiply a plain array": lambda x, **o: rd.multiply(plain(x), x, **o),
    "multiply by a plain array": lambda x, **o: rd.multiply(x, plain(x), **o),
    "negative": lambda x, **o: rd.negative(x, **o),
    "absolute": lambda x, **o: rd.absolute(x, **o),
    "fma": lambda x, **o: rd.fma(x, 2, plain(x), **o),
    "fma plain": lambda x, **o: rd.fma(plain(x), plain(x), x, **o),
    "mulsub": lambda x, **o: rd.mulsub(x, x, x, x, **o),
    "muladd": lambda x, **o: rd.muladd(x, x, x, x, **o),
    "power": lambda x, **o: rd.power(x, 2, **o),
    "powers": lambda x, **o: rd.power(x, [0, 1, 2, 3], **o),
    "matmul": lambda x, **o: rd.matmul(x, x, **o),
    "matmul plain": lambda x, **o: rd.matmul(plain(x), x, **o),
    "dot": lambda x, **o: rd.dot(x, x, **o),
    "outer": lambda x, **o: rd.outer(x, plain(x), **o),
    "convolve": lambda x, **o: rd.convolve(x, x, **o),
    "convolve plain": lambda x, **o: rd.convolve(plain(x), x, **o),
    "poly.multiply": lambda x, **o: rd.poly.multiply(x, x, **o),
    "matrix_power": lambda x, **o: rd.linalg.matrix_power(x.reshape(2, 2), 2, **o),
    "prod": lambda x, **o: x.prod(**o),
    "prod along": lambda x, **o: x.reshape(2, 2).prod(axis=1, **o),
    "cumprod": lambda x, **o: x.cumprod(**o),
    "diff": lambda x, **o: rd.diff(x, **o),
    "gcd": lambda x, **o: rd.gcd(x, x, **o),
    "lcm": lambda x, **o: rd.lcm(x, plain(x), **o),
    "left_shift": lambda x, **o: rd.left_shift(x, 3, **o),
}

WITH_PLAIN_RESIDUES = {name for name in WRAPPING if "plain" in name} | {"fma", "outer", "lcm"}

BY_OPERATORS = {
    "+": lambda x: x + x,
    "1 +": lambda x: 1 + x,
    "-": lambda x: x - 1,
    "*": lambda x: plain(x) * x,
    "neg": lambda x: -x,
    "**": lambda x: x**2,
    "@": lambda x: x @ x,
    "<<": lambda x: x << 1,
    "abs": abs,
    "np.add": lambda x: np.add(x, x),
    "np.multiply": lambda x: np.multiply(x, 3),
    "np.prod": lambda x: np.prod(x),
    "np.convolve": lambda x: np.convolve(x, x),
    "map_blocks": lambda x: x.map_blocks(lambda block: block * block).to_ints(),
}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for kind in ("rns", "signed") for name in WRAPPING]
    + [(name, "interval") for name in WRAPPING if name not in WITH_PLAIN_RESIDUES],
)
def test_functions_refuse_to_wrap(name, kind, lazy):
    x = given(lazy=lazy, signed=kind == "signed")
    function = WRAPPING[name]
    if kind == "interval":
        x = rd.IntervalRNSArray.from_rns(x)
    with pytest.raises(ValueError, match=REFUSED):
        function(x, overflow="wrap")
    with rd.errstate(overflow="wrap"), pytest.raises(ValueError, match=REFUSED):
        function(x)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", BY_OPERATORS)
def test_operators_refuse_to_wrap(name, lazy):
    x = given(lazy=lazy)
    with rd.errstate(overflow="wrap"), pytest.raises(ValueError, match=REFUSED):
        BY_OPERATORS[name](x)


def test_inverses_modulo_the_moduli_that_replaced_them_are_refused():
    x = given()
    for array in (x, rd.IntervalRNSArray.from_rns(x)):
        with pytest.raises(
            ValueError, match=r"inverse would be modulo the moduli that replaced .*pow\(x, -1, m\)"
        ):
            rd.inverse(array)


def test_exact_results_and_masks_stay():
    x = given()
    assert (x + 1).to_ints().tolist() == [v + 1 for v in VALUES]
    results, mask = rd.multiply(x, x, overflow="flag")
    assert mask.tolist() == [False, True, True, False]
    assert [int(results[i]) for i in (0, 3)] == [49, 0]
    for function in (
        lambda: x * x,
        lambda: x[:3].prod(),
        lambda: x**2,
        lambda: x[1:3].prod(axis=0, keepdims=True),
    ):
        with pytest.raises(rd.RNSOverflowError, match=r"; x\.extend\(moduli\) takes more moduli$"):
            function()


def test_overflows_of_intervals_do_not_name_wrapped_results():
    x = rd.IntervalRNSArray.from_rns(given())
    for function in (
        lambda: x * x,
        lambda: rd.fma(x, x, x),
        lambda: x**2,
        lambda: x ** np.array([1, 2, 2, 1]),
        lambda: x[1:3] @ x[1:3],
        lambda: x[1:3].prod(),
        lambda: x[1:3].prod(axis=0, keepdims=True),
        lambda: rd.convolve(x[1:3], x[1:3]),
    ):
        with pytest.raises(
            rd.RNSOverflowError, match=r"range of M of 384 bits.*; x\.extend\(moduli\) takes more moduli$"
        ):
            dask.compute(function())


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_the_way_that_the_error_names(lazy, signed):
    x = given(lazy=lazy, signed=signed)
    wide = x.extend(rd.ModuliSet.for_bits(730))
    assert wide.system.source is None
    found = (wide * wide).to_residues(PRIMES, axis=-1, overflow="wrap")
    found = found.compute() if lazy else found
    centred = [v - prod(PRIMES) if signed and v > prod(PRIMES) // 2 else v for v in VALUES]
    assert found.tolist() == [[v * v % p for p in PRIMES] for v in centred]


KEEPING = {
    "slice": lambda x: x[1:3],
    "mask": lambda x: x[np.array([True, False, True, True])],
    "reshape": lambda x: x.reshape(2, 2),
    "rechunk": lambda x: x.rechunk(2),
    "concatenate": lambda x: rd.concatenate([x, plain(x)]),
    "concatenate to a plain array": lambda x: rd.concatenate([plain(x), x]),
    "stack": lambda x: rd.stack([plain(x), x]),
    "block": lambda x: rd.block([[plain(x), x]]),
    "pad": lambda x: rd.pad(x, 1),
    "where": lambda x: rd.where(np.array([True, False, True, False]), plain(x), x),
    "maximum": lambda x: rd.maximum(plain(x), x),
    "minimum": lambda x: rd.minimum(plain(x), x),
    "clip": lambda x: x.clip(0, 10),
    "sum": lambda x: plain(x) + x[:1],
    "product": lambda x: x[:1] * plain(x),
    "matmul": lambda x: plain(x)[:2].reshape(1, 2) @ x[::3].reshape(2, 1),
    "convolve": lambda x: rd.convolve(plain(x), x[::3]),
    "quotient": lambda x: plain(x) // (x + 1),
    "remainder": lambda x: plain(x) % (x + 1),
    "quotient by an integer": lambda x: x // 3,
    "gcd": lambda x: rd.gcd(plain(x), x),
    "power": lambda x: x[::3] ** 2,
    "pow modulo": lambda x: pow(x, 3, 1000),
    "sort": rd.sort,
    "unique": rd.unique,
    "cummax": lambda x: x.cummax(),
    "cumsum": lambda x: x[::3].cumsum(),
    "cumprod": lambda x: x[::3].cumprod(),
    "max along": lambda x: x.reshape(2, 2).max(axis=0),
    "prod along": lambda x: x[::3].reshape(1, 2).prod(axis=0),
    "diff": lambda x: rd.diff(x[::-1][1:3] * 0 + 1),
    "with_bound": lambda x: x.with_bound(None),
    "with_residues": lambda x: x.with_residues(x.residues),
    "zeros_like": rd.zeros_like,
    "copy": lambda x: x.copy(),
    "persist": lambda x: x.persist() if hasattr(x, "persist") else x,
    "compute": lambda x: x.compute() if dask.is_dask_collection(x) else x,
    "map_blocks": lambda x: x.map_blocks(lambda block: block),
    "interval": rd.IntervalRNSArray.from_rns,
    "interval and back": lambda x: rd.IntervalRNSArray.from_rns(x).to_rns(),
    "interval arithmetic": lambda x: rd.fma(
        rd.IntervalRNSArray.from_rns(plain(x)), 1, rd.IntervalRNSArray.from_rns(x)
    ),
    "interval widened": lambda x: rd.convolve(
        rd.IntervalRNSArray.from_rns(plain(x)), rd.IntervalRNSArray.from_rns(x[::3])
    ),
    "interval sorted": lambda x: rd.sort(rd.IntervalRNSArray.from_rns(x)),
    "from_ints": lambda x: rd.from_ints([1, 2], x.system),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
}  # fmt: skip


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", KEEPING)
def test_arrays_keep_where_their_numbers_came_from(name, lazy):
    result = KEEPING[name](given(lazy=lazy))
    assert result.system.source == WideModuli(tuple(PRIMES))
    with pytest.raises(ValueError, match=REFUSED):
        rd.multiply(result, result, overflow="wrap")


def test_what_the_system_says():
    x = given()
    other = rd.RNS(x.moduli, x.signed, x.bound)
    assert "in place of 6 moduli of up to 60 bits" in repr(x.system)
    assert "in place of" not in repr(other)
    assert x.system != other
    assert tokenize(x.system) != tokenize(other)
    assert list(x.system.source) == PRIMES
    assert x.to_residues(x.system.source, axis=-1).tolist() == RESIDUES.tolist()
    # Moduli of at most 32 bits are kept: nothing replaced them.
    y = rd.from_residues(np.zeros((2, 3), np.uint64), [2**32, 3])
    assert y.system.source is None
    assert rd.multiply(y, y, overflow="wrap").to_ints().tolist() == [0, 0, 0]
    with pytest.raises(TypeError, match="source"):
        rd.RNS(x.moduli, source=PRIMES)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("interval", [False, True])
def test_stores_say_where_their_numbers_came_from(tmp_path, lazy, interval):
    x = given(lazy=lazy)
    x = rd.IntervalRNSArray.from_rns(x) if interval else x
    x.to_zarr(tmp_path / "x.zarr")
    y = rd.open_zarr(tmp_path / "x.zarr")
    assert y.system.source == x.system.source
    assert y.to_ints().tolist() == VALUES
    with pytest.raises(ValueError, match=REFUSED):
        rd.multiply(y, y, overflow="wrap")
    # What is appended to a store of other numbers tells where it came from.
    z = plain(given())
    z = rd.IntervalRNSArray.from_rns(z) if interval else z
    z.to_zarr(tmp_path / "z.zarr")
    assert rd.open_zarr(tmp_path / "z.zarr").system.source is None
    x.to_zarr(tmp_path / "z.zarr", append_dim=0)
    z = rd.open_zarr(tmp_path / "z.zarr")
    assert z.to_ints().tolist() == [1, 2, 3, 4, *VALUES]
    assert z.system.source == x.system.source


def test_a_damaged_source_is_told(tmp_path):
    given().to_zarr(tmp_path / "x.zarr")
    path = tmp_path / "x.zarr" / "zarr.json"
    text = path.read_text()
    assert hex(PRIMES[0]) in text
    path.write_text(text.replace(hex(PRIMES[0]), hex(PRIMES[0] - 2)))
    with pytest.raises(rd.StoreError, match="damaged"):
        rd.open_zarr(tmp_path / "x.zarr")


# ---- the command line -------------------------------------------------------------------------------------


@pytest.fixture
def imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("residues.npy", RESIDUES)
    (tmp_path / "primes.txt").write_text("".join(f"{p}\n" for p in PRIMES))
    assert (
        call(
            "import", "--residues", "--moduli", "primes.txt", "--axis", "-1", "residues.npy", "x.zarr"
        ).exit_code
        == 0
    )
    return "x.zarr"


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "a*a", "a=x.zarr", "--overflow", "wrap", "-o", "y.zarr"],
        ["eval", "a*b", "a=plain.zarr", "b=x.zarr", "--overflow", "wrap", "-o", "y.zarr"],
        ["eval", "a[1:]", "a=x.zarr", "--overflow", "wrap", "--max"],
        ["prod", "x.zarr", "--overflow", "wrap"],
        ["convolve", "x.zarr", "x.zarr", "-o", "y.zarr", "--overflow", "wrap"],
    ],
)
def test_commands_refuse_to_wrap(imported, tmp_path, words):
    plain(rd.open_zarr("x.zarr")).to_zarr("plain.zarr")
    result = call(*words)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "x.zarr" in line
    assert "rnsdask export --residues --overflow wrap" in line
    assert "extend(moduli)" not in line
    assert "to_residues" not in line
    assert not (tmp_path / "y.zarr").exists()


def test_commands_keep_where_numbers_came_from(imported):
    for words in (
        ["slice", "x.zarr", "-o", "y.zarr", "1:3"],
        ["concat", "x.zarr", "x.zarr", "-o", "y.zarr"],
        ["rechunk", "x.zarr", "-o", "y.zarr", "--chunks", "2"],
        ["reshape", "x.zarr", "-o", "y.zarr", "2,2"],
        ["eval", "a + 1", "a=x.zarr", "-o", "y.zarr"],
        ["convert", "x.zarr", "-o", "i.zarr", "--to", "interval"],
    ):
        result = call(*words, "--overwrite")
        assert result.exit_code == 0, result.output
        output = words[words.index("-o") + 1]
        assert rd.open_zarr(output).system.source == WideModuli(tuple(PRIMES)), words


def test_info_says_where_numbers_came_from(imported):
    assert re.search(
        r"^source +6 moduli of up to 60 bits, M of 360 bits$", call("info", "x.zarr").output, re.M
    )
    assert json.loads(call("info", "--json", "x.zarr").output)["source"] == list(map(str, PRIMES))
    plain(rd.open_zarr("x.zarr")).to_zarr("plain.zarr")
    assert "source" not in call("info", "plain.zarr").output + call("info", "--json", "plain.zarr").output


def test_export_of_residues_wraps(imported):
    assert call("eval", "a*a", "a=x.zarr", "--extend", "-o", "y.zarr").exit_code == 0
    how = ["--residues", "--moduli", "primes.txt", "--axis", "-1"]
    result = call("export", *how, "y.zarr", "y.npy")
    assert result.exit_code == 1
    assert "outside the unsigned range" in result.stderr
    result = call("export", *how, "--overflow", "wrap", "y.zarr", "y.npy")
    assert result.exit_code == 0, result.output
    assert np.load("y.npy").tolist() == [[v * v % p for p in PRIMES] for v in VALUES]
    result = call("export", "--overflow", "wrap", "y.zarr", "y.txt")
    assert result.exit_code == 2
    assert "--residues" in result.stderr


def test_export_of_residues_wraps_negative_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = [-1, 2**40, -(2**39) - 5]
    rd.from_ints(values).to_zarr("x.zarr")
    how = ["--residues", "--moduli-list", "97,101", "--overflow"]
    assert call("export", *how, "raise", "x.zarr", "x.npy").exit_code == 1
    assert call("export", *how, "wrap", "x.zarr", "x.npy").exit_code == 0
    assert np.load("x.npy").tolist() == [[v % m for v in values] for m in (97, 101)]


def test_lazy_residues_from_dask():
    x = rd.from_residues(da.from_array(RESIDUES, chunks=(2, 6)), PRIMES, axis=-1)
    with pytest.raises(ValueError, match=REFUSED):
        rd.multiply(x, x, overflow="wrap")
