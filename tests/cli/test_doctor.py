"""The command doctor: what it says of installations, machines, clusters and cards that are not right."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from commands import as_json, call, fail, succeed
from distributed import Client, LocalCluster
from forking import forked_workers

import rnsdask as rd
from rnsdask.cluster import connecting
from rnsdask.doctor import burn_in, data_sheets, findings, gpus, installation, machine, nvml


def checks(*args: object, status: int = 0) -> dict[str, dict[str, Any]]:
    """Run the command; return its checks by what they check."""
    printed = as_json("doctor", *args, status=status)
    return {check["check"]: check for check in printed["checks"]}


# ---- this machine -----------------------------------------------------------------------------------------


def test_this_machine_is_fit() -> None:
    found = checks()
    assert {check["state"] for check in found.values()} <= {"ok", "warning"}
    assert all((check["state"] == "ok") == (check["way_out"] is None) for check in found.values())
    assert found["rnsdask"]["version"] == rd.__version__
    assert found["packages"]["versions"]["numpy"] == np.__version__
    assert "GPU" in found
    assert "store" not in found


def test_screen_of_80_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / ("long" * 30)))
    lines = succeed("doctor").splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line == line.rstrip() for line in lines)
    assert all(line[:7].strip() in ("", "ok", "warning", "fault") for line in lines)
    assert "\x1b" not in "".join(lines)


def test_a_gpu_that_is_needed_and_not_there_is_a_fault() -> None:
    found = checks("--gpu", "--seconds", 1, status=1)["GPU"]
    assert found["state"] == "fault"
    assert "--gpu" in found["way_out"] or "CUDA_VISIBLE_DEVICES" in found["way_out"]
    printed = call("doctor", "--gpu")
    assert printed.exit_code == 1
    assert printed.stderr == ""
    assert "-> " in printed.stdout


def test_options_that_make_no_sense() -> None:
    assert "--seconds and --seed need --gpu" in fail("doctor", "--seconds", 5, status=2)
    assert "not both" in fail("doctor", "--scheduler", "a", "--scheduler-file", "b", status=2)
    assert "--seed must be at least 0" in fail("doctor", "--gpu", "--seed", -1, status=2)


def test_other_commands_import_nothing_of_it() -> None:
    code = (
        "import sys, rnsdask.cli; print([m for m in sys.modules if m.startswith(('rnsdask.doctor', 'rich'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_extras_are_those_of_the_package() -> None:
    provided = set(metadata("rnsdask").get_all("Provides-Extra") or [])
    of_gpus, of_developers = {"cu12", "cu13", "ucx12", "ucx13"}, {"test", "bench", "docs", "dev"}
    assert set(installation.EXTRAS) == provided - of_gpus - of_developers
    assert installation.unmet(installation.requirements()) == []
    assert {needed.name for needed in installation.requirements("parquet")} == {"pyarrow"}


def test_packages_that_are_too_old_or_missing() -> None:
    needed = [installation.Requirement(text) for text in ("numpy>=99", "no-such-package>=1", "zarr>=3")]
    assert installation.unmet(needed) == [f"numpy>=99 ({np.__version__})", "no-such-package>=1 (missing)"]


def test_a_check_that_fails_is_a_fault_and_the_others_go_on() -> None:
    def broken() -> Iterator[findings.Finding]:
        raise OSError("no such library")

    first, second = findings.run_checks([("a", broken), ("b", lambda: [findings.Finding("b", "fine")])])
    assert (first.subject, first.state, first.text) == ("a", "fault", "OSError: no such library")
    assert second.state == "ok"


# ---- folders and limits -----------------------------------------------------------------------------------


def limited(limit: str, value: int, *args: str, **environment: str) -> dict[str, dict[str, Any]]:
    """Run the command in a process with a limit of the system; return its checks."""
    code = (
        f"import resource; resource.setrlimit(resource.{limit}, ({value}, {value}));"
        "from rnsdask.cli import main; main(prog_name='rnsdask')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "doctor", "--json", *args],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return {check["check"]: check for check in json.loads(done.stdout)["checks"]}


def test_folders_that_take_no_file(tmp_path: Path) -> None:
    """The system refuses the file there, as it does beyond a quota."""
    found = limited("RLIMIT_FSIZE", 2**16, TMPDIR=str(tmp_path), CUPY_CACHE_DIR=str(tmp_path / "cache"))
    for subject, variable in (("temporary folder", "TMPDIR="), ("kernel cache", "CUPY_CACHE_DIR=")):
        assert found[subject]["state"] == "fault"
        assert "cannot be written: File too large" in found[subject]["text"]
        assert variable in found[subject]["way_out"]


def test_few_open_files() -> None:
    found = limited("RLIMIT_NOFILE", 200)["open files"]
    assert (found["state"], found["open_files"]) == ("warning", 200)
    assert "ulimit -n" in found["way_out"]


@pytest.mark.parametrize(("free", "state"), [(1000, "fault"), (10**9, "warning"), (10**12, "ok")])
def test_full_disks(free: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    for check in (machine.check_temporary_folder, machine.check_kernel_cache):
        (found,) = check(lambda _: (10**13, 10**13 - free, free))
        assert found.state == state, found
        assert (found.way_out != "") == (state != "ok")
        assert list(tmp_path.iterdir()) == []


def test_temporary_folder_that_is_not_there(tmp_path: Path) -> None:
    code = "from rnsdask.doctor.machine import check_temporary_folder as c; print(*[f.text for f in c()])"
    environment = {**os.environ, "TMPDIR": str(tmp_path / "none")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert f"TMPDIR={tmp_path / 'none'} cannot be written, so that /" in done.stdout


def test_settings_that_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPY_CUDA_PER_THREAD_DEFAULT_STREAM", "1")
    found = checks(status=1)["settings"]
    assert (found["state"], found["way_out"]) == ("fault", "unset CUPY_CUDA_PER_THREAD_DEFAULT_STREAM")


# ---- clusters ---------------------------------------------------------------------------------------------


@pytest.fixture
def cluster() -> Iterator[Client]:
    """Two workers in processes of their own."""
    options: dict[str, Any] = {"threads_per_worker": 1, "protocol": "tcp", "dashboard_address": ":0"}
    with (
        forked_workers(),
        LocalCluster(n_workers=2, **options) as running,
        Client(running, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def store(tmp_path: Path) -> Path:
    rd.from_ints(range(1000), rd.ModuliSet([2**32]), chunks=250).to_zarr(tmp_path / "x.zarr")
    return tmp_path / "x.zarr"


def on_first_worker(client: Client, function: Callable[[], None]) -> str:
    """Run a function in the process of one worker; return its address."""
    address = min(client.scheduler_info(n_workers=-1)["workers"])
    client.run(function, workers=[address])
    return str(address)


def pretend_version() -> None:
    import rnsdask

    rnsdask.__version__ = "9.9"


def see_nothing() -> None:
    """Make this process one in which no file is to be found by the name of a store."""
    from rnsdask.store.location import LocalLocation

    def read_metadata(self: Any) -> bytes:
        raise FileNotFoundError

    LocalLocation.read_metadata = read_metadata  # type: ignore[method-assign]


def see_another() -> None:
    """Make this process one in which another store has that name."""
    from rnsdask.store.location import LocalLocation

    LocalLocation.read_metadata = lambda _: b"{}"  # type: ignore[method-assign]


@pytest.fixture(autouse=True, scope="module")
def _sent_whole() -> Iterator[None]:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_cluster_and_store(cluster: Client, store: Path) -> None:
    address = cluster.scheduler.address
    found = checks(store, "--scheduler", address)
    for subject in ("scheduler", "workers", "versions", "store", "store on workers"):
        assert found[subject]["state"] == "ok", found[subject]
    assert found["workers"]["threads"] == 2
    other = on_first_worker(cluster, see_nothing)
    found = checks(store, "--scheduler", address, status=1)
    assert found["store on workers"]["state"] == "fault"
    assert f"{other}: {store}: " in found["store on workers"]["text"]
    on_first_worker(cluster, see_another)
    found = checks(store, "--scheduler", address, status=1)
    assert found["store on workers"]["text"] == f"{other}: another store is there"
    on_first_worker(cluster, pretend_version)
    found = checks(store, "--scheduler", address, status=1)
    assert f"{other}: rnsdask 9.9" in found["cluster"]["text"]
    assert rd.__version__ in found["cluster"]["way_out"]
    assert found["store"]["state"] == "ok"


def test_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 0.3)
    found = checks("--scheduler", "tcp://127.0.0.1:1", status=1)["cluster"]
    assert found["state"] == "fault"
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in found["text"]
    found = checks("--scheduler-file", tmp_path / "none.json", status=1)["cluster"]
    assert "none.json: the scheduler file cannot be read" in found["text"]


def test_stores_that_cannot_be_read(store: Path, tmp_path: Path) -> None:
    assert checks(store)["store"]["text"] == f"{store}: 1000 integers; chunks: 4"
    found = checks(tmp_path / "none.zarr", status=1)["store"]
    assert found["state"] == "fault"
    assert "there is no such store" in found["text"]


# ---- burn-in ----------------------------------------------------------------------------------------------

SMALL = burn_in.Size(side=40, length=256, transforms=3, numbers=500, copies=3)


def faulty(kind: type[burn_in.Workload], at: int, found: list[int]) -> type[burn_in.Workload]:
    """Make a workload whose result number `at` has a flipped bit; `found` receives the wrong value."""

    class Faulty(kind):  # type: ignore[misc,valid-type]
        def compute(self, loaded: Any) -> Any:
            result = super().compute(loaded)
            done.append(1)
            if len(done) != at:
                return result
            if isinstance(result, int):
                found.append(result ^ 2**20)
                return found[0]
            result = result.copy()
            place = (1, *(length - 1 for length in result.shape[1:]))
            result[place] ^= 2**20
            found.append(int(result[place]))
            return result

    done: list[int] = []
    return Faulty


def test_a_processor_that_is_right() -> None:
    result = burn_in.burn_in("cpu", SMALL, 0.01, 5, turn_seconds=0.001)
    assert (result.differences, result.error) == ([], "")
    assert set(result.runs) == {"matrix product", "transform", "transform and back", "sum"}
    assert min(result.runs.values()) >= 2
    found = gpus.judge("GPU 0 burn-in", "a card", result)
    assert found.state == "ok"


@pytest.mark.parametrize("at", [1, 2, 5])
@pytest.mark.parametrize("kind", burn_in.KINDS)
def test_a_flipped_bit_is_found(kind: type[burn_in.Workload], at: int) -> None:
    """In the first result of a round, which the host checks, and in a later one."""
    check_planted_fault("cpu", SMALL, kind, at)


@pytest.mark.gpu
@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("kind", burn_in.KINDS)
def test_a_flipped_bit_is_found_on_a_gpu(kind: type[burn_in.Workload], at: int) -> None:
    check_planted_fault("cuda", burn_in.Size(1024, 2**16, 2, 10**5, 20), kind, at)


def check_planted_fault(backend: str, size: burn_in.Size, kind: type[burn_in.Workload], at: int) -> None:
    values: list[int] = []
    kinds = (*(other for other in burn_in.KINDS if other is not kind), faulty(kind, at, values))
    result = burn_in.burn_in(backend, size, 0.5, 5, kinds, turn_seconds=0.01)
    assert result.error == ""
    (wrong,) = result.differences
    assert (wrong.operation, wrong.found, wrong.seed) == (kind.name, values[0], 5)
    assert wrong.found ^ wrong.expected == 2**20
    assert (wrong.repeat > 0) == (at > 1) or wrong.round > 0
    if wrong.index:
        assert wrong.index[0] == 1
        assert len(wrong.index) == 3
    found = gpus.judge("GPU 3 burn-in", "a card at 0000:65:00.0", result)
    assert found.state == "fault"
    assert f"a card at 0000:65:00.0 computes wrong: {kind.name}" in found.text
    assert str(wrong.expected) in found.text


def test_a_word_that_is_no_residue_is_found() -> None:
    product = burn_in.Product(SMALL)
    operands = product.draw(np.random.default_rng(1))
    right = product.compute(product.load(operands, "cpu"))
    assert product.find_fault(operands, right) is None
    right = right.copy()
    right[0, 7, 9] = 2**32 - 1
    wrong = product.find_fault(operands, right)
    assert wrong is not None
    assert (wrong.index, wrong.found) == ((0, 7, 9), 2**32 - 1)


def test_products_of_the_burn_in_are_those_of_python() -> None:
    product = burn_in.Product(burn_in.Size(5, 2, 1, 1, 1))
    a, b, _ = operands = product.draw(np.random.default_rng(2))
    found = product.compute(product.load(operands, "cpu"))
    for i, prime in enumerate(burn_in.PRIMES):
        expected = a[i].astype(object) @ b[i].astype(object) % prime
        assert found[i].tolist() == expected.tolist()


def test_a_card_that_fails_is_named() -> None:
    class Failing(burn_in.Sum):
        def compute(self, _loaded: Any) -> int:
            raise RuntimeError("uncorrectable ECC error encountered")

    result = burn_in.burn_in("cpu", SMALL, 0.01, 1, (Failing,))
    found = gpus.judge("GPU 1 burn-in", "a card", result)
    assert found.state == "fault"
    assert "a card fails: RuntimeError: uncorrectable ECC error" in found.text


# ---- GPUs -------------------------------------------------------------------------------------------------


def test_rates_beside_data_sheets() -> None:
    sheet = data_sheets.sheet_of("NVIDIA H100 80GB HBM3")
    assert sheet is not None
    compared = gpus.compare_rate("GPU 0 read", "read", 3e12, "of its memory", sheet, nvml.Card())
    assert (compared.state, compared.text) == (
        "ok",
        "3 TB/s of its memory: 90% of 3.35 TB/s, its data sheet's",
    )
    card = nvml.Card(width=8, most_width=16)
    compared = gpus.compare_rate("GPU 0 copy", "copy", 13e9, "from the host", sheet, card)
    assert compared.state == "warning"
    assert "8 of 16 lanes" in compared.way_out
    card = nvml.Card(slowed_by=("heat",), processes=2)
    compared = gpus.compare_rate("GPU 0 int8", "int8", 700e12, "of 8-bit matrices", sheet, card)
    assert "lowered by heat" in compared.way_out
    compared = gpus.compare_rate("GPU 0 int8", "int8", 1e12, "of 8-bit matrices", None, card)
    assert compared.state == "ok"


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("NVIDIA A100-SXM4-40GB", 1.55e12),
        ("NVIDIA A100-SXM4-80GB", 1.93e12),
        ("NVIDIA H100 PCIe", 2.0e12),
        ("NVIDIA H200", 4.8e12),
        ("NVIDIA L40S", 0.864e12),
        ("NVIDIA L4", 0.3e12),
        ("NVIDIA GeForce RTX 4090", 1.01e12),
        ("NVIDIA B200", 8e12),
        ("NVIDIA T400", None),
        ("Quadro K2000", None),
    ],
)
def test_names_of_cards(name: str, read: float | None) -> None:
    sheet = data_sheets.sheet_of(name)
    assert (None if sheet is None else sheet.read) == read


def test_driver_without_cupy(tmp_path: Path) -> None:
    file = tmp_path / "version"
    for text, version, extra in (
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22\nGCC 12\n",
            "550.54.14",
            "cu12",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n",
            "580.65.06",
            "cu13",
        ),
    ):
        file.write_text(text)
        assert gpus.driver_version(file) == version
        assert gpus.extra_for(version) == extra
    assert gpus.driver_version(tmp_path / "none") is None
    if not any(map(installation.installed_version, gpus.CUPY_PACKAGES)):
        (found,) = gpus.check_gpus(False, [], file)
        assert (found.state, found.way_out) == ("warning", 'pip install "rnsdask[cu13]"')


@pytest.mark.gpu
def test_gpus_of_this_machine() -> None:
    found = checks("--gpu", "--seconds", 5)
    for kind in ("burn-in", "read", "copy", "int8"):
        assert found[f"GPU 0 {kind}"]["state"] in ("ok", "warning")
    assert found["GPU 0 burn-in"]["differences"] == []
