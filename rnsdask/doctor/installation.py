"""Checks of what is installed: versions, extras, and the compiled extension."""

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from rnsdask._version import __version__
from rnsdask.doctor.findings import Finding, fault, warning

SHOWN = ("numpy", "dask", "distributed", "zarr", "numcodecs", "gmpy2")
"""Packages whose versions are shown: those that decide results, speed, or whether workers agree."""

SHOWN_WITH_GPUS = ("cupy-cuda12x", "cupy-cuda13x", "cupy", "dask-cuda")
"""Packages whose versions are shown where they are installed."""

EXTRAS = {
    "http": "stores on HTTP servers",
    "s3": "stores on S3",
    "gs": "stores on Google Cloud Storage",
    "obstore": "Zarr's ObjectStore",
    "pandas": "x.to_pandas()",
    "parquet": "Parquet and Arrow",
    "plot": "pictures of numbers",
    "zstd": "text compressed by Zstandard",
}
"""Use of each extra of the package; those for GPUs are for :mod:`rnsdask.doctor.gpus`."""


def installed_version(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def requirements(extra: str = "") -> list[Requirement]:
    """Return the packages that rnsdask, or one of its extras, needs on this platform."""
    declared = map(Requirement, requires("rnsdask") or [])
    return [
        needed
        for needed in declared
        if ("extra" in str(needed.marker or "")) == bool(extra)
        and (needed.marker is None or needed.marker.evaluate({"extra": extra}))
    ]


def unmet(needed: list[Requirement]) -> list[str]:
    """Name the requirements that no installed package meets, with what is there instead."""
    missing = []
    for requirement in needed:
        found = installed_version(requirement.name)
        if found is None or not requirement.specifier.contains(found, prereleases=True):
            missing.append(f"{requirement.name}{requirement.specifier} ({found or 'missing'})")
    return missing


def check_versions() -> Iterator[Finding]:
    """Check that what rnsdask needs is there, in versions that it takes."""
    python = platform.python_version()
    named = f"{__version__}, on Python {python}, {platform.system()} {platform.machine()}"
    yield Finding("rnsdask", named, facts={"version": __version__, "python": python})
    versions = {package: installed_version(package) for package in (*SHOWN, *SHOWN_WITH_GPUS)}
    found = {package: text for package, text in versions.items() if text is not None}
    shown = ", ".join(f"{package} {text}" for package, text in found.items())
    if missing := unmet(requirements()):
        wanted = f"{shown}; rnsdask needs {', '.join(missing)}"
        yield fault("packages", wanted, f'pip install "rnsdask=={__version__}"', versions=found)
    else:
        yield Finding("packages", shown, facts={"versions": found})


def check_extras() -> Iterator[Finding]:
    """Say which extras are installed, and what the others would bring."""
    missing = [extra for extra in EXTRAS if unmet(requirements(extra))]
    installed = [extra for extra in EXTRAS if extra not in missing]
    text = f"{', '.join(installed) or 'none'} installed"
    if missing:
        text += "; not " + ", ".join(f"{extra} ({EXTRAS[extra]})" for extra in missing)
    yield Finding("extras", text, facts={"installed": installed, "missing": missing})


def check_extension() -> Iterator[Finding]:
    """Check that the compiled extension can be imported, and name the instruction sets that it uses."""
    try:
        from rnsdask.backend.cpu.polynomials import transform_methods
        from rnsdask.backend.cpu.positional import positional_methods
    except ImportError as error:
        way = f'pip install --force-reinstall --no-deps "rnsdask=={__version__}"'
        yield fault("extension", str(error), way)
        return
    names = {"avx2": "AVX2", "avx512": "AVX-512", "ifma": "AVX-512 IFMA"}
    methods = dict.fromkeys([*transform_methods(), *positional_methods()])
    sets = [names[method] for method in methods if method in names]
    if sets:
        yield Finding("extension", f"compiled, uses {', '.join(sets)}", facts={"instruction_sets": sets})
    elif platform.machine() in ("x86_64", "AMD64"):
        yield warning(
            "extension",
            "compiled, and this processor says that it has no AVX2: products and transforms are slow",
            "let a virtual machine pass the host's processor on (QEMU: -cpu host)",
            instruction_sets=sets,
        )
    else:
        yield Finding("extension", "compiled, portable", facts={"instruction_sets": sets})
