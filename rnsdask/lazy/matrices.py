"""Stacks of matrices as operands, and results of functions of their chunks, lazy on Dask.

The last two axes belong to the matrices, and have one chunk in a Dask array, unless a function takes matrices
in any chunks (:mod:`.block_elimination`); the other axes, the batch, may have any chunks.
"""

from typing import Any

import dask.array as da
import numpy as np

from rnsdask.cluster.workers import checked_workers
from rnsdask.lazy.chunks import as_lazy, by_tasks, rechunk
from rnsdask.lazy.lazy_ints import as_exact
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import bring_to_one_processor, broadcast_shape, make_like, with_axes
from rnsdask.lazy.pieces import kept_blocks

# ---- operands ---------------------------------------------------------------------------------------------


def check_matrices(name: str, x: Any, *, of_polynomials: bool = False, any_chunks: bool = False) -> Any:
    """Return words of matrices (n, *batch, rows, columns) with known lengths.

    Each matrix is in one chunk, unless the function takes them in `any_chunks`. Polynomials have a last axis
    of coefficients.
    """
    words, axes = x.words, 3 if of_polynomials else 2
    shape = tuple(words.shape[1:])
    if len(shape) < axes:
        what = "matrices of polynomials, which have three" if of_polynomials else "matrices, which have two"
        raise ValueError(f"{name} takes {what} axes, got shape {shape}")
    if of_polynomials and shape[-1] == 0:
        raise ValueError(f"{name} takes polynomials that have coefficients, got shape {shape}")
    if not any_chunks and isinstance(words, da.Array) and max(words.numblocks[-axes:]) > 1:
        first = len(shape) - axes
        lengths = ", ".join(f"{first + k}: -1" for k in range(axes))
        raise ValueError(
            f"{name} takes matrices that are one chunk, got {' x '.join(map(str, words.numblocks[-axes:]))}; "
            f"x.rechunk({{{lengths}}}) joins them"
        )
    return words


def check_square(name: str, x: Any, *, of_polynomials: bool = False, any_chunks: bool = False) -> Any:
    """Return words as `check_matrices` does, and raise ValueError unless matrices are square."""
    words = check_matrices(name, x, of_polynomials=of_polynomials, any_chunks=any_chunks)
    rows, columns = words.shape[-3:-1] if of_polynomials else words.shape[-2:]
    if rows != columns:
        raise ValueError(f"{name} takes square matrices, got shape {tuple(words.shape[1:])}")
    return words


def check_equations(a: Any, b: Any, *, is_square: bool, any_chunks: bool = False) -> tuple[Any, Any, bool]:
    """Return words of matrices and of their right-hand sides (n, *batch, rows, K), and whether b is a vector.

    ValueError if they do not fit, or as `check_matrices` raises it.
    """
    left = (check_square if is_square else check_matrices)("solve", a, any_chunks=any_chunks)
    is_vector = b.words.ndim == 2
    right = b.words[..., None] if is_vector else b.words
    rows = left.shape[-2]
    if right.shape[-2] != rows:
        shapes = " and ".join(str(tuple(x.words.shape[1:])) for x in (a, b))
        raise ValueError(
            f"shapes {shapes} do not fit: systems of {rows} equations have as many right-hand sides"
        )
    return left, right, is_vector


def joined_words(a: Any, b: Any, *, is_square: bool = True) -> tuple[Any, int, bool]:
    """Return words [A b] (n, *batch, R, C + K), C, and whether b is one vector; batches broadcast."""
    left, right, is_vector = check_equations(a, b, is_square=is_square)
    return join_equations(left, right), left.shape[-1], is_vector


def join_equations(left: Any, right: Any) -> Any:
    """Return words [A b] (n, *batch, R, C + K) of matrices and right-hand sides; batches broadcast."""
    is_lazy = any(isinstance(x, da.Array) for x in (left, right))
    if not is_lazy and left.shape[1:-2] == right.shape[1:-2]:
        return np.concatenate([left, right], axis=-1)
    batch = broadcast_shape([x.shape[1:-2] for x in (left, right)])
    library: Any = da if is_lazy else np
    both = bring_to_one_processor([as_lazy(x) for x in (left, right)]) if is_lazy else [left, right]
    with by_tasks(left, right):
        arrays = [
            library.broadcast_to(with_axes(x, len(batch) + 2), (len(x), *batch, *x.shape[-2:])) for x in both
        ]
        joined = library.concatenate(arrays, axis=-1)
    return rechunk(joined, {-2: -1, -1: -1}) if is_lazy else joined


def computed(values: Any) -> Any:
    """Compute a lazy array of few values."""
    if not isinstance(values, da.Array):
        return values
    with checked_workers():
        return values.compute()


def common_rank(ranks: Any, fields: list[str]) -> int:
    """Return the common value of ranks (n, *batch), or 0 if empty; ValueError names two that differ.

    Lazy ranks are computed. The error calls the n fields by the names in `fields`.
    """
    ranks = computed(ranks)
    if not ranks.size:
        return 0
    flat = ranks.reshape(-1)
    differing = flat != flat[0]
    if differing.any():
        place = int(differing.argmax())
        row, *index = (int(i) for i in np.unravel_index(place, ranks.shape))
        where = [f" at index {tuple(at)}" if index else "" for at in ([0] * len(index), index)]
        raise ValueError(
            f"nullspace takes matrices of one rank, got {int(flat[0])}{where[0]}{fields[0]} and "
            f"{int(flat[place])}{where[1]}{fields[row]}"
        )
    return int(flat[0])


# ---- results ----------------------------------------------------------------------------------------------


def map_matrices(
    name: str,
    function: Any,
    words: Any,
    lengths: tuple[int, ...],
    *,
    of_polynomials: bool = False,
    **options: Any,
) -> Any:
    """Apply a function to the chunks of matrices; results are matrices of the given lengths."""
    chunks = None
    if isinstance(words, da.Array):
        axes = 3 if of_polynomials else 2
        chunks = (*words.chunks[1:-axes], *((length,) for length in lengths))
    options = {"rows": words.shape[0], "token": f"matrix-{name}", **options}
    return map_chunks(function, words, chunks=chunks, **options)


def map_to_integers(
    name: str, function: Any, words: Any, lengths: tuple[int, ...], system: Any, **options: Any
) -> Any:
    """Apply a function to chunks of matrices of a system; results are Python ints (*batch, *lengths)."""
    options = {"system": system, "dtype": object, "rows": None, **options}
    return as_exact(kept_blocks(map_matrices(name, function, words, lengths, **options)))


def numbers_like(x: Any, words: Any) -> Any:
    """Make an array like `x` of words (rows, *shape), or without axes its number; lazy if the words are."""
    if words.ndim > 1:
        return make_like((x,), words, x.system, "raise")
    return make_like((x,), words[:, None], x.system, "raise")[0]
