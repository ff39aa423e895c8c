"""Wiedemann's algorithm modulo several primes at once, on words (n, N, K). No Dask in here.

D. Wiedemann, "Solving sparse linear equations over finite fields", IEEE Trans. Information Theory 32(1),
1986: for random vectors u and v, the numbers u A^i v obey a linear recurrence, whose polynomial divides the
minimal polynomial of A and mostly equals it. One vector for each prime suffices: the vectors of many primes
are multiplied as a block. Random vectors depend on a seed and the prime only, not on the processor.

Solutions, determinants and the lack of a solution are proved, whatever is drawn. Ranks and minimal
polynomials may be too small: see each function. If draws fail, small matrices are eliminated
(:mod:`.sparse.dense`).
"""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array, contiguous, cpu, kernels_of, to_backend
from rnsdask.backend.protocol import Moduli
from rnsdask.core import rows
from rnsdask.core.errors import NumberError
from rnsdask.core.rows import Row
from rnsdask.core.ways import Message, Way
from rnsdask.core.wide_moduli import WideModuli, moduli_at
from rnsdask.fields.system import fields_of
from rnsdask.sparse import dense
from rnsdask.sparse.matrix import SparseMatrix

Operator = Callable[[Array], Array]

# Terms of the first sequence, later doubled; and terms beyond twice the recurrence's length that it must
# explain before it is accepted.
_FIRST_TERMS, _SURPLUS = 128, 64

# Rounds of a solution, each of which finds a further factor of a polynomial; and tries with new random
# matrices.
_ROUNDS, TRIES = 40, 8

# A wrong minimal polynomial, or a rank that is too small, passes the random checks with a probability below 2
# to the power of minus this.
_SURE_BITS, _RANK_BITS = 64, 30

RANK_ROOM = 8
"""Ranks are found by elimination modulo primes below this multiple of N, the lesser of rows and columns."""


def _random(moduli: Moduli, shape: tuple[int, ...], like: Array, key: tuple[int, ...], low: int = 0) -> Array:
    """Draw words (n, *shape) from `low` to p - 1, by a key and each prime p."""
    dtype = fields_of(moduli).word_dtype.type
    words = [np.random.default_rng([*key, p]).integers(low, p, shape, dtype) for p in moduli]
    return to_backend(np.stack(words), "cpu" if isinstance(like, np.ndarray) else "cuda")


def _apply(row: Row[..., Array], moduli: Moduli, *blocks: Array, **options: Any) -> Array:
    found: Array = fields_of(moduli).apply(row, *blocks, **options)
    return found


def _products(moduli: Moduli, a: Array, b: Array) -> Array:
    """Multiply matrices (n, I, K) and (n, K, J)."""
    if isinstance(moduli, WideModuli):
        return _apply(rows.multiply_matrices, moduli, a, b)
    out = np.empty_like(b, shape=(len(a), 1, a.shape[1], b.shape[2]), order="C")
    kernels_of(b).matmul(a[:, None], b[:, None], moduli, out)
    return out[:, 0]


def _ones(moduli: Moduli) -> NDArray[Any]:
    """The polynomials 1 (n, 1)."""
    return np.ones((len(moduli), 1), fields_of(moduli).word_dtype)


def _convolve(f: NDArray[Any], g: NDArray[Any], moduli: Moduli) -> NDArray[Any]:
    """Products of polynomials (n, A) and (n, B)."""
    found: NDArray[Any] = _apply(rows.window, moduli, f, g, first=0, stop=f.shape[1] + g.shape[1] - 1)
    return found


def _recurrences(
    operator: Operator, v: Array, u: Array, moduli: Moduli, limit: int, early: bool
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the monic polynomials (n, D + 1) of the recurrences of u A^i v, and their degrees.

    v is (n, N, 1) and u (n, 1, N). Sequences have `limit` terms. With `early` they end once all recurrences
    have held for long; these may then not divide minimal polynomials.
    """
    terms: list[Array] = []
    goal = min(limit, _FIRST_TERMS) if early else limit
    while True:
        while len(terms) < goal:
            terms.append(_products(moduli, u, v)[:, 0])
            v = operator(v) if len(terms) < limit else v
        if not terms:
            return _ones(moduli), np.zeros(len(moduli), np.int64)
        sequences = to_backend(np.concatenate(terms, axis=1), "cpu")
        found, lengths = cpu.shortest_recurrences(contiguous(sequences), moduli)
        if goal == limit or (early and (2 * lengths + _SURPLUS <= goal).all()):
            break
        goal = min(limit, 2 * goal)
    polynomials = np.zeros((len(moduli), int(lengths.max()) + 1), found.dtype)
    for row, coefficients, length in zip(polynomials, found, lengths, strict=True):
        row[: length + 1] = coefficients[length::-1]
    return polynomials, lengths


def _evaluate(operator: Operator, f: NDArray[Any], w: Array, moduli: Moduli) -> Array:
    """Compute f(A) w by Horner's rule."""
    columns = f.T[:, :, None, None].copy()
    v = _apply(rows.multiply, moduli, w, columns[-1])
    for column in columns[-2::-1]:
        v = _apply(rows.fma, moduli, w, column, operator(v))
    return v


def _is_zero(words: Array) -> NDArray[np.bool_]:
    """Whether all words (n, ...) of each prime are 0."""
    found: NDArray[np.bool_] = to_backend(~words.reshape(len(words), -1).any(axis=1), "cpu")
    return found


def _combine(v: Array, moduli: Moduli, key: tuple[int, ...]) -> Array:
    """Combine vectors (n, N, K) with random coefficients: (n, N, 1)."""
    return _products(moduli, v, _random(moduli, (v.shape[2], 1), v, key))


def _solve_square(
    operator: Operator, c: Array, moduli: Moduli, key: tuple[int, ...]
) -> tuple[Array, NDArray[np.bool_]]:
    """Solutions x of A x = c, and a mask of the primes for which substitution confirms them.

    With f(A) c = 0 and f(0) not 0, (f(A) - f(0)) c / A f(0) is -x. Each round multiplies f by a polynomial
    that annihilates more of c; once f(0) is 0 it fails.
    """
    length = c.shape[1]
    f = _ones(moduli)
    x, rest = np.zeros_like(c), c
    solved = _is_zero(rest)
    for step in range(_ROUNDS):
        if solved.all():
            break
        u = _random(moduli, (1, length), c, (*key, step, 0))
        v = _combine(rest, moduli, (*key, step, 1))
        f = _convolve(f, _recurrences(operator, v, u, moduli, 2 * length, True)[0], moduli)
        ends = [pow(-low, -1, p) if low else 0 for low, p in zip(f[:, 0].tolist(), moduli, strict=True)]
        if not any(ends):
            break
        if f.shape[1] > 1:
            quotient = _apply(rows.multiply, moduli, f[:, 1:], np.array(ends, f.dtype)[:, None])
            x = _evaluate(operator, quotient, c, moduli)
        rest = _apply(rows.subtract, moduli, c, operator(x))
        solved = _is_zero(rest)
        if (solved | (f[:, 0] == 0)).all():
            break
    return x, solved


def solve(a: SparseMatrix, b: Array, moduli: Moduli, seed: int, first: int | None = 0) -> Array:
    """Solutions (n, C, K) of A x = b (n, R, K), each checked by substitution.

    Square matrices are tried unchanged first. Then, for random diagonal matrices D and E, D A' E A x = D A' E
    b has the solutions of A x = b, if these exist. Otherwise y = E (A x - b) has A' y = 0, and mostly y b is
    not 0, which proves that no solution exists. If both fail, small matrices are eliminated.

    LinAlgError if it is proved that there is no solution; NumberError without such a proof or a solution.
    Errors name a vector by its index in b plus `first`, or no vector if `first` is None.
    """
    _check_empty_rows(a, b, moduli, first)
    x = np.zeros_like(b, shape=(len(moduli), a.shape[1], b.shape[2]), order="C")
    pending = (~_is_zero(b)).nonzero()[0]
    for attempt in range(TRIES + 1):
        if not len(pending):
            return x
        some, right = moduli_at(moduli, pending), b[pending]
        if attempt:
            found, solved = solve_by_squares(a, right, some, (seed, attempt), first)
        elif a.shape[0] == a.shape[1]:
            found, solved = _solve_square(partial(a.multiply, moduli=some), right, some, (seed, 0))
        else:
            continue
        x[pending[solved]] = found[solved]
        pending = pending[~solved]
    for i in pending:
        x[i : i + 1] = _eliminate(a, b[i : i + 1], moduli[int(i)], first)
    return x


def _without_solution(prime: int, vector: int, first: int | None) -> np.linalg.LinAlgError:
    which = "" if first is None else f" for vector {first + vector}"
    return np.linalg.LinAlgError(f"the system has no solution modulo {prime}{which}")


def _check_empty_rows(a: SparseMatrix, b: Array, moduli: Moduli, first: int | None) -> None:
    """Raise LinAlgError if a row without entries has a nonzero right-hand side."""
    fails = b[:, a.empty_rows].any(axis=1)
    if fails.any():
        row, vector = (int(at[0]) for at in to_backend(fails, "cpu").nonzero())
        raise _without_solution(moduli[row], vector, first)


def _eliminate(a: SparseMatrix, b: Array, prime: int, first: int | None) -> Array:
    """Solve by elimination (1, C, K); NumberError if the matrix is too large for it."""
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


def _squares(a: SparseMatrix, d: Array, e: Array, moduli: Moduli) -> tuple[Operator, Operator]:
    """Return the operators D A' E and D A' E A."""

    def left(z: Array) -> Array:
        z = _apply(rows.multiply, moduli, z, np.broadcast_to(e, z.shape))
        z = a.T.multiply(z, moduli)
        return _apply(rows.multiply, moduli, z, np.broadcast_to(d, z.shape))

    return left, lambda y: left(a.multiply(y, moduli))


def _diagonals(a: SparseMatrix, moduli: Moduli, like: Array, key: tuple[int, ...]) -> tuple[Array, Array]:
    rows, columns = a.shape
    d = _random(moduli, (columns, 1), like, (*key, 2), low=1)
    return d, _random(moduli, (rows, 1), like, (*key, 3), low=1)


def solve_by_squares(
    a: SparseMatrix, b: Array, moduli: Moduli, key: tuple[int, ...], first: int | None
) -> tuple[Array, NDArray[np.bool_]]:
    """Try once to solve a x = b (n, columns, K) modulo each prime: x, and whether it is a solution (n, K).

    LinAlgError if it is proved that there is no solution; it names the vector's index plus `first`.
    """
    d, e = _diagonals(a, moduli, b, key)
    left, operator = _squares(a, d, e, moduli)
    x, solved = _solve_square(operator, left(b), moduli, key)
    rest = _apply(rows.subtract, moduli, a.multiply(x, moduli), b)
    wrong = ~_is_zero(rest)
    if wrong.any():
        y = _apply(rows.multiply, moduli, rest, np.broadcast_to(e, rest.shape))
        is_left = to_backend(~a.T.multiply(y, moduli).any(axis=1), "cpu")  # (n, K)
        meets = to_backend(_products(moduli, y.transpose(0, 2, 1), b).diagonal(axis1=1, axis2=2), "cpu") != 0
        proved = is_left & meets
        if proved.any():
            row, vector = (int(at[0]) for at in proved.nonzero())
            raise _without_solution(moduli[row], vector, first)
    return x, solved & ~wrong


def minimal_polynomials(a: SparseMatrix, moduli: Moduli, like: Array, seed: int) -> NDArray[Any]:
    """Find the minimal polynomials f (n, N + 1) of a square matrix, monic.

    Each divides the minimal polynomial, or has at most its degree. f(A) w = 0 is checked for enough random
    vectors w that a wrong polynomial passes with a probability below 2^-64.
    """
    length = a.shape[0]
    vectors = -(-_SURE_BITS // (min(moduli).bit_length() - 1))
    f, early = _ones(moduli), True

    operator = partial(a.multiply, moduli=moduli)
    for step in count():
        w = _random(moduli, (length, vectors), like, (seed, step, 4))
        v = _evaluate(operator, f, w, moduli)
        if _is_zero(v).all():
            break
        if step and early:  # recurrences may be of partial sequences: use complete ones from now on
            f, early, v = _ones(moduli), False, w
        u = _random(moduli, (1, length), like, (seed, step, 5))
        v = _combine(v, moduli, (seed, step, 6))
        f = _convolve(f, _recurrences(operator, v, u, moduli, 2 * length, early)[0], moduli)
    found = np.zeros((len(moduli), length + 1), f.dtype)
    found[:, : f.shape[1]] = f[:, : length + 1]
    return found


def ranks(a: SparseMatrix, moduli: Moduli, like: Array, seed: int) -> NDArray[np.int64]:
    """Find ranks (n,), never too large: by elimination modulo small primes, else by several trials.

    For M = D A' E A and v in the image of M, powers of M times v are in the image too. So the recurrence of u
    M^i v is at most as long as the rank of A, and exactly so for most D, E, u and v. NumberError if a prime
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
            found[chosen] = function(a, moduli_at(moduli, chosen.nonzero()[0].tolist()))
    return found


def may_eliminate(shape: tuple[int, int], moduli: Moduli) -> bool:
    """Return whether finding a rank or determinant may need elimination modulo one of some primes."""
    return dense.fits(shape) and min(moduli) < RANK_ROOM * min(shape)


def _tried_ranks(a: SparseMatrix, moduli: Moduli, like: Array, seed: int) -> NDArray[np.int64]:
    """Take the greatest ranks (n,) of several trials, for a matrix with no more columns than rows."""
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


def determinants(a: SparseMatrix, moduli: Moduli, like: Array, seed: int) -> NDArray[Any]:
    """Compute the determinants (n,) of a square matrix, proved.

    The recurrence of A D, for a random diagonal matrix D, divides the characteristic polynomial. At full
    degree they are equal, and the value at 0 is the determinant of A D but for the sign. If the recurrence
    has the root 0, A D is singular. Modulo primes too small for either to happen, small matrices are
    eliminated. NumberError if the matrix is too large for that.
    """
    length = a.shape[0]
    found = np.zeros(len(moduli), fields_of(moduli).word_dtype)
    pending = list(range(len(moduli)))
    for trial in range(TRIES):
        some = moduli_at(moduli, pending)
        d = _random(some, (length, 1), like, (seed, trial, 8), low=1)
        u = _random(some, (1, length), like, (seed, trial, 9))
        v = _random(some, (length, 1), like, (seed, trial, 10))

        def operator(y: Array, d: Array = d, some: Moduli = some) -> Array:
            return a.multiply(_apply(rows.multiply, some, y, d), some)

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
        found[pending] = dense.determinants(a, moduli_at(moduli, pending))
        return found
    raise NumberError(
        Message(
            f"the determinant modulo {moduli[pending[0]]} was not found in {TRIES} trials, for the prime is "
            f"small for {length} rows; ",
            Way.DENSE_DET,
        )
    )
