"""Ciphertexts and plaintexts in files of Microsoft SEAL, as arrays of elements of prime fields."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, SupportsIndex, TypeAlias

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import delayed
from numpy.typing import NDArray

from rnsdask.arrays.field_array import FieldArray
from rnsdask.backend import to_backend
from rnsdask.cluster.workers import checked_workers
from rnsdask.core.errors import JobError
from rnsdask.core.files import new_file
from rnsdask.core.moduli import as_integer
from rnsdask.core.places import local_path
from rnsdask.fields.system import PrimeFields, check_prime_fields, prime_fields
from rnsdask.io.seal import Compression, SealForm, can_have, check_same_form, object_bytes, read_object
from rnsdask.lazy.chunks import rechunk
from rnsdask.lazy.fields import check_elements
from rnsdask.lazy.map import map_chunks

_Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def read_seal(
    paths: _Paths, primes: PrimeFields | Iterable[SupportsIndex], *, chunks: SupportsIndex | None = None
) -> tuple[FieldArray, SealForm]:
    """Read files of Microsoft SEAL 4, each a ciphertext or a plaintext, into one array.

    Compression is found in each file. Reading zstandard, in which SEAL writes by default, needs
    ``pip install 'rnsdask[zstd]'`` before Python 3.14.

    Parameters
    ----------
    paths : str, path-like, or iterable of them
        Local files of one form. On a cluster the workers read them.
    primes : PrimeFields or iterable of int
        Primes of the ciphertexts' level, in SEAL's order; for plaintexts of BFV and BGV, the plain modulus.
    chunks : int, optional
        Files of a chunk of a lazy array. Without it all are read at once.

    Returns
    -------
    x : FieldArray, shape (files, polynomials, N), or (files, N) of plaintexts
        Residues as they are in the files: of coefficients, or of transforms in SEAL's order.
    form : SealForm
        What the files say besides, as :func:`write_seal` takes it.

    Raises
    ------
    InputError
        If a file is cut, of another kind or another SEAL, or seen to be damaged (without compression it has
        no checksum, and by zstandard only what :func:`write_seal` has written), a residue is not below its
        prime, or form and shape are not those of the first file. Of a lazy array when a chunk is computed,
        but for the first file.
    TypeError, ValueError
        If primes are none, or a path is a URL.
    """
    files = _files(paths)
    fields = prime_fields(primes)
    if chunks is None:
        form, words = _read_files(files, fields)
        return FieldArray(words, fields), form
    per_chunk = min(as_integer(chunks, "chunks"), len(files))
    if per_chunk < 1:
        raise ValueError(f"chunks must be at least 1, got {per_chunk}")
    form, words = _read_files(files[:1], fields)
    lengths = [min(per_chunk, len(files) - start) for start in range(0, len(files), per_chunk)]
    # A task gets the paths of its chunk alone.
    names = np.array(files, object).reshape(1, -1, *(1,) * (words.ndim - 2))
    words = map_chunks(
        _read_chunk,
        da.from_array(names, chunks=(1, per_chunk, *names.shape[2:])),
        rows=fields.rows,
        chunks=(lengths, *((length,) for length in words.shape[2:])),
        system=fields,
        like_first=(form, words.shape[2:]),
    )
    return FieldArray(words, fields), form


def write_seal(
    paths: _Paths,
    x: FieldArray,
    form: SealForm,
    *,
    compression: Compression = "none",
    overwrite: bool = False,
) -> None:
    """Write each ciphertext or plaintext of an array to a file, as Microsoft SEAL 4 loads it.

    A lazy array is computed chunk by chunk; on a cluster the workers write the files.

    Parameters
    ----------
    paths : str, path-like, or iterable of them
        A local file for each; it gets its name when it is complete.
    x : FieldArray, shape (files, polynomials, N), or (files, N) for plaintexts
        Residues as :func:`read_seal` returns them.
    form : SealForm
        The form of all files: that of files read before, with ``dataclasses.replace`` where it has changed.
    compression : {"none", "zlib", "zstd"}
        Zstandard needs ``pip install 'rnsdask[zstd]'`` before Python 3.14.
    overwrite : bool
        Replace existing files.

    Raises
    ------
    JobError
        If a file exists, and `overwrite` is false; nothing is written then.
    TypeError, ValueError
        If the array, its shape or the compression is none that files can have, or a path is a URL or is given
        twice.
    """
    check_elements("write_seal", x)
    check_prime_fields("write_seal", x.system)
    files = _files(paths)
    if x.ndim not in (2, 3) or len(x) != len(files):
        raise ValueError(
            f"{len(files)} files take an array of shape ({len(files)}, polynomials, N), or ({len(files)}, N) "
            f"of plaintexts; got {x.shape}"
        )
    if not can_have(x.shape[1:]):
        raise ValueError(
            "ciphertexts have 2 to 16 polynomials of 2 to 131072 coefficients, and plaintexts one of up to "
            f"131072; got {x.shape}"
        )
    places = [os.path.realpath(file) for file in files]
    if len(set(places)) < len(places):
        twice = next(file for file, count in Counter(places).items() if count > 1)
        raise ValueError(f"paths must be different files, got {twice} more than once")
    if compression not in ("none", "zlib", "zstd"):
        raise ValueError(f"compression must be 'none', 'zlib' or 'zstd', got {compression!r:.40}")
    if not overwrite and (there := next(filter(Path.exists, map(Path, files)), None)):
        raise JobError(f"{there} exists; overwrite=True replaces it")
    if not x._is_lazy:
        _write_files(x.words, files, form, compression)
        return
    words: Any = rechunk(x.words, {axis: -1 for axis in range(x.words.ndim) if axis != 1})  # type: ignore[arg-type]
    tasks: list[Any] = []
    write, first = delayed(_write_files, pure=False, traverse=False), 0
    for block in words.to_delayed().ravel():
        count = words.chunks[1][len(tasks)]
        tasks.append(write(block, files[first : first + count], form, compression))
        first += count
    with checked_workers():
        compute(*tasks)


def _files(paths: _Paths) -> tuple[str, ...]:
    """Absolute paths, which workers read too."""
    some = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not some:
        raise ValueError("paths must name at least one file, got none")
    return tuple(str(local_path(path, "paths").absolute()) for path in some)


def _read_files(
    files: Sequence[str],
    system: PrimeFields,
    like_first: tuple[SealForm, tuple[int, ...]] | None = None,
) -> tuple[SealForm, NDArray[Any]]:
    """Form and words (primes, files, *shape) of files, all of them of the first one's form and shape."""
    words: Any = None
    for i, file in enumerate(files):
        form, residues = read_object(Path(file).read_bytes(), file, system.primes)
        shape = (*residues.shape[:-2], residues.shape[-1])
        like_first = like_first or (form, shape)
        check_same_form(form, shape, file, *like_first)
        if words is None:
            words = np.empty((system.rows, len(files), *shape), system.word_dtype)
        words[:, i] = np.moveaxis(residues, -2, 0)
    return form, words


def _read_chunk(names: NDArray[np.object_], **options: Any) -> NDArray[Any]:
    return _read_files(names.ravel().tolist(), **options)[1]


def _write_files(words: Any, files: Sequence[str], form: SealForm, compression: Compression) -> None:
    """Write the files of a chunk; those of a task that was begun before are replaced."""
    objects = np.moveaxis(to_backend(words, "cpu"), 0, -2)  # (files, polynomials, primes, N)
    for file, residues in zip(files, objects, strict=True):
        with new_file(Path(file), overwrite=True) as stream:
            stream.write(object_bytes(residues, form, compression))
