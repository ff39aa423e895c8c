"""Inverses and solutions of great regular matrices over prime fields, in place. No Dask in here.

Words are (n, *batch, N, N). What is made beside a matrix is some block columns of it.
"""

import numpy as np

from rnsdask.backend import Array, Moduli, backend_name, is_any
from rnsdask.core.place import Place
from rnsdask.core.wide_moduli import moduli_at
from rnsdask.fields import elimination
from rnsdask.fields.block_elimination import multiply, subtract_product
from rnsdask.fields.triangles import inverse_of_lower, inverse_of_upper
from rnsdask.fields.wide_elimination import solve_upper

GREAT_ROWS = 4096
"""Rows from which on matrices are inverted one by one, in place."""

# Block columns of a matrix, but none narrower than this: products of fewer terms take longer by the term.
_BLOCKS = 16
LEAST_WIDTH = {"cpu": 256, "cuda": 2048}


def _width(x: Array) -> int:
    """Columns of a block of matrices (..., N, N)."""
    return max(LEAST_WIDTH[backend_name(x)], -(-int(x.shape[-1]) // _BLOCKS))


# ---- inverses ---------------------------------------------------------------------------------------------


def inverses(words: Array, moduli: Moduli, place: Place, *, overwrite: bool = False) -> Array:
    """Invert matrices by Gauss-Jordan elimination, block column by block column: N**3 multiplications each.

    LinAlgError if a matrix is singular modulo a prime, naming its index in the array and the prime.
    """
    out = words if overwrite else words.copy(order="C")
    x = out.reshape(len(words), -1, *words.shape[-2:])
    regular = np.ones(x.shape[:2], dtype=np.bool_)
    for i, b in np.ndindex(*regular.shape):
        regular[i, b] = _invert(x[i : i + 1, b], moduli_at(moduli, [i]))
    elimination.check_regular(regular.reshape(words.shape[:-2]), moduli, place)
    return out


def _invert(x: Array, moduli: Moduli) -> bool:
    """Invert a matrix (1, N, N) in place; False, with undefined words, if it is singular."""
    rows, width = x.shape[-1], _width(x)
    order = np.arange(rows, like=x)
    for start in range(0, rows, width):
        block = slice(start, min(start + width, rows))
        count = block.stop - start
        panel = elimination.echelon(x[:, start:, block], moduli, count)
        if int(panel.ranks[0, 0]) < count:
            return False
        moved = panel.order[0, 0]
        if is_any(moved != np.arange(len(moved), like=x)):
            order[start:] = order[start:][moved]
            for first in range(0, rows, width):
                columns = x[0, start:, first : first + width]
                columns[...] = columns[moved]
        triangles = panel.words[:, 0, :count]
        del panel
        upper, lower = inverse_of_upper(triangles, moduli), inverse_of_lower(triangles, moduli)
        _clear_block(x, block, width, multiply(upper, lower, moduli), moduli)
    for first in range(0, rows, width):  # those of the matrix whose rows are in order
        band = x[0, first : first + width]
        band[:, order] = band.copy()
    return True


def _clear_block(x: Array, block: slice, width: int, inverse: Array, moduli: Moduli) -> None:
    """Make a block column that of an identity matrix, and put in its place what that does to the latter."""
    top = multiply(inverse, x[:, block], moduli)
    top[..., block] = inverse
    factors = x[..., block].copy()
    x[..., block] = 0
    for first in range(0, x.shape[1], width):
        band = slice(first, first + width)
        if first == block.start:
            x[:, band] = top
        else:
            x[:, band] = subtract_product(x[:, band], factors[:, band], top, moduli)


# ---- solutions --------------------------------------------------------------------------------------------


def solve(left: Array, right: Array, moduli: Moduli, place: Place) -> Array:
    """Solve A x = b for right-hand sides (n, *batch, N, K), and overwrite A by its factors.

    LinAlgError if a matrix is singular modulo a prime, naming its index in the array and the prime.
    """
    rows, columns = right.shape[-2:]
    found = elimination.echelon(left, moduli, rows, overwrite=True)
    elimination.check_regular(found.ranks.reshape(left.shape[:-2]) == rows, moduli, place)
    out = np.empty_like(right, order="C")
    x, y = (z.reshape(*found.order.shape[:2], rows, columns) for z in (right, out))
    for i, b in np.ndindex(*found.order.shape[:2]):
        y[i, b] = x[i, b][found.order[i, b]]
    for b in range(y.shape[1]):
        _solve_lower(found.words[:, b], y[:, b], moduli)
    if out.size:
        solve_upper(found.words, y, moduli, y)
    return out


def _solve_lower(factors: Array, y: Array, moduli: Moduli) -> None:
    """Solve triangular systems (n, N, N) with the factors below the diagonal, in place."""
    width = _width(factors)
    for start in range(0, y.shape[1], width):
        block = slice(start, start + width)
        part = subtract_product(y[:, block], factors[:, block, :start], y[:, :start], moduli)
        y[:, block] = multiply(inverse_of_lower(factors[:, block, block], moduli), part, moduli)
