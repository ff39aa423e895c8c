"""Files of Microsoft SEAL: bytes written down from SEAL's sources, damaged ones, and the library itself."""

import dataclasses
import hashlib
import struct
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rnsdask as rd

WIDE = [1152921504606748673, 1099510890497]  # primes that SEAL chooses for N = 8192
NARROW = [132120577, 786433]
PARMS = bytes(range(1, 33))


def zstandard() -> Any:
    return pytest.importorskip("backports.zstd" if sys.version_info < (3, 14) else "compression.zstd")


def wrap(packed: bytes, mode: int = 0, minor: int = 3) -> bytes:
    """Bytes after their SEALHeader."""
    return struct.pack("<HBBBBHQ", 0xA15E, 16, 4, minor, mode, 0, 16 + len(packed)) + packed


def pack(members: bytes, mode: int = 0, minor: int = 3) -> bytes:
    """Serialization::Save."""
    packed = (members, zlib.compress(members))[mode] if mode < 2 else zstandard().compress(members)
    return wrap(packed, mode, minor)


def plain(count: int, residues: list[int]) -> bytes:
    """Plaintext::save_members."""
    return pack(struct.pack("<32sQd", PARMS, count, 1.0) + residues_bytes(residues))


def residues_bytes(residues: list[int]) -> bytes:
    """DynArray::save_members with its header."""
    return pack(struct.pack(f"<Q{len(residues)}Q", len(residues), *residues))


def ciphertext(
    polynomials: list[list[list[int]]], mode: int = 0, minor: int = 3, is_ntt: int = 1, **changed: Any
) -> bytes:
    """Ciphertext::save_members, of residues by polynomial and prime."""
    residues = [word for polynomial in polynomials for row in polynomial for word in row]
    sizes = {"size": len(polynomials), "degree": len(polynomials[0][0]), "primes": len(polynomials[0])}
    members = struct.pack(
        "<32sBQQQdQ",
        PARMS,
        is_ntt,
        *(sizes | {k: v for k, v in changed.items() if k in sizes}).values(),
        2.5,
        1,
    )
    return pack(members + changed.get("residues", residues_bytes(residues)), mode, minor)


def polynomials_of(seed: int, primes: list[int], count: int = 2, degree: int = 8) -> list[list[list[int]]]:
    generator = np.random.default_rng(seed)
    return [[generator.integers(0, p, degree).tolist() for p in primes] for _ in range(count)]


def as_words(objects: list[list[list[list[int]]]]) -> list[list[list[list[int]]]]:
    """Words (primes, files, polynomials, N) of files."""
    rows = range(len(objects[0][0]))
    return [[[polynomial[row] for polynomial in file] for file in objects] for row in rows]


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., list[Path]]:
    def write(*files: bytes) -> list[Path]:
        paths = [tmp_path / f"{i}.seal" for i in range(len(files))]
        for path, data in zip(paths, files, strict=True):
            path.write_bytes(data)
        return paths

    return write


@pytest.mark.parametrize("primes", [WIDE, NARROW, [NARROW[0], WIDE[1]], WIDE[:1]])
@pytest.mark.parametrize("count", [2, 3])
def test_ciphertexts(primes: list[int], count: int, save: Callable[..., list[Path]], tmp_path: Path) -> None:
    objects = [polynomials_of(seed, primes, count) for seed in range(5)]
    objects[0][0][0][0], objects[1][-1][-1][-1] = primes[0] - 1, primes[-1] - 1
    paths = save(*(ciphertext(polynomials, mode=0) for polynomials in objects))
    for chunks in (None, 1, 2, 5, 9):
        x, form = rd.read_seal(paths, primes, chunks=chunks)
        assert form == rd.SealForm(PARMS, True, 2.5, 1, 3)
        assert x.shape == (5, count, 8)
        assert x.system == rd.PrimeFields(primes)
        words = np.asarray(x.words)
        assert words.dtype == x.system.word_dtype
        assert words.tolist() == as_words(objects)
        again = [tmp_path / f"again-{chunks}-{i}" for i in range(5)]
        rd.write_seal(again, x, form)
        assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]
    assert rd.read_seal(str(paths[0]), primes)[0].shape == (1, count, 8)


@pytest.mark.parametrize("mode", [1, 2])
def test_compressed(mode: int, save: Callable[..., list[Path]], tmp_path: Path) -> None:
    if mode == 2:
        zstandard()
    polynomials = polynomials_of(7, WIDE, degree=4096)
    paths = save(ciphertext(polynomials, mode))
    x, form = rd.read_seal(paths, WIDE)
    assert x.words.tolist() == as_words([polynomials])
    rd.write_seal(
        tmp_path / "written", x, form, compression="none" if mode == 0 else ("zlib", "zstd")[mode - 1]
    )
    data = (tmp_path / "written").read_bytes()
    assert data[:6] == b"\x5e\xa1\x10\x04\x03" + bytes([mode])
    assert int.from_bytes(data[8:16], "little") == len(data)
    unpack = zlib.decompress if mode == 1 else zstandard().decompress
    assert unpack(data[16:]) == ciphertext(polynomials)[16:]


def test_plaintexts(save: Callable[..., list[Path]], tmp_path: Path) -> None:
    rows = [[1, 2, 3, 4], [5, 6, 7, 8]]
    transformed = plain(8, [*rows[0], *rows[1]])
    x, form = rd.read_seal(save(transformed), WIDE)
    assert (x.shape, x.words.tolist()) == ((1, 4), [[rows[0]], [rows[1]]])
    assert form == rd.SealForm(PARMS, True)
    rd.write_seal(tmp_path / "x", x, form)
    assert (tmp_path / "x").read_bytes() == transformed
    of_coefficients = pack(struct.pack("<32sQd", bytes(32), 3, 1.0) + residues_bytes([1, 65536, 0]))
    x, form = rd.read_seal(save(of_coefficients), [65537])
    assert (x.tolist(), form) == ([[1, 65536, 0]], rd.SealForm(bytes(32), False))
    rd.write_seal(tmp_path / "y", x, form)
    assert (tmp_path / "y").read_bytes() == of_coefficients


def test_hash_of_parameters() -> None:
    """The scheme, N, the primes and the plain modulus, as words of 64 bits."""
    words = np.array([1, 8192, *WIDE, 65537], "<u8")
    expected = hashlib.blake2b(words.tobytes(), digest_size=32).digest()
    assert rd.SealForm.parms_id_of("bfv", 8192, WIDE, 65537) == expected
    with pytest.raises(ValueError, match="scheme must be 'bfv', 'ckks' or 'bgv', got 'tfhe'"):
        rd.SealForm.parms_id_of("tfhe", 8192, WIDE)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="parms_id must have 32 bytes, got 3"):
        rd.SealForm(b"abc", True)


GOOD = polynomials_of(3, WIDE)
WHOLE = ciphertext(GOOD)
HIGH = [[[WIDE[0], *GOOD[0][0][1:]], GOOD[0][1]], GOOD[1]]


PACKED = zlib.compress(WHOLE[16:])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has 0 bytes, and a header has 16"),
        (WHOLE[:15], "it has 15 bytes, and a header has 16"),
        (b"PK" + WHOLE[2:], "begin with 5ea110, got 504b10"),
        (WHOLE[:2] + b"\x09" + WHOLE[3:], "begin with 5ea110, got 5ea109"),
        (WHOLE[:3] + b"\x03\x06" + WHOLE[5:], "it is of SEAL 3.6; files of SEAL 4 are read"),
        (WHOLE[:5] + b"\x03" + WHOLE[6:], r"its compression is 3; SEAL has 0 \(none\)"),
        (WHOLE[:-1], "announces 369 bytes, it has 368: it is cut"),
        (WHOLE + b"x", "announces 369 bytes, it has 370: it is followed by something else"),
        (pack(b""), "it ends before its residues"),
        (pack(WHOLE[16:90]), "it ends before its residues"),
        (pack(WHOLE[16:-8]), "does not end with the last of the 32 residues"),
        (pack(WHOLE[16:] + b"x"), "does not end with the last of the 32 residues"),
        (ciphertext(GOOD, size=2**40), "it announces 1099511627776 polynomials of 8 coefficients"),
        (ciphertext(GOOD, size=1), "it announces 1 polynomials of 8 coefficients"),
        (ciphertext(GOOD, degree=2**60), "2 polynomials of 1152921504606846976 coefficients"),
        (ciphertext(GOOD, degree=16), "it has a seed in place of its second polynomial"),
        (ciphertext(GOOD, size=16, degree=131072), r"32 residues in 280 bytes, and its shape is \(16, 2"),
        (ciphertext(GOOD, primes=3), "residues modulo 3 primes, and 2 are given"),
        (ciphertext(polynomials_of(1, WIDE[:1])), "residues modulo 1 primes, and 2 are given"),
        (ciphertext(GOOD, residues=residues_bytes([0] * 31)), "announces 31 residues"),
        (ciphertext(GOOD, residues=b"x" * 280), "its residues: it is no file of SEAL"),
        (ciphertext(HIGH), "polynomial 0, coefficient 0 has the residue 1152921504606748673, which is not"),
        (plain(3, [1, 2, 3]), "its plaintext has 3 residues, and 2 primes"),
        (plain(2**60, [1]), "its plaintext has 1152921504606846976 residues"),
        (plain(4, [1, 2, 3, WIDE[1]]), "seal: coefficient 1 has the residue 1099510890497"),
        (wrap(WHOLE[16:], 1), "its compressed data are damaged or cut"),
        (wrap(PACKED[:-3], 1), "its compressed data are damaged or cut: the stream is truncated"),
        (wrap(PACKED + b"x", 1), "its compressed data are damaged or cut: bytes follow the end"),
    ],
)
def test_damaged_files(data: bytes, message: str, save: Callable[..., list[Path]]) -> None:
    (path,) = save(data)
    with pytest.raises(rd.InputError, match=message) as caught:
        rd.read_seal(path, WIDE)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mode", [1, 2])
def test_zeros_without_end_take_no_memory(mode: int, save: Callable[..., list[Path]]) -> None:
    """A compressed file that would grow to 256 MiB."""
    if mode == 2:
        zstandard()
    begin = ciphertext(GOOD)[16:-256]
    packer = zlib.compressobj() if mode == 1 else zstandard().ZstdCompressor()
    parts = [packer.compress(begin), *(packer.compress(bytes(2**24)) for _ in range(16)), packer.flush()]
    (path,) = save(wrap(b"".join(parts), mode))
    tracemalloc.start()
    with pytest.raises(rd.InputError, match="does not end with the last of the 32 residues"):
        rd.read_seal(path, WIDE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes(seed: int, save: Callable[..., list[Path]]) -> None:
    """Any byte: the same residues, others, or InputError; nothing else."""
    print(seed)
    generator = np.random.default_rng(seed)
    for mode in (0, 1):
        whole = ciphertext(GOOD, mode)
        for _ in range(150):
            data = bytearray(whole)
            data[generator.integers(len(data))] = generator.integers(256)
            del data[generator.integers(len(data)) if generator.random() < 0.2 else len(data) :]
            try:
                x, _ = rd.read_seal(save(bytes(data)), WIDE)
            except rd.InputError:
                continue
            assert x.shape == (1, 2, 8)
            assert all((row < p).all() for row, p in zip(x.words, WIDE, strict=True))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (ciphertext(GOOD, is_ntt=0), "its is_ntt is False, that of the first file True"),
        (ciphertext(GOOD, minor=4), "its minor is 4, that of the first file 3"),
        (ciphertext(polynomials_of(1, WIDE, 3)), r"shape \(3, 8\), those of the first file \(2, 8\)"),
        (ciphertext(polynomials_of(1, WIDE, degree=4)), r"shape \(2, 4\), those of the first file \(2, 8\)"),
        (WHOLE[:16] + PARMS[::-1] + WHOLE[48:], "its parms_id is 201f1e1d.*that of the first file 01020304"),
    ],
)
def test_files_of_several_forms(other: bytes, message: str, save: Callable[..., list[Path]]) -> None:
    paths = save(WHOLE, WHOLE, other)
    for chunks in (None, 1, 3):
        with pytest.raises(rd.InputError, match=f"2.seal: .*{message}"):
            rd.read_seal(paths, WIDE, chunks=chunks)[0].compute()


def test_wrong_calls(save: Callable[..., list[Path]], tmp_path: Path) -> None:
    paths = save(WHOLE, WHOLE)
    x, form = rd.read_seal(paths, WIDE)
    with pytest.raises(ValueError, match="paths must name at least one file, got none"):
        rd.read_seal([], WIDE)
    with pytest.raises(ValueError, match="chunks must be at least 1, got 0"):
        rd.read_seal(paths, WIDE, chunks=0)
    with pytest.raises(ValueError, match="is not a prime"):
        rd.read_seal(paths, [15, 17])
    with pytest.raises(FileNotFoundError):
        rd.read_seal(tmp_path / "missing", WIDE)
    with pytest.raises(rd.JobError, match=r"1\.seal exists; overwrite=True replaces it"):
        rd.write_seal([tmp_path / "new", paths[1]], x, form)
    assert not (tmp_path / "new").exists()
    with pytest.raises(
        ValueError, match=r"3 files take an array of shape \(3, polynomials, N\).*\(2, 2, 8\)"
    ):
        rd.write_seal(["a", "b", "c"], x, form)
    with pytest.raises(TypeError, match="write_seal takes a FieldArray, got RNSArray"):
        rd.write_seal(paths, rd.from_ints([1, 2]), form)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"different files, got .*/q\.seal more than once"):
        rd.write_seal([tmp_path / "q.seal", tmp_path / "a" / ".." / "q.seal"], x, form)
    for shape in ((2, 1, 8), (2, 17, 8), (2, 2, 1), (2, 0), (2, 0, 8)):
        with pytest.raises(ValueError, match="ciphertexts have 2 to 16 polynomials"):
            rd.write_seal([tmp_path / "u", tmp_path / "v"], rd.zeros(shape, x.system), form)
    with pytest.raises(ValueError, match="scale must be finite, got nan"):
        dataclasses.replace(form, scale=float("nan"))
    with pytest.raises(ValueError, match="compression must be 'none', 'zlib' or 'zstd', got 'gzip'"):
        rd.write_seal(paths, x, form, compression="gzip")  # type: ignore[arg-type]
    rd.write_seal(paths, x + x, form, overwrite=True)
    assert (rd.read_seal(paths, WIDE)[0] == x + x).all()


@pytest.mark.parametrize("compression", ["zlib", "zstd"])
def test_damage_of_compressed_files_is_found(compression: str, save: Callable[..., list[Path]]) -> None:
    if compression == "zstd":
        zstandard()
    paths = save(WHOLE)
    x, form = rd.read_seal(paths, WIDE)
    rd.write_seal(paths, x, form, compression=compression, overwrite=True)  # type: ignore[arg-type]
    data = paths[0].read_bytes()
    for place in range(16, len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1
        try:
            y, its_form = rd.read_seal(save(bytes(damaged)), WIDE)
        except rd.InputError:
            continue
        assert (y == x).all(), place
        assert its_form == form


def test_a_scale_that_is_no_number_is_damage(save: Callable[..., list[Path]]) -> None:
    at = 16 + 32 + 1 + 3 * 8
    with pytest.raises(rd.InputError, match=r"0\.seal: its scale must be finite, got nan"):
        rd.read_seal(save(WHOLE[:at] + b"\xff" * 8 + WHOLE[at + 8 :]), WIDE)


# ---- the library -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["bfv", "ckks"])
def test_seal_itself(scheme: str, tmp_path: Path) -> None:
    """SEAL decrypts sums and products that are computed here, from each compression."""
    seal = pytest.importorskip("tenseal.sealapi")
    degree, modulus = 8192, 65537 if scheme == "bfv" else 0
    parameters = seal.EncryptionParameters(getattr(seal.SCHEME_TYPE, scheme.upper()))
    parameters.set_poly_modulus_degree(degree)
    parameters.set_coeff_modulus(seal.CoeffModulus.Create(degree, [60, 40, 40, 60]))
    if modulus:
        parameters.set_plain_modulus(modulus)
    context = seal.SEALContext(parameters, True, seal.SEC_LEVEL_TYPE.TC128)
    level = context.first_context_data()
    primes = [prime.value() for prime in level.parms().coeff_modulus()]
    generator, public = seal.KeyGenerator(context), seal.PublicKey()
    generator.create_public_key(public)
    encryptor = seal.Encryptor(context, public, generator.secret_key())
    decryptor = seal.Decryptor(context, generator.secret_key())
    plaintext = seal.Plaintext()
    if modulus:
        encoder = seal.BatchEncoder(context)
        encoder.encode([5, 7, 65536], plaintext)
    else:
        encoder = seal.CKKSEncoder(context)
        encoder.encode([5.0, 7.0, -1.0], 2.0**40, plaintext)
    plaintext.save(str(tmp_path / "plain"))
    decoded = rd.read_seal(tmp_path / "plain", [modulus] if modulus else primes)
    assert decoded[0].shape == (1, degree)
    ciphertext = seal.Ciphertext()
    encryptor.encrypt(plaintext, ciphertext)
    ciphertext.save(str(tmp_path / "x"))
    x, form = rd.read_seal(tmp_path / "x", primes)
    assert form.parms_id == rd.SealForm.parms_id_of(scheme, degree, primes, modulus)  # type: ignore[arg-type]
    assert list(np.frombuffer(form.parms_id, "<u8")) == level.parms_id()
    assert form.is_ntt == (scheme == "ckks")
    results = {"sum": (x + x + x, form, [15, 21, 196608 % modulus if modulus else -3])}
    if not modulus:
        x0, x1 = x[:, 0], x[:, 1]
        squares = rd.stack([x0 * x0, 2 * x0 * x1, x1 * x1], axis=1)
        results["square"] = squares, dataclasses.replace(form, scale=form.scale**2), [25, 49, 1]
    for result, its_form, expected in results.values():
        for compression in ("none", "zlib", "zstd"):
            rd.write_seal(tmp_path / "y", result, its_form, compression=compression, overwrite=True)
            loaded = seal.Ciphertext()
            loaded.load(context, str(tmp_path / "y"))
            decryptor.decrypt(loaded, plaintext)
            found = encoder.decode_uint64(plaintext) if modulus else encoder.decode_double(plaintext)
            assert found[:3] == pytest.approx(expected, abs=1e-6)
