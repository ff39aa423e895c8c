"""Laws of linear algebra over the integers and over prime fields."""

import itertools
import math
from typing import Any

import numpy as np
from oracles.integers import matrix_product, objects

import rnsdask as rd
from laws.case import ANY_PRIME_FIELDS, FIELDS, RESIDUES, Case, computed, law_of, must_fail
from laws.fields import sizes_of
from laws.systems import rns_system


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


def of_low_rank(case: Case, shape: tuple[int, int]) -> np.ndarray:
    """A matrix of any rank: of random elements, or a product of two narrow ones."""
    random = case.random
    inner = random.randint(0, min(shape)) if random.random() < 0.7 else None
    if inner is None:
        return case.numbers(shape)
    return (
        matrix_product(case.numbers((shape[0], inner)), case.numbers((inner, shape[1]))) % case.limits.product
    )


@law_of(*RESIDUES)
def determinants_and_solutions_are_exact(case: Case) -> None:
    """Exact ones over the integers; characteristic polynomials by what a matrix makes of them."""
    random = case.random
    n, columns = random.randint(1, 4), random.randint(1, 3)
    values = case.numbers((n, n))
    if random.random() < 0.2:  # a singular one
        values[-1] = values[0]
    a, b = case.chosen(values, "a", 2), case.fresh((n, columns), "b", 2)
    matrix, right = a.array, b.array
    det = determinant(a.values.tolist())
    case.claim(rd.linalg.det(matrix), det, "det")
    power, total = np.eye(n, dtype=object), np.zeros((n, n), dtype=object)
    for coefficient in computed(rd.linalg.charpoly(matrix)).tolist():
        total, power = total + coefficient * power, matrix_product(power, a.values)
    assert not total.any(), "a matrix is no root of its characteristic polynomial"
    if det == 0:
        must_fail(lambda: rd.linalg.solve(matrix, right), np.linalg.LinAlgError, "a singular matrix")
        return
    case.claim(rd.linalg.rank(matrix), n, "rank")
    numerators, denominator = map(computed, rd.linalg.solve(matrix, right))
    factor = int(denominator.item() if hasattr(denominator, "item") else denominator)
    assert factor > 0, "a denominator is not positive"
    assert math.gcd(factor, *numerators.ravel().tolist()) == 1, "a denominator is not the least"
    case.claim(matrix_product(a.values, numerators), b.values * factor, "a @ solve(a, b)")


# Minors of the laws' matrices hardly ever are multiples of it.
LARGE_PRIME = 2**2203 - 1


@law_of(*RESIDUES)
def equations_of_any_shape_are_solved(case: Case) -> None:
    """Echelon forms, null spaces and solutions of integer matrices of any shape and rank."""
    random = case.random
    values = case.numbers((random.randint(1, 3), random.randint(1, 4)))
    for axis in (0, 1):
        if random.random() < 0.5:
            values = np.concatenate([values, values], axis=axis)
    x = case.chosen(values, "a", 2).array
    form, pivots = reduced(values.tolist(), LARGE_PRIME)
    rows, columns = values.shape
    numerators, denominator, found = map(computed, rd.linalg.rref(x))
    case.claim(found, np.array([*pivots, *[-1] * (min(rows, columns) - len(pivots))]), "pivots")
    factor = pow(int(denominator.item() if hasattr(denominator, "item") else denominator), -1, LARGE_PRIME)
    expected = objects((v for row in form for v in row), (len(form), columns))
    case.claim(numerators[: len(form)] * factor % LARGE_PRIME, expected, "rref")
    assert not numerators[len(form) :].any(), "rows beyond the rank are not 0"
    basis = computed(rd.linalg.nullspace(x))
    assert basis.shape == (columns, columns - len(pivots)), "a null space of another rank"
    assert not matrix_product(values, basis).any(), "a null vector that is none"
    assert all(math.gcd(*v) == 1 for v in basis.T.tolist()), "a null vector has a common factor"
    tops, below = map(computed, rd.linalg.solve(x, x, unique=False))
    below = int(below.item() if hasattr(below, "item") else below)
    case.claim(matrix_product(values, tops), values * below, "a @ solve(a, a, unique=False)")
    free = sorted(set(range(columns)) - set(pivots))
    assert not tops[free].any(), "a free variable is not 0"


@law_of(*RESIDUES)
def equations_modulo_integers_are_solved(case: Case) -> None:
    """Inverses and solutions modulo primes, powers and products, or the common divisor."""
    random = case.random
    n = random.randint(1, 4)
    a, b = case.fresh((n, n), "a", 2), case.fresh((n, random.randint(1, 3)), "b")
    x = a.array
    factors = random.sample(
        [2 ** random.randint(1, 70), 3, 5**3, 2**31 - 1, 2**61 - 1, 7 * 11, 65537], random.randint(1, 3)
    )
    modulus, det = math.prod(factors), determinant(a.values.tolist())
    case.note("modulo=", factors)
    modulo = factors if random.random() < 0.5 else modulus
    common = math.gcd(det, modulus)
    if common != 1:
        call = lambda: computed(rd.linalg.inv(x, modulo=modulo))  # noqa: E731
        error = must_fail(call, np.linalg.LinAlgError, "no inverse")
        assert common > 10**15 or str(error).endswith(f" is {common}"), f"another divisor: {error}"
        must_fail(lambda: rd.linalg.solve(x, b.array, modulo=modulo), np.linalg.LinAlgError, "no inverse")
        return
    for got, right in (
        (rd.linalg.inv(x, modulo=modulo), np.eye(n, dtype=object)),
        (rd.linalg.solve(x, b.array, modulo=modulo), b.values),
    ):
        values = computed(got)
        assert bool(((values >= 0) & (values < modulus)).all()), "an element is no residue"
        case.claim(matrix_product(a.values, values) % modulus, right % modulus, "a @ solution")


@law_of(*RESIDUES)
def determinants_of_polynomials_have_their_values(case: Case) -> None:
    """Determinants of matrices of polynomials by their values at more points than they have coefficients."""
    random = case.random
    n, length = random.randint(1, 3), random.randint(1, 3)
    a = case.fresh((n, n, length), "a", 3)
    got = computed(rd.linalg.det(a.array, variables=1)).tolist()
    assert len(got) == n * (length - 1) + 1, f"{len(got)} coefficients"
    for x in range(-1, len(got)):
        powers = objects(x**k for k in range(length))
        exact = determinant(matrix_product(a.values.reshape(-1, length), powers).reshape(n, n).tolist())
        assert sum(c * x**k for k, c in enumerate(got)) == exact, f"another value at {x}"


@law_of(*ANY_PRIME_FIELDS)
def equations_in_fields_are_solved(case: Case) -> None:
    """Solutions that are 0 without a pivot in each field, or an error that names a prime without any."""
    random = case.random
    size = case.limits.product
    shape, width = (random.randint(1, 5), random.randint(1, 5)), random.randint(1, 3)
    values = of_low_rank(case, shape)
    right = matrix_product(values, case.numbers((shape[1], width)))
    if random.random() < 0.3:
        right = case.numbers((shape[0], width))
    case.note("matrix, right", (values.tolist(), right.tolist()))
    a, b = (case.array(v % size, whole_axes=k) for v, k in ((values, 2), (right, 0)))
    joined = np.concatenate([values, right], axis=1).tolist()
    forms = {p: (reduced(values.tolist(), p)[1], reduced(joined, p)[1]) for p in sizes_of(case)}
    without = [p for p, (own, both) in forms.items() if own != both]
    call = lambda: computed(rd.linalg.solve(a, b, unique=False))  # noqa: E731
    if without:
        error = must_fail(call, np.linalg.LinAlgError, "equations without a solution")
        assert any(f"modulo {p}" in str(error) for p in without), f"another prime: {error}"
        return
    got = call().to_ints()
    for p, (pivots, _) in forms.items():
        free = sorted(set(range(shape[1])) - set(pivots))
        assert not (got[free] % p).any(), f"a free variable is not 0 modulo {p}"
    case.claim(matrix_product(values, got) % size, right % size, "a @ solve(a, b, unique=False)")


@law_of(*FIELDS)
def matrices_of_elements_are_inverted(case: Case) -> None:
    """Products, determinants, and inverses and solutions by what they are multiplied with."""
    random = case.random
    size = case.limits.product
    n, columns = random.randint(1, 5), random.randint(1, 4)
    values = case.numbers((n, n))
    right = case.numbers((n, columns))
    case.note("matrix", values)
    a, b = (case.array(v, whole_axes=2) for v in (values, right))
    case.claim_array(a @ b, matrix_product(values, right) % size, "product")
    if case.system.kind == "fermat":
        return
    det = determinant(values.tolist()) % size
    case.claim(rd.linalg.det(a), det, "det")
    if math.gcd(det, size) != 1:
        must_fail(lambda: rd.linalg.inv(a), np.linalg.LinAlgError, "a singular matrix")
        must_fail(lambda: rd.linalg.solve(a, b), np.linalg.LinAlgError, "a singular matrix")
        return
    solutions = rd.linalg.solve(a, b).to_ints()
    case.claim(matrix_product(values, solutions) % size, right, "a @ solve(a, b)")
    inverse = rd.linalg.inv(a).to_ints()
    identity = np.eye(n, dtype=object) * (1 % size)
    case.claim(matrix_product(values, inverse) % size, identity, "a @ inv(a)")


@law_of(*ANY_PRIME_FIELDS)
def factors_and_forms_are_those_modulo_each_prime(case: Case) -> None:
    """Ranks and factors of matrices of any shape and rank, modulo each prime."""
    random = case.random
    size = case.limits.product
    shape = random.randint(1, 6), random.randint(1, 6)
    values = np.stack([of_low_rank(case, shape) for _ in range(random.randint(1, 3))])
    case.note("matrices", values)
    x = case.array(values, whole_axes=2)
    ranks = computed(rd.linalg.rank(x))
    p_, l_, u_ = (part.to_ints() for part in rd.linalg.lu(x))
    products = [matrix_product(matrix_product(p, low), u) for p, low, u in zip(p_, l_, u_, strict=True)]
    case.claim(np.stack(products) % size, values, "P @ L @ U")
    forms, places = rd.linalg.rref(x)
    forms, places = computed(forms).to_ints(), computed(places)
    for k, p in enumerate(sizes_of(case)):
        for i, matrix in enumerate(values.tolist()):
            form, pivots = reduced(matrix, p)
            case.claim(int(ranks[k, i]), len(pivots), f"rank modulo {p}")
            assert [c for c in places[k, i].tolist() if c >= 0] == pivots, f"pivots modulo {p}"
            form += [[0] * shape[1]] * (shape[0] - len(form))
            assert (forms[i] % p).tolist() == form, f"rref modulo {p}"
            check_lu(p_[i] % p, l_[i] % p, u_[i] % p, pivots)
    claim_nullspaces(case, x, values)


def check_lu(permutation: np.ndarray, lower: np.ndarray, upper: np.ndarray, pivots: list[int]) -> None:
    n = len(permutation)
    ones = permutation.astype(int)
    assert (ones.sum(0) == 1).all(), "P permutes no rows"
    assert (ones.sum(1) == 1).all(), "P permutes no rows"
    assert ones.max() == 1, "P permutes no rows"
    assert (np.triu(lower)[: lower.shape[1]] == np.eye(lower.shape[1], dtype=int)).all(), "L"
    assert not np.triu(lower, 1).any(), "L has elements above its diagonal"
    assert len(lower) == n, "L has another length"
    firsts = [next((j for j, v in enumerate(row) if v), None) for row in upper.tolist()]
    rest = [None] * (len(upper) - len(pivots))
    assert firsts == [*pivots, *rest], f"the rows of U begin at {firsts} instead of {pivots}"


def claim_nullspaces(case: Case, x: Any, values: np.ndarray) -> None:
    """The basis that reduced echelon forms tell, or an error where ranks differ."""
    forms = [[reduced(matrix, p) for matrix in values.tolist()] for p in sizes_of(case)]
    ranks = {len(pivots) for of_prime in forms for _, pivots in of_prime}
    if len(ranks) > 1:
        must_fail(lambda: rd.linalg.nullspace(x), ValueError, "ranks that differ")
        return
    got, columns = rd.linalg.nullspace(x).to_ints(), values.shape[2]
    for p, of_prime in zip(sizes_of(case), forms, strict=True):
        for i, (rows, pivots) in enumerate(of_prime):
            free = [j for j in range(columns) if j not in pivots]
            expected = np.zeros((columns, len(free)), dtype=object)
            for k, j in enumerate(free):
                expected[j, k] = 1
                expected[pivots, k] = [-row[j] % p for row in rows]
            case.claim(got[i] % p, expected, f"null space {i} modulo {p}")


@law_of(*ANY_PRIME_FIELDS)
def powers_of_matrices_of_elements_are_products(case: Case) -> None:
    """Characteristic polynomials of a stack, and powers with exponents of any sign."""
    random = case.random
    size = case.limits.product
    n = random.randint(1, 6)
    values = np.stack([of_low_rank(case, (n, n)) for _ in range(random.randint(1, 3))])
    exponent = random.randint(-4, 6)
    case.note("exponent", exponent)
    case.note("matrices", values)
    x = case.array(values, whole_axes=2)
    polynomials = np.array([characteristic(matrix) for matrix in values], dtype=object) % size
    case.claim_array(rd.linalg.charpoly(x), polynomials, "charpoly")
    dets = [determinant(matrix.tolist()) % size for matrix in values]
    case.claim_array(rd.linalg.det(x), objects(dets), "det")
    if exponent < 0 and any(math.gcd(det, size) != 1 for det in dets):
        must_fail(lambda: rd.linalg.matrix_power(x, exponent), np.linalg.LinAlgError, "a singular matrix")
        return
    powers = computed(rd.linalg.matrix_power(x, exponent)).to_ints()
    for matrix, power in zip(values, powers, strict=True):
        expected = np.eye(n, dtype=object) % size
        for _ in range(abs(exponent)):
            expected = matrix_product(expected, matrix) % size
        if exponent < 0:  # their product is 1
            power, expected = matrix_product(expected, power) % size, np.eye(n, dtype=object) % size
        case.claim(power, expected, f"power {exponent}")


@law_of(*RESIDUES)
def stacks_of_integer_matrices_are_exact(case: Case) -> None:
    """Determinants, ranks, polynomials, solutions and inverses, as Python ints or under other moduli."""
    random = case.random
    batch, n = random.randint(1, 3), random.randint(1, 4)
    a, b = case.fresh((batch, n, n), "a", 2), case.fresh((n, random.randint(1, 2)), "b", 2)
    x, y = a.array, b.array
    matrices = a.values.tolist()
    dets = [determinant(matrix) for matrix in matrices]
    claim_under_moduli(case, rd.linalg.det, (x,), [objects(dets)])
    polynomials = np.array([characteristic(matrix) for matrix in a.values], dtype=object)
    claim_under_moduli(case, rd.linalg.charpoly, (x,), [polynomials])
    ranks = [exact_rank(matrix) for matrix in matrices]
    case.claim(rd.linalg.rank(x), np.array(ranks), "ranks")
    if 0 in dets:
        error = must_fail(lambda: rd.linalg.inv(x), np.linalg.LinAlgError, "a singular matrix")
        assert any(d == 0 and str(i) in str(error) for i, d in enumerate(dets)), f"another matrix: {error}"
        return
    inverses = [adjugate(matrix) for matrix in matrices]
    solutions = [matrix_product(adjoint, b.values) for adjoint in inverses]
    for function, operands, numerators in (
        (rd.linalg.inv, (x,), inverses),
        (rd.linalg.solve, (x, y), solutions),
    ):
        exact = [in_least_terms(top, det) for top, det in zip(numerators, dets, strict=True)]
        tops, bottoms = np.stack([top for top, _ in exact]), objects(bottom for _, bottom in exact)
        claim_under_moduli(case, function, operands, [tops, bottoms])


def claim_under_moduli(
    case: Case, function: Any, operands: tuple[Any, ...], expected: list[np.ndarray]
) -> None:
    """Claim results of a function: Python ints, or arrays of a moduli set that holds them or does not."""
    random = case.random
    if random.random() < 0.5:
        got = function(*operands)
        parts = got if isinstance(got, tuple) else (got,)
        for pair in zip(parts, expected, strict=True):
            case.claim(*pair, function.__name__)
        return
    longest = max(abs(v) for part in expected for v in part.ravel().tolist()).bit_length()
    moduli = rd.ModuliSet.for_bits(max(1, longest + random.choice((-40, -1, 1, 2, 80))))
    system, there = rd.RNS(moduli, signed=True), rns_system("results", moduli, True)
    case.note("moduli=", moduli.moduli)
    if any(there.limits.outside(part).any() for part in expected):
        must_fail(lambda: function(*operands, moduli=system), rd.RNSOverflowError, "results out of range")
        return
    got = function(*operands, moduli=system)
    parts = got if isinstance(got, tuple) else (got,)
    claims = Case(there, "eager", case.processor, random, case.folder)
    for pair in zip(parts, expected, strict=True):
        claims.claim_array(*pair, function.__name__)
    claims.settle()


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
    factor = math.gcd(denominator, *numerators.ravel().tolist()) * (-1 if denominator < 0 else 1)
    return numerators // factor, denominator // factor
