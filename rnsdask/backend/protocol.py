"""What a processor's kernels are: names, arguments and results."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from rnsdask.constants import (
    FixedPointConstants,
    ForwardConstants,
    IntervalConstants,
    KeyConstants,
    MixedRadixConstants,
    ReverseConstants,
)
from rnsdask.moduli import ModuliSet

# A NumPy or a CuPy array. CuPy's types are unknown to type checkers, and it may not be installed.
Array: TypeAlias = Any


@dataclass(frozen=True)
class Extremum:
    """Greatest key of an array (least, for a minimum), as compared: complemented for a minimum.

    ``best`` and ``runner_up`` are over the numbers whose key is not ambiguous (0 where there are none or
    no second one), ``index`` is the first one with the best key (-1 if that is 0, where nothing is known),
    and ``ambiguous`` counts the others.
    """

    best: int
    index: int
    runner_up: int
    ambiguous: int


@dataclass(frozen=True)
class KeySums:
    """Sum of each row of residues, sum of all keys, and how many keys are ambiguous."""

    rows: list[int]
    keys: int
    ambiguous: int


@dataclass(frozen=True)
class IntervalGoal:
    """What a floating-point evaluation is to give: relative width, range, and a last factor.

    ``accuracy`` must be one that the moduli allow, for nothing else ends the refinement. The bounds are
    multiplied by ``[scale_low, scale_upp] * 2**scale_exponent``.
    """

    accuracy: float
    signed: bool
    scale_low: float
    scale_upp: float
    scale_exponent: int


class Kernels(Protocol):
    """The kernels of one processor. Residues are (n, N) uint32, contiguous along N."""

    def extremum(self, residues: Array, constants: KeyConstants, minimum: bool) -> Extremum:
        """Best key, its index, the runner-up and the number of ambiguous keys, in one pass."""

    def row_sums(self, residues: Array, constants: KeyConstants) -> KeySums:
        """Row sums of the residues and the sum of the keys, in one pass."""

    def candidates(self, residues: Array, constants: KeyConstants, minimum: bool, threshold: int) -> Array:
        """Boolean (N,): the key, as compared, reaches `threshold` or is ambiguous."""

    def gather(self, residues: Array, indices: Array) -> Array:
        """The (n, k) residues of the numbers at `indices` (int64)."""

    def mixed_radix_digits(self, residues: Array, constants: MixedRadixConstants) -> Array:
        """The (n, N) uint32 digits; digit i has the weight m_0 ... m_{i-1}."""

    def fixed_point(self, residues: Array, constants: FixedPointConstants) -> tuple[Array, Array]:
        """Sums of x_i c_i as (words, N) uint32, least significant first, and Boolean (N,): X is 0."""

    def interval(
        self, residues: Array, constants: IntervalConstants, goal: IntervalGoal
    ) -> tuple[Array, Array, Array, Array]:
        """Lower and upper bounds (float64), exponents (int32) and refinement steps (uint32), each (N,)."""

    def first_outside(self, limbs: Array, constants: ForwardConstants) -> int | None:
        """Index of the first number out of range, of (N, L) limbs contiguous along L; None if none is."""

    def limbs_to_residues(self, limbs: Array, constants: ForwardConstants, residues: Array) -> None:
        """Convert (N, L) limbs, contiguous along L; `residues` is written."""

    def residues_to_limbs(self, residues: Array, constants: ReverseConstants) -> Array:
        """The numbers as (N, L) uint32 limbs, least significant first."""

    def first_invalid(self, residues: Array, moduli: ModuliSet) -> tuple[int, int] | None:
        """(i, j) of the first residue not below its modulus, by i then j; None if all are."""

    def read_all(self, residues: Array) -> int:
        """Sum of all residues modulo 2**64: a plain read, the limit that benchmarks compare with."""
