"""Single long numbers: exact, and without tables of the square of their length."""

import tracemalloc
from collections.abc import Callable
from functools import cache
from typing import Any

import gmpy2
import numpy as np
import pytest
from conftest import Processor
from strategies import BOTH_RANGES

import rnsdask as rd
from rnsdask.backend import kernels_of
from rnsdask.constants import extension_constants, forward_constants, reverse_constants
from rnsdask.constants.convert import limbs_of
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.decimal import residues_to_decimal

BITS = 160000  # 5000 moduli, whose tables would have 100 MB
MOST_BYTES = 24 * 2**20

pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    """Short numbers take the same ways first: modules that they import have memory of their own."""
    small = ModuliSet.for_bits(60)
    x = rd.from_ints([5, 7], small, chunks=None)
    assert int((x + 5).extend(ModuliSet.for_bits(90)).to_positional(70).to_rns(small).max()) == 12
    assert rd.from_ints([5, 7], small, chunks=1).to_ints().tolist() == [5, 7]


@cache
def moduli() -> ModuliSet:
    return ModuliSet.for_bits(BITS)


@cache
def others() -> ModuliSet:
    """More moduli below 2**31, coprime to none of the others in particular."""
    return ModuliSet.for_bits(BITS + 100, 31)


def drawn(signed: bool, rng: np.random.Generator) -> list[int]:
    """The ends of the range, 0, a multiple of many moduli, one next to the middle, and any number."""
    lowest, highest = moduli().value_range(signed)
    multiple = moduli().product // moduli()[0] // 3
    any_number = lowest + int.from_bytes(rng.bytes(BITS // 8), "little")
    return [lowest, highest, -1 if signed else 1, multiple, highest // 2 + 1, any_number]


def residues_of(values: list[int], ms: ModuliSet) -> np.ndarray:
    numbers = [gmpy2.mpz(value) for value in values]
    return np.array([[int(v % m) for v in numbers] for m in ms], dtype=np.uint32)


def in_little_memory(call: Callable[[], Any]) -> Any:
    """The result of a call, which takes a fraction of the memory of a table."""
    tracemalloc.start()
    try:
        result = call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES
    return result


@BOTH_RANGES
def test_from_ints_and_back(signed: bool, rng: np.random.Generator) -> None:
    values = drawn(signed, rng)
    x = in_little_memory(lambda: rd.from_ints(values, moduli(), signed=signed, chunks=None))
    np.testing.assert_array_equal(x.residues, residues_of(values, moduli()))
    assert in_little_memory(x.to_ints).tolist() == values
    assert in_little_memory(x[1:2].to_ints).tolist() == values[1:2]
    lazy = rd.from_ints(values, moduli(), signed=signed, chunks=2)
    assert in_little_memory(lazy.to_ints).tolist() == values


@BOTH_RANGES
def test_in_other_moduli_and_limbs(signed: bool, rng: np.random.Generator) -> None:
    values = drawn(signed, rng)[-2:]
    x = rd.from_ints(values, moduli(), signed=signed, chunks=None)
    wider = in_little_memory(lambda: x.extend(others()))
    np.testing.assert_array_equal(wider.residues, residues_of(values, others()))
    limbs = in_little_memory(lambda: x.to_positional(BITS + 64))
    assert limbs.to_ints().tolist() == values
    back = in_little_memory(lambda: limbs.to_rns(moduli()))
    np.testing.assert_array_equal(back.residues, x.residues)


def test_out_of_range_is_refused() -> None:
    product = moduli().product
    for value in (product, -1):
        with pytest.raises(ValueError, match="at position 1"):
            in_little_memory(lambda value=value: rd.from_ints([0, value], moduli(), chunks=None))


def test_one_operand_and_the_greatest(rng: np.random.Generator) -> None:
    values = [value // 2 for value in drawn(False, rng)]
    x = rd.from_ints(values, moduli(), chunks=None)
    more = in_little_memory(lambda: x + values[-1])
    assert more.to_ints().tolist() == [value + values[-1] for value in values]
    assert in_little_memory(x.max) == max(values)


@BOTH_RANGES
def test_decimal_limbs(signed: bool, rng: np.random.Generator) -> None:
    values = drawn(signed, rng)[-3:]
    residues = residues_of(values, moduli())
    limbs, negative = in_little_memory(lambda: residues_to_decimal(residues, moduli(), signed))
    assert negative.tolist() == [value < 0 for value in values]
    for row, value in zip(limbs, values, strict=True):
        text = "".join(f"{limb:09}" for limb in row[::-1].tolist())
        assert text.lstrip("0") == gmpy2.mpz(abs(value)).digits()


@BOTH_RANGES
def test_kernels_of_each_processor_make_no_tables(
    on_each_processor: Processor, signed: bool, rng: np.random.Generator
) -> None:
    """Limbs to residues, to others, and back; the residues written are rows of a larger array."""
    ms = ModuliSet.for_bits(BITS + 31)  # whose constants no other test has seen
    values = drawn(signed, rng)
    expected, size = residues_of(values, ms), 2 ** (32 * ms.limb_count(signed))
    limbs = on_each_processor.xp.asarray(limbs_of([value % size for value in values], ms.limb_count(signed)))
    forward, reverse = forward_constants(ms, limbs.shape[1], signed), reverse_constants(ms, signed)
    extension = extension_constants(ms, others(), signed)
    kernels = kernels_of(limbs)
    residues = on_each_processor.xp.zeros((len(ms) + 1, len(values) + 2), dtype=np.uint32)[:-1, 1:-1]
    wider = on_each_processor.xp.zeros((len(others()), len(values)), dtype=np.uint32)
    kernels.limbs_to_residues(limbs, forward, residues)
    np.testing.assert_array_equal(on_each_processor.to_numpy(residues), expected)
    np.testing.assert_array_equal(
        on_each_processor.to_numpy(kernels.residues_to_limbs(residues, reverse)),
        on_each_processor.to_numpy(limbs),
    )
    assert not on_each_processor.to_numpy(kernels.base_extend(residues, extension, wider)).any()
    np.testing.assert_array_equal(on_each_processor.to_numpy(wider), residues_of(values, others()))
    for constants in (forward, reverse, extension):
        assert "_table" not in vars(constants)
