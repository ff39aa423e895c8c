"""Paths and compiler options of the CUDA sources; needs neither CuPy nor a GPU."""

import functools
import hashlib
import re
from pathlib import Path

COMPILE_OPTIONS: tuple[str, ...] = ("-std=c++17", "--fmad=false")
"""Options of every kernel for any CUDA compiler, besides the include folder.

No fused multiply-add of the compiler's choice: each rounding happens where the source writes it, as on the
host.
"""

NVRTC_OPTIONS: tuple[str, ...] = (*COMPILE_OPTIONS, "--device-int128")
"""Compiler options for NVRTC, where 128-bit integers are an option; nvcc has them by default."""


@functools.cache
def kernels_directory() -> Path:
    """Return the folder that holds ``include/`` and ``cuda/``.

    It is ``rnsdask/kernels`` in an installed package, and ``kernels`` beside the package in a checkout (an
    editable install runs from there, so that it always compiles the sources being edited). FileNotFoundError
    if neither folder exists, which only a broken installation can cause.
    """
    package = Path(__file__).resolve().parents[2]
    candidates = (package / "kernels", package.parent / "kernels")
    for candidate in candidates:
        if (candidate / "cuda").is_dir() and (candidate / "include").is_dir():
            return candidate
    raise FileNotFoundError(
        f"the CUDA sources are missing from this installation of rnsdask: looked for include/ and cuda/ in "
        f"{' and '.join(map(str, candidates))}"
    )


def include_options() -> tuple[str, ...]:
    """Return options that name the folders of headers, the host's too: ``<rns/NAME.cuh>``, and CUDA's."""
    return tuple(f"-I{kernels_directory() / folder}" for folder in ("include", "cuda"))


def source(name: str) -> str:
    """Return the text of ``cuda/<name>.cu``.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    return (kernels_directory() / "cuda" / f"{name}.cu").read_text(encoding="utf-8")


def source_names() -> list[str]:
    """Return the name of each CUDA source, as :func:`source` takes it."""
    return sorted(path.stem for path in (kernels_directory() / "cuda").glob("*.cu"))


def entry_points(name: str) -> frozenset[str]:
    """Return the names of the kernels that ``cuda/<name>.cu`` defines."""
    return kernels_in(source(name))


def listed(name: str) -> list[str]:
    """Return the entries of a list of operations in ``include/rns/operations.cuh``, as they are written.

    Raises
    ------
    KeyError
        If there is no such list.
    """
    header = (kernels_directory() / "include" / "rns" / "operations.cuh").read_text(encoding="utf-8")
    found = re.search(rf"#define {name}\(X\)((?:.*\\\n)*.*)\n", header)
    if found is None:
        raise KeyError(name)
    return re.findall(r"X\((.*)\)", found[1])


def kernels_in(text: str) -> frozenset[str]:
    """Return the names of the kernels that a CUDA source defines, those that lists expand to included."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL).replace("\\\n", " ")
    for macro, body in re.findall(r"#define (\w+)\(name\b[^)]*\)(.*)", code):
        for operations in re.findall(rf"^(\w+)\({macro}\)", code, flags=re.MULTILINE):
            for entry in listed(operations):
                code += body.replace("name##", entry.partition(",")[0])
    code = re.sub(r"__launch_bounds__\s*\([^)]*\)", " ", code)
    # Macros may stand before the name.
    return frozenset(re.findall(r"__global__\s+void\s+(?:[A-Z_]+\s+)*(\w+)\s*\(", code))


@functools.cache
def sources_digest() -> str:
    """Return the SHA-256 of every header, as 64 hexadecimal digits.

    CuPy's cache of compiled kernels is keyed by the source text and the options, not by the headers. Compile
    with ``-DRNS_SOURCES=<digest>``, and it sees a changed header.
    """
    root = kernels_directory()
    digest = hashlib.sha256()
    files = (path for folder in ("cuda", "include") for path in (root / folder).rglob("*.cuh"))
    for path in sorted(files, key=lambda path: path.relative_to(root).as_posix()):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(text)}\0".encode())
        digest.update(text)
    return digest.hexdigest()
