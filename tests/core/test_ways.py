"""Messages that carry ways out as values, in errors that are raised again, or sent along by workers."""

import copy
import pickle
from typing import Any

import dask
import pytest

import rnsdask as rd
from rnsdask.cluster.failures import describe
from rnsdask.core.errors import StoreAccessError, StoreError
from rnsdask.core.ways import (
    REPLACE,
    Conversion,
    Conversions,
    Kind,
    Message,
    Parameter,
    Setting,
    Way,
    must,
    with_ways,
)

OVERWRITE = Setting("overwrite", True)
EVERY = Message(
    "a ",
    Way.EXTEND,
    " b ",
    Conversions((Conversion.LIFT, Conversion.FIELDS)),
    " c ",
    Parameter("bits"),
    " d ",
    Setting("overflow", "wrap", "flag"),
    " e ",
    Kind("RNSArray", "a"),
)


def words(part: Any) -> str:
    return f"<{type(part).__name__}>"


def test_text_is_in_words_of_python() -> None:
    assert EVERY == (
        "a x.extend(moduli) b lift() and FieldArray.from_rns(x, fields) convert c bits d "
        'overflow="wrap" or "flag" e an RNSArray'
    )
    assert EVERY.render(words) == "a <Way> b <Conversions> c <Parameter> d <Setting> e <Kind>"
    assert [type(way) for way in EVERY.ways] == [Way, Conversions, Setting]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (Setting("axis", -1), "axis=-1"),
        (Setting("column"), "column="),
        (OVERWRITE, "overwrite=True"),
        (Conversions((Conversion.LIFT,)), "lift() converts"),
        (Kind("FieldArray", "a"), "a FieldArray"),
        (Kind("IntervalRNSArray", "no"), "no IntervalRNSArray"),
        (Kind.of(rd.RNSArray, "s"), "RNSArrays"),
        (must("bits", "be at least 1"), "bits must be at least 1"),
        (with_ways("x.zarr: it exists", REPLACE), "x.zarr: it exists; replace it with overwrite=True"),
    ],
)
def test_each_value_in_words_of_python(part: Any, text: str) -> None:
    assert str(part) == f"{part}" == text


@pytest.mark.parametrize("kind", [ValueError, TypeError, StoreError, rd.NumberError])
def test_an_error_that_is_raised_again_keeps_its_ways(kind: type[Exception]) -> None:
    error = StoreError(Message("y.zarr: ", kind(with_ways("it exists", REPLACE))))
    assert str(error) == "y.zarr: it exists; replace it with overwrite=True"
    for text in (str(error), describe(error)):
        assert isinstance(text, Message)
        assert text.ways == (OVERWRITE,)
    assert str(Message(error, "; ", EVERY)).count(";") == 2


@pytest.mark.parametrize(
    "error",
    [
        ValueError(EVERY),
        StoreError(EVERY),
        StoreAccessError(EVERY, 5),
        rd.RNSOverflowError(3, 90, 63, False, False),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_keep_their_ways_in_pickles(error: Exception) -> None:
    for again in (copy.copy(error), *(pickle.loads(pickle.dumps(error, p)) for p in range(2, 6))):
        assert (type(again), str(again)) == (type(error), str(error))
        text = str(again)
        assert isinstance(text, Message)
        assert text.parts == error_parts(error)


def error_parts(error: Exception) -> Any:
    text = str(error)
    assert isinstance(text, Message)
    return text.parts


def test_errors_of_worker_processes_keep_their_ways() -> None:
    x = rd.from_ints([1, 2**60], rd.ModuliSet.for_bits(64), chunks=1)
    with dask.config.set(scheduler="processes", num_workers=1), pytest.raises(rd.RNSOverflowError) as caught:
        (x**9).compute()
    text = str(caught.value)
    assert isinstance(text, Message)
    assert Way.EXTEND_OR_EXTENDING in text.ways


def test_texts_alone_have_no_ways() -> None:
    assert not isinstance(str(ValueError("x.extend(moduli)")), Message)
    assert not isinstance(EVERY + "", Message)
