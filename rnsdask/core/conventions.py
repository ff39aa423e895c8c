"""The root of unity and the order of values that a transform has, in which libraries differ."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Convention:
    """Root and order of transforms of length N that are not the usual ones.

    Attributes
    ----------
    exponents : tuple of int
        The root of field i is its usual one, of order N or for negacyclic transforms 2N, to the power
        ``exponents[i]``. One exponent alone is that of all rows of words.
    is_reversed : bool
        Whether value ``X_j`` is where the bits of j are reversed, instead of at j.
    """

    exponents: tuple[int, ...]
    is_reversed: bool
