"""Compile the CUDA sources for GPUs beforehand, so that none is compiled on the machine of a user.

    python kernels/build_cubins.py OUTPUT    what CMake runs in a build: cubins and their list, in OUTPUT

RNSDASK_CUDA_ARCHITECTURES says for which GPUs: "80;90", or "all" for those of `cubins.ARCHITECTURES`. Without
it, or with "none", none is compiled: an architecture takes four minutes of a processor. NVRTC is that of a
wheel (nvidia-cuda-nvrtc-cu12), or of a CUDA toolkit. What was compiled before, of the same text, is kept in
OUTPUT's sibling ``kept``. It imports the standard library only, and of the package what does so too.
"""

# ruff: noqa: E402  (paths and packages come first)

import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "kernels"))

if __name__ == "__main__":  # the package itself needs libraries that a build lacks
    for name in ("rnsdask", "rnsdask.backend", "rnsdask.backend.cuda"):
        package = types.ModuleType(name)
        package.__path__ = [str(ROOT.joinpath(*name.split(".")))]
        sys.modules[name] = package

import hashlib
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from nvrtc import NVRTC, WHEELS, CompilationError, compiled_entry_points, find_library

from rnsdask.backend.cuda import cubins, sources
from rnsdask.backend.cuda.variants import Defines

VARIABLE = "RNSDASK_CUDA_ARCHITECTURES"

Task = tuple[str, Defines, int]
"""A source, options, and an architecture."""


def wanted_architectures(text: str) -> tuple[int, ...]:
    """Return the architectures that the variable names. ValueError if it is wrong."""
    if text.strip().lower() in ("", "none"):
        return ()
    if text.strip().lower() == "all":
        return cubins.ARCHITECTURES
    names = [name.strip().removeprefix("sm_") for name in text.split(";")]
    if not all(name.isdecimal() for name in names):
        raise ValueError(f"{VARIABLE} is a list such as 80;90, or all, or none, got {text!r}")
    return tuple(sorted(set(map(int, names))))


def compile_task(compiler: NVRTC, task: Task) -> bytes:
    """Compile one source. CompilationError says which it was, also if a kernel is missing."""
    module, defines, architecture = task
    options = (*cubins.options_of(defines), f"-arch=sm_{architecture}")
    try:
        cubin = compiler.translate(sources.whole_source(module), f"{module}.cu", options, "CUBIN")
    except CompilationError as error:
        raise CompilationError(f"{module}.cu for sm_{architecture}, {' '.join(defines)}:\n{error}") from None
    if not compiled_entry_points(cubin):
        raise CompilationError(f"{module}.cu for sm_{architecture}, {' '.join(defines)}: no kernel in it")
    return cubin


def build(
    output: Path, kept: Path, compiler: NVRTC, architectures: Iterable[int], only: str | None = None
) -> cubins.Manifest:
    """Compile all modules, or one source `only`, into an empty folder, on all processors; return their list.

    `kept` is a folder of what earlier builds compiled, by this compiler or another version.
    """
    tasks = [(*m, a) for a in architectures for m in cubins.declared_modules(a) if only in (None, m[0])]
    kept.mkdir(parents=True, exist_ok=True)
    used = set()

    def make(task: Task) -> int:
        module, defines, architecture = task
        entry = cubins.Entry(module, defines, cubins.identity_of(module, defines), {})
        key = f"{entry.identity} {compiler.version} {architecture}"
        before = kept / f"{hashlib.sha256(key.encode()).hexdigest()}.cubin"
        if not before.exists():
            unfinished = before.with_suffix(".new")
            unfinished.write_bytes(compile_task(compiler, task))
            unfinished.replace(before)
        used.add(before)
        target = output / cubins.file_name(entry, architecture)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(before, target)
        return target.stat().st_size

    with ThreadPoolExecutor(processors()) as pool:
        sizes = list(pool.map(make, tasks))
    for path in set(kept.iterdir()) - used:
        path.unlink()
    found: dict[tuple[str, Defines], dict[int, int]] = defaultdict(dict)
    for (module, defines, architecture), size in zip(tasks, sizes, strict=True):
        found[module, defines][architecture] = size
    entries = [cubins.Entry(*one, cubins.identity_of(*one), sizes) for one, sizes in found.items()]
    manifest = cubins.Manifest(output, compiler.version, {entry.identity: entry for entry in entries})
    manifest.write()
    return manifest


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main(output: Path) -> int:
    """Fill the folder, which is empty where nothing is compiled; return the exit status."""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    try:
        wanted = wanted_architectures(os.environ.get(VARIABLE, ""))
    except ValueError as error:
        return fail(str(error))
    if not wanted:
        print(f"CUDA kernels will be compiled at first use, for {VARIABLE} names no GPUs")
        return 0
    library = find_library()
    if library is None:
        return fail(
            f"{VARIABLE} asks for kernels, and there is no NVRTC: install a wheel ({' or '.join(WHEELS)}) "
            "or name a CUDA toolkit in CUDA_HOME"
        )
    try:
        compiler = NVRTC(library)
        if unknown := set(wanted).difference(compiler.architectures):
            version = ".".join(map(str, compiler.version))
            names = ", ".join(f"sm_{one}" for one in sorted(unknown))
            return fail(f"{VARIABLE}: NVRTC {version} does not compile for {names}")
        manifest = build(output, output.parent / "kept", compiler, wanted)
    except (CompilationError, OSError) as error:
        return fail(f"the CUDA kernels do not compile, by {library}: {error}")
    total = sum(size for entry in manifest.entries.values() for size in entry.sizes.values())
    names = ", ".join(f"sm_{one}" for one in manifest.architectures)
    print(f"compiled {len(manifest.entries)} CUDA modules for {names}: {total / 1e6:.1f} MB")
    return 0


def fail(message: str) -> int:
    """Print an error and return the exit status."""
    print(f"error: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
