"""Sums of numbers that nobody sees: Paillier's encryption of a batch, and products of what it gives.

    python pipelines/paillier_sums.py folder [--size 2000] [--bits 2048] [--gpus 1] [--picture sums.svg]

A ciphertext is (1 + m n) r^n modulo n^2; r^n is a power of one fixed base with a random exponent, modulo p^2
and q^2 by tables of the base's powers, and by the Chinese remainder theorem. Products of ciphertexts are sums
of plaintexts, inverses negate them. The folder keeps key and ciphertexts. Checked: the package phe decrypts
the sum of all, and the sum without every third. The picture has plaintexts beside ciphertexts.
"""

import json
import secrets
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from phe import paillier
from running import compute, connected, drawing, on_host, on_processor, parser_of

import rnsdask as rd

ROWS, WINDOW, OF_TASK = 64, 8, 2000  # exponents have 64 digits of 8 bits


def powers_of_base(base: int, modulus: int) -> rd.PositionalArray:
    """Return base**(j 2**(8 i)) modulo a modulus, at row i and column j."""
    starts = [pow(base, 1 << WINDOW * i, modulus) for i in range(ROWS)]
    first = rd.from_ints(starts, rd.Positional(modulus.bit_length()))
    return rd.stack([rd.mod_power(first, j, modulus) for j in range(2**WINDOW)], axis=1)


def fixed_base_power(table: rd.PositionalArray, digits: np.ndarray, modulus: int) -> rd.PositionalArray:
    """Return the base to the power of exponents, given by their digits of 8 bits along the first axis."""
    result = table[0][digits[0]]
    for row, digit in zip(range(1, len(digits)), digits[1:], strict=True):
        result = rd.mod_multiply(result, table[row][digit], modulus)
    return result


def _encrypted(values: list[int], p: int, q: int, tables: list[Any], on_gpu: bool) -> np.ndarray:
    n, square, p2, q2 = p * q, (p * q) ** 2, p * p, q * q
    digits = np.frombuffer(secrets.token_bytes(len(values) * ROWS), np.uint8).reshape(ROWS, -1).astype(int)
    pairs, bits = zip(tables, (p2, q2), strict=True), square.bit_length()
    a, b = (fixed_base_power(on_processor(t, on_gpu), digits, m).to_positional(bits) for t, m in pairs)
    lifted = rd.mod_multiply(rd.mod_subtract(b, a, q2), pow(p2, -1, q2), q2)  # (b - a) / p^2
    noise = rd.mod_add(rd.mod_multiply(lifted, p2, square), a, square)
    plain = rd.from_ints([value % n * n + 1 for value in values], a.system)
    return on_host(rd.mod_multiply(on_processor(plain, on_gpu), noise, square).words)


def encrypt(folder: Path, values: list[int], key: Any, client: Any = None, on_gpu: bool = False) -> Any:
    """Return ciphertexts under a key of `phe`, lazy; write the stores that are missing."""
    n, system = key.public_key.n, rd.Positional(key.public_key.nsquare.bit_length())
    base = pow(secrets.randbelow(n - 2) + 2, n, n * n)
    tables = [dask.delayed(powers_of_base)(base % prime**2, prime**2) for prime in (key.p, key.q)]
    stores, writes = [], []
    for start in range(0, len(values), OF_TASK):
        some = values[start : start + OF_TASK]
        stores.append(store := folder / f"{n.bit_length()}-{start}-{start + len(some)}.zarr")
        if not store.exists():
            words = dask.delayed(_encrypted)(some, key.p, key.q, tables, on_gpu)
            x = rd.PositionalArray(da.from_delayed(words, (system.rows, len(some)), np.uint32), system)
            writes.append(x.to_zarr(store, compute=False))
    compute(writes, client, on_gpu)
    return rd.concatenate([rd.open_zarr(store, backend="cuda" if on_gpu else "cpu") for store in stores])


def sum_of(ciphertexts: rd.PositionalArray, square: int) -> int:
    """Return the ciphertext of the sum, a product in a tree."""
    while (count := len(ciphertexts)) > 1:
        half = count // 2
        paired = rd.mod_multiply(ciphertexts[:half], ciphertexts[count - half :], square)
        ciphertexts = rd.concatenate([paired, ciphertexts[half : count - half]])
    return int(ciphertexts[0])


def check(ciphertexts: rd.PositionalArray, values: list[int], key: Any) -> str:
    """Decrypt sums and differences by `phe`."""
    square = key.public_key.nsquare
    negated = rd.mod_inverse(ciphertexts[::3], square)  # one inverse, and three products a number
    pairs = {sum_of(ciphertexts, square): sum(values)}
    pairs[sum_of(rd.concatenate([ciphertexts, negated]), square)] = sum(values) - sum(values[::3])
    for found, expected in pairs.items():
        if key.raw_decrypt(found) != expected % key.public_key.n:
            raise SystemExit("error: phe decrypts another sum")
    return f"phe decrypts the sum of {len(values)} numbers, {sum(values)}, and that without every third"


def draw(ciphertexts: rd.PositionalArray, values: list[int], square: int, picture: Path) -> None:
    """Draw histograms of plaintexts and of ciphertexts, which tell nothing of them."""
    with drawing(picture, 6.4, 2.8, columns=2) as (left, right):
        left.hist(values, bins=40)
        right.hist([value / square for value in ciphertexts.to_ints().tolist()], bins=40)
        left.set(title="plaintexts", ylabel="numbers")
        right.set(title="ciphertexts / n²")


def main() -> None:
    parser = parser_of(__doc__, 2000, "numbers that are encrypted", "folder for keys and ciphertexts")
    parser.add_argument("--bits", type=int, default=2048, help="bits of n (default 2048)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not (file := options.folder / f"key-{options.bits}.json").exists():
        _, made = paillier.generate_paillier_keypair(n_length=options.bits)
        file.write_text(json.dumps([hex(made.p), hex(made.q)]))
    p, q = (int(prime, 16) for prime in json.loads(file.read_text()))
    key = paillier.PaillierPrivateKey(paillier.PaillierPublicKey(p * q), p, q)
    values = np.random.default_rng(1).normal(50_000, 9_000, options.size).astype(int).tolist()
    with connected(options) as client:
        ciphertexts = encrypt(options.folder, values, key, client, bool(options.gpus)).compute()
        print(check(ciphertexts, values, key))
    if options.picture:
        draw(ciphertexts, values, key.public_key.nsquare, options.picture)


if __name__ == "__main__":
    main()
