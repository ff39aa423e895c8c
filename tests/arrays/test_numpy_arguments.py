"""Arguments of NumPy's and Dask's that few users give: no axes, `split_every`, arrays of exponents."""

from fractions import Fraction
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import rnsdask as rd

MODULI = rd.ModuliSet.for_bits(64)
SYSTEMS = {
    "rns": rd.RNS(MODULI, True),
    "unsigned": rd.RNS(MODULI),
    "interval": rd.IntervalRNS(MODULI),
    "positional": rd.Positional(64, True),
    "fields": rd.PrimeFields([97, 101]),
}
INTEGERS = [kind for kind in SYSTEMS if kind != "fields"]
VALUES = np.array([[5, 2, 0], [7, 0, 90]], dtype=object)


def made(kind: str, *, lazy: bool, values: Any = VALUES) -> Any:
    return rd.from_ints(values, SYSTEMS[kind], chunks=2 if lazy else None)


def computed(found: Any) -> Any:
    """Values of an array of any kind, lazy or not."""
    if isinstance(found, rd.FieldArray):
        found = found.lift()
    found = found.to_ints() if hasattr(found, "to_ints") else found
    return np.asarray(found.compute() if hasattr(found, "compute") else found)


# ---- no axes ----------------------------------------------------------------------------------------------

ELEMENTWISE = {
    "sum": lambda x, **o: x.sum(axis=(), **o),
    "prod": lambda x, **o: x.prod(axis=(), **o),
    "any": lambda x, **o: x.any(axis=(), **o),
    "all": lambda x, **o: x.all(axis=(), **o),
    "max": lambda x, **o: x.max(axis=(), **o),
    "min": lambda x, **o: x.min(axis=(), **o),
    "mean": lambda x, **o: x.mean(axis=(), **o),
    "var": lambda x, **o: x.var(axis=(), **o),
    "ptp": lambda x, **o: rd.ptp(x, axis=(), **o),
    "median": lambda x, **o: rd.median(x, axis=(), **o),
    "count_nonzero": lambda x, **o: rd.count_nonzero(x, axis=(), **o),
    "np.sum": lambda x, **o: np.sum(x, axis=(), **o),
    "np.max": lambda x, **o: np.max(x, axis=(), **o),
    "np.prod": lambda x, **o: np.prod(x, axis=(), **o),
    "np.all": lambda x, **o: np.all(x, axis=(), **o),
    "np.mean": lambda x, **o: np.mean(x, axis=(), **o),
    "np.median": lambda x, **o: np.median(x, axis=(), **o),
    "np.ptp": lambda x, **o: np.ptp(x, axis=(), **o),
    "np.count_nonzero": lambda x, **o: np.count_nonzero(x, axis=(), **o),
    "np.add.reduce": lambda x, **o: np.add.reduce(x, axis=(), **o),
    "np.multiply.reduce": lambda x, **o: np.multiply.reduce(x, axis=(), **o),
}
OF_FIELDS = ["sum", "prod", "any", "all", "count_nonzero", "np.sum", "np.prod", "np.all", "np.add.reduce"]


def expected_of(name: str) -> Any:
    if name in ("any", "all", "np.all"):
        return VALUES != 0
    if "count_nonzero" in name:
        return (VALUES != 0).astype(int)
    return VALUES * 0 if "ptp" in name or name == "var" else VALUES


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, name) for kind in INTEGERS for name in ELEMENTWISE if kind == "rns" or "np." not in name),
        *(("fields", name) for name in OF_FIELDS),
    ],
)
def test_no_axes_reduce_nothing(kind: str, name: str, lazy: bool) -> None:
    x = made(kind, lazy=lazy)
    for options in ({}, {"keepdims": True}):
        found = ELEMENTWISE[name](x, **options)
        assert found.shape == x.shape
        if lazy:
            assert dask.is_dask_collection(found)
        values = computed(found)
        assert values.tolist() == expected_of(name).tolist()
        # Of the same types as along an axis.
        other = along(name, x)
        assert type(found) is type(other)
        if "median" not in name:  # of which some are fractions
            assert {*map(type, values.ravel().tolist())} == {*map(type, computed(other).ravel().tolist())}


def along(name: str, x: Any) -> Any:
    """Apply the reduction of a name along an axis."""
    rest = name.removeprefix("np.")
    if rest.endswith(".reduce"):
        return getattr(np, rest.removesuffix(".reduce")).reduce(x, axis=0)
    if name.startswith("np."):
        return getattr(np, rest)(x, axis=0)
    return getattr(rd, name)(x, axis=0) if hasattr(rd, name) else getattr(x, name)(axis=0)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", INTEGERS)
def test_no_axes_and_other_arguments(kind: str, lazy: bool) -> None:
    x = made(kind, lazy=lazy)
    products, mask = x.prod(axis=(), overflow="flag")
    assert computed(products).tolist() == VALUES.tolist()
    assert computed(mask).tolist() == [[False] * 3] * 2
    for function in (
        lambda: x.sum(axis=(), dtype=float),
        lambda: x.max(axis=(), out=np.zeros((2, 3))),
        lambda: x.prod(axis=(), overflow="other"),
        lambda: x.argmax(axis=()),
        lambda: x.var(axis=(), ddof=1),
    ):
        with pytest.raises((TypeError, ValueError)):
            function()
    assert all(isinstance(v, Fraction) for v in computed(x.mean(axis=())).ravel())
    empty = x[:0]
    assert [f(empty).shape for f in (lambda e: e.sum(axis=()), lambda e: e.max(axis=()))] == [(0, 3)] * 2


# ---- split_every ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("shape", [(20,), (2, 10)])
def test_split_every_of_all_reductions(kind: str, shape: tuple[int, ...], lazy: bool) -> None:
    values = np.array([(k * 7919) % 41 for k in range(20)], dtype=object).reshape(shape)
    x = made(kind, lazy=lazy, values=values)
    ordered = np.sort(values, axis=-1)
    for count in (2, 100):
        assert computed(x.topk(3, split_every=count)).tolist() == ordered[..., ::-1][..., :3].tolist()
        assert computed(x.topk(-3, -1, count)).tolist() == ordered[..., :3].tolist()
        places = computed(x.argtopk(3, split_every=count))
        assert np.take_along_axis(values, places, -1).tolist() == ordered[..., ::-1][..., :3].tolist()
        for axis in (None, 0):
            how: dict[str, Any] = {"axis": axis, "split_every": count}
            terms = values.size if axis is None else shape[0]
            means = np.asarray(values.sum(axis=axis)) * Fraction(1, terms)
            assert computed(x.mean(**how)).tolist() == np.asarray(means).tolist()
            assert computed(x.any(**how)).tolist() == (values != 0).any(axis=axis).tolist()
            assert computed(x.all(**how)).tolist() == (values != 0).all(axis=axis).tolist()
            assert computed(x.max(**how)).tolist() == np.asarray(values.max(axis=axis)).tolist()
            assert computed(x.sum(**how)).tolist() == np.asarray(values.sum(axis=axis)).tolist()
            assert computed(x.argmax(**how)).tolist() == values.argmax(axis=axis).tolist()
    for method in ("topk", "argtopk", "any", "all", "mean", "sum", "max", "argmin", "prod", "var"):
        arguments = (3,) if "topk" in method else ()
        with pytest.raises((TypeError, ValueError), match="split_every must be"):
            getattr(x, method)(*arguments, split_every=0)
        with pytest.raises(TypeError, match="split_every must be an integer, got 'a'"):
            getattr(x, method)(*arguments, split_every="a")


def test_split_every_is_the_width_of_the_tree() -> None:
    x = rd.from_ints(range(64), chunks=1)
    for function in (
        lambda count: x.topk(2, split_every=count),
        lambda count: x.reshape(1, 64).topk(2, split_every=count),
        lambda count: x.any(split_every=count),
        lambda count: x.mean(split_every=count),
    ):
        assert len(function(2).__dask_graph__()) > len(function(64).__dask_graph__())


SPLIT = (
    *("topk", "argtopk", "any", "all", "mean", "sum", "max", "min", "argmax", "argmin", "gcd", "lcm", "prod"),
    "var",
)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("method", SPLIT)
def test_split_every_of_axes(method: str, lazy: bool) -> None:
    """A dict of axes, as Dask takes it."""
    x = rd.from_ints([[(k * 7919) % 41 + 1 for k in range(j, j + 5)] for j in range(4)], chunks=1)
    x = x if lazy else x.compute()
    arguments = (3,) if "topk" in method else ()
    call = partial(getattr(x, method), *arguments)
    for axis in (None, 0, 1) if "topk" not in method else (0, 1):
        how = {} if axis is None else {"axis": axis}
        expected = np.asarray(computed(call(**how))).tolist()
        for split in ({0: 3, 1: 4}, {0: 2}, {-1: 50}, {}):
            found = call(**how, split_every=split)
            assert np.asarray(computed(found)).tolist() == expected
    for wrong, message in (
        ({0: 0}, "split_every must be at least 1, got 0"),
        ({0: "a"}, "split_every must be an integer, got 'a'"),
        ({2: 2}, "axis 2 is out of bounds"),
        ({"a": 2}, "axis in split_every must be an integer, got 'a'"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call(split_every=wrong)


def test_split_every_of_an_axis_is_the_width_of_the_tree_along_it() -> None:
    x = rd.from_ints(np.arange(64).reshape(8, 8), chunks=1)
    for function in (
        lambda split: x.sum(split_every=split),
        lambda split: x.max(0, split_every=split),
        lambda split: x.topk(2, 0, split),
        lambda split: x.any(split_every=split),
    ):
        narrow, wide = ({0: n, 1: 8} for n in (2, 8))
        assert len(function(narrow).__dask_graph__()) > len(function(wide).__dask_graph__())


@pytest.mark.parametrize("lazy", [False, True])
def test_split_every_of_fields(lazy: bool) -> None:
    x = made("fields", lazy=lazy)
    assert computed(x.any(axis=1, split_every=2)).tolist() == [True, True]
    assert computed(x.all(axis=1, split_every=2)).tolist() == [False, False]
    assert computed(x.sum(split_every=2)) == 104 % 97 + 97 * ((104 - 104 % 97) // 97)


# ---- arrays of exponents ----------------------------------------------------------------------------------

EXPONENTS = np.array([[0, 3, 1], [10**6, 1, 2**62]])
MODULUS = 1009


def exponents_of(form: str, values: Any) -> Any:
    return {
        "array": lambda: np.asarray(values),
        "small": lambda: np.asarray(values).astype(np.int64),
        "list": lambda: np.asarray(values).tolist(),
        "lazy": lambda: da.from_array(np.asarray(values), chunks=2),
        "unsigned": lambda: np.asarray(values).astype(np.uint64),
    }[form]()


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("form", ["array", "list", "lazy", "unsigned"])
def test_powers_modulo_by_arrays_of_exponents(form: str, kind: str, lazy: bool) -> None:
    x = made(kind, lazy=lazy)
    moduli = [MODULUS, 2, 1, 2**40 + 15] + ([-7] if kind in ("rns", "interval") else [])
    for m in moduli:
        found = pow(x, exponents_of(form, EXPONENTS), m)
        assert type(found) is type(x)
        assert dask.is_dask_collection(found) == (lazy or form == "lazy")
        assert computed(found).tolist() == [
            [pow(int(v), int(k), m) for v, k in zip(*rows, strict=True)]
            for rows in zip(VALUES, EXPONENTS, strict=True)
        ]
    # Shapes broadcast.
    column = computed(pow(x, exponents_of(form, [[2], [5]]), MODULUS))
    assert column.tolist() == [
        [pow(int(v), k, MODULUS) for v in row] for row, k in zip(VALUES, (2, 5), strict=True)
    ]
    cube = computed(pow(x, exponents_of(form, np.arange(4).reshape(4, 1, 1)), MODULUS))
    assert cube.tolist() == [[[pow(int(v), k, MODULUS) for v in row] for row in VALUES] for k in range(4)]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", INTEGERS)
def test_negative_exponents_raise_inverses(kind: str, lazy: bool) -> None:
    units = np.array([[5, 2, 3], [7, 11, 90]], dtype=object)
    x = made(kind, lazy=lazy, values=units)
    exponents = np.array([-1, 2, -3])
    assert computed(pow(x, exponents, MODULUS)).tolist() == [
        [pow(v, int(k), MODULUS) for v, k in zip(row, exponents, strict=True)] for row in units.tolist()
    ]
    with pytest.raises((ValueError, ZeroDivisionError), match=r"flat index 4"):
        computed(pow(made(kind, lazy=lazy), np.array([[1, 1, 1], [-1, -1, -1]]), MODULUS))


@pytest.mark.parametrize("lazy", [False, True])
def test_mod_power_by_arrays_of_exponents(lazy: bool) -> None:
    x = made("positional", lazy=lazy)
    m = rd.from_ints([[7, 8, 9], [10, 1, 97]], SYSTEMS["positional"], chunks=2 if lazy else None)
    for form in ("array", "list", "lazy"):
        exponents = exponents_of(form, EXPONENTS)
        assert computed(rd.mod_power(x, exponents, MODULUS)).tolist() == [
            [pow(int(v), int(k), MODULUS) for v, k in zip(*rows, strict=True)]
            for rows in zip(VALUES, EXPONENTS, strict=True)
        ]
        for base, of_rows in ((x, VALUES), (3, np.full((2, 3), 3))):
            assert computed(rd.mod_power(base, exponents, m)).tolist() == [
                [pow(int(v), int(k), int(n)) for v, k, n in zip(*rows, strict=True)]
                for rows in zip(of_rows, EXPONENTS, computed(m), strict=True)
            ]
    # Few bits hold the numbers, and need not hold the exponents.
    small = rd.from_ints([1, 2, 3], rd.Positional(8), chunks=2 if lazy else None)
    assert computed(rd.mod_power(small, np.array([300, 2**40, 5]), 101)).tolist() == [
        pow(1, 300, 101), pow(2, 2**40, 101), pow(3, 5, 101)
    ]  # fmt: skip
    assert rd.mod_power(small[:0], np.zeros(0, np.int64), 101).shape == (0,)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", INTEGERS)
def test_wrong_exponents_and_moduli_are_one_line(kind: str, lazy: bool) -> None:
    x = made(kind, lazy=lazy)
    for function, error, message in (
        (lambda: pow(x, np.array([1.5, 2, 3]), 7), TypeError, "exponents must be integers of a machine type"),
        (lambda: pow(x, np.array([2**70, 1, 1], dtype=object), 7), TypeError, "integers of a machine type"),
        (lambda: pow(x, made(kind, lazy=lazy), 7), TypeError, "mod_power takes no"),
        (lambda: pow(x, np.array([1, 2]), 7), ValueError, "broadcast"),
        (lambda: pow(x, 2, np.array([5, 7, 9])), TypeError, "mod_power takes no"),
        (lambda: pow(x, np.array([1, 2, 3]), 0), (ValueError, ZeroDivisionError), "modulus"),
        (lambda: pow(x, np.ma.array([1, 2, 3], mask=[0, 1, 0]), 7), ValueError, "masked"),
    ):
        if kind != "interval" and "mod_power" in message:
            continue  # there an array has an exponent, or a modulus, for each number
        with pytest.raises(error, match=message) as caught:
            function()
        assert len(str(caught.value).splitlines()) == 1


def test_fields_have_their_own_moduli() -> None:
    f = made("fields", lazy=False)
    with pytest.raises(TypeError, match="power_modulo takes no FieldArray"):
        pow(f, np.array([1, 2, 3]), 7)
    with pytest.raises(TypeError, match="mod_power takes no FieldArray"):
        rd.mod_power(f, np.array([1, 2, 3]), 7)
