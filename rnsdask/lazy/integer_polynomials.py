"""Polynomials of integers, exact, lazy on Dask (:mod:`rnsdask.fields.integer_polynomials`).

Results are Python ints in object arrays; rationals are a pair of numerators and denominators.
"""

from collections.abc import Callable
from typing import Any

from rnsdask.fields import integer_polynomials
from rnsdask.lazy.lazy_ints import as_exact, number
from rnsdask.lazy.pieces import kept_blocks
from rnsdask.lazy.polynomials import map_each, map_pairs, point_count
from rnsdask.lazy.promotion import common_bound

Function = Callable[..., Any]


def divide(f: Any, g: Any) -> tuple[Any, Any]:
    """Quotients and remainders by polynomials with the leading coefficient 1 or -1."""
    first, second = f.words.shape[-1], max(g.words.shape[-1] - 1, 1)
    packed = _of_pairs(integer_polynomials.divided, f, g, first + second)
    return packed[..., :first], packed[..., first:]


def common_divisor(f: Any, g: Any) -> Any:
    """Greatest common divisors of polynomials over the integers."""
    length = max(f.words.shape[-1], g.words.shape[-1])
    return _of_pairs(integer_polynomials.common_divisors, f, g, length, False)


def evaluate(f: Any, points: Any) -> Any:
    """Values of polynomials at points."""
    return _of_pairs(integer_polynomials.values_at, f, points, points.words.shape[-1], False)


def interpolate(points: Any, values: Any) -> tuple[Any, Any]:
    """Polynomials of the least degree with values at points: numerators and denominators."""
    length = point_count("interpolate", points, values)
    return _rationals(_of_pairs(integer_polynomials.interpolated, points, values, length + 1))


def compose(f: Any, g: Any, *, length: int) -> Any:
    """Compositions f(g(x))."""
    return _of_pairs(integer_polynomials.compositions, f, g, length, False, count=length)


def power_mod(f: Any, g: Any, *, exponent: int) -> Any:
    """Powers modulo polynomials whose leading coefficients are 1 or -1."""
    length = max(g.words.shape[-1] - 1, 1)
    return _of_pairs(integer_polynomials.powers_modulo, f, g, length, exponent=exponent)


def powers(f: Any, *, exponent: int, length: int) -> Any:
    """Powers of series."""
    how: dict[str, Any] = {"count": length, "exponent": exponent, "located": False}
    return _of_series("power_mod", integer_polynomials.powers, f, length, **how)


def inverse_series(f: Any, *, length: int) -> Any:
    """Inverses of series whose constant terms are 1 or -1."""
    return _of_series("inverse_series", integer_polynomials.inverses, f, length, count=length)


def log_series(f: Any, *, length: int) -> tuple[Any, Any]:
    """Logarithms of series: numerators and denominators."""
    return _rationals(_of_series("log_series", integer_polynomials.logarithms, f, length + 1, count=length))


def exp_series(f: Any, *, length: int) -> tuple[Any, Any]:
    """Exponentials of series: numerators and denominators."""
    return _rationals(_of_series("exp_series", integer_polynomials.exponentials, f, length + 1, count=length))


def _of_pairs(function: Function, f: Any, g: Any, length: int, located: bool = True, **options: Any) -> Any:
    """Apply a function to the chunks of two arrays, as :func:`map_pairs`: Python ints (*batch, length)."""
    system = common_bound(f, g)
    found = map_pairs(function, f, g, length, None, located, system=system, dtype=object, **options)
    return as_exact(kept_blocks(found))


def _of_series(name: str, function: Function, f: Any, length: int, **options: Any) -> Any:
    """Apply a function to the chunks of series: Python ints (*batch, length)."""
    how: dict[str, Any] = {"system": f.system, "dtype": object, "located": True, "token": f"poly-{name}"}
    return as_exact(kept_blocks(map_each(function, f, length, None, **{**how, **options})))


def _rationals(packed: Any) -> tuple[Any, Any]:
    """Split packed results into numerators (*batch, length) and denominators (*batch), which are last."""
    return packed[..., :-1], number(packed[..., -1])
