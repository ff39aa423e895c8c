"""Laws of sparse matrices over prime fields: products, forms of files, equations, determinants and ranks."""

from random import Random
from typing import Any

import numpy as np
from oracles.integers import matrix_product

import rnsdask as rd
from laws.case import ANY_PRIME_FIELDS, Case, computed, law_of
from laws.fields import sizes_of
from laws.linear_algebra import determinant, reduced


class Drawn:
    """A sparse matrix with entries of one place, and zeros, and what it is."""

    def __init__(self, case: Case, square: bool) -> None:
        random = case.random
        rows = random.randint(0 if random.random() < 0.1 else 1, 7)
        self.shape = rows, rows if square else random.randint(1, 7)
        count = random.randint(0, 3 * max(self.shape)) if 0 not in self.shape else 0
        self.values = [self._number(random) for _ in range(count)]
        self.places = [[random.randrange(n) for _ in range(count)] for n in self.shape]
        if square and random.random() < 0.6:  # mostly regular
            self.values += [random.choice((1, -1, 3)) for _ in range(rows)]
            order = random.sample(range(rows), rows)
            self.places = [self.places[0] + list(range(rows)), self.places[1] + order]
        self.dense = np.zeros(self.shape, dtype=object)
        for i, j, value in zip(*self.places, self.values, strict=True):
            self.dense[i, j] += value
        self.matrix = rd.sparse.from_entries(*self.places, self.values, self.shape)
        case.note("matrix", self.dense)

    @staticmethod
    def _number(random: Random) -> int:
        value = random.choice((0, 1, 2, 2**31, 2**63, 2**64 - 1, random.getrandbits(random.randint(1, 100))))
        return -value if random.random() < 0.5 else value


@law_of(*ANY_PRIME_FIELDS)
def sparse_products_are_dense_ones(case: Case) -> None:
    """Products with vectors and blocks of them; the whole matrix, transposed, from SciPy, from a file."""
    random = case.random
    size = case.limits.product
    a = Drawn(case, False)
    width = random.choice((None, 0, 1, 2, 17))
    shape = (a.shape[1],) if width is None else (a.shape[1], width)
    vectors = case.numbers(shape)
    case.note("vectors", vectors)
    x = case.array(vectors)
    got = a.matrix @ x
    case.claim_array(got, matrix_product(a.dense, vectors) % size, "product")
    other = random.choice((transposed, from_scipy, from_file))(case, a)
    case.claim_array(other.to_dense(case.system.value), a.dense % size, "another way")
    assert other.nnz == np.count_nonzero(a.dense), "entries are counted wrong"


def transposed(_: Case, a: Drawn) -> Any:
    return rd.sparse.from_entries(*a.places[::-1], a.values, a.shape[::-1]).T


def from_scipy(case: Case, a: Drawn) -> Any:
    random = case.random
    import scipy.sparse

    if any(not -(2**62) < v < 2**62 for v in a.dense.flat):
        return a.matrix
    kind = random.choice(("csr", "csc", "coo", "lil", "dok"))
    return rd.sparse.from_scipy(scipy.sparse.coo_array(a.dense.astype(np.int64)).asformat(kind))


def from_file(case: Case, a: Drawn) -> Any:
    """A Matrix Market or an .sms file, as people and programs write them."""
    random = case.random
    rows, columns = a.shape
    places = list(dict.fromkeys(zip(*a.places, strict=True)))  # two entries of one place are refused
    entries = [f"{i + 1} {j + 1} {a.dense[i, j]}" for i, j in places]
    text = "\n".join([f"{rows} {columns} M", *entries, "0 0 0"])
    if random.random() < 0.6:
        entries = [line for entry in entries for line in ("", "% comment", entry)[random.randint(0, 2) :]]
        header = (
            f"%%MatrixMarket matrix coordinate integer general\n% comment\n{rows} {columns} {len(places)}"
        )
        text = "\n".join([header, *entries])
    path = case.folder() / "matrix"
    path.write_text(text + random.choice(("", "\n", "\n\n")))
    return rd.sparse.read(path)


@law_of(*ANY_PRIME_FIELDS)
def sparse_equations_are_solved(case: Case) -> None:
    """Solutions that hold, or none modulo the prime that the error names: small systems are decided."""
    random = case.random
    size = case.limits.product
    a = Drawn(case, random.random() < 0.5)
    width = random.choice((None, 1, 3))
    shape = (a.shape[1],) if width is None else (a.shape[1], width)
    known = case.numbers(shape)
    right = matrix_product(a.dense, known) % size
    if random.random() < 0.3:
        right = case.numbers(right.shape)
    case.note("right", right)
    b = case.array(right)
    chunks = random.choice((None, 1, 2))
    try:
        got = computed(rd.sparse.solve(a.matrix, b, chunks=chunks, seed=random.randint(0, 3))).to_ints()
    except np.linalg.LinAlgError as error:
        message = str(error)
        prime = int(message.split(" modulo ")[1].split()[0])
        both = np.concatenate([a.dense, right.reshape(a.shape[0], -1)], axis=1).tolist()
        is_solvable = len(reduced(both, prime)[1]) == len(reduced(a.dense.tolist(), prime)[1])
        assert not is_solvable, f"there is a solution: {message}"
        return
    case.claim(matrix_product(a.dense, got) % size, right, "a @ solve(a, b)")


@law_of(*ANY_PRIME_FIELDS)
def sparse_determinants_and_ranks_are_dense_ones(case: Case) -> None:
    """Determinants, minimal polynomials by their being least, and ranks."""
    random = case.random
    size = case.limits.product
    a = Drawn(case, True)
    length, options = a.shape[0], {"chunks": random.choice((None, 1, 2)), "seed": random.randint(0, 3)}
    options["backend"] = "cpu" if case.processor.name == "cpu" else "cuda"
    case.claim(
        rd.sparse.det(a.matrix, case.system.value, **options), determinant(a.dense.tolist()) % size, "det"
    )
    ranks = computed(rd.sparse.rank(a.matrix, case.system.value, **options)).tolist()
    assert ranks == [len(reduced(a.dense.tolist(), p)[1]) for p in sizes_of(case)], f"ranks {ranks}"
    got = computed(rd.sparse.minpoly(a.matrix, case.system.value, **options)).to_ints()
    assert got.shape == (length + 1,), f"shape {got.shape} of a minimal polynomial"
    for p in sizes_of(case):
        powers = [np.eye(length, dtype=object) % p]
        for _ in range(length):
            powers.append(matrix_product(powers[-1], a.dense) % p)
        lines = [power.ravel().tolist() for power in powers]
        degree = next(k for k in range(length + 1) if len(reduced(lines[: k + 1], p)[1]) <= k)
        assert got[degree] % p == 1, f"another degree modulo {p}"
        assert not any(c % p for c in got[degree + 1 :]), f"another degree modulo {p}"
        total = sum((c % p * power for c, power in zip(got, powers, strict=True)), powers[0] * 0)
        assert not (total % p).any(), f"a matrix is no root of its minimal polynomial modulo {p}"
    return
