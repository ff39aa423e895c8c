"""Methods of NumPy's ufuncs (``reduce``, ``outer`` and so on) of arrays of each number system."""

from collections.abc import Callable
from typing import Any

import dask
import numpy as np
import pytest

import rnsdask as rd

KINDS = {
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


def plain(found: Any) -> Any:
    """Results of any kind as nested lists of Python's integers and Booleans."""
    if isinstance(found, tuple):
        return tuple(map(plain, found))
    (found,) = dask.compute(found)
    return found.to_ints().tolist() if hasattr(found, "to_ints") else np.asarray(found).tolist()


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_methods_of_ufuncs_are_right_or_one_clear_error(kind: str, lazy: bool) -> None:
    """Each gives what NumPy does with Python's integers, or says what it does not take."""
    values = np.array([[3, 1, 2], [5, 4, 6]], dtype=object)
    x = KINDS[kind](values)
    x = x if lazy else x.compute()
    row, right = x[0], 0
    calls: dict[str, Callable[[np.ufunc, Any, Any], Any]] = {
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
                found = plain(call(ufunc, x, row))
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
            if "elements" in kind.lower() and ufunc in (np.divide, np.subtract):
                continue  # not those of Python's integers
            # All fit int64, which has more ufuncs than objects, of which logical ones return operands.
            numbers = values != 0 if ufunc in LOGICAL else values.astype(np.int64)
            expected = call(ufunc, numbers, numbers[0])
            assert found == plain(expected), (ufunc, name)
            right += 1
    assert right > 10


@pytest.mark.parametrize("kind", ["elements", "Fermat elements"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_extremes_of_elements_are_one_clear_error(kind: str, axis: int | None) -> None:
    x = KINDS[kind]([[3, 1], [5, 4]])
    for ufunc, name in ((np.maximum, "max"), (np.minimum, "min")):
        with pytest.raises(TypeError, match=rf"^{name} takes no FieldArray: .* have no order"):
            ufunc.reduce(x, axis=axis)
