"""Sums of numbers that nobody sees: Paillier's encryption of a batch, and products of what it gives.

    python pipelines/paillier_sums.py folder [--size 2000] [--bits 2048] [--gpus 1] [--picture sums.svg]

A ciphertext is (1 + m n) r^n modulo n^2; r^n is a power of one fixed base with a random exponent, modulo p^2
and q^2 by tables of the base's powers, and by the Chinese remainder theorem. Products of ciphertexts are sums
of plaintexts, inverses negate them. The folder keeps key and ciphertexts. Checked: the package phe decrypts
the sum of all, and the sum without every third. The picture has plaintexts beside ciphertexts.
"""

import argparse
import json
import secrets
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from phe import paillier

import rnsdask as rd

EXPONENT_BITS, WINDOW = 512, 8


def powers_of_base(base: int, modulus: int) -> rd.PositionalArray:
    """Return base**(j 2**(8 i)) modulo a modulus, at row i and column j."""
    starts = [pow(base, 1 << WINDOW * i, modulus) for i in range(EXPONENT_BITS // WINDOW)]
    first = rd.from_ints(starts, rd.Positional(modulus.bit_length()), chunks=None)
    return rd.stack([rd.mod_power(first, j, modulus) for j in range(2**WINDOW)], axis=1)


def fixed_base_power(table: rd.PositionalArray, digits: np.ndarray, modulus: int) -> rd.PositionalArray:
    """Return the base to the power of exponents, given by their digits of 8 bits along the first axis."""
    result = table[0][digits[0]]
    for row, digit in zip(range(1, len(digits)), digits[1:], strict=True):
        result = rd.mod_multiply(result, table[row][digit], modulus)
    return result


def encrypt(values: list[int], key: Any, on_gpu: bool = False) -> rd.PositionalArray:
    """Return ciphertexts of integers under a key of `phe`, whose primes make it quicker."""
    n, p, q = key.public_key.n, key.p, key.q
    square, p2, q2 = n * n, p * p, q * q
    count = EXPONENT_BITS // WINDOW
    digits = np.frombuffer(secrets.token_bytes(len(values) * count), np.uint8).reshape(count, -1).astype(int)
    base = pow(secrets.randbelow(n - 2) + 2, n, square)
    parts = []
    for modulus in (p2, q2):
        table = powers_of_base(base % modulus, modulus)
        if on_gpu:
            table = rd.PositionalArray(import_module("cupy").asarray(table.words), table.system)
        parts.append(fixed_base_power(table, digits, modulus).to_positional(square.bit_length()))
    a, b = parts  # the noise is a + p^2 ((b - a) / p^2 modulo q^2)
    lifted = rd.mod_multiply(rd.mod_subtract(b, a, q2), pow(p2, -1, q2), q2)
    noise = rd.mod_add(rd.mod_multiply(lifted, p2, square), a, square)
    plain = rd.from_ints([value % n * n + 1 for value in values], a.system, chunks=None)
    plain = rd.PositionalArray(np.asarray(plain.words, like=a.words), a.system)
    return rd.mod_multiply(plain, noise, square)


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
    from matplotlib.figure import Figure

    left, right = (figure := Figure(figsize=(6.4, 2.8), layout="constrained")).subplots(1, 2)
    left.hist(values, bins=40)
    right.hist([value / square for value in ciphertexts.to_ints().tolist()], bins=40)
    left.set(title="plaintexts", ylabel="numbers")
    right.set(title="ciphertexts / n²")
    figure.savefig(picture)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder for key and ciphertexts; those there are kept")
    parser.add_argument("--size", type=int, default=2000, help="how many numbers are encrypted")
    parser.add_argument("--bits", type=int, default=2048, help="bits of n")
    parser.add_argument("--gpus", type=int, choices=[0, 1], default=0, help="use a GPU of this host")
    parser.add_argument("--picture", type=Path, help="write a picture, .svg or .png; needs matplotlib")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    file, store = options.folder / "key.json", options.folder / "ciphertexts.zarr"
    if not file.exists():
        _, made = paillier.generate_paillier_keypair(n_length=options.bits)
        file.write_text(json.dumps([hex(made.p), hex(made.q)]))
    p, q = (int(prime, 16) for prime in json.loads(file.read_text()))
    key = paillier.PaillierPrivateKey(paillier.PaillierPublicKey(p * q), p, q)
    values = np.random.default_rng(1).normal(50_000, 9_000, options.size).astype(int).tolist()
    if not store.exists():
        encrypt(values, key, bool(options.gpus)).rechunk("auto").to_zarr(store)
    ciphertexts = rd.open_zarr(store, backend="cuda" if options.gpus else "cpu").compute()
    print(check(ciphertexts, values, key))
    if options.picture:
        draw(ciphertexts, values, key.public_key.nsquare, options.picture)


if __name__ == "__main__":
    main()
