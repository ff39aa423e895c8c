"""Calls of README and of the tour, and the types that mypy must find for them. Nobody runs this file."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import rnsdask as rd
from rnsdask.typing import Flagged, Integer, PlainArray, Rational

Truth = PlainArray[np.bool_]
Indices = PlainArray[np.int64]
Ints = PlainArray[np.object_]

x = rd.from_ints([3**k for k in range(1000)])
p = rd.from_ints([1, 2], rd.Positional(64))
f = rd.from_ints([7, -1, 10**30], rd.PrimeFields([2**31 - 1]))
i = rd.from_ints([1, -2], rd.IntervalRNS(rd.ModuliSet.for_bits(64)))
m = rd.from_ints([[2, 1], [7, 3]])

# ---- arrays, by the number system -------------------------------------------------------------------------

assert_type(x, rd.RNSArray)
assert_type(rd.from_ints([1], bits=64, chunks=None), rd.RNSArray)
assert_type(rd.from_ints([1], rd.ModuliSet.for_bits(64)), rd.RNSArray)
assert_type(p, rd.PositionalArray)
assert_type(f, rd.FieldArray)
assert_type(i, rd.IntervalRNSArray)
assert_type(rd.from_ints([1], x.system), rd.RNSArray)
assert_type(rd.from_ints([1], rd.FermatField.named("F449")), rd.FieldArray)
assert_type(rd.from_residues(np.zeros((2, 3), np.uint32), [7, 11]), rd.RNSArray)
assert_type(rd.from_residues(np.zeros((2, 3), np.uint32), rd.PrimeFields([7, 11])), rd.FieldArray)
assert_type(rd.random(1_000_000, bits=256, chunks=100_000, seed=1), rd.RNSArray)
assert_type(rd.random(rd.ModuliSet.for_bits(256), 200_000), rd.RNSArray)
assert_type(rd.random(rd.Positional(64), (3, 4)), rd.PositionalArray)
assert_type(
    rd.open_zarr("powers.zarr"), rd.RNSArray | rd.PositionalArray | rd.FieldArray | rd.IntervalRNSArray
)
assert_type(rd.read_seal(["x.seal"], [7, 11], chunks=50), tuple[rd.FieldArray, rd.SealForm])
assert_type(rd.zeros_like(x), rd.RNSArray)

# ---- operators and functions of numbers -------------------------------------------------------------------

assert_type(x * x - 2 * x, rd.RNSArray)
assert_type(x % 10, rd.RNSArray)
assert_type(divmod(x, 10), tuple[rd.RNSArray, rd.RNSArray])
assert_type(x**3, rd.RNSArray)
assert_type(-x + [1, 2], rd.RNSArray)
assert_type(x * np.arange(3), rd.RNSArray)
assert_type(x - x.max(), rd.RNSArray)
assert_type(f / 3, rd.FieldArray)
assert_type(x * x - 2 * x > -2, Truth)
assert_type(x == 3, Truth)
assert_type(rd.add(x, 1), rd.RNSArray)
assert_type(rd.add(1, p, overflow="wrap"), rd.PositionalArray)
assert_type(rd.multiply(i, i, overflow="flag"), Flagged[rd.IntervalRNSArray])
assert_type(rd.gcd(x[:, None], x[None, :]), rd.RNSArray)
assert_type(rd.binomial(rd.factorial(x), 3), rd.RNSArray)
assert_type(rd.primorial(x, overflow="flag"), tuple[rd.RNSArray, PlainArray[np.bool_]])
assert_type(rd.linalg.permanent(f), Integer | rd.FieldArray)
assert_type(rd.where(x > 1, x, 0), rd.RNSArray)
assert_type(rd.fma(x, x, 1), rd.RNSArray)
assert_type(rd.bit_length(x), Indices)
assert_type(rd.log2(x), PlainArray[np.float64])

# ---- indices, shapes and order ----------------------------------------------------------------------------

assert_type(x[:6], rd.RNSArray)
assert_type(x[x > 5], rd.RNSArray)
assert_type(m[0, :], rd.RNSArray)
assert_type(x[999], rd.RNSArray | Integer)
assert_type(x.item(999), int)
assert_type(x.reshape((2, 500)).T, rd.RNSArray)
assert_type(rd.pad(x, (0, 3)), rd.RNSArray)
assert_type(rd.concatenate([p, p]), rd.PositionalArray)
assert_type(rd.stack((f, f)), rd.FieldArray)
assert_type(rd.block([[m, m], [m, m]]), rd.RNSArray)
assert_type(rd.split(x, 2), list[rd.RNSArray])
assert_type(rd.unique(x % 10), rd.RNSArray)
assert_type(rd.sort(x), rd.RNSArray)
assert_type(rd.group_reduce(p, [1, 2], "sum")[1], rd.PositionalArray)
assert_type(rd.group_reduce(p, [1, 2], "count")[1], Indices)
assert_type(rd.argsort(x), Indices)

# ---- reductions -------------------------------------------------------------------------------------------

assert_type(x.sum(), Integer)
assert_type(x.sum().compute(), int)
assert_type(m.sum(axis=0), Ints)
assert_type(f.sum(axis=0), rd.FieldArray)
assert_type(m.max(axis=1), rd.RNSArray)
assert_type(p.prod(keepdims=True), rd.PositionalArray)
assert_type(x.argmax().compute(), int)
assert_type(x.mean(), Rational)
assert_type((x > 1).all(), Truth)
assert_type(m.cumsum(axis=0), rd.RNSArray)
assert_type(rd.histogram(x), tuple[Indices, Ints])
assert_type(x.reduce("max").compute(), rd.ReductionResult)

# ---- in and out -------------------------------------------------------------------------------------------

assert_type(x.compute(), rd.RNSArray)
assert_type(x.rechunk(10), rd.RNSArray)
assert_type(x.extend(rd.ModuliSet.for_bits(2000)), rd.RNSArray)
assert_type(x.to_positional(2000), rd.PositionalArray)
assert_type(p.to_rns(), rd.RNSArray)
assert_type(f.lift(), rd.RNSArray)
assert_type(x.to_ints(), NDArray[np.object_])
assert_type(x.astype(np.int64), Indices)
assert_type(x.to_zarr("powers.zarr"), None)
assert_type(int(x[10] % 7), int)

# ---- linear algebra and polynomials -----------------------------------------------------------------------

assert_type(m @ m, rd.RNSArray)
assert_type(rd.linalg.det(m), Integer | Ints)
assert_type(int(rd.linalg.det(m).compute()), int)
assert_type(rd.linalg.det(m, moduli=rd.ModuliSet.for_bits(64)), rd.RNSArray)
assert_type(rd.linalg.solve(f, [1, 2, 3]), rd.FieldArray)
assert_type(rd.linalg.solve(f, [1, 2, 3], overwrite=True), rd.FieldArray)
assert_type(rd.linalg.inv(f, overwrite=True), rd.FieldArray)
assert_type(rd.linalg.rank(f, overwrite=True), PlainArray[np.int64])
assert_type(rd.linalg.solve(m, [5, 5], unique=False), tuple[Ints, Ints])
assert_type(rd.linalg.solve(m, [5, 5], modulo=100), Ints)
assert_type(rd.linalg.inv(m, moduli=rd.ModuliSet.for_bits(64)), tuple[rd.RNSArray, rd.RNSArray])
assert_type(rd.linalg.rref(m).pivots, Indices)
assert_type(rd.linalg.rref(rd.linalg.read("a.json")).numerators, Ints)
assert_type(rd.linalg.solve(rd.linalg.read("a.json"), [1, 2]), tuple[Ints, Ints])
assert_type(rd.linalg.rref(f).matrix, rd.FieldArray)
assert_type(rd.linalg.nullspace(f), rd.FieldArray)
assert_type(rd.linalg.matrix_power(m, 1000), rd.RNSArray)
assert_type(rd.convolve(x, [1, 1]), rd.RNSArray)
assert_type(rd.ntt(f), rd.FieldArray)
assert_type(rd.intt(f, negacyclic=True, root=(3, 5), order="bit-reversed"), rd.FieldArray)
assert_type(rd.rescale(f, 2, rounding="floor"), rd.FieldArray)
assert_type(rd.base_extend(f, [65537], signed=True, half="up"), rd.FieldArray)
assert_type(f.lift(signed=True, half="down"), rd.RNSArray)
assert_type(rd.poly.multiply(x, x), rd.RNSArray)
assert_type(rd.poly.gcd(f, f), rd.FieldArray)
assert_type(rd.poly.divmod(x, [1, 1]), tuple[Ints, Ints])
assert_type(rd.poly.inverse_series(f, 5), rd.FieldArray)
assert_type(rd.product_tree(p).remainders(7), rd.PositionalArray)
