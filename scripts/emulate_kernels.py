"""Run CUDA kernels on the host, under sanitizers, and compare what they give with the CPU's kernels.

Each source is compiled by g++ as it is, with CUDA's words of ``emulation/host_cuda.hpp``, and launched by the
package's own code: NumPy arrays that call themselves CuPy's stand for those of a GPU. So reads and writes
beyond arrays, undefined arithmetic, barriers that not all threads reach and wrong results are found without a
GPU. Of inline assembly sums and products with carries are known, and what is in headers that ``emulation/``
has, too; rounding, memory models and speed are not a GPU's.

With ``--ptx`` NVRTC compiles each source to PTX, as on a user's machine, and ``emulation/ptx.py`` runs that:
so inline assembly is what the compiler makes of it, and operands that lack ``&`` are found, which C++ cannot
show; reads beyond arrays are not found. It needs NVRTC's wheel, and no g++.

    python scripts/emulate_kernels.py              all checks
    python scripts/emulate_kernels.py limbs        those whose name has this in it
    python scripts/emulate_kernels.py --ptx limbs  the same by PTX
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
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import check_kernels
from emulation import ptx

EMULATION = Path(__file__).resolve().parent / "emulation"
HEADER = EMULATION / "host_cuda.hpp"
SHARED_BYTES = 2**18
ATTRIBUTES = {16: 2, 75: 8, 97: 2**17}
"""Of a device: multiprocessors, major version, bytes of shared memory that a block can ask for."""
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
        names = re.findall(r'"[=+&]*[rl]"\(((?:[^()]|\([^()]*\))*)\)', ":".join(operands))
        chain = "".join(re.findall(r'"(.*?)"', text)).replace(r"\n\t", "").split(";")
        lines = [as_cpp(instruction.split(), names) for instruction in chain if instruction.strip()]
        is_known = operands and all(lines)
        return f"{{ u64 carry_ = 0, sum_; {' '.join(lines)} }}" if is_known else match[0]

    return re.sub(r"asm(?: volatile)?\((.*?)\);", translated, code, flags=re.DOTALL)


def as_cpp(instruction: list[str], names: list[str]) -> str:
    """One instruction, such as ``madc.hi.cc.u32 %1, %3, %4, %1``; empty if it is of another kind."""
    if instruction == ["mov.b64", "%0,", "{%1,", "%2}"]:
        return f"{names[0]} = (u64)({names[2]}) << 32 | ({names[1]});"
    known = re.fullmatch(r"(add|mad)(c?)(?:\.(lo|hi))?(\.cc)?\.u32", instruction[0])
    if not known:
        return ""
    name, takes, half, gives = known.groups()
    places = [x.rstrip(",") for x in instruction[1:]]
    out, *terms = (names[int(x[1:])] if x[0] == "%" else x for x in places)
    if name == "mad":
        terms = [f"(u32)((u64)({terms[0]}) * ({terms[1]}) >> {32 * (half == 'hi')})", terms[2]]
    total = " + ".join(f"(u64)({term})" for term in (*terms, *(["carry_"] if takes else [])))
    return f"sum_ = {total}; {out} = (u32)sum_;{' carry_ = sum_ >> 32;' if gives else ''}"


def arguments_of(arguments: Any) -> list[np.ndarray]:
    """Each argument as a kernel takes it, arrays as pointers."""
    return [np.array(v.ctypes.data if isinstance(v, np.ndarray) and v.ndim else v) for v in arguments]


class RawModule:
    """A source compiled for the host, its kernels by their names."""

    def __init__(self, code: str, options: tuple[str, ...], backend: str) -> None:  # noqa: ARG002
        from rnsdask.backend.cuda_sources import kernels_directory, kernels_in

        memory = f"alignas(16) static unsigned char shared_memory[{SHARED_BYTES}];\n"
        shared = r"extern __shared__ (\w+) (\w+)\[\];"
        code = re.sub(shared, r"static \1* const \2 = reinterpret_cast<\1*>(shared_memory);", code)
        code = f'#include "{HEADER}"\n' + memory + without_assembly(code)
        folder = Path(tempfile.mkdtemp(dir=FOLDER.name))
        for header in (kernels_directory() / "cuda").glob("*.cuh"):
            own = EMULATION / header.name  # what there is of instructions that C++ has nothing like
            text = (own if own.exists() else header).read_text(encoding="utf-8")
            (folder / header.name).write_text(without_assembly(text))
        given = [o for o in options if o.startswith("-D")] + [f"-I{kernels_directory() / 'include'}"]

        def compiler(*more: str) -> str:
            plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
            (folder / "kernels.cpp").write_text(code, encoding="utf-8")
            command = ["g++", *OPTIONS, *given, "kernels.cpp", *more]
            return subprocess.run(
                command, cwd=folder, check=True, env=plain, stdout=subprocess.PIPE, text=True
            ).stdout

        present = set(re.findall(r"\w+", compiler("-E", "-P")))  # these options may leave out kernels
        for name in sorted(kernels_in(code) & present):
            code += f'\nextern "C" void emulate_{name}(unsigned b, unsigned t, void** a)'
            code += f" {{ emulation::run({name}, b, t, a); }}\n"
        compiler(*SANITIZERS, "-o", "kernels.so")
        self.library = ctypes.CDLL(str(folder / "kernels.so"))

    def get_function(self, name: str) -> Callable[..., None]:
        function = self.library[f"emulate_{name}"]

        def launch(grid: Any, block: Any, arguments: Any, shared_mem: int = 0) -> None:
            assert shared_mem <= SHARED_BYTES
            values = arguments_of(arguments)
            addresses = (ctypes.c_void_p * len(values))(*(v.ctypes.data for v in values))
            function(grid[0], block[0], addresses)

        launch.max_dynamic_shared_size_bytes = SHARED_BYTES  # type: ignore[attr-defined]
        return launch


class PtxModule:
    """A source compiled by NVRTC to PTX, its kernels by their names."""

    def __init__(self, code: str, options: tuple[str, ...], backend: str) -> None:  # noqa: ARG002
        self.text = ptx_of(code, tuple(o for o in options if not o.startswith("-arch")))

    def get_function(self, name: str) -> Callable[..., None]:
        kernel = ptx.Kernel(self.text, name)

        def launch(grid: Any, block: Any, arguments: Any, shared_mem: int = 0) -> None:
            kernel.launch(grid[0], block[0], arguments_of(arguments), shared_mem)

        launch.max_dynamic_shared_size_bytes = SHARED_BYTES  # type: ignore[attr-defined]
        return launch


def ptx_of(code: str, options: tuple[str, ...]) -> str:
    """A source of CUDA as PTX of a Hopper GPU, by NVRTC."""
    libraries = check_kernels.nvrtc_libraries()
    if not libraries:
        sys.exit(f"error: --ptx needs a wheel of NVRTC ({' or '.join(check_kernels.NVRTC_WHEELS)})")
    translate = check_kernels.nvrtc_translator(libraries[0])
    return translate(code, "kernels.cu", (*options, "-arch=compute_90"), "PTX").rstrip(b"\0").decode()


def install(module: type) -> None:
    """Put a module in the place of CuPy."""
    cupy: Any = types.ModuleType("cupy")
    nothing = lambda *_, **__: None  # noqa: E731
    runtime = types.SimpleNamespace(
        getDevice=lambda: 0,
        deviceGetAttribute=lambda what, _: ATTRIBUTES[what],
        pointerGetAttributes=lambda _: types.SimpleNamespace(type=0),
        deviceSynchronize=nothing,
        streamPerThread=2,
        memoryTypeHost=2,
    )
    cupy.cuda = types.SimpleNamespace(
        runtime=runtime,
        alloc_pinned_memory=bytearray,
        get_current_stream=lambda: types.SimpleNamespace(ptr=0),
        Event=lambda **_: types.SimpleNamespace(record=nothing, synchronize=nothing),
    )
    cupy.ndarray, cupy.RawModule = ndarray, module
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
NOT_BY_PTX = {
    "elimination_by_rows": "calls of functions",
    "products_joined_at_once": "matrix units and copies that do not wait",
}
"""Checks that ``emulation/ptx.py`` cannot run, and why."""


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
            found = kernels.positional_divmod(place(words(rows, 130, 5)), place(y), signed)
            results += [widened(numbers, rows + others, signed) for numbers in found]
    return results


def widened(numbers: np.ndarray, rows: int, signed: bool) -> np.ndarray:
    """So many limbs of numbers, for kernels may return as many as they like."""
    top = np.where(signed & (numbers[-1:] >> np.uint32(31)), np.uint32(2**32 - 1), np.uint32(0))
    return np.concatenate([numbers, np.repeat(top, rows - len(numbers), axis=0)])


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
def products_by_lanes(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    """Plain ones too long for one thread's registers, whole, cut, and checked; low ones by halves."""
    results = []
    for rows, others, bits, count in (
        (65, 1, 66 * 32, 33),
        (64, 64, 128 * 32 - 1, 5),
        (128, 129, 257 * 32, 1),
        (129, 65, 100 * 32 - 31, 3),
        (70, 60, 65 * 32 - 5, 31),  # by halves where no flags are asked for
        (20, 90, 131 * 32, 2),  # more than the product has
    ):
        x, y = (words(n, count, seed) for n, seed in ((rows, 13), (others, 14)))
        x[:, 0], y[:, -1] = 2**32 - 1, 2**32 - 1
        if others == 1:  # a carry that passes lanes of all ones: 3 (2^32k - 1) / 3 + 3 2^32j
            x[:, 1], y[:, 1] = (2**32 - 1) // 3, 3
            x[20, 1] += 1
        for flags in (None, place(np.empty(count, np.bool_))):
            out = place(np.empty((-(-bits // 32), count), np.uint32))
            kernels.positional_multiply(place(x), place(y), None, bits, False, out, flags)
            results += [out, *([] if flags is None else [flags])]
    return results


@check
def products_of_halves(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    """Equal halves, which differ by 0; halves of either order; carries through all limbs; odd lengths."""
    results = []
    for rows, others in ((64, 64), (37, 40), (128, 128), (121, 117), (255, 251), (112, 97)):
        ones = 2 ** (32 * rows) - 1
        half = 2 ** (16 * 32 * -(-rows // 32 // 2) * 2)
        a = (ones, ones, half - 1, half, half + 1, ones // (half - 1), ones - half, ones // 3, 0, ones)
        b = (ones, 1, half + 1, half - 1, half - 1, ones, half, 3, ones, half)
        x, y = words(rows, 40, 22), words(others, 40, 23)
        for to, numbers in ((x, a), (y, b)):
            for j, number in enumerate(numbers):
                data = (number % 2 ** (32 * len(to))).to_bytes(4 * len(to), "little")
                to[:, j] = np.frombuffer(data, np.uint32)
        for j in range(12, 16):  # all orders of halves of two values
            x[: rows // 2, j], x[rows // 2 :, j] = j & 1, j >> 1 & 1
            y[: others // 2, j], y[others // 2 :, j] = 1, 2**32 - 1
        for bits in (32 * (rows + others), 32 * (rows + others) + 7):
            out = place(np.empty((-(-bits // 32), 40), np.uint32))
            kernels.positional_multiply(place(x), place(y), None, bits, False, out, None)
            results.append(out)
    return results


@check
def carries_that_pass_all_limbs(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    results = []
    for rows in (34, 127):  # lanes of 18 and of 32 limbs
        ones = 2 ** (32 * rows) - 1
        a, b = (ones, ones, ones // 3, ones // 3 + 2**640, ones - 2**32), (ones, 1, 3, 3, 2**32 + 1)
        data = [b"".join(z.to_bytes(4 * rows, "little") for z in numbers) for numbers in (a, b)]
        x, y = (place(np.frombuffer(d, np.uint32).reshape(-1, rows).T.copy()) for d in data)
        for addend, signed in ((None, False), (None, True), (x, False)):
            out = place(np.empty((2 * rows, len(a)), np.uint32))
            kernels.positional_multiply(x, y, addend, 64 * rows, signed, out, None)
            results.append(out)
    return results


@check
def products_with_addends(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    """The addend in the result's memory, and of one number for all."""
    results = []
    for rows, others, more, bits, signed in (
        (3, 2, 5, 160, False),
        (2, 2, 7, 199, True),
        (40, 40, 80, 80 * 32 - 1, False),
        (66, 3, 69, 69 * 32, True),
        (70, 66, 140, 137 * 32 - 9, True),  # by rows of four lanes
        (36, 40, 1, 76 * 32, True),  # of two, and of one
        (33, 31, 90, 80 * 32 - 1, True),
        (70, 66, 140, 138 * 32 - 1, False),
    ):
        x, y, addend = (place(words(n, 33, seed)) for n, seed in ((rows, 15), (others, 16), (more, 17)))
        limbs = -(-bits // 32)
        for flags in (None, place(np.empty(33, np.bool_))):
            out = place(np.empty((limbs, 33), np.uint32))
            kernels.positional_multiply(x, y, addend[:, :1].copy(), bits, signed, out, flags)
            results += [out, *([] if flags is None else [flags])]
        if limbs == more:
            kernels.positional_multiply(x, y, addend, bits, signed, addend, None)
            results.append(addend)
    return results


def odd_modulus(rows: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Moduli of so many limbs, the greatest first, and the squares of R modulo each, by its bits."""
    m = words(rows, count, 8)
    m[:, 0] = 2**32 - 1
    m[0] |= 1
    m[-1] |= np.uint32(2**31)
    return m, np.array([int.from_bytes(column.tobytes(), "little") for column in m.T], object)


def squares(kernels: Any, rows: int, values: np.ndarray) -> np.ndarray:
    found = [(1 << 2 * kernels.montgomery_bits(rows)) % value for value in values]
    return np.array([np.frombuffer(z.to_bytes(4 * rows, "little"), np.uint32) for z in found]).T.copy()


@check
def montgomery_products(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    results = []
    for rows, count, moduli in (
        (1, 70, 1),
        (4, 33, 33),
        (32, 3, 1),
        (33, 31, 1),  # four lanes
        (64, 9, 9),
        (65, 5, 1),  # eight
        (129, 3, 3),  # sixteen
        (257, 1, 1),  # thirty-two
    ):
        m, values = odd_modulus(rows, moduli)
        x, y = (words(rows, count, seed) for seed in (9, 10))
        x[:, -1] = 2**32 - 1  # of any limbs, y below the modulus
        y[-1] >>= np.uint32(1)
        out = place(np.empty((rows, count), np.uint32))
        square = place(squares(kernels, rows, values))
        kernels.montgomery_multiply(place(x[: max(1, rows - 1)].copy()), place(y), place(m), square, out)
        results.append(out)
    return results


@check
def transformed_products(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    """Of numbers, by one number, and squares: what is around transforms, which no host compiles."""
    from rnsdask.backend import cpu
    from rnsdask.positional import transforms

    around = types.SimpleNamespace(**{**vars(kernels), "cyclic_products": cpu.cyclic_products})
    transforms.kernels_of = lambda _: around
    results = []
    for x_rows, y_rows, count in ((40, 40, 3), (130, 70, 2), (9, 200, 5)):
        x, y = place(words(x_rows, count, 20)), place(words(y_rows, count, 21))
        x[:, -1] = 2**32 - 1
        results += [transforms.transformed_product(*pair, count) for pair in ((x, y), (x, y[:, :1]), (x, x))]
    return results


@check
def montgomery_powers(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    sizes = (1, 130, 1, 0), (3, 33, 33, 64), (36, 9, 9, 7), (72, 5, 1, 33)
    return [powers(kernels, place, *size) for size in sizes]


@check
def squares_by_lanes(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    """Of powers, by two lanes, four and eight: of -1, of equal halves, and of moduli of all ones."""
    sizes = (40, 17, 17, 9), (128, 9, 9, 13), (128, 9, 1, 4), (160, 5, 1, 7), (256, 5, 5, 3)
    return [powers(kernels, place, *size) for size in sizes]


def powers(
    kernels: Any, place: Callable[[Any], Any], rows: int, count: int, moduli: int, bits: int
) -> np.ndarray:
    m, values = odd_modulus(rows, moduli)
    x, exponents = words(rows, count, 18), words(max(1, -(-bits // 32)), count, 19)
    exponents[-1] &= np.uint32((1 << (bits - 1) % 32 + 1) - 1 if bits else 0)
    x[-1] >>= np.uint32(1)
    x[: rows // 2, -1] = x[rows - rows // 2 :, -1]
    x[:, 0] = m[:, 0]
    x[0, 0] -= 1
    out = place(np.empty((rows, count), np.uint32))
    square = place(squares(kernels, rows, values))
    kernels.montgomery_power(place(x), place(exponents), bits, place(m), square, out)
    return out


@check
def modular_sums(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    """Sums at the modulus, and differences of equal numbers; and operands that are not below it."""
    results: list[Any] = []
    for rows, count in ((1, 33), (2, 31), (16, 5), (17, 5), (128, 3), (129, 2)):
        m, values = odd_modulus(rows, count)
        x = words(rows, count, 20)
        x[-1] >>= np.uint32(1)
        near = [v - int.from_bytes(c.tobytes(), "little") for v, c in zip(values, x.T, strict=True)]
        for y in (x, *(near_words(near, rows, more) for more in (-1, 0, 1))):
            for subtract in (False, True):
                out = place(np.empty((rows, count), np.uint32))
                are_reduced = kernels.positional_mod_add(place(x), place(y), place(m), subtract, out)
                results += [np.array(are_reduced), *([out] if are_reduced else [])]
        out = place(np.empty((rows, count), np.uint32))
        results.append(np.array(kernels.positional_mod_add(place(x), place(m), place(m), False, out)))
    return results


def near_words(values: list[int], rows: int, more: int) -> np.ndarray:
    found = [np.frombuffer((v + more).to_bytes(4 * rows, "little"), np.uint32) for v in values]
    return np.array(found).T.copy()


@check
def elimination_by_rows(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    """A thread for each row, whole in shared memory and where the result goes, and factors of LU."""
    from rnsdask.core.moduli import ModuliSet

    moduli, results = ModuliSet([3, 65537, 4294967291]), []
    for rows, columns, pivot_columns, seed in (
        (1, 1, 1, 1),
        (19, 32, 32, 7),  # of one warp
        (32, 30, 30, 8),
        (33, 34, 33, 2),
        (31, 70, 40, 3),
        (40, 9, 8, 4),
        (5, 3, 0, 5),
        (260, 36, 36, 6),  # great: in panels
    ):
        random = np.random.default_rng(seed)
        count = 1 if rows > 100 else 3
        x = np.empty((3, count, rows, columns), np.uint32)
        for i, m in enumerate(moduli):
            x[i] = random.integers(0, m, x.shape[1:])
        x[:, :, : rows // 2 : 3] = 0
        x[..., 1::5] = 0
        x[1:, 0] = np.array([m - 1 for m in moduli], np.uint32)[1:, None, None]  # rank 1
        out = place(np.empty_like(x))
        results += [*kernels.eliminate(place(x), pivot_columns, moduli, out), out]
        results += kernels.eliminate(place(x), pivot_columns, moduli, None)
        k = min(rows, columns)
        shapes = (rows, rows), (rows, k), (k, columns)
        factors = tuple(place(np.empty((3, count, *shape), np.uint32)) for shape in shapes)
        kernels.lu(place(x), moduli, factors)
        results += factors
        packed = np.concatenate([out, out[..., :1] * 0], axis=3)
        packed[..., -1] = np.arange(rows)[::-1]
        for factor, shape in zip("PLU", shapes, strict=True):
            found = place(np.empty((3, count, *shape), np.uint32))
            kernels.lu_factor(place(packed), factor, found)
            results.append(found)
    return results


@check
def products_joined_at_once(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    """Of matrices on matrix units, by as few blocks as there can be, and what they are taken from."""
    from rnsdask.constants import int8_constants, small_moduli_for
    from rnsdask.core.moduli import ModuliSet

    moduli, results = ModuliSet([2**32, 4294967291, 3]), []
    for rows, terms, columns in ((70, 260, 130), (64, 5, 129), (129, 64, 3)):
        a, b, c = (
            np.stack([np.random.default_rng(n).integers(0, m, (2, *sides), dtype=np.uint64) for m in moduli])
            for n, sides in enumerate(((rows, terms), (terms, columns), (rows, columns)))
        )
        middle = np.array([m // 2 for m in moduli], dtype=np.uint64)[:, None, None]
        a[:, 0], b[:, 0] = middle, middle + np.uint64(1)
        a, b, c = (x.astype(np.uint32) for x in (a, b, c))
        out = place(c)
        if kernels.__name__.endswith("cuda"):
            from rnsdask.backend.cuda import int8_product
            from rnsdask.backend.cuda.int8_product import SUBTRACT, Part

            int8_product._resident = lambda: 3
            parts = [Part.whole(place(x)) for x in (a, b)]
            shape = rows, terms, columns
            int8_product.multiply(parts[0], parts[1], moduli, Part.whole(out), shape, SUBTRACT)
            results += turned_difference(parts, Part.whole(place(c)), moduli)
        else:
            found = np.empty_like(c)
            kernels.matmul(a, b, moduli, found)
            sizes = np.array(list(moduli), dtype=np.int64)[:, None, None, None]
            out = ((c.astype(np.int64) - found) % sizes).astype(np.uint32)
            constants = int8_constants(moduli, small_moduli_for(moduli, terms))
            sides = -(-columns // 16) * 16, -(-rows // 64) * 64
            image = np.empty((len(moduli), 2, constants.count, *sides), np.int8)
            kernels.int8_split(out.swapaxes(2, 3), constants, True, image)
            results += [out, image[:, :, :, :columns]]
        results.append(out)
    return results


def turned_difference(factors: list[Any], part: Any, moduli: Any) -> list[Any]:
    """What a part is less a product, computed with rows as columns: words, and residues of left matrices."""
    from rnsdask.backend.cuda.int8_product import Residues, empty_image, multiply_images, split
    from rnsdask.constants import int8_constants, small_moduli_for

    (n, count, rows, terms), columns = factors[0].words.shape, part.words.shape[3]
    constants = int8_constants(moduli, small_moduli_for(moduli, terms))
    sides = (factors[1].turned(), columns, constants.negative), (factors[0], rows, constants.right)
    images = [empty_image(n * count, constants.count, side, terms) for _, side, _ in sides]
    for (x, side, small), image in zip(sides, images, strict=True):
        split(x, (0, 0, 0), (side, terms), constants, small, image)
    found = empty_image(n * count, constants.count, columns, rows)
    residues, added = Residues(found, constants.left), part.turned().words
    multiply_images(*images, part.turned(), (columns, rows), constants, added, residues)
    shape = n, count, constants.count, columns, -1
    return [part.words, found.transpose(0, 1, 3, 2, 4).reshape(shape)]


@check
def inverses_of_triangles(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    """Of both factors in whole matrices, and of those of L in rows of each from one rank to another."""
    from rnsdask.core.moduli import ModuliSet

    moduli, results = ModuliSet([2, 65537, 4294967291]), []
    for size in (1, 9, 40, 128):
        x = np.stack(
            [
                np.random.default_rng(size).integers(m // 2, m, (1, size, size), dtype=np.uint32)
                for m in moduli
            ]
        )
        x[..., 1:, 0] = np.array([m - 1 for m in moduli], np.uint32)[:, None, None]
        first = np.array([[0], [min(3, size - 1)], [0]], dtype=np.int32)
        last = np.array([[size], [size], [size // 2]], dtype=np.int32)
        if kernels.__name__.endswith("cuda"):
            from rnsdask.backend.cuda import triangles

            both = [place(np.empty_like(x)) for _ in range(2)]
            triangles.invert(place(x), moduli, *both)
            results += both
            results.append(triangles.lower_inverses(place(x), (place(first), place(last)), size, moduli))
            continue
        lower, upper, part = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
        for i, m in enumerate(moduli):
            lower[i, 0] = inverse_of_lower(np.tril(x[i, 0], -1) + np.eye(size, dtype=np.uint32), m)
            upper[i, 0] = inverse_of_lower(np.triu(x[i, 0]).T, m).T
            own = slice(first[i, 0], last[i, 0])
            inner = np.eye(size, dtype=np.uint32)
            rows = last[i, 0] - first[i, 0]
            inner[:rows, :rows] += np.tril(x[i, 0, own, own], -1)
            part[i, 0] = inverse_of_lower(inner, m)
        results += [lower, upper, part]
    return results


def inverse_of_lower(x: np.ndarray, m: int) -> np.ndarray:
    """Of a lower triangular matrix modulo a prime, row by row by Python's integers."""
    x, found = x.astype(object), np.eye(len(x), dtype=object)
    for i in range(len(x)):
        found[i] = (found[i] - x[i, :i] @ found[:i]) * pow(int(x[i, i]), -1, m) % m
    return found.astype(np.uint32)


@check
def residues_of_few_numbers(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    from rnsdask.constants import reverse_constants
    from rnsdask.core.moduli import ModuliSet

    results = []
    for bits, count in ((600, 33), (2100, 1)):
        moduli = ModuliSet.for_bits(bits)
        least = np.uint32(min(moduli))
        residues = words(len(moduli), count, 21) % least
        residues[:, 0] = [m - 1 for m in moduli]
        for signed in (False, True):
            constants = reverse_constants(moduli, signed)
            results.append(kernels.residues_to_limbs(place(residues), constants))
    return results


@check
def running_sums(kernels: Any, place: Callable[[Any], Any]) -> list[Any]:
    """Of residues: all lines at once, some at a time, and parts of one."""
    from rnsdask.core.moduli import ModuliSet

    moduli, results = ModuliSet.for_bits(150), []
    n, least = len(moduli), np.uint32(min(moduli))
    for block in (2**22, 90, 7):
        for shape in ((1, 1500, 1), (3, 40, 7), (2, 1, 5)):
            lines = words(n, int(np.prod(shape)), 11).reshape(n, *shape) % least
            starts = words(n, shape[0] * shape[2], 12).reshape(n, shape[0], shape[2]) % least
            with patch("rnsdask.backend.cuda.scan._BLOCK", block):
                results.append(kernels.running_sums(place(lines), place(starts), moduli))
    return results


def main(wanted: list[str], by_ptx: bool) -> int:
    install(PtxModule if by_ptx else RawModule)
    from rnsdask.backend import cpu, cuda

    failed = 0
    for name, function in CHECKS.items():
        if wanted and not any(part in name for part in wanted):
            continue
        if by_ptx and name in NOT_BY_PTX:
            print(f"{name}: not by PTX, for it has {NOT_BY_PTX[name]}", flush=True)
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
    WANTED = [argument for argument in sys.argv[1:] if argument != "--ptx"]
    BY_PTX = "--ptx" in sys.argv
    if not BY_PTX:
        with_sanitizers()
    FOLDER = tempfile.TemporaryDirectory()
    sys.exit(main(WANTED, BY_PTX))
