"""Labels of a job that reduces groups, and what is reduced by them."""

from pathlib import Path
from typing import Any

import numpy as np

from rnsdask import store
from rnsdask.core.errors import StoreError
from rnsdask.core.places import is_url, local_path
from rnsdask.io.label_files import read_labels
from rnsdask.jobs.hashes import import_hash
from rnsdask.jobs.sources import OF_NUMBERS, Source

_LABEL_BYTES = 100
"""Bytes of a label and its codes in memory: Python's text of some 20 characters."""

_PARTS_HELD = 32
"""Results of chunks that wait in memory at a time, in a tree that combines 16."""


def split_place(text: str) -> tuple[str, str | None]:
    """Split ``FILE:COLUMN`` into a path and a column, None without one."""
    path, colon, column = text.rpartition(":")
    if not colon or is_url(text) or Path(text).exists() or not Path(path).is_file():
        return text, None
    return path, column


def labels_at(text: str) -> Any:
    """Read labels from ``FILE:COLUMN``, a file, or a Zarr array of integers or text, of any program.

    The integers of a store of numbers are labels too.
    """
    path, column = split_place(text)
    if not is_url(path) and (file := local_path(path, "labels")).is_file():
        return read_labels(file, column)
    try:
        numbers = None if store.is_plain(path) else Source.at(path, OF_NUMBERS)
    except StoreError:  # of another program, or damaged: then this is an error too
        numbers = None
    return np.asarray(store.open_any_array(path)[...]) if numbers is None else numbers.array().to_ints()


def labels_hash(text: str, output: str) -> str | None:
    """Hash of the file or array of labels as it is now, for that of the job that writes `output`."""
    path, column = split_place(text)
    return import_hash(path, output, column=column)


def bytes_held(numbers: int, words: int, chunks: int, groups: int) -> int:
    """Bytes of the labels, and of the results of chunks that wait for one another."""
    of_results = min(groups, -(-numbers // max(chunks, 1))) * min(chunks, _PARTS_HELD) + groups
    return numbers * _LABEL_BYTES + 4 * words * of_results
