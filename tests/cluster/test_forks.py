"""Forked processes, which lack the threads of the process that they came from: right answers, or an error."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from threading import Thread

import dask
from distributed import Client

import rnsdask as rd

SECONDS = 60
results = {}


def ask_child(name, function, depth=1):
    '''Keep what a function returns in a forked process, or its error.'''
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        try:
            if depth > 1:
                answer = ask_child(name, function, depth - 1)
            else:
                answer = function()
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    answer = os.read(reader, 10_000)
    os.waitpid(child, 0)
    results[name] = json.loads(answer) if answer else "it hung"
    return results[name]


def total():
    return str(x.sum().compute())


def total_in_thread():
    total()
    ask_child("from a thread", total)


def written():
    x.to_zarr("written.zarr")
    return str(rd.open_zarr("written.zarr").sum().compute())


x = rd.from_ints([3**k for k in range(100)], chunks=10)
ask_child("pool where nothing was computed", lambda: repr(dask.config.get("pool", None)))
ask_child("before", total)
thread = Thread(target=total_in_thread)
thread.start()
thread.join()
total()
x.to_zarr("x.zarr")
ask_child("after", total)
ask_child("ints", lambda: str(sum(x.to_ints().tolist())))
ask_child("dask", lambda: str(sum(int(n) for n in x.to_dask_array().compute())))
ask_child("child of a child", total, depth=2)
ask_child("store", lambda: str(rd.open_zarr("x.zarr").sum().compute()))
ask_child("written", written)
with dask.config.set(num_workers=3):
    total()
    ask_child("num_workers", lambda: [total(), dask.config.get("pool")._max_workers])
for pool in (ThreadPool(2), ThreadPoolExecutor(2)):
    with dask.config.set(pool=pool):
        total()
        ask_child(type(pool).__name__, total)
with dask.config.set(scheduler="sync"):
    ask_child("sync", total)
with Client(n_workers=1, processes=False, dashboard_address=None) as client:
    total()
    ask_child("client", total)
    ask_child("client, on threads", lambda: str(x.sum().compute(scheduler="threads")))
    with dask.config.set(scheduler="sync"):
        ask_child("client, in this thread", total)
ask_child("after the client", total)
with open("results.json", "w") as file:
    json.dump(results, file)
os._exit(0)
"""


def test_lazy_arrays_in_forked_processes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=True)
    results = json.loads((tmp_path / "results.json").read_text())
    error = results.pop("client")
    assert error.startswith("JobError: this process was forked from one that has a Dask client")
    assert results.pop("pool where nothing was computed") == "None"
    total = str(sum(3**k for k in range(100)))
    assert results.pop("num_workers") == [total, 3]
    assert results == dict.fromkeys(results, total)
