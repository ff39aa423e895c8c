"""Compile every CUDA entry point, or those of some sources, on a machine with or without a GPU.

    python scripts/check_kernels.py            all
    python scripts/check_kernels.py matmul.cu  one, or several; the suffix may be left out

Each source in ``kernels/cuda``, and each that only benchmarks use, is compiled to machine code for sm_75,
sm_80 and sm_90: by nvcc, where there is one, and by NVRTC, which compiles the kernels on a user's machine,
where its wheel is installed (``nvidia-cuda-nvrtc-cu12`` or ``nvidia-cuda-nvrtc``). To have neither is a
failure, and so is a kernel of the source that the machine code lacks, or a structure that does not lie as the
dtype that Python fills (``rnsdask/backend/cuda/layout.py``).
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kernels"))

import argparse
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import nvrtc
from nvrtc import CompilationError, compiled_entry_points

from rnsdask.backend.cuda.layout import assertions
from rnsdask.backend.cuda.sources import (
    COMPILE_OPTIONS,
    NVRTC_OPTIONS,
    inline,
    kernels_directory,
    kernels_in,
    source_names,
)
from rnsdask.backend.cuda.variants import Defines, variants_of

ARCHITECTURES = ("sm_75", "sm_80", "sm_90")
MOST_VARIANTS = 3
"""Sets of options that a source is checked with, at most; a build compiles all."""

# Kernels that only benchmarks use; they are not installed.
SCRIPTS = Path(__file__).resolve().parent
BENCHMARKS = [SCRIPTS, SCRIPTS / "papers" / "kernels"]

# Takes a source file, an architecture and further options, returns the cubin.
Compiler = Callable[[Path, str, tuple[str, ...]], bytes]


def checked_text(path: Path) -> str:
    """Return a source with the assertions of what Python takes for granted about it."""
    return inline(path) + assertions(path.stem)


def checked_variants(name: str) -> list[Defines]:
    """Return no options, and of those that a build takes the first, the last and some between."""
    variants = variants_of(name)
    count = min(MOST_VARIANTS, len(variants))
    chosen = [variants[k * (len(variants) - 1) // max(1, count - 1)] for k in range(count)]
    return list(dict.fromkeys(((), *chosen)))


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
            options = (*COMPILE_OPTIONS, *given, f"-arch={architecture}")
            command = [nvcc, "-cubin", "-o", str(cubin), *options, str(source)]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode != 0:
                raise CompilationError(run.stdout + run.stderr)
            return cubin.read_bytes()

    return compile_source


def nvrtc_compiler(library: Path) -> Compiler:
    """Return a compiler that calls NVRTC."""
    compiler = nvrtc.NVRTC(library)

    def compile_source(path: Path, architecture: str, more: tuple[str, ...]) -> bytes:
        options = (*NVRTC_OPTIONS, *more, f"-arch={architecture}")
        return compiler.translate(checked_text(path), path.name, options, "CUBIN")

    return compile_source


def check_source(path: Path, compilers: dict[str, Compiler]) -> list[str]:
    """Compile one file in every way and return what is wrong with it."""
    declared = kernels_in(path.read_text(encoding="utf-8"))
    if not declared:
        return [f"{path.name}: no __global__ function in it"]
    problems = []
    for compiler_name, compiler in compilers.items():
        for architecture in ARCHITECTURES:
            compiled: set[str] = set()  # by all options together: some leave out kernels
            for more in checked_variants(path.stem):
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
    compilers = {f"NVRTC ({library.name})": nvrtc_compiler(library) for library in nvrtc.wheel_libraries()}
    if (nvcc := find_nvcc()) is not None:
        compilers["nvcc"] = nvcc
    if not compilers:
        return fail(f"no CUDA compiler: neither nvcc nor a wheel of NVRTC ({' or '.join(nvrtc.WHEELS)})")
    if not sources:
        return fail(f"no CUDA source in {kernels_directory() / 'cuda'}")
    print(f"compiling for {', '.join(ARCHITECTURES)} with {' and '.join(compilers)}", flush=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda path: check_source(path, compilers), sources))
    problems = list(itertools.chain.from_iterable(found))
    for problem in problems:
        fail(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
