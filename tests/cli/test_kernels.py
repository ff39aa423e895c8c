"""The command ``kernels``, without a GPU."""

import json
from pathlib import Path

import pytest
from commands import call, succeed

from rnsdask.backend.cuda import cubins
from rnsdask.backend.cuda.variants import VARIANTS


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation that brings two modules, one of them of a source that has changed since."""
    entries = [
        cubins.Entry("scan", (), cubins.identity_of("scan", ()), {80: 5000, 90: 6000}),
        cubins.Entry("limbs", ("-DRNS_LIMBS=4",), "0" * 64, {90: 7000}),
    ]
    manifest = cubins.Manifest(tmp_path, (12, 9), {entry.identity: entry for entry in entries})
    monkeypatch.setattr(cubins, "installed", lambda: manifest)


@pytest.mark.usefixtures("installed")
def test_list() -> None:
    assert succeed("kernels", "list").splitlines() == [
        "compiled  by NVRTC 12.9",
        "sm_80     1 modules, 5 kB",
        "sm_90     2 modules, 13 kB",
        "gpu       none that CuPy sees",
        "",
        "module  options                             sm_80  sm_90",
        "limbs   LIMBS=4 (source has changed since)          7 kB",
        "scan                                         5 kB   6 kB",
    ]


def test_all_modules_that_come_compiled_fit_into_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [
        cubins.Entry(module, defines, str((module, defines)), dict.fromkeys((80, 90, 100, 120), 10**5))
        for module, variants in VARIANTS.items()
        for defines in variants
    ]
    manifest = cubins.Manifest(tmp_path, (12, 9), {entry.identity: entry for entry in entries})
    monkeypatch.setattr(cubins, "installed", lambda: manifest)
    monkeypatch.setenv("COLUMNS", "80")
    lines = succeed("kernels", "list").splitlines()
    assert len(lines) > len(entries)
    assert max(map(len, lines)) <= 80
    words = " ".join(lines).split()
    for entry in entries:
        options = {define.removeprefix("-DRNS_") for define in entry.defines}
        # A longer one, such as a radix, is cut to fit.
        assert {entry.module, *(option for option in options if len(option) <= 22)} <= set(words)


@pytest.mark.usefixtures("installed")
def test_list_as_json() -> None:
    found = json.loads(succeed("kernels", "list", "--json"))
    assert found["nvrtc"] == "12.9"
    assert found["architectures"] == ["sm_80", "sm_90"]
    assert [one["is_current"] for one in found["kernels"]] == [False, True]
    assert found["kernels"][0]["cubins"] == [{"architecture": "sm_90", "bytes": 7000}]
    assert found["gpus"] == []


def test_nothing_came_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cubins, "installed", lambda: cubins.read_manifest(tmp_path))
    assert succeed("kernels", "list").startswith("compiled  none: kernels are compiled at first use\n")


def test_warm_needs_a_gpu() -> None:
    result = call("kernels", "warm")
    assert result.exit_code == 1
    assert "warm needs CuPy and a GPU: this process sees none" in result.stderr


def test_other_actions_are_wrong_usage() -> None:
    assert call("kernels", "burn").exit_code == 2
