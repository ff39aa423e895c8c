"""Kernels that an installation brings compiled: what they were made of, and which of them a GPU runs.

A cubin is the machine code of one source, compiled with some options for one architecture. It serves a launch
only if it was made of the very text and options that would be compiled instead, so that edited sources never
run old code. Needs neither CuPy nor a GPU, and imports the standard library only, as a build does.
"""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rnsdask.backend.cuda import sources
from rnsdask.backend.cuda.variants import Defines, is_launched, variants_of

ARCHITECTURES = (80, 86, 89, 90, 100, 120)
"""Compute capabilities of the GPUs that packages bring kernels for: 90 for 9.0."""

_OF_TEGRA = frozenset({72, 87, 101, 110})
"""Compute capabilities of systems on a chip, which run no code of other GPUs."""

_MANIFEST = "manifest.json"

_DIGITS = 16
"""Digits of an identity in the name of a file."""


def options_of(defines: Defines) -> tuple[str, ...]:
    """Return all options of NVRTC for a source that is compiled with `defines`, but for the architecture."""
    return *sources.NVRTC_OPTIONS, *defines


@functools.cache
def identity_of(module: str, defines: Defines) -> str:
    """Return the SHA-256 of all that a cubin is made of: options, and the source with its headers."""
    return identity(sources.whole_source(module), options_of(defines))


def identity(text: str, options: Iterable[str]) -> str:
    """Return the SHA-256 of a source with its headers and of its options, as hexadecimal digits."""
    return hashlib.sha256("\0".join((*options, text)).encode()).hexdigest()


def declared_modules(architecture: int) -> list[tuple[str, Defines]]:
    """Return each source with each set of options that a build compiles for an architecture."""
    declared = ((name, defines) for name in sources.source_names() for defines in variants_of(name))
    return [module for module in declared if is_launched(*module, architecture)]


def architecture_for(capability: int, built: Iterable[int]) -> int | None:
    """Return the architecture whose code a GPU runs, of those `built`; None if there is none.

    Code for a compute capability runs on those of the same major version with the same or a higher minor one.
    """
    if capability in _OF_TEGRA:
        return capability if capability in built else None
    fits = [one for one in built if one // 10 == capability // 10 and one <= capability]
    return max((one for one in fits if one not in _OF_TEGRA), default=None)


@dataclass(frozen=True)
class Entry:
    """One source with one set of options.

    Attributes
    ----------
    identity : str
        SHA-256 of all that the code is made of.
    sizes : mapping of int to int
        Bytes of the cubin for each architecture that it was compiled for.
    """

    module: str
    defines: Defines
    identity: str
    sizes: Mapping[int, int]

    def is_current(self) -> bool:
        """Whether the source, its headers and the options are still those that were compiled."""
        try:
            return identity_of(self.module, self.defines) == self.identity
        except FileNotFoundError:  # the source is gone
            return False


@dataclass(frozen=True)
class Manifest:
    """The cubins of a folder.

    Attributes
    ----------
    folder : Path
        Where they are: ``sm_90/NAME.cubin``.
    nvrtc : (int, int) or None
        Version of the compiler that made them; None if there are none.
    entries : mapping of str to Entry
        By their identities.
    """

    folder: Path
    nvrtc: tuple[int, int] | None
    entries: Mapping[str, Entry]

    @property
    def architectures(self) -> list[int]:
        """Architectures for which there is code."""
        return sorted({one for entry in self.entries.values() for one in entry.sizes})

    def is_for_driver(self, driver: int) -> bool:
        """Whether a driver loads these cubins; its version is as CUDA writes it, 12090 for 12.9."""
        return self.nvrtc is not None and driver // 1000 >= self.nvrtc[0]

    def find(self, module: str, defines: Defines, capability: int, driver: int) -> Path | None:
        """Return the file of a module for a GPU of a compute capability; None if it is to be compiled."""
        if not self.entries or not self.is_for_driver(driver):
            return None
        entry = self.entries.get(identity_of(module, defines))
        if entry is None:
            return None
        architecture = architecture_for(capability, entry.sizes)
        return None if architecture is None else self.folder / file_name(entry, architecture)

    def write(self) -> None:
        """Write the list of the cubins into their folder."""
        content = {"nvrtc": self.nvrtc, "entries": [asdict(entry) for entry in self.entries.values()]}
        (self.folder / _MANIFEST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def file_name(entry: Entry, architecture: int) -> str:
    """Return the place of a cubin in the folder of all."""
    return f"sm_{architecture}/{entry.module}-{entry.identity[:_DIGITS]}.cubin"


def read_manifest(folder: Path) -> Manifest:
    """Read the list of the cubins in a folder; an empty one if there is none."""
    try:
        content = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Manifest(folder, None, {})
    entries = [
        Entry(
            entry["module"],
            tuple(entry["defines"]),
            entry["identity"],
            {int(architecture): size for architecture, size in entry["sizes"].items()},
        )
        for entry in content["entries"]
    ]
    major, minor = content["nvrtc"]
    return Manifest(folder, (major, minor), {entry.identity: entry for entry in entries})


@functools.cache
def installed() -> Manifest:
    """Return the cubins that came with this installation."""
    return read_manifest(sources.kernels_directory() / "cubin")
