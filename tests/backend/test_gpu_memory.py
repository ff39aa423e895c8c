"""Ownership of memory that copies and kernels on a GPU read, with any threads and streams."""

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import check_gpu
import numpy as np
import pytest

from rnsdask.backend import kernels_of, to_backend
from rnsdask.constants import key_constants, sum_check
from rnsdask.core.moduli import ModuliSet

pytestmark = pytest.mark.gpu

MODULI = ModuliSet.for_bits(256)


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy")


@pytest.fixture
def keep_busy(cupy: Any) -> Any:
    """Return a function that queues a kernel of a tenth of a second on a stream."""
    source = r"""extern "C" __global__ void wait(long long cycles) {
        const long long start = clock64();
        while (clock64() - start < cycles) {}
    }"""
    kernel = cupy.RawKernel(source, "wait")
    return lambda: kernel((1,), (1,), (np.int64(150_000_000),))


def forget_tables() -> None:
    from rnsdask.backend.cuda import check, launching

    for cached in (launching.constant_on, launching.modulus_table_on, check.last_residues_on):
        cached.cache_clear()


def residues_of(moduli: ModuliSet, count: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, m, count, dtype=np.uint64).astype(np.uint32) for m in moduli])


def test_memory_of_the_host_is_free_after_a_copy(cupy: Any, keep_busy: Any) -> None:
    from rnsdask.backend.cuda.memory import pinned_memory

    for count in (2**10, 2**22):
        for chunk in (pinned_memory(count), np.empty(count, np.uint32)):
            chunk[:] = np.arange(count)
            keep_busy()  # the copy has to wait for it
            moved = to_backend(chunk, "cuda")
            chunk[:] = 7
            np.testing.assert_array_equal(moved.get(), np.arange(count))


def test_files_wait_for_kernels(cupy: Any, keep_busy: Any, tmp_path: Path) -> None:
    """Kernels that compute written data, and kernels that still read the memory to be overwritten."""
    from rnsdask.backend.cuda.files import file_to_gpu, gpu_to_file

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()  # or `read` may get memory that another test has left
    content = cupy.arange(2**20, dtype=np.uint32)
    cupy.add(content, content)  # compiled before
    keep_busy()
    doubled = cupy.add(content, content)
    with (tmp_path / "x").open("wb", buffering=0) as file:
        gpu_to_file(file.fileno(), doubled)
    expected = 2 * np.arange(2**20, dtype=np.uint32)
    np.testing.assert_array_equal(np.fromfile(tmp_path / "x", np.uint32), expected)
    keep_busy()
    doubled_again = cupy.add(doubled, doubled)
    address = doubled.data.ptr
    del doubled
    read = cupy.empty(2**20, np.uint32)
    assert read.data.ptr == address
    np.zeros(2**20, np.uint32).tofile(tmp_path / "x")
    assert file_to_gpu(tmp_path / "x", read) == read.nbytes
    np.testing.assert_array_equal(doubled_again.get(), 2 * expected)
    assert not read.get().any()


@pytest.mark.parametrize("name", ["add", "matmul", "extremum", "interval_rns"])
def test_a_launch_owns_what_it_points_to(cupy: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Even if caches forget it, and its memory is filled anew, after the description is made."""
    from rnsdask.backend.cuda import launching

    launch = launching.launch

    def launch_late(*args: Any, **options: Any) -> int:
        forget_tables()
        gc.collect()
        spoilt = [cupy.full(size, 2**32 - 1, dtype=np.uint32) for size in (128, 1024, 4096) * 8]
        del spoilt
        return launch(*args, **options)

    x, y = (residues_of(MODULI, 64, seed) for seed in (1, 2))

    def run(xp: Any) -> list[Any]:
        a, b = xp.asarray(x), xp.asarray(y)
        kernels = kernels_of(a)
        if name == "extremum":
            return [kernels.extremum(a, key_constants(MODULI, False), False)]
        if name == "matmul":
            out = xp.empty((len(x), 1, 8, 8), np.uint32)
            kernels.matmul(a.reshape(-1, 1, 8, 8), b.reshape(-1, 1, 8, 8), MODULI, out)
            return out.tolist()
        if name == "interval_rns":
            from rnsdask.arrays.interval_rns_array import IntervalRNSArray

            columns = (
                IntervalRNSArray.from_ints(range(k, 64 + k), MODULI, chunks=None).columns for k in (1, 9)
            )
            a, b = (xp.asarray(c) for c in columns)
            out = xp.empty_like(a)
            kernels.interval_rns_add(a, b, MODULI, False, 2, 2**-20, out)
            return out.tolist()
        out = xp.empty_like(a)
        kernels.apply("add", (a, b), MODULI, out)
        return out.tolist()

    expected = run(np)
    forget_tables()
    monkeypatch.setattr(launching, "launch", launch_late)
    assert run(cupy) == expected


def test_tables_outlive_kernels_of_other_streams(cupy: Any, keep_busy: Any) -> None:
    x, y = (residues_of(MODULI, 4096, seed) for seed in (1, 2))
    expected = np.empty_like(x)
    kernels_of(x).apply("multiply", (x, y), MODULI, expected)
    a, b = cupy.asarray(x), cupy.asarray(y)
    out = cupy.empty_like(a)
    cupy.cuda.Device().synchronize()
    forget_tables()
    first, second = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    with first:
        keep_busy()
        from rnsdask.backend.cuda import launching

        launching.modulus_table_on(MODULI, 0)  # made on a stream that is busy
    with second:
        keep_busy()
        kernels_of(a).apply("multiply", (a, b), MODULI, out)
    forget_tables()
    with first:
        spoilt = [cupy.full(size, 2**32 - 1, dtype=np.uint32) for size in (64, 128, 256, 1024) * 8]
    second.synchronize()
    del spoilt
    np.testing.assert_array_equal(out.get(), expected)


def test_threads_with_streams_of_their_own(cupy: Any) -> None:
    moduli = [ModuliSet.for_bits(bits) for bits in (64, 256, 300, 2048)]
    x = {m: residues_of(m, 5000, 1) for m in moduli}
    y = {m: residues_of(m, 5000, 2) for m in moduli}
    expected = {}
    for m in moduli:
        expected[m] = np.empty_like(x[m])
        kernels_of(x[m]).apply("multiply", (x[m], y[m]), m, expected[m])

    def wrong(number: int) -> int:
        m = moduli[number % len(moduli)]
        with cupy.cuda.Stream(non_blocking=True) as stream:
            a, b = (to_backend(array[m], "cuda") for array in (x, y))
            out = cupy.empty_like(a)
            kernels_of(a).apply("multiply", (a, b), m, out)
            best = kernels_of(a).extremum(a, key_constants(m, False), False)
            assert best == kernels_of(x[m]).extremum(x[m], key_constants(m, False), False)
            found = out.get()
            stream.synchronize()
        if number % 7 == 0:
            forget_tables()
        return int(np.count_nonzero(found != expected[m]))

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(wrong, range(400))) == 0


@pytest.mark.parametrize("of_its_own", [False, True])
def test_results_of_many_threads(cupy: Any, of_its_own: bool) -> None:
    """Each launch reads its own results, and leaves what blocks share as the next one needs it."""
    moduli = [ModuliSet.for_bits(bits) for bits in (64, 256, 9000)]
    x = {m: residues_of(m, 2**21 // len(m) - 1, 1) for m in moduli}
    for m in moduli:
        x[m][:, ::1000] = x[m][:, :1]  # equal numbers in several blocks, which nothing may tell apart
    on_gpu = {m: cupy.asarray(x[m]) for m in moduli}

    def found(a: Any, m: ModuliSet, count: int) -> list[Any]:
        kernels, keys = kernels_of(a), key_constants(m)
        a, b = a[:, :count], a[:, -count:]
        found = [kernels.extremum(a, keys, minimum) for minimum in (False, True)]
        found += [kernels.row_sums(a, keys), kernels.compare(a, b, keys)[1]]
        check = sum_check(m, False, False)
        for second in (a, a * 0):
            out = a * 0
            states = kernels.apply_checked("add", (a, second), m, check, out)
            found.append(None if states is None else states.tolist()[:100])
        return found

    jobs = [(m, count) for m in moduli for count in (1, 2, 3000, x[m].shape[1])] * 12
    expected = {(m, count): found(x[m], m, count) for m, count in set(jobs)}

    def is_wrong(job: tuple[ModuliSet, int]) -> bool:
        m, count = job
        stream = cupy.cuda.Stream(non_blocking=True) if of_its_own else cupy.cuda.Stream.null
        with stream:
            return found(on_gpu[m], m, count) != expected[job]

    cupy.cuda.Device().synchronize()
    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(is_wrong, jobs))


def test_results_are_lent_again_when_they_are_read(cupy: Any) -> None:
    from rnsdask.backend.cuda.launching import results

    a = cupy.asarray(residues_of(MODULI, 64))
    first = results()
    kernels_of(a).extremum(a, key_constants(MODULI), False)
    assert results() is not first
    first.read(1)
    assert results() is first


def test_per_thread_default_streams_are_refused(cupy: Any) -> None:
    a = cupy.asarray(residues_of(MODULI, 8))
    with cupy.cuda.Stream.ptds, pytest.raises(RuntimeError, match="per-thread default streams are not supp"):
        kernels_of(a).apply("add", (a, a), MODULI, cupy.empty_like(a))


def test_an_array_of_another_gpu_is_refused(cupy: Any) -> None:
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("fewer than 2 GPUs")
    a = cupy.asarray(residues_of(MODULI, 8))
    out = cupy.empty_like(a)
    with cupy.cuda.Device(1):
        with pytest.raises(ValueError, match="is on GPU 0 and the current one is GPU 1: compute within"):
            kernels_of(a).apply("add", (a, a), MODULI, out)
        other = cupy.asarray(a)
        kernels_of(other).apply("add", (other, other), MODULI, result := cupy.empty_like(other))
        np.testing.assert_array_equal(
            result.get(), (2 * a.get().astype(np.uint64) % np.array(list(MODULI), np.uint64)[:, None])
        )


@pytest.mark.parametrize(
    "command", [["starts", "--count", "4"], ["jobs", "max", "subtract", "--numbers", "20000"]]
)
def test_cold_processes(cupy: Any, command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, str(Path(check_gpu.__file__)), *command],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
