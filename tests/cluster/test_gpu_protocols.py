"""How workers of several GPUs exchange chunks: by UCX where it is installed, else by TCP."""

import os
import sys
import types
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from commands import call, contents, fail, succeed
from distributed import LocalCluster

import rnsdask as rd
from rnsdask import backend
from rnsdask.cluster import gpu_cluster
from rnsdask.cluster.connecting import connect
from rnsdask.cluster.gpu_cluster import check_protocol
from rnsdask.core.errors import JobError

SETTINGS = ("UCX_NET_DEVICES", "UCX_LOG_FILE", "UCX_WARN_UNUSED_ENV_VARS")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SETTINGS:
        monkeypatch.setenv(name, "")  # so that what the test sets is undone
        monkeypatch.delenv(name)


@pytest.fixture(params=[False, True], ids=["without UCX", "with UCX"])
def has_ucx(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A Python that finds distributed_ucxx, or does not."""
    if request.param:
        (tmp_path / "distributed_ucxx.py").touch()
        monkeypatch.syspath_prepend(tmp_path)
    else:
        monkeypatch.setattr(gpu_cluster, "find_spec", lambda _: None)
    return bool(request.param)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A host of two GPUs, as far as dask-cuda tells; the protocols that it is asked for."""
    protocols: list[str] = []

    def local_cuda_cluster(protocol: str, **options: Any) -> LocalCluster:
        protocols.append(protocol)
        return LocalCluster(processes=False, protocol="tcp", **options)

    package, utils = types.ModuleType("dask_cuda"), types.ModuleType("dask_cuda.utils")
    package.LocalCUDACluster = local_cuda_cluster  # type: ignore[attr-defined]
    utils.get_n_gpus = lambda: 2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dask_cuda", package)
    monkeypatch.setitem(sys.modules, "dask_cuda.utils", utils)
    return protocols


def test_ucx_is_taken_where_it_is_asked_for(has_ucx: bool, asked: list[str]) -> None:
    expected = {None: "tcp", "tcp": "tcp"} | ({"ucx": "ucx"} if has_ucx else {})
    for protocol, chosen in expected.items():
        with connect(gpus=2, protocol=protocol) as client:
            assert client is not None
            assert client.submit(abs, -3).result() == 3
        assert asked.pop() == chosen
    if not has_ucx:
        with pytest.raises(JobError, match="UCX needs the package distributed-ucxx") as caught:
            connect(gpus=2, protocol="ucx").__enter__()
        assert str(caught.value).endswith('; protocol="tcp" needs no UCX')
    assert not asked


def test_commands_choose_a_protocol(
    has_ucx: bool, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rd.from_ints(range(1000), rd.ModuliSet([2**32]), chunks=256).to_zarr("x.zarr")
    for options, chosen in (([], "tcp"), *([(["--protocol", "ucx"], "ucx")] if has_ucx else [])):
        assert "999" in succeed("max", "x.zarr", "--gpus", "2", *options)
        assert asked.pop() == chosen
    if not has_ucx:
        told = fail("max", "x.zarr", "--gpus", "2", "--protocol", "ucx", status=1)
        assert told.startswith("UCX needs the package distributed-ucxx")
        assert told.endswith("; --protocol tcp needs no UCX")


def test_protocols_are_for_workers_of_gpus(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="protocol='tcp' is for the workers of gpus="):
        connect("tcp://127.0.0.1:1", protocol="tcp").__enter__()
    with pytest.raises(ValueError, match="protocol must be one of tcp, ucx, got 'tls'"):
        check_protocol("tls")
    for place in ([], ["--scheduler", "tcp://127.0.0.1:1"]):
        refused = call("max", tmp_path, *place, "--protocol", "tcp")
        assert refused.exit_code == 2
        assert "--protocol is for the workers of --gpus; a cluster that runs already" in refused.stderr


@pytest.mark.parametrize("has_ucx", [True], indirect=True)
def test_ucx_serves_this_host_and_prints_nothing(
    has_ucx: bool, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """UCX listens on all networks, and would print its warnings on standard output."""
    monkeypatch.setenv("UCX_LOG_FILE", "ucx.log")  # what a user sets stays
    with connect(gpus=1, protocol="ucx"):
        assert [os.environ[name] for name in SETTINGS] == ["lo", "ucx.log", "n"]


@pytest.mark.parametrize("has_ucx", [True], indirect=True)
def test_ucx_that_does_not_start_names_the_way_out(
    has_ucx: bool, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(**_: Any) -> NoReturn:
        try:
            raise ImportError("libucp.so.0: cannot open shared object file")
        except ImportError as error:
            raise RuntimeError("Cluster failed to start") from error

    monkeypatch.setattr(sys.modules["dask_cuda"], "LocalCUDACluster", failing)
    with pytest.raises(JobError, match=r"by UCX do not start: .*libucp") as caught:
        connect(gpus=2, protocol="ucx").__enter__()
    assert str(caught.value).endswith('; protocol="tcp" needs no UCX')
    with pytest.raises(RuntimeError, match="Cluster failed"):
        connect(gpus=2, protocol="tcp").__enter__()


def test_rmm_takes_what_cupy_does_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """RMM's adaptor asks its callback where nothing is left, and tries again as long as that is true."""
    idle, free, lent = [3000], [1000], []

    class Adaptor:
        def __init__(self, upstream: Any, callback: Any) -> None:
            self.upstream, self.callback = upstream, callback

        def allocate(self, count: int) -> None:
            while count > free[0]:
                if not self.callback(count):
                    raise MemoryError
            lent.append(count)

    def free_all_blocks() -> None:
        free[0] += idle[0]
        idle[0] = 0

    pool = types.SimpleNamespace(free_bytes=lambda: idle[0], free_all_blocks=free_all_blocks)
    cupy = types.ModuleType("cupy")
    cupy.get_default_memory_pool = lambda: pool  # type: ignore[attr-defined]
    current: list[Any] = ["the default"]
    rmm, resources = types.ModuleType("rmm"), types.ModuleType("rmm.mr")
    resources.get_current_device_resource = lambda: current[-1]  # type: ignore[attr-defined]
    resources.set_current_device_resource = current.append  # type: ignore[attr-defined]
    resources.FailureCallbackResourceAdaptor = Adaptor  # type: ignore[attr-defined]
    rmm.mr = resources  # type: ignore[attr-defined]
    for module in (cupy, rmm, resources):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    backend.lend_idle_memory()
    assert current[1].upstream == "the default"
    current[1].allocate(1000)
    assert idle == [3000]
    current[1].allocate(4000)
    with pytest.raises(MemoryError):
        current[1].allocate(4001)
    assert lent == [1000, 4000]
    monkeypatch.setitem(sys.modules, "rmm", None)
    backend.lend_idle_memory()  # nothing without RMM
    assert len(current) == 2


@pytest.mark.gpu
def test_rmm_takes_idle_memory_of_a_gpu() -> None:
    """Half of the memory, while the idle blocks of CuPy's pool hold three quarters."""
    rmm = pytest.importorskip("rmm")
    import cupy

    before = rmm.mr.get_current_device_resource()
    try:
        backend.lend_idle_memory()
        free, _ = cupy.cuda.runtime.memGetInfo()
        kept = cupy.empty(free // 4 * 3, np.uint8)
        del kept
        received = rmm.DeviceBuffer(size=free // 2)
        assert received.size == free // 2
        del received
    finally:
        rmm.mr.set_current_device_resource(before)


@pytest.mark.gpu
def test_both_protocols_give_equal_bytes(tmp_path: Path) -> None:
    """Chunks that workers exchange: rechunking, sorting, a long transform, a product of matrices."""
    pytest.importorskip("distributed_ucxx")
    pytest.importorskip("dask_cuda")
    if backend.gpu_count() < 2:
        pytest.skip("fewer than 2 GPUs")
    rng = np.random.default_rng(7)
    integers = rd.random(rd.ModuliSet.for_bits(256), 200_000, chunks=25_600, seed=1)
    polynomial = rd.from_ints(rng.integers(0, 998244353, 2**18), rd.PrimeFields([998244353]), chunks=2**16)
    a = rd.from_ints(rng.integers(0, 2**20, (256, 256)), rd.ModuliSet.for_bits(64), chunks=(64, 64))
    jobs = {
        "rechunked": lambda: integers.rechunk(51_200),
        "sorted": lambda: rd.sort(integers),
        "transformed": lambda: rd.ntt(polynomial),
        "product": lambda: a @ a,
    }
    for protocol in gpu_cluster.PROTOCOLS:
        with connect(gpus=2, protocol=protocol) as client:
            assert client is not None
            assert client.scheduler.address.startswith(protocol)
            with client.as_current():
                for name, job in jobs.items():
                    job().to_zarr(tmp_path / protocol / name)
    for name in jobs:
        tcp, ucx = (contents(str(tmp_path / protocol / name)) for protocol in gpu_cluster.PROTOCOLS)
        assert tcp == ucx, name
