"""Noise of ciphertexts of BGV and CKKS, measured exactly: fresh ones, sums, products, rescaled products.

    python pipelines/ciphertext_noise.py folder [--size 500] [--gpus 1] [--picture noise.svg]

A ciphertext of m has polynomials c0 + c1 s = m + t e modulo X^N + 1 and modulo q, with a secret s and a small
e; t is 1 for CKKS. The noise of a result is c0 + c1 s + c2 s^2 minus what the messages give, in the fields:
no float takes part. Divided by t there, it is small only if it is a multiple of t. Checked: products of BGV
decrypt to what NumPy's convolution gives, and no noise is beyond q/2. The folder keeps a file for each task.
"""

from pathlib import Path
from typing import Any, NamedTuple

import dask
import numpy as np
from running import compute, connected, drawing, on_host, on_processor, parser_of, save

import rnsdask as rd

DEGREE = 4096  # with 108 bits of q, 128 bits of security by the standard of homomorphicencryption.org
FIELDS = rd.PrimeFields([134176769, 134111233, 134012929, 133963777])
SCHEMES = {"BGV": (65537, 2**15), "CKKS": (1, 2**27)}  # t, and the greatest coefficient of a message
STAGES = ("fresh", "sums", "products", "rescaled")
DEVIATION, OF_TASK, CHECKED = 3.2, 100, 4


class Ciphertexts(NamedTuple):
    """Transforms of secret, messages and ciphertexts (count, polynomials, N), and the messages themselves."""

    secret: rd.FieldArray
    messages: rd.FieldArray
    polynomials: list[rd.FieldArray]
    integers: np.ndarray


def transform(x: rd.FieldArray) -> rd.FieldArray:
    return rd.ntt(x, negacyclic=True)


def encrypt(scheme: str, start: int, count: int, on_gpu: bool = False) -> Ciphertexts:
    """Encrypt messages with uniform coefficients around 0, from one of all on."""
    t, most = SCHEMES[scheme]
    draws = np.random.default_rng([1, start])  # a demonstration: these can be guessed
    integers = draws.integers(-most, most, (count, DEGREE), endpoint=True)
    errors = np.rint(draws.normal(0, DEVIATION, (count, DEGREE))).astype(np.int64)
    ternary = np.random.default_rng(0).integers(-1, 2, DEGREE)
    secret, messages, noisy, uniform = (
        on_processor(x, on_gpu)
        for x in (
            *(rd.from_ints(values, FIELDS) for values in (ternary, integers, integers + t * errors)),
            rd.random(FIELDS, (count, DEGREE), seed=start),  # a transform, of what is uniform too
        )
    )
    secret = transform(secret)
    return Ciphertexts(secret, transform(messages), [transform(noisy) - uniform * secret, uniform], integers)


def multiply(a: list[rd.FieldArray], b: list[rd.FieldArray]) -> list[rd.FieldArray]:
    return [a[0] * b[0], a[0] * b[1] + a[1] * b[0], a[1] * b[1]]


def rescale(x: rd.FieldArray, t: int) -> rd.FieldArray:
    """Divide transforms by the last prime, after taking away the remainder, made a multiple of t."""
    *primes, last = x.system.primes
    fields = rd.PrimeFields(primes)
    remainder = rd.intt(rd.FieldArray(x.words[-1:], rd.PrimeFields([last])), negacyclic=True) / t
    remainder = transform(rd.base_extend(remainder, fields, signed=True)) * t
    return (rd.FieldArray(x.words[:-1], fields) - remainder) / last


def phase(polynomials: list[rd.FieldArray], secret: rd.FieldArray) -> rd.FieldArray:
    """Evaluate ciphertexts at the secret: the transforms of message and noise."""
    result = polynomials[-1]
    for polynomial in polynomials[-2::-1]:
        result = result * secret + polynomial
    return result


def noise_bits(noise: rd.FieldArray, t: int) -> np.ndarray:
    """Bits of the greatest coefficient of each noise, a multiple of t."""
    quotients = rd.intt(noise / t, negacyclic=True).lift(signed=True)
    return on_host(rd.log2(abs(quotients).max(axis=-1))) + np.log2(t)


def _measure(scheme: str, start: int, count: int, file: Path, on_gpu: bool) -> None:
    """Measure the noise of some ciphertexts, of sums and of products of two, in bits."""
    t, last = SCHEMES[scheme][0], FIELDS.primes[-1]
    s, m, c, _ = encrypt(scheme, start, count, on_gpu)
    half = count // 2
    (ma, a), (mb, b) = ((m[part], [x[part] for x in c]) for part in (slice(half), slice(half, 2 * half)))
    products = multiply(a, b)
    found = {
        "fresh": noise_bits(phase(c, s) - m, t),
        "sums": noise_bits(phase([x + y for x, y in zip(a, b, strict=True)], s) - (ma + mb), t),
        "products": noise_bits(phase(products, s) - ma * mb, t),
    }
    less = rd.PrimeFields(FIELDS.primes[:-1])
    s, exact = (rd.FieldArray(x.words[:-1], less) for x in (s, ma * mb))
    smaller = phase([rescale(x, t) for x in products], s) * last - exact  # times the prime, to have integers
    save(file, **found, rescaled=noise_bits(smaller, t) - np.log2(last))


def measure(
    folder: Path, size: int, client: Any = None, on_gpu: bool = False
) -> dict[str, dict[str, np.ndarray]]:
    """Return the bits of noise of each scheme and stage; compute the files that are missing."""
    starts, found = range(0, size, OF_TASK), {}
    files = {scheme: [folder / f"{scheme}-{size}-{start}.npz" for start in starts] for scheme in SCHEMES}
    tasks = [
        dask.delayed(_measure)(scheme, start, min(OF_TASK, size - start), file, on_gpu)
        for scheme, some in files.items()
        for start, file in zip(starts, some, strict=True)
        if not file.exists()
    ]
    compute(tasks, client, on_gpu)
    for scheme, some in files.items():
        loaded = [np.load(file) for file in some]
        found[scheme] = {stage: np.concatenate([part[stage] for part in loaded]) for stage in STAGES}
    return found


def check(noise: dict[str, dict[str, np.ndarray]]) -> str:
    """Compare products of BGV with NumPy's convolution; SystemExit if one differs, or noise is too great."""
    for scheme, of_stage in noise.items():
        for stage, bits in of_stage.items():
            if bits.max() >= limit_of(stage):
                raise SystemExit(f"error: the noise of {scheme}'s {stage} is beyond q/2")
    t, _ = SCHEMES["BGV"]
    s, _, c, integers = encrypt("BGV", 0, 2 * CHECKED)
    products = multiply(*([x[part] for x in c] for part in (slice(CHECKED), slice(CHECKED, 2 * CHECKED))))
    decrypted = rd.intt(phase(products, s), negacyclic=True).lift(signed=True) % t
    for i, found in enumerate(decrypted):
        whole = np.convolve(integers[i], integers[i + CHECKED])
        whole = np.append(whole, 0)
        if ((whole[:DEGREE] - whole[DEGREE:] - found.astype(np.int64)) % t).any():
            raise SystemExit("error: NumPy has another product")
    return f"NumPy has the products that {CHECKED} ciphertexts of BGV decrypt to"


def limit_of(stage: str) -> float:
    """Bits of q/2, the greatest noise."""
    primes = FIELDS.primes[:-1] if stage == "rescaled" else FIELDS.primes
    return sum(map(np.log2, primes)) - 1


def draw(noise: dict[str, dict[str, np.ndarray]], picture: Path) -> None:
    """Draw the greatest noise of each stage below the limits, and how noises are spread around the mean."""
    with drawing(picture, 7.2, 3.2, columns=2) as (left, right):
        for k, (scheme, of_stage) in enumerate(noise.items()):
            places = np.arange(len(STAGES)) + 0.4 * k - 0.2
            left.bar(places, [bits.max() for bits in of_stage.values()], 0.4, label=scheme)
            for stage, bits in of_stage.items():
                style = {"linestyle": ("solid", "dotted")[k], "color": f"C{STAGES.index(stage)}"}
                spread = bits - bits.mean()
                right.hist(
                    spread, np.arange(-0.6, 0.9, 0.03), histtype="step", label=f"{scheme}, {stage}", **style
                )
        left.stairs(list(map(limit_of, STAGES)), np.arange(-0.5, len(STAGES)), color="black", label="q/2")
        left.set(ylabel="bits of the greatest noise", ylim=(0, 130))
        left.set_xticks(range(len(STAGES)), STAGES)
        left.legend(ncols=3)
        right.set(xlabel="bits beyond the mean", ylabel="ciphertexts")
        right.legend(fontsize="x-small")


def main() -> None:
    options = parser_of(
        __doc__, 500, "ciphertexts of each scheme", "folder for bits of noise", 2
    ).parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with connected(options) as client:
        noise = measure(options.folder.absolute(), options.size, client, bool(options.gpus))
    for scheme, of_stage in noise.items():
        for stage, bits in of_stage.items():
            numbers = f"{bits.min():.1f} to {bits.max():.1f} bits of noise of {limit_of(stage):.1f}"
            print(f"{scheme}, {len(bits)} {stage}: {numbers}")
    print(check(noise))
    if options.picture:
        draw(noise, options.picture)


if __name__ == "__main__":
    main()
