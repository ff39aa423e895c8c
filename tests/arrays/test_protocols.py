"""NumPy's and Dask's protocols: their functions on arrays of numbers, against NumPy's of Python ints."""

import operator
from collections.abc import Callable, Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from conftest import Processor
from dask.base import tokenize

import rnsdask as rd
from rnsdask.lazy.lazy_ints import LazyInts

MODULI = rd.ModuliSet([251, 253, 255, 256])
HIGH = MODULI.product // 2 - 1
VALUES = np.array([[3, -7, 0], [100, 2, -1]], dtype=object)
KINDS = ["rns", "rns lazy", "interval", "interval lazy"]


@pytest.fixture(autouse=True)
def in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="sync"):
        yield


def make(kind: str, values: Any = VALUES, xp: Any = np) -> Any:
    x = rd.from_ints(np.asarray(values, dtype=object), MODULI, signed=True, chunks=None)
    words = xp.asarray(x.residues)
    if "lazy" in kind:
        chunks = tuple(max(1, length // 2) for length in words.shape[1:])
        words = da.from_array(words, chunks=(4, *chunks), asarray=False)
    x = rd.RNSArray(words, x.system)
    return rd.IntervalRNSArray.from_rns(x) if "interval" in kind else x


def plain(result: Any) -> Any:
    """Nested lists of Python's numbers of any result, computed."""
    if isinstance(result, tuple | list):
        return [plain(part) for part in result]
    if hasattr(result, "to_ints"):
        return result.to_ints().tolist()
    result = result.compute() if isinstance(result, da.Array) else result
    result = result.get() if hasattr(result, "get") else result
    return result.tolist() if hasattr(result, "tolist") else result


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "negative": np.negative,
    "positive": np.positive,
    "square": np.square,
    "sign": np.sign,
    "equal to any size": lambda x: np.not_equal(10**40, x),
    "maximum.reduce along an axis": lambda x: np.maximum.reduce(x, axis=1, keepdims=True),
    "gcd.reduce along an axis": np.gcd.reduce,
    "gcd.reduce": lambda x: np.gcd.reduce(x * 6, axis=None),
    "matmul": lambda x: np.matmul(x, x.T),
    "max along an axis": lambda x: np.max(x, axis=0),
    "amin": lambda x: np.amin(x, axis=1, keepdims=True),
    "sum along axes": lambda x: np.sum(x, axis=(0, 1)),
    "prod": lambda x: np.prod(x[1]),
    "argmax along an axis": lambda x: np.argmax(x, axis=1),
    "cumsum": lambda x: np.cumsum(x[1]),
    "dot": lambda x: np.dot(x, x.T),
    "linalg.matmul": lambda x: np.linalg.matmul(x, x.T),
    "max": np.max,
    "min": np.min,
    "sum": np.sum,
    "nansum": np.nansum,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "concatenate": lambda x: np.concatenate([x, x], axis=1),
    "concatenate flat": lambda x: np.concatenate((x, x[0]), axis=None),
    "stack": lambda x: np.stack([x, x], axis=-1),
    "hstack": lambda x: np.hstack([x, x]),
    "vstack": lambda x: np.vstack([x, x[0]]),
    "append": lambda x: np.append(x, x[0]),
    "split": lambda x: np.split(x, 3, axis=1),
    "array_split": lambda x: np.array_split(x, 2, axis=1),
    "hsplit": lambda x: np.hsplit(x, [1]),
    "where": lambda x: np.where(x[0] > -5, x, 9),
    "where of numbers": lambda x: np.where(x > 1, 0, x),
    "where alone": np.where,
    "nonzero": np.nonzero,
    "flatnonzero": np.flatnonzero,
    "reshape": lambda x: np.reshape(x, (3, -1)),
    "reshape order": lambda x: np.reshape(x, (3, -1), order="C"),
    "ravel": np.ravel,
    "transpose": np.transpose,
    "transpose axes": lambda x: np.transpose(x, axes=(1, 0)),
    "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "rollaxis": lambda x: np.rollaxis(x, 1),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "squeeze": lambda x: np.squeeze(x[:1]),
    "expand_dims": lambda x: np.expand_dims(x, (0, 2)),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 2, 3)),
    "roll": lambda x: np.roll(x, 2),
    "flip": lambda x: np.flip(m=x, axis=1),
    "take": lambda x: np.take(x, [0, -1], axis=1),
    "repeat": lambda x: np.repeat(x, 2, axis=0),
    "tile": lambda x: np.tile(x, (2, 1)),
    "pad": lambda x: np.pad(x, ((1, 0), (0, 2))),
    "copy": np.copy,
    "full_like": lambda x: np.full_like(x, -5),
    "zeros_like": np.zeros_like,
    "ones_like": lambda x: np.ones_like(x) + x,
    "zeros_like of a type": lambda x: np.zeros_like(x, dtype=bool),
    "shape": lambda x: (np.shape(x), np.ndim(x), np.size(x), np.size(x, 0)),
    "array_equal": lambda x: (np.array_equal(x, x + 0), np.array_equal(x, x + 1), np.array_equal(x, x[0])),
    "iscomplexobj": lambda x: (np.iscomplexobj(x), np.isrealobj(x)),
    "sort": lambda x: [
        np.sort(x),
        np.sort(x, kind="stable"),
        np.sort(x, 0, "mergesort"),
        np.sort(x, axis=None),
    ],
    "argsort": lambda x: [np.argsort(x, kind="stable"), np.argsort(x, 0, stable=True)],
    "astype": lambda x: np.astype(x, np.int16),
    "isin": lambda x: [np.isin(x, [3, 2]), np.isin(element=x, test_elements=[3, 2], invert=True)],
    "operators of NumPy's scalars": lambda x: [np.int64(3) + x, np.array(3) * x, 7 - x, np.uint8(7) - x],
    "operators with NumPy's scalars": lambda x: [x + np.int64(3), x * np.array(3), x - np.array(7, object)],
    "divisions by NumPy's scalars": lambda x: [x // np.int64(3), x % np.int8(-3), np.int64(5) // (x * x + 1)],
    "comparisons with NumPy's scalars": lambda x: [np.int64(3) > x, np.int8(100) == x, x != np.uint64(2)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_functions_are_found_by_their_names(kind: str, on_each_processor: Processor) -> None:
    x = make(kind, xp=on_each_processor.xp)
    for name, function in FUNCTIONS.items():
        result = function(x)
        assert plain(result) == plain(function(VALUES)), name
        if isinstance(result, rd.RNSArray | rd.IntervalRNSArray):
            assert type(result) is type(x), name
            assert type(result.words) is type(x.words), name


def test_ways_to_least_squares_and_covariances() -> None:
    """They are right where an error names them: NumPy's functions take floats alone, and round."""
    values = np.array([[3, 1, 4], [1, 5, 9], [2, 6, 5], [3, 5, 8]], dtype=object)
    x, b = rd.from_ints(values), rd.from_ints([2, 7, 1, 8])
    with pytest.raises(TypeError, match=r"lstsq takes no RNSArray; rd\.linalg\.solve\(x\.T @ x, x\.T @ b\)"):
        np.linalg.lstsq(x, b)
    numerators, denominator = rd.linalg.solve(x.T @ x, x.T @ b)
    expected = np.linalg.lstsq(values.astype(float), np.array([2.0, 7, 1, 8]))[0]
    assert np.allclose((numerators / denominator).astype(float), expected)
    with pytest.raises(TypeError, match=r"cov takes no RNSArray; y @ y\.T of y = n \* x - x\.sum"):
        np.cov(x)
    n = x.shape[1]
    y = n * x - x.sum(axis=1)[:, None]
    assert np.allclose((y @ y.T).to_ints().astype(float), n * n * (n - 1) * np.cov(values.astype(float)))
    for function in (np.linalg.qr, np.linalg.svd, np.linalg.eigvals, np.linalg.cholesky):
        with pytest.raises(TypeError, match=r'takes no RNSArray; x\.astype\(float, casting="unsafe"\)'):
            function(x)


def test_a_name_that_appears_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    x = make("rns")
    with pytest.raises(TypeError, match=r"numpy\.trapezoid takes no RNSArray"):
        np.trapezoid(x)
    with pytest.raises(TypeError, match=r"numpy\.ediff1d takes no RNSArray"):
        np.ediff1d(x)

    def trapezoid(self: Any, dx: int) -> Any:
        return self, dx

    def ediff1d(ary: Any, to_end: int) -> Any:
        return ary, to_end

    def clip(x: Any, min: int, max: int) -> Any:  # noqa: A002
        return x, max - min

    monkeypatch.setattr(rd.RNSArray, "trapezoid", trapezoid, raising=False)
    monkeypatch.setattr(rd, "ediff1d", ediff1d, raising=False)
    monkeypatch.setattr(rd, "clip", clip, raising=False)
    monkeypatch.setattr(rd, "__all__", [*rd.__all__, "ediff1d", "clip"])
    clipped = [np.clip(x, 1, 3), np.clip(x, a_min=1, a_max=3), np.clip(a=x, min=1, max=3)]
    named = [
        np.trapezoid(x, dx=2),
        np.trapezoid(y=x, dx=2),
        np.ediff1d(x, to_end=2),
        np.ediff1d(ary=x, to_end=2),
    ]
    for found in clipped + named:
        assert found[0] is x
        assert found[1] == 2


# ---- ufuncs of two operands, and their methods ------------------------------------------------------------

SYSTEMS = {
    "residues": lambda values: rd.from_ints(values, rd.ModuliSet.for_bits(128)),
    "intervals": lambda values: rd.from_ints(values, rd.IntervalRNS(rd.ModuliSet.for_bits(128))),
    "limbs": lambda values: rd.from_ints(values, rd.Positional(128)),
    "elements": lambda values: rd.from_ints(values, rd.PrimeFields([10**9 + 7])),
    "Fermat elements": lambda values: rd.from_ints(values, rd.FermatField.named("F233")),
}
LOGICAL = (np.logical_and, np.logical_or, np.logical_xor)
UFUNCS = sorted(
    {value for value in vars(np).values() if isinstance(value, np.ufunc) and value.signature is None},
    key=lambda ufunc: ufunc.__name__,
)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", SYSTEMS)
def test_methods_of_ufuncs_are_right_or_one_clear_error(kind: str, lazy: bool) -> None:
    """Each gives what NumPy does with Python's integers, or says what it does not take."""
    values = np.array([[3, 1, 2], [5, 4, 6]], dtype=object)
    x = SYSTEMS[kind](values)
    x = x.rechunk() if lazy else x
    row, right = x[0], 0
    calls: dict[str, Callable[[np.ufunc, Any, Any], Any]] = {
        "call": lambda ufunc, x, row: ufunc(x, row),
        "call with an integer": lambda ufunc, x, _: ufunc(x, np.uint8(3)),
        "call after an integer": lambda ufunc, x, _: ufunc(np.int64(7), x),
        "reduce": lambda ufunc, x, _: ufunc.reduce(x),
        "reduce axis": lambda ufunc, x, _: ufunc.reduce(x, axis=1),
        "reduce all": lambda ufunc, x, _: ufunc.reduce(x, axis=None),
        "reduce initial": lambda ufunc, x, _: ufunc.reduce(x, initial=5),
        "accumulate": lambda ufunc, x, _: ufunc.accumulate(x, axis=1),
        "outer": lambda ufunc, x, row: ufunc.outer(x, row),
        "outer integer": lambda ufunc, x, _: ufunc.outer(x, 3),
        "reduceat": lambda ufunc, x, _: ufunc.reduceat(x, [0, 1]),
        "at": lambda ufunc, x, _: ufunc.at(x, [0], 1),
        "at by it": lambda ufunc, _, row: ufunc.at(np.zeros(3, dtype=object), [0, 1, 2], row),
    }
    for ufunc in (ufunc for ufunc in UFUNCS if ufunc.nin == 2):
        for name, call in calls.items():
            try:
                result = call(ufunc, x, row)
                found = plain(result)
            except rd.RNSOverflowError:
                continue  # an exact difference below 0
            except (TypeError, ValueError) as error:
                message = str(error)
                assert "\n" not in message
                assert (
                    ufunc.__name__ in message
                    or "FieldArray" in message
                    or "must be" in message
                    or "shifted by one integer" in message
                    or ("supported for functions returning" in message or "single output" in message)
                ), (ufunc, name, message)
                assert "with 2 axes takes no axis" not in message, (ufunc, name, message)
                continue
            for part in result if isinstance(result, tuple) else (result,):
                assert dask.is_dask_collection(part) == lazy, (ufunc, name)
            if "elements" in kind.lower() and ufunc in (np.divide, np.subtract):
                continue  # not those of Python's integers
            # All fit int64, which has more ufuncs than objects, of which logical ones return operands.
            numbers = values != 0 if ufunc in LOGICAL else values.astype(np.int64)
            if (ufunc, name) == (np.lcm, "reduce all"):  # NumPy's takes one axis
                numbers = numbers.ravel()
            expected = call(ufunc, numbers, numbers[0])
            assert found == plain(expected), (ufunc, name)
            right += 1
    assert right > 10


@pytest.mark.parametrize("kind", ["elements", "Fermat elements"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_extremes_of_elements_are_one_clear_error(kind: str, axis: int | None) -> None:
    x = SYSTEMS[kind]([[3, 1], [5, 4]])
    for ufunc, name in ((np.maximum, "max"), (np.minimum, "min")):
        with pytest.raises(TypeError, match=rf"^{name} takes no FieldArray: .* have no order"):
            ufunc.reduce(x, axis=axis)


# ---- what is refused --------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "out": (lambda x: np.add(x, 1, out=np.zeros((2, 3), object)), "numpy.add .* takes no out"),
    "in place": (lambda x: operator.iadd(np.zeros((2, 3), object), x), "takes no out|rd.from_ints"),
    "where": (lambda x: np.add(x, 1, where=np.ones(3, bool)), "takes no where"),
    "dtype": (lambda x: np.multiply(x, 2, dtype=np.float64), "is exact, got dtype float64"),
    "casting": (lambda x: np.add(x, 1, casting="unsafe"), "takes no casting"),
    "initial": (lambda x: np.add.reduce(x, axis=None, initial=5), "takes no initial"),
    "initial of a function": (lambda x: np.max(x, initial=5), "numpy.max of .* takes no initial"),
    "where of a function": (lambda x: np.sum(x, where=VALUES > 0), "numpy.sum of .* takes no where"),
    "axis of unique": (lambda x: np.unique(x, axis=0), "numpy.unique of .* takes no axis"),
    "shape": (lambda x: np.zeros_like(x, shape=(2,)), "numpy.zeros_like of .* takes no shape"),
    "by place": (lambda x: np.max(x, 0, None, True), "numpy.max of an array of numbers, too many positional"),
    "no operator": (lambda x: np.sqrt(x), r"numpy.sqrt takes no \w+Array; rd.isqrt\(x\)"),
    "division": (lambda x: np.true_divide(x, 2), "numpy.divide takes no .*//"),
    "logic": (lambda x: np.logical_and(x, x), "x != 0"),
    "at": (lambda x: np.add.at(x, np.array(0), 1), "numpy.add.at takes no"),
    "reduceat": (lambda x: np.add.reduceat(x, 0), "numpy.add.reduceat takes indices of one axis"),
    "reduceat of others": (lambda x: np.subtract.reduceat(x, [0]), "numpy.subtract.reduceat takes no"),
    "scan": (lambda x: np.bitwise_or.accumulate(x), "numpy.bitwise_or.accumulate takes no"),
    "floats": (
        lambda x: np.add(np.ones(3), x),
        "position 0 must be an integer, got 1.0 of",
    ),
    "floats after": (lambda x: x + np.ones(3), "position 0 must be an integer, got 1.0 of type float"),
    "Dask array of floats": (lambda x: np.add(da.ones(3), x), "integers, got a Dask array of float64"),
    "Booleans": (lambda x: (VALUES > 0) * x, r"integers, got Booleans; rd.where\(mask, x, 0\)"),
    "Dask array of Booleans": (lambda x: x * (da.arange(3) > 0), r"got Booleans; rd.where\(mask, x, 0\)"),
    "float": (lambda x: np.float64(2.5) * x, "must be an integer, got 2.5"),
    "bool": (lambda x: np.True_ + x, "must be an integer, got True"),
    "function": (
        lambda x: np.fft.fft(x),
        r'numpy.fft.fft takes no \w+Array; x.astype\(float, casting="unsafe"\)',
    ),
    "another module's": (lambda x: np.emath.power(x, 2), "power takes no"),
    "joining": (lambda x: np.concatenate([x, 5]), "arrays of numbers, got int at position 1"),
    "Dask joining": (lambda x: np.concatenate([da.ones((2, 3)), x]), "got a Dask array of float64"),
    "equality with an integer": (lambda x: np.array_equal(x, 5), "rd.from_ints"),
    "order of a sort": (lambda x: np.sort(x, order="f"), r"numpy.sort of an \w+Array takes no order"),
    "order of indices": (lambda x: np.argsort(x, order="f"), "takes no order"),
    "float type": (lambda x: x.astype(float), "astype of exact integers"),
    "complex type": (lambda x: np.astype(x, complex), "astype of exact integers"),
    "text": (lambda x: x.astype(str), "astype of exact integers"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_numpy_would_turn_into_objects_is_refused(kind: str) -> None:
    x = make(kind)
    for name, (function, message) in REFUSED.items():
        with pytest.raises(TypeError, match=message):
            pytest.fail(f"{name}: {function(x)}")


def test_lazy_integers_leave_arrays_of_numbers_to_themselves() -> None:
    squares = VALUES * VALUES + 1
    for kind in ("rns lazy", "interval lazy", "rns"):
        x, top = make(kind, squares), make("rns lazy").max()
        for function in (
            operator.add,
            operator.mul,
            operator.floordiv,
            operator.mod,
            operator.lt,
            operator.eq,
        ):
            assert plain(function(top, x)) == plain(function(100, squares))
            assert plain(function(x, top)) == plain(function(squares, 100))
        for ufunc in (np.add, np.floor_divide, np.remainder, np.greater, np.maximum):
            assert plain(ufunc(top, x)) == plain(ufunc(100, squares))
        assert plain(np.divmod(x, 7)) == plain([squares // 7, squares % 7])
        assert plain(np.divmod(np.int64(70), x)) == plain([70 // squares, 70 % squares])
        assert plain(divmod(top, x)) == plain([100 // squares, 100 % squares])


@pytest.mark.parametrize("kind", KINDS)
def test_dask_makes_arrays_of_python_ints(kind: str) -> None:
    x = make(kind, VALUES + HIGH // 8)
    expected = (VALUES + HIGH // 8).tolist()
    for array in (da.asarray(x), da.asanyarray(x), x.to_dask_array(), da.array(x)):
        assert isinstance(array, LazyInts)
        assert array.chunks == getattr(x, "chunks", ((2,), (3,)))
        assert array.compute().tolist() == expected
    powers = x.to_dask_array() ** 9  # beyond any machine integer
    assert powers.compute().tolist() == ((VALUES + HIGH // 8) ** 9).tolist()
    assert da.concatenate([x, x]).compute().tolist() == expected * 2
    assert da.stack([x, x]).compute().tolist() == [expected] * 2
    assert int(da.concatenate([x, x]).sum()) == 2 * int(x.sum())
    assert plain(da.add(x, x)) == (2 * (VALUES + HIGH // 8)).tolist()
    assert type(da.maximum(x, 3)) is type(x)
    assert da.where(x > 3, x, 0).compute().tolist() == np.where(VALUES + HIGH // 8 > 3, expected, 0).tolist()
    total, top = dask.compute(x.sum(), x.max())
    assert (total, top) == (int((VALUES + HIGH // 8).sum()), HIGH // 8 + 100)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_in_other_types(kind: str, on_each_processor: Processor) -> None:
    x = make(kind, xp=on_each_processor.xp)
    assert x.dtype == object
    assert np.result_type(x, np.int8) is np.dtype(object)
    for dtype in (object, np.int8, np.int64, "int16", bool):
        cast = x.astype(dtype)
        assert cast.dtype == np.dtype(dtype)
        assert dask.is_dask_collection(cast) == ("lazy" in kind)
        assert plain(cast) == VALUES.astype(dtype).tolist()
    for value, dtype in [(128, np.int8), (-129, np.int8), (-1, np.uint8), (-1, np.uint64), (256, np.uint8)]:
        values = np.zeros(7, dtype=object)
        values[5] = value
        with pytest.raises(OverflowError, match=f"flat index 5 is {value}, outside of {np.dtype(dtype)}"):
            plain(make(kind, values, on_each_processor.xp).astype(dtype))
        values[5] = np.iinfo(dtype).max % HIGH
        assert plain(make(kind, values).astype(dtype)) == values.tolist()
    assert plain(make(kind, [HIGH, -HIGH]).astype(np.int32)) == [HIGH, -HIGH]
    assert make(kind, np.zeros((2, 0), object)).astype(np.int64).shape == (2, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_single_numbers_and_lists(kind: str) -> None:
    x, line = make(kind), make(kind, range(9))
    assert x.tolist() == VALUES.tolist()
    assert x.item(1, 0) == x.item((1, 0)) == x.item(3) == x.item(-3) == x.item(np.int8(3)) == 100
    assert type(x.item(3)) is int
    assert x[:1, 1:2].item() == -7
    for wrong, error in [((), ValueError), ((6,), IndexError), ((0, 3), IndexError), ((0, 0, 0), ValueError)]:
        with pytest.raises(error):
            x.item(*wrong)
    with pytest.raises(TypeError):
        x.item(1.0)
    assert list(line) == list(range(9))
    assert [row.tolist() for row in x] == VALUES.tolist()
    assert all(type(row) is type(x) for row in x)
    for wrong_type in (int, float, operator.index):  # as NumPy's arrays with axes
        with pytest.raises(TypeError):
            wrong_type(x[:1, :1])
    for copied in (x.copy(), np.copy(x), x.copy(order="K")):
        assert copied.tolist() == VALUES.tolist()
        assert tokenize(copied) == tokenize(x)
    assert x.flatten().tolist() == np.ravel(x).tolist() == VALUES.ravel().tolist()
    if "lazy" not in kind:
        assert not np.shares_memory(x.flatten().words, x.words)
        assert not np.shares_memory(x.copy().words, x.words)
    assert plain(x.nonzero()) == plain(VALUES.nonzero())


def test_a_lazy_line_is_iterated_chunk_by_chunk() -> None:
    seen: list[int] = []

    def watched(block: Any) -> Any:
        seen.append(block.shape[1])
        return block

    words = rd.from_ints(range(12), MODULI, chunks=None).residues
    lazy = da.from_array(words, chunks=(4, 4)).map_blocks(watched, meta=words[:, :0])
    for x in (rd.RNSArray(lazy, rd.RNS(MODULI)), rd.RNSArray(lazy, rd.RNS(MODULI))[:]):
        seen.clear()
        numbers = iter(x)
        assert (next(numbers), seen) == (0, [4])
        assert [next(numbers) for _ in range(3)] == [1, 2, 3]
        assert seen == [4]
        assert list(numbers) == list(range(4, 12))
        assert seen == [4, 4, 4]
    selection = rd.RNSArray(lazy, rd.RNS(MODULI))
    selection = selection[selection % 4 < 2]
    assert [int(number) for number in selection] == [0, 1, 4, 5, 8, 9]
    assert np.isnan(selection.shape[0])


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_have_dasks_names(kind: str) -> None:
    x = make(kind)
    if "lazy" not in kind:
        for name in ("chunks", "numblocks", "npartitions", "chunksize", "blocks"):
            message = f"Array in memory has no {name}; rechunk\\(\\) makes it lazy, and x.to_dask_array\\(\\)"
            with pytest.raises(AttributeError, match=message):
                getattr(x, name)
        return
    dask_array = x.to_dask_array()
    for name in ("chunks", "numblocks", "npartitions", "chunksize"):
        assert getattr(x, name) == getattr(dask_array, name)
    assert (x.blocks.shape, x.blocks.size) == (dask_array.blocks.shape, dask_array.blocks.size)
    for index in (0, (1, 2), (slice(None), 1), (slice(1), slice(1, None)), -1, (..., [1, 2])):
        assert x.blocks[index].tolist() == dask_array.blocks[index].compute().tolist()
    parts = [part.compute().tolist() for part in dask_array.blocks.ravel()]
    assert [part.tolist() for part in x.blocks.ravel()] == parts
    with pytest.raises(IndexError):
        x.blocks[2]


@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_chunks(kind: str, on_each_processor: Processor) -> None:
    x = make(kind, xp=on_each_processor.xp)
    doubled = x.map_blocks(lambda block, by: block * by, by=2)
    assert type(doubled) is type(x)
    assert getattr(doubled, "chunks", None) == getattr(x, "chunks", None)
    assert doubled.tolist() == (VALUES * 2).tolist()
    assert getattr(doubled, "bound", None) is None
    assert plain(x.map_blocks(lambda block: block > 1, dtype=bool)) == (VALUES > 1).astype(bool).tolist()
    assert plain(x.map_blocks(lambda block: block.to_ints().astype(float), dtype=float)) == VALUES.tolist()
    kinds = set()
    x.map_blocks(lambda block: kinds.add((type(block), dask.is_dask_collection(block))) or block).to_ints()
    assert kinds == {(type(x), False)}
    other = rd.ModuliSet([251, 253, 255, 257])
    for function, error, message in [
        (lambda block: block.to_ints(), TypeError, "returned an object of type ndarray"),
        (lambda block: block[:, :0], ValueError, "must keep the shape of a chunk"),
        (lambda block: type(block)(block.words, type(block.system)(other)), ValueError, "keep the system"),
        (lambda block: str(block), TypeError, "returned an object of type str"),
    ]:
        with pytest.raises(error, match=message):
            plain(x.map_blocks(function))
    with pytest.raises(TypeError, match="was told dtype int8, but its function returned bool"):
        plain(x.map_blocks(lambda block: block > 1, dtype=np.int8))
    with pytest.raises(ValueError, match="must keep the shape"):
        plain(x.map_blocks(lambda block: (block > 1)[0], dtype=bool))


def _where(block: Any, block_id: Any) -> Any:
    return block * 0 + 10 * block_id[0] + block_id[1]


def _starts(block: Any, block_info: Any) -> Any:
    return block * 0 + block_info[0]["array-location"][1][0]


OPTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "block_id": (_where, {}),
    "block_info": (_starts, {}),
    "name": (lambda block: block + 1, {"name": "named"}),
    "token": (lambda block: block + 1, {"token": "named"}),
    "enforce_ndim": (lambda block: block + 1, {"enforce_ndim": True}),
    "chunks": (lambda block: block[:1, :1], {"chunks": (1, 1)}),
    "all chunks": (lambda block: block[:1], {"chunks": ((1, 1), (1, 1, 1))}),
    "drop_axis": (lambda block: block[0], {"drop_axis": 0}),
    "drop_axis from the end": (lambda block: block[:, 0], {"drop_axis": [-1]}),
    "new_axis": (lambda block: block[:, None], {"new_axis": 1}),
    "new_axis and chunks": (lambda block: block[None].repeat(2, 0), {"new_axis": 0, "chunks": (2, 1, 1)}),
}
"""Options of Dask's ``map_blocks``, with a function of numbers and of arrays of Python ints alike."""


@pytest.mark.parametrize("kind", KINDS)
def test_map_blocks_has_dasks_options(kind: str, on_each_processor: Processor) -> None:
    x = make(kind, xp=on_each_processor.xp)
    lengths = x.chunks if "lazy" in kind else -1
    dasks = da.from_array(VALUES, chunks=lengths)
    for name, (function, options) in OPTIONS.items():
        if "lazy" not in kind and name in ("all chunks", "new_axis and chunks"):
            continue
        expected = dasks.map_blocks(function, dtype=object, **options)
        made = x.map_blocks(function, **options)
        assert type(made) is type(x), name
        assert made.tolist() == expected.compute().tolist(), name
        if "lazy" in kind:
            assert made.chunks == expected.chunks, name
        if not name.startswith("block"):
            ints = x.map_blocks(lambda b, f=function: f(b).to_ints(), dtype=object, **options)
            assert plain(ints) == expected.compute().tolist(), name
    with pytest.raises(ValueError, match="Dimension mismatch"):
        x.map_blocks(lambda block: block[0], enforce_ndim=True).compute()
    with pytest.raises(ValueError, match="drop_axis out of range"):
        x.map_blocks(lambda block: block, drop_axis=2)
    for wrong in (lambda block: block[:, :0], lambda block: block[0], lambda block: block[None]):
        for options in (
            {},
            {"dtype": object},
            {"chunks": tuple((9,) * n for n in getattr(x, "numblocks", (1, 1)))},
        ):
            with pytest.raises(
                ValueError, match=r"must keep the shape of a chunk, .* unless chunks=, drop_axis="
            ):
                plain(x.map_blocks(wrong, **options))
    with pytest.raises(TypeError, match=f"meta must be an empty NumPy or CuPy array, got {type(x).__name__}"):
        x.map_blocks(lambda block: block, meta=x)


@pytest.mark.parametrize("kind", KINDS)
def test_map_blocks_gives_python_ints_where_the_type_is_object(kind: str) -> None:
    x = make(kind)
    found = x.map_blocks(lambda block: block + 1, dtype=x.dtype)
    assert plain(found) == (VALUES + 1).tolist()
    assert isinstance(found, da.Array if "lazy" in kind else np.ndarray)
    meta = np.empty((0, 0), np.int16)
    assert plain(x.map_blocks(lambda block: block.astype(np.int16), meta=meta)) == VALUES.tolist()
    assert plain(x.map_blocks(lambda a, b, c: a * c - b, x, 3)) == (2 * VALUES).tolist()
    assert plain(x.map_blocks(lambda a, by: a + by, by=make("rns lazy").max())) == (VALUES + 100).tolist()
    assert plain(x.map_blocks(lambda a, b: a + int(b.sum()), make("rns"))) == (VALUES + VALUES.sum()).tolist()
    assert (
        plain(x.map_blocks(lambda block, by: block + by % 7, by=10**5000)) == (VALUES + 10**5000 % 7).tolist()
    )
    field = rd.from_ints(abs(VALUES), rd.PrimeFields([65537]), chunks=2 if "lazy" in kind else None)
    assert field.map_blocks(lambda block: -block).tolist() == (-abs(VALUES) % 65537).tolist()
    with pytest.raises(
        TypeError, match="told dtype object, but its function returned FieldArray; without dtype"
    ):
        plain(field.map_blocks(lambda block: -block, dtype=object))
    if "rns" in kind:
        lazy = x if "lazy" in kind else x.rechunk(1)
        for axis in (0, 1):
            assert plain(da.cumsum(lazy, axis=axis)) == np.cumsum(VALUES, axis=axis).tolist()
        assert plain(da.cumsum(lazy, axis=None)) == np.cumsum(VALUES).tolist()
        assert plain(da.cumprod(lazy, axis=1)) == np.cumprod(VALUES, axis=1).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_chunks_keep_what_was_set_on_overflow(kind: str) -> None:
    x = make(kind, [HIGH, 3, -1, 5])
    with rd.errstate(overflow="wrap"):
        wrapped, expected = x.map_blocks(lambda block: block * 4), (x * 4).tolist()
        above = x.map_blocks(lambda block: block * 4 > 8, dtype=bool)
    assert wrapped.tolist() == expected
    assert plain(above) == [value > 8 for value in expected]
    if "lazy" in kind:
        checked = x.map_blocks(lambda block: block * 4)
        with rd.errstate(overflow="wrap"), pytest.raises(rd.RNSOverflowError):
            checked.compute()


@pytest.mark.parametrize("kind", KINDS)
def test_one_condition_for_all_numbers(kind: str) -> None:
    x = make(kind)
    for yes in (True, np.True_, np.array(True)):
        assert plain(np.where(yes, x, 0)) == VALUES.tolist()
        assert plain(np.where(~np.bool_(yes), x, 7)) == [[7] * 3] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_one_number_in_the_shape_of_an_array(kind: str, on_each_processor: Processor) -> None:
    x = make(kind, xp=on_each_processor.xp)
    full = rd.full_like(x, -HIGH)
    assert type(full) is type(x)
    assert getattr(full, "chunks", None) == getattr(x, "chunks", None)
    assert full.tolist() == np.full_like(VALUES, -HIGH).tolist()
    assert getattr(full, "bound", HIGH) == HIGH
    assert rd.zeros_like(make(kind, np.zeros((2, 0), object))).shape == (2, 0)
    assert np.full_like(x, 3, dtype=np.int8).dtype == np.int8
    selected = rd.ones_like(x[x > 1])
    assert selected.tolist() == [1] * 3
    with pytest.raises(ValueError, match="range"):
        rd.full_like(x, MODULI.product)
    number = make("lazy", xp=np).max()
    full = rd.full_like(x, number)
    assert isinstance(full.words, da.Array)
    assert type(full.compute().words) is type(x.compute().words)
    assert full.chunks == getattr(x, "chunks", tuple((n,) for n in x.shape))
    assert full.tolist() == np.full_like(VALUES, VALUES.max()).tolist()
    assert getattr(full, "bound", None) is None
    with pytest.raises(ValueError, match="range"):
        rd.full_like(x, number * MODULI.product).compute()
    for wrong in (2.0, True, "1"):
        with pytest.raises(TypeError, match="fill_value must be an integer"):
            rd.full_like(x, wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="full_like takes an array of numbers, got ndarray"):
        rd.full_like(VALUES, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_xarray_names_axes_of_arrays_of_numbers(kind: str) -> None:
    xarray = pytest.importorskip("xarray")
    x = make(kind)
    named = xarray.DataArray(x, dims=("row", "column"), coords={"row": [10, 20]})
    assert named.data is x
    results = {
        "sum": (named + 1, VALUES + 1),
        "product": (named * named, VALUES * VALUES),
        "comparison": (named > 1, VALUES > 1),
        "place": (named.sel(row=20), VALUES[1]),
        "places": (named.isel(column=[2, 0]), VALUES[:, [2, 0]]),
        "transposed": (named.T, VALUES.T),
        "joined": (xarray.concat([named, named], "row"), np.concatenate([VALUES, VALUES])),
        "stacked": (named.stack(both=("row", "column")), VALUES.ravel()),
        "sorted": (named.sortby("row", ascending=False), VALUES[::-1]),
        "total": (named.sum(skipna=False), VALUES.sum()),
    }
    for what, (found, expected) in results.items():
        assert plain(found.data) == plain(expected), what
        if found.ndim and found.dtype == object:
            assert type(found.data) is type(x), what
    assert named.equals(named.copy())
    assert named.values.tolist() == VALUES.tolist()
    assert type(x).__name__ in repr(named)
    if "lazy" not in kind:
        assert plain((named + named.isel(row=0)).data) == (VALUES + VALUES[0]).tolist()
        assert plain(named.roll(column=1).data) == np.roll(VALUES, 1, axis=1).tolist()
        assert plain(named.where(named > 1, 0).data) == np.where(VALUES > 1, VALUES, 0).tolist()
    else:
        assert not dask.is_dask_collection(named.compute().data)
        assert named.compute().data.tolist() == VALUES.tolist()


FIELDS = rd.PrimeFields([7, 11])


@pytest.mark.parametrize("kind", [*KINDS, "fields", "fields lazy", "positional", "positional lazy"])
def test_lists_of_arrays(kind: str) -> None:
    """NumPy converts each array of a list by itself, and asks nobody; what joins arrays is asked."""
    values = np.array([[60, 5, 9], [4, 30, 2]], dtype=object)
    if "fields" in kind:
        x = rd.from_ints(values, FIELDS, chunks=2 if "lazy" in kind else None)
    elif "positional" in kind:
        x = rd.from_ints(values, rd.Positional(40, True), chunks=2 if "lazy" in kind else None)
    else:
        x = make(kind, values)
    modulus = FIELDS.moduli.product if "fields" in kind else 2**200
    both = np.stack([values, values])
    for found, expected in (
        (np.sum([x, x]), both.sum()),
        (np.sum([x, x], axis=0), both.sum(axis=0)),
        (np.prod([x, x], axis=0), both.prod(axis=0)),
        (np.max([x, x]), both.max()),
        (np.array([x, x]), both),
        (np.asarray([x, x]), both),
        (np.asarray(x), values),
    ):
        assert not hasattr(found, "words")
        assert plain(found) == plain(expected)  # Python ints, of a FieldArray too
    for found, expected in (
        (np.sum(np.stack([x, x]), axis=0), both.sum(axis=0) % modulus),
        (np.prod(np.stack([x, x]), axis=0), both.prod(axis=0) % modulus),
        (sum([x, x]), values * 2 % modulus),
        (np.concatenate([x, x]), np.concatenate([values, values])),
        (np.block([[x, x]]), np.block([[values, values]])),
    ):
        assert plain(found) == plain(expected)
    assert int(np.sum(np.stack([x, x]))) == both.sum() % modulus
    for wrong in (lambda: rd.from_ints([x, x], x.system), lambda: x * [x]):
        with pytest.raises(TypeError) as caught:
            wrong()
        assert ("lazy" in str(caught.value)) <= ("lazy" in kind)
