"""Run CUDA kernels on the host, under sanitizers, and compare what they give with the CPU's kernels.

Each source is compiled by g++ as it is, with CUDA's words of ``emulation/host_cuda.hpp``, and launched by the
package's own code: NumPy arrays that call themselves CuPy's stand for those of a GPU. So reads and writes
beyond arrays, undefined arithmetic, barriers that not all threads reach and wrong results are found without a
GPU. Of inline assembly sums and products with carries are known; rounding, memory models and speed are not a
GPU's.

    python scripts/emulate_kernels.py            all checks
    python scripts/emulate_kernels.py limbs      those whose name has this in it
"""

import contextlib
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

HEADER = Path(__file__).resolve().parent / "emulation" / "host_cuda.hpp"
SHARED_BYTES = 2**18
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-sanitize=alignment")
OPTIONS = ("-std=c++20", "-O1", "-g", "-w", "-fPIC", "-shared", "-pthread", "-ffp-contract=off")


class ndarray(np.ndarray):  # noqa: N801  (CuPy's name)
    """A NumPy array that has what the package asks of CuPy's."""

    __module__ = "cupy"

    @property
    def data(self) -> Any:  # type: ignore[override]
        return types.SimpleNamespace(ptr=self.ctypes.data, device_id=0)

    @property
    def device(self) -> Any:
        return contextlib.nullcontext()

    def get(self) -> np.ndarray:
        return np.array(self, subok=False)


def without_assembly(code: str) -> str:
    """A source with chains of sums and products of 32 bits, and their carries, as C++; others stay."""

    def translated(match: re.Match[str]) -> str:
        text, *operands = re.split(r"(?<!:):(?!:)", match[1])
        names = re.findall(r'"[=+&]*r"\(((?:[^()]|\([^()]*\))*)\)', ":".join(operands))
        chain = "".join(re.findall(r'"(.*?)"', text)).replace(r"\n\t", "").split(";")
        lines = [as_cpp(instruction.split(), names) for instruction in chain if instruction.strip()]
        is_known = operands and all(lines)
        return f"{{ u64 carry = 0, sum; {' '.join(lines)} }}" if is_known else match[0]

    return re.sub(r"asm(?: volatile)?\((.*?)\);", translated, code, flags=re.DOTALL)


def as_cpp(instruction: list[str], names: list[str]) -> str:
    """One instruction, such as ``madc.hi.cc.u32 %1, %3, %4, %1``; empty if it is of another kind."""
    known = re.fullmatch(r"(add|mad)(c?)(?:\.(lo|hi))?(\.cc)?\.u32", instruction[0])
    if not known:
        return ""
    name, takes, half, gives = known.groups()
    places = [x.rstrip(",") for x in instruction[1:]]
    out, *terms = (names[int(x[1:])] if x[0] == "%" else x for x in places)
    if name == "mad":
        terms = [f"(u32)((u64)({terms[0]}) * ({terms[1]}) >> {32 * (half == 'hi')})", terms[2]]
    total = " + ".join(f"(u64)({term})" for term in (*terms, *(["carry"] if takes else [])))
    return f"sum = {total}; {out} = (u32)sum;{' carry = sum >> 32;' if gives else ''}"


class RawModule:
    """A source compiled for the host, its kernels by their names."""

    def __init__(self, code: str, options: tuple[str, ...], backend: str) -> None:  # noqa: ARG002
        from rnsdask.backend.cuda_sources import kernels_directory, kernels_in

        memory = f"alignas(16) static unsigned char shared_memory[{SHARED_BYTES}];\n"
        shared = r"extern __shared__ (\w+) (\w+)\[\];"
        code = re.sub(shared, r"static \1* const \2 = reinterpret_cast<\1*>(shared_memory);", code)
        for name in sorted(kernels_in(code)):
            code += f'\nextern "C" void emulate_{name}(unsigned b, unsigned t, void** a)'
            code += f" {{ emulation::run({name}, b, t, a); }}\n"
        folder = Path(tempfile.mkdtemp(dir=FOLDER.name))
        code = f'#include "{HEADER}"\n' + memory + without_assembly(code)
        (folder / "kernels.cpp").write_text(code, encoding="utf-8")
        for header in (kernels_directory() / "cuda").glob("*.cuh"):
            (folder / header.name).write_text(without_assembly(header.read_text(encoding="utf-8")))
        given = [o for o in options if o.startswith("-D")] + [f"-I{kernels_directory() / 'include'}"]
        command = ["g++", *OPTIONS, *SANITIZERS, *given, "kernels.cpp", "-o", "kernels.so"]
        plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        subprocess.run(command, cwd=folder, check=True, env=plain)
        self.library = ctypes.CDLL(str(folder / "kernels.so"))

    def get_function(self, name: str) -> Callable[..., None]:
        function = self.library[f"emulate_{name}"]

        def launch(grid: Any, block: Any, arguments: Any, shared_mem: int = 0) -> None:
            assert shared_mem <= SHARED_BYTES
            # Each argument by its address, arrays as pointers.
            values = [
                np.array(v.ctypes.data if isinstance(v, np.ndarray) and v.ndim else v) for v in arguments
            ]
            addresses = (ctypes.c_void_p * len(values))(*(v.ctypes.data for v in values))
            function(grid[0], block[0], addresses)

        return launch


def install() -> None:
    """Put a module in the place of CuPy."""
    cupy: Any = types.ModuleType("cupy")
    nothing = lambda *_, **__: None  # noqa: E731
    runtime = types.SimpleNamespace(
        getDevice=lambda: 0,
        deviceGetAttribute=lambda *_: 2,  # two multiprocessors
        pointerGetAttributes=lambda _: types.SimpleNamespace(type=0),
        deviceSynchronize=nothing,
        streamPerThread=2,
        memoryTypeHost=2,
    )
    cupy.cuda = types.SimpleNamespace(
        runtime=runtime,
        get_current_stream=lambda: types.SimpleNamespace(ptr=0),
        Event=lambda **_: types.SimpleNamespace(record=nothing, synchronize=nothing),
    )
    cupy.ndarray, cupy.RawModule = ndarray, RawModule
    for name in ("uint8", "int8", "int32", "uint32", "int64", "uint64", "float64", "bool_"):
        setattr(cupy, name, getattr(np, name))
    for name in ("empty", "zeros", "full", "ones", "arange", "asarray", "empty_like", "ascontiguousarray"):
        setattr(cupy, name, partial(_as_cupys, getattr(np, name)))
    libraries: Any = types.ModuleType("cupy_backends.cuda.libs")
    libraries.cublas = None
    for name in ("cupy_backends", "cupy_backends.cuda"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["cupy_backends.cuda.libs"] = libraries
    sys.modules["cupy"] = cupy


def _as_cupys(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return function(*args, **options).view(ndarray)


Check = Callable[[Any, Callable[[Any], Any]], list[Any]]
CHECKS: dict[str, Check] = {}
"""What takes kernels, and a function that places an array for them, and gives arrays to compare."""


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def words(rows: int, count: int, seed: int) -> np.ndarray:
    """Random words, with all ones and zeros among them."""
    found = np.random.default_rng(seed).integers(0, 2**32, (rows, count), dtype=np.uint32)
    found[:, ::5], found[:, 1::7] = 2**32 - 1, 0
    return found


@check
def limbs(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    results = []
    for rows, top_bits, signed in ((1, 1, True), (3, 32, True), (8, 5, False)):
        x, y = (place(words(rows, 300, seed)) for seed in (1, 2))
        x[-1] >>= np.uint32(32 - top_bits)
        y[-1] >>= np.uint32(32 - top_bits)
        out = place(np.empty((rows + 1, 300), np.uint32))
        for subtract in (False, True):
            flags = kernels.positional_add((x, y), (signed, signed), subtract, top_bits, signed, out)
            results += [out.copy(), flags]
        results.append(kernels.positional_compare(x, y[:, :1].copy(), signed))
        bits = place(np.arange(-150, 150, dtype=np.int64))
        results.append(kernels.positional_shift(x, bits, top_bits, signed))
        results += [kernels.positional_count(x, signed, what) for what in ("length", "ones", "twos_length")]
    return results


@check
def positional_products(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    results = []
    for rows, others, bits, signed in ((1, 1, 64, False), (4, 3, 200, True), (9, 9, 288, False)):
        x, y = place(words(rows, 130, 3)), place(words(others, 130, 4))
        out, flags = (place(np.empty(s, t)) for s, t in (((-(-bits // 32), 130), np.uint32), (130, np.bool_)))
        kernels.positional_multiply(x, y, None, bits, signed, out, flags)
        results += [out, flags]
    return results


@check
def positional_division(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    results: list[Any] = []
    for rows, others in ((1, 1), (3, 1), (5, 3), (4, 4)):
        y = words(others, 130, 6)
        y[0] |= 1
        for signed in (False, True):
            results += kernels.positional_divmod(place(words(rows, 130, 5)), place(y), signed)
    return results


@check
def transposition(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    """Tiles in shared memory, with barriers."""
    results = []
    for rows, count in ((1, 5), (33, 70), (64, 64), (100, 31)):
        out = place(np.empty((count, rows), np.uint32))
        kernels.transpose(place(words(rows, count, 7)), out)
        results.append(out)
    return results


@check
def montgomery_products(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    results = []
    for rows in (1, 4, 40):
        m = words(rows, 1, 8) | np.uint32(2**31 + 1)
        x, y = (words(rows, 70, seed) for seed in (9, 10))
        x[-1], y[-1] = x[-1] >> np.uint32(1), y[-1] >> np.uint32(1)  # below the modulus
        value = int.from_bytes(m.tobytes(), "little")
        square = (1 << 2 * kernels.montgomery_bits(rows)) % value
        squares = np.frombuffer(square.to_bytes(4 * rows, "little"), np.uint32).reshape(rows, 1)
        out = place(np.empty((rows, 70), np.uint32))
        kernels.montgomery_multiply(place(x), place(y), place(m), place(squares), out)
        results.append(out)
    return results


@check
def running_sums(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    """Of residues, with barriers and shuffles."""
    from rnsdask.core.moduli import ModuliSet

    moduli, results = ModuliSet.for_bits(150), []
    n, least = len(moduli), np.uint32(min(moduli))
    for shape in ((1, 1500, 1), (3, 40, 7), (2, 1, 5)):
        lines = words(n, int(np.prod(shape)), 11).reshape(n, *shape) % least
        starts = words(n, shape[0] * shape[2], 12).reshape(n, shape[0], shape[2]) % least
        results.append(kernels.running_sums(place(lines), place(starts), moduli))
    return results


def main() -> int:
    install()
    from rnsdask.backend import cpu, cuda

    wanted, failed = sys.argv[1:], 0
    for name, function in CHECKS.items():
        if wanted and not any(part in name for part in wanted):
            continue
        ours = function(cuda, lambda array: np.copy(array, order="C").view(ndarray))
        expected = function(cpu, lambda array: np.copy(array, order="C"))
        same = len(ours) == len(expected) and all(map(np.array_equal, ours, expected))
        failed += not same
        print(f"{name}: {len(ours)} results {'agree' if same else 'DIFFER'}", flush=True)
    return int(failed > 0)


def with_sanitizers() -> None:
    """Start again with the sanitizer's library, which must be loaded before all others."""
    if "RNSDASK_EMULATION" not in os.environ:
        found = [
            subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
            for name in ("libasan.so", "libstdc++.so")
        ]
        preload = " ".join(done.stdout.strip() for done in found)
        more = {"LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0", "RNSDASK_EMULATION": "1"}
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **more})


if __name__ == "__main__":
    with_sanitizers()
    FOLDER = tempfile.TemporaryDirectory()
    sys.exit(main())
