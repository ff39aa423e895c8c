"""Products, elimination and inverses of matrices of residues."""

from typing import Any
from unittest.mock import patch

import numpy as np

from emulation.checks import Place, check, not_by_ptx
from rnsdask.backend.cuda import block_lu, int8_product, launching, panel_lu, triangles
from rnsdask.backend.cuda.int8_product import SUBTRACT, Part, Residues
from rnsdask.backend.protocol import Moduli, SparseRows
from rnsdask.constants import int8_constants, small_moduli_for
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.wide_moduli import WideModuli


@check
@not_by_ptx("calls of functions")
def elimination_by_rows(kernels: Any, place: Place) -> list[Any]:
    """A thread for each row, whole in shared memory and where the result goes, and factors of LU."""
    moduli, results = ModuliSet([3, 65537, 4294967291]), []
    for rows, columns, pivot_columns, seed in (
        (1, 1, 1, 1),
        (19, 32, 32, 7),  # of one warp
        (32, 30, 30, 8),
        (33, 34, 33, 2),
        (31, 70, 40, 3),
        (40, 9, 8, 4),
        (5, 3, 0, 5),
        (260, 36, 36, 6),  # great: in panels
    ):
        random = np.random.default_rng(seed)
        count = 1 if rows > 100 else 3
        x = np.empty((3, count, rows, columns), np.uint32)
        for i, m in enumerate(moduli):
            x[i] = random.integers(0, m, x.shape[1:])
        x[:, :, : rows // 2 : 3] = 0
        x[..., 1::5] = 0
        x[1:, 0] = np.array([m - 1 for m in moduli], np.uint32)[1:, None, None]  # rank 1
        out = place(np.empty_like(x))
        results += [*kernels.eliminate(place(x), pivot_columns, moduli, out), out]
        results += kernels.eliminate(place(x), pivot_columns, moduli, None)
        k = min(rows, columns)
        shapes = (rows, rows), (rows, k), (k, columns)
        factors = tuple(place(np.empty((3, count, *shape), np.uint32)) for shape in shapes)
        kernels.lu(place(x), moduli, factors)
        results += factors
        packed = np.concatenate([out, out[..., :1] * 0], axis=3)
        packed[..., -1] = np.arange(rows)[::-1]
        for factor, shape in zip("PLU", shapes, strict=True):
            found = place(np.empty((3, count, *shape), np.uint32))
            kernels.lu_factor(place(packed), factor, found)
            results.append(found)
    return results


@check
@not_by_ptx("matrix units and copies that do not wait")
def elimination_in_panels(kernels: Any, place: Place) -> list[Any]:
    """Panels by blocks, and what is right of them; a pivot lacks in the first, or the last; a low rank."""
    moduli, results = ModuliSet([2147483659, 4294967291]), []
    for rows, columns, zeros, rank in (
        (150, 150, 0, 150),
        (140, 170, 1, 140),
        (150, 150, 140, 150),
        (170, 150, 0, 90),
    ):
        random = np.random.default_rng(rows)
        x = np.stack([random.integers(0, m, (1, rows, columns), dtype=np.uint64) for m in moduli]).astype(
            np.uint32
        )
        x[1, 0, :zeros, zeros - 1 if zeros else 0] = x[1, 0, :zeros, 0] if zeros > 1 else 0
        x[1, 0, rank:] = x[1, 0, : rows - rank]
        out = place(np.empty_like(x))
        sizes = {"LEAST_OF_FEW": 0, "MOST_PIVOTS": 1, "WIDTH": 64}
        with patch.object(int8_product, "multiply_int8", multiply_on_host):
            with patch.multiple(block_lu, **sizes):
                results += [*kernels.eliminate(place(x), columns, moduli, out), out.copy()]
            with patch.object(block_lu, "LEAST_OF_FEW", 0):
                results += [*kernels.eliminate(place(x), columns, moduli, out), out.copy()]
                alone = place(x[1:]), columns, ModuliSet([moduli[1]]), out[1:]
                results += [*kernels.eliminate(*alone), out[1:].copy()]
                results += kernels.eliminate(place(x), columns, moduli, None)
                with patch.object(block_lu, "width_in_place", lambda _: 64):
                    in_place = place(x)
                    results += [*kernels.eliminate(in_place, columns, moduli, in_place), in_place]
    return results


@check
@not_by_ptx("matrix units and copies that do not wait")
def elimination_of_tall_matrices(kernels: Any, place: Place) -> list[Any]:
    """A column at a time by all blocks, modulo 2 also: triangles in any order, zeros first, a low rank."""
    moduli, results = ModuliSet([2, 3, 4294967291]), []
    for rows, columns, pivot_columns, seed in ((270, 130, 10, 1), (260, 1050, 3, 2)):
        random = np.random.default_rng(seed)
        x = np.stack([random.integers(0, m, (1, rows, columns), dtype=np.uint64) for m in moduli])
        x = x.astype(np.uint32)
        triangle, first, low = np.triu(x)[:, :, random.permutation(rows)], x.copy(), x.copy()
        first[:, :, : rows - 30] = 0
        first[..., 3::7] = first[..., :1]
        low[:, :, 2::3], low[:, :, 1::3] = low[:, :, :1], 0
        for matrix in (triangle, first, low):
            out, alone = place(np.empty_like(x)), ModuliSet([moduli[-1]])
            few = patch.object(launching, "BLOCKS_PER_PROCESSOR", 1)
            sizes = {"MOST_ROWS": 8, "_PANEL_OF_TALL": 4, "processors": lambda _: 9}
            products = patch.object(int8_product, "multiply_int8", multiply_on_host)
            with few, products, patch.multiple(panel_lu, **sizes):
                results += [*kernels.eliminate(place(matrix), pivot_columns, moduli, out), out]
                one = place(matrix[-1:])
                results += [*kernels.eliminate(one, pivot_columns, alone, one), one]
    return results


@check
@not_by_ptx("matrix units and copies that do not wait")
def products_joined_at_once(kernels: Any, place: Place) -> list[Any]:
    """Products on matrix units by the fewest blocks, and their differences from other matrices."""
    moduli, results = ModuliSet([2**32, 4294967291, 3]), []
    for rows, terms, columns in ((70, 260, 130), (64, 5, 129), (129, 64, 3)):
        a, b, c = (
            np.stack([np.random.default_rng(n).integers(0, m, (2, *sides), dtype=np.uint64) for m in moduli])
            for n, sides in enumerate(((rows, terms), (terms, columns), (rows, columns)))
        )
        middle = np.array([m // 2 for m in moduli], dtype=np.uint64)[:, None, None]
        a[:, 0], b[:, 0] = middle, middle + np.uint64(1)
        a, b, c = (x.astype(np.uint32) for x in (a, b, c))
        out = place(c)
        if kernels.__name__.endswith("cuda.kernels"):
            int8_product._resident = lambda: 3
            parts = [Part.whole(place(x)) for x in (a, b)]
            shape = rows, terms, columns
            int8_product.multiply(parts[0], parts[1], moduli, Part.whole(out), shape, SUBTRACT)
            results += turned_difference(parts, Part.whole(place(c)), moduli)
        else:
            found = np.empty_like(c)
            kernels.matmul(a, b, moduli, found)
            sizes = np.array(list(moduli), dtype=np.int64)[:, None, None, None]
            out = ((c.astype(np.int64) - found) % sizes).astype(np.uint32)
            constants = int8_constants(moduli, small_moduli_for(moduli, terms))
            sides = -(-columns // 16) * 16, -(-rows // 64) * 64
            image = np.empty((len(moduli), 2, constants.count, *sides), np.int8)
            kernels.int8_split(out.swapaxes(2, 3), constants, True, image)
            results += [out, image[:, :, :, :columns]]
        results.append(out)
    return results


@check
def products_by_blocks(kernels: Any, place: Place) -> list[Any]:
    """Splitting and joining by blocks of all sides, with the host's products between."""
    moduli, (rows, terms, columns) = ModuliSet([2**32, 4294967291, 3]), (70, 150, 45)
    a, b, c = (
        np.stack([np.random.default_rng(n).integers(0, m, (2, *sides), dtype=np.uint64) for m in moduli])
        for n, sides in enumerate(((rows, terms), (terms, columns), (rows, columns)))
    )
    a, b, c = (x.astype(np.uint32) for x in (a, b, c))
    if not kernels.__name__.endswith("cuda.kernels"):
        found = np.empty_like(c)
        kernels.matmul(a, b, moduli, found)
        sizes = np.array(list(moduli), dtype=np.int64)[:, None, None, None]
        return [((c.astype(np.int64) - found) % sizes).astype(np.uint32)] * 2
    results = []
    on_host = {"_is_joined_at_once": lambda *_: False, "multiply_int8": multiply_on_host}
    blocks = {"INT8_ROWS": 32, "INT8_TERMS": 64, "INT8_COLUMNS": 20, "INT8_WORKSPACE": 1}
    for sizes in ({}, blocks):
        parts = [Part.whole(place(x)) for x in (a, b, c)]
        with patch.multiple(int8_product, **on_host, **sizes):
            int8_product.multiply(*parts[:2], moduli, parts[2], (rows, terms, columns), SUBTRACT)
        results.append(parts[2].words)
    return results


def multiply_on_host(x: Any, y: Any, sums: Any) -> None:
    """Compute what a library does on a GPU: products of 8-bit matrices and transposed ones."""
    sums[...] = np.matmul(x.astype(np.int32), y.astype(np.int32).swapaxes(-1, -2))


def turned_difference(factors: list[Part], part: Part, moduli: ModuliSet) -> list[Any]:
    """Subtract a product from a part, with rows as columns; return words, and residues of left matrices."""
    (n, count, rows, terms), columns = factors[0].words.shape, part.words.shape[3]
    constants = int8_constants(moduli, small_moduli_for(moduli, terms))
    sides = (factors[1].turned(), columns, constants.negative), (factors[0], rows, constants.right)
    images = [int8_product.empty_image(n * count, constants.count, side, terms) for _, side, _ in sides]
    for (x, side, small), image in zip(sides, images, strict=True):
        int8_product.split(x, (0, 0, 0), (side, terms), constants, small, image)
    found = int8_product.empty_image(n * count, constants.count, columns, rows)
    residues, added = Residues(found, constants.left), part.turned().words
    int8_product.multiply_images(*images, part.turned(), (columns, rows), constants, added, residues)
    shape = n, count, constants.count, columns, -1
    return [part.words, found.transpose(0, 1, 3, 2, 4).reshape(shape)]


@check
def inverses_of_triangles(kernels: Any, place: Place) -> list[Any]:
    """Inverses of both factors in whole matrices, and of L between two ranks of each matrix."""
    moduli, results = ModuliSet([2, 65537, 4294967291]), []
    for size in (1, 9, 40, 128):
        x = np.stack(
            [
                np.random.default_rng(size).integers(m // 2, m, (1, size, size), dtype=np.uint32)
                for m in moduli
            ]
        )
        x[..., 1:, 0] = np.array([m - 1 for m in moduli], np.uint32)[:, None, None]
        first = np.array([[0], [min(3, size - 1)], [0]], dtype=np.int32)
        last = np.array([[size], [size], [size // 2]], dtype=np.int32)
        if kernels.__name__.endswith("cuda.kernels"):
            both = [place(np.empty_like(x)) for _ in range(2)]
            triangles.invert(place(x), moduli, *both)
            results += both
            results.append(triangles.lower_inverses(place(x), (place(first), place(last)), size, moduli))
            continue
        lower, upper, part = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
        for i, m in enumerate(moduli):
            lower[i, 0] = inverse_of_lower(np.tril(x[i, 0], -1) + np.eye(size, dtype=np.uint32), m)
            upper[i, 0] = inverse_of_lower(np.triu(x[i, 0]).T, m).T
            own = slice(first[i, 0], last[i, 0])
            inner = np.eye(size, dtype=np.uint32)
            rows = last[i, 0] - first[i, 0]
            inner[:rows, :rows] += np.tril(x[i, 0, own, own], -1)
            part[i, 0] = inverse_of_lower(inner, m)
        results += [lower, upper, part]
    return results


def inverse_of_lower(x: np.ndarray, m: int) -> np.ndarray:
    """Invert a lower triangular matrix modulo a prime, row by row, with Python's integers."""
    x, found = x.astype(object), np.eye(len(x), dtype=object)
    for i in range(len(x)):
        found[i] = (found[i] - x[i, :i] @ found[:i]) * pow(int(x[i, i]), -1, m) % m
    return found.astype(np.uint32)


@check
def sparse_products(kernels: Any, place: Place) -> list[Any]:
    """Rows without entries and long ones, by one thread or a warp, with signed entries and residues."""
    short = ModuliSet([2, 65537, 2147483647, 4294967291])
    return [
        *_sparse_products(kernels, place, short, np.dtype(np.uint32)),
        *_sparse_products(kernels, place, WideModuli((2, 65537, 2**61 - 1, 2**64 - 59)), np.dtype(np.uint64)),
    ]


def _sparse_products(kernels: Any, place: Place, moduli: Moduli, word: np.dtype[Any]) -> list[Any]:
    sizes, results = np.array(list(moduli), np.uint64)[:, None, None], []
    for rows, terms, width, density, seed in (
        (1, 1, 1, 1.0, 1),
        (37, 53, 1, 0.1, 2),
        (9, 400, 3, 0.9, 3),
        (21, 11, 33, 0.3, 4),
        (5, 7, 2, 0, 5),
    ):
        random = np.random.default_rng(seed)
        is_entry = random.random((rows, terms)) < density
        starts = np.concatenate([[0], is_entry.sum(axis=1).cumsum()])
        columns = place(is_entry.nonzero()[1].astype(np.int32))
        x = (random.integers(0, 2**64, (4, terms, width), np.uint64) % sizes).astype(word)
        x[:, ::3] = sizes - np.uint64(1)
        signed = random.integers(-(2**22), 2**22, len(columns), dtype=np.int32)
        residues = np.repeat((sizes[:, :, 0] - np.uint64(1)).astype(word), len(columns), axis=1)
        for values, shape in ((signed, (4, width)), (signed, (1, 4 * width)), (residues, (4, width))):
            out = place(np.full((shape[0], rows, shape[1]), 7, word))
            a = SparseRows(place(starts), columns, place(values))
            planes = x if shape[0] == 4 else x.transpose(1, 2, 0).reshape(1, terms, -1)
            kernels.sparse_matmul(a, place(planes), moduli, out)
            results.append(out)
    return results
