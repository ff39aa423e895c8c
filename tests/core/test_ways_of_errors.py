"""Ways out that the classes of errors name: each, taken literally, gives the exact result."""

import importlib
import operator
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import rnsdask as rd
from rnsdask import store
from rnsdask.core import errors
from rnsdask.lazy.indexing import UnknownLengthError, select

MODULI = rd.ModuliSet.for_bits(64)
M = MODULI.product
MORE = rd.ModuliSet.for_bits(400)
WIDE = [2**61 - 1, 2**61 + 15]
VALUES = [3, 2**60 + 1]
SQUARES = [v**2 for v in VALUES]
FIFTHS = [v**5 for v in VALUES]
LESS = [v - 5 for v in VALUES]


def residues() -> Any:
    return rd.from_ints(VALUES, MODULI, chunks=None)


def intervals() -> Any:
    return rd.IntervalRNSArray.from_rns(residues())


def replaced() -> Any:
    words = np.array([[v % m for v in VALUES] for m in WIDE], dtype=np.uint64)
    return rd.from_residues(words, WIDE)


def limbs() -> Any:
    return residues().to_positional(64)


def loose() -> Any:
    """Small numbers with a bound so great that no moduli set holds what their powers may be."""
    return rd.from_ints(VALUES, chunks=None).with_bound(2**1000)


def matrix() -> Any:
    return rd.from_ints([[3, 2**60], [2**60, 3]], MODULI, chunks=None)


def selected() -> Any:
    x = rd.from_ints([*VALUES, 7], MODULI, chunks=2)
    return x[x > 5]


def under(overflow: str, call: Callable[[], Any]) -> Any:
    with rd.errstate(overflow=overflow):
        return call()


def opened_then_overwritten() -> Any:
    residues().to_zarr("changed.zarr", overwrite=True)
    x = rd.open_zarr("changed.zarr")
    (residues() + 1).to_zarr("changed.zarr", overwrite=True)
    return x


def written() -> str:
    residues().to_zarr("x.zarr", overwrite=True)
    return "x.zarr"


def begun() -> str:
    store.create("begun.zarr", residues().system, (2,), chunks=1, overwrite=True)
    return "begun.zarr"


def plain_zarr() -> str:
    values = np.array([3, -4])
    zarr.create_array("plain.zarr", data=values, overwrite=True)
    return "plain.zarr"


def stored_anew(path: str, x: Any) -> Any:
    x.to_zarr(path, overwrite=True)
    return rd.open_zarr(path)


WAYS: dict[str, tuple[type[Exception], Callable[[], Any], str, Callable[[], Any], Any]] = {
    "overflow, extended": (
        rd.RNSOverflowError,
        lambda: residues() ** 5,
        "x.extend(moduli)",
        lambda: residues().extend(MORE) ** 5,
        FIFTHS,
    ),
    "overflow, extending": (
        rd.RNSOverflowError,
        lambda: residues() ** 5,
        'overflow="extend" takes more moduli',
        lambda: under("extend", lambda: residues() ** 5),
        FIFTHS,
    ),
    "overflow, wrapped": (
        rd.RNSOverflowError,
        lambda: residues() ** 5,
        'overflow="wrap" or "flag", where it is taken, gives it modulo M',
        lambda: under("wrap", lambda: residues() ** 5),
        [v % M for v in FIFTHS],
    ),
    "overflow, flagged": (
        rd.RNSOverflowError,
        lambda: residues() ** 5,
        'overflow="wrap" or "flag", where it is taken, gives it modulo M',
        lambda: under("flag", lambda: residues() ** 5),
        ([v % M for v in FIFTHS], [False, True]),
    ),
    "below 0, as intervals": (
        rd.RNSOverflowError,
        lambda: residues() - 5,
        "rd.IntervalRNSArray.from_rns(x) holds negative integers too",
        lambda: rd.IntervalRNSArray.from_rns(residues()) - 5,
        LESS,
    ),
    "below 0, extending": (
        rd.RNSOverflowError,
        lambda: residues() - 5,
        'overflow="extend", where it is taken, makes signed residues',
        lambda: under("extend", lambda: residues() - 5),
        LESS,
    ),
    "overflow of intervals, extended": (
        errors.IntervalOverflowError,
        lambda: intervals() ** 5,
        "x.extend(moduli) takes more moduli",
        lambda: intervals().extend(MORE) ** 5,
        FIFTHS,
    ),
    "overflow of intervals, wrapped": (
        errors.IntervalOverflowError,
        lambda: intervals() ** 5,
        'overflow="wrap" or "flag", where it is taken, gives it modulo M',
        lambda: under("wrap", lambda: intervals() ** 5),
        [v % M for v in FIFTHS],
    ),
    "overflow of intervals, flagged": (
        errors.IntervalOverflowError,
        lambda: intervals() ** 5,
        'overflow="wrap" or "flag", where it is taken, gives it modulo M',
        lambda: under("flag", lambda: intervals() ** 5),
        ([v % M for v in FIFTHS], [False, True]),
    ),
    "replaced moduli, extended": (
        errors.ReplacedModuliOverflowError,
        lambda: replaced() ** 5,
        "x.extend(moduli) takes more moduli",
        lambda: replaced().extend(MORE) ** 5,
        FIFTHS,
    ),
    "replaced moduli, below 0, as intervals": (
        errors.ReplacedModuliOverflowError,
        lambda: replaced() - 5,
        "rd.IntervalRNSArray.from_rns(x) holds negative integers too",
        lambda: rd.IntervalRNSArray.from_rns(replaced()) - 5,
        LESS,
    ),
    "replaced moduli, below 0, extending": (
        errors.ReplacedModuliOverflowError,
        lambda: replaced() - 5,
        'overflow="extend", where it is taken, makes signed residues',
        lambda: under("extend", lambda: replaced() - 5),
        LESS,
    ),
    "replaced moduli of intervals": (
        errors.ReplacedIntervalOverflowError,
        lambda: rd.IntervalRNSArray.from_rns(replaced()) ** 5,
        "x.extend(moduli) takes more moduli",
        lambda: rd.IntervalRNSArray.from_rns(replaced()).extend(MORE) ** 5,
        FIFTHS,
    ),
    "no moduli set": (
        errors.LimitOverflowError,
        lambda: (loose() ** (2**10)) ** (2**10),
        "x.with_bound(x.measure_bound()) has the least bound",
        lambda: loose().with_bound(loose().measure_bound()) ** 5,
        FIFTHS,
    ),
    "limbs, of more bits": (
        errors.PrecisionOverflowError,
        lambda: limbs() ** 5,
        "x.to_positional(bits) takes more bits",
        lambda: limbs().to_positional(400) ** 5,
        FIFTHS,
    ),
    "limbs, wrapped": (
        errors.PrecisionOverflowError,
        lambda: limbs() ** 5,
        'overflow="wrap" or "flag", where it is taken, gives it modulo a power of two',
        lambda: under("wrap", lambda: limbs() ** 5),
        [v % 2**64 for v in FIFTHS],
    ),
    "limbs, flagged": (
        errors.PrecisionOverflowError,
        lambda: limbs() ** 5,
        'overflow="wrap" or "flag", where it is taken, gives it modulo a power of two',
        lambda: under("flag", lambda: limbs() ** 5),
        ([v % 2**64 for v in FIFTHS], [False, True]),
    ),
    "limbs, below 0": (
        errors.PrecisionOverflowError,
        lambda: limbs() - 5,
        "x.to_positional(bits, signed=True) holds negative integers too",
        lambda: limbs().to_positional(64, signed=True) - 5,
        LESS,
    ),
    "results under moduli, of more bits": (
        errors.ResultOverflowError,
        lambda: rd.linalg.det(matrix(), moduli=MODULI),
        "give moduli of more bits",
        lambda: rd.linalg.det(matrix(), moduli=MORE)[0],
        9 - 2**120,
    ),
    "results under moduli, as Python ints": (
        errors.ResultOverflowError,
        lambda: rd.linalg.det(matrix(), moduli=MODULI),
        "or none for Python ints",
        lambda: rd.linalg.det(matrix()),
        9 - 2**120,
    ),
    "an operand beside": (
        errors.NumberError,
        lambda: operator.add(residues(), [M]),
        "x.extend(moduli) takes more moduli",
        lambda: operator.add(residues().extend(MORE), [M]),
        [v + M for v in VALUES],
    ),
    "one operand": (
        errors.NumberError,
        lambda: residues() + M,
        "x.extend(moduli) takes more moduli",
        lambda: residues().extend(MORE) + M,
        [v + M for v in VALUES],
    ),
    "one negative operand": (
        errors.NumberError,
        lambda: residues() + -1,
        "an array made with signed=True takes negative numbers",
        lambda: rd.from_ints(VALUES, MODULI, signed=True, chunks=None) + -1,
        [v - 1 for v in VALUES],
    ),
    "one operand of a lazy array": (
        errors.NumberError,
        lambda: residues().rechunk(1) + M,
        "x.extend(moduli) takes more moduli",
        lambda: residues().extend(MORE).rechunk(1) + M,
        [v + M for v in VALUES],
    ),
    "one operand beside intervals": (
        errors.NumberError,
        lambda: intervals() + M,
        "x.extend(moduli) takes more moduli",
        lambda: intervals().extend(MORE) + M,
        [v + M for v in VALUES],
    ),
    "one operand beside limbs": (
        errors.NumberError,
        lambda: limbs() + 2**70,
        "x.to_positional(bits, signed=True) takes more bits, and negative numbers",
        lambda: limbs().to_positional(80, signed=True) + 2**70,
        [v + 2**70 for v in VALUES],
    ),
    "a negative operand beside": (
        errors.NumberError,
        lambda: operator.add(residues(), [-1]),
        "an array made with signed=True takes negative numbers",
        lambda: operator.add(rd.from_ints(VALUES, MODULI, signed=True, chunks=None), [-1]),
        [v - 1 for v in VALUES],
    ),
    "an operand beside intervals": (
        errors.NumberError,
        lambda: operator.add(intervals(), [M]),
        "x.extend(moduli) takes more moduli",
        lambda: operator.add(intervals().extend(MORE), [M]),
        [v + M for v in VALUES],
    ),
    "an operand beside limbs": (
        errors.NumberError,
        lambda: operator.add(limbs(), [-1, 2**70]),
        "x.to_positional(bits, signed=True) takes more bits, and negative numbers",
        lambda: operator.add(limbs().to_positional(80, signed=True), [-1, 2**70]),
        [2, 2**70 + 2**60 + 1],
    ),
    "a negative exponent of residues": (
        errors.NumberError,
        lambda: residues() ** -1,
        "inverse(x) of an RNSArray",
        lambda: rd.inverse(rd.from_ints([5, 7], rd.ModuliSet([11, 13]), chunks=None)),
        [pow(5, -1, 143), pow(7, -1, 143)],
    ),
    "a negative exponent of limbs": (
        errors.NumberError,
        lambda: limbs() ** -1,
        "mod_inverse(x, m) of a PositionalArray",
        lambda: rd.mod_inverse(limbs(), 2**61 - 1),
        [pow(v, -1, 2**61 - 1) for v in VALUES],
    ),
    "an existing store": (
        errors.StoreError,
        lambda: (residues() + 1).to_zarr(written()),
        "it exists; replace it with overwrite=True",
        lambda: stored_anew(written(), residues() + 1),
        [v + 1 for v in VALUES],
    ),
    "a Zarr array of another program": (
        errors.StoreError,
        lambda: rd.open_zarr(plain_zarr()),
        "rd.from_ints(zarr.open_array(path)) reads an array of integers",
        lambda: rd.from_ints(zarr.open_array(plain_zarr())),
        [3, -4],
    ),
    "an incomplete store": (
        errors.IncompleteStoreError,
        lambda: rd.open_zarr(begun()),
        "write it anew with overwrite=True",
        lambda: stored_anew(begun(), residues()),
        VALUES,
    ),
    "a store that was overwritten": (
        errors.ChangedStoreError,
        lambda: opened_then_overwritten().compute(),
        "it was overwritten, or its metadata changed, since it was opened",
        lambda: [opened_then_overwritten(), rd.open_zarr("changed.zarr")][1],
        [v + 1 for v in VALUES],
    ),
    "an unknown length": (
        UnknownLengthError,
        lambda: select(selected().words, 1),
        "call compute_chunk_sizes() before indexing it",
        lambda: selected().compute_chunk_sizes()[1],
        7,
    ),
    "too many chunks": (
        errors.JobError,
        lambda: rd.random(MODULI, 10**14, chunks=1),
        "larger chunks are fewer",
        lambda: rd.random(MODULI, 10**14, chunks=10**10).shape[0],
        10**14,
    ),
}
"""Class of error, a call that raises it, the way out its message names, that way, and Python's result."""

WITHOUT = {
    errors.RNSError: "only a base class",
    errors.StoreAccessError: "tells what the operating system or a service refused",
    errors.CorruptChunkError: "what was lost is nowhere",
    errors.InputError: "names the line; what helps are options of import, of which tests of wording try some",
    errors.ExpressionError: "names what is wrong in the text; what helps is another expression",
    errors.SchedulerLostError: "the cluster is gone",
    errors.WorkerVersionError: "names the workers; what helps is another installation there",
    errors.QueryPlanningError: "names a setting for before Python starts",
    errors.NoGPUError: "the process has no GPU",
    errors.GPUMemoryError: "tells how much memory was asked for",
}
"""Classes without a way out that this process could take, and why."""


def plain(result: Any) -> Any:
    """The result as Python's integers and Booleans, in lists and tuples."""
    if isinstance(result, tuple):
        return tuple(plain(part) for part in result)
    result = result.compute() if hasattr(result, "compute") else result
    result = result.to_ints() if hasattr(result, "to_ints") else result
    return result.tolist() if hasattr(result, "tolist") else int(result)


@pytest.mark.parametrize("name", WAYS)
def test_way_out_of_an_error_works(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kind, call, told, way, expected = WAYS[name]
    with pytest.raises(kind) as caught:
        plain(call())
    assert type(caught.value) is kind
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert plain(way()) == expected


def classes_of_errors() -> Iterator[type[Exception]]:
    """Exceptions that the package defines, but for those of the command line."""
    for module in pkgutil.walk_packages(rd.__path__, "rnsdask."):
        if re.match(r"rnsdask\.(cli|__main__)\b", module.name):
            continue  # whose messages name options
        try:
            names = vars(importlib.import_module(module.name)).values()
        except ImportError:  # of CuPy
            continue
        for found in names:
            if isinstance(found, type) and issubclass(found, Exception) and found.__module__ == module.name:
                yield found


def test_every_class_of_errors_has_its_way_out_tried() -> None:
    found = set(classes_of_errors())
    assert len(found) > 15
    assert found == {kind for kind, *_ in WAYS.values()} | set(WITHOUT)
    assert not {kind for kind, *_ in WAYS.values()} & set(WITHOUT)
