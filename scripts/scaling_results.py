"""Calls of bench_scaling.py whose results stay on the workers, or are a few integers; each result is checked.

Numbers repeat a pattern that every process knows, so that the first and the last of an array tell what all
must be. The elements of the long transform are the powers of one of them, whose transform has a closed form.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from benchmarking import GIB, random_on_cpu

import rnsdask as rd

LINE = 2**12
"""Elements of each transform of a batch."""

SIDE = 64
"""Rows of each matrix."""

PATTERN = 2**6
"""Numbers, lines or matrices after which those of an array repeat."""

FIELDS = rd.PrimeFields(rd.ModuliSet([2013265921]))  # 15 * 2**27 + 1
LONG_FIELD = rd.PrimeFields(rd.ModuliSet([3221225473]))  # 3 * 2**30 + 1
MATRIX_FIELDS = rd.PrimeFields(rd.ModuliSet.ntt_primes(240, 2))

Resident = Callable[..., AbstractContextManager[da.Array]]
"""Makes a Dask array of words of a function of chunks, what it is given, lengths of chunks, and the shape."""


@dataclass(frozen=True)
class Call:
    """A call on resident data: what it computes, how many bytes it reads, and whether a result is right."""

    name: str
    compute: Callable[[], Any]
    check: Callable[[Any], bool]
    nbytes: int


def repeated(chunk: int, lengths: tuple[int, ...], pattern: np.ndarray, *, gpu: bool) -> Any:
    """A pattern (rows, PATTERN, *axes), again and again along its second axis."""
    if gpu:
        import cupy as xp
    else:
        xp = np
    part = xp.asarray(pattern)
    words = xp.empty((len(part), lengths[chunk], *part.shape[2:]), dtype=part.dtype)
    done = min(PATTERN, lengths[chunk])
    words[:, :done] = part[:, :done]
    while done < lengths[chunk]:  # twice as many each time
        step = min(done, lengths[chunk] - done)
        words[:, done : done + step] = words[:, :step]
        done += step
    return words


def powers(chunk: int, lengths: tuple[int, ...], base: int, *, gpu: bool) -> Any:
    """The powers of an element, of the exponents from the start of a chunk to its end."""
    if gpu:
        import cupy as xp
    else:
        xp = np
    p = LONG_FIELD.moduli[0]
    words = xp.empty(lengths[chunk], dtype=np.uint64)
    words[0], done = pow(base, sum(lengths[:chunk]), p), 1
    while done < len(words):
        step = min(done, len(words) - done)
        words[done : done + step] = words[:step] * np.uint64(pow(base, done, p)) % np.uint64(p)
        done += step
    return words.astype(np.uint32)[None]


def lengths_of(gib: float, chunks: int, item_bytes: int) -> tuple[int, ...]:
    """Lengths of equal chunks of items, whose number is a multiple of PATTERN, or fewer if there are few."""
    length = int(gib * GIB / chunks / item_bytes)
    return (max(1, length // PATTERN * PATTERN or length),) * chunks


@contextmanager
def products(resident: Resident, moduli: rd.ModuliSet, gib: float, chunks: int) -> Iterator[Call]:
    """``x * y`` of numbers of half the bits, to results that stay."""
    system = rd.RNS(moduli, bound=1 << (moduli.bits // 2 - 1))
    rng = np.random.default_rng(1)
    values = [[int.from_bytes(rng.bytes(moduli.bits // 16), "little") for _ in range(PATTERN)] for _ in "xy"]
    lengths = lengths_of(gib, chunks, 4 * len(moduli))
    patterns = [np.asarray(rd.from_ints(numbers, moduli).words) for numbers in values]
    with (
        resident(repeated, patterns[0], lengths, len(moduli)) as a,
        resident(repeated, patterns[1], lengths, len(moduli)) as b,
    ):
        x, y = rd.RNSArray(a, system), rd.RNSArray(b, system)
        expected = [s * t for s, t in zip(*values, strict=True)]

        def check(result: Any) -> bool:
            count = min(PATTERN, lengths[0])
            found = result[:count].to_ints().tolist() + result[-count:].to_ints().tolist()
            return bool(found == expected[:count] * 2)

        yield Call("x * y", lambda: x * y, check, 2 * x.nbytes)


@contextmanager
def transforms(resident: Resident, gib: float, chunks: int) -> Iterator[Call]:
    """Transforms of LINE elements each, to results that stay."""
    pattern = random_on_cpu(FIELDS.moduli, PATTERN * LINE).reshape(1, PATTERN, LINE)
    lengths = lengths_of(gib, chunks, 4 * LINE)
    with resident(repeated, pattern, lengths, 1, LINE) as words:
        x = rd.FieldArray(words, FIELDS)

        def check(result: Any) -> bool:
            few = min(8, lengths[0])  # of which what they must be is computed by the definition
            found = np.asarray(result[:few].to_ints())
            sums = pattern[0, :few].astype(object).sum(axis=1) % FIELDS.moduli[0]
            last = np.asarray(rd.intt(result[-few:]).to_ints())
            ends = pattern[0, (np.arange(-few, 0) + lengths[-1]) % PATTERN]
            return bool((found[:, 0] == sums).all() and (last == ends).all())

        yield Call(f"transforms of 2^{LINE.bit_length() - 1}", lambda: rd.ntt(x), check, x.nbytes)


@contextmanager
def long_transform(resident: Resident, bits: int, chunks: int) -> Iterator[Call]:
    """One transform of 2**bits elements, in chunks, to a result that stays."""
    p, base, count = LONG_FIELD.moduli[0], 5, 2**bits
    lengths = (count // chunks,) * chunks
    with resident(powers, base, lengths, 1) as words:
        x = rd.FieldArray(words, LONG_FIELD)
        root = int(LONG_FIELD.roots(count)[0])

        def check(result: Any) -> bool:
            places = [0, 1, count // 3, count // 2, count - 1]
            found = [int(result[j : j + 1].to_ints()[0]) for j in places]
            top = (pow(base, count, p) - 1) % p
            return found == [top * pow(base * pow(root, j, p) - 1, -1, p) % p for j in places]

        yield Call(f"one transform of 2^{bits}", lambda: rd.ntt(x), check, x.nbytes)


@contextmanager
def determinants(resident: Resident, gib: float, chunks: int) -> Iterator[Call]:
    """Determinants of matrices of SIDE rows modulo eight primes, which stay."""
    rows, fields = MATRIX_FIELDS.rows, MATRIX_FIELDS
    pattern = random_on_cpu(fields.moduli, PATTERN * SIDE * SIDE).reshape(rows, PATTERN, SIDE, SIDE)
    lengths = lengths_of(gib, chunks, 4 * rows * SIDE * SIDE)
    with resident(repeated, pattern, lengths, rows, SIDE, SIDE) as words:
        x = rd.FieldArray(words, fields)

        @functools.cache
        def known(number: int) -> list[int]:
            return [_determinant(pattern[i, number], p) for i, p in enumerate(fields.moduli)]

        def check(result: Any) -> bool:
            ends = result.words[:, [0, -1]].compute()
            return [known(0), known((lengths[-1] - 1) % PATTERN)] == np.asarray(_on_host(ends)).T.tolist()

        yield Call(f"det of {SIDE} x {SIDE}", lambda: rd.linalg.det(x), check, x.nbytes)


def _determinant(matrix: np.ndarray, p: int) -> int:
    """Determinant of a matrix modulo a prime, by Python's integers."""
    rows, result = [[int(v) for v in row] for row in matrix], 1
    for i in range(len(rows)):
        pivot = next((j for j in range(i, len(rows)) if rows[j][i]), None)
        if pivot is None:
            return 0
        if pivot != i:
            rows[i], rows[pivot], result = rows[pivot], rows[i], -result
        result = result * rows[i][i] % p
        inverse = pow(rows[i][i], -1, p)
        for j in range(i + 1, len(rows)):
            if factor := rows[j][i] * inverse % p:
                rows[j] = [(v - factor * w) % p for v, w in zip(rows[j], rows[i], strict=True)]
    return result % p


def _on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array
