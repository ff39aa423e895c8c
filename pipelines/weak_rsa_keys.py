"""RSA keys that share a prime with another key: batch gcd of a file of moduli, and a report.

    python pipelines/weak_rsa_keys.py keys [--file moduli.txt] [--size 2000] [--gpus 1] [--picture keys.svg]

Without a file of hexadecimal moduli, one is made in the folder, in which some keys share primes. The folder
keeps moduli and common divisors as stores. Checked: GMP finds the same divisors of all weak keys and of some
others, and the keys that were made to be weak are those found. The picture joins keys that share a prime.
"""

import math
import random
from pathlib import Path

import gmpy2
import numpy as np
from running import connected, drawing, parser_of, stored

import rnsdask as rd


def make_keys(file: Path, size: int, bits: int, seed: int = 1) -> set[int]:
    """Write moduli of which one in a hundred has a prime of an earlier key; return the weak keys' indices."""
    rng, primes, weak = random.Random(seed), [], set()
    for k in range(2 * size):
        primes.append(int(gmpy2.next_prime(rng.getrandbits(bits // 2) | 3 << bits // 2 - 2)))
        if k % 200 == 199:
            other = rng.randrange(k - 1)
            primes[-1] = primes[other]
            weak |= {k // 2, *(i // 2 for i, p in enumerate(primes) if p == primes[-1])}
    file.write_text("".join(f"{p * q:x}\n" for p, q in zip(primes[::2], primes[1::2], strict=True)))
    return weak


def factors_of(keys: rd.PositionalArray, shared: rd.PositionalArray) -> dict[int, tuple[int, int]]:
    """Return the factors of each key that has some in common with others, by its index."""
    weak = np.flatnonzero(np.asarray((shared > 1).compute()))
    numbers, divisors = keys[weak].to_ints().tolist(), shared[weak].to_ints().tolist()
    found = {}
    for index, n, divisor in zip(weak.tolist(), numbers, divisors, strict=True):
        if divisor == n:  # other keys have both primes
            divisor = next((d for other in numbers if 1 < (d := math.gcd(n, other)) < n), n)
        found[index] = (divisor, n // divisor)
    return found


def check(keys: rd.PositionalArray, shared: rd.PositionalArray, factors: dict[int, tuple[int, int]]) -> str:
    """Compare divisors with GMP's, and factors with keys."""
    everything = gmpy2.mpz(rd.product_tree(keys).product.compute())
    places = np.unique([*factors, *np.random.default_rng(1).integers(0, len(keys), 100)])
    numbers, found = keys[places].to_ints().tolist(), shared[places].to_ints().tolist()
    for index, n, divisor in zip(places.tolist(), numbers, found, strict=True):
        if math.prod(factors.get(index, (1, n))) != n or gmpy2.gcd(everything // n % n, n) != divisor:
            raise SystemExit(f"error: GMP finds another divisor of key {index}")
    return f"GMP finds the same for {len(places)} keys, all weak ones among them"


def draw(factors: dict[int, tuple[int, int]], picture: Path) -> None:
    """Draw weak keys on a circle, and a chord between two that share a prime."""
    places = {index: 2 * math.pi * k / len(factors) for k, index in enumerate(factors)}
    owners: dict[int, list[int]] = {}
    for index, primes in factors.items():
        for prime in primes:
            owners.setdefault(prime, []).append(index)
    with drawing(picture, 4.8, 4.8) as axes:
        for group in owners.values():
            points = np.exp(1j * np.array([places[index] for index in group]))
            axes.plot(points.real, points.imag, "o-", linewidth=0.8, markersize=3)
        axes.set(title=f"{len(factors)} weak keys; lines join those of one prime", aspect="equal")
        axes.axis("off")


def main() -> None:
    parser = parser_of(__doc__, 2000, "moduli that are made", "folder for keys and report", least=2)
    parser.add_argument("--file", type=Path, help="hexadecimal moduli, one a line; else some are made")
    parser.add_argument(
        "--bits", type=int, default=1024, help="bits of a modulus that is made (default 1024)"
    )
    options = parser.parse_args()
    (folder := options.folder).mkdir(parents=True, exist_ok=True)
    file, planted = options.file or folder / f"{options.size}-{options.bits}.txt", None
    if not options.file and not file.exists():
        planted = make_keys(file, options.size, options.bits)
    moduli = [int(line, 16) for line in file.read_text().split()]
    system, gpu = rd.Positional(max(map(int.bit_length, moduli))), bool(options.gpus)
    with connected(options) as client:
        keys = stored(
            folder / "keys.zarr",
            lambda: rd.from_ints(moduli, system, chunks=-(-len(moduli) // 8)),
            client,
            backend="cuda" if gpu else "cpu",
        )
        if len(keys) != len(moduli) or (keys.to_ints() != np.array(moduli, dtype=object)).any():
            raise SystemExit(f"error: {folder} has the keys of another file; give another folder")
        shared = stored(folder / "shared.zarr", lambda: rd.batch_gcd(keys), client, gpu)
        factors = factors_of(keys, shared)
        lines = [f"{i} {p:x} {q:x}\n" for i, (p, q) in factors.items()]
        folder.joinpath("report.txt").write_text("".join(lines))
        print(f"{len(factors)} of {len(keys)} keys share a prime with another: {folder}/report.txt")
        print(check(keys, shared, factors))
        if planted not in (None, set(factors)):
            raise SystemExit("error: the weak keys are not those that were made so")
    if options.picture:
        draw(factors, options.picture)


if __name__ == "__main__":
    main()
