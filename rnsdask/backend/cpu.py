"""The kernels for NumPy arrays: calls into the compiled extension (see :class:`.protocol.Kernels`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend.protocol import (
    FITS,
    INTERVAL_OPERATIONS,
    INTERVAL_RNS_ALGORITHMS,
    LIMB_COUNTS,
    Array,
    Bounds,
    Extremum,
    IntervalGoal,
    KeySums,
    power_window,
)
from rnsdask.constants import (
    DecimalConstants,
    ExtensionConstants,
    FermatConstants,
    FermatPass,
    FixedPointConstants,
    ForwardConstants,
    Int8Constants,
    IntervalConstants,
    KeyConstants,
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
    WordProofConstants,
    last_residues,
    modulus_table,
    radix_division,
)
from rnsdask.core.moduli import ModuliSet

try:
    from rnsdask import _cpu
except ImportError as error:
    raise ImportError(
        f"{Path(__file__).parents[1]} has no compiled extension (rnsdask._cpu): it is the source of a "
        "checkout, which Python finds first when it starts there; start it elsewhere, or with python -P"
    ) from error

MULTIPLIES_WORDS: bool = _cpu.multiplies_words()
"""Whether this processor has the kernels by digits of 102 bits; those by limbs have the same results."""

FEWEST_BY_DIGITS = {"limbs_to_residues": 9, "residues_to_limbs": 5, "base_extend": 3}
"""Moduli, of base extension the new ones, from which digits are quicker than limbs, as measured."""


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
    method: str, residues: NDArray[np.uint32], coefficients: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The keys of numbers and the sums of their residues by one of `key_methods`, for tests."""
    keys = np.empty(residues.shape[1], dtype=np.uint64)
    row_sums = np.zeros(residues.shape[0], dtype=np.uint64)
    _cpu.keys_by(method, residues, coefficients, keys, row_sums)
    return keys, row_sums


def key_methods() -> list[str]:
    """The ways to sum keys that this processor has; all give the same keys."""
    methods: list[str] = _cpu.key_methods()
    return methods


def compare(a: Array, b: Array, constants: KeyConstants) -> tuple[NDArray[np.int8], int]:
    order = np.empty(a.shape[1], dtype=np.int8)
    key = (constants.coefficients, constants.start, constants.ambiguous_below)
    undecided: int = _cpu.compare(a, b, *key, constants.slack, order)
    return order, undecided


def gather(residues: Array, indices: Array) -> NDArray[np.uint32]:
    gathered: NDArray[np.uint32] = residues.take(indices, axis=1)
    return gathered


def mixed_radix_digits(residues: Array, constants: MixedRadixConstants) -> NDArray[np.uint32]:
    digits = np.empty(residues.shape, dtype=np.uint32)
    _cpu.mixed_radix_digits(residues, constants.last, constants.ones, constants.inverses, digits)
    return digits


def fixed_point(
    residues: Array, constants: FixedPointConstants
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    words = np.empty((constants.bits // 32, residues.shape[1]), dtype=np.uint32)
    zero = np.empty(residues.shape[1], dtype=np.uint8)
    _cpu.fixed_point(residues, constants.coefficients, words, zero)
    return words, zero.view(np.bool_)


def interval(
    residues: Array, constants: IntervalConstants, goal: IntervalGoal
) -> tuple[Array, Array, Array, Array]:
    count = residues.shape[1]
    low, upp = np.empty(count, dtype=np.float64), np.empty(count, dtype=np.float64)
    exponent, steps = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.uint32)
    tables = (constants.last, constants.inverses, constants.powers, constants.reciprocals)
    scale = (goal.scale_low, goal.scale_upp, goal.scale_exponent)
    _cpu.interval(residues, *tables, goal.accuracy, *scale, goal.signed, low, upp, exponent, steps)
    return low, upp, exponent, steps


def ints_to_limbs(values: list[Any], signed: bool, limbs: NDArray[np.uint32]) -> int:
    """Write Python ints as (N, L) limbs, in two's complement when `signed`.

    Returns the position of the first value that does not fit, or is of another type: N if there is none.
    """
    position: int = _cpu.ints_to_limbs(values, signed, limbs)
    return position


def limbs_to_ints(limbs: NDArray[np.uint32], signed: bool) -> list[int]:
    """Read (N, L) limbs, contiguous along L, as Python ints."""
    values: list[int] = _cpu.limbs_to_ints(limbs, signed)
    return values


def greatest_magnitude(values: list[Any]) -> int | None:
    """The greatest magnitude of Python ints; None if there are no values, or some of another type."""
    position: int = _cpu.greatest_magnitude(values)
    return None if position < 0 else abs(values[position])


def first_outside(limbs: Array, constants: ForwardConstants | WideForwardConstants) -> int | None:
    if constants.bounds is None:
        return None
    index: int = _cpu.first_outside(limbs, constants.bounds, constants.flip)
    return None if index < 0 else index


def _by_digits(kernel: str, moduli: int) -> bool:
    return MULTIPLIES_WORDS and moduli >= FEWEST_BY_DIGITS[kernel]


def limbs_to_residues(limbs: Array, constants: ForwardConstants, residues: Array) -> None:
    digits = constants.digits if _by_digits("limbs_to_residues", len(residues)) else None
    if digits is not None:
        targets = (digits.targets.starts, digits.targets.factors)
        _cpu.limbs_to_residues_by_digits(limbs, constants.flip != 0, digits.table, *targets, residues)
    else:
        _cpu.limbs_to_residues(limbs, constants.table, constants.last, constants.factors, residues)


def residues_to_limbs(residues: Array, constants: ReverseConstants) -> NDArray[np.uint32]:
    limbs = np.empty((residues.shape[1], constants.limb_count), dtype=np.uint32)
    digits = constants.digits if _by_digits("residues_to_limbs", len(residues)) else None
    if digits is not None:
        sources = (digits.sources.starts, digits.sources.factors)
        ends = (digits.product, digits.highest)
        _cpu.residues_to_limbs_by_digits(residues, *sources, digits.table, *ends, limbs)
    else:
        tables = (constants.table, constants.last, constants.inverses, constants.product, constants.highest)
        _cpu.residues_to_limbs(residues, *tables, limbs)
    return limbs


def base_extend(residues: Array, constants: ExtensionConstants, result: Array) -> NDArray[np.bool_]:
    source = residues[: len(constants.moduli)]
    ambiguous = np.empty(residues.shape[1], dtype=np.uint8)
    decision = (constants.start, constants.ambiguous_below)
    digits = constants.digits if _by_digits("base_extend", len(result)) else None
    if digits is not None:
        groups = (digits.sources.starts, digits.sources.factors)
        new_groups = (digits.targets.starts, digits.targets.factors)
        _cpu.base_extend_by_digits(source, *groups, digits.table, *decision, *new_groups, result, ambiguous)
    else:
        tables = (constants.table, constants.last, constants.inverses)
        targets = (constants.target_last, constants.factors)
        _cpu.base_extend(source, *tables, *decision, *targets, result, ambiguous)
    return ambiguous.view(np.bool_)


def _prove_bound(residues: Array, constants: ProofConstants | WordProofConstants) -> NDArray[np.bool_]:
    proved = np.empty(residues.shape[1], dtype=np.uint8)
    if isinstance(constants, WordProofConstants):
        words = (constants.word_bits, constants.top_bits, constants.low_words)
        _cpu.prove_by_words(residues, constants.coefficients, constants.start, *words, constants.room, proved)
        return proved.view(np.bool_)
    sources, targets = constants.sources, constants.targets
    _cpu.prove_bound(
        residues,
        *(sources.starts, sources.factors, constants.source_groups),
        constants.table,
        *(targets.starts, targets.factors, constants.target_groups),
        constants.lowest,
        constants.room,
        proved,
    )
    return proved.view(np.bool_)


prove_bound = _prove_bound if MULTIPLIES_WORDS else None


def table_sums(
    terms: NDArray[np.uint32], table: NDArray[np.uint32], method: str
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The (C, N) sums of the products of (R, N) terms and an (R, C) table by one of `sum_methods`, for tests.

    N is at most 64. With the sums' two lanes, a sum is ``(low - 2**32 high) % 2**64 + 2**32 high``.
    """
    shape = table.shape[1], terms.shape[1]
    low, high = np.empty(shape, dtype=np.uint64), np.empty(shape, dtype=np.uint64)
    _cpu.table_sums(terms, table, method, low, high)
    return low, high


def sum_methods() -> list[str]:
    """The ways to sum a table's products that this processor has; all give the same sums."""
    methods: list[str] = _cpu.sum_methods()
    return methods


def wide_digits(residues: Array, constants: WideDigitConstants) -> NDArray[np.uint64]:
    digits = np.empty((residues.shape[1], len(residues) + 1), dtype=np.uint64)
    _cpu.wide_digits(residues, constants.last, constants.inverses, constants.highest, digits)
    return digits


def limbs_to_wide_residues(limbs: Array, constants: WideForwardConstants) -> NDArray[np.uint64]:
    residues = np.empty((len(constants.last), len(limbs)), dtype=np.uint64)
    _cpu.limbs_to_wide_residues(limbs, constants.weights, constants.last, constants.factors, residues)
    return residues


def floor_divide_limbs(
    limbs: Array, divisors: Array, width: int, signed: bool, method: str = "best"
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    quotients, remainders = (np.empty((len(limbs), width), dtype=np.uint32) for _ in range(2))
    used = _cpu.floor_divide_limbs(limbs, divisors, signed, quotients, remainders, method) + signed
    # Signed, a remainder may be a divisor plus a number; else neither is exceeded.
    rest = divisors.shape[1] if signed else min(limbs.shape[1], divisors.shape[1])
    return quotients[:, : max(1, min(used, width))], remainders[:, :rest]


def division_methods() -> list[str]:
    """The ways to divide limbs that this processor has, that of the GPU's kernel first; all give the same."""
    methods: list[str] = _cpu.division_methods()
    return methods


def remainder_limbs(
    residues: Array, constants: RemainderConstants
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    count = residues.shape[1]
    limbs = np.empty((count, constants.limb_count), dtype=np.uint32)
    ambiguous = np.empty(count, dtype=np.uint8)
    tables = (constants.table, constants.last, constants.inverses)
    decision = (constants.start, constants.ambiguous_below)
    _cpu.remainder_limbs(
        residues[: len(constants.moduli)], *tables, *decision, constants.divisor, limbs, ambiguous
    )
    return limbs, ambiguous.view(np.bool_)


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
    checksum: int = _cpu.crc32c(words)
    return checksum


def parse_lines(
    text: bytes, start: int, longest: int, spaces: int, signed: bool, limbs: NDArray[np.uint32]
) -> tuple[int, int]:
    """Read lines of text, each an integer, into (N, L) limbs; in two's complement when `signed`.

    There may be as many as `spaces` spaces and tabs around an integer.

    Returns
    -------
    rows, end : int
        How many were read, and where in the text they end: before the first line that does not end there,
        has more than `longest` characters, is no integer or does not fit into the limbs; or is a decimal one
        of thousands of digits.
    """
    rows, end = _cpu.parse_lines(text, start, longest, spaces, signed, limbs)
    return rows, end


def parse_decimal_lines(
    text: bytes, start: int, longest: int, spaces: int, signed: bool, limbs: NDArray[np.uint32]
) -> tuple[int, int]:
    """As :func:`parse_lines`, of decimal integers only, of any length, into limbs in base 10**9.

    When `signed`, the last of L limbs is 1 for a negative number; it counts ``-10**(9 (L - 1))``.
    """
    rows, end = _cpu.parse_decimal_lines(text, start, longest, spaces, signed, limbs)
    return rows, end


def format_hexadecimal(limbs: NDArray[np.uint32], signed: bool) -> NDArray[np.uint8]:
    """Write (N, L) limbs, in two's complement when `signed`, as lines of text."""
    text = np.empty(len(limbs) * (8 * limbs.shape[1] + 4), dtype=np.uint8)
    return text[: _cpu.format_hexadecimal(limbs, signed, text)]


def format_decimal(limbs: NDArray[np.uint32], negative: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Write magnitudes, (N, L) limbs in base 10**9, with their signs as lines of text."""
    text = np.empty(len(limbs) * (9 * limbs.shape[1] + 2), dtype=np.uint8)
    return text[: _cpu.format_decimal(limbs, negative.view(np.uint8), text)]


def residues_to_decimal(
    residues: Array, constants: DecimalConstants
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """The numbers' magnitudes as (N, L) limbs in base 10**9, and which numbers are negative."""
    limbs = np.empty((residues.shape[1], len(constants.product)), dtype=np.uint32)
    negative = np.empty(len(limbs), dtype=np.bool_)
    tables = (constants.table, constants.last, constants.inverses, constants.product, constants.highest)
    _cpu.residues_to_decimal(residues, *tables, limbs, negative.view(np.uint8))
    return limbs, negative


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


def matmul(a: Array, b: Array, moduli: ModuliSet, out: Array) -> None:
    _cpu.matmul(a, b, modulus_table(moduli), out)


def int8_split(x: Array, constants: Int8Constants, out: Array) -> None:
    _cpu.int8_split(x, constants.small, constants.weights, out)


def int8_join(sums: Array, constants: Int8Constants, out: Array) -> None:
    _cpu.int8_join(sums, constants.small, constants.weights, out)


def eliminate(
    x: Array, pivot_columns: int, moduli: ModuliSet, out: Array
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint32]]:
    n, count, rows, _ = x.shape
    order = np.empty((n, count, rows), dtype=np.int32)
    pivots = np.empty((n, count, min(rows, pivot_columns)), dtype=np.int32)
    products = np.empty((n, count), dtype=np.uint32)
    _cpu.eliminate(x, pivot_columns, modulus_table(moduli), out, order, pivots, products)
    return order, pivots, products


def lu_factor(packed: Array, factor: Literal["P", "L", "U"], out: Array) -> None:
    rows, columns = np.ogrid[: out.shape[2], : out.shape[3]]
    if factor == "P":
        np.equal(packed[:, :, None, :, -1], rows, out=out, casting="unsafe")
        return
    is_below = columns < rows
    out[...] = columns == rows if factor == "L" else 0
    np.copyto(out, packed[:, :, : out.shape[2], : out.shape[3]], where=is_below == (factor == "L"))


def solve_upper(upper: Array, right: Array, moduli: ModuliSet, out: Array) -> None:
    _cpu.solve_upper(upper, right, modulus_table(moduli), out)


def characteristic_polynomials(x: Array, moduli: ModuliSet) -> NDArray[np.uint32]:
    n, count, length, _ = x.shape
    out = np.empty((n, count, length + 1), dtype=np.uint32)
    _cpu.characteristic_polynomials(x, modulus_table(moduli), out)
    return out


def remainder_sequences(
    x: Array, y: Array, degrees: tuple[Array, Array], moduli: ModuliSet, divisors: bool
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    n, count, _ = x.shape
    length = max(x.shape[-1], y.shape[-1]) if divisors else 0
    numerators, denominators = (np.empty((n, count), dtype=np.uint32) for _ in range(2))
    found = np.empty((n, count, length), dtype=np.uint32)
    _cpu.remainder_sequences(x, y, *degrees, modulus_table(moduli), numerators, denominators, found)
    return numerators, denominators, found


def divide_polynomials(
    x: Array, y: Array, degrees: Array, moduli: ModuliSet
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    quotients, remainders = (np.empty(x.shape, dtype=np.uint32) for _ in range(2))
    _cpu.divide_polynomials(x, y, degrees, modulus_table(moduli), quotients, remainders)
    return quotients, remainders


def convolve(x: Array, y: Array, moduli: ModuliSet, first: int, out: Array) -> None:
    _cpu.convolve(x, y, modulus_table(moduli), first, out)


def padded_residues(x: Array, primes: ModuliSet, out: Array) -> None:
    _cpu.padded_residues(x, modulus_table(primes), out)


def three_prime_remainders(x: Array, constants: ThreePrimeConstants, out: Array) -> None:
    _cpu.three_prime_remainders(x, constants.primes, constants.weights, out)


def interval_rns_add(
    x: Array, y: Array, moduli: ModuliSet, subtract: bool, algorithm: int | str, accuracy: float, out: Array
) -> NDArray[np.uint8]:
    flags = np.empty(out.shape[1], dtype=np.uint8)
    selectors = np.empty(out.shape[1] if algorithm == "digits" else 0, dtype=np.uint32)
    how = (subtract, INTERVAL_RNS_ALGORITHMS[algorithm], accuracy)
    _cpu.interval_rns_add(x, y, modulus_table(moduli), *how, out, selectors, flags)
    return flags


def interval_rns_multiply(
    x: Array, y: Array, product: ProductBounds, accuracy: float, out: Array
) -> NDArray[np.uint8]:
    flags = np.empty(out.shape[1], dtype=np.uint8)
    n = len(product.moduli)
    apply("multiply", (x[:n], y[:n]), product.moduli, out[:n])
    bounds = (product.low, product.upp, product.exponent)
    _cpu.interval_rns_multiply_headers(x, y, *bounds, accuracy, out, flags)
    return flags


def interval_rns_compare(x: Array, y: Array, moduli: ModuliSet) -> NDArray[np.int8]:
    order = np.empty(max(x.shape[1], y.shape[1]), dtype=np.int8)
    _cpu.interval_rns_compare(x, y, len(moduli), order)
    return order


def ntt(residues: Array, constants: TransformConstants, out: Array, method: str = "best") -> None:
    table = modulus_table(constants.moduli)
    _cpu.ntt(
        residues, constants.length, table, constants.roots, constants.scales, _space(constants), out, method
    )


def cyclic_products(
    x: Array,
    y: Array,
    forward: TransformConstants,
    inverse: TransformConstants,
    out: Array,
    method: str = "best",
) -> None:
    """Write the cyclic products of runs of ``forward.length`` elements, one after another in each row.

    `out` (n, N), which is written, is no operand. Where an operand has one run a row, it serves for all.
    """
    roots = (modulus_table(forward.moduli), forward.roots, inverse.roots, inverse.scales)
    _cpu.cyclic_products(x, y, forward.length, *roots, _space(forward), out, method)


def _space(constants: TransformConstants) -> NDArray[np.uint32]:
    # NumPy asks for huge pages, without which the first touch of so much takes as long as the transform.
    return np.empty(constants.length, dtype=np.uint32)


def transform_methods() -> list[str]:
    """The instruction sets by which this processor transforms, portable first; all give the same."""
    methods: list[str] = _cpu.transform_methods()
    return methods


def fermat_apply(operation: str, operands: Sequence[Array], field: FermatConstants, out: Array) -> None:
    _cpu.fermat_apply(operation, operands, field.parameters, out)


def fermat_multiply_by_root(x: Array, exponent: int, field: FermatConstants, out: Array) -> None:
    _cpu.fermat_multiply_by_root(x, exponent, field.parameters, out)


def fermat_pass(x: Array, step: FermatPass, out: Array) -> None:
    _cpu.fermat_pass(x, step.field.parameters, step.shape, step.factors, out)


def fermat_first_invalid(x: Array, field: FermatConstants) -> int | None:
    index: int = _cpu.fermat_first_invalid(x, field.parameters)
    return None if index < 0 else index


def positional_add(
    operands: Sequence[Array],
    are_signed: Sequence[bool],
    subtract: bool,
    top_bits: int,
    signed: bool,
    out: Array,
) -> NDArray[np.uint8]:
    flags = np.empty(out.shape[1], dtype=np.uint8)
    (x, y), (x_signed, y_signed) = operands, are_signed
    _cpu.positional_add(x, x_signed, y, y_signed, subtract, top_bits, signed, out, flags)
    return flags


def positional_compare(x: Array, y: Array, signed: bool) -> NDArray[np.int8]:
    order = np.empty(max(x.shape[1], y.shape[1]), dtype=np.int8)
    _cpu.positional_compare(x, y, signed, order)
    return order


def positional_shift(x: Array, bits: Array, top_bits: int, signed: bool) -> NDArray[np.uint32]:
    out = np.empty((len(x), max(x.shape[1], len(bits))), dtype=np.uint32)
    _cpu.positional_shift(x, bits, top_bits, signed, out)
    return out


def positional_count(x: Array, signed: bool, what: str) -> NDArray[np.int64]:
    counts = np.empty(x.shape[1], dtype=np.int64)
    _cpu.positional_count(x, signed, LIMB_COUNTS.index(what), counts)
    return counts


def overlap_add(numbers: NDArray[np.uint32], step: int, out: NDArray[np.uint32]) -> None:
    """Add (N, L) limbs to those of one number: row k counts ``2**(32 step k)``; a last carry is dropped."""
    _cpu.overlap_add(numbers, step, out)


def interval_arithmetic(operation: str, x: Bounds, y: Bounds, product: ProductBounds) -> Bounds:
    z = tuple(np.empty_like(array) for array in x)
    bounds = (product.low, product.upp, product.exponent)
    _cpu.interval_arithmetic(INTERVAL_OPERATIONS.index(operation), *x, *y, *bounds, *z)
    return z


def limbs_to_fermat(limbs: Array, signed: bool, field: FermatConstants) -> Array:
    limbs = np.ascontiguousarray(limbs)
    digits = np.empty((field.digits, len(limbs)), dtype=field.dtype)
    _cpu.limbs_to_fermat(limbs, signed, *_radix_arguments(field), digits)
    return digits


def fermat_to_limbs(digits: Array, field: FermatConstants) -> Array:
    limbs = np.empty((digits.shape[1], radix_division(field).limb_count), dtype=np.uint32)
    _cpu.fermat_to_limbs(digits, *_radix_arguments(field), limbs)
    return limbs


def transpose(matrix: Array, out: Array) -> None:
    _cpu.transpose(matrix, out)


def _radix_arguments(field: FermatConstants) -> tuple[int, ...]:
    wide = radix_division(field)
    return field.radix, wide.radix, wide.normalized, wide.reciprocal, wide.shift


def positional_methods() -> list[str]:
    """The ways to multiply positional numbers that this processor has, the quickest last."""
    methods: list[str] = _cpu.positional_methods()
    return methods


_POSITIONAL_METHOD = positional_methods()[-1]


most_product_limbs = {"portable": 256, "avx2": 4096, "ifma": 16384}[_POSITIONAL_METHOD]


def positional_multiply(
    x: Array,
    y: Array,
    addend: Array | None,
    bits: int,
    signed: bool,
    out: Array,
    overflowed: Array | None,
    method: str = _POSITIONAL_METHOD,
    algorithm: str = "best",
) -> None:
    flags = None if overflowed is None else overflowed.view(np.uint8)
    _cpu.positional_multiply(x, y, addend, bits, signed, out, flags, method, algorithm)


def _turned(matrix: Array) -> NDArray[np.uint32]:
    out = np.empty(matrix.shape[::-1], dtype=np.uint32)
    transpose(matrix, out)
    return out


def positional_divmod(
    x: Array, y: Array, signed: bool, method: str = _POSITIONAL_METHOD
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    if method == "portable":
        # Words of 64 bits are quicker where there are no vectors, though limbs are turned first.
        width = max(len(x) + signed, len(y))
        found = floor_divide_limbs(_turned(x), _turned(y), width, signed)
        return _turned(found[0]), _turned(found[1])
    count = max(x.shape[1], y.shape[1])
    quotients = np.empty((len(x) + signed, count), dtype=np.uint32)
    remainders = np.empty((len(y), count), dtype=np.uint32)
    _cpu.positional_divmod(x, y, signed, quotients, remainders, method)
    return quotients, remainders


# These are left to integers.
positional_gcd = positional_isqrt = None


def positional_inverse(x: Array, moduli: Array, out: Array, method: str = _POSITIONAL_METHOD) -> int | None:
    index: int = _cpu.positional_inverse(x, moduli, out, method)
    return None if index < 0 else index


def positional_mod_add(
    x: Array, y: Array, moduli: Array, subtract: bool, out: Array, method: str = _POSITIONAL_METHOD
) -> bool:
    are_reduced: bool = _cpu.positional_mod_add(x, y, moduli, subtract, out, method)
    return are_reduced


def positional_mod_multiply(
    x: Array, y: Array, moduli: Array, out: Array, method: str = _POSITIONAL_METHOD
) -> None:
    _cpu.positional_mod_multiply(x, y, moduli, out, method)


def montgomery_bits(limbs: int, method: str = _POSITIONAL_METHOD) -> int:
    bits: int = _cpu.montgomery_bits(limbs, method)
    return bits


def montgomery_multiply(
    x: Array, y: Array, moduli: Array, squares: Array, out: Array, method: str = _POSITIONAL_METHOD
) -> None:
    _cpu.montgomery_multiply(x, y, moduli, squares, out, method)


def montgomery_power(
    x: Array,
    exponents: Array,
    bits: int,
    moduli: Array,
    squares: Array,
    out: Array,
    method: str = _POSITIONAL_METHOD,
) -> None:
    _cpu.montgomery_power(x, exponents, bits, moduli, squares, power_window(bits), out, method)
