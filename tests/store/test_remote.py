"""Stores on HTTP servers and in object stores: the same as local ones, and what may go wrong on the way."""

import base64
import errno
import json
import logging
import os
import pickle
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import zarr.storage
from commands import call, fail, succeed, without_measures
from dask.base import tokenize
from distributed import LocalCluster
from numpy.typing import NDArray
from servers import WebServer, refusing, s3_server, web_server

import rnsdask as rd
from rnsdask import store
from rnsdask.cluster import failures
from rnsdask.core.errors import (
    ChangedStoreError,
    CorruptChunkError,
    IncompleteStoreError,
    StoreAccessError,
    StoreError,
)
from rnsdask.jobs import run
from rnsdask.jobs.hashes import input_of
from rnsdask.rns.system import RNS
from rnsdask.store.access import access_error
from rnsdask.store.location import JOB_KEY

pytest.importorskip("aiohttp")
pytest.importorskip("s3fs")
pytest.importorskip("moto.server")
obstore = pytest.importorskip("obstore")

MODULI = rd.ModuliSet.for_bits(100)
RANDOM = ["--count", "1000", "--bits", "100", "--chunk", "128", "--seed", "3"]  # 8 chunks
FEW = ["--count", "300", *RANDOM[2:]]  # 3 chunks
BUCKET = "rnsdask-tests"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The endpoint of an S3 service with a bucket; everything here and in child processes finds it."""
    with pytest.MonkeyPatch.context() as patch, s3_server() as url:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", url)
        fsspec.filesystem("s3").mkdir(BUCKET)
        yield url
        fsspec.filesystem("s3").clear_instance_cache()


@pytest.fixture
def bucket(s3: str, request: pytest.FixtureRequest) -> str:
    """A URL of the test's own in the bucket."""
    return f"s3://{BUCKET}/{re.sub('[^a-z0-9]+', '-', request.node.name.lower())}"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    """The test's folder on an HTTP server."""
    with web_server(tmp_path) as server:
        yield server


@pytest.fixture(scope="module")
def workers(s3: str) -> Iterator[LocalCluster]:
    options: dict[str, Any] = {"processes": True, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=1, threads_per_worker=2, **options) as running:
        yield running


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "PAUSE_SECONDS", 0.01)


def answer(*args: object) -> dict[str, Any]:
    found = without_measures(json.loads(succeed(*args, "--json")))
    unlike = ("store", "output", "mask", "input")
    return {name: value for name, value in found.items() if name not in unlike}


def contents(url: str) -> dict[str, bytes]:
    """All that readers of a store see, wherever it is."""
    file_system, root = fsspec.core.url_to_fs(url)
    file_system.invalidate_cache()
    names = [name for name in file_system.find(root) if not name.endswith(f"/{JOB_KEY}")]
    return {name.removeprefix(root): file_system.cat_file(name) for name in names}


def object_store(url: str, endpoint: str) -> zarr.storage.ObjectStore[Any]:
    """A URL of S3 as Zarr's store by obstore."""
    prefix = url.removeprefix(f"s3://{BUCKET}/")
    options = {"endpoint": endpoint, "client_options": {"allow_http": True}}
    return zarr.storage.ObjectStore(obstore.store.S3Store(BUCKET, prefix=prefix, **options))


# ---- The same as local ------------------------------------------------------------------------------------


def test_commands_in_an_object_store(bucket: str) -> None:
    outputs = ("x", "square", "mask", "even", "running")
    answers = []
    for place in (".", bucket):
        x, square, mask, even, running = (f"{place}/{name}.zarr" for name in outputs)
        found = [answer("random", x, *FEW), answer("info", x), answer("verify", x)]
        assert "it exists; replace it with --overwrite" in fail("random", x, *FEW)
        flagged = ["--overflow", "flag", "--mask", mask]
        found.append(answer("eval", "a * a", f"a={x}", "-o", square, *flagged))
        found.append(answer("eval", "is_even(a)", f"a={x}", "-o", even, "--overwrite"))
        found.append(answer("eval", "(a + a) // 2", f"a={x}", "--max", "--sum", "--overflow", "wrap"))
        found += [answer("cummax", x, "-o", running), answer("cummax", x, "-o", running, "--overwrite")]
        found += [answer("sum", x), answer("topk", 3, x)]
        found.append(call("compare", x, running, "--json").exit_code)
        assert "an array cannot overwrite" in fail("cummin", x, "-o", x, "--overwrite")
        answers.append(found)
    assert answers[0] == answers[1]
    for name in outputs:
        assert contents(f"{bucket}/{name}.zarr") == contents(f"{name}.zarr")


def test_import_and_export(bucket: str) -> None:
    numbers = Path("numbers.txt")
    numbers.write_text("".join(f"{i**9}\n" for i in range(300)))
    for place in ("x.zarr", f"{bucket}/x.zarr"):
        succeed("import", numbers, place, "--bits", 100, "--chunk", 128)
        succeed("export", place, "out.txt", "--overwrite")
        assert Path("out.txt").read_text() == numbers.read_text()
    assert contents(f"{bucket}/x.zarr") == contents("x.zarr")


def test_commands_over_http(web: WebServer) -> None:
    succeed("random", "x.zarr", *RANDOM)
    x = f"{web.url}/x.zarr"
    for command in (["info"], ["verify"], ["max"], ["min"], ["topk", -2]):
        name, *options = command
        argument = [options.pop(0)] if name == "topk" else []
        assert answer(name, *argument, x, *options) == answer(name, *argument, "x.zarr", *options)
    succeed("eval", "a + b", f"a={x}", f"b={x}", "-o", "y.zarr", "--overflow", "wrap")
    succeed("export", x, "out.txt")
    assert call("compare", x, "x.zarr").exit_code == 0
    refusal = f"{web.url}/y.zarr: it cannot be written: stores on HTTP servers are read-only"
    for options in (["--overwrite"], ["--resume"], []):
        assert fail("random", f"{web.url}/y.zarr", *RANDOM, *options) == refusal
    assert fail("cummax", "x.zarr", "-o", f"{web.url}/y.zarr") == refusal
    assert fail("eval", "a > 0", "a=x.zarr", "-o", f"{web.url}/y.zarr") == refusal
    with pytest.raises(StoreError, match="read-only"):
        rd.IntervalRNSArray.from_ints([1], MODULI).to_zarr(f"{web.url}/y.zarr")


@pytest.mark.parametrize("kind", ["s3", "obstore", "local", "memory"])
def test_stores_of_zarr(kind: str, bucket: str, s3: str, tmp_path: Path, request: Any) -> None:
    options = {"key": "test", "secret": "hidden", "endpoint_url": s3}
    place: Any = {
        "s3": lambda name: f"{bucket}/{name}/",
        "obstore": lambda name: object_store(f"{bucket}/{name}", s3),
        "local": lambda name: zarr.storage.LocalStore(tmp_path / name),
        "memory": lambda name: zarr.storage.FsspecStore.from_url(f"memory://{request.node.name}/{name}"),
    }[kind]
    how = {"storage_options": options} if kind == "s3" else {}
    x = rd.random(MODULI, 200, chunks=128, seed=1)
    x.to_zarr(place("x"), **how)
    with pytest.raises(StoreError, match="it exists; replace it with overwrite=True"):
        x.to_zarr(place("x"), **how)
    y = rd.open_zarr(place("x"), **how)
    assert (int(y.max()), int(y.sum())) == (int(x.max()), int(x.sum()))
    with pytest.raises(StoreError, match="an array cannot overwrite the store that it is read from"):
        y.to_zarr(place("x"), overwrite=True, **how)
    y.cummax().to_zarr(place("y"), overwrite=True, **how)
    location = store.locate(place("y"), options if kind == "s3" else None)
    info = store.open_info(location)
    assert pickle.loads(pickle.dumps(info)) == info
    assert len({tokenize(info), tokenize(store.open_info(location))}) == 1
    assert "hidden" not in repr(info)
    assert list(store.verify(info)) == []
    assert input_of(info) == input_of(store.open_info(location))
    location.write("c/0/7", b"?", "it")
    assert list(store.verify(info)) == [f"{info.path}: file c/0/7 does not belong to the store"]

    numbers = rd.IntervalRNSArray.from_ints([5, -(2**80), 3] * 50, MODULI, chunks=256)
    for _ in range(2):
        numbers.to_zarr(place("intervals"), overwrite=True, **how)
    with pytest.raises(StoreError, match="it exists"):
        numbers.to_zarr(place("intervals"), **how)
    found = rd.open_zarr(place("intervals"), **how)
    assert (int(found.min()), int(found.max()), int(found.argmin())) == (-(2**80), 5, 1)


def test_a_cluster(
    bucket: str, s3: str, web: WebServer, workers: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PAUSE_SECONDS", 0.5)  # Dask tells late that what failed is cancelled
    where = ["--scheduler", workers.scheduler_address]
    for place, options in ((".", []), (bucket, where)):
        succeed("random", f"{place}/x.zarr", *FEW, *options)
        succeed("eval", "a >= 0", f"a={place}/x.zarr", "-o", f"{place}/y.zarr", *options)
    for name in ("x", "y"):
        assert contents(f"{bucket}/{name}.zarr") == contents(f"{name}.zarr")
    expected = answer("max", "x.zarr")
    for how in (status(503), cut_off):
        web.answer = Faulty(how, 1)
        assert answer("max", f"{web.url}/x.zarr", *where) == expected
    with workers.get_client():  # the store goes to other processes
        x = rd.open_zarr(object_store(f"{bucket}/x.zarr", s3))
        x.cummax().to_zarr(object_store(f"{bucket}/z.zarr", s3))
    assert int(rd.open_zarr(f"{bucket}/z.zarr").max()) == int(rd.open_zarr("x.zarr").max())
    store.locate(f"{bucket}/x.zarr").remove("c/0/2")
    assert fail("sum", f"{bucket}/x.zarr", *where) == f"{bucket}/x.zarr: chunk c/0/2 is missing"
    with workers.get_client():
        x = rd.open_zarr("x.zarr")
        assert int(x.max()) == int(expected["value"])
        rd.random(MODULI, 500, chunks=128).to_zarr("x.zarr", overwrite=True)
        with pytest.raises(ChangedStoreError, match="it was overwritten, or its metadata changed"):
            x.sum().compute()


def test_obstore_beside_the_url(bucket: str, s3: str) -> None:
    x = rd.random(MODULI, 100, chunks=128, seed=1)
    x.to_zarr(object_store(f"{bucket}/x", s3))
    y = rd.open_zarr(f"{bucket}/x")
    assert int(y.max()) == int(x.max())
    with pytest.raises(StoreError, match="an array cannot overwrite the store that it is read from"):
        y.to_zarr(object_store(f"{bucket}/x", s3), overwrite=True)
    with pytest.raises(StoreError, match=re.escape(f"{bucket}/none: there is no such store")):
        rd.open_zarr(object_store(f"{bucket}/none", s3))
    rd.random(MODULI, 10).to_zarr(
        object_store(f"{bucket}/x2", s3)
    )  # a name that begins alike is not below it
    assert list(store.verify(store.open_info(object_store(f"{bucket}/x", s3)))) == []
    local = zarr.storage.ObjectStore(obstore.store.LocalStore(Path.cwd()))
    assert store.locate(local).path == str(Path.cwd())


def test_obstore_over_http(web: WebServer) -> None:
    succeed("random", "x.zarr", *RANDOM)
    client = {"client_options": {"allow_http": True}}
    remote = zarr.storage.ObjectStore(obstore.store.HTTPStore(f"{web.url}/x.zarr", **client))
    assert int(rd.open_zarr(remote).max()) == int(rd.open_zarr("x.zarr").max())
    info = store.open_info(remote)
    assert info.path == f"{web.url}/x.zarr"
    assert list(store.verify(info)) == []
    before = input_of(info)["content"]
    os.utime("x.zarr/c/0/3", (1, 1))
    assert input_of(info)["content"] == input_of(store.open_info("x.zarr"))["content"] == before
    Path("x.zarr/c/0/3").unlink()
    with pytest.raises(CorruptChunkError, match=r"x\.zarr: chunk c/0/3 is missing"):
        rd.open_zarr(remote).max().compute()
    with pytest.raises(StoreError, match="read-only"):
        rd.random(MODULI, 10).to_zarr(remote)


def test_a_store_of_fsspec_is_its_url(bucket: str, s3: str) -> None:
    options = {"key": "test", "secret": "hidden", "endpoint_url": s3}
    rd.random(MODULI, 100, chunks=128).to_zarr(f"{bucket}/x")
    own = zarr.storage.FsspecStore.from_url(f"{bucket}/x", storage_options=options)
    assert store.locate(own) == store.locate(f"{bucket}/x", options)
    assert int(rd.open_zarr(own).max()) == int(rd.open_zarr(f"{bucket}/x").max())


def test_no_store_in_an_array(bucket: str, s3: str) -> None:
    """By a URL, by obstore, and by a store of obstore that begins within the array."""
    x = rd.random(MODULI, 200, chunks=128, seed=1)
    x.to_zarr(f"{bucket}/x.zarr")
    before = contents(bucket)
    for name in ("x.zarr/inner", "x.zarr/c/0/inner"):
        url = f"{bucket}/{name}"
        for place in (url, object_store(url, s3), zarr.storage.FsspecStore.from_url(url)):
            for mode in ({}, {"overwrite": True}, {"component": "a"}):
                with pytest.raises(StoreError, match=r"x\.zarr is a Zarr array, which holds its own chunks"):
                    x.to_zarr(place, **mode)
    assert contents(bucket) == before
    x.to_zarr(object_store(f"{bucket}/y.zarr", s3))
    x.to_zarr(f"{bucket}/g", component="a/b")


def test_a_place_that_is_none_is_refused_before_the_work(bucket: str) -> None:
    Path("n.txt").write_text("1\n2\n")
    before = contents(bucket)
    for url in (f"{bucket}//x.zarr", bucket.replace("s3://", "s3:///"), f"{bucket}/../x.zarr", "s3://"):
        assert "the URL " in fail("import", "n.txt", url)
    assert contents(bucket) == before


def test_a_path_is_no_pattern() -> None:
    x = rd.random(MODULI, 300, chunks=128)
    for name in ("x1", "x[1]", "x?", "x*"):
        for _ in range(2):
            x.to_zarr(f"memory://patterns/{name}", overwrite=True)
        assert list(store.verify(store.open_info("memory://patterns/x1"))) == []
        assert list(store.verify(store.open_info(f"memory://patterns/{name}"))) == []


def test_what_is_not_a_place(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="storage_options are for a URL, not for the local path 'x'"):
        rd.open_zarr("x", storage_options={"key": "k"})
    with pytest.raises(ValueError, match="storage_options are for a URL, not for LocalStore"):
        rd.open_zarr(zarr.storage.LocalStore(tmp_path), storage_options={"key": "k"})
    with pytest.raises(TypeError, match=r"Zarr's LocalStore, FsspecStore or ObjectStore, got MemoryStore"):
        rd.open_zarr(zarr.storage.MemoryStore())
    with pytest.raises(ValueError, match="must have a prefix"):
        rd.open_zarr(zarr.storage.ObjectStore(obstore.store.LocalStore()))
    with pytest.raises(StoreError, match="nosuch://x: Protocol not known: nosuch"):
        rd.open_zarr("nosuch://x")


# ---- Jobs that are continued ------------------------------------------------------------------------------


def test_resume(bucket: str) -> None:
    x = f"{bucket}/x.zarr"
    expected = succeed("random", "x.zarr", *RANDOM) and contents("x.zarr")
    rd.random(MODULI, 1000, bits=100, chunks=128, seed=3).create_store(x)
    location = store.locate(x)
    for key, content in expected.items():
        if key.startswith("/c/0/") and key[-1] in "0256":
            location.write(key[1:], content, "it")
    location.write("c/0/5", expected["/c/0/4"][:-1], "it")
    with pytest.raises(IncompleteStoreError, match="overwrite=True"):
        rd.open_zarr(x)
    found = answer("random", x, *RANDOM, "--resume")
    assert (found["chunks_kept"], found["chunks_rewritten"]) == (3, 1)
    assert contents(x) == expected
    assert "not known to be this job's" in fail("random", x, *RANDOM, "--resume")

    options = ["eval", "a > 9", f"a={x}", "-o", f"{bucket}/y.zarr"]
    succeed(*options)
    whole = contents(f"{bucket}/y.zarr")
    y = store.locate(f"{bucket}/y.zarr")
    assert "complete already" in succeed(*options, "--resume")
    store.resume_plain(y, (1000,), (128,), bool, complete_too=True)
    y.remove("c/3")
    y.write("c/4", b"damaged", "it")
    found = answer(*options, "--resume")
    assert (found["chunks_kept"], found["chunks_rewritten"]) == (6, 1)
    assert contents(f"{bucket}/y.zarr") == whole


@pytest.mark.parametrize("kind", ["s3", "obstore"])
def test_a_chunk_that_comes_late(bucket: str, s3: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk of a job that was ended, and that the network still holds, when another job takes over."""
    place = store.locate(bucket if kind == "s3" else object_store(bucket, s3))
    first = store.create(place, RNS(MODULI), (128,), chunks=128)
    zeros, ones = (np.full((len(MODULI), 128), value, np.uint32) for value in (0, 1))
    create = type(place).create

    def create_late(location: Any, name: str, *args: Any) -> bool:
        if name != "zarr.json":
            monkeypatch.undo()
            second = store.create(place, RNS(MODULI), (128,), chunks=128, overwrite=True)
            second.write_chunk((0,), ones)
            second.finish()
        return bool(create(location, name, *args))

    monkeypatch.setattr(type(place), "create", create_late)
    with pytest.raises(StoreError, match="another job has begun to write it"):
        first.write_chunk((0,), zeros)
    assert int(rd.open_zarr(bucket).max()) == 1


@pytest.mark.parametrize("kind", ["s3", "obstore"])
def test_a_chunk_that_is_there_is_replaced_by_its_owner(bucket: str, s3: str, kind: str) -> None:
    place = store.locate(bucket if kind == "s3" else object_store(bucket, s3))
    writer = store.create(place, RNS(MODULI), (128,), chunks=128)
    for value in (3, 1, 2):
        writer.write_chunk((0,), np.full((len(MODULI), 128), value, np.uint32))
    writer.finish()
    assert int(rd.open_zarr(bucket).max()) == 2


@pytest.mark.parametrize("kind", ["s3", "obstore"])
def test_a_folder_that_an_object_marks(bucket: str, s3: str, kind: str) -> None:
    key = bucket.removeprefix(f"s3://{BUCKET}/")
    fsspec.filesystem("s3").call_s3("put_object", Bucket=BUCKET, Key=f"{key}/", Body=b"")
    place = store.locate(bucket if kind == "s3" else object_store(bucket, s3))
    for _ in range(2):
        rd.random(MODULI, 100, chunks=128).to_zarr(place, overwrite=True)
        assert list(store.verify(store.open_info(place))) == []


def test_a_service_without_conditional_writing(monkeypatch: pytest.MonkeyPatch, bucket: str) -> None:
    place = store.locate(bucket)
    put = type(place).put_file

    def plain_put(location: Any, *args: Any, new: bool) -> None:
        if new:
            raise access_error("it", OSError(errno.ENOSYS, "A header you provided is not implemented"))
        put(location, *args, new=new)

    monkeypatch.setattr(type(place), "put_file", plain_put)
    rd.random(MODULI, 300, chunks=128, seed=1).to_zarr(bucket)
    assert list(store.verify(store.open_info(bucket))) == []


def test_a_checkpoint_sees_a_change(bucket: str, web: WebServer) -> None:
    x = rd.random(MODULI, 1000, chunks=128, seed=3)
    for n, place in enumerate((f"{bucket}/x.zarr", "x.zarr")):
        x.to_zarr(place)
        url = place if n == 0 else f"{web.url}/x.zarr"
        expected = answer("max", url, "--checkpoint", f"kept{n}")
        Path(f"kept{n}/piece-00002.json").unlink()
        assert answer("max", url, "--checkpoint", f"kept{n}") == expected
        chunk = store.locate(place).read("c/0/3", "it", 2**20)
        store.locate(place).write("c/0/3", chunk, "it")
        assert answer("max", url, "--checkpoint", f"kept{n}") == expected
        store.locate(place).write("c/0/3", chunk[::-1], "it")
        assert "x.zarr: 1 chunk differs" in fail("max", url, "--checkpoint", f"kept{n}")


# ---- What goes wrong --------------------------------------------------------------------------------------


def test_missing_places(bucket: str, s3: str, web: WebServer) -> None:
    for url in (f"{bucket}/x", "s3://no-such-bucket/x", f"{web.url}/x"):
        assert fail("max", url) == f"{url}: there is no such store"
    assert fail("random", "s3://no-such-bucket/x", *FEW) == (
        "s3://no-such-bucket/x: it cannot be written: The specified bucket does not exist"
    )
    options = {"endpoint": s3, "client_options": {"allow_http": True}}
    nowhere = zarr.storage.ObjectStore(obstore.store.S3Store("no-such-bucket", prefix="x", **options))
    for function in (rd.open_zarr, rd.random(MODULI, 10).to_zarr):
        with pytest.raises(StoreError, match=r"^s3://no-such-bucket/x: .*HTTP status 404$"):
            function(nowhere)


def test_a_password_in_a_url(web: WebServer, tmp_path: Path) -> None:
    """It reaches the server, from workers too, and is shown nowhere."""
    expected = "Basic " + base64.b64encode(b"user:Secret").decode()

    def refuse_others(request: Any) -> bool:
        if request.headers.get("Authorization") == expected:
            return False
        request.send_error(401)
        return True

    succeed("random", "x.zarr", *RANDOM)
    web.answer = refuse_others
    host = web.url.removeprefix("http://")
    x, shown = f"http://user:Secret@{host}/x.zarr", f"http://***@{host}/x.zarr"
    log = tmp_path / "log"
    assert answer("max", x, "--log-json", log)["value"] == answer("max", "x.zarr")["value"]
    assert json.loads(succeed("info", x, "--json"))["store"] == shown
    assert succeed("verify", x).startswith(f"{shown}: ")
    assert answer("max", x, "--checkpoint", "kept") == answer("max", x, "--checkpoint", "kept")
    files = [log, *Path("kept").iterdir()]
    assert all("Secret" not in file.read_text() for file in files)
    Path("x.zarr/c/0/1").unlink()
    assert fail("sum", x) == f"{shown}: chunk c/0/1 is missing"
    wrong = f"http://user:Secret-2@{host}/x.zarr"
    assert fail("max", wrong) == f"{shown}: it cannot be read: HTTP status 401 (Unauthorized)"


def test_damaged_chunks(bucket: str) -> None:
    x = f"{bucket}/x.zarr"
    succeed("random", x, *FEW)
    location = store.locate(x)
    chunk = location.read("c/0/1", "it", 2**20)
    flipped = chunk[:100] + bytes([chunk[100] ^ 1]) + chunk[101:]
    for content in (flipped, chunk[:-1], b"", b"abc", None):
        if content is None:
            location.remove("c/0/1")
        else:
            location.write("c/0/1", content, "it")
        begin = f"{x}: chunk c/0/1 is " + ("missing" if content is None else "corrupt: ")
        assert fail("max", x).startswith(begin)
        result = call("verify", x)
        assert (result.exit_code, result.stdout.startswith(begin)) == (1, True)
        assert result.stdout.count("\n") == 1


def test_no_permission(bucket: str, s3: str) -> None:
    """The bucket's policy forbids to read and to write; this is known at once, and not tried again."""
    file_system = fsspec.filesystem("s3")
    secret = f"{BUCKET}-secret"
    if not file_system.exists(secret):
        file_system.mkdir(secret)
    x = f"s3://{secret}/x.zarr"
    succeed("random", x, *FEW)

    def forbid(*actions: str) -> None:
        statement = {"Effect": "Deny", "Principal": "*", "Action": list(actions), "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        file_system.call_s3("put_bucket_policy", Bucket=secret, Policy=policy)

    try:
        forbid("s3:PutObject")
        y = f"s3://{secret}/y.zarr"
        assert fail("random", y, *FEW).startswith(f"{y}: it cannot be written: ")
        forbid("s3:GetObject")
        assert fail("max", x).startswith(f"{x}: it cannot be read: ")
        with pytest.raises(StoreAccessError) as caught:
            store.locate(x).read("c/0/0", "it", 2**20)
        assert not failures.can_pass(caught.value)
    finally:
        file_system.call_s3("delete_bucket_policy", Bucket=secret)


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    assert re.match(r"gs://bucket/x: .*gcsfs", fail("max", "gs://bucket/x"))


class Faulty:
    """Answers requests for some chunks wrongly, so many times each."""

    def __init__(self, how: Callable[[Any], None], times: int) -> None:
        self._how = how
        self._left = {"/x.zarr/c/0/1": times, "/x.zarr/c/0/2": times // 2}

    def __call__(self, request: Any) -> bool:
        if self._left.get(request.path, 0) == 0:
            return False
        self._left[request.path] -= 1
        self._how(request)
        return True


def status(code: int) -> Callable[[Any], None]:
    return lambda request: request.send_error(code)


def hang_up(request: Any) -> None:
    request.close_connection = True


def cut_off(request: Any) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "2052")
    request.end_headers()
    request.wfile.write(b"only this")
    request.close_connection = True


@pytest.mark.parametrize("how", [status(503), status(429), hang_up, cut_off])
def test_errors_of_a_server_that_pass(web: WebServer, how: Any) -> None:
    succeed("random", "x.zarr", *FEW)
    web.answer = Faulty(how, 2)
    assert answer("max", f"{web.url}/x.zarr") == answer("max", "x.zarr")
    web.answer = Faulty(how, 1000)
    message = fail("max", f"{web.url}/x.zarr", "--retries", 1)
    assert re.match(rf"{web.url}/x\.zarr: chunk c/0/[12] cannot be read: \S", message)


@pytest.mark.parametrize("code", [401, 403, 400, 501])
def test_errors_of_a_server_that_stay(web: WebServer, code: int) -> None:
    succeed("random", "x.zarr", *FEW)
    web.answer = Faulty(status(code), 1000)
    message = fail("max", f"{web.url}/x.zarr")
    assert re.match(rf"{web.url}/x\.zarr: chunk c/0/[12] cannot be read: HTTP status {code} \(.+\)$", message)
    for chunk in "12":
        assert web.requests.count(("GET", f"/x.zarr/c/0/{chunk}")) <= 1


def test_a_server_that_goes_away(tmp_path: Path) -> None:
    succeed("random", "x.zarr", *FEW)
    with web_server(tmp_path) as web:
        x = rd.open_zarr(f"{web.url}/x.zarr")
        url = web.url
    with refusing(web.server_port):
        with pytest.raises(StoreAccessError, match=f"^{url}/x.zarr: chunk c/0/. cannot be read: ") as caught:
            x.max().compute()
        assert failures.can_pass(caught.value)
        # A connection that is still open may give the metadata once more.
        assert re.match(f"{url}/x.zarr: (it|chunk c/0/.) cannot be read: ", fail("max", f"{url}/x.zarr"))
        # Without keys it would ask the metadata service of clouds for some, which is another server.
        keys = {"access_key_id": "test", "secret_access_key": "test"}
        closed = {
            "endpoint": url,
            "client_options": {"allow_http": True},
            "retry_config": {"max_retries": 0},
            **keys,
        }
        gone = zarr.storage.ObjectStore(obstore.store.S3Store(BUCKET, prefix="x", **closed))
        with pytest.raises(StoreAccessError, match=r"^s3://rnsdask-tests/x: it cannot be read: ") as caught:
            rd.open_zarr(gone)
        assert failures.can_pass(caught.value)


class HttpError(Exception):
    """Error of gcsfs for a response of HTTP."""

    def __init__(self, code: Any) -> None:
        super().__init__(f"{code}")
        self.code = code


def errors_of_libraries() -> Iterator[tuple[Exception, bool]]:
    """Errors as libraries raise them, and whether they may pass."""
    import aiohttp
    import botocore.exceptions as boto
    from obstore import exceptions as ob
    from s3fs.errors import translate_boto_error

    yield aiohttp.ServerDisconnectedError(), True
    yield aiohttp.ClientPayloadError("cut"), True
    yield aiohttp.ClientOSError(errno.ECONNRESET, "Connection reset by peer"), True
    yield aiohttp.InvalidURL("x"), False
    yield TimeoutError(), True
    for code, passes in ((500, True), (503, True), (429, True), (408, True), (403, False), (404, False)):
        yield aiohttp.ClientResponseError(None, (), status=code, message="m"), passes  # type: ignore[arg-type]
        yield HttpError(code), passes
        yield HttpError(str(code)), passes
        yield ob.GenericError(f"Generic S3 error: x - Server returned status code: {code} y"), passes
    yield boto.EndpointConnectionError(endpoint_url="http://x"), True
    yield boto.ConnectTimeoutError(endpoint_url="http://x"), True
    yield boto.ReadTimeoutError(endpoint_url="http://x"), True
    yield boto.ConnectionClosedError(endpoint_url="http://x"), True
    yield boto.NoCredentialsError(), False
    yield boto.ParamValidationError(report="x"), False
    for name, passes in (("AccessDenied", False), ("NoSuchBucket", False), ("SlowDown", True)):
        yield translate_boto_error(boto.ClientError({"Error": {"Code": name, "Message": "m"}}, "op")), passes
    for name, passes in (("InternalError", True), ("InvalidBucketName", False), ("NotImplemented", False)):
        yield translate_boto_error(boto.ClientError({"Error": {"Code": name, "Message": "m"}}, "op")), passes
    yield ob.GenericError("Generic HTTP error: error sending request\n\nDebug source:\nGeneric {}"), True
    yield ob.PermissionDeniedError("no"), False
    yield ob.UnauthenticatedError("who"), False
    yield ob.NotSupportedError("what"), False
    yield NotImplementedError(), False


def test_what_may_pass() -> None:
    for error, passes in errors_of_libraries():
        with pytest.raises(StoreAccessError) as caught:
            raise access_error("x: it cannot be read", error) from error
        made = pickle.loads(pickle.dumps(caught.value))  # as distributed does, with what led to it
        assert failures.can_pass(made) == passes, repr(error)
        assert re.fullmatch(r"x: it cannot be read: \S[^\n]*", str(made)), repr(error)
    assert len(str(access_error("x", ValueError("a" * 10**4)))) < 400


# ---- Speed -----------------------------------------------------------------------------------------------


def test_threads_fetch_at_the_same_time(web: WebServer) -> None:
    """Each request for a chunk is answered only when another one is there too."""
    succeed("random", "x.zarr", *RANDOM)
    meeting = threading.Barrier(2)

    def wait_for_another(request: Any) -> bool:
        if "/c/" in request.path:
            meeting.wait(timeout=300)
        return False

    web.answer = wait_for_another
    x = rd.open_zarr(f"{web.url}/x.zarr")
    residues: NDArray[np.uint32] = x.residues.compute(scheduler="threads", num_workers=2)
    np.testing.assert_array_equal(residues, rd.open_zarr("x.zarr").residues.compute())
