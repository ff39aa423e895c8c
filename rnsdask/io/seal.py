"""Files of Microsoft SEAL 4: one ciphertext or plaintext, as NumPy arrays of residues."""

import hashlib
import io
import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rnsdask.core.errors import InputError
from rnsdask.io.compression import ZLIB, compress_as, decompressed_as

Scheme: TypeAlias = Literal["bfv", "ckks", "bgv"]
Compression: TypeAlias = Literal["none", "zlib", "zstd"]

_SCHEMES = {"bfv": 1, "ckks": 2, "bgv": 3}  # scheme_type of encryptionparams.h
_MODES = {"none": 0, "zlib": 1, "zstd": 2}  # compr_mode_type of serialization.h
_SUFFIXES = {1: ZLIB, 2: ".zst"}

# SEALHeader of serialization.h: magic, its own size, version, compression, reserved, size of the whole.
_HEADER = struct.Struct("<HBBBBHQ")
_MAGIC, _MAJOR = 0xA15E, 4
# Members of ciphertext.cpp and plaintext.cpp; a DynArray of residues follows: header, count, residues.
_CIPHERTEXT = struct.Struct("<32sBQQQdQ")
_PLAINTEXT = struct.Struct("<32sQd")
_COUNT = struct.Struct("<Q")
_NO_PARAMETERS = bytes(32)

_MOST_POLYNOMIALS, _MOST_COEFFICIENTS = 16, 131072  # defines.h; no file makes more be allocated


@dataclass(frozen=True)
class SealForm:
    """All that a file of SEAL says of a ciphertext or plaintext, besides its residues.

    Parameters
    ----------
    parms_id : bytes
        SEAL's hash of the encryption parameters, 32 bytes, as :meth:`parms_id_of` computes it; zeros for a
        plaintext of coefficients, as of BFV.
    is_ntt : bool
        Whether residues are transforms, in SEAL's order, and not coefficients.
    scale : float
        The factor by which CKKS has multiplied the values.
    correction_factor : int
        The factor of BGV, which is 1 in other schemes and in plaintexts.
    minor : int
        Minor version of SEAL, 3 for 4.3. SEAL before 4.4 reads files of its own alone, 4.4 also earlier ones.

    Raises
    ------
    ValueError
        If `parms_id` does not have 32 bytes, or the scale is not finite.
    """

    parms_id: bytes
    is_ntt: bool
    scale: float = 1.0
    correction_factor: int = 1
    minor: int = 3

    def __post_init__(self) -> None:
        if len(self.parms_id) != len(_NO_PARAMETERS):
            raise ValueError(f"parms_id must have 32 bytes, got {len(self.parms_id)}")
        if not math.isfinite(self.scale):
            raise ValueError(f"scale must be finite, got {self.scale}")

    @staticmethod
    def parms_id_of(scheme: Scheme, degree: int, primes: Iterable[int], plain_modulus: int = 0) -> bytes:
        """Compute SEAL's hash of encryption parameters: encryptionparams.cpp.

        Parameters
        ----------
        scheme : {"bfv", "ckks", "bgv"}
        degree : int
            Count of the coefficients of a polynomial.
        primes : iterable of int
            Primes of the ciphertext's level: without the special prime, and without those that rescaling or
            switching of the modulus has removed.
        plain_modulus : int
            Of BFV and BGV.

        Raises
        ------
        ValueError
            If `scheme` is another.
        """
        if scheme not in _SCHEMES:
            raise ValueError(f"scheme must be 'bfv', 'ckks' or 'bgv', got {scheme!r:.40}")
        words = [_SCHEMES[scheme], degree, *primes, plain_modulus]
        return hashlib.blake2b(struct.pack(f"<{len(words)}Q", *words), digest_size=32).digest()


def read_object(data: bytes, name: str, primes: Sequence[int]) -> tuple[SealForm, NDArray[np.uint64]]:
    """Read a ciphertext, with residues (polynomials, primes, N), or a plaintext, with (primes, N).

    InputError, which begins with `name`, if the bytes are damaged or cut, or are no ciphertext or plaintext
    of SEAL 4 with residues modulo these primes.
    """
    minor, mode, size = _read_header(data, name)
    if size != len(data):
        kind = "cut" if size > len(data) else "followed by something else"
        raise InputError(f"{name}: its header announces {size} bytes, it has {len(data)}: it is {kind}")
    stream: Any = io.BytesIO(data[_HEADER.size :])
    stream = decompressed_as(stream, _SUFFIXES[mode], name) if mode in _SUFFIXES else stream
    begin = _take(stream, _PLAINTEXT.size + _HEADER.size, name)
    if begin[_PLAINTEXT.size :].startswith(_MAGIC.to_bytes(2, "little")):
        parms_id, count, scale = _PLAINTEXT.unpack_from(begin)
        form = _form(name, parms_id, parms_id != _NO_PARAMETERS, scale, minor=minor)
        shape: tuple[int, ...] = _plain_shape(count, primes, name)
    else:
        begin += _take(stream, _CIPHERTEXT.size - _PLAINTEXT.size, name)
        parms_id, is_ntt, polynomials, degree, rows, scale, factor = _CIPHERTEXT.unpack_from(begin)
        form, shape = _form(name, parms_id, is_ntt != 0, scale, factor, minor), (polynomials, rows, degree)
        if not can_have((polynomials, degree)):
            sizes = f"{polynomials} polynomials of {degree} coefficients"
            raise InputError(f"{name}: it is no ciphertext or plaintext: it announces {sizes}")
        if rows != len(primes):
            raise InputError(f"{name}: it has residues modulo {rows} primes, and {len(primes)} are given")
    return form, _read_residues(stream, begin[-_HEADER.size :], shape, name, primes)


def _form(name: str, *members: Any, **others: Any) -> SealForm:
    """Make a form of what a file says; InputError where it cannot be."""
    try:
        return SealForm(*members, **others)
    except ValueError as error:
        raise InputError(f"{name}: its {error}") from None


def can_have(shape: tuple[int, ...]) -> bool:
    """Whether a file can have a ciphertext (polynomials, N), or a plaintext (N,), of a shape."""
    *outer, degree = shape
    least = 2 if outer else 1
    return least <= degree <= _MOST_COEFFICIENTS and all(2 <= k <= _MOST_POLYNOMIALS for k in outer)


def _read_header(data: bytes, name: str) -> tuple[int, int, int]:
    """Minor version, compression and size of the whole that a header states."""
    if len(data) < _HEADER.size:
        raise InputError(f"{name}: it is no file of SEAL: it has {len(data)} bytes, and a header has 16")
    magic, length, major, minor, mode, _, size = _HEADER.unpack_from(data)
    if (magic, length) != (_MAGIC, _HEADER.size):
        raise InputError(f"{name}: it is no file of SEAL, which begin with 5ea110, got {data[:3].hex()}")
    if major != _MAJOR:
        raise InputError(f"{name}: it is of SEAL {major}.{minor}; files of SEAL 4 are read")
    if mode not in _MODES.values():
        raise InputError(f"{name}: its compression is {mode}; SEAL has 0 (none), 1 (zlib) and 2 (zstd)")
    return minor, mode, size


def _take(stream: Any, count: int, name: str) -> bytes:
    """Read exactly so many bytes."""
    data: bytes = stream.read(count)
    if len(data) < count:
        raise InputError(f"{name}: it ends before its residues: it is cut, or no ciphertext or plaintext")
    return data


def _plain_shape(count: int, primes: Sequence[int], name: str) -> tuple[int, ...]:
    degree, rest = divmod(count, len(primes))
    if rest or not can_have((degree,)):
        raise InputError(f"{name}: its plaintext has {count} residues, and {len(primes)} primes are given")
    return len(primes), degree


def _read_residues(
    stream: Any, header: bytes, shape: tuple[int, ...], name: str, primes: Sequence[int]
) -> NDArray[np.uint64]:
    """Read the DynArray that ends an object, and check its residues."""
    _, mode, size = _read_header(header, f"{name}: its residues")
    count = _COUNT.unpack(_take(stream, _COUNT.size, name))[0]
    expected = int(np.prod(shape))
    if len(shape) == 3 and shape[0] == 2 and 2 * count == expected:
        raise InputError(
            f"{name}: it has a seed in place of its second polynomial; "
            "SEAL writes that polynomial when it loads and saves the ciphertext"
        )
    nbytes = 8 * expected
    if (mode, count, size) != (0, expected, _HEADER.size + _COUNT.size + nbytes):
        raise InputError(f"{name}: it announces {count} residues in {size} bytes, and its shape is {shape}")
    data = stream.read(nbytes)
    if len(data) < nbytes or stream.read(1):
        raise InputError(f"{name}: it does not end with the last of the {expected} residues it announces")
    residues = np.frombuffer(data, "<u8").reshape(shape)
    limits = np.array(primes, np.uint64)[:, None]
    if (wrong := residues >= limits).any():
        place = np.unravel_index(int(wrong.argmax()), shape)
        found, prime = residues[place], primes[int(place[-2])]
        where = (
            f"coefficient {place[-1]}"
            if len(shape) == 2
            else f"polynomial {place[0]}, coefficient {place[-1]}"
        )
        raise InputError(f"{name}: {where} has the residue {found}, which is not below its prime {prime}")
    return residues


def object_bytes(residues: NDArray[np.uint64], form: SealForm, compression: Compression) -> bytes:
    """Return the bytes of a ciphertext (polynomials, primes, N) or plaintext (primes, N) as SEAL has them."""
    if residues.ndim == 3:
        polynomials, rows, degree = residues.shape
        sizes = (form.is_ntt, polynomials, degree, rows, form.scale, form.correction_factor)
        members = _CIPHERTEXT.pack(form.parms_id, *sizes)
    else:
        members = _PLAINTEXT.pack(form.parms_id, residues.size, form.scale)
    data = residues.astype("<u8").tobytes()
    nested = _header(_COUNT.size + len(data), 0, form.minor) + _COUNT.pack(residues.size)
    whole = b"".join((members, nested, data))
    mode = _MODES[compression]
    if mode in _SUFFIXES:
        whole = compress_as(whole, _SUFFIXES[mode])
    return _header(len(whole), mode, form.minor) + whole


def _header(size: int, mode: int, minor: int) -> bytes:
    """Header of what takes `size` bytes after it."""
    return _HEADER.pack(_MAGIC, _HEADER.size, _MAJOR, minor, mode, 0, _HEADER.size + size)


def check_same_form(form: SealForm, shape: tuple[int, ...], name: str, first: Any, first_shape: Any) -> None:
    """Raise InputError, which begins with `name`, if a file differs in form from the first of several."""
    if shape != first_shape:
        raise InputError(f"{name}: its residues have shape {shape}, those of the first file {first_shape}")
    for field in fields(form):
        found, expected = getattr(form, field.name), getattr(first, field.name)
        if found != expected:
            found, expected = (x.hex() if isinstance(x, bytes) else x for x in (found, expected))
            raise InputError(f"{name}: its {field.name} is {found}, that of the first file {expected}")
