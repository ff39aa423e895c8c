"""Linear algebra over the integers and over prime fields."""

import itertools
import math
from random import Random
from typing import Any

import dask
import numpy as np
from oracles.integers import Range, matrix_product, objects

import rnsdask as rd
from fuzzing.case import Case
from fuzzing.checking import computed, must_fail, operation, require, same_array, same_int, same_numbers
from fuzzing.fields import ANY, array_of, element, field_of, same


def determinant(rows: list[list[int]]) -> int:
    """By the first row; minors of the rows below are kept by the bits of their columns."""
    minors = {0: 1}
    for row in reversed(rows):
        larger: dict[int, int] = {}
        for columns, minor in minors.items():
            for j, a in enumerate(row):
                if a and not columns >> j & 1:
                    sign = (-1) ** (columns & (1 << j) - 1).bit_count()
                    both = columns | 1 << j
                    larger[both] = larger.get(both, 0) + sign * a * minor
        minors = larger
    return minors.get((1 << len(rows)) - 1, 0)


def in_one_chunk(x: Any, values: np.ndarray) -> Any:
    return x if not dask.is_dask_collection(x) else x.rechunk(values.shape)


def reduced(rows: list[list[int]], p: int) -> tuple[list[list[int]], list[int]]:
    """The reduced echelon form modulo a prime, rows of zeros left out, and the columns of its pivots."""
    rest, done, pivots = [[v % p for v in row] for row in rows], [], []
    for column in range(len(rows[0]) if rows else 0):
        i = next((i for i, row in enumerate(rest) if row[column]), None)
        if i is None:
            continue
        inverse = pow(rest[i][column], -1, p)
        pivot = [v * inverse % p for v in rest.pop(i)]
        clear = [(v, pivot, v[column]) for v in (*done, *rest)]
        cleared = [[(v - c * w) % p for v, w in zip(row, by, strict=True)] for row, by, c in clear]
        done, rest = [*cleared[: len(done)], pivot], cleared[len(done) :]
        pivots.append(column)
    return done, pivots


def characteristic(matrix: np.ndarray) -> list[int]:
    """Coefficients of det(z - A), ascending, of integers: by U. Le Verrier's traces and D. Faddeev."""
    n, coefficients = len(matrix), [1]
    power = np.eye(n, dtype=object)
    for k in range(1, n + 1):
        product = matrix_product(matrix, power)
        coefficients.insert(0, -int(np.trace(product)) // k)
        power = product + coefficients[0] * np.eye(n, dtype=object)
    return coefficients


def of_low_rank(rng: Random, size: int, shape: tuple[int, int]) -> np.ndarray:
    """A matrix of any rank: of random elements, or a product of two narrow ones."""
    inner = rng.randint(0, min(shape)) if rng.random() < 0.7 else None
    if inner is None:
        return objects((element(rng, size) for _ in range(shape[0] * shape[1])), shape)
    left, right = ((shape[0], inner), (inner, shape[1]))
    factors = [objects((element(rng, size) for _ in range(a * b)), (a, b)) for a, b in (left, right)]
    return matrix_product(*factors) % size


@operation("determinants and solutions")
def check_determinants(case: Case, rng: Random) -> int:
    """Exact ones over the integers; characteristic polynomials by what a matrix makes of them."""
    n, columns = rng.randint(1, 4), rng.randint(1, 3)
    a, b = case.fresh(rng, (n, n), "a"), case.fresh(rng, (n, columns), "b")
    if rng.random() < 0.2:  # a singular one
        a.values[-1] = a.values[0]
        a.array = rd.concatenate([a.array[:-1], a.array[:1]]) if n > 1 else a.array
    matrix, right = (in_one_chunk(x.array, x.values) for x in (a, b))
    det = determinant(a.values.tolist())
    same_int(rd.linalg.det(matrix), det, "det")
    power, total = np.eye(n, dtype=object), np.zeros((n, n), dtype=object)
    for coefficient in computed(rd.linalg.charpoly(matrix)).tolist():
        total, power = total + coefficient * power, matrix_product(power, a.values)
    require(not total.any(), "a matrix is no root of its characteristic polynomial")
    if det == 0:
        must_fail(lambda: rd.linalg.solve(matrix, right), np.linalg.LinAlgError, "a singular matrix")
        return n
    same_int(rd.linalg.rank(matrix), n, "rank")
    numerators, denominator = map(computed, rd.linalg.solve(matrix, right))
    factor = int(denominator.item() if hasattr(denominator, "item") else denominator)
    require(factor > 0, "a denominator is not positive")
    require(math.gcd(factor, *numerators.reshape(-1).tolist()) == 1, "a denominator is not the least")
    return same_array(matrix_product(a.values, numerators), b.values * factor, "a @ solve(a, b)")


# Minors of the fuzzer's matrices hardly ever are multiples of it.
LARGE_PRIME = 2**2203 - 1


@operation("equations of any shape")
def check_any_equations(case: Case, rng: Random) -> int:
    """Echelon forms, null spaces and solutions of integer matrices of any shape and rank."""
    a = case.fresh(rng, (rng.randint(1, 3), rng.randint(1, 4)), "a")
    x, values = in_one_chunk(a.array, a.values), a.values
    for axis in (0, 1):
        if rng.random() < 0.5:
            x, values = rd.concatenate([x, x], axis=axis), np.concatenate([values, values], axis=axis)
    x = in_one_chunk(x, values)
    form, pivots = reduced(values.tolist(), LARGE_PRIME)
    rows, columns = values.shape
    numerators, denominator, found = map(computed, rd.linalg.rref(x))
    same_array(found, np.array([*pivots, *[-1] * (min(rows, columns) - len(pivots))]), "pivots")
    factor = pow(int(denominator.item() if hasattr(denominator, "item") else denominator), -1, LARGE_PRIME)
    expected = objects((v for row in form for v in row), (len(form), columns))
    same_array(numerators[: len(form)] * factor % LARGE_PRIME, expected, "rref")
    require(not numerators[len(form) :].any(), "rows beyond the rank are not 0")
    basis = computed(rd.linalg.nullspace(x))
    require(basis.shape == (columns, columns - len(pivots)), "a null space of another rank")
    require(not matrix_product(values, basis).any(), "a null vector that is none")
    require(all(math.gcd(*v) == 1 for v in basis.T.tolist()), "a null vector has a common factor")
    tops, below = map(computed, rd.linalg.solve(x, x, unique=False))
    below = int(below.item() if hasattr(below, "item") else below)
    same_array(matrix_product(values, tops), values * below, "a @ solve(a, a, unique=False)")
    free = sorted(set(range(columns)) - set(pivots))
    require(not tops[free].any(), "a free variable is not 0")
    return 4 * columns


@operation("matrices modulo integers")
def check_modulo(case: Case, rng: Random) -> int:
    """Inverses and solutions modulo primes, powers and products, or the common divisor."""
    n = rng.randint(1, 4)
    a = case.fresh(rng, (n, n), "a")
    factors = rng.sample(
        [2 ** rng.randint(1, 70), 3, 5**3, 2**31 - 1, 2**61 - 1, 7 * 11, 65537], rng.randint(1, 3)
    )
    modulus, det = math.prod(factors), determinant(a.values.tolist())
    case.note("modulo=", factors)
    modulo = factors if rng.random() < 0.5 else modulus
    common = math.gcd(det, modulus)
    x = in_one_chunk(a.array, a.values)
    b = case.fresh(rng, (n, rng.randint(1, 3)), "b")
    if common != 1:
        call = lambda: computed(rd.linalg.inv(x, modulo=modulo))  # noqa: E731
        error = must_fail(call, np.linalg.LinAlgError, "no inverse")
        require(common > 10**15 or str(error).endswith(f" is {common}"), f"another divisor: {error}")
        must_fail(lambda: rd.linalg.solve(x, b.array, modulo=modulo), np.linalg.LinAlgError, "no inverse")
        return 2
    for got, right in (
        (rd.linalg.inv(x, modulo=modulo), np.eye(n, dtype=object)),
        (rd.linalg.solve(x, b.array, modulo=modulo), b.values),
    ):
        values = computed(got)
        require(bool(((values >= 0) & (values < modulus)).all()), "an element is no residue")
        same_array(matrix_product(a.values, values) % modulus, right % modulus, "a @ solution")
    return n * n


@operation("matrices of polynomials")
def check_polynomial_determinants(case: Case, rng: Random) -> int:
    """Determinants of matrices of polynomials by their values at more points than they have coefficients."""
    n, length = rng.randint(1, 3), rng.randint(1, 3)
    a = case.fresh(rng, (n, n, length), "a")
    got = computed(rd.linalg.det(in_one_chunk(a.array, a.values), variables=1)).tolist()
    require(len(got) == n * (length - 1) + 1, f"{len(got)} coefficients")
    for x in range(-1, len(got)):
        powers = objects(x**k for k in range(length))
        exact = determinant(matrix_product(a.values.reshape(-1, length), powers).reshape(n, n).tolist())
        require(sum(c * x**k for k, c in enumerate(got)) == exact, f"another value at {x}")
    return len(got)


@operation("fields: equations of any shape", ANY)
def check_any_field_equations(case: Case, rng: Random) -> int:
    """Solutions that are 0 without a pivot in each field, or an error that names a prime without any."""
    field, size = prime_fields(rng)
    shape, width = (rng.randint(1, 5), rng.randint(1, 5)), rng.randint(1, 3)
    values = of_low_rank(rng, size, shape)
    right = matrix_product(
        values, objects((element(rng, size) for _ in range(shape[1] * width)), (shape[1], width))
    )
    if rng.random() < 0.3:
        right = objects((element(rng, size) for _ in range(shape[0] * width)), (shape[0], width))
    case.note("field", repr(field))
    case.note("matrix, right", (values.tolist(), right.tolist()))
    a, b = (array_of(case, rng, field, v % size, whole_axes=k) for v, k in ((values, 2), (right, 0)))
    joined = np.concatenate([values, right], axis=1).tolist()
    forms = {p: (reduced(values.tolist(), p)[1], reduced(joined, p)[1]) for p in field.primes}
    without = [p for p, (own, both) in forms.items() if own != both]
    call = lambda: computed(rd.linalg.solve(a, b, unique=False))  # noqa: E731
    if without:
        error = must_fail(call, np.linalg.LinAlgError, "equations without a solution")
        require(any(f"modulo {p}" in str(error) for p in without), f"another prime: {error}")
        return 1
    got = call().to_ints()
    for p, (pivots, _) in forms.items():
        free = sorted(set(range(shape[1])) - set(pivots))
        require(not (got[free] % p).any(), f"a free variable is not 0 modulo {p}")
    return same_array(matrix_product(values, got) % size, right % size, "a @ solve(a, b, unique=False)")


@operation("fields: matrices", ANY)
def check_matrices(case: Case, rng: Random) -> int:
    """Products, determinants, and inverses and solutions by what they are multiplied with."""
    field, size = field_of(rng)
    n, columns = rng.randint(1, 5), rng.randint(1, 4)
    case.note("field", repr(field))
    values = objects((element(rng, size) for _ in range(n * n)), (n, n))
    right = objects((element(rng, size) for _ in range(n * columns)), (n, columns))
    case.note("matrix", values)
    a, b = (array_of(case, rng, field, v, whole_axes=2) for v in (values, right))
    count = same(field, a @ b, matrix_product(values, right) % size, "product")
    if isinstance(field, rd.FermatField):
        return count
    det = determinant(values.tolist()) % size
    count += same_int(rd.linalg.det(a), det, "det")
    if math.gcd(det, size) != 1:
        must_fail(lambda: rd.linalg.inv(a), np.linalg.LinAlgError, "a singular matrix")
        must_fail(lambda: rd.linalg.solve(a, b), np.linalg.LinAlgError, "a singular matrix")
        return count + 2
    solutions = rd.linalg.solve(a, b).to_ints()
    count += same_array(matrix_product(values, solutions) % size, right, "a @ solve(a, b)")
    inverse = rd.linalg.inv(a).to_ints()
    identity = np.eye(n, dtype=object) * (1 % size)
    return count + same_array(matrix_product(values, inverse) % size, identity, "a @ inv(a)")


@operation("fields: ranks and factors", ANY)
def check_factors(case: Case, rng: Random) -> int:
    """Ranks and factors of matrices of any shape and rank, modulo each prime."""
    field, size = prime_fields(rng)
    shape = rng.randint(1, 6), rng.randint(1, 6)
    values = np.stack([of_low_rank(rng, size, shape) for _ in range(rng.randint(1, 3))])
    case.note("field", repr(field))
    case.note("matrices", values)
    x = array_of(case, rng, field, values, whole_axes=2)
    ranks = computed(rd.linalg.rank(x))
    p_, l_, u_ = (part.to_ints() for part in rd.linalg.lu(x))
    products = [matrix_product(matrix_product(p, low), u) for p, low, u in zip(p_, l_, u_, strict=True)]
    count = same_array(np.stack(products) % size, values, "P @ L @ U")
    forms, places = rd.linalg.rref(x)
    forms, places = computed(forms).to_ints(), computed(places)
    for k, p in enumerate(field.primes):
        for i, matrix in enumerate(values.tolist()):
            form, pivots = reduced(matrix, p)
            same_int(int(ranks[k, i]), len(pivots), f"rank modulo {p}")
            require([c for c in places[k, i].tolist() if c >= 0] == pivots, f"pivots modulo {p}")
            form += [[0] * shape[1]] * (shape[0] - len(form))
            require((forms[i] % p).tolist() == form, f"rref modulo {p}")
            check_lu(p_[i] % p, l_[i] % p, u_[i] % p, pivots)
    return count + check_nullspaces(field, x, values)


def check_lu(permutation: np.ndarray, lower: np.ndarray, upper: np.ndarray, pivots: list[int]) -> None:
    n = len(permutation)
    ones = permutation.astype(int)
    require((ones.sum(0) == 1).all() and (ones.sum(1) == 1).all() and ones.max() == 1, "P permutes no rows")
    require((np.triu(lower)[: lower.shape[1]] == np.eye(lower.shape[1], dtype=int)).all(), "L")
    require(not np.triu(lower, 1).any() and len(lower) == n, "L has elements above its diagonal")
    firsts = [next((j for j, v in enumerate(row) if v), None) for row in upper.tolist()]
    rest = [None] * (len(upper) - len(pivots))
    require(firsts == [*pivots, *rest], f"the rows of U begin at {firsts} instead of {pivots}")


def check_nullspaces(field: Any, x: Any, values: np.ndarray) -> int:
    """The basis that reduced echelon forms tell, or an error where ranks differ."""
    forms = [[reduced(matrix, p) for matrix in values.tolist()] for p in field.primes]
    ranks = {len(pivots) for of_prime in forms for _, pivots in of_prime}
    if len(ranks) > 1:
        must_fail(lambda: rd.linalg.nullspace(x), ValueError, "ranks that differ")
        return 1
    got, columns = rd.linalg.nullspace(x).to_ints(), values.shape[2]
    for p, of_prime in zip(field.primes, forms, strict=True):
        for i, (rows, pivots) in enumerate(of_prime):
            free = [j for j in range(columns) if j not in pivots]
            expected = np.zeros((columns, len(free)), dtype=object)
            for k, j in enumerate(free):
                expected[j, k] = 1
                expected[pivots, k] = [-row[j] % p for row in rows]
            same_array(got[i] % p, expected, f"null space {i} modulo {p}")
    return len(values)


def prime_fields(rng: Random) -> tuple[Any, int]:
    """Fields that have linear algebra."""
    while True:
        field, size = field_of(rng)
        if isinstance(field, rd.PrimeFields):
            return field, size


@operation("fields: powers of matrices", ANY)
def check_matrix_powers(case: Case, rng: Random) -> int:
    """Characteristic polynomials of a stack, and powers with exponents of any sign."""
    field, size = prime_fields(rng)
    n = rng.randint(1, 6)
    values = np.stack([of_low_rank(rng, size, (n, n)) for _ in range(rng.randint(1, 3))])
    exponent = rng.randint(-4, 6)
    case.note("field, exponent", (repr(field), exponent))
    case.note("matrices", values)
    x = array_of(case, rng, field, values, whole_axes=2)
    polynomials = np.array([characteristic(matrix) for matrix in values], dtype=object) % size
    count = same(field, rd.linalg.charpoly(x), polynomials, "charpoly")
    dets = [determinant(matrix.tolist()) % size for matrix in values]
    count += same(field, rd.linalg.det(x), objects(dets), "det")
    if exponent < 0 and any(math.gcd(det, size) != 1 for det in dets):
        must_fail(lambda: rd.linalg.matrix_power(x, exponent), np.linalg.LinAlgError, "a singular matrix")
        return count + 1
    powers = computed(rd.linalg.matrix_power(x, exponent)).to_ints()
    for matrix, power in zip(values, powers, strict=True):
        expected = np.eye(n, dtype=object) % size
        for _ in range(abs(exponent)):
            expected = matrix_product(expected, matrix) % size
        if exponent < 0:  # their product is 1
            power, expected = matrix_product(expected, power) % size, np.eye(n, dtype=object) % size
        same_array(power, expected, f"power {exponent}")
    return count + len(values)


@operation("stacks of integer matrices")
def check_integer_stacks(case: Case, rng: Random) -> int:
    """Determinants, ranks, polynomials, solutions and inverses, as Python ints or under other moduli."""
    batch, n = rng.randint(1, 3), rng.randint(1, 4)
    a, b = case.fresh(rng, (batch, n, n), "a"), case.fresh(rng, (n, rng.randint(1, 2)), "b")
    x = a.array if not dask.is_dask_collection(a.array) else a.array.rechunk({1: -1, 2: -1})
    y = in_one_chunk(b.array, b.values)
    matrices = a.values.tolist()
    dets = [determinant(matrix) for matrix in matrices]
    count = check_under_moduli(case, rng, rd.linalg.det, (x,), [objects(dets)])
    polynomials = np.array([characteristic(matrix) for matrix in a.values], dtype=object)
    count += check_under_moduli(case, rng, rd.linalg.charpoly, (x,), [polynomials])
    ranks = [exact_rank(matrix) for matrix in matrices]
    count += same_array(rd.linalg.rank(x), np.array(ranks), "ranks")
    if 0 in dets:
        error = must_fail(lambda: rd.linalg.inv(x), np.linalg.LinAlgError, "a singular matrix")
        require(any(d == 0 and str(i) in str(error) for i, d in enumerate(dets)), f"another matrix: {error}")
        return count + 1
    inverses = [adjugate(matrix) for matrix in matrices]
    solutions = [matrix_product(adjoint, b.values) for adjoint in inverses]
    for function, operands, numerators in (
        (rd.linalg.inv, (x,), inverses),
        (rd.linalg.solve, (x, y), solutions),
    ):
        exact = [in_least_terms(top, det) for top, det in zip(numerators, dets, strict=True)]
        tops, bottoms = np.stack([top for top, _ in exact]), objects(bottom for _, bottom in exact)
        count += check_under_moduli(case, rng, function, operands, [tops, bottoms])
    return count


def check_under_moduli(
    case: Case, rng: Random, function: Any, operands: tuple[Any, ...], expected: list[np.ndarray]
) -> int:
    """Check results of a function: Python ints, or arrays of a moduli set that holds them or does not."""
    if rng.random() < 0.5:
        got = function(*operands)
        parts = got if isinstance(got, tuple) else (got,)
        return sum(same_array(*pair, function.__name__) for pair in zip(parts, expected, strict=True))
    longest = max(abs(v) for part in expected for v in part.reshape(-1).tolist()).bit_length()
    system = rd.RNS(rd.ModuliSet.for_bits(max(1, longest + rng.choice((-40, -1, 1, 2, 80)))), signed=True)
    case.note("moduli=", system.moduli.moduli)
    limits = Range.of("signed", system.moduli.product)
    if any(limits.outside(part).any() for part in expected):
        must_fail(lambda: function(*operands, moduli=system), rd.RNSOverflowError, "results out of range")
        return 1
    got = function(*operands, moduli=system)
    parts = got if isinstance(got, tuple) else (got,)
    there = Case(case.seed, "signed", system.moduli, case.processor, case.is_lazy, [])
    return sum(same_numbers(there, *pair, function.__name__) for pair in zip(parts, expected, strict=True))


def exact_rank(rows: list[list[int]]) -> int:
    """The order of the greatest minor that is not 0."""
    n = len(rows)
    for k in range(n, 0, -1):
        for some in itertools.combinations(range(n), k):
            for columns in itertools.combinations(range(n), k):
                if determinant([[rows[i][j] for j in columns] for i in some]):
                    return k
    return 0


def adjugate(rows: list[list[int]]) -> np.ndarray:
    """The determinant times the inverse."""
    n = len(rows)
    minor = [
        [[row[:j] + row[j + 1 :] for row in rows[:i] + rows[i + 1 :]] for i in range(n)] for j in range(n)
    ]
    return objects(((-1) ** (i + j) * determinant(minor[i][j]) for i in range(n) for j in range(n)), (n, n))


def in_least_terms(numerators: np.ndarray, denominator: int) -> tuple[np.ndarray, int]:
    factor = math.gcd(denominator, *numerators.reshape(-1).tolist()) * (-1 if denominator < 0 else 1)
    return numerators // factor, denominator // factor
