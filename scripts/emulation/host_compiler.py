"""A CUDA source compiled by g++ for the host, under sanitizers, its inline assembly as C++."""

import ctypes
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from emulation.cupy_of_host import SHARED_BYTES, launched_by
from rnsdask.backend.cuda.sources import kernels_directory, kernels_in

EMULATION = Path(__file__).resolve().parent
HEADER = EMULATION / "host_cuda.hpp"
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-sanitize=alignment")
OPTIONS = ("-std=c++20", "-O1", "-g", "-w", "-fPIC", "-shared", "-pthread", "-ffp-contract=off")


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


def without_assembly(code: str) -> str:
    """A source with chains of sums and products of 32 bits, and their carries, as C++; others stay."""

    def translated(match: re.Match[str]) -> str:
        text, *operands = re.split(r"(?<!:):(?!:)", match[1])
        names = re.findall(r'"[=+&]*[rl]"\(((?:[^()]|\([^()]*\))*)\)', ":".join(operands))
        chain = "".join(re.findall(r'"(.*?)"', text)).replace(r"\n\t", "").split(";")
        lines = [as_cpp(instruction.split(), names) for instruction in chain if instruction.strip()]
        is_known = operands and all(lines)
        return f"{{ u64 carry_ = 0, sum_; {' '.join(lines)} }}" if is_known else match[0]

    code = re.sub(r'asm volatile\("prefetch[^;]*;"[^;]*\);', ";", code)  # which changes nothing
    # Blocks come one after another, so that each sees what those before it wrote.
    place, memory = r'"l"\((\w+)\)', r' : "memory"\);'
    code = re.sub(rf'asm volatile\("ld\.acquire[^:]*: "=r"\((\w+)\) : {place}{memory}', r"\1 = *\2;", code)
    code = re.sub(rf'asm volatile\("red\.release[^:]*::{place}{memory}', r"atomicAdd(\1, 1u);", code)
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


def as_host_source(code: str) -> str:
    """A source of CUDA as C++, without what launches its kernels."""
    memory = f"alignas(16) static unsigned char shared_memory[{SHARED_BYTES}];\n"
    shared = r"(?:alignas\(\w+\) )?extern __shared__ (\w+) (\w+)\[\];"
    code = re.sub(shared, r"static \1* const \2 = reinterpret_cast<\1*>(shared_memory);", code)
    return f'#include "{HEADER}"\n' + memory + without_assembly(with_own_headers(code))


def with_own_headers(code: str) -> str:
    """A source that holds its headers, with those of `EMULATION` for what C++ has nothing like."""
    parts = re.split(r'(?m)^(#line \d+ "(.*)"\n)', code)
    kept, replaced = [parts[0]], set()
    for line, name, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        own = EMULATION / Path(name).name
        if not name.startswith("cuda/") or not own.exists():
            kept += [line, text]
        elif name not in replaced:
            replaced.add(name)
            kept += [f'#line 1 "{own}"\n', own.read_text(encoding="utf-8").replace("#pragma once\n", "\n")]
    return "".join(kept)


def compiler(folder: Path, code: str, *options: str) -> str:
    """Compile a source with g++, and return what it prints."""
    (folder / "kernels.cpp").write_text(code, encoding="utf-8")
    command = ["g++", *OPTIONS, f"-I{kernels_directory() / 'include'}", "kernels.cpp", *options]
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, cwd=folder, check=True, env=plain, stdout=subprocess.PIPE, text=True)
    return done.stdout


class RawModule:
    """A source compiled for the host, its kernels by their names."""

    def __init__(self, code: str, options: tuple[str, ...], backend: str) -> None:  # noqa: ARG002
        defines = [option for option in options if option.startswith("-D")]
        code = as_host_source(code)
        self.folder = tempfile.TemporaryDirectory()  # which sanitizers read when they find something
        folder = Path(self.folder.name)
        left = compiler(folder, code, *defines, "-E", "-P")  # these options may leave out kernels
        for kernel in sorted(kernels_in(code) & set(re.findall(r"\w+", left))):
            code += f'\nextern "C" void emulate_{kernel}(unsigned b, unsigned t, void** a)'
            code += f" {{ emulation::run({kernel}, b, t, a); }}\n"
        compiler(folder, code, *defines, *SANITIZERS, "-o", "kernels.so")
        self.library = ctypes.CDLL(str(folder / "kernels.so"))

    def compile(self) -> None:
        """Nothing, for it is compiled."""

    def get_function(self, name: str) -> Callable[..., None]:
        function = self.library[f"emulate_{name}"]

        def run(blocks: int, threads: int, arguments: list[np.ndarray], _: int) -> None:
            addresses = (ctypes.c_void_p * len(arguments))(*(v.ctypes.data for v in arguments))
            function(blocks, threads, addresses)

        return launched_by(run)
