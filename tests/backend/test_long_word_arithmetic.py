"""Arithmetic modulo numbers of up to 64 bits by each instruction set, against Python's integers."""

import numpy as np
import pytest

from rnsdask.backend import cpu
from rnsdask.core.operations import OPERATIONS
from rnsdask.core.primes import primes_below
from rnsdask.core.wide_moduli import WideModuli

# Around the greatest moduli of each set of instructions, powers of two among them.
WIDTHS = (31, 32, 33, 48, 49, 50, 51, 52, 53, 59, 60, 61, 62, 63, 64)
MODULI = (
    *(
        2,
        3,
        4,
        5,
        7,
        8,
        97,
        2**31,
        2**32,
        2**32 + 15,
        2**49,
        2**50,
        2**52,
        2**60,
        2**61,
        2**61 - 1,
        2**62,
        2**63,
    ),
    *(next(primes_below(2**bits, 2)) for bits in WIDTHS),
    *(2**bits + 1 for bits in WIDTHS[:-1]),
)
EXACT = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
    "mulsub": lambda a, b, c, d: a * b - c * d,
    "muladd": lambda a, b, c, d: a * b + c * d,
}


def drawn(rng: np.random.Generator, m: int, count: int) -> np.ndarray:
    """Residues, the least and the greatest ones and those around powers of two often among them."""
    ends = [x % m for x in (0, 1, 2, m - 1, m - 2, m // 2, m // 2 + 1, 2**26, 2**32 - 1, 2**52 - 1, 2**63)]
    words = rng.integers(0, m, count, dtype=np.uint64)
    return np.where(
        rng.integers(2, size=count),
        np.array(ends, dtype=np.uint64)[rng.integers(len(ends), size=count)],
        words,
    )


@pytest.mark.parametrize("method", cpu.wide_methods())
@pytest.mark.parametrize("name", OPERATIONS)
def test_instruction_sets_have_integers_results(name: str, method: str, rng: np.random.Generator) -> None:
    exact = EXACT[name]
    operands = exact.__code__.co_argcount
    for m in MODULI:
        for count in (1, 7, 8, 9, 2003):
            for alone in range(operands + 1):  # the operand of one number for all
                words = [drawn(rng, m, 1 if k == alone else count) for k in range(operands)]
                found = np.empty((1, count), dtype=np.uint64)
                cpu.apply(name, [x[None] for x in words], WideModuli((m,)), found, method)
                expected = exact(*(x.astype(object) for x in words)) % m
                np.testing.assert_array_equal(
                    found[0], np.broadcast_to(expected, count).astype(np.uint64), f"{m}"
                )


@pytest.mark.parametrize("method", cpu.wide_methods())
def test_instruction_sets_have_integers_powers(method: str, rng: np.random.Generator) -> None:
    for m in MODULI:
        for exponent in (0, 1, 2, 3, 65537, m - 2, 2**64 - 1):
            x, found = drawn(rng, m, 77)[None], np.empty((1, 77), dtype=np.uint64)
            cpu.power(x, exponent, WideModuli((m,)), found, method)
            assert found[0].tolist() == [pow(a, exponent, m) for a in x[0].tolist()], m


def test_methods_that_are_none() -> None:
    words = np.ones((1, 8), dtype=np.uint64)
    with pytest.raises(ValueError, match="no such method"):
        cpu.apply("add", [words, words], WideModuli((97,)), np.empty_like(words), "sse2")
