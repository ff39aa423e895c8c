"""The uses that docs/positional.md shows, run as they stand."""

import re
from pathlib import Path
from typing import Any

import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "positional.md"


def test_the_uses_do_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    uses = DOCUMENT.read_text(encoding="utf-8").split("## Uses\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", uses, re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert names["forged"].tolist() == [17]
    assert set(names["factors"].tolist()) == {1000003}
    assert names["shared"].to_ints().tolist() == [1, 2**107 - 1, 1, 2**107 - 1]
