"""The architecture, as the sources show it: who may import whom, and nothing without a user."""

import ast
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from contracts import private_names_in_tests

from rnsdask.backend.cuda import sources as cuda_sources

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rnsdask"
KERNELS = ROOT / "kernels"

# From the bottom up. A module imports from its own package and from those before it only, in no circle.
PACKAGES = (
    "typing",
    "core",
    "constants",
    "backend",
    "rns",
    "interval_rns",
    "fields",
    "positional",
    "io",
    "store",
    "cluster",
    "lazy",
    "tables",
    "arrays",
    "linalg",
    "poly",
    "sparse",
    "expressions",
    "jobs",
    "doctor",
    "worker",
    "cli",
    "__main__",
)

# The only users of a library: others reach it through them.
USERS = {
    "IPython": ("arrays.showing",),
    "click": ("cli",),
    "cupy": ("backend",),
    "dask": ("cluster", "lazy", "arrays", "sparse", "expressions", "jobs", "doctor.machine"),
    "dask_cuda": ("cluster.gpu_cluster",),
    "distributed": ("cluster", "jobs", "doctor.cluster"),
    "fsspec": ("store",),
    "matplotlib": ("arrays.showing",),
    "numcodecs": ("store.codecs",),
    "obstore": ("store",),
    "pandas": ("arrays.tables",),
    "pyarrow": ("io.arrow",),
    "pynvml": ("doctor.nvml",),
    "rich": ("jobs.progress", "cli.printing", "cli.doctor", "cli.kernels"),
    "rmm": ("backend",),
    "zarr": ("store",),
}

FOLDERS_OF_SERVICES = {".ci", ".github"}
TOP_LEVEL_FOLDERS = {"deploy", "docs", "kernels", "notebooks", "pipelines", "rnsdask", "scripts", "tests"}


def module_name(path: Path) -> str:
    """``rns.scan`` for ``rnsdask/rns/scan.py``; empty for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def walk_executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node of a tree, function bodies included, except what only type checkers see."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for_checkers = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        waiting.extend(node.orelse if for_checkers else ast.iter_child_nodes(node))


@cache
def imported_names(path: Path) -> list[tuple[int, str]]:
    """Line and dotted name of all that a file imports, names taken from a module included."""
    found = []
    for node in walk_executed(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def own_module(name: str) -> str | None:
    """The module of rnsdask that a dotted name belongs to, or None for another library's."""
    package, _, rest = name.partition(".")
    if package != "rnsdask":
        return None
    while rest and rest not in MODULES:
        rest = rest.rpartition(".")[0]
    return rest


def own_imports(module: str) -> Iterator[tuple[int, str]]:
    """Line and name of each module of rnsdask that one imports; the extension is no Python file."""
    for line, name in imported_names(MODULES[module]):
        imported = own_module(name)
        if imported is not None and imported != module and not name.startswith("rnsdask._cpu"):
            yield line, imported


def python_files() -> list[Path]:
    folders = ("rnsdask", "tests", "scripts", "pipelines")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_every_module_is_in_a_package() -> None:
    assert {module.partition(".")[0] for module in MODULES} - {"", "_version"} == set(PACKAGES)


@pytest.mark.parametrize("module", [name for name in MODULES if name])
def test_imports_point_downwards(module: str) -> None:
    package = module.partition(".")[0]
    allowed = {"_version", *PACKAGES[: PACKAGES.index(package) + 1]} if package in PACKAGES else set()
    for line, imported in own_imports(module):
        assert imported.partition(".")[0] in allowed, f"rnsdask/{module}:{line} imports {imported or 'all'}"


IMPORTERS = {"import_module", "resolve_name", "__import__"}
FINDERS = {"core.table", "core.number_system"}
"""Modules that find number systems and their tables by the names that they have for them."""

OF_VERSIONS = "cluster.workers"
"""The module that asks workers for the version of the whole package."""


@pytest.mark.parametrize("module", [name for name in MODULES if name and name not in FINDERS])
def test_imports_by_name_point_downwards(module: str) -> None:
    """A module that is not to be imported is not to be found by its name either."""
    package = module.partition(".")[0]
    allowed = {"", "_version", *PACKAGES[: PACKAGES.index(package) + 1]} if package in PACKAGES else {""}
    for node in walk_executed(tree_of(MODULES[module])):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in IMPORTERS:
            name = node.args[0]
            assert isinstance(name, ast.Constant), f"{module}:{node.lineno} imports {ast.unparse(name)}"
            if (imported := own_module(str(name.value))) is not None:
                assert imported or module == OF_VERSIONS, f"{module}:{node.lineno} imports the whole package"
                assert imported.partition(".")[0] in allowed, f"{module}:{node.lineno} imports {imported}"


def test_no_imports_in_a_circle() -> None:
    graph = {module: {imported for _, imported in own_imports(module)} for module in MODULES if module}
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


@pytest.mark.parametrize("library", USERS)
def test_libraries_have_one_way_in(library: str) -> None:
    allowed = tuple(f"{user}." for user in USERS[library])
    for module, path in MODULES.items():
        for line, name in imported_names(path):
            if f"{name}.".startswith(f"{library}."):
                assert f"{module}.".startswith(allowed), f"rnsdask/{module}:{line} imports {name}"


NUMBERS = (ast.Constant, ast.BinOp)
LIKE_ANOTHER = {f"np.{name}_like" for name in ("empty", "zeros", "ones", "full")}


@pytest.mark.parametrize("package", ["rns", "interval_rns", "fields", "positional", "lazy", "backend.cuda"])
def test_arrays_of_a_gpu_meet_no_function_that_refuses_them(package: str) -> None:
    """These functions do not ask their argument's type, and CuPy's arrays refuse to become NumPy's."""
    refusing = re.compile(r"\bnp\.(ascontiguousarray|asfortranarray|require)\(")
    of_the_host = {"rns.values"}  # which knows what it has
    for module, path in MODULES.items():
        if module.startswith(f"{package}.") and module not in of_the_host:
            assert not refusing.search(path.read_text(encoding="utf-8")), path


def test_arrays_like_others_but_of_another_shape_are_in_c_order() -> None:
    """CuPy 13 takes memory for the size of one that is no block in memory, and Fortran order for some.

    And CuPy 14 takes 0 and () for no shape at all, so that arrays have the other's.
    """
    for module, path in MODULES.items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in LIKE_ANOTHER:
                given = {keyword.arg: keyword.value for keyword in node.keywords}
                assert "shape" not in given or "order" in given, f"{module}:{node.lineno}"
                shape = given.get("shape")
                may_be_none = shape.elts == [] if isinstance(shape, ast.Tuple) else isinstance(shape, NUMBERS)
                assert not may_be_none, f"{module}:{node.lineno}"


def test_only_the_backend_imports_the_extension() -> None:
    for path in python_files():
        if "_cpu" not in path.read_text(encoding="utf-8"):  # the quickest answer for most
            continue
        for line, name in imported_names(path):
            if f"{name}.".startswith("rnsdask._cpu."):
                assert path == MODULES["backend.cpu.extension"], f"{path}:{line} imports {name}"


@pytest.mark.parametrize(
    "path", [p for p in MODULES.values() if "{" in p.read_text(encoding="utf-8")], ids=module_name
)
def test_no_key_of_a_table_stands_twice(path: Path) -> None:
    """The later entry would win. Ruff's F601 sees literal keys, but not those of joined parts."""
    for statement in tree_of(path).body:
        shown = getattr(statement, "value", None)
        if isinstance(shown, ast.Dict) and None in shown.keys:
            module = vars(pytest.importorskip(f"rnsdask.{module_name(path)}"))  # some import CuPy
            names = [
                name
                for key, value in zip(shown.keys, shown.values, strict=True)
                for name in (_value_of(value, module) if key is None else [_value_of(key, module)])
            ]
            assert [name for name, count in Counter(names).items() if count > 1] == [], statement.lineno


def _value_of(expression: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(expression), "table", "eval"), names)


def test_oracles_import_nothing_of_the_package() -> None:
    for path in (ROOT / "tests" / "oracles").glob("*.py"):
        for line, name in imported_names(path):
            assert own_module(name) is None, f"{path}:{line} imports {name}"


def test_tests_reach_for_no_private_name() -> None:
    assert list(private_names_in_tests(ROOT)) == []


def test_top_level_folders() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip(f"git cannot list the checkout: {listing.stderr.strip()}")
    folders = {line.partition("/")[0] for line in listing.stdout.splitlines() if "/" in line}
    assert folders <= TOP_LEVEL_FOLDERS | FOLDERS_OF_SERVICES


def string_pattern(node: ast.Constant | ast.JoinedStr) -> str:
    """Regular expression of the values of a string literal: ``sum_\\w+`` for ``f"sum_{bits}"``."""
    if isinstance(node, ast.Constant):
        return re.escape(str(node.value))
    parts = (string_pattern(part) if isinstance(part, ast.Constant) else r"\w+" for part in node.values)
    return "".join(parts)


def test_every_cuda_kernel_has_a_caller() -> None:
    callers = [path for module, path in MODULES.items() if module.startswith("backend.cuda.")]
    nodes = [node for path in callers for node in ast.walk(tree_of(path))]
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
    callers = [path for module, path in MODULES.items() if module.startswith("backend.cpu.")]
    called = {
        name for path in callers for name in re.findall(r"\b_cpu\.(\w+)", path.read_text(encoding="utf-8"))
    }
    bound = {
        name
        for path in KERNELS.glob("cpu/*.cpp")
        for name in re.findall(
            r"(?:module\.def\(|nb::class_<\w+>\(module,)\s*\"(\w+)\"", path.read_text(encoding="utf-8")
        )
    }
    assert bound == called


def test_assembly_of_several_instructions_writes_early() -> None:
    """Else the compiler may take a register that is written for an input, too, which has the same value."""
    found = 0
    for path in (path for pattern in ("*.cu", "*.cuh") for path in KERNELS.rglob(pattern)):
        for text in re.findall(r"\basm(?: volatile)?\((.*?)\);", path.read_text(encoding="utf-8"), re.DOTALL):
            instructions = re.findall(r'"([^"]*;[^"]*)"', text)
            if sum(instruction.count(";") for instruction in instructions) > 1:
                outputs = re.findall(r'"([=+]&?)\w"', text)
                found += len(outputs)
                assert {constraint[1:] for constraint in outputs} <= {"&"}, f"{path.name}: {text}"
    assert found


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
