"""Residues under moduli of up to 64 bits, limbs and bytes, in and out, against Python's integers."""

import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import gmpy2
import numpy as np
import pytest
import zarr
from conftest import Processor
from hypothesis import given as given_by
from hypothesis import strategies as st
from sample_arrays import host
from strategies import slow

import rnsdask as rd

TOP = 2**64


def primes_below(bits: int, count: int) -> list[int]:
    """The greatest primes below 2**bits, as homomorphic encryption takes them."""
    found = [int(gmpy2.prev_prime(2**bits))]
    while len(found) < count:
        found.append(int(gmpy2.prev_prime(found[-1])))
    return found


SETS = {
    "primes60": primes_below(60, 5),
    "primes64": primes_below(64, 3),
    "ends": [TOP, TOP - 1, 2**32 + 15, 7, 2**63 - 25],
    "one_full": [TOP],
    "just_wide": [2**32 + 1],
    "narrow": [2**32, 2**32 - 1, 7],
    "tiny": [2, 3, 2**40 + 1, 5],
    "unsorted": [3, primes_below(64, 1)[0], 2**33 - 9, 11, 2**62 - 57],
}
ALL = pytest.mark.parametrize("moduli", SETS.values(), ids=SETS)
BOTH = pytest.mark.parametrize("signed", [False, True])


def range_of(moduli: list[int], signed: bool) -> tuple[int, int]:
    product = math.prod(moduli)
    return (-(product // 2), (product - 1) // 2) if signed else (0, product - 1)


def numbers_of(moduli: list[int], signed: bool, count: int, rng: np.random.Generator) -> list[int]:
    """The ends of the range and of each digit of it, and random numbers."""
    lowest, highest = range_of(moduli, signed)
    draw = random.Random(int(rng.integers(2**63)))
    ends = [lowest, lowest + 1, -1, 0, 1, highest // 2, highest - 1, highest]
    weights = [math.prod(moduli[:k]) + d for k in range(len(moduli) + 1) for d in (-1, 0, 1)]
    edges = [v for v in [*ends, *weights, *(-w for w in weights)] if lowest <= v <= highest]
    return edges + [draw.randint(lowest, highest) for _ in range(count)]


def residues_of(values: list[int], moduli: list[int], dtype: Any = np.uint64) -> np.ndarray:
    return np.array([[v % m for v in values] for m in moduli], dtype=dtype).reshape(len(moduli), -1)


# ---- in and out -------------------------------------------------------------------------------------------


@ALL
@BOTH
def test_residues_become_numbers_and_come_back(
    on_each_processor: Processor, moduli: list[int], signed: bool, rng: np.random.Generator
) -> None:
    values = numbers_of(moduli, signed, 200, rng)
    expected = residues_of(values, moduli)
    for axis in (0, -1):
        written = np.moveaxis(expected, 0, axis).copy()
        given = on_each_processor.xp.asarray(written)
        for x in (
            rd.from_residues(given, moduli, signed, axis=axis),
            rd.from_residues(given, moduli, signed, axis=axis, chunks=128),
            rd.from_residues(da.from_array(given, chunks=(2, 37)), moduli, signed, axis=axis),
        ):
            assert x.to_ints().tolist() == values
            assert (x.signed, x.moduli.product >= math.prod(moduli)) == (signed, True)
            assert (
                x.moduli == rd.ModuliSet(moduli)
                if max(moduli) <= 2**32
                else (x.moduli.product // x.moduli[-1] < math.prod(moduli))
            )
            result = x.to_residues(moduli, axis=axis)
            assert isinstance(result, da.Array) == isinstance(x.residues, da.Array)
            found = host(result)
            assert found.dtype == (np.uint32 if max(moduli) <= 2**32 else np.uint64)
            np.testing.assert_array_equal(found, written)
    assert rd.from_residues(given, moduli, signed, axis=-1).bound in (
        None,
        max(map(abs, range_of(moduli, signed))),
    )


def test_the_dump_of_an_encryption_library_and_its_maximum(tmp_path: Path) -> None:
    """Numbers major, 60-bit primes, uint64: a file that is mapped into memory."""
    moduli, count = primes_below(60, 8), 20_000
    draw = random.Random(5)
    product = math.prod(moduli)
    values = [draw.randrange(product) for _ in range(count)]
    np.save(tmp_path / "dump.npy", residues_of(values, moduli).T)
    dump = np.load(tmp_path / "dump.npy", mmap_mode="r")
    assert (dump.shape, dump.dtype) == ((count, 8), np.uint64)
    x = rd.from_residues(dump, moduli, axis=-1, chunks=4096)
    assert x.chunks == ((4096,) * 4 + (count - 4 * 4096,),)
    assert (x.max().compute(), x.argmax().compute()) == (max(values), values.index(max(values)))
    assert x.sum().compute() == sum(values)
    x.to_zarr(tmp_path / "x.zarr")
    again = rd.open_zarr(tmp_path / "x.zarr")
    np.testing.assert_array_equal(again.to_residues(moduli, axis=-1).compute(), dump)
    assert again.to_ints().tolist() == values


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", ">i4", "int64", "uint64", ">u8", object])
def test_any_integer_type(dtype: str | type) -> None:
    moduli = [5, 127, 11]
    values = list(range(0, 5 * 127 * 11, 3))
    residues = residues_of(values, moduli, dtype)
    for given in (residues, da.from_array(residues, chunks=(1, 100))):
        assert rd.from_residues(given, rd.ModuliSet(moduli)).to_ints().tolist() == values
        wide = rd.from_residues(given, [*moduli[:2], 11], axis=0, trusted=True)
        assert (wide.moduli, wide.to_ints().tolist()) == (rd.ModuliSet(moduli), values)
        assert rd.from_residues(given, rd.RNS(rd.ModuliSet(moduli), bound=6984)).bound == 6984


def test_many_axes(on_each_processor: Processor) -> None:
    moduli = SETS["primes60"]
    values = np.array([10**60 + k for k in range(24)], dtype=object).reshape(2, 3, 4)
    residues = np.stack([values % m for m in moduli]).astype(np.uint64)
    for axis in (0, 1, 2, 3, -1, -2):
        given = on_each_processor.xp.asarray(np.moveaxis(residues, 0, axis))
        for x in (
            rd.from_residues(given, moduli, axis=axis),
            rd.from_residues(da.from_array(given, chunks=2), moduli, axis=axis),
        ):
            assert x.to_ints().tolist() == values.tolist()
            np.testing.assert_array_equal(
                host(x.to_residues(moduli, axis=axis)), np.moveaxis(residues, 0, axis)
            )


def test_no_numbers(on_each_processor: Processor) -> None:
    moduli = SETS["primes60"]
    for shape in ((0,), (3, 0), (0, 4)):
        given = on_each_processor.xp.empty((5, *shape), dtype=np.uint64)
        for x in (rd.from_residues(given, moduli), rd.from_residues(da.from_array(given), moduli)):
            assert x.shape == shape
            assert host(x.to_residues(moduli)).shape == (5, *shape)
            assert host(x.to_limbs(64, axis=0)).shape == (5, *shape)
            assert host(x.to_bytes(3)).shape == (*shape, 3)
            assert rd.from_limbs(x.to_limbs()).shape == shape
            assert rd.from_bytes(x.to_bytes(3)).shape == shape


def test_unknown_chunk_sizes() -> None:
    moduli = SETS["primes60"]
    x = rd.from_residues(da.from_array(residues_of(list(range(300)), moduli), chunks=(5, 100)), moduli)
    chosen = x[x > 250]
    np.testing.assert_array_equal(
        chosen.to_residues(moduli).compute(), residues_of(list(range(251, 300)), moduli)
    )
    assert host(chosen.to_limbs(64, count=1)).ravel().tolist() == list(range(251, 300))
    residues = chosen.to_residues([2**40 + 1, 3])
    assert rd.from_residues(residues, [2**40 + 1, 3]).to_ints().tolist() == list(range(251, 300))


def test_numbers_with_intervals(rng: np.random.Generator) -> None:
    moduli = SETS["primes60"]
    values = numbers_of(moduli, True, 50, rng)
    mine = rd.ModuliSet.for_bits(256)
    values = [v for v in values if abs(v) < mine.product]
    for x in (rd.IntervalRNSArray.from_ints(values, mine, chunks=c) for c in (None, 128)):
        np.testing.assert_array_equal(host(x.to_residues(moduli)), residues_of(values, moduli))
        for bits in (32, 64):
            again = rd.from_limbs(x.to_limbs(bits), rd.IntervalRNS(mine))
            assert isinstance(again, rd.IntervalRNSArray)
            assert again.to_ints().tolist() == values
        assert rd.from_bytes(x.to_bytes(), moduli=rd.IntervalRNS(mine)).to_ints().tolist() == values
    with pytest.raises(TypeError, match="residues alone have no signs"):
        rd.from_residues(residues_of(values, moduli), rd.IntervalRNS(mine))  # type: ignore[arg-type]


@given_by(st.data())
def test_any_moduli(data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.integers(2, TOP), min_size=1, max_size=6))
    moduli: list[int] = []
    for m in drawn:
        if math.gcd(m, math.prod(moduli)) == 1:
            moduli.append(m)
    signed = data.draw(st.booleans())
    lowest, highest = range_of(moduli, signed)
    values = data.draw(st.lists(st.integers(lowest, highest), max_size=5))
    residues = residues_of(values, moduli)
    x = rd.from_residues(residues, moduli, signed)
    assert x.to_ints().tolist() == values
    np.testing.assert_array_equal(x.to_residues(moduli), residues)


# ---- what is refused --------------------------------------------------------------------------------------


def test_a_residue_that_is_none_is_named(on_each_processor: Processor) -> None:
    moduli = SETS["primes60"]
    good = residues_of(list(range(300)), moduli)
    for dtype, row, value in (
        (np.uint64, 3, moduli[3]),
        (np.uint64, 0, TOP - 1),
        (np.int64, 2, -1),
        (np.int64, 4, moduli[4]),
        (np.int64, 1, -(2**63)),
    ):
        bad = good.astype(dtype)
        bad[row, 259] = bad[row, 270] = value
        message = (
            rf"residue {value} of the number at flat index 259 .* its modulus {moduli[row]} \(row {row}\)"
        )
        given = on_each_processor.xp.asarray(bad)
        with pytest.raises(ValueError, match=message):
            rd.from_residues(given, moduli)
        for x in (
            rd.from_residues(da.from_array(given, chunks=(2, 100)), moduli),
            rd.from_residues(da.from_array(given.T, chunks=(100, 2)), moduli, axis=1),
        ):
            with pytest.raises(ValueError, match=message):
                x.to_ints()


def test_objects_are_looked_at_one_by_one() -> None:
    for value, error, message in (
        (2**64, ValueError, r"residue 0x10000000000000000 \(65 bits\) of the number at flat index 1 "),
        (-1, ValueError, "residue -1 of the number at flat index 1 is not from 0 to below"),
        (1.0, TypeError, "residue 0 of the number at flat index 1 must be an integer, got 1.0"),
        (None, TypeError, "must be an integer, got None"),
    ):
        for moduli in ([11], [2**40]):
            with pytest.raises(error, match=message):
                rd.from_residues(np.array([[3, value, 5]], dtype=object), moduli)


@pytest.mark.parametrize(
    ("residues", "moduli", "options", "error", "message"),
    [
        (np.zeros((2, 3)), [7, 11], {}, TypeError, "residues must be integers, got dtype float64"),
        (np.zeros((2, 3), bool), [7, 11], {}, TypeError, "must be integers, got dtype bool"),
        (np.zeros((2, 3), int), [7, 11, 13], {}, ValueError, "one row for each of the 3 moduli"),
        (
            np.zeros((2, 3), int),
            [7, 11],
            {"axis": 1},
            ValueError,
            r"axis \(axis 1\) must have one row for each",
        ),
        (np.zeros((2, 3), int), [7, 11], {"axis": 2}, ValueError, "axis 2 is out of bounds"),
        (np.zeros((2, 3), int), [7, 11], {"axis": 0.0}, TypeError, "axis must be an integer"),
        (np.zeros(2, int), [7, 11], {}, ValueError, "at least one axis of numbers"),
        (np.ma.array([[1, 2]], mask=[[0, 1]]), [7], {}, ValueError, "residues are masked"),
        ([[1, 2]], [7], {}, TypeError, "must be a NumPy, CuPy or Dask array, got list"),
        (np.zeros((2, 3), int), [2**64 + 1, 3], {}, ValueError, r"moduli are from 2 to 2\*\*64"),
        (np.zeros((2, 3), int), [2**40, 6], {}, ValueError, "not coprime: both are divisible by 2"),
        (np.zeros((2, 3), int), [7, 1], {}, ValueError, r"modulus 1 \(position 1\) is out of bounds"),
        (np.zeros((2, 3), int), [7, 11.0], {}, TypeError, "modulus at position 1 must be an integer"),
        (np.zeros((2, 3), int), [], {}, ValueError, "needs at least one modulus"),
        (np.zeros((2, 3), int), "711", {}, TypeError, "must be a ModuliSet"),
        (np.zeros((2, 3), int), [2**40, 11], {"bound": -1}, ValueError, "bound must not be negative"),
        (np.full((2, 3), 5), [2**40, 11], {"bound": 4}, ValueError, "the number at flat index 0 is 5"),
        (np.full((2, 3), 5, np.uint8), [7, 11], {"bound": 4}, ValueError, "the number at flat index 0 is 5"),
    ],
)
def test_what_is_refused(
    residues: Any, moduli: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        rd.from_residues(residues, moduli, **options)
    assert len(str(caught.value).splitlines()) == 1


def test_residues_of_zarr_with_numbers_major(tmp_path: Path) -> None:
    moduli = SETS["primes60"]
    values = list(range(10**30, 10**30 + 500))
    written = residues_of(values, moduli).T
    stored = zarr.create_array(tmp_path / "r.zarr", shape=written.shape, dtype="uint64", chunks=(128, 2))
    stored[:] = written
    x = rd.from_residues(stored, moduli, axis=-1)
    assert x.chunks == ((128, 128, 128, 116),)
    assert x.to_ints().tolist() == values


def test_a_number_that_the_moduli_do_not_hold_is_named() -> None:
    values = [0, 2**100 - 1, 2**80, 5]
    for signed, wide in ((False, [2**40, 2**39 - 7]), (True, [2**41, 2**39 - 7])):
        for chunks in (None, 128):
            x = rd.from_ints(values, rd.ModuliSet.for_bits(120), signed=signed, chunks=chunks)
            with pytest.raises(ValueError, match=r"at flat index 1 is outside the \w+ range"):
                host(x.to_residues(wide))
            with pytest.raises(ValueError, match=r"at flat index 1 is outside the \w+ range"):
                host(x.to_residues([7, 11]))
            for moduli in (wide, [7, 11]):
                np.testing.assert_array_equal(
                    host(x.to_residues(moduli, overflow="wrap")), residues_of(values, moduli)
                )
    x = rd.from_ints([-1, -5], rd.ModuliSet.for_bits(120), signed=True, chunks=None)
    assert x.to_residues([2**64], dtype=np.uint64).tolist() == [[TOP - 1, TOP - 5]]
    assert x.to_residues([11], dtype=np.int8).tolist() == [[10, 6]]
    for options, message in (
        (
            {"moduli": [2**33 + 1], "dtype": np.uint32},
            "dtype must be an integer type that holds residues up to",
        ),
        ({"moduli": [7], "dtype": float}, "dtype must be an integer type"),
        ({"moduli": [7], "overflow": "flag"}, "overflow must be 'raise' or 'wrap', got 'flag'"),
        ({"moduli": [7, 14]}, "not coprime"),
        ({"moduli": [7], "axis": 2}, "axis 2 is out of bounds"),
    ):
        with pytest.raises(ValueError, match=message):
            x.to_residues(**options)


# ---- limbs and bytes --------------------------------------------------------------------------------------


def layouts(array: Any) -> Iterator[Any]:
    yield array
    yield da.from_array(array, chunks=(3, *(2,) * (array.ndim - 1)))


@BOTH
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("count", [1, 5, *slow(2)])
def test_limbs(
    on_each_processor: Processor, signed: bool, bits: int, count: int, rng: np.random.Generator
) -> None:
    dtype = np.uint32 if bits == 32 else np.uint64
    matrix = rng.integers(0, 2**bits, size=(40, count), dtype=dtype)
    matrix[0], matrix[1], matrix[2, -1] = 2**bits - 1, 0, 2 ** (bits - 1)
    size = bits // 8 * count
    values = [int.from_bytes(row.tobytes(), "little", signed=signed) for row in matrix]
    for axis in (0, 1, -1):
        given = on_each_processor.xp.asarray(np.moveaxis(matrix, -1, axis).copy())
        for limbs in layouts(given):
            x = rd.from_limbs(limbs, signed=signed, axis=axis)
            assert x.to_ints().tolist() == values
            assert x.signed == signed
            assert x.bound >= max(map(abs, values))
            np.testing.assert_array_equal(host(x.to_limbs(bits, count=count, axis=axis)), host(given))
            octets = host(x.to_bytes(size))
            assert octets.dtype == np.uint8
            assert octets.tobytes() == matrix.tobytes()
            wide = host(x.to_bytes(size + 5, "big"))
            assert [int.from_bytes(row.tobytes(), "big", signed=signed) for row in wide] == values


@BOTH
@pytest.mark.parametrize("byteorder", ["little", "big"])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 33])
def test_bytes(on_each_processor: Processor, signed: bool, byteorder: str, length: int) -> None:
    top = 2 ** (8 * length)
    ends = [-top // 2, -1, 0, 1, top // 2 - 1] if signed else [0, 1, top // 2, top - 1]
    buffer = b"".join(v.to_bytes(length, byteorder, signed=signed) for v in ends)  # type: ignore[arg-type]
    for data in (buffer, bytearray(buffer), memoryview(buffer)):
        x = rd.from_bytes(data, length, byteorder, signed=signed)
        assert x.to_ints().tolist() == ends
        assert x.to_bytes(length, byteorder).tobytes() == buffer
    octets = on_each_processor.xp.asarray(np.frombuffer(buffer, np.uint8).reshape(-1, length))
    for given in layouts(octets):
        x = rd.from_bytes(given, byteorder=byteorder, signed=signed)
        assert x.to_ints().tolist() == ends
        assert host(x.to_bytes(length, byteorder)).tobytes() == buffer


def test_limbs_of_many_axes_and_other_systems() -> None:
    values = np.array([[1, 2**70], [5, 2**90 - 1]], dtype=object)
    ms = rd.ModuliSet.for_bits(100)
    x = rd.from_ints(values, ms, chunks=None)
    limbs = x.to_limbs(64)
    assert limbs.shape == (2, 2, 2)
    assert rd.from_limbs(limbs, ms).to_ints().tolist() == values.tolist()
    assert (
        rd.from_limbs(np.asfortranarray(limbs).astype(">u8"), rd.RNS(ms)).to_ints().tolist()
        == values.tolist()
    )
    unsigned = rd.from_limbs(np.array([[2**64 - 1]], np.uint64), rd.IntervalRNS(ms), signed=False)
    assert unsigned.to_ints().tolist() == [2**64 - 1]
    assert rd.from_limbs(np.array([[2**64 - 1]], np.uint64), rd.IntervalRNS(ms)).to_ints().tolist() == [-1]
    bounded = rd.from_limbs(np.array([[5], [9]], np.uint32), rd.RNS(ms, bound=9))
    assert bounded.bound == 9
    with pytest.raises(ValueError, match="the number at flat index 1 is 9"):
        rd.from_limbs(np.array([[5], [9]], np.uint32), rd.RNS(ms, bound=8))


def test_numbers_that_do_not_fit_are_named() -> None:
    ms = rd.ModuliSet.for_bits(100)
    x = rd.from_ints([0, 255, 256, 3], ms, chunks=None)
    y = rd.from_ints([0, 127, -128, 128], ms, signed=True, chunks=None)
    attempts: list[tuple[Callable[[], Any], str]] = [
        (lambda: x.to_bytes(1), "number at flat index 2, 256, does not fit into 1 bytes, unsigned"),
        (lambda: y.to_bytes(1), "number at flat index 3, 128, does not fit into 1 bytes, signed"),
        (lambda: host(x.rechunk(128).to_bytes(1)), "number at flat index 2, 256, does not fit"),
        (lambda: (x + 2**64).to_limbs(32, count=2), "number at flat index 0, .* does not fit into 8 bytes"),
        (lambda: rd.from_limbs(np.full((3, 4), 2**32 - 1, np.uint32), ms), "at flat index 0 is outside"),
        (
            lambda: rd.from_limbs(np.array([[2**63]], np.uint64), rd.IntervalRNS(rd.ModuliSet([7]))),
            "value -9223372036854775808 at flat index 0 is outside",
        ),
        (
            lambda: rd.from_limbs(np.zeros((2, 2), np.uint32), rd.RNS(ms), signed=True),
            "contradicts the number",
        ),
        (lambda: rd.from_limbs(np.zeros((2, 0), np.uint32)), "limb axis .* must not be empty"),
        (lambda: rd.from_bytes(b"123", 2), "size of 3 bytes is not a multiple of the length of 2: 1 bytes"),
        (lambda: rd.from_bytes(b"1234", 0), "length must be at least 1, got 0"),
        (lambda: rd.from_bytes(b"12", 2, "middle"), "byteorder must be 'little' or 'big', got 'middle'"),
        (lambda: rd.from_bytes(np.zeros((2, 3), np.uint8), 4), "must have a length of 4, got shape"),
        (lambda: x.to_limbs(16), "bits must be 32 or 64, got 16"),
        (lambda: x.to_limbs(count=0), "count must be at least 1, got 0"),
    ]
    for attempt, message in attempts:
        with pytest.raises(ValueError, match=message) as caught:
            attempt()
        assert len(str(caught.value).splitlines()) == 1
    for wrong, message in (
        (lambda: rd.from_limbs(np.zeros((2, 2))), "limbs must be uint32 or uint64, got dtype float64"),
        (lambda: rd.from_limbs(np.zeros((2, 2), np.int64)), "got dtype int64"),
        (lambda: rd.from_bytes([1, 2]), "bytes must be a NumPy, CuPy or Dask array, got list"),
        (lambda: rd.from_bytes(b"12"), "a buffer needs the length of each number"),
    ):
        with pytest.raises(TypeError, match=message):
            wrong()
