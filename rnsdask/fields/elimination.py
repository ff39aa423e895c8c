"""Linear algebra of chunks of matrices over prime fields, of either width, by elimination. No Dask in here.

A chunk is (n, *batch, rows, columns), in any layout. It is changed only by functions that may `overwrite` it,
whose chunks then are contiguous. Any element that is not 0 can be a pivot; the first of a column is taken, so
that all processors find the same factors.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rnsdask.backend import Array, Moduli, is_all, kernels_of
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.place import Place
from rnsdask.fields.triangles import identity
from rnsdask.fields.wide_elimination import eliminate, solve_upper
from rnsdask.rns.arithmetic import apply
from rnsdask.rns.system import RNS

MOST_SMALL_ROWS = 96
"""Most rows of matrices that one kernel takes several at a time, if moduli are odd and matrices many."""

# Most rows for which that kernel is as quick for a single matrix, and fewest matrices for which it always is.
_FEW_ROWS, _SEVERAL = 12, 8


@dataclass(frozen=True)
class Echelon:
    """Row echelon forms of a stack (n, B, rows, columns), from :meth:`.Kernels.eliminate`."""

    words: Array
    order: Array
    pivots: Array
    products: Array

    @property
    def ranks(self) -> Array:
        """Ranks (n, B) of the columns that may hold pivots."""
        return (self.pivots >= 0).sum(axis=-1, dtype=np.int64)


def _stack(words: Array) -> Array:
    """Join the axes of the batch to one: (n, B, rows, columns)."""
    return words.reshape(len(words), math.prod(words.shape[1:-2]), *words.shape[-2:])


def echelon(words: Array, moduli: Moduli, pivot_columns: int, *, overwrite: bool = False) -> Echelon:
    """Eliminate matrices (n, *batch, rows, columns), with pivots from the first columns alone."""
    x = _stack(words)
    out = x if overwrite else np.empty_like(x, order="C")
    return Echelon(out, *eliminate(x, pivot_columns, moduli, out))


def _pivots_and_products(words: Array, moduli: Moduli, overwrite: bool) -> tuple[Array, Array]:
    """Pivots' columns (n, B, K), -1 for a row without a pivot, and products of pivots (n, B)."""
    x = _stack(words)
    return eliminate(x, x.shape[-1], moduli, x if overwrite else None)[1:]


def determinants(words: Array, moduli: Moduli, *, overwrite: bool = False) -> Array:
    """Determinants (n, *batch, 1, 1) of square matrices; 1 for a matrix without rows."""
    small = _small_cramer(words, moduli)
    if small is not None:
        return small[1]
    pivots, products = _pivots_and_products(words, moduli, overwrite)
    full = (pivots[..., -1:] >= 0).all(axis=-1)  # no rows have full rank
    return np.where(full, products, np.uint32(0)).reshape(*words.shape[:-2], 1, 1)


def ranks(words: Array, moduli: Moduli, *, overwrite: bool = False) -> Array:
    """Ranks (n, *batch, 1, 1), int64."""
    pivots, _ = _pivots_and_products(words, moduli, overwrite)
    return (pivots >= 0).sum(axis=-1, dtype=np.int64).reshape(*words.shape[:-2], 1, 1)


def pivots(words: Array, moduli: Moduli) -> tuple[list[int], list[int]]:
    """Rows and columns of the pivots of one matrix (1, rows, columns) modulo a prime.

    The submatrix of these rows and columns is regular.
    """
    found = echelon(words[:, None], moduli, words.shape[-1])
    rank = int(found.ranks[0, 0])
    return found.order[0, 0, :rank].tolist(), found.pivots[0, 0, :rank].tolist()


# ---- factors ----------------------------------------------------------------------------------------------


def factors(words: Array, moduli: Moduli, *, overwrite: bool = False) -> tuple[Array, Array, Array]:
    """Factor A = P L U: P (n, *batch, rows, rows), L (n, *batch, rows, k) and U (n, *batch, k, columns).

    k is the lesser of rows and columns. L, or U if there are more columns, may `overwrite` A.
    """
    x = _stack(words)
    rows, columns = words.shape[-2:]
    least = min(rows, columns)
    shapes = (rows, rows), (rows, least), (least, columns)
    overwritten = (1 if rows >= columns else 2) if overwrite and x.size else None
    P, L, U = (
        x if k == overwritten else np.empty_like(x, shape=(*x.shape[:2], *shape), order="C")
        for k, shape in enumerate(shapes)
    )
    kernels_of(x).lu(x, moduli, (P, L, U))
    outer = words.shape[:-2]
    return tuple(part.reshape(*outer, *part.shape[2:]) for part in (P, L, U))


def packed_lu(words: Array, moduli: Moduli) -> Array:
    """Echelon forms with their factors, and one more column: the source row of each row."""
    found = echelon(words, moduli, words.shape[-1])
    packed = np.concatenate([found.words, found.order.astype(words.dtype)[..., None]], axis=-1)
    return packed.reshape(*words.shape[:-1], words.shape[-1] + 1)


def permutation_of(packed: Array) -> Array:
    """P (n, *batch, rows, rows) of A = P L U."""
    rows = packed.shape[-2]
    return _factor(packed, "P", rows, rows)


def lower_of(packed: Array) -> Array:
    """L (n, *batch, rows, k), for k the lesser of rows and columns."""
    rows, columns = packed.shape[-2], packed.shape[-1] - 1
    return _factor(packed, "L", rows, min(rows, columns))


def upper_of(packed: Array) -> Array:
    """U (n, *batch, k, columns)."""
    rows, columns = packed.shape[-2], packed.shape[-1] - 1
    return _factor(packed, "U", min(rows, columns), columns)


def _factor(packed: Array, factor: Literal["P", "L", "U"], rows: int, columns: int) -> Array:
    x = _stack(packed)
    out = np.empty_like(x, shape=(*x.shape[:2], rows, columns), order="C")
    kernels_of(x).lu_factor(x, factor, out)
    return out.reshape(*packed.shape[:-2], rows, columns)


# ---- systems ----------------------------------------------------------------------------------------------


def solve(words: Array, moduli: Moduli, place: Place) -> Array:
    """Solve A x = b for chunks [A b] of N rows and N + K columns: (n, *batch, N, K).

    LinAlgError if a matrix is singular modulo a prime, naming its index in the array and the prime.
    """
    rows = words.shape[-2]
    found = echelon(words, moduli, rows)
    check_regular(found.ranks.reshape(words.shape[:-2]) == rows, moduli, place)
    upper, right = found.words[..., :rows], found.words[..., rows:]
    out = np.empty_like(right, order="C")
    solve_upper(upper, right, moduli, out)
    return out.reshape(*words.shape[:-1], words.shape[-1] - rows)


def solutions_and_determinants(words: Array, moduli: Moduli) -> tuple[Array, Array]:
    """Solutions (n, *batch, N, K) and determinants (n, *batch, 1, 1) of chunks [A b].

    Where a determinant is 0, the solutions are undefined.
    """
    rows = words.shape[-2]
    found = echelon(words, moduli, rows)
    regular = found.ranks == rows
    determinants = np.where(regular, found.products, np.uint32(0))
    upper, right = found.words[..., :rows], found.words[..., rows:]
    # Singular matrices are replaced by a solvable system.
    upper = np.where(regular[..., None, None], upper, identity(rows, words))
    out = np.empty_like(right, order="C")
    solve_upper(upper, right, moduli, out)
    solutions = out.reshape(*words.shape[:-1], words.shape[-1] - rows)
    return solutions, determinants.reshape(*words.shape[:-2], 1, 1)


def cramer(words: Array, moduli: ModuliSet) -> tuple[Array, Array]:
    """Cramer's numerators (n, *batch, N, K) and the determinants (n, *batch, 1, 1) of chunks [A b].

    A numerator is the solution times the determinant; it is undefined where that is 0.
    """
    small = _small_cramer(words, moduli)
    if small is not None:
        return small
    solutions, determinants = solutions_and_determinants(words, moduli)
    factors = np.broadcast_to(determinants, solutions.shape)
    return apply("multiply", (solutions, factors), RNS(moduli), "wrap"), determinants


def _small_cramer(words: Array, moduli: Moduli) -> tuple[Array, Array] | None:
    """Cramer's numerators of small matrices by their own kernel; None where it does not apply."""
    kernel = kernels_of(words).small_cramer
    rows, columns = words.shape[-2:]
    if (
        kernel is None
        or not isinstance(moduli, ModuliSet)
        or not 0 < rows <= MOST_SMALL_ROWS
        or columns > 2 * MOST_SMALL_ROWS
    ):
        return None
    # Montgomery multiplication needs odd moduli.
    if (rows > _FEW_ROWS and math.prod(words.shape[:-2]) < _SEVERAL) or 2 in moduli.moduli:
        return None
    numerators, determinants = kernel(_stack(words), moduli)
    shape = words.shape[:-2]
    return numerators.reshape(*shape, rows, columns - rows), determinants.reshape(*shape, 1, 1)


def check_regular(regular: Array, moduli: Moduli, place: Place, fault: str = "is singular") -> None:
    """Raise LinAlgError unless all matrices are marked in (n, *batch); it names the first that is not."""
    if is_all(regular):
        return
    first = int((~regular).any(axis=0).reshape(-1).argmax())
    row = int((~regular).reshape(len(regular), -1)[:, first].argmax())
    which = matrix_at(first, regular.shape[1:], place)
    raise np.linalg.LinAlgError(f"{which} {fault} modulo {moduli[row]}")


def matrix_at(flat_index: int, batch: tuple[int, ...], place: Place) -> str:
    """Name a chunk's matrix for errors, with its index in the array if it has one."""
    index = np.unravel_index(flat_index, batch)
    starts = [start for start, _ in place.location[: len(index)]] or [0] * len(index)
    where = tuple(int(i) + start for i, start in zip(index, starts, strict=True))
    return f"the matrix at index {where}" if where else "the matrix"


def inverses(words: Array, moduli: Moduli, place: Place) -> Array:
    """Inverses of small square matrices; LinAlgError as :func:`solve` for a singular one."""
    return solve(with_identity(words), moduli, place)


def with_identity(words: Array) -> Array:
    """Join square matrices A and identity matrices to chunks [A 1]."""
    ones = np.broadcast_to(identity(words.shape[-1], words), words.shape)
    return np.concatenate([words, ones], axis=-1)


def characteristic_polynomials(words: Array, moduli: Moduli) -> Array:
    """Coefficients (n, *batch, 1, N + 1) of det(z - A), the constant one first."""
    x = _stack(words)
    found = kernels_of(x).characteristic_polynomials(x, moduli)
    return found.reshape(*words.shape[:-2], 1, words.shape[-1] + 1)
