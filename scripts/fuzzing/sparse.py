"""Sparse matrices, product and remainder trees, and fractions from residues."""

import math
import tempfile
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from oracles.integers import Range, matrix_product, objects

import rnsdask as rd
from fuzzing import inputs
from fuzzing.case import Case
from fuzzing.checking import computed, must_fail, operation, require, same_array, same_int
from fuzzing.fields import ANY, array_of, element, same
from fuzzing.limbs import BITS, RNS, words_of
from fuzzing.limbs import same as same_limbs
from fuzzing.linear_algebra import determinant, prime_fields, reduced


@operation("limbs: trees", RNS)
def check_trees(case: Case, rng: Random) -> int:
    """Products, remainders of any integer by each number, and what each shares with all others."""
    bits = rng.choice((*BITS[2:], rng.randint(2, 700)))
    system, limits = rd.Positional(bits, case.signed), Range.of(case.system, 1 << bits)
    shape = inputs.shape(rng, max(6, min(200, 20_000 // bits)))
    primes = [p for p in (2, 3, 5, 7, 101, 65537, 2**31 - 1, 2**61 - 1) if p <= limits.highest] or [1]

    def draw() -> int:
        value = rng.randint(1, limits.highest >> rng.randint(0, bits - 2))
        while rng.random() < 0.8 and value * (p := rng.choice(primes)) <= limits.highest:
            value *= p
        return rng.choice((value, value, limits.highest, 1, 1 << rng.randrange(bits - 1)))

    values = objects((draw() for _ in range(math.prod(shape))), shape)
    wrong = rng.random() < 0.05 and values.size
    if wrong:
        values.reshape(-1)[rng.randrange(values.size)] = rng.choice((0, limits.lowest))
    words = inputs.laid_out(words_of(values, bits), rng.choice(inputs.LAYOUTS), case.processor)
    x = rd.PositionalArray(words, system)
    x = x.rechunk(inputs.chunks(rng, shape)) if case.is_lazy else x
    case.note("system", repr(system))
    case.note("numbers", values)
    if wrong:
        must_fail(lambda: rd.batch_gcd(x), ValueError, "a number that is not positive")
        return 1
    product = math.prod(values.reshape(-1).tolist())
    value = rng.choice((0, -1, product, -product, product - 1, rng.getrandbits(rng.randint(1, 9000))))
    case.note("value", value)
    tree = rd.product_tree(x)
    same_int(tree.product, product, "product")
    expected = objects((value % v for v in values.reshape(-1).tolist()), shape)
    same_limbs(system, rng.choice((tree.remainders, lambda v: rd.remainder_tree(v, x)))(value), expected)
    expected = objects((math.gcd(v, product // v) for v in values.reshape(-1).tolist()), shape)
    return 1 + same_limbs(system, rd.batch_gcd(x), expected, "batch_gcd")


@operation("fractions from residues", ANY)
def check_fractions(case: Case, rng: Random) -> int:
    """Fractions with the residues and within the bounds, or none where there is none within them."""
    field, size = prime_fields(rng)
    primes = list(field.primes)
    shape = rng.choice(((1,), (3,), (2, 3), (2, 1, 2)))
    proved = len(primes) < 2 or rng.random() < 0.5
    confirm = 0 if proved else rng.randint(1, len(primes) - 1)
    half = (math.prod(primes[: len(primes) - confirm]) - 1) // 2
    if half < 1:
        return 0
    top = rng.choice((1, math.isqrt(half), half, rng.randint(1, half)))
    bottom = half // top
    axis = rng.choice((None, rng.randrange(len(shape)), tuple(range(len(shape)))))
    is_one = rng.random() < 0.8

    def denominator() -> int:
        value = rng.choice((1, bottom, rng.randint(1, bottom)))
        return value if math.gcd(value, size) == 1 else 1

    common = denominator()
    fractions, residues = [], []
    for _ in range(math.prod(shape)):
        below = common if axis is not None else denominator()
        above = rng.choice((0, top, -top, rng.randint(-top, top)))
        fractions.append(Fraction(above, below) if is_one else None)
        residues.append(above * pow(below, -1, size) % size if is_one else rng.randrange(size))
    case.note("field, bounds, confirm, axis", (repr(field), top, bottom, confirm, axis))
    case.note("residues", residues)
    x = array_of(case, rng, field, objects(residues, shape))
    options: dict[str, Any] = {"numerator_bound": top, "denominator_bound": bottom} if proved else {}
    if not proved:
        options = rng.choice(({"numerator_bound": top}, {"denominator_bound": bottom}))
        options["confirm"] = confirm
        top = options.get("numerator_bound", half // bottom)
        bottom = options.get("denominator_bound", half // top)
    try:
        found = rd.rational_reconstruct(x, common_axis=axis, **options)
        tops, belows = (np.asarray(computed(part), dtype=object) for part in found[:2])
    except rd.RNSError:
        require(not is_one, "a fraction is not found")
        return 1
    require(tops.shape == shape, f"shape {tops.shape} of numerators")
    axes = () if axis is None else axis if isinstance(axis, tuple) else (axis,)
    require(belows.shape == tuple(n for k, n in enumerate(shape) if k not in axes), f"shape {belows.shape}")
    wide = np.broadcast_to(np.expand_dims(belows, axes), shape)
    for above, below, residue in zip(tops.flat, wide.flat, residues, strict=True):
        require(0 < below <= bottom and abs(above) <= top, f"{above} / {below} is out of the bounds")
        require((above - below * residue) % size == 0, f"{above} / {below} has other residues")
        require(math.gcd(below, size) == 1, f"{below} has one of the primes as a factor")
    common = np.gcd.reduce(tops, axis=axes) if axes else tops
    require(np.all(np.gcd(common, belows) == 1), "a fraction is not in lowest terms")
    if is_one:
        expected = objects((f * b for f, b in zip(fractions, wide.flat, strict=True)), shape)
        return same_array(tops, expected, "numerators")
    return len(residues)


# ---- sparse matrices ---------------------------------------------------------------------------------------


class Drawn:
    """A sparse matrix with entries of one place, and zeros, and what it is."""

    def __init__(self, case: Case, rng: Random, square: bool) -> None:
        rows = rng.randint(0 if rng.random() < 0.1 else 1, 7)
        self.shape = rows, rows if square else rng.randint(1, 7)
        count = rng.randint(0, 3 * max(self.shape)) if 0 not in self.shape else 0
        self.values = [self._number(rng) for _ in range(count)]
        self.places = [[rng.randrange(n) for _ in range(count)] for n in self.shape]
        if square and rng.random() < 0.6:  # mostly regular
            self.values += [rng.choice((1, -1, 3)) for _ in range(rows)]
            order = rng.sample(range(rows), rows)
            self.places = [self.places[0] + list(range(rows)), self.places[1] + order]
        self.dense = np.zeros(self.shape, dtype=object)
        for i, j, value in zip(*self.places, self.values, strict=True):
            self.dense[i, j] += value
        self.matrix = rd.sparse.from_entries(*self.places, self.values, self.shape)
        case.note("matrix", self.dense)

    @staticmethod
    def _number(rng: Random) -> int:
        value = rng.choice((0, 1, 2, 2**31, 2**63, 2**64 - 1, rng.getrandbits(rng.randint(1, 100))))
        return -value if rng.random() < 0.5 else value


@operation("sparse: products", ANY)
def check_sparse_products(case: Case, rng: Random) -> int:
    """Products with vectors and blocks of them; the whole matrix, transposed, from SciPy, from a file."""
    field, size = prime_fields(rng)
    a = Drawn(case, rng, False)
    width = rng.choice((None, 0, 1, 2, 17))
    shape = (a.shape[1],) if width is None else (a.shape[1], width)
    vectors = objects((element(rng, size) for _ in range(math.prod(shape))), shape)
    case.note("field", repr(field))
    case.note("vectors", vectors)
    x = array_of(case, rng, field, vectors)
    got = a.matrix @ x
    count = same(field, got, matrix_product(a.dense, vectors) % size, "product")
    other = rng.choice((transposed, from_scipy, from_file))(rng, a)
    same(field, other.to_dense(field), a.dense % size, "another way")
    require(other.nnz == np.count_nonzero(a.dense), "entries are counted wrong")
    return count


def transposed(_: Random, a: Drawn) -> Any:
    return rd.sparse.from_entries(*a.places[::-1], a.values, a.shape[::-1]).T


def from_scipy(rng: Random, a: Drawn) -> Any:
    import scipy.sparse

    if any(not -(2**62) < v < 2**62 for v in a.dense.flat):
        return a.matrix
    kind = rng.choice(("csr", "csc", "coo", "lil", "dok"))
    return rd.sparse.from_scipy(scipy.sparse.coo_array(a.dense.astype(np.int64)).asformat(kind))


def from_file(rng: Random, a: Drawn) -> Any:
    """A Matrix Market or an .sms file, as people and programs write them."""
    rows, columns = a.shape
    places = list(dict.fromkeys(zip(*a.places, strict=True)))  # two entries of one place are refused
    entries = [f"{i + 1} {j + 1} {a.dense[i, j]}" for i, j in places]
    text = "\n".join([f"{rows} {columns} M", *entries, "0 0 0"])
    if rng.random() < 0.6:
        entries = [line for entry in entries for line in ("", "% comment", entry)[rng.randint(0, 2) :]]
        header = (
            f"%%MatrixMarket matrix coordinate integer general\n% comment\n{rows} {columns} {len(places)}"
        )
        text = "\n".join([header, *entries])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "matrix"
        path.write_text(text + rng.choice(("", "\n", "\n\n")))
        return rd.sparse.read(path)


@operation("sparse: equations", ANY)
def check_sparse_equations(case: Case, rng: Random) -> int:
    """Solutions that hold, or none modulo the prime that the error names: small systems are decided."""
    field, size = prime_fields(rng)
    a = Drawn(case, rng, rng.random() < 0.5)
    width = rng.choice((None, 1, 3))
    shape = (a.shape[1],) if width is None else (a.shape[1], width)
    known = objects((element(rng, size) for _ in range(math.prod(shape))), shape)
    right = matrix_product(a.dense, known) % size
    if rng.random() < 0.3:
        right = objects((element(rng, size) for _ in range(right.size)), right.shape)
    case.note("field", repr(field))
    case.note("right", right)
    b = array_of(case, rng, field, right)
    chunks = rng.choice((None, 1, 2))
    try:
        got = computed(rd.sparse.solve(a.matrix, b, chunks=chunks, seed=rng.randint(0, 3))).to_ints()
    except np.linalg.LinAlgError as error:
        prime = int(str(error).split(" modulo ")[1].split()[0])
        both = np.concatenate([a.dense, right.reshape(a.shape[0], -1)], axis=1).tolist()
        is_solvable = len(reduced(both, prime)[1]) == len(reduced(a.dense.tolist(), prime)[1])
        require(not is_solvable, f"there is a solution: {error}")
        return 1
    return same_array(matrix_product(a.dense, got) % size, right, "a @ solve(a, b)")


@operation("sparse: determinants and ranks", ANY)
def check_sparse_invariants(case: Case, rng: Random) -> int:
    """Determinants, minimal polynomials by their being least, and ranks."""
    field, size = prime_fields(rng)
    a = Drawn(case, rng, True)
    length, options = a.shape[0], {"chunks": rng.choice((None, 1, 2)), "seed": rng.randint(0, 3)}
    options["backend"] = "cpu" if case.processor is np else "cuda"
    case.note("field", repr(field))
    same_int(rd.sparse.det(a.matrix, field, **options), determinant(a.dense.tolist()) % size, "det")
    ranks = computed(rd.sparse.rank(a.matrix, field, **options)).tolist()
    require(ranks == [len(reduced(a.dense.tolist(), p)[1]) for p in field.primes], f"ranks {ranks}")
    got = computed(rd.sparse.minpoly(a.matrix, field, **options)).to_ints()
    require(got.shape == (length + 1,), f"shape {got.shape} of a minimal polynomial")
    for p in field.primes:
        powers = [np.eye(length, dtype=object) % p]
        for _ in range(length):
            powers.append(matrix_product(powers[-1], a.dense) % p)
        lines = [power.reshape(-1).tolist() for power in powers]
        degree = next(k for k in range(length + 1) if len(reduced(lines[: k + 1], p)[1]) <= k)
        require(
            got[degree] % p == 1 and not any(c % p for c in got[degree + 1 :]), f"another degree modulo {p}"
        )
        total = sum((c % p * power for c, power in zip(got, powers, strict=True)), powers[0] * 0)
        require(not (total % p).any(), f"a matrix is no root of its minimal polynomial modulo {p}")
    return 3 * len(field.primes)
