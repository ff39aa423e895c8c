"""Convolutions of elements of Fermat fields in chunks and blocks, against FLINT's products of polynomials."""

import itertools
from typing import Any

import dask
import flint
import numpy as np
import pytest
from conftest import Processor
from dask.callbacks import Callback
from oracles.fermat import as_words
from strategies import slow

import rnsdask as rd
from rnsdask.fields import fermat_convolution

pytestmark = pytest.mark.usefixtures("in_steps")

FIELDS = {name: rd.FermatField.named(name) for name in ("F233", "F449", "P3")}
PLAIN = ("full", "same", "valid")
CYCLIC = ("cyclic", "negacyclic")


def draw(count: int, field: rd.FermatField, rng: np.random.Generator) -> list[int]:
    """Numbers, every other one of those whose sums carry far."""
    p, r, k = field.modulus, field.radix, field.digits
    ends = [0, 1, p - 1, p - 2, r, r - 1, r**k - r, r ** (k - 1), p - r]
    return [
        int.from_bytes(rng.bytes(80), "little") % p if rng.integers(2) else ends[rng.integers(len(ends))]
        for _ in range(count)
    ]


def convolved(a: list[int], b: list[int], mode: str, p: int) -> list[int]:
    full = [int(v) % p for v in flint.fmpz_poly(a) * flint.fmpz_poly(b)]
    full += [0] * (len(a) + len(b) - 1 - len(full))
    short, longer = sorted((len(a), len(b)))
    if mode in CYCLIC:
        sign = 1 if mode == "cyclic" else -1
        return [(v + sign * w) % p for v, w in zip(full[:longer], [*full[longer:], 0], strict=True)]
    first = {"full": 0, "same": (short - 1) // 2, "valid": short - 1}[mode]
    count = {"full": len(full), "same": longer, "valid": longer - short + 1}[mode]
    return full[first : first + count]


def check(x: rd.FieldArray, y: rd.FieldArray, mode: str, expected: Any, axis: int = -1) -> None:
    found = rd.convolve(x, y, mode, axis)
    words = as_words(expected, x.system)
    assert found.shape == words.shape[1:]
    held = found.compute(scheduler="sync").words if hasattr(found, "chunks") else found.words
    np.testing.assert_array_equal(held if isinstance(held, np.ndarray) else held.get(), words)


@pytest.mark.parametrize("name", ["P3", *slow("F233", "F449")])
@pytest.mark.parametrize(("first", "second"), [(1, 1), (2, 2), (8, 8), (32, 32), (33, 33), (50, 7), (9, 40)])
def test_all_modes_and_chunks(name: str, first: int, second: int, rng: np.random.Generator) -> None:
    field = FIELDS[name]
    a, b = draw(first, field, rng), draw(second, field, rng)
    x, y = (rd.from_ints(v, field, chunks=None) for v in (a, b))
    for mode in (*PLAIN, *(CYCLIC if first == second else ())):
        expected = convolved(a, b, mode, field.modulus)
        check(x, y, mode, expected)
        cuts = [(1, 1), (8, 3), (first, 4), (20, 11)] if first < 10 else [(7, 7), (20, 11)]
        for cut, other in rng.permutation(cuts)[: len(cuts) // 2].tolist():
            check(x.rechunk(cut), y.rechunk(other), mode, expected)
    check(x.rechunk(5), y, "full", convolved(a, b, "full", field.modulus))


def test_the_greatest_sums() -> None:
    """Products of -1 by -1, and of digits that carry through all others."""
    for field, count in itertools.product(FIELDS.values(), (5, 40)):
        p = field.modulus
        for value, other in (
            (p - 1, p - 1),
            (p - 1, field.radix),
            (p - 2, field.radix ** (field.digits - 1)),
        ):
            a, b = [value] * count, [other] * count
            for mode in (*PLAIN, *CYCLIC):
                expected = convolved(a, b, mode, p)
                x, y = (rd.from_ints(v, field, chunks=None) for v in (a, b))
                check(x, y, mode, expected)
                if value == other:
                    check(x.rechunk(8), y.rechunk(8), mode, expected)


@pytest.mark.parametrize("mode", [*PLAIN, "negacyclic"])
@pytest.mark.parametrize("axis", [0, -1, *slow(1)])
def test_axes_and_batches(
    on_each_processor: Processor, axis: int, mode: str, rng: np.random.Generator
) -> None:
    field, shape, other = FIELDS["F449"], [3, 2, 2], [3, 1, 2]
    shape[axis], other[axis] = 32, 32 if mode == "negacyclic" else 20
    a, b = (np.array(draw(int(np.prod(s)), field, rng), dtype=object).reshape(s) for s in (shape, other))
    left, right = (np.moveaxis(v, axis, -1) for v in (a, b))
    batch = np.broadcast_shapes(left.shape[:-1], right.shape[:-1])
    left, right = (np.broadcast_to(v, (*batch, v.shape[-1])) for v in (left, right))
    lines = [convolved(left[i].tolist(), right[i].tolist(), mode, field.modulus) for i in np.ndindex(batch)]
    expected = np.moveaxis(np.array(lines, dtype=object).reshape(*batch, -1), -1, axis)
    x, y = (rd.FieldArray(on_each_processor.xp.asarray(as_words(v, field)), field) for v in (a, b))
    check(x, y, mode, expected, axis)
    chunks, others = [2, 1, 2], [3, 1, 1]
    chunks[axis], others[axis] = 7, 9
    for cut in (tuple(chunks), (*chunks[: axis % 3], 32, *chunks[axis % 3 + 1 :])):
        check(x.rechunk(cut), y.rechunk(tuple(others)), mode, expected, axis)
        check(y, x.rechunk(cut), mode, expected, axis)


def test_long_axes(rng: np.random.Generator) -> None:
    """Products of two powers of the variable, and blocks of a long operand beside a short one."""
    field = FIELDS["F449"]
    one = np.eye(1, 2**14, dtype=np.int64)[0]
    i, j = (int(v) for v in rng.integers(2**13, 2**14, 2))
    x, y = (rd.from_ints(np.roll(one, v) * 3, field, chunks=1000) for v in (i, j))
    found = rd.convolve(x, y).compute()
    assert found.shape == (2**15 - 1,)
    assert found[i + j] == 9
    assert int((found != 0).sum()) == 1
    found = rd.convolve(x, y, "negacyclic").compute()
    assert found[i + j - 2**14] == field.modulus - 9
    assert int((found != 0).sum()) == 1
    a, b = draw(3000, field, rng), draw(100, field, rng)
    x, y = (rd.from_ints(v, field, chunks=None) for v in (a, b))
    for mode in PLAIN:
        expected = convolved(a, b, mode, field.modulus)
        check(x, y, mode, expected)
        check(x.rechunk(700), y, mode, expected)


@pytest.mark.parametrize("mode", ["full", "cyclic"])
def test_tasks_have_no_more_than_chunks(mode: str, rng: np.random.Generator) -> None:
    field = FIELDS["F449"]
    words = rng.integers(0, field.radix, (16, 2, 2**12), dtype=np.uint32)
    x = rd.FieldArray(words, field).rechunk((1, 2**8)).persist()
    most = 16 * 2**8 * 4
    with dask.config.set({"array.chunk-size": most}):  # of what Dask joins and cuts again
        found = rd.convolve(x, x, mode)
    assert max(found.chunks[1]) == 2**8
    sizes: list[int] = []

    def after(key: Any, result: Any, *_: Any) -> None:
        if "finalize" not in str(key):  # which joins all chunks
            sizes.append(getattr(result, "nbytes", 0))

    with Callback(posttask=after):
        found.words.compute(scheduler="sync")
    assert max(sizes) == most


def test_fields_with_few_roots(rng: np.random.Generator) -> None:
    field = rd.FermatField(2**31 + 2, 4)
    most = fermat_convolution.longest_transform(field)
    assert pow(field.root_of_unity(most), most // 2, field.modulus) == field.modulus - 1
    half = most // 2
    for first, second in ((half, half), (half + 1, half), (10 * most, half), (10 * most, 5), (most, most)):
        a, b = draw(first, field, rng), draw(second, field, rng)
        x, y = (rd.from_ints(v, field, chunks=None) for v in (a, b))
        if first < most or second < most:
            check(x, y, "full", convolved(a, b, "full", field.modulus))
            for chunk in (4, most):
                check(x.rechunk(chunk), y.rechunk(4), "full", convolved(a, b, "full", field.modulus))
        else:
            check(x, y, "cyclic", convolved(a, b, "cyclic", field.modulus))
            for p, q in ((x, y), (x.rechunk(4), y.rechunk(4))):
                with pytest.raises(ValueError, match=f"transforms of at most {most} elements, so for no"):
                    rd.convolve(p, q)


def test_nothing_and_lengths_that_are_not_known() -> None:
    field = FIELDS["F233"]
    empty = rd.from_ints(np.empty((0, 32), dtype=object), field, chunks=(1, 8))
    for mode in ("full", "negacyclic"):
        assert rd.convolve(empty, empty, mode).compute().shape == (0, 63 if mode == "full" else 32)
    x = rd.from_ints(list(range(32)), field, chunks=8)
    selected = x[x != -1]  # of a length that Dask does not know
    expected = convolved(list(range(32)), list(range(32)), "full", field.modulus)
    check(selected, selected, "full", expected)
    with pytest.raises(ValueError, match="not empty, got 32 and 0"):
        rd.convolve(x, x[:0])
