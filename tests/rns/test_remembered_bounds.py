"""Measured bounds are kept for memory that nobody may write to, and end with it."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import rns
from strategies import MODULI_SETS

import rnsdask as rd
from rnsdask.rns import measured_bound, reduce, remembered

MODULI = MODULI_SETS["bits2048"]


def half_as_long(rng: np.random.Generator, count: int, least: int = 0) -> list[int]:
    size = MODULI.bits // 16 - 1
    return [max(least, int.from_bytes(rng.bytes(size))) for _ in range(count)]


def test_an_array_is_measured_once(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    a, b = (half_as_long(rng, 5000) for _ in range(2))
    x, y = (rd.from_ints(v, MODULI, chunks=None).with_bound(None) for v in (a, b))
    products = (x * y).to_ints().tolist()
    assert products == [u * v for u, v in zip(a, b, strict=True)]
    monkeypatch.setattr(measured_bound, "find_open", None)  # which proves bounds
    assert (x * y).to_ints().tolist() == products
    assert x.max() == max(a)
    assert (x < y).tolist() == [u < v for u, v in zip(a, b, strict=True)]
    assert x.measure_bound() == 2 ** max(a).bit_length() - 1
    assert x.bound is None
    with pytest.raises(TypeError):
        x[:4999] * y[:4999]  # other numbers are measured anew
    with pytest.raises(TypeError):
        rd.from_residues(x.residues.copy(), MODULI).measure_bound()


def test_what_can_be_written_to_is_measured_anew(rng: np.random.Generator) -> None:
    values = half_as_long(rng, 2000)
    residues = rns.encode(values, MODULI)
    system = rd.RNS(MODULI)
    assert measured_bound.measured_bound(residues, system) == 2 ** max(values).bit_length() - 1
    residues[:, 7] = rns.encode([2**2000 + 1], MODULI)[:, 0]
    assert remembered.remembered(residues, system) is None
    assert measured_bound.measured_bound(residues, system) == 2**2001 - 1
    residues.flags.writeable = False  # which can be undone, and does not end older views
    assert measured_bound.measured_bound(residues, system) == 2**2001 - 1
    assert remembered.remembered(residues, system) is None


@pytest.mark.parametrize("kind", ["view", "broadcast", "older view", "buffer", "file", "undone"])
def test_read_only_arrays_that_others_write_to_are_measured_anew(
    kind: str, rng: np.random.Generator, tmp_path: Path
) -> None:
    values = half_as_long(rng, 2000)
    written = rns.encode(values, MODULI)
    given: Any = written.view()
    if kind == "broadcast":
        given = np.broadcast_to(written, written.shape)
    elif kind == "older view":
        given, written = written, written.view()
    elif kind == "buffer":
        memory = bytearray(written.tobytes())
        written = np.frombuffer(memory, dtype=np.uint32).reshape(given.shape)
        given = np.frombuffer(memoryview(memory).toreadonly(), dtype=np.uint32).reshape(given.shape)
    elif kind == "file":
        written.tofile(tmp_path / "residues")
        written = np.memmap(tmp_path / "residues", dtype=np.uint32, mode="r+", shape=given.shape)
        given = np.memmap(tmp_path / "residues", dtype=np.uint32, mode="r", shape=given.shape)
    elif kind == "undone":
        given = written
    given.flags.writeable = False
    x = rd.from_residues(given, MODULI)
    part = x[100:]  # of the same memory
    assert part.measure_bound() <= x.measure_bound() == 2 ** max(values).bit_length() - 1
    assert np.shares_memory(x.residues, given)
    if kind == "undone":
        given.flags.writeable = True
    written[:, 107] = rns.encode([2**2000 + 1], MODULI)[:, 0]
    assert x.measure_bound() == part.measure_bound() == 2**2001 - 1


def test_bounds_of_few_views_are_kept(rng: np.random.Generator) -> None:
    x = rd.from_ints(half_as_long(rng, 2000), MODULI, chunks=None).with_bound(None)
    for start in range(600):
        assert x[start : start + 3].measure_bound() > 0
    entry = next(iter(e for e in remembered._known.values() if np.shares_memory(e[0](), x.residues)))
    assert 0 < len(entry[1]) <= 256


def test_bounds_differ_by_system_and_view(rng: np.random.Generator) -> None:
    values = [*half_as_long(rng, 2000), MODULI.product - 3]
    x = rd.from_ints(values, MODULI, chunks=None).with_bound(None)
    signed = rd.from_residues(x.residues, MODULI, signed=True)
    assert np.shares_memory(x.residues, signed.residues)
    assert x.measure_bound() == MODULI.product - 1
    assert signed.measure_bound() == 2 ** max(values[:-1]).bit_length() - 1
    assert x[:-1].measure_bound() == signed.measure_bound()
    assert x[:10:3].measure_bound() == 2 ** max(values[:10:3]).bit_length() - 1
    assert x.measure_bound() == MODULI.product - 1


def test_a_bound_ends_with_its_array(rng: np.random.Generator) -> None:
    gc.collect()
    before = len(remembered._known)
    x = rd.from_ints(half_as_long(rng, 2000), MODULI, chunks=None).with_bound(None)
    part = x[5:]
    x.measure_bound()
    part.measure_bound()
    assert len(remembered._known) == before + 1  # both are views of one
    del x
    gc.collect()
    assert len(remembered._known) == before + 1
    del part
    gc.collect()
    assert len(remembered._known) == before


@pytest.mark.parametrize("signed", [False, True])
def test_small_numbers_are_found_small_at_a_glance(
    signed: bool, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(reduce, "_WORTH_A_GLANCE", 1)
    values = half_as_long(rng, 3000, least=1)
    values = [-v if signed and i % 3 else v for i, v in enumerate(values)]
    great = MODULI.product // 3
    # The first few look small, and all are, or one of the others is not, or the first alone is not.
    for chosen in (values, [*values, great], [great, *values], [5] * 3000, [0, *[7] * 2999]):
        x = rd.from_ints(chosen, MODULI, signed, chunks=None).with_bound(None)
        for name, expected in (("max", max(chosen)), ("min", min(chosen))):
            assert getattr(x, name)() == expected
            assert getattr(x, "arg" + name)() == chosen.index(expected)


def test_what_another_thread_forgets_is_found_again(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    x = rd.from_ints(half_as_long(rng, 2000), MODULI, chunks=None)
    assert remembered.is_constant(x.residues)
    keep = remembered._keep

    def keep_and_forget(*arguments: Any) -> None:
        keep(*arguments)
        remembered.forget()

    monkeypatch.setattr(remembered, "_keep", keep_and_forget)
    assert remembered.kept(x.residues, "length", len) == len(MODULI)
