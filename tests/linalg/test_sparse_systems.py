"""Solutions, ranks, determinants and minimal polynomials of sparse matrices, against FLINT's."""

import itertools
from typing import Any

import dask.array as da
import flint
import numpy as np
import pytest
from conftest import Processor
from sample_arrays import host
from strategies import slow

import rnsdask as rd
from rnsdask.sparse import dense, wiedemann

PRIMES = [65537, 2**31 - 1, 4294967291]
FIELDS = rd.PrimeFields(PRIMES)
LONG = rd.PrimeFields([2**32 + 15, 65537, 2**50 - 27, 2**61 - 1, 2**63 - 25, 2**64 - 59])
OF_EACH_WIDTH = pytest.mark.parametrize("fields", [FIELDS, LONG], ids=["short", "long"])
SMALL = rd.PrimeFields([2, 3, 5, 101])

pytestmark = pytest.mark.usefixtures("in_this_thread")


def drawn(rng: np.random.Generator, rows: int, columns: int, density: float = 0.2) -> np.ndarray:
    return rng.integers(-9, 10, (rows, columns)) * (rng.random((rows, columns)) < density)


def of_rank(rng: np.random.Generator, rows: int, columns: int, rank: int) -> np.ndarray:
    return drawn(rng, rows, rank, 0.5) @ drawn(rng, rank, columns, 0.5)


def matrix_of(values: np.ndarray) -> rd.sparse.SparseMatrix:
    rows, columns = values.nonzero()
    return rd.sparse.from_entries(rows, columns, values[rows, columns], values.shape)


def of_flint(values: np.ndarray, p: int) -> Any:
    return flint.nmod_mat(*values.shape, [int(v) % p for v in values.ravel()], p)


def integers(processor: Processor, values: Any, fields: rd.PrimeFields = FIELDS) -> rd.FieldArray:
    x = rd.from_ints(values, fields, chunks=None)
    return rd.FieldArray(processor.xp.asarray(x.words), fields)


CASES = [
    *((n, n, None) for n in (1, 2, 5, 20, 90)),
    (8, 8, 0),
    (20, 20, 7),
    (30, 30, 29),
    (20, 33, None),
    (33, 20, None),
    (30, 12, 5),
    (12, 30, 5),
    (1, 9, None),
    (9, 1, None),
]


@pytest.mark.parametrize(("rows", "columns", "rank"), CASES)
@OF_EACH_WIDTH
def test_solutions_and_ranks(
    on_each_processor: Processor,
    fields: rd.PrimeFields,
    rows: int,
    columns: int,
    rank: int | None,
    rng: np.random.Generator,
) -> None:
    values = drawn(rng, rows, columns) if rank is None else of_rank(rng, rows, columns, rank)
    a, backend = matrix_of(values), on_each_processor.name
    ranks = [of_flint(values, p).rank() for p in fields.primes]
    assert rd.sparse.rank(a, fields, backend=backend).tolist() == ranks
    for shape in ((columns,), (columns, 3)):
        b = a @ integers(on_each_processor, rng.integers(-99, 99, shape).tolist(), fields)
        x = rd.sparse.solve(a, b)
        assert x.shape == shape
        assert type(x.words) is type(b.words)
        assert (host((a @ x).words) == host(b.words)).all()
    target = rng.integers(1, 99, rows)
    b = integers(on_each_processor, target.tolist(), fields)
    lacking = [
        of_flint(np.column_stack([values, target]), p).rank() > r
        for p, r in zip(fields.primes, ranks, strict=True)
    ]
    if any(lacking):
        with pytest.raises(np.linalg.LinAlgError, match="the system has no solution modulo") as raised:
            rd.sparse.solve(a, b)
        assert lacking[fields.primes.index(int(str(raised.value).split()[-1]))]
    else:
        assert (host((a @ rd.sparse.solve(a, b)).words) == host(b.words)).all()


def test_one_vector_of_several_without_a_solution() -> None:
    a = rd.sparse.from_entries([0, 1], [0, 0], [1, 1], (2, 2))
    b = rd.from_ints([[1, 2, 5], [1, 3, 5]], FIELDS, chunks=None)
    for right in (b, b.rechunk(1), b.rechunk((2, 2))):
        with pytest.raises(np.linalg.LinAlgError, match=r"no solution modulo 65537 for vector 1$"):
            host(rd.sparse.solve(a, right).words)


@pytest.mark.parametrize("length", [1, 2, 3, 10, 60])
@OF_EACH_WIDTH
def test_determinants(
    on_each_processor: Processor, fields: rd.PrimeFields, length: int, rng: np.random.Generator
) -> None:
    """Regular matrices, singular ones, and one modulo whose determinant's primes it is singular."""
    backend = on_each_processor.name
    for values in (
        drawn(rng, length, length, 0.4),
        np.eye(length, dtype=np.int64),
        np.eye(length, dtype=np.int64)[::-1],
        of_rank(rng, length, length, length - 1),
        np.diag([65537, *[2] * (length - 1)]),
        np.triu(np.ones((length, length), np.int64)),
    ):
        found = rd.sparse.det(matrix_of(values), fields, backend=backend)
        expected = [int(of_flint(values, p).det()) for p in fields.primes]
        assert [found % p for p in fields.primes] == expected


@pytest.mark.parametrize("fields", [FIELDS, LONG, SMALL], ids=["short", "long", "small"])
def test_minimal_polynomials(
    on_each_processor: Processor, fields: rd.PrimeFields, rng: np.random.Generator
) -> None:
    """Generic matrices, and such whose polynomials have low degrees and powers of factors."""
    jordan = np.kron(np.diag([3, 3, 0, 0, 1]), np.eye(4, dtype=np.int64)) + np.eye(20, k=1, dtype=np.int64)
    for values in (
        drawn(rng, 1, 1),
        drawn(rng, 25, 25),
        of_rank(rng, 30, 30, 4),
        np.zeros((7, 7), np.int64),
        7 * np.eye(9, dtype=np.int64),
        np.eye(40, k=1, dtype=np.int64),
        jordan,
        np.kron(np.eye(50, dtype=np.int64), [[1, 2], [3, 4]]),
    ):
        found = host(rd.sparse.minpoly(matrix_of(values), fields, backend=on_each_processor.name).words)
        assert found.shape == (fields.rows, len(values) + 1)
        for row, p in zip(found, fields.primes, strict=True):
            assert np.trim_zeros(row, "b").tolist() == list(map(int, of_flint(values, p).minpoly().coeffs()))


def test_small_primes_beside_long_ones(rng: np.random.Generator) -> None:
    """Elimination modulo small primes in words of 32 bits, of a matrix of integers and of one of elements."""
    fields = rd.PrimeFields([2, 2**61 - 1, 3, 2**64 - 59, 5])
    for length in (1, 4, 9, 30):
        values = drawn(rng, length, length, 0.4).astype(object) * (2**70 - 1)
        rows, columns = values.nonzero()
        integers = rd.sparse.from_entries(rows, columns, values[rows, columns], values.shape)
        elements = rd.from_ints(values[rows, columns].tolist(), fields, chunks=None)
        for a in (integers, rd.sparse.from_entries(rows, columns, elements, values.shape)):
            assert rd.sparse.rank(a, fields).tolist() == [of_flint(values, p).rank() for p in fields.primes]
            found = rd.sparse.det(a, fields)
            assert [found % p for p in fields.primes] == [
                int(of_flint(values, p).det()) for p in fields.primes
            ]
            b = a @ rd.from_ints(rng.integers(0, 2**63, (length, 2)).tolist(), fields, chunks=None)
            assert (a @ rd.sparse.solve(a, b) == b).all()
    a = rd.sparse.from_entries([0, 1], [0, 0], [1, 1], (2, 2))
    right = rd.from_residues(np.array([[1, 1], [5, 5], [1, 2], [9, 9], [0, 0]], np.uint64), fields)
    with pytest.raises(np.linalg.LinAlgError, match=r"no solution modulo 3$"):
        rd.sparse.solve(a, right)


@pytest.fixture(params=["eliminated", "by draws alone"])
def eliminates(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether matrices are small enough for elimination, where draws find nothing."""
    if request.param != "eliminated":
        monkeypatch.setattr(dense, "MOST_BYTES", -1)
    return bool(request.param == "eliminated")


def test_small_primes(eliminates: bool, rng: np.random.Generator) -> None:
    """All is decided by elimination; without it what is told is right, or an error of its own."""
    undecided = 0
    for _ in range(20):
        length = int(rng.integers(2, 14))
        values = drawn(rng, length, length, 0.5)
        a = matrix_of(values)
        for p in SMALL.primes:
            fields, theirs = rd.PrimeFields([p]), of_flint(values, p)
            target = rng.integers(0, p, length)
            b = rd.from_ints(target.tolist(), fields, chunks=None)
            try:
                assert (a @ rd.sparse.solve(a, b) == b).all()
            except np.linalg.LinAlgError as error:
                assert str(error) == f"the system has no solution modulo {p}"  # noqa: PT017
                wider = of_flint(np.column_stack([values, target]), p)
                assert wider.rank() > theirs.rank()
            except rd.NumberError as error:
                assert int(theirs.det()) == 0
                assert str(error).startswith(f"neither a solution modulo {p} nor a proof")  # noqa: PT017
                undecided += 1
            try:
                assert rd.sparse.det(a, fields) == int(theirs.det())
            except rd.NumberError as error:
                assert "for the prime is small" in str(error)  # noqa: PT017
                undecided += 1
            if eliminates or p >= wiedemann.RANK_ROOM * length:
                assert rd.sparse.rank(a, fields).tolist() == [theirs.rank()]
            else:
                with pytest.raises(rd.NumberError, match=f"from {8 * length} on, got {p}; rd.linalg"):
                    rd.sparse.rank(a, fields)
    assert (undecided == 0) == eliminates


def test_a_system_that_draws_do_not_decide(eliminates: bool) -> None:
    """The vector of its rows' squares is 0 modulo 2: no draw gives a solution, though there is one."""
    a = rd.sparse.from_entries([0, 1, 2, 2], [2, 2, 0, 1], [1, 1, 1, 1], (3, 3))
    b = rd.from_ints([0, 0, 1], rd.PrimeFields([2]), chunks=None)
    if eliminates:
        assert (a @ rd.sparse.solve(a, b) == b).all()
        return
    message = (
        "neither a solution modulo 2 nor a proof that there is none was found in 8 trials, for the prime"
    )
    for chunks in (None, 1):
        with pytest.raises(rd.NumberError, match=message):
            np.asarray(rd.sparse.solve(a, b, chunks=chunks).words)


def test_the_last_trial_finds_the_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = wiedemann.solve_by_squares
    trials: list[tuple[int, ...]] = []

    def late(a: Any, b: Any, moduli: Any, key: tuple[int, ...], *others: Any) -> Any:
        trials.append(key)
        x, found = solved(a, b, moduli, key, *others)
        return x, found & (len(trials) == wiedemann.TRIES)

    monkeypatch.setattr(wiedemann, "solve_by_squares", late)
    monkeypatch.setattr(dense, "MOST_BYTES", -1)
    a = rd.sparse.from_entries([0, 1], [0, 1], [1, 2], (2, 3))
    b = rd.from_ints([3, 5], FIELDS, chunks=None)
    assert (a @ rd.sparse.solve(a, b) == b).all()
    assert len(trials) == wiedemann.TRIES


def systems(rng: np.random.Generator, p: int, count: int) -> list[np.ndarray]:
    """Matrices modulo p of up to 3 x 3: all of few elements, and as many others, drawn."""
    found = []
    for rows, columns in itertools.product(range(4), repeat=2):
        everything = p ** (rows * columns)
        numbers = range(everything) if everything <= 20 else rng.integers(0, everything, count).tolist()
        places = p ** np.arange(rows * columns)
        found += [(number // places % p).reshape(rows, columns) for number in numbers]
    return found


@pytest.mark.parametrize("p", [3, *slow(2)])
def test_systems_of_few_elements_by_trying_all_vectors(
    p: int, eliminates: bool, rng: np.random.Generator
) -> None:
    """Empty rows and columns, zero matrices, several vectors in chunks of any lengths."""
    fields = rd.PrimeFields([p])
    for values in systems(rng, p, 8):
        rows, columns = values.shape
        a = matrix_of(values)
        vectors = [
            np.array(list(itertools.product(range(p), repeat=n)), int).reshape(p**n, n)
            for n in (rows, columns)
        ]
        images = {tuple(image) for image in (vectors[1] @ values.T % p).tolist()}
        solvable = [vector for vector in vectors[0].tolist() if tuple(vector) in images]
        others = [vector for vector in vectors[0].tolist() if tuple(vector) not in images]
        cases = [solvable]
        if others:
            cases.append([*solvable[: int(rng.integers(3))], others[int(rng.integers(len(others)))]])
        for case in cases:
            right = np.array(case).reshape(len(case), rows).T
            b = rd.FieldArray(right[None].astype(np.uint32), fields)
            try:
                x = rd.sparse.solve(a, b.rechunk(int(rng.integers(1, 5))) if rng.integers(2) else b)
                found = host(x.words)[0].astype(int)
            except np.linalg.LinAlgError as error:
                assert case is not solvable
                assert str(error) == f"the system has no solution modulo {p} for vector {len(case) - 1}"  # noqa: PT017
            except rd.NumberError:
                assert not eliminates
            else:
                assert case is solvable
                assert found.shape == (columns, len(case))
                assert (values @ found % p == right).all()
        if eliminates:
            assert p ** rd.sparse.rank(a, fields)[0] == len(images)


def test_many_primes_at_once_as_flint_has_them(eliminates: bool, rng: np.random.Generator) -> None:
    """Great and small primes in one call, regular and singular matrices, several vectors, also lazy."""
    fields = rd.PrimeFields([2, 3, 7, 101, 65537, 4294967291])
    for rows, columns, rank in ((9, 9, None), (12, 12, 7), (8, 14, None), (14, 8, 5), (20, 20, 19)):
        values = drawn(rng, rows, columns, 0.4) if rank is None else of_rank(rng, rows, columns, rank)
        a = matrix_of(values)
        ranks = [int(of_flint(values, p).rank()) for p in fields.primes]
        if eliminates:
            assert rd.sparse.rank(a, fields).tolist() == ranks
            assert rd.sparse.rank(a, fields, chunks=4).compute().tolist() == ranks
        b = a @ rd.from_ints(rng.integers(-9, 9, (columns, 4)).tolist(), fields, chunks=None)
        target = rng.integers(0, 99, (rows, 4))
        targets = rd.from_ints(target.tolist(), fields, chunks=None)
        has_none = [
            {j for j in range(4) if of_flint(np.column_stack([values, target[:, j]]), p).rank() > r}
            for p, r in zip(fields.primes, ranks, strict=True)
        ]
        for right in (b, b.rechunk(3), targets, targets.rechunk(1)):
            try:
                x = rd.sparse.solve(a, right)
                assert (host((a @ x).words) == host(right.words)).all()
            except np.linalg.LinAlgError as error:
                words = str(error).split()
                at = words.index("modulo")
                assert int(words[-1]) in has_none[fields.primes.index(int(words[at + 1]))]
            except rd.NumberError:
                assert not eliminates
            else:
                assert right.words.shape == b.words.shape
                assert not any(has_none) or right.words is not targets.words
        if rows == columns and eliminates:
            found = rd.sparse.det(a, fields)
            assert [found % p for p in fields.primes] == [
                int(of_flint(values, p).det()) for p in fields.primes
            ]


def test_ranks_of_isotropic_rows() -> None:
    """Rows that are orthogonal to one another modulo p, for which A A' alone would be 0."""
    root = pow(3, (65537 - 1) // 4, 65537)  # its square is -1
    a = rd.sparse.from_entries([0, 0, 1, 1], [0, 1, 2, 3], [1, root, 1, root], (2, 4))
    assert rd.sparse.rank(a, rd.PrimeFields([65537])).tolist() == [2]


@OF_EACH_WIDTH
def test_elements_of_each_prime(fields: rd.PrimeFields, rng: np.random.Generator) -> None:
    """A matrix that is another one modulo each prime."""
    words = np.stack([rng.integers(0, p, 40, np.uint64) for p in fields.primes]).astype(fields.word_dtype)
    rows, columns = rng.integers(0, 10, (2, 40))
    a = rd.sparse.from_entries(rows, columns, rd.FieldArray(words, fields), (10, 10))
    whole = a.to_dense(fields)
    assert rd.sparse.det(a, fields) == rd.linalg.det(whole)
    assert rd.sparse.rank(a, fields).tolist() == rd.linalg.rank(whole).tolist()
    b = a @ rd.from_ints(list(range(10)), fields, chunks=None)
    assert (rd.matmul(whole, rd.sparse.solve(a, b)) == b).all()


def test_lengths_of_0() -> None:
    for rows, columns in ((0, 0), (0, 3), (3, 0)):
        a = rd.sparse.from_entries([], [], [], (rows, columns))
        assert rd.sparse.rank(a, FIELDS).tolist() == [0, 0, 0]
        x = rd.sparse.solve(a, rd.FieldArray(np.zeros((3, rows, 2), np.uint32), FIELDS))
        assert x.shape == (columns, 2)
        assert not x.words.any()
    b = rd.from_ints([0, 1, 0], FIELDS, chunks=None)
    for right in (b, b.rechunk(1), rd.FieldArray(b.words[..., None], FIELDS)):
        with pytest.raises(np.linalg.LinAlgError, match="no solution modulo 65537"):
            host(rd.sparse.solve(a, right).words)
    empty = rd.sparse.from_entries([], [], [], (0, 0))
    assert rd.sparse.det(empty, FIELDS) == 1
    assert rd.sparse.minpoly(empty, FIELDS).words.tolist() == [[1]] * 3


@OF_EACH_WIDTH
def test_lazy_results_are_those_in_memory(
    on_each_processor: Processor, fields: rd.PrimeFields, rng: np.random.Generator
) -> None:
    values = drawn(rng, 20, 20, 0.4) + 10 * np.eye(20, dtype=np.int64)
    a, backend = matrix_of(values), on_each_processor.name
    b = a @ integers(on_each_processor, rng.integers(-99, 99, (20, 5)).tolist(), fields)
    x = rd.sparse.solve(a, b)
    lazy = rd.FieldArray(da.from_array(b.words, chunks=(-1, 7, (2, 3))), fields)
    for found in (
        rd.sparse.solve(a, b, chunks=2),
        rd.sparse.solve(a, lazy),
        rd.sparse.solve(a, lazy, chunks=1),
    ):
        assert isinstance(found.words, da.Array)
        assert (host(found.words) == host(x.words)).all()
    assert (host(rd.sparse.solve(a, lazy[:, 1]).words) == host(x.words)[..., 1]).all()
    for function in (rd.sparse.det, rd.sparse.rank, rd.sparse.minpoly):
        found = function(a, fields, chunks=2, backend=backend)
        assert found.__dask_graph__() is not None
        here = function(a, fields, backend=backend)
        assert np.array_equal(*(host(v.words if isinstance(v, rd.FieldArray) else v) for v in (found, here)))


def test_what_is_refused() -> None:
    a = rd.sparse.from_entries([0], [1], [5], (3, 2))
    b = rd.from_ints([1, 2, 3], FIELDS, chunks=None)
    for error, message, call in (
        (TypeError, "a must be a SparseMatrix, got ndarray", lambda: rd.sparse.solve(np.eye(3), b)),
        (TypeError, "b must be a FieldArray of PrimeFields, got list", lambda: rd.sparse.solve(a, [1, 2, 3])),
        (ValueError, r"b must have shape \(3,\) or \(3, K\), got \(2,\)", lambda: rd.sparse.solve(a, b[:2])),
        (ValueError, "seed must not be negative, got -1", lambda: rd.sparse.solve(a, b, seed=-1)),
        (ValueError, "chunks must be at least 1 prime, got 0", lambda: rd.sparse.rank(a, FIELDS, chunks=0)),
        (TypeError, "fields must be PrimeFields, got list", lambda: rd.sparse.rank(a, [7])),
        (ValueError, r"det takes square matrices, got shape \(3, 2\)", lambda: rd.sparse.det(a, FIELDS)),
        (ValueError, "minpoly takes square matrices", lambda: rd.sparse.minpoly(a, FIELDS)),
        (ValueError, "backend must be one of", lambda: rd.sparse.rank(a, FIELDS, backend="tpu")),
    ):
        with pytest.raises(error, match=message):
            call()
