"""Arrays that a few integers describe, rd.array and rd.asarray, and names that are not there."""

from typing import Any

import numpy as np
import pytest

import rnsdask as rd

LONG = 10**40
FIELDS = rd.PrimeFields([2**31 - 1, 65521])
CHUNKS = [None, "auto", 2, -1]
SYSTEMS: list[Any] = [
    None,
    rd.ModuliSet.for_bits(200),
    rd.RNS(rd.ModuliSet.for_bits(200), signed=True),
    rd.IntervalRNS(rd.ModuliSet.for_bits(200)),
    rd.Positional(200, signed=True),
    FIELDS,
    rd.FermatField.named("P3"),
]


def same(x: Any, expected: Any, chunks: Any, system: Any) -> None:
    """Check the numbers, the system, and whether the array is lazy."""
    assert x.to_ints().tolist() == np.asarray(expected, dtype=object).tolist()
    assert (x.__dask_graph__() is None) == (chunks is None)
    if system is None:
        assert x.system.grows
    elif isinstance(system, rd.ModuliSet):
        assert x.moduli == system
    else:
        assert type(x) is system.array_type
    if chunks == 2 and x.size:
        assert all(max(lengths) <= 2 for lengths in x.chunks)


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("system", SYSTEMS, ids=str)
def test_all_systems_and_chunks(system: Any, chunks: Any) -> None:
    def check(x: Any, expected: Any) -> None:
        same(x, expected, chunks, system)

    for shape in (0, 3, (2, 3), [1, 0, 2]):
        check(rd.zeros(shape, system, chunks=chunks), np.zeros(shape, dtype=object))
        check(rd.ones(shape, system, chunks=chunks), np.ones(shape, dtype=object))
        check(rd.full(shape, 65520, system, chunks=chunks), np.full(shape, 65520))
    for arguments in ((5,), (0,), (3, 9), (9, 3), (9, 2, -2), (1, 8, 3), (2, 1000, 997)):
        check(rd.arange(*arguments, moduli=system, chunks=chunks), list(range(*arguments)))
    for sizes in ((3,), (0,), (2, 5), (4, 2)):
        for k in (0, 1, -1, 9, -9):
            check(rd.eye(*sizes, k=k, moduli=system, chunks=chunks), np.eye(*sizes, k=k, dtype=np.int8))
    check(rd.identity(3, system, chunks=chunks), np.eye(3, dtype=np.int8))
    check(rd.linspace(0, 100, 5, moduli=system, chunks=chunks), [0, 25, 50, 75, 100])
    check(rd.array([[1, 2], [3, 4]], system, chunks=chunks), [[1, 2], [3, 4]])


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize(
    "arguments",
    [
        (LONG, LONG + 7, 3),
        (-LONG, LONG, LONG // 2),
        (2**62 - 2, 2**62 + 2),
        (2**63 - 2, 2**63 + 2),
        (-(2**63) - 2, -(2**63) + 2),
        (2**64 + 2, 2**64 - 3, -1),
        (3, -8, -3),
        (7, 8, LONG),
    ],
)
def test_any_progression(arguments: tuple[int, ...], chunks: Any) -> None:
    same(rd.arange(*arguments, chunks=chunks), list(range(*arguments)), chunks, None)


def test_systems_are_those_of_the_numbers() -> None:
    assert rd.arange(-3, 3).signed
    assert not rd.zeros(3).signed
    assert rd.full(2, -1).system.signed
    assert rd.full(2, 9, bits=500).moduli == rd.ModuliSet.for_bits(500)
    assert rd.arange(10, 0, -1).bound == 10
    assert rd.full(5, LONG).bound == LONG
    assert (rd.zeros(3) + LONG).tolist() == [LONG] * 3


def test_much_is_made_from_little() -> None:
    """No array of a length that memory does not hold is made before it is asked for."""
    assert rd.zeros(10**12, chunks="auto")[10**11].compute() == 0
    assert rd.arange(10**15, 10**15 + 10**11, chunks="auto")[-1].compute() == 10**15 + 10**11 - 1
    assert rd.ones(10**9).words.strides[1] == 0


def test_linspace() -> None:
    for arguments in (
        (0, 10, 5, False),
        (0, 10, 11),
        (5, -5, 3),
        (7, 7, 4),
        (3, 9, 1),
        (3, 10, 1),
        (3, 9, 0),
    ):
        expected = np.linspace(*arguments).astype(int).tolist()
        assert rd.linspace(*arguments, chunks=None).tolist() == expected
    assert rd.linspace(0, 98, chunks=None).tolist() == list(range(0, 99, 2))
    assert rd.linspace(-LONG, LONG, 3).tolist() == [-LONG, 0, LONG]
    with pytest.raises(ValueError, match="whose distance is an integer, got 7/3; arange takes the distance"):
        rd.linspace(0, 7, 4)
    with pytest.raises(ValueError, match="num must not be negative, got -1"):
        rd.linspace(0, 7, -1)


def test_arrays_of_numbers_stay_as_they_are() -> None:
    x = rd.from_ints([1, 2, 3], chunks=None)
    for function in (rd.array, rd.asarray):
        assert function(x) is x
        assert function(x, chunks=2).chunks == ((2, 1),)
        assert function([1, LONG], chunks=None).tolist() == [1, LONG]
        with pytest.raises(TypeError, match="bits= is for integers, and an RNSArray has its own system"):
            function(x, bits=64)
        with pytest.raises(TypeError, match="moduli= is for integers, and an RNSArray has its own system"):
            function(x, FIELDS)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rd.zeros(()), ValueError, r"shape must have axes, none of negative length, got \(\)"),
        (lambda: rd.zeros((2, -1)), ValueError, "none of negative length"),
        (lambda: rd.zeros(2.5), TypeError, "shape"),
        (lambda: rd.full(2, 0.5), TypeError, "fill_value must be an integer, got 0.5"),
        (
            lambda: rd.full(2, 300, rd.ModuliSet([7, 11])),
            ValueError,
            "value 300 .* outside the unsigned range",
        ),
        (lambda: rd.arange(0, 100, moduli=rd.ModuliSet([7, 11])), ValueError, "value 99 .* outside"),
        (lambda: rd.arange(1, 5, 0), ValueError, "step must not be 0"),
        (lambda: rd.arange(1.5), TypeError, "stop must be an integer"),
        (lambda: rd.zeros(3, FIELDS, bits=9), TypeError, "give either bits or moduli"),
        (lambda: rd.eye(2, k=0.5), TypeError, "k must be an integer"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_numpys_functions_make_no_array_like_one_of_numbers() -> None:
    x = rd.arange(3)
    for call in (lambda: np.zeros(3, like=x), lambda: np.arange(3, like=x), lambda: np.asarray([1], like=x)):
        with pytest.raises(TypeError, match=r"takes no array of numbers; rd\.zeros\(shape, x\.system\)"):
            call()


# ---- names that are not there -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owner", "name", "way"),
    [
        (rd, "arrange", "; did you mean arange?"),
        (rd, "from_int", "; did you mean from_ints?"),
        (rd, "det", "; rd.linalg.det is meant"),
        (rd, "resultant", "; rd.poly.resultant is meant"),
        (rd, "mean", "; arrays have it: x.mean"),
        (rd, "save", "; x.to_zarr writes a store"),
        (rd, "zzzzzz", ""),
        (rd, "comb", "; binomial is meant"),
        (rd, "permanent", "; rd.linalg.permanent is meant"),
        (rd.sparse, "rnak", "; did you mean rank?"),
        (rd.poly, "polyval", "; evaluate is meant"),
        (rd.linalg, "smith_form", "; python-flint has it: flint.fmpz_mat(x.to_ints().tolist()).snf()"),
        (rd.linalg, "slove", "; did you mean solve?"),
        (rd.linalg, "matrix_rank", "; rank is meant"),
        (rd.poly, "compos", "; did you mean compose?"),
    ],
)
def test_unknown_names_say_what_is_near(owner: Any, name: str, way: str) -> None:
    label = owner.__name__ if owner is rd else owner.__name__.replace("rnsdask", "rd")
    with pytest.raises(AttributeError) as raised:
        getattr(owner, name)
    assert str(raised.value) == f"{label} has no {name!r}{way}"
    assert not hasattr(owner, name)


def test_flints_answer_is_one() -> None:
    flint = pytest.importorskip("flint")
    x = rd.from_ints([[2, 4], [6, 8]])
    assert flint.fmpz_mat(x.to_ints().tolist()).snf() == flint.fmpz_mat([[2, 0], [0, 4]])


def test_names_that_are_listed_are_public() -> None:
    for module in (rd.linalg, rd.poly, rd.sparse):
        assert dir(module) == sorted(module.__all__)
