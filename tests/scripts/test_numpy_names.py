"""The page of NumPy's and Dask's names against the code."""

from pathlib import Path
from types import ModuleType
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from numpy.testing import overrides
from oracles.integers import objects

import rnsdask as rd
from rnsdask import IntervalRNSArray, RNSArray

numpy_names = pytest.importorskip("numpy_names")

ROWS = [row for _, rows in numpy_names.SECTIONS.values() for row in rows]
MODULES: dict[str, ModuleType] = {"np": np, "da": da, "zarr": zarr, "rd": rd}
KINDS = (RNSArray, IntervalRNSArray, rd.PositionalArray, rd.FieldArray)
ONLY_RESIDUES = {"bound", "signed", "with_bound", "with_residues"}


def found(name: str, owner: Any) -> Any:
    for part in name.split(".")[1:]:
        owner = getattr(owner, part)
    return owner


def names(column: str) -> list[str]:
    return [name for row in ROWS for name in getattr(row, column).split()]


@pytest.mark.parametrize("name", sorted({*names("theirs"), *(n for n in names("here") if n[0] == "r")}))
def test_names_of_modules_are_there(name: str) -> None:
    assert found(name, MODULES[name.partition(".")[0]]) is not None


@pytest.mark.parametrize("name", sorted({n for n in names("here") if n.startswith("x.")}))
@pytest.mark.parametrize("kind", [RNSArray, IntervalRNSArray])
def test_names_of_arrays_are_there(name: str, kind: type) -> None:
    assert hasattr(kind, name.removeprefix("x.")) or name.removeprefix("x.") in ONLY_RESIDUES


def listed(prefix: str) -> set[str]:
    own = numpy_names.OWN[prefix].split()
    return {name.split(".")[1] for name in names("here") if name.startswith(f"{prefix}.")} | set(own)


def test_every_name_of_the_package_is_listed() -> None:
    assert set(rd.__all__) == listed("rd")


def test_every_name_of_arrays_is_listed() -> None:
    public = {name for kind in KINDS for name in dir(kind) if name[0] != "_"}
    assert public <= listed("x"), public - listed("x")
    assert {name for name in listed("x") if not name.startswith("__")} <= public


def is_refused(function: Any) -> bool:
    """Whether NumPy's function takes no array of numbers."""
    x = rd.from_ints(objects([-5, 3]), chunks=None)
    try:
        if isinstance(function, np.ufunc):
            with np.errstate(invalid="ignore"):  # of the logarithm of a negative number
                function(*[x] * function.nin)
        else:
            x.__array_function__(function, (RNSArray,), (x,), {})
    except TypeError as error:
        is_of_limbs = "to_positional" in str(error)
        return ("takes no RNSArray" in str(error) and not is_of_limbs) or "std of" in str(error)
    except (ValueError, IndexError, AttributeError, ArithmeticError):
        return False
    return False


def test_functions_of_numpy_do_what_the_rows_say() -> None:
    functions = {
        *overrides.get_overridable_numpy_ufuncs(),
        *overrides.get_overridable_numpy_array_functions(),
    }
    offered = {function for function in functions if not is_refused(function)}
    named = {name: found(name, np) for name in names("theirs") if name.startswith("np.")}
    said = {named[name] for row in ROWS if row.here for name in row.theirs.split() if name in named}
    said.add(np._core.umath.clip)  # type: ignore[attr-defined]  # the ufunc behind np.clip
    refused = {named[name] for row in ROWS if not row.here for name in row.theirs.split()}
    assert {f.__name__ for f in offered - said} == set()
    assert {f.__name__ for f in refused & offered} == set()
    raising, making = {"std", "nanstd"}, {"frombuffer"}
    making |= {"arange", "array", "asarray", "eye", "full", "identity", "ones", "zeros"}
    assert {f.__name__ for f in (said & functions) - offered} == raising | making


def test_the_page_is_made_of_the_list() -> None:
    page = Path(numpy_names.PAGE).read_text(encoding="utf-8")
    assert page == numpy_names.page(), "run scripts/numpy_names.py"
