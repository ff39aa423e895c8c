"""Arithmetic of residues, element by element, their running sums, checks and transposition."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.cpu.files import extend_checksum
from rnsdask.backend.protocol import FITS, Array, Moduli
from rnsdask.constants import SumCheck, WindowCheck, last_residues, modulus_table, wide_modulus_table
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.wide_moduli import WideModuli


def apply(
    operation: str, operands: Sequence[Array], moduli: Moduli, out: Array, method: str = "best"
) -> None:
    if isinstance(moduli, WideModuli):
        _cpu.wide_apply(operation, operands, wide_modulus_table(moduli), out, method)
        return
    _cpu.apply(operation, operands, modulus_table(moduli), out)


def apply_checked(
    operation: str, operands: Sequence[Array], moduli: ModuliSet, check: SumCheck, out: Array
) -> NDArray[np.uint8] | None:
    states = np.empty(out.shape[1], dtype=np.uint8)
    constants = (modulus_table(moduli), check.keys.coefficients, check.keys.start, check.limits)
    _cpu.apply_checked(operation, operands, *constants, out, states)
    return _unless_all_fit(states)


def apply_windowed(
    operation: str, operands: Sequence[Array], moduli: ModuliSet, check: WindowCheck, out: Array
) -> NDArray[np.uint8] | None:
    states = np.empty(out.shape[1], dtype=np.uint8)
    constants = (modulus_table(moduli), check.keys.coefficients, check.keys.start, check.limits)
    _cpu.apply_windowed(operation, operands, check.deciding, *constants, out, states)
    return _unless_all_fit(states)


def _unless_all_fit(states: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    # One look at all: searching them takes longer.
    return states if states.size and int(states.max()) != FITS else None


def wide_methods() -> list[str]:
    """Instruction sets for moduli beyond 32 bits: those too long for a set are left to the one before it."""
    methods: list[str] = _cpu.wide_methods()
    return methods


def power(a: Array, exponent: int, moduli: Moduli, out: Array, method: str = "best") -> None:
    if isinstance(moduli, WideModuli):
        _cpu.wide_power(a, exponent, wide_modulus_table(moduli), out, method)
    else:
        _cpu.power(a, exponent, modulus_table(moduli), out)


def inverse(a: Array, moduli: Moduli, out: Array) -> None:
    if isinstance(moduli, WideModuli):
        _cpu.wide_inverse(a, wide_modulus_table(moduli), out)
    else:
        _cpu.inverse(a, modulus_table(moduli), out)


def running_sums(residues: Array, starts: Array, moduli: ModuliSet) -> NDArray[np.uint32]:
    if not residues[:1, :1].flags.c_contiguous:  # lines that go together
        residues = np.ascontiguousarray(residues)
    result = np.empty(residues.shape, dtype=np.uint32)
    _cpu.running_sums(residues, np.ascontiguousarray(starts), last_residues(moduli), result)
    return result


def first_invalid(residues: Array, moduli: ModuliSet) -> tuple[int, int] | None:
    row, index = _cpu.first_invalid(residues, last_residues(moduli))
    return None if row < 0 else (row, index)


def exceeds(residues: Array, last: NDArray[np.uint32]) -> bool:
    """Whether a residue of a row is above the row's last one: for pieces of a chunk, as they are read."""
    row, _ = _cpu.first_invalid(residues, last)
    return bool(row >= 0)


def read_all(residues: Array) -> int:
    total: int = _cpu.read_all(residues)
    return total


def crc32c(words: Array) -> int:
    return extend_checksum(0, words.view(np.uint8))


def crc32c_and_validity(words: Array, moduli: ModuliSet, rows: int) -> tuple[int, bool]:
    return crc32c(words), first_invalid(words[:-1].reshape(rows, -1)[: len(moduli)], moduli) is None


def transpose(matrix: Array, out: Array) -> None:
    _cpu.transpose(matrix, out)
