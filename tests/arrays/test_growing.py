"""Arrays made without moduli: their integers behave as Python's, whatever results need."""

import itertools
import math
import pickle
import random

import dask
import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize

import rnsdask as rd
from rnsdask.core.moduli import first_moduli
from rnsdask.rns.promotion import converted

# The ends of ranges of one, two and more moduli, and integers around 0.
_EDGES = [0, 1, -1, 2, -2, 3]
for _power in (31, 32, 63, 64, 96, 128, 200):
    _EDGES += [sign * (2**_power + step) for sign in (1, -1) for step in (-1, 0, 1)]
for _count in (1, 2, 3):
    _product = math.prod(first_moduli(_count))
    _EDGES += [sign * value for sign in (1, -1) for value in (_product - 1, _product // 2, _product // 2 + 1)]


def ints(x):
    return x.to_ints().tolist()


def grown(values, chunks=None):
    return rd.from_ints(values, chunks=chunks)


def test_made_without_moduli_grows():
    x = grown([1, 2, 3])
    assert x.system.grows
    assert ints(x - 2) == [-1, 0, 1]
    assert ints(-x) == [-1, -2, -3]
    assert ints(abs(-x)) == [1, 2, 3]
    assert ints(2 - x) == [1, 0, -1]
    assert ints(x << 100) == [v << 100 for v in (1, 2, 3)]
    assert ints(x - 2**200) == [v - 2**200 for v in (1, 2, 3)]
    assert "grows" in repr(x)
    assert "grows" in x._repr_html_()


def test_the_result_has_the_fewest_moduli():
    x = grown([2**16])
    assert len((x * (2**16 - 1)).moduli) == 1
    assert len((x * 2**16).moduli) == 2  # 2**32 is beyond a modulus of 2**32
    assert len((x * -(2**15)).moduli) == 1  # the lowest number of the signed range of 2**32
    assert len((x * 2**15).moduli) == 1
    assert len((x * 2**15 - 2).moduli) == 2  # 2**31, an operand, is beyond it
    y = x**100
    assert list(y.moduli) == list(first_moduli(len(y.moduli)))
    assert len((y % 7).moduli) == 1
    assert len(y.with_bound(None).with_bound(y.measure_bound()).moduli) == len(y.moduli)


def test_no_pass_where_the_bound_fits(monkeypatch):
    from rnsdask.rns import promotion

    def never(*_args):
        raise AssertionError

    monkeypatch.setattr(promotion, "base_extend", never)
    x = grown([1, 2, 3])
    assert ints(x + x) == [2, 4, 6]
    assert ints(x - x) == [0, 0, 0]
    assert ints(x * 2**29) == [v * 2**29 for v in (1, 2, 3)]


@pytest.mark.parametrize("chunks", [None, 5], ids=["eager", "lazy"])
@pytest.mark.parametrize(
    "operation",
    [
        *(lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b),
        *(lambda a, b: a * b + a, lambda a, _: -a, lambda a, _: abs(a), lambda a, _: a**3),
    ],
    ids=["add", "subtract", "multiply", "chain", "negative", "abs", "cube"],
)
def test_operations_at_the_edges(operation, chunks):
    pairs = list(itertools.product(_EDGES[::2], _EDGES[1::3]))
    a, b = ([pair[k] for pair in pairs] for k in (0, 1))
    x, y = (grown(v, None if chunks is None else 200) for v in (a, b))
    assert ints(operation(x, y)) == [operation(*pair) for pair in pairs]


@pytest.mark.parametrize("edge", _EDGES)
def test_one_number_at_an_edge(edge):
    x = grown([edge])
    for other in (1, -1, 2, edge, -edge):
        assert ints(x + other) == [edge + other]
        assert ints(x - other) == [edge - other]
        assert ints(other - x) == [other - edge]
        assert ints(x * other) == [edge * other]
        if other:
            assert ints(x // other) == [edge // other]
            assert ints(x % other) == [edge % other]
        if edge:
            assert ints(other // x) == [other // edge]
            assert ints(other % x) == [other % edge]
        assert ints(rd.maximum(x, other)) == [max(edge, other)]
        assert ints(rd.where(np.array([False]), x, other)) == [other]
        assert ints(rd.gcd(x, other)) == [math.gcd(edge, other)]
        assert ints(rd.lcm(x, other)) == [math.lcm(edge, other)]
    assert ints(-x) == [-edge]
    assert ints(abs(x)) == [abs(edge)]
    assert ints(x >> 3) == [edge >> 3]


def test_fused_operations():
    a, b, c = [3, -(2**31)], [2**32, 5], [-(2**70), 1]
    x, y, z = map(grown, (a, b, c))
    triples = list(zip(a, b, c, strict=True))
    assert ints(rd.fma(x, y, z)) == [p * q + r for p, q, r in triples]
    assert ints(rd.mulsub(x, y, z, z)) == [p * q - r * r for p, q, r in triples]
    assert ints(rd.muladd(x, y, z, 2**40)) == [p * q + r * 2**40 for p, q, r in triples]


# ---- loops ------------------------------------------------------------------------------------------------


def test_factorials():
    x = grown([1, 2])
    for k in range(1, 101):
        x = x * k
    assert ints(x) == [math.factorial(100), 2 * math.factorial(100)]
    bits = (2 * math.factorial(100)).bit_length()
    assert len(x.moduli) == -(-bits // 32)


# ---- other operations -------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [None, 2], ids=["eager", "lazy"])
def test_sums_and_products(chunks):
    values = [3, -(2**31), 2**40, 5, -7]
    x = grown(values, chunks)
    assert ints(x.cumsum()) == list(itertools.accumulate(values))
    assert ints(x.cumprod()) == list(itertools.accumulate(values, lambda a, b: a * b))
    assert int(x.prod()) == math.prod(values)
    assert int((x**50).prod()) == math.prod(v**50 for v in values)
    assert ints(x.prod(keepdims=True)) == [math.prod(values)]
    table = grown([values, values[::-1]], chunks)
    assert ints(table.prod(axis=1)) == [math.prod(values)] * 2
    assert ints(table.prod(axis=0)) == [a * b for a, b in zip(values, values[::-1], strict=True)]
    assert int(x @ x) == sum(v * v for v in values)
    assert ints(table @ x) == [
        sum(a * b for a, b in zip(row, values, strict=True)) for row in (values, values[::-1])
    ]
    assert ints(rd.dot(table, x)) == ints(table @ x)
    assert ints(rd.diff(x, 2)) == np.diff(np.array(values, dtype=object), 2).tolist()
    assert ints(rd.diff(x, prepend=2**90)) == np.diff(np.array([2**90, *values], dtype=object)).tolist()
    assert ints(rd.outer(x, x)) == [[a * b for b in values] for a in values]


@pytest.mark.parametrize("mode", ["full", "same", "valid", "cyclic", "negacyclic"])
def test_convolution(mode):
    a, b = [2**31, 5, 2**32 - 1], [2**32 - 1, 2**31, 7]
    full = [sum(a[i] * b[k - i] for i in range(3) if 0 <= k - i < 3) for k in range(5)]
    folded = {
        "cyclic": [full[0] + full[3], full[1] + full[4], full[2]],
        "negacyclic": [full[0] - full[3], full[1] - full[4], full[2]],
    }
    wanted = {"full": full, "same": full[1:4], "valid": full[2:3], **folded}[mode]
    assert ints(rd.convolve(grown(a), grown(b), mode)) == wanted
    assert ints(rd.convolve(grown(a), b, mode)) == wanted
    assert ints(rd.convolve(grown(a, 1), grown(b, 2), mode)) == wanted


def test_polynomials_and_matrices():
    f, g = grown([1, 2**40, -3]), grown([2**80, 1])
    assert ints(rd.poly.multiply(f, g)) == [2**80, 1 + 2**120, 2**40 - 3 * 2**80, -3]
    root = 2**70
    assert abs(rd.poly.resultant(grown([-1, 1]), grown([-root, 1]))) == root - 1
    a, b = grown([[2, 1], [1, 1]]), grown([2**90, -1])
    numerators, denominator = rd.linalg.solve(a, b)
    assert [n // denominator for n in numerators.tolist()] == [2**90 + 1, -(2**90) - 2]
    power = np.linalg.matrix_power(np.array([[2, 1], [1, 1]], dtype=object), 200)
    assert ints(rd.linalg.matrix_power(a, 200)) == power.tolist()
    assert rd.linalg.det(a) == 1


def test_powers_and_division():
    values = [2, -3, 0, 2**33]
    x = grown(values)
    assert ints(x**0) == [1] * 4
    assert ints(x**77) == [v**77 for v in values]
    exponents = np.array([0, 9, 4, 3])
    assert ints(x**exponents) == [v ** int(k) for v, k in zip(values, exponents, strict=True)]
    assert ints(pow(x, 5, 2**100 + 277)) == [pow(v, 5, 2**100 + 277) for v in values]
    assert ints(pow(grown([2, 3]), 5, -7)) == [pow(2, 5, -7), pow(3, 5, -7)]
    assert ints(x % 2**100) == [v % 2**100 for v in values]
    assert ints(grown([5, 6]) // -4) == [-2, -2]
    assert ints(grown([5, 6]) % -4) == [-3, -2]
    quotients, remainders = divmod(x, grown([-(2**70), 2, 3, -1]))
    pairs = [divmod(*p) for p in zip(values, [-(2**70), 2, 3, -1], strict=True)]
    assert (ints(quotients), ints(remainders)) == ([p[0] for p in pairs], [p[1] for p in pairs])
    assert ints(rd.clip(x, -(2**80), 2**80)) == values
    assert ints(rd.clip(x, 2**80, 2**90)) == [2**80] * 4
    assert ints(rd.full_like(x, -(2**100))) == [-(2**100)] * 4
    assert ints(rd.zeros_like(x) - x) == [-v for v in values]


def test_on_each_processor(xp):
    a, b = [2**32 - 1, -5, 2**70, 0], [-(2**40), 2**33, 3, 7]
    x, y = (rd.RNSArray(xp.asarray(v.words), v.system) for v in map(grown, (a, b)))
    pairs = list(zip(a, b, strict=True))
    assert ints(x - y) == [p - q for p, q in pairs]
    assert ints(x * y * y) == [p * q * q for p, q in pairs]
    assert ints(x // y) == [p // q for p, q in pairs]
    assert ints(x % 2**100) == [p % 2**100 for p in a]
    assert ints(abs(x) ** xp.asarray([1, 5, 2, 0])) == [2**32 - 1, 5**5, 2**140, 1]
    assert int(x @ y) == sum(p * q for p, q in pairs)
    assert ints(x.cumprod()) == list(itertools.accumulate(a, lambda p, q: p * q))
    assert ints(rd.stack([x, y]).prod(axis=0)) == [p * q for p, q in pairs]
    assert ints(rd.concatenate([x, y, x**9])) == [*a, *b, *(p**9 for p in a)]
    assert int(y.prod()) == math.prod(b)
    assert rd.isin(y, -y).tolist() == [False] * 4
    fixed = grown([1, 2, 3, 4]).extend(rd.ModuliSet.for_bits(128))
    fixed = rd.RNSArray(xp.asarray(fixed.words), rd.RNS(fixed.moduli, signed=True))
    assert ints(fixed + x.with_bound(None)) == [p + k for p, k in zip(a, (1, 2, 3, 4), strict=True)]
    with pytest.raises(rd.RNSOverflowError):
        fixed + x**9


def test_lazy_integers():
    x = grown([3, 5, 2**40], chunks=2)
    assert ints(x - x.max()) == [3 - 2**40, 5 - 2**40, 0]
    assert ints(x * x.sum()) == [v * (8 + 2**40) for v in (3, 5, 2**40)]
    assert ints(x + x[1]) == [8, 10, 2**40 + 5]
    large = grown([2**90, -(2**90)], chunks=1)
    assert ints(rd.maximum(x, large.max())) == [2**90] * 3
    assert ints(rd.where(np.array([True, False, True]), x, large.min())) == [3, -(2**90), 2**40]
    assert ints(rd.full_like(x, large.min())) == [-(2**90)] * 3
    assert ints(rd.convolve(x, large.max())) == [v * 2**90 for v in (3, 5, 2**40)]
    assert np.asarray(x < large.max()).tolist() == [True] * 3
    assert ints(x // large.min()) == [-1] * 3
    with pytest.raises(ValueError, match="not computed yet have no bound"):
        x ** x.min()
    with pytest.raises(ValueError, match="not computed yet"):
        x << x.min()
    with pytest.raises(ValueError, match="not computed yet"):
        x ** da.from_array(np.array([1, 2, 3]))


def test_unfinished_arrays_are_not_looked_at():
    def never(block):
        raise AssertionError(block)

    lazy = da.map_blocks(
        never, da.zeros(4, dtype=np.uint8, chunks=2), dtype=np.uint8, meta=np.empty(0, np.uint8)
    )
    x = rd.from_ints(lazy)
    y = (x**20 - x).cumsum()
    assert y.system.grows
    assert y.signed
    assert y.bound >= 255**20


# ---- modes ------------------------------------------------------------------------------------------------


def test_modes_of_grown_arrays():
    x = grown([2**32 - 1, 1])
    with pytest.raises(rd.RNSOverflowError):
        rd.add(x, 1, overflow="raise")
    assert ints(rd.add(x, 1, overflow="wrap")) == [0, 2]
    result, mask = rd.add(x, 1, overflow="flag")
    assert (ints(result), mask.tolist()) == ([0, 2], [True, False])
    with rd.errstate(overflow="raise"), pytest.raises(rd.RNSOverflowError):
        x - 2
    with rd.errstate(overflow="raise"), pytest.raises(rd.RNSOverflowError):
        x.cumsum()
    with rd.errstate(overflow="extend"):
        assert ints(x - 2) == [2**32 - 3, -1]


def test_fixed_arrays_extend_where_told():
    x = rd.from_ints([1, 2, 60000], rd.ModuliSet([65521, 65519]), chunks=None)
    assert not x.system.grows
    with pytest.raises(rd.RNSOverflowError):
        x * x * x
    product = rd.multiply(x * x, x * x, overflow="extend")
    assert ints(product) == [1, 16, 60000**4]
    assert product.moduli.moduli[:2] == (65521, 65519)
    assert not product.system.grows
    with rd.errstate(overflow="extend"):
        assert ints(x - 5) == [-4, -3, 59995]
        assert ints(x**9) == [1, 2**9, 60000**9]
        assert int(x.prod()) == 120000
    assert rd.from_ints([1], bits=64, chunks=None).system == rd.RNS(rd.ModuliSet.for_bits(64), False, 1)


def test_other_kinds_do_not_extend():
    x = rd.from_ints([200], rd.Positional(8, False), chunks=None)
    with pytest.raises(ValueError, match="to_rns"):
        rd.add(x, x, overflow="extend")
    with rd.errstate(overflow="extend"), pytest.raises(rd.RNSOverflowError):
        x + x
    y = rd.IntervalRNSArray.from_rns(grown([2**32 - 1]))
    assert not y.system.grows
    with pytest.raises(rd.RNSOverflowError):
        y + y


def test_a_result_beyond_all_moduli_is_one_error():
    x = grown([2**40, 3])
    for make in (
        lambda: x ** (10**9),
        lambda: x ** (10**30),
        lambda: x << 10**12,
        lambda: x ** np.array([10**15, 1]),
        lambda: x ** (2**25),
    ):
        with pytest.raises(rd.RNSOverflowError, match="no moduli set holds"):
            make()
    with pytest.raises(rd.RNSOverflowError) as caught:
        x << 10**12
    assert "no moduli set holds" in str(pickle.loads(pickle.dumps(caught.value)))


def test_bits_and_moduli():
    assert rd.from_ints([5, -5], bits=512, chunks=None).system.signed
    assert ints(rd.from_ints([5, -5], bits=512)) == [5, -5]
    assert not rd.from_ints([5], bits=512).system.grows
    assert rd.from_ints(da.arange(4, chunks=2), bits=100).signed
    with pytest.raises(TypeError, match="bits or moduli"):
        rd.from_ints([1], rd.ModuliSet([7]), bits=3)
    with pytest.raises(TypeError, match="bits must be an integer"):
        rd.from_ints([1], bits=2.5)
    with pytest.raises(ValueError, match="bits must be at least 1"):
        rd.from_ints([1], bits=0)
    with pytest.raises(ValueError, match="outside the unsigned range"):
        rd.from_ints([2**64], bits=32)
    with pytest.raises(rd.RNSOverflowError):
        rd.from_ints([1, 2], bits=8, chunks=None) - 2


# ---- systems ----------------------------------------------------------------------------------------------


def test_result_system():
    small, large = grown([1]), grown([2**100])
    negative = grown([-1])
    fixed = rd.from_ints([5], bits=64, chunks=None)
    assert rd.result_system(small, large) == large.system.with_bound(None)
    assert rd.result_system(small, negative) == rd.RNS(first_moduli(1), True, grows=True)
    assert rd.result_system(large, negative).signed
    assert rd.result_system(small, 2**100) == large.system.with_bound(None)
    assert rd.result_system(small, -1).signed
    assert rd.result_system(small, fixed) == fixed.system.with_bound(None)
    assert rd.result_system(fixed.system, large.system) == fixed.system.with_bound(None)
    assert rd.result_system(grown([2**32 - 1]), negative).moduli == first_moduli(2)
    with pytest.raises(ValueError, match="range"):
        rd.result_system(fixed, -1)
    with pytest.raises(TypeError):
        rd.result_system(1, 2)
    signed = rd.from_ints([-5], bits=64, chunks=None)
    assert rd.result_system(fixed, signed) == signed.system.with_bound(None)
    with pytest.raises(ValueError, match="different ranges"):
        rd.result_system(fixed.with_bound(None), signed)
    with pytest.raises(ValueError, match=r"x\.extend\(y\.moduli\)"):
        rd.result_system(fixed, rd.from_ints([5], bits=128))
    limbs = rd.Positional(8, False)
    assert rd.result_system(limbs, limbs) == limbs
    with pytest.raises(TypeError, match="do not mix"):
        rd.result_system(limbs, small)
    least = grown([-5, 7], chunks=1).min()
    assert rd.result_system(small, least) == (small + least).system.with_bound(None)
    assert rd.result_system(fixed, least) == fixed.system.with_bound(None)
    assert rd.result_system(limbs, least) == limbs


@pytest.mark.parametrize("chunks", [None, 1], ids=["eager", "lazy"])
def test_systems_meet(chunks):
    x, y, z = grown([1, 2], chunks), grown([2**100, 2], chunks), grown([-1, 2], chunks)
    assert np.asarray(x == y).tolist() == [False, True]
    assert np.asarray(y > z).tolist() == [True, False]
    assert ints(rd.concatenate([x, y, z])) == [1, 2, 2**100, 2, -1, 2]
    assert ints(rd.stack([z, y])) == [[-1, 2], [2**100, 2]]
    assert ints(rd.block([[x], [y]])) == [[1, 2], [2**100, 2]]
    assert ints(rd.maximum(x, y)) == [2**100, 2]
    assert ints(rd.where(np.array([True, False]), y, z)) == [2**100, 2]
    assert np.asarray(rd.isin(x, y)).tolist() == [False, True]
    assert np.asarray(rd.searchsorted(x, y)).tolist() == [2, 1]
    assert np.asarray(rd.searchsorted(x, z)).tolist() == [0, 1]
    assert int(y @ z) == 4 - 2**100
    assert ints(rd.gcd(x, y)) == [1, 2]
    fixed = rd.from_ints([10, 20], bits=40, signed=True, chunks=chunks)
    assert ints(fixed + x) == [11, 22]
    assert (fixed + x).system.same_numbers(fixed.system)
    assert ints(x - fixed) == [-9, -18]
    assert ints(fixed * z) == [-10, 40]
    with pytest.raises(rd.RNSOverflowError, match=r"x\.extend\(moduli\)"):
        (fixed + y).compute()


def test_grown_beside_fixed_by_the_data():
    fixed = rd.from_ints([10, 20], rd.ModuliSet([251, 241]), chunks=None)
    x = (grown([2**70, 2**71]) // 2**60).with_bound(None)  # of unknown size
    assert ints(fixed + x) == [10 + 2**10, 20 + 2**11]
    assert ints(x + fixed) == [10 + 2**10, 20 + 2**11]
    with pytest.raises(rd.RNSOverflowError):
        fixed + grown([-1, 1]).with_bound(None)
    with pytest.raises(rd.RNSOverflowError):
        fixed + grown([1, 251 * 241])
    assert ints(fixed + (grown([5, 6]) - 3)) == [12, 23]  # signed numbers that are not negative
    signed = rd.from_ints([1, -1], rd.ModuliSet([251, 241]), signed=True, chunks=None)
    assert ints(signed + grown([251 * 241 // 2 - 1, 0])) == [251 * 241 // 2, -1]
    with pytest.raises(rd.RNSOverflowError):
        signed + grown([251 * 241 // 2 + 1, 0])
    assert ints(signed + fixed) == [11, 19]
    with pytest.raises(ValueError, match="different ranges"):
        signed + fixed.with_bound(None)


@pytest.mark.parametrize("signs", list(itertools.product([False, True], repeat=2)), ids=str)
@pytest.mark.parametrize("moduli", [[7, 11], [7], [11, 13], [7, 11, 5], [3, 2], [2]], ids=str)
def test_every_number_that_another_system_holds_is_taken(moduli, signs):
    own, target = (rd.RNS(rd.ModuliSet(m), s) for m, s in zip(([7, 11], moduli), signs, strict=True))
    for bound in (None, 20, 5, 1):
        known = own.with_bound(bound)
        values = range(known.known_range[0], known.known_range[1] + 1)
        inside = [v for v in values if target.value_range[0] <= v <= target.value_range[1]]
        assert target.decode(converted(own.encode(inside), known, target)).tolist() == inside
        for value in set(values) - set(inside):
            with pytest.raises(rd.RNSOverflowError):
                converted(own.encode([value]), known, target)


def test_signed_numbers_up_to_the_end_of_an_unsigned_range():
    fixed = rd.from_ints([1], rd.ModuliSet([2**32]), chunks=None)
    x = grown([-1, 2**32 - 1])[1:]
    assert ints(x * fixed) == ints(rd.maximum(fixed, x)) == [2**32 - 1]
    assert ints(rd.concatenate([fixed, x])) == [1, 2**32 - 1]


@pytest.mark.parametrize("chunks", [None, 1], ids=["eager", "lazy"])
def test_clip_by_lazy_integers_beyond_the_range(chunks):
    x = grown([1, 2, 3], chunks)
    ends = grown([-(2**70), 2, 2**70], chunks=1)
    low, middle, high = ends.min(), ends[1], ends.max()
    assert ints(rd.clip(x, high, None)) == ints(rd.clip(x, high, 2**80)) == [2**70] * 3
    assert ints(rd.clip(x, None, low)) == ints(rd.clip(x, high, low)) == [-(2**70)] * 3
    assert ints(rd.clip(x, middle, high)) == [2, 2, 3]
    assert ints(rd.clip(x, low, middle)) == [1, 2, 2]


def test_the_mode_stays():
    x = grown([[1, 2**70], [3, 4]], chunks=1)
    for y in (x[0], x.T, x.ravel(), x.compute(), pickle.loads(pickle.dumps(x)), x.rechunk(2), x.persist()):
        assert y.system.grows
    assert rd.sort(x).system.grows
    assert rd.unique(x.ravel()).system.grows
    assert x.max(axis=0).system.grows
    assert x.with_bound(None).system.grows
    assert x.map_blocks(lambda block: block * 2).system.grows
    assert ints(x.map_blocks(lambda block: block + 1)) == [[2, 2**70 + 1], [4, 5]]
    with pytest.raises(rd.RNSOverflowError):
        x.map_blocks(lambda block: block - 2).compute()
    assert not x.extend(rd.ModuliSet.for_bits(200)).system.grows
    assert tokenize(x.system) != tokenize(rd.RNS(x.moduli, x.signed, x.bound))
    assert pickle.loads(pickle.dumps(x.system)) == x.system
    with pytest.raises(ValueError, match="grows has the first moduli"):
        rd.RNS(rd.ModuliSet([7, 11]), grows=True)
    with dask.config.set(scheduler="sync"):
        assert ints(x * 2**100) == [[2**100, 2**170], [3 * 2**100, 2**102]]


def test_stores_keep_the_mode(tmp_path):
    x = grown([1, 2**70, 5], chunks=2)
    x.to_zarr(tmp_path / "x")
    y = rd.open_zarr(tmp_path / "x")
    assert y.system == x.system
    assert ints(y - 2**80) == [v - 2**80 for v in (1, 2**70, 5)]
    (x - 2).to_zarr(tmp_path / "x", overwrite=True)
    assert ints(rd.open_zarr(tmp_path / "x")) == [-1, 2**70 - 2, 3]
    grown([-5, 7]).to_zarr(tmp_path / "x", append_dim=0)
    assert ints(rd.open_zarr(tmp_path / "x")) == [-1, 2**70 - 2, 3, -5, 7]
    assert rd.open_zarr(tmp_path / "x").system.grows
    with pytest.raises(rd.RNSOverflowError):
        grown([2**200]).to_zarr(tmp_path / "x", append_dim=0)
    fixed = rd.from_ints([1, 2], bits=64)
    fixed.to_zarr(tmp_path / "fixed")
    assert "grows" not in (tmp_path / "fixed" / "zarr.json").read_text()
    assert not rd.open_zarr(tmp_path / "fixed").system.grows
    grown([3]).to_zarr(tmp_path / "fixed", append_dim=0)
    assert ints(rd.open_zarr(tmp_path / "fixed")) == [1, 2, 3]


def test_chains_of_random_operations():
    draw = random.Random(20)
    for _ in range(12):
        values = [[draw.choice(_EDGES) for _ in range(3)] for _ in range(3)]
        arrays = [grown(row, draw.choice([None, 2])) for row in values]
        for _ in range(6):
            i, j = draw.randrange(3), draw.randrange(3)
            name = draw.choice(["+", "-", "*", "//", "%", "max", "neg"])
            if name in ("//", "%") and 0 in values[j]:
                continue
            apply = {
                "+": lambda a, b: a + b,
                "-": lambda a, b: a - b,
                "*": lambda a, b: a * b,
                "//": lambda a, b: a // b,
                "%": lambda a, b: a % b,
                "neg": lambda a, _: -a,
            }
            made = rd.maximum(arrays[i], arrays[j]) if name == "max" else apply[name](arrays[i], arrays[j])
            found = [
                max(a, b) if name == "max" else apply[name](a, b)
                for a, b in zip(values[i], values[j], strict=True)
            ]
            arrays[i], values[i] = made, found
            assert ints(made) == found, (name, found)
