"""Options, connections, progress and pictures that pipelines share."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import dask
import numpy as np
from dask.diagnostics import ProgressBar

from rnsdask.cluster.connecting import connect


def parser_of(text: str | None, size: int, what: str, kept: str = "folder for the stores") -> Any:
    """Return a parser of the options that all pipelines have, with a default size and what it is."""
    parser = argparse.ArgumentParser(description=(text or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help=f"{kept}; what is there is kept")
    parser.add_argument("--size", type=int, default=size, help=f"{what} (default {size})")
    parser.add_argument("--gpus", type=int, help="use so many GPUs of this host")
    parser.add_argument("--scheduler", help="address of a Dask cluster that runs already")
    parser.add_argument("--picture", type=Path, help="write a picture, .svg or .png; needs matplotlib")
    return parser


@contextmanager
def connected(options: argparse.Namespace) -> Iterator[Any]:
    """Connect to the cluster that options name, if they do, as Dask's default client."""
    several = options.gpus if options.gpus and options.gpus > 1 else None  # one needs no cluster
    with connect(options.scheduler, gpus=several) as client, client.as_current() if client else nullcontext():
        yield client


def compute(tasks: Any, client: Any = None, on_gpu: bool = False) -> Any:
    """Compute tasks, with a bar of their progress where it takes longer than a second."""
    if client and tasks:
        tasks = client.persist(tasks)
        import_module("distributed").progress(tasks, notebook=False)
    with ProgressBar(minimum=1), dask.config.set(num_workers=4 if on_gpu else None):
        return dask.compute(tasks)[0]


def save(file: Path, **arrays: Any) -> None:
    """Write arrays of either processor to a file of NumPy's, which is there whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with (partial := file.with_suffix(".partial")).open("wb") as stream:
        np.savez(stream, **{name: x.get() if hasattr(x, "get") else x for name, x in arrays.items()})
    partial.rename(file)


@contextmanager
def drawing(picture: Path, width: float = 6.4, height: float = 3.2) -> Iterator[Any]:
    """Give axes, and write the picture of what is drawn on them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure.subplots()
    figure.savefig(picture)
