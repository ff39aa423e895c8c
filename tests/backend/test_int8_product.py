"""Matrix products by matrices of 8-bit residues against Python's integers."""

import gc
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import Processor

from rnsdask.backend import kernels_of
from rnsdask.constants import MOST_TERMS, int8_constants, small_moduli_for
from rnsdask.constants.int8_product import SMALL_MODULI
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.matmul import multiply

MODULI = ModuliSet([2**32, 2**32 - 5, 2**31 - 1, 65537, 257, 3])
FEW = ModuliSet([3, 5, 7])


def split(
    processor: Processor, x: np.ndarray, moduli: ModuliSet, count: int, is_left: bool = False
) -> np.ndarray:
    xp = processor.xp
    rows, columns = (-(-length // 16) * 16 for length in x.shape[-2:])
    out = xp.full((*x.shape[:2], count, rows, columns), 9, dtype=np.int8)
    kernels_of(out).int8_split(x, int8_constants(moduli, count), is_left, out)
    return processor.to_numpy(out)


def join(processor: Processor, sums: np.ndarray, moduli: ModuliSet, shape: tuple[int, int]) -> np.ndarray:
    xp = processor.xp
    out = xp.full((*sums.shape[:2], *shape), 7, dtype=np.uint32)
    constants = int8_constants(moduli, sums.shape[2])
    kernels_of(out).int8_join(xp.asarray(sums), constants, out)
    return processor.to_numpy(out)


def product(processor: Processor, a: np.ndarray, b: np.ndarray, moduli: ModuliSet) -> np.ndarray:
    """Multiply residues (n, B, I, K) and (n, B, K, J) by as few small moduli as hold the product."""
    xp = processor.xp
    count = small_moduli_for(moduli, a.shape[-1])
    x = split(processor, xp.asarray(a), moduli, count, is_left=True)
    # In a layout that is not that of rows.
    y = split(processor, xp.asarray(b.swapaxes(2, 3).copy()).swapaxes(2, 3), moduli, count)
    # Doubles hold sums below 2**53, and NumPy multiplies them by a library.
    terms = min(x.shape[-1], y.shape[-2])
    sums = np.matmul(x[..., :terms].astype(np.float64), y[..., :terms, :].astype(np.float64))
    assert (abs(sums) <= 2**30).all()
    return join(processor, sums.astype(np.int32), moduli, (a.shape[-2], b.shape[-1]))


def exact(a: np.ndarray, b: np.ndarray, moduli: ModuliSet) -> np.ndarray:
    sums = np.matmul(a.astype(object), b.astype(object))
    return sums % np.array(moduli.moduli, dtype=object)[:, None, None, None]


def test_the_small_moduli_are_coprime_and_hold_the_longest_sums() -> None:
    assert all(math.gcd(p, q) == 1 for p, q in itertools.combinations(SMALL_MODULI, 2))
    assert math.prod(SMALL_MODULI) > 2**79
    assert small_moduli_for(ModuliSet([2**32]), MOST_TERMS) == len(SMALL_MODULI)
    assert small_moduli_for(ModuliSet([2**31 - 1]), 1024) == 9
    for terms in (0, 1, 2, 1000, MOST_TERMS):
        for m in (2, 3, 255, 256, 257, 2**31 - 1, 2**32 - 5, 2**32):
            count, reach = small_moduli_for(ModuliSet([m]), terms), terms * (m // 2) ** 2
            assert 2 * reach * 2**6 <= math.prod(SMALL_MODULI[:count]) * (2**6 - 1)
            assert count == 1 or 2 * reach * 2**6 > math.prod(SMALL_MODULI[: count - 1]) * (2**6 - 1)


@pytest.mark.parametrize("count", [1, 3, 9, 10])
def test_residues_modulo_small_moduli(
    on_each_processor: Processor, count: int, rng: np.random.Generator
) -> None:
    """Residues around the ends, the middle, 0, and multiples of each small modulus and of halves."""
    for m in (*MODULI, *FEW):
        places = [0, 1, m // 2, m - 1, *(k * q // 2 for q in SMALL_MODULI for k in (1, 2, 3, 2**24, m // q))]
        values = sorted({(place + step) % m for place in places for step in (-2, -1, 0, 1, 2)})
        values += rng.integers(0, m, 100).tolist()
        x = np.array(values, dtype=np.uint64).astype(np.uint32).reshape(1, 1, 1, -1)
        found = split(on_each_processor, on_each_processor.xp.asarray(x), ModuliSet([m]), count)
        assert not found[..., 1:, :].any()
        assert not found[..., len(values) :].any()
        centred = np.array([v if v <= (m - 1) // 2 else v - m for v in values], dtype=object)
        for row, q in zip(found[0, 0, :, 0, : len(values)].tolist(), SMALL_MODULI, strict=False):
            assert all(-128 <= r <= 127 for r in row)
            assert all((r - v) % q == 0 for r, v in zip(row, centred, strict=True))


@pytest.mark.parametrize("m", [2, 3, 257, 65537, 2**31 - 1, 2**32 - 5, 2**32])
def test_sums_at_the_ends_of_what_the_small_moduli_hold(on_each_processor: Processor, m: int) -> None:
    """Also with residues at both ends of what sums of products reach."""
    moduli = ModuliSet([m])
    for count in range(1, len(SMALL_MODULI) + 1):
        small = SMALL_MODULI[:count]
        most = (2**6 - 1) * math.prod(small) // 2**7
        inverses = [pow(math.prod(small) // q, -1, q) for q in small]
        values = [0, 1, -1, most, -most, most - 1, 1 - most, most // 2, -most // 3]
        # Sums that are short, and long ones.
        for step, most_sum in itertools.product((0, 1, -1), (2**22, 2**30)):
            numbers = [
                [v * w % q + step * (most_sum // q - 1) * q for v in values]
                for q, w in zip(small, inverses, strict=True)
            ]
            sums = np.zeros((1, 1, count, 1, 16), dtype=np.int32)
            sums[0, 0, :, 0, : len(values)] = numbers
            found = join(on_each_processor, sums, moduli, (1, len(values)))
            assert found.ravel().tolist() == [v % m for v in values]


SHAPES = [(1, 1, 1), (3, 5, 2), (17, 33, 16), (3, 1030, 9), (2, 0, 3), (0, 4, 2), (33, 10, 130)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("moduli", [MODULI, FEW], ids=["great", "few"])
def test_products(
    on_each_processor: Processor, moduli: ModuliSet, shape: tuple[int, int, int], rng: np.random.Generator
) -> None:
    rows, terms, columns = shape
    last = np.array(moduli.moduli, dtype=np.uint64)[:, None, None, None] - 1
    sides = ((len(moduli), 2, rows, terms), (len(moduli), 2, terms, columns))
    for low in (0, last, last // 2, last // 2 + 1):
        high = last if isinstance(low, int) or low is last else low
        a, b = (rng.integers(low, high, side, dtype=np.uint64, endpoint=True) for side in sides)
        a, b = a.astype(np.uint32), b.astype(np.uint32)
        assert (product(on_each_processor, a, b, moduli) == exact(a, b, moduli)).all()


def test_longest_sums(on_each_processor: Processor) -> None:
    """Sums of the numbers farthest from 0, with both signs, as long as 32 bits can hold them."""
    moduli = ModuliSet([2**32, 2**32 - 5])
    middle = np.array([2**31, 2**31 - 3], dtype=np.uint32)[:, None, None, None]
    a = np.broadcast_to(middle, (2, 1, 1, MOST_TERMS)).copy()
    b = np.broadcast_to(middle, (2, 1, MOST_TERMS, 3)).copy()
    b[..., 1] += 1
    b[:, :, ::2, 2] += 1
    assert (product(on_each_processor, a, b, moduli) == exact(a, b, moduli)).all()


@pytest.mark.gpu
def test_great_products_go_by_small_moduli(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Products of a stack and one matrix in another layout, with the threshold lowered."""
    import cupy

    from rnsdask.backend.cuda import matmul as dispatch

    monkeypatch.setattr(dispatch, "INT8_WORK", 0)
    calls = []
    product = dispatch.int8_product.multiply
    monkeypatch.setattr(dispatch.int8_product, "multiply", lambda *x: calls.append(product(*x)))
    moduli = ModuliSet([2**32, 2**31 - 1])
    sides = ((2, 2, 130, 200), (2, 1, 140, 200))
    a, b = (rng.integers(0, 2**31 - 1, side, dtype=np.uint64).astype(np.uint32) for side in sides)
    found = multiply(cupy.asarray(a), cupy.asarray(b).swapaxes(2, 3), moduli)
    assert (found.get() == exact(a, b.swapaxes(2, 3), moduli)).all()
    assert len(calls) == 1


@pytest.mark.gpu
def test_blocks_and_windows(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """The whole way, by blocks of all three sides, some matrices at a time, and of parts of matrices."""
    import cupy

    from rnsdask.backend.cuda import int8_product
    from rnsdask.backend.cuda.int8_product import ADD, REPLACE, SUBTRACT, Part

    rows, terms, columns = shape = (150, 300, 210)
    words = [
        np.stack([rng.integers(0, m, (3, *side), dtype=np.uint64).astype(np.uint32) for m in MODULI])
        for side in ((rows, terms), (terms, columns), (rows, columns))
    ]
    a, b, before = words
    m = np.array(MODULI.moduli, dtype=object)[:, None, None, None]
    whole = exact(a, b, MODULI)
    ways = [(8192, 16384, 4096, 2**29), (64, 128, 32, 2**20), (100, 77, 60, 1)]
    for (*sides, workspace), most_joined in itertools.product(ways, (0, 512)):
        for name, side in zip(("INT8_ROWS", "INT8_TERMS", "INT8_COLUMNS"), sides, strict=True):
            monkeypatch.setattr(int8_product, name, side)
        monkeypatch.setattr(int8_product, "INT8_WORKSPACE", workspace)
        monkeypatch.setattr(int8_product, "MOST_JOINED", most_joined)
        monkeypatch.setattr(int8_product, "resident_tiles", lambda: 3)
        for mode in (REPLACE, ADD, SUBTRACT):
            x, y, out = map(cupy.asarray, words)
            int8_product.multiply(*map(Part.whole, (x, y)), MODULI, Part.whole(out), shape, mode)
            assert (out.get() == ((before if mode else 0) + (mode or 1) * whole) % m).all()
        starts = rng.integers(0, 60, (2, len(MODULI), 3)).astype(np.int32)
        inner = rng.integers(0, 120, (len(MODULI), 3)).astype(np.int32)
        top, first = starts
        left, right = map(cupy.asarray, words[:2])
        ends = [cupy.asarray(v) for v in (top, first, first + inner)]
        across = (5, columns)
        x = Part(left, (ends[0], rows - 3), (ends[1], ends[2]))
        y = Part(right, (ends[1], ends[2]), across)
        out = Part(cupy.asarray(before), (ends[0], rows - 3), across)
        int8_product.multiply(x, y, MODULI, out, (rows, 130, columns - 9), SUBTRACT)
        expected = before.astype(object)
        for i, t in np.ndindex(top.shape):
            along = slice(top[i, t], rows - 3)
            middle = slice(first[i, t], first[i, t] + inner[i, t])
            part = a[i, t, along, middle].astype(object) @ b[i, t, middle, 5 : columns - 4].astype(object)
            expected[i, t, along, 5 : columns - 4] -= part
        assert (out.words.get() == expected % m).all()


@pytest.mark.gpu
@pytest.mark.parametrize("most_joined", [0, 512])
def test_images_of_one_block_at_a_time(monkeypatch: pytest.MonkeyPatch, most_joined: int) -> None:
    """Images of a block and sums of products are freed before the next ones are made."""
    import cupy

    from rnsdask.backend.cuda import int8_product
    from rnsdask.backend.cuda.int8_product import Part

    monkeypatch.setattr(int8_product, "INT8_WORKSPACE", 1)
    monkeypatch.setattr(int8_product, "MOST_JOINED", most_joined)
    monkeypatch.setattr(int8_product, "resident_tiles", lambda: 1)
    used, pool = [], cupy.get_default_memory_pool()

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: used.append(pool.used_bytes()) or function(*arguments)

    for name in ("_empty", "_split"):
        monkeypatch.setattr(int8_product, name, watched(getattr(int8_product, name)))
    moduli = ModuliSet([2**32 - 5])
    x, out = (cupy.ones((1, 3, 128, 128), dtype=cupy.uint32) for _ in range(2))
    gc.collect()  # of other tests
    for _ in range(2):  # tables are made in the first one
        used.clear()
        int8_product.multiply(*map(Part.whole, (x, x)), moduli, Part.whole(out), (128, 128, 128))
    assert len(used) == 9  # of three matrices, two images and a launch
    assert used == used[:3] * 3


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(130, 70, 75), (64, 65, 129), (33, 10, 8)])
def test_products_that_become_residues(shape: tuple[int, int, int], rng: np.random.Generator) -> None:
    """And words or none, from and to matrices and transposed ones, of any number of columns."""
    import cupy

    from rnsdask.backend.cuda.int8_product import Part, Residues, empty_image, multiply_images, split

    rows, terms, columns = shape
    moduli = ModuliSet([2**32 - 5, 65537])
    sides = (rows, terms), (columns, terms), (rows, columns)
    a, b, c = (
        np.stack([rng.integers(0, m, (3, *side), dtype=np.uint64) for m in moduli]).astype(np.uint32)
        for side in sides
    )
    m = np.array(moduli.moduli, dtype=object)[:, None, None, None]
    expected = (c - exact(a, b.swapaxes(2, 3), moduli)) % m
    constants = int8_constants(moduli, small_moduli_for(moduli, terms))
    images = [empty_image(6, constants.count, side[0], terms) for side in sides[:2]]
    for x, factors, image in zip((a, b), (constants.negative, constants.right), images, strict=True):
        split(Part.whole(cupy.asarray(x)), (0, 0, 0), x.shape[2:], constants, factors, image)
    centred = np.where(expected > m // 2, expected - m, expected).reshape(6, 1, rows, columns)
    centred = centred.astype(np.int64)
    for is_turned, has_words, count in itertools.product((False, True), (False, True), (1, 9, 10)):
        others = int8_constants(moduli, count)
        small, q = (getattr(others, name) for name in ("negative", "right")), others.right[:, :1, None]
        for table in small:
            given, out = (cupy.asarray(x.swapaxes(2, 3).copy() if is_turned else x) for x in (c, c))
            part, added = Part.whole(out), given
            if is_turned:
                part, added = part.turned(), given.swapaxes(2, 3)
            image = empty_image(6, count, rows + 1, columns)
            image[...] = 9
            kept = image[:, :, :, :rows]
            multiply_images(
                *images, part, (rows, columns), constants, added, Residues(kept, table), has_words
            )
            words = part.words.get()
            assert (words == (expected if has_words else c)).all()
            found = image.get().transpose(0, 1, 3, 2, 4).reshape(6, count, rows + 1, -1)
            assert (found[:, :, rows] == 9).all()
            assert not found[:, :, :rows, columns:].any()
            own = table[:, 4][:, None, None] * centred - found[:, :, :rows, :columns]
            assert not (own % q).any()


@pytest.mark.gpu
def test_longest_sums_that_are_joined_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Residues at both ends modulo each small modulus bring floats to their ends."""
    import cupy

    from rnsdask.backend.cuda import int8_product
    from rnsdask.backend.cuda.int8_product import ADD, REPLACE, SUBTRACT, Part

    monkeypatch.setattr(int8_product, "resident_tiles", lambda: 1)
    ends = sorted({128, *(v for q in SMALL_MODULI for v in (q // 2, -(q // 2)))})
    for m in (2**32, 2**32 - 5, 2**31 - 1):
        moduli = ModuliSet([m])
        constants = int8_constants(moduli, small_moduli_for(moduli, 512))
        # Left numbers whose residues times the factors are at the ends.
        factors = [(q, pow(factor, -1, q)) for q, factor in constants.left[:, [0, 4]].tolist()]
        left = [end * inverse % q for q, inverse in factors for end in (q // 2, -(q // 2))] + [m // 2, m - 1]
        right = [end % m for end in ends] + [m // 2, m // 2 + 1]
        sides = np.array(left, dtype=np.uint64), np.array(right, dtype=np.uint64)
        a, b = (x.astype(np.uint32) for x in sides)
        for terms in (255, 256, 257, 512):
            x = np.broadcast_to(a[None, None, :, None], (1, 1, len(a), terms)).copy()
            y = np.broadcast_to(b[None, None, None], (1, 1, terms, len(b))).copy()
            whole = np.multiply.outer(a.astype(object), b.astype(object)) * terms
            before = np.broadcast_to(np.uint32(m - 1), (1, 1, *whole.shape)).copy()
            for mode in (REPLACE, ADD, SUBTRACT):
                out = cupy.asarray(before)
                parts = [Part.whole(cupy.asarray(v)) for v in (x, y)]
                shape = len(a), terms, len(b)
                int8_product.multiply(parts[0], parts[1], moduli, Part.whole(out), shape, mode)
                expected = ((m - 1 if mode else 0) + (mode or 1) * whole) % m
                assert (out.get()[0, 0] == expected).all()
