"""Wiedemann's algorithm modulo several primes at once, on words (n, N, K). No Dask in here.

D. Wiedemann, "Solving sparse linear equations over finite fields", IEEE Trans. Information Theory 32(1),
1986: the numbers u A^i v of random vectors u and v obey a linear recurrence, which is a divisor of the
minimal polynomial of A, and mostly that. One vector a prime is enough, for vectors of many primes stand
beside one another and are multiplied as a block. Random vectors follow from a seed and the prime, on each
processor the same.

Solutions, determinants and that there is no solution are proved, whatever was drawn; ranks and minimal
polynomials may be too small: see each function. Where draws find nothing, small matrices are eliminated
(:mod:`.sparse.dense`).
"""

from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, contiguous, cpu, kernels_of, to_backend
from rnsdask.core.errors import NumberError
from rnsdask.core.moduli import ModuliSet, unchecked_set
from rnsdask.core.ways import Message, Way
from rnsdask.fields.convolution import convolve
from rnsdask.rns.arithmetic import apply
from rnsdask.rns.system import RNS
from rnsdask.sparse import dense
from rnsdask.sparse.matrix import SparseMatrix

Operator = Callable[[Array], Array]

# Terms of the first sequence; then they are doubled. Terms beyond twice the recurrence's length that it must
# explain before the sequence is taken for known.
_FIRST_TERMS, _SURPLUS = 128, 64

# Rounds of a solution, each of which finds a further factor of a polynomial, and matrices drawn anew.
_ROUNDS, TRIES = 40, 8

# Vectors that a minimal polynomial is tried with are so many that a wrong one passes less often than once in
# 2 to this power; and so are ranks too small.
_SURE_BITS, _RANK_BITS = 64, 30

RANK_ROOM = 8
"""Least prime of a rank without elimination, in rows or columns, whichever are fewer."""


def _random(
    moduli: ModuliSet, shape: tuple[int, ...], like: Array, key: tuple[int, ...], low: int = 0
) -> Array:
    """Words (n, *shape) from `low` on, by a key and each prime."""
    words = [np.random.default_rng([*key, p]).integers(low, p, shape, np.uint32) for p in moduli]
    return to_backend(np.stack(words), "cpu" if isinstance(like, np.ndarray) else "cuda")


def _apply(name: str, moduli: ModuliSet, *blocks: Array) -> Array:
    return apply(name, blocks, RNS(moduli), "wrap")


def _products(moduli: ModuliSet, a: Array, b: Array) -> Array:
    """Products of matrices (n, I, K) and (n, K, J)."""
    out = np.empty_like(b, shape=(len(a), 1, a.shape[1], b.shape[2]), order="C")
    kernels_of(b).matmul(a[:, None], b[:, None], moduli, out)
    return out[:, 0]


def _recurrences(
    operator: Operator, v: Array, u: Array, moduli: ModuliSet, limit: int, early: bool
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Polynomials (n, D + 1), monic, that the sequences u A^i v of v (n, N, 1) and u (n, 1, N) obey.

    And their degrees. Of `limit` terms; with `early` of fewer, if all recurrences have held for long, and
    then they need not be divisors of minimal polynomials.
    """
    terms: list[Array] = []
    goal = min(limit, _FIRST_TERMS) if early else limit
    while True:
        while len(terms) < goal:
            terms.append(_products(moduli, u, v)[:, 0])
            v = operator(v) if len(terms) < limit else v
        if not terms:
            return np.ones((len(moduli), 1), np.uint32), np.zeros(len(moduli), np.int64)
        sequences = to_backend(np.concatenate(terms, axis=1), "cpu")
        found, lengths = cpu.shortest_recurrences(contiguous(sequences), moduli)
        if goal == limit or (early and (2 * lengths + _SURPLUS <= goal).all()):
            break
        goal = min(limit, 2 * goal)
    polynomials = np.zeros((len(moduli), int(lengths.max()) + 1), np.uint32)
    for row, coefficients, length in zip(polynomials, found, lengths, strict=True):
        row[: length + 1] = coefficients[length::-1]
    return polynomials, lengths


def _evaluate(operator: Operator, f: NDArray[np.uint32], w: Array, moduli: ModuliSet) -> Array:
    """f(A) w, by Horner's rule."""
    columns = f.T[:, :, None, None].copy()
    v = _apply("multiply", moduli, w, columns[-1])
    for column in columns[-2::-1]:
        v = _apply("fma", moduli, w, column, operator(v))
    return v


def _is_zero(words: Array) -> NDArray[np.bool_]:
    """Whether all of each prime (n, ...) are 0."""
    found: NDArray[np.bool_] = to_backend(~words.reshape(len(words), -1).any(axis=1), "cpu")
    return found


def _combined(v: Array, moduli: ModuliSet, key: tuple[int, ...]) -> Array:
    """A random sum of multiples of vectors (n, N, K): (n, N, 1)."""
    return _products(moduli, v, _random(moduli, (v.shape[2], 1), v, key))


def _solved(
    operator: Operator, c: Array, moduli: ModuliSet, key: tuple[int, ...]
) -> tuple[Array, NDArray[np.bool_]]:
    """Solutions x of A x = c, and of which primes they are such, by substitution.

    With f(A) c = 0 and f(0) not 0, (f(A) - f(0)) c / A f(0) is -x. Each round multiplies f by what the rest
    of c lacks; where f(0) is 0 there is no more to do.
    """
    length = c.shape[1]
    f = np.ones((len(moduli), 1), np.uint32)
    x, rest = np.zeros_like(c), c
    solved = _is_zero(rest)
    for step in range(_ROUNDS):
        if solved.all():
            break
        u = _random(moduli, (1, length), c, (*key, step, 0))
        v = _combined(rest, moduli, (*key, step, 1))
        f = convolve(f, _recurrences(operator, v, u, moduli, 2 * length, True)[0], moduli)
        ends = [
            pow(int(-low), -1, p) if low else 0
            for low, p in zip(f[:, 0].astype(np.int64), moduli, strict=True)
        ]
        if not any(ends):
            break
        if f.shape[1] > 1:
            quotient = _apply("multiply", moduli, f[:, 1:], np.array(ends, np.uint32)[:, None])
            x = _evaluate(operator, quotient, c, moduli)
        rest = _apply("subtract", moduli, c, operator(x))
        solved = _is_zero(rest)
        if (solved | (f[:, 0] == 0)).all():
            break
    return x, solved


def solve(a: SparseMatrix, b: Array, moduli: ModuliSet, seed: int, first: int | None = 0) -> Array:
    """Solutions (n, C, K) of A x = b (n, R, K), each checked by substitution.

    Square matrices are tried as they are. Else, for diagonal matrices D and E drawn at random, D A' E A x = D
    A' E b has the solutions of A x = b, if there are any. If there are none, y = E (A x - b) has A' y = 0,
    and mostly y b is not 0, which proves it. Small matrices for which neither is found are eliminated.

    LinAlgError if there is proved to be no solution; NumberError if neither that nor a solution was found.
    Errors name a vector by its index in b, counted from `first`; with None they name none.
    """
    _check_empty_rows(a, b, moduli, first)
    x = np.zeros_like(b, shape=(len(moduli), a.shape[1], b.shape[2]), order="C")
    pending = (~_is_zero(b)).nonzero()[0]
    for attempt in range(TRIES + 1):
        if not len(pending):
            return x
        some, right = unchecked_set([moduli[i] for i in pending]), b[pending]
        if attempt:
            found, solved = solve_by_squares(a, right, some, (seed, attempt), first)
        elif a.shape[0] == a.shape[1]:
            found, solved = _solved(partial(a.multiply, moduli=some), right, some, (seed, 0))
        else:
            continue
        x[pending[solved]] = found[solved]
        pending = pending[~solved]
    for i in pending:
        x[i : i + 1] = _eliminated(a, b[i : i + 1], moduli[int(i)], first)
    return x


def _without_solution(prime: int, vector: int, first: int | None) -> np.linalg.LinAlgError:
    which = "" if first is None else f" for vector {first + vector}"
    return np.linalg.LinAlgError(f"the system has no solution modulo {prime}{which}")


def _check_empty_rows(a: SparseMatrix, b: Array, moduli: ModuliSet, first: int | None) -> None:
    """Raise LinAlgError if a row without entries has another right-hand side than 0."""
    fails = b[:, a.empty_rows].any(axis=1)
    if fails.any():
        row, vector = (int(at[0]) for at in to_backend(fails, "cpu").nonzero())
        raise _without_solution(moduli[row], vector, first)


def _eliminated(a: SparseMatrix, b: Array, prime: int, first: int | None) -> Array:
    """Solution (1, C, K) by elimination; NumberError if the matrix is too large for it."""
    if not dense.fits(a.shape, b.shape[2]):
        raise NumberError(
            Message(
                f"neither a solution modulo {prime} nor a proof that there is none was found in {TRIES} "
                "trials, for the prime is small; ",
                Way.DENSE_SOLVE,
            )
        )
    found = dense.solve(a, b, prime)
    if isinstance(found, int):
        raise _without_solution(prime, found, first)
    return found


def _squares(a: SparseMatrix, d: Array, e: Array, moduli: ModuliSet) -> tuple[Operator, Operator]:
    """The operators D A' E and D A' E A."""

    def left(z: Array) -> Array:
        z = _apply("multiply", moduli, z, np.broadcast_to(e, z.shape))
        z = a.T.multiply(z, moduli)
        return _apply("multiply", moduli, z, np.broadcast_to(d, z.shape))

    return left, lambda y: left(a.multiply(y, moduli))


def _diagonals(a: SparseMatrix, moduli: ModuliSet, like: Array, key: tuple[int, ...]) -> tuple[Array, Array]:
    rows, columns = a.shape
    d = _random(moduli, (columns, 1), like, (*key, 2), low=1)
    return d, _random(moduli, (rows, 1), like, (*key, 3), low=1)


def solve_by_squares(
    a: SparseMatrix, b: Array, moduli: ModuliSet, key: tuple[int, ...], first: int | None
) -> tuple[Array, NDArray[np.bool_]]:
    """Try once to solve a x = b (n, columns, K) modulo each prime: x, and whether it is a solution (n, K).

    LinAlgError, which names `first` plus the vector, where it is proved that there is none.
    """
    d, e = _diagonals(a, moduli, b, key)
    left, operator = _squares(a, d, e, moduli)
    x, solved = _solved(operator, left(b), moduli, key)
    rest = _apply("subtract", moduli, a.multiply(x, moduli), b)
    wrong = ~_is_zero(rest)
    if wrong.any():
        y = _apply("multiply", moduli, rest, np.broadcast_to(e, rest.shape))
        is_left = to_backend(~a.T.multiply(y, moduli).any(axis=1), "cpu")  # (n, K)
        meets = to_backend(_products(moduli, y.transpose(0, 2, 1), b).diagonal(axis1=1, axis2=2), "cpu") != 0
        proved = is_left & meets
        if proved.any():
            row, vector = (int(at[0]) for at in proved.nonzero())
            raise _without_solution(moduli[row], vector, first)
    return x, solved & ~wrong


def minimal_polynomials(a: SparseMatrix, moduli: ModuliSet, like: Array, seed: int) -> NDArray[np.uint32]:
    """Minimal polynomials f (n, N + 1) of a square matrix, monic.

    Each is a divisor of the minimal polynomial, or has at most its degree; and f(A) w = 0 for so many random
    vectors w that one which is not the minimal polynomial passes less often than once in 2^64.
    """
    length = a.shape[0]
    vectors = -(-_SURE_BITS // (min(moduli).bit_length() - 1))
    f, early = np.ones((len(moduli), 1), np.uint32), True

    operator = partial(a.multiply, moduli=moduli)
    for step in count():
        w = _random(moduli, (length, vectors), like, (seed, step, 4))
        v = _evaluate(operator, f, w, moduli)
        if _is_zero(v).all():
            break
        if step and early:  # recurrences may have been those of parts of sequences: from now on whole ones
            f, early, v = np.ones((len(moduli), 1), np.uint32), False, w
        u = _random(moduli, (1, length), like, (seed, step, 5))
        v = _combined(v, moduli, (seed, step, 6))
        f = convolve(f, _recurrences(operator, v, u, moduli, 2 * length, early)[0], moduli)
    found = np.zeros((len(moduli), length + 1), np.uint32)
    found[:, : f.shape[1]] = f[:, : length + 1]
    return found


def ranks(a: SparseMatrix, moduli: ModuliSet, like: Array, seed: int) -> NDArray[np.int64]:
    """Ranks (n,), never too great; modulo small primes by elimination, else the greatest of several trials.

    Of M = D A' E A and v in the image of M, powers of M times v are in the image too; so the length of the
    recurrence of u M^i v is at most the rank of A. For most D, E, u and v it is that. NumberError if a prime
    is small and the matrix too large for elimination.
    """
    if a.shape[0] < a.shape[1]:
        a = a.T
    length = a.shape[1]
    primes = np.array(list(moduli), np.uint64)
    is_small, found = primes < RANK_ROOM * length, np.zeros(len(moduli), np.int64)
    if is_small.any() and not dense.fits(a.shape):
        raise NumberError(
            Message(
                f"ranks of {length} rows or columns are found modulo primes from {RANK_ROOM * length} on, "
                f"got {primes[is_small][0]}; ",
                Way.DENSE_RANK,
            )
        )
    for chosen, function in (
        (is_small, dense.ranks),
        (~is_small, partial(_tried_ranks, like=like, seed=seed)),
    ):
        if chosen.any():
            found[chosen] = function(a, unchecked_set(primes[chosen].tolist()))
    return found


def may_eliminate(shape: tuple[int, int], moduli: ModuliSet) -> bool:
    """Return whether a rank or determinant may take elimination modulo one of some primes."""
    return dense.fits(shape) and min(moduli) < RANK_ROOM * min(shape)


def _tried_ranks(a: SparseMatrix, moduli: ModuliSet, like: Array, seed: int) -> NDArray[np.int64]:
    """Greatest ranks (n,) of several trials, of a matrix with no more columns than rows."""
    length = a.shape[1]
    found = np.zeros(len(moduli), np.int64)
    room = min(moduli) // max(1, RANK_ROOM // 2 * length)
    for trial in range(-(-_RANK_BITS // max(1, room.bit_length() - 1))):
        if (found == length).all():
            break
        key = seed, trial, 7
        _, operator = _squares(a, *_diagonals(a, moduli, like, key), moduli)
        v = operator(_random(moduli, (length, 1), like, (*key, 0)))
        u = _random(moduli, (1, length), like, (*key, 1))
        found = np.maximum(found, _recurrences(operator, v, u, moduli, 2 * length, True)[1])
    return found


def determinants(a: SparseMatrix, moduli: ModuliSet, like: Array, seed: int) -> NDArray[np.uint32]:
    """Determinants (n,) of a square matrix, proved.

    The recurrence of A D, for a random diagonal matrix D, divides the characteristic polynomial: of full
    degree it is that, and its value at 0 the determinant of A D but for the sign. If it is 0 at 0, A D is
    singular. Modulo primes that are too small for one of these to happen, small matrices are eliminated.
    NumberError if the matrix is too large for that.
    """
    length = a.shape[0]
    found = np.zeros(len(moduli), np.uint32)
    pending = list(range(len(moduli)))
    for trial in range(TRIES):
        some = unchecked_set([moduli[i] for i in pending])
        d = _random(some, (length, 1), like, (seed, trial, 8), low=1)
        u = _random(some, (1, length), like, (seed, trial, 9))
        v = _random(some, (length, 1), like, (seed, trial, 10))

        def operator(y: Array, d: Array = d, some: ModuliSet = some) -> Array:
            return a.multiply(_apply("multiply", some, y, d), some)

        f, lengths = _recurrences(operator, v, u, some, 2 * length, False)
        diagonal = to_backend(d, "cpu")
        for k, i in reversed(list(enumerate(pending))):
            p, low = moduli[i], int(f[k, 0])
            if low and lengths[k] < length:
                continue
            product = 1
            for factor in diagonal[k, :, 0].tolist():
                product = product * factor % p
            found[i] = (-1) ** length * low * pow(product, -1, p) % p
            pending.pop(k)
        if not pending:
            return found
    if dense.fits(a.shape):
        found[pending] = dense.determinants(a, unchecked_set([moduli[i] for i in pending]))
        return found
    raise NumberError(
        Message(
            f"the determinant modulo {moduli[pending[0]]} was not found in {TRIES} trials, for the prime is "
            f"small for {length} rows; ",
            Way.DENSE_DET,
        )
    )
