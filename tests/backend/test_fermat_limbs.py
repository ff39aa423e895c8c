"""Conversion between limbs and digits of Fermat fields, and transposed matrices, on each processor."""

import numpy as np
import pytest
from conftest import Processor
from oracles import fermat

from rnsdask.backend import kernels_of
from rnsdask.constants import FermatConstants
from rnsdask.rns.convert import ints_to_limbs, limbs_to_ints

# Radices of all lengths, prime or not: arithmetic modulo r^k + 1 does not ask.
FIELDS = [
    *((2**8 + 2**7, 4), (2**8 + 1, 8), (2**9 - 2, 128), (2**28 + 2**22, 16), (2**31 + 2**30, 4)),
    *((2**32 - 2**20, 8), (2**32 - 1, 128), (2**32 + 2**5, 4), (2**63 + 2**34, 8), (2**62 + 2**36, 16)),
    *((2**64 - 2**20, 4), (2**64 - 2, 128)),
]


@pytest.mark.parametrize(("radix", "digits"), FIELDS)
def test_limbs_and_digits(
    radix: int, digits: int, rng: np.random.Generator, on_each_processor: Processor
) -> None:
    field, xp = FermatConstants(radix, digits), on_each_processor.xp
    p = field.modulus
    whole = -(-p.bit_length() // 32)
    edges = [0, 1, 2, p - 1, p - 2, p, p + 1, radix, radix - 1, p - 1 - radix, p // 2, 2**32, 2**64]
    # Their leading words stand for -1, and for what is near it.
    edges += [
        (p - d << bits) + w for d in (1, 2) for bits in (32, 64) for w in (0, 1, 2**bits - 1, 2**bits - 2)
    ]
    for count in sorted({1, 2, 3, whole, whole + 1, 2 * whole + 1}):
        for signed in (False, True):
            ends = (
                (-(1 << 32 * count - 1), (1 << 32 * count - 1) - 1) if signed else (0, (1 << 32 * count) - 1)
            )
            drawn = [int.from_bytes(rng.bytes(4 * count), "little", signed=signed) for _ in range(20)]
            near = [v for e in edges for v in (e, -e, e * p, ends[0] + e, ends[1] - e)]
            values = [v for v in (*drawn, *near) if ends[0] <= v <= ends[1]]
            limbs = xp.asarray(ints_to_limbs(values, count, signed))
            found = kernels_of(limbs).limbs_to_fermat(limbs, signed, field)
            expected = fermat.encode(values, radix, digits)
            np.testing.assert_array_equal(on_each_processor.to_numpy(found), expected)
            back = limbs_to_ints(kernels_of(found).fermat_to_limbs(found[:, ::1], field))
            assert back.tolist() == [v % p for v in values]


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize(
    "shape", [(1, 1), (5, 4), (1000, 17), (16, 3001), (33, 129), (129, 64), (1, 99), (99, 1)]
)
def test_transposed_matrices(
    dtype: type, shape: tuple[int, int], rng: np.random.Generator, on_each_processor: Processor
) -> None:
    matrix = rng.integers(0, 2**32, size=shape, dtype=np.uint64).astype(dtype)
    for given in (on_each_processor.xp.asarray(matrix), on_each_processor.xp.asarray(matrix)[::2]):
        out = np.empty_like(given, shape=given.shape[::-1], order="C")
        kernels_of(given).transpose(given, out)
        np.testing.assert_array_equal(on_each_processor.to_numpy(out), on_each_processor.to_numpy(given).T)
