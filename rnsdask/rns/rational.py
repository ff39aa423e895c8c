"""Rational numbers from their images modulo one long integer.

The first remainder of Euclid's algorithm within the bound, with the multiplier that leads to it, is the only
fraction there can be (P. Wang, M. Guy, J. Davenport, "p-adic reconstruction of rational numbers", 1982). Many
steps at a time are computed from the leading bits (D. Lehmer, 1938); a quotient is certain while a condition
holds (G. Collins, "Lecture notes on arithmetic algorithms", 1980).
"""

import gmpy2

# Leading bits of both numbers that steps are computed from: twice as many as the steps remove.
_TAKEN = 768
_LEAST_TAKEN = 32


def rational(
    image: int, modulus: int, numerator: int, denominator: int
) -> tuple[gmpy2.mpz, gmpy2.mpz] | None:
    """Fraction n/d with ``n = d image`` modulo an integer, and n and d within bounds, or None.

    |n| is at most `numerator`, and d from 1 to `denominator`. Their product is less than half the modulus, so
    that there is at most one such fraction. It is in lowest terms if d has no common factor with the modulus.
    """
    a, b = gmpy2.mpz(modulus), gmpy2.mpz(image) % modulus
    first, second = gmpy2.mpz(0), gmpy2.mpz(1)
    while b > numerator:
        taken = min(_TAKEN, b.bit_length() - numerator.bit_length() - 2)
        if taken >= _LEAST_TAKEN:
            shift = max(0, a.bit_length() - 2 * taken)
            u, v, w, x = _leading_steps(a >> shift, b >> shift)
            following = u * a + v * b
            if v and following > numerator:  # not beyond the wanted remainder
                a, b = following, w * a + x * b
                first, second = u * first + v * second, w * first + x * second
                continue
        quotient, rest = gmpy2.f_divmod(a, b)
        a, b = b, rest
        first, second = second, first - quotient * second
    found = (b, second) if second > 0 else (-b, -second)
    return None if found[1] > denominator else found


def _leading_steps(a: gmpy2.mpz, b: gmpy2.mpz) -> tuple[gmpy2.mpz, gmpy2.mpz, gmpy2.mpz, gmpy2.mpz]:
    """Multipliers u, v, w, x of steps of Euclid's algorithm, from the leading bits of a and b.

    The two remainders are ``u a + v b`` and ``w a + x b``. The multipliers of b are never less than those of
    a, and of the other sign. So the missing bits change a remainder by less than its multiplier of b: a
    quotient is right if the next remainder is at least its own multiplier, and less than the one before by at
    least both multipliers.
    """
    u, v, w, x = gmpy2.mpz(1), gmpy2.mpz(0), gmpy2.mpz(0), gmpy2.mpz(1)
    while b:
        quotient, rest = gmpy2.f_divmod(a, b)
        y, z = u - quotient * w, v - quotient * x
        if rest < abs(z) or b - rest < abs(z) + abs(x):
            break
        a, b, u, v, w, x = b, rest, w, x, y, z
    return u, v, w, x
