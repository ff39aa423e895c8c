"""Numbers that carry intervals, as tests need them: adversarial ones, and checks of their headers."""

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from conftest import Processor
from oracles.integers import Range
from oracles.interval import encloses

from rnsdask.core.moduli import ModuliSet
from rnsdask.interval_rns import arithmetic, layout


def check_columns(columns: Any, values: Sequence[int], moduli: ModuliSet, processor: Processor) -> None:
    """The numbers are the values, and every header obeys the layout's rules."""
    assert arithmetic.to_ints(columns, moduli).tolist() == list(values)
    parts = {name: layout.part_of(columns, moduli, name) for name in layout.PART_DTYPES}
    for name, dtype in layout.PART_DTYPES.items():
        assert parts[name].dtype == dtype
    fields = (processor.to_numpy(parts[name]).tolist() for name in ("sign", "low", "upp", "exponent"))
    for value, sign, low, upp, exponent in zip(values, *fields, strict=True):
        what = f"x = {value:#x}, [{low!r}, {upp!r}] * 2**{exponent}, {moduli}"
        assert sign == (value < 0), what
        if value == 0:
            assert (low, upp, exponent) == (0.0, 0.0, 0), what
            continue
        assert encloses(low, upp, exponent, abs(value), moduli.product), what
        assert 0.5 <= upp < 1.0, what
        assert Fraction(upp) - Fraction(low) <= Fraction(layout.ACCURACY) * Fraction(low), what


def edge_numbers(moduli: ModuliSet, generator: random.Random) -> list[int]:
    product = moduli.product
    values = {0, 1, 2, product - 1, product - 2, product // 2, product // 2 + 1, (product - 1) // 2}
    values |= {product // 3, 10**20, 10**20 + 1, 2**40, 2**40 - 1}
    values |= {generator.randrange(product) for _ in range(6)}
    inside = sorted(v for v in values if 0 <= v < product)
    return [-v for v in inside] + inside


def wrapped(value: int, product: int) -> int:
    """The sign of a result with its magnitude modulo M."""
    return Range.of("interval", product).wrap(value)
