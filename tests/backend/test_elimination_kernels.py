"""Elimination and its factors on a GPU against the CPU's, bit for bit, in each way that a GPU has."""

import weakref
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from sample_arrays import host

from rnsdask.backend import Array, cpu, kernels_of
from rnsdask.core.moduli import ModuliSet

pytestmark = pytest.mark.gpu

ODD = ModuliSet([3, 7, 134217689, 2**31 - 1, 2147483659, 4294967291])
WITH_2 = ModuliSet([2, 4294967291])


def drawn(rng: np.random.Generator, moduli: ModuliSet, *shape: int) -> Array:
    return np.stack([rng.integers(0, p, shape, dtype=np.uint64) for p in moduli]).astype(np.uint32)


def stack(rng: np.random.Generator, moduli: ModuliSet, rank: int, rows: int, columns: int) -> Array:
    """A random matrix, and one of at most this rank, with rows and columns of zeros."""
    result = np.empty((len(moduli), 2, rows, columns), dtype=np.uint32)
    result[:, :1] = drawn(rng, moduli, 1, rows, columns)
    left, right = drawn(rng, moduli, 1, rows, rank), drawn(rng, moduli, 1, rank, columns)
    left[:, :, rng.random(rows) < 0.1] = 0
    right[..., rng.random(columns) < 0.1] = 0
    low = np.empty_like(result[:, :1], order="C")
    cpu.matmul(left, right, moduli, low)
    result[:, 1:] = low
    return result


def check(words: Array, pivot_columns: int, moduli: ModuliSet) -> None:
    import cupy

    x = cupy.asarray(words.swapaxes(2, 3).copy()).swapaxes(2, 3)  # in the other order
    expected = np.empty_like(words)
    found = cpu.eliminate(words, pivot_columns, moduli, expected)
    for given, is_wanted in product((cupy.asarray(words), x), (True, False)):
        out = cupy.empty(words.shape, dtype=np.uint32) if is_wanted else None
        results = kernels_of(given).eliminate(given, pivot_columns, moduli, out)
        assert all((host(ours) == theirs).all() for ours, theirs in zip(results, found, strict=True))
        assert out is None or (host(out) == expected).all()
        assert (host(given) == words).all()
    in_place = cupy.asarray(words)
    results = kernels_of(in_place).eliminate(in_place, pivot_columns, moduli, in_place)
    assert all((host(ours) == theirs).all() for ours, theirs in zip(results, found, strict=True))
    assert (host(in_place) == expected).all()
    if pivot_columns == words.shape[3]:
        rows, columns = words.shape[2:]
        least = min(rows, columns)
        shapes = (rows, rows), (rows, least), (least, columns)
        factors, others = (
            tuple(np.empty_like(a, shape=(*words.shape[:2], *shape), order="C") for shape in shapes)
            for a in (x, words)
        )
        kernels_of(x).lu(x, moduli, factors)
        cpu.lu(words, moduli, others)
        for ours, theirs in zip(factors, others, strict=True):
            assert (host(ours) == theirs).all()
        in_place = cupy.asarray(words)
        overwritten = 1 if rows >= columns else 2
        part = tuple(in_place if k == overwritten else factor for k, factor in enumerate(factors))
        kernels_of(in_place).lu(in_place, moduli, part)
        for ours, theirs in zip(part, others, strict=True):
            assert (host(ours) == theirs).all()
    assert (host(x) == words).all()


# Whole ones, with and without something right of a panel; those that go by panels; clusters of 2 to 8 blocks;
# more rows than a cluster has.
SHAPES = [
    (1, 1),
    (5, 7),
    (16, 17),
    (20, 40),
    (32, 32),
    (33, 32),
    (64, 65),
    (127, 129),
    (128, 128),
    (129, 128),
]
GREAT = [(129, 129), (200, 201), (256, 300), (300, 40), (600, 520), (1100, 140), (2100, 70), (4200, 70)]


@pytest.mark.parametrize("shape", SHAPES + GREAT)
def test_elimination_of_any_rank(shape: tuple[int, int], rng: np.random.Generator) -> None:
    rows, columns = shape
    moduli = ODD if shape in SHAPES else ModuliSet(list(ODD)[-2:])
    least = min(shape)
    for rank, pivot_columns in {(least, columns), (least // 2 + 1, columns), (least - 1, -(-columns // 2))}:
        check(stack(rng, moduli, rank, rows, columns), pivot_columns, moduli)


@pytest.mark.parametrize("shape", [(40, 33), (260, 250)])
def test_the_even_prime(shape: tuple[int, int], rng: np.random.Generator) -> None:
    check(stack(rng, WITH_2, min(shape) - 3, *shape), shape[1], WITH_2)


def test_many_and_one_great_matrix(rng: np.random.Generator) -> None:
    """Many matrices have wider panels, one takes all blocks; one prime has a matrix that lacks pivots."""
    moduli = ModuliSet(list(ODD)[-2:])
    words = drawn(rng, moduli, 40, 270, 270)
    words[1, 3, :, 200] = 0
    words[1, 5, :, :150] = 0
    check(words, 270, moduli)
    check(words[:, :1], 270, moduli)
    check(words[:, 3:4], 269, moduli)


@pytest.mark.parametrize("shape", [(5000, 150), (4200, 1100), (700, 300)], ids=str)
def test_tall_matrices(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """More rows than a cluster has: triangles in any order, zeros first, few numbers, a low rank."""
    from rnsdask.backend.cuda import panel_lu

    if shape[0] < 4096:
        monkeypatch.setattr(panel_lu, "MOST_ROWS", 32)
    rows, columns = shape
    for moduli in (ModuliSet(list(ODD)[-2:]), WITH_2):
        words = np.empty((len(moduli), 4, rows, columns), dtype=np.uint32)
        words[:, 0] = np.triu(drawn(rng, moduli, rows, columns))[:, rng.permutation(rows)]
        words[:, 1] = drawn(rng, moduli, rows, columns)
        words[:, 1, : rows - columns // 2] = 0
        words[:, 2] = rng.random((rows, columns)) < 0.003
        words[:, 3] = stack(rng, moduli, columns // 3, rows, columns)[:, 1]
        for pivot_columns in (columns, columns - 33):
            check(words, pivot_columns, moduli)
        check(words[:1, 2:3], columns, ModuliSet([moduli[0]]))


def test_exchanges_at_each_column(rng: np.random.Generator) -> None:
    """Permutations, triangular matrices upside down, and rows that begin with zeros in many ways."""
    length = 40
    words = np.zeros((len(ODD), 6, length, length), dtype=np.uint32)
    words[:, 0] = np.eye(length, dtype=np.uint32)[::-1]
    words[:, 1] = np.eye(length, dtype=np.uint32)[rng.permutation(length)]
    words[:, 2] = np.triu(drawn(rng, ODD, length, length))[:, ::-1]
    words[:, 3] = np.array([p - 1 for p in ODD], dtype=np.uint32)[:, None, None]  # the greatest ones, rank 1
    words[:, 4] = np.tril(words[:, 3])
    random = drawn(rng, ODD, length, length)
    random[rng.random(random.shape) < 0.9] = 0
    words[:, 5] = random
    for columns in (length, 32, 31):
        check(words[..., :columns], columns, ODD)


@pytest.mark.parametrize("at_once", [1, 3, 100])
@pytest.mark.parametrize(
    "shape", [(129, 129, 129), (200, 300, 200), (300, 260, 257), (140, 300, 300), (400, 450, 330)]
)
def test_blocks_without_exchanges(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int, int], at_once: int, rng: np.random.Generator
) -> None:
    """Modulo some primes rows have to be exchanged within a block or with one below, or a pivot lacks."""
    from rnsdask.backend.cuda import block_lu

    monkeypatch.setattr(block_lu, "LEAST_OF_FEW", 0)
    monkeypatch.setattr(block_lu, "LU_WORKSPACE", at_once)
    monkeypatch.setattr(block_lu, "workspace_bytes", lambda *_: 1)
    results = []
    by_blocks = block_lu.eliminate
    monkeypatch.setattr(block_lu, "eliminate", lambda *x: results.append(by_blocks(*x)) or results[-1])
    rows, columns, pivot_columns = shape
    moduli = ModuliSet([*list(ODD)[-4:], 4294967279])
    words = drawn(rng, moduli, 2, rows, columns)
    words[1, 0, 3, :4] = words[1, 0, 2, :4]
    words[2, 1, :128, 0] = 0
    words[3, 0, :, 128] = words[3, 0, :, 0]
    check(words, pivot_columns, moduli)
    for i in (1, 2, 3):
        check(words[i : i + 1], pivot_columns, ModuliSet([moduli[i]]))
    assert results
    regular = min(rows, pivot_columns)
    assert all((x == regular).tolist() == [True, False, False, False, True] for x in results if len(x) == 5)


@pytest.mark.parametrize(
    "shape", [(300, 300, 300), (140, 300, 300), (400, 260, 257), (520, 450, 330), (300, 700, 256)]
)
@pytest.mark.parametrize("width", [128, 200])
def test_panels_of_blocks(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int, int], width: int, rng: np.random.Generator
) -> None:
    """More pivots than blocks take: all regular; exchanges in the first panel, in the last; a low rank."""
    from rnsdask.backend.cuda import block_lu

    monkeypatch.setattr(block_lu, "LEAST_OF_FEW", 0)
    monkeypatch.setattr(block_lu, "MOST_PIVOTS", 1)
    monkeypatch.setattr(block_lu, "WIDTH", width)
    rows, columns, pivot_columns = shape
    moduli = ModuliSet(list(ODD)[-2:])
    words = drawn(rng, moduli, 2, rows, columns)
    check(words, pivot_columns, moduli)
    check(words[:1, :1], pivot_columns, ModuliSet([moduli[0]]))
    first, last, low = words.copy(), words.copy(), stack(rng, moduli, min(rows, columns) // 2, rows, columns)
    first[1, 0, 0, 0] = 0
    at = min(rows, pivot_columns) - 3
    last[0, 1, : at + 1, at] = last[0, 1, : at + 1, 0]
    for changed in (first, last, low):
        check(changed, pivot_columns, moduli)


def test_blocks_of_a_few_matrices_at_a_time(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Factors are given back before those of the next matrices are made."""
    from rnsdask.backend.cuda import block_lu

    monkeypatch.setattr(block_lu, "LEAST_OF_FEW", 0)
    monkeypatch.setattr(block_lu, "LU_WORKSPACE", 1)
    made, begin = [], block_lu.Blocks.__init__

    def begin_alone(self: block_lu.Blocks, *arguments: Any) -> None:
        assert all(blocks() is None for blocks in made)
        made.append(weakref.ref(self))
        begin(self, *arguments)

    monkeypatch.setattr(block_lu.Blocks, "__init__", begin_alone)
    moduli = ModuliSet(list(ODD)[-1:])
    check(drawn(rng, moduli, 2, 130, 131), 131, moduli)
    assert len(made) >= 2


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[int]]:
    """Delay a step of blocks on one of the streams, and list where it begins."""
    import cupy

    from rnsdask.backend.cuda import block_lu, elimination

    source = r"""extern "C" __global__ void wait(long long cycles) {
        const long long start = clock64();
        while (clock64() - start < cycles) {}
    }"""
    kernel = cupy.RawKernel(source, "wait")
    monkeypatch.setattr(block_lu, "LEAST_OF_FEW", 0)
    monkeypatch.delattr(elimination.GreatMatrices, "eliminate")  # what other ways need

    def make_late(name: str) -> list[int]:
        found, step = [], getattr(block_lu.Blocks, name)

        def late_step(self: block_lu.Blocks, *arguments: Any, **options: bool) -> Any:
            kernel((1,), (1,), (np.int64(50_000_000),))
            found.append(next(x for x in arguments if isinstance(x, int)))
            return step(self, *arguments, **options)

        monkeypatch.setattr(block_lu.Blocks, name, late_step)
        return found

    return make_late


@pytest.mark.parametrize("step", ["_eliminate_diagonal", "_reduced", "_multiply"])
def test_streams_of_blocks_wait_for_each_other(
    late: Callable[[str], list[int]], step: str, rng: np.random.Generator
) -> None:
    """Whichever is late, and on a stream that does not wait for others by itself."""
    import cupy

    moduli = ModuliSet(list(ODD)[-1:])
    words = drawn(rng, moduli, 2, 300, 310)
    starts = late(step)
    with cupy.cuda.Stream(non_blocking=True):
        check(words, 310, moduli)
    assert {0, 128, 256} <= set(starts)


def test_no_stream_of_blocks_goes_on_after_an_error(
    late: Callable[[str], list[int]], monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Between where the streams part and where they meet: results' memory is the caller's again."""
    import cupy

    from rnsdask.backend.cuda import block_lu

    starts = late("_subtract")
    invert = block_lu.triangles.invert

    def fail(*arguments: Any) -> None:
        if starts[-1] > 0:
            raise MemoryError("there is no more")
        invert(*arguments)

    monkeypatch.setattr(block_lu.triangles, "invert", fail)
    moduli = ModuliSet(list(ODD)[-1:])
    with cupy.cuda.Stream(non_blocking=True):
        x = cupy.asarray(drawn(rng, moduli, 2, 300, 300))
        out = cupy.empty_like(x)
        with pytest.raises(MemoryError, match="no more"):
            kernels_of(x).eliminate(x, 300, moduli, out)
        out[...] = 0
    cupy.cuda.Device().synchronize()
    assert not out.any()
    assert starts == [0, 128]


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (40, 33), (33, 70)])
def test_factors(shape: tuple[int, int], rng: np.random.Generator) -> None:
    import cupy

    rows, columns = shape
    packed = rng.integers(0, 2**32, (2, 3, rows, columns + 1), dtype=np.uint64).astype(np.uint32)
    for place in product(range(2), range(3)):
        packed[(*place, slice(None), -1)] = rng.permutation(rows)
    least = min(shape)
    x = cupy.asarray(packed)
    for factor, sides in (("P", (rows, rows)), ("L", (rows, least)), ("U", (least, columns))):
        ours, theirs = (np.empty_like(a, shape=(2, 3, *sides), order="C") for a in (x, packed))
        kernels_of(x).lu_factor(x, factor, ours)
        cpu.lu_factor(packed, factor, theirs)
        assert (host(ours) == theirs).all()
