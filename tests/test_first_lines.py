"""First lines of docstrings: they name the thing, or say what a function does, and can be read alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("rnsdask", "scripts", "pipelines", "tests")
REFUSED = ("Of", "Those", "What", "The same", "Such", "As", "Have", "Tell", "Where")


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines and texts of docstrings, and of the strings below constants and attributes."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        value = getattr(node, "value", None)
        if isinstance(node, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield node.lineno, value.value
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):  # no expressions: they hold none
            waiting += getattr(node, name, [])


@pytest.mark.parametrize("folder", FOLDERS)
def test_first_lines_can_be_read_alone(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in docstrings(ast.parse(path.read_text(encoding="utf-8")))
        if text.startswith(tuple(f"{word} " for word in REFUSED))
    ]
    assert not found, "these begin as no noun phrase or imperative does:\n" + "\n".join(found)
