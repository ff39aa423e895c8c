"""Elimination in matrices that span several chunks: as in memory, word for word, and against FLINT."""

import itertools
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import flint
import numpy as np
import pytest
from conftest import Processor
from distributed import Client, LocalCluster
from sample_arrays import host

import rnsdask as rd
from rnsdask.fields import block_elimination as tasks
from rnsdask.lazy import block_elimination

PRIMES = [2, 3, 2**31 - 1, 4294967291]
FIELDS = rd.PrimeFields(PRIMES)
LONG = rd.PrimeFields([3, 2**32 + 15, 2**50 - 27, 2**61 - 1, 2**63 - 25, 2**64 - 59])
"""Fields in words of 64 bits."""

pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch, in_steps: None) -> None:
    """Keep blocks of columns as narrow as they are given, and join none."""
    monkeypatch.setattr(block_elimination, "LEAST_COLUMNS", 1)
    monkeypatch.setattr(block_elimination, "MOST_JOINED", 0)


@pytest.fixture(params=[FIELDS, LONG], ids=["short", "long"])
def fields(request: pytest.FixtureRequest) -> rd.PrimeFields:
    """Fields whose elements have words of 32 or of 64 bits."""
    return request.param


def of_rank(
    rng: np.random.Generator, rank: int, rows: int, columns: int, fields: rd.PrimeFields = FIELDS
) -> np.ndarray:
    """Residues (n, rows, columns), one rank less modulo every other prime, with rows and columns of zeros."""
    words = np.zeros((fields.rows, rows, columns), dtype=fields.word_dtype)
    for i, p in enumerate(fields.primes):
        terms = max(0, rank - i % 2)
        left, right = (
            rng.integers(0, p, shape, dtype=np.uint64).astype(object)
            for shape in ((rows, terms), (terms, columns))
        )
        words[i] = (left @ right % p if terms else 0) + np.zeros((rows, columns), dtype=object)
    words[:, :, rng.random(columns) < 0.2] = 0
    words[:, rng.random(rows) < 0.1] = 0
    return words


def drawn(rng: np.random.Generator, *shape: int, fields: rd.PrimeFields = FIELDS) -> np.ndarray:
    return fields.random_words(shape, rng)


def cut(rng: np.random.Generator, length: int) -> tuple[int, ...]:
    """Lengths of chunks, some of them 0."""
    ends = np.sort(rng.integers(0, length + 1, int(rng.integers(1, 5))))
    return tuple(np.diff([0, *ends, length]).tolist())


def array(
    processor: Processor, words: np.ndarray, chunks: Any = None, fields: rd.PrimeFields = FIELDS
) -> rd.FieldArray:
    x = rd.FieldArray(processor.xp.asarray(words), fields)
    return x if chunks is None else x.rechunk(chunks)


def outcome(call: Callable[[], Any]) -> Any:
    """Arrays of a result in NumPy, or the text of an error of linear algebra."""
    try:
        found = call()
        if isinstance(found, rd.FieldArray | da.Array | np.ndarray) or not isinstance(found, tuple):
            found = (found,)
        return [host(x.words if isinstance(x, rd.FieldArray) else x) for x in found]
    except (np.linalg.LinAlgError, ValueError) as error:
        return str(error)


def check_alike(function: Callable[..., Any], lazy: Any, in_memory: Any, *operands: Any) -> None:
    """That a function has the same result, or error, of arrays in chunks and in memory."""
    found, expected = (
        outcome(lambda: function(lazy, *operands)),
        outcome(lambda: function(in_memory, *operands)),
    )
    if isinstance(expected, str):
        assert found == expected
        return
    assert not isinstance(found, str), found
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def any_solutions(a: Any, b: Any) -> Any:
    return rd.linalg.solve(a, b, unique=False)


def check_all(x: rd.FieldArray, lazy: rd.FieldArray, b: rd.FieldArray) -> None:
    """That all functions of matrices, which are square for some, do not depend on chunks."""
    linalg = rd.linalg
    for function in (linalg.rank, linalg.rref, linalg.lu, linalg.nullspace):
        check_alike(function, lazy, x)
    for right in (b, x @ b if x.shape[1] == b.shape[0] else b):
        check_alike(any_solutions, lazy, x, right)
    if x.shape[-1] == x.shape[-2]:
        for function in (linalg.det, linalg.inv):
            check_alike(function, lazy, x)
        check_alike(linalg.solve, lazy, x, b)
    for i, p in enumerate(x.system.primes):  # of one rank, and those modulo great primes often regular
        one, other = (in_one_field(y, i) for y in (lazy, x))
        check_alike(linalg.nullspace, one, other)
        if p > 2**31 - 2 and x.shape[0] == x.shape[1]:
            check_alike(linalg.inv, one, other)


def in_one_field(x: rd.FieldArray, i: int) -> rd.FieldArray:
    field = rd.PrimeFields(x.system.primes[i : i + 1])
    return rd.FieldArray(x.words[i : i + 1].astype(field.word_dtype), field)


SHAPES = [(1, 5), (5, 1), (2, 2), (7, 4), (4, 9), (6, 6), (11, 11), (9, 20), (20, 9)]


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_chunks_change_a_word(
    on_each_processor: Processor,
    shape: tuple[int, int],
    fields: rd.PrimeFields,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, columns = shape
    for rank in sorted({0, 1, int(rng.integers(min(shape) + 1)), min(shape)}):
        is_full = rank == min(shape)
        words = drawn(rng, *shape, fields=fields) if is_full else of_rank(rng, rank, *shape, fields)
        b = array(on_each_processor, drawn(rng, rows, 3, fields=fields), fields=fields)
        of_rows = (-1, cut(rng, rows))[rank % 2]
        monkeypatch.setattr(block_elimination, "LEAST_COLUMNS", 1 if of_rows == -1 else 3)
        lazy = array(on_each_processor, words, (of_rows, cut(rng, columns)), fields)
        check_all(array(on_each_processor, words, fields=fields), lazy, b)


@pytest.mark.usefixtures("narrow")
def test_every_way_to_cut_columns(
    on_each_processor: Processor, fields: rd.PrimeFields, rng: np.random.Generator
) -> None:
    """Exchanges of rows that meet each end of a block, and blocks without a pivot."""
    words = of_rank(rng, 4, 5, 5, fields)
    words[:, :, 1] = 0
    words[:, 0] = 0
    x = array(on_each_processor, words, fields=fields)
    for ends in itertools.chain.from_iterable(itertools.combinations(range(1, 5), k) for k in range(1, 5)):
        lazy = array(on_each_processor, words, (-1, tuple(np.diff([0, *ends, 5]).tolist())), fields)
        for function in (rd.linalg.lu, rd.linalg.rref, rd.linalg.det, rd.linalg.rank):
            check_alike(function, lazy, x)


@pytest.mark.usefixtures("narrow")
def test_blocks_without_pivots(
    on_each_processor: Processor, fields: rd.PrimeFields, rng: np.random.Generator
) -> None:
    """Panels of zeros first, between and last; rows that come from the end; all rows done before the end."""
    words = drawn(rng, 8, 16, fields=fields)
    words[:, :, :4] = words[:, :, 6:9] = 0
    words[0, :, :] = 0
    words[1, :7] = 0
    words[2, :, 4:] = 0
    check_all(
        array(on_each_processor, words, fields=fields),
        array(on_each_processor, words, (-1, 4), fields),
        array(on_each_processor, drawn(rng, 8, 2, fields=fields), fields=fields),
    )
    orders = [rng.permutation(9) for _ in fields.primes[1:]] + [np.arange(9)[::-1]]
    turned = np.stack([np.eye(9, dtype=fields.word_dtype)[order] for order in orders])
    check_all(
        array(on_each_processor, turned, fields=fields),
        array(on_each_processor, turned, (-1, 2), fields),
        array(on_each_processor, drawn(rng, 9, 2, fields=fields), fields=fields),
    )


@pytest.mark.usefixtures("narrow")
def test_against_flint(
    on_each_processor: Processor, fields: rd.PrimeFields, rng: np.random.Generator
) -> None:
    """Matrices of many panels, whose kernels work by panels too."""
    length = 150
    words = drawn(rng, length, length, fields=fields)
    words[3, :, 40:90] = 0
    check_against_flint(array(on_each_processor, words, (-1, 64), fields), words)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4)], ids=str)
def test_long_primes_against_flint(
    on_each_processor: Processor, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    """Several ranks, panels of zeros, elements 0 and p - 1 alone; rows and columns in any chunks."""
    columns = shape[1]
    cases = [of_rank(rng, rank, *shape, LONG) for rank in (1, min(shape) - 1, min(shape))]
    cases += [drawn(rng, *shape, fields=LONG), drawn(rng, *shape, fields=LONG)]
    cases[-1][:, :, : columns // 2] = 0
    ends = np.array(LONG.primes, dtype=np.uint64)[:, None, None] - np.uint64(1)
    cases.append(rng.integers(0, 2, (LONG.rows, *shape), dtype=np.uint64) * ends)
    for k, words in enumerate(cases):
        widths = (1,) * columns if k % 3 == 0 else cut(rng, columns)
        check_against_flint(array(on_each_processor, words, (2, widths), LONG), words)


def check_against_flint(lazy: rd.FieldArray, words: np.ndarray) -> None:
    """Check all functions of a matrix in chunks, modulo each prime alone where ranks may differ."""
    ranks, form, (P, L, U) = rd.linalg.rank(lazy), rd.linalg.rref(lazy), rd.linalg.lu(lazy)
    assert lazy.words.dtype == form.matrix.words.dtype == U.words.dtype
    is_square = lazy.shape[0] == lazy.shape[1]
    found = [host(x) for x in (ranks, form.pivots, form.matrix.words, P.words, L.words, U.words)]
    determinant = int(rd.linalg.det(lazy).compute()) if is_square else 0
    right = lazy.rechunk(-1)[:, :2]
    solved = host(any_solutions(lazy, right).words)
    for i, p in enumerate(lazy.system.primes):
        expected, (rank, pivots, reduced, *factors) = matrix_of(words[i], p), (part[i] for part in found)
        exact, exact_rank = expected.rref()
        assert rank == exact_rank == (pivots >= 0).sum()
        assert reduced.tolist() == ints(exact)
        assert [np.flatnonzero(row)[0] for row in reduced[:rank]] == pivots[:rank].tolist()
        P, L, U = (matrix_of(factor, p) for factor in factors)
        assert expected == P * L * U
        assert not (np.triu(factors[1]) != np.eye(*factors[1].shape)).any()
        assert not np.tril(factors[2], -1).any()
        assert expected * matrix_of(solved[i], p) == matrix_of(words[i][:, :2], p)
        one = in_one_field(lazy, i)
        basis = host(rd.linalg.nullspace(one).words)[0]
        assert basis.shape == (words.shape[2], words.shape[2] - rank)
        assert matrix_of(basis, p).rank() == basis.shape[1]
        assert not any(map(any, ints(expected * matrix_of(basis, p))))
        if is_square:
            assert determinant % p == int(expected.det())
        if is_square and rank == len(words[i]):
            assert host(rd.linalg.inv(one).words)[0].tolist() == ints(expected.inv())
            assert host(rd.linalg.solve(one, one[:, :2]).words)[0].tolist() == np.eye(rank, 2).tolist()


def matrix_of(words: np.ndarray, p: int) -> flint.nmod_mat:
    return flint.nmod_mat(*words.shape, words.ravel().tolist(), p)


def ints(matrix: flint.nmod_mat) -> list[list[int]]:
    return [[int(v) for v in row] for row in matrix.tolist()]


@pytest.mark.usefixtures("narrow")
def test_operands_in_memory_and_in_chunks(on_each_processor: Processor, rng: np.random.Generator) -> None:
    words, right = drawn(rng, 7, 7), drawn(rng, 7, 5)
    words[:2] = np.eye(7, dtype=np.uint32)
    a, b = array(on_each_processor, words), array(on_each_processor, right)
    expected = host(rd.linalg.solve(a, b).words)
    for left in (a, a.rechunk((-1, 2)), a.rechunk((3, 7)), a.rechunk((-1, 3)), a.rechunk((-1, -1))):
        for side in (b, b.rechunk((2, 2)), b.rechunk((-1, -1))):
            np.testing.assert_array_equal(host(rd.linalg.solve(left, side).words), expected)
        vector = rd.linalg.solve(left, b[:, 3])
        assert vector.shape == (7,)
        np.testing.assert_array_equal(host(vector.words), expected[..., 3])
        vector = rd.linalg.solve(left, b[:, 3].rechunk(2))
        np.testing.assert_array_equal(host(vector.words), expected[..., 3])
    assert rd.linalg.solve(a.rechunk((3, 2)), b[:, :0]).compute().shape == (7, 0)
    some = a.rechunk((2, 7))[np.arange(7) != 2]  # of unknown length
    assert host(rd.linalg.rank(some)).tolist() == host(rd.linalg.rank(a[np.arange(7) != 2])).tolist()


@pytest.mark.usefixtures("narrow")
def test_stacks(on_each_processor: Processor, fields: rd.PrimeFields, rng: np.random.Generator) -> None:
    words = drawn(rng, 2, 3, 5, 5, fields=fields)
    words[:2] = np.eye(5, dtype=np.uint32)
    sides = drawn(rng, 3, 5, 2, fields=fields)
    x, b = array(on_each_processor, words, fields=fields), array(on_each_processor, sides, fields=fields)
    lazy = x.rechunk((1, 2, -1, 2))
    for function in (rd.linalg.det, rd.linalg.rank, rd.linalg.rref, rd.linalg.lu, rd.linalg.inv):
        check_alike(function, lazy, x)
    check_alike(rd.linalg.nullspace, lazy, x)
    check_alike(rd.linalg.solve, lazy, x, b)
    check_alike(rd.linalg.solve, lazy, x, b[0, :, 0])
    wide = rd.concatenate([x, x[..., :2]], axis=-1)
    check_alike(rd.linalg.nullspace, wide.rechunk((1, 3, 5, 3)), wide)
    words[3, 1, 2] = 0
    singular = array(on_each_processor, words, (1, 2, 3, 2), fields)
    of_which = rf"the matrix at index \(1, 2\) is singular modulo {fields.primes[3]}"
    with pytest.raises(np.linalg.LinAlgError, match=of_which):
        rd.linalg.inv(singular).compute()


@pytest.mark.usefixtures("narrow")
def test_errors_come_when_results_are_computed(on_each_processor: Processor) -> None:
    words = np.stack([np.eye(4, dtype=np.uint32)] * len(PRIMES))
    words[1, 3] = words[1, 0]
    words[2, 3] = 0
    lazy, ones = array(on_each_processor, words, (2, 2)), rd.from_ints([1, 2, 3, 4], FIELDS, chunks=None)
    right = array(on_each_processor, ones.words)
    for made in (rd.linalg.inv(lazy), rd.linalg.solve(lazy, right)):
        with pytest.raises(np.linalg.LinAlgError, match=r"^the matrix is singular modulo 3$"):
            made.compute()
    made = rd.linalg.solve(lazy, right, unique=False)
    with pytest.raises(np.linalg.LinAlgError, match=r"equations without a solution modulo 2147483647$"):
        made.compute()
    with pytest.raises(ValueError, match="one rank, got 4 modulo 2 and 3 modulo 3"):
        rd.linalg.nullspace(lazy)


def test_small_matrices_are_joined(on_each_processor: Processor, rng: np.random.Generator) -> None:
    words = drawn(rng, 3, 30, 30)
    x, lazy = array(on_each_processor, words), array(on_each_processor, words, (1, 4, 4))
    found = rd.linalg.inv(rd.FieldArray(lazy.words[2:], rd.PrimeFields(PRIMES[2:])))
    assert found.words.numblocks[-2:] == (1, 1)
    assert not any("panel" in str(key) for key in found.words.__dask_graph__())
    check_alike(rd.linalg.lu, lazy, x)
    none = array(on_each_processor, np.zeros((len(PRIMES), 0, 30, 30), dtype=np.uint32), (1, 4, 4))
    assert rd.linalg.det(none).compute().shape == (0,)


def test_blocks_follow_the_chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_elimination, "LEAST_COLUMNS", 4)
    words = da.zeros((1, 100, 1000), dtype=np.uint32, chunks=(1, 10, 60))

    def widths(given: da.Array, limit: int) -> tuple[int, ...]:
        with dask.config.set({"array.chunk-size": limit}):
            made = block_elimination.in_block_columns(given)
        assert made.numblocks[:2] == (1, 1)
        return made.chunks[2]

    assert set(widths(words, 2**27)[:-1]) == {30}  # 1000 / 32, and chunks are cut in halves
    assert set(widths(words, 100 * 4 * 7)[:-1]) == {7}
    assert set(widths(words.astype(np.uint64), 100 * 8 * 7)[:-1]) == {7}
    assert set(widths(words, 1)[:-1]) == {4}
    uneven = words.rechunk((1, 100, (500, 300, 200)))
    assert widths(uneven, 100 * 4 * 500) == (500, 300, 200)
    assert max(widths(uneven, 100 * 4 * 100)) == 30
    assert set(widths(words.rechunk((1, 100, 1)), 2**27)[:-1]) == {31}


@pytest.mark.usefixtures("narrow")
def test_tasks_grow_with_the_square_of_blocks() -> None:
    for count in (4, 8):
        x = rd.FieldArray(
            da.zeros((1, 16, 16), dtype=np.uint32, chunks=(1, 16, 16 // count)), rd.PrimeFields([7])
        )
        keys = [str(key) for key in rd.linalg.rank(x).__dask_graph__()]
        assert sum("matrix-apply" in key for key in keys) == count * (count - 1) // 2
        assert len(keys) <= count * (count - 1) // 2 + 4 * count + 5


def test_rows_with_pivots_are_dropped(fields: rd.PrimeFields, rng: np.random.Generator) -> None:
    moduli = fields.moduli
    block = drawn(rng, 6, 3, fields=fields)
    block[:2] = np.eye(6, 3, dtype=np.uint32)
    for keeps, left in ((True, 6), (False, 3)):
        panel = tasks.factor_panel(block, tasks.nothing_found(moduli, 6, 9), moduli=moduli, keeps=keeps)
        reduction = tasks.reduction_of(panel)
        assert tasks.apply_panel(block, reduction, moduli=moduli).shape == (len(moduli), left, 3)


@pytest.mark.usefixtures("narrow")
def test_operands_stay_as_they_are(rng: np.random.Generator) -> None:
    words = drawn(rng, 6, 6)
    words[:, 0] = 0
    words.flags.writeable = False
    x = rd.FieldArray(da.from_array(words, chunks=(-1, 6, 2)), FIELDS)  # chunks are views
    for function in (rd.linalg.lu, rd.linalg.rref, rd.linalg.det, rd.linalg.nullspace):
        check_alike(function, x, rd.FieldArray(words, FIELDS))
    check_alike(any_solutions, x, rd.FieldArray(words, FIELDS), x)


@pytest.mark.usefixtures("narrow")
def test_results_that_are_computed_together(rng: np.random.Generator) -> None:
    """Tasks with one name are the same."""
    field = rd.PrimeFields([PRIMES[3]])
    words = of_rank(rng, 5, 7, 8)[3:]
    x = rd.FieldArray(words, field)
    lazy = rd.FieldArray(da.from_array(words, chunks=(-1, 7, 2)), field)

    def all_of(y: rd.FieldArray) -> list[Any]:
        form, sides = rd.linalg.rref(y), any_solutions(y, y[:, :2])
        parts = (rd.linalg.nullspace(y), form.matrix, sides, *rd.linalg.lu(y))
        return [*(part.words for part in parts), form.pivots, rd.linalg.rank(y)]

    for one, other in zip(dask.compute(*all_of(lazy)), all_of(x), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("narrow")
def test_what_stays_refused() -> None:
    x = rd.from_ints(np.arange(36).reshape(6, 6), FIELDS, chunks=(3, 3))
    with pytest.raises(
        ValueError, match=r"charpoly takes matrices that are one chunk, got 2 x 2; x\.rechunk"
    ):
        rd.linalg.charpoly(x)
    p = rd.from_ints(np.arange(72).reshape(6, 6, 2), FIELDS, chunks=(3, 3, 2))
    with pytest.raises(ValueError, match=r"det takes matrices that are one chunk, got 2 x 2 x 1"):
        rd.linalg.det(p, variables=1)
    whole = rd.from_ints(np.arange(36).reshape(6, 6), chunks=(3, 3))
    for function in (rd.linalg.det, rd.linalg.rank, rd.linalg.rref, rd.linalg.inv, rd.linalg.nullspace):
        with pytest.raises(ValueError, match=r"one chunk, got 2 x 2; x\.rechunk\(\{0: -1, 1: -1\}\)"):
            function(whole)
    with pytest.raises(ValueError, match=r"det takes square matrices, got shape \(6, 4\)"):
        rd.linalg.det(x[:, :4])
    with pytest.raises(ValueError, match="do not fit: systems of 6 equations"):
        rd.linalg.solve(x, x[:4])


@pytest.mark.usefixtures("narrow")
def test_on_a_cluster(rng: np.random.Generator) -> None:
    """With a current client, for which rechunking goes between workers, and of persisted results."""
    words = drawn(rng, 12, 12)
    words[3, :, 5] = 0
    x, b = rd.FieldArray(words, FIELDS), rd.FieldArray(drawn(rng, 12, 2), FIELDS)
    options: dict[str, Any] = {"processes": False, "dashboard_address": ":0"}
    with (
        dask.config.set(scheduler=None),
        LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
        Client(cluster),
    ):
        lazy = x.rechunk((5, 4))
        ranks, form, solved = rd.linalg.rank(lazy), rd.linalg.rref(lazy), any_solutions(lazy, x @ b)
        kept = dask.persist(*rd.linalg.lu(lazy))
        results = [
            ranks.compute(),
            form.matrix.compute().words,
            form.pivots.compute(),
            solved.compute().words,
        ]
        factors = [part.compute().words for part in kept]
    expected = rd.linalg.rref(x)
    wanted = (rd.linalg.rank(x), expected.matrix.words, expected.pivots, any_solutions(x, x @ b).words)
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, part in zip(factors, rd.linalg.lu(x), strict=True):
        np.testing.assert_array_equal(one, part.words)
