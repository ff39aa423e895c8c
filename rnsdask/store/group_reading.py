"""Chunks of groups: reading, fingerprints and verification of all arrays of one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnsdask.backend import Array
from rnsdask.core.errors import ChangedStoreError, StoreError
from rnsdask.core.layout import chunk_slices
from rnsdask.store.attributes import json_hash
from rnsdask.store.group import RESIDUES, GroupInfo, hash_of_chunks, part_chunk_name
from rnsdask.store.location import JOB_KEY, METADATA_KEY, STAGED, Location, chunk_key
from rnsdask.store.metadata import StoreInfo
from rnsdask.store.reading import belonging, decode_chunk, fingerprint, read_chunk, versions_of


def read_group_chunk(
    info: GroupInfo, index: Sequence[int], read: Callable[..., Array] = read_chunk
) -> tuple[Array, dict[str, NDArray[Any]]]:
    """Read a chunk of every array and check it.

    That of the residues is read by `read`, which is called with their store and `index`.

    Raises
    ------
    CorruptChunkError
        If a chunk is missing, truncated, or does not match its checksum.
    StoreError
        If one cannot be read.
    """
    with belonging(info.location, info.opened):
        return read_parts(info.location, info.residues, info.parts, index, read)


def read_parts(
    location: Location,
    info: StoreInfo,
    parts: Iterable[tuple[str, bytes]],
    index: Sequence[int],
    read: Callable[..., Array] = read_chunk,
) -> tuple[Array, dict[str, NDArray[Any]]]:
    """Read a chunk of the residues, and of each part, given with its metadata document."""
    residues, found = read(info, index), {}
    selection, key = chunk_slices(index, info.shape, info.chunks), chunk_key(index)
    for name, metadata in parts:
        label = part_chunk_name(location, name, index)
        found[name] = decode_chunk(location.child(name), metadata, key, label, selection)
    return residues, found


def fingerprint_group(info: GroupInfo) -> str:
    """Hash of a group's metadata and of the state of each chunk, as `rnsdask.store.fingerprint`."""
    keys = [f"{name}/{chunk_key(index)}" for name, _ in info.parts for index in info.residues.indices()]
    metadata = [[name, document.decode()] for name, document in info.parts]
    states = repr(versions_of(info.location, keys))
    return json_hash([info.opened.digest, fingerprint(info.residues), metadata, states])


def verify_group(
    info: GroupInfo,
    problems_of: Callable[[NDArray[np.uint32], dict[str, NDArray[Any]]], Iterable[str]],
    *,
    map_chunks: Callable[..., Iterable[list[str]]] = map,
) -> Iterator[str]:
    """Read every chunk of a group, and describe whatever is wrong with it, as `rnsdask.store.verify` does.

    Parameters
    ----------
    problems_of
        Tells what is wrong between the residues of a chunk and its other parts.
    """
    indices = list(info.residues.indices())
    expected = {METADATA_KEY, JOB_KEY, f"{RESIDUES}/{METADATA_KEY}"}
    expected.update(f"{RESIDUES}/{info.residues.chunk_key(index)}" for index in indices)
    for name, _ in info.parts:
        expected |= {f"{name}/{METADATA_KEY}", *(f"{name}/{chunk_key(index)}" for index in indices)}
    expected.update(str(folder) for key in list(expected) for folder in PurePosixPath(key).parents)
    for key in sorted(info.location.versions().keys() - expected):
        if not key.startswith(f"{STAGED}/"):
            yield f"{info.path}: file {key} does not belong to the group"
    found = False
    problems_of_chunks = map_chunks(partial(_group_chunk_problems, info, problems_of), indices)
    for _, problems in zip(indices, problems_of_chunks, strict=True):
        found |= bool(problems)
        yield from problems
    group = info.residues.group
    names = [name for name, _ in info.parts]
    if not found and group not in (None, hash_of_chunks(info.location, info.residues, names)):
        yield f"{info.path}: its chunks are whole, but not those that it was completed with"


def _group_chunk_problems(
    info: GroupInfo, problems_of: Callable[..., Iterable[str]], index: tuple[int, ...]
) -> list[str]:
    try:
        residues, parts = read_group_chunk(info, index)
    except ChangedStoreError:
        raise
    except StoreError as error:
        return [str(error)]
    name = f"{info.path}: chunk {chunk_key(index)}"
    return [f"{name}: {problem}" for problem in problems_of(residues, parts)]
