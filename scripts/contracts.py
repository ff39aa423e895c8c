"""Figures of the contracts between packages, read from the sources of a checkout.

    python scripts/contracts.py [ROOT]

It counts rows of tables, names of rows that callers write as strings, ``isinstance`` of number systems
outside their own folders, adaptors in the tables, public functions of unknown result, and private names of
the package that tests reach for. Of the installed package, it counts the stays of a product: how often its
way changes the module.
"""

import ast
import operator
import sys
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from pkgutil import resolve_name
from types import CodeType, FrameType
from typing import Any

import rnsdask as rd

SYSTEMS = {"RNS", "IntervalRNS", "PrimeFields", "FermatField", "Positional"}
FOLDERS = ("rns", "interval_rns", "fields", "positional")
"""Folders of number systems."""

TRAITS = {"extends", "grows", "overflows"}
"""Attributes of number systems that say what kind of system it is."""

OF_ENTRIES = {"entry", "found.entry", "plan", "self"}
"""Owners of attributes of the same names that are no number systems."""

PLANNING = {"lazy/plan.py"}
"""The file that plans operations, and so may ask systems how results grow."""

CALLS = {
    "apply",
    "map_entry",
    "entry_of",
    "has",
    "by_table",
    "through_rns",
    "_apply",
    "_apply_shift",
    "_scan",
}
"""Functions whose first argument is a row."""


PARTLY_KNOWN = {
    "list[Any]",
    "NDArray[Any]",
    "PlainArray[Any]",
    "np.dtype[Any]",
    "NDArray[Any] | None",
    "dict[str, Any]",
}
"""Results whose elements alone are unknown."""


def trees(root: Path) -> dict[Path, ast.Module]:
    """The syntax of each file of the package, by its path in the package."""
    package = root / "rnsdask"
    files = sorted(package.rglob("*.py"))
    return {file.relative_to(package): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def declared_rows(files: dict[Path, ast.Module]) -> set[str]:
    """Names that ``core/rows.py`` declares; none where there is no such file."""
    tree = files.get(Path("core/rows.py"))
    functions = [node for node in (tree.body if tree else []) if isinstance(node, ast.FunctionDef)]
    return {f.name for f in functions if any("row" in ast.unparse(d) for d in f.decorator_list)}


def rows_as_strings(files: dict[Path, ast.Module]) -> Iterator[str]:
    """Strings that name rows in calls of the Dask half or of a system, and in looks into a table."""
    for path, tree in files.items():
        if path.parts[0] == "backend":
            continue
        for node in ast.walk(tree):
            named: ast.expr | None = None
            if isinstance(node, ast.Call) and node.args:
                function = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
                if function in CALLS and not _is_of_kernels(path, node.func):
                    named = node.args[0]
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith(".table"):
                named = node.slice
            elif isinstance(node, ast.Compare) and ast.unparse(node.comparators[-1]).endswith(".table"):
                named = node.left
            for part in ast.walk(named) if named is not None else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def _is_of_kernels(path: Path, function: ast.expr) -> bool:
    """Whether an `apply` is of kernels and of residues, whose operations core/operations.py lists."""
    if isinstance(function, ast.Attribute):
        owner = ast.unparse(function.value)
        return "kernels" in owner or owner in ("self", "arithmetic")
    return path.parts[0] in (*FOLDERS, "sparse")


def checks_of_systems(files: dict[Path, ast.Module]) -> Iterator[str]:
    """Places outside the folders of systems where ``isinstance`` asks for one."""
    for path, tree in files.items():
        if path.parts[0] in FOLDERS:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                names = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                if names & SYSTEMS:
                    yield f"{path}:{node.lineno}"


def questions_of_kind(files: dict[Path, ast.Module]) -> Iterator[str]:
    """Places outside the folders of systems that ask what kind of numbers there are, but for `isinstance`.

    By an attribute of :data:`TRAITS`, by ``hasattr`` of an attribute that systems or arrays of some kinds
    have, or by functions such as ``of_fields``.
    """
    members = set().union(*(_members(files, folder) for folder in FOLDERS)) - _members(files, "core")
    for path, tree in files.items():
        if path.parts[0] in (*FOLDERS, "core"):
            continue
        names = [a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names]
        imported = {"of_fields", "check_fields"} & {*names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in TRAITS and isinstance(node.ctx, ast.Load):
                found = ast.unparse(node.value) not in OF_ENTRIES
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "hasattr":
                named = node.args[1]
                found = isinstance(named, ast.Name) and named.id == "method"
                found |= isinstance(named, ast.Constant) and named.value in members
            else:
                found = isinstance(node, ast.Name) and node.id in imported
            if found:
                yield f"{path}:{node.lineno}"


def _members(files: dict[Path, ast.Module], folder: str) -> set[str]:
    """Names that the classes of number systems in a folder define."""
    paths = [
        p for p in files if p.parts[0] == folder and p.stem in ("system", "fermat_field", "number_system")
    ]
    classes = [node for path in paths for node in files[path].body if isinstance(node, ast.ClassDef)]
    names = {"extend"}
    for node in (part for found in classes for part in found.body):
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
    return names - ({"extend"} if folder == "core" else set())


def adaptors(files: dict[Path, ast.Module]) -> Iterator[str]:
    """Lambdas and functions of the tables, which adapt functions that stand elsewhere."""
    tables = [path for path in files if path.parts[0] == "tables" or path.name == "table.py"]
    for path in tables:
        for node in ast.walk(files[path]) if path != Path("core/table.py") else ():
            if isinstance(node, ast.Lambda | ast.FunctionDef):
                yield f"{path}:{node.lineno}"


def public_functions_of_any(root: Path, files: dict[Path, ast.Module]) -> Iterator[str]:
    """Public functions, of the package and of its public modules, that are said to return Any."""
    stub = ast.parse((root / "rnsdask" / "__init__.pyi").read_text(encoding="utf-8"))
    imported: dict[Path, set[str]] = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            module = imported.setdefault(Path(*node.module.split(".")), set())
            module.update(alias.name for alias in node.names)
    for module in (Path("linalg.py"), Path("poly.py"), Path("sparse/__init__.py")):
        for path, names in _exported(files[module]).items():
            imported.setdefault(path or module.with_suffix(""), set()).update(names)
    for path, tree in files.items():
        public = imported.get(path.with_suffix(""), set())
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name in public and _is_unknown(node.returns):
                yield f"{path}:{node.name}"


def _exported(tree: ast.Module) -> dict[Path | None, set[str]]:
    """The names of a module's ``__all__``, by the modules of the package that it has them from."""
    found: dict[Path | None, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            found[None] = set(ast.literal_eval(node.value))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rnsdask."):
            module = Path(*str(node.module).split(".")[1:])
            found[module] = {alias.name for alias in node.names}
    exported = found.pop(None, set())
    return {None: exported, **{path: names & exported for path, names in found.items()}}


def public_methods_of_any(root: Path, files: dict[Path, ast.Module]) -> Iterator[str]:
    """Methods of public classes, and of their bases here, that are said to return Any."""
    classes = {
        node.name: (path, node)
        for path, tree in files.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    stub = ast.parse((root / "rnsdask" / "__init__.pyi").read_text(encoding="utf-8"))
    waiting = [alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    seen = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in classes:
            continue
        seen.add(name)
        path, node = classes[name]
        waiting += [ast.unparse(base).partition("[")[0] for base in node.bases]
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                is_known = method.returns is not None and ast.unparse(method.returns) in PARTLY_KNOWN
                if _is_unknown(method.returns) and not is_known:
                    yield f"{path}:{name}.{method.name}"


def _is_unknown(returned: ast.expr | None) -> bool:
    return returned is None or any(
        isinstance(part, ast.Name) and part.id in ("Any", "Numbers") for part in ast.walk(returned)
    )


OF_OTHERS = {
    *("_core", "_exit", "_meta", "_multiarray_umath", "_repr_html_", "_repr_inline_", "_strip_protocol"),
}
"""Names with an underscore that other libraries give, or look for in classes."""


def private_names_in_tests(root: Path) -> Iterator[str]:
    """Private names of the package that tests import, patch, or take of what is not their own object."""
    for path in sorted((root / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if any(map(_is_private, _names_reached(node))):
                yield f"{path.relative_to(root)}:{node.lineno}"


def _names_reached(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "rnsdask":
        return [*(node.module or "").split("."), *(alias.name for alias in node.names)]
    if isinstance(node, ast.Import):
        names = [alias.name.split(".") for alias in node.names]
        return [part for parts in names if parts[0] == "rnsdask" for part in parts]
    if isinstance(node, ast.Attribute):
        is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        return [] if is_own else [node.attr]
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in PATCHES:
        texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        return [part for text in texts for part in text.split(".")]
    return []


PATCHES = {"setattr", "delattr", "getattr", "hasattr"}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OF_OTHERS


def stays(call: Callable[[], Any]) -> list[str]:
    """The modules of the package that a call visits, each as often as its way comes there from another.

    Functions and methods count as they are entered, all but comprehensions, attributes and special methods.
    """
    package, entered = Path(rd.__file__).parent, []

    def enter(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(package):
            module = frame.f_globals["__name__"]
            if _is_place(module, frame.f_code):
                entered.append(module)

    for _ in range(2):  # what is made once is no part of the way
        call()
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [module for module, _ in groupby(entered)]


def _is_place(module: str, code: CodeType) -> bool:
    if code.co_name.startswith(("<", "__")) and code.co_name != "__init__":
        return False
    if "<locals>" in code.co_qualname:
        return True
    return not isinstance(resolve_name(f"{module}:{code.co_qualname}"), property | cached_property)


def products() -> dict[str, Callable[[], Any]]:
    """Products of two arrays of 64 numbers in memory, by what their numbers are."""
    system = rd.ModuliSet.for_bits(512)
    makers: dict[str, Callable[[list[int]], Any]] = {
        "residues": lambda values: rd.from_ints(values, system),
        "limbs": lambda values: rd.from_ints(values, rd.Positional(512)),
    }
    values = [2**200 - k for k in range(64)]
    pairs = {name: (make(values), make(values[::-1])) for name, make in makers.items()}
    return {name: partial(operator.mul, x, y) for name, (x, y) in pairs.items()}


def main() -> None:
    """Print the figures."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    files = trees(root)
    declared, strings = declared_rows(files), list(rows_as_strings(files))
    undeclared = sorted(set(strings) - declared)
    kinds = list(questions_of_kind(files))
    planned = [place for place in kinds if place.rpartition(":")[0] in PLANNING]
    asked = [place for place in kinds if place not in planned]
    for name, value in {
        "rows declared": len(declared),
        "rows named by strings": f"{len(set(strings))} names at {len(strings)} places",
        "of these undeclared": f"{len(undeclared)} {' '.join(undeclared)}",
        "isinstance of systems outside their folders": len(list(checks_of_systems(files))),
        "other questions of their kind": f"{len(asked)}, {len(planned)} more where operations are planned",
        "adaptors and lambdas in the tables": len(list(adaptors(files))),
        "public functions that return Any": len(list(public_functions_of_any(root, files))),
        "public methods that return Any": len(list(public_methods_of_any(root, files))),
        "private names that tests reach for": len(list(private_names_in_tests(root))),
        **{f"stays of x*y, {name}": _stays_and_rooms(call) for name, call in products().items()},
    }.items():
        print(f"{name:45} {value}")


def _stays_and_rooms(call: Callable[[], Any]) -> str:
    visited = stays(call)
    return f"{len(visited)} in {len(set(visited))} modules"


if __name__ == "__main__":
    main()
