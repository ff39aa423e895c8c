"""Integers beyond the bits that an array or a store is made with: refused in every way in."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from commands import fail, succeed

import rnsdask as rd

LENGTHS = (1, 2, 7, 8, 31, 32, 33, 63, 64, 65, 95, 96, 200)
"""On both sides of machine words and of the ranges that moduli of 32 bits have."""


def ends(bits: int, signed: bool) -> tuple[int, int]:
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


def as_dask(values: list[int]) -> da.Array:
    return da.from_array(np.array(values, dtype=object), chunks=2)


@pytest.mark.parametrize("take", [list, as_dask, lambda v: list(map(str, v))], ids=["list", "dask", "text"])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", LENGTHS)
def test_all_integers_of_the_bits_come_in_and_no_other(take: Any, signed: bool, bits: int) -> None:
    lowest, highest = ends(bits, signed)
    x = rd.from_ints(take([lowest, highest, 0]), bits=bits, signed=signed)
    assert x.to_ints().tolist() == [lowest, highest, 0]
    assert x.moduli == rd.ModuliSet.for_bits(bits)
    assert not x.system.grows
    for beyond in (lowest - 1, highest + 1):
        kind = "signed" if signed else "unsigned"
        # The first number in its chunk, for a Dask array.
        where = "value -?(0x)?[0-9a-f]+.* at position 1 is outside the "
        way = (
            "negative integers need a signed array"
            if beyond < 0 and not signed
            else f"bits={bits + 1} holds it"
        )
        with pytest.raises(rd.NumberError, match=f"{where}{kind} range from .* of bits={bits}; {way}$"):
            rd.from_ints(take([0, beyond, 0]), bits=bits, signed=signed).compute()
        if beyond > 0 or signed:
            wide = rd.from_ints(take([0, beyond, 0]), bits=bits + 1, signed=signed)
            assert wide.to_ints().tolist() == [0, beyond, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda **how: rd.from_ints([[1, 2], [3, 2**64]], **how),
        lambda **how: rd.from_ints(np.array([[0, 0], [0, 2**64]], dtype=object), **how),
        lambda **how: rd.array([2**64], **how),
        lambda **how: rd.asarray(["0x10000000000000000"], **how),
        lambda **how: rd.full(3, 2**64, **how),
        lambda **how: rd.full(3, 2**64, chunks=1, **how),
        lambda **how: rd.arange(2**64 - 1, 2**64 + 1, **how),
        lambda **how: rd.linspace(0, 2**64, 2, **how),
    ],
)
def test_each_maker_of_arrays(make: Callable[..., Any]) -> None:
    with pytest.raises(
        rd.NumberError, match=r"value 0x10000000000000000 \(65 bits\) at .*; bits=65 holds it$"
    ):
        make(bits=64)
    assert int(make(bits=65).max()) == 2**64


@pytest.mark.parametrize("chunks", [None, 2])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint64])
def test_machine_integers(dtype: Any, chunks: int | None) -> None:
    """The type of a lazy array says whether its numbers have to be looked at."""
    limits = np.iinfo(dtype)
    values = np.array([0, limits.min, limits.max], dtype=dtype)
    given = values if chunks is None else da.from_array(values, chunks=chunks)
    for bits in (limits.bits, limits.bits + 1):
        assert rd.from_ints(given, bits=bits).to_ints().tolist() == values.tolist()
    with pytest.raises(rd.NumberError, match=f"bits={limits.bits} holds it"):
        rd.from_ints(given, bits=limits.bits - 1).compute()
    if limits.min < 0:
        with pytest.raises(rd.NumberError, match="negative integers need a signed array"):
            rd.from_ints(given, bits=200, signed=False).compute()


def test_the_bound_of_a_lazy_array_is_that_of_its_bits() -> None:
    assert rd.from_ints(as_dask([1]), bits=64).bound == 2**64 - 1
    assert rd.from_ints(as_dask([1]), bits=64, signed=True).bound == 2**63
    assert rd.from_ints(da.arange(3), bits=64).bound == 2**63
    assert rd.from_ints(da.arange(3, dtype=np.uint8), bits=64).bound == 255


def test_results_may_be_longer() -> None:
    x = rd.from_ints([2**64 - 1], bits=64)
    assert (x * 2).to_ints().tolist() == [2**65 - 2]
    with pytest.raises(rd.RNSOverflowError):
        x * x


@pytest.mark.parametrize("signed", [False, True])
def test_random_numbers_are_of_the_bits(signed: bool) -> None:
    for bits in LENGTHS[1:]:
        x = rd.random(500, bits=bits, signed=signed, seed=bits)
        lowest, highest = ends(bits, signed)
        assert lowest <= x.min() <= x.max() <= highest


# ---- on the command line ----------------------------------------------------------------------------------


def text(values: list[int], path: Path) -> None:
    path.write_text("".join(f"{v}\n" for v in values))


def column(values: list[int], path: Path) -> None:
    path.write_text("".join(f"a,{v}\n" for v in values))


def matrix(values: list[int], path: Path) -> None:
    head = "%%MatrixMarket matrix array integer general\n"
    path.write_text(f"{head}{len(values)} 1\n" + "".join(f"{v}\n" for v in values))


def records(values: list[int], path: Path) -> None:
    path.write_bytes(b"".join(v.to_bytes(16, "little", signed=min(values) < 0) for v in values))


def numpy_file(values: list[int], path: Path) -> None:
    kind = np.int64 if min(values) < 0 else np.uint64
    np.save(path.with_suffix(".npy"), np.array(values, dtype=kind))
    path.with_suffix(".npy").rename(path)


def parquet(values: list[int], path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"n": pa.array(values, pa.decimal128(38, 0))}), path)


FORMS: dict[str, tuple[Callable[[list[int], Path], None], tuple[str, ...], int]] = {
    "text": (text, (), 64),
    "a column": (column, ("--column", "2", "--no-header"), 64),
    "Matrix Market": (matrix, (), 64),
    "records": (records, ("--binary", "16"), 64),
    "NumPy": (numpy_file, (), 32),
    "Parquet": (parquet, (), 64),
}


@pytest.mark.usefixtures("in_empty_folder")
@pytest.mark.parametrize("positional", [(), ("--positional",)], ids=["residues", "limbs"])
@pytest.mark.parametrize("signed", [(), ("--signed",)], ids=["unsigned", "signed"])
@pytest.mark.parametrize("form", FORMS)
def test_imports(form: str, signed: tuple[str, ...], positional: tuple[str, ...]) -> None:
    write, options, bits = FORMS[form]
    lowest, highest = ends(bits, bool(signed))
    options = (*options, *signed, *positional)
    write([lowest, 1, highest], Path("n"))
    succeed("import", "n", "x", "--bits", bits, *options)
    assert rd.open_zarr("x").to_ints().ravel().tolist() == [lowest, 1, highest]
    for beyond in (highest + 1, *([lowest - 1] if signed else [])):
        write([1, beyond, 0], Path("m"))
        message = fail("import", "m", "y", "--bits", bits, *options)
        assert f"{beyond if beyond.bit_length() <= 64 else hex(beyond)}" in message
        assert message.endswith(f"; --bits {bits + 1} holds it")
        assert not Path("y").exists()
        succeed("import", "m", "y", "--bits", bits + 1, "--overwrite", *options)
        assert rd.open_zarr("y").to_ints().ravel().tolist() == [1, beyond, 0]
        if not positional:  # fewer bits are another job
            assert "y: " in fail("import", "m", "y", "--bits", bits, "--resume", *options)
        shutil.rmtree("y")


@pytest.mark.usefixtures("in_empty_folder")
def test_info_says_what_results_may_be() -> None:
    text([1, 2], Path("n"))
    succeed("import", "n", "x", "--bits", 64)
    assert "range      unsigned, 0 to M-1; holds results of 95 bits\n" in succeed("info", "x")
    succeed("import", "n", "y", "--bits", 32, "--signed")
    assert "signed, -(M//2) to (M-1)//2; holds results of 32 bits\n" in succeed("info", "y")
    succeed("import", "n", "z")
    assert "range      unsigned, 0 to M-1; grows\n" in succeed("info", "z")
