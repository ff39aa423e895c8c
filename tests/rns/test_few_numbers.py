"""Few numbers of many moduli to limbs, which a GPU has kernels of its own for, against Python integers."""

import numpy as np
import pytest
from conftest import Processor
from oracles import rns
from strategies import BOTH_RANGES

import rnsdask as rd
from rnsdask.backend import kernels_of
from rnsdask.constants import reverse_constants


@BOTH_RANGES
@pytest.mark.parametrize("bits", [511, 512, 3000, 10230])
@pytest.mark.parametrize("sums", [2**24, 2**11])
def test_few_numbers(
    on_each_processor: Processor,
    bits: int,
    signed: bool,
    sums: int,
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
) -> None:
    if on_each_processor.name == "cuda":
        monkeypatch.setattr("rnsdask.backend.cuda.convert.SUMS", sums)
    moduli = rd.ModuliSet.for_bits(bits)
    lowest, highest = moduli.value_range(signed)
    # Each u_i is 0 or m_i - 1, fractions of the range, and its ends.
    parts = [0, lowest, highest, -sum(moduli.partial_products), *(moduli.product * k // 8 for k in range(8))]
    values = [part + d for part in parts for d in (-1, 0, 1)]
    values += [int.from_bytes(rng.bytes(bits // 8 + 8), "little") for _ in range(100)]
    values = [lowest + (value - lowest) % moduli.product for value in values]
    residues = on_each_processor.xp.asarray(rns.encode(values, moduli, signed))
    constants = reverse_constants(moduli, signed)
    for part in (residues, residues[:, :1], residues[:, 3:40]):
        limbs = on_each_processor.to_numpy(kernels_of(part).residues_to_limbs(part, constants))
        start = 3 if part.shape[1] == 37 else 0
        expected = values[start : start + part.shape[1]]
        size = 2 ** (32 * constants.limb_count)
        found = [int.from_bytes(row.astype("<u4").tobytes(), "little") for row in limbs]
        assert found == [value % size for value in expected]
