"""Products of matrices and vectors, and which results overflow, against Python integers."""

import pickle
import random
from typing import Any

import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import rns
from oracles.integers import matrix_product, objects
from sample_arrays import CPU, array_of, chunked, host
from strategies import ALL_SETS, BOTH_RANGES, MODULI_SETS, SHORT_SETS, edge_values, moduli_sets, values_in

import rnsdask as rd
from rnsdask.backend import kernels_of
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns import matmul
from rnsdask.rns import matmul as contraction

TOP = MODULI_SETS["top"]


def check(a: rd.RNSArray, b: rd.RNSArray, exact: np.ndarray) -> None:
    """Compare the product, its flags and its error with those of Python integers."""
    moduli, signed = a.moduli, a.signed
    lowest, highest = moduli.value_range(signed)
    outside = [not lowest <= value <= highest for value in exact.ravel()]
    wrapped = [(value - lowest) % moduli.product + lowest for value in exact.ravel()]
    result, mask = rd.matmul(a, b, overflow="flag")
    assert result.shape == exact.shape
    assert mask.shape == exact.shape
    assert host(mask).ravel().tolist() == outside
    assert result.to_ints().ravel().tolist() == wrapped
    assert rd.matmul(a, b, overflow="wrap").to_ints().ravel().tolist() == wrapped
    if True not in outside:
        assert (a @ b).to_ints().ravel().tolist() == wrapped
    elif not isinstance(a.residues, da.Array):
        with pytest.raises(rd.RNSOverflowError) as caught:
            a @ b
        first = outside.index(True)
        value = exact.ravel()[first]
        expected = rd.RNSOverflowError.of_value(value, first, moduli.bits, signed)
        assert str(caught.value) == str(expected)
    else:
        with pytest.raises(rd.RNSOverflowError) as caught:
            (a @ b).to_ints()
        assert outside[caught.value.index]


def cases(moduli: ModuliSet, signed: bool, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Matrices of edges whose last terms bring results beside an end of the range, or to 0."""
    generator = random.Random(seed)
    lowest, highest = moduli.value_range(signed)
    edges = edge_values(moduli, signed)
    a = objects([generator.choice(edges) for _ in range(3 * count)], (3, count))
    b = objects([generator.choice(edges) for _ in range(count * 4)], (count, 4))
    for i in range(3):
        a[i, -1] = 1
        for j in range(4):
            a[i, -2 - j] = int(i == j % 3)
    for j in range(4):
        target = generator.choice((lowest, highest, 0)) + generator.randint(-2, 2)
        rest = sum(x * y for x, y in zip(a[j % 3, :-1], b[:-1, j], strict=True))
        b[-1, j] = min(max(target - rest, lowest), highest)
    return a, b


@ALL_SETS
@BOTH_RANGES
def test_edges_of_every_set(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool, rng: np.random.Generator
) -> None:
    for count in (6, 11):
        a, b = cases(moduli, signed, count, int(rng.integers(2**32)))
        x, y = (array_of(on_each_processor, z, moduli, signed) for z in (a, b))
        check(x, y, matrix_product(a, b))


@SHORT_SETS
@BOTH_RANGES
def test_results_that_fit_after_partial_sums_do_not(
    on_each_processor: Processor, moduli: ModuliSet, signed: bool
) -> None:
    lowest, highest = moduli.value_range(signed)
    h, s = highest, int(signed)
    a = objects([h, h, 1, h, -h * s, 0, lowest, lowest, 1], (3, 3))
    b = objects([h, h, -h * s, h, lowest, 0], (3, 2))
    x, y = (array_of(on_each_processor, z, moduli, signed) for z in (a, b))
    check(x, y, matrix_product(a, b))
    if signed and h > 1:
        # Telescopes: h h - h h + 1, with all partial sums far out of range.
        row = objects([h, h, h, h, 1], (1, 5))
        column = objects([h, -h, h, -h, 1], (5, 1))
        x, y = (array_of(on_each_processor, z, moduli, True) for z in (row, column))
        assert (x @ y).to_ints().tolist() == [[1]]
        for chunks in (1, 2):
            lazy = [chunked(z, chunks, chunks) for z in (x, y)]
            assert (lazy[0] @ lazy[1]).to_ints().tolist() == [[1]]


@given(st.data())
@settings(max_examples=30)
def test_any_set_and_values(on_each_processor: Processor, data: st.DataObject) -> None:
    moduli = data.draw(moduli_sets(max_size=6))
    signed = data.draw(st.booleans())
    rows, terms, columns = (data.draw(st.integers(1, 4)) for _ in range(3))
    values = values_in(moduli, signed)
    lowest, highest = moduli.value_range(signed)
    small = st.integers(max(lowest, -3), min(highest, 3))
    draw = st.one_of(values, small)
    a = objects(data.draw(st.lists(draw, min_size=rows * terms, max_size=rows * terms)), (rows, terms))
    b = objects(
        data.draw(st.lists(draw, min_size=terms * columns, max_size=terms * columns)), (terms, columns)
    )
    x, y = (array_of(on_each_processor, z, moduli, signed) for z in (a, b))
    exact = matrix_product(a, b)
    check(x, y, exact)
    chunks = [tuple(data.draw(st.integers(1, 3)) for _ in range(2)) for _ in range(2)]
    check(chunked(x, *chunks[0]), chunked(y, *chunks[1]), exact)


# ---- the kernel -------------------------------------------------------------------------------------------

# Two moduli whose sums fit a word, the widest of those and the next ones, and those of 32 bits.
KERNEL_MODULI = ModuliSet([2**32, 3, 65537, 189812507, 189812533, 2**31 - 1, 2**32 - 5])
SHAPES = [
    (1, 1, 1),
    (2, 3, 4),
    (3, 513, 9),
    (5, 1030, 7),
    (1, 5000, 1),
    (7, 5, 200),
    (65, 512, 129),
    (4, 511, 128),
    (16, 4097, 65),
    (3, 0, 4),
    (0, 3, 2),
    (2, 3, 0),
    (1, 4, 300),
    (300, 3, 1),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("layout", ["plain", "transposed", "strided"])
def test_kernel(
    on_each_processor: Processor, shape: tuple[int, int, int], layout: str, rng: np.random.Generator
) -> None:
    rows, terms, columns = shape
    xp = on_each_processor.xp
    for greatest in (False, True):
        a, b = (
            np.stack([rng.integers((m - 1) * greatest, m, size=s, dtype=np.uint64) for m in KERNEL_MODULI])
            for s in ((rows, terms), (terms, columns))
        )
        expected = np.zeros((len(KERNEL_MODULI), rows, columns), dtype=np.uint32)
        for i, m in enumerate(KERNEL_MODULI):
            # Halves of 16 bits: sums of their products stay below 2**53, so that doubles are exact.
            (a1, a0), (b1, b0) = ([(z >> 16).astype(float), (z & 0xFFFF).astype(float)] for z in (a[i], b[i]))
            sums = (z.astype(np.int64) % m for z in (a1 @ b1, a1 @ b0 + a0 @ b1, a0 @ b0))
            high, middle, low = (z.astype(object) for z in sums)
            expected[i] = ((high * 2**32 + middle * 2**16 + low) % m).astype(np.uint32)
        x, y = (xp.asarray(z.astype(np.uint32))[:, None] for z in (a, b))
        if layout == "transposed":
            x, y = (xp.ascontiguousarray(z.swapaxes(2, 3)).swapaxes(2, 3) for z in (x, y))
        elif layout == "strided":
            x, y = (xp.repeat(xp.repeat(z, 2, axis=2), 3, axis=3)[:, :, ::2, ::3] for z in (x, y))
        out = xp.full((len(KERNEL_MODULI), 1, rows, columns), 7, dtype=np.uint32)
        kernels_of(out).matmul(x, y, KERNEL_MODULI, out)
        assert (on_each_processor.to_numpy(out)[:, 0] == expected).all()


@pytest.mark.parametrize(
    "batches", [((6,), (6,)), ((6,), ()), ((3, 1), (1, 4)), ((2, 3, 2), (1, 2)), ((0,), (1,))]
)
@pytest.mark.parametrize("shape", [(3, 2, 5), (2, 70, 9), (5, 8, 1)], ids=str)
def test_stacks(
    on_each_processor: Processor,
    batches: tuple[tuple[int, ...], tuple[int, ...]],
    shape: tuple[int, int, int],
    rng: np.random.Generator,
) -> None:
    """Also of few matrices with many terms, and of axes that no step in memory joins."""
    rows, terms, columns = shape
    n = len(KERNEL_MODULI)
    sides = ((*batches[0], rows, terms), (*batches[1], terms, columns))
    a, b = (
        np.stack([rng.integers(0, m, size=side, dtype=np.uint64) for m in KERNEL_MODULI]) for side in sides
    )
    ndim = max(a.ndim, b.ndim)
    x, y = (
        on_each_processor.xp.asarray(z.astype(np.uint32)).reshape(n, *(1,) * (ndim - z.ndim), *z.shape[1:])
        for z in (a, b)
    )
    found = on_each_processor.to_numpy(matmul.multiply(x, y, KERNEL_MODULI))
    for i, m in enumerate(KERNEL_MODULI):
        assert (found[i] == np.matmul(a[i].astype(object), b[i].astype(object)) % m).all()


def test_widest_modulus_whose_sums_fit_a_word() -> None:
    limit = (2**64 - 1) // 512
    assert (189812507 - 1) ** 2 <= limit < (189812533 - 1) ** 2


# ---- the interface ----------------------------------------------------------------------------------------


def grid(seed: int, *shape: int) -> np.ndarray:
    generator = random.Random(seed)
    return objects([generator.randint(-(2**40), 2**40) for _ in range(int(np.prod(shape)))], shape)


@pytest.mark.parametrize("chunks", [None, "few", "many"])
def test_shapes_of_numpy(on_each_processor: Processor, chunks: str | None) -> None:
    numbers = [grid(1, 5, 300), grid(2, 300, 4), grid(3, 300), grid(4, 5), grid(5, 4)]
    arrays = [array_of(on_each_processor, z, TOP, True) for z in numbers]
    if chunks is not None:
        length = 128 if chunks == "many" else 300
        arrays = [chunked(x, *(min(length, n) for n in x.shape)) for x in arrays]
    (a, b, v, row, column), (x, y, u, left, right) = numbers, arrays
    for result, expected in (
        (x @ y, a @ b),
        (x @ u, a @ v),
        (u @ y, v @ b),
        (left @ x, row @ a),
        (y @ right, b @ column),
        (rd.dot(x, y), a @ b),
    ):
        assert isinstance(result, rd.RNSArray)
        assert isinstance(result.residues, da.Array) == (chunks is not None)
        assert result.shape == expected.shape
        assert (result.to_ints() == expected).all()
    number = u @ u
    if chunks is None:
        assert type(number) is int
    else:
        assert number.shape == ()
        assert int(number) == v @ v
        number = number.compute()
    assert number == v @ v
    number, flag = rd.dot(u, u, overflow="flag")
    assert number == v @ v
    assert not flag
    assert (flag is False) == (chunks is None)


def test_transposed_and_sliced_views(on_each_processor: Processor) -> None:
    numbers = grid(9, 12, 20)
    x = array_of(on_each_processor, numbers, TOP, True)
    turned = rd.RNSArray(x.residues.transpose(0, 2, 1), rd.RNS(TOP, True))
    part = x[::2, ::-3]
    assert ((x @ turned).to_ints() == numbers @ numbers.T).all()
    assert ((turned @ x).to_ints() == numbers.T @ numbers).all()
    other = rd.RNSArray(part.residues.transpose(0, 2, 1), rd.RNS(TOP, True))
    assert ((part @ other).to_ints() == numbers[::2, ::-3] @ numbers[::2, ::-3].T).all()


def test_one_lazy_operand(on_each_processor: Processor) -> None:
    a, b = grid(1, 5, 300), grid(2, 300, 140)
    x, y = (array_of(on_each_processor, z, TOP, True) for z in (a, b))
    lazy = y.rechunk((100, 128))
    result = x @ lazy
    assert isinstance(result.residues, da.Array)
    assert (result.to_ints() == a @ b).all()
    assert ((y[:, :5].rechunk((7, 5)) @ x).to_ints() == b[:, :5] @ a).all()


@BOTH_RANGES
def test_zero_terms(on_each_processor: Processor, signed: bool) -> None:
    a, b = (array_of(on_each_processor, np.empty(s, dtype=object), TOP, signed) for s in ((3, 0), (0, 2)))
    v = array_of(on_each_processor, np.empty(0, dtype=object), TOP, signed)
    lazy = (chunked(a, 2, 1), chunked(b, 1, 2), chunked(v, 1))
    for x, y, z in ((a, b, v), lazy):
        assert (x @ y).to_ints().tolist() == [[0, 0]] * 3
        assert (x @ z).to_ints().tolist() == [0] * 3
        assert int(z @ z) == 0
        result, mask = rd.matmul(x, y, overflow="flag")
        assert not host(mask).any()
        assert result.bound == 0
    stack = array_of(on_each_processor, np.empty((2, 3, 4, 0), dtype=object), TOP, signed)
    assert (stack @ b).to_ints().tolist() == np.zeros((2, 3, 4, 2), dtype=int).tolist()


def test_bounds() -> None:
    a = rd.from_ints(list(range(10)), TOP)
    x = rd.RNSArray(a.residues.reshape(len(TOP), 2, 5), rd.RNS(TOP, bound=9))
    y = rd.RNSArray(a.residues.reshape(len(TOP), 5, 2), rd.RNS(TOP, bound=100))
    assert (x @ y).bound == 5 * 900
    assert rd.matmul(x, y, overflow="wrap").bound == 5 * 900
    unknown = rd.RNSArray(y.residues, rd.RNS(TOP))
    assert (x @ unknown).bound is None


def test_results_known_to_fit_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnsdask.rns.matmul.exact_product", None)
    x = rd.from_ints([3, -4, 2**40], TOP, signed=True)
    assert x @ x == 25 + 2**80
    lazy = x.rechunk(128)
    assert int(lazy @ lazy) == 25 + 2**80


def test_small_numbers_need_no_further_moduli() -> None:
    residues = rns.encode([3, 4, 0, 5], TOP).reshape(len(TOP), 2, 2)
    product = contraction.exact_product(residues, residues, (rd.RNS(TOP), rd.RNS(TOP)))
    assert len(product.residues) == len(TOP)
    assert 2 * 25 <= product.reach <= 2 * 7 * 7


@SHORT_SETS
@BOTH_RANGES
def test_greatest_magnitude(on_each_processor: Processor, moduli: ModuliSet, signed: bool) -> None:
    for value in edge_values(moduli, signed):
        residues = on_each_processor.xp.asarray(rns.encode([0, value], moduli, signed))
        found = contraction.greatest_magnitude(residues, rd.RNS(moduli, signed))
        assert abs(value) <= found <= abs(value) + abs(value) // 1000 + 1


@ALL_SETS
@BOTH_RANGES
def test_enlarged_sets_hold_what_they_are_for(moduli: ModuliSet, signed: bool) -> None:
    highest = moduli.value_range(signed)[1]
    before = moduli
    reaches = (0, highest, highest + 1, highest * 5, highest * 2**33, highest**2 * 1000)
    for reach in sorted(reaches):
        larger = matmul.enlarged(rd.RNS(moduli, signed), reach).moduli
        assert larger.value_range(signed)[1] >= reach
        assert larger.moduli[: len(before)] == before.moduli
        assert reach > highest or larger == moduli
        if len(larger) > len(moduli):
            assert larger.prefix(len(larger) - 1).value_range(signed)[1] < reach
        before = larger


@BOTH_RANGES
def test_error_on_dask_names_the_index_in_the_array(signed: bool) -> None:
    highest = TOP.value_range(signed)[1]
    a, b = np.zeros((40, 6), dtype=object), np.zeros((6, 300), dtype=object)
    a[33, 5], b[5, 270], a[33, 0], b[0, 270] = 2, highest // 2, 1, 5
    x, y = (array_of(CPU, z, TOP, signed) for z in (a, b))
    product = chunked(x, 16, 2) @ chunked(y, 3, 128)
    assert product.chunks == ((16, 16, 8), (128, 128, 44))
    with pytest.raises(rd.RNSOverflowError) as caught:
        product.to_ints()
    assert caught.value.index == 33 * 300 + 270
    assert caught.value.bits_needed == TOP.bits
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args


def test_lazy_products_compute_nothing_early() -> None:
    def fail(block: np.ndarray) -> np.ndarray:
        raise AssertionError

    residues = da.zeros((len(TOP), 6, 6), dtype=np.uint32, chunks=(-1, 3, 2)).map_blocks(
        fail, dtype=np.uint32, meta=np.empty((0, 0, 0), np.uint32)
    )
    x = rd.RNSArray(residues, rd.RNS(TOP))
    rd.matmul(x, x, overflow="flag")
    x[0] @ x[1]


def test_mismatches() -> None:
    x = array_of(CPU, grid(1, 2, 3), TOP, True)
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(2, 3\) do not match"):
        x @ x
    with pytest.raises(ValueError, match=r"shapes \(3,\) and \(2, 3\) do not match"):
        x[0] @ x
    with pytest.raises(ValueError, match="different moduli sets"):
        x @ array_of(CPU, grid(1, 3, 2), MODULI_SETS["table2_4"], True)
    with pytest.raises(ValueError, match="one is signed, another unsigned"):
        x @ array_of(CPU, abs(grid(1, 3, 2)), TOP, False)
    for other in (5, np.ones((3, 2)), None):
        with pytest.raises(TypeError, match=r"must be RNSArrays|rd\.from_ints|must be an integer"):
            x @ other
        with pytest.raises(TypeError, match=r"must be RNSArrays|rd\.from_ints|must be an integer"):
            other @ x
    cube = rd.RNSArray(x.residues[:, None], rd.RNS(TOP, True))
    with pytest.raises(ValueError, match="one or two axes, got 3; matmul takes stacks"):
        rd.dot(cube, x)
    with pytest.raises(ValueError, match="overflow must be one of"):
        rd.matmul(x, x[0], overflow="no")
    lazy = x.rechunk((1, 3))[0]
    with pytest.raises(ValueError, match=r"shapes \(1,\) and \(3,\) do not match"):
        lazy[lazy > 5] @ lazy


@pytest.mark.parametrize(
    "system",
    [rd.RNS(TOP), rd.IntervalRNS(TOP), rd.PrimeFields([101, 103]), rd.FermatField(2**28 + 2**22, 16)],
    ids=lambda system: type(system).__name__,
)
@pytest.mark.parametrize("chunks", [None, 2])
def test_errors_name_the_shapes_of_the_operands(system: Any, chunks: int | None) -> None:
    x, y, z = (rd.from_ints(values, system, chunks=chunks) for values in ([1, 2], [1, 2, 3], [[1, 2, 3]] * 4))
    for a, b, shapes in ((x, y, r"\(2,\) and \(3,\)"), (z, x, r"\(4, 3\) and \(2,\)"), (z, z, r"\(4, 3\)")):
        for product in (rd.dot, rd.matmul):
            with pytest.raises(ValueError, match=f"^shapes {shapes}"):
                product(a, b)
