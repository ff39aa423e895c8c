"""Images and Kubernetes' files of ``deploy``: what they name exists, and fits together."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = DEPLOY / "Dockerfile"
MANIFESTS = sorted((DEPLOY / "k8s").glob("*.yaml"))


def instructions() -> list[tuple[str, str]]:
    """Name and text of each instruction of the Dockerfile."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", "").splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines if line)]


def test_files_that_the_image_copies_exist() -> None:
    copied = [text.split()[:-1] for name, text in instructions() if name == "COPY" and "--from" not in text]
    assert copied
    missing = [file for files in copied for file in files if not (ROOT / file).exists()]
    assert not missing
    assert {"CMakeLists.txt", "kernels", "pyproject.toml", "rnsdask"} <= {
        f for files in copied for f in files
    }


def test_the_image_installs_by_scripts_of_the_checkout() -> None:
    """Extras that exist, and programs that are executable."""
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = set(
        re.findall(r"^(\w+) = \[", pyproject.split("[project.optional-dependencies]")[1], re.MULTILINE)
    )
    installs = re.findall(r"(scripts/\S+) /opt/rnsdask (\S+)", DOCKERFILE.read_text(encoding="utf-8"))
    assert len(installs) == 2
    for script, wanted in installs:
        assert os.access(ROOT / script, os.X_OK)
        assert set(wanted.split(",")) <= extras


def test_stages_and_targets() -> None:
    stages = [
        match[1]
        for name, text in instructions()
        if name == "FROM" and (match := re.search(r" AS (\S+)", text))
    ]
    assert {"cpu", "gpu"} <= set(stages)
    for name, text in instructions():
        source = re.search(r"--from=(\S+)", text) if name == "COPY" else None
        assert source is None or source[1] in stages
    assert [text for name, text in instructions() if name == "USER"] == ["rnsdask"]
    assert [text for name, text in instructions() if name == "ENTRYPOINT"] == ['["entrypoint.sh"]']


@pytest.mark.parametrize(
    ("given", "started"),
    [
        ("max x.zarr", "rnsdask max x.zarr"),
        ("", "rnsdask"),
        ("--help", "rnsdask --help"),
        ("dask worker", "dask worker"),
    ],
)
def test_the_entry_point_runs_commands_and_dask(tmp_path: Path, given: str, started: str) -> None:
    for name in ("dask", "rnsdask"):
        (tmp_path / name).write_text('#!/bin/sh\necho "${0##*/}" "$@"\n')
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = [str(DEPLOY / "entrypoint.sh"), *given.split()]
    assert subprocess.check_output(command, env=environment, text=True).strip() == started


def containers(manifest: Path) -> dict[str, dict[str, Any]]:
    """Return the containers of a manifest by their names."""
    found: dict[str, dict[str, Any]] = {}
    waiting: list[Any] = [yaml.safe_load(manifest.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            found |= {container["name"]: container for container in node.get("containers", ())}
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return found


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
def test_containers_start_programs_of_the_image(manifest: Path) -> None:
    """Not ``dask-scheduler``, which newer versions of Dask lack; and each worker checks its version."""
    found = containers(manifest)
    assert {"scheduler", "worker"} <= set(found)
    assert found["scheduler"]["args"][:2] == ["dask", "scheduler"]
    worker = found["worker"]
    assert worker["args"][-2:] == ["--preload", "rnsdask.worker"]
    limits = worker["resources"]["limits"]
    assert ("cuda" in worker["args"]) == ("nvidia.com/gpu" in limits) == ("gpu" in manifest.name)
    assert worker["args"][worker["args"].index("--memory-limit") + 1] == f"{limits['memory']}B"
    entry = (DEPLOY / "entrypoint.sh").read_text(encoding="utf-8")
    assert all(container["args"][0] in re.findall(r"\w+", entry) for container in found.values())
    assert len({container["image"] for container in found.values()}) == 1


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
def test_the_service_selects_the_scheduler(manifest: Path) -> None:
    document = yaml.safe_load(manifest.read_text(encoding="utf-8"))
    cluster = document if document["kind"] == "DaskCluster" else document["spec"]["cluster"]
    service = cluster["spec"]["scheduler"]["service"]
    wanted = {"dask.org/cluster-name": document["metadata"]["name"], "dask.org/component": "scheduler"}
    assert service["selector"] == wanted
    ports = {port["name"] for port in containers(manifest)["scheduler"]["ports"]}
    assert {port["targetPort"] for port in service["ports"]} == ports


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("script", sorted(DEPLOY.glob("**/*.s[bh]*")), ids=lambda path: path.name)
def test_scripts_parse(script: Path) -> None:
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    assert os.access(script, os.X_OK)
