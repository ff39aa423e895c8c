"""Options, connections, stores, progress and pictures that pipelines share."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import numpy as np
from dask.diagnostics import ProgressBar

import rnsdask as rd
from rnsdask.cluster.connecting import connect

# Workers of a cluster need no copy of this folder: what tasks call in here travels with them.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def parser_of(
    text: str | None, size: int, what: str, kept: str = "folder for the stores", least: int = 1
) -> argparse.ArgumentParser:
    """Return a parser of the options that all pipelines have, with the default and the least size."""

    def integer(given: str) -> int:
        if (number := int(given)) < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, got {number}")
        return number

    parser = argparse.ArgumentParser(description=(text or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help=f"{kept}; what is there is kept")
    parser.add_argument("--size", type=integer, default=size, metavar="N", help=f"{what} (default {size})")
    parser.add_argument("--gpus", type=int, help="use this number of GPUs of this host")
    parser.add_argument("--scheduler", help="address of a Dask cluster that runs already")
    parser.add_argument("--picture", type=Path, help="write a picture, .svg or .png; needs matplotlib")
    return parser


@contextmanager
def connected(options: argparse.Namespace) -> Iterator[Any]:
    """Connect to the cluster that options name, if they do, as Dask's default client."""
    several = options.gpus if options.gpus and options.gpus > 1 else None  # one needs no cluster
    with connect(options.scheduler, gpus=several) as client, client.as_current() if client else nullcontext():
        yield client


def compute(tasks: list[Any], client: Any = None, on_gpu: bool = False, at_once: int = 4) -> list[Any]:
    """Compute tasks, on a GPU some at once; a bar on standard error shows the progress after a second."""
    with (
        redirect_stdout(sys.stderr),
        ProgressBar(minimum=1),
        dask.config.set(num_workers=at_once if on_gpu else None),
    ):
        if client and tasks:
            tasks = client.persist(tasks)
            import_module("distributed").progress(tasks, notebook=False)
        return list(dask.compute(*tasks))


def stored(
    store: Path, make: Callable[[], Any], client: Any = None, on_gpu: bool = False, backend: str = "cpu"
) -> Any:
    """Return the lazy array of a store, which is computed and written if it is not there."""
    if not store.exists():
        compute([make().to_zarr(store, compute=False)], client, on_gpu)
    return rd.open_zarr(store, backend=backend)


def on_processor(x: Any, on_gpu: bool) -> Any:
    """Return an array of numbers in memory as it is, or one of the same numbers on the GPU."""
    return type(x)(import_module("cupy").asarray(x.words), x.system) if on_gpu else x


def on_host(words: Any) -> np.ndarray:
    """Return words of either processor as an array of NumPy's."""
    return words.get() if hasattr(words, "get") else words


def save(file: Path, **arrays: Any) -> None:
    """Write arrays of either processor to a file of NumPy's, which is there whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with (partial := file.with_suffix(".partial")).open("wb") as stream:
        np.savez(stream, **{name: on_host(x) for name, x in arrays.items()})
    partial.rename(file)


@contextmanager
def drawing(picture: Path, width: float = 6.4, height: float = 3.2, columns: int = 1) -> Iterator[Any]:
    """Give axes, several where there are several columns, and write the picture of what is drawn on them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure.subplots(1, columns)
    figure.savefig(picture)
