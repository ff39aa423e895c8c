"""Constants of proofs that numbers are within a bound."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.constants.digits import Groups, Words
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.constants.keys import coefficient_slack, key_coefficients
from rnsdask.core.moduli import ModuliSet, unchecked_set


def proof_window(moduli: ModuliSet, low: int, high: int, bits: int, error: int) -> tuple[int, int]:
    """Start s and room of sums T of fractions that prove that numbers X are from ``low <= 0`` to `high`.

    T falls short of ``t = 2**bits X / M`` by at most the error. X is an integer: with s the greatest below
    ``2**bits (1 - low) / M`` and r below ``2**bits (high + 1) / M``, ``0 <= T + s <= s + r - error`` proves
    ``low <= X <= high``, as ``-s <= T <= t <= T + error <= r``.
    """
    start, most = (-(-((1 + abs(end)) << bits) // moduli.product) - 1 for end in (low, high))
    return start, start + most - error


# Constants of the proof of a bound by products of bytes, for processors that multiply matrices of them.
#
# Only GPUs have this kernel (kernels/cuda/byte_proof.cu).

MOST_WORDS = 6
"""Words of 32 bits of a fraction, at most."""

_SEGMENTS = 4  # of a fraction with its quotient, and residues that are compared at a time
_LANES = 4  # threads among which a step's bytes are divided
_OWN = 8  # bytes of each, of a step of 32
_BYTES_OF_WORD = 4  # bytes
_BYTE = 255
_COLUMNS = 8  # of a matrix
_MATRICES = {2: 8, 3: 6, 4: 8}  # matrices that are multiplied at a time, by the bytes of a residue

# Fractions within a bound are at least 2**40 times as many as their error.
_BYTE_ROOM_BITS = 40


@dataclass(frozen=True, eq=False)
class ByteProofTables:
    """Constants that depend on the moduli alone.

    `moduli` determine numbers within the bound, and their residues are extended to `others`, which are odd;
    `order` are the rows of the residues modulo all these, `bytes` those of a residue, and `words` the words
    of 32 bits of each of four segments of a fraction with its quotient, which is the last segment.
    """

    moduli: ModuliSet
    others: tuple[int, ...]
    order: tuple[int, ...]
    bytes: int
    words: int

    @property
    def fraction_bits(self) -> int:
        """Bits F of a fraction."""
        return _fraction_bits(self.words)

    @property
    def quotients(self) -> int:
        """Residues that the quotient occupies after the others; it is below 2**48, or 2**32 if short."""
        return -(-(2 + 2 * self.words) // self.bytes)

    @property
    def runs(self) -> int:
        """How many of these each of four threads has of a number."""
        return -(-(len(self.moduli) + self.quotients) // _LANES)

    @property
    def steps(self) -> int:
        """How many times 32 bytes, 8 for each of four threads, hold them."""
        return -(-self.runs * self.bytes // _OWN)

    @property
    def is_wide(self) -> bool:
        """Whether what residues are the sums of can be 2**32 or more together with a modulus."""
        terms = self.bytes * (len(self.moduli) + self.quotients)
        return max(self.others, default=0) * (_BYTE * terms + 1) >= 2**32

    @property
    def tests_of_pass(self) -> int:
        """How many residues are compared at a time."""
        return _MATRICES[self.bytes] * _COLUMNS // self.bytes

    @property
    def passes(self) -> int:
        """How many times residues are compared."""
        return -(-len(self.others) // self.tests_of_pass)

    @property
    def vectors(self) -> int:
        """How many vectors of 16 bytes the table has."""
        return 32 * self.steps * (self.words + self.passes * _MATRICES[self.bytes] // 2)

    @property
    def rows(self) -> NDArray[np.uint32]:
        """Rows of the moduli; the first row fills up the last run."""
        return _filled(self.order[: len(self.moduli)], -(-len(self.moduli) // _LANES) * _LANES)

    @property
    def compared(self) -> NDArray[np.uint32]:
        """Rows of the residues to compare; the first row fills up the last pass."""
        return _filled(self.order[len(self.moduli) :], self.passes * self.tests_of_pass)

    @property
    def tests(self) -> NDArray[np.uint32]:
        """Constants to compare residues with (struct ResidueTest); padding of the last pass always fits."""
        tests = np.zeros((self.passes * self.tests_of_pass, 4), dtype=np.uint32)
        for test, m in zip(tests, self.others, strict=False):
            test[:3] = m, pow(m, -1, 2**32), (2**32 - 1) // m
        return tests

    @property
    def table(self) -> NDArray[np.uint32]:
        """Table of vectors (vectors, 4), made anew at each use: hosts do not need it, and it is large.

        It has bytes, as matrix units take them, of the coefficients ``c_i = floor(2**F w_i / m_i)`` of
        fractions, then of ``w_i P / m_i`` and -P modulo the others, times ``2**(8 b)`` for byte b of a
        residue, or of the quotient; one after the other those that are multiplied together.
        """
        return np.concatenate(
            [self._as_units_take_them(group) for group in (self._fractions(), *self._extension())]
        )

    def _fractions(self) -> NDArray[np.uint8]:
        """Bytes (b, column) of coefficients; a thread has those of its segment."""
        size = _SEGMENTS * self.words * _BYTES_OF_WORD
        coefficients = key_coefficients(self.moduli, self.fraction_bits)
        shifted = [c << 8 * b & (1 << 8 * size) - 1 for c in coefficients for b in range(self.bytes)]
        shifted += [0] * (self.quotients * self.bytes)
        found = np.frombuffer(b"".join(c.to_bytes(size, "little") for c in shifted), dtype=np.uint8)
        return _in_columns(found.reshape(len(shifted), _SEGMENTS, -1))

    def _extension(self) -> list[NDArray[np.uint8]]:
        """Bytes (b, column) of each pass's terms; a thread has those of every fourth residue."""
        product = gmpy2.mpz(self.moduli.product)
        parts = zip(self.moduli.partial_products, self.moduli.partial_inverses, strict=True)
        terms = [_shifted(gmpy2.mpz(part * w), self.bytes, self.others) for part, w in parts]
        terms.append(_shifted(-product, self.quotients * self.bytes, self.others))
        factors = np.zeros((sum(map(len, terms)), self.passes * self.tests_of_pass), dtype="<u4")
        factors[:, : len(self.others)] = np.concatenate(terms)
        shape = len(factors), self.passes, self.tests_of_pass // _SEGMENTS, _SEGMENTS, _BYTES_OF_WORD
        tests = factors.view(np.uint8).reshape(shape)
        return [_in_columns(tests[:, k, :, :, : self.bytes].swapaxes(1, 2)) for k in range(self.passes)]

    def _as_units_take_them(self, factors: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """Factors (b, column) as vectors (step, pair, 32) of 4 words.

        Thread 4 g + t of a warp has bytes of residues t, t + 4, ... one after the other, 8 a step, in columns
        g of a pair of matrices.
        """
        columns, size = factors.shape[1], self.bytes
        padded = np.zeros((self.runs * _LANES * size, columns), dtype=np.uint8)
        padded[: len(factors)] = factors
        by_lane = padded.reshape(self.runs, _LANES, size, columns).swapaxes(0, 1)
        own = np.zeros((_LANES, _OWN * self.steps, columns), dtype=np.uint8)
        own[:, : self.runs * size] = by_lane.reshape(_LANES, self.runs * size, columns)
        # lanes, steps, 2 halves, 4 bytes, pairs, 2 matrices, 8 columns
        parts = own.reshape(_LANES, self.steps, 2, _BYTES_OF_WORD, -1, 2, _COLUMNS).transpose(
            1, 4, 6, 0, 5, 2, 3
        )
        return np.ascontiguousarray(parts).view("<u4").reshape(-1, 4)


@dataclass(frozen=True, eq=False)
class ByteProofConstants:
    """Constants of a proof that numbers are from `low` to `high`.

    A number is within the bound if its fraction and `start` are at most `room`, and its other residues are
    those that the first ones give.
    """

    tables: ByteProofTables
    start: int
    room: int


def byte_proof_constants(moduli: ModuliSet, low: int, high: int) -> ByteProofConstants:
    """Constants to prove that numbers are from ``low <= 0`` to ``high < M/4``.

    Fractions within the bound are at least ``2**40`` times their error.
    """
    # One modulus at most is even: sums modulo it have no inverse to be compared by.
    order = sorted(range(len(moduli)), key=lambda i: moduli[i] % 2)
    product, count = 1, 0
    while product < 4 * (high + 1):
        product *= moduli[order[count]]
        count += 1
    tables = _byte_tables(moduli, tuple(order), count)
    bits = tables.fraction_bits
    error = coefficient_slack(tables.moduli, bits)
    return ByteProofConstants(tables, *proof_window(tables.moduli, low, high, bits, error))


@lru_cache(CACHED_SETS)
def _byte_tables(moduli: ModuliSet, order: tuple[int, ...], count: int) -> ByteProofTables:
    """Tables for the first `count` moduli in an order; fewer do not determine the numbers."""
    sizes = [moduli[i] for i in order]
    size = max(-(-(max(sizes) - 1).bit_length() // 8), 2)
    greatest = sum(sizes[:count])  # quotients and errors are less
    room_bits = _fraction_bits(1) - greatest.bit_length() - (4 * max(sizes)).bit_length()
    is_short = room_bits >= _BYTE_ROOM_BITS and greatest < 2**32
    return ByteProofTables(
        unchecked_set(sizes[:count]), tuple(sizes[count:]), order, size, 1 if is_short else 2
    )


def _fraction_bits(words: int) -> int:
    return (_SEGMENTS - 1) * words * 8 * _BYTES_OF_WORD


def _filled(rows: tuple[int, ...], count: int) -> NDArray[np.uint32]:
    filled = np.zeros(count, dtype=np.uint32)
    filled[: len(rows)] = rows
    return filled


def _shifted(value: gmpy2.mpz, count: int, moduli: tuple[int, ...]) -> NDArray[np.uint64]:
    """A value times the first `count` powers of 2**8 modulo each, as (count, moduli)."""
    sizes, terms = np.array(moduli, dtype=np.uint64), np.empty((count, len(moduli)), dtype=np.uint64)
    term = np.array([value % m for m in moduli], dtype=np.uint64)
    for b in range(count):
        terms[b] = term
        term = (term << np.uint64(8)) % sizes
    return terms


def _in_columns(parts: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bytes (b, thread, *bytes) as columns (b, column): a thread has two of each eight."""
    count, threads, *own = parts.shape
    pairs = parts.reshape(count, threads, math.prod(own) // 2, 2).swapaxes(1, 2)
    return pairs.reshape(count, -1)


# Constants of the proof of a bound by digits of 100 bits, for processors that multiply words of 52.
#
# As in digits.py, moduli are taken in groups of neighbours, here of g moduli with a product P_k such
# that ``2 g P_k <= 2**100``. Only the CPU has this kernel (kernels/cpu/digit_proof.cpp).

_WORD_BITS = 50
_WORD = 2**_WORD_BITS
_FACTOR_BITS = 52
_DIGIT = 2**100  # which no S_k < 2 g P_k reaches
_MOST_BITS = 97  # of P_k, or shifts are negative
_MOST_IN_GROUP = 16  # so that S_k < 2**(b + 5), of P_k of b bits
_MOST_GROUPS = 60  # so that what is left of a sum is less than 2**7 P
_FRACTION_BITS = 45

# Least quotient of the number of fractions within a bound and of their error; else nothing is proved.
_LEAST_DIGIT_ROOM = 8


@dataclass(frozen=True, eq=False)
class ProofConstants:
    """Constants of a proof that numbers are within a bound and have the residues that the first moduli give.

    Rows of `sources` are ``floor(2**52 w_i / m_i)`` and the words of ``w_i P_k / m_i``, and of `targets`
    those of ``P/m``; those of a group are in `source_groups` and `target_groups`, as the kernel has them.
    With M' the product of the first moduli and s the sum of a target group's ``P/m``, the terms S_k have the
    factors ``-s M'/P_k`` modulo P, and the quotient ``s M'``. ``table[h, p]`` holds those of group h for the
    p-th pair of terms, the second one's first: the lower word of both, the upper words, and the sums of both.
    A number is within the bound if its fraction ``X/M' + 1/2``, in units of 2**-45, is from `lowest`
    to ``lowest + room``.
    """

    sources: Groups
    source_groups: Words
    table: Words
    targets: Groups
    target_groups: Words
    lowest: int
    room: int


def proof_constants(moduli: ModuliSet, others: ModuliSet, low: int, high: int) -> ProofConstants | None:
    """Constants to prove that numbers are from `low` to `high`, given the first moduli and the others.

    None if there are too many moduli, one of the others is even, or the bound is too small for the first.
    """
    product, unit = moduli.product, 2**_FRACTION_BITS
    error = 3 * len(_groups(moduli))
    lowest = -(-low * unit // product) + unit // 2
    highest = high * unit // product + unit // 2 - error
    if highest - lowest < _LEAST_DIGIT_ROOM * error:
        return None
    constants = _digit_constants(moduli, others)
    return constants and replace(constants, lowest=lowest, room=highest - lowest)


@lru_cache(CACHED_SETS)
def _digit_constants(moduli: ModuliSet, others: ModuliSet) -> ProofConstants | None:
    """The constants for any bound."""
    sources, targets = _groups(moduli), _groups(others)
    if len(sources) > _MOST_GROUPS or any(m % 2 == 0 for m in others):
        return None
    whole = gmpy2.mpz(moduli.product)
    parts = [whole // math.prod(group) for group in sources]
    rows = [_factors(group, parts, whole) for group in targets]
    pairs = np.stack([_pairs(factors) for factors, _ in rows])
    return ProofConstants(
        Groups(_starts(sources), _source_rows(moduli, sources)),
        np.array([_source_group(math.prod(group)) for group in sources], dtype=np.uint64),
        pairs.reshape(*pairs.shape[:2], -1),
        Groups(_starts(targets), _digit_words(math.prod(group) // m for group in targets for m in group)),
        np.array(
            [_target_group(group, *row) for group, row in zip(targets, rows, strict=True)], dtype=np.uint64
        ),
        lowest=0,
        room=0,
    )


def _groups(moduli: ModuliSet) -> list[list[int]]:
    """Group neighbouring moduli, as many as their product and number allow."""
    groups: list[list[int]] = []
    for m in moduli:
        if not groups or not _fits([*groups[-1], m]):
            groups.append([])
        groups[-1].append(m)
    return groups


def _fits(group: list[int]) -> bool:
    product, count = math.prod(group), len(group)
    return product < 2**_MOST_BITS and 2 * count * product <= _DIGIT and count <= _MOST_IN_GROUP


def _starts(groups: list[list[int]]) -> Any:
    return np.array(list(accumulate(map(len, groups), initial=0)), dtype=np.uint32)


def _digit_words(values: Iterable[int]) -> Words:
    """Rows of two words of numbers below 2**100, the lower one first."""
    return np.array([divmod(int(value), _WORD)[::-1] for value in values], dtype=np.uint64)


def _source_rows(moduli: ModuliSet, groups: list[list[int]]) -> Words:
    inverses = moduli.partial_inverses
    quotients = [(w << _FACTOR_BITS) // m for m, w in zip(moduli, inverses, strict=True)]
    parts = (math.prod(group) // m for group in groups for m in group)
    words = _digit_words(w * part for w, part in zip(inverses, parts, strict=True))
    return np.hstack([np.array(quotients, dtype=np.uint64)[:, None], words])


def _source_group(product: int) -> tuple[int, ...]:
    shift = 47 - product.bit_length()
    fraction = (1 << 97 - shift) // product
    upper, lower = divmod(product, _WORD)
    factor = 2**_FACTOR_BITS
    return factor - lower, factor - 4 - upper, _WORD_BITS + shift, abs(shift), int(shift > 0), fraction


def _factors(group: list[int], parts: list[Any], whole: Any) -> tuple[list[int], int]:
    """Factors of the terms, an even number of them, and of the quotient, modulo a group's product."""
    product = math.prod(group)
    scale = sum(product // m for m in group)
    factors = [int(-scale * part % product) for part in parts]
    return factors + [0] * (len(factors) % 2), int(scale * whole % product)


def _pairs(factors: list[int]) -> Words:
    """The words of factors in pairs, as the kernel has them: (pairs, 3, 2)."""
    lower, upper = _digit_words(factors).T.reshape(2, -1, 2)[:, :, ::-1]
    return np.stack([lower, upper, lower + upper], axis=1)


def _target_group(group: list[int], factors: list[int], last: int) -> tuple[int, ...]:
    product = math.prod(group)
    start = -sum(a * b for a, b in zip(factors[::2], factors[1::2], strict=True)) % product
    upper, lower = divmod(product, _WORD)
    starts = (word + _WORD - 1 for word in divmod(start, _WORD)[::-1])
    inverse = pow(product, -1, _WORD)
    return inverse, _WORD - inverse, 4 * lower, upper, *starts, *divmod(last, _WORD)[::-1]
