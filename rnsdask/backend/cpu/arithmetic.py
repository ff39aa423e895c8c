"""Arithmetic of residues, element by element, and their running sums."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import FITS, Array
from rnsdask.constants import SumCheck, WindowCheck, last_residues, modulus_table
from rnsdask.core.moduli import ModuliSet


def apply(operation: str, operands: Sequence[Array], moduli: ModuliSet, out: Array) -> None:
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


def power(a: Array, exponent: int, moduli: ModuliSet, out: Array) -> None:
    _cpu.power(a, exponent, modulus_table(moduli), out)


def inverse(a: Array, moduli: ModuliSet, out: Array) -> None:
    _cpu.inverse(a, modulus_table(moduli), out)


def running_sums(residues: Array, starts: Array, moduli: ModuliSet) -> NDArray[np.uint32]:
    if not residues[:1, :1].flags.c_contiguous:  # lines that go together
        residues = np.ascontiguousarray(residues)
    result = np.empty(residues.shape, dtype=np.uint32)
    _cpu.running_sums(residues, np.ascontiguousarray(starts), last_residues(moduli), result)
    return result
