"""How long the greatest number of a chunk is, in magnitude: a bound that is tight. No Dask in here.

A sample gives a bound that holds for nearly all numbers. One pass proves it, as in :mod:`rnsdask.rns.bounds`,
or finds the numbers beyond it: where they are many, another sample raises it; the few that are left are
measured. So small numbers in a large range cost no more than the proof of their bound, and numbers as long as
M next to nothing: no number can be longer.
"""

import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import sufficient_prefix
from rnsdask.core.layout import as_matrix
from rnsdask.rns.blocks import batches
from rnsdask.rns.bounds import block_length, find_beyond, find_open, find_those_beyond
from rnsdask.rns.magnitude import magnitudes
from rnsdask.rns.sampled_bound import MANY, SAMPLE, distance, looked_at, sampled_bound
from rnsdask.rns.system import RNS

# Numbers that tell at once if not all are small.
_FIRST = 8

# Of more than one of so many numbers that a proof leaves open, some are looked at.
_MANY_OPEN = 16

# So many times at most: samples that always meet the shortest numbers would take a proof of all for each bit.
_MOST_SAMPLES = 16

SMALL_BITS = 16
"""Numbers are small beside a system if their bound is shorter than its own by so many bits."""

_EXPONENT_OF_ZERO = -(2**40)


def narrowed(system: RNS, *matrices: Array) -> RNS | None:
    """The system with a bound of many numbers that are all small beside it; None if they are not, or few.

    Evaluations under it tell numbers apart that those under the whole system cannot.

    Parameters
    ----------
    *matrices : arrays of uint32, shape (n, N) each
        NumPy or CuPy; the numbers.
    """
    if max(matrix.shape[1] for matrix in matrices) < MANY:
        return None
    enough, bound = system.known_magnitude >> SMALL_BITS, 0
    if enough == 0:
        return None
    guesses = [_glance(matrix, system) for matrix in matrices]
    if any(guess > enough for guess in guesses):
        return None
    for matrix, guess in zip(matrices, guesses, strict=True):
        sampled = None if isinstance(matrix, np.ndarray) else guess
        bound = max(bound, measured_bound(matrix, system, enough, sampled))
        if bound > enough:
            return None
    return system.with_bound(bound)


def _glance(matrix: Array, system: RNS) -> int:
    """Guess the bound from a few numbers; on a GPU more of them take no longer."""
    return sampled_bound(matrix[:, :_FIRST] if isinstance(matrix, np.ndarray) else matrix, system)


def measured_bound(
    residues: Array, system: RNS, enough: int | None = None, sampled: int | None = None
) -> int:
    """The greatest integer that is no longer, in bits, than the greatest magnitude; 0 without numbers.

    It is at least the greatest magnitude and less than twice that, and does not depend on how numbers are cut
    into chunks; it is cut down to the range, and to the system's bound.

    Parameters
    ----------
    residues : array of uint32, shape (n, *shape)
        NumPy or CuPy; each residue below its modulus.
    system : RNS
        Their number system; fewer moduli are read if it has a bound.
    enough : int, optional
        Measure no further where the bound is beyond this. The result is then the greatest bound there is.
    sampled : int, optional
        What :func:`sampled_bound` gives, if that is known already.
    """
    bound = _proved_bound(residues, system, enough, sampled)
    return system.known_magnitude if bound is None else bound


def _proved_bound(residues: Array, system: RNS, enough: int | None, sampled: int | None) -> int | None:
    """Measure the bound; None where it is beyond `enough`."""
    system = RNS(sufficient_prefix(system.moduli, system.signed, system.bound), system.signed, system.bound)
    matrix = as_matrix(residues[: system.rows])
    bound = sampled_bound(matrix, system) if sampled is None else sampled
    if not system.signed and matrix.shape[1] <= looked_at(matrix):
        return bound  # of all of them
    step = block_length(matrix)
    for start in range(0, matrix.shape[1], step):
        if enough is not None and bound > enough:
            return None
        if bound == system.known_magnitude:
            break
        bound = _raised_for_block(bound, matrix[:, start : start + step], system)
    return bound


def _raised_for_block(bound: int, block: Array, system: RNS) -> int:
    """The bound, raised until it holds for a block of numbers (n, N) too."""
    left_open = find_open(block, system.with_bound(bound))
    # Where a proof leaves many open, the sample did not tell what is there: one of those does.
    for _ in range(_MOST_SAMPLES):
        if left_open is None or left_open.size <= block.shape[1] // _MANY_OPEN:
            break
        some = left_open[:: distance(left_open.size, SAMPLE)]
        guess = sampled_bound(kernels_of(block).gather(block, some), system)
        if guess <= bound or guess == system.known_magnitude:
            break
        bound = guess
        left_open = find_open(block, system.with_bound(bound))
    beyond = find_those_beyond(block, left_open, system.with_bound(bound))
    for indices in batches(beyond, system.rows):
        bound = _measured(bound, kernels_of(block).gather(block, indices), system)
    return bound


def _measured(bound: int, residues: Array, system: RNS) -> int:
    """The bound, raised until it holds for some numbers (n, k) too."""
    while residues.shape[1]:
        bound = _raised(bound, residues, system)
        if bound == system.known_magnitude:
            break
        # Those left are longer than the number that seemed the greatest, by the error of magnitudes.
        beyond = find_beyond(residues, system.with_bound(bound))
        residues = kernels_of(residues).gather(residues, beyond)
    return bound


def _raised(bound: int, residues: Array, system: RNS) -> int:
    """The bound, raised to hold for the number whose magnitude seems the greatest."""
    mantissas, exponents = magnitudes(residues, system)
    fractions, shifts = np.frexp(abs(mantissas))
    sizes = np.where(fractions == 0, _EXPONENT_OF_ZERO, exponents + shifts)
    index = int(np.where(sizes == sizes.max(), fractions, 0.0).argmax())
    bits: int = system.decode_at(residues, index).bit_length()
    return min(max(bound, (1 << bits) - 1), system.known_magnitude)
