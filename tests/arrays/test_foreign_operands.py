"""Operands that the package does not know, and that have operators of their own, for every kind of array."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rnsdask as rd

MODULI = rd.ModuliSet([251, 253, 255, 256])
VALUES = [1, 2, 3]
KINDS = [
    f"{kind}{lazy}"
    for kind in ("rns", "interval", "positional", "fields", "fermat")
    for lazy in ("", " lazy")
]


def make(kind: str) -> Any:
    x: Any = rd.from_ints(VALUES, MODULI, signed=True, chunks=None)
    if "interval" in kind:
        x = rd.IntervalRNSArray.from_rns(x)
    elif "positional" in kind:
        x = x.to_positional(40)
    elif "fields" in kind:
        x = rd.from_ints(VALUES, rd.PrimeFields([10007, 10009]), chunks=None)
    elif "fermat" in kind:
        x = rd.from_ints(VALUES, rd.FermatField(2**28 + 2**22, 16), chunks=None)
    return x.rechunk(2) if "lazy" in kind else x


# Python's operators by the names of their methods, with the name of the method of the other operand.
OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    **{
        f"__{name}__": (getattr(operator, f"__{name}__"), f"__r{name}__")
        for name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow")
    },
    **{
        f"__{name}__": (getattr(operator, f"__{name}__"), f"__r{name}__")
        for name in ("lshift", "rshift", "and", "or", "xor")
    },
    "__divmod__": (divmod, "__rdivmod__"),
    **{
        f"__{name}__": (getattr(operator, f"__{name}__"), f"__{mirrored}__")
        for name, mirrored in (("lt", "gt"), ("le", "ge"), ("gt", "lt"), ("ge", "le"))
    },
    **{f"__{name}__": (getattr(operator, f"__{name}__"), f"__{name}__") for name in ("eq", "ne")},
}


def _returns(name: str) -> Callable[[Any, Any], Any]:
    return lambda _, other: (name, other)


WITH_OPERATORS = {reflected: _returns(reflected) for _, reflected in OPERATORS.values()}


def _ufunc(_: Any, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    return ufunc.__name__, inputs[0]


def _refuse(*_: Any) -> Any:
    raise AssertionError("it was taken for an integer")


# What NumPy asks of an operand, by which it knows that the operand has a say.
PROTOCOLS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no ufuncs": {"__array_ufunc__": None},
    "priority": {"__array_priority__": 1000},
    "priority of an integer": {"__array_priority__": 1000, "__index__": _refuse},
    "ufuncs": {"__array_ufunc__": _ufunc},
}


def operand(*attributes: dict[str, Any], base: type = object) -> Any:
    methods = {name: value for part in attributes for name, value in part.items()}
    return type("Theirs", (base,), {"__hash__": None, **methods})


def has_operator(x: Any, name: str) -> bool:
    return any(name in vars(kind) for kind in type(x).__mro__[:-1])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_reflected_operator_of_the_other_is_called(kind: str, protocol: str) -> None:
    x, theirs = make(kind), operand(PROTOCOLS[protocol], WITH_OPERATORS)()
    asked = 0
    for name, (function, reflected) in OPERATORS.items():
        if has_operator(x, name):
            found, seen = function(x, theirs)
            assert (found, seen is x) == (reflected, True), name
            asked += 1
        in_place = getattr(operator, f"__i{name[2:]}", None)
        if has_operator(x, name) and in_place is not None:
            found, seen = in_place(x, theirs)
            assert (found, seen is x) == (reflected, True), name
    assert asked >= 12


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_derived_from_numpys_with_ufuncs_of_their_own_have_a_say(kind: str) -> None:
    x = make(kind)
    kinds = operand({"__array_ufunc__": _ufunc}, WITH_OPERATORS, base=np.ndarray)
    found, seen = x + kinds(3)
    assert (found, seen is x) == ("__radd__", True)
    found, seen = np.multiply(x, kinds(3))
    assert (found, seen is x) == ("multiply", True)
    with pytest.raises(TypeError, match="must be an integer"):
        x + operand(base=np.ndarray)(3)


@pytest.mark.parametrize("kind", KINDS)
def test_ufuncs_of_the_other_take_the_place_of_operators_that_it_lacks(kind: str) -> None:
    x, theirs = make(kind), operand(PROTOCOLS["ufuncs"])()
    ufuncs = {
        **{"__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__matmul__": "matmul"},
        **{"__truediv__": ("divide", "true_divide"), "__floordiv__": "floor_divide", "__mod__": "remainder"},
        **{"__pow__": "power", "__divmod__": "divmod", "__lshift__": "left_shift", "__and__": "bitwise_and"},
        **{"__rshift__": "right_shift", "__or__": "bitwise_or", "__xor__": "bitwise_xor"},
        **{"__lt__": "less", "__le__": "less_equal", "__gt__": "greater", "__ge__": "greater_equal"},
        **{"__eq__": "equal", "__ne__": "not_equal"},
    }
    for name, expected in ufuncs.items():
        if has_operator(x, name):
            found, seen = OPERATORS[name][0](x, theirs)
            assert found in expected, name
            assert seen is x, name
    found, seen = np.add(theirs, x)
    assert (found, seen is theirs) == ("add", True)


@pytest.mark.parametrize("kind", KINDS)
def test_operands_without_a_say_are_refused_in_one_line(kind: str) -> None:
    x = make(kind)
    declining = operand({reflected: lambda *_: NotImplemented for _, reflected in OPERATORS.values()})
    for other in ("a", b"a", None, 1.5, 2j, {1}, {1: 2}, object(), operand()(), declining()):
        for name in ("__add__", "__mul__", "__mod__", "__or__", "__eq__", "__ne__", "__lt__", "__matmul__"):
            if has_operator(x, name) and type(other) is not declining:
                with pytest.raises(TypeError, match=r"^(?!unsupported operand)"):
                    OPERATORS[name][0](x, other)
        for name in ("__eq__", "__ne__"):  # Python would take the other's refusal for an answer
            with pytest.raises(TypeError, match="must be"):
                OPERATORS[name][0](x, other)
        with pytest.raises(TypeError):
            x + other
        with pytest.raises(TypeError):
            other + x


@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_numpy_leave_arrays_that_they_do_not_know_to_these(kind: str) -> None:
    x = make(kind)

    def function(_: Any, called: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return called.__name__

    theirs = operand({"__array_function__": function})()
    assert np.concatenate([x, theirs]) == "concatenate"
    assert np.where(np.array([True, False, True]), x, theirs) == "where"
    with pytest.raises(TypeError, match="no implementation found"):
        np.concatenate([x, operand({"__array_function__": lambda *_: NotImplemented})()])


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_pint(kind: str) -> None:
    units = pytest.importorskip("pint").get_application_registry()
    x = make(kind)
    for found in (x * units.m, units.m * x, x * units.Quantity(1, "m"), units.Quantity(1, "m") * x):
        assert found.units == units.m
        assert type(found.magnitude) is type(x)
        assert found.magnitude.tolist() == VALUES
    quantity = x * units.m
    for found, expected in (
        (quantity + quantity, [2, 4, 6]),
        (quantity - quantity, [0, 0, 0]),
        (3 * quantity, [3, 6, 9]),
        (x * quantity, [1, 4, 9]),
        (np.add(quantity, quantity), [2, 4, 6]),
    ):
        assert found.units == units.m
        assert type(found.magnitude) is type(x)
        assert found.magnitude.tolist() == expected
    assert ((quantity == quantity) == [True] * 3).all()
    with pytest.raises(Exception, match="Cannot convert from"):
        x + quantity


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_xarray_on_either_side(kind: str) -> None:
    xarray = pytest.importorskip("xarray")
    x = make(kind)
    named = xarray.DataArray(x, dims="k")
    for other in (named, named.variable, xarray.Dataset({"a": named})):
        for found, expected in (
            *((x + other, [2, 4, 6]), (other + x, [2, 4, 6]), (x - other, [0, 0, 0]), (x * other, [1, 4, 9])),
            *((np.add(x, other), [2, 4, 6]), (np.multiply(other, x), [1, 4, 9])),
            *((x == other, [True] * 3), (x != other, [False] * 3), (other == x, [True] * 3)),
        ):
            assert type(found) is type(other)
            variable = found["a"].variable if isinstance(found, xarray.Dataset) else found
            assert variable.dims == ("k",)
            assert variable.values.tolist() == expected
    if not isinstance(x, rd.FieldArray):
        assert (x // named).values.tolist() == [1, 1, 1]
        assert (x <= named).values.tolist() == [True] * 3
    else:
        with pytest.raises(TypeError, match="no order"):
            x <= named  # noqa: B015
        assert (x / named).values.tolist() == [1, 1, 1]
    if "positional" in kind:
        assert (x & named).values.tolist() == VALUES
        assert (x | named).values.tolist() == VALUES
