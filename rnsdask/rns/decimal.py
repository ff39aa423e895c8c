"""Conversion between residues and decimal limbs, base 10**9, the form of integers in text.

Limbs are ``uint32`` of shape ``(N, L)``, the least significant first.
"""

from collections.abc import Iterable

import gmpy2
import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import cpu
from rnsdask.constants import DECIMAL_BASE, DECIMAL_DIGITS, decimal_constants, decimal_forward_constants
from rnsdask.core.layout import as_matrix, check_residue_array
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.convert import residues_to_ints
from rnsdask.rns.system import RNS

# Moduli from which GMP is quicker than a table whose size grows with their square, and fewer for few numbers,
# as measured.
_MANY_MODULI, _MODULI_FOR_EACH = 2048, 512


def decimal_to_residues(
    limbs: NDArray[np.uint32], moduli: ModuliSet, signed: bool = False, *, checked: bool = True
) -> NDArray[np.uint32]:
    """Convert decimal limbs (N, L) to residues (n, N); ValueError if `checked` and a number is out of range.

    Signed integers are in ten's complement: the last limb is 1 for a negative one, and counts
    ``-10**(9 (L - 1))``.
    """
    constants = decimal_forward_constants(moduli, limbs.shape[1], bool(signed))
    outside = cpu.first_outside(limbs, constants) if checked else None
    if outside is not None:
        raise ValueError(f"the number at position {outside} is out of the range of the moduli set")
    residues = np.empty((len(moduli), len(limbs)), dtype=np.uint32)
    cpu.limbs_to_residues(limbs, constants, residues)
    return residues


def residues_to_decimal(
    residues: NDArray[np.uint32], moduli: ModuliSet, signed: bool = False
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Convert residues to decimal limbs (N, L) of magnitudes, and a mask (N,) of the negative numbers."""
    check_residue_array(residues, moduli)
    if len(moduli) >= min(_MANY_MODULI, _MODULI_FOR_EACH * max(1, residues[0].size)):
        return decimal_limbs(residues_to_ints(residues, moduli, signed).reshape(-1).tolist())
    return cpu.residues_to_decimal(as_matrix(residues), decimal_constants(moduli, bool(signed)))


def decimal_to_words(limbs: NDArray[np.uint32], *, system: RNS, signed: bool) -> NDArray[np.uint32]:
    """Convert decimal limbs to residues of a system, which may be signed even if the limbs are not."""
    if system.signed and not signed:
        limbs = np.pad(limbs, ((0, 0), (0, 1)))
    return decimal_to_residues(limbs, system.moduli, system.signed)


def words_to_decimal(
    words: NDArray[np.uint32], *, system: RNS
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Convert residues of a system to decimal limbs, and a mask of the negative numbers."""
    return residues_to_decimal(words, system.moduli, system.signed)


def decimal_limbs(values: Iterable[int]) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Magnitudes of integers in base 10**9, and a mask of the negative ones, as kernels format them."""
    integers = [gmpy2.mpz(value) for value in values]
    texts = [abs(value).digits(10) for value in integers]
    width = -(-max(map(len, texts), default=1) // DECIMAL_DIGITS)
    padded = "".join(text.zfill(width * DECIMAL_DIGITS) for text in texts).encode("ascii")
    digits = np.frombuffer(padded, np.uint8).reshape(len(texts), width, DECIMAL_DIGITS) - np.uint8(ord("0"))
    limbs = np.zeros(digits.shape[:2], np.uint32)
    for digit in np.moveaxis(digits, -1, 0):
        limbs = limbs * np.uint32(10) + digit
    return limbs[:, ::-1].copy(), np.array([value < 0 for value in integers], dtype=np.bool_)


def decimal_to_ints(limbs: NDArray[np.uint32], signed: bool) -> list[int]:
    """Convert decimal limbs, as in :func:`decimal_to_residues`, to Python ints."""
    count = limbs.shape[1] - signed
    lines = cpu.format_decimal(limbs[:, :count].copy(), np.zeros(len(limbs), dtype=np.bool_)).tobytes()
    complement = DECIMAL_BASE**count
    is_negative = limbs[:, -1] if signed else np.zeros(len(limbs), dtype=np.uint32)
    pairs = zip(lines.split(), is_negative.tolist(), strict=True)
    return [int(gmpy2.mpz(digits, 10)) - complement * negative for digits, negative in pairs]
