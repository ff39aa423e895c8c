"""Compile every CUDA entry point, or those of some sources, on a machine with or without a GPU.

    python scripts/check_kernels.py            all
    python scripts/check_kernels.py matmul.cu  one, or several; the suffix may be left out

Each source in ``kernels/cuda``, and each that only benchmarks use, is compiled to machine code for sm_75,
sm_80 and sm_90: by nvcc, where there is one, and by NVRTC, which compiles the kernels on a user's machine,
where its wheel is installed (``nvidia-cuda-nvrtc-cu12`` or ``nvidia-cuda-nvrtc``). To have neither is a
failure, and so is a kernel of the source that the machine code lacks, or a structure that does not lie as the
dtype that Python fills (``rnsdask/backend/cuda/layout.py``).
"""

import argparse
import ctypes
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rnsdask.backend.cuda.layout import VARIANTS, assertions
from rnsdask.backend.cuda.sources import (
    COMPILE_OPTIONS,
    NVRTC_OPTIONS,
    include_options,
    kernels_directory,
    kernels_in,
    source_names,
)

ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
NVRTC_WHEELS = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")

# Kernels that only benchmarks use; they are not installed.
SCRIPTS = Path(__file__).resolve().parent
BENCHMARKS = [SCRIPTS, SCRIPTS / "papers" / "kernels"]

# Takes a source file, an architecture and further options, returns the cubin.
Compiler = Callable[[Path, str, tuple[str, ...]], bytes]


class CompilationError(Exception):
    """The compiler's own messages."""


def checked_text(path: Path) -> str:
    """Return a source with the assertions of what Python takes for granted about it."""
    return path.read_text(encoding="utf-8") + assertions(path.stem)


def folders(path: Path) -> tuple[str, ...]:
    """Return the folders of headers: the kernels' and the source's own."""
    return *include_options(), f"-I{path.parent}"


def find_nvcc() -> Compiler | None:
    """Return a compiler that runs nvcc, or None where there is none."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path=f"{home}/bin")
    if nvcc is None:
        return None

    def compile_source(path: Path, architecture: str, more: tuple[str, ...]) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            cubin, source = Path(folder) / "kernel.cubin", Path(folder) / path.name
            source.write_text(checked_text(path), encoding="utf-8")
            given = (option.replace(",", "\\,") for option in more)  # a comma is for nvcc the end of a value
            options = (*COMPILE_OPTIONS, *given, *folders(path), f"-arch={architecture}")
            command = [nvcc, "-cubin", "-o", str(cubin), *options, str(source)]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode != 0:
                raise CompilationError(run.stdout + run.stderr)
            return cubin.read_bytes()

    return compile_source


def nvrtc_libraries() -> list[Path]:
    """Return the NVRTC libraries of the installed wheels."""
    libraries = []
    for wheel in NVRTC_WHEELS:
        try:
            files = importlib.metadata.files(wheel) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found = (file for file in files if re.fullmatch(r"libnvrtc\.so\.\d+", file.name))
        libraries += [Path(str(file.locate())) for file in found]
    return libraries


def nvrtc_translator(library: Path) -> Callable[[str, str, tuple[str, ...], str], bytes]:
    """Return what has NVRTC make of a source, its name and options what is wanted, ``CUBIN`` or ``PTX``."""
    nvrtc = ctypes.CDLL(str(library))
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p

    def check(status: int) -> None:
        if status != 0:
            raise CompilationError(nvrtc.nvrtcGetErrorString(status).decode())

    def text(program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        check(getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        check(getattr(nvrtc, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw

    def translate(source: str, name: str, options: tuple[str, ...], what: str) -> bytes:
        program = ctypes.c_void_p()
        check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None))
        try:
            array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            if nvrtc.nvrtcCompileProgram(program, len(options), array) != 0:
                raise CompilationError(text(program, "ProgramLog").rstrip(b"\0").decode())
            return text(program, what)
        finally:
            nvrtc.nvrtcDestroyProgram(ctypes.byref(program))

    return translate


def nvrtc_compiler(library: Path) -> Compiler:
    """Return a compiler that calls NVRTC."""
    translate = nvrtc_translator(library)

    def compile_source(path: Path, architecture: str, more: tuple[str, ...]) -> bytes:
        options = (*NVRTC_OPTIONS, *more, *folders(path), f"-arch={architecture}")
        return translate(checked_text(path), path.name, options, "CUBIN")

    return compile_source


def compiled_entry_points(cubin: bytes) -> set[str]:
    """Return the names of the kernels in machine code: each has a section for its parameters."""
    return {name.decode() for name in re.findall(rb"\.nv\.constant0\.(\w+)\0", cubin)}


def check_source(path: Path, compilers: dict[str, Compiler]) -> list[str]:
    """Compile one file in every way and return what is wrong with it."""
    declared = kernels_in(path.read_text(encoding="utf-8"))
    if not declared:
        return [f"{path.name}: no __global__ function in it"]
    problems = []
    for compiler_name, compiler in compilers.items():
        for architecture in ARCHITECTURES:
            compiled: set[str] = set()  # by all options together: some leave out kernels
            for more in ((), *VARIANTS.get(path.stem, ())):
                where = f"{path.name}, {' '.join((architecture, *more))}, {compiler_name}"
                try:
                    compiled |= compiled_entry_points(compiler(path, architecture, more))
                except CompilationError as error:
                    problems.append(f"{where}: does not compile\n{error}")
            # A kernel that is not extern "C" is missing here too, for its name is mangled.
            if missing := declared - compiled:
                where = f"{path.name}, {architecture}, {compiler_name}"
                problems.append(f"{where}: missing in the machine code: {', '.join(sorted(missing))}")
    print(f"{path.name}: {', '.join(sorted(declared))}")
    return problems


def fail(message: str) -> int:
    """Print an error and return the exit status."""
    print(f"error: {message}", file=sys.stderr)
    return 1


def wanted_sources(arguments: list[str]) -> list[Path]:
    """Return the sources that are named, or all; an unknown name ends the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="SOURCE", help="by default all")
    given = {name.removesuffix(".cu") for name in parser.parse_args(arguments).names}
    sources = [kernels_directory() / "cuda" / f"{name}.cu" for name in source_names()]
    sources += [path for folder in BENCHMARKS for path in sorted(folder.glob("*.cu"))]
    if unknown := given - {path.stem for path in sources}:
        parser.error(f"no CUDA source {', '.join(sorted(unknown))} in {kernels_directory() / 'cuda'}")
    return [path for path in sources if not given or path.stem in given]


def main() -> int:
    """Check the sources; return the exit status."""
    sources = wanted_sources(sys.argv[1:])
    compilers = {f"NVRTC ({library.name})": nvrtc_compiler(library) for library in nvrtc_libraries()}
    if (nvcc := find_nvcc()) is not None:
        compilers["nvcc"] = nvcc
    if not compilers:
        return fail(f"no CUDA compiler: neither nvcc nor a wheel of NVRTC ({' or '.join(NVRTC_WHEELS)})")
    if not sources:
        return fail(f"no CUDA source in {kernels_directory() / 'cuda'}")
    print(f"compiling for {', '.join(ARCHITECTURES)} with {' and '.join(compilers)}", flush=True)
    problems = [problem for path in sources for problem in check_source(path, compilers)]
    for problem in problems:
        fail(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
