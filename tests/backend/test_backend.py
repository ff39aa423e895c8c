"""Choosing a processor, and kernels that have no file of their own."""

import os
import shutil
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from conftest import Processor, cuda_is_usable
from oracles import rns
from strategies import ALL_SETS, BOTH_RANGES, MODULI_SETS, edge_values

from rnsdask.backend import (
    backend_name,
    first_alone,
    has_gpu,
    kernels_of,
    to_backend,
)
from rnsdask.backend.cuda import layout, sources
from rnsdask.constants import fixed_point_constants, key_constants, mixed_radix_constants
from rnsdask.core.errors import NoGPUError
from rnsdask.core.moduli import ModuliSet


def test_has_gpu() -> None:
    assert has_gpu() == cuda_is_usable()


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1003, 100_003])
def test_unset_flags(on_each_processor: Processor, count: int, rng: np.random.Generator) -> None:
    """Few of them are in the host's memory, whatever the processor."""
    few, xp = 5, on_each_processor.xp
    residues = rng.integers(0, 2**32, (3, count), dtype=np.uint32)
    numbers = xp.asarray(residues)
    kernels = kernels_of(numbers)
    sizes = (0, 1, few - 1, few, few + 1, count // 2, count)
    chosen = [sorted(rng.permutation(count)[:size].tolist()) for size in sizes]
    for unset in (*chosen, list(range(min(few, count))), list(range(max(0, count - few), count))):
        flags = np.ones(count, dtype=np.bool_)
        flags[unset] = False
        found = kernels.find_unset(xp.asarray(flags), few)
        assert found.tolist() == unset
        assert found.dtype == np.int64
        assert isinstance(found, np.ndarray if len(unset) <= few else xp.ndarray)
        gathered = to_backend(kernels.gather(numbers, found), "cpu")
        assert (gathered == residues[:, np.array(unset, dtype=np.int64)]).all()


@pytest.mark.parametrize("rows", [2, 64])
def test_few_numbers_of_a_part_are_gathered_without_a_copy_of_it(rows: int, rng: np.random.Generator) -> None:
    residues = rng.integers(0, 2**32, (rows, 50_000), dtype=np.uint32)
    part = residues[:, 5_003:45_001]
    gather = kernels_of(part).gather
    for indices in (np.array([], dtype=np.int64), np.array([0, 0, part.shape[1] - 1, 7])):
        tracemalloc.start()
        try:
            gathered = gather(part, indices)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert gathered.flags.c_contiguous
        assert gathered.tolist() == [[int(row[5_003 + k]) for k in indices] for row in residues]
        assert peak < 2**16
    with pytest.raises(IndexError):
        gather(part, np.array([part.shape[1]]))


def test_unknown_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match="NumPy or CuPy array, got list"):
        kernels_of([[1]])


def test_unknown_backend() -> None:
    with pytest.raises(ValueError, match="auto, cpu, cuda, got 'gpu'"):
        to_backend(np.zeros((2, 2), np.uint32), "gpu")


def test_cpu_stays() -> None:
    array = np.zeros((2, 2), np.uint32)
    assert to_backend(array, "cpu") is array


def test_a_checkout_without_the_extension_says_so(tmp_path: Path) -> None:
    source = Path(__file__).resolve().parents[2] / "rnsdask"
    shutil.copytree(source, tmp_path / "rnsdask", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    command = [sys.executable, "-c", "import rnsdask; rnsdask.random(rnsdask.ModuliSet([7]), 5).compute()"]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    options: dict[str, Any] = {"cwd": tmp_path, "env": variables, "check": False}
    done = subprocess.run(command, capture_output=True, text=True, **options)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {tmp_path}/rnsdask has no compiled extension (rnsdask._cpu): ")
    assert last.endswith("start it elsewhere, or with python -P")


@pytest.mark.skipif(cuda_is_usable(), reason="there is a GPU")
def test_without_gpu() -> None:
    array = np.zeros((2, 2), np.uint32)
    assert to_backend(array, "auto") is array
    with pytest.raises(NoGPUError, match="needs CuPy and a GPU"):
        to_backend(array, "cuda")


def test_every_structure_is_checked() -> None:
    """Structures that Python fills; the compilers check them (scripts/check_kernels.py)."""
    checked = [dtype for structures in layout.STRUCTURES.values() for dtype in structures.values()]
    for name, value in vars(layout).items():
        assert not isinstance(value, np.dtype) or any(value is dtype for dtype in checked), name
    assert {*layout.STRUCTURES, *layout.SIZES} <= set(sources.source_names())
    for path in Path(layout.__file__).parent.glob("*.py"):
        assert path.name == "layout.py" or "np.dtype(" not in path.read_text(encoding="utf-8"), path


def test_assertions_of_a_structure() -> None:
    text = layout.assertions("arithmetic")
    for fact in ("sizeof(Task) == 144", "sizeof(Task::x) == 96", "OFFSET(Task, rows) == 136"):
        assert f"static_assert({fact}, " in text


@pytest.mark.gpu
def test_moves_to_and_fro() -> None:
    array = np.arange(6, dtype=np.uint32).reshape(2, 3)
    for backend in ("auto", "cuda"):
        moved = to_backend(array, backend)
        assert backend_name(moved) == "cuda"
        assert to_backend(moved, "cuda") is moved
        assert to_backend(moved, "auto") is moved
        assert (to_backend(moved, "cpu") == array).all()


@pytest.mark.gpu
@ALL_SETS
@BOTH_RANGES
def test_both_processors_agree_bit_for_bit(moduli: ModuliSet, signed: bool, rng: np.random.Generator) -> None:
    import cupy

    sizes = np.array(list(moduli), dtype=np.uint64)[:, None]
    residues = (rng.integers(0, 2**63, size=(len(moduli), 2051), dtype=np.uint64) % sizes).astype(np.uint32)
    residues[:, 100:200] = rns.encode(edge_values(moduli)[:1], moduli)
    residues[:, 300:400] = residues[:, 700:701]
    keys = key_constants(moduli, signed)
    for columns in (slice(None), slice(1, 2000), slice(100, 200), slice(300, 400)):
        results = []
        for xp in (np, cupy):
            array = xp.asarray(residues)[:, columns]
            kernels = kernels_of(array)
            best = [kernels.extremum(array, keys, minimum) for minimum in (False, True)]
            flags = kernels.candidates(array, keys, True, max(best[1].best - keys.slack, 0))
            digits = kernels.mixed_radix_digits(array, mixed_radix_constants(moduli))
            words, zero = kernels.fixed_point(array, fixed_point_constants(moduli))
            arrays = [cupy.asnumpy(a).tolist() for a in (flags, digits, words, zero)]
            results.append((best, kernels.row_sums(array, keys), arrays))
        assert results[0] == results[1]


@pytest.mark.parametrize("count", [1, 3, 4, 1000, 1024, 3001])
def test_first_invalid(on_each_processor: Processor, count: int, rng: np.random.Generator) -> None:
    moduli = MODULI_SETS["unsorted"]
    sizes = np.array(list(moduli), dtype=np.uint64)[:, None]
    residues = (rng.integers(0, 2**63, size=(len(moduli), count), dtype=np.uint64) % sizes).astype(np.uint32)

    def found() -> tuple[int, int] | None:
        array = on_each_processor.xp.asarray(residues)
        return kernels_of(array).first_invalid(array, moduli)

    assert found() is None
    residues[:, count // 2] = [m - 1 for m in moduli]
    assert found() is None
    for i, j in ((5, count - 1), (3, count - 1), (3, count // 2), (1, 0), (0, count - 1)):
        residues[i, j] = moduli[i]
        assert found() == (i, j)


def test_every_residue_is_valid_for_the_greatest_modulus(on_each_processor: Processor) -> None:
    array = on_each_processor.xp.asarray(np.full((1, 9), 2**32 - 1, dtype=np.uint32))
    assert kernels_of(array).first_invalid(array, ModuliSet([2**32])) is None


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (8, 4096), (7, 10001)])
def test_read_all(on_each_processor: Processor, shape: tuple[int, int], rng: np.random.Generator) -> None:
    residues = rng.integers(0, 2**32, size=shape, dtype=np.uint32)
    array = on_each_processor.xp.asarray(residues)
    assert kernels_of(array).read_all(array) == int(residues.sum(dtype=np.uint64))


@pytest.mark.parametrize("called_as", [None, "another kind"])
def test_the_first_call_of_a_function_is_alone(called_as: str | None) -> None:
    running, most, calls = 0, [], []

    def compiling(fails: bool) -> None:
        nonlocal running
        with first_alone(compiling, "kind"):
            running += 1
            most.append(running)
            time.sleep(0.01)
            calls.append(len(calls))
            running -= 1
            if fails:
                raise MemoryError

    if called_as:
        with first_alone(compiling, called_as):
            pass
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(compiling, number == 0) for number in range(32)]
        assert [type(future.exception()) for future in futures] == [MemoryError] + [type(None)] * 31
    assert most[:2] == [1, 1]  # one that failed does not count
    assert max(most) > 1
    with ThreadPoolExecutor(2) as pool:  # another function does not wait for it
        entered = Event()

        def other() -> None:
            with first_alone(other):
                entered.set()

        def waiting() -> bool:
            with first_alone(waiting):
                pool.submit(other)
                return entered.wait(10)

        assert pool.submit(waiting).result()
