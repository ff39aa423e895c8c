"""Constants of conversion and base extension by digits of 100 bits, for processors that multiply words of 52.

The moduli are taken in groups of neighbours with products P_k of at most 2**96. A number's terms are its
digits, or its ``S_k = sum(u_i P_k / m_i)``, below 2**100, and q. Only the CPU has these kernels
(kernels/cpu/digit_conversion.cpp).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.core.moduli import LIMB_BITS, ModuliSet

_WORD_BITS = 50  # of half a digit
_DIGIT_BITS = 2 * _WORD_BITS
_FACTOR_BITS = 52  # of what the processor multiplies
_GROUP_BITS = 96
_MOST_IN_GROUP = 16  # so that S_k < 2**100
_MOST_ROWS = 511
MOST_DIGIT_BITS = _GROUP_BITS * _MOST_ROWS
"""Bits of the numbers that these kernels take, about."""

_QUARTER_BITS = _DIGIT_BITS // 4
_AT_A_TIME = 2**17  # residues that become digits

Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Groups:
    """Group k is of the moduli ``starts[k]`` to ``starts[k + 1] - 1``, each with a row of `factors`."""

    starts: NDArray[np.uint32]
    factors: Words


@dataclass(frozen=True, eq=False)
class ForwardDigits:
    """``2**(100 d)`` modulo each P_k, a row for each of D digits; signed, last ``-2**(100 D)`` for signs."""

    table: Words
    targets: Groups


@dataclass(frozen=True, eq=False)
class ReverseDigits:
    """The D digits of each M / P_k, and last of ``2**(100 D) - M``, for q.

    `product` and `highest` are the words of M and of the range's highest value.
    """

    table: Words
    sources: Groups
    product: Words
    highest: Words


@dataclass(frozen=True, eq=False)
class ExtensionDigits:
    """M / P_k, and last -M, for q, modulo the product of each group of targets."""

    table: Words
    sources: Groups
    targets: Groups


@dataclass(frozen=True, eq=False)
class DivisionDigits:
    """Constants of division of residues by residues: conversion of operands, and of results back."""

    dividends: ReverseDigits
    divisors: ReverseDigits
    results: ForwardDigits
    signed: bool


@dataclass(frozen=True, eq=False)
class RemainderDigits:
    """For remainders by a divisor d: of each term's factor r, ``floor(2**200 r / d)`` and r itself.

    Factors are M / P_k and last -M, for q, modulo d; then, without fractions, -d and ``-2**100 d`` modulo
    ``2**(100 D)``, for the digits of k. `divisor` and `highest` are the words of d and of d - 1, in the D
    digits that hold 2 d.
    """

    table: Words
    sources: Groups
    divisor: Words
    highest: Words


def forward_digits(moduli: ModuliSet, limb_count: int, signed: bool) -> ForwardDigits | None:
    """The constants to convert limbs; None if there are too many."""
    count = -(-LIMB_BITS * limb_count // _DIGIT_BITS)
    if count + signed > _MOST_ROWS:
        return None
    sizes = np.array(moduli.moduli, dtype=np.uint64)
    ratio = np.array([2**_DIGIT_BITS % m for m in moduli], dtype=np.uint64)
    powers = np.empty((count + 1, len(sizes)), dtype=np.uint64)
    powers[0] = 1
    for before, power in pairwise(powers):
        power[:] = before * ratio % sizes
    powers[-1] = (sizes - powers[-1]) % sizes
    digits = _digits_of(powers if signed else powers[:-1], moduli)
    return ForwardDigits(_in_pairs(digits), _target_groups(moduli))


def reverse_digits(moduli: ModuliSet, limb_count: int, signed: bool) -> ReverseDigits | None:
    """The constants to convert residues to limbs; None if there are too many."""
    products = _products(moduli)
    if len(products) + 1 > _MOST_ROWS:
        return None
    # X' is less than 2 M, and the limbs are cut from the digits.
    count = -(-max(moduli.bits + 1, LIMB_BITS * limb_count) // _DIGIT_BITS)
    total = gmpy2.mpz(moduli.product)
    rows = [*(total // product for product in products), 2 ** (_DIGIT_BITS * count) - total]
    table = words_of(rows, 2 * count).reshape(-1, count, 2)
    _, highest = moduli.value_range(signed)
    return ReverseDigits(_in_pairs(table), _source_groups(moduli), *words_of([total, highest], 2 * count))


def extension_digits(moduli: ModuliSet, targets: ModuliSet) -> ExtensionDigits | None:
    """The constants of a base extension; None if there are too many."""
    products = _products(moduli)
    if len(products) + 1 > _MOST_ROWS:
        return None
    digits = _digits_of(partial_products_modulo(products, targets), targets)
    return ExtensionDigits(_in_pairs(digits), _source_groups(moduli), _target_groups(targets))


def partial_products_modulo(values: Sequence[int], targets: ModuliSet) -> NDArray[np.uint32]:
    """Products of all values but each one, and last minus the product of all, modulo each target.

    Computed from products of the values before and after, for values need not be coprime to targets.
    """
    sizes = np.array(targets.moduli, dtype=np.uint64)
    table = np.empty((len(values) + 1, len(sizes)), dtype=np.uint32)
    product = np.ones_like(sizes) % sizes
    for row, value in zip(table, values, strict=False):
        row[:] = product
        product = product * _modulo(value, sizes) % sizes
    table[-1] = (sizes - product) % sizes
    product = np.ones_like(sizes)
    for row, value in zip(table[-2::-1], values[::-1], strict=True):
        row[:] = row * product % sizes
        product = product * _modulo(value, sizes) % sizes
    return table


def _modulo(value: int, sizes: Words) -> Words:
    """A value of up to 96 bits modulo each size, of up to 32."""
    high, low = divmod(int(value), 2**64)
    if high == 0:
        return np.uint64(low) % sizes
    weight = (np.uint64(0) - sizes) % sizes  # 2**64 modulo each
    result: Words = (np.uint64(high) % sizes * weight + np.uint64(low) % sizes) % sizes
    return result


def remainder_digits(moduli: ModuliSet, divisor: int) -> RemainderDigits | None:
    """The constants of the remainders by a divisor; None if there are too many."""
    products = _products(moduli)
    if len(products) + 3 > _MOST_ROWS:
        return None
    count = -(-(divisor.bit_length() + 1) // _DIGIT_BITS)
    total, d = gmpy2.mpz(moduli.product), gmpy2.mpz(divisor)
    factors = [*(total // product % d for product in products), -total % d]
    fractions = [*((r << 2 * _DIGIT_BITS) // d for r in factors), 0, 0]
    of_k = [-d % 2 ** (_DIGIT_BITS * count), (-d << _DIGIT_BITS) % 2 ** (_DIGIT_BITS * count)]
    columns = words_of(fractions, 4), words_of([*factors, *of_k], 2 * count)
    table = np.hstack(columns).reshape(len(fractions), -1, 2)
    return RemainderDigits(_in_pairs(table), _source_groups(moduli), *words_of([d, d - 1], 2 * count))


def words_of(values: Iterable[Any], count: int) -> Words:
    """Little-endian words of half a digit of integers that are not negative and fit, one row for each."""
    size = -(-_WORD_BITS * count // 8) + 8
    data = np.frombuffer(b"".join([int(value).to_bytes(size, "little") for value in values]), dtype=np.uint8)
    bits = _WORD_BITS * np.arange(count)
    octets = np.ascontiguousarray(data.reshape(-1, size)[:, bits[:, None] // 8 + np.arange(8)])
    words = octets.view("<u8")[:, :, 0].astype(np.uint64) >> (bits % 8).astype(np.uint64)
    masked: Words = words & np.uint64(2**_WORD_BITS - 1)
    return masked


def _digits_of(residues: NDArray[Any], moduli: ModuliSet) -> Words:
    """Digits (R, G, 2) modulo the product of each group of numbers with residues (R, n).

    A number modulo P_k is the sum of ``u_i P_k / m_i``, less a multiple of P_k.
    """
    sizes, groups = np.array(moduli.moduli, dtype=np.uint64), _groups(moduli)
    products = [gmpy2.mpz(math.prod(group)) for group in groups]
    cofactors = [p // m for p, group in zip(products, groups, strict=True) for m in group]
    pairs = zip(cofactors, moduli, strict=True)
    inverses = np.array([int(gmpy2.invert(cofactor, m)) for cofactor, m in pairs], dtype=np.uint64)
    # Of a quarter of a digit, so that sums of up to 16 products by residues fit.
    quarters = [
        np.array([int(c >> _QUARTER_BITS * k) % 2**_QUARTER_BITS for c in cofactors], dtype=np.uint64)
        for k in range(4)
    ]
    starts, most = np.array(_bounds(moduli)[:-1]), max(map(len, groups))
    multiples = [words_of([p << k for p in products], 2) for k in reversed(range((most - 1).bit_length()))]
    digits = np.empty((len(residues), len(groups), 2), dtype=np.uint64)
    step = max(1, _AT_A_TIME // len(sizes))
    for first in range(0, len(residues), step):
        u = residues[first : first + step] * inverses % sizes
        carry: Any = np.uint64(0)
        parts = []
        for quarter in quarters:
            carry = np.add.reduceat(u * quarter, starts, axis=1) + carry
            parts.append(carry & np.uint64(2**_QUARTER_BITS - 1))
            carry = carry >> np.uint64(_QUARTER_BITS)
        low, high = (parts[k] + (parts[k + 1] << np.uint64(_QUARTER_BITS)) for k in (0, 2))
        for words in multiples:
            is_less = (high < words[:, 1]) | ((high == words[:, 1]) & (low < words[:, 0]))
            low -= np.where(is_less, np.uint64(0), words[:, 0])
            borrow = low >> np.uint64(63)
            low += borrow << np.uint64(_WORD_BITS)
            high -= np.where(is_less, np.uint64(0), words[:, 1]) + borrow
        digits[first : first + step] = np.stack([low, high], axis=-1)
    return digits


def _bounds(moduli: ModuliSet) -> list[int]:
    """Starts of groups, and the end; a group has as many moduli as its product allows."""
    bounds, product = [0], 1
    for i, m in enumerate(moduli):
        if product * m > 2**_GROUP_BITS or i - bounds[-1] == _MOST_IN_GROUP:
            bounds.append(i)
            product = 1
        product *= m
    return [*bounds, len(moduli)]


def _groups(moduli: ModuliSet) -> list[Sequence[int]]:
    bounds = _bounds(moduli)
    return [moduli.moduli[i:j] for i, j in pairwise(bounds)]


def _products(moduli: ModuliSet) -> list[gmpy2.mpz]:
    return [gmpy2.mpz(math.prod(group)) for group in _groups(moduli)]


def _source_groups(moduli: ModuliSet) -> Groups:
    """Rows of m, w_i, its quotient, the words of P_k / m_i; of b bits, 52 - b and floor(2**(50 + b) / m)."""
    products = [p for p, group in zip(_products(moduli), _groups(moduli), strict=True) for _ in group]
    words = words_of([p // m for p, m in zip(products, moduli, strict=True)], 2)
    factors = []
    for m, inverse in zip(moduli, moduli.partial_inverses, strict=True):
        bits = m.bit_length()
        factors.append(
            (m, inverse, (inverse << _FACTOR_BITS) // m, _FACTOR_BITS - bits, (1 << 50 + bits) // m)
        )
    first, last = np.hsplit(np.array(factors, dtype=np.uint64), [3])
    return Groups(np.array(_bounds(moduli), dtype=np.uint32), np.hstack([first, words, last]))


def _target_groups(moduli: ModuliSet) -> Groups:
    """Rows of m, ``|2**(50 j)|`` modulo m of five words, and their quotients."""
    rows = []
    for m in moduli:
        powers = [pow(2, _WORD_BITS * j, m) for j in range(5)]
        rows.append([m, *powers, *((power << _FACTOR_BITS) // m for power in powers)])
    return Groups(np.array(_bounds(moduli), dtype=np.uint32), np.array(rows, dtype=np.uint64))


def _in_pairs(table: Words) -> Words:
    """A table of row, column and word as kernels read it: of each column, the start of sums, then its pairs.

    Each is three times two words. A pair of rows has their lower words, the second row's first, their upper
    ones, and the sums of both.
    """
    padded = np.pad(table, ((0, len(table) % 2), (0, 0), (0, 0)))
    words = np.concatenate([padded, padded.sum(axis=2, keepdims=True)], axis=2)
    pairs = words.reshape(-1, 2, *words.shape[1:])[:, ::-1].transpose(2, 0, 3, 1)
    return np.ascontiguousarray(np.concatenate([_starts(pairs), pairs], axis=1).reshape(len(pairs), -1, 6))


def _starts(pairs: Words) -> Words:
    """Minus the sums of the products of pairs along axis 1, their lower 52 bits and what is above these."""
    half = np.uint64(_FACTOR_BITS // 2)
    upper, lower = pairs >> half, pairs & np.uint64(2**26 - 1)
    low = (lower[..., 0] * lower[..., 1]).sum(axis=1, keepdims=True)
    middle = (lower * upper[..., ::-1]).sum(axis=(1, 3), keepdims=True)[..., 0]
    high = (upper[..., 0] * upper[..., 1]).sum(axis=1, keepdims=True)
    middle += low >> half
    low = (low & np.uint64(2**26 - 1)) + ((middle & np.uint64(2**26 - 1)) << half)
    return -np.stack([low, high + (middle >> half)], axis=-1)
