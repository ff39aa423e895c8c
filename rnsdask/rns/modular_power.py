"""Powers modulo an integer of a chunk of numbers, as Python's pow with three arguments. No Dask in here.

Modulo at most 32 bits they are powers of single residues. Else GMP raises Python integers on a CPU, where
no division of residues is as fast; on a GPU residues are multiplied, under a moduli set that holds products
of two remainders, and divided.
"""

from collections.abc import Callable

import gmpy2
import numpy as np

from rnsdask.backend import Array, kernels_of
from rnsdask.constants import forward_constants
from rnsdask.core.errors import NumberError, abbreviate
from rnsdask.core.layout import as_matrix
from rnsdask.core.moduli import MODULUS_MAX, ModuliSet
from rnsdask.core.place import Locate
from rnsdask.rns.blocks import column_of
from rnsdask.rns.compare import choose, sign
from rnsdask.rns.divide import divide_by_integer, small_remainder
from rnsdask.rns.extend import base_extend
from rnsdask.rns.matmul import enlarged
from rnsdask.rns.powers import power_of_residues
from rnsdask.rns.system import RNS


def check_modulus(modulus: int, system: RNS) -> None:
    """Raise ValueError if powers modulo an integer are not defined, or may be out of the system's range."""
    if modulus == 0:
        raise ValueError("the modulus of a power must not be 0")
    if modulus < 0 and not system.signed:
        raise ValueError(f"powers of unsigned numbers need a positive modulus, got {abbreviate(modulus)}")
    highest = system.value_range[1]
    if abs(modulus) - 1 > highest:
        raise ValueError(
            f"powers modulo {abbreviate(modulus)} do not fit the moduli set, whose {system.range_kind} range "
            f"ends at {abbreviate(highest)}; x.extend(moduli) takes more moduli"
        )


def power_modulo(residues: Array, exponent: int, modulus: int, system: RNS, locate: Locate = int) -> Array:
    """Residues of ``pow(number, exponent, modulus)`` for each number of a chunk (n, *shape).

    Parameters
    ----------
    exponent : int
        Of any size; a negative one raises the number's inverse.
    modulus : int
        One that :func:`check_modulus` allows. Results are 0, or of its sign and less than it in magnitude.

    Raises
    ------
    ValueError
        If a number has no inverse; it names the index that `locate` makes of that in the chunk.
    """
    size, matrix = abs(modulus), as_matrix(residues)
    if exponent < 0 or (isinstance(matrix, np.ndarray) and size > MODULUS_MAX):
        result = _by_integers(matrix, exponent, size, system, locate)
    elif size == 1:
        result = np.zeros_like(matrix)
    elif size <= MODULUS_MAX:
        result = _by_one_residue(matrix, exponent, size, system)
    else:
        result = by_division(matrix, exponent, size, system)
    if modulus < 0:
        result = _made_negative(result, size, system)
    return result.reshape(residues.shape)


def power_modulo_by_array(
    residues: Array, exponents: Array, modulus: int, system: RNS, locate: Locate = int
) -> Array:
    """Raise numbers to powers modulo an integer, by exponents (1, *shape) that broadcast with the numbers."""
    shape = np.broadcast_shapes(residues.shape[1:], exponents.shape[1:])
    matrix = as_matrix(np.broadcast_to(residues, (len(residues), *shape)))

    def power(chosen: Array, exponent: int) -> Array:
        part = kernels_of(matrix).gather(matrix, chosen)
        return power_modulo(part, exponent, modulus, system, lambda index: locate(int(chosen[index])))

    result = np.empty_like(matrix, order="C")
    return by_each_exponent(power, result, np.broadcast_to(exponents[0], shape)).reshape(len(matrix), *shape)


def by_each_exponent(power: Callable[[Array, int], Array], result: Array, exponents: Array) -> Array:
    """Write powers (k, N) by an exponent for each number, all of one exponent together.

    Parameters
    ----------
    power : callable
        ``power(chosen, exponent)``, words of the powers of the numbers at some indices by a Python int.
    exponents : array of N integers, of any shape

    Returns
    -------
    The array that is written.
    """
    given = exponents.reshape(-1)
    for exponent in np.unique(given).tolist():
        (chosen,) = (given == exponent).nonzero()
        result[:, chosen] = power(chosen, exponent)
    return result


def _by_integers(matrix: Array, exponent: int, modulus: int, system: RNS, locate: Locate) -> Array:
    values = system.decode(matrix).tolist()
    if exponent < 0:
        for index, value in enumerate(values):
            if gmpy2.gcd(value, modulus) != 1:
                raise NumberError(
                    f"the number at flat index {locate(index)} is not invertible modulo {abbreviate(modulus)}"
                )
    powers = gmpy2.powmod_base_list(values, exponent, modulus)
    return np.asarray(system.encode(powers), like=matrix)


def _by_one_residue(matrix: Array, exponent: int, modulus: int, system: RNS) -> Array:
    remainders = small_remainder(matrix, system, modulus)[None]
    powers = power_of_residues(remainders, exponent, ModuliSet([modulus])).reshape(-1, 1)
    result = np.empty_like(matrix, order="C")
    kernels_of(result).limbs_to_residues(powers, forward_constants(system.moduli, 1), result)
    return result


def by_division(matrix: Array, exponent: int, modulus: int, system: RNS) -> Array:
    """The powers by residues alone, for an exponent that is not negative and a modulus of at least 2."""
    wide = enlarged(RNS(system.moduli), modulus**2)
    base = divide_by_integer(matrix, modulus, system, ("remainder",))
    base = base_extend(base, system.with_bound(modulus - 1), wide.moduli)
    products = wide.with_bound((modulus - 1) ** 2)

    def multiplied(a: Array, b: Array) -> Array:
        out = np.empty_like(base, order="C")
        kernels_of(out).apply("multiply", (a, b), wide.moduli, out)
        return divide_by_integer(out, modulus, products, ("remainder",))

    result = np.broadcast_to(np.asarray(column_of(1, wide.moduli), like=base), base.shape).copy()
    for position, bit in enumerate(f"{exponent:b}"):
        result = multiplied(result, result) if position else result
        result = multiplied(result, base) if bit == "1" else result
    return result[: system.rows]


def _made_negative(result: Array, size: int, system: RNS) -> Array:
    """Results from 0 to size - 1 as those of a negative modulus: less by `size` where they are not 0."""
    out = np.empty_like(result, order="C")
    kernels_of(out).apply("subtract", (result, column_of(size, system.moduli)), system.moduli, out)
    nonzero = sign(result, system.with_bound(size - 1)) != 0
    return choose(nonzero[None], out, result)
