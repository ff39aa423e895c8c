"""Thousands of SEAL's ciphertexts in one array: added, multiplied and rescaled without SEAL.

    python pipelines/homomorphic.py folder [--size 200] [--gpus 1] [--picture errors.svg]

TenSEAL encrypts vectors of numbers by CKKS, one a file of SEAL's. All are read into one array; sums of two,
products with a plaintext, and products of two, both rescaled, are arrays again, and SEAL's files. Checked:
TenSEAL decrypts what the numbers give, and some files are what SEAL's own evaluator computes, bit for bit.
The folder keeps the secret key, the files and the stores. The picture has the errors of CKKS.
"""

import dataclasses
from pathlib import Path
from typing import Any

import dask
import numpy as np
import tenseal
import tenseal.sealapi as seal
from running import compute, connected, drawing, on_processor, parser_of, stored

import rnsdask as rd

DEGREE, BITS, SCALE = 8192, [60, 40, 40, 60], 2.0**40
OF_TASK, CHECKED, ERROR_BITS = 50, 4, 16
RESULTS = ("sums", "scaled", "products")


def context_of(file: Path) -> Any:
    """Return TenSEAL's context of a file, which is made if it is not there, with its secret key."""
    if not file.exists():
        made = tenseal.context(tenseal.SCHEME_TYPE.CKKS, DEGREE, coeff_mod_bit_sizes=BITS)
        data = made.serialize(save_secret_key=True, save_galois_keys=False, save_relin_keys=False)
        (partial := file.with_suffix(".partial")).write_bytes(data)
        partial.rename(file)
    return tenseal.context_from(file.read_bytes())


def primes_of(context: Any) -> list[int]:
    """Primes of fresh ciphertexts: all but the special one."""
    return [
        prime.value() for prime in context.seal_context().data.first_context_data().parms().coeff_modulus()
    ]


def values_of(size: int) -> np.ndarray:
    """Numbers to be encrypted: a vector for each ciphertext, and one more for the plaintext."""
    return np.random.default_rng(1).uniform(-1, 1, (size + 1, DEGREE // 2))


def _encrypt(context_file: Path, values: np.ndarray, files: list[Path]) -> None:
    context = context_of(context_file)
    for row, file in zip(values, files, strict=True):
        vector = tenseal.ckks_vector(context, row.tolist(), scale=SCALE)
        vector.ciphertext()[0].save(str(partial := file.with_suffix(".partial")))
        partial.rename(file)


def encrypt(folder: Path, values: np.ndarray, client: Any = None) -> list[Path]:
    """Write a file of SEAL's for each vector, those that are missing; the last is of a plaintext."""
    context = context_of(folder / "context")
    fresh = folder / "fresh"
    fresh.mkdir(exist_ok=True)
    files = [fresh / f"{i}.seal" for i in range(len(values) - 1)]
    tasks = []
    for start in range(0, len(files), OF_TASK):
        some = [i for i in range(start, min(start + OF_TASK, len(files))) if not files[i].exists()]
        if some:
            names = [files[i] for i in some]
            tasks.append(dask.delayed(_encrypt)(folder / "context", values[some], names))
    compute(tasks, client)
    plaintext = seal.Plaintext()
    seal.CKKSEncoder(context.seal_context().data).encode(values[-1].tolist(), SCALE, plaintext)
    plaintext.save(str(folder / "plaintext.seal"))
    return files


# ---- arithmetic of CKKS ------------------------------------------------------------------------------------


def rescale(x: rd.FieldArray) -> rd.FieldArray:
    """Divide transforms by the last prime, rounded; only the rows modulo that one become polynomials."""
    *primes, last = x.system.primes
    fields, field = rd.PrimeFields(primes), rd.PrimeFields([last])
    how = {"negacyclic": True, "order": "bit-reversed"}
    remainder = rd.FieldArray(x.words[-1:].astype(field.word_dtype), field)
    remainder = rd.intt(remainder, root=field.roots(2 * DEGREE, minimal=True), **how)
    remainder = rd.base_extend(remainder, fields, signed=True)
    remainder = rd.ntt(remainder, root=fields.roots(2 * DEGREE, minimal=True), **how)
    return (rd.FieldArray(x.words[:-1].astype(fields.word_dtype), fields) - remainder) / last


def multiply(a: rd.FieldArray, b: rd.FieldArray) -> rd.FieldArray:
    """Products of ciphertexts of two polynomials, which have three."""
    (a0, a1), (b0, b1) = (tuple(x[:, i] for i in range(2)) for x in (a, b))
    return rd.stack([a0 * b0, a0 * b1 + a1 * b0, a1 * b1], axis=1)


def evaluate(
    folder: Path, files: list[Path], primes: list[int], client: Any = None, on_gpu: bool = False
) -> dict[str, list[Path]]:
    """Compute sums, products with the plaintext and products, in stores and in SEAL's files."""
    processor = "cuda" if on_gpu else "cpu"
    x, form = rd.read_seal(files, primes, chunks=OF_TASK)
    half = len(files) // 2
    plaintext = on_processor(rd.read_seal(folder / "plaintext.seal", primes)[0], on_gpu)
    x = stored(folder / "ciphertexts.zarr", lambda: x, client, on_gpu, processor)
    a, b = x[:half], x[half : 2 * half]
    made = {
        "sums": lambda: a + b,
        "scaled": lambda: rescale(x * plaintext[:, None]),
        "products": lambda: rescale(multiply(a, b)),
    }
    after = rd.SealForm.parms_id_of("ckks", DEGREE, primes[:-1])
    rescaled = dataclasses.replace(form, parms_id=after, scale=form.scale**2 / primes[-1])
    written = {}
    for name in RESULTS:
        result = stored(folder / f"{name}.zarr", made[name], client, on_gpu)
        (folder / name).mkdir(exist_ok=True)
        written[name] = [folder / name / f"{i}.seal" for i in range(len(result))]
        rd.write_seal(written[name], result, form if name == "sums" else rescaled, overwrite=True)
    return written


# ---- checks ------------------------------------------------------------------------------------------------


def decrypt(context: Any, files: list[Path]) -> np.ndarray:
    """The numbers of files of SEAL's."""
    data = context.seal_context().data
    decryptor, encoder = seal.Decryptor(data, context.secret_key().data), seal.CKKSEncoder(data)
    ciphertext, plaintext, rows = seal.Ciphertext(), seal.Plaintext(), []
    for file in files:
        ciphertext.load(data, str(file))
        decryptor.decrypt(ciphertext, plaintext)
        rows.append(encoder.decode_double(plaintext))
    return np.array(rows)


def check_numbers(context: Any, values: np.ndarray, written: dict[str, list[Path]]) -> dict[str, np.ndarray]:
    """Compare what TenSEAL decrypts with what the numbers give; return the errors."""
    x, plaintext = values[:-1], values[-1]
    a, b = x[: len(x) // 2], x[len(x) // 2 : len(x) // 2 * 2]
    expected = {"sums": a + b, "scaled": x * plaintext, "products": a * b}
    errors = {name: abs(decrypt(context, written[name]) - expected[name]) for name in RESULTS}
    if wrong := [name for name in RESULTS if not errors[name].max() < 2**-ERROR_BITS]:
        raise SystemExit(f"error: TenSEAL decrypts other {wrong[0]}")
    return errors


def check_bits(context: Any, folder: Path, files: list[Path], written: dict[str, list[Path]]) -> int:
    """Compare the first results with those of SEAL's evaluator, bit for bit."""
    data, half = context.seal_context().data, len(files) // 2
    evaluator, plaintext = seal.Evaluator(data), seal.Plaintext()
    plaintext.load(data, str(folder / "plaintext.seal"))
    count = min(CHECKED, half)
    for i in range(count):
        a, b = seal.Ciphertext(), seal.Ciphertext()
        a.load(data, str(files[i]))
        b.load(data, str(files[half + i]))
        results = {name: seal.Ciphertext() for name in RESULTS}
        evaluator.add(a, b, results["sums"])
        evaluator.multiply_plain(a, plaintext, results["scaled"])
        evaluator.multiply(a, b, results["products"])
        for name, result in results.items():
            if name != "sums":
                evaluator.rescale_to_next_inplace(result)
            result.save(str(file := folder / "seals-own.seal"))
            primes = primes_of(context)[: result.coeff_modulus_size()]
            (own, own_form), (x, form) = (rd.read_seal(path, primes) for path in (file, written[name][i]))
            if own_form != form or not (own == x).all():
                raise SystemExit(f"error: SEAL computes other {name}")
    return count


def draw(errors: dict[str, np.ndarray], picture: Path) -> None:
    with drawing(picture, 6.4, 3) as axes:
        for name, error in errors.items():
            axes.hist(np.log2(error[error > 0]), bins=80, density=True, histtype="step", label=name)
        axes.set(title="errors of decrypted numbers", xlabel="log₂ |error|", ylabel="density")
        axes.legend(loc="upper left")


def main() -> None:
    parser = parser_of(__doc__, 200, "ciphertexts", "folder for key, files and stores of one size", least=2)
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    values, context = values_of(options.size), context_of(folder / "context")
    with connected(options) as client:
        files = encrypt(folder, values, client)
        written = evaluate(folder, files, primes_of(context), client, bool(options.gpus))
    errors = check_numbers(context, values, written)
    for name, error in errors.items():
        print(f"{len(error)} {name}: TenSEAL decrypts {error.size} numbers, errors below 2^-{ERROR_BITS}")
    print(f"SEAL computes the same bits, {check_bits(context, folder, files, written)} of each")
    if options.picture:
        draw(errors, options.picture)


if __name__ == "__main__":
    main()
