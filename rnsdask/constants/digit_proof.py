"""Constants of the proof of a bound by digits of 102 bits, for processors that multiply words of 52.

As in :mod:`.digits`, moduli are taken in groups of neighbours, here with products P_k of at most 2**97. Only
the CPU has this kernel (kernels/cpu/digit_proof.cpp).
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import gmpy2
import numpy as np

from rnsdask.constants.digits import Groups, Words, words_of
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.moduli import ModuliSet

_WORD = 2**51
_FACTOR_BITS = 52
_REDUCTION = 2**102  # which a sum is divided by as it is reduced
_OFFSET = 2**98
_GROUP_BITS = 97
_MOST_IN_GROUP = 16  # so that S_k < 2 * 16 * 2**97 fits a digit
_MOST_ROWS = 60  # so that what a sum is reduced to is below 2**103
_FRACTION_BITS = 45

# Fractions within a bound are at least so many times as many as their error, or nothing is proved.
_LEAST_ROOM = 8


@dataclass(frozen=True, eq=False)
class ProofConstants:
    """Constants of a proof that numbers are within a bound and have the residues that the first moduli give.

    Rows of `sources` are ``2**52 - m``, w_i, its quotient, the words of P_k / m_i, and of `targets` m, 1/m
    and -1/m modulo 2**52 and ``floor((2**52 - 1) / m)``; those of a group are in `source_groups` and
    `target_groups`, as the kernel has them. With M' the product of the first moduli, ``table`` holds for each
    group of targets ``2**102 M'/P_k``, and last ``-2**102 M'``, modulo its product: two words, with their sum
    between them. A number is within the bound if its fraction ``X/M' + 1/2``, in units of 2**-45, is from
    `lowest` to ``lowest + room``.
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

    None if there are too many moduli, one of the others is even, or the bound is too small beside the first.
    """
    product, unit = moduli.product, 2**_FRACTION_BITS
    error = 3 * len(_groups(moduli))
    lowest = -(-low * unit // product) + unit // 2
    highest = high * unit // product + unit // 2 - error
    if highest - lowest < _LEAST_ROOM * error:
        return None
    constants = _constants(moduli, others)
    return constants and replace(constants, lowest=lowest, room=highest - lowest)


@lru_cache(CACHED_SETS)
def _constants(moduli: ModuliSet, others: ModuliSet) -> ProofConstants | None:
    """The constants for any bound."""
    sources, targets = _groups(moduli), _groups(others)
    if len(sources) >= _MOST_ROWS or any(m % 2 == 0 for m in others):
        return None
    products, new_products = (
        [gmpy2.mpz(math.prod(group)) for group in groups] for groups in (sources, targets)
    )
    factors = [*(moduli.product // p for p in products), -moduli.product]
    columns = [[factor * _REDUCTION % p for factor in factors] for p in new_products]
    words = words_of([digit for column in columns for digit in column], 2)
    lower, upper = words.reshape(len(columns), -1, 2).transpose(2, 0, 1)
    return ProofConstants(
        Groups(_starts(sources), _source_rows(moduli, sources)),
        np.array([_source_group(int(p)) for p in products], dtype=np.uint64),
        np.stack([lower, lower + upper, upper], axis=-1),
        Groups(_starts(targets), np.array([_target_row(m) for m in others], dtype=np.uint64)),
        np.array([_target_group(int(p)) for p in new_products], dtype=np.uint64),
        lowest=0,
        room=0,
    )


def _groups(moduli: ModuliSet) -> list[list[int]]:
    """As many neighbours to a group as its product and their number allow."""
    groups: list[list[int]] = []
    for m in moduli:
        if not groups or math.prod(groups[-1]) * m > 2**_GROUP_BITS or len(groups[-1]) == _MOST_IN_GROUP:
            groups.append([])
        groups[-1].append(m)
    return groups


def _starts(groups: list[list[int]]) -> Any:
    return np.cumsum([0, *map(len, groups)]).astype(np.uint32)


def _source_rows(moduli: ModuliSet, groups: list[list[int]]) -> Words:
    parts = words_of([math.prod(group) // m for group in groups for m in group], 2)
    pairs = zip(moduli, moduli.partial_inverses, strict=True)
    rows = [(2**_FACTOR_BITS - m, w, (w << _FACTOR_BITS) // m) for m, w in pairs]
    return np.hstack([np.array(rows, dtype=np.uint64), parts])


def _source_group(product: int) -> tuple[int, int, int, int]:
    shift = 46 - product.bit_length()
    fraction = min((1 << 97 - shift) // product, 2**_FACTOR_BITS - 1)
    return 51 + shift, abs(shift), int(shift > 0), fraction


def _target_row(m: int) -> tuple[int, int, int, int]:
    inverse = pow(m, -1, 2**_FACTOR_BITS)
    return m, inverse, 2**_FACTOR_BITS - inverse, (2**_FACTOR_BITS - 1) // m


def _target_group(product: int) -> tuple[int, ...]:
    offset = -(-_OFFSET // product) * product
    upper, lower = divmod(product, _WORD)
    return pow(product, -1, _WORD), 2 * lower, upper, offset % _WORD, offset // _WORD
