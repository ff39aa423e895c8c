"""Order and sums of residues by keys."""

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.cpu.extension import _cpu
from rnsdask.backend.protocol import Array, Extremum, KeySums
from rnsdask.constants import KeyConstants


def extremum(residues: Array, constants: KeyConstants, minimum: bool) -> Extremum:
    key = (constants.coefficients, constants.start, constants.ambiguous_below)
    best, index, runner_up, ambiguous = _cpu.extremum(residues, *key, minimum)
    if best == 0:
        return Extremum(0, -1, runner_up, ambiguous, [])
    return Extremum(best, index, runner_up, ambiguous, residues[:, index].tolist())


def row_sums(residues: Array, constants: KeyConstants) -> KeySums:
    rows = np.zeros(residues.shape[0], dtype=np.uint64)
    key = (constants.coefficients, constants.start, constants.ambiguous_below)
    low, high, ambiguous = _cpu.row_sums(residues, *key, rows)
    return KeySums(rows.tolist(), low + (high << 32), ambiguous)


def candidates(residues: Array, constants: KeyConstants, minimum: bool, threshold: int) -> NDArray[np.bool_]:
    flags = np.empty(residues.shape[1], dtype=np.uint8)
    key = (constants.coefficients, constants.start, constants.ambiguous_below)
    _cpu.candidates(residues, *key, minimum, threshold, flags)
    return flags.view(np.bool_)


def keys_by(
    method: str, residues: NDArray[np.uint32], coefficients: NDArray[np.uint64], ahead: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The keys of numbers and the sums of their residues by one of `key_methods`, for tests.

    What comes `ahead` numbers later is brought near, as in short tiles; with 0 nothing is, as in long ones.
    """
    keys = np.empty(residues.shape[1], dtype=np.uint64)
    row_sums = np.zeros(residues.shape[0], dtype=np.uint64)
    _cpu.keys_by(method, residues, coefficients, ahead, keys, row_sums)
    return keys, row_sums


def key_methods() -> list[str]:
    """The ways to sum keys that this processor has; all give the same keys."""
    methods: list[str] = _cpu.key_methods()
    return methods


def compare(
    a: Array, b: Array, constants: KeyConstants, settled_key: int | None = None
) -> tuple[NDArray[np.int8], int]:
    order = np.empty(a.shape[1], dtype=np.int8)
    key = (constants.coefficients, constants.start, constants.ambiguous_below)
    if settled_key is None:
        settled_key = constants.key_of(b[:, 0].tolist()) if b.shape[1] == 1 else 0
    undecided: int = _cpu.compare(a, b, *key, constants.slack, settled_key, order)
    return order, undecided


def find_unset(flags: NDArray[np.bool_], few: int) -> NDArray[np.intp]:  # noqa: ARG001
    if flags.all():  # which is soon asked
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(~flags)


def running_maximum(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.maximum.accumulate(values)


def put(values: NDArray[np.int64], indices: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    out[indices] = values


def gather(residues: Array, indices: Array) -> NDArray[np.uint32]:
    if residues.flags.c_contiguous:
        taken: NDArray[np.uint32] = residues.take(indices, axis=1)
        return taken
    gathered = np.empty((len(residues), *indices.shape), dtype=residues.dtype)
    # Of other arrays, `take` copies all numbers first.
    for row, chosen in zip(residues, gathered, strict=True):
        row.take(indices, out=chosen)
    return gathered
