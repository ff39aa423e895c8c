"""Linear algebra over prime fields against FLINT's matrices, closed forms and Python's integers."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import flint
import numpy as np
import pytest
from conftest import Processor
from sample_arrays import host
from strategies import slow

import rnsdask as rd

# Where ways begin: sums of products that fit a word, 32 bits for twice p, the greatest prime below 2**32.
PRIMES = [2, 3, 7, 134217689, 2**31 - 1, 2147483659, 4294967291]
FIELDS = rd.PrimeFields(PRIMES)
GREAT = rd.PrimeFields(PRIMES[3:])
SHAPES = [(1, 1), (1, 5), (5, 1), (2, 3), (7, 4), (8, 8), (17, 16), (16, 33), (40, 40)]


pytestmark = pytest.mark.usefixtures("in_this_thread")


def drawn(rng: np.random.Generator, fields: rd.PrimeFields, *shape: int) -> np.ndarray:
    return np.stack([rng.integers(0, p, shape, dtype=np.uint64) for p in fields.primes]).astype(np.uint32)


def of_rank(
    rng: np.random.Generator, fields: rd.PrimeFields, rank: int, batch: int, rows: int, columns: int
) -> np.ndarray:
    """Residues (n, batch, rows, columns) of matrices of at most this rank, with rows and columns of zeros."""
    left, right = drawn(rng, fields, batch, rows, rank), drawn(rng, fields, batch, rank, columns)
    left[:, :, rng.random(rows) < 0.1] = 0
    right[..., rng.random(columns) < 0.2] = 0
    result = np.zeros((fields.rows, batch, rows, columns), dtype=np.uint32)
    for i, p in enumerate(fields.primes):
        for b in range(batch if rank else 0):
            product = of_flint(left[i, b], p) * of_flint(right[i, b], p)
            result[i, b] = np.array(list(map(int, product.entries()))).reshape(rows, columns)
    return result


def array(processor: Processor, residues: np.ndarray, fields: rd.PrimeFields = FIELDS) -> rd.FieldArray:
    return rd.FieldArray(processor.xp.asarray(residues), fields)


def of_flint(residues: np.ndarray, p: int) -> Any:
    """FLINT's matrix, which has rows and columns."""
    return flint.nmod_mat(*residues.shape, residues.ravel().tolist(), p)


def each(x: rd.FieldArray) -> Iterator[tuple[Any, int, tuple[int, ...]]]:
    """FLINT's matrix, prime and place in the words of each matrix of an array."""
    words = host(x.words)
    for place in np.ndindex(words.shape[:-2]):
        p = x.system.primes[place[0]]
        yield of_flint(words[place], p), p, place


def check_factors(x: rd.FieldArray) -> None:
    """That ranks, factors and nullspaces of a stack are right, and factors have the shape they should."""
    ranks, (P, L, U) = host(rd.linalg.rank(x)), rd.linalg.lu(x)
    permutations, lower, upper = (host(part.words) for part in (P, L, U))
    rows, columns = x.shape[-2:]
    for matrix, p, place in each(x):
        rank = ranks[place]
        assert rank == matrix.rank()
        parts = [of_flint(part[place], p) for part in (permutations, lower, upper)]
        assert parts[0] * parts[1] * parts[2] == matrix
        assert sorted(permutations[place].argmax(axis=1)) == list(range(rows))
        assert (permutations[place].sum(axis=0) == 1).all()
        below, above = lower[place], upper[place]
        assert (np.diag(below) == 1).all()
        assert not np.triu(below, 1).any()
        assert not np.tril(below, -1)[:, rank:].any()
        starts = [int((row != 0).argmax()) for row in above[:rank]]
        assert all(above[i, j] for i, j in enumerate(starts))
        assert starts == sorted(set(starts))
        assert not above[rank:].any()
    for i, p in enumerate(x.system.primes):
        for b in range(x.shape[0]):
            alone = rd.FieldArray(x.words[i : i + 1, b], rd.PrimeFields([p]))
            basis = rd.linalg.nullspace(alone)
            nullity = columns - ranks[i, b]
            assert basis.shape == (columns, nullity)
            if nullity:
                vectors = of_flint(host(basis.words)[0], p)
                assert vectors.rank() == nullity
                assert (of_flint(host(alone.words)[0], p) * vectors).rank() == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_factors_of_any_rank(
    on_each_processor: Processor, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    check_factors(array(on_each_processor, drawn(rng, FIELDS, 2, *shape)))
    for rank in {0, 1, min(shape) - 1, int(rng.integers(min(shape)))}:
        check_factors(array(on_each_processor, of_rank(rng, FIELDS, rank, 2, *shape)))


def test_ranks_that_differ_from_prime_to_prime(
    on_each_processor: Processor, rng: np.random.Generator
) -> None:
    """Matrices that no shared memory holds, by panels and products."""
    fields = rd.PrimeFields([2, 7, 2**31 - 1, 4294967291])
    residues = of_rank(rng, fields, 240, 2, 250, 270)
    residues[:, 1, :, 40:140] = 0  # a panel without pivots
    residues[:, 0, 100:] = residues[:, 0, :150]
    check_factors(array(on_each_processor, residues, fields))


@pytest.mark.parametrize(
    "shape",
    [
        *((131, 260, 150), (130, 131, 131), (70, 90, 100)),
        *slow((140, 140, 300), (100, 250, 250), (99, 130, 99)),
    ],
    ids=str,
)
def test_great_matrices_go_by_panels(
    shape: tuple[int, int, int], on_each_processor: Processor, rng: np.random.Generator
) -> None:
    rank, rows, columns = shape
    residues = of_rank(rng, GREAT, rank, 1, rows, columns)
    residues[..., 60:70] = 0  # no pivots at the end of a panel
    check_factors(array(on_each_processor, residues, GREAT))


@pytest.mark.parametrize("length", [1, 2, 3, 8, 15, 16, 17, 33, 65])
def test_square_matrices(on_each_processor: Processor, length: int, rng: np.random.Generator) -> None:
    x = array(on_each_processor, drawn(rng, FIELDS, 3, length, length))
    determinants, polynomials = (host(f(x).words) for f in (rd.linalg.det, rd.linalg.charpoly))
    for matrix, _, place in each(x):
        assert determinants[place] == int(matrix.det())
        assert polynomials[place].tolist() == [int(c) for c in matrix.charpoly().coeffs()]
    check_inverses(rd.FieldArray(x.words[3:], GREAT), rng)


@pytest.mark.parametrize("chunks", [(8, 8), (3, 3)])
def test_right_hand_sides_that_are_parts_of_a_stored_matrix(
    chunks: tuple[int, int], on_each_processor: Processor, rng: np.random.Generator, tmp_path: Path
) -> None:
    rd.FieldArray(drawn(rng, GREAT, 8, 8), GREAT).rechunk(chunks).to_zarr(tmp_path / "a.zarr")
    a = rd.open_zarr(tmp_path / "a.zarr", backend=on_each_processor.name).persist()
    for b in (a[0], a[:, :2], a[:, :2].persist()):  # small parts of what is in memory are cut at once
        assert (a @ rd.linalg.solve(a, b) == b).all()
        joined = rd.concatenate([a, b if b.ndim == 2 else b[:, None]], axis=1)
        assert (joined[:, 8:] == b.reshape(8, -1)).all()


@pytest.mark.parametrize("length", [90, 129, 200, 260])
def test_great_square_matrices(on_each_processor: Processor, length: int, rng: np.random.Generator) -> None:
    x = array(on_each_processor, drawn(rng, GREAT, 1, length, length), GREAT)
    determinants, polynomials = (host(f(x).words) for f in (rd.linalg.det, rd.linalg.charpoly))
    for matrix, _, place in each(x):
        assert determinants[place] == int(matrix.det())
        assert polynomials[place].tolist() == [int(c) for c in matrix.charpoly().coeffs()]
    check_inverses(x, rng)


def check_inverses(x: rd.FieldArray, rng: np.random.Generator) -> None:
    """Check inverses of matrices that are hardly ever singular, and solutions of one and more sides."""
    right = drawn(rng, x.system, x.shape[0], x.shape[-1], 9)
    b = rd.FieldArray(np.asarray(right, like=x.words), x.system)
    try:
        inverses = host(rd.linalg.inv(x).words)
    except np.linalg.LinAlgError:
        assert not host(rd.linalg.det(x).words).all()
        return
    solutions, first = (host(rd.linalg.solve(x, v).words) for v in (b, b[..., :1]))
    vector = host(rd.linalg.solve(x, b[0, :, 3]).words)
    for matrix, p, place in each(x):
        assert of_flint(inverses[place], p) == matrix.inv()
        assert matrix * of_flint(solutions[place], p) == of_flint(right[place], p)
        assert (first[place] == solutions[place][:, :1]).all()
        assert matrix * of_flint(vector[place][:, None], p) == of_flint(right[place[0], 0, :, 3:4], p)


# ---- matrices of which one knows the answer ---------------------------------------------------------------


def test_zero_pivots_at_each_place(on_each_processor: Processor, rng: np.random.Generator) -> None:
    length = 9
    stack = []
    for k in range(length):
        values = np.triu(rng.integers(1, 2, (length, length)))
        values[k, k] = 0
        values[(k + 1) % length, k] += 1  # the pivot is a row further below, of the last column in the first
        stack.append(values)
    x = rd.FieldArray(_on(on_each_processor, np.stack(stack), FIELDS), FIELDS)
    check_factors(x)
    found, polynomials = host(rd.linalg.det(x).words), host(rd.linalg.charpoly(x).words)
    for matrix, _, place in each(x):
        assert found[place] == int(matrix.det())
        assert polynomials[place].tolist() == [int(c) for c in matrix.charpoly().coeffs()]


def _on(processor: Processor, values: np.ndarray, fields: rd.PrimeFields) -> Any:
    return processor.xp.asarray(fields.encode(values.astype(object)))


def test_all_permutations(on_each_processor: Processor) -> None:
    orders = list(itertools.permutations(range(5)))
    values = np.stack([np.eye(5, dtype=int)[list(order)] for order in orders])
    x = rd.FieldArray(_on(on_each_processor, values, FIELDS), FIELDS)
    signs = [(-1) ** sum(a > b for a, b in itertools.combinations(order, 2)) for order in orders]
    assert (rd.linalg.det(x) == signs).all()
    P, L, U = rd.linalg.lu(x)
    identity = rd.FieldArray(_on(on_each_processor, np.eye(5, dtype=int), FIELDS), FIELDS)
    assert (x == P).all()
    assert (identity == L).all()
    assert (identity == U).all()
    assert (rd.linalg.inv(x) == x.transpose(0, 2, 1)).all()


def test_cauchy_and_vandermonde_matrices(on_each_processor: Processor) -> None:
    """Hilbert's matrix is Cauchy's of 1..N and 0..N - 1."""
    length = 30
    hilbert = np.add.outer(np.arange(1, length + 1), np.arange(length)).astype(object)
    x = 1 / rd.FieldArray(_on(on_each_processor, hilbert, GREAT), GREAT)
    products = [math.prod(range(1, k)) for k in range(1, length + 1)]
    numerator = math.prod(products) ** 4
    denominator = math.prod(math.factorial(k) for k in range(2 * length))
    found = rd.linalg.det(x)
    for p in GREAT.primes:
        assert found % p == numerator * pow(denominator, -1, p) % p
    points = [3, 1, -4, 10**9, 2**31, 7]
    vandermonde = np.array([[v**k for k in range(6)] for v in points], dtype=object)
    y = rd.FieldArray(_on(on_each_processor, vandermonde, GREAT), GREAT)
    expected = math.prod(b - a for a, b in itertools.combinations(points, 2))
    assert rd.linalg.det(y) == expected % GREAT.moduli.product
    assert np.linalg.det(y) == rd.linalg.det(y)


def test_companion_matrices(on_each_processor: Processor) -> None:
    """Their polynomials are known; below the diagonal there may be zeros at each place."""
    coefficients = [5, -3, 0, 2**40, 1, 7]
    companion = np.zeros((6, 6), dtype=object)
    companion[1:, :-1] = np.eye(5, dtype=int)
    companion[:, -1] = [-c for c in coefficients]
    for order in itertools.islice(itertools.permutations(range(6)), 0, 720, 37):
        matrix = companion[np.ix_(order, order)]
        x = rd.FieldArray(_on(on_each_processor, matrix, FIELDS), FIELDS)
        assert (rd.linalg.charpoly(x) == [*coefficients, 1]).all()


def test_what_is_singular_modulo_some_primes(on_each_processor: Processor) -> None:
    fields = rd.PrimeFields([5, 7, 2**31 - 1])
    values = np.array([[[2, 1], [1, 3]], [[1, 0], [0, 1]], [[3, 1], [2, 3]], [[1, 2], [3, 4]]])
    x = rd.FieldArray(_on(on_each_processor, values, fields), fields)
    assert rd.linalg.det(x).to_ints().tolist() == [5, 1, 7, fields.moduli.product - 2]
    assert host(rd.linalg.rank(x)).tolist() == [[1, 2, 2, 2], [2, 2, 1, 2], [2, 2, 2, 2]]
    good = rd.FieldArray(x.words[2:], rd.PrimeFields([2**31 - 1]))
    assert (rd.linalg.inv(good) @ good == np.eye(2, dtype=int).tolist()).all()
    for call in (rd.linalg.inv, lambda y: rd.linalg.solve(y, y), np.linalg.inv):
        with pytest.raises(np.linalg.LinAlgError, match=r"the matrix at index \(0,\) is singular modulo 5"):
            call(x)
        with pytest.raises(np.linalg.LinAlgError, match="the matrix is singular modulo 7"):
            call(x[2])
        lazy = x.reshape(2, 2, 2, 2)[1:].rechunk((1, 1, -1, -1))
        with pytest.raises(np.linalg.LinAlgError, match=r"at index \(0, 0\) is singular modulo 7"):
            call(lazy).compute()


# ---- arguments --------------------------------------------------------------------------------------------


def test_empty_matrices(on_each_processor: Processor) -> None:
    for batch in ((), (0,), (2, 0), (3,)):
        x = array(on_each_processor, np.zeros((7, *batch, 0, 0), dtype=np.uint32))
        assert (rd.linalg.det(x) == 1).all() if batch else rd.linalg.det(x) == 1
        assert rd.linalg.inv(x).shape == (*batch, 0, 0)
        assert (rd.linalg.charpoly(x) == 1).all()
        assert rd.linalg.charpoly(x).shape == (*batch, 1)
        assert host(rd.linalg.rank(x)).tolist() == np.zeros((7, *batch)).tolist()
        assert rd.linalg.nullspace(x).shape == (*batch, 0, 0)
        wide = array(on_each_processor, np.zeros((7, *batch, 0, 3), dtype=np.uint32))
        basis = rd.linalg.nullspace(wide)
        assert basis.shape == (*batch, 3, 3)
        assert (basis == np.eye(3, dtype=int).tolist()).all()
        assert [part.shape for part in rd.linalg.lu(wide)] == [(*batch, 0, 0), (*batch, 0, 0), (*batch, 0, 3)]
        tall = array(on_each_processor, np.zeros((7, *batch, 3, 0), dtype=np.uint32))
        assert [part.shape for part in rd.linalg.lu(tall)] == [(*batch, 3, 3), (*batch, 3, 0), (*batch, 0, 0)]
        assert rd.linalg.solve(x, wide).shape == (*batch, 0, 3)
    none = array(on_each_processor, np.zeros((7, 0, 4, 4), dtype=np.uint32))
    assert rd.linalg.det(none).shape == (0,)
    assert rd.linalg.charpoly(none).shape == (0, 5)
    assert rd.linalg.solve(none, none[..., :2]).shape == (0, 4, 2)
    no_sides = array(on_each_processor, drawn(np.random.default_rng(1), GREAT, 100, 4, 4), GREAT)
    assert rd.linalg.solve(no_sides, no_sides[..., :0]).shape == (100, 4, 0)
    lazy = no_sides.rechunk((30, -1, -1))
    assert rd.linalg.solve(lazy, no_sides[..., :0]).compute().shape == (100, 4, 0)


def test_views_stay_as_they_are(on_each_processor: Processor, rng: np.random.Generator) -> None:
    whole = on_each_processor.xp.asarray(drawn(rng, GREAT, 6, 9, 21))
    before = whole.copy()
    for view in (
        whole[:, ::2, :, :9],
        whole[:, ::-1, ::-1, 20:2:-2],
        whole[:, :2, :, 3:12].transpose(0, 1, 3, 2),
        whole[:, 0, :, :9][:, None],
    ):
        x, copied = (rd.FieldArray(v, GREAT) for v in (view, view.copy()))
        for function in (rd.linalg.det, rd.linalg.inv, rd.linalg.charpoly, *map(_part, range(3))):
            np.testing.assert_array_equal(host(function(x).words), host(function(copied).words))
        np.testing.assert_array_equal(host(rd.linalg.rank(x)), host(rd.linalg.rank(copied)))
    np.testing.assert_array_equal(host(whole), host(before))


def _part(k: int) -> Any:
    return lambda x: rd.linalg.lu(x)[k]


def test_chunks_change_nothing(on_each_processor: Processor, rng: np.random.Generator) -> None:
    x = array(on_each_processor, drawn(rng, GREAT, 3, 5, 6, 6), GREAT)
    b = array(on_each_processor, drawn(rng, GREAT, 5, 6, 2), GREAT)
    functions = (rd.linalg.det, rd.linalg.inv, rd.linalg.charpoly, rd.linalg.nullspace, *map(_part, range(3)))
    for chunks in ((1, 2, -1, -1), (3, (1, 4), 6, 6), (2, 5, -1, -1)):
        lazy = x.rechunk(chunks)
        for function in functions:
            found = function(lazy)
            assert isinstance(found.words, da.Array)
            np.testing.assert_array_equal(host(found.words), host(function(x).words))
        np.testing.assert_array_equal(host(rd.linalg.rank(lazy)), host(rd.linalg.rank(x)))
        expected = host(rd.linalg.solve(x, b).words)
        for left, right in ((lazy, b), (x, b.rechunk((2, 3, 1))), (lazy, b.rechunk((4, -1, -1)))):
            np.testing.assert_array_equal(host(rd.linalg.solve(left, right).words), expected)
        some = lazy.rechunk((1, 5, -1, -1))[np.array([True, False, True])]
        np.testing.assert_array_equal(host(rd.linalg.det(some).words), host(rd.linalg.det(x).words)[:, ::2])
    one = x[0, 0].rechunk((6, 6))
    assert rd.linalg.det(one).compute() == rd.linalg.det(x[0, 0]) == rd.linalg.det(x).to_ints()[0, 0]
    kept = on_each_processor.xp.asarray(_but((3, 5), (2, 3)))
    lazy = rd.where(kept, x.rechunk((1, 2, -1, -1)), 0)
    with pytest.raises(np.linalg.LinAlgError, match=r"the matrix at index \(2, 3\) is singular modulo 13421"):
        rd.linalg.inv(lazy).compute()


def _but(shape: tuple[int, int], place: tuple[int, int]) -> np.ndarray:
    mask = np.ones((*shape, 1, 1), dtype=np.bool_)
    mask[place] = False
    return mask


def test_powers_of_matrices(on_each_processor: Processor, rng: np.random.Generator) -> None:
    x = array(on_each_processor, drawn(rng, GREAT, 2, 4, 4), GREAT)
    for y in (x, x.rechunk((1, -1, -1))):
        power = rd.linalg.matrix_power
        assert (power(y, 0) == np.eye(4, dtype=int).tolist()).all()
        assert (power(y, 5) == x @ x @ x @ x @ x).all()
        assert (power(y, -3) @ power(y, 3) == np.eye(4, dtype=int).tolist()).all()
    assert (np.linalg.matrix_power(x, 2) == x @ x).all()
    with pytest.raises(TypeError, match="do not overflow"):
        rd.linalg.matrix_power(x, 2, overflow="wrap")


def test_numpys_functions_find_these(on_each_processor: Processor, rng: np.random.Generator) -> None:
    x = array(on_each_processor, drawn(rng, GREAT, 2, 4, 4), GREAT)
    assert (np.linalg.det(x) == rd.linalg.det(x)).all()
    assert (np.linalg.inv(x) == rd.linalg.inv(x)).all()
    assert (np.linalg.solve(x, x[0, 0]) == rd.linalg.solve(x, x[0, 0])).all()
    assert (host(np.linalg.matrix_rank(x)) == 4).all()


def test_what_is_refused(on_each_processor: Processor, rng: np.random.Generator) -> None:
    x = array(on_each_processor, drawn(rng, GREAT, 2, 4, 4), GREAT)
    for function in (rd.linalg.det, rd.linalg.inv, rd.linalg.charpoly, rd.linalg.rank, rd.linalg.lu):
        name = function.__name__
        with pytest.raises(TypeError, match=f"{name} takes .*, got list"):
            function([[1, 2], [3, 4]])
        with pytest.raises(
            ValueError, match=rf"{name} takes matrices, which have two axes, got shape \(4,\)"
        ):
            function(x[0, 0])
    with pytest.raises(ValueError, match=r"charpoly .* one chunk, got 1 x 2; x.rechunk\(\{1: -1, 2: -1"):
        rd.linalg.charpoly(x.rechunk((1, 4, 2)))
    for function in (rd.linalg.det, rd.linalg.inv, rd.linalg.charpoly):
        with pytest.raises(ValueError, match=r"takes square matrices, got shape \(2, 4, 3\)"):
            function(x[..., :3])
    with pytest.raises(ValueError, match=r"shapes \(2, 4, 4\) and \(3,\) do not fit: .* 4 equations"):
        rd.linalg.solve(x, x[0, 0, :3])
    with pytest.raises(ValueError, match="different moduli sets"):
        rd.linalg.solve(x, array(on_each_processor, drawn(rng, FIELDS, 4)))
    with pytest.raises(ValueError, match="broadcast"):
        rd.linalg.solve(x, array(on_each_processor, drawn(rng, GREAT, 3, 4, 4), GREAT))
    with pytest.raises(TypeError, match="solve takes arrays of numbers, got int"):
        rd.linalg.solve(x, 3)
    values = np.array([[[1, 0], [0, 1]], [[1, 7], [0, 7]]])
    fields = rd.PrimeFields([5, 7])
    y = rd.FieldArray(_on(on_each_processor, values, fields), fields)
    message = r"one rank, got 2 at index \(0,\) modulo 5 and 1 at index \(1,\) modulo 7"
    for z in (y, y.rechunk((1, 2, 2))):
        with pytest.raises(ValueError, match=message):
            rd.linalg.nullspace(z)
    with pytest.raises(ValueError, match="one rank, got 2 modulo 5 and 1 modulo 7"):
        rd.linalg.nullspace(y[1])


def test_sums_of_the_greatest_products(on_each_processor: Processor) -> None:
    """Residues p - 1 alone: the sum is the count of terms, whatever was added up in between."""
    for terms in (1, 2, 3, 4, 5, 8, 9, 511, 513, 1030):
        shape = FIELDS.rows, 3, terms
        greatest = np.broadcast_to(np.array(PRIMES, dtype=np.uint64)[:, None, None] - 1, shape)
        x = array(on_each_processor, greatest.astype(np.uint32))
        found = host((x @ x.transpose(1, 0)).words)
        for row, p in zip(found, PRIMES, strict=True):
            assert (row == terms % p).all()


def test_inverses_of_numbers(on_each_processor: Processor, rng: np.random.Generator) -> None:
    """Side by side: at the ends, and such with which Euclid's algorithm takes the most steps."""
    golden = (math.sqrt(5) - 1) / 2
    for count in (1, 3, 16, 35):
        values = np.empty((FIELDS.rows, count, 1, 1), dtype=np.uint32)
        for i, p in enumerate(PRIMES):
            ends = [1, p - 1, 2 % p or 1, (p + 1) // 2 % p or 1, int(p * golden) or 1, p // 3 or 1]
            drawn_ones = rng.integers(1, p, count, dtype=np.uint64).tolist()
            values[i, :, 0, 0] = (ends + drawn_ones)[:count]
        found = host(rd.linalg.inv(array(on_each_processor, values)).words)
        for i, p in enumerate(PRIMES):
            expected = [pow(v, -1, p) for v in values[i].ravel().tolist()]
            assert found[i].ravel().tolist() == expected
    values = drawn(rng, FIELDS, 20, 5, 5)
    determinants = host(rd.linalg.det(array(on_each_processor, values)).words)
    for i, p in enumerate(PRIMES):
        assert determinants[i].tolist() == [int(of_flint(matrix, p).det()) for matrix in values[i]]
