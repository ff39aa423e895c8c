"""Layout of signed multiple-precision integers, as also in kernels/include/rns/interval_rns.cuh.

A number x = (-1)^s X under n moduli is a column of n + 6 words of 32 bits: the residues of X, and its header
of the sign s, the exponent e and the bounds of X/M in double precision,

    low * 2**e <= X/M <= upp * 2**e.

So an array of numbers of shape ``shape`` is one ``uint32`` array of shape ``(n + 6, *shape)``, its *columns*:
one array to slice, to cut into chunks and to give to a kernel, and one task a chunk on Dask.

The upper bound is from 1/2 to less than 1, and the interval's relative width is at most `ACCURACY`. Only zero
has the sign 0, the bounds 0 and the exponent 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rnsdask.backend import Array, backend_name, is_any, kernels_of, to_backend
from rnsdask.core.errors import abbreviate
from rnsdask.core.layout import RESIDUE_DTYPE, as_matrix
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.blocks import batches
from rnsdask.rns.convert import residues_to_ints
from rnsdask.rns.evaluation import interval_evaluation, least_accuracy
from rnsdask.rns.system import RNS

ACCURACY = 2.0**-20
"""Greatest relative width of a stored interval; a wider one is evaluated anew.

That takes sixteen bits of cancellation, so few results of random numbers need it.
"""

# Relative width of new evaluations, which leaves room for a chain of operations before the next.
_NEW_ACCURACY = 2.0**-36

# Relative error of the division in comparisons of widths.
_STORED_ACCURACY = 1.001 * ACCURACY

HEADER_ROWS = 6
_SIGN, _EXPONENT, _LOW, _UPP = 0, 1, 2, 4

PART_DTYPES: dict[str, np.dtype[Any]] = {
    "sign": np.dtype(np.uint8),
    "low": np.dtype(np.float64),
    "upp": np.dtype(np.float64),
    "exponent": np.dtype(np.int32),
}
"""Parts of a header by name, with the types that users and stores see."""


def rows_of(moduli: ModuliSet) -> int:
    """Number of words of a number: n + 6."""
    return len(moduli) + HEADER_ROWS


def residues_of(columns: Any, moduli: ModuliSet) -> Any:
    """View of the magnitudes' residues (n, *shape)."""
    return columns[: len(moduli)]


def signed_residues_of(columns: Any, moduli: ModuliSet) -> Any:
    """View of the residues and, in a last row, the signs (n + 1, *shape), which identify numbers."""
    return columns[: len(moduli) + _SIGN + 1]


def part_of(columns: Array, moduli: ModuliSet, name: str) -> Array:
    """Copy one of `PART_DTYPES` to an array (*shape) of its type."""
    header = columns[len(moduli) :]
    if name == "sign":
        return header[_SIGN].astype(PART_DTYPES["sign"])
    if name == "exponent":
        return header[_EXPONENT].astype(np.uint32).view(np.int32)
    first = _LOW if name == "low" else _UPP
    words = header[first + 1].astype(np.uint64) << np.uint64(32) | header[first]
    return words.view(np.float64)


def nonzero(columns: Array, moduli: ModuliSet) -> Array:
    """Mask (*shape) of the numbers that are not 0, by their upper bounds."""
    return columns[len(moduli) + _UPP + 1] != 0


def is_negative(columns: Array, moduli: ModuliSet) -> Array:
    """Mask (*shape) of the negative numbers."""
    return columns[len(moduli) + _SIGN] != 0


ORDER_KEY_SLACK = 4
"""Greatest difference of two order keys (interval_rns.cuh) that leaves the order open."""


def system_of_magnitudes(columns: Array, moduli: ModuliSet) -> RNS:
    """System of the magnitudes of numbers (n + 6, N), with a bound from their exponents."""
    header = columns[len(moduli) :]
    exponents = np.where(header[_UPP + 1] != 0, header[_EXPONENT].view(np.int32), -moduli.bits)
    highest = int(exponents.max()) if exponents.size else 0
    # The upper bound of X/M is less than 2**highest, also of 0.
    system: RNS = RNS(moduli).holding((0, moduli.product >> max(-highest, 0)))
    return system


def set_signs(columns: Array, moduli: ModuliSet, signs: Array) -> None:
    """Write the signs of nonzero numbers; the sign of 0 stays 0."""
    columns[len(moduli) + _SIGN] = signs & nonzero(columns, moduli)


def pack(residues: Array, moduli: ModuliSet, sign: Array, low: Array, upp: Array, exponent: Array) -> Array:
    """Join residues (n, *shape) and matching parts (*shape) to columns (n + 6, *shape).

    The parts may be NumPy's where the residues are on a GPU.
    """
    header = np.empty_like(sign, shape=(HEADER_ROWS, *sign.shape), dtype=RESIDUE_DTYPE, order="C")
    header[_SIGN] = sign
    header[_EXPONENT] = exponent.astype(np.int32, copy=False).view(np.uint32)
    for first, bound in ((_LOW, low), (_UPP, upp)):
        words = bound.astype(np.float64, copy=False).view(np.uint64)
        header[first] = (words & np.uint64(2**32 - 1)).astype(RESIDUE_DTYPE)
        header[first + 1] = (words >> np.uint64(32)).astype(RESIDUE_DTYPE)
    columns = np.empty_like(residues, shape=(rows_of(moduli), *residues.shape[1:]), order="C")
    columns[: len(moduli)] = residues
    columns[len(moduli) :] = to_backend(header, backend_name(residues))
    return columns


def first_invalid(columns: Array, moduli: ModuliSet) -> int | None:
    """Flat index of the first number whose header breaks the rules of :func:`follow_rules`, or None."""
    matrix = as_matrix(columns)
    return kernels_of(matrix).interval_rns_first_invalid(matrix, -moduli.bits, _STORED_ACCURACY)


def follow_rules(
    residues: Array, moduli: ModuliSet, sign: Array, low: Array, upp: Array, exponent: Array
) -> Array:
    """Mask (*shape) of the numbers whose parts follow the rules of the layout.

    Whether an interval contains the X/M of the residues (n, *shape) is not checked. The parts may be NumPy's
    where the residues are on a GPU.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # comparisons with NaN are false
        is_narrow = upp - low <= _STORED_ACCURACY * low
    # With X from 1 to M - 1, X/M is from 2**-bits to less than 1, and the upper bound may round up to 1.
    is_number = is_narrow & (low > 0) & (low <= upp) & (upp >= 0.5) & (upp < 1)
    is_number &= (exponent >= -moduli.bits) & (exponent <= 1)
    is_zero = (upp == 0) & (low == 0) & (exponent == 0) & (sign == 0)
    if is_any(is_zero):
        is_zero &= ~to_backend(residues.any(axis=0), backend_name(sign))
    return (is_zero | is_number) & (sign <= 1)


def normalised(low: Array, upp: Array, exponent: Array) -> tuple[Array, Array, Array]:
    """Scale bounds of fractions, 0 <= low <= upp, exactly, to an upper bound from 1/2 to less than 1."""
    mantissa, shift = np.frexp(upp)
    shift = shift.astype(np.int32)
    exponent = np.where(upp == 0, np.zeros_like(shift), exponent + shift)
    return np.ldexp(low, -shift), mantissa, exponent.astype(np.int32)


def evaluated(residues: Array, moduli: ModuliSet, sign: Array) -> Array:
    """Columns of numbers with these magnitudes' residues (n, *shape), and these signs unless a number is 0.

    ValueError for too many moduli to reach the accuracy of a stored interval in double precision.
    """
    interval = interval_evaluation(residues, RNS(moduli), new_accuracy(moduli))
    bounds = normalised(interval.low, interval.upp, interval.exponent)
    return pack(residues, moduli, sign & (interval.upp != 0), *bounds)


def new_accuracy(moduli: ModuliSet) -> float:
    """Relative width of new evaluations."""
    accuracy = max(_NEW_ACCURACY, 1.02 * float(least_accuracy(len(moduli))))
    if accuracy > ACCURACY:
        raise ValueError(
            f"intervals of {len(moduli)} moduli cannot be evaluated to a relative width of {ACCURACY}"
        )
    return accuracy


def complement(residues: Array, moduli: ModuliSet) -> Array:
    """Residues (n, *shape) of -X modulo M."""
    # In arithmetic modulo 2**32, in which the modulus 2**32 is 0.
    sizes = np.array(list(moduli), dtype=np.uint64).astype(RESIDUE_DTYPE)
    sizes = np.asarray(sizes.reshape(-1, *(1,) * (residues.ndim - 1)), like=residues)
    return np.where(residues == 0, residues, sizes - residues)


def check_columns(columns: Any, moduli: ModuliSet) -> None:
    """Check the type and shape of an array of columns under a moduli set."""
    try:
        dtype, shape, ndim = columns.dtype, columns.shape, columns.ndim
    except AttributeError:
        kind = type(columns).__name__
        raise TypeError(f"columns must be a NumPy, CuPy or Dask array, got {kind}") from None
    if dtype != RESIDUE_DTYPE:
        raise TypeError(f"columns must have dtype uint32, got {dtype}")
    if ndim < 2 or shape[0] != rows_of(moduli):
        raise ValueError(
            f"columns must have {rows_of(moduli)} rows, for {len(moduli)} moduli and a header, and at least "
            f"one axis of numbers; got shape {shape}"
        )


# Numbers examined at a time, to bound the memory in addition to a chunk.
_BLOCK = 2**16

# Exponents of intervals that intersect differ by less.
_FAR = 8


@dataclass(frozen=True)
class WrongHeader:
    """First number of a chunk, by its flat index, whose header does not match its residues' magnitude."""

    index: int
    magnitude: int
    sign: int
    low: float
    upp: float
    exponent: int

    def text(self) -> str:
        """Say what is wrong, for a message that has named the number."""
        return (
            f"its residues are those of {abbreviate(self.magnitude)}, its header has the sign {self.sign} "
            f"and X/M from {self.low!r} to {self.upp!r} times 2**{self.exponent}"
        )


def find_wrong_header(columns: Array, moduli: ModuliSet) -> WrongHeader | None:
    """Find the first number whose header is wrong, by an exact check; None if all are right.

    A header is right if the sign is 0 or 1, the interval holds X/M and is as narrow and normalised as this
    module requires, and all parts are 0 just for 0. Each residue must be below its modulus.
    """
    matrix = as_matrix(columns)
    for start in range(0, matrix.shape[1], _BLOCK):
        block = matrix[:, start : start + _BLOCK]
        (wrong,) = (~_is_right(block, moduli)).nonzero()
        if wrong.size:
            chosen = block[:, wrong[:1]]
            parts = {name: part_of(chosen, moduli, name)[0].item() for name in PART_DTYPES}
            parts["sign"] = int(chosen[len(moduli)][0])
            magnitude = residues_to_ints(residues_of(chosen, moduli), moduli)[0]
            return WrongHeader(start + int(wrong[0]), int(magnitude), **parts)
    return None


def _is_right(columns: Array, moduli: ModuliSet) -> Array:
    """Mask (N,) of the headers that match their residues."""
    residues = residues_of(columns, moduli)
    low, upp, exponent = (part_of(columns, moduli, name) for name in ("low", "upp", "exponent"))
    is_zero = ~residues.any(axis=0)
    right = is_zero & ~columns[len(moduli) :].any(axis=0)
    follow = follow_rules(residues, moduli, columns[len(moduli)], low, upp, exponent)
    (open_,) = (~is_zero & follow).nonzero()
    for accuracy in (new_accuracy(moduli), 1.02 * float(least_accuracy(len(moduli)))):
        if not open_.size:
            break
        chosen = kernels_of(residues).gather(residues, open_)
        holds = _holds(low[open_], upp[open_], exponent[open_], chosen, moduli, accuracy)
        right[open_[holds]] = True
        open_ = open_[~holds]
    for part in batches(open_, len(residues)):
        stored = (low[part].tolist(), upp[part].tolist(), exponent[part].tolist())
        magnitudes = residues_to_ints(kernels_of(residues).gather(residues, part), moduli)
        exact = list(_hold_exactly(magnitudes.tolist(), *stored, moduli))
        right[part] = np.asarray(np.array(exact, dtype=np.bool_), like=right)
    return right


def _holds(
    low: Array, upp: Array, exponent: Array, residues: Array, moduli: ModuliSet, accuracy: float
) -> Array:
    """Mask (N,) of the intervals that contain one evaluated from the residues."""
    found = interval_evaluation(residues, RNS(moduli), accuracy)
    other_low, other_upp, other_exponent = normalised(found.low, found.upp, found.exponent)
    shift = np.clip(exponent.astype(np.int64) - other_exponent, -_FAR, _FAR).astype(np.int32)
    return (np.ldexp(low, shift) <= other_low) & (other_upp <= np.ldexp(upp, shift))


def _hold_exactly(
    magnitudes: list[int], low: list[float], upp: list[float], exponents: list[int], moduli: ModuliSet
) -> Iterator[bool]:
    for magnitude, least, greatest, exponent in zip(magnitudes, low, upp, exponents, strict=True):
        # Other exponents hold no number from 1 to M - 1, and would take memory.
        if not -moduli.bits - _FAR <= exponent <= _FAR:
            yield False
            continue
        scale = Fraction(2) ** exponent * moduli.product
        yield Fraction(least) * scale <= magnitude <= Fraction(greatest) * scale
