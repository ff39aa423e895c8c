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
from dask_calls import CALLS, EXAMPLE

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
    """What became of a call: "right", "error", "wrong" or "absent"; with the error, or what is wrong."""
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
@pytest.mark.parametrize("kind", list(KINDS))
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


def test_the_page_is_made_of_the_list() -> None:
    page = Path(dask_names.PAGE).read_text(encoding="utf-8")
    assert page == dask_names.page(), "run scripts/dask_names.py"
