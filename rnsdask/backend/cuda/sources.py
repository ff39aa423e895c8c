"""Paths and compiler options of the CUDA sources; needs neither CuPy nor a GPU."""

import functools
import re
from collections.abc import Iterator
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


def header_directories() -> tuple[Path, ...]:
    """Return the folders of headers: of ``<rns/NAME.cuh>``, which the host has too, and CUDA's."""
    return tuple(kernels_directory() / folder for folder in ("include", "cuda"))


def source(name: str) -> str:
    """Return the text of ``cuda/<name>.cu``.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    return (kernels_directory() / "cuda" / f"{name}.cu").read_text(encoding="utf-8")


@functools.cache
def whole_source(name: str) -> str:
    """Return the text of ``cuda/<name>.cu`` with its headers in it, as :func:`inline` does.

    It is all that a compiler needs, so that neither options nor caches hold the place of an installation.
    """
    return inline(kernels_directory() / "cuda" / f"{name}.cu")


def inline(path: Path) -> str:
    """Return the text of a source in which each header stands at its first ``#include``, once.

    ``#line`` keeps files and lines of the compiler's messages: files by their paths below the kernels'
    folder, or their names elsewhere. Headers that are in no folder of :func:`header_directories`, nor beside
    the file that includes them, stay ``#include``.
    """
    return "\n".join(_lines(path, set())) + "\n"


_INCLUDE = re.compile(r"\s*#\s*include\s*([<\"])([^>\"]+)[>\"]")


def _lines(path: Path, seen: set[Path]) -> Iterator[str]:
    root = kernels_directory()
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    yield f'#line 1 "{name}"'
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip() == "#pragma once":
            yield ""
        elif (included := _INCLUDE.match(line)) is None:
            yield line
        else:
            beside = (path.parent,) if included[1] == '"' else ()
            places = (folder / included[2] for folder in (*beside, *header_directories()))
            header = next((place for place in places if place.is_file()), None)
            if header is None:
                yield line
            elif header in seen:
                yield ""
            else:
                seen.add(header)
                yield from _lines(header, seen)
                yield f'#line {number + 1} "{name}"'


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
