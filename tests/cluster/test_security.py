"""Statements of docs/security.md: stores and expressions run nothing, and clusters behind TLS are reached."""

import importlib.metadata
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import forking
import pytest
import watching
from commands import call, fail, succeed, without_dashboard
from forks import Commands

import rnsdask as rd
from rnsdask.cluster import connecting

PAGE = Path(__file__).resolve().parents[2] / "docs" / "security.md"
BLOCKS = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
CERTIFICATES, CLUSTER, BY_SETTINGS = BLOCKS

DASK = """
import os, runpy, sys
import dask
dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
os.chdir(sys.argv.pop(1))
runpy.run_module("dask", run_name="__main__")
"""

MODULI = rd.ModuliSet.for_bits(100)

# ---- stores and expressions --------------------------------------------------------------------------------


def watched(commands: list[list[str]], folder: Path) -> Any:
    """Run commands in another process, the first one unwatched; their results, and what else happened."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, watching.__file__, json.dumps(commands)]
    options: dict[str, Any] = {"cwd": folder, "capture_output": True, "text": True}
    done = subprocess.run(command, env=environment, check=True, **options)
    return json.loads(done.stdout.splitlines()[-1])


def codec_names() -> list[str]:
    """Every codec that Zarr could find on this machine, and some that it must not."""
    registered = [point.name for point in importlib.metadata.entry_points(group="zarr.codecs")]
    known = [
        "blosc",
        "gzip",
        "zstd",
        "transpose",
        "sharding_indexed",
        "vlen-utf8",
        "vlen-bytes",
        "cast_value",
    ]
    return sorted({*registered, *known, "numcodecs.pickle", "pickle", "os.system", "builtins.eval"})


def hostile_stores(folder: Path) -> list[str]:
    """Stores whose metadata ask for all that there is, beside what makes them look whole."""
    original = folder / "x.zarr"
    rd.from_ints(range(300), MODULI, chunks=128).to_zarr(original)
    document = json.loads((original / "zarr.json").read_text())
    first, *others = document["codecs"]
    extra = {"name": "os.system", "configuration": {"id": "pickle", "command": "touch pwned"}}
    settings = {"id": "pickle", "level": 1, "chunk_shape": [4, 128]}
    changes: list[dict[str, Any]] = [
        {"codecs": [first, {"name": name, "configuration": settings}, *others]} for name in codec_names()
    ]
    changes += [
        {"storage_transformers": [extra]},
        {"chunk_key_encoding": extra},
        {"chunk_grid": extra},
        {"data_type": extra},
        {"data_type": "object"},
        {"node_type": "group", "consolidated_metadata": {"metadata": {"x": document}}},
    ]
    names = []
    for i, change in enumerate(changes):
        shutil.copytree(original, folder / f"{i}.zarr")
        (folder / f"{i}.zarr" / "zarr.json").write_text(json.dumps({**document, **change}))
        names.append(f"{i}.zarr")
    return names


def test_hostile_stores_run_nothing(tmp_path: Path) -> None:
    names = hostile_stores(tmp_path)
    told = watched([["max", name] for name in ("x.zarr", *names)], tmp_path)
    assert told["happened"] == []
    for name, (status, output) in zip(names, told["results"], strict=True):
        if status == 0:  # the codec stores the same bytes
            assert "index 299:\n299\n" in output, (tmp_path / name / "zarr.json").read_text()
        else:
            assert re.fullmatch(r"rnsdask: error: .*\n", output)
    assert not (tmp_path / "pwned").exists()


HOSTILE_EXPRESSIONS = [
    "__import__('os').system('touch pwned')",
    "a.__class__.__mro__",
    "a[__import__('os')]",
    "(lambda: a)()",
    "[a for a in a]",
    "f'{a}'",
    "eval(a)",
    "(a := 3)",
    "a if a else a",
    "2 ** 2 ** 2 ** 30 + a",
    "a < 1 << (1 << 40)",
    "+".join(["a"] * 20_000),
    "(" * 5000 + "a" + ")" * 5000,
]


@pytest.mark.slow
def test_hostile_expressions_run_nothing(tmp_path: Path) -> None:
    rd.from_ints(range(300), MODULI, chunks=128).to_zarr(tmp_path / "x.zarr")
    commands = [["eval", text, "a=x.zarr", "--max"] for text in ["a + 1", "a + 1", *HOSTILE_EXPRESSIONS]]
    told = watched(commands, tmp_path)
    assert told["happened"] == []
    (status, output), *others = told["results"]
    assert (status, "index 299:\n300\n" in output) == (0, True)
    for status, output in others:
        assert status == 2, output
        assert re.fullmatch(r"rnsdask: error: expression .*\n", output)
    assert not (tmp_path / "pwned").exists()


def test_a_checkpoint_is_never_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rd.from_ints(range(300), MODULI, chunks=128).to_zarr("x.zarr")
    command = ["max", "x.zarr", "--checkpoint", "kept"]
    expected = succeed(*command).splitlines()[:2]
    pieces = sorted(Path("kept").glob("piece-*.json"))
    assert len(pieces) == 3
    for piece in pieces:
        piece.write_bytes(b"cposix\nsystem\n(S'touch pwned'\ntR.")
    assert succeed(*command).splitlines()[:2] == expected
    assert not Path("pwned").exists()


# ---- TLS ---------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Encrypted:
    """A folder with certificates and a store, and the cluster that docs/security.md starts there."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port, self.address = folder, port, f"tls://127.0.0.1:{port}"

    def here(self, block: str) -> list[str]:
        """The commands of a block for this cluster."""
        own = block.replace("tls://node1:8786", self.address)
        own = own.replace(
            "--port 8786", f"--host 127.0.0.1 --port {self.port} --dashboard-address 127.0.0.1:0"
        )
        return own.strip().splitlines()

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def options(self, ca: str = "ca.pem", cert: str = "cert.pem", key: str = "key.pem") -> list[str]:
        files = {"--tls-ca-file": ca, "--tls-cert": cert, "--tls-key": key}
        return [part for option, name in files.items() for part in (option, self.file(name))]


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    made = Encrypted(tmp_path_factory.mktemp("tls"), free_port())
    options: dict[str, Any] = {"cwd": made.folder, "stderr": subprocess.DEVNULL}
    subprocess.run(["bash", "-ec", CERTIFICATES], check=True, **options)
    other = CERTIFICATES.replace("ca-key.pem", "other-ca-key.pem").replace("ca.pem", "other-ca.pem")
    other = other.replace("cert.pem", "other-cert.pem").replace(" key.pem", " other-key.pem")
    subprocess.run(["bash", "-ec", other], check=True, **options)
    rd.from_ints([3**k for k in range(60)], MODULI).to_zarr(made.folder / "x.zarr")
    *dask_commands, _ = made.here(CLUSTER)
    running = [forking.start(DASK, str(made.folder), *shlex.split(line)[1:]) for line in dask_commands]
    try:
        wait_for(made.port)
        yield made
    finally:
        for process in reversed(running):
            process.terminate()
        for process in reversed(running):
            process.join(300)


def wait_for(port: int) -> None:
    end = time.monotonic() + 300
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < end, "the scheduler does not start"
            time.sleep(0.1)


def as_documented(encrypted: Encrypted, block: str, path: str) -> str:
    """Run the commands of a block from its last `rnsdask` on; what they print."""
    environment = os.environ | {"PATH": path}
    lines = [line for line in encrypted.here(block) if not line.startswith("dask ")]
    options: dict[str, Any] = {"cwd": encrypted.folder, "capture_output": True, "text": True}
    done = subprocess.run(["bash", "-ec", "\n".join(lines)], env=environment, check=False, **options)
    assert (done.returncode, without_dashboard(done.stderr)) == (0, "")
    return str(done.stdout)


@pytest.mark.parametrize("block", [CLUSTER, BY_SETTINGS], ids=["options", "settings"])
def test_a_cluster_behind_tls(encrypted: Encrypted, block: str, commands: Commands) -> None:
    printed = as_documented(encrypted, block, commands.path)
    assert f"max of 60 integers at index 59:\n{3**59}\n" in printed


def test_security_in_python(encrypted: Encrypted) -> None:
    files = [encrypted.folder / name for name in ("ca.pem", "cert.pem", "key.pem")]
    with connecting.connect(encrypted.address, security=connecting.tls_security(*files)) as client:
        assert client is not None
        assert client.submit(abs, -3).result() == 3


def test_a_command_by_options(encrypted: Encrypted) -> None:
    store, address = encrypted.file("x.zarr"), encrypted.address
    assert "59:\n" in succeed("max", store, "--scheduler", address, *encrypted.options())


def test_certificates_of_others(encrypted: Encrypted) -> None:
    job = ["max", encrypted.file("x.zarr"), "--scheduler", encrypted.address]
    unknown = fail(*job, *encrypted.options(ca="other-ca.pem"))
    assert unknown.startswith(
        f"no Dask scheduler answers at {encrypted.address}: TLS certificate does not match"
    )
    strange = fail(*job, *encrypted.options(cert="other-cert.pem", key="other-key.pem"))
    assert strange.startswith(f"no Dask scheduler answers at {encrypted.address}: ")
    other_key = fail(*job, *encrypted.options(key="other-key.pem"))
    assert "other-key.pem: no certificates or key for TLS: " in other_key
    no_pem = fail(*job, *encrypted.options(ca="x.zarr/zarr.json"))
    assert "zarr.json, " in no_pem
    assert "no certificates or key for TLS: " in no_pem


def test_what_is_not_encrypted_is_refused(encrypted: Encrypted) -> None:
    store = encrypted.file("x.zarr")
    for address in (encrypted.address.replace("tls:", "tcp:"), encrypted.address.removeprefix("tls://")):
        message = fail("max", store, "--scheduler", address, *encrypted.options())
        assert message.endswith(
            "its address is not encrypted, although TLS was asked for: it must begin with tls://"
        )
        with dask.config.set({"distributed.comm.require-encryption": True}):
            assert "its address is not encrypted" in fail("max", store, "--scheduler", address)
        assert "no Dask scheduler answers at " in fail("max", store, "--scheduler", address)


def test_tls_without_certificates(encrypted: Encrypted) -> None:
    store = encrypted.file("x.zarr")
    message = fail("max", store, "--scheduler", encrypted.address)
    assert "TLS needs certificates, in --tls-ca-file and --tls-cert or in Dask's settings" in message
    ca = ("--tls-ca-file", encrypted.file("ca.pem"))
    message = fail("max", store, "--scheduler", encrypted.address, *ca, status=2)
    assert "TLS needs the certificates of a CA and of this client" in message


def test_tls_options_where_there_is_no_scheduler(encrypted: Encrypted) -> None:
    store = encrypted.file("x.zarr")
    assert "are for a scheduler" in fail("max", store, *encrypted.options(), status=2)
    assert "not --gpus" in fail("max", store, "--gpus", 1, *encrypted.options(), status=2)
    missing = call("max", store, "--scheduler", encrypted.address, "--tls-cert", "nowhere.pem")
    assert (missing.exit_code, "nowhere.pem" in missing.stderr) == (2, True)
