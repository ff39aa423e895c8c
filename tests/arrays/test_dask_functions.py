"""Every public function of Dask on arrays of every kind: right or an error, as docs/dask.md says."""

import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.sizeof import sizeof
from dask_calls import CALLS, EXAMPLE
from strategies import slow

import rnsdask as rd

dask_names = pytest.importorskip("dask_names")

MODULI = rd.ModuliSet([251, 253, 255, 256])
PRIMES = rd.PrimeFields([65537, 65521])
FERMAT = rd.FermatField(2**28 + 2**22, 16)

Maker = Callable[[Any, Any], Any]
KINDS: dict[str, Maker] = {
    "rns": lambda v, chunks: rd.from_ints(v, MODULI, signed=True, chunks=chunks),
    "interval": lambda v, chunks: rd.from_ints(v, rd.IntervalRNS(MODULI), chunks=chunks),
    "positional": lambda v, chunks: rd.from_ints(v, rd.Positional(64, signed=True), chunks=chunks),
    "fields": lambda v, chunks: rd.from_ints(abs(v), PRIMES, chunks=chunks),
    "fermat": lambda v, chunks: rd.from_ints(abs(v), FERMAT, chunks=chunks),
}
MODULI_OF_FIELDS = {"fields": PRIMES.moduli.product, "fermat": FERMAT.modulus}


@pytest.fixture(autouse=True)
def quietly_in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="sync"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def public(module: Any) -> set[str]:
    """The names of a module's public functions; without a list of them, of those that it defines."""
    listed = getattr(module, "__all__", None)
    found = {name for name in listed or dir(module) if name[0] != "_" and hasattr(module, name)}
    functions = {name for name in found if _is_function(getattr(module, name))}
    if listed:
        return functions
    return {
        name
        for name in functions
        if (getattr(module, name).__module__ or "").startswith(module.__name__) or name.startswith("masked_")
    }


def _is_function(value: Any) -> bool:
    return callable(value) and not inspect.isclass(value)


@pytest.mark.parametrize("name", list(CALLS))
def test_every_public_function_of_dask_is_listed(name: str) -> None:
    """A name that Dask gains is to be tried, and listed in scripts/dask_names.py with its verdict."""
    if name == "dask.array.stats":
        pytest.importorskip("scipy")
    listed = dask_names.names(name)
    assert public(importlib.import_module(name)) - listed == set()
    assert {call.partition(" ")[0] for call in CALLS[name]} == listed - dask_names.without_collections(name)


def plain(result: Any) -> Any:
    """Nested lists of Python's numbers of any result, computed."""
    if isinstance(result, tuple | list):
        return [plain(part) for part in result]
    if dask.is_dask_collection(result):
        result = result.compute()
    result = result.to_ints() if hasattr(result, "to_ints") else result
    return result.tolist() if hasattr(result, "tolist") else result


def is_same(found: Any, expected: Any) -> bool:
    if found == expected:
        return True
    try:  # what is no integer is rounded
        return np.allclose(np.array(found, dtype=float), np.array(expected, dtype=float))
    except (TypeError, ValueError):
        return False


def verdict(kind: str, chunks: Any, module: Any, name: str) -> tuple[str, str]:
    """Run a call; return "right", "error", "wrong" or "absent", with the error or the wrong result."""
    call, result = CALLS[module.__name__][name]
    values = abs(EXAMPLE) if kind in MODULI_OF_FIELDS else EXAMPLE
    try:
        expected = plain(result(values))
    except Exception as error:  # there is no right answer
        expected = error
    try:
        made = call(module, KINDS[kind](values, chunks))
        found = plain(made)
    except ImportError as error:  # of another library that the function needs
        return "absent", str(error)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    if made is NotImplemented:
        return "error", "NotImplemented"
    if is_same(found, expected) or is_same(found, modulo(expected, MODULI_OF_FIELDS.get(kind))):
        return "right", ""
    return "wrong", f"{found!r:.200} is not {expected!r:.200}"


def modulo(values: Any, modulus: int | None) -> Any:
    """Nested lists of integers modulo that of fields, as elements are read."""
    if modulus is None or not isinstance(values, list | int):
        return values
    return [modulo(value, modulus) for value in values] if isinstance(values, list) else values % modulus


def fails_for_dasks_own(module: Any, name: str) -> bool:
    """Whether a call fails for Dask's array of Python ints too."""
    call, _ = CALLS[module.__name__][name]
    try:
        plain(call(module, da.from_array(EXAMPLE, chunks=2)))
    except Exception:
        return True
    return False


CHUNKS = {"lazy": 2, "in memory": None}
VARYING = {"cov"}
"""Functions that fail for Dask's own array of Python ints in some of its versions."""


@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.parametrize("where", list(CHUNKS))
@pytest.mark.parametrize("kind", ["rns", "fields", *slow("interval", "positional", "fermat")])
def test_functions_are_right_or_say_why_not(kind: str, name: str, where: str) -> None:
    if name == "dask.array.stats":
        pytest.importorskip("scipy")
    module = importlib.import_module(name)
    failed = {}
    for call in CALLS[name]:
        function = call.partition(" ")[0]
        if not hasattr(module, function):
            continue
        said = dask_names.verdict(name, function, where)
        found, why = verdict(kind, CHUNKS[where], module, call)
        is_clear = "NoneType" not in why and bool(why)
        if found == "absent" or (found == said == "wrong"):
            continue
        if found == "wrong" or (found == "error" and not is_clear and not fails_for_dasks_own(module, call)):
            failed[call] = f"{found}: {why}"
        elif kind == "rns" and found != said and not (call in VARYING or fails_for_dasks_own(module, call)):
            failed[call] = f"{found}, and is said to be {said}: {why}"
    assert failed == {}


@pytest.mark.parametrize("kind", list(KINDS))
def test_what_reads_keys_gets_numbers_and_no_words(kind: str, tmp_path: Path) -> None:
    values = np.arange(10).astype(object)
    x = KINDS[kind](values, 5)
    if kind in MODULI_OF_FIELDS:
        with pytest.raises(TypeError, match="histogram takes no FieldArray: elements of fields"):
            da.histogram(x, bins=[0, 5, 10])[0].compute()
    else:
        assert da.histogram(x, bins=[0, 5, 10])[0].compute().tolist() == [5, 5]
    assert da.histogram(x.astype(object), bins=[0, 5, 10])[0].compute().tolist() == [5, 5]
    with pytest.raises(TypeError, match=r"numpy\.save takes no \w+Array"):
        da.to_npy_stack(tmp_path / "numbers", x)
    da.to_npy_stack(tmp_path / "ints", x.astype(object))
    assert np.load(tmp_path / "ints" / "1.npy", allow_pickle=True).tolist() == [5, 6, 7, 8, 9]
    chunks = dask.get(dict(x.__dask_graph__()), x.__dask_keys__())
    assert [(type(chunk), chunk.tolist()) for chunk in chunks] == [
        (type(x), [0, 1, 2, 3, 4]),
        (type(x), [5, 6, 7, 8, 9]),
    ]


@pytest.mark.parametrize("kind", list(KINDS))
def test_collections_are_rebuilt_of_their_chunks(kind: str) -> None:
    from dask.graph_manipulation import bind, clone, wait_on

    x = KINDS[kind](abs(EXAMPLE), 2)
    selected = x[x == 9]
    for part in (x, selected, x[:, :0], x[0], x + 1):
        expected = part.tolist()
        (persisted,) = dask.persist(part)
        (optimized,) = dask.optimize(part)
        again = [persisted, persisted.persist(), optimized, wait_on(part)]
        if part.shape == x.shape:  # Dask's clone cannot take parts of its own arrays
            again += [clone(part), bind(part, x)]
        for same in again:
            assert type(same) is type(part)
            assert same.system == part.system
            assert same.tolist() == (same + 0).tolist() == expected
        (computed,) = dask.compute(part)
        assert (type(computed), computed.system) == (type(part), part.system)
        assert computed.tolist() == dask.delayed(lambda a: a)([part]).compute()[0].tolist() == expected
        assert isinstance(computed.words, np.ndarray)
        assert computed.nbytes <= sizeof(computed) < computed.nbytes + 200
    assert np.isnan(selected.shape[0])
    assert selected.compute_chunk_sizes().tolist() == dask.compute(selected)[0].tolist() == [9, 9, 9]


@pytest.mark.parametrize("where", list(CHUNKS))
@pytest.mark.parametrize("kind", list(MODULI_OF_FIELDS))
def test_elements_of_fields_are_never_taken_for_integers_unasked(kind: str, where: str) -> None:
    x = KINDS[kind](EXAMPLE, CHUNKS[where])
    for function in (da.sum, da.asarray, da.max, lambda f: da.matmul(f, f), lambda f: da.concatenate([f, f])):
        with pytest.raises(
            TypeError, match=r"no Dask array: .* x\.lift\(\)\.to_dask_array\(\) has its integers"
        ):
            function(x)
    assert x.lift().to_dask_array().sum().compute() == int(abs(EXAMPLE).sum())


def test_what_only_dasks_arrays_have_names_the_way_out() -> None:
    x = KINDS["rns"](EXAMPLE, None)
    for call, message in (
        (
            lambda: da.argmax(x),
            r"an RNSArray in memory has no chunks; rechunk\(\) makes it lazy, and x\.to_dask_array\(\) is a",
        ),
        (
            lambda: da.argmax(x.rechunk(2)),
            r"an RNSArray has no name, which Dask's arrays have; x\.to_dask_array",
        ),
        (
            lambda: da.repeat(x.rechunk(2), 2, axis=0),
            "a slice of an array of numbers takes integers, got 0.0",
        ),
        (lambda: da.concatenate([x]).x, "object has no attribute 'x'"),
        (lambda: x.unknown, "an RNSArray has no attribute 'unknown'"),
        (
            lambda: x.__dask_keys__(),
            r"an RNSArray in memory is no Dask collection; rechunk\(\) makes it lazy",
        ),
    ):
        with pytest.raises((AttributeError, TypeError), match=message):
            call()
    assert not any(hasattr(x, name) for name in ("chunks", "name", "dask", "unknown"))


def test_the_page_is_made_of_the_list() -> None:
    page = Path(dask_names.PAGE).read_text(encoding="utf-8")
    assert page == dask_names.page(), "run scripts/dask_names.py"
