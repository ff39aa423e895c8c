"""Chunks of elements under fewer or other primes: rescaling and base extension. No Dask in here.

Both read an element as an integer x, and are exact. Division by several primes, one after another, rounds
down as division by their product does: ``floor(floor(x / p) / q) = floor(x / (p q))``.
"""

from functools import lru_cache

import numpy as np

from rnsdask.backend import Array
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core import rows
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import MODULUS_MAX, ModuliSet
from rnsdask.core.wide_moduli import WideModuli
from rnsdask.fields.system import PrimeFields, fields_of

# Words that are rescaled at a time: on a CPU they stay in its cache, on a GPU they take longer than a launch.
_CPU_WORDS, _GPU_WORDS = 2**17, 2**26

# The same of base extension by digits, whose steps grow with the square of the primes: up to how many it is
# quicker than limbs, on a CPU and for words of 64 bits.
_DIGIT_WORDS, _MOST_DIGITS = 2**15, 12


@lru_cache(CACHED_SETS)
def some_fields(primes: tuple[int, ...]) -> PrimeFields:
    """Return the fields of some primes of other fields, the same object for the same primes."""
    return fields_of(WideModuli(primes) if max(primes) > MODULUS_MAX else ModuliSet(primes))


def rescale(words: Array, dropped: int, to_nearest: bool, system: PrimeFields) -> Array:
    """Divide by the product d of the last `dropped` primes, rounded down, or ``to_nearest`` with halves up.

    The result has the other primes. It does not depend on which integer, modulo the product of all primes,
    an element is read as: the quotients differ by a multiple of the product of the others.
    """
    matrix = as_matrix(words)
    kept = some_fields(system.primes[:-dropped])
    half = some_fields(system.primes[-dropped:]).moduli.product // 2 if to_nearest else 0
    out = np.empty_like(matrix, shape=(kept.rows, matrix.shape[1]), dtype=kept.word_dtype, order="C")
    budget = _CPU_WORDS if isinstance(matrix, np.ndarray) else _GPU_WORDS
    step = max(1, budget // system.rows)
    for first in range(0, matrix.shape[1], step):
        part, fields = _divide_by_last(matrix[:, first : first + step], half, system)
        for _ in range(1, dropped):
            part, fields = _divide_by_last(part, 0, fields)
        out[:, first : first + step] = part
    return out.reshape(kept.rows, *words.shape[1:])


def _divide_by_last(words: Array, half: int, system: PrimeFields) -> tuple[Array, PrimeFields]:
    """Quotients (n - 1, N) of ``x + half`` by the last prime, rounded down, and their fields."""
    kept, d = some_fields(system.primes[:-1]), system.primes[-1]
    last, field = words[-1:], some_fields((d,))
    if half:
        last = field.apply(rows.add, last.astype(field.word_dtype, copy=False), field.column(half))
    remainders = np.empty_like(words, shape=(kept.rows, words.shape[1]), dtype=kept.word_dtype, order="C")
    for row, p in zip(remainders, kept.primes, strict=True):
        row[...] = _remainders(last[0], d, p)
    if half:
        remainders = kept.apply(rows.subtract, remainders, kept.column(half))
    multiples = kept.apply(rows.subtract, words[:-1].astype(kept.word_dtype, copy=False), remainders)
    return kept.apply(rows.multiply, multiples, kept.column(pow(d, -1, kept.moduli.product))), kept


def _remainders(x: Array, bound: int, p: int) -> Array:
    """Remainders modulo p of words below a bound."""
    if bound <= p:
        return x
    p_word = x.dtype.type(p)
    return np.minimum(x, x - p_word) if bound <= 2 * p else x % p_word


def base_extend(words: Array, fields: PrimeFields, offset: int, system: PrimeFields) -> Array:
    """Elements of other `fields` that the integers from ``-offset`` to ``M - 1 - offset`` stand for.

    M is the product of the primes of `system`. Rows of common primes are copied.
    """
    matrix = as_matrix(words)
    own = {p: i for i, p in enumerate(system.primes)}
    new = [i for i, p in enumerate(fields.primes) if p not in own]
    out = np.empty_like(matrix, shape=(fields.rows, matrix.shape[1]), dtype=fields.word_dtype, order="C")
    for row, p in zip(out, fields.primes, strict=True):
        if p in own:
            row[...] = matrix[own[p]]
    if new and matrix.shape[1]:
        if offset:
            matrix = system.apply(rows.add, matrix, system.column(offset))
        others = some_fields(tuple(fields.primes[i] for i in new))
        has_few = system.word_dtype == np.uint64 and system.rows <= _MOST_DIGITS
        if has_few and isinstance(matrix, np.ndarray):
            found = _extend_by_digits(matrix, others, system)
        else:
            found = others.words_of_limbs(system.limbs_of(matrix), False, int)
        out[new] = others.apply(rows.subtract, found, others.column(offset)) if offset else found
    return out.reshape(fields.rows, *words.shape[1:])


def _extend_by_digits(words: Array, others: PrimeFields, system: PrimeFields) -> Array:
    """Elements (m, N) of other fields of the integers from 0 to M - 1, by their digits of mixed radix.

    The digits are the remainders of divisions by one prime after another (N. Szabó and R. Tanaka, "Residue
    Arithmetic and Its Applications to Computer Technology", 1967), and Horner's rule puts them together.
    """
    out = np.empty_like(words, shape=(others.rows, words.shape[1]), dtype=others.word_dtype, order="C")
    step = max(1, _DIGIT_WORDS // system.rows)
    for first in range(0, words.shape[1], step):
        part, fields, digits = words[:, first : first + step], system, []
        while fields.rows > 1:
            digits.append((part[-1], fields.primes[-1]))
            part, fields = _divide_by_last(part, 0, fields)
        found = _under_each(part[0], fields.primes[0], others)
        for digit, p in reversed(digits):
            found = others.apply(rows.fma, found, others.column(p), _under_each(digit, p, others))
        out[:, first : first + step] = found
    return out


def _under_each(x: Array, bound: int, fields: PrimeFields) -> Array:
    """Elements (m, N) of words (N,) below a bound."""
    out = np.empty_like(x, shape=(fields.rows, len(x)), dtype=fields.word_dtype, order="C")
    for row, p in zip(out, fields.primes, strict=True):
        row[...] = _remainders(x, bound, p)
    return out
