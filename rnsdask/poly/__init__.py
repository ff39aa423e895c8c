"""Polynomials as arrays of coefficients along the last axis, that of degree 0 first, exact."""

from rnsdask.lazy.planning import explained
from rnsdask.lazy.power_series import compose, derivative, exp_series, inverse_series, log_series, power_mod
from rnsdask.poly.divide import divmod, gcd  # noqa: A004  (of polynomials)
from rnsdask.poly.multiply import multiply
from rnsdask.poly.resultant import discriminant, resultant
from rnsdask.poly.values import evaluate, interpolate

__all__ = [
    "compose",
    "derivative",
    "discriminant",
    "divmod",
    "evaluate",
    "exp_series",
    "gcd",
    "interpolate",
    "inverse_series",
    "log_series",
    "multiply",
    "power_mod",
    "resultant",
]

globals().update((name, explained(globals()[name])) for name in __all__)
