"""Dask's arrays imported without what jobs have no use for, which takes longer than all the rest."""

import gc
import importlib.metadata
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rnsdask.backend import import_cupy, prepare_gpu

# CuPy has a module cupyx, which imports its own modules when they are asked for.
_UNUSED = ("xarray", "scipy", "sparse", "cupyx.scipy", "jinja2")


def import_dask_array(*, uses_gpu: bool = False) -> None:
    """Import ``dask.array``, which would import xarray, with it pandas, SciPy and more, to know their arrays.

    It would also import Jinja, for the HTML that notebooks show. In this process Dask then takes those of
    them that were not imported before not to be installed; a later import finds them. CuPy, whose arrays Dask
    must know, comes first, for it may need some of them. Nor does Dask write docstrings of its functions from
    NumPy's, which takes a quarter of its import. What installed packages offer is read once, not by each
    library that asks. With `uses_gpu`, a thread makes this process's GPU ready meanwhile.
    """
    hidden: list[str] = []
    is_first, is_collecting = "dask.array" not in sys.modules, gc.isenabled()
    gc.disable()  # what is imported stays: to look for garbage in it takes a tenth of the time
    try:
        import_cupy()
        if uses_gpu:
            prepare_gpu()
        hidden = [name for name in _UNUSED if name not in sys.modules]
        for name in hidden:
            sys.modules[name] = None  # type: ignore[assignment]  # Python's way to say that there is none
        with _entry_points_read_once():
            with _numpys_docstrings():
                import dask.array  # noqa: F401

            import rnsdask.jobs.memory_plan
            import rnsdask.jobs.run  # noqa: F401
    finally:
        for name in hidden:
            del sys.modules[name]
        if is_first:
            gc.freeze()  # nor look later, which the end of the process would do too
        if is_collecting:
            gc.enable()


@contextmanager
def _numpys_docstrings() -> Iterator[None]:
    """Functions that Dask derives of others have the docstrings of these, as they are."""
    from dask import utils

    written = getattr(utils, "_derived_from", None)
    if written is None:  # a Dask that does it in another way
        yield
        return

    def taken(cls: Any, method: Any, *_: Any, **__: Any) -> str | None:
        docstring: str | None = getattr(cls, method.__name__).__doc__  # Dask expects AttributeErrors
        return docstring

    utils._derived_from = taken
    try:
        yield
    finally:
        utils._derived_from = written


@contextmanager
def _entry_points_read_once() -> Iterator[None]:
    """Dask, Zarr, numcodecs and fsspec each read the entry points of all packages when they are imported."""
    read = importlib.metadata.entry_points
    found: list[Any] = []

    def entry_points(**parameters: Any) -> Any:
        if is_over:  # of a library that keeps this function
            return read(**parameters)
        if not found:
            found.append(read())
        return found[0].select(**parameters)

    is_over = False
    importlib.metadata.entry_points = entry_points
    try:
        yield
    finally:
        is_over = True
        importlib.metadata.entry_points = read
