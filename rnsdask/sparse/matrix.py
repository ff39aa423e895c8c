"""SparseMatrix: a sparse matrix of integers or of elements of prime fields, and its products."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, SupportsIndex, cast

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from rnsdask.arrays.field_array import FieldArray
from rnsdask.backend import Array, backend_name, contiguous, kernels_of, to_backend
from rnsdask.backend.protocol import Moduli, SparseRows
from rnsdask.cluster.limits import process_limit
from rnsdask.core.errors import JobError, abbreviate
from rnsdask.core.moduli import as_integer
from rnsdask.core.number_system import NumberSystem
from rnsdask.core.rows import group_sums, multiply_sparse
from rnsdask.core.ways import Message, Way, must
from rnsdask.fields.system import PrimeFields, fields_of
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.elementwise import has
from rnsdask.lazy.map import map_chunks
from rnsdask.lazy.operands import find_lengths, is_number_array

_MOST_LENGTH = 2**31 - 1
"""Most rows and columns: entries store columns as 32-bit integers."""

_WIDE = 16
"""Least number of vectors that are multiplied separately for each prime; fewer are joined across primes."""

_KEPT = 4
"""Copies of a matrix, for processors or primes, that it keeps for later products."""


_ROW_BYTES, _ENTRY_BYTES = 24, 96
"""Bytes for each row, and for each entry in addition to its value, while entries are sorted."""

FITS_EVERYWHERE = 2**28
"""Bytes that are used without checking how much memory there is."""


class SparseMatrix:
    """A sparse matrix of integers of any size, or of elements of prime fields, in memory.

    ``a @ x`` is the product with a FieldArray x, one vector (C,) or a block of vectors (C, K), modulo all its
    primes at once; a matrix of elements must have the same fields. It is computed on the processor of x, and
    lazy if x is, one task for each chunk of the vectors' axis. Make one with :func:`.sparse.from_entries`,
    :func:`.sparse.from_scipy` or :func:`.sparse.read`.

    Attributes
    ----------
    shape : (int, int)
        Rows and columns, each at most 2**31 - 1.
    nnz : int
        Number of nonzero entries.
    fields : PrimeFields or None
        The fields of elements; None for integers.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        starts: NDArray[np.int64],
        columns: NDArray[np.int32],
        values: NDArray[Any],
        fields: PrimeFields | None,
    ) -> None:
        self.shape, self.fields = shape, fields
        self._starts, self._columns, self._values = starts, columns, values
        self._kept: dict[Any, SparseRows] = {}

    @property
    def nnz(self) -> int:
        """Number of nonzero entries."""
        return len(self._columns)

    @cached_property
    def T(self) -> "SparseMatrix":  # noqa: N802  (NumPy's name)
        """Transposed matrix; kept for the next call."""
        rows = np.repeat(np.arange(self.shape[0], dtype=np.int64), np.diff(self._starts))
        return _sort_by_rows(self._columns, rows, self._values, self.shape[::-1], self.fields)

    def to_dense(self, fields: PrimeFields) -> FieldArray:
        """Convert to a dense array modulo primes, on the CPU, for :mod:`rnsdask.linalg`.

        Raises
        ------
        TypeError, ValueError
            If `fields` are not PrimeFields, or not those of the matrix.
        """
        return FieldArray(self.dense_words(self.check_fields(fields).moduli), fields)

    def __matmul__(self, x: Any) -> FieldArray:
        if not has_sparse_products(x):
            kind = repr(x.system) if isinstance(x, FieldArray) else type(x).__name__
            raise TypeError(
                Message(
                    f"a SparseMatrix multiplies a FieldArray of PrimeFields, got {kind}; ",
                    Way.FIELDS,
                    " makes one of an array of integers",
                )
            )
        self.check_fields(x.system)
        words = vectors_of(x, self.shape[1], "x")
        found = self._product(words if words.ndim == 3 else words[..., None], x.system)
        return FieldArray(found if words.ndim == 3 else found[..., 0], x.system)

    def _product(self, words: Any, system: NumberSystem) -> Any:
        if not isinstance(words, da.Array):
            return system.apply(multiply_sparse, words, matrix=self)
        words = rechunk(words, {1: -1})
        how: dict[str, Any] = {"rows": system.rows, "chunks": ((self.shape[0],), words.chunks[2])}
        return map_chunks(_multiply, words, self.as_chunk(), system=system, token="sparse", **how)

    def as_chunk(self) -> da.Array:
        """Wrap the matrix in a Dask array without axes, so that a graph holds it once."""
        box = np.empty((), object)
        box[()] = self
        held: da.Array = da.from_array(box, name=f"sparse-matrix-{tokenize(self)}")
        return held

    def __repr__(self) -> str:
        kind = "integers" if self.fields is None else f"elements of {self.fields!r}"
        return f"SparseMatrix({self.shape[0]} x {self.shape[1]}, {self.nnz} entries, {kind})"

    def __getstate__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "fields": self.fields,
            "_starts": self._starts,
            "_columns": self._columns,
            "_values": self._values,
            "_kept": {},
        }

    def __dask_tokenize__(self) -> Any:
        values = self._values
        if values.dtype == object:
            values = np.array([hex(value) for value in values])
        return "rnsdask.SparseMatrix", self.shape, self.fields, self._starts, self._columns, values

    # ---- in kernels ---------------------------------------------------------------------------------------

    def check_fields(self, fields: Any) -> PrimeFields:
        """Return the fields of a product; TypeError or ValueError if they do not fit the matrix."""
        if not isinstance(fields, NumberSystem) or multiply_sparse.name not in fields.table:
            raise TypeError(f"fields must be PrimeFields, got {type(fields).__name__}")
        if self.fields is not None and not self.fields.same_numbers(fields):
            raise ValueError(f"the matrix is of elements of {self.fields!r}, got vectors of {fields!r}")
        return cast("PrimeFields", fields)

    def residues(self, moduli: Moduli) -> NDArray[Any]:
        """Return the entries (n, nnz) modulo primes; a matrix of elements must have these primes."""
        if self.fields is None:
            return fields_of(moduli).encode(self._values)
        row_of = {p: i for i, p in enumerate(self.fields.primes)}
        found: NDArray[Any] = self._values[[row_of[p] for p in moduli]]
        return found

    @cached_property
    def _signed(self) -> NDArray[np.int32] | None:
        """Return the values as 32-bit integers, or None if magnitudes in a row add up to 2**31 or more."""
        values = self._values
        if self.fields is not None or values.dtype != np.int64:
            return None
        if values.size and not -(2**31) < int(values.min()) <= int(values.max()) < 2**31:
            return None
        # Sums of fewer than 2**32 such numbers fit into 64 bits.
        sums = np.concatenate([[0], np.cumsum(np.abs(values))])[self._starts]
        return None if np.diff(sums).max(initial=0) >= 2**31 else values.astype(np.int32)

    def dense_words(self, moduli: Moduli) -> NDArray[Any]:
        """Return all numbers (n, R, C) modulo primes, on the host."""
        words = np.zeros((len(moduli), *self.shape), fields_of(moduli).word_dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self._starts))
        words[:, rows, self._columns] = self.residues(moduli)
        return words

    @property
    def empty_rows(self) -> NDArray[np.int64]:
        """Mask of the rows without nonzero entries."""
        return np.flatnonzero(np.diff(self._starts) == 0)

    def _rows_for(self, moduli: Moduli, like: Array) -> SparseRows:
        """Return the matrix in the kernels' form, on the processor of an array."""
        key = str(like.device), None if self._signed is not None else moduli
        found = self._kept.get(key)
        if found is None:
            values = self.residues(moduli) if self._signed is None else self._signed
            parts = (self._starts, self._columns, values)
            found = SparseRows(*(to_backend(part, backend_name(like)) for part in parts))
            if len(self._kept) >= _KEPT:
                self._kept = {}
            self._kept[key] = found
        return found

    def multiply(self, words: Array, moduli: Moduli) -> Array:
        """Multiply by blocks of vectors (n, C, K), NumPy or CuPy; returns (n, R, K)."""
        n, terms, width = words.shape
        shape = (n, self.shape[0], width)
        if words.size == 0 or self.shape[0] == 0:
            return np.zeros_like(words, shape=shape, order="C")
        a, kernels = self._rows_for(moduli, words), kernels_of(words)
        words, out = contiguous(words), np.empty_like(words, shape=shape, order="C")
        if a.values.ndim > 1 or n == 1 or width >= _WIDE:
            kernels.sparse_matmul(a, words, moduli, out)
            return out
        # An entry's column is read for all primes at once if it is one line of memory.
        turned = np.empty_like(words, shape=(terms * width, n), order="C")
        kernels.transpose(words.reshape(n, terms * width), turned)
        found = np.empty_like(words, shape=(1, self.shape[0], width * n), order="C")
        kernels.sparse_matmul(a, turned.reshape(1, terms, width * n), moduli, found)
        kernels.transpose(found.reshape(self.shape[0] * width, n), out.reshape(n, self.shape[0] * width))
        return out


def _multiply(words: Array, box: Any, *, system: NumberSystem) -> Array:
    return system.apply(multiply_sparse, words, matrix=box.item())


def has_sparse_products(x: Any) -> bool:
    """Whether an operand is an array of numbers whose system multiplies sparse matrices."""
    return is_number_array(x) and has(multiply_sparse, x)


def vectors_of(x: FieldArray, length: int, name: str) -> Any:
    """Return the words of one vector of a length, or of a block of them; ValueError for another shape."""
    find_lengths(x)
    if x.ndim not in (1, 2) or x.shape[0] != length:
        raise ValueError(f"{name} must have shape ({length},) or ({length}, K), got {x.shape}")
    return x.words


def from_entries(
    rows: Any, columns: Any, values: Any, shape: tuple[SupportsIndex, SupportsIndex]
) -> SparseMatrix:
    """Make a sparse matrix from its entries; entries with the same position are added.

    Parameters
    ----------
    rows, columns : sequences of int, shape (N,)
        Positions of the entries, from 0.
    values : sequence of int or FieldArray, shape (N,)
        Integers of any size and sign, or elements of prime fields in memory: then each prime has a matrix of
        its own, as for the values of a parameter.
    shape : (int, int)
        Rows and columns, each from 0 to 2**31 - 1.

    Raises
    ------
    TypeError
        If an argument holds anything but integers, or the elements are lazy or of a Fermat field.
    ValueError
        If lengths differ, or a position is outside of the shape; the message names the first.
    JobError
        If the matrix takes more memory than this process may use.
    """
    lengths = check_shape(shape)
    fields, entries = _checked_values(values)
    count = entries.shape[-1]
    down = _checked_places(rows, count, lengths[0], "rows")
    across = _checked_places(columns, count, lengths[1], "columns")
    return _sort_by_rows(down, across, entries, lengths, fields)


def from_scipy(a: Any) -> SparseMatrix:
    """Convert a sparse matrix of SciPy, of any format, with integers or Booleans.

    Raises
    ------
    TypeError
        If `a` is not such a matrix, or has other entries.
    ValueError
        If it does not have two axes.
    """
    if not (hasattr(a, "tocoo") and hasattr(a, "nnz")):
        raise TypeError(f"from_scipy takes a matrix or array of scipy.sparse, got {type(a).__name__}")
    if a.ndim != 2:
        raise ValueError(f"a sparse matrix has two axes, got shape {a.shape}")
    if a.dtype.kind not in "iub":
        raise TypeError(f"from_scipy takes integers, got {a.dtype}; a.astype(int) rounds numbers")
    found = a.tocoo()
    return from_entries(found.row, found.col, found.data, found.shape)


def check_memory(shape: tuple[int, int], entries: int, beside: int = 0) -> None:
    """Raise JobError if this process has too little memory to sort so many entries.

    `beside` counts the bytes of their values and of all else that is held meanwhile.
    """
    need = _ROW_BYTES * shape[0] + _ENTRY_BYTES * entries + beside
    if need > FITS_EVERYWHERE and need > (limit := process_limit()):
        raise JobError(
            f"a sparse matrix of shape {shape} with {entries} entries takes {need / 1e9:.3g} GB, and this "
            f"process may use {limit / 1e9:.3g} GB"
        )


def check_shape(shape: Any) -> tuple[int, int]:
    """Return the shape of a sparse matrix, or raise ValueError or TypeError."""
    if not isinstance(shape, Sequence) or len(shape) != 2:
        raise ValueError(must("shape", f"be a pair of rows and columns, got {shape!r:.80}"))
    rows, columns = (as_integer(length, "a length of shape") for length in shape)
    if not (0 <= rows <= _MOST_LENGTH and 0 <= columns <= _MOST_LENGTH):
        raise ValueError(
            f"rows and columns must be from 0 to 2**31 - 1, got ({abbreviate(rows)}, {abbreviate(columns)})"
        )
    return rows, columns


def _checked_values(values: Any) -> tuple[PrimeFields | None, NDArray[Any]]:
    """Return the fields of values and residues (n, N), or None and integers (N,), int64 or objects."""
    if isinstance(values, FieldArray):
        given: Any = values
        if not has_sparse_products(given) or isinstance(given.words, da.Array):
            raise TypeError("values must be integers or a FieldArray of PrimeFields in memory")
        fields, found = given.system, to_backend(given.words, "cpu")
    else:
        fields, found = None, _integers(values)
    if found.ndim != 1 + (fields is not None):
        raise ValueError(f"values must have one axis, got {found.ndim - (fields is not None)}")
    return fields, found


def _integers(values: Any) -> NDArray[Any]:
    """Convert integers to int64, or to objects if one needs more bits."""
    if not isinstance(values, Iterable):
        kind = type(values).__name__
        raise TypeError(f"values must be integers or a FieldArray, got {values!r:.80} of type {kind}")
    given = np.asarray(values) if isinstance(values, np.ndarray) else np.array(list(values), object)
    if given.dtype.kind == "b" or (given.dtype.kind in "iu" and given.dtype != np.uint64):
        return given.astype(np.int64)
    if given.dtype == object:
        integers = [as_integer(v, f"value {i}") for i, v in enumerate(given.ravel())]
        given = np.array(integers, object).reshape(given.shape)
    elif given.size and given.dtype != np.uint64:
        raise TypeError(f"values must be integers, got {given.dtype}")
    if given.size == 0 or max(-int(given.min()) - 1, int(given.max())) < 2**63:
        return given.astype(np.int64)
    return given.astype(object)


def _checked_places(given: Any, count: int, length: int, name: str) -> NDArray[np.int64]:
    found = np.asarray(list(given) if isinstance(given, Iterator) else given)
    if found.size == 0:
        found = found.astype(np.int64)
    elif found.dtype == object:
        found = _integers(found)
    if found.dtype != object and found.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {found.dtype}")
    if found.shape != (count,):
        raise ValueError(f"{name} must have shape ({count},) as values have, got {found.shape}")
    outside = (found < 0) | (found >= length)
    if outside.any():
        first = int(outside.argmax())
        raise ValueError(
            f"{name}[{first}] is {abbreviate(int(found[first]))}, out of the {length} {name} of shape"
        )
    return found.astype(np.int64)


def _sort_by_rows(
    rows: NDArray[Any],
    columns: NDArray[Any],
    values: NDArray[Any],
    shape: tuple[int, int],
    fields: PrimeFields | None,
) -> SparseMatrix:
    """Sort entries by rows, add those with the same position, and leave out zeros."""
    check_memory(shape, len(rows), 3 * values.nbytes)
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[..., order]
    is_first = np.ones(len(rows), bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    if not is_first.all():
        firsts = is_first.nonzero()[0]
        rows, columns = rows[firsts], columns[firsts]
        if fields is not None:
            values = fields.apply(group_sums, values, codes=np.cumsum(is_first) - 1, count=len(firsts))
        else:
            greatest = max(abs(int(values.min())), abs(int(values.max())))
            kind = np.int64 if greatest * len(values) < 2**63 else object
            values = _integers(np.add.reduceat(values.astype(kind), firsts))
    is_kept = values != 0 if fields is None else values.any(axis=0)
    if not is_kept.all():
        rows, columns, values = rows[is_kept], columns[is_kept], values[..., is_kept]
    starts = np.zeros(shape[0] + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=starts[1:])
    return SparseMatrix(shape, starts, columns.astype(np.int32), np.ascontiguousarray(values), fields)
