"""Constants of the proof of a bound by digits of 100 bits, for processors that multiply words of 52.

As in :mod:`.digits`, moduli are taken in groups of neighbours, here of g moduli with a product P_k such that
``2 g P_k <= 2**100``. Only the CPU has this kernel (kernels/cpu/digit_proof.cpp).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any

import gmpy2
import numpy as np

from rnsdask.constants.digits import Groups, Words
from rnsdask.constants.factors import CACHED_SETS
from rnsdask.core.moduli import ModuliSet

_WORD_BITS = 50
_WORD = 2**_WORD_BITS
_FACTOR_BITS = 52
_DIGIT = 2**100  # which no S_k < 2 g P_k reaches
_MOST_BITS = 97  # of P_k, or shifts are negative
_MOST_IN_GROUP = 16  # so that S_k < 2**(b + 5), of P_k of b bits
_MOST_GROUPS = 60  # so that what is left of a sum is less than 2**7 P
_FRACTION_BITS = 45

# Fractions within a bound are at least so many times as many as their error, or nothing is proved.
_LEAST_ROOM = 8


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
        Groups(_starts(targets), _words(math.prod(group) // m for group in targets for m in group)),
        np.array(
            [_target_group(group, *row) for group, row in zip(targets, rows, strict=True)], dtype=np.uint64
        ),
        lowest=0,
        room=0,
    )


def _groups(moduli: ModuliSet) -> list[list[int]]:
    """As many neighbours to a group as its product and their number allow."""
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


def _words(values: Iterable[int]) -> Words:
    """Rows of two words of numbers below 2**100, the lower one first."""
    return np.array([divmod(int(value), _WORD)[::-1] for value in values], dtype=np.uint64)


def _source_rows(moduli: ModuliSet, groups: list[list[int]]) -> Words:
    inverses = moduli.partial_inverses
    quotients = [(w << _FACTOR_BITS) // m for m, w in zip(moduli, inverses, strict=True)]
    parts = (math.prod(group) // m for group in groups for m in group)
    words = _words(w * part for w, part in zip(inverses, parts, strict=True))
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
    lower, upper = _words(factors).T.reshape(2, -1, 2)[:, :, ::-1]
    return np.stack([lower, upper, lower + upper], axis=1)


def _target_group(group: list[int], factors: list[int], last: int) -> tuple[int, ...]:
    product = math.prod(group)
    start = -sum(a * b for a, b in zip(factors[::2], factors[1::2], strict=True)) % product
    upper, lower = divmod(product, _WORD)
    starts = (word + _WORD - 1 for word in divmod(start, _WORD)[::-1])
    inverse = pow(product, -1, _WORD)
    return inverse, _WORD - inverse, 4 * lower, upper, *starts, *divmod(last, _WORD)[::-1]
