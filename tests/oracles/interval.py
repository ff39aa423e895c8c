"""Interval evaluations by their definition, in integers."""


def is_below(bound: float, exponent: int, value: int, product: int) -> bool:
    """bound * 2**exponent <= value / product."""
    numerator, denominator = bound.as_integer_ratio()
    left, right = numerator * product, value * denominator
    return left << max(exponent, 0) <= right << max(-exponent, 0)


def encloses(low: float, upp: float, exponent: int, value: int, product: int) -> bool:
    """low * 2**exponent <= value / product <= upp * 2**exponent."""
    return is_below(low, exponent, value, product) and is_below(-upp, exponent, -value, product)
