"""Rescaling and base extension of arrays of elements, lazy on Dask (:mod:`rnsdask.fields.base_change`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, SupportsIndex

from rnsdask.core import rows
from rnsdask.core.errors import abbreviate, brief
from rnsdask.core.moduli import as_integer
from rnsdask.core.ways import must
from rnsdask.fields.base_change import some_fields
from rnsdask.fields.system import PrimeFields, centring_offset, check_prime_fields, prime_fields
from rnsdask.lazy.elementwise import map_entry
from rnsdask.lazy.fields import check_elements
from rnsdask.lazy.operands import N, make_like

Rounding = Literal["round", "floor"]
Half = Literal["up", "down"]


def rescale(f: N, primes: SupportsIndex = 1, rounding: Rounding = "round") -> N:
    """Divide by the product d of the last primes, exactly rounded, and drop them.

    An element is read as an integer x, from 0 to M - 1 or around 0: the quotients of both are the same
    element of the fields that are left. It is that of ``floor(x / d + 1/2)``, or of ``floor(x / d)``. This is
    the rescaling of CKKS and the modulus switching of BFV in residues: J. Cheon, K. Han, A. Kim, M. Kim and
    Y. Song, "A full RNS variant of approximate homomorphic encryption", SAC 2018. SEAL, OpenFHE, Lattigo and
    HEonGPU round (docs/homomorphic-encryption.md).

    Parameters
    ----------
    f : FieldArray
        Coefficients, not transforms; of n prime fields. In memory, or in any chunks on Dask.
    primes : int
        Number of primes to drop, from 1 to n - 1, of the last ones.
    rounding : {"round", "floor"}
        To the nearest integer, halves up, which only an even d has; or down.

    Returns
    -------
    FieldArray
        Elements of the first n - `primes` fields, of the same shape; lazy with the same chunks if `f` is.

    Raises
    ------
    TypeError
        If `f` is not an array of elements of prime fields, or `primes` is not an integer.
    ValueError
        If no prime would be dropped, or none be left, or `rounding` is another name.
    """
    check_elements("rescale", f)
    check_prime_fields("rescale", f.system)
    system, count = f.system, as_integer(primes, "primes")
    if not 1 <= count < system.rows:
        rule = f"be from 1 to {system.rows - 1}, so that some of the {system.rows} primes are left"
        raise ValueError(must("primes", f"{rule}, got {abbreviate(count)}"))
    if rounding not in ("round", "floor"):
        raise ValueError(must("rounding", f"be 'round' or 'floor', got {brief(rounding)}"))
    kept = some_fields(system.primes[:-count])
    options: dict[str, Any] = {"dropped": count, "to_nearest": rounding == "round"}
    words = map_entry(rows.rescale, (f.words,), system, result=kept, **options)
    found: N = make_like((f,), words, kept, "raise")
    return found


def base_extend(
    f: N, primes: Iterable[SupportsIndex] | PrimeFields, signed: bool = False, half: Half | None = None
) -> N:
    """Elements of other prime fields that have the same integers: residues modulo other primes, exact.

    Methods that homomorphic encryption calls fast base conversion are off by a multiple of M here and there
    (J. Bajard, J. Eynard, A. Hasan and V. Zucca, SAC 2016); this one is not. Primes that `f` has are copied,
    so that with some of its primes alone the others are dropped, without a division.

    Parameters
    ----------
    f : FieldArray
        Elements of prime fields; M is the product of their primes.
    primes : iterable of int, or PrimeFields
        The primes of the result, as :class:`.PrimeFields` takes them: ``[*f.system.primes, *others]`` keeps
        those of `f`.
    signed, half
        Which integer an element is read as, as :meth:`.FieldArray.lift` takes them: from 0 to M - 1, or with
        `signed` around 0.

    Returns
    -------
    FieldArray
        Of the same shape; lazy with the same chunks if `f` is.

    Raises
    ------
    TypeError
        If `f` is not an array of elements of prime fields, or `signed` is not a bool.
    ValueError
        If a number is not a prime or appears twice, or `half` is wrong.
    """
    check_elements("base_extend", f)
    check_prime_fields("base_extend", f.system)
    fields = prime_fields(primes)
    offset = centring_offset(f.system.moduli.product, signed, half)
    words = map_entry(rows.base_extend, (f.words,), f.system, result=fields, fields=fields, offset=offset)
    found: N = make_like((f,), words, fields, "raise")
    return found
