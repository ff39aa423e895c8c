"""The conda recipe and the changelog say what pyproject.toml says."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OF_CONDA = {"dask": ["dask-core", "distributed"], "lazy-loader": ["lazy_loader"]}  # names that differ


def test_conda_recipe() -> None:
    recipe = yaml.safe_load((ROOT / "scripts" / "conda" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == PROJECT["version"]
    expected = {f"python {PROJECT['requires-python']}"}
    for dependency in PROJECT["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?(>=[\d.]+)", dependency).groups()  # type: ignore[union-attr]
        expected |= {f"{conda} {bound}" for conda in OF_CONDA.get(name, [name])}
    assert set(recipe["requirements"]["run"]) == expected


def test_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[(\d.*)\] - \d{4}-\d\d-\d\d$", text, re.MULTILINE)
    assert versions[0] == PROJECT["version"]
