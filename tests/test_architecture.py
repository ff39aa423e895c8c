"""The architecture, as the sources show it: who may import whom, and nothing without a user."""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rnsdask.backend import cuda_sources

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rnsdask"
KERNELS = ROOT / "kernels"

CUDA_SUBJECTS = ("arith", "checks", "conversion", "evaluation", "keyed", "matrix")

# From the bottom up. A module imports from the layers before its own only.
LAYERS = (
    ("_cpu", "_version", "coprime", "errors", "errstate", "messages", "backend.cuda_sources"),
    ("files", "readings"),
    ("joblog",),
    ("moduli", "integer_io", "syntax"),
    ("layout", "position", "scalar_int"),
    ("lazy_ints",),
    ("reference", "constants.factors"),
    ("constants.keys", "constants.mixed_radix", "constants.interval"),
    ("constants.mpint",),
    ("constants.arith", "constants.conversion", "constants.fixed_point"),
    ("constants",),
    ("backend.protocol",),
    ("backend.cpu", "backend.cuda.memory"),
    ("backend.cuda.launching",),
    tuple(f"backend.cuda.{subject}" for subject in CUDA_SUBJECTS),
    ("backend.cuda.mpint",),
    ("backend.cuda",),
    ("backend",),
    ("mixed_radix",),
    ("evaluate",),
    ("convert", "interval", "magnitude", "operands"),
    (
        "arith",
        "extend",
    ),
    ("contraction", "divide"),
    ("reductions",),
    ("compare",),
    ("bounds", "keys"),
    ("axis", "memory", "scan", "topk"),
    ("limits",),
    ("mpint.layout", "mpint.intervals"),
    ("mpint.arith",),
    ("mpint.compare", "mpint.divide", "mpint.proof", "mpint.reduce"),
    ("mpint.convert",),
    ("store.access", "store.chunk_files"),
    ("store.codecs", "store.location"),
    ("store.documents",),
    ("store.objects",),
    ("store.paths",),
    ("store.metadata", "store.device_files"),
    ("store.reading", "store.ownership"),
    ("store.replacing",),
    ("store.writing",),
    ("store.group", "store.plain"),
    ("store",),
    ("scheduler", "sources"),
    ("workers",),
    ("indexing", "tree", "elementwise", "division", "chunk_writing", "checked"),
    ("chunk_graphs", "matrix", "powers", "products", "tally"),
    ("number_array",),
    ("array",),
    ("comparison", "creation", "required_bits"),
    ("mpint.operations", "mpint.storage"),
    ("mpint.array",),
    ("mpint",),
    ("progress", "faults"),
    ("cluster", "plan", "recipe", "summary", "transfer"),
    ("expression",),
    ("run", "checkpoint"),
    ("job",),
    ("expression_job",),
    ("cli.interruption", "cli.printing"),
    ("cli.errors", "cli.streams"),
    ("cli.options",),
    ("cli.moduli", "cli.reductions", "cli.scans", "cli.selections", "cli.stores", "cli.transfer"),
    ("cli.evaluation",),
    ("cli",),
)
LEVEL = {module: level for level, layer in enumerate(LAYERS) for module in layer}

# The only users of a library, subpackages included: others reach it through them.
USERS = {
    "IPython": ("progress",),
    "click": ("cli",),
    "cupy": ("backend",),
    "dask": (
        *(
            "operands",
            "checked",
            "elementwise",
            "division",
            "chunk_graphs",
            "chunk_writing",
            "matrix",
            "powers",
        ),
        *(
            "products",
            "tally",
            "tree",
            "indexing",
            "lazy_ints",
            "number_array",
            "array",
            "creation",
            "mpint.operations",
            "mpint.storage",
        ),
        *(
            "mpint.array",
            "expression",
            "job",
            "expression_job",
            "cluster",
            "plan",
            "progress",
            "run",
            "summary",
            "workers",
        ),
    ),
    "dask_cuda": ("cluster",),
    "distributed": ("cluster", "limits", "plan", "progress", "run"),
    "fsspec": ("store",),
    "kvikio": ("store.device_files",),
    "numcodecs": ("store.codecs",),
    "obstore": ("store",),
    "rich": ("progress",),
    "zarr": ("store",),
}

TOP_LEVEL_FOLDERS = {".ci", "docs", "kernels", "pipelines", "rnsdask", "scripts", "tests"}


def module_name(path: Path) -> str:
    """``backend.cpu`` for ``rnsdask/backend/cpu.py``; empty for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def walk_executed(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below, function bodies included, except what only type checkers see."""
    yield node
    for_checkers = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    for child in node.orelse if for_checkers else ast.iter_child_nodes(node):
        yield from walk_executed(child)


def imported_names(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of all that a file imports, names taken from a module included."""
    for node in walk_executed(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def own_module(name: str) -> str | None:
    """The module of rnsdask that a dotted name belongs to, or None for another library's."""
    package, _, rest = name.partition(".")
    if package != "rnsdask":
        return None
    while rest and rest not in LEVEL:
        rest = rest.rpartition(".")[0]
    return rest


def python_files() -> list[Path]:
    folders = ("rnsdask", "tests", "scripts", "pipelines")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_every_module_has_a_layer() -> None:
    assert set(MODULES) - {""} == set(LEVEL) - {"_cpu"}  # the extension is no Python file


@pytest.mark.parametrize("module", [name for name in MODULES if name])
def test_imports_point_downwards(module: str) -> None:
    for line, name in imported_names(MODULES[module]):
        imported = own_module(name)
        if imported is None:
            continue
        assert imported, f"rnsdask/{module}:{line} imports from the package itself: {name}"
        assert LEVEL[imported] < LEVEL[module], (
            f"rnsdask/{module}:{line} imports {imported}, which is not below it"
        )


@pytest.mark.parametrize("library", USERS)
def test_libraries_have_one_way_in(library: str) -> None:
    allowed = tuple(f"{user}." for user in USERS[library])
    for module, path in MODULES.items():
        for line, name in imported_names(path):
            if f"{name}.".startswith(f"{library}."):
                assert f"{module}.".startswith(allowed), f"rnsdask/{module}:{line} imports {name}"


def test_only_the_backend_imports_the_extension() -> None:
    for path in python_files():
        for line, name in imported_names(path):
            if f"{name}.".startswith("rnsdask._cpu."):
                assert path == MODULES["backend.cpu"], f"{path}:{line} imports {name}"


def test_top_level_folders() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip(f"git cannot list the checkout: {listing.stderr.strip()}")
    folders = {line.partition("/")[0] for line in listing.stdout.splitlines() if "/" in line}
    assert folders <= TOP_LEVEL_FOLDERS


def string_pattern(node: ast.Constant | ast.JoinedStr) -> str:
    """What a string literal can be, as a regular expression: ``sum_\\w+`` for ``f"sum_{bits}"``."""
    if isinstance(node, ast.Constant):
        return re.escape(str(node.value))
    parts = (string_pattern(part) if isinstance(part, ast.Constant) else r"\w+" for part in node.values)
    return "".join(parts)


def test_every_cuda_kernel_has_a_caller() -> None:
    callers = [path for module, path in MODULES.items() if module.startswith("backend.cuda.")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in callers]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    literals = [node for node in nodes if isinstance(node, ast.Constant | ast.JoinedStr)]
    patterns = {string_pattern(node) for node in literals} - {r"\w+"}
    names = cuda_sources.source_names()
    assert names
    for name in names:
        kernels = cuda_sources.entry_points(name)
        assert kernels, f"{name}.cu defines no kernel"
        unused = {kernel for kernel in kernels if not any(re.fullmatch(p, kernel) for p in patterns)}
        assert not unused, f"no call of {unused}, of {name}.cu"


def test_one_module_takes_addresses() -> None:
    """Whose memory a launch reads is owned by what `launching.Parameter` made of it."""
    for module, path in MODULES.items():
        if module != "backend.cuda.launching":
            assert not re.search(
                r"\.data\.ptr\b|__cuda_array_interface__", path.read_text(encoding="utf-8")
            ), path


def test_every_cpu_kernel_has_a_caller() -> None:
    caller = MODULES["backend.cpu"].read_text(encoding="utf-8")
    called = set(re.findall(r"\b_cpu\.(\w+)", caller))
    bound = {
        name
        for path in KERNELS.glob("cpu/*.cpp")
        for name in re.findall(r"module\.def\(\s*\"(\w+)\"", path.read_text(encoding="utf-8"))
    }
    assert bound == called


def test_every_header_is_included() -> None:
    sources = [path for pattern in ("*.cu*", "*.?pp") for path in KERNELS.rglob(pattern)]
    included = {
        Path(name).name
        for path in sources
        for name in re.findall(r"#include\s+[<\"]([^>\"]+)", path.read_text(encoding="utf-8"))
    }
    headers = {path.name for path in sources if path.suffix in {".cuh", ".hpp"}}
    assert headers
    assert headers <= included
