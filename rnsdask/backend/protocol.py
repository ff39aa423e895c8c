"""The kernels' protocol: names, arguments and results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rnsdask.constants import (
    ByteProofConstants,
    ExtensionConstants,
    FermatConstants,
    FermatPass,
    FixedPointConstants,
    ForwardConstants,
    Int8Constants,
    IntervalConstants,
    KeyConstants,
    LengthConstants,
    MixedRadixConstants,
    ProductBounds,
    ProofConstants,
    RemainderConstants,
    ReverseConstants,
    SumCheck,
    ThreePrimeConstants,
    TransformConstants,
    WideDigitConstants,
    WideForwardConstants,
    WindowCheck,
)
from rnsdask.constants.digits import DivisionDigits
from rnsdask.core.moduli import ModuliSet
from rnsdask.core.wide_moduli import WideModuli

# A NumPy or a CuPy array. CuPy's types are unknown to type checkers, and it may not be installed.
Array: TypeAlias = Any

Moduli: TypeAlias = ModuliSet | WideModuli
"""Moduli of residues: uint64 under WideModuli, which are primes and take the kernels that name this type."""

BoundProof: TypeAlias = ProofConstants | ByteProofConstants

LUFactor: TypeAlias = Literal["P", "L", "U"]
LU_FACTORS: tuple[LUFactor, ...] = ("P", "L", "U")


@dataclass(frozen=True)
class HalfGcd:
    """Two neighbours f and g in a remainder sequence, each up to its leading coefficient.

    The matrix (2, 2, length) takes the polynomials that the sequence begins with to these. `leading` are the
    leading coefficients of the divisors on the way, `degrees` their degrees.
    """

    matrix: Array
    f: Array
    g: Array
    leading: Array
    degrees: Array


@dataclass(frozen=True)
class Extremum:
    """Greatest key of an array (least, for a minimum), as compared: complemented for a minimum.

    ``best`` and ``runner_up`` are the two greatest keys that are not ambiguous (0 for want of such a key),
    ``index`` is the first number with the best key (-1 if that is 0, where nothing is known), and
    ``ambiguous`` counts the other numbers. ``residues`` has the number at the index, and is empty for -1.
    """

    best: int
    index: int
    runner_up: int
    ambiguous: int
    residues: list[int]


@dataclass(frozen=True)
class SparseRows:
    """A sparse matrix by its rows: row r has the entries from ``starts[r]`` to ``starts[r + 1]``.

    `starts` are int64, `columns` of the entries int32. `values` are int32 (entries,) whose magnitudes add up
    to less than 2**31 in each row, or residues (n, entries), of the width of the vectors. All are contiguous.
    """

    starts: Array
    columns: Array
    values: Array


@dataclass(frozen=True)
class WidePanel:
    """Pivots of some columns of one matrix, from :attr:`Kernels.wide_panel`.

    Attributes
    ----------
    order : array of int32, shape (rows,), or None
        Which of the rows without a pivot before came to each place; None if none was exchanged.
    pivots : array of int32, shape (count,)
        The pivots' columns, from the first one of these on.
    product : array of uint64, shape (1,)
        Their product, negative if the order is odd.
    """

    order: Array | None
    pivots: Array
    product: Array


@dataclass(frozen=True)
class KeySums:
    """Sum of each row of residues, sum of all keys, and how many keys are ambiguous."""

    rows: list[int]
    keys: int
    ambiguous: int


@dataclass(frozen=True)
class IntervalGoal:
    """Goal of a floating-point evaluation: relative width, range, and a last factor.

    ``accuracy`` must be one that the moduli allow, for nothing else ends the refinement. The bounds are
    multiplied by ``[scale_low, scale_upp] * 2**scale_exponent``.
    """

    accuracy: float
    signed: bool
    scale_low: float
    scale_upp: float
    scale_exponent: int


Bounds: TypeAlias = tuple[Array, Array, Array]
"""Lower and upper bounds (float64) and their common exponents (int32) of intervals, each (N,)."""

INTERVAL_OPERATIONS = ("add", "subtract", "multiply", "divide")
"""Operations of ``Kernels.interval_arithmetic``, in the order of the kernels' codes."""

INTERVAL_RNS_ALGORITHMS = {1: 1, 2: 2, "digits": 3}
"""The algorithms of ``Kernels.interval_rns_add`` and their numbers in the kernels."""

LIMB_COUNTS = ("length", "ones", "twos_length")
"""Counts of ``Kernels.positional_count``, in the order of the kernels' codes: bits of magnitudes, those
that are 1; bits of x, or of ~x if x is negative."""

UNDECIDED = 2
"""Result of ``Kernels.compare`` for numbers whose keys are too close or ambiguous."""


def power_window(bits: int) -> int:
    """Bits of an exponent that one product of a power takes: its table has 2 to that many entries."""
    return next(w for w, most in enumerate((8, 32, 80, 240, 672, 1792), 1) if bits <= most or w == 6)


FITS, OVERFLOWS, OPEN = 0, 1, 2
"""Verdict of the keys on a result: in range, out of range, or open."""


class Kernels(Protocol):
    """The kernels of one processor. Residues are (n, N) uint32, contiguous along N."""

    def extremum(self, residues: Array, constants: KeyConstants, minimum: bool) -> Extremum:
        """Best key, its index, the runner-up and the number of ambiguous keys, in one pass."""

    def row_sums(self, residues: Array, constants: KeyConstants) -> KeySums:
        """Row sums of the residues and the sum of the keys, in one pass."""

    def candidates(self, residues: Array, constants: KeyConstants, minimum: bool, threshold: int) -> Array:
        """Boolean (N,): the key, as compared, reaches `threshold` or is ambiguous."""

    def compare(
        self, a: Array, b: Array, constants: KeyConstants, settled_key: int | None = None
    ) -> tuple[Array, int]:
        """Order of the numbers of a and b: int8 (N,) of -1, 0, +1 or `UNDECIDED`, and how many are undecided.

        Equality is never undecided: equal numbers, and only they, get 0. `b` may be a NumPy array (n, 1), one
        number for all, on every processor, which has the key `settled_key` where its own is ambiguous.
        """

    def find_unset(self, flags: Array, few: int) -> Array:
        """Ascending indices of flags that are not set; at most `few` are a NumPy array on every processor.

        Flags are Boolean (N,), an array of their own.
        """

    def running_maximum(self, values: Array) -> Array:
        """The greatest of all uint64 values (N,) up to each one."""

    def gather(self, residues: Array, indices: Array) -> Array:
        """The (n, k) residues of the numbers at `indices` (int64), which may be a NumPy array."""

    def put(self, values: Array, indices: Array, out: Array) -> None:
        """Write values (k,) to `out` (N,) at `indices`, all int64; the first two may be NumPy arrays."""

    def mixed_radix_digits(self, residues: Array, constants: MixedRadixConstants) -> Array:
        """The (n, N) uint32 digits; digit i has the weight m_0 ... m_{i-1}."""

    def fixed_point(self, residues: Array, constants: FixedPointConstants) -> tuple[Array, Array]:
        """Sums of x_i c_i as (words, N) uint32, least significant first, and Boolean (N,): X is 0."""

    def bit_lengths(self, residues: Array, constants: LengthConstants) -> tuple[Array, Array]:
        """Bit lengths of magnitudes, int64 (N,), and Boolean (N,): fixed point decides; others are -1."""

    def interval(
        self, residues: Array, constants: IntervalConstants, goal: IntervalGoal
    ) -> tuple[Array, Array, Array, Array]:
        """Lower and upper bounds (float64), exponents (int32) and refinement steps (uint32), each (N,)."""

    def first_outside(self, limbs: Array, constants: ForwardConstants | WideForwardConstants) -> int | None:
        """Index of the first number out of range, of (N, L) limbs contiguous along L; None if none is."""

    def limbs_to_residues(self, limbs: Array, constants: ForwardConstants, residues: Array) -> None:
        """Convert (N, L) limbs, contiguous along L; `residues` is written."""

    def residues_to_limbs(self, residues: Array, constants: ReverseConstants) -> Array:
        """The numbers as (N, L) uint32 limbs, least significant first."""

    def base_extend(self, residues: Array, constants: ExtensionConstants, result: Array) -> Array:
        """Write the residues modulo the targets to `result`; Boolean (N,): they may be wrong by M."""

    def bound_proof(self, moduli: ModuliSet, first: int, low: int, high: int) -> BoundProof | None:
        """Constants of a proof that numbers are from ``low <= 0`` to ``high < M/4``.

        The `first` moduli alone determine such numbers. None if the processor has no kernel for the proof.
        """

    def prove_bound(self, residues: Array, constants: Any) -> Array:
        """Boolean (N,): each number is proved to be within the bound of constants of :meth:`bound_proof`.

        Of the numbers that are, some near the bound's ends may be left open.
        """

    def wide_digits(self, residues: Array, constants: WideDigitConstants) -> Array:
        """The (N, n + 1) uint64 mixed-radix digits of (n, N) uint64 residues in any layout.

        Digit i has the weight m_0 ... m_{i-1}; the last one is 1 if the number is above the highest, else 0.
        """

    def limbs_to_wide_residues(self, limbs: Array, constants: WideForwardConstants) -> Array:
        """The (n, N) uint64 residues of (N, L) limbs, contiguous."""

    def floor_divide_limbs(
        self, limbs: Array, divisors: Array, width: int, signed: bool
    ) -> tuple[Array, Array]:
        """Quotients and remainders of (N, L) limbs by (N, K) or (1, K) others, none of them 0.

        In two's complement when `signed`, and contiguous along the limbs' axis: `width` limbs each, or fewer
        that hold them all. `width` is at least L, signed L + 1, and at least K.
        """

    def transpose(self, matrix: Array, out: Array) -> None:
        """Write a matrix of uint32 or uint64, contiguous along rows, transposed to `out`, contiguous."""

    def limbs_to_fermat(self, limbs: Array, signed: bool, field: FermatConstants) -> Array:
        """The (k, N) digits of the elements of a Fermat field that any integers of (N, L) limbs stand for."""

    def fermat_to_limbs(self, digits: Array, field: FermatConstants) -> Array:
        """Elements of (k, N) digits as (N, L) uint32 limbs of the integers from 0 to p - 1."""

    @property
    def remainder_limbs(self) -> Callable[[Array, RemainderConstants], tuple[Array, Array]] | None:
        """(N, L) limbs of the remainders of residues, and Boolean (N,): they may be those of X + M or X - M.

        None if the processor has no such kernel.
        """

    @property
    def remainders(
        self,
    ) -> Callable[[Array, RemainderConstants, ForwardConstants, Any, Array], Array | None] | None:
        """Write the residues of remainders, and return flags as `remainder_limbs`; None if they are too long.

        The forward constants convert the divisor's limbs. Factors, uint64 of shape (n, 2), are w and
        ``floor(2**52 w / m)``; given them, the kernel writes ``(x - r) w`` instead. None if the processor has
        no such kernel.
        """

    @property
    def divide_residues(
        self,
    ) -> Callable[[Array, Array, DivisionDigits, Array | None, Array | None], tuple[int, int]] | None:
        """Write the residues of quotients and of remainders, if wanted, of residues (n, N) by others.

        Returns the first number whose divisor is 0, and the first whose quotient is above the highest value,
        -1 if there is none. None if the processor has no such kernel.
        """

    def running_sums(self, residues: Array, starts: Array, moduli: ModuliSet) -> Array:
        """Sums modulo each m along axis 2 of (n, A, L, B), after those of (n, A, B)."""

    def first_invalid(self, residues: Array, moduli: ModuliSet) -> tuple[int, int] | None:
        """(i, j) of the first residue not below its modulus, by i then j; None if all are."""

    def read_all(self, residues: Array) -> int:
        """Sum of all residues modulo 2**64: a plain read, the limit that benchmarks compare with."""

    def crc32c(self, words: Array) -> int:
        """CRC-32C of contiguous words (N,), each of four little-endian bytes."""

    def crc32c_and_validity(self, words: Array, moduli: ModuliSet, rows: int) -> tuple[int, bool]:
        """That of rows (rows, N) and one more word, and whether each residue, of the first n, is valid."""

    # Element-wise arithmetic. An operand is residues (n, N), or (n, 1) for one number, which may be a NumPy
    # array on every processor; `out` (n, N), contiguous, is written.

    def apply(self, operation: str, operands: Sequence[Array], moduli: Moduli, out: Array) -> None:
        """Residues of one of the operations in `rnsdask.core.operations`."""

    # The same with what keys of the operands say of each result: uint8 (N,) of `FITS`, `OVERFLOWS` or `OPEN`;
    # None if all fit.

    def apply_checked(
        self, operation: str, operands: Sequence[Array], moduli: ModuliSet, check: SumCheck, out: Array
    ) -> Array | None:
        """Apply a sum or a difference; the keys of both operands decide whether the result is in range."""

    def apply_windowed(
        self, operation: str, operands: Sequence[Array], moduli: ModuliSet, check: WindowCheck, out: Array
    ) -> Array | None:
        """The keys of one operand decide."""

    def power(self, a: Array, exponent: int, moduli: Moduli, out: Array) -> None:
        """``|a**exponent|``, for an exponent from 0 to 2**64 - 1."""

    def inverse(self, a: Array, moduli: Moduli, out: Array) -> None:
        """The inverse of each residue; 0 where it and its modulus have a common factor."""

    def matmul(self, a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
        """Matrix products: a (n, B, I, K), b (n, B, K, J), in any layout; `out` (n, B, I, J), contiguous."""

    def wide_matmul(self, a: Array, b: Array, out: Array, moduli: WideModuli) -> bool:
        """Matrix products as :meth:`matmul`, in uint64; False, and none, if those of residues are quicker."""

    @property
    def wide_panel(self) -> Callable[[Array, int, tuple[int, int], WideModuli], WidePanel] | None:
        """Eliminate in some columns of a matrix (rows, columns) modulo one prime, in place.

        Arguments are the matrix, of uint64 in contiguous rows, the number of pivots before, the first column
        and the one after the last, and the prime. Rows are exchanged in these columns alone; factors go to
        columns of the pivots' numbers, as of :meth:`eliminate`. None if :meth:`eliminate` itself is as quick
        for great matrices.
        """

    def sparse_matmul(self, a: SparseRows, x: Array, moduli: Moduli, out: Array) -> None:
        """Products of a sparse matrix: x (n, K, J) and `out` (n, I, J), both contiguous.

        With signed values, (1, K, J) is another way to write it: vector j is modulo the prime of number
        ``j % len(moduli)``. No modulus is 2**32.
        """

    def int8_split(self, x: Array, constants: Int8Constants, is_left: bool, out: Array) -> None:
        """Residues modulo each of the small moduli, from -128 to 127, of the integers around 0.

        Those of left matrices are multiplied by the constants' factors, so that products can be joined.

        Parameters
        ----------
        x : array of uint32, shape (n, B, rows, columns)
            Residues modulo each m, in any layout.
        out : array of int8, shape (n, B, count, R, C)
            Contiguous; C is a multiple of 16. What is beyond the rows and columns becomes 0.
        """

    def int8_join(self, sums: Array, constants: Int8Constants, out: Array) -> None:
        """Residues modulo each m of integers whose multiples modulo the small moduli are known.

        Parameters
        ----------
        sums : array of int32, shape (n, B, count, R, C)
            Integers with the residues of these multiples; contiguous, C a multiple of 16.
        out : array of uint32, shape (n, B, rows, columns)
            Contiguous; of the first rows and columns.
        """

    # Stacks of matrices modulo primes: (n, B, rows, columns), in any layout.

    def eliminate(
        self, x: Array, pivot_columns: int, moduli: Moduli, out: Array | None
    ) -> tuple[Array, Array, Array]:
        """Row echelon forms by exchanges of rows and subtraction of multiples of rows from those below.

        A row of the result begins with the factors that it was reduced by; what is not 0 of the row itself
        begins with its pivot, to the right of them. A pivot is the first of its column that is not 0 in a row
        that is no pivot's yet, and comes from one of the first `pivot_columns` columns; others are changed
        likewise. Without `out`, contiguous, only what is returned is wanted. It may be `x` itself, which then
        takes little more memory.

        Returns
        -------
        order : array of int32, shape (n, B, rows)
            Which row of `x` came to each place.
        pivots : array of int32, shape (n, B, min(rows, pivot_columns))
            The column of each row's pivot; -1 where there is none.
        products : array of the words, shape (n, B)
            The products of the pivots, negative if the order is odd.
        """

    @property
    def small_cramer(self) -> Callable[[Array, ModuliSet], tuple[Array, Array]] | None:
        """Numerators (n, B, N, K) by Cramer's rule and determinants (n, B) of [A b] (n, B, N, N + K).

        Quick for few rows (at least one), modulo odd primes. Where a determinant is 0, numerators are
        undefined. None if the processor has no such kernel.
        """

    def lu(self, x: Array, moduli: Moduli, factors: tuple[Array, Array, Array]) -> None:
        """Factors P, L and U of x, all contiguous, of the shapes that follow.

        P is (n, B, R, R), L (n, B, R, K) and U (n, B, K, C), for K the lesser of R and C. L or U may be `x`
        itself, if it has that shape.
        """

    def lu_factor(self, packed: Array, factor: LUFactor, out: Array) -> None:
        """A factor from echelon forms with one column more, which row came to each place.

        `out` is contiguous.
        """

    def solve_upper(self, upper: Array, right: Array, moduli: Moduli, out: Array) -> None:
        """Solve triangular systems (n, B, N, N); elements below the diagonal are not read.

        No diagonal has a 0. `right` and `out` are (n, B, N, columns), this contiguous.
        """

    def characteristic_polynomials(self, x: Array, moduli: Moduli) -> Array:
        """Coefficients (n, B, N + 1) of det(z - x) of square matrices, the constant one first."""

    # Pairs of polynomials modulo primes, coefficients ascending: (n, B, A) and (n, B, C), in any layout.
    # Degrees, int32 (n, B), contiguous, say how many coefficients count; -1 is that of the polynomial 0.

    def remainder_sequences(
        self, x: Array, y: Array, degrees: tuple[Array, Array], moduli: Moduli, divisors: bool
    ) -> tuple[Array, Array, Array]:
        """Resultants, as quotients of two (n, B), and greatest common divisors (n, B, max(A, C)), monic.

        The resultants are determinants of Sylvester's matrices of the degrees, whose leading coefficients may
        be 0; where a polynomial is 0 they are 0. Divisors are found if asked for, else have no coefficients;
        for them no leading coefficient may be 0. WideModuli are for a CPU.
        """

    def divide_polynomials(self, x: Array, y: Array, degrees: Array, moduli: Moduli) -> tuple[Array, Array]:
        """Quotients and remainders (n, B, A) of divisions by y, whose degrees are given and none is -1.

        WideModuli are for a CPU.
        """

    @property
    def half_gcd(self) -> Callable[[Array, int, WideModuli, bool], HalfGcd] | None:
        """Euclid's algorithm on a pair (2, A) modulo one prime, to a degree of the second below a least one.

        The first polynomial has the greater degree. The matrix is found if asked for, else has no
        coefficients. None if the processor has no such kernel.
        """

    def ntt(
        self,
        residues: Array,
        constants: TransformConstants,
        out: Array,
        *,
        twists: NDArray[Any] | None = None,
        is_inverse: bool = False,
        is_reversed: bool = False,
    ) -> None:
        """Transforms of (n, N) residues, as many of one length after another as there are, to `out`.

        With twists, roots whose squares are the constants', element k is multiplied by ``twists**k`` before,
        or after an inverse transform. In reversed order values are where the bits of their numbers are
        reversed: the results, or of an inverse transform the operands.
        """

    def cyclic_products(
        self, x: Array, y: Array, forward: TransformConstants, inverse: TransformConstants, out: Array
    ) -> None:
        """Cyclic products of runs of one length, one after another in rows (n, N), to `out`.

        An operand may have one run in each row, that all runs of the other are multiplied by.
        """

    # Convolution of runs of numbers: (n, runs, length), contiguous along the last axis; the distance from
    # run to run may be 0. `out`, which is contiguous, is written.

    def convolve(self, x: Array, y: Array, moduli: ModuliSet, first: int, out: Array) -> None:
        """Numbers of the convolutions of runs from `first` on, (n, runs, count), as sums of products."""

    def padded_residues(self, x: Array, primes: ModuliSet, out: Array) -> None:
        """Runs of any words modulo each prime, with zeros after: (primes, n * runs, padded)."""

    def three_prime_remainders(self, x: Array, constants: ThreePrimeConstants, out: Array) -> None:
        """Remainders (n, N) of integers that are known modulo three primes, (3, n * N)."""

    # Signed integers with stored intervals: columns of n residues and a header, (n + 6, N), as
    # rnsdask/interval_rns/layout.py says; an operand may be one column, a NumPy array on every processor.
    # `out` is written. Flags, uint8 (N,), say what the intervals leave open (interval_rns.cuh).

    def interval_rns_add(
        self,
        x: Array,
        y: Array,
        moduli: ModuliSet,
        subtract: bool,
        algorithm: int | str,
        accuracy: float,
        out: Array,
    ) -> Array:
        """Sum, or difference, by one of `INTERVAL_RNS_ALGORITHMS`; flags."""

    def interval_rns_multiply(
        self, x: Array, y: Array, product: ProductBounds, accuracy: float, out: Array
    ) -> Array:
        """Product; flags."""

    def interval_rns_first_invalid(self, x: Array, least_exponent: int, width: float) -> int | None:
        """Index of the first column (n + 6, N) whose header no number has, or None.

        A number has at least this exponent, and at most this relative width.
        """

    def interval_rns_lengths(self, x: Array, product: ProductBounds) -> tuple[Array, Array]:
        """Bit lengths of magnitudes, int64 (N,), and Boolean (N,): headers decide; others are -1."""

    def interval_rns_candidates(
        self, x: Array, bits: int, slack: int, minimum: bool
    ) -> tuple[int, NDArray[np.int64]]:
        """Greatest or least order key (interval_rns.cuh) of columns (n + 6, N), and who may be the extremum.

        `bits` is the length of M. The indices, ascending and on the host, are of keys within `slack` of it.
        """

    def interval_rns_compare(self, x: Array, y: Array, moduli: ModuliSet) -> Array:
        """Order of the numbers by their headers: int8 (N,) of -1, 0, +1 or `UNDECIDED`."""

    def interval_arithmetic(self, operation: str, x: Bounds, y: Bounds, product: ProductBounds) -> Bounds:
        """One of `INTERVAL_OPERATIONS` of intervals of fractions X/M and Y/M."""

    # Numbers modulo r^k + 1 as (k, N) canonical digits, the least significant first, of the field's dtype and
    # contiguous along N; an operand may be (k, 1), one number for all, a NumPy array on every processor.
    # `out` (k, N), contiguous and no operand's memory, is written.

    def fermat_apply(
        self, operation: str, operands: Sequence[Array], field: FermatConstants, out: Array
    ) -> None:
        """One of "add", "subtract", "multiply" and "negate"."""

    def fermat_multiply_by_root(self, x: Array, exponent: int, field: FermatConstants, out: Array) -> None:
        """``x r**exponent``, for an exponent from 0 to 2 k - 1."""

    def fermat_pass(self, x: Array, step: FermatPass, out: Array) -> None:
        """One pass of the transforms of whole runs of numbers."""

    def fermat_first_invalid(self, x: Array, field: FermatConstants) -> int | None:
        """The least index of a number that is not canonical; None if all are."""

    # Integers of a fixed number of bits as (k, N) limbs, the least significant first and contiguous along N,
    # in two's complement if signed (docs/positional.md); an operand may be (k, 1), one number for all, a
    # NumPy array on every processor. The highest limb of a result has `top_bits` bits, from 1 to 32.

    def positional_add(
        self,
        operands: Sequence[Array],
        are_signed: Sequence[bool],
        subtract: bool,
        top_bits: int,
        signed: bool,
        out: Array,
    ) -> Array:
        """Sum or difference of two, which wraps, to `out`; uint8 (N,), 1 where it is out of range.

        Operands of fewer limbs than the result go on by their signs.
        """

    def positional_compare(self, x: Array, y: Array, signed: bool) -> Array:
        """Order of the numbers: int8 (N,) of -1, 0 and +1."""

    def positional_shift(self, x: Array, bits: Array, top_bits: int, signed: bool) -> Array:
        """Numbers times ``2**bits``, rounded down, which wrap; int64 (N,) or (1,) of `bits` of any sign.

        A magnitude of `bits` is at most 32 (k + 1).
        """

    def positional_count(self, x: Array, signed: bool, what: str) -> Array:
        """One of `LIMB_COUNTS` of each number: int64 (N,)."""

    # Positional numbers: (k, N) limbs, the least significant first, contiguous along N; an operand may be
    # (k, 1), one number for all. `out` (k, N), contiguous and no operand's memory, is written.

    @property
    def most_product_limbs(self) -> int:
        """Most limbs of the shorter operand of `positional_multiply`; beyond it transforms are faster."""

    @property
    def most_montgomery_limbs(self) -> int:
        """Most limbs of one odd modulus for Montgomery products; longer ones are faster by remainders."""

    def by_integers(self, operation: str, limbs: int, count: int) -> bool:
        """Whether GMP on the host is quicker for "mod_power" or "mod_inverse" by moduli of so many limbs."""

    def positional_multiply(
        self,
        x: Array,
        y: Array,
        addend: Array | None,
        bits: int,
        signed: bool,
        out: Array,
        overflowed: Array | None,
    ) -> None:
        """``x y + addend`` modulo 2**bits, in two's complement when `signed`, as all operands are then.

        `overflowed`, Boolean (N,), is written: whether the result is another number.
        """

    def positional_divmod(self, x: Array, y: Array, signed: bool) -> tuple[Array, Array]:
        """Quotients and remainders, as Python's, of numbers (k, N) by others, none of them 0.

        In limbs that hold them all, at most one more than the longer operand's.
        """

    def positional_gcd(self, x: Array, y: Array, signed: bool, out: Array) -> None:
        """Greatest common divisors of numbers (k, N) and others, signed or not, to `out`."""

    def positional_isqrt(self, x: Array, out: Array) -> None:
        """Floors of square roots of numbers (k, N) that are not negative, to `out`."""

    def positional_inverse(self, x: Array, moduli: Array, out: Array) -> int | None:
        """Inverses of numbers (k, N) modulo odd ones, as for `montgomery_multiply`, to `out`.

        Returns the first index without an inverse, or None; `out` is undefined there.
        """

    # Of processors that have kernels for these; None where there are other ways.

    @property
    def overlap_add(self) -> Callable[[Array, int, Array], None] | None:
        """Add (N, L) limbs to those of one number: row k counts ``2**(32 step k)``; no last carry is kept."""

    @property
    def positional_mod_multiply(self) -> Callable[[Array, Array, Array, Array], None] | None:
        """Products of numbers (k, N) or (k, 1) modulo each of any moduli, (k, N) or (k, 1), to `out`."""

    def positional_mod_add(self, x: Array, y: Array, moduli: Array, subtract: bool, out: Array) -> bool:
        """Sums or differences modulo each modulus, in its limbs; whether all operands were below it.

        If one is not, the result means nothing. Operands have no more limbs.
        """

    def montgomery_bits(self, limbs: int) -> int:
        """The b of ``4**b``, which Montgomery products modulo odd numbers of that many limbs take."""

    # Moduli and what 4**b is modulo each, `squares`, are (k, N) or both (k, 1). Operands have no more limbs
    # than the moduli, but need not be below them; results are.

    def montgomery_multiply(self, x: Array, y: Array, moduli: Array, squares: Array, out: Array) -> None:
        """``x y`` modulo each odd modulus."""

    def montgomery_power(
        self, x: Array, exponents: Array, bits: int, moduli: Array, squares: Array, out: Array
    ) -> None:
        """``x**exponent`` modulo each odd modulus, of exponents in any limbs that are below 2**bits."""
